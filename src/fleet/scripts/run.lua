-- SPDX-License-Identifier: MIT
--
-- A call, from its first look at the clock to its answer: first what time has brought about, then the call itself, then
-- those who gain or lose by it.
local GRANTED, REFUSED, WINDOW, UNKNOWN, DONE, QUEUED = 1, 0, 2, 3, 4, 5

-- What has passed by `till`. Where nobody waits, nobody sees more of a lost lease than the instant of its loss, so all
-- are taken back at once; else everything happens at its own instant.
local function catch_up(till)
    if head.waiting > 0 and (head.wake <= till or head.first <= till or head.circuits <= till) then
        waiting().catch_up(till)
        return
    end
    now = till
    if now < head.first and now < head.circuits then
        return
    end

    local passed, moving, i = leases_due(till), circuits_due(till), 1

    while true do
        local c = moving[1] and circuits().next_of(moving, till)
        local lost_at = passed[i] and passed[i][2] or NEVER

        if c and c.until_at < lost_at then
            now = c.until_at
            circuits().advance(c, till)
        elseif passed[i] then
            lease_lose(passed[i][1], lost_at)
            i = i + 1
        else
            break
        end
    end
    now = till
    leases_passed(passed)
end

local function carry_out(main)
    catch_up(clock())
    if head.waiting > 0 then
        waiting()
        if call.member then
            waits.heard_of(call.member)
        end
    end

    local result, rest = main()

    if waits then
        waits.finish()
    end
    return result, rest
end

-- What `main` returns follows its result, the instant and the leases lost; events come last. For want of a window
-- nothing is done at all, since a state may stand half way then: the window is asked for, and the call made again.
local function run(main)
    head_read()

    local fine, result, rest = pcall(carry_out, main)

    if fine then
        flush()
        return { result, now, lost, rest or {}, events }
    end
    undo_all()
    if type(result) ~= 'table' or not result.limit then
        error(result)
    end
    return { WINDOW, clock(), {}, { result.limit, result.at }, {} }
end
