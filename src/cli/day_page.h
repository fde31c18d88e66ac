/* SPDX-License-Identifier: MIT */
#ifndef RN_CLI_DAY_PAGE_H
#define RN_CLI_DAY_PAGE_H

#include "simulate/day.h"

/*
 * `ration simulate --report`: the dashboard with a simulated day in it, as one file that needs nothing else. What its
 * charts show is gathered while the day is played.
 */
typedef struct rn_day_page rn_day_page;

/* RATION_ERR_NOMEM. */
int rn_day_page_new(rn_day_page **out);
void rn_day_page_free(rn_day_page *page); /* NULL is fine */

/* Who must watch the day. Borrows the page. */
rn_day_watcher rn_day_page_watcher(rn_day_page *page);

/* The page of the day that it has watched; `title` is shown as it is. Appends to `out`, whose error says if it fits. */
void rn_day_page_write(const rn_day_page *page, const char *title, const rn_day_result *result, rn_output *out);

#endif
