-- SPDX-License-Identifier: MIT
--
-- What a health check came to: rn_circuit_health of core/circuit.c. `call.key` and `call.number` name the circuit that
-- asked for it and which of its checks it was; without them it counts at all circuits that requests of the account go
-- through. `call.account` is { name, target, credential }, `call.by` whether each of these tells circuits apart.
return run(function()
    local part = circuits()

    local function concerns(c)
        for i, name in ipairs(call.account) do
            if call.by[i] and c.owner[i] ~= name then
                return false
            end
        end
        return true
    end

    if call.key then
        local c = part.at(call.key)

        if not c then
            return UNKNOWN
        end
        part.health(c, call.ok, call.number)
        return DONE
    end
    for _, c in ipairs(part.timed()) do
        if concerns(c) then
            part.health(c, call.ok)
        end
    end
    return DONE
end)
