/* SPDX-License-Identifier: MIT */
/*
 * What a call says of a share limit.
 *
 * The digest of the rule and what concerns the tenant that asks: that is all a script needs, however many tenants there
 * are. The whole rule is sent only when a script has asked for it, and kept in the store under its digest.
 */
#include "fleet/call.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "base/units.h"

/* What a tenant may lend of its guarantee. */
static ration_ratio lend_of(const ration_share_rule *rule, const ration_tenant_share *tenant)
{
    const ration_ratio lend = tenant->lend.den > 0 ? tenant->lend : rule->lend;

    return lend.den > 0 ? lend : (ration_ratio){1, 1};
}

static void write_tenant(rn_pack *out, const ration_share_rule *rule, uint32_t lane)
{
    const ration_tenant_share *const tenant = lane == RN_LANE_UNKNOWN ? NULL : &rule->tenants[lane];
    const ration_ratio lend = tenant == NULL ? (ration_ratio){1, 1} : lend_of(rule, tenant);

    rn_pack_given(out, tenant == NULL ? RATION_UNSET : (int64_t)lane, RATION_UNSET);
    rn_pack_text(out, tenant == NULL ? (ration_text){"", 0} : ration_text_of(tenant->name));
    rn_pack_int(out, tenant == NULL ? 0 : tenant->weight);
    rn_pack_array(out, 2);
    rn_pack_int(out, lend.num);
    rn_pack_int(out, lend.den);
}

static void write_digest(rn_pack *out, const rn_ceiling_spec *spec)
{
    char digest[20];

    (void)snprintf(digest, sizeof digest, "%016" PRIx64, spec->digest);
    rn_pack_text(out, ration_text_of(digest));
}

/* The name of a limit as one text. */
static void write_name(rn_pack *out, const rn_account *account, const rn_limit *limit)
{
    rn_pack name;

    rn_pack_init(&name, out->mem);
    rn_call_limit_name(&name, account, limit);
    rn_pack_text(out, (ration_text){name.data, name.size});
    out->err = out->err == RATION_OK ? name.err : out->err;
    rn_pack_fini(&name);
}

/* In the order in which share_split.lua reads it. */
static void write_rule(rn_pack *out, const rn_ceiling_spec *spec)
{
    const ration_share_rule *const rule = spec->rule;
    int64_t sum = 0;

    for (size_t i = 0; i < rule->tenant_count; i++)
        sum += rule->tenants[i].weight;
    rn_pack_key(out, "rule");
    rn_pack_array(out, 9);
    rn_pack_int(out, rule->ceiling);
    rn_pack_int(out, (int64_t)rule->tenant_count);
    rn_pack_int(out, sum);
    rn_pack_int(out, rule->reclaim_horizon_us);
    rn_pack_int(out, rule->idle_after_us);
    rn_pack_int(out, rule->cooldown_us);
    rn_pack_bool(out, rule->freeze_wanted);
    if (spec->unknown == RN_TENANT_NONE) {
        rn_pack_bool(out, false);
    } else {
        rn_pack_int(out, (int64_t)spec->unknown);
    }
    rn_pack_bool(out, rule->follows != NULL);
}

void rn_call_share_rule(rn_pack *out, const rn_limit *limit)
{
    const rn_ceiling_spec *const spec = &limit->spec.share.ceiling;
    const ration_share_rule *const rule = spec->rule;

    rn_pack_map(out, 3);
    rn_pack_key(out, "digest");
    write_digest(out, spec);
    write_rule(out, spec);
    rn_pack_key(out, "tenants");
    rn_pack_array(out, rule->tenant_count);
    for (size_t i = 0; i < rule->tenant_count; i++) {
        const ration_ratio lend = lend_of(rule, &rule->tenants[i]);

        rn_pack_array(out, 4);
        rn_pack_text(out, ration_text_of(rule->tenants[i].name));
        rn_pack_int(out, rule->tenants[i].weight);
        rn_pack_int(out, lend.num);
        rn_pack_int(out, lend.den);
    }
}

/* The limit that the ceiling follows, and where it begins; false: it is of a fixed size. Both apply to the request, at
 * the same key. */
static void write_follows(rn_pack *out, const rn_route_link *link)
{
    const rn_limit *const leader = link->counter->limit->follows;
    const rn_account *const account = link->route->account;

    if (leader == NULL) {
        rn_pack_bool(out, false);
        return;
    }
    rn_pack_array(out, 2);
    write_name(out, account, account->limits[leader->index]);
    rn_pack_int(out, account->limits[leader->index]->spec.adaptive->aimd.initial);
}

static bool is_follower(const rn_limit *limit, const rn_limit *leader)
{
    return limit->follows != NULL && limit->follows->index == leader->index;
}

void rn_call_followers(rn_pack *out, const rn_route_link *link)
{
    const rn_account *const account = link->route->account;
    const size_t limits = account->provider->limit_count;
    size_t count = 0;

    for (size_t i = 0; i < limits; i++)
        count += is_follower(account->limits[i], link->counter->limit) ? 1 : 0;
    if (count == 0) {
        rn_pack_bool(out, false);
        return;
    }
    rn_pack_array(out, count);
    for (size_t i = 0; i < limits; i++) {
        if (is_follower(account->limits[i], link->counter->limit))
            write_name(out, account, account->limits[i]);
    }
}

void rn_call_share(rn_pack *out, const rn_call *call, const rn_route_link *link, int64_t cost)
{
    const rn_share_spec *const spec = &link->counter->limit->spec.share;
    const ration_time since = rn_time_min(link->counter->started_at, call->now);

    write_digest(out, &spec->ceiling);
    rn_pack_int(out, cost);
    rn_pack_int(out, spec->largest);
    rn_pack_given(out, call->tells_time ? since.us : RATION_NEVER_US, RATION_NEVER_US);
    write_follows(out, link);
    write_tenant(out, spec->ceiling.rule, link->lane);
}
