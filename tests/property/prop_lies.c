/* SPDX-License-Identifier: MIT */

/*
 * A quota whose provider lies for a while, and then tells the truth.
 *
 * Lies: resets that slide, repeat, jump ahead, go back, lie in the past or too far away; more, less, negative, enormous
 * or no remaining; limits of 0, -1, 10^18; fields that come twice; garbage; 429s out of the blue. (A higher limit that
 * could be true is believed: chapter 3. So none is told here.)
 *
 * What must hold while the provider lies:
 *
 *     between two begins of a window, the client grants no more than its maximum;
 *     a window begins only at its own end, with a reset later than that by at least half a window, or at an end that a
 *     header brought about; and of those any two are at least half a window apart;
 *     a window that a header begins after the fact counts at least what was granted since.
 *
 * Hence in one true window: at most three begins without resets that jump by half a window or more, and at most nine
 * with them (the end cannot be more than a window past the calendar's, and every jump takes half a window of that). In
 * a rolling window no stretch sees more than the maximum, whatever the headers say.
 *
 * And when the truth is told: a call leaves within two windows, and from two windows after its answer on every true
 * window is used but for at most twice what was in flight and less than one more charge.
 */
#include "support/check.h"
#include "support/property.h"
#include "support/quota_fields.h"
#include "support/sole.h"

#include <stdlib.h>

#define UNIT RATION_UNIT
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define ARRIVAL (2 * SECOND)
#define START (INT64_C(28333333) * MINUTE)
#define CALLS 2048
#define LIES 3   /* windows */
#define TRUTHS 7 /* windows at most */
#define NEVER RATION_NEVER_US
#define BEGINS_MAX 3
#define JUMPED_BEGINS_MAX 9

typedef struct call {
    ration_lease lease;
    int64_t granted_at;
    int64_t answers_at; /* NEVER: answered */
    int64_t left;       /* in truth, at the grant */
} call;

typedef struct world {
    ration_engine *client;
    quota_form form;
    bool rolling, jumps;
    int64_t max; /* units */
    int64_t reserve;
    int64_t shift_us; /* the provider's true windows begin so much earlier */
    int64_t back_us;
    int64_t pace_us;
    call calls[CALLS];
    int count, oldest;
    int64_t now, demand_at, truth_at;
    int64_t sane_at; /* the first true answer to a call granted since; 0: none yet */

    /* The window as the client sees it. */
    int64_t start;
    int64_t brought_at;
    int64_t granted; /* since it began */
    int begins;      /* in this minute */
    int64_t minute;
    int64_t constant; /* a reset that some lies repeat */
} world;

static struct {
    int begins, jumped_begins;
    int64_t offered, taken;
    uint64_t lies;
} seen;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static long long since_start(int64_t at)
{
    return (long long)(at - START);
}

static void world_start(choices *c, world *w)
{
    static const quota_form forms[] = {FORM_EPOCH_EXACT, FORM_EPOCH_MS, FORM_ISO8601, FORM_DELTA_EXACT};

    w->form = forms[choose(c, 3)];
    w->rolling = choose(c, 3) == 3;
    w->jumps = choose(c, 1) == 1;
    w->max = choose_from(c, 3, 20);
    w->reserve = w->max * (int64_t)choose(c, 3) / 10;
    w->shift_us = (int64_t)choose(c, 1) * (int64_t)choose(c, MINUTE - 1);
    w->back_us = 1 + (int64_t)choose(c, 3 * SECOND);
    w->pace_us = SECOND / 4 + (int64_t)choose(c, SECOND);
    w->truth_at = START + LIES * MINUTE;
    w->now = w->demand_at = START;
    w->constant = START + (int64_t)choose(c, 2 * MINUTE);
    w->brought_at = START - 2 * MINUTE;

    const ration_limit_rule rule = {
        .name = "quota",
        .kind = RATION_KIND_QUOTA,
        .max = w->max * UNIT,
        .margin = RATION_UNSET,
        .arrival_us = ARRIVAL,
        .window = {.period = w->rolling ? RATION_PERIOD_NONE : RATION_PERIOD_MINUTE,
                   .rolling_us = w->rolling ? MINUTE : 0},
        .sync = quota_fields_sync(w->form),
    };

    w->client = sole_engine(&rule, false, (ration_ratio){(int32_t)w->reserve, (int32_t)w->max}, w->now);
    NOTE(c, "max %d, reserve %d, %s, form %d, shift %d, back %d, %s", (int)w->max, (int)w->reserve,
         w->rolling ? "rolling" : "calendar", (int)w->form, (int)w->shift_us, (int)w->back_us,
         w->jumps ? "with jumps" : "without jumps");
}

static void world_end(world *w)
{
    ration_engine_free(w->client);
    free(w);
}

/* ---- the truth ---- */

static int64_t window_start(const world *w, int64_t at)
{
    return (at + w->shift_us) / MINUTE * MINUTE - w->shift_us;
}

/* Grants since `from`, in units. */
static int64_t granted_since(const world *w, int64_t from)
{
    int64_t sum = 0;

    for (int i = w->count; i-- > 0 && w->calls[i].granted_at >= from;)
        sum++;
    return sum;
}

static int64_t truly_left(const world *w)
{
    const int64_t from = w->rolling ? w->now - MINUTE : window_start(w, w->now);

    return most(0, w->max - granted_since(w, from));
}

static void tell_truth(const world *w, quota_fields *f, const call *k)
{
    const int64_t end = window_start(w, k->granted_at) + MINUTE;

    quota_fields_write(f, w->form, w->max, k->left, w->rolling ? NEVER : end, k->granted_at);
}

/* ---- lies ---- */

static const char *garbage(choices *c)
{
    static const char *const texts[] = {"",
                                        "-1",
                                        "-5",
                                        "NaN",
                                        "soon",
                                        "1e9",
                                        "0x10",
                                        "1,2",
                                        "99999999999999999999999999999999999999",
                                        "\"7\"",
                                        "7;w=60",
                                        "9223372036854775808",
                                        "\xff\xfe",
                                        "1970-13-45T99:99:99Z",
                                        "+3",
                                        ".5",
                                        "1000000000000000000"};

    return texts[choose(c, sizeof texts / sizeof texts[0] - 1)];
}

static int64_t lie_about_reset(choices *c, const world *w, const ration_counter_report *r)
{
    const int64_t end = r->has_window ? r->window_end.us : w->now + MINUTE;
    const int64_t start = r->has_window ? r->window_start.us : w->now - MINUTE;

    switch (choose(c, 9)) {
    case 0:
        return w->now + MINUTE; /* slides */
    case 1:
        return w->constant;
    case 2:
        return end;
    case 3:
        return w->now + (int64_t)choose(c, 5 * SECOND); /* soon */
    case 4:
        return w->now - (int64_t)choose(c, 5 * SECOND); /* just past */
    case 5:
        return start + (int64_t)choose(c, (uint64_t)(end - start)); /* nearer */
    case 6:
        return start - (int64_t)choose(c, MINUTE); /* stale */
    case 7:
        return end + (int64_t)choose(c, MINUTE / 2 - 1);
    case 8:
        return end + MINUTE / 2 + (int64_t)choose(c, 1) * (int64_t)choose(c, MINUTE); /* jumps */
    default:
        return end + (int64_t)choose(c, 20) * MINUTE; /* far away */
    }
}

/* The reset that the client reads; NEVER: none. */
static int64_t lie(choices *c, const world *w, const ration_counter_report *r, quota_fields *f)
{
    static const int64_t factors[] = {0, 1, 2, 1000, 1000000};
    const int64_t wanted = lie_about_reset(c, w, r);
    const bool jumps = r->has_window && wanted - r->window_end.us >= MINUTE / 2;
    int64_t reset = w->form == FORM_DELTA_EXACT ? most(wanted, w->now) : wanted;

    if (w->form == FORM_EPOCH_MS)
        reset = (reset + 999) / 1000 * 1000;
    if (choose(c, 3) == 3) {
        quota_fields_add(f, FIELD_LIMIT, "%s", garbage(c));
    } else if (choose(c, 1) == 1) {
        quota_fields_add(f, FIELD_LIMIT, "%" PRId64, choose_from(c, 1, w->max));
    }
    if (choose(c, 3) == 3) {
        quota_fields_add(f, FIELD_LEFT, "%s", garbage(c));
    } else if (choose(c, 3) != 0) {
        quota_fields_add(f, FIELD_LEFT, "%" PRId64, w->max * factors[choose(c, 4)] / choose_from(c, 1, 3));
    }
    if (choose(c, 7) == 7)
        quota_fields_add(f, FIELD_LEFT, "1");
    if (choose(c, 3) == 3 || (jumps && !w->jumps)) {
        quota_fields_add(f, FIELD_RESET, "%s", garbage(c));
        return NEVER;
    }
    quota_fields_reset(f, w->form, reset, w->now);
    if (choose(c, 7) != 7)
        return reset;
    quota_fields_reset(f, w->form, reset, w->now);
    return NEVER;
}

/* ---- what the client makes of it ---- */

static void minute_pass(world *w)
{
    if (w->now / MINUTE == w->minute)
        return;
    w->minute = w->now / MINUTE;
    w->begins = 0;
}

static void began(choices *c, world *w, int64_t start)
{
    int *const record = w->jumps ? &seen.jumped_begins : &seen.begins;

    w->start = start;
    w->granted = 0;
    w->begins++;
    *record = w->begins > *record ? w->begins : *record;
    NOTE(c, "%lld a window begins, the %d. of this minute", since_start(w->now), w->begins);
    HOLDS(c, w->begins <= (w->jumps ? JUMPED_BEGINS_MAX : BEGINS_MAX));
}

/* A window that ended by itself since the last look. */
static ration_counter_report look(choices *c, world *w)
{
    const ration_counter_report r = sole_report(w->client, w->now);

    minute_pass(w);
    if (r.has_window && r.window_start.us != w->start) {
        if (w->start != 0)
            began(c, w, r.window_start.us);
        w->start = r.window_start.us;
    }
    return r;
}

static void brought(choices *c, world *w, int64_t at)
{
    HOLDS(c, at - w->brought_at >= MINUTE / 2);
    w->brought_at = at;
}

static void taught(choices *c, world *w, const ration_counter_report *before, int64_t reset)
{
    const ration_counter_report after = sole_report(w->client, w->now);
    const int64_t end = before->window_end.us;

    if (!after.has_window)
        return;
    /* The call that begins a window may have been granted at the very start of the one before. */
    if (after.window_start.us != before->window_start.us || after.window_end.us - end >= MINUTE / 2) {
        HOLDS(c, reset != NEVER);
        if (reset <= w->now) {
            brought(c, w, reset);
        } else {
            HOLDS(c, reset - end >= MINUTE / 2);
        }
        HOLDS(c, after.used >= granted_since(w, after.window_start.us + 1) * UNIT);
        began(c, w, after.window_start.us);
    } else if (after.window_end.us < end) {
        HOLDS(c, after.window_end.us == reset);
        brought(c, w, reset);
    } else if (after.window_end.us > end) {
        HOLDS(c, after.window_end.us == reset && reset - end < MINUTE / 2);
    }
}

static void answer(choices *c, world *w, call *k)
{
    const bool lies = w->now < w->truth_at;
    const ration_counter_report before = look(c, w);
    int64_t reset = window_start(w, k->granted_at) + MINUTE;
    quota_fields f = {0};

    if (lies) {
        reset = lie(c, w, &before, &f);
        seen.lies++;
    } else {
        tell_truth(w, &f, k);
        reset = w->form == FORM_DELTA_EXACT ? reset + w->now - k->granted_at
                : w->form == FORM_EPOCH_MS  ? (reset + 999) / 1000 * 1000
                                            : reset;
    }

    ration_response response = {.status = 200, .headers = f.items};

    if (lies && choose(c, 7) == 7) {
        response.status = 429;
        quota_fields_add(&f, "Retry-After", "0.001");
    }
    response.header_count = f.count;
    for (size_t i = 0; i < f.count; i++)
        NOTE(c, "%lld %s %s: %s", since_start(w->now), lies ? "lie" : "truth", f.items[i].name.data, f.text[i]);
    HOLDS(c, ration_engine_observe(w->client, ration_time_of(w->now), k->lease, &response) == RATION_OK);
    taught(c, w, &before, reset);
    (void)ration_engine_release(w->client, ration_time_of(w->now), k->lease, NULL);
    k->answers_at = NEVER;
    if (k->granted_at >= w->truth_at && w->sane_at == 0)
        w->sane_at = w->now;
}

/* At most this much may be held back of a true window. */
static int64_t slack(const world *w, int64_t from)
{
    int64_t flight = 0;

    for (int i = 0; i < w->count; i++) {
        int64_t beside = 0;

        for (int j = i; j >= 0 && w->calls[j].granted_at > w->calls[i].granted_at - ARRIVAL; j--)
            beside++;
        if (w->calls[i].granted_at >= from - MINUTE)
            flight = most(flight, beside);
    }
    return 2 * flight;
}

/* What was granted since `from`, after the lies, must be all but for the slack. */
static void is_used(choices *c, world *w, int64_t from)
{
    const int64_t supply = w->max - w->reserve;
    const int64_t used = granted_since(w, from);

    seen.offered += supply;
    seen.taken += least(used, supply);
    NOTE(c, "%lld used %d of %d", since_start(w->now), (int)used, (int)supply);
    HOLDS(c, used > supply - slack(w, from) - 1);
}

/* ---- time ---- */

static bool demand(choices *c, world *w)
{
    const int64_t left = truly_left(w);
    const ration_decision d = sole_ask(w->client, w->now, UNIT, NULL);
    const ration_counter_report r = look(c, w);

    w->demand_at = w->now + w->pace_us / 8 + (int64_t)choose(c, (uint64_t)(2 * w->pace_us));
    if (d.result != RATION_GRANTED) {
        /* A rolling window has no end: whenever it refuses, it must be used, and two buckets and a 24th more. */
        if (w->rolling && w->sane_at != 0 && w->now > w->sane_at + 2 * MINUTE)
            is_used(c, w, w->now - MINUTE * 65 / 60);
        return false;
    }
    w->calls[w->count++] = (call){d.lease, w->now, w->now + (int64_t)choose(c, (uint64_t)w->back_us), left - 1};
    w->granted++;
    NOTE(c, "%lld grant, %d since the begin", since_start(w->now), (int)w->granted);
    if (r.has_window) {
        HOLDS(c, w->granted <= w->max);
    } else {
        HOLDS(c, granted_since(w, w->now - MINUTE + 1) <= w->max);
    }
    return true;
}

/* The next thing that happens; false: not before `until`. */
static bool happens(choices *c, world *w, int64_t until)
{
    call *next = NULL;

    while (w->oldest < w->count && w->calls[w->oldest].answers_at == NEVER)
        w->oldest++;
    for (int i = w->oldest; i < w->count; i++) {
        if (w->calls[i].answers_at != NEVER && (next == NULL || w->calls[i].answers_at < next->answers_at))
            next = &w->calls[i];
    }
    w->now = least(least(w->demand_at, until), next != NULL ? next->answers_at : NEVER);
    if (w->now == until)
        return false;
    if (next != NULL && w->now == next->answers_at) {
        answer(c, w, next);
    } else {
        (void)demand(c, w);
    }
    return w->count < CALLS;
}

static void the_truth_is_used(choices *c, world *w)
{
    int64_t from = window_start(w, w->sane_at) + 3 * MINUTE;

    for (; from + MINUTE < START + (LIES + TRUTHS) * MINUTE; from += MINUTE) {
        while (happens(c, w, from + MINUTE)) {
        }
        if (!w->rolling)
            is_used(c, w, from);
    }
}

static void lies_do_no_harm(choices *c, void *context)
{
    world *w = calloc(1, sizeof *w);

    (void)context;
    if (w == NULL)
        abort();
    world_start(c, w);
    while (happens(c, w, w->truth_at)) {
    }
    while (w->sane_at == 0 && happens(c, w, w->truth_at + 2 * MINUTE + w->back_us + 3 * w->pace_us)) {
    }
    HOLDS(c, w->sane_at != 0);
    the_truth_is_used(c, w);
    world_end(w);
}

static void lies(void **state)
{
    (void)state;
    property_check("lies do no harm", lies_do_no_harm, NULL, 2000);
    print_message("# %" PRIu64 " lies: at most %d windows began in a minute, %d with resets that jump\n", seen.lies,
                  seen.begins, seen.jumped_begins);
    print_message("# afterwards %d %% of U - R were used\n", (int)(100 * seen.taken / most(seen.offered, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lies)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
