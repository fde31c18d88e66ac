-- SPDX-License-Identifier: MIT
--
-- What providers say: core/feedback.c, and what it does to penalties: core/penalty.c. A call's status counts once.
-- Which limits a penalty falls on follows from the request's rules, so the call says it; none means the account.
local DOUBLED_MAX = 600 * SECOND

local function doubled(doublings)
    local wait = call.penalty.default

    for _ = 2, doublings do
        if wait >= DOUBLED_MAX then
            break
        end
        wait = wait * 2
    end
    return min(wait, DOUBLED_MAX)
end

-- A penalty is { began, ends, doublings }. Returns the one after a 429 for a lease granted at `granted_at`.
local function penalty_hit(p, granted_at, retry_at)
    local known = p and now < p[2] + KEPT
    local began, ends, doublings = now, -MAX, 0

    if known then
        began, ends, doublings = p[1], p[2], p[3]
    end
    if not known or began < granted_at then
        began, doublings = now, doublings + 1
    end

    local wanted = retry_at and retry_at > now and retry_at or now + doubled(doublings)
    local last = min(wanted, min(now + call.penalty.max, MAX))

    if not known or ends < last then
        ends = last
    end
    return { began, ends, doublings, is_paused(p) or nil }
end

-- A success of a lease granted at `granted_at`. True: it changed something.
local function penalty_success(p, granted_at)
    if p and p[1] < granted_at and p[3] > 0 then
        p[3] = 0
        return true
    end
    return false
end

local function teach(counters, lease, reply)
    for i, c in ipairs(counters) do
        local observe = kind_of(c.kind).observe

        if observe then
            observe(c, lease.hold_at(i), reply, lease)
        end
    end
    lease.answered = true
end

local function penalize(counters, account, lease)
    if call.penalized == 0 then
        account.penalty = penalty_hit(account.penalty, lease.granted_at, call.retry_at)
        changed(account)
    end
    for i, c in ipairs(counters) do
        if i == call.penalized or call.penalized == -1 and c.spec.binds then
            c.penalty = penalty_hit(c.penalty, lease.granted_at, call.retry_at)
            changed(c)
        end
    end
end

-- Adaptive limits may pause until the provider's own time: that and their decrease are one event.
local function pause(counters, lease)
    for _, c in ipairs(counters) do
        if c.spec.pause and c.spec.binds and call.retry_at and now < call.retry_at and
            not (c.penalty and call.retry_at <= c.penalty[2]) then
            c.penalty = penalty_hit(c.penalty, lease.granted_at, call.retry_at)
            changed(c)
        end
    end
end

local function succeed(counters, account, lease)
    if penalty_success(account.penalty, lease.granted_at) then
        changed(account)
    end
    for _, c in ipairs(counters) do
        if penalty_success(c.penalty, lease.granted_at) then
            changed(c)
        end
    end
end

-- The lease that the call is about, if it is held; what it holds at the call's counters.
local function lease_held()
    local lease, cell = lease_at(call.id)

    if not lease then
        return nil
    end
    if not lease.released then
        local by_key = {}

        for _, hold in ipairs(lease.holds) do
            by_key[prefix .. hold[1]] = hold
        end
        lease.hold_at = function(i)
            local hold = by_key[KEYS[3 + i]]

            return { charge = hold and hold[3] or 0, extra = hold and hold[4] }
        end
    end
    return lease, cell
end

-- A circuit hears of a call's success and failure; all else is no result.
local function circuit_hears(lease, outcome)
    if not lease.pass then
        return
    end
    if outcome == 'success' or outcome == 'failure' then
        circuits().result(lease.pass, outcome == 'success')
    else
        circuits().leave(lease.pass)
    end
    lease.pass = false
end
