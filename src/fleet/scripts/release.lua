-- SPDX-License-Identifier: MIT
--
-- A lease ends: slots go back, the actual cost is settled, the outcome counts where no status had been observed.
-- Repeated, it is answered again and changes nothing.
return run(function()
    local lease, cell = lease_held()

    if not lease then
        return UNKNOWN
    end
    if lease.released then
        return DONE
    end

    local counters, account = counters_read(), account_at(KEYS[3])

    if not lease.status_seen and call.outcome == 'throttled' then
        teach(counters, lease, { limited = true, throttled = true })
        penalize(counters, account, lease)
    elseif not lease.status_seen and call.outcome == 'success' then
        teach(counters, lease, {})
        succeed(counters, account, lease)
    end
    circuit_hears(lease, call.outcome)
    for i, c in ipairs(counters) do
        local kind, hold = kind_of(c.kind), lease.hold_at(i)

        if call.cost and c.spec.cost and kind.settle then
            kind.settle(c, hold, call.cost, lease)
        end
        if kind.give_back then
            kind.give_back(c, hold, lease)
        end
    end
    if lease.ttl then
        later('ZREM', prefix .. 'leases', lease.id)
    end
    lease.released = true
    changed(cell)
    return DONE
end)
