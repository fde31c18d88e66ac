/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_CLOCK_H
#define RN_NET_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/types.h>

struct uv_loop_s;

/*
 * The one clock of the process: CLOCK_BOOTTIME anchored to the wall clock at start (specification, chapter 7).
 *
 * A wall step forward of more than 2 s is followed at once. A step backward is followed by running at most 1 % slower
 * until both agree; a forward difference of up to 2 s by running at most 0.05 % faster. Instants never run back.
 */
typedef struct rn_clock {
    int64_t offset_us;       /* ours = boot + offset */
    int64_t boot_us;         /* the last sample of CLOCK_BOOTTIME */
    int64_t behind_us;       /* wall - ours after the last sample: what is still to be followed */
    int64_t credit_us;       /* time that has passed and was not yet used for following */
    int64_t looked_us;       /* when, by CLOCK_BOOTTIME, the wall clock was last looked at */
    ration_time now;         /* the last instant given out */
    uint64_t steps_forward;  /* wall steps followed at once */
    int64_t stepped_us;      /* all of them together */
    uint64_t steps_backward; /* wall steps followed by running slower */
} rn_clock;

/** Anchor the clock to a first pair of samples. A wall clock before 1970 or beyond RATION_TIME_MAX_US is clamped. */
void rn_clock_init(rn_clock *clock, int64_t boot_us, int64_t wall_us);

/**
 * The rule, as a pure function of samples: the instant that belongs to `boot_us` when the wall clock shows `wall_us`.
 *
 * Time  A `boot_us` before one already seen counts as the latter. The result never falls.
 */
ration_time rn_clock_follow(rn_clock *clock, int64_t boot_us, int64_t wall_us);

/** Anchor to the system's clocks. */
void rn_clock_start(rn_clock *clock);

/** Read the system's clocks and apply the rule. Cost: one vDSO call, a second one at most every 10 ms. */
ration_time rn_clock_now(rn_clock *clock);

/** Microseconds of a clock that never steps, to tell how long something took. On any thread. */
int64_t rn_clock_ticks(void);

/** How many milliseconds ago this turn of a loop began, from where libuv counts what a timer is to wait. */
uint64_t rn_clock_turn_age_ms(const struct uv_loop_s *loop);

#endif
