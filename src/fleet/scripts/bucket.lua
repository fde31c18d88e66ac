-- SPDX-License-Identifier: MIT
--
-- Limits of kind `rate`: core/bucket.c. One microsecond earns `earn`, one micro-unit costs `price`.
-- Invariant: -cap <= credit <= cap <= 2^53.
MAKERS[1] = function()
    -- a * b of a, b >= 0, or something above 2^53 where it is above that.
    local function product(a, b)
        if b ~= 0 and a > div_floor(MAX, b) then
            return 2 * MAX
        end
        return a * b
    end

    local function refill(c)
        local spec = c.spec
        local idle = now - c.at

        if idle <= 0 then
            return
        end
        -- Out of debt first, so that no difference is above 2^53.
        if c.credit < 0 then
            local rest = fmod(-c.credit, spec.earn)
            local needed = (-c.credit - rest) / spec.earn

            if idle <= needed then
                c.credit, idle = c.credit + idle * spec.earn, 0
            elseif rest == 0 then
                c.credit, idle = 0, idle - needed
            else
                c.credit, idle = spec.earn - rest, idle - needed - 1
            end
        end
        c.credit = idle > div_floor(spec.cap - c.credit, spec.earn) and spec.cap or c.credit + idle * spec.earn
        c.at = now
    end

    local function pay(c, amount)
        local price = amount < 0 and -product(-amount, c.spec.price) or product(amount, c.spec.price)

        c.credit = max(-c.spec.cap, min(c.credit - price, c.spec.cap))
        changed(c)
    end

    local function decode(c, at, credit)
        c.at, c.credit = at, credit
    end

    local function read(c)
        c.at, c.credit = c.at or now, c.credit or c.spec.cap
        refill(c)
    end

    -- It equals a fresh one when it is full.
    local function encode(c)
        return c.at + div_ceil_sum(c.spec.cap - max(c.credit, 0), -min(c.credit, 0), c.spec.earn), c.at, c.credit
    end

    local function check(c, ask)
        local spec = c.spec
        local margin = ask.enforcer and 0 or spec.margin
        local capacity = spec.burst - margin
        local available = div_floor(c.credit, spec.price) - margin
        local needed = product(c.charge + margin, spec.price)

        if c.charge > capacity then
            return { refuses = true, reason = 'cost_exceeds_limit', at = NEVER, available = available,
                capacity = capacity }
        end
        if needed <= c.credit then
            return nil
        end

        local wait = c.credit < 0 and div_ceil_sum(needed, -c.credit, spec.earn) or
            div_ceil_sum(needed - c.credit, 0, spec.earn)

        return { reason = 'rate_limited', at = min(now + wait, MAX), available = available, capacity = capacity }
    end

    local function take(c)
        pay(c, c.charge)
    end

    -- Into debt by at most one burst; what is beyond is forgiven.
    local function settle(c, hold, charge)
        if charge ~= hold.charge then
            pay(c, charge - hold.charge)
        end
    end

    return { decode = decode, encode = encode, read = read, check = check, take = take, settle = settle }
end
