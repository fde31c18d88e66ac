/* SPDX-License-Identifier: MIT */
/*
 * What the decider knows, as JSON: one table of pages, each a report.
 *
 * Members are those of chapter 9; a lease is called as everywhere outside. No page grows without bound: rows beyond
 * RN_STATUS_ROWS are counted instead of written.
 */
#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/api_parts.h"
#include "serve/route.h"
#include "serve/status.h"
#include "trace/writer.h"

#define REFUSALS "/v1/refusals"
#define LEASES "/v1/leases"
#define WAITERS "/v1/waiters"

/* The rows of one list, and those that had no more room. */
typedef struct page_rows {
    rn_output *out;
    bool waiting; /* waiters, else leases */
    rn_trace_report report;
    char name[RN_LEASE_NAME_BYTES];
    rn_status_room room;
} page_rows;

static ration_text lease_name(void *ctx, ration_lease lease)
{
    page_rows *rows = ctx;

    return rn_lease_name_write(lease, rows->name);
}

static void optional_text(rn_output *out, const char *name, ration_text value)
{
    if (value.data != NULL)
        rn_output_text(out, name, value);
}

static void waiter_write(page_rows *rows, const ration_lease_report *waiter)
{
    rn_output *out = rows->out;

    rn_output_open(out, NULL, '{');
    rn_output_text(out, "id", lease_name(rows, waiter->lease));
    optional_text(out, "account", waiter->account);
    optional_text(out, "tenant", waiter->tenant);
    optional_text(out, "class", waiter->class_name);
    rn_output_str(out, "priority", ration_priority_name(waiter->priority));
    rn_output_micro(out, "cost", waiter->cost);
    rn_output_ms(out, "waitsSince", waiter->since.us);
    if (rn_time_known(waiter->ends_at))
        rn_output_ms(out, "deadline", waiter->ends_at.us);
    rn_output_close(out, '}');
}

static void on_lease(void *ctx, const ration_lease_report *lease)
{
    page_rows *rows = ctx;

    if (lease->waiting != rows->waiting || !rn_status_fits(&rows->room))
        return;
    if (lease->waiting) {
        waiter_write(rows, lease);
    } else {
        rows->report.reporter.lease(&rows->report, lease);
    }
}

static void on_share(void *ctx, const ration_share_report *share)
{
    page_rows *rows = ctx;

    if (rn_status_fits(&rows->room))
        rows->report.reporter.share(&rows->report, share);
}

/* A page that is one report, as an object with one list. */
typedef struct page_list {
    const char *name, *omitted; /* members */
    ration_report_kind kind;
    bool waiting;           /* of leases: those who wait for one */
    ration_text limit, key; /* of leases: at counters of this name and key alone; absent: all */
} page_list;

static int report_write(rn_api *api, const page_list *list, rn_output *out)
{
    page_rows rows = {.out = out, .waiting = list->waiting};
    const rn_trace_names names = {.ctx = &rows, .name = lease_name};
    const ration_reporter reporter = {
        .ctx = &rows, .limit = list->limit, .key = list->key, .lease = on_lease, .share = on_share};

    rn_trace_report_init(&rows.report, out, list->kind, &names);
    rn_output_open(out, NULL, '{');
    rn_output_open(out, list->name, '[');
    const int err = api->decider->ops->report(api->decider, rn_loop_now(api->loop), list->kind, &reporter);
    rn_output_close(out, ']');
    if (rows.room.omitted > 0)
        rn_output_int(out, list->omitted, (int64_t)rows.room.omitted);
    rn_output_close(out, '}');
    rn_output_newline(out);
    return err;
}

static void page_send(rn_api *api, rn_inbound *in, int err, const rn_output *body)
{
    rn_gateway_touch(api->gateway);
    if (err == RATION_OK) {
        rn_reply(in, 200, RN_API_JSON, NULL, body);
    } else {
        rn_api_fail(in, err);
    }
}

static int limits_write(rn_api *api, rn_status_filter *only, rn_output *out)
{
    rn_output_open(out, NULL, '{');
    const int err = rn_status_limits_write(api->decider, rn_loop_now(api->loop), only, out);
    rn_output_close(out, '}');
    rn_output_newline(out);
    return err;
}

/* ---- pages that are a list */

static int page_limits(rn_api *api, rn_output *out)
{
    return limits_write(api, NULL, out);
}

static int page_fairness(rn_api *api, rn_output *out)
{
    static const page_list list = {.name = "limits", .omitted = "limitsOmitted", .kind = RATION_REPORT_FAIRNESS};

    return report_write(api, &list, out);
}

static int page_allocation(rn_api *api, rn_output *out)
{
    static const page_list list = {.name = "limits", .omitted = "limitsOmitted", .kind = RATION_REPORT_ALLOCATION};

    return report_write(api, &list, out);
}

static const struct page {
    const char *path;
    int (*write)(rn_api *api, rn_output *out);
} pages[] = {
    {"/v1/limits", page_limits},
    {"/v1/fairness", page_fairness},
    {"/v1/allocation", page_allocation},
    {"/v1/plan", rn_api_plan_write},
};

static const struct page *page_find(ration_text path)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (rn_text_is(path, pages[i].path))
            return &pages[i];
    }
    return NULL;
}

/* ---- one counter: /v1/limits/NAME/KEY, both percent-encoded */

/* Up to the next slash; `*rest` is what follows it, absent if there is none. */
static ration_text part_take(ration_text *rest)
{
    const ration_text all = *rest;
    size_t end = all.size;
    const bool more = rn_text_find(all, (ration_text){"/", 1}, &end);

    *rest = more ? rn_text_slice(all, end + 1, all.size) : (ration_text){NULL, 0};
    return rn_text_slice(all, 0, end);
}

bool rn_api_counter_split(ration_text path, ration_text *name, ration_text *key, ration_text *verb)
{
    static const ration_text prefix = {"/v1/limits/", 11};
    ration_text rest = rn_text_slice(path, prefix.size, path.size);

    if (!rn_text_eq(rn_text_slice(path, 0, prefix.size), prefix))
        return false;
    *name = part_take(&rest);
    if (name->size == 0 || rest.data == NULL)
        return false;
    *key = part_take(&rest);
    *verb = rest.data != NULL ? part_take(&rest) : rest;
    return rest.data == NULL;
}

bool rn_api_counter_decode(rn_inbound *in, ration_text *name, char name_buffer[RN_API_NAME_MAX], ration_text *key,
                           char key_buffer[RN_API_KEY_MAX])
{
    if (rn_route_decode(*name, name_buffer, RN_API_NAME_MAX, name) == RATION_OK &&
        rn_route_decode(*key, key_buffer, RN_API_KEY_MAX, key) == RATION_OK)
        return true;
    rn_api_reject(in, 400, "bad_request", "Malformed target",
                  "a % without two hexadecimal digits behind it, or longer than any name or key",
                  ration_text_of("key"));
    return false;
}

/* The page of a counter has nothing behind the key. */
static bool counter_split(ration_text path, ration_text *name, ration_text *key)
{
    ration_text verb;

    return rn_api_counter_split(path, name, key, &verb) && verb.data == NULL;
}

static bool limit_exists(const rn_api *api, ration_text name)
{
    const ration_rules *rules = ration_config_rules(rn_gateway_config(api->gateway));

    for (size_t i = 0; i < rules->provider_count; i++) {
        const ration_provider_rule *provider = &rules->providers[i];
        for (size_t j = 0; j < provider->limit_count; j++) {
            if (rn_text_is(name, provider->limits[j].name))
                return true;
        }
    }
    return false;
}

static void counter_show(rn_api *api, rn_inbound *in, const rn_status_filter *asked)
{
    rn_status_filter only = *asked;
    rn_output body;

    rn_output_init(&body, rn_mem_default(), RN_STATUS_MAX);
    const int err = limits_write(api, &only, &body);
    if (err == RATION_OK && only.found == 0) {
        rn_gateway_touch(api->gateway);
        rn_api_reject(in, 404, "unknown_key", "Nothing is counted there",
                      "this limit has no counter at that scope key: nothing has been asked there, or it is as new",
                      ration_text_of("key"));
    } else {
        page_send(api, in, err, &body);
    }
    rn_output_fini(&body);
}

static void page_counter(rn_api *api, rn_inbound *in, ration_text name, ration_text key)
{
    char name_buffer[RN_API_NAME_MAX], key_buffer[RN_API_KEY_MAX];

    if (!rn_api_counter_decode(in, &name, name_buffer, &key, key_buffer))
        return;
    if (!limit_exists(api, name)) {
        rn_api_reject(in, 404, "unknown_limit", "No such limit", "no provider has a limit of this name",
                      ration_text_of("name"));
    } else {
        const rn_status_filter only = {.limit = name, .key = key};

        counter_show(api, in, &only);
    }
}

/* ---- pages with a query */

#define QUERY_MAX (RN_API_NAME_MAX + RN_API_KEY_MAX)

/* False: it cannot be read, and was answered; `wants` says what there may be. */
static bool query_read(rn_inbound *in, ration_text query, const char *wants, char buffer[QUERY_MAX],
                       rn_refused_filter *out)
{
    const ration_text asked = rn_text_slice(query, query.size > 0 ? 1 : 0, query.size);
    ration_text parameter = {NULL, 0};

    if (rn_refused_filter_read(asked, buffer, QUERY_MAX, out, &parameter) == RATION_OK)
        return true;
    rn_api_reject(in, 400, "bad_request", "Malformed query", wants, rn_text_slice(parameter, 0, RN_API_NAME_MAX));
    return false;
}

/* Why somebody was refused a while ago. */
static void page_refusals(rn_api *api, rn_inbound *in, ration_text query)
{
    char buffer[QUERY_MAX];
    rn_refused_filter filter;
    rn_output body;

    if (!query_read(in, query,
                    "tenant, account, limit, key, reason, since (milliseconds) and most (1 to 4096), each at most once",
                    buffer, &filter))
        return;
    rn_output_init(&body, rn_mem_default(), RN_STATUS_MAX);
    rn_refusals_write(rn_gateway_refusals(api->gateway), &filter, &body);
    page_send(api, in, body.err, &body);
    rn_output_fini(&body);
}

/* Who holds a lease, or waits for one: everywhere, or at one counter. */
static void page_lease_list(rn_api *api, rn_inbound *in, page_list list, ration_text query)
{
    static const char wants[] = "limit and key, each at most once";
    char buffer[QUERY_MAX];
    rn_refused_filter filter;
    rn_output body;

    if (!query_read(in, query, wants, buffer, &filter))
        return;
    if (filter.tenant.data != NULL || filter.account.data != NULL || filter.reason.data != NULL || filter.most > 0 ||
        filter.since.us != INT64_MIN) {
        rn_api_reject(in, 400, "bad_request", "Malformed query", wants, (ration_text){NULL, 0});
        return;
    }
    list.limit = filter.limit;
    list.key = filter.key;
    rn_output_init(&body, rn_mem_default(), RN_STATUS_MAX);
    page_send(api, in, report_write(api, &list, &body), &body);
    rn_output_fini(&body);
}

static bool page_query(rn_api *api, rn_inbound *in, ration_text path, ration_text query)
{
    static const page_list leases = {.name = "leases", .omitted = "leasesOmitted", .kind = RATION_REPORT_LEASES};
    static const page_list waiters = {
        .name = "waiters", .omitted = "waitersOmitted", .kind = RATION_REPORT_LEASES, .waiting = true};

    if (rn_text_is(path, REFUSALS)) {
        page_refusals(api, in, query);
    } else if (rn_text_is(path, LEASES)) {
        page_lease_list(api, in, leases, query);
    } else if (rn_text_is(path, WAITERS)) {
        page_lease_list(api, in, waiters, query);
    } else {
        return false;
    }
    return true;
}

bool rn_api_page_exists(ration_text path)
{
    ration_text name, key;

    return page_find(path) != NULL || rn_text_is(path, REFUSALS) || rn_text_is(path, LEASES) ||
           rn_text_is(path, WAITERS) || counter_split(path, &name, &key) || rn_api_job_split(path, &name);
}

/* ---- pages of counters that a fleet's store is asked about first */

static void page_show(rn_api *api, rn_inbound *in, ration_text path)
{
    const struct page *page = page_find(path);
    ration_text name, key;
    rn_output body;

    if (page == NULL) {
        if (counter_split(path, &name, &key))
            page_counter(api, in, name, key);
        return;
    }
    rn_output_init(&body, rn_mem_default(), RN_STATUS_MAX);
    const int err = page->write(api, &body);
    page_send(api, in, err, &body);
    rn_output_fini(&body);
}

static void on_figures(rn_member_listener *listener, int err)
{
    rn_api_call *call = (rn_api_call *)(void *)((char *)listener - offsetof(rn_api_call, store));

    (void)err; /* what is known is shown, and how old it is stands in the status */
    page_show(call->api, call->in, rn_api_path(rn_inbound_head(call->in)->target));
    rn_api_call_end(call);
}

/* True: the page is shown when the store has told. */
static bool page_waits(rn_api *api, rn_inbound *in, ration_text path)
{
    char name[RN_API_NAME_MAX], key[RN_API_KEY_MAX];
    ration_counter_name counter = {.provider = {NULL, 0}};
    const bool one = counter_split(path, &counter.limit, &counter.key);

    if (api->member == NULL || (!one && !rn_text_is(path, "/v1/limits")))
        return false;
    if (one && (rn_route_decode(counter.limit, name, sizeof name, &counter.limit) != RATION_OK ||
                rn_route_decode(counter.key, key, sizeof key, &counter.key) != RATION_OK))
        return false;

    rn_api_call *call = rn_api_call_new(api, in);
    if (call == NULL)
        return false;
    call->store.told = on_figures;
    if (!rn_member_figures_want(api->member, one ? &counter : NULL, &call->store)) {
        rn_inbound_set_user(in, NULL);
        rn_api_call_end(call);
        return false;
    }
    return true;
}

void rn_api_page(rn_api *api, rn_inbound *in, const rn_client *client, ration_text path, ration_text query)
{
    ration_text name;

    if (rn_api_job_split(path, &name)) {
        rn_api_job_page(api, in, client, name);
        return;
    }
    if (!rn_api_may_view(api, in, client))
        return;
    if ((page_find(path) != NULL || !page_query(api, in, path, query)) && !page_waits(api, in, path))
        page_show(api, in, path);
}
