/* SPDX-License-Identifier: MIT */
/*
 * Jobs over HTTP: the plan for whoever runs them, and what they report of their runs.
 *
 * A name that nobody has is answered with the nearest one that somebody has: job runners are small scripts, and a
 * typing error in one should not cost an afternoon.
 */
#include "base/mem.h"
#include "base/text.h"
#include "serve/api_parts.h"
#include "serve/route.h"
#include "serve/run_body.h"
#include "serve/status.h"

static void reject_job(const rn_api *api, rn_inbound *in, ration_text name, const char *field)
{
    const char *near = api->planning != NULL ? rn_planning_nearest(api->planning, name) : NULL;
    char detail[2 * RN_API_NAME_MAX + 64];
    rn_builder b;

    rn_builder_init(&b, detail, sizeof detail);
    rn_builder_str(&b, "the config has no job of this name");
    if (near != NULL) {
        rn_builder_str(&b, " (");
        rn_builder_text(&b, rn_text_slice(ration_text_of(near), 0, RN_API_NAME_MAX));
        rn_builder_str(&b, "?)");
    }
    rn_api_reject(in, 404, "unknown_job", "No such job", detail, ration_text_of(field));
}

static size_t job_find(const rn_api *api, ration_text name)
{
    return api->planning != NULL ? rn_jobs_find(rn_planning_jobs(api->planning), name) : SIZE_MAX;
}

static const rn_job *job_at(const rn_api *api, size_t job)
{
    return job != SIZE_MAX ? rn_jobs_at(rn_planning_jobs(api->planning), job) : NULL;
}

/* ---- the plan */

int rn_api_plan_write(rn_api *api, rn_output *out)
{
    const rn_jobs *jobs = api->planning != NULL ? rn_planning_jobs(api->planning) : NULL;

    if (jobs == NULL || rn_jobs_planned(jobs) == NULL)
        return RATION_ERR_NOMEM;
    rn_jobs_json(jobs, rn_loop_now(api->loop), out);
    rn_output_newline(out);
    return out->err;
}

bool rn_api_job_split(ration_text path, ration_text *name)
{
    static const ration_text prefix = {"/v1/plan/jobs/", 14};
    size_t more = 0;

    if (!rn_text_eq(rn_text_slice(path, 0, prefix.size), prefix))
        return false;
    *name = rn_text_slice(path, prefix.size, path.size);
    return name->size > 0 && !rn_text_find(*name, (ration_text){"/", 1}, &more);
}

static void job_show(rn_api *api, rn_inbound *in, size_t job)
{
    const rn_jobs *jobs = rn_planning_jobs(api->planning);
    rn_output body;

    if (rn_jobs_planned(jobs) == NULL) {
        rn_api_fail(in, RATION_ERR_NOMEM);
        return;
    }
    rn_output_init(&body, rn_mem_default(), RN_STATUS_MAX);
    rn_job_json(jobs, job, rn_loop_now(api->loop), &body);
    rn_output_newline(&body);
    rn_reply(in, 200, RN_API_JSON, NULL, &body);
    rn_output_fini(&body);
}

void rn_api_job_page(rn_api *api, rn_inbound *in, const rn_client *client, ration_text name)
{
    char buffer[RN_API_NAME_MAX];
    ration_text plain;

    if (rn_route_decode(name, buffer, sizeof buffer, &plain) != RATION_OK) {
        rn_api_reject(in, 400, "bad_request", "Malformed target",
                      "a % without two hexadecimal digits behind it, or longer than any name", ration_text_of("name"));
        return;
    }
    const size_t job = job_find(api, plain);
    if ((client == NULL || !client->views) && !rn_api_knows_job(api, in, client, job_at(api, job)))
        return;
    if (job == SIZE_MAX) {
        reject_job(api, in, plain, "name");
    } else {
        job_show(api, in, job);
    }
}

/* ---- runs */

/* What of a body that can be read makes no sense; the member at fault, and why. NULL: nothing. */
static const char *run_fault(const rn_job *job, const rn_run_body *asked, const char **why)
{
    *why = "this job has no fanOut in the config, so it has no children";
    if (job->fan_out == NULL && asked->children != RATION_UNSET && asked->children != 1)
        return "fanOut";
    *why = "there was nothing to run, so there were no requests";
    if (asked->children == 0 && (asked->run.requests > 0 || asked->run.retries > 0))
        return "requests";
    return NULL;
}

static void run_act(rn_api_call *call, const rn_run_body *asked)
{
    rn_api *api = call->api;
    const size_t job = job_find(api, asked->job);
    const char *why = NULL;

    if (!rn_api_knows_job(api, call->in, call->client, job_at(api, job))) {
        rn_api_call_end(call);
        return;
    }
    if (job == SIZE_MAX) {
        reject_job(api, call->in, asked->job, "job");
        rn_api_call_end(call);
        return;
    }
    const char *field = run_fault(rn_jobs_at(rn_planning_jobs(api->planning), job), asked, &why);
    int err = RATION_ERR_INVALID;
    if (field == NULL) {
        field = "requests";
        why = "more than can be planned with";
        err = rn_planning_reported(api->planning, job, &asked->run, asked->children, asked->took_us);
    }
    if (err == RATION_OK) {
        rn_api_answer(call, "noted", RATION_UNSET);
        return;
    }
    if (err == RATION_ERR_INVALID) {
        rn_api_reject(call->in, 400, "bad_request", "No such run", why, ration_text_of(field));
    } else {
        rn_api_fail(call->in, err);
    }
    rn_api_call_end(call);
}

void rn_api_run(rn_api_call *call, ration_text body)
{
    rn_trace_fault fault;
    rn_run_body asked;
    rn_arena arena;

    rn_arena_init(&arena, rn_mem_default());
    const int err = rn_run_body_read(body, &arena, &asked, &fault);
    if (err == RATION_OK) {
        run_act(call, &asked);
    } else if (err == RATION_ERR_SYNTAX) {
        rn_api_reject_body(call, &fault);
    } else {
        rn_api_fail(call->in, err);
        rn_api_call_end(call);
    }
    rn_arena_fini(&arena);
}
