/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a config: it loads, and then what is written of it loads to equal rules; or it has faults whose places
 * are in the text. In no case does a secret that came from outside appear.
 *
 * The first byte says whether the text is a file or a recording. Nothing of the machine's environment is read.
 */
#include "support/config.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"

#define MUST(condition) ((condition) ? (void)0 : abort())
#define SECRET "hunter2-from-outside"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *variable(void *ctx, const char *name)
{
    (void)ctx;
    return name[0] == 'S' ? SECRET : NULL;
}

/* `outside`: the secret is not in the text, so it may be in no fault. */
static void check_faults(const ration_config_faults *faults, bool outside)
{
    char line[2048];

    for (size_t i = 0; i < faults->count; i++) {
        const ration_config_fault *fault = &faults->items[i];

        MUST(ration_config_fault_text(fault, line, sizeof line) < sizeof line);
        MUST(!outside || (strstr(line, SECRET) == NULL && strstr(fault->source, SECRET) == NULL));
        MUST(strchr(line, '\n') == NULL && strchr(fault->source, '\n') == NULL);
        MUST(fault->text[0] != '\0');
        MUST(strlen(fault->source) < 600);
        MUST(fault->caret <= strlen(fault->source) + 1);
    }
}

static void check_written(const ration_config *config)
{
    const ration_config_options options = {.recording = true};
    ration_config *copy = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    char *line = NULL;
    size_t size = 0;

    MUST(rn_config_json(config, &line, &size) == RATION_OK);
    MUST(ration_config_parse((ration_text){line, size}, "written", &options, &copy, &faults) == RATION_OK);
    MUST(rules_differ(ration_config_rules(config), ration_config_rules(copy)) == NULL);
    rn_mem_free(rn_mem_default(), line);
    ration_config_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ration_config_options options = {.salt = "salt",
                                           .salt_size = 4,
                                           .instance = "here",
                                           .variable = variable,
                                           .provider_dir = "share/ration/providers",
                                           .recording = size > 0 && (data[0] & 1) != 0};
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};

    if (size == 0)
        return 0;

    size_t at = 0;
    const ration_text text = {(const char *)data + 1, size - 1};
    const int err = ration_config_parse(text, "f", &options, &config, &faults);

    MUST((err == RATION_OK) == (config != NULL) && (err == RATION_ERR_CONFIG) == (faults.count > 0));
    check_faults(&faults, !rn_text_find(text, ration_text_of(SECRET), &at));
    if (config != NULL)
        check_written(config);
    ration_config_faults_fini(&faults);
    ration_config_free(config);
    return 0;
}
