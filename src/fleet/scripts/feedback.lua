-- SPDX-License-Identifier: MIT
--
-- What providers say: core/feedback.c. A call's status counts once. Which limits a penalty falls on follows from the
-- request's rules, so the call says it; none means the account.
local function teach(counters, lease, limited)
    for i, c in ipairs(counters) do
        if c.kind == QUOTA then
            kind_of(QUOTA).observe(c, lease.hold_at(i), c.spec.told, limited, lease)
        end
    end
    lease.answered = true
end

local function penalize(counters, account, lease)
    if #call.penalized == 0 then
        account.penalty = penalty_hit(account.penalty, lease.granted_at, call.retry_at)
        changed(account)
    end
    for _, i in ipairs(call.penalized) do
        counters[i].penalty = penalty_hit(counters[i].penalty, lease.granted_at, call.retry_at)
        changed(counters[i])
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

            return { charge = hold and hold[3] or 0 }
        end
    end
    return lease, cell
end
