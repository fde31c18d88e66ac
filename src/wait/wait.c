/* SPDX-License-Identifier: MIT */

/*
 * One engine, one lock, and threads that block.
 *
 * Whoever calls the engine takes its events and hands each to the thread that it is for, which sleeps on a condition of
 * its own: nobody is woken in vain. Time must pass without calls too, so one of the blocked threads keeps it: it sleeps
 * only until the engine's next deadline. When its own answer comes it passes that duty on; when a call brings a nearer
 * deadline it is woken to look again.
 *
 * The clock is the monotonic one, anchored to the wall clock when the door is made, so that calendar windows fall where
 * they should and no step of the wall clock is felt.
 *
 * Invariant, outside the lock: if anybody is blocked, exactly one of them keeps the time.
 */

#include <ration/wait.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

typedef struct sleeper {
    TAILQ_ENTRY(sleeper) next;
    pthread_cond_t wake;
    bool answered;
    ration_lease lease;
    ration_decision decision;
    char *why;
    size_t why_size;
} sleeper;

TAILQ_HEAD(sleeper_list, sleeper);

struct ration_wait {
    pthread_mutex_t lock;
    ration_engine *engine;
    struct sleeper_list sleepers;
    sleeper *keeper;          /* of the time; NULL: nobody sleeps */
    ration_time keeper_until; /* when it will look by itself */
    int64_t wall_minus_mono_us;
    bool closed;
};

static int64_t clock_us(clockid_t clock)
{
    struct timespec ts = {0, 0};

    (void)clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static ration_time now_of(const ration_wait *wait)
{
    return ration_time_of(clock_us(CLOCK_MONOTONIC) + wait->wall_minus_mono_us);
}

int ration_wait_new(const ration_engine_options *options, ration_wait **out, ration_fault *fault)
{
    if (out == NULL)
        return RATION_ERR_INVALID;

    ration_wait *wait = calloc(1, sizeof *wait);

    if (wait == NULL)
        return RATION_ERR_NOMEM;
    if (pthread_mutex_init(&wait->lock, NULL) != 0) {
        free(wait);
        return RATION_ERR_NOMEM;
    }
    TAILQ_INIT(&wait->sleepers);
    wait->wall_minus_mono_us = clock_us(CLOCK_REALTIME) - clock_us(CLOCK_MONOTONIC);

    const int err = ration_engine_new(options, now_of(wait), &wait->engine, fault);

    if (err != RATION_OK) {
        ration_wait_free(wait);
        return err;
    }
    *out = wait;
    return RATION_OK;
}

void ration_wait_free(ration_wait *wait)
{
    if (wait == NULL)
        return;
    ration_engine_free(wait->engine);
    (void)pthread_mutex_destroy(&wait->lock);
    free(wait);
}

/* A decision without what belongs to the engine. */
static void decision_detach(ration_decision *decision, char *why, size_t why_size)
{
    if (why != NULL)
        (void)ration_decision_explain(decision, why, why_size);
    decision->key = (ration_text){NULL, 0};
    decision->facts.tenant = (ration_text){NULL, 0};
    decision->blocking = NULL;
    decision->blocking_count = 0;
}

static void answer(sleeper *who, const ration_decision *decision)
{
    who->decision = *decision;
    decision_detach(&who->decision, who->why, who->why_size);
    who->answered = true;
    (void)pthread_cond_signal(&who->wake);
}

/* After any call to the engine: hand out its events, and wake the keeper of the time if something is due before it
 * looks. */
static void deliver(ration_wait *wait)
{
    ration_event event;

    while (ration_engine_next_event(wait->engine, &event)) {
        if (event.user != NULL && (event.type == RATION_EVENT_GRANTED || event.type == RATION_EVENT_REFUSED))
            answer(event.user, &event.decision);
    }
    if (wait->keeper != NULL && ration_engine_next_deadline(wait->engine).us < wait->keeper_until.us)
        (void)pthread_cond_signal(&wait->keeper->wake);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the struct keeps `why`, to be written. */
static int sleeper_init(sleeper *who, char *why, size_t why_size)
{
    pthread_condattr_t attributes;

    *who = (sleeper){.why = why, .why_size = why_size};
    if (pthread_condattr_init(&attributes) != 0)
        return RATION_ERR_NOMEM;
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);

    const int err = pthread_cond_init(&who->wake, &attributes);

    (void)pthread_condattr_destroy(&attributes);
    return err == 0 ? RATION_OK : RATION_ERR_NOMEM;
}

/* Sleep until the engine has something to do, or somebody wakes us. */
static void keep_time(ration_wait *wait, sleeper *self)
{
    wait->keeper_until = ration_engine_next_deadline(wait->engine);

    const int64_t mono_us = wait->keeper_until.us - wait->wall_minus_mono_us;
    const struct timespec until = {mono_us / 1000000, (mono_us % 1000000) * 1000};

    (void)pthread_cond_timedwait(&self->wake, &wait->lock, &until);
    (void)ration_engine_advance(wait->engine, now_of(wait));
    deliver(wait);
}

/* Nobody keeps the time: wake one who goes on sleeping. One who has its answer would leave without taking it up. */
static void keeper_wanted(ration_wait *wait)
{
    sleeper *who;

    TAILQ_FOREACH (who, &wait->sleepers, next) {
        if (!who->answered) {
            (void)pthread_cond_signal(&who->wake);
            return;
        }
    }
}

/* A queued request has a deadline, so the keeper's sleep always ends. */
static void sleep_until_answered(ration_wait *wait, sleeper *self)
{
    TAILQ_INSERT_TAIL(&wait->sleepers, self, next);
    while (!self->answered) {
        if (wait->keeper == NULL)
            wait->keeper = self;
        if (wait->keeper == self) {
            keep_time(wait, self);
        } else {
            (void)pthread_cond_wait(&self->wake, &wait->lock);
        }
    }
    TAILQ_REMOVE(&wait->sleepers, self, next);
    if (wait->keeper == self)
        wait->keeper = NULL;
    if (wait->keeper == NULL)
        keeper_wanted(wait);
}

static void refuse_draining(ration_decision *out, ration_time at, char *why, size_t why_size)
{
    *out = (ration_decision){
        .result = RATION_REFUSED,
        .reason = RATION_REASON_DRAINING,
        .at = at,
        .retry_at = {RATION_NEVER_US},
        .facts = {.charge = RATION_UNSET, .available = RATION_UNSET, .capacity = RATION_UNSET, .ahead = RATION_UNSET},
    };
    decision_detach(out, why, why_size);
}

static int acquire_locked(ration_wait *wait, sleeper *self, const ration_request *request, ration_decision *out)
{
    ration_request mine = *request;
    ration_decision decision;

    mine.user = self;

    const int err = ration_engine_submit(wait->engine, now_of(wait), &mine, &decision);

    if (err != RATION_OK) {
        deliver(wait);
        return err;
    }
    self->lease = decision.lease;
    if (decision.result != RATION_QUEUED) {
        decision_detach(&decision, self->why, self->why_size);
        deliver(wait);
        *out = decision;
        return RATION_OK;
    }
    deliver(wait);
    sleep_until_answered(wait, self);
    *out = self->decision;
    return RATION_OK;
}

int ration_wait_acquire(ration_wait *wait, const ration_request *request, ration_decision *out, char *why,
                        size_t why_size)
{
    sleeper self;

    if (wait == NULL || request == NULL || out == NULL)
        return RATION_ERR_INVALID;
    if (why != NULL && why_size > 0)
        why[0] = '\0';

    int err = sleeper_init(&self, why, why_size);

    if (err != RATION_OK)
        return err;
    (void)pthread_mutex_lock(&wait->lock);
    if (wait->closed) {
        refuse_draining(out, now_of(wait), why, why_size);
    } else {
        err = acquire_locked(wait, &self, request, out);
    }
    (void)pthread_mutex_unlock(&wait->lock);
    (void)pthread_cond_destroy(&self.wake);
    return err;
}

int ration_wait_observe(ration_wait *wait, ration_lease lease, const ration_response *response)
{
    if (wait == NULL)
        return RATION_ERR_INVALID;
    (void)pthread_mutex_lock(&wait->lock);

    const int err = ration_engine_observe(wait->engine, now_of(wait), lease, response);

    deliver(wait);
    (void)pthread_mutex_unlock(&wait->lock);
    return err;
}

int ration_wait_renew(ration_wait *wait, ration_lease lease)
{
    if (wait == NULL)
        return RATION_ERR_INVALID;
    (void)pthread_mutex_lock(&wait->lock);

    const int err = ration_engine_renew(wait->engine, now_of(wait), lease);

    deliver(wait);
    (void)pthread_mutex_unlock(&wait->lock);
    return err;
}

int ration_wait_release(ration_wait *wait, ration_lease lease, const ration_completion *completion)
{
    if (wait == NULL)
        return RATION_ERR_INVALID;
    (void)pthread_mutex_lock(&wait->lock);

    const int err = ration_engine_release(wait->engine, now_of(wait), lease, completion);

    deliver(wait);
    (void)pthread_mutex_unlock(&wait->lock);
    return err;
}

void ration_wait_close(ration_wait *wait)
{
    sleeper *who;

    if (wait == NULL)
        return;
    (void)pthread_mutex_lock(&wait->lock);
    wait->closed = true;
    TAILQ_FOREACH (who, &wait->sleepers, next) {
        ration_decision decision;

        if (who->answered || ration_engine_cancel(wait->engine, now_of(wait), who->lease) != RATION_OK)
            continue;
        refuse_draining(&decision, now_of(wait), NULL, 0);
        answer(who, &decision);
    }
    deliver(wait);
    (void)pthread_mutex_unlock(&wait->lock);
}
