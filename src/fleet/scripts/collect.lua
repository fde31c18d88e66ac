-- SPDX-License-Identifier: MIT
--
-- What has come of a member's waiters. A lease that one of them was granted lives as long as it should from here on.
-- The answer to each id is { result, instant, refusal }.
local function renew(lease, cell)
    if lease.ttl and lease.ttl_until < min(lease.granted_at + lease.ttl, MAX) then
        lease.ttl_until = min(now + lease.ttl, MAX)
        lease_alive(lease)
        changed(cell)
        holds_visit(lease, 'renew', now)
    end
end

return run(function()
    local answers = {}

    for i, id in ipairs(call.ids) do
        local lease, cell = lease_at(id)

        if lease and lease.released then
            answers[i] = { DONE }
        elseif lease then
            renew(lease, cell)
            answers[i] = { GRANTED, lease.granted_at }
        elseif cell.waiter then
            answers[i] = { QUEUED, cell.waiter.since }
        elseif cell.refusal then
            answers[i] = { REFUSED, cell.refusal[11], cell.refusal }
        else
            answers[i] = { UNKNOWN }
        end
    end
    return DONE, answers
end)
