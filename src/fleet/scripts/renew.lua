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
        holds_visit(lease, 'renew', now)
    end
    return DONE
end)
