-- SPDX-License-Identifier: MIT
--
-- A lease's time to live begins anew. At its end it is already lost.
return run(function()
    local lease, cell = lease_at(call.id)

    if not lease or lease.released then
        return UNKNOWN
    end
    if lease.ttl then
        lease.ttl_until = min(now + lease.ttl, MAX)
        lease_alive(lease)
        changed(cell)
        for _, hold in ipairs(lease.holds) do
            if hold[2] == CONCURRENCY then
                kind_of(CONCURRENCY).renew(counter_at(prefix .. hold[1], CONCURRENCY), lease)
            end
        end
    end
    return DONE
end)
