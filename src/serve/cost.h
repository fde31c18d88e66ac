/* SPDX-License-Identifier: MIT */
#ifndef RN_SERVE_COST_H
#define RN_SERVE_COST_H

#include "base/event_stream.h"
#include "config/config.h"
#include "core/template.h"
#include "net/http.h"
#include "trace/output.h"

/*
 * What a call will cost, out of its request, and what it has cost, out of its response. Chapter 7, "Cost".
 *
 * Texts come in pieces, from others: nothing here trusts them, and nothing but a request's own body is kept.
 */

/* ---- whose rule holds */

typedef struct rn_costs {
    const ration_provider_rule *rule;
    const rn_provider *provider;
    rn_arena arena;
    rn_template *templates;       /* one an endpoint */
    bool any;                     /* some rule of the provider or an endpoint says something */
    bool any_retries;             /* some endpoint has a number of its own */
    struct rn_spending *spending; /* where the provider's calls are counted; the caller's, set after `init` */
} rn_costs;

typedef struct rn_cost_found {
    const rn_cost_rule *rule; /* never NULL; its members may all be absent */
    int64_t usual;            /* what the config says a request costs that tells nothing */
    ration_priority priority; /* and which it has */
} rn_cost_found;

/*
 * `rule` and `provider` are borrowed for the life of `costs`. RATION_ERR_NOMEM, RATION_ERR_SYNTAX (a template that is
 * none). `fini` always; it is fine on a zeroed one.
 */
int rn_costs_init(rn_costs *costs, const ration_provider_rule *rule, const rn_provider *provider);
void rn_costs_fini(rn_costs *costs);

/* The index of the most specific template that matches, as in the engine; SIZE_MAX: none does. O(templates). */
size_t rn_costs_endpoint(const rn_costs *costs, ration_text path);
/* What holds for calls to `path`: of the most specific template that matches, as in the engine. O(templates). */
rn_cost_found rn_costs_find(const rn_costs *costs, ration_text path);
/* The priority of a request that names its template instead, or neither (absent). */
ration_priority rn_costs_priority(const rn_costs *costs, ration_text endpoint);

/* ---- before the call */

typedef enum rn_estimate_source {
    RN_ESTIMATE_HEADER = 0,
    RN_ESTIMATE_POINTER,
    RN_ESTIMATE_DEFAULT, /* there was no number, or the body was too long to look for one */
    RN_ESTIMATE_SOURCES,
} rn_estimate_source;

const char *rn_estimate_source_name(rn_estimate_source source);

/* Looks for the number in a request's body, before the request is decided on. */
typedef struct rn_estimate {
    rn_pick pick;
} rn_estimate;

/* NULL: no memory. */
rn_estimate *rn_estimate_new(const rn_cost_rule *rule);
void rn_estimate_free(rn_estimate *estimate); /* NULL is fine */

/* A part of the body. */
void rn_estimate_feed(rn_estimate *estimate, ration_text bytes);

/* True if there is an estimate to be made at all. */
bool rn_cost_is_estimated(const rn_cost_rule *rule);
/* True if it stands in a field of the request; `*micro` is set then. A number above what can be counted is the most
 * that can be: so the request fits nowhere, instead of going out for the default. */
bool rn_cost_in_fields(const rn_cost_rule *rule, rn_http_fields fields, int64_t *micro);
/* The same of the body, once it is whole. */
bool rn_cost_in_body(rn_estimate *estimate, int64_t *micro);

/* ---- after it */

/* Where the cost that is settled comes from. */
typedef enum rn_cost_source {
    RN_COST_HEADER = 0,
    RN_COST_POINTER,
    RN_COST_ESTIMATE, /* the response has told nothing that can be used */
    RN_COST_SOURCES,
} rn_cost_source;

/* Why nothing can be used. */
typedef enum rn_usage_fault {
    RN_USAGE_ABSENT = 0, /* a response that came to its end has no such number */
    RN_USAGE_ENCODED,    /* its body is compressed, although it was asked not to be */
    RN_USAGE_UNUSABLE,   /* below zero, above what can be counted, or no number */
    RN_USAGE_FAULTS,
    RN_USAGE_FINE = RN_USAGE_FAULTS,
} rn_usage_fault;

const char *rn_cost_source_name(rn_cost_source source);
const char *rn_usage_fault_name(rn_usage_fault fault);

typedef enum rn_usage_form {
    RN_USAGE_NO_BODY = 0, /* nothing is looked for in it */
    RN_USAGE_JSON,
    RN_USAGE_EVENTS,
} rn_usage_form;

typedef struct rn_usage {
    rn_usage_form form;
    rn_usage_fault fault; /* so far */
    bool in_field;        /* `micro` is set */
    int64_t micro;
    union {
        rn_pick json;
        rn_event_pick events;
    } in;
} rn_usage;

typedef struct rn_usage_told {
    rn_cost_source source;
    rn_usage_fault fault; /* RN_USAGE_FINE, also where the response broke off before it could tell */
    int64_t micro;        /* RATION_UNSET with RN_COST_ESTIMATE */
} rn_usage_told;

/* True if a response may tell it at all. */
bool rn_cost_is_told(const rn_cost_rule *rule);
/* The head of a response. `rule` is borrowed until `rn_usage_end`. */
void rn_usage_begin(rn_usage *usage, const rn_cost_rule *rule, rn_http_fields fields);
/* A part of its body, as it goes by. */
void rn_usage_feed(rn_usage *usage, ration_text bytes);
/* `whole`: the response came to its end; else what was seen until it broke off counts. May be asked once. */
rn_usage_told rn_usage_end(rn_usage *usage, bool whole);

#endif
