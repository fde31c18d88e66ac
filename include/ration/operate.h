/* SPDX-License-Identifier: MIT */
#ifndef RATION_OPERATE_H
#define RATION_OPERATE_H

/*
 * What operators do to a running engine: pause and resume a counter, reset it, grant it more, drain the whole.
 * Specification chapters 7 and 9; docs/decisions/0016 says what each does at each kind of limit.
 *
 * Who may do so is not the engine's business: whoever offers these calls asks for a right first. All are recorded, and
 * replayed as they were. Those who can go by them go at once, in the events that follow.
 *
 * A counter is named as reports name it: provider, limit, scope key. Only one that somebody has asked for, or that was
 * kept from an earlier life, exists: for any other the calls below answer RATION_ERR_UNKNOWN and change nothing.
 * RATION_ERR_INVALID stands for an absent limit or key, and for an absent provider where several have such a limit.
 */

#include <ration/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Grant nothing more at this counter until `ration_engine_resume`.
 *
 * Leases that are held stay held, and units go on coming back. Who may wait waits, at the latest until its deadline;
 * who may not is refused with RATION_REASON_PAUSED and no time to retry. A pause outlives the process (ration/state.h)
 * and a reset. A shadow limit binds nobody, paused or not.
 *
 * Errors     as above; RATION_ERR_NOMEM, RATION_ERR_FULL: nothing changed. A counter that is paused already is no
 *            error.
 * Cost       O(1).
 */
RATION_API int ration_engine_pause(ration_engine *engine, ration_time now, const ration_counter_name *counter);

/** End a pause. One that is not paused is no error. Errors as for pause. O(those who wait for that alone). */
RATION_API int ration_engine_resume(ration_engine *engine, ration_time now, const ration_counter_name *counter);

/**
 * Forget what the counter has spent and learned, and its penalty; what leases hold stays held.
 *
 * A bucket is full. A quota has spent nothing in this window, which is the calendar's again, and has its declared
 * maximum; leases granted before count no more, neither do their settlements. An adaptive limit stands at its initial
 * limit, and its first window begins. A share limit forgets wants and what its reports add up, but no loan. Slots have
 * nothing to forget.
 *
 * Errors     as for pause.
 * Cost       O(holds) at a quota, O(tenants) at a share limit or an adaptive one with followers, else O(1).
 */
RATION_API int ration_engine_reset(ration_engine *engine, ration_time now, const ration_counter_name *counter);

/**
 * Grant `units` micro-units more, once.
 *
 * At a quota they are usable in this window, beyond U, for everybody (no part of them is reserve); a rolling window has
 * them for its own length, after the latest grant. What the provider said still holds. They end with the process. At a
 * rate they are credit, up to the burst.
 *
 * Errors     as for pause; RATION_ERR_RANGE for units that are not above 0, above 2^53 (at a quota with what was
 *            granted before in its window), or no whole number where requests are counted; RATION_ERR_INVALID for a
 *            limit whose units are held and not spent (concurrency, share, adaptive): raise its maximum instead.
 * Cost       O(1).
 */
RATION_API int ration_engine_grant(ration_engine *engine, ration_time now, const ration_counter_name *counter,
                                   int64_t units);

/**
 * Take nothing new: who waits is refused with RATION_REASON_DRAINING, in waiting order, and so is who comes. Leases go
 * on to their ends. There is no way back. Drained already is no error.
 *
 * Cost       O(waiters · log waiters), and the size of the lease table.
 */
RATION_API int ration_engine_drain(ration_engine *engine, ration_time now);

/**
 * Other rules from now on: all of them, or none. Specification chapter 7, "Reload"; docs/decisions/0017 has every case.
 *
 * What has the same name goes on: counters by provider, limit and scope key, if the limit has still its kind, its scope
 * and what it counts; accounts, tenants and classes by name; circuits by provider and key. So usage, levels, leases,
 * waiters, penalties, pauses, learned maxima, adaptive limits and circuits survive. A bucket is never refilled, a count
 * never reset. What is gone is forgotten, and leases that hold something of it end without it; what is new is fresh.
 * Who waits is asked anew, in order, at this instant: it may go, wait on, or be refused (`unknown_account` where its
 * account is gone).
 *
 * Whoever keeps names or pointers of the old rules (a limit's name in a report, a provider's number) must take them
 * anew. Texts of events that have not been taken yet stay good until they have been. A recorder must be told the new
 * config before this call, or its recording ends (trace/recorder.h).
 *
 * Ownership  As `ration_engine_new`: copies what it keeps.
 * Errors     RATION_ERR_CONFIG with `*fault` filled (may be NULL); RATION_ERR_NOMEM; RATION_ERR_INVALID. The engine
 *            then is as it was: only time has been carried on to `now`.
 * Cost       Linear in the rules, counters, leases and waiters; both states stand side by side for a moment.
 */
RATION_API RATION_MUST_CHECK int ration_engine_reload(ration_engine *engine, ration_time now, const ration_rules *rules,
                                                      ration_fault *fault);

#ifdef __cplusplus
}
#endif

#endif
