/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_BULLETIN_H
#define RN_SERVE_BULLETIN_H

#include "net/server.h"
#include "trace/output.h"

/*
 * `GET /v1/events`: what happens, as it happens, in server-sent events. Chapter 7.
 *
 * Whoever has something to tell asks `rn_bulletin_heard` first: what nobody wants is not built. A listener that
 * reads too slowly loses events, never order, and is told how many; it holds at most RN_BULLETIN_QUEUE bytes. A NULL
 * bulletin is one to which nobody ever listens; only joining and closing need one.
 */
typedef struct rn_bulletin rn_bulletin;

#define RN_BULLETIN_LISTENERS_MAX 64
#define RN_BULLETIN_QUEUE ((size_t)256 << 10)
#define RN_BULLETIN_PULSE_US INT64_C(15000000) /* a comment after so long without an event, so that both ends know */

/* What the listeners have got. */
typedef struct rn_bulletin_counts {
    uint64_t told;    /* events */
    uint64_t dropped; /* events that a listener did not get, each for each listener */
    uint64_t turned_away;
    size_t listeners; /* now */
} rn_bulletin_counts;

/* RATION_ERR_NOMEM. */
int rn_bulletin_new(rn_loop *loop, rn_bulletin **out);
/* Breaks off those who listen; their server lives still. NULL is fine. */
void rn_bulletin_free(rn_bulletin *bulletin);
/* The streams end in order; nobody may join any more. */
void rn_bulletin_close(rn_bulletin *bulletin);

/* Somebody listens to events of this type. */
bool rn_bulletin_heard(const rn_bulletin *bulletin, const char *type);

/*
 * An event: between the two, members are written into the object that is returned. `type` is a word of ours. NULL:
 * nobody listens, or there is no memory; then there is no `tell`.
 */
rn_output *rn_bulletin_begin(rn_bulletin *bulletin, const char *type, ration_time at);
void rn_bulletin_tell(rn_bulletin *bulletin);

/* "?types=a,b": which types are wanted, a bit for each; without a query, all. False: that is no such query. */
bool rn_bulletin_types(ration_text query, uint32_t *out);
/* The inbound is answered with the stream from now on, or 503 where too many listen or it has been closed. */
void rn_bulletin_join(rn_bulletin *bulletin, rn_inbound *in, uint32_t wanted);
/* What the server says of an inbound that has joined; false: it has not. */
bool rn_bulletin_gone(rn_bulletin *bulletin, const rn_inbound *in);
bool rn_bulletin_drained(rn_bulletin *bulletin, const rn_inbound *in);

rn_bulletin_counts rn_bulletin_look(const rn_bulletin *bulletin);

#endif
