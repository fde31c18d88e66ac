/* SPDX-License-Identifier: MIT */
/*
 * A member of the fleet for threads that block.
 *
 * Whoever asks hands its request to the fleet's thread and sleeps. There it is submitted, and the answer finds it by
 * its address: at once, or as an event. Everything of an ask but `answered`, which is under the fleet's lock, is that
 * thread's until it is answered; then it is the sleeper's again.
 *
 * Time, events and the state of the store are looked after here, in one deferred piece of work for all that has
 * happened in a turn.
 */
#include "fleet/agent.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/units.h"
#include "core/engine.h"

#define TIMEOUT_US (10 * INT64_C(1000000))
#define BACKOFF_US INT64_C(1000000)
#define TTL_US (30 * INT64_C(1000000))

/* ---- what it tells */

void rn_agent_complain(const rn_agent *agent, const char *format, ...)
{
    char text[RN_MEMBER_TEXT + 160];
    va_list values;
    const int used = snprintf(text, sizeof text, "%s '%.64s': ", agent->ops->noun, agent->id);

    va_start(values, format);
    (void)vsnprintf(text + used, sizeof text - (size_t)used, format, values);
    va_end(values);
    if (agent->on_error != NULL) {
        agent->on_error(agent->ctx, text);
    } else {
        (void)fprintf(stderr, "ration: %s\n", text);
    }
}

/* A store that has never been there is found out by whoever needs it. */
static void away_tell(rn_agent *agent, const char *why)
{
    if (agent->away)
        return;
    agent->away = true;
    agent->ops->away(agent, why);
}

void rn_agent_look(rn_agent *agent)
{
    rn_member_status status;

    if (agent->decider == NULL)
        return;
    rn_member_look(agent->member, &status);
    if (status.state != RN_MEMBER_UP)
        away_tell(agent, status.last_error[0] != '\0' ? status.last_error : "it has not been reached yet");
}

static void on_changed(void *ctx, rn_member_state state, const char *text)
{
    rn_agent *const agent = ctx;

    if (state != RN_MEMBER_UP) {
        away_tell(agent, text);
    } else if (agent->away) {
        agent->away = false;
        agent->ops->back(agent);
    }
}

/* ---- answers */

/* The decision's texts are the member's, and would be gone. */
void rn_agent_answer(rn_agent_ask *ask, int err, const ration_decision *decision)
{
    ration_fleet *const fleet = ask->agent->fleet;
    const bool alone = ask->alone;

    rn_agent_look(ask->agent);
    ask->lease.generation = 0;
    ask->err = err;
    if (decision != NULL)
        ask->decision = *decision;
    ask->decision.limit = NULL;
    ask->decision.key = ask->decision.facts.tenant = (ration_text){NULL, 0};
    ask->decision.blocking = NULL;
    ask->decision.blocking_count = 0;
    ask->settle(ask);
    if (alone)
        return;
    (void)pthread_mutex_lock(&fleet->lock);
    ask->answered = true;
    (void)pthread_cond_signal(&ask->woken);
    (void)pthread_mutex_unlock(&fleet->lock);
}

static void granted(rn_agent_ask *ask, const ration_decision *decision, ration_lease lease)
{
    ration_decision told = *decision;

    told.result = RATION_GRANTED;
    told.lease = lease;
    rn_agent_answer(ask, RATION_OK, &told);
}

static void event_take(rn_agent *agent, const ration_event *event)
{
    if (event->type == RATION_EVENT_GRANTED) {
        granted(event->user, &event->decision, event->lease);
    } else if (event->type == RATION_EVENT_REFUSED) {
        rn_agent_answer(event->user, RATION_OK, &event->decision);
    } else {
        agent->ops->event(agent, event);
    }
}

void rn_agent_pump(rn_agent *agent)
{
    const rn_decider_ops *const ops = agent->decider->ops;
    ration_event event;

    if (!rn_time_before(rn_loop_now(agent->fleet->loop), ops->next_deadline(agent->decider)))
        (void)ops->advance(agent->decider, rn_loop_now(agent->fleet->loop));
    while (ops->next_event(agent->decider, &event))
        event_take(agent, &event);
    (void)rn_timer_set(&agent->timer, ops->next_deadline(agent->decider));
}

static void on_pump(rn_deferred *work)
{
    rn_agent_pump((rn_agent *)(void *)((char *)work - offsetof(rn_agent, pump)));
}

void rn_agent_wake(rn_agent *agent)
{
    if (agent->decider != NULL)
        rn_loop_defer(agent->fleet->loop, &agent->pump);
}

static void on_woken(void *ctx)
{
    rn_agent_wake(ctx);
}

static void on_timer(void *user, ration_time now)
{
    (void)now;
    rn_agent_wake(user);
}

/* ---- asking */

void rn_agent_ask_now(rn_agent_ask *ask)
{
    rn_agent *const agent = ask->agent;
    ration_decision decision = {.result = RATION_REFUSED,
                                .reason = RATION_REASON_DRAINING,
                                .at = rn_loop_now(agent->fleet->loop),
                                .retry_at = {RATION_NEVER_US},
                                .facts = RN_NO_FACTS};
    int err = RATION_OK;

    ask->since = decision.at;
    ask->request.user = ask;
    if (agent->decider != NULL && (agent->ops->decide == NULL || !agent->ops->decide(agent, &decision)))
        err = agent->decider->ops->submit(agent->decider, ask->since, &ask->request, &decision);
    rn_agent_wake(agent);
    if (err != RATION_OK || decision.result == RATION_REFUSED) {
        rn_agent_answer(ask, err, &decision);
    } else if (decision.result == RATION_GRANTED) {
        granted(ask, &decision, decision.lease);
    } else {
        ask->lease = decision.lease;
    }
}

static void ask_run(rn_task *task)
{
    rn_agent_ask_now((rn_agent_ask *)(void *)task);
}

void rn_agent_ask_init(rn_agent_ask *ask, rn_agent *agent, const ration_acquire *how, void (*settle)(rn_agent_ask *ask))
{
    ration_request *const request = &ask->request;

    *ask = (rn_agent_ask){.task = {.run = ask_run}, .agent = agent, .settle = settle};
    *request = (ration_request)RATION_REQUEST_INIT;
    request->account = ration_text_of(RN_AGENT_ACCOUNT);
    if (how != NULL) {
        request->class_name = how->class_name;
        request->priority = how->priority;
        request->wait_us = how->timeout_us == RATION_UNSET ? TIMEOUT_US : how->timeout_us;
    }
    (void)pthread_cond_init(&ask->woken, NULL);
}

void rn_agent_ask_fini(rn_agent_ask *ask)
{
    (void)pthread_cond_destroy(&ask->woken);
}

void rn_agent_ask_sleep(rn_agent_ask *ask)
{
    ration_fleet *const fleet = ask->agent->fleet;

    rn_client_post(fleet, &ask->task);
    (void)pthread_mutex_lock(&fleet->lock);
    while (!ask->answered)
        (void)pthread_cond_wait(&ask->woken, &fleet->lock);
    (void)pthread_mutex_unlock(&fleet->lock);
}

/* ---- life */

int rn_agent_init(rn_agent *agent, const rn_agent_ops *ops, ration_fleet *fleet, const char *id)
{
    agent->ops = ops;
    agent->fleet = fleet;
    agent->pump.fn = on_pump;
    rn_timer_init(&agent->timer, fleet->loop, on_timer, agent);
    agent->id = rn_mem_strdup(rn_mem_default(), id);
    return agent->id != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

void rn_agent_fini(rn_agent *agent)
{
    rn_mem_free(rn_mem_default(), agent->id);
}

/* Provider and account are of nobody else. */
typedef struct rulebook {
    ration_provider_rule provider;
    ration_account_rule account;
    ration_rules rules;
} rulebook;

static void rulebook_fill(rulebook *book, const rn_agent *agent, const rn_agent_rules *rules)
{
    *book = (rulebook){.provider = rules->provider, .account = {.name = RN_AGENT_ACCOUNT, .provider = agent->id}};
    book->provider.name = agent->id;
    book->provider.defaults.hold_us = RATION_UNSET;
    book->rules = (ration_rules){
        .providers = &book->provider, .provider_count = 1, .accounts = &book->account, .account_count = 1};
}

void rn_agent_fault(ration_fault *fault, const char *text)
{
    (void)snprintf(fault->path, sizeof fault->path, "redis");
    (void)snprintf(fault->text, sizeof fault->text, "%.150s", text);
}

int rn_agent_check(const rn_agent *agent, const rn_agent_rules *rules, char *text)
{
    rulebook book;

    rulebook_fill(&book, agent, rules);
    return rn_member_may(agent->fleet->redis, &book.rules, text);
}

int rn_agent_open(rn_agent *agent, const rn_agent_rules *rules, char *text)
{
    const ration_fleet *const fleet = agent->fleet;
    const rn_member_settings settings = {
        .url = fleet->redis,
        .name = fleet->name,
        .ca = fleet->ca_file,
        .connect_us = fleet->connect_timeout_us,
        .command_us = fleet->command_timeout_us,
        .backoff_us = BACKOFF_US,
        .local_limit = rules->local_limit,
        .lease_ttl_us = rules->lease_ttl_us > 0 ? rules->lease_ttl_us : TTL_US,
        .waiter_ttl_us = fleet->waiter_ttl_us,
        .replicas = fleet->replicas,
    };
    char host[128] = "";
    rulebook book;

    rulebook_fill(&book, agent, rules);
    (void)gethostname(host, sizeof host - 1);

    const int err = rn_member_new(&(rn_member_options){.loop = fleet->loop,
                                                       .settings = &settings,
                                                       .rules = &book.rules,
                                                       .user = fleet->user,
                                                       .password = fleet->password,
                                                       .config = agent->ops->noun,
                                                       .instance = host,
                                                       .woken = on_woken,
                                                       .changed = on_changed,
                                                       .ctx = agent},
                                  &agent->member, text);

    if (err == RATION_OK) {
        agent->away = false;
        agent->decider = rn_member_decider(agent->member);
        rn_agent_wake(agent);
    }
    return err;
}

void rn_agent_drop(rn_agent *agent)
{
    agent->decider = NULL;
    rn_timer_stop(&agent->timer);
    rn_loop_forget(agent->fleet->loop, &agent->pump);
    rn_member_free(agent->member);
}

static void on_left(void *ctx)
{
    rn_client_job *const job = ctx;

    rn_agent_drop(job->with);
    rn_client_done(job, RATION_OK);
}

void rn_agent_close(rn_agent *agent, rn_client_job *job)
{
    job->with = agent;
    rn_member_leave(agent->member, on_left, job);
}
