-- SPDX-License-Identifier: MIT
--
-- Leases and the counters that they hold something at.
--
-- A lease's record says what it holds where, so that whoever comes by can take back what a dead holder held. Those with
-- a time to live stand in a sorted set by its end; a call at the provider first takes back all that have passed it. The
-- head knows the first of these ends, or an earlier instant: then there is nothing to do but to look for the next.
--
-- A lease that was released stays known for a minute, so that a release whose answer was lost may be repeated. Under
-- the same key a request stands that waits, and for a minute why it was refused.
local REMEMBERED = 60 * SECOND
local REMEMBERED_S = '60'
local RELEASED, HELD, WAITING, REFUSED_LATER = 0, 1, 2, 3
local OF_MANY = 'each' -- in place of whether its status is known, for a block: each of its calls has one

local lost = {} -- ids and instants of the leases that this call has taken back
local due -- ids and instants of those to be taken back before now, while that is gone through instant by instant

-- ---- counters ----

local function counter_pack(c, ends, ...)
    ends = max(ends, penalty_ends(c.penalty))
    return ends, cmsgpack.pack(ends, c.penalty, ...)
end

local function counter_save(c)
    return counter_pack(c, kind_of(c.kind).encode(c))
end

local function counter_decode(c, ends, penalty, ...)
    local kind = kind_of(c.kind)

    c.was = ends
    if ends and now < ends then
        c.ends, c.penalty = ends, penalty
        kind.decode(c, ...)
    else
        c.penalty = false
        kind.decode(c)
    end
end

-- The state of a counter as it was written, whether its rules are known or not.
local function counter_at(key, kind)
    local c = cell_at(key)

    if c.kind then
        return c
    end
    c.kind, c.save = kind, counter_save
    if c.raw then
        counter_decode(c, cmsgpack.unpack(c.raw))
    else
        counter_decode(c)
    end
    return c
end

-- All counters of the call, brought up to now.
local function counters_read()
    local counters = {}

    for i, spec in ipairs(call.counters) do
        local c = counter_at(KEYS[3 + i], spec.kind)
        local read = kind_of(spec.kind).read

        c.index, c.spec, c.charge = i, spec, spec.charge
        counters[i] = c
        if read then
            read(c)
        end
    end
    for _, c in ipairs(counters) do
        if c.spec.followers then
            kind_of(c.kind).follow(c)
        end
    end
    return counters
end

-- ---- leases ----

-- What it holds, four values each: the counter's key, its kind, the charge, what the kind remembers.
local function holds_flat(lease)
    local flat = {}

    for _, hold in ipairs(lease.holds) do
        for part = 1, 4 do
            flat[#flat + 1] = hold[part] or false
        end
    end
    return unpack(flat)
end

local function holds_of(...)
    local holds, flat = {}, { ... }

    for i = 1, #flat, 4 do
        holds[#holds + 1] = { unpack(flat, i, i + 3) }
    end
    return holds
end

-- A record outlives all that its lease may hold by a day. Mostly that is told by its time to live alone.
local function lease_life(lease)
    if lease.ttl_was == lease.ttl_until then
        return true
    end
    return lease.ttl and head.ends <= lease.ttl_until + DAY and
        string.format('%.0f', div_ceil_sum(lease.ttl, 0, SECOND) + 2 * DAY / SECOND)
end

local function lease_save(cell)
    local lease, waiter = cell.lease, cell.waiter

    if waiter then
        return waiter.deadline + DAY, cmsgpack.pack(WAITING, waiter)
    end
    if cell.refusal then
        return now + REMEMBERED, cmsgpack.pack(REFUSED_LATER, cell.refusal), REMEMBERED_S
    end
    if not lease then
        return -MAX
    end
    if lease.released then
        return now + REMEMBERED, cmsgpack.pack(RELEASED, lease.granted_at), REMEMBERED_S
    end
    return lease.ttl and max(head.ends, lease.ttl_until) + DAY or NEVER, cmsgpack.pack(HELD, lease.granted_at,
        lease.order, lease.ttl_until, lease.hold, lease.ttl, lease.status_seen, lease.answered, lease.pass,
        holds_flat(lease)), lease_life(lease)
end

local function lease_decode(id, state, granted_at, order, ttl_until, hold, ttl, status_seen, answered, pass, ...)
    return { id = id, released = state == RELEASED, granted_at = granted_at, order = order,
        ends_at = hold and min(granted_at + hold, MAX) or NEVER, hold = hold, ttl = ttl, ttl_until = ttl_until,
        ttl_was = ttl_until,
        status_seen = status_seen, answered = answered, pass = pass, holds = holds_of(...) }
end

local function lease_at(id)
    local cell = cell_at(prefix .. 'lease:' .. id)

    if cell.raw and not cell.save then
        local state, what = cmsgpack.unpack(cell.raw)

        if state == WAITING then
            cell.waiter = what
        elseif state == REFUSED_LATER then
            cell.refusal = what
        else
            cell.lease = lease_decode(id, cmsgpack.unpack(cell.raw))
        end
    end
    cell.save, cell.is_lease = lease_save, true
    return cell.lease, cell
end

-- Sets are kept for a day or two behind the last end or deadline. One that becomes empty loses its end, and would have
-- none when it is filled again: so in `leases` stands, last, one that is none.
local function keep_sets(till)
    if till + DAY > head.kept then
        head.kept, head.changed = till + 2 * DAY, true
        later('ZADD', prefix .. 'leases', 'inf', '')
        expire_later(prefix .. 'leases', head.kept)
    end
end

local function lease_alive(lease)
    later('ZADD', prefix .. 'leases', lease.ttl_until, lease.id)
    if due and lease.ttl_until <= due.till then
        due[#due + 1] = { lease.id, lease.ttl_until }
    elseif lease.ttl_until < head.first then
        head.first, head.changed = lease.ttl_until, true
    end
    keep_sets(lease.ttl_until)
end

-- Call what each kind does then with what the lease holds there.
local function holds_visit(lease, what, at)
    for _, hold in ipairs(lease.holds) do
        local visit = kind_of(hold[2])[what]

        if visit then
            visit(counter_at(prefix .. hold[1], hold[2]), { charge = hold[3], extra = hold[4] }, lease, at)
        end
    end
end

local function lease_lose(id, at)
    local lease, cell = lease_at(id)

    if not lease or lease.released then
        return
    end
    holds_visit(lease, 'lose', at)
    if lease.pass then
        circuits().leave(lease.pass)
    end
    cell.lease = nil
    cell.gone = true
    changed(cell)
    lost[#lost + 1] = id
    lost[#lost + 1] = at
end

-- The leases whose time to live has ended by `till`. The head knows the first end after it.
local function leases_due(till)
    local key = prefix .. 'leases'
    local found = { till = till }

    if till < head.first then
        return found
    end

    local ended = redis.call('ZRANGEBYSCORE', key, '-inf', till, 'WITHSCORES')
    local after = '(' .. string.format('%.0f', till)
    local next = redis.call('ZRANGEBYSCORE', key, after, '(inf', 'WITHSCORES', 'LIMIT', 0, 1)

    for i = 1, #ended, 2 do
        found[#found + 1] = { ended[i], tonumber(ended[i + 1]) }
    end
    head.first, head.changed = next[2] and tonumber(next[2]) or NEVER, true
    return found
end

local function leases_passed(passed)
    if #passed > 0 then
        later('ZREMRANGEBYSCORE', prefix .. 'leases', '-inf', passed.till)
    end
end
