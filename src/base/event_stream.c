/* SPDX-License-Identifier: MIT */
/*
 * Server-sent events, as far as their data goes.
 *
 * A line ends with CR LF, LF or CR; a blank one ends the event. Lines of data are fed to the picker as they come, with
 * a line feed behind each; at the end of the event it says whether the number was there. Comments, other fields and
 * data that is no JSON, such as "[DONE]", are skipped. To JSON a blank behind the colon, a line feed too many and a
 * `data` without a value are nothing, so none of them is looked at here.
 *
 * Invariant: the picker has seen the data of the present event and of no other.
 */
#include "base/event_stream.h"

#include <string.h>

#include "base/text.h"

#define NAME "data"
#define NAME_SIZE 4
#define MARK "\xEF\xBB\xBF"
#define MARK_SIZE 3

void rn_event_pick_init(rn_event_pick *events, const rn_pointer *pointer)
{
    *events = (rn_event_pick){.state = RN_EVENT_NAME};
    rn_pick_init(&events->pick, pointer);
}

/* What the event had counts, if it had something. */
static void event_counts(rn_event_pick *e, rn_pick *pick)
{
    int64_t micro = 0;
    const rn_picked picked = rn_pick_end(pick, &micro);

    if (picked == RN_PICKED_NUMBER || picked == RN_PICKED_LARGE) {
        e->picked = picked;
        e->micro = micro;
    }
}

static void line_ends(rn_event_pick *e)
{
    if (e->state == RN_EVENT_DATA) {
        rn_pick_feed(&e->pick, ration_text_of("\n"));
    } else if (e->state == RN_EVENT_NAME && e->named == 0) {
        event_counts(e, &e->pick);
        rn_pick_init(&e->pick, e->pick.pointer);
    }
    e->state = RN_EVENT_NAME;
    e->named = 0;
}

static void take_name(rn_event_pick *e, char c)
{
    if (c == ':' && e->named == NAME_SIZE) {
        e->state = RN_EVENT_DATA;
    } else if (e->named < NAME_SIZE && c == NAME[e->named]) {
        e->named++;
    } else {
        e->state = RN_EVENT_IGNORED;
    }
}

/* True if the byte belongs to the mark that a stream may begin with. */
static bool take_mark(rn_event_pick *e, char c)
{
    if (e->begun)
        return false;
    if (e->mark < MARK_SIZE && c == MARK[e->mark]) {
        e->mark++;
        return true;
    }
    e->begun = true;
    /* Half a mark is a name that nobody knows. */
    if (e->mark > 0 && e->mark < MARK_SIZE)
        e->state = RN_EVENT_IGNORED;
    return false;
}

static void take_byte(rn_event_pick *e, char c)
{
    const bool after = e->carriage;

    e->carriage = c == '\r';
    if (take_mark(e, c) || (after && c == '\n'))
        return;
    if (c == '\r' || c == '\n') {
        line_ends(e);
        return;
    }
    if (e->state == RN_EVENT_NAME)
        take_name(e, c);
}

/* Bytes from `from` to the end of their line, or of the piece. */
static size_t line_run(ration_text bytes, size_t from)
{
    size_t at = from;

    while (at < bytes.size && bytes.data[at] != '\r' && bytes.data[at] != '\n')
        at++;
    return at - from;
}

void rn_event_pick_feed(rn_event_pick *e, ration_text bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        const size_t run = e->state != RN_EVENT_NAME ? line_run(bytes, i) : 0;

        if (e->state == RN_EVENT_DATA)
            rn_pick_feed(&e->pick, rn_text_slice(bytes, i, i + run));
        i += run;
        if (i < bytes.size)
            take_byte(e, bytes.data[i]);
    }
}

static rn_picked had(rn_event_pick last, int64_t *micro)
{
    event_counts(&last, &last.pick);
    if (last.picked == RN_PICKED_NUMBER)
        *micro = last.micro;
    return last.picked;
}

rn_picked rn_event_pick_end(const rn_event_pick *e, int64_t *micro)
{
    return had(*e, micro);
}

rn_picked rn_event_pick_seen(const rn_event_pick *e, int64_t *micro)
{
    rn_event_pick last = *e;

    /* Data that is a number and nothing else does not show that it is whole. */
    if (last.pick.state == RN_PICK_NUMBER)
        rn_pick_init(&last.pick, last.pick.pointer);
    return had(last, micro);
}
