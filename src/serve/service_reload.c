/* SPDX-License-Identifier: MIT */
/*
 * Other rules for a running service: all of it, or nothing. Chapter 7; decisions 0017 and 0023.
 *
 * First all that can fail: the file is read and checked, and every part makes ready what it will need, beside what it
 * has. The engine's reload is the last of these steps, since it alone cannot be undone. Then every part takes what was
 * made ready; none of that can fail. The whole is one turn of the loop, so nobody sees half of it.
 *
 * A config is freed with the last call that goes by it, never before the turn is over.
 *
 * Invariant: `owned` is the gateway's present config, or NULL while that is the caller's.
 */
#include <ration/operate.h>

#include "base/mem.h"
#include "base/text.h"
#include "net/clock.h"
#include "serve/destinations.h"
#include "serve/service_parts.h"

/* What was made ready. */
typedef struct ready {
    ration_config *config;
    rn_destinations *destinations;
    rn_planning_next planning;
    char *json; /* for the recording; NULL: there is none */
    size_t json_bytes;
} ready;

static int destinations_ready(rn_service *s, ready *r, rn_reload *out)
{
    rn_net_error error = {""};
    const int err = rn_destinations_new(s->gateway, r->config, &r->destinations, &error);

    if (err == RATION_ERR_CONFIG)
        rn_reload_fault(out, s->config_file, error.text);
    return err;
}

static int make_ready(rn_service *s, ready *r, rn_reload *out)
{
    const ration_rules *rules = ration_config_rules(r->config);

    /* The file may have a ledger where the command line has not. */
    if (rn_rules_are_strict(rules) && (s->keeper == NULL || !rn_keeper_keeps(s->keeper))) {
        rn_reload_fault(out, s->config_file, "a strict limit needs a ledger, and this process keeps none");
        return RATION_ERR_CONFIG;
    }
    int err = rn_config_compare(rn_gateway_config(s->gateway), r->config, out, rn_reload_note);
    if (err == RATION_OK)
        err = destinations_ready(s, r, out);
    if (err == RATION_OK)
        err = rn_planning_prepare(s->planning, r->config, &r->planning);
    if (err == RATION_OK && s->recorder != NULL)
        err = rn_config_json(r->config, &r->json, &r->json_bytes);
    return err;
}

static int member_reload(rn_service *s, const ready *r, rn_reload *out)
{
    const rn_fleet_options fleet = rn_service_fleet(s, r->config);
    rn_net_error error = {""};
    const int err = rn_fleet_rejoin(s->member, &fleet, &error);

    if (err == RATION_ERR_CONFIG)
        rn_reload_fault(out, s->config_file, error.text);
    return err;
}

static int engine_reload(rn_service *s, const ready *r, rn_reload *out)
{
    const ration_rules *rules = ration_config_rules(r->config);
    ration_fault fault = {"", ""};
    int err = RATION_OK;

    if (s->recorder != NULL)
        err = rn_recorder_reload(s->recorder, (ration_text){r->json, r->json_bytes}, rules);
    if (err == RATION_OK && s->member != NULL)
        return member_reload(s, r, out);
    if (err == RATION_OK)
        err = ration_engine_reload(s->engine, rn_loop_now(s->loop), rules, &fault);
    if (err == RATION_ERR_CONFIG)
        rn_reload_fault(out, s->config_file, fault.text);
    rn_gateway_touch(s->gateway);
    return err;
}

/* The engine has the rules; nothing from here on can fail. */
static void adopt(rn_service *s, ready *r)
{
    const rn_settings *settings = rn_config_settings(r->config);
    ration_config *was = s->owned;

    s->owned = r->config;
    s->log->format = settings->log_format;
    s->log->level = settings->log_level;
    rn_control_part(s->control);
    rn_gateway_adopt(s->gateway, r->destinations, r->planning.heirs, was);
    rn_control_adopt(s->control);
    rn_planning_adopt(s->planning, &r->planning);
    if (s->keeper != NULL)
        rn_keeper_reloaded(s->keeper, ration_config_rules(r->config), settings->ledger_flush_us);
}

static void unready(ready *r)
{
    if (r->destinations != NULL)
        rn_destinations_free(r->destinations);
    rn_planning_forget(&r->planning);
    ration_config_free(r->config);
}

static int config_read(const rn_service *s, ration_config **config, rn_reload *out)
{
    const ration_text salt = s->member != NULL   ? rn_member_salt(s->member)
                             : s->keeper != NULL ? rn_keeper_salt(s->keeper)
                                                 : (ration_text){NULL, 0};
    const ration_config_options options = {.salt = salt.data, .salt_size = salt.size};
    const int err =
        rn_config_load_beside(rn_gateway_config(s->gateway), s->config_file, &options, config, &out->faults);

    return err == RATION_ERR_IO ? RATION_ERR_CONFIG : err;
}

static rn_reload_result reload(rn_service *s, rn_reload *out)
{
    ready r = {.config = NULL};

    if (s->config_file == NULL)
        return RN_RELOAD_NO_FILE;
    if (rn_gateway_draining(s->gateway))
        return RN_RELOAD_DRAINING;
    int err = config_read(s, &r.config, out);
    if (err == RATION_OK && s->exposed && !rn_service_guarded(r.config)) {
        rn_reload_fault(out, s->config_file, "others can reach a listener, so settings.token or clients are needed");
        err = RATION_ERR_CONFIG;
    }
    if (err == RATION_OK)
        err = make_ready(s, &r, out);
    if (err == RATION_OK)
        err = engine_reload(s, &r, out);
    rn_mem_free(rn_mem_default(), r.json);
    if (err == RATION_OK) {
        adopt(s, &r);
        return RN_RELOADED;
    }
    unready(&r);
    out->err = err;
    return err == RATION_ERR_CONFIG ? RN_RELOAD_FAULTY : RN_RELOAD_FAILED;
}

static void reload_tell(const rn_service *s, const rn_reload *reload, const char *by, ration_time now)
{
    const bool done = reload->result == RN_RELOADED;
    rn_output *out = rn_bulletin_begin(s->bulletin, "operator", now);

    if (out == NULL)
        return;
    rn_output_str(out, "did", done ? "reloaded" : "reload_failed");
    rn_output_str(out, "by", by);
    if (done) {
        rn_output_int(out, "added", (int64_t)reload->changed[RN_CONFIG_ADDED]);
        rn_output_int(out, "removed", (int64_t)reload->changed[RN_CONFIG_REMOVED]);
        rn_output_int(out, "changed", (int64_t)reload->changed[RN_CONFIG_CHANGED]);
    } else {
        rn_output_str(out, "why", rn_reload_result_name(reload->result));
        rn_output_int(out, "faults", (int64_t)reload->faults.count);
    }
    rn_bulletin_tell(s->bulletin);
}

/* What is allowed and probably not meant stands in the log, as after a start. */
static void warnings_log(const rn_service *s, ration_time now)
{
    size_t count = 0;
    const ration_config_fault *warnings = ration_config_warnings(s->owned, &count);

    rn_log_config_faults(s->log, now, warnings, count);
}

void rn_service_reload(rn_service *s, const char *by, rn_reload *out)
{
    const ration_time now = rn_loop_now(s->loop);
    const int64_t began = rn_clock_ticks();

    out->result = reload(s, out);
    out->took_us = rn_clock_ticks() - began;
    const bool done = out->result == RN_RELOADED;
    if (done) {
        s->reloads.done++;
        s->reloads.loaded_at = now;
        warnings_log(s, now);
    } else {
        s->reloads.failed++;
        s->reloads.failed_at = now;
    }
    s->reloads.well = done;
    rn_reload_log(out, s->log, now, by, s->config_file);
    reload_tell(s, out, by, now);
}
