-- SPDX-License-Identifier: MIT
--
-- What binds a request, and what a grant takes: core/admit.c. Examining changes nothing.
--
-- Of all that binds, one is named: what refuses whatever the deadline, for good before for now; else an unknown time;
-- else the latest; else the first declared. The time to retry is the latest of all, and an estimate where others wait
-- for a counter of the request. What comes by time alone but too late refuses, too, with the reason `deadline`.
--
-- `ask` is a request, a newcomer's or a waiter's: what it may do, until when it may wait, its rank, and `places`, the
-- rules of its counters with its charge at each.
local ARRIVAL, STILL, DEADLINE = 1, 2, 3
local FOR_GOOD = { cost_exceeds_limit = true, hold_exceeds_reclaim_horizon = true, unknown_class = true,
    unknown_tenant = true }
local FAIRNESS = { guarantee_on_loan = true, hold_exceeds_reclaim_horizon = true, nothing_to_borrow = true }

local waits -- those who wait, once somebody needs them

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

local function bind(found, b, index)
    b.index, b.refuses = index, b.refuses or false
    if beats(b, found.named) then
        found.named = b
    end
    found.refuses = found.refuses or b.refuses
    found.barred = found.barred or (b.refuses and not FAIRNESS[b.reason])
    found.retry_at = max(found.retry_at, b.at)
    found.estimate = found.estimate or b.estimate or false
end

local function examine_penalty(found, penalty, index, ask, stage)
    if penalty_runs(penalty) then
        bind(found, { refuses = ask.deadline < penalty[2], reason = stage == ARRIVAL and 'penalized' or 'deadline',
            at = penalty[2], bare = true }, index)
    end
end

-- It can be waited for, and no deadline is too early.
local function examine_pause(found, penalty, index, ask, stage)
    if is_paused(penalty) and not ask.enforcer then
        bind(found, { reason = stage == ARRIVAL and 'paused' or 'deadline', at = NEVER, bare = true }, index)
    end
end

-- By time alone, but too late?
local function is_late(kind, b, ask)
    return kind.timed and ask.may_wait and not b.refuses and ask.deadline < b.at
end

local function examine_counter(found, c, index, ask, stage)
    local kind, blocked = kind_of(c.kind), waits and not ask.enforcer and waits.is_ahead(ask.places[index], ask)
    local b = kind.check(c, ask)

    if not b and not blocked then
        return
    end

    local late = b and is_late(kind, b, ask)

    if blocked and not (b and b.refuses) then
        local ahead = waits.ahead(ask.places[index], ask)

        ask.blocked, ask.ahead = true, ahead
        b = kind.check(c, ask)
        ask.blocked, ask.ahead = nil, nil
        b.ahead = ahead
        if stage == ARRIVAL and kind.timed and ask.may_wait then
            late = ask.deadline < b.at
        end
    end
    if late and not b.refuses then
        b.refuses, b.reason = true, 'deadline'
    end
    bind(found, b, index)
end

-- An open circuit refuses before any limit is looked at. Who waits has been let through, but for one that has opened.
local function examine_circuit(found, ask, stage)
    local c = ask.gate and not ask.enforcer and circuits().at(ask.gate)

    if c and (stage == ARRIVAL and circuits().refuses(c) or stage ~= ARRIVAL and circuits().is_open(ask.gate)) then
        bind(found, { refuses = true, reason = 'circuit_open', at = circuits().retry_at(c) or NEVER, bare = true }, -1)
    end
end

local function examine(ask, counters, account, stage)
    local found = { retry_at = -MAX, estimate = false, refuses = false, barred = false }

    examine_circuit(found, ask, stage)
    if found.named then
        return found
    end
    examine_penalty(found, account.penalty, 0, ask, stage)
    for i, c in ipairs(counters) do
        local place = ask.places[i]

        if place.binds or ask.enforcer then
            c.spec, c.charge = place, place.charge
            examine_penalty(found, c.penalty, i, ask, stage)
            examine_pause(found, c.penalty, i, ask, stage)
            examine_counter(found, c, i, ask, stage)
            found.estimate = found.estimate or (waits and not ask.enforcer and waits.others(place, ask)) or false
        end
    end
    if stage == DEADLINE and found.named then
        found.named.reason = 'deadline'
    end
    return found
end

-- As answers have it: reason, limit, time to retry, estimate, and the numbers behind it, if any are.
local function refusal(found)
    local b = found.named

    return { b.reason, b.index, found.retry_at ~= NEVER and found.retry_at, found.estimate and 1 or 0,
        b.bare and 0 or 1, b.available or false, b.capacity or false, b.share or false, b.blocking or {}, b.ahead or 0 }
end

-- There is demand for what is short: adaptive limits may grow by it. True: one has.
local function demand(ask, counters)
    local grown = false

    for i, c in ipairs(counters) do
        local grow = kind_of(c.kind).demand

        c.spec, c.charge = ask.places[i], ask.places[i].charge
        if grow and grow(c) then
            grown = true
        end
    end
    return grown
end

-- All counters have said that it fits.
local function lease_take(ask, counters)
    local cell = cell_at(prefix .. 'lease:' .. ask.id)
    local lease = { id = ask.id, granted_at = now, order = next_order() }

    head.grants, head.changed = lease.order, head.changed or lease.order > now
    lease.critical = ask.critical
    lease.ends_at = ask.hold and min(now + ask.hold, MAX) or NEVER
    lease.hold, lease.ttl = ask.hold or false, ask.ttl or false
    lease.ttl_until = ask.ttl and min(now + min(ask.ttl, ask.told or NEVER), MAX) or NEVER
    lease.status_seen, lease.answered, lease.holds, lease.pass = false, false, {}, ask.pass or false
    for i, c in ipairs(counters) do
        c.spec, c.charge = ask.places[i], ask.places[i].charge
        if kind_of(c.kind).most then
            c.left = waits and waits.largest(ask.places[i]) or 0
        end
        lease.holds[i] = { string.sub(c.key, #prefix + 1), c.kind, c.charge, (kind_of(c.kind).take(c, lease, ask)) }
    end
    cell.lease, cell.save, cell.is_lease = lease, lease_save, true
    changed(cell)
    if lease.ttl then
        lease_alive(lease)
    end
end
