/* SPDX-License-Identifier: MIT */
/*
 * A semaphore of the fleet: a member (member.h) whose rules are one provider with one adaptive limit, and a door to it
 * for threads that block.
 *
 * An acquire lies on the stack of the thread that sleeps in it. It goes to the fleet's thread as a task, and everything
 * that it then is, is that thread's, until it is answered; only `answered` is under the fleet's lock. A cancel keeps a
 * list of the acquires that have it, under a lock of its own, and sends each a second task; whoever sleeps goes only
 * once that has run.
 *
 * As the in-process limit (core/adaptive_alone.c): a throttled call means what the limit makes of it, no penalty.
 *
 * Invariant: the lock of a cancel is taken before the fleet's, never the other way round.
 */
#include "fleet/client.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "core/aimd.h"
#include "core/engine.h"
#include "fleet/member.h"

#define TIMEOUT_US (10 * INT64_C(1000000))
#define BACKOFF_US INT64_C(1000000)
#define THROTTLED 429
#define NO_STATUS 999 /* none is ever observed */

typedef struct holding {
    uint32_t generation; /* 0: none */
    ration_time since;
} holding;

struct ration_semaphore {
    ration_fleet *fleet;
    char *id;
    ration_semaphore_options options; /* callbacks and numbers; its texts are not kept */
    rn_member *member;
    rn_decider *decider;
    rn_timer timer;
    rn_deferred pump;
    bool away;     /* and that has been told */
    holding *held; /* by a lease's index */
    size_t held_size;
    atomic_int_least64_t limit, held_count;
};

/* ---- cancels */

typedef struct acquire {
    rn_task ask, give_up;
    ration_semaphore *semaphore;
    ration_request request;
    ration_lease lease; /* generation 0: none yet, or no more */
    ration_time since;
    ration_decision decision;
    int err;
    pthread_cond_t woken;
    bool answered;  /* under the fleet's lock, as the two below */
    bool cancelled; /* `give_up` is posted ... */
    bool gave_up;   /* ... and has run */
    TAILQ_ENTRY(acquire) in_cancel;
} acquire;

struct ration_cancel {
    pthread_mutex_t lock;
    bool fired;
    TAILQ_HEAD(, acquire) waits;
};

int ration_cancel_new(ration_cancel **out)
{
    if (out == NULL)
        return RATION_ERR_INVALID;

    ration_cancel *const cancel = rn_mem_zalloc(rn_mem_default(), 1, sizeof *cancel);

    if (cancel == NULL)
        return RATION_ERR_NOMEM;
    (void)pthread_mutex_init(&cancel->lock, NULL);
    TAILQ_INIT(&cancel->waits);
    *out = cancel;
    return RATION_OK;
}

void ration_cancel_free(ration_cancel *cancel)
{
    if (cancel == NULL)
        return;
    (void)pthread_mutex_destroy(&cancel->lock);
    rn_mem_free(rn_mem_default(), cancel);
}

/* The cancel's lock is held, so the acquire is still there. */
static void acquire_cancel(acquire *a)
{
    ration_fleet *const fleet = a->semaphore->fleet;
    bool post;

    (void)pthread_mutex_lock(&fleet->lock);
    post = !a->answered && !a->cancelled;
    a->cancelled = a->cancelled || post;
    (void)pthread_mutex_unlock(&fleet->lock);
    if (post)
        rn_client_post(fleet, &a->give_up);
}

void ration_cancel_fire(ration_cancel *cancel)
{
    acquire *a;

    if (cancel == NULL)
        return;
    (void)pthread_mutex_lock(&cancel->lock);
    cancel->fired = true;
    TAILQ_FOREACH (a, &cancel->waits, in_cancel)
        acquire_cancel(a);
    (void)pthread_mutex_unlock(&cancel->lock);
}

/* False: it has been fired. */
static bool cancel_watch(ration_cancel *cancel, acquire *a)
{
    bool fired;

    if (cancel == NULL)
        return true;
    (void)pthread_mutex_lock(&cancel->lock);
    fired = cancel->fired;
    if (!fired)
        TAILQ_INSERT_TAIL(&cancel->waits, a, in_cancel);
    (void)pthread_mutex_unlock(&cancel->lock);
    return !fired;
}

static void cancel_unwatch(ration_cancel *cancel, acquire *a)
{
    if (cancel == NULL)
        return;
    (void)pthread_mutex_lock(&cancel->lock);
    TAILQ_REMOVE(&cancel->waits, a, in_cancel);
    (void)pthread_mutex_unlock(&cancel->lock);
}

/* ---- what it tells */

__attribute__((format(printf, 2, 3))) static void complain(ration_semaphore *s, const char *format, ...)
{
    char text[RN_MEMBER_TEXT + 160];
    va_list values;
    int used = snprintf(text, sizeof text, "semaphore '%.64s': ", s->id);

    va_start(values, format);
    (void)vsnprintf(text + used, sizeof text - (size_t)used, format, values);
    va_end(values);
    if (s->options.on_error != NULL) {
        s->options.on_error(s->options.ctx, text);
    } else {
        (void)fprintf(stderr, "ration: %s\n", text);
    }
}

static void measure(ration_semaphore *s, const ration_semaphore_metric *metric)
{
    if (s->options.on_metric != NULL)
        s->options.on_metric(s->options.ctx, metric);
}

/* Once each time that the store goes away; a store that has never been there is found out by whoever needs it. */
static void away_tell(ration_semaphore *s, const char *why)
{
    const int64_t local = s->options.local_limit;

    if (s->away)
        return;
    s->away = true;
    measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_AWAY, .value = local});
    if (local > 0) {
        complain(s, "the store is away, and this process grants up to %lld by itself: %s", (long long)local, why);
    } else {
        complain(s, "the store is away, and acquires are refused: %s", why);
    }
}

static void away_look(ration_semaphore *s)
{
    rn_member_status status;

    rn_member_look(s->member, &status);
    if (status.state != RN_MEMBER_UP)
        away_tell(s, status.last_error[0] != '\0' ? status.last_error : "it has not been reached yet");
}

static void on_changed(void *ctx, rn_member_state state, const char *text)
{
    ration_semaphore *const s = ctx;

    if (state != RN_MEMBER_UP) {
        away_tell(s, text);
    } else if (s->away) {
        s->away = false;
        measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_BACK});
    }
}

/* ---- what is held */

/* False: no memory. */
static bool hold(ration_semaphore *s, ration_lease lease, ration_time now)
{
    if (lease.index >= s->held_size) {
        const size_t size = 2 * ((size_t)lease.index + 8);
        holding *const more = rn_mem_zalloc(rn_mem_default(), size, sizeof *more);

        if (more == NULL)
            return false;
        if (s->held_size > 0)
            memcpy(more, s->held, s->held_size * sizeof *more);
        rn_mem_free(rn_mem_default(), s->held);
        s->held = more;
        s->held_size = size;
    }
    s->held[lease.index] = (holding){lease.generation, now};
    (void)atomic_fetch_add(&s->held_count, 1);
    return true;
}

/* NULL: it is not held, or not any more. */
static holding *held_find(ration_semaphore *s, ration_lease lease)
{
    holding *const at = lease.index < s->held_size ? &s->held[lease.index] : NULL;

    return at != NULL && at->generation == lease.generation ? at : NULL;
}

static void held_end(ration_semaphore *s, holding *at)
{
    at->generation = 0;
    (void)atomic_fetch_sub(&s->held_count, 1);
}

/* ---- the fleet's thread */

/* The decision's texts are the member's, and would be gone. */
static void answer(acquire *a, int err, const ration_decision *decision)
{
    ration_semaphore *const s = a->semaphore;
    ration_fleet *const fleet = s->fleet;
    const ration_time now = rn_loop_now(fleet->loop);
    const int64_t span_us = rn_sub(now.us, a->since.us);

    away_look(s);
    a->lease.generation = 0;
    a->err = err;
    if (decision != NULL)
        a->decision = *decision;
    a->decision.limit = NULL;
    a->decision.key = a->decision.facts.tenant = (ration_text){NULL, 0};
    a->decision.blocking = NULL;
    a->decision.blocking_count = 0;
    if (err == RATION_OK && a->decision.result == RATION_GRANTED) {
        measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_ACQUIRED, .span_us = span_us});
    } else if (err == RATION_OK) {
        measure(s, &(ration_semaphore_metric){
                       .kind = RATION_SEMAPHORE_REFUSED, .reason = a->decision.reason, .span_us = span_us});
    }
    (void)pthread_mutex_lock(&fleet->lock);
    a->answered = true;
    (void)pthread_cond_signal(&a->woken);
    (void)pthread_mutex_unlock(&fleet->lock);
}

static void granted(acquire *a, const ration_decision *decision, ration_lease lease)
{
    ration_semaphore *const s = a->semaphore;
    ration_decision told = *decision;
    const ration_completion unused = {.outcome = RATION_OUTCOME_CANCELLED, .cost = RATION_UNSET};

    told.result = RATION_GRANTED;
    told.lease = lease;
    if (hold(s, lease, rn_loop_now(s->fleet->loop))) {
        answer(a, RATION_OK, &told);
        return;
    }
    (void)s->decider->ops->release(s->decider, rn_loop_now(s->fleet->loop), lease, &unused);
    answer(a, RATION_ERR_NOMEM, NULL);
}

static void lost(ration_semaphore *s, ration_lease lease)
{
    holding *const at = held_find(s, lease);

    if (at == NULL)
        return;
    held_end(s, at);
    measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_LOST});
    complain(s, "a lease was lost: it had not been renewed within its time to live");
}

static void limit_moved(ration_semaphore *s, int64_t units)
{
    const int64_t limit = units / RATION_UNIT;

    atomic_store(&s->limit, limit);
    measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_LIMIT, .value = limit});
    if (s->options.on_limit_change != NULL)
        s->options.on_limit_change(s->options.ctx, limit);
}

static void event_take(ration_semaphore *s, const ration_event *event)
{
    switch (event->type) {
    case RATION_EVENT_GRANTED:
        granted(event->user, &event->decision, event->lease);
        break;
    case RATION_EVENT_REFUSED:
        answer(event->user, RATION_OK, &event->decision);
        break;
    case RATION_EVENT_LOST:
        lost(s, event->lease);
        break;
    case RATION_EVENT_LIMIT:
        limit_moved(s, event->value);
        break;
    case RATION_EVENT_PENALTY: /* of what a semaphore has not */
    case RATION_EVENT_BREAKER:
    case RATION_EVENT_HEALTH:
        break;
    }
}

static void on_pump(rn_deferred *work)
{
    ration_semaphore *const s = (ration_semaphore *)(void *)((char *)work - offsetof(ration_semaphore, pump));
    const rn_decider_ops *const ops = s->decider->ops;
    ration_event event;

    if (!rn_time_before(rn_loop_now(s->fleet->loop), ops->next_deadline(s->decider)))
        (void)ops->advance(s->decider, rn_loop_now(s->fleet->loop));
    while (ops->next_event(s->decider, &event))
        event_take(s, &event);
    (void)rn_timer_set(&s->timer, ops->next_deadline(s->decider));
}

static void on_woken(void *ctx)
{
    ration_semaphore *const s = ctx;

    if (s->decider != NULL)
        rn_loop_defer(s->fleet->loop, &s->pump);
}

static void on_timer(void *user, ration_time now)
{
    (void)now;
    on_woken(user);
}

static void acquire_ask(rn_task *task)
{
    acquire *const a = (acquire *)(void *)task;
    ration_semaphore *const s = a->semaphore;
    ration_decision decision;

    a->since = rn_loop_now(s->fleet->loop);
    a->request.user = a;

    const int err = s->decider->ops->submit(s->decider, a->since, &a->request, &decision);

    on_woken(s);
    if (err != RATION_OK || decision.result == RATION_REFUSED) {
        answer(a, err, &decision);
    } else if (decision.result == RATION_GRANTED) {
        granted(a, &decision, decision.lease);
    } else {
        a->lease = decision.lease;
    }
}

static void acquire_give_up(rn_task *task)
{
    acquire *const a = (acquire *)(void *)((char *)task - offsetof(acquire, give_up));
    ration_semaphore *const s = a->semaphore;
    ration_fleet *const fleet = s->fleet;
    const ration_decision decision = {.result = RATION_REFUSED,
                                      .reason = RATION_REASON_CANCELLED,
                                      .at = rn_loop_now(fleet->loop),
                                      .retry_at = {RATION_NEVER_US},
                                      .facts = RN_NO_FACTS};

    if (a->lease.generation != 0 && s->decider->ops->cancel(s->decider, decision.at, a->lease) == RATION_OK)
        answer(a, RATION_OK, &decision);
    on_woken(s);
    (void)pthread_mutex_lock(&fleet->lock);
    a->gave_up = true;
    (void)pthread_cond_signal(&a->woken);
    (void)pthread_mutex_unlock(&fleet->lock);
}

/* ---- acquiring */

static void request_fill(ration_request *request, const ration_acquire *how)
{
    *request = (ration_request)RATION_REQUEST_INIT;
    request->account = ration_text_of("account");
    request->class_name = how->class_name;
    request->priority = how->priority;
    request->wait_us = how->timeout_us == RATION_UNSET ? TIMEOUT_US : how->timeout_us;
}

/* Until it is answered, and nobody has it any more. */
static void acquire_sleep(acquire *a, ration_cancel *cancel)
{
    pthread_mutex_t *const lock = &a->semaphore->fleet->lock;

    (void)pthread_mutex_lock(lock);
    while (!a->answered)
        (void)pthread_cond_wait(&a->woken, lock);
    (void)pthread_mutex_unlock(lock);
    cancel_unwatch(cancel, a);
    (void)pthread_mutex_lock(lock);
    while (a->cancelled && !a->gave_up)
        (void)pthread_cond_wait(&a->woken, lock);
    (void)pthread_mutex_unlock(lock);
}

int ration_semaphore_acquire(ration_semaphore *semaphore, const ration_acquire *how, ration_decision *out)
{
    const ration_acquire usual = RATION_ACQUIRE_INIT;
    acquire a = {.ask = {.run = acquire_ask}, .give_up = {.run = acquire_give_up}, .semaphore = semaphore};

    if (how == NULL)
        how = &usual;
    if (semaphore == NULL || out == NULL || (how->timeout_us < 0 && how->timeout_us != RATION_UNSET) ||
        rn_client_is_inside(semaphore->fleet))
        return RATION_ERR_INVALID;
    request_fill(&a.request, how);
    if (!cancel_watch(how->cancel, &a)) {
        *out = (ration_decision){.result = RATION_REFUSED,
                                 .reason = RATION_REASON_CANCELLED,
                                 .retry_at = {RATION_NEVER_US},
                                 .facts = RN_NO_FACTS};
        return RATION_OK;
    }
    (void)pthread_cond_init(&a.woken, NULL);
    rn_client_post(semaphore->fleet, &a.ask);
    acquire_sleep(&a, how->cancel);
    (void)pthread_cond_destroy(&a.woken);
    if (a.err == RATION_OK)
        *out = a.decision;
    return a.err;
}

/* ---- releasing */

typedef struct ending {
    ration_semaphore *semaphore;
    ration_lease lease;
    ration_outcome outcome;
} ending;

/* Only a response can say that a call was throttled and is no penalty. */
static void release_begin(rn_client_job *job)
{
    const ending *const e = job->with;
    ration_semaphore *const s = e->semaphore;
    const ration_time now = rn_loop_now(s->fleet->loop);
    const ration_completion completion = {.outcome = e->outcome, .cost = RATION_UNSET};
    const ration_response throttled = {.status = THROTTLED};
    holding *const at = held_find(s, e->lease);
    int err = RATION_OK;

    if (at == NULL) {
        rn_client_done(job, RATION_OK);
        return;
    }
    if (e->outcome == RATION_OUTCOME_THROTTLED)
        err = s->decider->ops->observe(s->decider, now, e->lease, &throttled);
    if (err != RATION_ERR_NOMEM) {
        (void)s->decider->ops->release(s->decider, now, e->lease, &completion);
        measure(s, &(ration_semaphore_metric){.kind = RATION_SEMAPHORE_RELEASED,
                                              .outcome = e->outcome,
                                              .span_us = rn_sub(now.us, at->since.us)});
        held_end(s, at);
        err = RATION_OK;
    }
    on_woken(s);
    rn_client_done(job, err);
}

int ration_semaphore_release(ration_semaphore *semaphore, ration_lease lease, ration_outcome outcome)
{
    ending e = {.semaphore = semaphore, .lease = lease, .outcome = outcome};

    if (semaphore == NULL || lease.generation == 0 || (unsigned)outcome > RATION_OUTCOME_CANCELLED)
        return RATION_ERR_INVALID;
    return rn_client_call(semaphore->fleet, release_begin, &e);
}

int ration_semaphore_with_lease(ration_semaphore *semaphore, const ration_acquire *how, int (*fn)(void *ctx), void *ctx,
                                int *result, ration_decision *out)
{
    if (fn == NULL || result == NULL)
        return RATION_ERR_INVALID;

    const int err = ration_semaphore_acquire(semaphore, how, out);

    if (err != RATION_OK || out->result != RATION_GRANTED)
        return err;
    *result = fn(ctx);

    ration_outcome outcome = *result == 0 ? RATION_OUTCOME_SUCCESS : RATION_OUTCOME_FAILURE;

    if (*result != 0 && how != NULL && how->outcome_on_error != NULL)
        outcome = how->outcome_on_error(how->ctx, *result);
    return ration_semaphore_release(semaphore, out->lease, outcome);
}

int64_t ration_semaphore_limit(ration_semaphore *semaphore)
{
    return semaphore != NULL ? atomic_load(&semaphore->limit) : 0;
}

int64_t ration_semaphore_held(ration_semaphore *semaphore)
{
    return semaphore != NULL ? atomic_load(&semaphore->held_count) : 0;
}

/* ---- life */

static void dispose_begin(rn_client_job *job)
{
    ration_semaphore *const s = job->with;

    (void)s->decider->ops->operate(s->decider, rn_loop_now(s->fleet->loop), RATION_OP_DRAIN, NULL, 0);
    rn_member_lapse(s->member);
    on_woken(s);
    rn_client_done(job, RATION_OK);
}

void ration_semaphore_dispose(ration_semaphore *semaphore)
{
    if (semaphore != NULL)
        (void)rn_client_call(semaphore->fleet, dispose_begin, semaphore);
}

/* Provider and account are of nobody else: the id is the provider. */
static int member_make(ration_semaphore *s, const ration_adaptive_rule *rule, char *text)
{
    static const int none[] = {NO_STATUS};
    static const int throttled[] = {THROTTLED};
    static const char *const scope[] = {"provider"};
    const ration_fleet_options *const fleet = &s->fleet->options;
    const ration_limit_rule limit = {
        .name = "adaptive",
        .kind = RATION_KIND_ADAPTIVE,
        .counts = RATION_COUNTS_REQUESTS,
        .scope = scope,
        .scope_count = 1,
        .margin = RATION_UNSET,
        .arrival_us = RATION_UNSET,
        .adaptive = *rule,
    };
    const ration_provider_rule provider = {
        .name = s->id,
        .limits = &limit,
        .limit_count = 1,
        .errors = {.rate_limited = none, .rate_limited_count = 1, .throttled = throttled, .throttled_count = 1},
        .defaults = {.hold_us = RATION_UNSET},
    };
    const ration_account_rule account = {.name = "account", .provider = s->id};
    const ration_rules rules = {.providers = &provider, .provider_count = 1, .accounts = &account, .account_count = 1};
    const rn_member_settings settings = {
        .url = fleet->redis,
        .name = fleet->name,
        .ca = fleet->ca_file,
        .connect_us = fleet->connect_timeout_us,
        .command_us = fleet->command_timeout_us,
        .backoff_us = BACKOFF_US,
        .local_limit = s->options.local_limit > 0 ? s->options.local_limit : RATION_UNSET,
        .lease_ttl_us = rule->lease_ttl_us > 0 ? rule->lease_ttl_us : 30 * INT64_C(1000000),
        .waiter_ttl_us = fleet->waiter_ttl_us,
        .replicas = fleet->replicas,
    };
    char host[128] = "";

    (void)gethostname(host, sizeof host - 1);
    return rn_member_new(&(rn_member_options){.loop = s->fleet->loop,
                                              .settings = &settings,
                                              .rules = &rules,
                                              .user = fleet->user,
                                              .password = fleet->password,
                                              .config = "semaphore",
                                              .instance = host,
                                              .woken = on_woken,
                                              .changed = on_changed,
                                              .ctx = s},
                         &s->member, text);
}

typedef struct making {
    ration_semaphore *semaphore;
    const ration_adaptive_rule *rule;
    char text[RN_MEMBER_TEXT];
} making;

static void new_begin(rn_client_job *job)
{
    making *const with = job->with;
    ration_semaphore *const s = with->semaphore;
    const int err = member_make(s, with->rule, with->text);

    if (err == RATION_OK) {
        s->decider = rn_member_decider(s->member);
        on_woken(s);
    }
    rn_client_done(job, err);
}

static int rule_check(const ration_semaphore_options *options, ration_fault *fault, int64_t *initial)
{
    rn_aimd_spec spec;
    const int err = rn_aimd_spec_init(&spec, &options->rule, fault);

    if (err != RATION_OK)
        return err;
    *initial = spec.initial;
    if (options->rule.pause_on_retry_after || options->local_limit < 0) {
        (void)snprintf(fault->path, sizeof fault->path, "%s",
                       options->local_limit < 0 ? "localLimit" : "pauseOnRetryAfter");
        (void)snprintf(fault->text, sizeof fault->text, "%s",
                       options->local_limit < 0 ? "cannot be negative" : "a semaphore is told no times");
        return RATION_ERR_CONFIG;
    }
    return RATION_OK;
}

int ration_semaphore_new(ration_fleet *fleet, const ration_semaphore_options *options, ration_semaphore **out,
                         ration_fault *fault)
{
    ration_fault ignored = {0};
    ration_fault *const told = fault != NULL ? fault : &ignored;
    int64_t initial = 0;

    if (fleet == NULL || options == NULL || out == NULL || options->id == NULL || options->id[0] == '\0')
        return RATION_ERR_INVALID;

    int err = rule_check(options, told, &initial);

    if (err != RATION_OK)
        return err;

    ration_semaphore *const s = rn_mem_zalloc(rn_mem_default(), 1, sizeof *s);
    making with = {.semaphore = s, .rule = &options->rule};

    if (s == NULL)
        return RATION_ERR_NOMEM;
    s->fleet = fleet;
    s->options = *options;
    s->pump.fn = on_pump;
    atomic_init(&s->limit, initial);
    rn_timer_init(&s->timer, fleet->loop, on_timer, s);
    s->id = rn_mem_strdup(rn_mem_default(), options->id);
    err = s->id != NULL ? rn_client_call(fleet, new_begin, &with) : RATION_ERR_NOMEM;
    if (err != RATION_OK) {
        (void)snprintf(told->path, sizeof told->path, "redis");
        (void)snprintf(told->text, sizeof told->text, "%.150s", with.text);
        rn_mem_free(rn_mem_default(), s->id);
        rn_mem_free(rn_mem_default(), s);
        return err;
    }
    *out = s;
    return RATION_OK;
}

static void on_left(void *ctx)
{
    rn_client_job *const job = ctx;
    ration_semaphore *const s = job->with;

    s->decider = NULL;
    rn_timer_stop(&s->timer);
    rn_loop_forget(s->fleet->loop, &s->pump);
    rn_member_free(s->member);
    rn_client_done(job, RATION_OK);
}

static void free_begin(rn_client_job *job)
{
    const ration_semaphore *const s = job->with;

    rn_member_leave(s->member, on_left, job);
}

void ration_semaphore_free(ration_semaphore *semaphore)
{
    if (semaphore == NULL)
        return;
    (void)rn_client_call(semaphore->fleet, free_begin, semaphore);
    rn_mem_free(rn_mem_default(), semaphore->held);
    rn_mem_free(rn_mem_default(), semaphore->id);
    rn_mem_free(rn_mem_default(), semaphore);
}
