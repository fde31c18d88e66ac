-- SPDX-License-Identifier: MIT
--
-- When a request that a share limit refused would fit: the leases in its way, in order of their declared ends.
-- core/ceiling_walk.c.
--
-- What frees units for it lies with several tenants: loans of its own guarantee; its own leases and the loans of idle
-- lenders, if it would borrow; leases and loans of those above their guarantee, if the ceiling itself is full. The walk
-- merges these. Lenders join it when it comes to the first end of their loans.
local function share_walk(s)
    local walk = {}

    -- END ORDER of a member of the leases or loans.
    local function order_of(member)
        return member and string.sub(member, 5, 53)
    end

    local function next_order(source)
        local a, b = order_of(source.lease), order_of(source.loan)

        return a and b and (a < b and a or b) or a or b
    end

    local function source_of(c, index, with_leases)
        local leases, loans = s.members(c, string.format('l%03d', index)), s.members(c, string.format('s%03d', index))

        return { leases = leases, loans = loans, lease = with_leases and leases(), loan = loans() }
    end

    local function source_add(w, index, with_leases)
        if not w.known[index] then
            w.known[index] = true
            w.sources[#w.sources + 1] = source_of(w.c, index, with_leases)
        end
    end

    local function first_source(w)
        local first, order

        for _, source in ipairs(w.sources) do
            local at = next_order(source)

            if at and (not order or at < order) then
                first, order = source, at
            end
        end
        return first, order
    end

    -- Lenders whose first loan may come before all that is known.
    local function lenders_join(w, order)
        while w.lender and (not order or string.sub(w.lender, 2, 18) <= string.sub(order, 1, 17)) do
            source_add(w, tonumber(string.sub(w.lender, 19)), true)
            w.lender = w.lenders()
            order = select(2, first_source(w))
        end
    end

    local function over_join(w)
        if w.drain > 0 and not w.over then
            w.over = true
            for member in s.members(w.c, 'o') do
                source_add(w, tonumber(string.sub(member, 2)), true)
            end
        end
    end

    -- The next lease on the way; nil: no more. One that several lead to is met several times in a row, and counts once.
    local function walk_next(w)
        while true do
            over_join(w)
            lenders_join(w, select(2, first_source(w)))

            local source, order = first_source(w)
            local member

            if not source then
                return nil
            end
            if order_of(source.lease) == order then
                member, source.lease = source.lease, source.leases()
            else
                member, source.loan = source.loan, source.loans()
            end
            if order ~= w.last then
                w.last = order
                return s.hold_at(w.c, string.sub(member, 54))
            end
        end
    end

    -- What an idle lender can give again when `units` more have come back to it. Less, where more is lent than it may.
    local function room_from_lender(w, t, units)
        local before = s.cap_of(w.c, t) - t.lent + (w.returned[t.index] or 0)

        w.returned[t.index] = (w.returned[t.index] or 0) + units
        return max(0, before + units) - max(0, before)
    end

    -- What the end of the lease gives to the request.
    local function room_from(w, hold)
        local room = w.borrows and hold.tenant == w.t.index and hold.own or 0

        for i = 1, #hold.slices, 2 do
            local lender, units = hold.slices[i], hold.slices[i + 1]

            if lender == w.t.index then
                room = room + units
            elseif w.borrows and s.tenant_at(w.c, lender).idle then
                room = room + room_from_lender(w, s.tenant_at(w.c, lender), units)
            end
        end
        return room
    end

    local function walk_go(w)
        local at, blocking = now, {}

        while w.room > 0 or w.drain > 0 do
            local hold = walk_next(w)

            if not hold then
                return NEVER, blocking
            end

            local room = room_from(w, hold)

            if room > 0 and w.room > 0 or hold.charge > 0 and w.drain > 0 then
                w.room, w.drain = w.room - room, w.drain - hold.charge
                if hold.ends_at == NEVER or hold.ends_at < now then
                    at = NEVER
                end
                at = at ~= NEVER and hold.ends_at or NEVER
                if w.borrows and at == NEVER then
                    return NEVER, blocking
                end
                if not w.borrows then
                    blocking[#blocking + 1] = hold.id
                end
            end
        end
        return at, blocking
    end

    -- The instant, NEVER: not known; and the leases that block, where what is its own is on loan.
    function walk.when(c, t, reason)
        local w = { c = c, t = t, borrows = reason == 'nothing_to_borrow', known = {}, sources = {}, returned = {} }

        w.room = c.charge - (s.free_of(t) + (w.borrows and c.pool - t.available or 0))
        w.drain = c.charge - (c.size - c.held)
        -- What it holds itself is not in its way, unless it is one of those who must drain.
        source_add(w, t.index, w.borrows or t.over)
        if w.borrows then
            w.lenders = s.members(c, 'f')
            w.lender = w.lenders()
        end

        local at, blocking = walk_go(w)

        return at, not w.borrows and blocking or nil
    end

    return walk
end
