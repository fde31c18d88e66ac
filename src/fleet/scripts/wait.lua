-- SPDX-License-Identifier: MIT
--
-- Requests that wait: core/pump.c, queue.c and lane.c, with their names. All of it is made when somebody waits.
--
-- Who waits stands under the key of its lease, with all that deciding for it needs: the rules of its counters with its
-- charge at each, its deadline, its rank (queue.lua), and at which counters it keeps a place (its short set). Sorted
-- sets find who is meant without looking at all:
--
--   waiters        all, by whether a penalty alone holds them back (parked)
--   alarms         instants: `w` a counter's first may go by time alone, `p` and `a` a penalty's end, `d` a deadline,
--                  `m` a member is thought dead, if it is not heard of
--   watch:COUNTER  who needs the counter, by whether they are parked
--   places:COUNTER who keeps a place there (lane.lua)
--
-- A member is told through a channel what has come of its waiters, and asks for it (collect.lua), as messages get lost.
-- What is granted to a waiter is held for `told`, at most, until its member has asked. A member that is not heard of
-- for so long has its waiters refused. Where no member is named, as in a replay, there is none of that.
--
-- Whatever changes a counter touches it. Whoever is first there is then looked at, in waiting order, one change at a
-- time. Invariant, between calls: a waiter keeps a place that it cannot take from, or it is parked.
local function waits_make()
    local ALARMS, WAITERS = prefix .. 'alarms', prefix .. 'waiters'
    local queue = queue_make()
    local lanes = lanes_make(queue)
    local lives_until, heap_push, heap_pop = queue.lives_until, queue.heap_push, queue.heap_pop
    local record_at, waiter_at, waiter_changed = lanes.record_at, lanes.waiter_at, lanes.waiter_changed
    local place_of, counter_of, first, is_ahead = lanes.place_of, lanes.counter_of, lanes.first, lanes.is_ahead
    local lane_enter, lane_leave = lanes.lane_enter, lanes.lane_leave

    local look, doomed = {}, {} -- heaps of waiters by rank
    local is_look, is_doomed = {}, {} -- ids of those in them
    local dirty, dirties = {}, {} -- counters whose wake is to be set anew
    local shrunk, is_shrunk = {}, {} -- counters where less may be there
    local growing, is_growing = {}, {} -- counters that demand may make grow
    local alarmed = false
    local messages = {} -- members and ids

    -- ---- sorted sets ----

    local function alarm(member, at, was)
        if at == was then
            return
        end
        if at == NEVER then
            zrem(ALARMS, member, was)
        else
            zadd(ALARMS, at, member, was ~= NEVER and was or nil)
            lives_until(ALARMS, head.kept)
        end
        alarmed = true
    end

    -- The same, where nobody knows what was.
    local function alarm_set(member, at)
        alarm(member, at, tonumber(redis.call('ZSCORE', ALARMS, member) or NEVER))
    end

    -- ---- marks: core/pump.c ----

    local function look_push(waiter)
        if waiter and not is_look[waiter.id] and not is_doomed[waiter.id] then
            is_look[waiter.id] = true
            heap_push(look, waiter)
        end
    end

    -- Whether a penalty alone holds it back.
    local function set_parked(waiter, parked)
        local score, was = parked and 1 or 0, parked and 0 or 1

        if waiter.parked == parked then
            return
        end
        waiter.parked = parked
        waiter_changed(waiter)
        zadd(WAITERS, score, waiter.id, was)
        queue.cell.parked = queue.cell.parked + score - was
        changed(queue.cell)
        for _, place in ipairs(waiter.places) do
            if place.binds then
                local r = record_at(place.key)

                zadd(r.watch, score, waiter.id, was)
                r.w.parked = r.w.parked + score - was
                changed(r)
            end
        end
    end

    -- Look at all that are parked in the set.
    local function rouse(set)
        for _, id in ipairs(redis.call('ZRANGEBYSCORE', set, 1, 1)) do
            local waiter = waiter_at(id)

            if waiter then
                set_parked(waiter, false)
                look_push(waiter)
            end
        end
    end

    local function counter_rouse(r)
        if r.w.parked > 0 then
            rouse(r.watch)
        end
    end

    local function mark(r, is_less)
        if r.w.count == 0 then
            return
        end
        if not dirties[r] then
            dirties[r] = true
            dirty[#dirty + 1] = r
        end
        if kind_of(r.w.kind).demand and not is_growing[r] then
            is_growing[r] = true
            growing[#growing + 1] = r
        end
        if is_less and not is_shrunk[r] then
            is_shrunk[r] = true
            shrunk[#shrunk + 1] = r
        end
        for lane in pairs(r.w.lanes) do
            local head_of_lane = first(r, lane)

            look_push(head_of_lane and waiter_at(head_of_lane.id))
        end
    end

    -- A penalty or a pause of the counter is over.
    local function penalty_over(c)
        local r = record_at(string.sub(c.key, #prefix + 1))

        counter_rouse(r)
        mark(r, false)
    end

    local function note(waiter, place, what, reason)
        local kind = kind_of(place.kind)

        if kind.note then
            kind.note(counter_of(place), what, waiter, place.kept, reason)
        end
    end

    -- Somebody asks, so less is lent, and who finds a cap full may make it grow.
    local function note_all(waiter, what)
        for _, place in ipairs(waiter.places) do
            note(waiter, place, what)
            if what == 'wait' and kind_of(place.kind).note then
                touched[#touched + 1] = counter_of(place)
            end
        end
    end

    -- It keeps its place on the counter from now on: those behind it who need the counter must know.
    local function place_keep(waiter, place)
        local r = record_at(place.key)

        lane_enter(r, waiter, place)
        counter_rouse(r)
        note(waiter, place, 'short')
        if first(r, place.lane).id == waiter.id then
            mark(r, false)
        end
    end

    -- ---- coming and going ----

    local function can_take(waiter, place)
        if not place.binds then
            return true
        end
        if is_ahead(place, waiter) then
            return false
        end
        return not kind_of(place.kind).check(counter_of(place), waiter)
    end

    local function watch(waiter, place)
        local r = record_at(place.key)
        local w = r.w
        local penalty = counter_of(place).penalty

        w.count, w.kind = w.count + 1, place.kind
        w.charge, w.deadline = max(w.charge, place.charge), min(w.deadline, waiter.deadline)
        w.lasts = max(w.lasts, waiter.deadline + DAY)
        changed(r)
        zadd(r.watch, 0, waiter.id)
        lives_until(r.watch, w.lasts)
        if penalty_runs(penalty) then
            alarm_set('p' .. place.key, penalty[2])
        end
    end

    local function unwatch(waiter, place)
        local r = record_at(place.key)
        local w = r.w

        zrem(r.watch, waiter.id, 0)
        w.count = w.count - 1
        changed(r)
        if w.count == 0 then
            alarm('w' .. place.key, NEVER, w.wake)
            w.wake, w.charge, w.deadline = NEVER, 0, NEVER
        end
    end

    -- `at` nil: as it was.
    local function alarm_member(name, at)
        if at then
            alarm_set('m' .. name, at)
        end
    end

    -- What has come of a waiter is an event, and its member hears of it.
    local function tell(waiter, ...)
        happened(...)
        if waiter.member then
            messages[#messages + 1] = { waiter.member, waiter.id }
        end
    end

    local function deadline_name(waiter)
        return 'd' .. string.sub(waiter.rank, 22) .. waiter.id
    end

    local function begin_places(waiter)
        local any = false

        for _, place in ipairs(waiter.places) do
            if not can_take(waiter, place) then
                place_keep(waiter, place)
                any = true
            end
        end
        if not any then
            set_parked(waiter, true)
        end
    end

    local function wait(ask, account, index)
        local cell = cell_at(prefix .. 'lease:' .. ask.id)

        if not ask.rank then
            queue.rank(ask)
        end

        local waiter = { id = ask.id, since = now, deadline = ask.deadline, rank = ask.rank, tenant = ask.queue[2],
            hold = ask.hold, ttl = ask.ttl, retry = ask.retry, critical = ask.critical, may_wait = true, watches = true,
            parked = false, places = ask.places, account = string.sub(KEYS[3], #prefix + 1), index = index,
            member = call.member, told = call.member and call.queue[8], pass = ask.pass, gate = ask.gate,
            grants = head.grants }

        cell.waiter = waiter
        keep_sets(waiter.deadline)
        queue.enter(waiter)
        if waiter.member then
            alarm_member(waiter.member, queue.member_enter(waiter.member))
        end
        waiter_changed(waiter)
        zadd(WAITERS, 0, waiter.id)
        lives_until(WAITERS, head.kept)
        alarm(deadline_name(waiter), waiter.deadline, NEVER)
        if penalty_runs(account.penalty) then
            alarm_set('a' .. waiter.account, account.penalty[2])
        end
        for _, place in ipairs(waiter.places) do
            if place.binds then
                watch(waiter, place)
            end
        end
        note_all(waiter, 'wait')
        begin_places(waiter)
    end

    local function unwait(waiter, granted)
        set_parked(waiter, false)
        is_look[waiter.id], is_doomed[waiter.id] = nil, nil
        alarm(deadline_name(waiter), NEVER, waiter.deadline)
        zrem(WAITERS, waiter.id, 0)
        note_all(waiter, granted and 'granted' or 'leave')
        queue.leave(waiter, granted)
        if waiter.member then
            alarm_member(waiter.member, queue.member_leave(waiter.member))
        end
        for _, place in ipairs(waiter.places) do
            if place.binds then
                local r = record_at(place.key)

                if place.kept then
                    lane_leave(r, waiter, place)
                end
                unwatch(waiter, place)
                mark(r, false)
            end
        end
        if waiter.pass and not granted then
            circuits().leave(waiter.pass)
        end
        waiter_changed(waiter)
        cell_at(prefix .. 'lease:' .. waiter.id).waiter = nil
    end

    local function examined(waiter, stage)
        local counters = {}

        for i, place in ipairs(waiter.places) do
            counters[i] = counter_of(place)
        end
        return examine(waiter, counters, account_at(prefix .. waiter.account), stage), counters
    end

    -- ---- refusing those for whom it has become true ----

    local function must_refuse(waiter)
        return examined(waiter, STILL).refuses
    end

    local function doom(waiter)
        if waiter and not is_doomed[waiter.id] and must_refuse(waiter) then
            is_doomed[waiter.id], is_look[waiter.id] = true, nil
            heap_push(doomed, waiter)
        end
    end

    local function counter_doom(r)
        r.w.charge, r.w.deadline = 0, NEVER
        for _, id in ipairs(redis.call('ZRANGE', r.watch, 0, -1)) do
            local waiter = waiter_at(id)

            if waiter then
                r.w.charge = max(r.w.charge, place_of(waiter, r.of).charge)
                r.w.deadline = min(r.w.deadline, waiter.deadline)
                doom(waiter)
            end
        end
        changed(r)
    end

    -- Any waiter's place at the counter, for its rules.
    local function place_at(r)
        local waiter = waiter_at(redis.call('ZRANGE', r.watch, 0, 0)[1] or '')

        return waiter and place_of(waiter, r.of)
    end

    -- Less may be there. Asked for the largest charge and the nearest deadline: if that is still fine, all are.
    local function counter_shrunk(r)
        local place = r.w.count > 0 and (cell_at(prefix .. r.of).spec or place_at(r))
        local ask = { deadline = r.w.deadline, may_wait = true }

        if not place then
            return
        end

        local kind, c = kind_of(place.kind), counter_of(place, r.of)

        c.charge = r.w.charge

        -- What a lane can have is its own affair.
        local b = kind.lane and {} or not kind.lane and kind.check(c, ask)

        if (b and (b.refuses or is_late(kind, b, ask))) or
            (penalty_runs(c.penalty) and ask.deadline < c.penalty[2]) then
            counter_doom(r)
        end
        if b then
            counter_rouse(r)
        end
    end

    local function refuse(waiter, found)
        local rest = refusal(found)

        rest[11] = now
        tell(waiter, 'refused', waiter.id, rest)
        cell_at(prefix .. 'lease:' .. waiter.id).refusal = rest

        local named = waiter.places[found.named.index]
        local refused = named and kind_of(named.kind).refused

        if refused then
            refused(counter_of(named), found.named.reason)
        end
    end

    local function refuse_doomed()
        while #shrunk > 0 do
            local r = table.remove(shrunk, 1)

            is_shrunk[r] = nil
            counter_shrunk(r)
        end
        while #doomed > 0 do
            local waiter = heap_pop(doomed)

            if is_doomed[waiter.id] then
                refuse(waiter, (examined(waiter, STILL)))
                unwait(waiter, false)
                return true
            end
        end
        return false
    end

    -- ---- looking ----

    local function is_penalized(waiter)
        if penalty_runs(account_at(prefix .. waiter.account).penalty) then
            return true
        end
        for _, place in ipairs(waiter.places) do
            local penalty = place.binds and counter_of(place).penalty

            if is_paused(penalty) or penalty_runs(penalty) then
                return true
            end
        end
        return false
    end

    -- The short set grows only while it could take from all that is in it.
    local function grow(waiter)
        local grown = false

        for _, place in ipairs(waiter.places) do
            if not place.kept and not can_take(waiter, place) then
                place_keep(waiter, place)
                grown = true
            end
        end
        return grown
    end

    local function grant(waiter)
        local counters = {}

        for i, place in ipairs(waiter.places) do
            counters[i] = counter_of(place)
        end
        tell(waiter, 'granted', waiter.id)
        unwait(waiter, true)
        lease_take(waiter, counters)
    end

    -- The first of a lane is short of it still.
    local function found_short(waiter)
        for _, place in ipairs(waiter.places) do
            local kind = kind_of(place.kind)

            if kind.note and place.kept and first(record_at(place.key), place.lane).id == waiter.id then
                local b = kind.check(counter_of(place), waiter)

                note(waiter, place, 'found', b and b.reason)
            end
        end
    end

    local function look_at(waiter)
        for _, place in ipairs(waiter.places) do
            if place.kept and not can_take(waiter, place) then
                found_short(waiter)
                set_parked(waiter, false)
                return
            end
        end
        if grow(waiter) then
            set_parked(waiter, false)
        elseif is_penalized(waiter) then
            set_parked(waiter, true)
        else
            grant(waiter)
        end
    end

    -- What has been changed since the last look.
    local function absorb()
        while #touched > 0 do
            local cell = table.remove(touched)

            if cell.kind then
                local key = string.sub(cell.key, #prefix + 1)
                local r = record_at(key)

                if r.w.count > 0 and penalty_runs(cell.penalty) then
                    alarm_set('p' .. key, cell.penalty[2])
                end
                mark(r, true)
                if cell.shrank then
                    cell.shrank = nil
                    counter_doom(r)
                end
            elseif cell.is_circuit and circuits().is_open(cell.name) then
                for _, id in ipairs(redis.call('ZRANGE', WAITERS, 0, -1)) do
                    local waiter = waiter_at(id)

                    doom(waiter and waiter.gate == cell.name and waiter)
                end
            elseif cell.is_account and penalty_runs(cell.penalty) then
                alarm_set('a' .. string.sub(cell.key, #prefix + 1), cell.penalty[2])
                for _, id in ipairs(redis.call('ZRANGE', WAITERS, 0, -1)) do
                    doom(waiter_at(id))
                end
            end
        end
    end

    local function wake_of(r)
        local at = NEVER

        for lane in pairs(r.w.lanes) do
            local head_of_lane = first(r, lane)
            local waiter = head_of_lane and waiter_at(head_of_lane.id)
            local place = waiter and place_of(waiter, r.of)
            local next_change = place and kind_of(place.kind).next_change
            local c = next_change and counter_of(place)
            local b = c and kind_of(place.kind).check(c, waiter)

            if b then
                at = min(at, next_change(c, b, waiter))
            end
        end
        return at <= now and now + 1 or at -- an instant that has passed would be looked at for ever
    end

    local function wakes_set()
        for _, r in ipairs(dirty) do
            if r.w.count > 0 then
                local at = wake_of(r)

                alarm('w' .. r.of, at, r.w.wake)
                if r.w.wake ~= at then
                    r.w.wake = at
                    changed(r)
                end
            end
        end
        dirty, dirties = {}, {}
    end

    -- Let the limits that changed grow by the demand of those who wait.
    local function grow_limits()
        while #growing > 0 do
            local r = table.remove(growing, 1)

            is_growing[r] = nil
            for lane in pairs(r.w.lanes) do
                local head_of_lane = first(r, lane)
                local waiter = head_of_lane and waiter_at(head_of_lane.id)
                local place = waiter and place_of(waiter, r.of)

                if place and kind_of(place.kind).demand(counter_of(place)) then
                    mark(r, false)
                    return true
                end
            end
        end
        return false
    end

    local function pump()
        while true do
            absorb()
            if not grow_limits() and not refuse_doomed() then
                local waiter

                repeat
                    waiter = #look > 0 and heap_pop(look)
                until not waiter or is_look[waiter.id]
                if not waiter then
                    break
                end
                is_look[waiter.id] = nil
                look_at(waiter)
            end
        end
        wakes_set()
    end

    -- ---- time ----

    local function due_alarms()
        return redis.call('ZRANGEBYSCORE', ALARMS, '-inf', now, 'WITHSCORES')
    end

    -- Nobody asks for its waiters any more.
    local function member_lost(name)
        local dies_at = queue.member_dies(name)

        if dies_at > now then
            alarm_set('m' .. name, dies_at)
            return
        end
        for _, id in ipairs(redis.call('ZRANGE', WAITERS, 0, -1)) do
            local waiter = waiter_at(id)

            if waiter and waiter.member == name then
                refuse(waiter, { named = { reason = 'store_unavailable', index = 0, bare = true }, retry_at = NEVER })
                unwait(waiter, false)
            end
        end
    end

    local function fire(member, at)
        local what, key = string.sub(member, 1, 1), string.sub(member, 2)

        alarm(member, NEVER, at)
        if what == 'a' then
            rouse(WAITERS)
            return
        elseif what == 'm' then
            member_lost(key)
            return
        end

        local r = record_at(key)

        if what == 'w' then
            r.w.wake = NEVER
            changed(r)
        else
            counter_rouse(r)
        end
        mark(r, what == 'w')
    end

    -- All deadlines of an instant: nobody gains by one of them before all have been told.
    local function deadlines_pass()
        local leaving, alarms = {}, due_alarms()

        for i = 1, #alarms, 2 do
            local waiter = waiter_at(string.sub(alarms[i], 18))

            if waiter then
                refuse(waiter, (examined(waiter, DEADLINE)))
                leaving[#leaving + 1] = waiter
            else
                alarm(alarms[i], NEVER, tonumber(alarms[i + 1]))
            end
        end
        for _, waiter in ipairs(leaving) do
            unwait(waiter, false)
        end
    end

    -- Of health checks all that are due by `till`: nobody who waits can tell.
    local function instant_pass(moving, till)
        while due[due.from] and due[due.from][2] <= now do
            lease_lose(due[due.from][1], due[due.from][2])
            due.from = due.from + 1
        end
        while moving[1] and circuits().next_of(moving, now) do
            circuits().advance(circuits().next_of(moving, now), till)
        end

        local alarms = due_alarms()

        for i = 1, #alarms, 2 do
            if string.sub(alarms[i], 1, 1) ~= 'd' then
                fire(alarms[i], tonumber(alarms[i + 1]))
            end
        end
        pump()
        deadlines_pass()
        pump()
    end

    local function is_sooner(a, b)
        return a[2] < b[2]
    end

    -- Everything up to `till`, instant by instant: leases lost, what time brings, grants, then deadlines.
    local function catch_up(till)
        now = head.now

        local moving = circuits_due(till)

        due = leases_due(till)
        due.from = 1
        while true do
            local alarms = redis.call('ZRANGE', ALARMS, 0, 0, 'WITHSCORES')
            local at = alarms[2] and tonumber(alarms[2]) or NEVER

            if due.sorted ~= #due then
                table.sort(due, is_sooner)
                due.sorted = #due
            end
            local c = moving[1] and circuits().next_of(moving, till)

            at = min(at, due[due.from] and due[due.from][2] or NEVER, c and c.until_at or NEVER)
            if at > till then
                break
            end
            now = max(now, at)
            instant_pass(moving, till)
        end
        now = till
        leases_passed(due)
        due = nil
    end

    -- ---- for the calls ----

    -- A newcomer that takes what a waiter of its priority keeps a place for counts as one that waited: decision 0008.
    local function pass(ask)
        for _, place in ipairs(ask.places) do
            local r = record_at(place.key)
            local head_of_lane = r.w.count > 0 and first(r, place.lane)

            if head_of_lane and string.sub(head_of_lane.rank, 1, 1) == string.sub(ask.rank, 1, 1) then
                queue.served(ask.rank)
                return
            end
        end
    end

    local function finish()
        pump()
        for _, message in ipairs(messages) do
            redis.pcall('PUBLISH', prefix .. 'wake:' .. message[1], message[2])
        end
        if alarmed then
            local alarms = redis.call('ZRANGE', ALARMS, 0, 0, 'WITHSCORES')

            head.wake, head.changed = alarms[2] and tonumber(alarms[2]) or NEVER, true
        end
    end

    return { rank = queue.rank, is_full = queue.is_full, heard_of = queue.heard_of, is_ahead = is_ahead,
        ahead = lanes.ahead, others = lanes.others, largest = lanes.largest, pass = pass, wait = wait, unwait = unwait,
        catch_up = catch_up, finish = finish, waiter_at = waiter_at, penalty_over = penalty_over }
end

local function waiting()
    if not waits then
        touched = {}
        waits = waits_make()
    end
    return waits
end
