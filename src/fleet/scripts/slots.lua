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

    -- What a pause or a penalty keeps longer holds nothing any more.
    local function decode(c, held, lasts)
        c.held, c.lasts = held or 0, lasts or -MAX
        if c.lasts <= now then
            c.held = 0
        end
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

                if ends < now then
                    return NEVER
                end
                freed = clamp(freed + tonumber(string.match(some[i], '^%d+')))
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

    local function check(c, ask)
        local left, ahead = c.spec.max - c.held, ask.ahead or 0

        if c.charge > c.spec.max then
            return { refuses = true, reason = 'cost_exceeds_limit', at = NEVER, available = max(left, 0),
                capacity = c.spec.max }
        end
        if c.charge <= left and not ask.blocked then
            return nil
        end

        -- With room for all, those ahead wait for something else, and nobody knows how long.
        local needed = clamp(c.charge + ahead) - left
        local at = needed > 0 and when(c, needed) or NEVER

        return { reason = 'concurrency_full', at = at, estimate = at ~= NEVER,
            available = max(left, 0), capacity = c.spec.max }
    end

    local function member_of(charge, lease)
        return string.format('%.0f:%s', charge, lease.id)
    end

    local function take(c, lease)
        if c.charge == 0 then
            return
        end
        c.held = clamp(c.held + c.charge)
        if lease.ttl_until > c.lasts then
            c.lasts = lease.ttl_until + max(lease.ttl or 0, SLACK)
        end
        if lease.ends_at ~= NEVER then
            zadd(ends_key(c), lease.ends_at, member_of(c.charge, lease))
            expire_later(ends_key(c), c.lasts) -- it may have been empty, and so have lost its end
        end
        changed(c)
    end

    local function give_back(c, hold, lease)
        if hold.charge == 0 then
            return
        end
        c.held = max(c.held - hold.charge, 0)
        if lease.ends_at ~= NEVER then
            zrem(ends_key(c), member_of(hold.charge, lease), lease.ends_at)
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

    return { reason = 'concurrency_full', decode = decode, encode = encode, check = check, take = take,
        give_back = give_back, lose = give_back, renew = renew }
end
