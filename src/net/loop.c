/* SPDX-License-Identifier: MIT */
/*
 * A turn of the loop: wait, callbacks, timers that are due, deferred work, wait again.
 *
 * Timers hang in one heap and libuv knows only one alarm, set for the earliest just before the loop waits: setting and
 * stopping thousands of them costs no system call and no closing. libuv counts monotonic milliseconds, we count
 * instants of our clock; an alarm that comes early finds nothing due and is set again. A heartbeat twice a second sets
 * it anew from the clock, so that a step of the wall clock or a sleep of the machine moves the timers along.
 *
 * Deferred work runs in libuv's prepare phase: nothing is waited for between a callback and the work it deferred.
 *
 * Invariants: `now` is read at most once between two waits; a stopped timer's function is not called; work is in at
 * most one list, and `due` says which.
 */

#include "net/loop.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <uv.h>

#include "base/mem.h"

#define HEARTBEAT_MS 500
#define MAX_ALARM_MS 3600000 /* the heartbeat sets it anew long before */

typedef TAILQ_HEAD(rn_deferred_list, rn_deferred) rn_deferred_list;

enum { NOT_DUE = 0, DUE_THIS_TURN, DUE_NEXT_TURN };

struct rn_loop {
    uv_loop_t uv;
    uv_timer_t alarm;
    uv_timer_t heartbeat;
    uv_prepare_t end_of_turn;
    uv_idle_t next_turn;
    rn_clock clock;
    ration_time now;
    bool now_is_stale;
    void (*on_step)(void *user, ration_time now, int64_t by_us); /* NULL: nobody asks */
    void *step_user;
    bool alarm_is_stale;
    int64_t alarm_us;
    rn_heap timers;
    uint64_t timer_order;
    rn_deferred_list this_turn_work;
    rn_deferred_list next_turn_work;
};

struct rn_signal {
    uv_signal_t uv;
    rn_signal_fn *fn;
    void *user;
};

/* ---- time */

ration_time rn_loop_now(rn_loop *loop)
{
    if (loop->now_is_stale) {
        const int64_t stepped_us = loop->clock.stepped_us;

        loop->now = rn_clock_now(&loop->clock);
        loop->now_is_stale = false;
        /* Both clocks at one instant, so that an alarm can be reckoned from one to the other. */
        uv_update_time(&loop->uv);
        if (loop->clock.stepped_us > stepped_us && loop->on_step != NULL)
            loop->on_step(loop->step_user, loop->now, loop->clock.stepped_us - stepped_us);
    }
    return loop->now;
}

void rn_loop_on_step(rn_loop *loop, void (*fn)(void *user, ration_time now, int64_t by_us), void *user)
{
    loop->on_step = fn;
    loop->step_user = user;
}

const rn_clock *rn_loop_clock(const rn_loop *loop)
{
    return &loop->clock;
}

/* The prepare handle stands for all that is ours: the loop goes on while there is a timer or deferred work. */
static void loop_hold(rn_loop *loop)
{
    if (rn_heap_top(&loop->timers) != NULL || !TAILQ_EMPTY(&loop->this_turn_work)) {
        uv_ref((uv_handle_t *)&loop->end_of_turn);
    } else {
        uv_unref((uv_handle_t *)&loop->end_of_turn);
    }
}

/* ---- timers */

static rn_timer *timer_of(rn_heap_node *node)
{
    return (rn_timer *)(void *)((char *)node - offsetof(rn_timer, node));
}

static const rn_timer *timer_of_const(const rn_heap_node *node)
{
    return (const rn_timer *)(const void *)((const char *)node - offsetof(rn_timer, node));
}

/* Earlier first; of the same instant, the one set earlier. */
static bool timer_less(const rn_heap_node *a, const rn_heap_node *b)
{
    const rn_timer *x = timer_of_const(a);
    const rn_timer *y = timer_of_const(b);

    return x->at_us != y->at_us ? x->at_us < y->at_us : x->order < y->order;
}

void rn_timer_init(rn_timer *timer, rn_loop *loop, rn_timer_fn *fn, void *user)
{
    rn_heap_node_init(&timer->node);
    timer->loop = loop;
    timer->fn = fn;
    timer->user = user;
    timer->at_us = RATION_NEVER_US;
    timer->order = 0;
}

bool rn_timer_is_set(const rn_timer *timer)
{
    return rn_heap_contains(&timer->node);
}

void rn_timer_stop(rn_timer *timer)
{
    if (rn_timer_is_set(timer)) {
        rn_heap_remove(&timer->loop->timers, &timer->node);
        loop_hold(timer->loop);
    }
    timer->at_us = RATION_NEVER_US;
}

int rn_timer_set(rn_timer *timer, ration_time at)
{
    rn_loop *loop = timer->loop;

    if (at.us == RATION_NEVER_US) {
        rn_timer_stop(timer);
        return RATION_OK;
    }
    if (rn_timer_is_set(timer) && timer->at_us == at.us)
        return RATION_OK;

    const bool was_set = rn_timer_is_set(timer);
    const int64_t old_us = timer->at_us;
    timer->at_us = at.us;
    timer->order = ++loop->timer_order;
    if (was_set) {
        rn_heap_moved(&loop->timers, &timer->node);
        return RATION_OK;
    }

    const int err = rn_heap_push(&loop->timers, &timer->node);
    if (err != RATION_OK)
        timer->at_us = old_us;
    loop_hold(loop);
    return err;
}

static void alarm_rings(uv_timer_t *handle)
{
    rn_loop *loop = handle->data;
    const ration_time now = rn_loop_now(loop);
    /* A timer that is set in here waits for the next alarm, or two that set each other would never let go. */
    const uint64_t last = loop->timer_order;

    loop->alarm_is_stale = true;
    for (;;) {
        rn_heap_node *top = rn_heap_top(&loop->timers);
        rn_timer *timer = top != NULL ? timer_of(top) : NULL;

        if (timer == NULL || timer->at_us > now.us || timer->order > last)
            return;
        rn_timer_stop(timer);
        timer->fn(timer->user, now);
    }
}

static void heartbeat_beats(uv_timer_t *handle)
{
    rn_loop *loop = handle->data;

    loop->alarm_is_stale = true;
}

/* Set libuv's alarm for the earliest timer. */
static void loop_set_alarm(rn_loop *loop)
{
    rn_heap_node *top = rn_heap_top(&loop->timers);

    if (top == NULL) {
        (void)uv_timer_stop(&loop->alarm);
        loop->alarm_is_stale = true;
        return;
    }

    const int64_t at_us = timer_of(top)->at_us;
    if (!loop->alarm_is_stale && loop->alarm_us == at_us)
        return;
    const int64_t now_us = rn_loop_now(loop).us;
    int64_t wait_ms = 0;
    if (at_us > now_us)
        wait_ms = at_us - now_us > MAX_ALARM_MS * INT64_C(1000) ? MAX_ALARM_MS : (at_us - now_us + 999) / 1000;
    (void)uv_timer_start(&loop->alarm, alarm_rings, (uint64_t)wait_ms, 0);
    loop->alarm_us = at_us;
    loop->alarm_is_stale = false;
}

/* ---- deferred work */

static void loop_run_deferred(rn_loop *loop)
{
    rn_deferred *work;

    while ((work = TAILQ_FIRST(&loop->this_turn_work)) != NULL) {
        rn_loop_forget(loop, work);
        work->fn(work);
    }
}

static void turn_ends(uv_prepare_t *handle)
{
    rn_loop *loop = handle->data;

    loop_run_deferred(loop);
    loop_set_alarm(loop);
    loop->now_is_stale = true;
}

static void next_turn_begins(uv_idle_t *handle)
{
    rn_loop *loop = handle->data;
    rn_deferred *work;

    (void)uv_idle_stop(handle);
    while ((work = TAILQ_FIRST(&loop->next_turn_work)) != NULL) {
        rn_loop_forget(loop, work);
        rn_loop_defer(loop, work);
    }
}

void rn_loop_defer(rn_loop *loop, rn_deferred *work)
{
    if (work->due == DUE_THIS_TURN)
        return;
    rn_loop_forget(loop, work);
    TAILQ_INSERT_TAIL(&loop->this_turn_work, work, link);
    work->due = DUE_THIS_TURN;
    loop_hold(loop);
}

void rn_loop_defer_next(rn_loop *loop, rn_deferred *work)
{
    if (work->due != NOT_DUE)
        return;
    TAILQ_INSERT_TAIL(&loop->next_turn_work, work, link);
    work->due = DUE_NEXT_TURN;
    (void)uv_idle_start(&loop->next_turn, next_turn_begins);
}

void rn_loop_forget(rn_loop *loop, rn_deferred *work)
{
    if (work->due == DUE_THIS_TURN) {
        TAILQ_REMOVE(&loop->this_turn_work, work, link);
    } else if (work->due == DUE_NEXT_TURN) {
        TAILQ_REMOVE(&loop->next_turn_work, work, link);
    }
    work->due = NOT_DUE;
    loop_hold(loop);
}

/* ---- the loop */

int rn_loop_new(rn_loop **out)
{
    rn_loop *loop = calloc(1, sizeof *loop);

    if (loop == NULL)
        return RATION_ERR_NOMEM;
    if (uv_loop_init(&loop->uv) != 0) {
        free(loop);
        return RATION_ERR_IO;
    }
    rn_heap_init(&loop->timers, rn_mem_default(), timer_less);
    TAILQ_INIT(&loop->this_turn_work);
    TAILQ_INIT(&loop->next_turn_work);
    rn_clock_start(&loop->clock);
    loop->now_is_stale = loop->alarm_is_stale = true;

    (void)uv_timer_init(&loop->uv, &loop->alarm);
    (void)uv_timer_init(&loop->uv, &loop->heartbeat);
    (void)uv_prepare_init(&loop->uv, &loop->end_of_turn);
    (void)uv_idle_init(&loop->uv, &loop->next_turn);
    loop->alarm.data = loop->heartbeat.data = loop->end_of_turn.data = loop->next_turn.data = loop;
    (void)uv_prepare_start(&loop->end_of_turn, turn_ends);
    (void)uv_timer_start(&loop->heartbeat, heartbeat_beats, HEARTBEAT_MS, HEARTBEAT_MS);
    uv_unref((uv_handle_t *)&loop->end_of_turn);
    uv_unref((uv_handle_t *)&loop->heartbeat);
    *out = loop;
    return RATION_OK;
}

void rn_loop_run(rn_loop *loop)
{
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop_run_deferred(loop);
}

void rn_loop_stop(rn_loop *loop)
{
    uv_stop(&loop->uv);
}

uv_loop_t *rn_loop_uv(rn_loop *loop)
{
    return &loop->uv;
}

void rn_loop_free(rn_loop *loop)
{
    if (loop == NULL)
        return;
    loop_run_deferred(loop);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    uv_close((uv_handle_t *)&loop->heartbeat, NULL);
    uv_close((uv_handle_t *)&loop->end_of_turn, NULL);
    uv_close((uv_handle_t *)&loop->next_turn, NULL);
    /* A stop that came after the last turn would end the first run before anything is closed. */
    while (uv_run(&loop->uv, UV_RUN_DEFAULT) != 0) {
    }

    const int err = uv_loop_close(&loop->uv);
    assert(err == 0);
    (void)err;
    rn_heap_fini(&loop->timers);
    free(loop);
}

/* ---- signals and the process */

static void signal_arrives(uv_signal_t *handle, int signum)
{
    rn_signal *sig = handle->data;

    sig->fn(sig->user, signum);
}

static void signal_closed(uv_handle_t *handle)
{
    free(handle->data);
}

int rn_signal_new(rn_loop *loop, int signum, rn_signal_fn *fn, void *user, rn_signal **out)
{
    rn_signal *sig = calloc(1, sizeof *sig);

    if (sig == NULL)
        return RATION_ERR_NOMEM;
    sig->fn = fn;
    sig->user = user;
    sig->uv.data = sig;
    if (uv_signal_init(&loop->uv, &sig->uv) != 0) {
        free(sig);
        return RATION_ERR_IO;
    }
    uv_unref((uv_handle_t *)&sig->uv);
    if (uv_signal_start(&sig->uv, signal_arrives, signum) != 0) {
        uv_close((uv_handle_t *)&sig->uv, signal_closed);
        return RATION_ERR_IO;
    }
    *out = sig;
    return RATION_OK;
}

void rn_signal_free(rn_signal *sig)
{
    if (sig != NULL)
        uv_close((uv_handle_t *)&sig->uv, signal_closed);
}

void rn_process_deafen(void)
{
    sigset_t ends;

    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
}

size_t rn_process_prepare(void)
{
    const struct rlimit no_core = {0, 0};
    struct rlimit limit = {0, 0};

    (void)signal(SIGPIPE, SIG_IGN);
    (void)setrlimit(RLIMIT_CORE, &no_core); /* a core has the secrets in it */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    if (limit.rlim_cur < limit.rlim_max) {
        const rlim_t soft = limit.rlim_cur;

        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            limit.rlim_cur = soft;
    }
    return (size_t)limit.rlim_cur;
}
