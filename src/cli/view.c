/* SPDX-License-Identifier: MIT */
/*
 * From the JSON of a status to rows and sentences.
 *
 * Members that an older or newer gateway does not have are passed over, so that a status can be looked at during an
 * upgrade. Names come from outside: every text is copied through one function that lets no control character pass.
 */
#include "cli/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <ration/types.h>

#include "base/text.h"

#define FULL 0.9995 /* shows as 100 % */

/* ---- texts and numbers */

/* At most `size - 1` bytes of a text, cut between characters; C0, DEL and C1 as '?'. */
static void plain(char *out, size_t size, const char *text)
{
    size_t used = 0;

    for (size_t i = 0; text[i] != '\0';) {
        const unsigned char first = (unsigned char)text[i];
        const size_t bytes = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        const bool control = first < 0x20 || first == 0x7F || (first == 0xC2 && (unsigned char)text[i + 1] < 0xA0);

        if (used + bytes >= size)
            break;
        if (control) {
            out[used++] = '?';
        } else {
            memcpy(out + used, text + i, bytes);
            used += bytes;
        }
        i += bytes;
    }
    out[used] = '\0';
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? text : "";
}

static double number_of(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

static int64_t count_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* "in 2 h 5 min", from milliseconds since the epoch; "" for what is over or not known. */
static void when(char *out, size_t size, double until_ms, double now_ms)
{
    rn_builder b;

    rn_builder_init(&b, out, size);
    if (until_ms <= now_ms || until_ms - now_ms > 1e13)
        return;
    rn_builder_str(&b, "in ");
    rn_builder_duration(&b, (int64_t)((until_ms - now_ms) * 1e3));
}

/* ---- rows */

static double part(double used, double whole)
{
    const double fill = whole > 0 ? used / whole : 1;

    return fill < 0 ? 0 : fill > 1 ? 1 : fill;
}

static void row_quota(const json_t *limit, double now, rn_view_row *row)
{
    const double usable = number_of(limit, "usable"), remaining = number_of(limit, "remaining");

    row->fill = part(usable - remaining, usable);
    row->binds = row->binds || remaining <= number_of(limit, "reserve");
    (void)snprintf(row->amount, sizeof row->amount, "%g of %g left", remaining, usable);
    when(row->eases, sizeof row->eases, number_of(limit, "windowEnd"), now);
}

static void row_share(const json_t *limit, rn_view_row *row)
{
    json_t *tenants = json_object_get(limit, "tenants"), *tenant;
    const char *name;
    double held = 0, ceiling = 0;

    json_object_foreach(tenants, name, tenant)
    {
        held += number_of(tenant, "held");
        ceiling += number_of(tenant, "guarantee");
    }
    row->fill = part(held, ceiling);
    row->binds = row->binds || row->fill >= FULL;
    (void)snprintf(row->amount, sizeof row->amount, "%g of %g held", held, ceiling);
}

static void row_slots(const json_t *limit, const char *whole, rn_view_row *row)
{
    const double held = number_of(limit, "held"), max = number_of(limit, whole);

    row->fill = part(held, max);
    row->binds = row->binds || held >= max;
    (void)snprintf(row->amount, sizeof row->amount, "%g of %g held", held, max);
}

static void row_rate(const json_t *limit, rn_view_row *row)
{
    const double available = number_of(limit, "available"), burst = number_of(limit, "burst");

    row->binds = row->binds || available < 1;
    row->fill = row->binds ? 1 : part(burst - available, burst);
    (void)snprintf(row->amount, sizeof row->amount, "%g of %g left", available, burst);
}

static void row_read(const json_t *limit, double now, rn_view_row *row)
{
    const char *kind = text_of(limit, "kind");

    plain(row->limit, sizeof row->limit, text_of(limit, "limit"));
    plain(row->kind, sizeof row->kind, kind);
    plain(row->key, sizeof row->key, text_of(limit, "key"));
    row->waiting = count_of(limit, "waiting");
    row->binds = row->waiting > 0;
    if (strcmp(kind, "quota") == 0) {
        row_quota(limit, now, row);
    } else if (strcmp(kind, "share") == 0) {
        row_share(limit, row);
    } else if (strcmp(kind, "rate") == 0) {
        row_rate(limit, row);
    } else {
        row_slots(limit, strcmp(kind, "adaptive") == 0 ? "current" : "max", row);
    }
    if (json_is_true(json_object_get(limit, "paused"))) {
        /* Neither time nor a new window ends a pause. */
        row->binds = true;
        row->eases[0] = '\0';
        (void)snprintf(row->amount, sizeof row->amount, "paused by an operator");
    }
}

/* ---- sentences */

/* One more; the caller has made room. */
static void say(rn_view *view, const char *before, const char *name, const char *between, const char *key,
                const char *after)
{
    char *out = view->words[view->word_count++];
    char safe_name[64], safe_key[120], safe_after[100];

    plain(safe_name, sizeof safe_name, name);
    plain(safe_key, sizeof safe_key, key);
    plain(safe_after, sizeof safe_after, after);
    (void)snprintf(out, sizeof view->words[0], "%s%s%s%s%s", before, safe_name, between, safe_key, safe_after);
}

static void breakers_say(rn_view *view, const json_t *status, double now)
{
    const json_t *breaker;
    size_t i;

    json_array_foreach(json_object_get(status, "breakers"), i, breaker)
    {
        char after[160], eases[64];

        when(eases, sizeof eases, number_of(breaker, "retryAt"), now);
        (void)snprintf(after, sizeof after, " is %s (%s)%s%s", text_of(breaker, "state"), text_of(breaker, "cause"),
                       eases[0] != '\0' ? ", next try " : "", eases);
        say(view, "The circuit of ", text_of(breaker, "provider"), " at ", text_of(breaker, "breaker"), after);
    }
}

static void penalties_say(rn_view *view, const json_t *status, double now)
{
    const json_t *penalty;
    size_t i;

    json_array_foreach(json_object_get(status, "penalties"), i, penalty)
    {
        char after[160], eases[64];
        const char *limit = text_of(penalty, "limit");

        when(eases, sizeof eases, number_of(penalty, "until"), now);
        (void)snprintf(after, sizeof after, ": it ends %s", eases[0] != '\0' ? eases : "now");
        say(view, "The provider asked to pause ", limit[0] != '\0' ? limit : "the account", " at ",
            text_of(penalty, "penalty"), after);
    }
}

static void rows_say(rn_view *view)
{
    for (size_t i = 0; i < view->row_count; i++) {
        const rn_view_row *row = &view->rows[i];
        char after[200];

        if (!row->binds)
            continue;
        (void)snprintf(after, sizeof after, ": %s%s%s", row->amount, row->eases[0] != '\0' ? ", begins anew " : "",
                       row->eases);
        if (row->waiting > 0) {
            const size_t used = strlen(after);
            (void)snprintf(after + used, sizeof after - used, ", %lld wait", (long long)row->waiting);
        }
        say(view, "Limit ", row->limit, " at ", row->key, after);
    }
}

static void house_say(rn_view *view, const json_t *status)
{
    const json_t *ledger = json_object_get(status, "ledger"), *plan = json_object_get(status, "plan");

    if (json_is_true(json_object_get(ledger, "failing")))
        say(view, "The ledger cannot be written: ", text_of(ledger, "lastError"), "", "", "");
    if (json_is_false(json_object_get(plan, "feasible")))
        say(view, "The jobs do not fit their quotas", "", "", "", ": see /v1/plan");
}

/* ---- costs */

static int64_t counts_sum(json_t *counts)
{
    const char *name;
    json_t *count;
    int64_t sum = 0;

    json_object_foreach(counts, name, count)
    {
        sum += json_integer_value(count);
    }
    return sum;
}

static void cost_say(rn_view *view, const json_t *cost)
{
    json_t *settled = json_object_get(cost, "settled"), *unseen = json_object_get(cost, "unseen");
    const int64_t by_estimate = count_of(settled, "estimate"), told = counts_sum(settled) - by_estimate;
    const double estimated = number_of(cost, "estimated"), actual = number_of(cost, "actual");
    char provider[64], part_of[32] = "";

    if (told + by_estimate == 0)
        return;
    plain(provider, sizeof provider, text_of(cost, "provider"));
    if (estimated > 0)
        (void)snprintf(part_of, sizeof part_of, " (%.0f %%)", actual / estimated * 100);
    (void)snprintf(
        view->costs[view->cost_count++], sizeof view->costs[0],
        "Costs at %s: %lld calls told theirs, %.12g estimated and %.12g spent%s; %lld went by their estimate, %lld "
        "of which succeeded without a usage that can be read",
        provider, (long long)told, estimated, actual, part_of, (long long)by_estimate, (long long)counts_sum(unseen));
}

/* ---- the whole */

static void head_write(rn_view *view, const json_t *status)
{
    char up[64], version[32];
    rn_builder b;

    rn_builder_init(&b, up, sizeof up);
    rn_builder_duration(&b, (int64_t)(number_of(status, "uptimeMs")) / 1000 * 1000000);
    plain(version, sizeof version, text_of(status, "version"));
    (void)snprintf(view->head, sizeof view->head, "ration %s, up %s: %lld calls under way, %lld wait%s", version, up,
                   (long long)count_of(status, "held"), (long long)count_of(status, "waiting"),
                   json_is_true(json_object_get(status, "draining")) ? "; it is stopping" : "");
}

static int view_fill(rn_view *view, const json_t *status)
{
    const json_t *limits = json_object_get(status, "limits"), *costs = json_object_get(status, "costs");
    const double now = number_of(status, "now");
    const size_t sentences = json_array_size(limits) + json_array_size(json_object_get(status, "penalties")) +
                             json_array_size(json_object_get(status, "breakers")) + 2;

    view->rows = calloc(json_array_size(limits) + 1, sizeof *view->rows);
    view->words = calloc(sentences, sizeof *view->words);
    view->costs = calloc(json_array_size(costs) + 1, sizeof *view->costs);
    if (view->rows == NULL || view->words == NULL || view->costs == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < json_array_size(limits); i++)
        row_read(json_array_get(limits, i), now, &view->rows[view->row_count++]);
    for (size_t i = 0; i < json_array_size(costs); i++)
        cost_say(view, json_array_get(costs, i));
    head_write(view, status);
    house_say(view, status);
    breakers_say(view, status, now);
    penalties_say(view, status, now);
    rows_say(view);
    return RATION_OK;
}

int rn_view_read(const char *body, size_t size, rn_view *out, char *error, size_t error_size)
{
    json_error_t fault;
    json_t *status = json_loadb(body, size, JSON_REJECT_DUPLICATES, &fault);

    *out = (rn_view){.rows = NULL};
    if (!json_is_object(status) || !json_is_array(json_object_get(status, "limits"))) {
        (void)snprintf(error, error_size, "this is no status of ration");
        json_decref(status);
        return RATION_ERR_SYNTAX;
    }

    const int err = view_fill(out, status);
    if (err != RATION_OK)
        (void)snprintf(error, error_size, "out of memory");
    json_decref(status);
    return err;
}

void rn_view_fini(rn_view *view)
{
    free(view->rows);
    free(view->words);
    free(view->costs);
    *view = (rn_view){.rows = NULL};
}

static int by_name(const void *a, const void *b)
{
    const rn_view_row *x = a, *y = b;
    const int limits = strcmp(x->limit, y->limit);

    return limits != 0 ? limits : strcmp(x->key, y->key);
}

static int by_waiting(const void *a, const void *b)
{
    const rn_view_row *x = a, *y = b;

    return x->waiting != y->waiting ? (x->waiting < y->waiting ? 1 : -1) : by_name(a, b);
}

static int by_fill(const void *a, const void *b)
{
    const rn_view_row *x = a, *y = b;

    if (x->binds != y->binds)
        return x->binds ? -1 : 1;
    if (x->fill < y->fill || x->fill > y->fill)
        return x->fill < y->fill ? 1 : -1;
    return by_name(a, b);
}

void rn_view_sort(rn_view *view, rn_view_order order)
{
    static int (*const compare[RN_VIEW_ORDERS])(const void *, const void *) = {by_fill, by_waiting, by_name};

    qsort(view->rows, view->row_count, sizeof *view->rows, compare[order]);
}

const char *rn_view_order_name(rn_view_order order)
{
    static const char *const names[RN_VIEW_ORDERS] = {"fill", "waiting", "name"};

    return names[order];
}

/* ---- lines */

/* Characters of a text. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

/* Exactly `width` characters and two blanks; a text that is longer ends with "..". */
static void cell(rn_builder *b, const char *text, size_t width, bool right)
{
    const size_t wide = width_of(text);
    size_t kept = wide <= width ? wide : width - 2;

    for (size_t i = wide; right && i < width; i++)
        rn_builder_char(b, ' ');
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text & 0xC0) != 0x80 && kept-- == 0)
            break;
        rn_builder_char(b, *text);
    }
    if (wide > width)
        rn_builder_str(b, "..");
    for (size_t i = wide; !right && i < width; i++)
        rn_builder_char(b, ' ');
    rn_builder_str(b, "  ");
}

void rn_view_line(const rn_view_row *row, size_t columns, char *buffer, size_t size)
{
    char fill[8], waiting[24];
    rn_builder b;
    /* The key takes what the others leave. */
    const size_t fixed = 2 + 18 + 2 + 11 + 2 + 5 + 2 + 7 + 2 + 22 + 2 + 14;
    const size_t key = columns > fixed + 2 + 10 ? columns - fixed - 2 : 10;

    (void)snprintf(fill, sizeof fill, "%.0f %%", row != NULL ? row->fill * 100 : 0.0);
    (void)snprintf(waiting, sizeof waiting, "%lld", row != NULL ? (long long)row->waiting : 0LL);
    rn_builder_init(&b, buffer, size);
    rn_builder_str(&b, row != NULL && row->binds ? "! " : "  ");
    cell(&b, row != NULL ? row->limit : "limit", 18, false);
    cell(&b, row != NULL ? row->kind : "kind", 11, false);
    cell(&b, row != NULL ? row->key : "key", key < 100 ? key : 100, false);
    cell(&b, row != NULL ? fill : "used", 5, true);
    cell(&b, row != NULL ? waiting : "waiting", 7, true);
    cell(&b, row != NULL ? row->amount : "amount", 22, false);
    cell(&b, row != NULL ? row->eases : "begins anew", 14, false);
    while (b.used > 0 && buffer[b.used - 1] == ' ')
        buffer[--b.used] = '\0';
    /* Narrow screens lose the right end. */
    size_t at = 0;
    for (size_t width = 0; buffer[at] != '\0'; at++) {
        width += ((unsigned char)buffer[at] & 0xC0) != 0x80;
        if (width > columns)
            break;
    }
    buffer[at] = '\0';
}
