/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_WORLD_H
#define TESTS_SUPPORT_WORLD_H

/*
 * An engine and the requests that a test has made of it, by short names. Times are milliseconds, costs whole units.
 *
 *     world w;
 *
 *     world_init(&w, limits, 2);
 *     CHECK_STR(world_ask(&w, 0, "a account=acc x=1 wait=100"), "granted");
 *     CHECK_STR(world_release(&w, 10, "a"), "released");
 *     CHECK_STR(world_events(&w), "granted b 10;");
 *     world_fini(&w);
 *
 * Texts returned are the world's, until the next call.
 */

#include <ration/engine.h>

#include "support/failalloc.h"

#define WORLD_NAMES 4096

typedef struct world {
    ration_engine *engine;
    struct {
        char name[24];
        ration_lease lease;
        bool live;
    } names[WORLD_NAMES];
    size_t count;
    ration_decision last; /* of the last ask */
    char text[65536];
} world;

/** One provider "p" with the limits, accounts "acc" and "bcc" (share 20 %), no reserve. */
void world_init(world *w, const ration_limit_rule *limits, size_t count);
/** The rules that `world_init` uses, to change before `world_init_rules`. */
void world_rules(ration_rules *rules, ration_provider_rule *provider, ration_account_rule accounts[2],
                 const ration_limit_rule *limits, size_t count);
int world_init_rules(world *w, const ration_rules *rules, const ration_allocator *mem);
void world_fini(world *w);

/**
 * "NAME [account=acc] [cost=N] [hold=MS] [wait=MS] [ttl=MS] [tenant=T] [priority=P] [retry=1] [auth=1] [path=P]
 * [class=C]
 * [health=1] [method=M] [VAR=V ...]". Answers "granted", "queued", or "REASON limit key retryMs[~]" ("-" for what is
 * absent), "error N".
 */
const char *world_ask(world *w, int64_t at_us, const char *request);
/** "released" or "unknown". `cost` in micro-units or RATION_UNSET. */
const char *world_release(world *w, int64_t at_us, const char *name, ration_outcome outcome, int64_t cost);
const char *world_observe(world *w, int64_t at_us, const char *name, int status, const char *header, const char *value);
const char *world_cancel(world *w, int64_t at_us, const char *name);
const char *world_renew(world *w, int64_t at_us, const char *name);
/** "noted" or "unknown". */
const char *world_health(world *w, int64_t at_us, const char *account, bool ok);
void world_advance(world *w, int64_t at_us);
/**
 * "granted NAME waitedMs;refused NAME reason limit waitedMs;lost NAME;limit NAME units;open KEY;check ACCOUNT;" for all
 * events so far.
 */
const char *world_events(world *w);

#endif
