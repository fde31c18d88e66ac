-- SPDX-License-Identifier: MIT
--
-- What counters have to tell, KEYS[2] and on, as of now: core/report.c and each kind's `describe`. Writes nothing, so
-- it does not grant either what time has made possible. A window that the caller has not sent is asked for, but not for
-- ever: then the counter is left out.
--
-- The answer to each is { has it a state, is it paused, how many wait there, the end of its penalty or nothing, how
-- often that has been doubled, what its kind has to tell }.
local RATE, CONCURRENCY, QUOTA, SHARE, ADAPTIVE = 1, 2, 3, 4, 5
local ASKED_MAX, WINDOWS_EACH = 16, 8
local tells = {}

tells[RATE] = function(c)
    return { c.credit }
end

tells[CONCURRENCY] = function(c)
    return { c.held }
end

tells[QUOTA] = function(c)
    local state = kind_of(QUOTA).state_of(c, false)

    return { c.max, state.room.usable, state.room.reserve, clamp(c.used + c.carried), c.external, c.extra,
        state.exhausted and 0 or max(state.remaining, 0), c.start, c.finish }
end

tells[SHARE] = function(c)
    return { c.digest and c.size or 0, c.held }
end

tells[ADAPTIVE] = function(c)
    local told = { c.limit or c.spec.aimd[1], c.held }

    for class, held in pairs(c.held_of) do
        told[#told + 1] = class
        told[#told + 1] = held
    end
    return told
end

-- How many keep a place there: lane.lua.
local function places_at(c)
    local raw = head.waiting > 0 and redis.call('GET', prefix .. 'wait:' .. string.sub(c.key, #prefix + 7))
    local count = 0

    for _, lane in pairs(raw and cmsgpack.unpack(raw).lanes or {}) do
        count = count + lane[1]
    end
    return count
end

local function tell(c, spec)
    local read = kind_of(spec.kind).read
    local p = c.penalty

    c.spec, c.charge = spec, spec.charge
    if read then
        read(c)
    end
    return { c.ends and 1 or 0, is_paused(p) and 1 or 0, places_at(c), penalty_runs(p) and p[2], p and p[3] or 0,
        tells[spec.kind](c) }
end

local function may_ask()
    local count = 0

    for _, windows in pairs(call.asked) do
        count = count + (windows and #windows / WINDOWS_EACH or 1)
    end
    return count < ASKED_MAX
end

head_read()
now = clock()
for _, lease in ipairs(leases_due(now)) do
    lease_lose(lease[1], lease[2])
end

local rows = {}

for i, spec in ipairs(counters_from(6)) do
    local fine, row = pcall(tell, counter_at(KEYS[1 + i], spec.kind), spec)

    if not fine and type(row) == 'table' and row.limit and may_ask() then
        return { WINDOW, now, {}, { row.limit, row.at }, {} }
    end
    rows[i] = fine and row or {}
end
return { DONE, now, {}, rows, {} }
