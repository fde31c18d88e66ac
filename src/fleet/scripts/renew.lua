-- SPDX-License-Identifier: MIT
--
-- The times to live of some leases begin anew. At its end a lease is already lost. What is not held any more is told by
-- its place in the call.
return run(function()
    local gone = {}

    for i, id in ipairs(call.ids) do
        local lease, cell = lease_at(id)

        if not lease or lease.released then
            gone[#gone + 1] = i
        elseif lease.ttl then
            lease.ttl_until = min(now + lease.ttl, MAX)
            lease_alive(lease)
            changed(cell)
            holds_visit(lease, 'renew', now)
        end
    end
    return #gone < #call.ids and DONE or UNKNOWN, gone
end)
