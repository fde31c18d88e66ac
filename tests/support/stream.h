/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_STREAM_H
#define TESTS_SUPPORT_STREAM_H

/*
 * A random stream of everything that can be asked of an engine, with what must hold of it whatever the rules say:
 *
 * * granted - released - lost = held, and each request ends once;
 * * slots hold what the live leases were charged, to the unit;
 * * a refusal changes no counter, nor does a check, which answers what a submit is then answered;
 * * a twin that is also looked at in between (`advance`) decides the same and tells the same.
 *
 * Decisions, events and reports run into one hash, which is the same for every compiler.
 */

#include <ration/engine.h>

typedef struct stream_driver {
    uint64_t (*choose)(void *ctx, uint64_t bound); /* 0 to `bound`, both included */
    void (*hold)(void *ctx, bool holds, const char *what, int line);
    void (*note)(void *ctx, const char *line); /* NULL: nobody reads along */
    /* The engine, when it has been made and after every call. NULL: nobody looks inside. */
    void (*look)(void *ctx, ration_engine *engine);
    bool reloads;            /* the twin is also given its rules again, now and then, which changes nothing */
    const ration_sink *sink; /* of that engine; NULL: none */
    void *ctx;
} stream_driver;

/** Play one stream; its hash. */
uint64_t stream_play(const stream_driver *driver);

#endif
