/* SPDX-License-Identifier: MIT */
/*
 * What the simulated provider has seen, on a page of its own port. It is asked for without a credential, takes no part
 * in any limit, and changes nothing.
 */
#include "base/text.h"
#include "simulate/provider_parts.h"

static void counts_write(rn_output *json, rn_shape shape, const rn_simulator_counts *counts)
{
    rn_output_int(json, "requests", (int64_t)counts->requests);
    rn_output_int(json, "ok", (int64_t)counts->ok);
    rn_output_int(json, "rateLimited", (int64_t)counts->rate_limited);
    rn_output_int(json, "errors", (int64_t)counts->errors);
    rn_output_int(json, "gone", (int64_t)counts->gone);
    if (shape == RN_SHAPE_PLAIN)
        return;
    rn_output_int(json, "rejected", (int64_t)counts->rejected);
    rn_output_open(json, "usage", '{');
    rn_output_int(json, "promptTokens", counts->prompt_tokens);
    rn_output_int(json, "completionTokens", counts->answer_tokens);
    rn_output_int(json, "totalTokens", counts->prompt_tokens + counts->answer_tokens);
    rn_output_close(json, '}');
}

/* Why calls were refused, the hidden ceiling first; what never happened is left out, but for the ceiling. */
static void causes_write(rn_output *json, const rn_simulator *sim)
{
    rn_output_open(json, "causes", '{');
    rn_output_int(json, "ceiling", (int64_t)sim->causes[RATION_REASON_NONE]);
    for (int reason = RATION_REASON_NONE + 1; reason < RATION_REASON_COUNT; reason++) {
        if (sim->causes[reason] > 0)
            rn_output_int(json, ration_reason_name((ration_reason)reason), (int64_t)sim->causes[reason]);
    }
    rn_output_close(json, '}');
}

/* Calls times milliseconds, but for `now` and the times. */
static void ceiling_write(rn_output *json, rn_simulator *sim)
{
    const int64_t since_us = rn_sim_since_start(sim, rn_sim_now(sim));
    const rn_capacity_meter *meter = &sim->meter;

    rn_capacity_meter_set(&sim->meter, since_us, (int64_t)sim->in_flight);
    rn_output_open(json, "ceiling", '{');
    rn_output_int(json, "now", rn_capacity_at(meter->capacity, since_us));
    rn_output_int(json, "watchedMs", meter->at_us / 1000);
    rn_output_int(json, "aboveMs", meter->above_us / 1000);
    rn_output_int(json, "callMs", meter->ceiling_us / 1000);
    rn_output_int(json, "usedCallMs", meter->used_us / 1000);
    rn_output_int(json, "overCallMs", meter->over_us / 1000);
    rn_output_close(json, '}');
}

static void respond_counts(rn_simulator *sim, rn_inbound *in, rn_answer *answer)
{
    rn_output json = rn_sim_json_begin();

    counts_write(&json, sim->options.shape, &sim->counts);
    rn_output_int(&json, "inFlight", (int64_t)sim->in_flight);
    rn_output_int(&json, "peakInFlight", (int64_t)sim->peak_in_flight);
    causes_write(&json, sim);
    if (sim->options.behaviour.ceiling.low > 0)
        ceiling_write(&json, sim);
    rn_output_open(&json, "external", '{');
    rn_output_int(&json, "spent", (int64_t)sim->external_spent);
    rn_output_int(&json, "refused", (int64_t)sim->external_refused);
    rn_output_close(&json, '}');
    rn_output_open(&json, "credentials", '{');
    for (rn_map_node *node = rn_map_first(&sim->clients); node != NULL; node = rn_map_next(node)) {
        rn_output_open(&json, rn_sim_client_of(node)->name, '{');
        counts_write(&json, sim->options.shape, &rn_sim_client_of(node)->counts);
        rn_output_close(&json, '}');
    }
    rn_output_close(&json, '}');
    rn_output_close(&json, '}');
    rn_sim_respond_json(in, 200, answer, &json);
}

void rn_sim_control(rn_simulator *sim, rn_inbound *in, const rn_http_head *head)
{
    rn_answer answer;

    rn_answer_init(&answer);
    if (!rn_text_is(head->target, RN_SIM_CONTROL "counts")) {
        rn_sim_respond_error(in, 404, &answer, "not_found", "there is only " RN_SIM_CONTROL "counts");
    } else if (!rn_text_is(head->method, "GET")) {
        rn_sim_respond_error(in, 405, &answer, "method_not_allowed", "only GET");
    } else {
        respond_counts(sim, in, &answer);
    }
}
