-- SPDX-License-Identifier: MIT
--
-- The usual end of a lease, as quick_admit.lua has the usual admission: what release.lua, slots.lua, lease.lua and
-- store.lua say of a lease that is held, costs what it was charged, and went through no circuit. So slots go back, and
-- that is all; a penalty that a success would ease, a quota that knows of calls on their way into its next window, and
-- whatever else is not usual is left to the whole script.
-- tests/differential/fleet_quick.c compares them.
if ARGV[2] then
    local MAX, SECOND, DAY = 9007199254740992, 1000000, 86400000000
    local only, now, lasting, success = cmsgpack.unpack(ARGV[2])

    repeat
        --@ quick_begin

        if not raws[2] then
            break
        end

        -- State, grant, order, end of its time to live, hold, time to live, is its status seen, is it answered, the
        -- pass of a circuit; and of each counter its key, the kind, the charge, what the kind remembers.
        local lease = { unpacked(raws[2]) }
        local news = success and not lease[7]

        if lease[1] ~= 1 or lease[9] or #lease ~= 9 + 4 * (#keys - 3) then
            break
        end

        local prefix, id = #keys[1] - 4, sub(keys[2], #keys[1] + 3)
        local states, count = { false, false, false, false }, 0

        for i = 3, #keys do
            local at, raw = 4 * i - 6, raws[i]
            local was, penalty, a, b

            if raw then
                was, penalty, a, b = unpacked(raw)
                raw = now < was and raw
                penalty = raw and penalty
            end
            if penalty and (#penalty ~= 3 or news and penalty[3] > 0) then
                break
            end
            if i > 3 then
                local kind, charge = lease[at + 1], lease[at + 2]

                if lease[at] ~= sub(keys[i], prefix + 1) then
                    break
                elseif kind == 2 and charge > 0 then
                    if not raw or now >= b or a < charge or penalty and a == charge or b >= MAX then
                        break
                    end
                    a = a - charge
                    states[i - 3] = a > 0 and pack(was, penalty, a, b) or ''
                    ends = was > ends and a > 0 and was or ends
                elseif kind == 3 and (not raw or type(a) ~= 'number' or now >= was) then
                    break
                elseif kind > 3 then
                    break
                end
            end
            count = i
        end
        if count < #keys then
            break
        end

        for i = 1, #keys - 3 do
            local state = states[i]

            if state == '' then
                call('DEL', keys[i + 3])
            elseif state and lasting then
                call('SET', keys[i + 3], state)
            elseif state then
                call('SET', keys[i + 3], state, 'KEEPTTL')
            end
            if lease[5] and lease[4 * i + 7] == 2 then
                local key = sub(keys[1], 1, prefix) .. 'ends:' .. sub(keys[i + 3], prefix + 7)

                call('ZREM', key, string.format('%.0f:%s', lease[4 * i + 8], id))
            end
        end
        if lease[6] then
            call('ZREM', sub(keys[1], 1, prefix) .. 'leases', id)
        end

        local record, told = pack(0, lease[2]), false

        if lasting then
            call('SET', keys[2], record)
        else
            call('SET', keys[2], record, 'EX', '60')
        end
        --@ quick_head
        return { 4, now }
    until true

    if only then
        return { 3, 0 } -- for tests: the whole script would decide
    end
end
