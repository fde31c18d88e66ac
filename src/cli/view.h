/* SPDX-License-Identifier: MIT */
#ifndef RN_CLI_VIEW_H
#define RN_CLI_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A gateway's status as a person reads it: what is limited now and by what, how long until it eases, how full every
 * counter is. `ration status` prints it, `ration top` shows it. Nothing in a text of it is a control character.
 */

typedef enum rn_view_order {
    RN_VIEW_BY_FILL = 0,
    RN_VIEW_BY_WAITING,
    RN_VIEW_BY_NAME,
    RN_VIEW_ORDERS,
} rn_view_order;

/* A counter. */
typedef struct rn_view_row {
    char limit[64];
    char kind[16];
    char key[160];
    char amount[64]; /* "98 of 100 left" */
    char eases[48];  /* "in 2 h 5 min"; "": not known, or nothing to ease */
    double fill;     /* 0 to 1: how much of it is used */
    int64_t waiting;
    bool binds; /* somebody waits, or the next call would */
} rn_view_row;

typedef struct rn_view {
    char head[200];
    char (*words)[320]; /* what is limited now, a sentence each; the gravest first */
    size_t word_count;
    char (*costs)[320]; /* what calls cost against what was estimated, a sentence a provider */
    size_t cost_count;
    rn_view_row *rows;
    size_t row_count;
} rn_view;

/*
 * From the body of /v1/status. `fini` always.
 *
 * Errors  RATION_ERR_SYNTAX with `error` filled: it is no status; RATION_ERR_NOMEM.
 */
int rn_view_read(const char *body, size_t size, rn_view *out, char *error, size_t error_size);
void rn_view_fini(rn_view *view);

void rn_view_sort(rn_view *view, rn_view_order order);
const char *rn_view_order_name(rn_view_order order);

/* A row, or the head of the table for NULL, in exactly `columns` characters or fewer; NUL-terminated. */
void rn_view_line(const rn_view_row *row, size_t columns, char *buffer, size_t size);

#endif
