/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_EVENT_STREAM_H
#define RN_BASE_EVENT_STREAM_H

#include "base/pick.h"

/*
 * The number at a JSON pointer in a stream of server-sent events (WHATWG HTML, 9.2.6): of the last event whose data is
 * JSON and has it there. Comes in pieces, allocates nothing, keeps nothing of the text.
 */

typedef enum rn_event_state {
    RN_EVENT_NAME = 0, /* in the name of a line's field */
    RN_EVENT_DATA,     /* in the value of a `data` field */
    RN_EVENT_IGNORED,  /* in a line that says nothing here */
} rn_event_state;

typedef struct rn_event_pick {
    rn_pick pick; /* of the event that comes in */
    rn_event_state state;
    uint32_t named; /* bytes of the field's name, which agree with "data" */
    uint32_t mark;  /* bytes of a byte order mark at the beginning of the stream */
    bool begun;     /* the stream has a byte that is none of the mark */
    bool carriage;  /* the last byte was a CR: an LF that follows belongs to it */
    rn_picked picked;
    int64_t micro;
} rn_event_pick;

/* `pointer` is borrowed as long as the pick is used. */
void rn_event_pick_init(rn_event_pick *events, const rn_pointer *pointer);
void rn_event_pick_feed(rn_event_pick *events, ration_text bytes);

/*
 * What the stream had: RN_PICKED_NUMBER with `*micro` set, RN_PICKED_LARGE, else RN_PICKED_NONE. May be asked at any
 * time. An event that has not ended counts if its data is whole.
 */
rn_picked rn_event_pick_end(const rn_event_pick *events, int64_t *micro);
/* The same of a stream that breaks off: a number amid which it may have done so does not count. */
rn_picked rn_event_pick_seen(const rn_event_pick *events, int64_t *micro);

#endif
