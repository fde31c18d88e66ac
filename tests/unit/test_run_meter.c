/* SPDX-License-Identifier: MIT */
/* Runs told apart by their requests alone: steps of one meter, with the times at which a run begins or ends. */
#include "serve/run_meter.h"

#include "support/check.h"

#define SECOND INT64_C(1000000)

/* Wanted every 40 s and stretched to 60 s: 10 s of quiet end a run, a minute at the latest. */
static const int64_t interval_us = 40 * SECOND, effective_us = 60 * SECOND;

typedef enum what {
    STOP = 0,
    COME,  /* arrives, and is sent at once */
    AGAIN, /* the same, a retry */
    WAIT,  /* arrives */
    SENT,  /* what waits is sent */
    GO,    /* leaves, having been sent */
    LOSE,  /* leaves unsent */
    LOOK,  /* is it over? */
    DROP,
} what;

typedef struct step {
    const char *why;
    what what;
    int64_t at_s;
    bool begins;
    rn_run_end ended;
    int64_t requests, retries, begun_s; /* of the run that has ended whole */
} step;

static void step_take(rn_run_meter *meter, const step *s)
{
    const rn_run_pace pace = rn_run_pace_of(interval_us, effective_us);
    const ration_time now = {s->at_s * SECOND};
    rn_run_told told = {.end = RN_RUN_NONE};
    bool begins = false;

    CHECK_ROW(s->why);
    switch (s->what) {
    case COME:
    case AGAIN:
    case WAIT:
        begins = rn_run_arrive(meter, now, pace, &told);
        if (s->what != WAIT)
            rn_run_sent(meter, s->what == AGAIN);
        break;
    case SENT:
        rn_run_sent(meter, false);
        break;
    case GO:
    case LOSE:
        rn_run_leave(meter, now, s->what == GO);
        break;
    case LOOK:
        told = rn_run_over(meter, now, pace);
        break;
    case DROP:
        rn_run_drop(meter);
        break;
    case STOP:
        break;
    }
    CHECK_EQ(begins, s->begins);
    CHECK_EQ(told.end, s->ended);
    if (told.end == RN_RUN_WHOLE) {
        CHECK_EQ(told.run.requests, s->requests);
        CHECK_EQ(told.run.retries, s->retries);
        CHECK_EQ(told.begun.us, s->begun_s * SECOND);
    }
    CHECK(meter->under_way >= 0);
}

static void steps_take(const step *steps)
{
    rn_run_meter meter = {0};

    for (; steps->what != STOP; steps++)
        step_take(&meter, steps);
}

static void test_a_pause_ends_a_run(void **state)
{
    static const step steps[] = {
        {"nothing has come", LOOK, 0, false, RN_RUN_NONE, 0, 0, 0},
        {"the first request begins a run", COME, 1, true, RN_RUN_NONE, 0, 0, 0},
        {"it is under way, however long", LOOK, 50, false, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 50, false, RN_RUN_NONE, 0, 0, 0},
        {"a retry is told apart", AGAIN, 51, false, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 52, false, RN_RUN_NONE, 0, 0, 0},
        {"one within the pause is of it", COME, 53, false, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 53, false, RN_RUN_NONE, 0, 0, 0},
        {"a moment before a quarter of the interval", LOOK, 62, false, RN_RUN_NONE, 0, 0, 0},
        {"a quarter of it", LOOK, 63, false, RN_RUN_WHOLE, 2, 1, 1},
        {"once", LOOK, 64, false, RN_RUN_NONE, 0, 0, 0},
        {"the next one counts anew", COME, 70, true, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 71, false, RN_RUN_NONE, 0, 0, 0},
        {"nobody looked: the next request ends it", COME, 81, true, RN_RUN_WHOLE, 1, 0, 70},
        {NULL, STOP, 0, false, RN_RUN_NONE, 0, 0, 0},
    };
    (void)state;
    steps_take(steps);
}

static void test_an_interval_ends_a_run(void **state)
{
    static const step steps[] = {
        {"a run without a pause", COME, 0, true, RN_RUN_NONE, 0, 0, 0},
        {"", COME, 59, false, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 59, false, RN_RUN_NONE, 0, 0, 0},
        {"the plan says that this is the next one", COME, 60, true, RN_RUN_WHOLE, 2, 0, 0},
        {"what is under way still is of the one before", GO, 61, false, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 62, false, RN_RUN_NONE, 0, 0, 0},
        {"so the pause is counted from the last of both", LOOK, 71, false, RN_RUN_NONE, 0, 0, 0},
        {"", LOOK, 72, false, RN_RUN_WHOLE, 1, 0, 60},
        {NULL, STOP, 0, false, RN_RUN_NONE, 0, 0, 0},
    };
    (void)state;
    steps_take(steps);
}

static void test_what_is_not_learned(void **state)
{
    static const step steps[] = {
        {"one of two requests is refused", COME, 0, true, RN_RUN_NONE, 0, 0, 0},
        {"", WAIT, 1, false, RN_RUN_NONE, 0, 0, 0},
        {"", LOSE, 2, false, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 3, false, RN_RUN_NONE, 0, 0, 0},
        {"so the run was not whole", LOOK, 13, false, RN_RUN_CUT, 0, 0, 0},
        {"what waits long keeps a run open", WAIT, 20, true, RN_RUN_NONE, 0, 0, 0},
        {"", LOOK, 70, false, RN_RUN_NONE, 0, 0, 0},
        {"", SENT, 70, false, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 71, false, RN_RUN_NONE, 0, 0, 0},
        {"the cut of the one before is forgotten", LOOK, 81, false, RN_RUN_WHOLE, 1, 0, 20},
        {"a retry alone is no run", AGAIN, 90, true, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 90, false, RN_RUN_NONE, 0, 0, 0},
        {"", LOOK, 100, false, RN_RUN_CUT, 0, 0, 0},
        {"one that is told of otherwise ends unseen", COME, 110, true, RN_RUN_NONE, 0, 0, 0},
        {"", WAIT, 110, false, RN_RUN_NONE, 0, 0, 0},
        {"", DROP, 111, false, RN_RUN_NONE, 0, 0, 0},
        {"and what of it is sent later counts nowhere", SENT, 112, false, RN_RUN_NONE, 0, 0, 0},
        {"", LOSE, 112, false, RN_RUN_NONE, 0, 0, 0},
        {"nor does it cut what comes next", COME, 113, true, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 114, false, RN_RUN_NONE, 0, 0, 0},
        {"", GO, 115, false, RN_RUN_NONE, 0, 0, 0},
        {"", LOOK, 125, false, RN_RUN_WHOLE, 1, 0, 113},
        {NULL, STOP, 0, false, RN_RUN_NONE, 0, 0, 0},
    };
    (void)state;
    steps_take(steps);
}

static void test_paces(void **state)
{
    static const struct {
        const char *why;
        int64_t interval_us, effective_us, quiet_us, longest_us;
    } rows[] = {
        {"stretched", 40, 60, 10, 60},
        {"as desired", 40, 40, 10, 40},
        {"a quarter rounds down", 43, 43, 10, 43},
        {"but not to nothing", 3, 3, 1, 3},
        {"not planned yet", 40, 0, 10, 40},
    };
    (void)state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const rn_run_pace pace = rn_run_pace_of(rows[i].interval_us, rows[i].effective_us);

        CHECK_ROW(rows[i].why);
        CHECK_EQ(pace.quiet_us, rows[i].quiet_us);
        CHECK_EQ(pace.longest_us, rows[i].longest_us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pause_ends_a_run),
        cmocka_unit_test(test_an_interval_ends_a_run),
        cmocka_unit_test(test_what_is_not_learned),
        cmocka_unit_test(test_paces),
    };

    return cmocka_run_group_tests_name("run_meter", tests, NULL, NULL);
}
