-- SPDX-License-Identifier: MIT
--
-- Nothing but what time has brought about: leases that were not renewed are taken back. `call.key` may name a circuit:
-- it is told where that stands, { state, generation, time to retry, number of health checks, cause }; nothing of one
-- that is as a fresh one.
return run(function()
    local part = call.key and circuits()
    local c = part and part.at(call.key)

    if not c then
        return DONE
    end
    return DONE, { c.state, c.generation, part.retry_at(c) or false, c.checks, c.cause }
end)
