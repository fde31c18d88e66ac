/* SPDX-License-Identifier: MIT */
/*
 * The table of keys: jobs. schema.c says what the table is.
 *
 * Jobs decide nothing about a call, so recordings leave them out.
 */
#include "config/table.h"

#define FAN_OUT_MAX 1000000000

static const rn_key fan_out_keys[] = {
    {.name = "name",
     .type = &rn_type_name,
     .flags = RN_KEY_REQUIRED | RN_KEY_LOCAL,
     AT(rn_job_model, job.fan_out),
     .doc = "The inventory that says how many children there are. Jobs that name the same have the same children."},
    {.name = "estimate",
     .type = &rn_type_integer,
     .fallback = "1",
     .min = 1,
     .max = FAN_OUT_MAX,
     .flags = RN_KEY_LOCAL,
     AT(rn_job_model, job.fan_out_estimate),
     .doc = "How many children, until the inventory is known."},
    END,
};
static const rn_object fan_out_object = {
    .name = "fanOut", .doc = "What a run does once for each of many things.", .keys = fan_out_keys};

static const rn_key estimate_keys[] = {
    {.name = "pagesPerRun",
     .type = &rn_type_units,
     .fallback = "1",
     .min = RATION_UNIT,
     .max = RATION_UNIT * 1000000,
     .flags = RN_KEY_LOCAL,
     AT(rn_job_model, job.pages_per_run),
     .doc = "How many requests a run makes, each of its children for itself."},
    END,
};
static const rn_object estimate_object = {
    .name = "jobEstimate", .doc = "What is assumed of a job until its runs are known.", .keys = estimate_keys};

static const rn_key job_keys[] = {
    {.name = "name",
     .type = &rn_type_name,
     .flags = RN_KEY_REQUIRED | RN_KEY_LOCAL,
     AT(rn_job_model, job.name),
     .doc = "What plans call it, and `Ration-Job` names."},
    {.name = "account",
     .type = &rn_type_name,
     .flags = RN_KEY_REQUIRED | RN_KEY_LOCAL,
     AT(rn_job_model, account),
     .doc = "The name of one of `accounts`."},
    {.name = "endpoint",
     .type = &rn_type_call,
     .flags = RN_KEY_REQUIRED | RN_KEY_LOCAL,
     AT(rn_job_model, call),
     .doc = "What it calls, such as `GET /networks/{networkId}/devices`. A bare path is a GET. It decides which limits "
            "apply; a "
            "variable in braces is another one for each child."},
    {.name = "vars",
     .type = &rn_type_segment,
     .shape = RN_SHAPE_TABLE,
     .flags = RN_KEY_LOCAL,
     ITEMS(rn_job_model, vars, var_count),
     .item = sizeof(rn_var_model),
     .value = offsetof(rn_var_model, value),
     .doc = "Values of variables of the path that are the same for all children: `vars: { organizationId: 549236 }`."},
    {.name = "interval",
     .type = &rn_type_duration,
     .flags = RN_KEY_REQUIRED | RN_KEY_LOCAL,
     .min = 1000,
     .max = YEAR,
     AT(rn_job_model, job.interval_us),
     .doc = "How often it should run."},
    {.name = "priority",
     .type = &rn_type_word,
     .words = rn_words_priority,
     .flags = RN_KEY_LOCAL,
     .otherwise = "the endpoint's, else the provider's, else normal",
     AT(rn_job_model, job.priority),
     .doc = "Whose interval is stretched first where a quota is short: `low`, then `normal`, then `high`, never "
            "`critical`."},
    {.name = "fanOut",
     .object = &fan_out_object,
     .flags = RN_KEY_LOCAL,
     .otherwise = "one run, no children",
     .doc = "What a run does once for each of many things."},
    {.name = "estimate",
     .object = &estimate_object,
     .flags = RN_KEY_LOCAL,
     .doc = "What is assumed until its runs are known."},
    {.name = "tenant",
     .type = &rn_type_name,
     .flags = RN_KEY_LOCAL,
     .otherwise = "the endpoint's, else the provider's",
     AT(rn_job_model, job.tenant),
     .doc = "Whose calls they are."},
    {.name = "cost",
     .type = &rn_type_units,
     .min = 0,
     .max = RATION_UNITS_MAX,
     .flags = RN_KEY_UNSET | RN_KEY_LOCAL,
     .otherwise = "the endpoint's, else the provider's, else 1",
     AT(rn_job_model, job.cost),
     .doc = "What each of its requests costs, for limits that count cost."},
    END,
};
const rn_object rn_schema_job = {.name = "job",
                                 .doc = "Something that runs again and again, and calls a provider.",
                                 .keys = job_keys,
                                 .size = sizeof(rn_job_model),
                                 .check = rn_check_job};
