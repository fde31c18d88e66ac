/* SPDX-License-Identifier: MIT */
/*
 * Latency, errors, another client: each a function of the seed and of a number.
 *
 * Latency and errors go by the ordinal of the call, the other client by the count of its calls, which come evenly.
 * Nothing is remembered, so the same calls at the same times are answered alike.
 *
 * Units: microseconds since the start for instants.
 */
#include "simulate/behaviour.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "simulate/random.h"

#define LATENCY_MAX_US (INT64_C(3600) * 1000000)
#define RETRY_MIN_US 1000
#define RETRY_MAX_US (INT64_C(86400) * 1000000)
#define EXTERNAL_MAX_PER_SECOND 10000

__extension__ typedef unsigned __int128 wide;

int rn_latency_parse(ration_text text, rn_latency *out)
{
    static const char *const signs[] = {"\xc2\xb1", "+-"};
    rn_latency latency = {0};
    ration_text mean = text;
    ration_text spread = {0};

    for (size_t i = 0; i < 2; i++) {
        size_t at;

        if (!rn_text_find(text, ration_text_of(signs[i]), &at))
            continue;
        mean = rn_text_slice(text, 0, at);
        spread = rn_text_slice(text, at + 2, text.size);
        break;
    }

    int err = rn_parse_duration(mean, &latency.mean_us);
    if (err == 0 && mean.size < text.size)
        err = rn_parse_duration(spread, &latency.spread_us);
    if (err != 0)
        return err;
    if (latency.mean_us > LATENCY_MAX_US || latency.spread_us > latency.mean_us)
        return RATION_ERR_RANGE;
    *out = latency;
    return 0;
}

int rn_external_parse(ration_text text, ration_rate *out)
{
    ration_rate rate;
    const int err = rn_parse_rate(text, &rate);

    if (err != 0)
        return err;
    if (rate.units / EXTERNAL_MAX_PER_SECOND > rate.per_us)
        return RATION_ERR_RANGE;
    *out = rate;
    return 0;
}

int rn_retry_parse(ration_text text, int64_t *out)
{
    int64_t retry_us;
    const int err = rn_parse_duration(text, &retry_us);

    if (err != 0)
        return err;
    if (retry_us < RETRY_MIN_US || retry_us > RETRY_MAX_US)
        return RATION_ERR_RANGE;
    *out = retry_us;
    return 0;
}

int rn_seed_parse(ration_text text, uint64_t *out)
{
    int64_t seed;
    const int err = rn_parse_int(text, &seed);

    if (err != 0)
        return err;
    if (seed < 0)
        return RATION_ERR_RANGE;
    *out = (uint64_t)seed;
    return 0;
}

int64_t rn_behaviour_latency(const rn_behaviour *behaviour, uint64_t ordinal)
{
    const rn_latency *latency = &behaviour->latency;

    return rn_random_between(behaviour->seed, RN_STREAM_LATENCY, ordinal, latency->mean_us - latency->spread_us,
                             latency->mean_us + latency->spread_us);
}

bool rn_behaviour_fails(const rn_behaviour *behaviour, uint64_t ordinal, uint64_t count, uint64_t *status_index)
{
    const ration_ratio errors = behaviour->errors;

    if (errors.den == 0 || count == 0 ||
        rn_random_between(behaviour->seed, RN_STREAM_ERROR, ordinal, 1, errors.den) > errors.num)
        return false;
    *status_index = rn_random(behaviour->seed, RN_STREAM_ERROR_STATUS, ordinal) % count;
    return true;
}

int64_t rn_behaviour_external_at(const rn_behaviour *behaviour, int64_t ordinal)
{
    const ration_rate rate = behaviour->external;

    if (rate.units <= 0)
        return RATION_NEVER_US;

    /* ceil(ordinal * UNIT * per_us / units) */
    const wide whole =
        ((wide)rn_mul(ordinal, RATION_UNIT) * (uint64_t)rate.per_us + (uint64_t)rate.units - 1) / (uint64_t)rate.units;

    return whole < RATION_NEVER_US ? (int64_t)whole : RATION_NEVER_US;
}
