-- SPDX-License-Identifier: MIT
--
-- What operators do to a counter, KEYS[2]: core/operate.c, decision 0016. It must exist: somebody has asked the caller
-- for it (`known`), or it has a state here.
--
-- A reset forgets what was spent and learned, never what is held; a grant is once. Both change a counter from outside,
-- so those who wait are looked at as after any call that changes it. A pause changes nothing but what is found.
local RATE, QUOTA, SHARE, ADAPTIVE = 1, 3, 4, 5
local PAUSE = 36500 * DAY -- a hundred years: as long as the key of a counter that nobody resumes
local FINE, BEYOND, MEANS_NOTHING = 0, 1, 2
local HOLD_FLYING = 9 -- quota.lua

local resets, grants = {}, {}

-- ---- the kinds ----

resets[RATE] = function(c)
    c.at, c.credit = max(c.at, now), c.spec.cap
end

-- Up to the burst: as what a call has given back.
grants[RATE] = function(c, units)
    kind_of(RATE).settle(c, { charge = units }, 0)
end

-- The window begins as if nobody had ever asked. Leases of before belong to no window any more, so what they cost in
-- the end is forgotten, too; a rolling window must know as long as they could count in it.
resets[QUOTA] = function(c)
    local spent, returned, newest, holds, lost = c.spent, c.returned, c.newest_order, c.holds, c.lost
    local spec = c.spec

    c.holds, c.extra = nil, 0
    kind_of(QUOTA).read(c)
    c.spent, c.returned, c.newest_order, c.holds, c.lost = spent, returned, newest, holds, lost
    c.first_order, c.moved_order, c.reset_order = newest + 1, newest, newest
    c.reset_until = now + spec.arrival
    if spec.rolling then
        c.reset_until = max(c.reset_until, (div_floor(now, spec.width) + 1) * spec.width + spec.counts)
    end
    for _, hold in ipairs(holds) do
        hold[HOLD_FLYING] = false
    end
end

-- Beyond U, to the window's end; a rolling one has none, so as long as what is granted now counts. False: with what was
-- granted before that is more than can be counted.
grants[QUOTA] = function(c, units)
    if units > MAX - c.extra then
        return false
    end
    c.extra = c.extra + units
    c.extra_until = c.spec.rolling and min(now + c.spec.counts, MAX) or NEVER
end

local function tenant_forget(parts, c, t)
    local m = (t.extra or t.more) and parts.more(t)

    t.granted, t.cost_high, t.cost_low = 0, 0, 0
    if m then
        parts.wants().settle(c, t)
        m.reclaiming = m.reclaiming and m.shorts > 0
        t.wanting = t.wanting and m.shorts > 0
        m.want = t.wanting and m.want or 0
        m.high, m.low, m.rest, m.reclaims, m.worst, m.refused = 0, 0, 0, 0, 0, {}
    end
    parts.tenant_changed(c, t)
end

-- Wants and sums begin anew, loans stay. Of whom nobody has heard there is nothing to forget.
resets[SHARE] = function(c)
    local parts = kind_of(SHARE).parts
    local fields = c.digest and not c.anew and redis.call('HGETALL', c.hash_key) or {}

    for i = 1, #fields, 2 do
        if string.sub(fields[i], 1, 1) == 't' then
            parts.tenant_at(c, tonumber(string.sub(fields[i], 2)), fields[i + 1])
        end
    end
    for _, t in pairs(c.tenants) do
        tenant_forget(parts, c, t)
    end
end

-- Its first window begins anew; one that nobody has asked begins with the first who does.
resets[ADAPTIVE] = function(c)
    local before, aimd = c.limit, c.spec.aimd

    if not before then
        return
    end
    c.limit, c.grown_at, c.throttled_at, c.decreased_at = aimd[1], now, false, false
    c.stride, c.climb_to = aimd[4], 0
    if c.limit ~= before then
        happened('limit', string.sub(c.key, #prefix + 1), before * UNIT, c.limit * UNIT, 'reset by an operator')
        kind_of(ADAPTIVE).follow(c)
    end
end

-- ---- the calls ----

-- Written, but nobody has to be looked at by it.
local function changed_quietly(c)
    if not c.changed then
        c.changed = true
        written[#written + 1] = c
    end
end

local function counter_pause(c)
    local p = c.penalty or { -NEVER, -NEVER, 0 }

    c.penalty = { p[1], p[2], p[3], min(now + PAUSE, MAX) }
    head.changed = true -- its key has another end by that
    changed_quietly(c)
    return FINE
end

local function over(c)
    if waits then
        waits.penalty_over(c)
    end
    return FINE
end

local function counter_resume(c)
    local p = c.penalty

    if is_paused(p) then
        c.penalty = p[2] > -NEVER and { p[1], p[2], p[3] }
        changed_quietly(c)
    end
    return over(c)
end

local function counter_reset(c)
    local p = c.penalty

    if p then
        c.penalty = { p[1], penalty_runs(p) and now or p[2], 0, p[4] }
    end
    if resets[c.kind] then
        resets[c.kind](c)
    end
    changed(c)
    return over(c)
end

local function counter_grant(c)
    if not grants[c.kind] then
        return MEANS_NOTHING
    end
    if not call.countable or grants[c.kind](c, call.units) == false then
        return BEYOND
    end
    changed(c)
    return FINE
end

call.counters = counters_from(6)

local CALLS = { pause = counter_pause, resume = counter_resume, reset = counter_reset, grant = counter_grant }

return run(function()
    local spec = call.counters[1]
    local c = counter_at(KEYS[2], spec.kind)
    local read = kind_of(spec.kind).read

    if not call.known and not c.ends then
        return UNKNOWN
    end
    c.spec, c.charge = spec, spec.charge
    if read then
        read(c)
    end
    if spec.followers then
        kind_of(spec.kind).follow(c)
    end
    return DONE, { CALLS[call.op](c) }
end)
