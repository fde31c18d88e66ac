/* SPDX-License-Identifier: MIT */
/* Order of timers and deferred work, and that the loop ends when nothing is left. Waits of a few milliseconds at most.
 * */

#include "support/check.h"

#include <signal.h>

#include "net/loop.h"

typedef struct log {
    rn_loop *loop;
    char text[64];
    size_t used;
    rn_timer a;
    rn_timer b;
    rn_timer c;
    rn_deferred work;
    rn_deferred other;
    ration_time at;
} log;

static void say(log *l, char c)
{
    if (l->used + 1 < sizeof l->text)
        l->text[l->used++] = c;
    l->text[l->used] = '\0';
}

static log *setup(log *l)
{
    memset(l, 0, sizeof *l);
    CHECK_EQ(rn_loop_new(&l->loop), RATION_OK);
    return l;
}

static void say_a(void *user, ration_time now)
{
    log *l = user;

    CHECK(now.us >= l->at.us);
    say(l, 'a');
}

static void say_b(void *user, ration_time now)
{
    (void)now;
    say(user, 'b');
}

static void stop_b(void *user, ration_time now)
{
    log *l = user;

    (void)now;
    say(l, 'c');
    rn_timer_stop(&l->b);
}

static void timers_fire_in_order(void **state)
{
    log l;

    (void)state;
    (void)setup(&l);
    rn_timer_init(&l.a, l.loop, say_a, &l);
    rn_timer_init(&l.b, l.loop, say_b, &l);
    rn_timer_init(&l.c, l.loop, say_b, &l);
    const ration_time now = rn_loop_now(l.loop);
    l.at = (ration_time){now.us + 1500};
    CHECK_EQ(rn_timer_set(&l.a, (ration_time){now.us + 900}), RATION_OK);
    CHECK_EQ(rn_timer_set(&l.b, (ration_time){now.us - 5}), RATION_OK);
    CHECK_EQ(rn_timer_set(&l.c, (ration_time){now.us + 100}), RATION_OK);
    CHECK_EQ(rn_timer_set(&l.a, l.at), RATION_OK); /* moved */
    CHECK_EQ(rn_timer_set(&l.c, (ration_time){RATION_NEVER_US}), RATION_OK);
    CHECK(!rn_timer_is_set(&l.c));
    rn_loop_run(l.loop);
    CHECK_STR(l.text, "ba");
    CHECK(!rn_timer_is_set(&l.a));
    rn_loop_free(l.loop);
}

static void a_stopped_timer_is_silent(void **state)
{
    log l;

    (void)state;
    (void)setup(&l);
    rn_timer_init(&l.b, l.loop, say_b, &l);
    rn_timer_init(&l.c, l.loop, stop_b, &l);
    const ration_time now = rn_loop_now(l.loop);
    CHECK_EQ(rn_timer_set(&l.c, now), RATION_OK);
    CHECK_EQ(rn_timer_set(&l.b, now), RATION_OK);
    rn_loop_run(l.loop);
    CHECK_STR(l.text, "c");
    rn_loop_free(l.loop);
}

static void again_a(void *user, ration_time now)
{
    log *l = user;

    say(l, 'a');
    if (l->used < 3)
        CHECK_EQ(rn_timer_set(&l->a, now), RATION_OK);
}

static void a_timer_may_set_itself(void **state)
{
    log l;

    (void)state;
    (void)setup(&l);
    rn_timer_init(&l.a, l.loop, again_a, &l);
    CHECK_EQ(rn_timer_set(&l.a, rn_loop_now(l.loop)), RATION_OK);
    rn_loop_run(l.loop);
    CHECK_STR(l.text, "aaa");
    rn_loop_free(l.loop);
}

#define LOG_OF(w, member) ((log *)(void *)((char *)(w)-offsetof(log, member)))

static void other_runs(rn_deferred *w)
{
    say(LOG_OF(w, other), 'o');
}

static void work_runs(rn_deferred *w)
{
    log *l = LOG_OF(w, work);

    say(l, 'w');
    rn_loop_defer(l->loop, &l->other);
    if (l->used < 4)
        rn_loop_defer_next(l->loop, &l->work);
}

static void deferred_work_runs_once_a_turn(void **state)
{
    log l;

    (void)state;
    (void)setup(&l);
    l.work.fn = work_runs;
    l.other.fn = other_runs;
    rn_loop_defer(l.loop, &l.work);
    rn_loop_defer(l.loop, &l.work);
    rn_loop_run(l.loop);
    CHECK_STR(l.text, "wowowo");
    rn_loop_defer(l.loop, &l.work);
    rn_loop_defer_next(l.loop, &l.other);
    rn_loop_forget(l.loop, &l.work);
    rn_loop_forget(l.loop, &l.other);
    rn_loop_run(l.loop);
    CHECK_STR(l.text, "wowowo");
    rn_loop_free(l.loop);
}

static void stop_loop(void *user, int signum)
{
    log *l = user;

    CHECK_EQ(signum, SIGUSR1);
    say(l, 's');
    rn_timer_stop(&l->a);
    rn_loop_stop(l->loop);
}

static void signals_arrive(void **state)
{
    log l;
    rn_signal *sig;

    (void)state;
    (void)setup(&l);
    CHECK_EQ(rn_signal_new(l.loop, SIGUSR1, stop_loop, &l, &sig), RATION_OK);
    /* It keeps the loop waiting, and bounds the wait. */
    rn_timer_init(&l.a, l.loop, say_a, &l);
    CHECK_EQ(rn_timer_set(&l.a, (ration_time){rn_loop_now(l.loop).us + 10000000}), RATION_OK);
    (void)raise(SIGUSR1);
    rn_loop_run(l.loop);
    CHECK_STR(l.text, "s");
    rn_signal_free(sig);
    rn_loop_free(l.loop);
}

static void an_empty_loop_ends(void **state)
{
    log l;

    (void)state;
    (void)setup(&l);
    rn_loop_run(l.loop);
    CHECK_EQ(rn_loop_clock(l.loop)->steps_backward, 0);
    CHECK(rn_process_prepare() > 64);
    rn_loop_free(l.loop);
    rn_loop_free(NULL);
}

/* As when the last of what drains ends in the turn after which the loop was stopped already. */
static void a_stop_after_the_last_turn(void **state)
{
    rn_loop *loop = NULL;

    (void)state;
    assert_int_equal(rn_loop_new(&loop), RATION_OK);
    rn_loop_stop(loop);
    rn_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order),
        cmocka_unit_test(a_stopped_timer_is_silent),
        cmocka_unit_test(a_timer_may_set_itself),
        cmocka_unit_test(deferred_work_runs_once_a_turn),
        cmocka_unit_test(signals_arrive),
        cmocka_unit_test(an_empty_loop_ends),
        cmocka_unit_test(a_stop_after_the_last_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
