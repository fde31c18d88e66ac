/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_STAGE_H
#define TESTS_SUPPORT_STAGE_H

/*
 * A gateway between a raw client and a raw provider, with a decider that is a script: it answers what it is told to,
 * and remembers what it heard.
 */
#include <stdio.h>

#include "base/text.h"
#include "serve/gateway.h"

#include "support/check.h"
#include "support/wire.h"

typedef struct script {
    rn_decider base;
    /* what it answers */
    int submit_err;
    ration_result result;
    int cancel_err;
    ration_reason reason; /* refused: why */
    ration_event event;   /* so many times */
    size_t due;
    /* what it heard */
    void *user;
    size_t submits, cancels, releases, observes, healths;
    ration_request request; /* the last; its texts are dead but for those below */
    char method[16], path[64], account[16];
    int status;
    ration_outcome outcome;
    int64_t cost;
    bool healthy;
    char seen[16];
} script;

static inline script *script_of(rn_decider *d)
{
    return (script *)(void *)d;
}

static inline void script_keep(char *out, size_t size, ration_text text)
{
    rn_builder b;

    rn_builder_init(&b, out, size);
    rn_builder_text(&b, text);
}

static inline int script_submit(rn_decider *d, ration_time now, const ration_request *request, ration_decision *out)
{
    script *s = script_of(d);

    s->submits++;
    s->user = request->user;
    s->request = *request;
    script_keep(s->method, sizeof s->method, request->method);
    script_keep(s->path, sizeof s->path, request->path);
    if (s->submit_err == RATION_OK) {
        *out = (ration_decision){.result = s->result,
                                 .lease = {1, s->result == RATION_REFUSED ? 0 : 7},
                                 .at = now,
                                 .reason = s->reason,
                                 .retry_at = {RATION_NEVER_US}};
    }
    return s->submit_err;
}

static inline int script_health(rn_decider *d, ration_time now, ration_text account, bool ok)
{
    script *s = script_of(d);

    (void)now;
    s->healths++;
    s->healthy = ok;
    script_keep(s->account, sizeof s->account, account);
    return RATION_OK;
}

static inline int script_release(rn_decider *d, ration_time now, ration_lease lease,
                                 const ration_completion *completion)
{
    (void)now;
    CHECK_EQ(lease.generation, 7);
    script_of(d)->cost = completion->cost;
    script_of(d)->outcome = completion->outcome;
    script_of(d)->releases++;
    return RATION_OK;
}

static inline int script_observe(rn_decider *d, ration_time now, ration_lease lease, const ration_response *response)
{
    script *s = script_of(d);

    (void)now;
    CHECK_EQ(lease.generation, 7);
    script_keep(s->seen, sizeof s->seen, response->body);
    s->status = response->status;
    s->observes++;
    return RATION_OK;
}

static inline int script_cancel(rn_decider *d, ration_time now, ration_lease lease)
{
    (void)now;
    CHECK_EQ(lease.generation, 7);
    script_of(d)->cancels++;
    return script_of(d)->cancel_err;
}

static inline int script_advance(rn_decider *d, ration_time now)
{
    (void)d;
    (void)now;
    return RATION_OK;
}

static inline ration_time script_next_deadline(const rn_decider *d)
{
    (void)d;
    return (ration_time){RATION_NEVER_US};
}

static inline bool script_next_event(rn_decider *d, ration_event *out)
{
    script *s = script_of(d);

    if (s->due == 0)
        return false;
    s->due--;
    *out = s->event;
    out->user = s->user;
    return true;
}

static const rn_decider_ops script_ops = {
    .submit = script_submit,
    .release = script_release,
    .observe = script_observe,
    .cancel = script_cancel,
    .health = script_health,
    .advance = script_advance,
    .next_deadline = script_next_deadline,
    .next_event = script_next_event,
};

/* ---- a gateway between a client and a provider */

typedef struct stage {
    rn_loop *loop;
    ration_config *config;
    rn_log log;
    script decider;
    rn_gateway *gateway;
    int listener;
    wire client;
    wire provider;
} stage;

/* `more`: further keys of the provider. Nothing is tried again unless they have `retries`. */
static inline void stage_open(stage *s, const char *more)
{
    ration_config_faults faults = {NULL, 0, NULL};
    rn_net_error error;
    char config[512];
    uint16_t port;

    memset(s, 0, sizeof *s);
    s->decider.base.ops = &script_ops;
    s->log.descriptor = -1;
    s->listener = wire_listener(&port);
    (void)snprintf(config, sizeof config,
                   "{settings: {listen: {gateway: \"127.0.0.1:0\", control: \"127.0.0.1:0\"}}, "
                   "providers: [{name: p, baseUrl: \"http://127.0.0.1:%u\"%s%s}], "
                   "accounts: [{name: a, provider: p}]}",
                   (unsigned)port, strstr(more, "retries") == NULL ? ", retries: 0" : "", more);
    CHECK_EQ(ration_config_parse(ration_text_of(config), "test", NULL, &s->config, &faults), RATION_OK);
    ration_config_faults_fini(&faults);
    CHECK_EQ(rn_loop_new(&s->loop), RATION_OK);

    const rn_gateway_options options = {
        .loop = s->loop, .decider = &s->decider.base, .config = s->config, .log = &s->log};
    CHECK_EQ(rn_gateway_new(&options, &s->gateway, &error), RATION_OK);
    wire_connect(&s->client, s->loop, rn_gateway_port(s->gateway));
}

static inline void stage_close(stage *s)
{
    wire_close(&s->client);
    wire_close(&s->provider);
    rn_gateway_free(s->gateway);
    (void)close(s->listener);
    rn_loop_free(s->loop);
    ration_config_free(s->config);
}

static inline size_t calls(const stage *s)
{
    size_t count = 0;

    for (int i = 0; i < RN_EXCHANGE_STATES; i++)
        count += rn_gateway_in_state(s->gateway, (rn_exchange_state)i);
    return count;
}

/* A request that waits. */
static inline void stage_wait(stage *s, ration_result result)
{
    s->decider.result = result;
    wire_send(&s->client, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(s->loop, rn_gateway_in_state(s->gateway, RN_EXCHANGE_WAITING) == 1);
}

static inline void stage_event(stage *s, ration_event_type type)
{
    s->decider.event = (ration_event){.type = type, .lease = {1, 7}, .waited_us = 1500};
    s->decider.event.decision =
        (ration_decision){.result = RATION_REFUSED, .reason = RATION_REASON_DEADLINE, .retry_at = {RATION_NEVER_US}};
    s->decider.due = 1;
    rn_gateway_touch(s->gateway);
}

static inline void stage_send(stage *s)
{
    s->decider.result = RATION_GRANTED;
    wire_send(&s->client, "GET /a/x HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(s->loop, wire_accept(&s->provider, s->loop, s->listener));
    RUN_UNTIL(s->loop, wire_has(&s->provider, "GET /x HTTP/1.1\r\n"));
}

#define REPLY(status, more) "HTTP/1.1 " status " X\r\n" more "Content-Length: 4\r\n\r\n"

#endif
