/* SPDX-License-Identifier: MIT */
#ifndef RN_CORE_QUOTA_H
#define RN_CORE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <ration/state.h>

#include "core/timeline.h"
#include "core/window.h"

/*
 * A quota of a window: chapter 3, "quota" and "Header sync". The members are the business of quota.c and its
 * neighbours: quota_window.c (calendar windows), quota_rolling.c (rolling ones), quota_flight.c (leases whose response
 * is not known), quota_mark.c (marks of strict ones), quota_timeline.c (consumption by time).
 */

struct rn_hold;

typedef struct rn_quota_spec {
    rn_calendar calendar; /* no period: rolling */
    int64_t length_us;    /* of a window: the calendar's usual one, or the rolling one */
    int64_t arrival_us;   /* within which a call has surely reached the provider; 0: at once */
    int64_t width_us;     /* rolling: of a bucket */
    int64_t counts_us;    /* rolling: how long a bucket counts after its end */
    uint32_t parts;       /* rolling: buckets that can count at once; calendar: of the history, 0 if none is kept */
    int64_t tick_us;      /* of a bucket of the timeline */
    bool strict;          /* its grants wait for a durable mark */
} rn_quota_spec;

/* Leases that ended without a response, the oldest first; when there are more, the oldest two become one. */
#define RN_QUOTA_ENDED 8

typedef struct rn_quota_ended {
    ration_time granted_at;
    int64_t charge;
} rn_quota_ended;

/* What has been granted within `arrival` and not been answered: it may or may not have reached the provider. */
typedef struct rn_quota_flight {
    TAILQ_HEAD(rn_flight_list, rn_hold) live;
    int64_t charge; /* of all, live and ended */
    uint32_t ended_count;
    rn_quota_ended ended[RN_QUOTA_ENDED];
} rn_quota_flight;

/* The calendar window that `now` is in. */
typedef struct rn_quota_window {
    ration_time start;
    ration_time end;          /* where headers have moved it to */
    ration_time computed_end; /* by the calendar alone */
    int64_t offset_us;        /* learned: end - computed_end */
    bool brought;             /* a header has brought a window's end about */
    ration_time brought_at;   /* where that end was */
    ration_time left_until;   /* when what remained is forgotten; RATION_NEVER_US: with the window */
    ration_time exhausted_until;
    int64_t part_us; /* of the history */
} rn_quota_window;

typedef struct rn_quota_rolling {
    int64_t oldest; /* the first bucket that still counts */
    int64_t newest; /* the bucket of the last instant looked at */
    ration_time exhausted_until;
    ration_time learned_until;
} rn_quota_rolling;

/* How far a strict quota may go before something has been made durable. Negative: it is past that. */
typedef struct rn_quota_mark {
    int64_t left;   /* to the mark that is durable, whatever of what was given out is */
    int64_t next;   /* to the mark that was given out last, if one was since the last that was kept */
    int64_t wanted; /* the largest charge that found too little left since the last was given out */
    bool given;
} rn_quota_mark;

typedef struct rn_quota {
    int64_t max; /* declared or learned */
    bool learned_max;
    uint64_t disagreement;    /* the number of the last window in which the learned one was not the declared one */
    ration_time disagreed_at; /* when it was found */
    bool exhausted;           /* a 429 said so */
    bool dipped;              /* a critical request has gone into the reserve */
    bool left_known;
    bool observed; /* an observation has been used in this window */
    int64_t used;  /* by the leases of this window */
    int64_t carried;
    int64_t left; /* what the provider last said, less what it may not have counted */
    int64_t external;
    int64_t extra;           /* usable beyond U, by an operator's word */
    ration_time extra_until; /* rolling; in a calendar window it ends with that */
    uint64_t spent;          /* all charges and what settlements added, ever; wraps, only differences count */
    uint64_t returned;       /* all that settlements gave back, ever; the same */
    uint64_t first_order;    /* of this window's leases */
    uint64_t newest_order;   /* of all leases */
    uint64_t moved_order;    /* leases up to it were granted before a header began this window */
    uint64_t used_order;     /* of the lease of the last observation used */
    ration_time dipped_at;   /* the grant of the last lease that went into the reserve */
    rn_quota_flight flight;
    rn_quota_mark mark;
    rn_timeline timeline;
    ration_time known;    /* of the timeline: nothing is known of what was before */
    ration_time previous; /* calendar: where the window before this one began */
    union {
        rn_quota_window window;
        rn_quota_rolling rolling;
    };
    /* Charges by time of grant: the ring of a rolling window's buckets, or the parts of a calendar window, if kept. */
    int64_t parts[];
} rn_quota;

/* What a lease remembers of a quota. */
typedef struct rn_quota_hold {
    TAILQ_ENTRY(rn_hold) in_flight;
    bool flying; /* in the list of the flight */
    bool answered;
    uint64_t answered_order; /* the newest lease when it was answered */
    int64_t seen;            /* charges of its window that had reached the provider when it was granted */
    int64_t unseen;          /* charges that may not have */
    uint64_t spent;          /* of the quota, right after its grant */
    uint64_t returned;
} rn_quota_hold;

struct rn_counter;

/* ---- what the engine asks of a quota beside the table of kinds ---- */

/* So large a charge has found too little left to the mark: the next mark will do for it. */
void rn_quota_want(struct rn_counter *counter, int64_t charge);
/* What a strict quota needs of whoever saves. `waiting`: the charge of the first that waits for the mark; 0: nobody. */
ration_need rn_quota_need(const struct rn_counter *counter, int64_t waiting);
/* The mark that was given out last is durable. */
void rn_quota_kept(struct rn_counter *counter, ration_time now);

/* Room for the parts of a record, the timeline's included. */
size_t rn_quota_parts_max(const struct rn_counter *counter);
/* Buckets of the timeline up to `now`. */
size_t rn_quota_timeline_count(struct rn_counter *counter, ration_time now);
/* The timeline; `units` has room for all of its buckets, and is borrowed by `*out`. */
void rn_quota_timeline(struct rn_counter *counter, ration_time now, int64_t *units, ration_timeline *out);

#endif
