/* SPDX-License-Identifier: MIT */
/*
 * `ration validate FILE`: every fault or warning of a config, each with its line and a caret below it; and what of the
 * plan of its jobs does not fit.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ration/config.h>

#include "cli/cli.h"
#include "fleet/member.h"
#include "jobs/jobs.h"
#include "net/clock.h"

void rn_faults_print(const ration_config_faults *faults, FILE *out)
{
    for (size_t i = 0; i < faults->count; i++) {
        const ration_config_fault *fault = &faults->items[i];
        char line[2048];

        (void)ration_config_fault_text(fault, line, sizeof line);
        (void)fprintf(out, "%s\n", line);
        if (fault->source[0] != '\0')
            (void)fprintf(out, "    %s\n    %*s^\n", fault->source, (int)fault->caret, "");
    }
}

static void plan_fault_print(void *ctx, size_t index, const char *text, const char *hint)
{
    const rn_job *job = rn_jobs_at(ctx, index);

    (void)printf("%s:%" PRIu32 ":%" PRIu32 ": jobs[%zu]: %s (%s)\n", job->place.file, job->place.line,
                 job->place.column, index, text, hint);
}

int rn_plan_make(const ration_config *config, rn_jobs *jobs, ration_time now, FILE *out)
{
    ration_fault fault = {"", ""};
    const int err = rn_jobs_plan(jobs, now, NULL, NULL, NULL, &fault);

    if (err != RATION_ERR_CONFIG)
        return err;

    /* "jobs[3]", or all of them. */
    const char *open = strchr(fault.path, '[');
    const rn_job *job = open != NULL ? rn_config_job(config, strtoul(open + 1, NULL, 10)) : NULL;

    if (job != NULL)
        (void)fprintf(out, "%s:%" PRIu32 ":%" PRIu32 ": ", job->place.file, job->place.line, job->place.column);
    (void)fprintf(out, "%s: %s\n", fault.path, fault.text);
    return err;
}

/* RATION_ERR_CONFIG: the jobs of a good config cannot be planned, or their plan does not fit. */
static int plan_check(const ration_config *config)
{
    rn_jobs *jobs = NULL;
    rn_clock clock;
    int err = rn_jobs_new(config, &jobs);

    rn_clock_start(&clock);
    if (err == RATION_OK)
        err = rn_plan_make(config, jobs, rn_clock_now(&clock), stdout);
    if (err == RATION_OK)
        err = rn_jobs_faults(jobs, jobs, plan_fault_print);
    if (err == RATION_OK && !rn_jobs_planned(jobs)->feasible)
        err = RATION_ERR_CONFIG;
    rn_jobs_free(jobs);
    return err;
}

/* What is possible in memory and not in a fleet. */
static int fleet_check(const ration_config *config, const char *file)
{
    const char *url = rn_config_settings(config)->fleet.redis;
    char fault[RN_MEMBER_TEXT] = "";
    const int err = url != NULL ? rn_member_may(url, ration_config_rules(config), fault) : RATION_OK;

    if (err == RATION_ERR_CONFIG)
        (void)printf("%s: %s\n", file, fault);
    return err;
}

int rn_cmd_validate(const rn_command *self, int argc, char **argv)
{
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};

    if (argc != 2 || argv[1][0] == '\0')
        return rn_usage_error(self, argc < 2 ? "which file?" : "one file at a time");
    if (argv[1][0] == '-')
        return rn_usage_error(self, "unknown option '%s'", argv[1]);

    int err = ration_config_load(argv[1], NULL, &config, &faults);

    if (config != NULL) {
        ration_config_faults warnings = {NULL, 0, NULL};

        warnings.items = ration_config_warnings(config, &warnings.count);
        rn_faults_print(&warnings, stdout);
        err = fleet_check(config, argv[1]);
        if (err == RATION_OK)
            err = plan_check(config);
    }
    if (faults.count > 0) {
        rn_faults_print(&faults, stdout);
    } else if (err != RATION_OK && err != RATION_ERR_CONFIG) {
        (void)fprintf(stderr, "ration validate: %s\n", ration_err_text(err));
    }
    ration_config_faults_fini(&faults);
    ration_config_free(config);
    return rn_finish_output(err == RATION_OK ? RN_EXIT_OK : err == RATION_ERR_CONFIG ? RN_EXIT_FAULTS : RN_EXIT_USAGE);
}
