/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/failalloc.h"

#include "core/events.h"

static failalloc memory;
static rn_events events;

static void begin(void)
{
    failalloc_init(&memory, UINT64_MAX);
    rn_events_init(&events, &memory.allocator);
}

static void end(void)
{
    rn_events_fini(&events);
    CHECK_EQ(memory.live, 0);
}

static void push(uint64_t serial, uint32_t *pin)
{
    const ration_event event = {.serial = serial};

    rn_events_push(&events, &event, pin);
}

static uint64_t take(void)
{
    ration_event event = {.serial = 0};

    return rn_events_take(&events, &event) ? event.serial : 0;
}

static void events_come_out_in_order_while_the_ring_turns_and_grows(void **state)
{
    uint64_t in = 0;
    uint64_t out = 0;

    (void)state;
    begin();
    CHECK_EQ(take(), 0);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < round % 7 + 1; i++) {
            CHECK_EQ(rn_events_reserve(&events, events.count + 1), RATION_OK);
            push(++in, NULL);
        }
        for (int i = 0; i < round % 5; i++)
            CHECK_EQ(take(), out == in ? 0 : ++out);
    }
    CHECK(events.capacity > 64);
    while (out < in)
        CHECK_EQ(take(), ++out);
    CHECK_EQ(take(), 0);
    end();
}

static void room_that_is_there_is_not_made_again(void **state)
{
    (void)state;
    begin();
    CHECK_EQ(rn_events_reserve(&events, 64), RATION_OK);
    memory.countdown = 0;
    CHECK_EQ(rn_events_reserve(&events, 64), RATION_OK);
    for (uint64_t i = 1; i <= 64; i++)
        push(i, NULL);
    CHECK_EQ(rn_events_reserve(&events, 65), RATION_ERR_NOMEM);
    CHECK_EQ(take(), 1); /* and nothing is lost */
    CHECK_EQ(events.count, 63);
    end();
}

static void a_key_is_kept_until_the_event_behind_is_taken(void **state)
{
    rn_counter a = {0};
    rn_counter b = {0};

    (void)state;
    begin();
    CHECK_EQ(rn_events_reserve(&events, 4), RATION_OK);
    push(1, &a.pins);
    push(2, &a.pins);
    push(3, &b.pins);
    CHECK_EQ(a.pins, 2);
    CHECK_EQ(take(), 1);
    CHECK_EQ(a.pins, 2); /* the caller reads it */
    CHECK_EQ(take(), 2);
    CHECK_EQ(a.pins, 1);
    CHECK_EQ(take(), 3);
    CHECK_EQ(a.pins, 0);
    CHECK_EQ(b.pins, 1);
    CHECK_EQ(take(), 0);
    CHECK_EQ(b.pins, 0);
    CHECK_EQ(take(), 0);
    CHECK_EQ(b.pins, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_out_in_order_while_the_ring_turns_and_grows),
        cmocka_unit_test(room_that_is_there_is_not_made_again),
        cmocka_unit_test(a_key_is_kept_until_the_event_behind_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
