/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FLEET_STRANGER_H
#define TESTS_FLEET_STRANGER_H

#include <stddef.h>

#include <ration/fleet.h>

/* What the programs that use ration/fleet.h in tests have in common. */

#define MS INT64_C(1000)

void must(int err, const char *what);
void pause_ms(int64_t ms);
int64_t clock_us(void);
/* Let the test do something: it answers with a line. */
void your_turn(const char *what);
/* A fleet that is patient with a store on a loaded machine; FLEET_NAME of the environment is its name. */
ration_fleet *fleet_of(const char *url);

typedef struct scenario {
    const char *name;
    void (*run)(const char *url);
} scenario;

/* `program URL SCENARIO`: the status that it ends with. */
int scenario_run(int argc, char **argv, const scenario *scenarios, size_t count);

#endif
