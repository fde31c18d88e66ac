/* SPDX-License-Identifier: MIT */
/* What the programs that use ration/fleet.h in tests have in common. Whatever goes wrong ends the program. */
#include "stranger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void must(int err, const char *what)
{
    if (err != RATION_OK) {
        (void)printf("%s: %s\n", what, ration_err_text(err));
        exit(EXIT_FAILURE);
    }
}

void pause_ms(int64_t ms)
{
    const struct timespec span = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&span, NULL);
}

int64_t clock_us(void)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000 * MS + at.tv_nsec / 1000;
}

void your_turn(const char *what)
{
    char line[8];

    (void)puts(what);
    (void)fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        exit(EXIT_FAILURE);
}

ration_fleet *fleet_of(const char *url)
{
    const ration_fleet_options options = {
        .redis = url, .name = getenv("FLEET_NAME"), .connect_timeout_us = 5000 * MS, .command_timeout_us = 5000 * MS};
    ration_fleet *fleet = NULL;

    must(ration_fleet_new(&options, &fleet), "fleet");
    return fleet;
}

int scenario_run(int argc, char **argv, const scenario *scenarios, size_t count)
{
    for (size_t i = 0; argc == 3 && i < count; i++) {
        if (strcmp(argv[2], scenarios[i].name) == 0) {
            scenarios[i].run(argv[1]);
            return EXIT_SUCCESS;
        }
    }
    return EXIT_FAILURE;
}
