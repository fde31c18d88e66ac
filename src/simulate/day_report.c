/* SPDX-License-Identifier: MIT */
/*
 * What a simulated day came to, for people and for programs.
 *
 * Both tell the same figures; the text leaves out what never happened. Shares of a budget are of what may be planned
 * with, U - R, over whole windows only: what a window had spent before the day began, or has still to come, is not this
 * day's.
 */
#include "simulate/day.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"
#include "base/units.h"

#define PRINT_MAX 1024

/* A figure as people read it. */
typedef struct label {
    char text[256];
} label;

/* Appends at most a kilobyte. */
static void put(rn_output *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(rn_output *out, const char *format, ...)
{
    char text[PRINT_MAX];
    va_list args;

    va_start(args, format);
    const int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rn_output_raw(out, (ration_text){text, (size_t)rn_min(rn_max(size, 0), PRINT_MAX - 1)});
}

static const char *duration_of(int64_t us, label *into)
{
    rn_builder b;

    rn_builder_init(&b, into->text, sizeof into->text);
    rn_builder_duration(&b, us);
    return into->text;
}

static const char *units_of(int64_t micro, label *into)
{
    rn_builder b;

    rn_builder_init(&b, into->text, sizeof into->text);
    rn_builder_micro(&b, micro);
    return into->text;
}

/* Thousandths of a part in a whole; 0 of nothing. */
static int64_t per_mille(int64_t part, int64_t whole)
{
    return whole > 0 ? rn_mul(part, 1000) / whole : 0;
}

static const char *percent_of(int64_t part, int64_t whole, label *into)
{
    const int64_t mille = per_mille(part, whole);

    (void)snprintf(into->text, sizeof into->text, "%" PRId64 ".%" PRId64 " %%", mille / 10, mille % 10);
    return into->text;
}

static const char *stretch_of(int64_t effective_us, int64_t desired_us, label *into)
{
    const int64_t hundredths = rn_mul(effective_us, 100) / rn_max(desired_us, 1);

    (void)snprintf(into->text, sizeof into->text, "%" PRId64 ".%02" PRId64, hundredths / 100, hundredths % 100);
    return into->text;
}

/* The interval at the end. */
static int64_t effective_of(const rn_day_job *job)
{
    return job->interval_count > 0 ? job->intervals[job->interval_count - 1].effective_us : job->job->interval_us;
}

/* U - R of all whole windows. */
static int64_t budget_of(const rn_day_quota *quota)
{
    return rn_mul(quota->usable - quota->reserve, (int64_t)quota->windows);
}

/* ---- for people */

static void head_print(const rn_day_result *r, rn_output *out)
{
    label span = {""}, start = {""};
    const char *comma = "";
    rn_builder b;

    rn_builder_init(&b, start.text, sizeof start.text);
    rn_builder_instant(&b, r->start);
    put(out, "%s from %s, seed %" PRIu64 ", faults: ", duration_of(r->span_us, &span), start.text, r->seed);
    for (unsigned i = 0; i < RN_DAY_FAULTS; i++) {
        if ((r->faults & 1u << i) == 0)
            continue;
        put(out, "%s%s", comma, rn_day_fault_name((rn_day_fault)(1u << i)));
        comma = ", ";
    }
    put(out, "%s\n\n", r->faults == 0 ? "none" : "");
}

static void classes_print(const rn_day_result *r, rn_output *out)
{
    put(out, "%-10s %8s %8s %8s %8s %8s %8s   %-10s %-10s %s\n", "priority", "wanted", "sent", "retries", "answered",
        "refused", "429s", "wait p50", "p99", "most");
    for (int p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++) {
        const rn_day_class *c = &r->classes[p];
        label p50 = {""}, p99 = {""}, most = {""};
        uint64_t limited = 0;

        if (!c->present)
            continue;
        for (size_t cause = 0; cause < RN_DAY_CAUSES; cause++)
            limited += c->limited[cause];
        put(out,
            "%-10s %8" PRId64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "   %-10s %-10s %s\n",
            ration_priority_name((ration_priority)p), c->wanted, c->sent, c->retries, c->answered, c->refused, limited,
            duration_of(c->wait_p50_us, &p50), duration_of(c->wait_p99_us, &p99), duration_of(c->wait_max_us, &most));
    }
}

/* One line for each priority that was refused something. */
static void refusals_print(const rn_day_result *r, rn_output *out)
{
    for (int p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++) {
        const rn_day_class *c = &r->classes[p];

        if (c->refused == 0)
            continue;
        put(out, "  refused %s:", ration_priority_name((ration_priority)p));
        for (int reason = RATION_REASON_NONE + 1; reason < RATION_REASON_COUNT; reason++) {
            if (c->refusals[reason] > 0)
                put(out, " %s %" PRIu64, ration_reason_name((ration_reason)reason), c->refusals[reason]);
        }
        put(out, "\n");
    }
}

static void quotas_print(const rn_day_result *r, rn_output *out)
{
    put(out, "\n%-24s %10s %8s %8s %18s %8s %9s %8s %6s %9s\n", "quota", "max", "U - R", "windows", "spent of U - R",
        "least", "external", "left", "429s", "overspent");
    for (size_t i = 0; i < r->quota_count; i++) {
        const rn_day_quota *q = &r->quotas[i];
        label max = {""}, budget = {""}, spent = {""}, least = {""}, external = {""}, left = {""}, name = {""};

        (void)snprintf(name.text, sizeof name.text, "%s %s", q->limit, q->key);
        put(out, "%-24s %10s %8s ", name.text, units_of(q->max, &max), units_of(q->usable - q->reserve, &budget));
        if (q->windows > 0) {
            put(out, "%8" PRIu64 " %18s %8s ", q->windows, percent_of(q->spent, budget_of(q), &spent),
                percent_of(q->least, q->usable - q->reserve, &least));
        } else {
            put(out, "%8s %18s %8s ", q->rolling ? "rolling" : "none", "-", "-");
        }
        put(out, "%9s %8s %6" PRIu64 " %9" PRIu64 "\n", units_of(q->external, &external), units_of(q->left, &left),
            q->refused, q->overspent);
    }
    if (r->unwatched > 0)
        put(out, "  %" PRIu64 " calls were at keys beyond those that are watched\n", r->unwatched);
}

static void jobs_print(const rn_day_result *r, rn_output *out)
{
    put(out, "\n%-24s %-10s %-12s %-12s %8s %8s %8s %8s  %s\n", "job", "priority", "desired", "at the end", "stretch",
        "most", "runs", "calls", "bound by");
    for (size_t i = 0; i < r->job_count; i++) {
        const rn_day_job *j = &r->jobs[i];
        label desired = {""}, effective = {""}, stretch = {""}, most = {""};

        put(out, "%-24s %-10s %-12s %-12s %8s %8s %8" PRIu64 " %8" PRIu64 "  %s\n", j->job->name,
            ration_priority_name(j->job->priority), duration_of(j->job->interval_us, &desired),
            duration_of(effective_of(j), &effective), stretch_of(effective_of(j), j->job->interval_us, &stretch),
            stretch_of(j->stretch_most, RATION_UNIT, &most), j->runs, j->requests + j->retries,
            j->limit != NULL ? j->limit : "-");
    }
}

static void conclusion_print(const rn_day_result *r, rn_output *out)
{
    uint64_t failed = 0;
    uint64_t broken = 0;

    for (size_t p = 0; p < RN_DAY_PRIORITIES; p++) {
        failed += r->classes[p].failed;
        broken += r->classes[p].broken;
    }
    put(out, "\n429s by what refused:");
    for (int cause = 0; cause < RN_DAY_CAUSES; cause++)
        put(out, " %s %" PRIu64, rn_day_cause_name((rn_day_cause)cause), r->limited[cause]);
    put(out, "\nfailed calls %" PRIu64 ", broken off %" PRIu64 ", health checks %" PRIu64 "\n", failed, broken,
        r->checks);
    put(out,
        "plans %" PRIu64 ", of which do not fit %" PRIu64 "; restarts in order %" PRIu64 ", by kill -9 %" PRIu64 "\n",
        r->plans, r->infeasible, r->restarts, r->kills);
    put(out, "trace hash %016" PRIx64 "\n", r->hash);
    put(out, "\n%s\n",
        rn_day_passed(r) ? "No provider refused a call for a quota's sake, and no share of one was overdrawn."
                         : "FAILED: a provider refused calls for a quota's sake, or a share was overdrawn.");
}

void rn_day_text(const rn_day_result *result, rn_output *out)
{
    head_print(result, out);
    classes_print(result, out);
    refusals_print(result, out);
    quotas_print(result, out);
    jobs_print(result, out);
    conclusion_print(result, out);
}

/* ---- for programs */

static void limited_write(rn_output *out, const uint64_t limited[RN_DAY_CAUSES])
{
    rn_output_open(out, "rateLimited", '{');
    for (int cause = 0; cause < RN_DAY_CAUSES; cause++)
        rn_output_int(out, rn_day_cause_name((rn_day_cause)cause), (int64_t)limited[cause]);
    rn_output_close(out, '}');
}

static void slots_write(rn_output *out, const char *name, const uint32_t slots[RN_DAY_SLOTS])
{
    rn_output_open(out, name, '[');
    for (size_t i = 0; i < RN_DAY_SLOTS; i++)
        rn_output_int(out, NULL, slots[i]);
    rn_output_close(out, ']');
}

static void class_write(rn_output *out, ration_priority priority, const rn_day_class *c)
{
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "priority", ration_priority_name(priority));
    rn_output_int(out, "wanted", c->wanted);
    rn_output_int(out, "sent", (int64_t)c->sent);
    rn_output_int(out, "retries", (int64_t)c->retries);
    rn_output_int(out, "answered", (int64_t)c->answered);
    rn_output_int(out, "failed", (int64_t)c->failed);
    rn_output_int(out, "broken", (int64_t)c->broken);
    rn_output_int(out, "givenUp", (int64_t)c->given_up);
    limited_write(out, c->limited);
    rn_output_int(out, "refused", (int64_t)c->refused);
    rn_output_open(out, "refusals", '{');
    for (int reason = RATION_REASON_NONE + 1; reason < RATION_REASON_COUNT; reason++) {
        if (c->refusals[reason] > 0)
            rn_output_int(out, ration_reason_name((ration_reason)reason), (int64_t)c->refusals[reason]);
    }
    rn_output_close(out, '}');
    rn_output_ms(out, "waitP50Ms", c->wait_p50_us);
    rn_output_ms(out, "waitP99Ms", c->wait_p99_us);
    rn_output_ms(out, "waitMaxMs", c->wait_max_us);
    slots_write(out, "sentBySlot", c->slot_sent);
    slots_write(out, "refusedBySlot", c->slot_refused);
    rn_output_close(out, '}');
}

static void quota_write(rn_output *out, const rn_day_quota *q)
{
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "provider", q->provider);
    rn_output_str(out, "limit", q->limit);
    rn_output_str(out, "key", q->key);
    rn_output_bool(out, "rolling", q->rolling);
    rn_output_bool(out, "strict", q->strict);
    rn_output_micro(out, "max", q->max);
    rn_output_micro(out, "usable", q->usable);
    rn_output_micro(out, "reserve", q->reserve);
    rn_output_int(out, "windows", (int64_t)q->windows);
    rn_output_micro(out, "spent", q->spent);
    rn_output_micro(out, "spentShare", rn_mul(per_mille(q->spent, budget_of(q)), 1000));
    rn_output_micro(out, "leastShare", rn_mul(per_mille(q->least, q->usable - q->reserve), 1000));
    rn_output_micro(out, "external", q->external);
    rn_output_micro(out, "left", q->left);
    rn_output_int(out, "refused", (int64_t)q->refused);
    rn_output_int(out, "overspent", (int64_t)q->overspent);
    rn_output_open(out, "points", '[');
    for (size_t i = 0; i < q->point_count; i++) {
        rn_output_open(out, NULL, '{');
        rn_output_ms(out, "atMs", q->points[i].at_us);
        rn_output_micro(out, "spent", q->points[i].spent);
        rn_output_micro(out, "external", q->points[i].external);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
    rn_output_close(out, '}');
}

static void job_write(rn_output *out, const rn_day_job *j)
{
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "name", j->job->name);
    rn_output_str(out, "priority", ration_priority_name(j->job->priority));
    rn_output_ms(out, "desiredMs", j->job->interval_us);
    rn_output_ms(out, "effectiveMs", effective_of(j));
    rn_output_micro(out, "stretchMost", j->stretch_most);
    if (j->limit != NULL)
        rn_output_str(out, "boundBy", j->limit);
    rn_output_int(out, "runs", (int64_t)j->runs);
    rn_output_int(out, "requests", (int64_t)j->requests);
    rn_output_int(out, "retries", (int64_t)j->retries);
    rn_output_open(out, "intervals", '[');
    for (size_t i = 0; i < j->interval_count; i++) {
        rn_output_open(out, NULL, '{');
        rn_output_ms(out, "atMs", j->intervals[i].at_us);
        rn_output_ms(out, "effectiveMs", j->intervals[i].effective_us);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
    rn_output_close(out, '}');
}

static void episodes_write(rn_output *out, const rn_day_result *r)
{
    rn_output_open(out, "faults", '[');
    for (size_t i = 0; i < r->episode_count; i++) {
        const rn_day_episode *e = &r->episodes[i];

        rn_output_open(out, NULL, '{');
        rn_output_str(out, "kind", rn_day_fault_name(e->kind));
        rn_output_ms(out, "fromMs", e->from_us);
        rn_output_ms(out, "toMs", e->to_us);
        if (e->kind == RN_DAY_CLOCK)
            rn_output_ms(out, "byMs", e->by_us);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
}

static void figures_write(rn_output *out, const rn_day_result *r)
{
    label hash = {""};

    (void)snprintf(hash.text, sizeof hash.text, "%016" PRIx64, r->hash);
    rn_output_bool(out, "passed", rn_day_passed(r));
    rn_output_str(out, "hash", hash.text);
    rn_output_int(out, "seed", (int64_t)r->seed);
    rn_output_open(out, "played", '[');
    for (unsigned i = 0; i < RN_DAY_FAULTS; i++) {
        if ((r->faults & 1u << i) != 0)
            rn_output_str(out, NULL, rn_day_fault_name((rn_day_fault)(1u << i)));
    }
    rn_output_close(out, ']');
    rn_output_ms(out, "startedAt", r->start.us);
    rn_output_str(out, "zone", r->zone != NULL ? r->zone : "UTC");
    rn_output_ms(out, "spanMs", r->span_us);
    limited_write(out, r->limited);
    rn_output_int(out, "unexpected429", (int64_t)r->unexpected);
    rn_output_int(out, "plans", (int64_t)r->plans);
    rn_output_int(out, "infeasiblePlans", (int64_t)r->infeasible);
    rn_output_int(out, "restarts", (int64_t)r->restarts);
    rn_output_int(out, "kills", (int64_t)r->kills);
    rn_output_int(out, "healthChecks", (int64_t)r->checks);
    rn_output_int(out, "flushes", (int64_t)r->flushes);
    rn_output_int(out, "unwatchedCalls", (int64_t)r->unwatched);
}

void rn_day_json(const rn_day_result *result, rn_output *out)
{
    rn_output_open(out, NULL, '{');
    figures_write(out, result);
    rn_output_open(out, "priorities", '[');
    for (int p = RATION_PRIORITY_CRITICAL; p <= RATION_PRIORITY_LOW; p++) {
        if (result->classes[p].present)
            class_write(out, (ration_priority)p, &result->classes[p]);
    }
    rn_output_close(out, ']');
    rn_output_open(out, "quotas", '[');
    for (size_t i = 0; i < result->quota_count; i++)
        quota_write(out, &result->quotas[i]);
    rn_output_close(out, ']');
    rn_output_open(out, "jobs", '[');
    for (size_t i = 0; i < result->job_count; i++)
        job_write(out, &result->jobs[i]);
    rn_output_close(out, ']');
    episodes_write(out, result);
    rn_output_close(out, '}');
    rn_output_newline(out);
}
