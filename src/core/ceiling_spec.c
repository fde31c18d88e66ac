/* SPDX-License-Identifier: MIT */
/*
 * A rule of kind `share`, checked and compiled: every member that is wrong is named, with the reason.
 *
 * The names of the tenants become a map to their numbers, so that a request costs one hash. Keys and rule are borrowed.
 */
#include "core/ceiling_parts.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define WEIGHT_MAX 1000000
#define TENANTS_MAX 1000000

#define TOO_LONG "is longer than time is counted"
#define BOUNDARY                                                                                                       \
    "must be longer than reclaimHorizon: if equal, a borrower could renew the moment its loan ends, "                  \
    "just as the returning tenant's protection ends"

/* `member` of `tenant` (NULL: of the rule itself) is wrong. */
static int fault_at(ration_fault *fault, const char *member, const char *tenant, const char *text)
{
    rn_builder b;

    if (fault == NULL)
        return RATION_ERR_CONFIG;
    rn_builder_init(&b, fault->path, sizeof fault->path);
    if (tenant != NULL) {
        rn_builder_str(&b, "tenants.");
        rn_builder_str(&b, tenant);
    }
    if (tenant != NULL && member != NULL)
        rn_builder_char(&b, '.');
    if (member != NULL)
        rn_builder_str(&b, member);
    rn_builder_init(&b, fault->text, sizeof fault->text);
    rn_builder_str(&b, text);
    return RATION_ERR_CONFIG;
}

/* A part of something, 0 to 1; den 0: not given. */
static bool is_part(ration_ratio ratio)
{
    return ratio.den == 0 || (ratio.den > 0 && ratio.den <= WEIGHT_MAX && ratio.num >= 0 && ratio.num <= ratio.den);
}

static int check_rule(const ration_share_rule *rule, ration_fault *fault)
{
    if (rule->follows != NULL && rule->ceiling != 0)
        return fault_at(fault, "ceiling", NULL, "either a number of units or an adaptive limit to follow, not both");
    if (rule->follows == NULL && rule->ceiling <= 0)
        return fault_at(fault, "ceiling", NULL, "must be above 0: it is what the tenants share");
    if (rule->ceiling > RATION_UNITS_MAX)
        return fault_at(fault, "ceiling", NULL, "must be at most 9007199254.740992 units, so that sums stay exact");
    if (rule->tenant_count == 0 || rule->tenants == NULL)
        return fault_at(fault, "tenants", NULL, "at least one tenant with its weight is needed to share anything");
    if (rule->tenant_count > TENANTS_MAX)
        return fault_at(fault, "tenants", NULL, "at most 1000000 tenants");
    if (rule->reclaim_horizon_us <= 0) {
        return fault_at(fault, "reclaimHorizon", NULL,
                        "must be above 0: no loan may be held longer, so a horizon of 0 would lend nothing");
    }
    if (rule->reclaim_horizon_us > RATION_TIME_MAX_US)
        return fault_at(fault, "reclaimHorizon", NULL, TOO_LONG);
    if (rule->idle_after_us <= rule->reclaim_horizon_us)
        return fault_at(fault, "idleAfter", NULL, BOUNDARY);
    if (rule->idle_after_us > RATION_TIME_MAX_US)
        return fault_at(fault, "idleAfter", NULL, TOO_LONG);
    if (!is_part(rule->lend))
        return fault_at(fault, "lend", NULL, "must be a part of the guarantee, from 0 to 1");
    if (rule->cooldown_us < 0)
        return fault_at(fault, "cooldown", NULL, "must not be below 0, which switches it off");
    if (rule->cooldown_us > RATION_TIME_MAX_US)
        return fault_at(fault, "cooldown", NULL, TOO_LONG);
    return RATION_OK;
}

static int check_tenant(const ration_tenant_share *tenant, ration_fault *fault)
{
    if (tenant->name == NULL || tenant->name[0] == '\0')
        return fault_at(fault, "tenants", NULL, "a tenant needs a name");
    if (!rn_text_is_utf8(ration_text_of(tenant->name)))
        return fault_at(fault, "tenants", NULL, "the name of a tenant is not UTF-8");
    if (tenant->weight < 1 || tenant->weight > WEIGHT_MAX)
        return fault_at(fault, NULL, tenant->name, "the weight must be a whole number from 1 to 1000000");
    if (!is_part(tenant->lend))
        return fault_at(fault, "lend", tenant->name, "must be a part of the guarantee, from 0 to 1");
    return RATION_OK;
}

static int add_tenant(rn_ceiling_spec *spec, const ration_tenant_share *tenant, ration_fault *fault)
{
    const ration_text name = ration_text_of(tenant->name);
    const int err = check_tenant(tenant, fault);

    if (err != RATION_OK)
        return err;
    if (rn_map_find(&spec->by_name, name.data, name.size) != NULL)
        return fault_at(fault, NULL, tenant->name, "this tenant is declared twice");
    return rn_map_add(&spec->by_name, &spec->names[spec->count++].node, name.data, name.size);
}

static int spec_compile(rn_ceiling_spec *spec, ration_fault *fault)
{
    const ration_share_rule *const rule = spec->rule;

    for (size_t i = 0; i < rule->tenant_count; i++) {
        const int err = add_tenant(spec, &rule->tenants[i], fault);

        if (err != RATION_OK)
            return err;
    }
    if (rule->unknown_tenant == NULL)
        return RATION_OK;
    spec->unknown = rn_ceiling_spec_find(spec, ration_text_of(rule->unknown_tenant));
    if (spec->unknown == RN_TENANT_NONE)
        return fault_at(fault, "unknownTenant", NULL, "must be `refuse` or one of the tenants declared here");
    return RATION_OK;
}

static uint64_t text_digest(const char *text)
{
    return text == NULL ? 0 : rn_hash(text, strlen(text));
}

/* Each step hashes what there was and what is new. */
static uint64_t rule_digest(const ration_share_rule *rule)
{
    const uint64_t head[] = {
        (uint64_t)rule->ceiling,           text_digest(rule->follows),    (uint64_t)rule->tenant_count,
        text_digest(rule->unknown_tenant), (uint64_t)rule->idle_after_us, (uint64_t)rule->reclaim_horizon_us,
        (uint64_t)rule->cooldown_us,       (uint64_t)rule->freeze_wanted, (uint64_t)rule->lend.num,
        (uint64_t)rule->lend.den,
    };
    uint64_t digest = rn_hash(head, sizeof head);

    for (size_t i = 0; i < rule->tenant_count; i++) {
        const ration_tenant_share *const tenant = &rule->tenants[i];
        const uint64_t next[] = {
            digest,
            text_digest(tenant->name),
            (uint64_t)tenant->weight,
            (uint64_t)tenant->lend.num,
            (uint64_t)tenant->lend.den,
        };

        digest = rn_hash(next, sizeof next);
    }
    return digest;
}

int rn_ceiling_spec_init(rn_ceiling_spec *spec, const ration_allocator *mem, const ration_share_rule *rule,
                         ration_fault *fault)
{
    int err = check_rule(rule, fault);

    if (err != RATION_OK)
        return err;
    *spec = (rn_ceiling_spec){
        .rule = rule,
        .names = rn_mem_zalloc(mem, rule->tenant_count, sizeof *spec->names),
        .unknown = RN_TENANT_NONE,
        .digest = rule_digest(rule),
    };
    rn_map_init(&spec->by_name, mem);
    err = spec->names == NULL ? RATION_ERR_NOMEM : spec_compile(spec, fault);
    if (err != RATION_OK)
        rn_ceiling_spec_fini(spec);
    return err;
}

void rn_ceiling_spec_fini(rn_ceiling_spec *spec)
{
    const ration_allocator *const mem = spec->by_name.mem;

    rn_map_fini(&spec->by_name);
    rn_mem_free(mem, spec->names);
    spec->names = NULL;
}

uint32_t rn_ceiling_spec_find(const rn_ceiling_spec *spec, ration_text name)
{
    const rn_map_node *const node = name.data == NULL ? NULL : rn_map_find(&spec->by_name, name.data, name.size);

    if (node == NULL)
        return spec->unknown;
    return (uint32_t)((const struct rn_tenant_name *)(const void *)node - spec->names);
}
