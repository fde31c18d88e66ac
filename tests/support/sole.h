/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_SOLE_H
#define TESTS_SUPPORT_SOLE_H

/*
 * An engine with one limit for one account, "acc" of "p": a client's, or with `enforcer` the provider that judges what
 * the client sends. Two of them, with a way between them, are the two ends of a limit.
 */

#include <ration/engine.h>

/** `reserve` den 0: none. Aborts when the rule has a fault. */
ration_engine *sole_engine(const ration_limit_rule *limit, bool enforcer, ration_ratio reserve, int64_t at_us);
/** Ask for `cost` micro-units; the rest of the request is `how`'s, which may be NULL. */
ration_decision sole_ask(ration_engine *engine, int64_t at_us, int64_t cost, const ration_request *how);
/** The report of the only counter; zeros before it exists. */
ration_counter_report sole_report(ration_engine *engine, int64_t at_us);

#endif
