/* SPDX-License-Identifier: MIT */
/*
 * What no single key of a breaker can know, and of the outcomes that feed it.
 *
 * As in checks.c. A key that would have no effect beside the others is a fault: it was meant to have one.
 */
#include <string.h>

#include "config/loader.h"
#include "core/breaker.h"

/* A health check is no caller's: it has no path, tenant or variables that a circuit could be told apart by. */
static void check_scope(rn_loader *loader, const rn_node *given, const ration_breaker_rule *rule)
{
    static const char *const known[] = {"instance", "provider", "account", "target", "credential"};
    const size_t path = rn_path_push(loader, ration_text_of("scope.by"));
    const rn_node *list = rn_node_at(given, "scope.by");
    const rn_entry *entry = list->kind == RN_NODE_LIST ? list->first : NULL;

    for (size_t i = 0; i < rule->scope_count && entry != NULL; i++, entry = entry->next) {
        const size_t item = rn_path_index(loader, i);
        size_t k = 0;

        while (rule->scope[i] != NULL && k < sizeof known / sizeof known[0] && strcmp(rule->scope[i], known[k]) != 0)
            k++;
        if (k == sizeof known / sizeof known[0]) {
            rn_loader_fault(loader, entry->value, NULL, "they have instance, provider, account, target and credential",
                            "this circuit is tried by health checks, and they have no such dimension");
        }
        rn_path_pop(loader, item);
    }
    rn_path_pop(loader, path);
}

static void check_recovery(rn_loader *loader, const rn_node *given, const ration_breaker_rule *rule)
{
    const rn_node *check = rn_node_get(given, "healthCheck");
    const bool by_check = rule->recovery == RATION_RECOVERY_HEALTH_CHECK;
    const bool checks = by_check || rn_node_get(given, "idleProbe") != NULL;

    if (checks && check == NULL) {
        rn_fault_below(loader, given, by_check ? "recovery" : "idleProbe", "such as { path: /health }",
                       "health checks need 'healthCheck'");
    }
    if (!checks && check != NULL) {
        rn_fault_below(loader, given, "healthCheck", NULL,
                       "'healthCheck' goes with `recovery: healthCheck` or an 'idleProbe' only");
    }
    if (by_check && rn_node_get(given, "probe") != NULL)
        rn_fault_below(loader, given, "probe", NULL, "'probe' goes with `recovery: probe` only");
    if (checks)
        check_scope(loader, given, rule);
}

static void check_backoff(rn_loader *loader, const rn_node *given, rn_provider_model *provider)
{
    const rn_node *backoff = rn_node_get(given, "backoff");
    const rn_node *initial = rn_node_get(backoff, "initial");
    const rn_node *multiplier = rn_node_get(backoff, "multiplier");
    const rn_node *max = rn_node_get(backoff, "max");
    const bool constant = rn_node_get(backoff, "delay") != NULL;
    ration_breaker_rule *rule = &provider->rule.breaker;

    rule->backoff_initial_us = constant ? provider->backoff_delay_us : provider->backoff_initial_us;
    if (backoff == NULL || backoff->kind != RN_NODE_MAP)
        return;
    if (constant ? initial != NULL || multiplier != NULL || max != NULL : initial == NULL || multiplier == NULL) {
        rn_fault_below(loader, given, "backoff", "such as { delay: 1s } or { initial: 1s, multiplier: 2, max: 30s }",
                       "a back-off is either a 'delay', or an 'initial' with its 'multiplier'");
    } else if (rule->backoff_max_us > 0 && rule->backoff_max_us < rule->backoff_initial_us) {
        rn_loader_fault(loader, max, "backoff.max", NULL, "'max' is below 'initial'");
    }
}

static void check_calls(rn_loader *loader, const rn_node *given, const ration_breaker_rule *rule)
{
    const bool has_calls = rn_node_get(given, "minimumCalls") != NULL;

    if (rule->strategy == RATION_BREAKER_COUNT && rule->minimum_calls > rule->size) {
        rn_fault_below(loader, given, has_calls ? "minimumCalls" : "size",
                       has_calls ? NULL : "give a lower 'minimumCalls' too: without it it is 10",
                       "fewer results are kept than 'minimumCalls' asks for, so the circuit could never open");
    }
}

static void check_core(rn_loader *loader, const rn_node *given, const ration_breaker_rule *rule)
{
    rn_breaker_spec spec;
    ration_fault fault = {"", ""};

    if (rn_breaker_spec_init(&spec, rule, &fault) != RATION_ERR_CONFIG)
        return;

    /* Its path begins with "breaker", which stands in the loader's already. */
    const char *below = strchr(fault.path, '.');
    const char *key = below != NULL ? below + 1 : "";

    rn_loader_fault(loader, rn_node_at(given, key), key, NULL, "%s", fault.text);
}

void rn_check_breaker(rn_loader *loader, const rn_node *given, void *self)
{
    rn_provider_model *provider = self;
    const size_t faults = loader->faults_before;

    check_calls(loader, given, &provider->rule.breaker);
    check_backoff(loader, given, provider);
    check_recovery(loader, given, &provider->rule.breaker);
    if (loader->faults.count == faults)
        check_core(loader, given, &provider->rule.breaker);
}

/* A status that means both would mean the one that is looked at first. */
void rn_check_outcome(rn_loader *loader, const rn_node *given, void *self)
{
    const ration_error_rule *errors = &((const rn_provider_model *)self)->rule.errors;
    const rn_node *list = rn_node_get(given, "failure");
    const rn_entry *entry = list != NULL && list->kind == RN_NODE_LIST ? list->first : NULL;
    const size_t path = rn_path_push(loader, ration_text_of("failure"));

    for (size_t i = 0; i < errors->failure_count && entry != NULL; i++, entry = entry->next) {
        const size_t item = rn_path_index(loader, i);

        for (size_t k = 0; k < errors->throttled_count; k++) {
            if (errors->failure[i] != 0 && errors->failure[i] == errors->throttled[k]) {
                rn_loader_fault(loader, entry->value, NULL, NULL,
                                "a status is either throttled or a failure, not both");
            }
        }
        rn_path_pop(loader, item);
    }
    rn_path_pop(loader, path);
}
