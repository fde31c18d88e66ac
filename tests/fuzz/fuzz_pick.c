/* SPDX-License-Identifier: MIT */
/*
 * Any pointer and any bytes, in pieces: the number that jansson sees there, or none; the same in a stream of events.
 *
 * The first line is the pointer, the byte before it says how the rest is cut.
 */
#include "support/pick_model.h"

#include <stdint.h>

#include "base/mem.h"

#define MUST(condition) ((condition) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const rn_pointer *pointer, ration_text text, size_t step)
{
    int64_t micro = 0, whole = 0;
    rn_pick pick;
    rn_pick at_once;

    rn_pick_init(&pick, pointer);
    for (size_t at = 0; at < text.size; at += step)
        rn_pick_feed(&pick, rn_text_slice(text, at, at + step < text.size ? at + step : text.size));
    rn_pick_init(&at_once, pointer);
    rn_pick_feed(&at_once, text);

    const rn_picked picked = rn_pick_end(&pick, &micro);

    MUST(picked == rn_pick_end(&at_once, &whole) && micro == whole);
    MUST(micro >= 0 && micro <= RATION_UNITS_MAX);
    MUST(model_check(pointer, text, picked, micro));
}

static void check_events(const rn_pointer *pointer, ration_text text, size_t step)
{
    int64_t micro = 0, wanted = 0;
    rn_event_pick events;

    rn_event_pick_init(&events, pointer);
    for (size_t at = 0; at < text.size; at += step)
        rn_event_pick_feed(&events, rn_text_slice(text, at, at + step < text.size ? at + step : text.size));

    const rn_picked picked = rn_event_pick_end(&events, &micro);

    MUST(picked == model_events(pointer, text, &wanted));
    MUST(picked != RN_PICKED_NUMBER || micro == wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ration_text input = {(const char *)data + 1, size > 0 ? size - 1 : 0};
    rn_pointer pointer;
    rn_arena arena;
    size_t end = 0;

    if (size == 0 || !rn_text_find(input, ration_text_of("\n"), &end))
        return 0;
    rn_arena_init(&arena, rn_mem_default());
    if (rn_pointer_parse(&arena, rn_text_slice(input, 0, end), &pointer) == RATION_OK) {
        const ration_text text = rn_text_slice(input, end + 1, input.size);

        check_text(&pointer, text, data[0] % 16 + 1);
        check_events(&pointer, text, data[0] % 16 + 1);
    }
    rn_arena_fini(&arena);
    return 0;
}
