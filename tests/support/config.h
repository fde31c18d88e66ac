/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_CONFIG_H
#define TESTS_SUPPORT_CONFIG_H

/* Configs from texts, and whether two sets of rules are the same. */

#include "support/check.h"

#include "config/config.h"

/* Loads, or fails the test with the first fault. */
static inline ration_config *config_of(const char *text, const ration_config_options *options)
{
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    const int err = ration_config_parse(ration_text_of(text), "f", options, &config, &faults);
    char line[1024] = "";

    if (faults.count > 0)
        (void)ration_config_fault_text(&faults.items[0], line, sizeof line);
    CHECK_STR(line, "");
    CHECK_EQ(err, RATION_OK);
    ration_config_faults_fini(&faults);
    return config;
}

/* All faults of a text as lines, each with a line feed; a config that loads gives its warnings, or "". */
static inline void faults_of(const char *text, size_t size, const ration_config_options *options, char *out,
                             size_t room)
{
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    const int err = ration_config_parse((ration_text){text, size}, "f", options, &config, &faults);
    size_t used = 0;

    out[0] = '\0';
    CHECK_EQ(err, faults.count > 0 ? RATION_ERR_CONFIG : RATION_OK);
    CHECK((config != NULL) == (err == RATION_OK));

    const ration_config_fault *items = faults.items;
    size_t count = faults.count;

    if (config != NULL)
        items = ration_config_warnings(config, &count);
    for (size_t i = 0; i < count && used < room - 2; i++) {
        CHECK_EQ(items[i].warning, config != NULL);
        used += ration_config_fault_text(&items[i], out + used, room - used - 1);
        out[used++] = '\n';
        out[used] = '\0';
    }
    ration_config_faults_fini(&faults);
    ration_config_free(config);
}

/* NULL: equal; else the name of the first member that differs. */
const char *rules_differ(const ration_rules *a, const ration_rules *b);

#endif
