-- SPDX-License-Identifier: MIT
--
-- The usual response, as quick_admit.lua has the usual admission: what observe.lua, feedback.lua, lease.lua and
-- store.lua say of one that neither limits nor throttles, to a lease that is held, went through no circuit, and whose
-- limits learn nothing from headers. It is noted that the lease was answered, and that is all; a penalty that a success
-- would ease, a quota with leases that may reach into its next window, and whatever else is not usual is left to the
-- whole script. tests/differential/fleet_quick.c compares them.
if ARGV[2] then
    local SECOND, DAY = 1000000, 86400000000
    local only, now, lasting, success = cmsgpack.unpack(ARGV[2])

    repeat
        --@ quick_begin

        if not raws[2] then
            break
        end

        local state, _, _, _, _, ttl, status_seen, _, pass = unpacked(raws[2])
        local each = status_seen == 'each' -- a block's, of which nothing more is noted

        if state ~= 1 or pass or not ttl or status_seen and status_seen ~= true and not each then
            break
        end

        local news, count = success and (each or not status_seen), 0

        for i = 3, #keys do
            local raw = raws[i]

            if raw then
                local was, penalty, a = unpacked(raw)

                if type(a) == 'table' or penalty and now < was and (#penalty ~= 3 or news and penalty[3] > 0) then
                    break
                end
            end
            count = i
        end
        if count < #keys then
            break
        end

        if not each then
            -- The record as it is but for two values: that its status is seen, and that it is answered.
            local flags = cmsgpack.unpack_limit(raws[2], 6)
            local record = sub(raws[2], 1, flags) .. pack(true, true) .. sub(raws[2], flags + 3)

            if lasting then
                call('SET', keys[2], record)
            else
                call('SET', keys[2], record, 'KEEPTTL')
            end
        end

        local told = false

        --@ quick_head
        return { 4, now }
    until true

    if only then
        return { 3, 0 } -- for tests: the whole script would decide
    end
end
