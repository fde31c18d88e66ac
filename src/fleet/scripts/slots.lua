-- SPDX-License-Identifier: MIT
--
-- Limits of kind `concurrency`: core/slots.c. What is held is one number; the declared ends of those who hold stand in
-- a sorted set beside it, which only refusals read. A member of it is the charge and the lease.
--
-- Leases that are not renewed are taken back before anybody looks, so the state needs no end of its own: it is set some
-- time behind the last time to live, and only when a later one comes.
MAKERS[2] = function()
    local SLACK = 60 * SECOND
    local CHUNK = 64

    local function ends_key(c)
        return prefix .. 'ends:' .. string.sub(c.key, #prefix + 7) -- after "limit:"
    end

    local function decode(c, held, lasts)
        c.held, c.lasts = held or 0, lasts or -MAX
    end

    local function encode(c)
        return c.held > 0 and c.lasts or -MAX, c.held, c.lasts
    end

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

    local function take(c, lease)
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
        if hold.charge == 0 then
            return
        end
        c.held = max(c.held - hold.charge, 0)
        if lease.ends_at ~= NEVER then
            local member = hold.charge .. ':' .. lease.id

            later('ZREM', ends_key(c), member)
            c.gone = c.gone or {}
            c.gone[member] = true
        end
        changed(c)
    end

    -- The holder lives on.
    local function renew(c, _, lease)
        if c.held > 0 and lease.ttl_until > c.lasts then
            c.lasts = lease.ttl_until + max(lease.ttl or 0, SLACK)
            expire_later(ends_key(c), c.lasts)
            changed(c)
        end
    end

    return { decode = decode, encode = encode, check = check, take = take, give_back = give_back, lose = give_back,
        renew = renew }
end
