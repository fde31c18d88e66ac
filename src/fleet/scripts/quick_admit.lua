-- SPDX-License-Identifier: MIT
--
-- The usual admission, in one piece and with locals alone: most of what the whole script costs is that Lua makes its
-- functions and tables anew for each call. This states a second time what admission.lua, bucket.lua, slots.lua,
-- quota.lua, lease.lua and store.lua say of a request that is granted at once, and must come to the same answer and
-- leave the same bytes and ends of keys: tests/differential/fleet_quick.c compares them.
--
-- Taken are requests with a time to live and without a circuit, at a provider where nobody waits and nothing is due,
-- for limits of the kinds rate, concurrency and quota (by the calendar, without headers) that bind, whose penalties are
-- over and that have room. All else is left to the whole script by `break`, before anything has been written.
repeat
    local CIRCUIT, HOLD, TTL, RETRY, CRITICAL, COUNTERS = 6, 7, 8, 9, 10, 24
    local MAX, SECOND, DAY = 9007199254740992, 1000000, 86400000000
    local hold, ttl, lasting = values[HOLD], values[TTL], values[LASTING]

    if values[PATH] == 0 or values[CIRCUIT] or not ttl then
        break
    end

    local call, pack, unpacked = redis.call, cmsgpack.pack, cmsgpack.unpack

    raws = call('MGET', unpack(KEYS))
    if not raws[1] or raws[2] then
        break
    end

    -- ---- the provider ----

    local seen, grants, first, ends, kept, _, _, waiting, wake, circuits = unpacked(raws[1])
    local head_was = (ends > kept and ends or kept) -- before its two days
    local now = values[TOLD]

    head_was = seen > head_was and seen or head_was
    if not now then
        time = call('TIME')
        now = time[1] * SECOND + time[2]
    end

    local ttl_until, ends_at, order = now + ttl, hold and now + hold or math.huge, grants + 1

    if waiting > 0 or now < seen or now >= first or now >= circuits or ttl_until >= MAX or ttl_until + DAY > kept or
        hold and ends_at >= MAX then
        break
    end
    if raws[3] then
        local until_at, penalty = unpacked(raws[3])

        if now < until_at and penalty and (#penalty ~= 3 or now < penalty[2]) then
            break
        end
    end

    -- ---- what its counters will be, if all have room ----

    local fmod, sub, named = math.fmod, string.sub, #KEYS[1] - 3
    local states, removals, record = {}, {}, { 1, now, order, ends_at, ttl, ttl_until, false, false, false }
    local at, count, size, fits, declared = COUNTERS, 0, 9, true

    while at <= #values do
        local kind, charge, raw, key = values[at], values[at + 1], raws[count + 4], KEYS[count + 4]
        local was, penalty, a, b, c, d, e, f, until_at, extra

        if raw then
            was, penalty, a, b, c, d, e, f = unpacked(raw)
        end
        penalty = raw and now < was and penalty
        fits = values[at + 3] and (not penalty or #penalty == 3 and now >= penalty[2])
        if kind == 1 then
            local earn, price, cap, margin = values[at + 4], values[at + 5], values[at + 6], values[at + 8]
            local since, credit = now, cap

            if raw and now < was then
                since, credit = a, b
            end
            fits = fits and credit >= 0 and since <= now
            credit = credit + (now - since) * earn
            credit = credit < cap and credit or cap

            local needed = (charge + margin) * price

            fits = fits and charge <= values[at + 7] - margin and needed <= credit and needed < MAX
            credit = credit - charge * price

            local lacks = cap - credit
            local rest = fmod(lacks, earn)

            until_at = now + (lacks - rest) / earn + (rest > 0 and 1 or 0)
            a, b = now, credit
            at = at + 9
        elseif kind == 2 then
            local held, lasts = 0, -MAX

            if raw and now < was then
                held, lasts = now < b and a or 0, b
            end
            fits = fits and charge > 0 and charge <= values[at + 4] - held
            if ttl_until > lasts then
                lasts = ttl_until + (ttl > 60 * SECOND and ttl or 60 * SECOND)
            end
            if hold then
                declared = declared or {}
                declared[#declared + 1] = { charge, sub(key, named + 6), (lasts - lasts % 1000) / 1000 + 1 }
            end
            until_at = lasts
            a, b = held + charge, lasts
            at = at + 5
        elseif kind == 3 then
            -- { used, carried, start, finish, first order, newest order }, or a table where it is not as plain.
            if not fits or type(a) ~= 'number' or values[at + 4] or values[at + 5] or now >= was or now >= d or
                now + values[at + 8] > d then
                fits = false
                break
            end

            local left, reserved = values[at + 6] - a - b, values[at + 7]

            if values[CRITICAL] or not values[RETRY] then
                left = left - reserved -- who is critical may go below, but that is noted
            end
            fits = charge > 0 and charge <= left
            until_at, extra = d, values[at + 8]
            a, f = a + charge, order
            at = at + 23
        else
            fits = false
        end
        if penalty and fits then
            until_at = penalty[2] + 7 * DAY > until_at and penalty[2] + 7 * DAY or until_at
        end
        if not fits or until_at <= now or until_at >= MAX then
            fits = false
            break
        end
        count = count + 1
        if kind == 3 then
            states[count] = pack(until_at, penalty or false, a, b, c, d, e, f)
        else
            states[count] = pack(until_at, penalty or false, a, b)
        end
        removals[count] = not lasting and (was and was - was % GRAIN == until_at - until_at % GRAIN and true or
            until_at - until_at % GRAIN)
        record[size + 1], record[size + 2], record[size + 3], record[size + 4] = sub(key, named), kind, charge,
            extra or false
        size = size + 4
        ends = until_at > ends and until_at or ends
    end
    if not fits then
        break
    end

    -- ---- they have ----

    for i = 1, count do
        local removal = removals[i]

        if lasting then
            call('SET', KEYS[i + 3], states[i])
        elseif removal == true then
            call('SET', KEYS[i + 3], states[i], 'KEEPTTL')
        else
            removal = removal + 2 * GRAIN
            call('SET', KEYS[i + 3], states[i], 'PXAT', (removal - removal % 1000) / 1000 + 1)
        end
    end

    local prefix, id = sub(KEYS[1], 1, -5), sub(KEYS[2], named + 6)

    for _, slots in ipairs(declared or {}) do
        call('ZADD', prefix .. 'ends:' .. slots[2], ends_at, string.format('%.0f:%s', slots[1], id))
        if not lasting then
            call('PEXPIREAT', prefix .. 'ends:' .. slots[2], slots[3])
        end
    end

    local lease_ends = (ttl_until > ends and ttl_until or ends) + DAY
    local head_ends = ends > kept and ends or kept

    head_ends = now > head_ends and now or head_ends
    lease_ends, head_ends = lease_ends - lease_ends % GRAIN + 2 * GRAIN, head_ends + 2 * DAY
    first = ttl_until < first and ttl_until or first

    local head = pack(now, order, first, ends, kept, false, false, 0, wake, circuits)

    call('ZADD', prefix .. 'leases', ttl_until, id)
    if lasting then
        call('SET', KEYS[2], pack(unpack(record)))
        call('SET', KEYS[1], head)
        return { 1, now }
    end
    call('SET', KEYS[2], pack(unpack(record)), 'PXAT', (lease_ends - lease_ends % 1000) / 1000 + 1)
    head_was = head_was + 2 * DAY
    if head_was - head_was % GRAIN == head_ends - head_ends % GRAIN then
        call('SET', KEYS[1], head, 'KEEPTTL')
    else
        head_ends = head_ends - head_ends % GRAIN + 2 * GRAIN
        call('SET', KEYS[1], head, 'PXAT', (head_ends - head_ends % 1000) / 1000 + 1)
    end
    return { 1, now }
until true

if values[PATH] == 2 then
    return { 3, 0 }
end
