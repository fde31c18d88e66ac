-- SPDX-License-Identifier: MIT
--
-- May a request leave now? All of its counters and penalties are asked, and then all are taken from, or none; where
-- something is short that comes back, it waits if it may: core/submit.c. The lease is named by the caller, so a call
-- repeated after a lost answer is answered again and counts once. One that was granted while the store was away is
-- entered as it is, whatever that does to its counters; one that has been here before only holds again what it holds.
--
-- What is refused by something that a wait cannot cure has not asked for anything. All others have: adaptive limits may
-- grow by that, and then it is looked at once more. Who only wants to know changes nothing: limits that may grow count
-- as grown.
local SPENT = { [1] = true, [3] = true } -- kinds that a lease does not give back: rate, quota

local function known_already()
    local lease, cell = lease_at(call.id)

    if lease then
        return lease.released and DONE or GRANTED, { lease.granted_at }
    elseif cell.waiter then
        return QUEUED, { cell.waiter.since, cell.waiter.index }
    elseif cell.refusal then
        return REFUSED, cell.refusal
    end
    return nil
end

-- As if the request's demand had made limits grow, and those who follow them.
local function examine_grown(counters, account)
    local function all(what)
        for i, c in ipairs(counters) do
            local place = call.places[i]

            c.spec, c.charge = place, place.charge
            if place.followers then
                kind_of(c.kind)[what](c)
            end
        end
    end

    call.demand = true
    all('foresee')

    local found = examine(call, counters, account, ARRIVAL)

    all('follow')
    return found
end

local function examine_all(counters, account)
    local found = examine(call, counters, account, ARRIVAL)

    if found.barred or call.enforcer then
        return found
    end
    if call.dry then
        return found.named and examine_grown(counters, account) or found
    end
    if demand(call, counters) then
        found = examine(call, counters, account, ARRIVAL)
    end
    return found
end

-- What is refused only because it may not wait, or nobody more may, has asked: so less is lent to those who wait, and
-- their demand counts.
local function note_asked(counters, found)
    for i, c in ipairs(counters) do
        local asked = kind_of(c.kind).asked

        c.spec, c.charge = call.places[i], call.places[i].charge
        if asked and not found.barred and not call.dry then
            asked(c, call, waits and waits.is_ahead(call.places[i], call))
            if touched then
                touched[#touched + 1] = c
            end
        end
    end
end

local function note_refusal(counters, found)
    local named = counters[found.named.index]
    local refused = named and kind_of(named.kind).refused

    if refused then
        refused(named, found.named.reason)
    end
end

local function pass_circuit()
    call.pass = call.gate and circuits().enter(circuits().at(call.gate)) or false
end

return run(function()
    local known, rest

    if not call.dry then
        known, rest = known_already()
    end
    if known then
        return known, rest
    end

    local counters, account = counters_read(), account_at(KEYS[3])

    call.gate = call.circuit and string.sub(KEYS[#KEYS], #prefix + 9) -- after "circuit:"
    if call.gate then
        circuits().at(call.gate) -- begins with the first who asks for anything
    end
    call.places, call.since = call.counters, now
    call.may_wait = call.wait > 0 and not call.enforcer
    call.deadline = call.may_wait and min(now + call.wait, MAX) or now
    if waits then
        waits.rank(call)
    end

    if call.enter then
        for _, place in ipairs(call.places) do
            if call.again and SPENT[place.kind] then
                place.charge = 0
            end
        end
        lease_take(call, counters)
        return GRANTED, { now }
    end

    call.when = not call.may_wait or call.dry -- times are wanted by those who are refused

    local found = examine_all(counters, account)

    if found.refuses and not call.when then
        call.when = true
        found = examine(call, counters, account, ARRIVAL)
    end

    if found.named and (found.refuses or not call.may_wait) then
        note_asked(counters, found)
        if not call.dry then
            note_refusal(counters, found)
        end
        return REFUSED, refusal(found)
    end
    if found.named then
        if waiting().is_full(call) then
            note_asked(counters, found)
            return REFUSED, { 'queue_full', 0, false, 0, 0 }
        end
        if not call.dry then
            pass_circuit()
            waits.wait(call, account, found.named.index)
        end
        return QUEUED, { now, found.named.index }
    end
    if not call.dry then
        if waits then
            waits.pass(call)
        end
        pass_circuit()
        lease_take(call, counters)
    end
    return GRANTED, { now }
end)
