/* SPDX-License-Identifier: MIT */
/*
 * A schedule of calls, the same for the same seed.
 *
 * A stream of n bursts cuts the span into n equal parts and puts one burst at a drawn instant of each, so that the
 * load is uneven but no seed leaves a stream out for long. The calls of a burst leave at one instant.
 *
 * Invariant: calls are sorted by time, then stream, then number, whatever the sort of the C library does with ties.
 */
#include "simulate/schedule.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/units.h"
#include "simulate/random.h"

#define SPAN_MIN_US 1000000

static int call_compare(const void *left, const void *right)
{
    const rn_scheduled_call *a = left;
    const rn_scheduled_call *b = right;

    if (a->at_us != b->at_us)
        return a->at_us < b->at_us ? -1 : 1;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static void stream_draw(rn_scheduled_call *calls, const rn_stream_spec *stream, uint64_t index, int64_t span_us,
                        uint64_t seed)
{
    const int64_t bursts = rn_div_ceil(stream->calls, stream->burst);

    for (uint32_t i = 0; i < stream->calls; i++) {
        const int64_t part = i / stream->burst;
        const int64_t from = span_us / bursts * part;
        const uint64_t draw = (index << 32) | (uint64_t)part;

        calls[i] = (rn_scheduled_call){
            .at_us = rn_random_between(seed, RN_STREAM_ARRIVAL, draw, from, from + span_us / bursts - 1),
            .stream = stream,
            .number = i,
        };
    }
}

int rn_schedule_init(rn_schedule *schedule, const ration_allocator *mem, const rn_stream_spec *streams,
                     size_t stream_count, int64_t span_us, uint64_t seed)
{
    size_t count = 0;

    if (span_us < SPAN_MIN_US)
        return RATION_ERR_INVALID;
    for (size_t i = 0; i < stream_count; i++) {
        if (streams[i].calls == 0 || streams[i].burst == 0)
            return RATION_ERR_INVALID;
        count += streams[i].calls;
    }

    rn_scheduled_call *calls = rn_mem_zalloc(mem, count, sizeof *calls);
    if (calls == NULL && count > 0)
        return RATION_ERR_NOMEM;

    size_t filled = 0;
    for (size_t i = 0; i < stream_count; i++) {
        stream_draw(calls + filled, &streams[i], i, span_us, seed);
        filled += streams[i].calls;
    }
    if (count > 0)
        qsort(calls, count, sizeof *calls, call_compare);
    *schedule = (rn_schedule){
        .mem = mem,
        .calls = calls,
        .count = count,
        .streams = streams,
        .stream_count = stream_count,
        .span_us = span_us,
    };
    return 0;
}

void rn_schedule_fini(rn_schedule *schedule)
{
    if (schedule->calls != NULL)
        rn_mem_free(schedule->mem, schedule->calls);
    *schedule = (rn_schedule){0};
}
