/* SPDX-License-Identifier: MIT */
/*
 * The only reader of a clock.
 *
 * CLOCK_BOOTTIME never steps and counts while the machine sleeps, so limits that refill by it cannot be fooled. But
 * calendar windows and the instants that providers name are wall time. Ours is boot time plus an offset, and the offset
 * follows the wall clock by a rule: far ahead is a step and is taken at once; behind is worked off by running slower,
 * so that nothing that was in the past is in the future again.
 *
 * The wall clock is looked at every 10 ms only. Two readings are one sample only if nothing came between them: a thread
 * that was put aside between the two would see a step that never was.
 *
 * Invariants: `now` never falls; between two samples ours advances by at least 99 % of what boot time did, and by at
 * most 100.05 %, but for counted steps forward.
 */

#include "net/clock.h"

#include <string.h>
#include <time.h>

#include <uv.h>

#define STEP_US INT64_C(2000000)     /* this far ahead is followed at once */
#define NOTED_US INT64_C(100000)     /* a fall of the wall clock by this much is counted */
#define SLOWER INT64_C(100)          /* 1 % */
#define FASTER INT64_C(2000)         /* 0.05 % */
#define LOOK_EVERY_US INT64_C(10000) /* at the wall clock */
#define APART_US INT64_C(200)        /* two readings further apart are no sample */
#define TRIES 4

static int64_t clamp(int64_t us)
{
    if (us < 0)
        return 0;
    return us > RATION_TIME_MAX_US ? RATION_TIME_MAX_US : us;
}

void rn_clock_init(rn_clock *clock, int64_t boot_us, int64_t wall_us)
{
    memset(clock, 0, sizeof *clock);
    clock->boot_us = clock->looked_us = clamp(boot_us);
    clock->offset_us = clamp(wall_us) - clock->boot_us;
    clock->now.us = clamp(wall_us);
}

/* How much of `distance` may be worked off: one part in `parts` of the time that has passed. */
static int64_t clock_work_off(rn_clock *clock, int64_t distance, int64_t parts)
{
    const int64_t allowed = clock->credit_us / parts;
    const int64_t done = distance < allowed ? distance : allowed;

    clock->credit_us -= done * parts;
    return done;
}

ration_time rn_clock_follow(rn_clock *clock, int64_t boot_us, int64_t wall_us)
{
    const int64_t boot = boot_us > clock->boot_us ? clamp(boot_us) : clock->boot_us;
    int64_t behind = clamp(wall_us) - (boot + clock->offset_us);

    if (behind < clock->behind_us - NOTED_US && behind < 0)
        clock->steps_backward++;
    clock->credit_us += boot - clock->boot_us;
    clock->boot_us = boot;
    if (behind > STEP_US) {
        clock->steps_forward++;
        clock->stepped_us += behind;
        clock->offset_us += behind;
        behind = 0;
    } else if (behind > 0) {
        const int64_t done = clock_work_off(clock, behind, FASTER);

        clock->offset_us += done;
        behind -= done;
    } else if (behind < 0) {
        const int64_t done = clock_work_off(clock, -behind, SLOWER);

        clock->offset_us -= done;
        behind += done;
    }
    if (behind == 0)
        clock->credit_us = 0;
    clock->behind_us = behind;

    const int64_t ours = clamp(boot + clock->offset_us);
    if (ours > clock->now.us)
        clock->now.us = ours;
    return clock->now;
}

static int64_t read_us(clockid_t id)
{
    struct timespec at = {0, 0};

    (void)clock_gettime(id, &at);
    return (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000;
}

/* Both clocks at one instant; false if the machine never gave us the two readings together. */
static bool read_both(int64_t *boot_us, int64_t *wall_us)
{
    for (int i = 0; i < TRIES; i++) {
        *boot_us = read_us(CLOCK_BOOTTIME);
        *wall_us = read_us(CLOCK_REALTIME);
        if (read_us(CLOCK_BOOTTIME) - *boot_us <= APART_US)
            return true;
    }
    return false;
}

void rn_clock_start(rn_clock *clock)
{
    int64_t boot_us = 0;
    int64_t wall_us = 0;

    (void)read_both(&boot_us, &wall_us); /* at the start a late reading is no step */
    rn_clock_init(clock, boot_us, wall_us);
}

ration_time rn_clock_now(rn_clock *clock)
{
    int64_t boot_us = read_us(CLOCK_BOOTTIME);
    int64_t wall_us = 0;

    if (boot_us - clock->looked_us >= LOOK_EVERY_US && read_both(&boot_us, &wall_us)) {
        clock->looked_us = boot_us;
        return rn_clock_follow(clock, boot_us, wall_us);
    }
    /* Not looked: the wall clock is taken to be as far away as it was. */
    return rn_clock_follow(clock, boot_us, boot_us + clock->offset_us + clock->behind_us);
}

int64_t rn_clock_ticks(void)
{
    return read_us(CLOCK_MONOTONIC);
}

uint64_t rn_clock_turn_age_ms(const uv_loop_t *loop)
{
    const uint64_t now_ms = (uint64_t)rn_clock_ticks() / 1000;
    const uint64_t turn_ms = uv_now(loop);

    return now_ms > turn_ms ? now_ms - turn_ms : 0;
}
