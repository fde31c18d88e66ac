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

    -- Of what those ahead want, too, a product may be far above 2^53: quotient and rest of a * b / by, bit by bit.
    local function product_parts(a, b, by)
        local quotient, rest = 0, 0
        local step_rest = fmod(b, by)
        local step = (b - step_rest) / by

        while a > 0 do
            local bit = fmod(a, 2)

            if bit == 1 then
                local over = rest >= by - step_rest

                quotient = quotient + step + (over and 1 or 0)
                rest = over and rest - (by - step_rest) or rest + step_rest
            end
            local over = step_rest >= by - step_rest

            step = 2 * step + (over and 1 or 0)
            step_rest = over and step_rest - (by - step_rest) or 2 * step_rest
            a = (a - bit) / 2
        end
        return quotient, rest
    end

    -- When there will be `amount`, if nobody takes any.
    local function when(c, amount)
        local spec = c.spec
        local needed = product(amount, spec.price)

        if needed <= MAX then
            return min(now + (c.credit < 0 and div_ceil_sum(needed, -c.credit, spec.earn) or
                div_ceil_sum(max(needed - c.credit, 0), 0, spec.earn)), MAX)
        end

        local quotient, rest = product_parts(amount, spec.price, spec.earn)
        local credit_rest = fmod(c.credit, spec.earn)

        quotient = quotient - (c.credit - credit_rest) / spec.earn
        if rest > credit_rest then
            quotient = quotient + (rest - credit_rest > spec.earn and 2 or 1)
        end
        return min(now + quotient, MAX)
    end

    local function check(c, ask)
        local spec = c.spec
        local margin = ask.enforcer and 0 or spec.margin
        local capacity = spec.burst - margin
        local available = div_floor(c.credit, spec.price) - margin
        local fits = product(c.charge + margin, spec.price) <= c.credit
        local ahead = ask.ahead or 0

        if c.charge > capacity then
            return { refuses = true, reason = 'cost_exceeds_limit', at = NEVER, available = available,
                capacity = capacity }
        end
        if fits and not ask.blocked then
            return nil
        end
        return { reason = 'rate_limited', at = when(c, clamp(c.charge + ahead + margin)),
            available = available, capacity = capacity }
    end

    -- When it may fit by time alone.
    local function next_change(_, b)
        return b.at
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

    return { reason = 'rate_limited', timed = true, decode = decode, encode = encode, read = read, check = check,
        take = take, settle = settle, next_change = next_change }
end
