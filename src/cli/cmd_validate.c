/* SPDX-License-Identifier: MIT */
/* `ration validate FILE`: every fault or warning of a config, each with its line and a caret below it. */
#include <stdio.h>

#include <ration/config.h>

#include "cli/cli.h"

void rn_faults_print(const ration_config_faults *faults, FILE *out)
{
    for (size_t i = 0; i < faults->count; i++) {
        const ration_config_fault *fault = &faults->items[i];
        char line[2048];

        (void)ration_config_fault_text(fault, line, sizeof line);
        (void)fprintf(out, "%s\n", line);
        if (fault->source[0] != '\0')
            (void)fprintf(out, "    %s\n    %*s^\n", fault->source, (int)fault->caret, "");
    }
}

int rn_cmd_validate(const rn_command *self, int argc, char **argv)
{
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};

    if (argc != 2 || argv[1][0] == '\0')
        return rn_usage_error(self, argc < 2 ? "which file?" : "one file at a time");
    if (argv[1][0] == '-')
        return rn_usage_error(self, "unknown option '%s'", argv[1]);

    const int err = ration_config_load(argv[1], NULL, &config, &faults);

    if (config != NULL) {
        ration_config_faults warnings = {NULL, 0, NULL};

        warnings.items = ration_config_warnings(config, &warnings.count);
        rn_faults_print(&warnings, stdout);
    }
    if (faults.count > 0) {
        rn_faults_print(&faults, stdout);
    } else if (err != RATION_OK) {
        (void)fprintf(stderr, "ration validate: %s\n", ration_err_text(err));
    }
    ration_config_faults_fini(&faults);
    ration_config_free(config);
    return rn_finish_output(err == RATION_OK ? RN_EXIT_OK : err == RATION_ERR_CONFIG ? RN_EXIT_FAULTS : RN_EXIT_USAGE);
}
