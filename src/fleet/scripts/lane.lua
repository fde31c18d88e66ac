-- SPDX-License-Identifier: MIT
--
-- Who stands in whose way at a counter: core/lane.c. `wait:COUNTER` holds how many need it, bounds of what they want,
-- its wake, and of each lane how many keep a place there and the sum of their charges; `places:COUNTER` is a sorted set
-- of those: LENGTH:LANE, the rank, then CHARGE;ID. All is made when somebody waits.
local function lanes_make(queue)
    local RANK = 37
    local lives_until, measured, by_prefix = queue.lives_until, queue.measured, queue.by_prefix

    local function record_save(r)
        return r.w.count > 0 and r.w.lasts or -MAX, cmsgpack.pack(r.w)
    end

    -- Of a counter by the rest of its key, which begins with "limit:".
    local function record_at(key)
        local name = string.sub(key, 7)
        local r = cell_at(prefix .. 'wait:' .. name)

        if not r.w then
            r.w = r.raw and cmsgpack.unpack(r.raw) or { count = 0, parked = 0, charge = 0, deadline = NEVER,
                wake = NEVER, lasts = -MAX, lanes = {} }
            r.save, r.is_lease, r.of, r.first = record_save, true, key, {}
            r.places, r.watch = prefix .. 'places:' .. name, prefix .. 'watch:' .. name
        end
        return r
    end

    local function waiter_at(id)
        local _, cell = lease_at(id)

        return cell.waiter
    end

    local function waiter_changed(waiter)
        changed(cell_at(prefix .. 'lease:' .. waiter.id))
    end

    local function place_of(waiter, key)
        for _, place in ipairs(waiter.places) do
            if place.key == key then
                return place
            end
        end
    end

    -- The counter of a waiter's place, brought up to now, for its charge.
    local function counter_of(place, key)
        local c = counter_at(prefix .. (key or place.key), place.kind)
        local read = kind_of(place.kind).read

        c.spec, c.charge = place, place.charge
        if read then
            read(c)
        end
        return c
    end

    local function first(r, lane)
        local found = r.first[lane]

        if found ~= nil then
            return found
        end
        found = false
        if r.w.lanes[lane] then
            local from, to = by_prefix(measured(lane))
            local member = redis.call('ZRANGEBYLEX', r.places, from, to, 'LIMIT', 0, 1)[1]
            local at = #from - 2

            if member then
                found = { rank = string.sub(member, at + 1, at + RANK), id = string.match(member, ';(.*)$', at + RANK) }
            end
        end
        r.first[lane] = found
        return found
    end

    local function is_ahead(place, ask)
        local r = record_at(place.key)
        local head_of_lane = r.w.count > 0 and first(r, place.lane)

        return head_of_lane and head_of_lane.rank < ask.rank
    end

    -- Does anybody else need the counter?
    local function others(place, ask)
        return record_at(place.key).w.count > (ask.watches and 1 or 0)
    end

    -- The charges of those ahead: O(those), unless all are.
    local function ahead(place, ask)
        local r = record_at(place.key)
        local from, to = by_prefix(measured(place.lane))
        local lane = r.w.lanes[place.lane]
        local last = lane and redis.call('ZREVRANGEBYLEX', r.places, to, from, 'LIMIT', 0, 1)[1]
        local sum, at = 0, #from - 2

        if not last then
            return 0
        end
        last = string.sub(last, at + 1, at + RANK)
        if lane[2] < MAX and last <= ask.rank then
            return lane[2] - (last == ask.rank and place.charge or 0)
        end
        to = '(' .. string.sub(from, 2, -2) .. ask.rank
        for _, member in ipairs(redis.call('ZRANGEBYLEX', r.places, from, to)) do
            sum = clamp(sum + tonumber(string.match(member, '^%d+', at + RANK + 1)))
        end
        return sum
    end

    -- The largest charge of those who keep a place in its lane.
    local function largest(place)
        local r = record_at(place.key)
        local from, to = by_prefix(measured(place.lane))
        local most, at = 0, #from - 2

        for _, member in ipairs(r.w.lanes[place.lane] and redis.call('ZRANGEBYLEX', r.places, from, to) or {}) do
            most = max(most, tonumber(string.match(member, '^%d+', at + RANK + 1)))
        end
        return most
    end

    local function place_member(waiter, place)
        return string.format('%s%s%.0f;%s', measured(place.lane), waiter.rank, place.charge, waiter.id)
    end

    local function lane_enter(r, waiter, place)
        local lane = r.w.lanes[place.lane] or { 0, 0 }
        local head_of_lane = first(r, place.lane)

        zadd(r.places, 0, place_member(waiter, place))
        lives_until(r.places, r.w.lasts)
        r.w.lanes[place.lane] = { lane[1] + 1, clamp(lane[2] + place.charge) }
        if not head_of_lane or waiter.rank < head_of_lane.rank then
            r.first[place.lane] = { rank = waiter.rank, id = waiter.id }
        end
        place.kept = true
        changed(r)
        waiter_changed(waiter)
    end

    local function lane_leave(r, waiter, place)
        local lane = r.w.lanes[place.lane]

        zrem(r.places, place_member(waiter, place), 0)
        -- A sum that has been cut is no sum any more.
        r.w.lanes[place.lane] = lane[1] > 1 and { lane[1] - 1, lane[2] < MAX and lane[2] - place.charge or MAX } or nil
        if r.first[place.lane] and r.first[place.lane].id == waiter.id then
            r.first[place.lane] = nil
        end
        place.kept = false
        changed(r)
    end

    return { record_at = record_at, waiter_at = waiter_at, waiter_changed = waiter_changed, place_of = place_of,
        counter_of = counter_of, first = first, is_ahead = is_ahead, others = others, ahead = ahead,
        largest = largest, lane_enter = lane_enter, lane_leave = lane_leave }
end
