-- SPDX-License-Identifier: MIT
--
-- The usual admission, in one piece and with locals alone: most of what the whole script costs is that Lua makes its
-- functions and tables anew for each call. This states a second time what admission.lua, bucket.lua, slots.lua,
-- quota.lua, lease.lua and store.lua say of a request that is granted at once, and must come to the same answer and
-- leave the same bytes and ends of keys: tests/differential/fleet_quick.c compares them.
--
-- Taken are requests with a time to live and without a circuit, at a provider where nobody waits and nothing is due,
-- for limits of the kinds rate, concurrency and quota (by the calendar, without headers) that bind, whose penalties are
-- over and that have room. Some of that the caller knows and brings no brief where it is not so (call_brief.c); all
-- else is left to the whole script by `break`, before anything has been written.
if ARGV[2] then
    local ONLY, TOLD, LASTING, HOLD, TTL, LIFE, RECORD, COUNTERS = 1, 2, 3, 4, 5, 6, 7, 8
    local MAX, SECOND, DAY, NEVER = 9007199254740992, 1000000, 86400000000, math.huge
    local KEPT, SLACK = 604800000000, 60000000 -- of penalties, of slots
    local brief = { cmsgpack.unpack(ARGV[2]) }

    repeat
        local now, hold, ttl, lasting = brief[TOLD], brief[HOLD], brief[TTL], brief[LASTING]

        --@ quick_begin

        local ttl_until, ends_at = now + ttl, hold and now + hold or 0

        if raws[2] or ttl_until >= MAX or ttl_until + DAY > kept or ends_at >= MAX then
            break
        end
        if raws[3] then
            local until_at, penalty = unpacked(raws[3])

            if now < until_at and penalty and (#penalty ~= 3 or now < penalty[2]) then
                break
            end
        end

        -- ---- what its counters will be, if all have room ----

        local order = grants + 1 > now and grants + 1 or now
        local states, removals, declared = { false, false, false, false }
        local at, count, size = COUNTERS, 0, #brief

        while at <= size do
            local kind, raw = brief[at], raws[count + 4]
            local until_at, was, penalty, a, b, c, d, e = 0

            if raw then
                was, penalty, a, b, c, d, e = unpacked(raw)
                if now >= was then
                    raw, penalty = false, false
                elseif penalty and (#penalty ~= 3 or now < penalty[2]) then
                    break
                end
            end
            if kind == 1 then
                -- What a microsecond earns, the cap, what must be there, what is paid.
                local earn, cap = brief[at + 1], brief[at + 2]

                if not raw then
                    b = cap
                elseif a > now or b < 0 then
                    break
                else
                    b = b + (now - a) * earn
                    b = b < cap and b or cap
                end
                if b < brief[at + 3] then
                    break
                end
                a, b = now, b - brief[at + 4]

                local rest = math.fmod(cap - b, earn)

                until_at = now + (cap - b - rest) / earn + (rest > 0 and 1 or 0)
                at = at + 5
            elseif kind == 2 then
                -- The charge, the most that may be held beside it.
                if not raw then
                    a, b = 0, -MAX
                elseif now >= b then
                    a = 0
                elseif a > brief[at + 2] then
                    break
                end
                a = a + brief[at + 1]

                if ttl_until > b then
                    b = ttl_until + (ttl > SLACK and ttl or SLACK)
                end
                if hold then
                    declared = declared or {}
                    declared[#declared + 1] = { count + 4, brief[at + 1], b }
                end
                until_at = b
                at = at + 3
            else
                -- The charge, how long a call may be on its way, the most that may have been spent. The state is
                -- { used, carried, start, finish, first order }, or a table where it is not as plain.
                if not raw or type(a) ~= 'number' or now >= d or now + brief[at + 2] > d or a + b > brief[at + 3] then
                    break
                end
                a = a + brief[at + 1]
                until_at = d
                at = at + 4
            end
            if penalty and penalty[2] + KEPT > until_at then
                until_at = penalty[2] + KEPT
            end
            if until_at <= now or until_at >= MAX then
                break
            end
            count = count + 1
            states[count] = kind < 3 and pack(until_at, penalty or false, a, b) or
                pack(until_at, penalty or false, a, b, c, d, e)
            if not was or was - was % GRAIN ~= until_at - until_at % GRAIN then
                removals = removals or {}
                removals[count] = until_at - until_at % GRAIN + 2 * GRAIN
            end
            ends = until_at > ends and until_at or ends
        end
        if count < #keys - 3 then
            break
        end

        -- ---- they have ----

        local prefix, id = sub(keys[1], 1, -5), sub(keys[2], #keys[1] + 3)

        for i = 1, count do
            local removal = removals and removals[i]

            if lasting then
                call('SET', keys[i + 3], states[i])
            elseif removal then
                call('SET', keys[i + 3], states[i], 'PXAT', (removal - removal % 1000) / 1000 + 1)
            else
                call('SET', keys[i + 3], states[i], 'KEEPTTL')
            end
        end
        for i = 1, declared and #declared or 0 do
            local slots = declared[i]
            local key, lasts = prefix .. 'ends:' .. sub(keys[slots[1]], #prefix + 7), slots[3]

            call('ZADD', key, ends_at, string.format('%.0f:%s', slots[2], id))
            if not lasting then
                call('PEXPIREAT', key, (lasts - lasts % 1000) / 1000 + 1)
            end
        end
        call('ZADD', prefix .. 'leases', string.format('%d', ttl_until), id)

        local record = pack(1, now, order, ttl_until) .. brief[RECORD]

        if lasting then
            call('SET', keys[2], record)
        elseif ends <= ttl_until + DAY then
            call('SET', keys[2], record, 'EX', brief[LIFE])
        else
            local removal = ends + DAY

            removal = removal - removal % GRAIN + 2 * GRAIN
            call('SET', keys[2], record, 'PXAT', (removal - removal % 1000) / 1000 + 1)
        end

        local told = order > now or ttl_until < first

        grants, first = order, ttl_until < first and ttl_until or first
        --@ quick_head
        return { 1, now }
    until true

    if brief[ONLY] then
        return { 3, 0 } -- for tests: the whole script would decide
    end
end
