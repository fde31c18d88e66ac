-- SPDX-License-Identifier: MIT
--
-- May a request leave now? All of its counters and penalties are asked, and then all are taken from, or none:
-- core/admit.c and core/submit.c. The lease is named by the caller, so a call repeated after a lost answer is
-- answered again and counts once.
--
-- Of all that binds, one is named: what refuses whatever the deadline, for good before for now; else an unknown time;
-- else the latest; else the first declared. The time to retry is the latest of all.
local function beats(b, named)
    if not named then
        return true
    end
    if b.refuses ~= named.refuses then
        return b.refuses
    end
    if b.refuses and (b.reason == 'cost_exceeds_limit') ~= (named.reason == 'cost_exceeds_limit') then
        return b.reason == 'cost_exceeds_limit'
    end
    return b.at > named.at
end

local named, retry_at, estimate = nil, -MAX, false

local function bind(b, index)
    if not b then
        return
    end
    b.index, b.refuses = index, b.refuses or false
    if beats(b, named) then
        named = b
    end
    retry_at = max(retry_at, b.at)
    estimate = estimate or b.estimate or false
end

-- A penalty that runs ends behind the deadline of whoever may not wait.
local function examine_penalty(penalty, index)
    if penalty_runs(penalty) then
        bind({ refuses = true, reason = 'penalized', at = penalty[2] }, index)
    end
end

local function examine(counters, account)
    examine_penalty(account.penalty, 0)
    for i, c in ipairs(counters) do
        if c.spec.binds or call.enforcer then
            examine_penalty(c.penalty, i)
            bind(kind_of(c.kind).check(c, call), i)
        end
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

    examine(counters, account)
    if named then
        return REFUSED, { named.reason, named.index, retry_at ~= NEVER and retry_at, estimate and 1 or 0,
            named.available or false, named.capacity or false }
    end
    if not call.dry then
        grant(counters)
    end
    return GRANTED, { now }
end)
