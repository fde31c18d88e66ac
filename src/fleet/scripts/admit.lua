-- SPDX-License-Identifier: MIT
--
-- May a request leave now? All of its counters and penalties are asked, and then all are taken from, or none:
-- core/admit.c and core/submit.c. The lease is named by the caller, so a call repeated after a lost answer is
-- answered again and counts once.
--
-- Of all that binds, one is named: what refuses whatever the deadline, for good before for now; else an unknown time;
-- else the latest; else the first declared. The time to retry is the latest of all.
--
-- What is refused by something that a wait cannot cure has not asked for anything. All others have: adaptive limits may
-- grow by that, and then it is looked at once more.
local FOR_GOOD = { cost_exceeds_limit = true, hold_exceeds_reclaim_horizon = true, unknown_class = true,
    unknown_tenant = true }

local function beats(b, named)
    if not named then
        return true
    end
    if b.refuses ~= named.refuses then
        return b.refuses
    end
    if b.refuses and FOR_GOOD[b.reason] ~= FOR_GOOD[named.reason] then
        return FOR_GOOD[b.reason] or false
    end
    return b.at > named.at
end

local function bind(finding, b, index)
    if not b then
        return
    end
    b.index, b.refuses = index, b.refuses or false
    if beats(b, finding.named) then
        finding.named = b
    end
    finding.barred = finding.barred or b.refuses and b.reason ~= 'hold_exceeds_reclaim_horizon'
    finding.retry_at = max(finding.retry_at, b.at)
    finding.estimate = finding.estimate or b.estimate or false
end

-- A penalty that runs ends behind the deadline of whoever may not wait.
local function examine_penalty(finding, penalty, index)
    if penalty_runs(penalty) then
        bind(finding, { refuses = true, reason = 'penalized', at = penalty[2], penalty = true }, index)
    end
end

local function examine(counters, account)
    local finding = { retry_at = -MAX, estimate = false, barred = false }

    examine_penalty(finding, account.penalty, 0)
    for i, c in ipairs(counters) do
        if c.spec.binds or call.enforcer then
            examine_penalty(finding, c.penalty, i)
            bind(finding, kind_of(c.kind).check(c, call), i)
        end
    end
    return finding
end

-- True: by that, more is there.
local function demand(counters)
    local grown = false

    for _, c in ipairs(counters) do
        local grow = kind_of(c.kind).demand

        if grow and grow(c) then
            grown = true
        end
    end
    return grown
end

-- Who only wants to know changes nothing: limits that may grow count as grown.
local function examine_all(counters, account)
    local finding = examine(counters, account)

    if finding.barred or call.enforcer then
        return finding
    end
    if call.dry then
        call.demand = true
    end
    if call.dry and finding.named or not call.dry and demand(counters) then
        finding = examine(counters, account)
    end
    return finding
end

-- What is refused only because it may not wait has asked.
local function note_refusal(counters, finding)
    for _, c in ipairs(counters) do
        local asked = kind_of(c.kind).asked

        if asked and not finding.barred then
            asked(c)
        end
    end

    local named = counters[finding.named.index]
    local refused = named and kind_of(named.kind).refused

    if refused then
        refused(named, finding.named.reason)
    end
end

local function grant(counters)
    local lease, cell = { id = call.id, granted_at = now, order = head.grants + 1 }, cells[KEYS[2]]

    head.grants, head.changed = lease.order, true
    lease.critical = call.critical
    lease.ends_at = call.hold and min(now + call.hold, MAX) or NEVER
    lease.ttl = call.ttl
    lease.ttl_until = call.ttl and min(now + call.ttl, MAX) or NEVER
    lease.status_seen, lease.answered, lease.holds = false, false, {}
    for i, c in ipairs(counters) do
        lease.holds[i] = { string.sub(c.key, #prefix + 1), c.kind, c.charge, (kind_of(c.kind).take(c, lease)) }
    end
    cell.lease, cell.save, cell.is_lease = lease, lease_save, true
    changed(cell)
    if lease.ttl then
        lease_alive(lease)
    end
end

return run(function()
    local known = not call.dry and lease_at(call.id)

    if known then
        return known.released and DONE or GRANTED, { known.granted_at }
    end

    local counters, account = counters_read(), account_read()

    local finding = examine_all(counters, account)
    local named = finding.named

    if named and not call.dry then
        note_refusal(counters, finding)
    end
    if named then
        return REFUSED, { named.reason, named.index, finding.retry_at ~= NEVER and finding.retry_at,
            finding.estimate and 1 or 0, named.penalty and 0 or 1, named.available or false, named.capacity or false,
            named.share or false, named.blocking or {} }
    end
    if not call.dry then
        grant(counters)
    end
    return GRANTED, { now }
end)
