/* SPDX-License-Identifier: MIT */
/*
 * Limits from a config file: `config FILE ACCOUNT` asks for calls of that account until one is refused.
 *
 * A file with faults gives them all, each with its line and column.
 *
 *     cc config.c $(pkg-config --cflags --libs ration-config)
 *     ./a.out minimal.yaml example
 */
#include <ration/config.h>
#include <ration/ration.h>

#include <stdio.h>
#include <stdlib.h>

static ration_config *config_read(const char *path)
{
    const ration_config_options options = {.salt = NULL};
    ration_config *config = NULL;
    ration_config_faults faults = {.count = 0};

    if (ration_config_load(path, &options, &config, &faults) != RATION_OK) {
        for (size_t i = 0; i < faults.count; i++) {
            char line[512];

            (void)ration_config_fault_text(&faults.items[i], line, sizeof line);
            (void)fprintf(stderr, "%s\n", line);
        }
    }
    ration_config_faults_fini(&faults);
    return config;
}

/* How many calls may leave at one instant, at most `most`; what bound them is printed. */
static int calls_at_once(ration_engine *engine, const char *account, int most)
{
    ration_request request = RATION_REQUEST_INIT;
    ration_decision decision;
    char why[256];

    request.account = ration_text_of(account);
    for (int i = 0; i < most; i++) {
        if (ration_engine_submit(engine, ration_time_of(0), &request, &decision) != RATION_OK)
            return -1;
        if (decision.result == RATION_REFUSED) {
            (void)ration_decision_explain(&decision, why, sizeof why);
            (void)printf("call %d: %s\n", i + 1, why);
            return i;
        }
    }
    return most;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        (void)fprintf(stderr, "usage: config FILE ACCOUNT\n");
        return EXIT_FAILURE;
    }

    ration_config *config = config_read(argv[1]);

    if (config == NULL)
        return EXIT_FAILURE;

    const ration_engine_options options = {.rules = ration_config_rules(config)};
    ration_engine *engine = NULL;
    const int err = ration_engine_new(&options, ration_time_of(0), &engine, NULL);
    const int calls = err == RATION_OK ? calls_at_once(engine, argv[2], 1000) : -1;

    if (calls < 0)
        (void)fprintf(stderr, "cannot decide\n");
    ration_engine_free(engine);
    ration_config_free(config);
    return calls > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
