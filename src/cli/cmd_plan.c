/* SPDX-License-Identifier: MIT */
/*
 * `ration plan FILE`: how often jobs can run, as a table or as JSON.
 *
 * A plan of a file alone: windows are whole and nothing has been spent. A running gateway plans with what it knows; it
 * says so at GET /v1/plan, in the same JSON.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <ration/config.h>

#include "base/mem.h"
#include "base/units.h"
#include "cli/cli.h"
#include "core/fields.h"
#include "jobs/jobs.h"
#include "net/clock.h"

#define OUTPUT_MAX ((size_t)1 << 30)
#define INVENTORIES_MAX 64

typedef struct inventory {
    ration_text name;
    int64_t children;
} inventory;

typedef struct plan_arguments {
    const char *file;
    inventory inventories[INVENTORIES_MAX];
    size_t inventory_count;
    bool at_given;
    ration_time at;
    bool json;
} plan_arguments;

static int fanout_read(const rn_command *self, const char *text, plan_arguments *out)
{
    const char *equals = text != NULL ? strrchr(text, '=') : NULL;
    inventory *next = &out->inventories[out->inventory_count];

    if (equals == NULL || equals == text || rn_parse_int(ration_text_of(equals + 1), &next->children) != RATION_OK ||
        next->children < 0)
        return rn_usage_error(self, "--fanout needs NAME=N, such as --fanout organizations=3");
    if (out->inventory_count + 1 == INVENTORIES_MAX)
        return rn_usage_error(self, "at most %d inventories", INVENTORIES_MAX - 1);
    next->name = (ration_text){text, (size_t)(equals - text)};
    out->inventory_count++;
    return RN_EXIT_OK;
}

static int at_read(const rn_command *self, const char *text, plan_arguments *out)
{
    out->at_given = true;
    if (text == NULL || rn_field_iso8601(ration_text_of(text), &out->at) != RN_FIELD_OK)
        return rn_usage_error(self, "--at needs a date or an instant, such as 2027-02-01 or 2027-02-01T12:00:00Z");
    return RN_EXIT_OK;
}

static int arguments_read(const rn_command *self, int argc, char **argv, plan_arguments *out)
{
    for (int i = 1; i < argc; i++) {
        int status = RN_EXIT_OK;

        if (strcmp(argv[i], "--json") == 0) {
            out->json = true;
        } else if (strcmp(argv[i], "--fanout") == 0) {
            status = fanout_read(self, argv[++i], out);
        } else if (strcmp(argv[i], "--at") == 0) {
            status = at_read(self, argv[++i], out);
        } else if (argv[i][0] == '-' || argv[i][0] == '\0') {
            return rn_usage_error(self, "unknown option '%s'", argv[i]);
        } else if (out->file != NULL) {
            return rn_usage_error(self, "one file at a time");
        } else {
            out->file = argv[i];
        }
        if (status != RN_EXIT_OK)
            return status;
    }
    return out->file != NULL ? RN_EXIT_OK : rn_usage_error(self, "which file?");
}

/* RN_EXIT_OK, or what is wrong with an inventory has been said. */
static int inventories_set(const rn_command *self, rn_jobs *jobs, const plan_arguments *arguments)
{
    for (size_t i = 0; i < arguments->inventory_count; i++) {
        const inventory *given = &arguments->inventories[i];
        const int err = rn_jobs_inventory(jobs, given->name, given->children);

        if (err == RATION_ERR_UNKNOWN)
            return rn_usage_error(self, "no job fans out over '%.*s'", (int)given->name.size, given->name.data);
        if (err != RATION_OK)
            return rn_usage_error(self, "an inventory has at most 1000000000 members");
    }
    return RN_EXIT_OK;
}

static int plan_print(const rn_jobs *jobs, ration_time now, bool json)
{
    rn_output out;

    rn_output_init(&out, rn_mem_default(), OUTPUT_MAX);
    if (json) {
        rn_jobs_json(jobs, now, &out);
        rn_output_newline(&out);
    } else {
        rn_jobs_table(jobs, &out);
    }

    const int err = out.err;

    if (err == RATION_OK)
        (void)fwrite(out.data, 1, out.size, stdout);
    rn_output_fini(&out);
    return err;
}

static int plan(const rn_command *self, const ration_config *config, const plan_arguments *arguments)
{
    ration_time now = arguments->at;
    rn_jobs *jobs = NULL;
    rn_clock clock;
    int status = RN_EXIT_OK;
    int err = rn_jobs_new(config, &jobs);

    rn_clock_start(&clock);
    if (!arguments->at_given)
        now = rn_clock_now(&clock);
    if (err == RATION_OK)
        status = inventories_set(self, jobs, arguments);
    if (err == RATION_OK && status == RN_EXIT_OK) {
        err = rn_plan_make(config, jobs, now, stderr);
        if (err == RATION_OK)
            err = plan_print(jobs, now, arguments->json);
        if (err == RATION_ERR_CONFIG || (err == RATION_OK && !rn_jobs_planned(jobs)->feasible))
            status = RN_EXIT_FAULTS;
    }
    rn_jobs_free(jobs);
    if (err == RATION_OK || err == RATION_ERR_CONFIG)
        return rn_finish_output(status);
    (void)fprintf(stderr, "ration plan: %s\n", ration_err_text(err));
    return RN_EXIT_USAGE;
}

int rn_cmd_plan(const rn_command *self, int argc, char **argv)
{
    plan_arguments arguments = {.file = NULL};
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    int status = arguments_read(self, argc, argv, &arguments);

    if (status != RN_EXIT_OK)
        return status;

    const int err = ration_config_load(arguments.file, NULL, &config, &faults);

    if (faults.count > 0) {
        rn_faults_print(&faults, stderr);
    } else if (err != RATION_OK) {
        (void)fprintf(stderr, "ration plan: %s\n", ration_err_text(err));
    }
    status = err == RATION_OK           ? plan(self, config, &arguments)
             : err == RATION_ERR_CONFIG ? RN_EXIT_FAULTS
                                        : RN_EXIT_USAGE;
    ration_config_faults_fini(&faults);
    ration_config_free(config);
    return status;
}
