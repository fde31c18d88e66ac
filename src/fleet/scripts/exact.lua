-- SPDX-License-Identifier: MIT
--
-- Exact integers in Lua's doubles, which hold them up to 2^53. Instants are microseconds, amounts micro-units; both are
-- bounded by that. Sums saturate there. A division is made exact by taking the remainder away first: what is then
-- divided has a whole quotient, and a double's division of such is exact.
local MAX = 9007199254740992
local UNIT = 1000000
local NEVER = math.huge

local fmod, min, max = math.fmod, math.min, math.max

local function clamp(a)
    return max(-MAX, min(a, MAX))
end

-- Of any a and a positive b: the quotient towards minus infinity.
local function div_floor(a, b)
    local rest = fmod(a, b)

    if rest < 0 then
        rest = rest + b
    end
    return (a - rest) / b
end

-- ceil((a + b) / c) of a, b >= 0 whose sum a double may not hold.
local function div_ceil_sum(a, b, c)
    local rest_a, rest_b = fmod(a, c), fmod(b, c)
    local quotient = (a - rest_a) / c + (b - rest_b) / c

    if rest_a == 0 and rest_b == 0 then
        return quotient
    end
    -- Two remainders: more than nothing, and more than c where they do not fit beneath it.
    return quotient + (rest_a > c - rest_b and 2 or 1)
end
