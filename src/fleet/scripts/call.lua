-- SPDX-License-Identifier: MIT
--
-- The call as the whole script has it, by name: the time that a test tells or false, whether keys have no end then, who
-- calls, what a script has asked for. A counter's values are the kind's number, the charge, whether it goes by cost,
-- whether it binds, and those of its kind's rules.
local EACH = 4 -- values that any counter has
local RULES = {
    { 'earn', 'price', 'cap', 'burst', 'margin' },
    { 'max' },
    { 'max', 'auto', 'share_num', 'share_den', 'reserve_num', 'reserve_den', 'arrival', 'length', 'sync', 'parts',
        'rolling', 'wait', 'before', 'start', 'finish', 'after', 'told' },
    { 'digest', 'asked', 'largest', 'since', 'follows', 'tenant', 'name', 'weight', 'lend' },
    { 'aimd', 'classes', 'class', 'unknown', 'most', 'borrows', 'idle', 'pause', 'followers', 'started' },
}

local prefix = string.sub(KEYS[1], 1, -5) -- without "head"
local values = { cmsgpack.unpack(ARGV[1]) }
local call = { now = values[1], lasting = values[2], member = values[3], asked = values[4] or {},
    id = string.sub(KEYS[2] or '', #prefix + 7) } -- without "lease:"

-- The windows around the caller's now, or what a rolling one counts by.
local function quota_rule(spec)
    if spec.rolling then
        spec.width, spec.counts = spec.before, spec.start
    else
        spec.windows = { { spec.before, spec.start }, { spec.start, spec.finish }, { spec.finish, spec.after } }
    end
    spec.before, spec.start, spec.finish, spec.after = nil, nil, nil, nil
end

-- All from the value at `first` to the end.
local function counters_from(first)
    local counters = {}

    while first <= #values do
        local names = RULES[values[first]]
        local spec = { kind = values[first], charge = values[first + 1], cost = values[first + 2],
            binds = values[first + 3] }

        for i, name in ipairs(names) do
            spec[name] = values[first + EACH - 1 + i]
        end
        if spec.kind == 3 then
            quota_rule(spec)
        end
        counters[#counters + 1] = spec
        first = first + EACH + #names
    end
    return counters
end
