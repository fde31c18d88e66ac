/* SPDX-License-Identifier: MIT */
#ifndef RN_BASE_PICK_H
#define RN_BASE_PICK_H

#include <stdbool.h>
#include <stdint.h>

#include <ration/types.h>

#include "base/decimal.h"
#include "base/pointer.h"

/*
 * The number at a JSON pointer, out of a text that comes in pieces. Nothing is kept but a few hundred bytes, however
 * long the text; nothing is allocated.
 */

#define RN_PICK_DEPTH 256 /* lists and maps in each other; a text that is deeper counts as no JSON */

typedef enum rn_picked {
    RN_PICKED_NONE = 0, /* the text has no such value, or is no JSON */
    RN_PICKED_NUMBER,   /* a number from 0 to RATION_UNITS_MAX, rounded up to a micro-unit */
    RN_PICKED_LARGE,    /* a number above that */
    RN_PICKED_OTHER,    /* a number below 0, a text, null... */
} rn_picked;

typedef enum rn_pick_state {
    RN_PICK_VALUE = 0,    /* a value comes */
    RN_PICK_VALUE_OR_END, /* the first of a list, or its end */
    RN_PICK_KEY,
    RN_PICK_KEY_OR_END,
    RN_PICK_COLON,
    RN_PICK_AFTER, /* a value has ended: a comma, or the end of what it is in */
    RN_PICK_STRING,
    RN_PICK_ESCAPE,  /* behind a backslash */
    RN_PICK_UNICODE, /* in the four digits behind \u */
    RN_PICK_NUMBER,
    RN_PICK_WORD, /* in true, false or null */
    RN_PICK_DONE, /* only blanks may come */
    RN_PICK_FAILED,
} rn_pick_state;

typedef struct rn_pick {
    const rn_pointer *pointer;
    rn_pick_state state;
    uint32_t depth;                       /* lists and maps that are open */
    uint32_t on;                          /* of them, from the root on: those on the pointer's way */
    bool here;                            /* the value that comes is the pointer's next step */
    bool wanted;                          /* the number that is read is the pointer's value */
    uint8_t objects[RN_PICK_DEPTH / 8];   /* a bit of each that is open: a map */
    uint64_t elements[RN_POINTER_TOKENS]; /* of each list on the way: the index of the element that comes */
    rn_decimal number;
    const char *word;   /* what must still come of it */
    bool is_key;        /* the string that is read is one */
    bool matches;       /* it has agreed with the pointer's next step so far */
    size_t matched;     /* so many bytes of it */
    uint8_t more;       /* bytes of a character that must still come */
    uint8_t least;      /* the next of them must be from this */
    uint8_t most;       /* to this */
    uint8_t digits;     /* of \uXXXX that must still come */
    uint32_t unit;      /* what they have given */
    uint32_t surrogate; /* the first half of a pair, whose second must follow; 0: none */
    rn_picked picked;
    int64_t micro;
} rn_pick;

/* `pointer` is borrowed as long as the pick is used. */
void rn_pick_init(rn_pick *pick, const rn_pointer *pointer);
void rn_pick_feed(rn_pick *pick, ration_text bytes);

/*
 * What the whole text has. Of a key that stands twice the last counts, whole: a value under the first is forgotten.
 * `*micro` is set for RN_PICKED_NUMBER only. May be asked once, after the last piece.
 */
rn_picked rn_pick_end(rn_pick *pick, int64_t *micro);

/*
 * The same of a text that breaks off: what has been read so far, if it is the beginning of JSON. A value amid which it
 * breaks off is none.
 */
rn_picked rn_pick_seen(const rn_pick *pick, int64_t *micro);

#endif
