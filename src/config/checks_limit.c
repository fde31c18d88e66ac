/* SPDX-License-Identifier: MIT */
/*
 * What no single key of a limit can know, and what two limits must have in common.
 *
 * As in checks.c. What is left to the core here it is asked about the single limit, so that its faults too come with
 * all others and not in a second run.
 */
#include <inttypes.h>
#include <string.h>

#include "config/loader.h"
#include "core/aimd.h"
#include "core/limit.h"

#define RAISE_MAX 1000 /* how far above `minLimit` one that is enough is looked for */

static void check_scope(rn_loader *loader, const rn_node *given, const ration_limit_rule *rule)
{
    for (size_t i = 0; i < rule->scope_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (rule->scope[i] != NULL && rule->scope[j] != NULL && strcmp(rule->scope[i], rule->scope[j]) == 0) {
                rn_fault_below(loader, given, "scope", NULL, "a dimension of the scope stands twice");
                return;
            }
        }
    }
}

/* Keys of a window that only some periods have. */
static const struct {
    const char *key;
    unsigned periods;
    const char *text;
} window_keys[] = {
    {"resetAt", 1U << RATION_PERIOD_DAY | 1U << RATION_PERIOD_WEEK | 1U << RATION_PERIOD_MONTH,
     "only a day, a week or a month has a time of its reset"},
    {"weekStart", 1U << RATION_PERIOD_WEEK, "only a week has a first day"},
    {"monthDay", 1U << RATION_PERIOD_MONTH, "only a month has a first day of its own"},
    {"timezone", ~1U, "a rolling window has no time zone"},
};

static void check_window(rn_loader *loader, const rn_node *given, const ration_window *window)
{
    const rn_node *at = rn_node_get(given, "window");
    const rn_node *period = rn_node_get(at, "period");
    const rn_node *rolling = rn_node_get(at, "rolling");

    if (at == NULL || at->kind != RN_NODE_MAP)
        return;

    const size_t path = rn_path_push(loader, ration_text_of("window"));

    if (period == NULL && rolling == NULL) {
        rn_loader_fault(loader, at, NULL, "such as { period: day } or { rolling: 24h }",
                        "a window needs 'period' or 'rolling'");
    }
    if (period != NULL && rolling != NULL)
        rn_loader_fault(loader, rolling, "rolling", NULL, "a window has either a period or a rolling length, not both");
    for (size_t i = 0; i < sizeof window_keys / sizeof window_keys[0]; i++) {
        const bool fits = (window_keys[i].periods >> window->period & 1) != 0;
        const bool known = window->period != RATION_PERIOD_NONE || period == NULL;

        if (rn_node_get(at, window_keys[i].key) != NULL && known && !fits)
            rn_fault_below(loader, at, window_keys[i].key, NULL, window_keys[i].text);
    }
    rn_path_pop(loader, path);
}

/* `max: auto` without a start. A provider file may leave that to the user, who can write it only in their own. */
static void initial_missing(rn_loader *loader, const rn_node *given)
{
    const rn_node *name = rn_node_get(given, "name");

    if (given->used_by == NULL) {
        rn_fault_below(loader, given, "max", "what holds until the first response says more",
                       "`max: auto` needs 'initialMax'");
        return;
    }
    rn_loader_fault(loader, given->used_by, "initialMax",
                    rn_loader_format(loader,
                                     "what holds until the first response says more: "
                                     "`limits: [{ name: %.*s, initialMax: N }]` beside 'use'",
                                     name != NULL ? (int)name->text.size : 0, name != NULL ? name->text.data : ""),
                    "the provider file leaves this key to you");
}

static void check_max(rn_loader *loader, const rn_node *given, rn_limit_model *limit)
{
    ration_limit_rule *rule = &limit->rule;
    const bool learns = limit->max == RATION_UNSET;
    const bool has_initial = rn_node_get(given, "initialMax") != NULL;

    rule->max_auto = learns && rule->kind == RATION_KIND_QUOTA;
    rule->max = learns ? limit->initial_max : limit->max;
    if (learns && rule->kind != RATION_KIND_QUOTA) {
        rn_fault_below(loader, given, "max", "give a number", "only a quota can learn its maximum");
    } else if (learns && !has_initial) {
        initial_missing(loader, given);
    }
    if (rule->max_auto && rule->sync.limit_header == NULL && !rule->sync.standard) {
        rn_fault_below(loader, given, "max", "the response field with the maximum",
                       "`max: auto` needs 'sync.limitHeader'");
    }
    if (!learns && has_initial && rule->kind == RATION_KIND_QUOTA && rn_node_get(given, "max") != NULL)
        rn_fault_below(loader, given, "initialMax", NULL, "'initialMax' goes with `max: auto` only");
}

/* A loan that ends when its lender, told to come back just then, already counts as gone, can be written anew. */
static void check_idle(rn_loader *loader, const rn_node *given, int64_t horizon_us, int64_t idle_us)
{
    if (horizon_us <= 0 || idle_us <= 0 || idle_us > horizon_us)
        return;
    rn_fault_below(
        loader, given, "idleAfter", "such as four times as long",
        "'idleAfter' must be longer than 'reclaimHorizon': whoever asks for units on loan may be told to come "
        "back one horizon later, and would count as gone at that very instant, when the borrower can renew");
}

static void check_ceiling(rn_loader *loader, const rn_node *given, const ration_limit_rule *rule)
{
    const rn_node *ceiling = rn_node_get(given, "ceiling");
    const bool has_units = rn_node_get(ceiling, "units") != NULL;
    const bool has_follows = rn_node_get(ceiling, "follows") != NULL;

    if (ceiling == NULL)
        return;
    if (ceiling->kind == RN_NODE_MAP && has_units == has_follows) {
        rn_loader_fault(loader, ceiling, "ceiling", "such as 100 or { follows: NAME }",
                        "a ceiling is either a number or follows an adaptive limit");
    }
    if (rule->counts == RATION_COUNTS_REQUESTS && rule->share.ceiling > 0 && rule->share.ceiling < RATION_UNIT)
        rn_loader_fault(loader, ceiling, "ceiling", NULL, "a limit that counts requests needs a ceiling of at least 1");
}

static const char *tenant_at(const void *names, size_t index)
{
    const ration_tenant_share *tenants = names;

    return tenants[index].name;
}

static void check_unknown_tenant(rn_loader *loader, const rn_node *given, ration_share_rule *share)
{
    const char *unknown = share->unknown_tenant;

    if (unknown == NULL)
        return;
    if (strcmp(unknown, "refuse") == 0) {
        share->unknown_tenant = NULL;
        return;
    }
    for (size_t i = 0; i < share->tenant_count; i++) {
        if (share->tenants[i].name != NULL && strcmp(share->tenants[i].name, unknown) == 0)
            return;
    }

    const char *nearest = rn_nearest(ration_text_of(unknown), share->tenants, share->tenant_count, tenant_at);

    rn_fault_below(loader, given, "unknownTenant",
                   nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : "or 'refuse'",
                   "none of the tenants has this name");
}

static void check_share(rn_loader *loader, const rn_node *given, rn_limit_model *limit)
{
    ration_share_rule *share = &limit->rule.share;

    share->freeze_wanted = limit->freeze != 0;
    check_ceiling(loader, given, &limit->rule);
    check_idle(loader, given, share->reclaim_horizon_us, share->idle_after_us);
    check_unknown_tenant(loader, given, share);
}

static void check_adaptive(rn_loader *loader, const rn_node *given, rn_limit_model *limit)
{
    ration_adaptive_rule *rule = &limit->rule.adaptive;

    rule->recovery_fast = limit->recovery != 0;
    if (rule->min_limit > rule->max_limit) {
        rn_fault_below(loader, given, rn_node_get(given, "minLimit") != NULL ? "minLimit" : "maxLimit", NULL,
                       "'minLimit' is above 'maxLimit'");
    } else if (rule->initial_limit > 0 &&
               (rule->initial_limit < rule->min_limit || rule->initial_limit > rule->max_limit)) {
        rn_fault_below(loader, given, "initialLimit",
                       rn_loader_format(loader, "from %" PRId64 " to %" PRId64, rule->min_limit, rule->max_limit),
                       "'initialLimit' must lie between 'minLimit' and 'maxLimit'");
    }

    const rn_node *lend = rn_node_get(given, "lend");

    if (lend != NULL && lend->kind == RN_NODE_MAP) {
        const size_t path = rn_path_push(loader, ration_text_of("lend"));

        check_idle(loader, lend, rule->lend_horizon_us, rule->lend_idle_us);
        rn_path_pop(loader, path);
    }
}

/* Whole units that a class can get at `limit` while the others hold nothing. */
static int64_t class_room(const ration_adaptive_rule *rule, int64_t limit, size_t index)
{
    int64_t room = limit;

    for (size_t i = 0; i < rule->class_count; i++)
        room -= i != index ? rn_class_reserved(limit, rule->classes[i].reserved) / RATION_UNIT : 0;
    return room;
}

/* The lowest limit from `minLimit` on at which no class is shut out; 0: none is near. */
static int64_t limit_for_all(const ration_adaptive_rule *rule)
{
    for (int64_t limit = rule->min_limit; limit <= rule->max_limit && limit <= rule->min_limit + RAISE_MAX; limit++) {
        size_t fed = 0;

        while (fed < rule->class_count && class_room(rule, limit, fed) > 0)
            fed++;
        if (fed == rule->class_count)
            return limit;
    }
    return 0;
}

/* Reserves round up, so at a low limit they may leave nothing to somebody. */
static void warn_classes(rn_loader *loader, const rn_node *given, const ration_adaptive_rule *rule)
{
    const rn_node *classes = rn_node_get(given, "classes");
    const int64_t enough = limit_for_all(rule);
    const size_t path = rn_path_push(loader, ration_text_of("classes"));

    for (size_t i = 0; i < rule->class_count; i++) {
        const rn_node *at = rn_node_get(classes, rule->classes[i].name);

        if (at == NULL || class_room(rule, rule->min_limit, i) > 0)
            continue;
        rn_loader_warn(loader, at, rule->classes[i].name,
                       enough > 0
                           ? rn_loader_format(loader, "each class can from a 'minLimit' of %" PRId64 " on", enough)
                           : "lower the shares",
                       "at the 'minLimit' of %" PRId64 " the reserves of the other classes leave nothing to this one",
                       rule->min_limit);
    }
    rn_path_pop(loader, path);
}

/* A recording has no ledger, and replays what one said. */
static void check_durability(rn_loader *loader, const rn_node *given, const ration_limit_rule *rule)
{
    if (rule->durability != RATION_DURABILITY_STRICT || loader->model->settings.ledger != NULL ||
        loader->options->recording)
        return;
    rn_fault_below(loader, given, "durability", "`settings.ledger.path` says `none`",
                   "a strict limit needs a ledger that its mark is kept in");
}

/* What the kind itself finds wrong, so that it does not take a second run to learn of it. */
static void check_kind(rn_loader *loader, const rn_node *given, const ration_limit_rule *rule)
{
    const rn_kind *kind = rn_kind_of(rule->kind);
    rn_limit limit = {.rule = rule, .kind = kind, .mem = loader->mem, .arena = &loader->work};
    ration_fault fault = {"", ""};

    if (kind == NULL)
        return;

    const int err = kind->prepare(&limit, &fault);

    if (err == RATION_OK && kind->unprepare != NULL)
        kind->unprepare(&limit);
    if (err == RATION_ERR_CONFIG)
        rn_loader_fault(loader, rn_node_at(given, fault.path), fault.path, NULL, "%s", fault.text);
    loader->nomem = loader->nomem || err == RATION_ERR_NOMEM;
}

void rn_check_limit(rn_loader *loader, const rn_node *given, void *self)
{
    rn_limit_model *limit = self;
    const ration_limit_rule *rule = &limit->rule;
    const size_t faults = loader->faults_before;

    check_scope(loader, given, rule);
    if (rule->kind == RATION_KIND_QUOTA) {
        check_window(loader, given, &rule->window);
        check_durability(loader, given, rule);
    }
    if (rule->kind == RATION_KIND_QUOTA || rule->kind == RATION_KIND_CONCURRENCY)
        check_max(loader, given, limit);
    if (rule->kind == RATION_KIND_SHARE)
        check_share(loader, given, limit);
    if (rule->kind == RATION_KIND_ADAPTIVE)
        check_adaptive(loader, given, limit);
    if (loader->faults.count == faults)
        check_kind(loader, given, rule);
    if (loader->faults.count == faults && rule->kind == RATION_KIND_ADAPTIVE)
        warn_classes(loader, given, &rule->adaptive);
}

/* two limits */

bool rn_same_scope(const ration_limit_rule *a, const ration_limit_rule *b)
{
    if (a->scope_count != b->scope_count)
        return false;
    for (size_t i = 0; i < a->scope_count; i++) {
        if (a->scope[i] == NULL || b->scope[i] == NULL || strcmp(a->scope[i], b->scope[i]) != 0)
            return false;
    }
    return true;
}

static bool applies_to_all(const ration_limit_rule *rule)
{
    return rule->endpoint_count + rule->method_count == 0 && rule->requests_with_var == NULL &&
           rule->auth_requests == RATION_AUTH_INCLUDE;
}

const char *rn_follow_fault(const ration_limit_rule *follower, const ration_limit_rule *leader)
{
    if (leader == NULL)
        return "the provider has no limit of this name";
    if (leader->kind == RATION_KIND_NONE)
        return NULL;
    if (leader->kind != RATION_KIND_ADAPTIVE)
        return "only an adaptive limit can be followed";
    if (!rn_same_scope(follower, leader))
        return "a ceiling can only follow a limit with the same scope";
    return applies_to_all(leader) ? NULL : "a ceiling can only follow a limit that applies to all requests";
}
