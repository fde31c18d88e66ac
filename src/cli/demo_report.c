/* SPDX-License-Identifier: MIT */
/*
 * The demo's report: both ways to the provider side by side, for people and for programs.
 *
 * 429s are the provider's own count; everything else is what the clients saw. A tenant's share is its part of the calls
 * answered while the schedule was still sending: later on nobody competes any more, and with enough patience everybody
 * gets all.
 */
#include "cli/demo_report.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "trace/output.h"

#define JSON_MAX 65536

static bool restart_passed(const rn_demo_restart *restart)
{
    return restart->at_us > 0 && (!restart->same_window || restart->after >= restart->before);
}

bool rn_demo_passed(const rn_demo_result *result)
{
    return result->through.counted.rate_limited == 0 && restart_passed(&result->restart) &&
           result->through.summary.all.answered == result->through.summary.all.sent;
}

/* ---- for people */

static const char *duration(int64_t us, char buffer[32])
{
    (void)snprintf(buffer, 32, "%" PRId64 ".%02" PRId64 " s", us / 1000000, us / 10000 % 100);
    return buffer;
}

static void count_row(const char *what, uint64_t straight, uint64_t through)
{
    (void)printf("  %-26s %12" PRIu64 " %16" PRIu64 "\n", what, straight, through);
}

/* A call that goes straight never waits: it is refused instead. */
static void wait_row(const char *what, int64_t through_us)
{
    char b[32];

    (void)printf("  %-26s %12s %16s\n", what, "-", duration(through_us, b));
}

static unsigned percent(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (unsigned)((part * 100 + whole / 2) / whole);
}

static void tenants_print(const rn_demo_result *result)
{
    const rn_summary *straight = &result->straight.summary;
    const rn_summary *through = &result->through.summary;

    (void)printf("\n  by tenant           sent      answered             share         wait through ration\n"
                 "                            straight through   straight through      p50        p99\n");
    for (size_t i = 0; i < through->tenant_count; i++) {
        const rn_tally *s = &straight->tenants[i];
        const rn_tally *t = &through->tenants[i];
        char p50[32], p99[32];

        (void)printf("  %-18s %5" PRIu64 " %9" PRIu64 " %7" PRIu64 " %8u %% %5u %% %10s %10s\n", t->tenant, t->sent,
                     s->answered, t->answered, percent(s->early, straight->all.early),
                     percent(t->early, through->all.early), duration(t->wait_p50_us, p50),
                     duration(t->wait_p99_us, p99));
    }
    (void)printf("  (share: of the calls answered in the first %" PRId64 " s, while all were still sending)\n",
                 result->schedule->span_us / 1000000);
}

static void restart_print(const rn_demo_result *result)
{
    const rn_demo_restart *restart = &result->restart;
    const int64_t before = restart->before / RATION_UNIT, after = restart->after / RATION_UNIT;

    (void)printf("After %" PRId64
                 " s ration was killed without warning, with calls under way, and started again: %" PRIu64
                 " calls were sent once more.\n",
                 restart->at_us / 1000000, result->through.summary.all.repeated);
    if (!restart->same_window) {
        (void)printf("Just then the minute turned, so there was nothing to remember.\n");
    } else if (restart_passed(restart)) {
        (void)printf("It remembered all %" PRId64
                     " calls of the minute that it had let through, and counts on from %" PRId64
                     ":\nafter a kill rather a few too many than one too few.\n",
                     before, after);
    } else {
        (void)printf("FAILED: of %" PRId64 " calls of the minute that it had let through it remembered %" PRId64 ".\n",
                     before, after);
    }
}

static void conclusion_print(const rn_demo_result *result)
{
    const rn_demo_side *straight = &result->straight;
    const rn_demo_side *through = &result->through;
    char p50[32], p99[32];

    (void)printf("\nStraight, the provider refused %" PRIu64 " of %" PRIu64
                 " calls with a 429, and whose calls those were was a matter of luck.\n",
                 straight->counted.rate_limited, straight->summary.all.sent);
    if (rn_demo_passed(result)) {
        (void)printf("Through ration it refused none: every call waited until there was room for it, half of them at "
                     "most %s,\nall but one in a hundred at most %s, the important ones first.\n",
                     duration(through->summary.all.wait_p50_us, p50), duration(through->summary.all.wait_p99_us, p99));
    } else {
        (void)printf("FAILED: through ration the provider refused %" PRIu64 " calls, and %" PRIu64 " of %" PRIu64
                     " were not answered.\n",
                     through->counted.rate_limited, through->summary.all.sent - through->summary.all.answered,
                     through->summary.all.sent);
    }
    restart_print(result);
    if (result->record != NULL) {
        (void)printf("\nEvery decision is in %s.old and, after the restart, in %s; `ration replay --verify %s` makes "
                     "them all again.\n",
                     result->record, result->record, result->record);
    }
}

void rn_demo_print_text(const rn_demo_result *result)
{
    const rn_tally *s = &result->straight.summary.all;
    const rn_tally *t = &result->through.summary.all;
    char straight[32], through[32];

    (void)printf("\n  %-26s %12s %16s\n", "", "straight", "through ration");
    count_row("calls sent", s->sent, t->sent);
    count_row("answered", s->answered, t->answered);
    count_row("429s from the provider", result->straight.counted.rate_limited, result->through.counted.rate_limited);
    count_row("failed otherwise", s->failed, t->failed);
    wait_row("wait, p50", t->wait_p50_us);
    wait_row("wait, p99", t->wait_p99_us);
    (void)printf("  %-26s %12s %16s\n", "last answer after", duration(result->straight.summary.took_us, straight),
                 duration(result->through.summary.took_us, through));
    tenants_print(result);
    conclusion_print(result);
}

/* ---- for programs */

static void tally_write(rn_output *json, const rn_tally *tally)
{
    rn_output_int(json, "sent", (int64_t)tally->sent);
    rn_output_int(json, "answered", (int64_t)tally->answered);
    rn_output_int(json, "rateLimited", (int64_t)tally->rate_limited);
    rn_output_int(json, "failed", (int64_t)tally->failed);
    rn_output_int(json, "repeated", (int64_t)tally->repeated);
    rn_output_ms(json, "waitP50Ms", tally->wait_p50_us);
    rn_output_ms(json, "waitP99Ms", tally->wait_p99_us);
}

static void provider_write(rn_output *json, const rn_simulator_counts *counted)
{
    rn_output_open(json, "provider", '{');
    rn_output_int(json, "requests", (int64_t)counted->requests);
    rn_output_int(json, "ok", (int64_t)counted->ok);
    rn_output_int(json, "rateLimited", (int64_t)counted->rate_limited);
    rn_output_int(json, "errors", (int64_t)counted->errors);
    rn_output_int(json, "gone", (int64_t)counted->gone);
    rn_output_close(json, '}');
}

static void side_write(rn_output *json, const char *name, const rn_demo_side *side)
{
    const rn_summary *summary = &side->summary;

    rn_output_open(json, name, '{');
    tally_write(json, &summary->all);
    rn_output_ms(json, "tookMs", summary->took_us);
    provider_write(json, &side->counted);
    rn_output_open(json, "tenants", '{');
    for (size_t i = 0; i < summary->tenant_count; i++) {
        const rn_tally *tally = &summary->tenants[i];
        const uint64_t early = summary->all.early > 0 ? summary->all.early : 1;

        rn_output_open(json, tally->tenant, '{');
        tally_write(json, tally);
        rn_output_micro(json, "share", (int64_t)(tally->early * RATION_UNIT / early));
        rn_output_close(json, '}');
    }
    rn_output_close(json, '}');
    rn_output_close(json, '}');
}

int rn_demo_print_json(const rn_demo_result *result)
{
    rn_output json;

    rn_output_init(&json, rn_mem_default(), JSON_MAX);
    rn_output_open(&json, NULL, '{');
    rn_output_bool(&json, "passed", rn_demo_passed(result));
    rn_output_int(&json, "seed", (int64_t)result->seed);
    rn_output_ms(&json, "spanMs", result->schedule->span_us);
    rn_output_str(&json, "control", result->control);
    rn_output_open(&json, "restart", '{');
    rn_output_ms(&json, "atMs", result->restart.at_us);
    rn_output_micro(&json, "usedBefore", result->restart.before);
    rn_output_micro(&json, "usedAfter", result->restart.after);
    rn_output_bool(&json, "sameWindow", result->restart.same_window);
    rn_output_close(&json, '}');
    side_write(&json, "straight", &result->straight);
    side_write(&json, "through", &result->through);
    rn_output_close(&json, '}');
    rn_output_newline(&json);

    const int err = json.err;
    if (err == 0)
        (void)fwrite(json.data, 1, json.size, stdout);
    rn_output_fini(&json);
    return err;
}
