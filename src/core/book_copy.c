/* SPDX-License-Identifier: MIT */

/*
 * Deep copies of rules. A struct is copied whole and then each pointer in it is replaced by a copy of what it points
 * to, so that a plain member that is added to a rule needs no line here.
 */

#include "core/book_copy.h"

#include <string.h>

static int copy_string(rn_arena *arena, const char **string)
{
    if (*string == NULL)
        return RATION_OK;
    *string = rn_arena_strdup(arena, *string);
    return *string == NULL ? RATION_ERR_NOMEM : RATION_OK;
}

static int copy_strings(rn_arena *arena, const char *const **list, size_t count)
{
    const char **copy = rn_arena_zalloc(arena, count, sizeof(const char *));

    if (copy == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        copy[i] = rn_arena_strdup(arena, (*list)[i] != NULL ? (*list)[i] : "");
        if (copy[i] == NULL)
            return RATION_ERR_NOMEM;
    }
    *list = copy;
    return RATION_OK;
}

static int copy_ints(rn_arena *arena, const int **list, size_t count)
{
    int *copy = rn_arena_zalloc(arena, count, sizeof *copy);

    if (copy == NULL)
        return RATION_ERR_NOMEM;
    if (count > 0)
        memcpy(copy, *list, count * sizeof *copy);
    *list = copy;
    return RATION_OK;
}

static bool has_list(const void *list, size_t count)
{
    return list != NULL || count == 0;
}

static bool limits_have_lists(const ration_limit_rule *limits, size_t count)
{
    if (!has_list(limits, count))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!has_list(limits[i].scope, limits[i].scope_count) ||
            !has_list(limits[i].endpoints, limits[i].endpoint_count) ||
            !has_list(limits[i].methods, limits[i].method_count) ||
            !has_list(limits[i].share.tenants, limits[i].share.tenant_count) ||
            !has_list(limits[i].adaptive.classes, limits[i].adaptive.class_count))
            return false;
    }
    return true;
}

static bool provider_has_lists(const ration_provider_rule *p)
{
    return has_list(p->endpoints, p->endpoint_count) &&
           has_list(p->errors.rate_limited, p->errors.rate_limited_count) &&
           has_list(p->errors.transient, p->errors.transient_count) &&
           has_list(p->errors.throttled, p->errors.throttled_count) &&
           has_list(p->errors.failure, p->errors.failure_count) &&
           has_list(p->breaker.check_expect, p->breaker.check_expect_count) &&
           has_list(p->breaker.scope, p->breaker.scope_count) && limits_have_lists(p->limits, p->limit_count);
}

bool rn_rules_have_lists(const ration_rules *rules)
{
    if (!has_list(rules->tenants, rules->tenant_count) || !has_list(rules->providers, rules->provider_count) ||
        !has_list(rules->accounts, rules->account_count) || !has_list(rules->zones, rules->zone_count))
        return false;
    for (size_t i = 0; i < rules->zone_count; i++) {
        if (!has_list(rules->zones[i].data, rules->zones[i].size))
            return false;
    }
    for (size_t i = 0; i < rules->provider_count; i++) {
        if (!provider_has_lists(&rules->providers[i]))
            return false;
    }
    for (size_t i = 0; i < rules->account_count; i++) {
        if (!limits_have_lists(rules->accounts[i].limits, rules->accounts[i].limit_count))
            return false;
    }
    return true;
}

static int copy_share(rn_arena *arena, ration_share_rule *share)
{
    ration_tenant_share *copy = rn_arena_zalloc(arena, share->tenant_count, sizeof *copy);

    if (copy == NULL || copy_string(arena, &share->follows) != RATION_OK ||
        copy_string(arena, &share->unknown_tenant) != RATION_OK)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < share->tenant_count; i++) {
        copy[i] = share->tenants[i];
        if (copy_string(arena, &copy[i].name) != RATION_OK)
            return RATION_ERR_NOMEM;
    }
    share->tenants = copy;
    return RATION_OK;
}

static int copy_adaptive(rn_arena *arena, ration_adaptive_rule *adaptive)
{
    ration_class_rule *copy = rn_arena_zalloc(arena, adaptive->class_count, sizeof *copy);

    if (copy == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < adaptive->class_count; i++) {
        copy[i] = adaptive->classes[i];
        if (copy_string(arena, &copy[i].name) != RATION_OK)
            return RATION_ERR_NOMEM;
    }
    adaptive->classes = copy;
    return RATION_OK;
}

int rn_copy_limit(rn_arena *arena, const ration_limit_rule *from, ration_limit_rule *to)
{
    *to = *from;
    if (copy_string(arena, &to->name) != RATION_OK || copy_strings(arena, &to->scope, to->scope_count) != RATION_OK ||
        copy_strings(arena, &to->endpoints, to->endpoint_count) != RATION_OK ||
        copy_strings(arena, &to->methods, to->method_count) != RATION_OK ||
        copy_string(arena, &to->requests_with_var) != RATION_OK || copy_string(arena, &to->window.zone) != RATION_OK ||
        copy_string(arena, &to->sync.limit_header) != RATION_OK ||
        copy_string(arena, &to->sync.remaining_header) != RATION_OK ||
        copy_string(arena, &to->sync.reset_header) != RATION_OK || copy_share(arena, &to->share) != RATION_OK ||
        copy_adaptive(arena, &to->adaptive) != RATION_OK)
        return RATION_ERR_NOMEM;
    return RATION_OK;
}

static int copy_defaults(rn_arena *arena, ration_defaults *defaults)
{
    const int err = copy_string(arena, &defaults->class_name);

    return err != RATION_OK ? err : copy_string(arena, &defaults->tenant);
}

static int copy_endpoints(rn_arena *arena, ration_provider_rule *to)
{
    ration_endpoint_rule *copy = rn_arena_zalloc(arena, to->endpoint_count, sizeof *copy);

    if (copy == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < to->endpoint_count; i++) {
        copy[i] = to->endpoints[i];
        if (copy_string(arena, &copy[i].path) != RATION_OK || copy_defaults(arena, &copy[i].defaults) != RATION_OK)
            return RATION_ERR_NOMEM;
    }
    to->endpoints = copy;
    return RATION_OK;
}

static int copy_limits(rn_arena *arena, ration_provider_rule *to)
{
    ration_limit_rule *copy = rn_arena_zalloc(arena, to->limit_count, sizeof *copy);

    if (copy == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < to->limit_count; i++) {
        if (rn_copy_limit(arena, &to->limits[i], &copy[i]) != RATION_OK)
            return RATION_ERR_NOMEM;
    }
    to->limits = copy;
    return RATION_OK;
}

static int copy_errors(rn_arena *arena, ration_error_rule *errors)
{
    if (copy_string(arena, &errors->body_contains) != RATION_OK ||
        copy_ints(arena, &errors->rate_limited, errors->rate_limited_count) != RATION_OK ||
        copy_ints(arena, &errors->transient, errors->transient_count) != RATION_OK ||
        copy_ints(arena, &errors->throttled, errors->throttled_count) != RATION_OK)
        return RATION_ERR_NOMEM;
    return copy_ints(arena, &errors->failure, errors->failure_count);
}

static int copy_breaker(rn_arena *arena, ration_breaker_rule *breaker)
{
    if (copy_string(arena, &breaker->check_method) != RATION_OK ||
        copy_string(arena, &breaker->check_path) != RATION_OK ||
        copy_ints(arena, &breaker->check_expect, breaker->check_expect_count) != RATION_OK)
        return RATION_ERR_NOMEM;
    return copy_strings(arena, &breaker->scope, breaker->scope_count);
}

int rn_copy_provider(rn_arena *arena, const ration_provider_rule *from, ration_provider_rule *to)
{
    *to = *from;
    if (copy_string(arena, &to->name) != RATION_OK || copy_endpoints(arena, to) != RATION_OK ||
        copy_limits(arena, to) != RATION_OK || copy_errors(arena, &to->errors) != RATION_OK ||
        copy_breaker(arena, &to->breaker) != RATION_OK)
        return RATION_ERR_NOMEM;
    return copy_defaults(arena, &to->defaults);
}
