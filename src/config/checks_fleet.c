/* SPDX-License-Identifier: MIT */
/*
 * What no single key of the fleet can know.
 *
 * A URL of Redis may have a password in it where others are used to write one: then it is not repeated.
 */
#include <string.h>

#include "config/loader.h"

void rn_check_unavailable(rn_loader *loader, const rn_node *given, void *self)
{
    (void)self;
    if (rn_node_get(given, "mode") != NULL && rn_node_get(given, "localLimit") != NULL)
        rn_fault_below(loader, given, "localLimit", NULL, "it is either `refuse` or a 'localLimit'");
}

static bool is_store_url(const char *url)
{
    static const char *const schemes[] = {
        "redis://",         "rediss://",        "unix:", "redis+sentinel://", "rediss+sentinel://",
        "redis+cluster://", "rediss+cluster://"};

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        const size_t size = strlen(schemes[i]);

        if (strncmp(url, schemes[i], size) == 0)
            return url[size] != '\0';
    }
    return false;
}

void rn_check_fleet(rn_loader *loader, const rn_node *given, void *self)
{
    const rn_fleet_settings *fleet = &((const rn_config_model *)self)->settings.fleet;

    if (fleet->redis == NULL)
        return;
    if (strchr(fleet->redis, '@') != NULL && strncmp(fleet->redis, "unix:", 5) != 0) {
        rn_fault_below(loader, given, "redis", "name the variables that have them: `userEnv`, `passwordEnv`",
                       "user and password have no place in the URL");
    } else if (!is_store_url(fleet->redis)) {
        rn_fault_below(loader, given, "redis",
                       "such as redis://10.0.0.7:6379, rediss://redis.example or unix:/run/redis",
                       "this is no URL of a Redis");
    }
    if (fleet->user_env != NULL && fleet->password_env == NULL)
        rn_fault_below(loader, given, "userEnv", NULL, "a user needs a password: 'passwordEnv'");
}

/* What a process has opened at its start. The rest of the fleet's settings may change while it runs. */
void rn_check_fleet_running(rn_loader *loader)
{
    const rn_fleet_settings *was = &rn_config_settings(loader->running)->fleet;
    const rn_fleet_settings *now = &loader->model->settings.fleet;

    rn_settled_text(loader, "settings.fleet.redis", was->redis, now->redis);
    if (was->redis == NULL || now->redis == NULL)
        return;
    rn_settled_text(loader, "settings.fleet.name", was->name, now->name);
    rn_settled_text(loader, "settings.fleet.userEnv", was->user_env, now->user_env);
    rn_settled_text(loader, "settings.fleet.passwordEnv", was->password_env, now->password_env);
    rn_settled_text(loader, "settings.fleet.caFile", was->ca, now->ca);
    rn_settled_us(loader, "settings.fleet.connectTimeout", was->connect_us, now->connect_us);
    rn_settled_us(loader, "settings.fleet.commandTimeout", was->command_us, now->command_us);
    rn_settled_us(loader, "settings.fleet.backoff", was->backoff_us, now->backoff_us);
}
