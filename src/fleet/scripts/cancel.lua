-- SPDX-License-Identifier: MIT
--
-- A request waits no longer. What is refused, granted or not known stays as it is.
return run(function()
    local waiter = waits and waits.waiter_at(call.id)

    if not waiter then
        return UNKNOWN
    end
    waits.unwait(waiter, false)
    return DONE
end)
