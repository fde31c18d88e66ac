/* SPDX-License-Identifier: MIT */
/*
 * A hidden ceiling as a triangle wave in whole calls.
 *
 * With n = high - low, a period is cut into 2n steps of equal length: low, low + 1, ..., high, high - 1, ..., low + 1.
 * Step k begins at ceil(k * period / 2n), so that the step at an instant is floor(instant * 2n / period), exactly. The
 * wave begins at `low` with the simulator and owes nothing to chance: whoever compares two runs compares them under
 * the same ceiling, whatever their seeds.
 *
 * The meter walks from step to step; between two of them nothing changes. What is longer than a period is walked once
 * and multiplied.
 *
 * Invariants: used + over = the calls' own integral; used <= ceiling_us.
 */
#include "simulate/capacity.h"

#include "base/text.h"
#include "base/units.h"

#define CALLS_MAX 1000000
#define STEP_MIN_US 1000
#define PERIOD_MAX_US (INT64_C(7) * 24 * 3600 * 1000000)

/* "20..40/60s" */
static int range_parse(ration_text text, size_t dots, rn_capacity *out)
{
    size_t slash;

    if (!rn_text_find(text, ration_text_of("/"), &slash) || slash < dots)
        return RATION_ERR_SYNTAX;

    int err = rn_parse_int(rn_text_slice(text, 0, dots), &out->low);
    if (err == 0)
        err = rn_parse_int(rn_text_slice(text, dots + 2, slash), &out->high);
    if (err == 0)
        err = rn_parse_duration(rn_text_slice(text, slash + 1, text.size), &out->period_us);
    return err;
}

static int64_t steps_of(const rn_capacity *capacity)
{
    return 2 * (capacity->high - capacity->low);
}

int rn_capacity_parse(ration_text text, rn_capacity *out)
{
    rn_capacity capacity = {0};
    size_t dots;
    int err;

    const bool moves = rn_text_find(text, ration_text_of(".."), &dots);
    if (moves) {
        err = range_parse(text, dots, &capacity);
    } else {
        err = rn_parse_int(text, &capacity.low);
        capacity.high = capacity.low;
    }
    if (err != 0)
        return err;
    if (capacity.low < 1 || capacity.high < capacity.low || capacity.high > CALLS_MAX)
        return RATION_ERR_RANGE;
    if (moves &&
        (capacity.period_us < rn_max(steps_of(&capacity), 1) * STEP_MIN_US || capacity.period_us > PERIOD_MAX_US))
        return RATION_ERR_RANGE;
    *out = capacity;
    return 0;
}

static bool stays(const rn_capacity *capacity)
{
    return capacity->low == capacity->high;
}

/* Products stay below 2^62: at most 7 days in microseconds times two million steps. */
static int64_t step_at(const rn_capacity *capacity, int64_t since_us)
{
    return since_us % capacity->period_us * steps_of(capacity) / capacity->period_us;
}

int64_t rn_capacity_at(const rn_capacity *capacity, int64_t since_us)
{
    if (capacity->low == 0)
        return INT64_MAX;
    if (stays(capacity))
        return capacity->low;

    const int64_t step = step_at(capacity, since_us);
    const int64_t top = capacity->high - capacity->low;
    return step <= top ? capacity->low + step : capacity->high - (step - top);
}

int64_t rn_capacity_moves_at(const rn_capacity *capacity, int64_t since_us)
{
    if (stays(capacity))
        return INT64_MAX;

    const int64_t begin = since_us - since_us % capacity->period_us;
    const int64_t next = (step_at(capacity, since_us) + 1) * capacity->period_us;
    return rn_add(begin, rn_div_ceil(next, steps_of(capacity)));
}

void rn_capacity_meter_init(rn_capacity_meter *meter, const rn_capacity *capacity)
{
    *meter = (rn_capacity_meter){.capacity = capacity};
}

static void meter_add(rn_capacity_meter *meter, const rn_capacity_meter *sums, int64_t times)
{
    meter->above_us = rn_add(meter->above_us, rn_mul(sums->above_us, times));
    meter->ceiling_us = rn_add(meter->ceiling_us, rn_mul(sums->ceiling_us, times));
    meter->used_us = rn_add(meter->used_us, rn_mul(sums->used_us, times));
    meter->over_us = rn_add(meter->over_us, rn_mul(sums->over_us, times));
}

/* Step by step, up to `until_us`. */
static void meter_walk(rn_capacity_meter *meter, int64_t until_us)
{
    while (meter->at_us < until_us) {
        const int64_t ceiling = rn_capacity_at(meter->capacity, meter->at_us);
        const int64_t end_us = rn_min(rn_capacity_moves_at(meter->capacity, meter->at_us), until_us);
        const int64_t span_us = end_us - meter->at_us;
        const rn_capacity_meter sums = {
            .above_us = meter->calls > ceiling ? span_us : 0,
            .ceiling_us = rn_mul(ceiling, span_us),
            .used_us = rn_mul(rn_min(meter->calls, ceiling), span_us),
            .over_us = rn_mul(rn_max(meter->calls - ceiling, 0), span_us),
        };

        meter_add(meter, &sums, 1);
        meter->at_us = end_us;
    }
}

void rn_capacity_meter_set(rn_capacity_meter *meter, int64_t since_us, int64_t calls)
{
    const int64_t period_us = meter->capacity->period_us;
    const int64_t periods = period_us > 0 && !stays(meter->capacity) ? (since_us - meter->at_us) / period_us : 0;

    if (periods > 1) {
        rn_capacity_meter one = {.capacity = meter->capacity, .at_us = meter->at_us, .calls = meter->calls};

        meter_walk(&one, meter->at_us + period_us);
        meter_add(meter, &one, periods);
        meter->at_us += periods * period_us;
    }
    meter_walk(meter, since_us);
    meter->calls = calls;
}
