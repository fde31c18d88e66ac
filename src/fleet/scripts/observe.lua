-- SPDX-License-Identifier: MIT
--
-- What the provider answered to a lease's call: rn_feed_response of core/feedback.c. The caller has read the response;
-- here it is decided what is still news. Each of a block's calls (prefetch.lua) has a status; what they have in common
-- is the instant of the grant. No counter of a block learns.
return run(function()
    local lease, cell = lease_held()

    if not lease or lease.released then
        return UNKNOWN
    end

    local counters, account = counters_read(), account_at(KEYS[3])
    local each = lease.status_seen == OF_MANY
    local first = call.status and (each or not lease.status_seen)
    local reply = { limited = first and call.limited, throttled = first and call.outcome == 'throttled' }

    lease.status_seen = lease.status_seen or first or false
    if not each then
        teach(counters, lease, reply)
    end
    if reply.limited then
        penalize(counters, account, lease)
    end
    if reply.throttled then
        pause(counters, lease)
    elseif not reply.limited and first and call.success then
        succeed(counters, account, lease)
    end
    if first then
        circuit_hears(lease, call.outcome)
    end
    changed(cell)
    return DONE
end)
