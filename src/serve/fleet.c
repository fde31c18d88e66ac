/* SPDX-License-Identifier: MIT */
/*
 * A process as a member of a fleet.
 *
 * User and password come from the environment variables that the config names, and go nowhere but to the store's
 * connection. What is wrong with a store that is away stands in the log once when it goes and once when it is back;
 * each call that suffers from it is told as any other refusal is.
 */
#include "serve/fleet.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/text.h"

static void error_set(rn_net_error *error, const char *what, const char *more, const char *end)
{
    rn_builder b;

    rn_builder_init(&b, error->text, sizeof error->text);
    rn_builder_str(&b, what);
    rn_builder_str(&b, more);
    rn_builder_str(&b, end);
}

bool rn_fleet_is(const ration_config *config)
{
    return rn_config_settings(config)->fleet.redis != NULL;
}

/* What a variable has; NULL: the config names none. RATION_ERR_CONFIG: it is not set. */
static int variable_read(const char *name, const char **out, rn_net_error *error)
{
    *out = name != NULL ? getenv(name) : NULL;
    if (name == NULL || (*out != NULL && (*out)[0] != '\0'))
        return RATION_OK;
    error_set(error, "settings.fleet: the environment variable ", name, " is not set");
    return RATION_ERR_CONFIG;
}

typedef int member_make(rn_member **member, const rn_member_options *options, char *fault);

static int member_new(rn_member **member, const rn_member_options *options, char *fault)
{
    return rn_member_new(options, member, fault);
}

static int member_reload(rn_member **member, const rn_member_options *options, char *fault)
{
    return rn_member_reload(*member, options, fault);
}

static int with_options(const rn_fleet_options *from, rn_member **member, member_make *make, rn_net_error *error)
{
    const rn_fleet_settings *fleet = &rn_config_settings(from->config)->fleet;
    const rn_member_settings settings = {
        .url = fleet->redis,
        .name = fleet->name,
        .ca = fleet->ca,
        .connect_us = fleet->connect_us,
        .command_us = fleet->command_us,
        .backoff_us = fleet->backoff_us,
        .local_limit = fleet->local_limit,
        .lease_ttl_us = fleet->lease_ttl_us,
        .waiter_ttl_us = fleet->waiter_ttl_us,
        .replicas = (unsigned)fleet->replicas,
        .prefetch = fleet->prefetch,
        .prefetch_ttl_us = fleet->prefetch_ttl_us,
    };
    char fingerprint[RN_CONFIG_FINGERPRINT];
    char fault[RN_MEMBER_TEXT] = "";
    rn_member_options options = {
        .loop = from->loop,
        .settings = &settings,
        .rules = ration_config_rules(from->config),
        .config = fingerprint,
        .instance = rn_config_settings(from->config)->instance,
        .first_generation = from->first_generation,
        .woken = from->woken,
        .changed = from->changed,
        .failed = from->failed,
        .salt_known = from->salt_known,
        .ctx = from->ctx,
    };

    int err = rn_config_fingerprint(from->config, fingerprint);
    if (err == RATION_OK)
        err = variable_read(fleet->user_env, &options.user, error);
    if (err == RATION_OK)
        err = variable_read(fleet->password_env, &options.password, error);
    if (err != RATION_OK)
        return err;
    err = make(member, &options, fault);
    if (err == RATION_ERR_CONFIG)
        error_set(error, fault, "", "");
    return err;
}

int rn_fleet_join(const rn_fleet_options *options, rn_member **out, rn_net_error *error)
{
    return with_options(options, out, member_new, error);
}

int rn_fleet_rejoin(rn_member *member, const rn_fleet_options *options, rn_net_error *error)
{
    return with_options(options, &member, member_reload, error);
}

void rn_fleet_rekey(rn_member *member, const ration_config *config, ration_text salt)
{
    ration_rules rules;
    rn_arena arena;

    rn_arena_init(&arena, rn_config_allocator(config));
    if (rn_config_salted(config, salt, &arena, &rules) == RATION_OK)
        (void)rn_member_rekey(member, &rules);
    rn_arena_fini(&arena);
}

void rn_fleet_tell(const rn_log *log, rn_bulletin *bulletin, ration_time now, rn_member_state state, const char *text)
{
    const bool up = state == RN_MEMBER_UP;

    rn_log_line(log, now, up ? "info" : "warn", up ? "the fleet's store is there" : "the fleet's store is away",
                "state", rn_member_state_name(state), "words", up ? NULL : text, NULL);

    rn_output *out = rn_bulletin_begin(bulletin, "fleet", now);

    if (out == NULL)
        return;
    rn_output_str(out, "state", rn_member_state_name(state));
    if (!up)
        rn_output_str(out, "error", text);
    rn_bulletin_tell(bulletin);
}

static void members_write(const rn_member_status *status, rn_output *out)
{
    rn_output_open(out, "members", '[');
    for (size_t i = 0; i < status->member_count; i++) {
        const rn_member_seen *seen = &status->members[i];

        rn_output_open(out, NULL, '{');
        rn_output_str(out, "id", seen->id);
        rn_output_text(out, "instance", ration_text_of(seen->instance));
        rn_output_text(out, "config", ration_text_of(seen->config));
        rn_output_ms(out, "heardMs", seen->heard_us);
        rn_output_bool(out, "self", seen->self);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
}

static void scripts_write(const rn_member_status *status, rn_output *out)
{
    rn_output_open(out, "scripts", '[');
    for (size_t i = 0; i < status->script_count; i++) {
        const rn_member_script *script = &status->scripts[i];

        rn_output_open(out, NULL, '{');
        rn_output_str(out, "name", script->name);
        rn_output_int(out, "calls", (int64_t)script->calls);
        rn_output_int(out, "p50Us", script->p50_us);
        rn_output_int(out, "p99Us", script->p99_us);
        rn_output_close(out, '}');
    }
    rn_output_close(out, ']');
}

static void prefetched_write(const rn_member_prefetched *units, rn_output *out)
{
    rn_output_open(out, "prefetched", '{');
    rn_output_int(out, "taken", (int64_t)units->taken);
    rn_output_int(out, "spent", (int64_t)units->spent);
    rn_output_int(out, "returned", (int64_t)units->returned);
    rn_output_int(out, "lost", (int64_t)units->lost);
    rn_output_int(out, "held", (int64_t)units->held);
    rn_output_close(out, '}');
}

void rn_fleet_write(const rn_member_status *status, rn_output *out)
{
    rn_output_open(out, "fleet", '{');
    rn_output_str(out, "state", rn_member_state_name(status->state));
    rn_output_ms(out, "since", status->since.us);
    members_write(status, out);
    rn_output_bool(out, "configDiffers", status->config_differs);
    if (status->figures_us != RATION_UNSET)
        rn_output_ms(out, "limitsAgeMs", status->figures_us);
    rn_output_int(out, "localLeases", (int64_t)status->local_leases);
    if (status->local_limit != RATION_UNSET)
        rn_output_int(out, "localLimit", status->local_limit);
    rn_output_int(out, "unavailable", (int64_t)status->unavailable);
    rn_output_int(out, "failed", (int64_t)status->failed);
    rn_output_int(out, "toldLate", (int64_t)status->told_late);
    rn_output_int(out, "toldNever", (int64_t)status->told_never);
    rn_output_int(out, "unreplicated", (int64_t)status->unreplicated);
    prefetched_write(&status->prefetched, out);
    scripts_write(status, out);
    if (status->last_error[0] != '\0')
        rn_output_text(out, "lastError", ration_text_of(status->last_error));
    rn_output_close(out, '}');
}
