-- SPDX-License-Identifier: MIT
--
-- The order among those who wait: core/queue.c. A rank is 37 digits: priority, tag, number of arrival; the smaller goes
-- first. Tags may pass 2^53, so they have two limbs; they stop where the core's do.
--
-- `queue` holds the last number of arrival, how many are parked, of each priority how many wait and V, the largest tag
-- served, and the members with waiters. `lines` is a sorted set of LENGTH:TENANT and the rank, for the last tag of a
-- tenant and how many it has.
-- All is made when somebody waits.
local function queue_make()
    local BASE = 4503599627370496 -- 2^52; the larger limb is below 4096
    local LINES = prefix .. 'lines'

    local function lives_until(key, ends)
        if not call.lasting then
            redis.call('PEXPIREAT', key, div_floor(ends, 1000) + 1)
        end
    end

    -- A text that no other begins with, and the members of a sorted set that begin with it and go on with a digit.
    local function measured(text)
        return #text .. ':' .. text
    end

    local function by_prefix(length_text)
        return '[' .. length_text .. '0', '(' .. length_text .. ':' -- a digit follows
    end

    -- Heaps of waiters by rank.
    local function heap_push(heap, waiter)
        local at = #heap + 1

        while at > 1 do
            local up = (at - at % 2) / 2

            if heap[up].rank <= waiter.rank then
                break
            end
            heap[at] = heap[up]
            at = up
        end
        heap[at] = waiter
    end

    local function heap_pop(heap)
        local top, last = heap[1], table.remove(heap)
        local size, at = #heap, 1

        if size == 0 then
            return top
        end
        while 2 * at <= size do
            local down = 2 * at

            if down < size and heap[down + 1].rank < heap[down].rank then
                down = down + 1
            end
            if last.rank <= heap[down].rank then
                break
            end
            heap[at] = heap[down]
            at = down
        end
        heap[at] = last
        return top
    end

    local function queue_save(cell)
        local of = cell.of

        return head.waiting > 0 and head.kept or -MAX, cmsgpack.pack(cell.serial, cell.parked, of[1], of[2], of[3],
            of[4], cell.members)
    end

    local queue = cell_at(prefix .. 'queue')

    queue.serial, queue.parked, queue.of = 0, 0, { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } }
    queue.members = {}
    if queue.raw then
        local of = queue.of

        queue.serial, queue.parked, of[1], of[2], of[3], of[4], queue.members = cmsgpack.unpack(queue.raw)
    end
    queue.save, queue.is_lease = queue_save, true

    local function tag_of(rank)
        return tonumber(string.sub(rank, 2, 5)), tonumber(string.sub(rank, 6, 21))
    end

    local function is_tag_less(hi, lo, than_hi, than_lo)
        return hi < than_hi or (hi == than_hi and lo < than_lo)
    end

    -- The rank that a request would get, behind all of its tag.
    local function rank(ask)
        local priority, tenant, cost, weight, fifo = unpack(ask.queue)
        local of = queue.of[priority]
        local hi, lo = of[2], of[3]
        local line = measured(tenant)
        local last = of[1] > 0 and not fifo and redis.call('ZREVRANGEBYLEX', LINES,
            '(' .. line .. priority + 1, '[' .. line .. priority, 'LIMIT', 0, 1)[1]

        for i, place in ipairs(ask.places) do
            place.key = string.sub(KEYS[3 + i], #prefix + 1)
            place.lane = kind_of(place.kind).lane and kind_of(place.kind).lane(place) or ''
        end
        if last then
            local last_hi, last_lo = tag_of(string.sub(last, #line + 1))

            if is_tag_less(hi, lo, last_hi, last_lo) then
                hi, lo = last_hi, last_lo
            end
        end

        local step = div_ceil_sum(cost, 0, weight)
        local step_lo = fmod(step, BASE)

        hi, lo = hi + (step - step_lo) / BASE, lo + step_lo
        if lo >= BASE then
            hi, lo = hi + 1, lo - BASE
        end
        if hi >= 4096 then
            hi, lo = 4095, BASE - 1
        end
        if fifo then
            hi, lo = 0, 0
        end
        ask.rank = string.format('%d%04.0f%016.0f%016.0f', priority, hi, lo, queue.serial + 1)
    end

    local function is_full(ask)
        local most, most_of_tenant = ask.queue[6], ask.queue[7]

        return head.waiting >= most or (head.waiting >= most_of_tenant and
            redis.call('ZLEXCOUNT', LINES, by_prefix(measured(ask.queue[2]))) >= most_of_tenant)
    end

    local function served(rank)
        local of, hi, lo = queue.of[tonumber(string.sub(rank, 1, 1))], tag_of(rank)

        if is_tag_less(of[2], of[3], hi, lo) then
            of[2], of[3] = hi, lo
            changed(queue)
        end
    end

    local function enter(waiter)
        local of = queue.of[tonumber(string.sub(waiter.rank, 1, 1))]

        queue.serial = queue.serial + 1
        of[1] = of[1] + 1
        head.waiting, head.changed = head.waiting + 1, true
        changed(queue)
        zadd(LINES, 0, measured(waiter.tenant) .. waiter.rank)
        lives_until(LINES, head.kept)
    end

    local function leave(waiter, granted)
        local of = queue.of[tonumber(string.sub(waiter.rank, 1, 1))]

        zrem(LINES, measured(waiter.tenant) .. waiter.rank, 0)
        of[1] = of[1] - 1
        head.waiting, head.changed = head.waiting - 1, true
        changed(queue)
        if granted then
            served(waiter.rank)
        end
        if of[1] == 0 then
            of[2], of[3] = 0, 0
        end
    end

    -- ---- members: { when it was heard of, how many wait, how long it may be silent } ----

    local function member_dies(name)
        local member = queue.members[name]

        return member and member[1] + member[3] or NEVER
    end

    -- Returns when it is to be looked for; nil: that stands.
    local function member_enter(name)
        local member = queue.members[name] or { now, 0, call.queue[8] }

        member[1], member[2] = now, member[2] + 1
        queue.members[name] = member
        return member[2] == 1 and member_dies(name) or nil
    end

    local function member_leave(name)
        local member = queue.members[name]

        member[2] = member[2] - 1
        if member[2] > 0 then
            return nil
        end
        queue.members[name] = nil
        return NEVER
    end

    local function heard_of(name)
        local member = queue.members[name]

        if member and member[1] + SECOND <= now then
            member[1] = now
            changed(queue)
        end
    end

    return { cell = queue, heard_of = heard_of, member_enter = member_enter, member_leave = member_leave,
        member_dies = member_dies, rank = rank, is_full = is_full, served = served, enter = enter, leave = leave,
        lives_until = lives_until, measured = measured, by_prefix = by_prefix, heap_push = heap_push,
        heap_pop = heap_pop }
end
