-- SPDX-License-Identifier: MIT
--
-- Limits of kind `quota`: core/quota.c and its neighbours, with the same names. Windows of the calendar come with the
-- call, or with who waits, as { begin, end }: those around the instant that the caller took for now. Which of them is
-- meant is decided here, by the server's time. One that is missing is asked for by the limit's name, and the call made
-- again; where the caller knows no such limit (`false`), it is as long as the rules say.
--
-- Where the provider's headers teach, the state holds what each lease knew at its grant (`holds`, in order of grants).
-- Where they do not, only those leases stand in it that may yet be carried over the end of the window.
--
-- What an operator has granted beyond U (`extra`), and which leases a reset has made strangers, stand behind the state.
--
-- Leases that were lost while nobody knew the counter's rules wait in `lost`; they end at their own instants, before
-- anything else is looked at.
MAKERS[3] = function()
    local ENDED = 8
    local PARTS = 64

    -- A hold is { order, granted_at, charge, seen, unseen, spent, returned, answered, flying }; `answered` is the
    -- newest lease when it was, or false.
    local ORDER, GRANTED, CHARGE, SEEN, UNSEEN, SPENT, RETURNED, ANSWERED, FLYING = 1, 2, 3, 4, 5, 6, 7, 8, 9

    local function part_length(c)
        return max(div_ceil_sum(c.finish - c.start, 0, PARTS), 1)
    end

    -- A window of the calendar in which nothing has happened but requests: { used, carried, start, finish, first_order
    -- }. Headers are of no account there, and nobody is on the way over its end.
    local function is_plain(c)
        return c.spec and not c.spec.sync and not c.spec.rolling and not c.dipped and not c.exhausted and
            not c.left_known and not c.observed and not c.parts and c.offset == 0 and c.finish == c.computed_end and
            #c.holds + #c.ended + #c.lost == 0
    end

    local function decode_plain(c, used, carried, start, finish, first_order)
        c.exhausted, c.dipped, c.left_known, c.observed = false, false, false, false
        c.used, c.carried, c.left, c.external, c.spent, c.returned = used, carried, 0, 0, 0, 0
        c.first_order, c.newest_order, c.moved_order, c.used_order = first_order, next_order() - 1, 0, 0
        c.dipped_at, c.left_until, c.exhausted_until = 0, 0, 0
        c.holds, c.ended, c.lost = {}, {}, {}
        c.start, c.finish, c.computed_end, c.offset, c.brought_at = start, finish, finish, 0, false
        c.part_us, c.parts, c.oldest, c.newest, c.ring = part_length(c), false, 0, 0, {}
    end

    local function decode(c, fields, ...)
        c.extra, c.extra_until, c.reset_order, c.reset_until = 0, -MAX, 0, -MAX
        if not fields then
            return
        end
        if type(fields) == 'number' then
            decode_plain(c, fields, ...)
            return
        end
        if ... then
            c.extra, c.extra_until, c.reset_order, c.reset_until = ...
        end
        c.max, c.learned_max, c.exhausted, c.dipped, c.left_known, c.observed, c.used, c.carried, c.left, c.external,
            c.spent, c.returned, c.first_order, c.newest_order, c.moved_order, c.used_order, c.dipped_at, c.holds,
            c.ended, c.lost, c.start, c.finish, c.computed_end, c.offset, c.brought_at, c.left_until,
            c.exhausted_until, c.part_us, c.parts, c.oldest, c.newest, c.ring = unpack(fields, 1, 32)
    end

    -- floor(m * num / den)
    local function ratio_of(m, num, den)
        return div_floor(m, den) * num + div_floor(fmod(m, den) * num, den)
    end

    -- Sums of which only differences count: they wrap at 2^53.
    local function wrapping_add(sum, amount)
        return sum >= MAX - amount and sum - (MAX - amount) or sum + amount
    end

    local function wrapping_since(sum, before)
        return sum >= before and sum - before or sum + (MAX - before)
    end

    -- ---- flight: core/quota_flight.c ----

    local function has_arrived(c, granted_at, at)
        return at >= granted_at + c.spec.arrival
    end

    local function flight_charge(c)
        local sum = 0

        for _, hold in ipairs(c.holds) do
            sum = hold[FLYING] and clamp(sum + hold[CHARGE]) or sum
        end
        for _, ended in ipairs(c.ended) do
            sum = clamp(sum + ended[2])
        end
        return sum
    end

    local function flight_advance(c, at)
        for _, hold in ipairs(c.holds) do
            hold[FLYING] = hold[FLYING] and not has_arrived(c, hold[GRANTED], at)
        end
        while c.ended[1] and has_arrived(c, c.ended[1][1], at) do
            table.remove(c.ended, 1)
        end
    end

    local function flight_lose(c, granted_at, charge)
        local ended = c.ended

        if #ended == ENDED then
            ended[2][2] = clamp(ended[2][2] + ended[1][2])
            table.remove(ended, 1)
        end

        local at = #ended + 1

        while at > 1 and granted_at < ended[at - 1][1] do
            at = at - 1
        end
        table.insert(ended, at, { granted_at, charge })
    end

    local function hold_of(c, order)
        for i = #c.holds, 1, -1 do
            if c.holds[i][ORDER] == order then
                return c.holds[i], i
            end
        end
        return nil
    end

    -- What leases granted before `order` may count in a window that begins at `boundary`.
    local function flight_over(c, boundary, order)
        local over = 0

        for i = #c.holds, 1, -1 do
            local hold = c.holds[i]

            if has_arrived(c, hold[GRANTED], boundary) then
                break
            end
            if not hold[ANSWERED] and hold[ORDER] < order then
                over = clamp(over + hold[CHARGE])
            end
        end
        for _, ended in ipairs(c.ended) do
            if ended[1] < boundary and not has_arrived(c, ended[1], boundary) then
                over = clamp(over + ended[2])
            end
        end
        return over
    end

    local function flight_reaches(c, finish)
        for i = #c.holds, 1, -1 do
            if c.holds[i][FLYING] and not has_arrived(c, c.holds[i][GRANTED], finish) then
                return true
            end
        end
        return #c.ended > 0 and not has_arrived(c, c.ended[#c.ended][1], finish)
    end

    -- ---- calendar windows: core/quota_window.c ----

    local function window_of(windows, at)
        for _, window in ipairs(windows or {}) do
            if window[1] <= at and at < window[2] then
                return window
            end
        end
    end

    local function calendar_window(c, at)
        local sent = call.asked[limit_of(c)]
        local window = window_of(c.spec.windows, at) or sent and window_of(sent, at)

        if not window and sent == false then
            local start = c.finish + div_floor(at - c.finish, c.spec.length) * c.spec.length

            window = { start, start + c.spec.length }
        end
        if not window then
            error({ limit = limit_of(c), at = at })
        end
        return window[1], window[2]
    end

    local function part_of(c, at)
        return max(0, min(div_floor(at - c.start, c.part_us), PARTS - 1)) + 1
    end

    local function empty_parts()
        local parts = {}

        for i = 1, PARTS do
            parts[i] = 0
        end
        return parts
    end

    local function history_begin(c, start)
        local old_start, old_part_us, old = c.start, c.part_us, c.parts

        c.start = start
        c.part_us = part_length(c)
        if not c.spec.parts then
            return
        end
        c.parts = empty_parts()
        for i = 1, PARTS do
            local last = i == PARTS and now or old_start + i * old_part_us - 1

            if old[i] ~= 0 and last >= start then
                c.parts[part_of(c, last)] = clamp(c.parts[part_of(c, last)] + old[i])
            end
        end
    end

    local function window_begin(c, b)
        c.carried = flight_over(c, b.start, b.first_order)
        c.used = b.used
        c.external, c.extra = 0, 0
        c.left_known, c.exhausted, c.dipped, c.observed = false, false, false, false
        c.first_order = b.first_order
        c.moved_order = c.newest_order
        c.computed_end = b.computed_end
        c.offset = b.offset
        c.finish = b.computed_end + b.offset
        history_begin(c, b.start)
    end

    local function window_shifted(c, at, offset)
        local start, finish = calendar_window(c, at - offset)

        return { start = start + offset, computed_end = finish, offset = offset, first_order = c.newest_order + 1,
            used = 0 }
    end

    local function window_advance(c, at)
        local over = at >= c.finish and window_shifted(c, at, c.offset)

        if c.left_known and at >= c.left_until then
            c.left_known, c.external = false, 0
        end
        c.exhausted = c.exhausted and at < c.exhausted_until
        if over then
            c.parts = c.spec.parts and empty_parts() or false
            window_begin(c, over)
        end
    end

    -- ---- rolling windows: core/quota_rolling.c; the ring is { number, units } of buckets that are not empty ----

    local function bucket_of(c, at)
        return div_floor(at, c.spec.width)
    end

    local function first_at(c, at)
        return div_floor(at - c.spec.counts, c.spec.width)
    end

    local function leaves_at(c, number)
        return (number + 1) * c.spec.width + c.spec.counts
    end

    -- A count that has been cut at 2^53 is no sum any more, so nothing may be subtracted from it.
    local function rolling_count(c, was, used)
        if was < MAX then
            return used
        end
        used = 0
        for _, bucket in ipairs(c.ring) do
            used = clamp(used + bucket[2])
        end
        return max(used, 0)
    end

    local function rolling_advance(c, at)
        local first, was = first_at(c, at), c.used

        while c.ring[1] and c.ring[1][1] < first do
            c.used = c.used - c.ring[1][2]
            table.remove(c.ring, 1)
        end
        c.used = rolling_count(c, was, c.used)
        c.oldest = max(c.oldest, first)
        c.newest = max(c.newest, bucket_of(c, at))
        c.extra = at < c.extra_until and c.extra or 0
        c.exhausted = c.exhausted and at < c.exhausted_until
        c.dipped = c.dipped and bucket_of(c, c.dipped_at) >= c.oldest
        if c.left_known and at >= c.left_until then
            c.left_known, c.external = false, 0
        end
    end

    local function rolling_charge(c, granted_at, amount)
        local number = bucket_of(c, granted_at)
        local at = #c.ring

        while at > 0 and c.ring[at][1] > number do
            at = at - 1
        end
        if at > 0 and c.ring[at][1] == number then
            c.ring[at][2] = clamp(c.ring[at][2] + amount)
        else
            at = at + 1
            table.insert(c.ring, at, { number, amount })
        end
        if c.ring[at][2] == 0 then
            table.remove(c.ring, at)
        end
    end

    -- ---- what all have in common: core/quota.c, core/quota_budget.c ----

    local function whole(c, amount)
        return c.spec.cost and amount or amount - fmod(amount, UNIT)
    end

    local function room_of(c, enforcer)
        if enforcer then
            return { usable = c.learned_max and max(c.max, UNIT) or c.max, reserve = 0 }
        end

        local spec = c.spec
        local usable = whole(c, ratio_of(c.max, spec.share_num, spec.share_den))
        local reserve = whole(c, ratio_of(usable, spec.reserve_num, spec.reserve_den))

        if c.learned_max then
            usable = max(usable, UNIT)
            reserve = min(reserve, usable - UNIT)
        end
        return { usable = clamp(usable + c.extra), reserve = reserve }
    end

    local function own(c, room)
        return room.usable - clamp(c.used + c.carried)
    end

    local function remaining_of(c, room)
        return c.left_known and min(own(c, room), c.left) or own(c, room)
    end

    local function state_of(c, enforcer)
        local room = room_of(c, enforcer)

        return { room = room, remaining = remaining_of(c, room), exhausted = c.exhausted, dipped = c.dipped }
    end

    local function kept_from(ask, room, dipped)
        if ask.critical or (ask.retry and not dipped) then
            return 0
        end
        return room.reserve
    end

    local function fits(state, c, ask)
        if c.charge == 0 then
            return state.remaining >= 0
        end
        return not state.exhausted and c.charge <= state.remaining - kept_from(ask, state.room, state.dipped)
    end

    local function window_when(c, ask)
        local function window_fits_at(c, at, ask)
            local state = state_of(c, ask.enforcer)

            if at >= c.left_until then
                state.remaining = own(c, state.room)
            end
            state.exhausted = state.exhausted and at < c.exhausted_until
            return fits(state, c, ask)
        end

        local first = c.finish

        if c.left_known and c.left_until < first and window_fits_at(c, c.left_until, ask) then
            first = c.left_until
        end
        if c.exhausted and c.exhausted_until < first and window_fits_at(c, c.exhausted_until, ask) then
            first = c.exhausted_until
        end
        return first
    end

    -- The instants at which what is found changes: a bucket leaves, what was learned or exhausted ends.
    local function rolling_when(c, ask)
        local function rolling_fits_at(c, at, used, ask)
            local state = {
                room = room_of(c, ask.enforcer),
                exhausted = c.exhausted and at < c.exhausted_until,
                dipped = c.dipped and at < leaves_at(c, bucket_of(c, c.dipped_at)),
            }

            if not ask.enforcer and at >= c.extra_until then
                state.room.usable = state.room.usable - c.extra
            end
            state.remaining = state.room.usable - used
            if c.left_known and at < c.left_until then
                state.remaining = min(state.remaining, c.left)
            end
            return fits(state, c, ask)
        end

        local early, late = min(c.left_until, c.exhausted_until), max(c.left_until, c.exhausted_until)
        local dipped = bucket_of(c, c.dipped_at)
        local steps, used, from = {}, c.used, now
        local saw_dip = false

        for _, bucket in ipairs(c.ring) do
            if not saw_dip and dipped >= c.oldest and dipped < bucket[1] then
                steps[#steps + 1] = { dipped, 0 }
            end
            saw_dip = saw_dip or dipped <= bucket[1]
            steps[#steps + 1] = bucket
        end
        if not saw_dip and dipped >= c.oldest and dipped <= c.newest then
            steps[#steps + 1] = { dipped, 0 }
        end
        for i = 1, #steps + 1 do
            local to = steps[i] and leaves_at(c, steps[i][1]) or NEVER

            for _, at in ipairs({ from, early, late }) do
                if at >= from and at < to and rolling_fits_at(c, at, used, ask) then
                    return at
                end
            end
            if steps[i] then
                used = used - steps[i][2]
                from = to
            end
            if c.used == MAX then
                used = 0
                for after = i + 1, #steps do
                    used = clamp(used + steps[after][2])
                end
            end
        end
        return NEVER
    end

    local function advance_to(c, at)
        if c.spec.rolling then
            rolling_advance(c, at)
        else
            window_advance(c, at)
        end
        flight_advance(c, at)
    end

    -- A hold ends, whether or not what became of its call is known. True: that changed something.
    local function flight_end(c, hold, at_index)
        local matters = c.spec.sync or not c.spec.rolling and not has_arrived(c, hold[GRANTED], c.finish)
        local lost = hold[FLYING] and matters

        if lost then
            flight_lose(c, hold[GRANTED], hold[CHARGE])
        end
        if at_index then
            table.remove(c.holds, at_index)
        end
        return lost or at_index
    end

    -- What the state knows of a lease at `at`, or would if it stood there.
    local function remembered(c, order, granted_at, charge, answered, at)
        local hold, index = hold_of(c, order)

        if hold then
            return hold, index
        end
        return { order, granted_at, charge, 0, 0, c.spent, c.returned, answered and c.newest_order or false,
            not answered and order > c.reset_order and not has_arrived(c, granted_at, at) }
    end

    local function lease_hold(c, lease, charge)
        return remembered(c, lease.order, lease.granted_at, charge, lease.answered, now)
    end

    local function advance(c)
        for i, lost in ipairs(c.lost) do
            local at, order, granted_at, charge, answered = unpack(lost)

            advance_to(c, at)
            flight_end(c, remembered(c, order, granted_at, charge, answered, at))
            c.lost[i] = nil
        end
        advance_to(c, now)
    end

    local function fresh(c)
        c.max, c.learned_max = c.spec.max, c.spec.auto
        c.exhausted, c.dipped, c.left_known, c.observed = false, false, false, false
        c.used, c.carried, c.left, c.external, c.spent, c.returned = 0, 0, 0, 0, 0, 0
        c.first_order, c.newest_order, c.moved_order, c.used_order = next_order(), next_order() - 1, 0, 0
        c.dipped_at, c.left_until, c.exhausted_until = 0, 0, 0
        c.holds, c.ended, c.lost = {}, {}, {}
        c.brought_at, c.offset, c.parts, c.ring = false, 0, false, {}
        c.start, c.finish, c.computed_end, c.part_us, c.oldest, c.newest = 0, 0, 0, 1, 0, 0
        if c.spec.rolling then
            c.first_order = 0
            c.newest, c.oldest = bucket_of(c, now), first_at(c, now)
            return
        end
        c.start, c.computed_end = calendar_window(c, now)
        c.finish = c.computed_end
        c.part_us = part_length(c)
        c.parts = c.spec.parts and empty_parts() or false
    end

    local function read(c)
        if not c.holds then
            fresh(c)
            return
        end
        if not c.spec.sync or not c.max then
            c.max, c.learned_max = c.spec.max, c.spec.auto
        end
        c.parts = c.parts or c.spec.parts and empty_parts() or false
        advance(c)
    end

    -- When it equals a fresh one. What headers have taught is kept for a week and two windows, and then forgotten; not
    -- in a test, for the core keeps it.
    local function ends_of(c)
        local ends = c.finish

        if not c.spec then
            return c.ends
        end
        if c.spec.rolling then
            ends = c.ring[1] and leaves_at(c, c.ring[#c.ring][1]) or now
            ends = max(ends, c.dipped and leaves_at(c, bucket_of(c, c.dipped_at)) or -MAX, c.reset_until,
                c.extra > 0 and c.extra_until or -MAX)
        elseif #c.holds > 0 or #c.ended > 0 then
            ends = c.finish + 2 * max(c.spec.length, c.spec.arrival)
        end
        if c.spec.sync then
            ends = call.lasting and NEVER or max(ends, now) + 2 * c.spec.length + 7 * DAY
        end
        return ends
    end

    local function fields_of(c)
        return { c.max, c.learned_max, c.exhausted, c.dipped, c.left_known, c.observed, c.used, c.carried,
            c.left, c.external, c.spent, c.returned, c.first_order, c.newest_order, c.moved_order, c.used_order,
            c.dipped_at, c.holds, c.ended, c.lost, c.start, c.finish, c.computed_end, c.offset, c.brought_at,
            c.left_until, c.exhausted_until, c.part_us, c.parts, c.oldest, c.newest, c.ring }
    end

    local function encode(c)
        if c.extra > 0 or now < c.reset_until then
            return ends_of(c), fields_of(c), c.extra, c.extra_until, c.reset_order, c.reset_until
        end
        if is_plain(c) then
            return ends_of(c), c.used, c.carried, c.start, c.finish, c.first_order
        end
        return ends_of(c), fields_of(c)
    end

    local function check(c, ask)
        local state = state_of(c, ask.enforcer)
        local capacity = state.room.usable - kept_from(ask, state.room, false)
        local available = state.exhausted and 0 or max(state.remaining - kept_from(ask, state.room, state.dipped), 0)

        if fits(state, c, ask) then
            return ask.blocked and { reason = 'quota_exhausted', at = NEVER, available = available,
                capacity = capacity } or nil
        end
        if c.charge > capacity then
            return { refuses = true, reason = c.learned_max and 'quota_exhausted' or 'cost_exceeds_limit', at = NEVER,
                available = available, capacity = capacity }
        end

        local at = c.spec.rolling and rolling_when(c, ask) or not c.spec.rolling and window_when(c, ask)

        local waits = c.spec.wait and ask.may_wait and at <= ask.deadline

        return { refuses = not waits, reason = 'quota_exhausted', at = at, available = available,
            capacity = capacity, estimate = not c.spec.rolling and at == c.finish and flight_reaches(c, c.finish) }
    end

    local function next_change(_, b)
        return b.at
    end

    local function charge(c, granted_at, amount)
        local was = c.used

        c.used = max(clamp(c.used + amount), 0)
        if amount > 0 then
            c.spent = wrapping_add(c.spent, amount)
            c.left = clamp(c.left - amount)
        else
            c.returned = wrapping_add(c.returned, -amount)
        end
        if c.spec.rolling then
            rolling_charge(c, granted_at, amount)
            c.used = rolling_count(c, was, c.used)
        elseif c.spec.parts and amount > 0 then
            local part = part_of(c, granted_at)

            c.parts[part] = clamp(c.parts[part] + amount)
        end
        changed(c)
    end

    -- A lease knows how long its call may be on its way, for whoever takes it back may not.
    local function take(c, lease)
        local room = room_of(c, false)

        if lease.critical and c.charge > 0 and c.charge > remaining_of(c, room) - room.reserve then
            c.dipped, c.dipped_at = true, now
        end

        local unseen = c.spec.sync and flight_charge(c) or 0
        local hold = { lease.order, now, c.charge, clamp(c.used + c.carried) - unseen, unseen }

        c.newest_order = lease.order
        charge(c, now, c.charge)
        hold[SPENT], hold[RETURNED], hold[ANSWERED], hold[FLYING] = c.spent, c.returned, false, c.spec.arrival > 0
        if c.spec.sync or (not c.spec.rolling and now + c.spec.arrival > c.finish) then
            c.holds[#c.holds + 1], head.changed = hold, true
        end
        return c.spec.arrival
    end

    local function owns(c, hold)
        return hold[ORDER] >= c.first_order and (not c.spec.rolling or bucket_of(c, hold[GRANTED]) >= c.oldest)
    end

    -- What is given back and others had seen when they were granted counts for them as returned before.
    local function returned_before(c, hold, amount)
        for i = #c.holds, 1, -1 do
            local other = c.holds[i]
            local seen = (hold[ANSWERED] and other[ORDER] > hold[ANSWERED]) or
                other[GRANTED] >= hold[GRANTED] + c.spec.arrival

            if other[ORDER] <= hold[ORDER] or not seen then
                break
            end
            other[RETURNED] = wrapping_add(other[RETURNED], amount)
        end
    end

    local function settle(c, held, to, lease)
        local hold = lease_hold(c, lease, held.charge)
        local added = to - held.charge

        if added == 0 then
            return
        end
        held.charge, hold[CHARGE] = to, to
        changed(c)
        if not owns(c, hold) then
            return
        end
        charge(c, hold[GRANTED], added)
        if added < 0 then
            returned_before(c, hold, -added)
        end
    end

    local function give_back(c, held, lease)
        local hold, index = lease_hold(c, lease, held.charge)

        if flight_end(c, hold, index) then
            changed(c)
        end
    end

    -- By a call that may not know the rules.
    local function lose(c, hold, lease, at)
        if c.holds and (at < lease.granted_at + hold.extra or #c.holds > 0) then
            c.lost[#c.lost + 1] = { at, lease.order, lease.granted_at, hold.charge, lease.answered }
            changed(c)
        end
    end

    -- ---- what responses teach: core/quota_sync.c ----

    -- A response that tells something. Lua makes functions whenever a script runs, so these are made here.
    local function learn(c, hold, told, limited)
        local function window_classify(c, reset)
            local _, finish = calendar_window(c, now)

            if finish + c.spec.length < reset then
                return 'far'
            end
            if reset <= c.start then
                return 'stale'
            end
            return now < reset and 'coming' or 'past'
        end

        local function may_bring(c, at)
            return not c.brought_at or at - c.brought_at >= div_floor(c.spec.length, 2)
        end

        local function known_before(c, reset)
            local straddling = part_of(c, reset)
            local before = 0

            for i = #c.holds, 1, -1 do
                local hold = c.holds[i]

                if hold[ORDER] < c.first_order or part_of(c, hold[GRANTED]) < straddling then
                    break
                end
                if hold[GRANTED] < reset then
                    before = clamp(before + hold[CHARGE])
                end
            end
            for _, ended in ipairs(c.ended) do
                if ended[1] >= c.start and ended[1] < reset and part_of(c, ended[1]) == straddling then
                    before = clamp(before + ended[2])
                end
            end
            return before
        end

        local function begin_in_the_past(c, reset)
            local b = window_shifted(c, now, reset - c.computed_end)

            for i = #c.holds, 1, -1 do
                local hold = c.holds[i]

                if hold[ORDER] < c.first_order or hold[GRANTED] < b.start then
                    break
                end
                b.first_order = hold[ORDER]
            end
            for i = part_of(c, b.start), PARTS do
                b.used = clamp(b.used + c.parts[i])
            end
            b.used = max(0, min(b.used - known_before(c, b.start), c.used))
            window_begin(c, b)
        end

        local function begin_with(c, hold, reset)
            local _, computed_end = calendar_window(c, c.computed_end)

            c.brought_at = max(c.brought_at or now, now)
            window_begin(c, {
                start = max(hold[GRANTED], c.start),
                first_order = hold[ORDER],
                used = clamp(hold[CHARGE] + wrapping_since(c.spent, hold[SPENT])),
                computed_end = computed_end,
                offset = reset - computed_end,
            })
        end

        local function window_reset(c, hold, reset)
            local later = reset - c.finish

            if later >= div_floor(c.spec.length, 2) then
                begin_with(c, hold, reset)
                return
            end
            if later < 0 then
                if not may_bring(c, reset) then
                    return
                end
                c.brought_at = reset
            end
            if reset <= now then
                begin_in_the_past(c, reset)
                return
            end
            c.finish = reset
            c.offset = reset - c.computed_end
        end

        local function left_after(c, hold, told)
            local since = wrapping_since(c.spent, hold[SPENT])
            local returned = wrapping_since(c.returned, hold[RETURNED])
            local one_window = not c.spec.rolling and c.carried == 0
            local uncounted = clamp(hold[UNSEEN] + since)

            if one_window and not owns(c, hold) then
                return told - c.used
            end
            return clamp(told - (one_window and uncounted - returned or uncounted))
        end

        local function learn_max(c, told)
            if told.max then
                c.max = told.max
                c.learned_max = c.spec.auto or told.max ~= c.spec.max
            end
        end

        local function learn_left(c, hold, left)
            local in_window = owns(c, hold) and hold[ORDER] > c.moved_order
            local seen = in_window and max(hold[SEEN], 0) or 0

            c.left = left_after(c, hold, left)
            c.left_known = true
            c.external = max(0, c.max - left - seen - hold[CHARGE])
        end

        local function is_out_of_order(c, hold)
            return c.observed and hold[ORDER] < c.used_order
        end

        local function mark_used(c, hold)
            c.observed, c.used_order = true, hold[ORDER]
        end

        local function exhaust(c, till)
            c.exhausted_until = c.exhausted and max(c.exhausted_until, till) or till
            c.exhausted = true
        end

        local function observe_window(c, hold, told, exhausts)
            local reset = told.reset and window_classify(c, told.reset)
            local coming = reset == 'coming'

            if not owns(c, hold) and not coming then
                learn_max(c, told)
                return
            end

            local later = coming and c.finish < told.reset

            if reset and reset ~= 'stale' and (later or not is_out_of_order(c, hold)) then
                window_reset(c, hold, told.reset)
            end

            local current = told.left and (not reset or coming)
            local till = coming and told.reset < c.finish and told.reset or NEVER

            if exhausts and current then
                exhaust(c, till)
            end
            if is_out_of_order(c, hold) then
                return
            end
            learn_max(c, told)
            if current then
                learn_left(c, hold, told.left)
                c.left_until = till
                if owns(c, hold) and hold[GRANTED] >= c.start + c.spec.arrival then
                    c.carried = 0
                end
            end
            if current or coming or (told.max and owns(c, hold)) then
                mark_used(c, hold)
            end
        end

        local function observe_rolling(c, hold, told, exhausts)
            local coming = told.reset and now < told.reset
            local current = told.left and (not told.reset or coming)
            local till = coming and told.reset or now + div_ceil_sum(c.spec.length, 0, 24)

            if not owns(c, hold) then
                learn_max(c, told)
                return
            end
            if exhausts then
                exhaust(c, till)
            end
            if is_out_of_order(c, hold) then
                return
            end
            learn_max(c, told)
            if current then
                learn_left(c, hold, told.left)
                c.left_until = till
            end
            if current or told.max then
                mark_used(c, hold)
            end
        end

        local function is_far(c, reset)
            if c.spec.rolling then
                return now + 2 * c.spec.length < reset
            end
            return window_classify(c, reset) == 'far'
        end

        if told.reset and is_far(c, told.reset) then
            told.reset = nil
        end
        if not told.max and not told.left and not told.reset then
            return
        end
        changed(c)
        if c.spec.rolling then
            observe_rolling(c, hold, told, limited and told.left == 0)
        else
            observe_window(c, hold, told, limited and told.left == 0)
        end
    end

    -- `told` is { max, left, reset } as far as they could be read, or nil where there was no response.
    local function observe(c, held, reply, lease)
        local hold, index = lease_hold(c, lease, held.charge)

        if not hold[ANSWERED] then
            hold[ANSWERED], hold[FLYING] = c.newest_order, false
            if index and not c.spec.sync then
                table.remove(c.holds, index)
            end
            if index then
                changed(c)
            end
        end
        if c.spec.told and c.spec.sync then
            local told = c.spec.told

            learn(c, hold, { max = told[1], left = told[2], reset = told[3] }, reply.limited)
        end
    end

    return { reason = 'quota_exhausted', decode = decode, encode = encode, read = read, check = check, take = take,
        settle = settle, next_change = next_change, give_back = give_back, lose = lose, observe = observe,
        state_of = state_of }
end
