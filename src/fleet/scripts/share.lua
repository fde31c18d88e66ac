-- SPDX-License-Identifier: MIT
--
-- Limits of kind `share`: core/share.c, ceiling.c and ceiling_pool.c. One ceiling across tenants, by their numbers in
-- order of declaration.
--
-- The counter's value holds what all tenants have in common: the rules in force, what is held, what idle lenders can
-- give together, and the next instant at which time alone changes that. Beside it stand a hash, with a field for each
-- tenant that has ever been heard of and for each lease, and a sorted set of texts, all at the same score, in which
-- everything is found in order without looking at the rest:
--
--   p AVAILABLE TENANT           what may lend, the largest first
--   q INSTANT TENANT             who rests, and is idle from then on, or later
--   w INSTANT TENANT             `freeze: wanted`: whose want lapses then, or later
--   l TENANT END ORDER LEASE     the leases of a tenant
--   s TENANT END ORDER LEASE     loans of a lender
--   f END TENANT                 idle lenders with loans, by the end of the first, or an earlier instant
--   o TENANT                     those that use more than their guarantee
--
-- The order is that of the requests, as far as it matters: grants before it, and among those who waited for the same
-- grant the number of arrival.
-- A tenant that has no field yet is as new: quiet since `since`, its guarantee by its weight.
-- What a call changes stands in tables, in `c.added` and in `c.dropped`, and is written at its end.
MAKERS[4] = function()
    local CHUNK = 64
    local LIMB = 1000000000
    local ANY = '~' -- a member of every set, so that it is never empty and keeps its end
    local format, sub = string.format, string.sub
    local s = {} -- for the other files of this kind
    local split, walk, want -- made when they are needed

    local function key_of(c, name)
        return prefix .. name .. sub(c.key, #prefix + 6) -- from the colon after "limit"
    end

    -- ---- the sorted set ----

    -- An instant, in the order of instants.
    local function code(at)
        if at > MAX then
            return '20000000000000000'
        end
        return at < 0 and format('0%016.0f', at + MAX) or format('1%016.0f', at)
    end

    local function instant(text, from)
        local digits = tonumber(sub(text, from + 1, from + 16))
        local kind = sub(text, from, from)

        return kind == '2' and NEVER or kind == '0' and digits - MAX or digits
    end

    local function put(c, member)
        if c.dropped[member] then
            c.dropped[member] = nil
        else
            c.added[member] = true
        end
    end

    local function drop(c, member)
        if c.added[member] then
            c.added[member] = nil
        else
            c.dropped[member] = true
        end
    end

    -- The members that begin with `first`, in order, as they are now: each call of the answer is the next.
    local function members(c, first)
        local mine, mine_at = {}, 1
        local some, some_at, from = {}, 1, not c.anew and '[' .. first

        for member in pairs(c.added) do
            if sub(member, 1, #first) == first then
                mine[#mine + 1] = member
            end
        end
        table.sort(mine)

        local function theirs()
            while true do
                if some_at > #some then
                    if not from then
                        return nil
                    end
                    some = redis.call('ZRANGEBYLEX', c.order_key, from, '(' .. first .. '\255', 'LIMIT', 0, CHUNK)
                    some_at, from = 1, #some == CHUNK and '(' .. some[CHUNK]
                    if #some == 0 then
                        return nil
                    end
                end
                if not c.dropped[some[some_at]] then
                    return some[some_at]
                end
                some_at = some_at + 1
            end
        end

        return function()
            local a, b = mine[mine_at], theirs()

            if a and (not b or a < b) then
                mine_at = mine_at + 1
                return a
            end
            some_at = some_at + 1
            return b
        end
    end

    -- ---- tenants ----

    local function tenant_decode(raw, index)
        local t = { index = index }

        t.guarantee, t.lendable, t.own, t.lent, t.held, t.leases, t.asked_at, t.used_at, t.cool_until, t.idle,
            t.available, t.queued, t.lapses, t.bound, t.over, t.waiting, t.wanting, t.granted, t.cost_high, t.cost_low,
            t.extra = cmsgpack.unpack(raw)
        return t
    end

    local function tenant_encode(t)
        if t.more then
            local m = t.more

            t.extra = cmsgpack.pack(m.shorts, m.wait_most, m.want, m.refused_at, m.reclaiming, m.reclaim_at,
                m.counted_at, m.high, m.low, m.rest, m.reclaims, m.worst, m.refused)
        end
        return cmsgpack.pack(t.guarantee, t.lendable, t.own, t.lent, t.held, t.leases, t.asked_at, t.used_at,
            t.cool_until, t.idle, t.available, t.queued, t.lapses, t.bound, t.over, t.waiting, t.wanting, t.granted,
            t.cost_high, t.cost_low, t.extra)
    end

    -- What a tenant has once it was refused, waited or was held up.
    local function more(t)
        local m = t.more

        if not m then
            m = { shorts = 0, wait_most = 0, want = 0, refused_at = -MAX, reclaiming = false, reclaim_at = -MAX,
                counted_at = -MAX, high = 0, low = 0, rest = 0, reclaims = 0, worst = 0, refused = {} }
            if t.extra then
                m.shorts, m.wait_most, m.want, m.refused_at, m.reclaiming, m.reclaim_at, m.counted_at, m.high, m.low,
                    m.rest, m.reclaims, m.worst, m.refused = cmsgpack.unpack(t.extra)
            end
            t.more = m
        end
        return m
    end

    local function splitter()
        split = split or share_split(s)
        return split
    end

    local function tenant_new(c, index)
        local guarantee, lendable = splitter().guarantee(c, index)
        local idle = c.opened

        return { index = index, guarantee = guarantee, lendable = lendable, own = 0, lent = 0, held = 0, leases = 0,
            asked_at = c.since, used_at = c.since, cool_until = c.since, idle = idle,
            available = idle and lendable or 0, queued = false, lapses = false, bound = false, over = false,
            waiting = 0, wanting = false, granted = 0, cost_high = 0, cost_low = 0, extra = false }
    end

    -- `raw`: its field, where it is known.
    local function tenant_at(c, index, raw)
        local t = c.tenants[index]

        if not t then
            raw = raw or not c.anew and redis.call('HGET', c.hash_key, 't' .. index)
            t = raw and tenant_decode(raw, index) or tenant_new(c, index)
            c.tenants[index] = t
        end
        return t
    end

    local function free_of(t)
        return t.guarantee - t.own - t.lent
    end

    -- ---- who lends ----

    local function is_busy(c, t)
        return t.leases > 0 or t.waiting > 0 and not c.freeze
    end

    -- When one that rests is idle.
    local function idle_at(c, t)
        return max((c.freeze and t.used_at or t.asked_at) + c.idle_after, t.cool_until)
    end

    -- What it may have on loan at most while it is idle.
    local function cap_of(c, t)
        if not c.freeze or not t.extra and not t.more then
            return t.lendable
        end
        return t.lendable - max(more(t).want, more(t).wait_most)
    end

    -- Something of it has changed: everything that follows.
    local function tenant_changed(c, t)
        local available = t.idle and max(0, cap_of(c, t) - t.lent) or 0
        local over = free_of(t) < 0

        c.touched[t.index] = t
        if available ~= t.available then
            if t.available > 0 then
                drop(c, format('p%016.0f%03d', MAX - t.available, t.index))
            end
            if available > 0 then
                put(c, format('p%016.0f%03d', MAX - available, t.index))
            end
            c.pool, t.available = c.pool + (available - t.available), available
        end
        if over ~= t.over then
            (over and put or drop)(c, format('o%03d', t.index))
            t.over = over
        end
        if not t.idle and not t.queued and not is_busy(c, t) then
            t.queued = idle_at(c, t)
            c.next = min(c.next, t.queued)
            put(c, 'q' .. code(t.queued) .. format('%03d', t.index))
        end
        if t.bound and not (t.idle and t.lent > 0) then
            drop(c, 'f' .. code(t.bound) .. format('%03d', t.index))
            t.bound = false
        end
    end

    -- It is idle no longer; if it is not busy either, it rests from now on.
    local function wake(c, t)
        t.idle = false
        tenant_changed(c, t)
    end

    -- Among the idle lenders with loans, the first of which ends at `at` or later.
    local function bind_loan(c, t, at)
        if not t.idle or t.bound and t.bound <= at then
            return
        end
        if t.bound then
            drop(c, 'f' .. code(t.bound) .. format('%03d', t.index))
        end
        t.bound = at
        put(c, 'f' .. code(at) .. format('%03d', t.index))
    end

    local function become_idle(c, t)
        t.idle = true
        tenant_changed(c, t)
        if t.lent > 0 then
            local first = members(c, format('s%03d', t.index))()

            bind_loan(c, t, instant(first, 5))
        end
    end

    local function wants()
        want = want or share_want(s)
        return want
    end

    -- Those of `kind` whose instant has come, their members dropped.
    local function due(c, kind)
        local found = {}

        for member in members(c, kind) do
            if instant(member, 2) > now then
                break
            end
            found[#found + 1] = member
        end
        for i, member in ipairs(found) do
            drop(c, member)
            found[i] = tenant_at(c, tonumber(sub(member, 19)))
        end
        return found
    end

    local function first_of(c, kind)
        local member = members(c, kind)()

        return member and instant(member, 2) or NEVER
    end

    -- All that changes by time alone; every operation does this first.
    local function advance(c)
        if now < c.next then
            return
        end
        changed(c)
        if not c.opened and now >= c.since + c.idle_after then
            splitter().open(c)
        end
        for _, t in ipairs(due(c, 'q')) do
            t.queued = false
            if not is_busy(c, t) and idle_at(c, t) <= now then
                become_idle(c, t)
            else
                tenant_changed(c, t)
            end
        end
        if c.freeze then
            for _, t in ipairs(due(c, 'w')) do
                t.lapses = false
                wants().settle(c, t)
                wants().watch(c, t)
                tenant_changed(c, t)
            end
        end
        c.next = min(first_of(c, 'q'), c.freeze and first_of(c, 'w') or NEVER,
            c.opened and NEVER or c.since + c.idle_after)
    end

    -- ---- leases ----

    local function hold_at(c, id, raw)
        local hold = c.holds[id]

        if hold == nil then
            raw = raw or not c.anew and redis.call('HGET', c.hash_key, 'h' .. id)
            hold = false
            if raw then
                hold = { id = id }
                hold.tenant, hold.charge, hold.own, hold.ends_at, hold.serial, hold.turn, hold.slices =
                    cmsgpack.unpack(raw)
            end
            c.holds[id] = hold
        end
        return hold
    end

    -- Where a lease stands among those of a tenant, a loan among those of a lender.
    local function place(kind, index, hold)
        return format('%s%03d%s%016.0f%016.0f', kind, index, code(hold.ends_at), hold.serial, hold.turn) .. hold.id
    end

    -- Write a loan down; the pool has as much. The largest lender is used up first.
    local function lend(c, hold, units)
        for member in units > 0 and members(c, 'p') or function() end do
            local t = tenant_at(c, tonumber(sub(member, 18)))
            local part = min(units, t.available)

            hold.slices[#hold.slices + 1] = t.index
            hold.slices[#hold.slices + 1] = part
            put(c, place('s', t.index, hold))
            t.lent = t.lent + part
            units = units - part
            tenant_changed(c, t)
            bind_loan(c, t, hold.ends_at)
            if units == 0 then
                break
            end
        end
    end

    -- Give back `units` of what is on loan, the last lender's first.
    local function repay(c, hold, units)
        local slices = hold.slices

        while units > 0 do
            local t = tenant_at(c, slices[#slices - 1])
            local part = min(units, slices[#slices])

            slices[#slices] = slices[#slices] - part
            t.lent = t.lent - part
            units = units - part
            if slices[#slices] == 0 then
                drop(c, place('s', t.index, hold))
                slices[#slices], slices[#slices - 1] = nil, nil
            end
            tenant_changed(c, t)
        end
    end

    -- The counter is kept for a day after whatever has happened, and after the last time to live.
    local function keep(c, till)
        c.till = max(c.till, till)
        if c.lasts < c.till + DAY then
            changed(c)
        end
    end

    -- ---- the rules ----

    local function decode(c, held, pool, next, lasts, seen, rules)
        if lasts and lasts <= now then -- a pause or a penalty keeps the value longer, but nothing beside it
            held, pool, next, lasts, seen, rules = nil, nil, nil, nil, nil, nil
        end
        c.held, c.pool, c.next, c.lasts, c.seen, c.rules = held or 0, pool or 0, next or -MAX, lasts or -MAX,
            seen or -MAX, rules
        c.tenants, c.holds, c.touched, c.added, c.dropped, c.till = {}, {}, {}, {}, {}, now
        c.hash_key, c.order_key = key_of(c, 'share'), key_of(c, 'order')
        if rules then
            c.digest, c.size, c.count, c.sum, c.rest, c.last, c.since, c.opened, c.horizon, c.idle_after, c.cooldown,
                c.freeze, c.unknown, c.past, c.follows = cmsgpack.unpack(rules)
        end
    end

    local function rules_encode(c)
        c.rules = c.rules or cmsgpack.pack(c.digest, c.size, c.count, c.sum, c.rest, c.last, c.since, c.opened,
            c.horizon, c.idle_after, c.cooldown, c.freeze, c.unknown, c.past, c.follows)
        return c.rules
    end

    -- In pieces, as many words fit into a call.
    local function later_many(command, key, words)
        for i = 1, #words, 1000 do
            later(command, key, unpack(words, i, min(i + 999, #words)))
        end
    end

    local function write_hash(c)
        local fields, gone = {}, {}

        for index, t in pairs(c.touched) do
            fields[#fields + 1] = 't' .. index
            fields[#fields + 1] = tenant_encode(t)
        end
        for id, hold in pairs(c.holds) do
            if hold and hold.changed then
                fields[#fields + 1] = 'h' .. id
                fields[#fields + 1] = cmsgpack.pack(hold.tenant, hold.charge, hold.own, hold.ends_at, hold.serial,
                    hold.turn, hold.slices)
            elseif not hold then
                gone[#gone + 1] = 'h' .. id
            end
        end
        later_many('HSET', c.hash_key, fields)
        if not c.anew then
            later_many('HDEL', c.hash_key, gone)
        end
    end

    local function write_order(c)
        local added, dropped = {}, {}

        for member in pairs(c.added) do
            added[#added + 1] = 0
            added[#added + 1] = member
        end
        for member in pairs(c.dropped) do
            dropped[#dropped + 1] = member
        end
        later_many('ZREM', c.order_key, dropped)
        later_many('ZADD', c.order_key, added)
    end

    local function keep_keys(c)
        if c.lasts >= max(now, c.till) + DAY then
            return
        end
        c.lasts = max(now, c.till) + 2 * (DAY + c.idle_after) + c.cooldown
        for _, key in ipairs({ c.hash_key, c.order_key, splitter().set_key(c) }) do
            if c.lasts ~= NEVER then
                expire_later(key, c.lasts + DAY)
            elseif not call.lasting then
                later('PERSIST', key)
            end
        end
    end

    local function encode(c)
        if not c.digest then
            return -MAX
        end
        if c.anew then
            later('DEL', c.hash_key, c.order_key)
            put(c, ANY)
        end
        write_hash(c)
        write_order(c)
        keep_keys(c)
        return c.lasts, c.held, c.pool, c.next, c.lasts, c.seen, rules_encode(c)
    end

    local function read(c)
        if c.digest then
            advance(c)
        end
    end

    -- The tenant that asks, by the rules in force; nil: they do not know it.
    local function asker(c)
        local spec = c.spec

        if c.digest ~= spec.digest then
            splitter().declare(c)
        end
        advance(c)
        if not spec.tenant then
            return nil
        end

        local index = spec.tenant

        if c.digest ~= spec.digest then
            index = splitter().find(c, spec.name)
        else
            c.seen = now
        end
        return index and tenant_at(c, index)
    end

    -- The limit that the ceiling follows has moved.
    local function resize(c, size)
        c.shrank = c.shrank or size < c.size -- a guarantee may have become too small for one who waits
        splitter().resize(c, size)
    end

    -- ---- admission ----

    local function is_full(c)
        return c.charge > c.size - c.held
    end

    local function may_borrow(c, hold)
        return hold and hold <= c.horizon
    end

    -- Can it be paid? What of it must be borrowed; nil: it cannot.
    local function loan_of(c, t, hold)
        local free = free_of(t)

        if is_full(c) then
            return nil
        end
        if c.charge <= free then
            return 0
        end
        -- It does not lend to itself. What is used above the guarantee must be covered too, but is no part of the loan.
        if may_borrow(c, hold) and c.charge - free <= c.pool - t.available then
            return c.charge - max(0, free)
        end
        return nil
    end

    -- Why it is refused, and whether no wait helps; nil: it is not.
    local function reason_of(c, t, hold)
        if c.charge > c.spec.largest then
            return 'cost_exceeds_limit', true
        end
        if loan_of(c, t, hold) then
            return nil
        end
        if c.charge > c.size then
            return 'nothing_to_borrow', false, true -- a ceiling that follows may grow
        end
        if c.charge <= t.guarantee - t.own then
            return 'guarantee_on_loan', false
        end
        if not may_borrow(c, hold) then
            return 'hold_exceeds_reclaim_horizon', c.charge > t.guarantee
        end
        return 'nothing_to_borrow', false
    end

    local function check(c, ask)
        local spec = c.spec

        if ask.enforcer then
            return nil
        end

        local t = asker(c)

        if not t then
            return { refuses = true, reason = 'unknown_tenant', at = NEVER, capacity = spec.largest }
        end

        local reason, hopeless, small = reason_of(c, t, ask.hold)

        if not reason and not ask.blocked then
            return nil
        end

        local b = { reason = reason or 'nothing_to_borrow', refuses = hopeless, at = NEVER,
            available = max(0, free_of(t)), capacity = c.size,
            share = { t.guarantee, t.own, t.lent, c.pool - t.available, c.horizon } }

        -- Before arrival is known to end in a refusal, nobody asks for the time.
        if reason and not hopeless and not small and reason ~= 'hold_exceeds_reclaim_horizon' and ask.when ~= false then
            walk = walk or share_walk(s)
            b.at, b.blocking = walk.when(c, t, reason)
            b.estimate = b.at ~= NEVER
        end
        if ask.blocked and ask.ahead == 0 then
            b.estimate = true
        end
        return b
    end

    -- Sums of costs may pass 2^53: in two limbs, which saturate where the core's number does.
    local function count_cost(t, cost)
        local low = fmod(cost, LIMB)

        t.cost_high, t.cost_low = t.cost_high + (cost - low) / LIMB, t.cost_low + low
        s.carry(t, 'cost_high', 'cost_low')
    end

    local function take(c, lease, ask)
        local t = asker(c)

        if not t then
            return nil
        end
        if t.wanting then
            wants().settle(c, t)
        end

        head.changed = true -- its order among leases matters

        local loan = loan_of(c, t, ask.hold) or 0
        local charge = min(c.charge, MAX - c.held)
        local hold = { id = lease.id, tenant = t.index, charge = charge, own = charge - loan, ends_at = lease.ends_at,
            serial = ask.grants or lease.order, turn = ask.grants and tonumber(sub(ask.rank, -16)) or 0, slices = {},
            changed = true }

        c.holds[lease.id] = hold
        put(c, place('l', t.index, hold))
        t.leases, t.own, t.held, c.held = t.leases + 1, t.own + hold.own, t.held + charge, c.held + charge
        t.granted = t.granted + 1
        count_cost(t, c.spec.asked)
        if t.extra or t.more then
            wants().served(c, t, c.left or 0)
        end
        wake(c, t)
        lend(c, hold, loan)
        keep(c, lease.ttl_until)
        changed(c)
    end

    local function settle(c, what, to, lease)
        local hold = c.digest and hold_at(c, lease.id)

        if not hold then
            return
        end
        advance(c)

        local t = tenant_at(c, hold.tenant)
        local charge = min(to, MAX - (c.held - hold.charge))
        local loan = min(max(0, hold.charge - charge), hold.charge - hold.own)
        local own = charge - hold.charge + loan

        if t.wanting then
            wants().settle(c, t)
        end
        repay(c, hold, loan)
        t.held, c.held = t.held + (charge - hold.charge), c.held + (charge - hold.charge)
        t.own, hold.own, hold.charge, hold.changed = t.own + own, hold.own + own, charge, true
        tenant_changed(c, t)
        changed(c)
    end

    local function give_back(c, what, lease)
        local hold = c.digest and hold_at(c, lease.id)

        if not hold then
            return
        end
        advance(c)

        local t = tenant_at(c, hold.tenant)

        if t.wanting then
            wants().settle(c, t)
        end
        repay(c, hold, hold.charge - hold.own)
        drop(c, place('l', t.index, hold))
        c.holds[lease.id] = false
        t.leases, t.own, t.held, c.held = t.leases - 1, t.own - hold.own, t.held - hold.charge, c.held - hold.charge
        t.asked_at, t.used_at = now, now
        wake(c, t)
        keep(c, now)
        changed(c)
    end

    -- At the instant of the loss.
    local function lose(c, what, lease, at)
        local after = now

        now = at
        give_back(c, what, lease)
        now = after
    end

    local function renew(c, what, lease)
        if c.digest and hold_at(c, lease.id) then
            keep(c, lease.ttl_until)
        end
    end

    -- What `note` has to say of the tenant that asks, if it is known.
    local function noted(c, note)
        local t = asker(c)

        -- Who changes nothing must not have others looked at.
        if t and note(t) ~= false then
            keep(c, now)
            changed(c)
        end
    end

    -- It was refused because it may not wait. `is_short`: others come before it.
    local function asked(c, ask, is_short)
        noted(c, function(t)
            local reason = reason_of(c, t, ask.hold)

            wants().asked(c, t, reason, c.spec.binds and (is_short or reason ~= nil))
        end)
    end

    -- It was refused for good, and this counter named.
    local function refused(c, reason)
        noted(c, function(t)
            more(t).refused[reason] = (more(t).refused[reason] or 0) + 1
            tenant_changed(c, t)
        end)
    end

    -- What comes of one that waits.
    local notes = {
        wait = function(c, t)
            wants().wait(c, t)
        end,
        short = function(c, t)
            wants().short(c, t)
        end,
        found = function(c, t, kept, reason)
            return wants().found(c, t, reason)
        end,
        leave = function(c, t, kept)
            wants().leave(c, t, kept, false)
        end,
        granted = function(c, t, kept)
            wants().leave(c, t, kept, true)
        end,
    }

    local function note(c, what, ask, kept, reason)
        noted(c, function(t)
            return notes[what](c, t, kept or false, reason)
        end)
    end

    -- A tenant at its own limit never blocks another.
    local function lane(what)
        return what.tenant and 't' .. what.name or ''
    end

    -- Time brings units to borrowers alone.
    local function next_change(c, b, ask)
        return may_borrow(c, ask.hold) and c.next or NEVER
    end

    -- A number that counts in two limbs stops where 64 bits do.
    function s.carry(t, high, low)
        if t[low] >= LIMB then
            t[high], t[low] = t[high] + 1, t[low] - LIMB
        end
        if t[high] > 9223372036 or t[high] == 9223372036 and t[low] > 854775807 then
            t[high], t[low] = 9223372036, 854775807
        end
    end

    s.code, s.instant, s.put, s.drop, s.members, s.place = code, instant, put, drop, members, place
    s.tenant_at, s.tenant_new, s.tenant_decode, s.more, s.free_of = tenant_at, tenant_new, tenant_decode, more, free_of
    s.tenant_changed, s.wake, s.cap_of, s.hold_at, s.advance = tenant_changed, wake, cap_of, hold_at, advance
    s.bind_loan, s.wants, s.splitter = bind_loan, wants, splitter

    return { reason = 'nothing_to_borrow', most = true, lane = lane, note = note, next_change = next_change,
        decode = decode, encode = encode, read = read, check = check, take = take, settle = settle,
        give_back = give_back, lose = lose, renew = renew, asked = asked, refused = refused, resize = resize,
        parts = s }
end
