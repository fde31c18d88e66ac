/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_LOOP_H
#define RN_NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <ration/types.h>

#include "base/heap.h"
#include "net/clock.h"

/*
 * A thin house around libuv's loop: one clock reading per turn, timers at instants, signals, and work for the end of
 * the turn. One thread; nothing is global but what `rn_process_*` set.
 *
 * A turn: wait for events, run their callbacks and the timers that are due, run the deferred work, wait again.
 */
typedef struct rn_loop rn_loop;

/** RATION_ERR_NOMEM, RATION_ERR_IO (no descriptors). */
RATION_MUST_CHECK int rn_loop_new(rn_loop **out);
/** Everything that hangs from the loop must be closed before. Runs the closings that are still due. */
void rn_loop_free(rn_loop *loop);
/** Run until `rn_loop_stop`, or until nothing is left that could happen. */
void rn_loop_run(rn_loop *loop);
/** Let `rn_loop_run` return after this turn. */
void rn_loop_stop(rn_loop *loop);
/** The instant of this turn: microseconds of the wall clock, the same for every caller in it. */
ration_time rn_loop_now(rn_loop *loop);
/**
 * Call `fn` when the clock has stepped forward by `by_us`, with the first instant after it, before anybody gets to know
 * that instant. One, for the life of the loop. It may be called wherever `rn_loop_now` is, so it must not be amid
 * something that `fn` disturbs: whoever is to be undisturbed asks for the time first.
 */
void rn_loop_on_step(rn_loop *loop, void (*fn)(void *user, ration_time now, int64_t by_us), void *user);
/** The clock's counters. */
const rn_clock *rn_loop_clock(const rn_loop *loop);
/** A `uv_loop_t`, for what speaks to libuv itself (thread pool work, other event sources). */
struct uv_loop_s *rn_loop_uv(rn_loop *loop);

/* ---- timers: plain memory in one heap; setting, moving and stopping one is O(log n) and never a system call */

typedef struct rn_timer rn_timer;
typedef void rn_timer_fn(void *user, ration_time now);

struct rn_timer { /* members are private */
    rn_heap_node node;
    rn_loop *loop;
    rn_timer_fn *fn;
    void *user;
    int64_t at_us;
    uint64_t order;
};

void rn_timer_init(rn_timer *timer, rn_loop *loop, rn_timer_fn *fn, void *user);
/** Fire once at `at` or up to 1 ms later, never before; sets a timer that is set anew. RATION_NEVER_US stops it.
 *  An instant in the past fires in the next turn. RATION_ERR_NOMEM. */
int rn_timer_set(rn_timer *timer, ration_time at);
bool rn_timer_is_set(const rn_timer *timer);
/** After this `fn` is not called any more; also the `fini`: the memory may go at once. */
void rn_timer_stop(rn_timer *timer);

/* ---- deferred work: once per turn, after all its callbacks and before the loop waits */

typedef struct rn_deferred {
    TAILQ_ENTRY(rn_deferred) link;
    void (*fn)(struct rn_deferred *work);
    int due; /* private: in which list it is */
} rn_deferred;

/** Run `work->fn` at the end of this turn; once, however often it is asked for. Borrowed until it has run. */
void rn_loop_defer(rn_loop *loop, rn_deferred *work);
/** The same in the next turn, after a look at what else has happened: for work that goes on by itself. */
void rn_loop_defer_next(rn_loop *loop, rn_deferred *work);
void rn_loop_forget(rn_loop *loop, rn_deferred *work);

/* ---- signals */

typedef struct rn_signal rn_signal;
typedef void rn_signal_fn(void *user, int signum);

/** Call `fn` in the loop for each `signum`. Does not keep the loop running. RATION_ERR_NOMEM, RATION_ERR_IO. */
RATION_MUST_CHECK int rn_signal_new(rn_loop *loop, int signum, rn_signal_fn *fn, void *user, rn_signal **out);
void rn_signal_free(rn_signal *sig);

/* ---- the process */

/** Raise the soft limit of descriptors to the hard one, ignore SIGPIPE, write no core: it would have the secrets. The
 *  limit of descriptors that holds now. Once, at start. */
size_t rn_process_prepare(void);
/** From here to its end the process hears no SIGTERM, SIGINT and SIGHUP: what has to be done last is done whole, and
 *  the status is its own. Other threads have them blocked from their start. */
void rn_process_deafen(void);

#endif
