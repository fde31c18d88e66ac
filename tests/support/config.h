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

/* NULL: equal; else the name of the first member that differs. */
const char *rules_differ(const ration_rules *a, const ration_rules *b);

#endif
