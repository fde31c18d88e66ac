/* SPDX-License-Identifier: MIT */
/*
 * The fake provider: a server whose every answer is decided by the enforcer and by chance with a seed.
 *
 * A call is judged when its head has come, as a provider's front door does, but a chat (provider_chat.c) when its body
 * has, for there stands what it costs. One that is let in takes its latency, holds its slots meanwhile, and gives them
 * back before its answer leaves, so that a client that has seen the end of an answer can rely on the slot. One that is
 * not let in is answered as soon as its body is read. Bodies are read to their end, and dropped if nobody wants them.
 *
 * Who presents which credential is told apart by a hash that never leaves the process; counts call them client-1,
 * client-2, …. Beyond CLIENTS_MAX credentials the rest count as one.
 *
 * A call that finds the hidden ceiling reached is turned away before any declared limit is asked, so it spends nothing
 * of theirs.
 *
 * Invariants: `in_flight` is the number of exchanges let in and not yet answered, and what `meter` was last told; an
 * exchange is in `exchanges` from its request to its answer or its client's going, whichever comes first; `causes` add
 * up to `counts.rate_limited`.
 */
#include "simulate/provider.h"

#include <string.h>

#include "base/text.h"
#include "simulate/provider_parts.h"

#define CLIENTS_MAX 10000
#define EXTERNAL_LOOK_US 1000000

typedef rn_sim_client client;
typedef rn_sim_exchange exchange;

static const int default_transient[] = {500, 502, 503, 504};

ration_time rn_sim_now(const rn_simulator *sim)
{
    return rn_loop_now(sim->loop);
}

/* ---- who presents what */

static client *client_add(rn_simulator *sim, uint64_t hash)
{
    client *c = rn_mem_zalloc(sim->mem, 1, sizeof *c);
    rn_builder b;

    if (c == NULL)
        return NULL;
    c->hash = hash;
    rn_builder_init(&b, c->name, sizeof c->name);
    if (hash == 0) {
        rn_builder_str(&b, "anonymous");
    } else {
        rn_builder_str(&b, "client-");
        rn_builder_int(&b, (int64_t)sim->clients.size + 1);
    }
    if (rn_map_add(&sim->clients, &c->node, &c->hash, sizeof c->hash) != 0) {
        rn_mem_free(sim->mem, c);
        return NULL;
    }
    return c;
}

client *rn_sim_client_of(rn_map_node *node)
{
    return node == NULL ? NULL : (client *)(void *)((char *)node - offsetof(client, node));
}

/* 0: nothing was presented. Authorization counts, and whatever field an account of this provider authenticates with. */
static uint64_t credential_hash(const rn_simulator *sim, rn_http_fields fields, const rn_account **owner)
{
    const ration_text authorization = rn_http_find(fields, "Authorization");
    uint64_t hash = authorization.data != NULL ? rn_hash(authorization.data, authorization.size) : 0;
    const rn_account *account;

    for (size_t i = 0; (account = rn_config_account(sim->options.config, i)) != NULL; i++) {
        if (account->provider != sim->options.provider || account->credential.header == NULL)
            continue;
        const ration_text value = rn_http_find(fields, account->credential.header);
        if (value.data == NULL)
            continue;
        if (rn_text_is(value, account->credential.value))
            *owner = account;
        if (!rn_text_is_nocase(ration_text_of("Authorization"), account->credential.header))
            hash = (hash ^ rn_hash(value.data, value.size)) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return hash;
}

/* The client that makes this call; NULL: no memory. */
static client *client_identify(rn_simulator *sim, rn_http_fields fields, const rn_account **owner)
{
    uint64_t hash = credential_hash(sim, fields, owner);
    client *c = rn_sim_client_of(rn_map_find(&sim->clients, &hash, sizeof hash));

    if (c == NULL && sim->clients.size >= CLIENTS_MAX) {
        hash = UINT64_MAX;
        c = rn_sim_client_of(rn_map_find(&sim->clients, &hash, sizeof hash));
    }
    if (c == NULL)
        c = client_add(sim, hash);
    if (c != NULL && *owner != NULL)
        c->account = ration_text_of((*owner)->name);
    return c;
}

/* ---- the other client */

/* Remember what the latest call was. Without memory the one before it stands. */
static void external_learn(rn_simulator *sim, const rn_arrival *arrival)
{
    const size_t size = arrival->method.size + arrival->path.size;
    char *text = sim->options.behaviour.external.units > 0
                     ? rn_mem_resize(sim->mem, sim->external_text, size, sizeof *text)
                     : NULL;

    if (text == NULL)
        return;
    memcpy(text, arrival->method.data, arrival->method.size);
    memcpy(text + arrival->method.size, arrival->path.data, arrival->path.size);
    sim->external_text = text;
    sim->external = *arrival;
    sim->external.method.data = text;
    sim->external.path.data = text + arrival->method.size;
    sim->external_ready = true;
}

/*
 * All calls of the other client that have come by now, each at its own instant. Before the first real call it makes
 * none.
 */
static void external_catch_up(rn_simulator *sim, ration_time now)
{
    for (;;) {
        const int64_t since_us = rn_behaviour_external_at(&sim->options.behaviour, sim->external_next);
        const ration_time at = rn_time_add(sim->start, since_us);

        if (since_us == RATION_NEVER_US || rn_time_before(now, at))
            return;
        sim->external_next++;
        if (!sim->external_ready)
            continue;
        if (rn_enforcer_spend(sim->enforcer, at, &sim->external)) {
            sim->external_spent++;
        } else {
            sim->external_refused++;
        }
    }
}

static void external_turn(void *user, ration_time now)
{
    rn_simulator *sim = user;

    external_catch_up(sim, now);
    (void)rn_timer_set(&sim->external_timer, rn_time_add(now, EXTERNAL_LOOK_US));
}

/* ---- answers */

void rn_sim_respond(rn_inbound *in, int status, rn_answer *answer, const char *type, ration_text body)
{
    rn_answer_add(answer, "Content-Type", ration_text_of(type));
    const rn_response response = {.status = status, .fields = {answer->fields, answer->count}};
    if (rn_inbound_respond(in, &response, body) != 0)
        rn_inbound_abort(in);
}

/* Answer with `json` and free it. One that could not be written whole is no answer. */
void rn_sim_respond_json(rn_inbound *in, int status, rn_answer *answer, rn_output *json)
{
    if (json->err == 0) {
        rn_sim_respond(in, status, answer, "application/json", (ration_text){json->data, json->size});
    } else {
        rn_inbound_abort(in);
    }
    rn_output_fini(json);
}

rn_output rn_sim_json_begin(void)
{
    rn_output json;

    rn_output_init(&json, rn_mem_default(), RN_SIM_BODY_MAX);
    rn_output_open(&json, NULL, '{');
    return json;
}

static void respond_echo(exchange *x, rn_answer *answer)
{
    rn_output json = rn_sim_json_begin();

    rn_output_text(&json, "method", rn_inbound_head(x->in)->method);
    rn_output_text(&json, "path", x->path);
    rn_output_int(&json, "bodyBytes", x->body_bytes);
    rn_output_close(&json, '}');
    rn_sim_respond_json(x->in, x->status, answer, &json);
}

void rn_sim_respond_error(rn_inbound *in, int status, rn_answer *answer, const char *code, const char *message)
{
    rn_output json = rn_sim_json_begin();

    rn_output_open(&json, "error", '{');
    rn_output_str(&json, "code", code);
    rn_output_str(&json, "message", message);
    rn_output_close(&json, '}');
    rn_output_close(&json, '}');
    rn_sim_respond_json(in, status, answer, &json);
}

/* Whether a text stands in JSON as it is. */
static bool is_plain(const char *text)
{
    rn_output json;

    rn_output_init(&json, rn_mem_default(), RN_SIM_BODY_MAX);
    rn_output_str(&json, NULL, text);
    const bool plain = json.err == 0 && json.size == strlen(text) + 2 && rn_text_is_utf8(ration_text_of(text));
    rn_output_fini(&json);
    return plain;
}

/* What the config says that such a body contains stands in it, byte for byte, whatever JSON would make of it. */
static void respond_refused(exchange *x, rn_answer *answer)
{
    const char *contains = x->sim->rule->errors.body_contains;

    if (contains == NULL) {
        rn_sim_respond_error(x->in, x->status, answer, "rate_limited", "too many requests");
    } else if (is_plain(contains)) {
        rn_sim_respond_error(x->in, x->status, answer, "rate_limited", contains);
    } else {
        rn_sim_respond(x->in, x->status, answer, "text/plain", ration_text_of(contains));
    }
}

int64_t rn_sim_since_start(const rn_simulator *sim, ration_time now)
{
    return rn_max(rn_sub(now.us, sim->start.us), 0);
}

static void in_flight_set(rn_simulator *sim, ration_time now, uint64_t count)
{
    sim->in_flight = count;
    sim->peak_in_flight = count > sim->peak_in_flight ? count : sim->peak_in_flight;
    rn_capacity_meter_set(&sim->meter, rn_sim_since_start(sim, now), (int64_t)count);
}

void rn_sim_exchange_free(exchange *x)
{
    rn_output_fini(&x->body);
    rn_mem_free(x->sim->mem, x);
}

void rn_sim_exchange_end(exchange *x)
{
    rn_simulator *sim = x->sim;

    rn_timer_stop(&x->timer);
    if (x->judgement.granted) {
        rn_enforcer_release(sim->enforcer, rn_sim_now(sim), x->judgement.lease);
        in_flight_set(sim, rn_sim_now(sim), sim->in_flight - 1);
    }
    LIST_REMOVE(x, next);
}

static rn_arrival arrival_of(const exchange *x)
{
    return (rn_arrival){
        .account = x->client->account,
        .credential = ration_text_of(x->client->name),
        .method = rn_inbound_head(x->in)->method,
        .path = x->path,
    };
}

void rn_sim_quotas(const exchange *x, rn_answer *answer)
{
    const rn_simulator *sim = x->sim;
    const rn_arrival arrival = arrival_of(x);
    const ration_time now = rn_sim_now(sim);
    rn_quota_state quotas[RN_SIM_QUOTAS_MAX];

    rn_answer_quotas(answer, quotas, rn_enforcer_quotas(sim->enforcer, now, &arrival, quotas, RN_SIM_QUOTAS_MAX), now);
}

static bool is_chat(const rn_simulator *sim)
{
    return sim->options.shape == RN_SHAPE_OPENAI;
}

static void exchange_answer(exchange *x)
{
    rn_simulator *sim = x->sim;
    rn_answer answer;

    if (is_chat(sim)) {
        rn_sim_chat_answer(x);
        return;
    }
    rn_sim_exchange_end(x);
    rn_answer_init(&answer);
    rn_sim_quotas(x, &answer);

    if (!x->judgement.granted) {
        RN_SIM_COUNT(x, rate_limited, 1);
        sim->causes[x->judgement.reason]++;
        rn_answer_retry(&answer, x->judgement.retry_us);
        respond_refused(x, &answer);
    } else if (x->status != 200) {
        RN_SIM_COUNT(x, errors, 1);
        rn_sim_respond_error(x->in, x->status, &answer, "unavailable", "try again later");
    } else {
        RN_SIM_COUNT(x, ok, 1);
        respond_echo(x, &answer);
    }
    rn_sim_exchange_free(x);
}

static void exchange_proceed(exchange *x)
{
    if (x->read && x->ripe)
        exchange_answer(x);
}

static void exchange_turn(void *user, ration_time now)
{
    exchange *x = user;

    (void)now;
    if (x->event > 0) {
        rn_sim_chat_stream(x);
        return;
    }
    x->ripe = true;
    exchange_proceed(x);
}

/* ---- judging */

static int refused_status(const ration_provider_rule *rule)
{
    return rule->errors.rate_limited_count > 0 ? rule->errors.rate_limited[0] : 429;
}

/* Let in: it takes its time, and may fail. */
static int exchange_accept(exchange *x, ration_time now)
{
    const ration_error_rule *errors = &x->sim->rule->errors;
    const int *transient = errors->transient_count > 0 ? errors->transient : default_transient;
    const size_t transient_count =
        errors->transient_count > 0 ? errors->transient_count : sizeof default_transient / sizeof *default_transient;
    const rn_behaviour *behaviour = &x->sim->options.behaviour;
    uint64_t index;

    in_flight_set(x->sim, now, x->sim->in_flight + 1);
    x->status = rn_behaviour_fails(behaviour, x->ordinal, transient_count, &index) ? transient[index] : 200;
    return rn_timer_set(&x->timer, rn_time_add(now, rn_behaviour_latency(behaviour, x->ordinal)));
}

int rn_sim_judge(exchange *x, bool has_cost, int64_t cost)
{
    rn_simulator *sim = x->sim;
    const ration_time now = rn_sim_now(sim);
    rn_arrival arrival = arrival_of(x);
    int err = 0;

    arrival.has_cost = has_cost;
    arrival.cost = cost;
    external_catch_up(sim, now);
    external_learn(sim, &arrival);
    if ((int64_t)sim->in_flight >= rn_capacity_at(&sim->options.behaviour.ceiling, rn_sim_since_start(sim, now))) {
        const int64_t retry_us = sim->options.behaviour.retry_us;

        x->judgement = (rn_judgement){.retry_us = retry_us > 0 ? retry_us : RATION_UNSET};
    } else {
        err = rn_enforcer_ask(sim->enforcer, now, &arrival, &x->judgement);
    }
    if (err != 0)
        return err;

    if (x->judgement.granted)
        return exchange_accept(x, now);
    x->status = refused_status(sim->rule);
    x->ripe = true;
    return 0;
}

/* The path below the provider's base URL, whether or not the client has kept that URL's own path. */
static ration_text path_below(const rn_url *base, ration_text target)
{
    const ration_text prefix = ration_text_of(base->prefix);

    if (!base->given || prefix.size == 0 || target.size < prefix.size ||
        !rn_text_eq(rn_text_slice(target, 0, prefix.size), prefix) ||
        (target.size > prefix.size && target.data[prefix.size] != '/' && target.data[prefix.size] != '?'))
        return target;
    return rn_text_slice(target, prefix.size, target.size);
}

static ration_text path_of(const rn_simulator *sim, const rn_account *owner, ration_text target)
{
    const rn_provider *provider = rn_config_provider(sim->options.config, sim->options.provider);

    return path_below(owner != NULL ? &owner->base_url : &provider->base_url, target);
}

static exchange *exchange_new(rn_simulator *sim, rn_inbound *in, const rn_http_head *head)
{
    const rn_account *owner = NULL;
    client *c = client_identify(sim, head->fields, &owner);
    exchange *x = c != NULL ? rn_mem_zalloc(sim->mem, 1, sizeof *x) : NULL;

    if (x == NULL)
        return NULL;
    x->sim = sim;
    x->in = in;
    x->client = c;
    x->path = path_of(sim, owner, head->target);
    x->ordinal = sim->counts.requests;
    RN_SIM_COUNT(x, requests, 1);
    rn_output_init(&x->body, sim->mem, RN_SIM_BODY_MAX);
    rn_timer_init(&x->timer, sim->loop, exchange_turn, x);
    LIST_INSERT_HEAD(&sim->exchanges, x, next);
    return x;
}

void rn_sim_exchange_fail(exchange *x, int err)
{
    rn_inbound *in = x->in;
    rn_answer answer;

    rn_answer_init(&answer);
    rn_sim_exchange_end(x);
    rn_sim_exchange_free(x);
    rn_sim_respond_error(in, 500, &answer, "simulator", ration_err_text(err));
}

/* ---- the server's handlers */

static void on_request(void *user, rn_inbound *in, const rn_http_head *head)
{
    rn_simulator *sim = user;
    const size_t prefix = sizeof RN_SIM_CONTROL - 1;

    if (head->target.size >= prefix && rn_text_is(rn_text_slice(head->target, 0, prefix), RN_SIM_CONTROL)) {
        rn_sim_control(sim, in, head);
        return;
    }

    exchange *x = exchange_new(sim, in, head);
    if (x == NULL) {
        rn_inbound_abort(in);
        return;
    }
    rn_inbound_set_user(in, x);
    const int err = is_chat(sim) ? RATION_OK : rn_sim_judge(x, false, 0);
    if (err == RATION_OK) {
        rn_inbound_resume(in);
    } else {
        rn_sim_exchange_fail(x, err);
    }
}

static void on_body(void *user, rn_inbound *in, ration_text bytes)
{
    exchange *x = rn_inbound_user(in);

    (void)user;
    x->body_bytes = rn_add(x->body_bytes, (int64_t)bytes.size);
    if (is_chat(x->sim))
        rn_sim_chat_feed(x, bytes);
}

static void on_end(void *user, rn_inbound *in, rn_http_fields trailers)
{
    exchange *x = rn_inbound_user(in);

    (void)user;
    (void)trailers;
    x->read = true;
    if (!is_chat(x->sim) || rn_sim_chat_begin(x))
        exchange_proceed(x);
}

static void on_gone(void *user, rn_inbound *in, rn_gone why)
{
    exchange *x = rn_inbound_user(in);

    (void)user;
    (void)why;
    RN_SIM_COUNT(x, gone, 1);
    rn_sim_exchange_end(x);
    rn_sim_exchange_free(x);
}

static const rn_server_handlers handlers = {
    .on_request = on_request,
    .on_body = on_body,
    .on_end = on_end,
    .on_gone = on_gone,
};

/* ---- its life */

static void fault_explain(const ration_fault *fault, int err, rn_net_error *error)
{
    rn_builder b;

    if (error == NULL)
        return;
    rn_builder_init(&b, error->text, sizeof error->text);
    if (err == RATION_ERR_CONFIG) {
        rn_builder_str(&b, fault->path);
        rn_builder_str(&b, ": ");
        rn_builder_str(&b, fault->text);
    } else {
        rn_builder_str(&b, ration_err_text(err));
    }
}

static int sim_start(rn_simulator *sim, rn_net_error *error)
{
    const rn_simulator_options *options = &sim->options;
    const rn_server_options server = {.host = options->host, .port = options->port};
    ration_fault fault = {.path = ""};

    int err =
        rn_enforcer_new(ration_config_rules(options->config), options->provider, sim->start, &sim->enforcer, &fault);
    if (err == 0 && options->behaviour.external.units > 0)
        err = rn_timer_set(&sim->external_timer, rn_time_add(sim->start, EXTERNAL_LOOK_US));
    if (err != 0) {
        fault_explain(&fault, err, error);
        return err;
    }
    return rn_server_new(sim->loop, &server, &handlers, sim, &sim->server, error);
}

int rn_simulator_new(rn_loop *loop, const rn_simulator_options *options, rn_simulator **out, rn_net_error *error)
{
    const ration_allocator *mem = rn_mem_default();
    rn_simulator *sim = rn_mem_zalloc(mem, 1, sizeof *sim);

    if (sim == NULL) {
        fault_explain(NULL, RATION_ERR_NOMEM, error);
        return RATION_ERR_NOMEM;
    }
    sim->options = *options;
    sim->mem = mem;
    sim->rule = &ration_config_rules(options->config)->providers[options->provider];
    sim->loop = loop;
    sim->start = rn_loop_now(loop);
    sim->external_next = 1;
    rn_capacity_meter_init(&sim->meter, &sim->options.behaviour.ceiling);
    LIST_INIT(&sim->exchanges);
    rn_map_init(&sim->clients, mem);
    rn_timer_init(&sim->external_timer, loop, external_turn, sim);

    const int err = sim_start(sim, error);
    if (err != 0) {
        rn_simulator_free(sim);
        return err;
    }
    *out = sim;
    return 0;
}

void rn_simulator_free(rn_simulator *sim)
{
    exchange *x;
    rn_map_node *node;

    if (sim == NULL)
        return;
    rn_server_free(sim->server);
    rn_timer_stop(&sim->external_timer);
    while ((x = LIST_FIRST(&sim->exchanges)) != NULL) {
        rn_sim_exchange_end(x);
        rn_sim_exchange_free(x);
    }
    while ((node = rn_map_first(&sim->clients)) != NULL) {
        rn_map_remove(&sim->clients, node);
        rn_mem_free(sim->mem, rn_sim_client_of(node));
    }
    rn_map_fini(&sim->clients);
    rn_enforcer_free(sim->enforcer);
    rn_mem_free(sim->mem, sim->external_text);
    rn_mem_free(sim->mem, sim);
}

uint16_t rn_simulator_port(const rn_simulator *sim)
{
    return rn_server_port(sim->server);
}

const rn_simulator_counts *rn_simulator_counts_of(const rn_simulator *sim)
{
    return &sim->counts;
}
