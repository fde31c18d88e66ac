-- SPDX-License-Identifier: MIT
--
-- Limits of kind `concurrency`: core/slots.c. What is held is one number; the declared ends of those who hold stand in
-- a sorted set beside it, which only refusals read. A member of it is the charge and the lease.
--
-- Leases that are not renewed are taken back before anybody looks, so the state needs no end of its own: it is set some
-- time behind the last time to live, and only when a later one comes.
-- Lives without a counter's rules, too: a lease that is lost gives back what others hold at limits that the call does
-- not know.
local SLACK = 60 * SECOND
local CHUNK = 64

local function ends_key(c)
    return prefix .. 'ends:' .. string.sub(c.key, #prefix + 7) -- after "limit:"
end

local function slots_give_back(c, id, charge, ends_at)
    if charge == 0 then
        return
    end
    c.held = max(c.held - charge, 0)
    if ends_at ~= NEVER then
        later('ZREM', ends_key(c), charge .. ':' .. id)
        c.gone = c.gone or {}
        c.gone[charge .. ':' .. id] = true
    end
    changed(c)
end

-- The state has no end of its own but the one set above.
local function slots_ends(c)
    return c.held > 0 and c.lasts or -MAX
end

local function slots_kind()
    -- When, by the declared ends in order, `needed` more will be free. One that has passed silences it.
    local function when(c, needed)
        local key = ends_key(c)
        local freed, from = 0, 0

        while true do
            local some = redis.call('ZRANGE', key, from, from + CHUNK - 1, 'WITHSCORES')

            for i = 1, #some, 2 do
                local ends = tonumber(some[i + 1])

                if not (c.gone and c.gone[some[i]]) then
                    if ends < now then
                        return NEVER
                    end
                    freed = clamp(freed + tonumber(string.match(some[i], '^%d+')))
                end
                if freed >= needed then
                    return ends
                end
            end
            if #some < 2 * CHUNK then
                return NEVER
            end
            from = from + CHUNK
        end
    end

    local function check(c)
        local left = c.spec.max - c.held

        if c.charge > c.spec.max then
            return { refuses = true, reason = 'cost_exceeds_limit', at = NEVER, available = max(left, 0),
                capacity = c.spec.max }
        end
        if c.charge <= left then
            return nil
        end

        local at = when(c, c.charge - left)

        return { reason = 'concurrency_full', at = at, estimate = at ~= NEVER, available = max(left, 0),
            capacity = c.spec.max }
    end

    local function take(c, hold, lease)
        if c.charge == 0 then
            return
        end
        c.held = clamp(c.held + c.charge)
        if lease.ends_at ~= NEVER then
            later('ZADD', ends_key(c), lease.ends_at, c.charge .. ':' .. lease.id)
        end
        if lease.ttl_until > c.lasts then
            c.lasts = lease.ttl_until + max(lease.ttl or 0, SLACK)
            if lease.ends_at ~= NEVER then
                expire_later(ends_key(c), c.lasts)
            end
        end
        changed(c)
    end

    local function give_back(c, hold, lease)
        slots_give_back(c, lease.id, hold.charge, lease.ends_at)
    end

    -- The holder lives on.
    local function renew(c, lease)
        if c.held > 0 and lease.ttl_until > c.lasts then
            c.lasts = lease.ttl_until + max(lease.ttl or 0, SLACK)
            expire_later(ends_key(c), c.lasts)
            changed(c)
        end
    end

    return { check = check, take = take, give_back = give_back, renew = renew }
end
