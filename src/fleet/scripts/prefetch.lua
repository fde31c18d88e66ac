-- SPDX-License-Identifier: MIT
--
-- A block: units for many requests, taken at once by one lease, which its process spends by itself. Only of rate and
-- quota limits whose counts headers do not correct, and where nobody waits at the provider: who waits comes first.
--
-- What one request would be refused for refuses the block. Else it has `call.units` times what one takes, or as many as
-- there are in half of what is left at each limit: so the others find some, and the last ones go one by one. Where a
-- calendar window ends, it is of use until what is sent then has arrived before that: for some time, if there is one.
local OF_USE = SECOND / 100

return run(function()
    local counters, account, last = counters_read(), account_at(KEYS[3]), NEVER
    local units = call.units

    if lease_at(call.id) or waits then -- somebody waits there, or did until this call
        return REFUSED
    end
    call.places, call.deadline, call.may_wait = call.counters, now, false
    if examine(call, counters, account, ARRIVAL).named then
        return REFUSED
    end
    for i, c in ipairs(counters) do
        local place = call.places[i]

        c.spec, c.charge = place, MAX
        if place.binds and place.charge > 0 then
            local short = kind_of(c.kind).check(c, call)

            units = short and min(units, div_floor(max(short.available, 0), 2 * place.charge)) or units
        end
        if place.windows then
            last = min(last, c.finish - place.arrival)
        end
    end
    if units < 2 or last < now + OF_USE then
        return REFUSED
    end
    for _, place in ipairs(call.places) do
        place.charge = clamp(units * place.charge)
    end
    lease_take(call, counters)
    lease_at(call.id).status_seen = OF_MANY
    return GRANTED, { now, units, last ~= NEVER and last }
end)
