-- SPDX-License-Identifier: MIT
--
-- Which rules are in force at a share limit's counter, and what they give to whom: core/ceiling_split.c,
-- ceiling_carry.c.
--
-- The rules have a digest; all that know it agree on them. They stand in the store once, in a hash under the digest:
-- the names, weights and parts to lend of all tenants. A call brings the digest and what concerns its own tenant; if
-- the rules are needed and not there, they are asked for, and come with the call that is made again. A digest that a
-- counter has not seen comes into force at once. One that was in force before does so only when nobody has asked under
-- the newer one for a while: so members with old rules are decided under the new ones while these are rolled out, by
-- the names of tenants, and going back to old rules works, too.
--
-- A guarantee is SIZE * WEIGHT / SUM rounded down, and one more for those who were rounded down by most: by more than
-- `rest`, or by just as much, up to the tenant `last`. So nothing needs to be kept for those nobody has heard of. With
-- size = q * SUM + r and SUM <= 10^9, no product is above 2^53.
local function share_split(s)
    local FORGOTTEN = 10 * SECOND
    local PAST = 8
    local split = {}

    function split.set_key(c)
        return prefix .. 'tenants:' .. c.digest
    end

    local function wish(c)
        error({ limit = limit_of(c), at = false })
    end

    -- The rules of a digest, if the call brings them.
    local function set_of(c, digest)
        local set = call.asked[limit_of(c)]

        return set and set.digest == digest and set
    end

    -- Of the tenant: its name, its weight, the part of its guarantee that it may lend.
    local function declared(c, index)
        local spec = c.spec

        if spec and spec.digest == c.digest and spec.tenant == index then
            return { spec.name, spec.weight, spec.lend[1], spec.lend[2] }
        end

        local set = set_of(c, c.digest)

        if set then
            return set.tenants[index + 1]
        end

        local raw = redis.call('HGET', split.set_key(c), index)

        if not raw then
            wish(c)
        end
        return cmsgpack.unpack(raw)
    end

    -- What the weight gives, and what it was rounded down by.
    local function part_of(c, weight)
        local over = fmod(c.size, c.sum)
        local rest = fmod(over * weight, c.sum)

        return (c.size - over) / c.sum * weight + (over * weight - rest) / c.sum, rest
    end

    local function ratio_of(amount, num, den)
        local rest = fmod(amount, den)

        return (amount - rest) / den * num + div_floor(rest * num, den)
    end

    local function guarantee_of(c, index, tenant)
        local part, rest = part_of(c, tenant[2])

        if rest > c.rest or rest == c.rest and index <= c.last then
            part = part + 1
        end
        return part, ratio_of(part, tenant[3], tenant[4])
    end

    function split.guarantee(c, index)
        return guarantee_of(c, index, declared(c, index))
    end

    -- All that are declared, by number + 1.
    local function all_declared(c)
        local all = {}
        local set = set_of(c, c.digest)

        if set then
            return set.tenants
        end

        local found = redis.call('HGETALL', split.set_key(c))

        for i = 1, #found, 2 do
            if tonumber(found[i]) then
                all[found[i] + 1] = cmsgpack.unpack(found[i + 1])
            end
        end
        if #all == 0 and not call.asked[limit_of(c)] then
            wish(c)
        end
        return all
    end

    -- Who gets one more.
    local function settle_rests(c, tenants)
        local rests, left = {}, c.size

        for i, tenant in ipairs(tenants) do
            local part, rest = part_of(c, tenant[2])

            rests[i] = { rest, i }
            left = left - part
        end
        table.sort(rests, function(a, b)
            if a[1] ~= b[1] then
                return a[1] > b[1]
            end
            return a[2] < b[2]
        end)
        c.rest, c.last = c.sum, -1
        if left > 0 then
            c.rest, c.last = rests[left][1], rests[left][2] - 1
        end
    end

    -- What those lend whom nobody has heard of. `heard`: who is not one of them.
    local function lend_change(c, all, heard, sign, change)
        for i, tenant in ipairs(all) do
            if not heard[i - 1] then
                local _, lendable = guarantee_of(c, i - 1, tenant)

                c.pool = c.pool + sign * lendable
                if lendable > 0 then
                    change(c, string.format('p%016.0f%03d', MAX - lendable, i - 1))
                end
            end
        end
    end

    -- They are idle from now on.
    local function lend_all(c, all, heard)
        c.rules = nil
        lend_change(c, all, heard, 1, s.put)
    end

    local function unlend_all(c, all, heard)
        lend_change(c, all, heard, -1, s.drop)
    end

    function split.open(c)
        local heard, all = {}, all_declared(c)

        if #all == 0 then
            return
        end

        for _, field in ipairs(c.anew and {} or redis.call('HKEYS', c.hash_key)) do
            if string.sub(field, 1, 1) == 't' then
                heard[tonumber(string.sub(field, 2))] = true
            end
        end
        for index, t in pairs(c.touched) do
            heard[index] = true
        end
        c.opened = true
        for index in pairs(c.tenants) do
            if not heard[index] then
                c.tenants[index] = nil
            end
        end
        lend_all(c, all, heard)
    end

    -- Where the limit stands that the ceiling follows: it is asked before, or begins with this very request.
    local function level_of(c)
        local leader = counter_at(prefix .. 'limit:' .. c.spec.follows[1] .. key_of_limit(c), 5)

        return (leader.limit or c.spec.follows[2]) * UNIT
    end

    -- The rules of a digest, which the call has brought or the store has.
    local function rules_take(c, digest)
        local set = set_of(c, digest)
        local rule = set and set.rule
        local key = prefix .. 'tenants:' .. digest

        if set then
            local fields = { 'rule', cmsgpack.pack(rule) }

            for i, tenant in ipairs(set.tenants) do
                fields[#fields + 1] = i - 1
                fields[#fields + 1] = cmsgpack.pack(tenant)
                fields[#fields + 1] = '@' .. tenant[1]
                fields[#fields + 1] = i - 1
            end
            for i = 1, #fields, 1000 do
                later('HSET', key, unpack(fields, i, min(i + 999, #fields)))
            end
            expire_later(key, now + 3 * DAY)
        else
            local raw = redis.call('HGET', key, 'rule')

            if not raw then
                wish(c)
            end
            rule = cmsgpack.unpack(raw)
        end
        c.digest, c.rules = digest, nil
        c.size, c.count, c.sum, c.horizon, c.idle_after, c.cooldown, c.freeze, c.unknown, c.follows = unpack(rule)
        if c.follows then
            c.size = level_of(c)
        end
        settle_rests(c, all_declared(c))
        c.lasts = -MAX
    end

    -- The first rules of a counter.
    local function begin(c)
        rules_take(c, c.spec.digest)
        c.anew, c.opened, c.next, c.held, c.pool, c.past = true, false, -MAX, 0, 0, {}
        c.since, c.seen = c.spec.since or -MAX, now
    end

    -- ---- others ----

    local function load_all(c)
        local found = c.anew and {} or redis.call('HGETALL', c.hash_key)

        for i = 1, #found, 2 do
            local kind, name = string.sub(found[i], 1, 1), string.sub(found[i], 2)

            if kind == 't' then
                s.tenant_at(c, tonumber(name), found[i + 1])
            else
                s.hold_at(c, name, found[i + 1])
            end
        end
    end

    -- The loans that are left of a lease; what is not on loan any more is its own.
    local function slices_carry(hold, numbers)
        local slices = {}

        for i = 1, #hold.slices, 2 do
            local lender = numbers[hold.slices[i]]

            if not lender or lender == hold.tenant then
                hold.own = hold.own + hold.slices[i + 1]
            else
                slices[#slices + 1] = lender
                slices[#slices + 1] = hold.slices[i + 1]
            end
        end
        hold.slices = slices
    end

    local function hold_carry(c, hold, numbers)
        hold.tenant = numbers[hold.tenant] or c.unknown
        hold.changed = true
        if not hold.tenant then
            c.holds[hold.id] = false
            return
        end
        slices_carry(hold, numbers)

        local t = s.tenant_at(c, hold.tenant)

        s.put(c, s.place('l', t.index, hold))
        t.leases, t.own, t.held, c.held = t.leases + 1, t.own + hold.own, t.held + hold.charge, c.held + hold.charge
        for i = 1, #hold.slices, 2 do
            local lender = s.tenant_at(c, hold.slices[i])

            lender.lent = lender.lent + hold.slices[i + 1]
            s.put(c, s.place('s', lender.index, hold))
        end
    end

    local function tenant_carry(c, t, index, tenant)
        t.index = index
        t.guarantee, t.lendable = guarantee_of(c, index, tenant)
        t.own, t.lent, t.held, t.leases, t.idle, t.available = 0, 0, 0, 0, false, 0
        t.queued, t.lapses, t.bound, t.over = false, false, false, false
        c.tenants[index] = t
    end

    -- Everything goes on under other rules. `numbers`: what the tenants of before are now.
    local function carry(c, numbers)
        local tenants, holds, all = c.tenants, c.holds, all_declared(c)
        local opened = c.opened

        c.tenants, c.touched, c.added, c.dropped, c.held, c.pool, c.next = {}, {}, {}, {}, 0, 0, -MAX
        c.anew, c.opened = true, false
        for was, t in pairs(tenants) do
            if numbers[was] then
                tenant_carry(c, t, numbers[was], all[numbers[was] + 1])
            end
        end
        for _, hold in pairs(holds) do
            if hold then
                hold_carry(c, hold, numbers)
            end
        end
        c.opened = opened
        for _, t in pairs(c.tenants) do
            s.tenant_changed(c, t)
            s.wants().watch(c, t)
        end
        if opened then
            lend_all(c, all, c.tenants)
        end
        s.advance(c)
        changed(c)
    end

    local function settle_all(c)
        s.advance(c)
        load_all(c)
        for _, t in pairs(c.tenants) do
            s.wants().settle(c, t)
        end
    end

    local function replace(c)
        local numbers, names, past = {}, {}, { c.digest }

        settle_all(c)
        for i, digest in ipairs(c.past) do
            if digest ~= c.spec.digest and i < PAST then
                past[#past + 1] = digest
            end
        end
        local before = redis.call('HGETALL', split.set_key(c))

        rules_take(c, c.spec.digest)
        c.past, c.seen = past, now
        for i, tenant in ipairs(all_declared(c)) do
            names[tenant[1]] = i - 1
        end
        for i = 1, #before, 2 do
            if tonumber(before[i]) then
                numbers[tonumber(before[i])] = names[cmsgpack.unpack(before[i + 1])[1]]
            end
        end
        carry(c, numbers)
    end

    -- The call's rules are not those in force.
    function split.declare(c)
        local known = false

        if not c.digest then
            begin(c)
            return
        end
        for _, digest in ipairs(c.past) do
            known = known or digest == c.spec.digest
        end
        if not known or now - c.seen >= FORGOTTEN or redis.call('EXISTS', split.set_key(c)) == 0 then
            replace(c)
        end
    end

    -- All that somebody has heard of, by number; the others are as new by whatever the rules are.
    local function heard_load(c)
        local fields, heard = c.anew and {} or redis.call('HGETALL', c.hash_key), {}

        for i = 1, #fields, 2 do
            if string.sub(fields[i], 1, 1) == 't' then
                local index = tonumber(string.sub(fields[i], 2))

                heard[index] = s.tenant_at(c, index, fields[i + 1])
            end
        end
        for index, t in pairs(c.touched) do
            heard[index] = t
        end
        for index in pairs(c.tenants) do
            if not heard[index] then
                c.tenants[index] = nil
            end
        end
        return heard
    end

    -- The ceiling has another size: nobody is preempted, and who uses more than its guarantee drains.
    function split.resize(c, size)
        local all = all_declared(c)

        s.advance(c)
        if #all == 0 then
            return
        end

        local heard = heard_load(c)

        for _, t in pairs(heard) do
            s.wants().settle(c, t)
        end
        if c.opened then
            unlend_all(c, all, heard)
        end
        c.size, c.rules = size, nil
        settle_rests(c, all)
        for index, t in pairs(heard) do
            local guarantee, lendable = guarantee_of(c, index, all[index + 1])

            if guarantee ~= t.guarantee then
                t.guarantee, t.lendable = guarantee, lendable
                s.tenant_changed(c, t)
            end
        end
        if c.opened then
            lend_all(c, all, heard)
        end
        changed(c)
    end

    -- For reports: all rules' tenants, and all that is known of anybody.
    function split.whole(c)
        settle_all(c)
        call.asked[limit_of(c)] = { digest = c.digest, tenants = all_declared(c) }
        return call.asked[limit_of(c)].tenants
    end

    -- The number of a tenant by its name, of those that the rules in force know.
    function split.find(c, name)
        local found = redis.call('HGET', split.set_key(c), '@' .. name)

        return found and tonumber(found) or c.unknown
    end

    return split
end
