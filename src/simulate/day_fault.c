/* SPDX-License-Identifier: MIT */
/*
 * What goes wrong in a simulated day, and when: drawn from the seed before the day begins.
 *
 * Each kind has so many episodes in 24 hours, at least one in any span, each somewhere in its own equal part of it, so
 * that none overlaps another of its kind. Kinds know nothing of each other: a kill may well fall into a storm.
 */
#include "simulate/day_parts.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"
#include "simulate/random.h"

#define DAY_US (INT64_C(86400) * 1000000)
#define SLOWER 20
#define STEP_MIN_US INT64_C(3000000)
#define STEP_MAX_US INT64_C(60000000)
#define KIND_MAX 400 /* episodes of one kind */

typedef struct rn_day_turn {
    rn_day_event event;
    size_t episode;
    bool ends;
} turn;

static const struct {
    rn_day_fault kind;
    const char *name;
    int64_t daily;
    int64_t shortest_us, longest_us; /* 0: at an instant */
} kinds[RN_DAY_FAULTS] = {
    {RN_DAY_LATENCY, "latency", 6, 120 * INT64_C(1000000), 600 * INT64_C(1000000)},
    {RN_DAY_ERRORS, "errors", 4, 60 * INT64_C(1000000), 600 * INT64_C(1000000)},
    {RN_DAY_CLOCK, "clock", 6, 600 * INT64_C(1000000), 3600 * INT64_C(1000000)},
    {RN_DAY_RESTART, "restart", 3, 0, 0},
    {RN_DAY_KILL, "kill", 6, 0, 0},
    {RN_DAY_EXTERNAL, "external", 0, 0, 0},
};

const char *rn_day_fault_name(rn_day_fault fault)
{
    for (size_t i = 0; i < RN_DAY_FAULTS; i++) {
        if (kinds[i].kind == fault)
            return kinds[i].name;
    }
    return "";
}

static int name_parse(ration_text name, unsigned *faults)
{
    if (rn_text_is(name, "all")) {
        *faults |= RN_DAY_ALL;
        return 0;
    }
    for (size_t i = 0; i < RN_DAY_FAULTS; i++) {
        if (rn_text_is(name, kinds[i].name)) {
            *faults |= (unsigned)kinds[i].kind;
            return 0;
        }
    }
    return rn_text_is(name, "none") ? 0 : RATION_ERR_SYNTAX;
}

int rn_day_faults_parse(ration_text text, unsigned *faults)
{
    unsigned found = *faults;
    size_t from = 0;

    for (size_t i = 0; i <= text.size; i++) {
        if (i < text.size && text.data[i] != ',')
            continue;
        const int err = name_parse(rn_text_slice(text, from, i), &found);
        if (err != 0)
            return err;
        from = i + 1;
    }
    *faults = found;
    return 0;
}

/* ---- turns */

static int on_turn(rn_day *day, rn_day_event *event)
{
    const turn *t = (const turn *)(void *)event;
    const rn_day_episode *episode = &day->result.episodes[t->episode];

    switch (episode->kind) {
    case RN_DAY_LATENCY:
        day->latency_times = t->ends ? 1 : SLOWER;
        break;
    case RN_DAY_ERRORS:
        day->error_storms += t->ends ? -1 : 1;
        break;
    case RN_DAY_CLOCK:
        day->wall_off_us = t->ends ? 0 : episode->by_us;
        (void)rn_day_clock(day); /* the loop of a gateway notices within 10 ms */
        break;
    case RN_DAY_RESTART:
        return rn_day_gateway_stop(day);
    case RN_DAY_KILL:
        return rn_day_gateway_kill(day);
    case RN_DAY_EXTERNAL:
        break;
    }
    return 0;
}

static int64_t draw(const rn_day *day, rn_day_fault kind, uint64_t index, int64_t low, int64_t high)
{
    return rn_random_between(day->options->behaviour.seed, RN_STREAM_FAULT, (uint64_t)kind << 24 | index, low, high);
}

static void episode_draw(const rn_day *day, size_t kind, int64_t number, int64_t count, rn_day_episode *out)
{
    const int64_t part_us = day->options->span_us / count;
    const uint64_t index = 4 * (uint64_t)number;
    const rn_day_fault fault = kinds[kind].kind;
    const int64_t drawn_us = draw(day, fault, index, kinds[kind].shortest_us, kinds[kind].longest_us);
    const int64_t length_us = rn_min(drawn_us, part_us / 2);
    const int64_t from_us = part_us * number + draw(day, fault, index + 1, 0, part_us - length_us - 1);
    const int64_t step_us = draw(day, fault, index + 2, STEP_MIN_US, STEP_MAX_US);

    *out = (rn_day_episode){.kind = fault, .from_us = from_us, .to_us = from_us + length_us};
    if (fault == RN_DAY_CLOCK)
        out->by_us = draw(day, fault, index + 3, 0, 1) != 0 ? step_us : -step_us;
}

static int64_t count_of(const rn_day *day, size_t kind)
{
    if ((day->options->faults & (unsigned)kinds[kind].kind) == 0 || kinds[kind].daily == 0)
        return 0;
    return rn_min(rn_max(rn_mul(day->options->span_us, kinds[kind].daily) / DAY_US, 1), KIND_MAX);
}

static int turns_schedule(rn_day *day)
{
    const size_t count = day->result.episode_count;

    day->turns = rn_arena_zalloc(&day->arena, 2 * count, sizeof *day->turns);
    if (day->turns == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < 2 * count; i++) {
        turn *t = &day->turns[i];
        const rn_day_episode *episode = &day->result.episodes[i / 2];

        rn_heap_node_init(&t->event.node);
        t->event.fire = on_turn;
        t->episode = i / 2;
        t->ends = i % 2 != 0;
        if (t->ends && episode->to_us == episode->from_us)
            continue;
        const int err = rn_day_at(day, &t->event, rn_time_add(day->start, t->ends ? episode->to_us : episode->from_us));
        if (err != 0)
            return err;
    }
    return 0;
}

int rn_day_faults_init(rn_day *day)
{
    int64_t all = 0;

    for (size_t kind = 0; kind < RN_DAY_FAULTS; kind++)
        all += count_of(day, kind);
    day->result.episodes = rn_mem_zalloc(rn_mem_default(), (size_t)all, sizeof *day->result.episodes);
    if (day->result.episodes == NULL)
        return RATION_ERR_NOMEM;
    for (size_t kind = 0; kind < RN_DAY_FAULTS; kind++) {
        const int64_t count = count_of(day, kind);

        for (int64_t i = 0; i < count; i++)
            episode_draw(day, kind, i, count, &day->result.episodes[day->result.episode_count++]);
    }
    return turns_schedule(day);
}
