/* SPDX-License-Identifier: MIT */
/*
 * Two sets of rules, member by member. Slow and obvious: a member that is forgotten here is not compared, so each
 * struct is listed in the order of its declaration.
 */
#include "support/config.h"

#define SAME(member)                                                                                                   \
    if (a->member != b->member)                                                                                        \
    return #member
#define SAME_STR(member)                                                                                               \
    if (!same_str(a->member, b->member))                                                                               \
    return #member
#define SAME_RATIO(member)                                                                                             \
    if (a->member.num != b->member.num || a->member.den != b->member.den)                                              \
    return #member
#define SAME_LIST(items, count)                                                                                        \
    if (!same_strs(a->items, a->count, b->items, b->count))                                                            \
    return #items
#define SAME_EACH(items, count, differ)                                                                                \
    SAME(count);                                                                                                       \
    for (size_t i = 0; i < a->count; i++) {                                                                            \
        const char *told = differ(&a->items[i], &b->items[i]);                                                         \
        if (told != NULL)                                                                                              \
            return told;                                                                                               \
    }

static bool same_str(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_strs(const char *const *a, size_t a_count, const char *const *b, size_t b_count)
{
    for (size_t i = 0; i < a_count && i < b_count; i++) {
        if (!same_str(a[i], b[i]))
            return false;
    }
    return a_count == b_count;
}

static const char *window_differs(const ration_window *a, const ration_window *b)
{
    SAME(period);
    SAME(rolling_us);
    SAME(reset_minute);
    SAME_STR(zone);
    SAME(week_start);
    SAME(month_day);
    return NULL;
}

static const char *sync_differs(const ration_sync *a, const ration_sync *b)
{
    SAME_STR(limit_header);
    SAME_STR(remaining_header);
    SAME_STR(reset_header);
    SAME(reset_format);
    SAME(standard);
    return NULL;
}

static const char *tenant_share_differs(const ration_tenant_share *a, const ration_tenant_share *b)
{
    SAME_STR(name);
    SAME(weight);
    SAME_RATIO(lend);
    return NULL;
}

static const char *share_differs(const ration_share_rule *a, const ration_share_rule *b)
{
    SAME(ceiling);
    SAME_STR(follows);
    SAME_EACH(tenants, tenant_count, tenant_share_differs);
    SAME(reclaim_horizon_us);
    SAME(idle_after_us);
    SAME_STR(unknown_tenant);
    SAME_RATIO(lend);
    SAME(freeze_wanted);
    SAME(cooldown_us);
    return NULL;
}

static const char *class_differs(const ration_class_rule *a, const ration_class_rule *b)
{
    SAME_STR(name);
    SAME_RATIO(reserved);
    return NULL;
}

static const char *adaptive_differs(const ration_adaptive_rule *a, const ration_adaptive_rule *b)
{
    SAME(initial_limit);
    SAME(min_limit);
    SAME(max_limit);
    SAME(lease_ttl_us);
    SAME_RATIO(decrease_factor);
    SAME(increase_step);
    SAME(window_us);
    SAME(cooldown_us);
    SAME_EACH(classes, class_count, class_differs);
    SAME(recovery_fast);
    SAME(pause_on_retry_after);
    SAME(lend_horizon_us);
    SAME(lend_idle_us);
    return NULL;
}

static const char *limit_differs(const ration_limit_rule *a, const ration_limit_rule *b)
{
    SAME_STR(name);
    SAME(kind);
    SAME(counts);
    SAME(enforce);
    SAME_LIST(scope, scope_count);
    SAME_LIST(endpoints, endpoint_count);
    SAME_LIST(methods, method_count);
    SAME_STR(requests_with_var);
    SAME(auth_requests);
    SAME(rate.units);
    SAME(rate.per_us);
    SAME(burst);
    SAME(margin);
    SAME(max);
    SAME(max_auto);
    SAME(when_exhausted);
    SAME(arrival_us);
    SAME(max_keys);

    const char *told = window_differs(&a->window, &b->window);

    if (told == NULL)
        told = sync_differs(&a->sync, &b->sync);
    if (told == NULL)
        told = share_differs(&a->share, &b->share);
    return told != NULL ? told : adaptive_differs(&a->adaptive, &b->adaptive);
}

static const char *defaults_differ(const ration_defaults *a, const ration_defaults *b)
{
    SAME(cost);
    SAME(hold_us);
    SAME(priority);
    SAME_STR(class_name);
    SAME_STR(tenant);
    SAME(auth);
    return NULL;
}

static const char *endpoint_differs(const ration_endpoint_rule *a, const ration_endpoint_rule *b)
{
    SAME_STR(path);
    return defaults_differ(&a->defaults, &b->defaults);
}

static const char *status_differs(const int *a, const int *b)
{
    return *a == *b ? NULL : "status";
}

static const char *errors_differ(const ration_error_rule *a, const ration_error_rule *b)
{
    SAME_EACH(rate_limited, rate_limited_count, status_differs);
    SAME_STR(body_contains);
    SAME(default_penalty_us);
    SAME(max_penalty_us);
    SAME(penalize);
    SAME_EACH(transient, transient_count, status_differs);
    SAME_EACH(throttled, throttled_count, status_differs);
    SAME_EACH(failure, failure_count, status_differs);
    return NULL;
}

static const char *breaker_differs(const ration_breaker_rule *a, const ration_breaker_rule *b)
{
    SAME(strategy);
    SAME(threshold);
    SAME_RATIO(ratio);
    SAME(size);
    SAME(duration_us);
    SAME(minimum_calls);
    SAME(recovery);
    SAME(probes);
    SAME_STR(check_method);
    SAME_STR(check_path);
    SAME_EACH(check_expect, check_expect_count, status_differs);
    SAME(backoff_initial_us);
    SAME_RATIO(backoff_multiplier);
    SAME(backoff_max_us);
    SAME(idle_interval_us);
    SAME(idle_failures);
    SAME_LIST(scope, scope_count);
    return NULL;
}

static const char *provider_differs(const ration_provider_rule *a, const ration_provider_rule *b)
{
    SAME_STR(name);
    SAME_EACH(endpoints, endpoint_count, endpoint_differs);
    SAME_EACH(limits, limit_count, limit_differs);

    const char *told = errors_differ(&a->errors, &b->errors);

    if (told == NULL)
        told = breaker_differs(&a->breaker, &b->breaker);
    return told != NULL ? told : defaults_differ(&a->defaults, &b->defaults);
}

static const char *account_differs(const ration_account_rule *a, const ration_account_rule *b)
{
    SAME_STR(name);
    SAME_STR(provider);
    SAME_STR(target);
    SAME_STR(credential_key);
    SAME_RATIO(share);
    SAME_EACH(limits, limit_count, limit_differs);
    return NULL;
}

static const char *tenant_differs(const ration_tenant_rule *a, const ration_tenant_rule *b)
{
    SAME_STR(name);
    SAME(weight);
    return NULL;
}

static const char *zone_differs(const ration_zone_data *a, const ration_zone_data *b)
{
    SAME_STR(name);
    SAME(size);
    return memcmp(a->data, b->data, a->size) == 0 ? NULL : "zone data";
}

/* NOLINTNEXTLINE(readability-function-size): one statement a member */
const char *rules_differ(const ration_rules *a, const ration_rules *b)
{
    SAME_STR(instance);
    SAME_RATIO(retry_reserve);
    SAME(queue_order);
    SAME(max_waiters);
    SAME(max_waiters_per_tenant);
    SAME(max_leases);
    SAME_EACH(tenants, tenant_count, tenant_differs);
    SAME_EACH(providers, provider_count, provider_differs);
    SAME_EACH(accounts, account_count, account_differs);
    SAME_EACH(zones, zone_count, zone_differs);
    SAME(enforcer);
    return NULL;
}
