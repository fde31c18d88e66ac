-- SPDX-License-Identifier: MIT
--
-- What a script reads and writes. All keys of a call are read at once and values are written at its end, so a call that
-- is given up has done nothing; what did not change is not written. Only sorted sets are changed meanwhile, and that is
-- taken back.
--
-- KEYS[1] is the provider's head: its clock, the order of its newest grant, the first end of a time to live, how many
-- wait and the next instant at which something happens to them. KEYS[2] is the lease, KEYS[3] the account, then come
-- the counters.
--
-- Every value but a lease's begins with the instant from which on it means nothing. Redis removes it then or later;
-- whoever reads it before that finds nothing. The head outlives all others.
--
-- Time is the server's, or the one that a test tells. It never goes back: where the server's is behind the head's,
-- after a fail-over, it runs a hundredth slower until the server has caught up.
local SECOND = 1000000
local DAY = 86400 * SECOND
local CLOCK_STEP = 1000 -- the head is written for the clock alone once it has moved by so much

local cells = {}
local written = {} -- the cells that have been changed, in order
local deferred = {} -- commands for sorted sets
local events = {}
local announced = {} -- channels and messages
local undo = {} -- commands that take back what has been done at once
local touched -- the cells changed, for those who wait; nil: nobody does
local now, head

do
    raws = raws or redis.call('MGET', unpack(KEYS))
    for i, key in ipairs(KEYS) do
        cells[key] = { key = key, raw = raws[i] }
    end
end

local function cell_at(key)
    local cell = cells[key]

    if not cell then
        cell = { key = key, raw = redis.call('GET', key) }
        cells[key] = cell
    end
    return cell
end

local function changed(cell)
    if not cell.changed then
        cell.changed = true
        written[#written + 1] = cell
    end
    if touched then
        touched[#touched + 1] = cell
    end
end

-- It outlives all others.
local function head_ends(at)
    return max(head.ends, head.kept, at) + 2 * DAY
end

local function head_read()
    local raw = cells[KEYS[1]].raw

    head = { now = -MAX, grants = 0, first = NEVER, ends = -MAX, kept = -MAX, waiting = 0, wake = NEVER,
        circuits = NEVER }
    if raw then
        head.now, head.grants, head.first, head.ends, head.kept, head.slow_now, head.slow_real, head.waiting,
            head.wake, head.circuits = cmsgpack.unpack(raw)
        cells[KEYS[1]].was = head_ends(head.now)
    end
    head.written, head.ends_written = head.now, head.ends
end

-- Of a grant: its instant, or what comes after the newest grant where that is later. So the head need not tell of each
-- grant; it must where more of one instant are to be told apart (`head.changed`).
local function next_order()
    return max(head.grants + 1, now)
end

local function clock()
    if call.now then
        return max(head.now, call.now)
    end

    time = time or redis.call('TIME')

    local real = time[1] * SECOND + time[2]

    if real >= head.now then
        head.slow_now, head.slow_real = nil, nil
        return real
    end
    if not head.slow_now or real < head.slow_real then
        head.slow_now, head.slow_real, head.changed = head.now, real, true
    end
    return max(head.now, head.slow_now + div_floor((real - head.slow_real) * 99, 100))
end

-- Redis may remove it some time after its end, so that the instant need not be told again with each that comes a little
-- later: where it is still the one that it was (`cell.was`: the end of the value that stood there), it stays. A test's
-- time is not Redis', so nothing is removed then. `life`: so many seconds, a text, since Redis takes long over numbers;
-- true: as it was.
local function set(cell, value, ends, life)
    local grain = ends - ends % GRAIN

    if call.lasting or ends == NEVER then
        redis.call('SET', cell.key, value)
    elseif life and life ~= true then
        redis.call('SET', cell.key, value, 'EX', life)
    elseif life == true then
        redis.call('SET', cell.key, value, 'KEEPTTL')
    elseif cell.raw and cell.was and cell.was - cell.was % GRAIN == grain then
        redis.call('SET', cell.key, value, 'KEEPTTL')
    else
        redis.call('SET', cell.key, value, 'PXAT', div_floor(grain + 2 * GRAIN, 1000) + 1)
    end
end

local function later(...)
    deferred[#deferred + 1] = { ... }
end

local function expire_later(key, ends)
    if not call.lasting and ends ~= NEVER then
        later('PEXPIREAT', key, div_floor(ends, 1000) + 1)
    end
end

-- What those who watch are told: limits that moved, breakers that changed, what came of those who waited.
local function happened(what, ...)
    events[#events + 1] = { what, now, ... }
end

-- Whoever may not publish is no worse off than where messages are lost.
local function announce(channel, message)
    announced[#announced + 1] = { channel, message }
end

-- Sorted sets that the same call looks at again are changed at once. `was`: the member's score so far, nil: none.
local function zadd(key, score, member, was)
    redis.call('ZADD', key, score, member)
    undo[#undo + 1] = was and { 'ZADD', key, was, member } or { 'ZREM', key, member }
end

local function zrem(key, member, was)
    if redis.call('ZREM', key, member) == 1 then
        undo[#undo + 1] = { 'ZADD', key, was, member }
    end
end

-- Nothing has happened. A set that was empty in between has lost its end and gets a late one.
local function undo_all()
    local ends = max(head.ends, head.kept, head.now) + 2 * DAY

    for i = #undo, 1, -1 do
        redis.call(unpack(undo[i]))
        if not call.lasting then
            redis.call('PEXPIREAT', undo[i][2], div_floor(ends, 1000) + 1)
        end
    end
end

-- A cell's `save` tells when it means nothing any more, what to write, and maybe how long it may stay.
local function flush()
    for _, cell in ipairs(written) do
        local ends, value, life = cell.save(cell)

        if not value or ends <= now then
            if cell.raw then
                redis.call('DEL', cell.key)
            end
        else
            if ends ~= NEVER and not cell.is_lease then
                head.ends = max(head.ends, ends)
            end
            set(cell, value, ends, life)
        end
    end
    for _, command in ipairs(deferred) do
        redis.call(unpack(command))
    end
    for _, message in ipairs(announced) do
        redis.pcall('PUBLISH', message[1], message[2])
    end
    if head.changed or now - head.written >= CLOCK_STEP or head.ends - head.ends_written >= DAY then
        set(cells[KEYS[1]], cmsgpack.pack(now, head.grants, head.first, head.ends, head.kept, head.slow_now or false,
            head.slow_real or false, head.waiting, head.wake, head.circuits), head_ends(now))
    end
end
