/* SPDX-License-Identifier: MIT */
/*
 * The trace hashes of simulated days, printed for comparison between compilers: `day_hash FILE SEEDS`, see same_day.sh.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "simulate/day.h"

static int day_print(const ration_config *config, uint64_t seed)
{
    const rn_day_options options = {
        .config = config,
        .span_us = INT64_C(86400) * 1000000,
        .behaviour = {.seed = seed, .latency = {150000, 50000}, .errors = {1, 100}},
        .faults = RN_DAY_ALL,
    };
    rn_day_result result;
    rn_day_error error;

    if (rn_day_run(&options, &result, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.text);
        return EXIT_FAILURE;
    }
    (void)printf("%" PRIu64 " %016" PRIx64 "\n", seed, result.hash);
    rn_day_result_fini(&result);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const ration_config_options options = {.allocator = NULL};
    ration_config_faults faults = {.count = 0};
    ration_config *config = NULL;
    int status = EXIT_FAILURE;

    if (argc == 3 && ration_config_load(argv[1], &options, &config, &faults) == 0) {
        status = EXIT_SUCCESS;
        for (uint64_t seed = 1; seed <= strtoull(argv[2], NULL, 10) && status == EXIT_SUCCESS; seed++)
            status = day_print(config, seed);
    }
    ration_config_free(config);
    ration_config_faults_fini(&faults);
    return status;
}
