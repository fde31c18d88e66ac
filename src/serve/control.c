/* SPDX-License-Identifier: MIT */
/*
 * The control port: one table of pages, each a function from a snapshot to bytes; what is none of them may be a file of
 * the dashboard's or the decision API's.
 *
 * Pages are small and whole, so there is no state beside the server's: a request is answered inside its own callback.
 * A request that the API has taken is that inbound's user; a page has none.
 * Where the config has tokens one is asked for, but not by the probes: a supervisor that asks "are you well?" has no
 * secrets.
 */
#include "serve/control.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/api.h"
#include "serve/api_parts.h"
#include "serve/reply.h"
#include "serve/status.h"
#include "serve/web.h"

#define CONNECTIONS_MAX 10000 /* as many as may wait by default */

struct rn_control {
    rn_loop *loop;
    rn_decider *decider;
    rn_gateway *gateway;
    rn_planning *planning; /* NULL: there are no jobs */
    const rn_recording *recording;
    const rn_member *member;
    rn_keeper *keeper;
    const rn_reload_counts *reloads;
    rn_server *server;
    rn_api *api;
    ration_time started_at;
    uint64_t snapshots; /* of which the status was told */
    rn_timer sample;    /* the next one for it */
};

static void snapshot_take(rn_control *control, rn_snapshot *out)
{
    const rn_clock *clock = rn_loop_clock(control->loop);

    *out = (rn_snapshot){.now = rn_loop_now(control->loop),
                         .started_at = control->started_at,
                         .gateway = *rn_gateway_counts(control->gateway),
                         .clock_forward = clock->steps_forward,
                         .clock_backward = clock->steps_backward,
                         .draining = rn_gateway_draining(control->gateway),
                         .events = rn_bulletin_look(rn_gateway_bulletin(control->gateway))};
    out->listeners = out->events.listeners;
    out->reloads =
        control->reloads != NULL ? *control->reloads : (rn_reload_counts){.well = 1, .loaded_at = control->started_at};
    control->decider->ops->totals(control->decider, &out->totals);
    out->planning =
        control->planning != NULL ? *rn_planning_look(control->planning) : (rn_planning_counts){.feasible = 1};
    rn_gateway_upstream_stats(control->gateway, &out->upstream);
    rn_gateway_cost_counts(control->gateway, &out->costs);
    out->kept_bytes = rn_gateway_kept(control->gateway);
    out->connections = rn_gateway_connections(control->gateway, &out->turned_away);
    for (size_t i = 0; i < RN_EXCHANGE_STATES; i++)
        out->exchanges[i] = rn_gateway_in_state(control->gateway, (rn_exchange_state)i);
    if (control->keeper != NULL)
        rn_keeper_look_at(control->keeper, &out->keeper);
    if (control->member != NULL)
        rn_member_look(control->member, &out->fleet);
}

/* Is there a limit whose standing the history keeps? Without one the decider is not asked. */
static bool moves(const rn_control *control)
{
    const ration_rules *rules = ration_config_rules(rn_gateway_config(control->gateway));

    for (size_t i = 0; i < rules->provider_count; i++) {
        for (size_t k = 0; k < rules->providers[i].limit_count; k++) {
            const ration_kind kind = rules->providers[i].limits[k].kind;

            if (kind == RATION_KIND_ADAPTIVE || kind == RATION_KIND_SHARE)
                return true;
        }
    }
    return false;
}

static void on_sample(void *user, ration_time now)
{
    rn_control *control = user;
    rn_history_counts counts;
    rn_snapshot snapshot;

    snapshot_take(control, &snapshot);
    rn_snapshot_counts(&snapshot, &counts);
    rn_history_add(rn_gateway_history(control->gateway), now, &counts, moves(control) ? control->decider : NULL, now);
    (void)rn_timer_set(&control->sample, rn_time_add(now, RN_HISTORY_STEP_US));
}

/* ---- pages: each writes its body and returns the status */

static int page_health(rn_control *control, rn_output *out)
{
    (void)control;
    rn_output_raw(out, ration_text_of("ok\n"));
    return 200;
}

static int page_ready(rn_control *control, rn_output *out)
{
    const bool draining = rn_gateway_draining(control->gateway);

    rn_output_raw(out, ration_text_of(draining ? "draining\n" : "ready\n"));
    return draining ? 503 : 200;
}

static int page_metrics(rn_control *control, rn_output *out)
{
    rn_families *families = NULL;
    rn_snapshot snapshot;

    snapshot_take(control, &snapshot);
    const int err = rn_families_new(control->decider, ration_config_rules(rn_gateway_config(control->gateway)),
                                    snapshot.now, &families);
    rn_gateway_touch(control->gateway);
    if (err != RATION_OK)
        return 503;
    rn_metrics_write(&snapshot, families, out);
    rn_families_free(families);
    return 200;
}

static int page_status(rn_control *control, rn_output *out)
{
    rn_snapshot snapshot;

    snapshot_take(control, &snapshot);
    snapshot.id = ++control->snapshots;
    const rn_status_parts parts = {.decider = control->decider,
                                   .gateway = control->gateway,
                                   .planning = control->planning,
                                   .recording = control->recording};
    const int err = rn_status_write(&snapshot, &parts, out);
    rn_gateway_touch(control->gateway);
    return err == RATION_OK ? 200 : 503;
}

static int page_history(rn_control *control, rn_output *out)
{
    rn_history_write(rn_gateway_history(control->gateway), control->started_at, out);
    return 200;
}

static const struct page {
    ration_text path;
    const char *type;
    bool open; /* without a token */
    int (*write)(rn_control *control, rn_output *out);
} pages[] = {
    {RN_TEXT("/healthz"), "text/plain; charset=utf-8", true, page_health},
    {RN_TEXT("/readyz"), "text/plain; charset=utf-8", true, page_ready},
    {RN_TEXT("/metrics"), "text/plain; version=0.0.4; charset=utf-8", false, page_metrics},
    {RN_TEXT("/v1/status"), "application/json", false, page_status},
    {RN_TEXT("/v1/history"), "application/json", false, page_history},
};

/* A target without its query. */
static ration_text path_of(ration_text target)
{
    size_t end = target.size;

    (void)rn_text_find(target, (ration_text){"?", 1}, &end);
    return rn_text_slice(target, 0, end);
}

static const struct page *page_find(ration_text path)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (rn_text_eq(path, pages[i].path))
            return &pages[i];
    }
    return NULL;
}

/* ---- requests */

/* What every page answers to: others are told so. */
static bool reads_only(rn_inbound *in, const rn_http_head *head)
{
    static const rn_problem method = {.status = 405,
                                      .name = "method_not_allowed",
                                      .title = "Method not allowed",
                                      .detail = {"this page answers GET and HEAD", 30},
                                      .waited_us = RATION_UNSET};
    const rn_http_field allow = {ration_text_of("Allow"), ration_text_of("GET, HEAD")};

    if (rn_text_is(head->method, "GET") || rn_text_is(head->method, "HEAD"))
        return true;
    rn_reply_problem(in, &method, &allow);
    return false;
}

static void page_answer(rn_control *control, rn_inbound *in, const struct page *page)
{
    rn_output body;

    rn_output_init(&body, rn_mem_default(), RN_STATUS_MAX);
    const int status = page->write(control, &body);
    if (status == 503 && !page->open) {
        rn_api_fail(in, RATION_ERR_NOMEM);
    } else {
        rn_reply(in, status, page->type, NULL, &body);
    }
    rn_output_fini(&body);
}

static void on_request(void *user, rn_inbound *in, const rn_http_head *head)
{
    static const rn_problem unknown = {.status = 404,
                                       .name = "not_found",
                                       .title = "No such page",
                                       .detail = {"the control port has / /healthz /readyz /metrics and /v1/", 57},
                                       .waited_us = RATION_UNSET};
    const ration_text path = path_of(head->target);
    const struct page *page = page_find(path);
    const rn_web_file *file = rn_web_find(path);
    const bool open = file != NULL || (page != NULL && page->open);
    rn_control *control = user;
    const rn_client *client = NULL;

    rn_inbound_set_user(in, NULL);
    const rn_bearer bearer =
        open ? RN_BEARER_KNOWN : rn_bearer_read(rn_gateway_config(control->gateway), head->fields, &client);
    if (bearer != RN_BEARER_KNOWN) {
        rn_api_unauthorized(control->api, in, bearer);
    } else if (file != NULL) {
        if (reads_only(in, head))
            rn_web_answer(in, head, file);
    } else if (page != NULL) {
        if ((open || rn_api_may_view(control->api, in, client)) && reads_only(in, head))
            page_answer(control, in, page);
    } else if (!rn_api_request(control->api, in, head, path, client)) {
        rn_reply_problem(in, &unknown, NULL);
    }
}

static void on_body(void *user, rn_inbound *in, ration_text bytes)
{
    (void)user;
    if (rn_inbound_user(in) != NULL)
        rn_api_body(in, bytes);
}

static void on_end(void *user, rn_inbound *in, rn_http_fields trailers)
{
    (void)user;
    (void)trailers;
    if (rn_inbound_user(in) != NULL)
        rn_api_end(in);
}

static void on_gone(void *user, rn_inbound *in, rn_gone why)
{
    const rn_control *control = user;

    (void)why;
    if (!rn_bulletin_gone(rn_gateway_bulletin(control->gateway), in) && rn_inbound_user(in) != NULL)
        rn_api_gone(in);
}

static void on_drain(void *user, rn_inbound *in)
{
    const rn_control *control = user;

    (void)rn_bulletin_drained(rn_gateway_bulletin(control->gateway), in);
}

int rn_control_new(const rn_control_options *options, rn_control **out, rn_net_error *error)
{
    static const rn_server_handlers handlers = {
        .on_request = on_request, .on_body = on_body, .on_end = on_end, .on_drain = on_drain, .on_gone = on_gone};
    const rn_address *address = &rn_config_settings(rn_gateway_config(options->gateway))->control;
    rn_server_options server = {.host = address->host,
                                .port = address->port,
                                .path = address->path,
                                .descriptor = options->descriptor,
                                .max_connections = CONNECTIONS_MAX};
    const rn_api_options api = {.loop = options->loop,
                                .decider = options->decider,
                                .gateway = options->gateway,
                                .planning = options->planning,
                                .member = options->member,
                                .keeper = options->keeper,
                                .reloader = options->reloader};
    rn_control *control = rn_mem_zalloc(rn_mem_default(), 1, sizeof *control);

    if (control == NULL)
        return RATION_ERR_NOMEM;
    rn_gateway_patience(rn_gateway_config(options->gateway), &server);
    control->loop = options->loop;
    control->decider = options->decider;
    control->gateway = options->gateway;
    control->planning = options->planning;
    control->recording = options->recording;
    control->member = options->member;
    control->keeper = options->keeper;
    control->reloads = options->reloads;
    control->started_at = rn_loop_now(options->loop);
    rn_timer_init(&control->sample, control->loop, on_sample, control);
    int err = rn_api_new(&api, &control->api);
    if (err == RATION_OK)
        err = rn_server_new(options->loop, &server, &handlers, control, &control->server, error);
    if (err != RATION_OK) {
        rn_control_free(control);
        return err;
    }
    on_sample(control, control->started_at);
    *out = control;
    return RATION_OK;
}

uint16_t rn_control_port(const rn_control *control)
{
    return rn_server_port(control->server);
}

void rn_control_adopt(rn_control *control)
{
    rn_server_options patience = {.host = NULL};

    rn_gateway_patience(rn_gateway_config(control->gateway), &patience);
    rn_server_retime(control->server, &patience);
}

void rn_control_part(rn_control *control)
{
    rn_api_part(control->api);
}

void rn_control_free(rn_control *control)
{
    if (control == NULL)
        return;
    rn_timer_stop(&control->sample);
    rn_server_free(control->server);
    rn_api_free(control->api);
    rn_mem_free(rn_mem_default(), control);
}
