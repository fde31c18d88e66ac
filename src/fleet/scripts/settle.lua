-- SPDX-License-Identifier: MIT
--
-- What of a block counts from now on; it is held as before. At limits that count requests that is `call.units`, at
-- those that count cost `call.cost`. What a window that is over was charged stays.
return run(function()
    local lease, cell = lease_held()

    if not lease then
        return UNKNOWN
    end
    if lease.released then
        return DONE
    end
    counters_read()
    for _, hold in ipairs(lease.holds) do
        local c = counter_at(prefix .. hold[1], hold[2])
        local to = c.spec and (c.spec.cost and call.cost or call.units)

        if to then
            kind_of(c.kind).settle(c, { charge = hold[3], extra = hold[4] }, to, lease)
            hold[3] = to
        end
    end
    changed(cell)
    return DONE
end)
