/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_QUOTA_PARTS_H
#define RN_CORE_QUOTA_PARTS_H

#include "core/limit.h"
#include "core/quota_budget.h"

/* What quota.c and its neighbours ask of each other. All take the counter of a quota. */

/* The history of a calendar window that headers may move: so many equal parts. */
#define RN_QUOTA_PARTS 64

/* What a request finds at some instant. */
typedef struct rn_quota_state {
    rn_quota_budget room;
    int64_t remaining; /* negative in debt */
    bool exhausted;
    bool dipped;
} rn_quota_state;

/* `enforcer`: as the provider counts, without share and reserve. */
rn_quota_budget rn_quota_room_of(const rn_counter *counter, bool enforcer);
bool rn_quota_fits(const rn_quota_state *state, const rn_ask *ask);
bool rn_quota_is_rolling(const rn_counter *counter);
/* Bring the window and the flight up to `now`; every operation does this first. */
void rn_quota_advance(rn_counter *counter, ration_time now);
/* Whether what `hold` was charged still counts here. */
bool rn_quota_owns(const rn_counter *counter, const rn_hold *hold);

/* quota_flight.c */
void rn_flight_init(rn_counter *counter);
void rn_flight_advance(rn_counter *counter, ration_time now);
void rn_flight_add(rn_counter *counter, rn_hold *hold);
void rn_flight_answer(rn_counter *counter, rn_hold *hold);
void rn_flight_settle(rn_counter *counter, const rn_hold *hold, int64_t added);
void rn_flight_end(rn_counter *counter, rn_hold *hold); /* without a response: it stays until `arrival` has passed */
/* The same of a charge whose lease nobody knows. */
void rn_flight_lose(rn_counter *counter, ration_time granted_at, int64_t charge);
/* Charges granted less than `arrival` before `boundary` by leases that are not answered and older than `order`. */
int64_t rn_flight_over(const rn_counter *counter, ration_time boundary, uint64_t order);
/* Whether a window's end at `end` may find some of them. */
bool rn_flight_reaches(const rn_counter *counter, ration_time end);

/* quota_window.c */
typedef enum rn_reset {
    RN_RESET_STALE = 0, /* it was before the window */
    RN_RESET_PAST,      /* in the window, not later than now */
    RN_RESET_COMING,
    RN_RESET_FAR, /* later than any end could be */
} rn_reset;

void rn_window_init(rn_counter *counter, ration_time now);
void rn_window_advance(rn_counter *counter, ration_time now);
/* In the history; the timeline is another's. */
void rn_window_charge(rn_counter *counter, ration_time granted_at, int64_t amount);
/* The window's begin has been set: where did the one before it begin, as long as the calendar has it? */
void rn_window_look_back(rn_counter *counter);
bool rn_window_is_fresh(const rn_counter *counter);
rn_reset rn_window_classify(const rn_counter *counter, ration_time now, ration_time reset);
/* Act on a reset that is PAST or COMING, told to `hold`: move the end, or begin a window. */
void rn_window_reset(rn_counter *counter, ration_time now, const rn_hold *hold, ration_time reset);

/* quota_rolling.c */
void rn_rolling_init(rn_counter *counter, ration_time now);
void rn_rolling_prepare(rn_quota_spec *spec, bool enforcer);
void rn_rolling_advance(rn_counter *counter, ration_time now);
void rn_rolling_charge(rn_counter *counter, ration_time granted_at, int64_t amount);
bool rn_rolling_owns(const rn_counter *counter, ration_time granted_at);
/* The buckets that count and are not empty, in order; begin with a zeroed one. False: there are no more. */
typedef struct rn_rolling_bucket {
    ration_time begin;
    int64_t units;
    bool any;
    int64_t number;
} rn_rolling_bucket;

bool rn_rolling_next(const rn_counter *counter, rn_rolling_bucket *bucket);
/* The first instant at which `ask` fits by time alone. */
ration_time rn_rolling_when(const rn_counter *counter, ration_time now, const rn_ask *ask);

/* The charges by time of grant as parts of a record; there is room for all of them. Returns how many. */
size_t rn_rolling_parts(const rn_counter *counter, ration_time now, ration_part *parts);
size_t rn_window_parts(const rn_counter *counter, ration_time now, ration_part *parts);

/* quota_mark.c; a relaxed quota has none: all is covered, and nothing happens */
/* A window has begun: what is used and carried is known, nothing of it durable. */
void rn_quota_mark_begin(rn_counter *counter);
/* May so much be granted before anything is made durable? */
bool rn_quota_mark_covers(const rn_counter *counter, int64_t charge);
/* `used` has grown by so much, or shrunk. */
void rn_quota_mark_charge(rn_counter *counter, int64_t amount);
/* What `used` is to count as after an unclean stop, for a record that is given out now. */
int64_t rn_quota_mark_give(rn_counter *counter);
/* How much of a record's mark is not in its `used`. */
int64_t rn_quota_mark_ahead(const ration_quota_record *record);
/* What a window may have granted before there is a record of it. */
int64_t rn_quota_mark_block(const rn_counter *counter);

/* quota_timeline.c */
void rn_quota_ticks(rn_counter *counter, ration_time at, int64_t amount);
/* What is older than the window before this one is forgotten. */
void rn_quota_ticks_forget(rn_counter *counter, ration_time now);
size_t rn_quota_ticks_save(const rn_counter *counter, ration_time now, ration_part *out);
void rn_quota_ticks_load(rn_counter *counter, const ration_quota_record *record);

/* quota_state.c */
bool rn_quota_save(rn_counter *counter, ration_time now, ration_part *parts, ration_record *out);
void rn_quota_load(rn_counter *counter, ration_time now, const ration_record *record);
void rn_quota_lose(rn_counter *counter, ration_time now);

/* quota_operate.c */
void rn_quota_reset(rn_counter *counter, ration_time now);
int rn_quota_grant(rn_counter *counter, ration_time now, int64_t units);

/* quota_carry.c */
void rn_quota_carry(rn_counter *counter, ration_time now, rn_counter *from);
void rn_quota_carry_hold(rn_counter *counter, const rn_counter *from, rn_hold *was, rn_hold *hold);

/* quota_sync.c */
void rn_quota_observe(rn_counter *counter, ration_time now, rn_hold *hold, const rn_reply *reply);

#endif
