-- SPDX-License-Identifier: MIT
--
-- Asking at a share limit: wants, reclaims, and the deficit while something is wanted. core/ceiling_want.c.
--
-- The deficit is exact: whole unit-milliseconds in two limbs, and thousand-millionths of one. The product of rate and
-- time is taken in parts, none of which is above 2^53.
local function share_want(s)
    local WHOLE = 1000000000
    local THOUSAND = 1000
    local more = s.more
    local want = {}

    -- When its want lapses if nobody asks; NEVER: somebody waits for it.
    local function lapse_at(c, m)
        return m.shorts > 0 and NEVER or m.refused_at + c.idle_after
    end

    local function whole_and_rest(a, b)
        local rest = fmod(a, b)

        return (a - rest) / b, rest
    end

    -- rate * us, of which rate = a * WHOLE + b, us = x * WHOLE + y.
    local function deficit_add(m, rate, us)
        local a, b = whole_and_rest(rate, WHOLE)
        local x, y = whole_and_rest(us, WHOLE)
        local y_high, y_low = whole_and_rest(y, THOUSAND)
        local middle, last = whole_and_rest(b * y_high, WHOLE / THOUSAND)
        local carried, rest = whole_and_rest(last * THOUSAND + b * y_low + m.rest, WHOLE)
        local bx_high, bx_low = whole_and_rest(b * x, WHOLE)
        local ay_high, ay_low = whole_and_rest(a * y, WHOLE)
        local high, low = whole_and_rest(bx_low + ay_low + middle + carried + m.low, WHOLE)

        m.high, m.low, m.rest = m.high + a * x + bx_high + ay_high + high, low, rest
        s.carry(m, 'high', 'low')
    end

    -- Count the deficit up to now and let the want lapse if it is time.
    function want.settle(c, t)
        if not t.wanting then
            return
        end

        local m = more(t)
        local lapse = lapse_at(c, m)
        local till = min(now, lapse)
        local rate = min(t.guarantee - t.held, m.want)

        if rate > 0 then
            deficit_add(m, rate, max(0, till - m.counted_at))
        end
        m.counted_at = till
        if now >= lapse then
            t.wanting, m.want, m.reclaiming = false, 0, false
        end
        s.tenant_changed(c, t)
    end

    -- `freeze: wanted`: time will bring back what it keeps from the pool.
    function want.watch(c, t)
        if not c.freeze or not t.wanting or t.lapses then
            return
        end

        local at = lapse_at(c, more(t))

        if at ~= NEVER then
            t.lapses = at
            c.next = min(c.next, at)
            s.put(c, 'w' .. s.code(at) .. string.format('%03d', t.index))
        end
    end

    -- It was granted something, and asks for `left` from now on.
    function want.served(c, t, left)
        local m = more(t)

        if m.reclaiming then
            m.reclaims, m.worst = m.reclaims + 1, max(m.worst, now - m.reclaim_at)
            t.cool_until = now + c.cooldown
        end
        m.reclaiming, t.wanting, m.want = false, m.shorts > 0, left
    end

    local function attempt(c, t)
        t.asked_at = now
        if not c.freeze then
            s.wake(c, t)
        end
    end

    local function want_more(c, t)
        want.settle(c, t)

        local m = more(t)

        if not t.wanting then
            m.counted_at = now
        end
        t.wanting, m.want, m.refused_at = true, max(m.want, c.charge), now
        want.watch(c, t)
    end

    local function reclaim_begin(t, reason)
        local m = more(t)

        if reason == 'guarantee_on_loan' and not m.reclaiming and t.wanting then
            m.reclaiming, m.reclaim_at = true, now
            return true
        end
        return false
    end

    function want.asked(c, t, reason, is_short)
        attempt(c, t)
        if is_short then
            want_more(c, t)
            reclaim_begin(t, reason)
        end
        s.tenant_changed(c, t)
    end

    -- It begins to wait, for whatever, and so asks until it leaves.
    function want.wait(c, t)
        t.waiting = t.waiting + 1
        more(t).wait_most = max(more(t).wait_most, c.charge)
        attempt(c, t)
        s.tenant_changed(c, t)
    end

    -- One that waits has become short of this ceiling.
    function want.short(c, t)
        want_more(c, t)
        more(t).shorts = more(t).shorts + 1
        s.tenant_changed(c, t)
    end

    -- The first of its waiters has been looked at and cannot go.
    function want.found(c, t, reason)
        local begins = reclaim_begin(t, reason)

        if begins then
            s.tenant_changed(c, t)
        end
        return begins
    end

    -- It waits no longer. If it was granted, what it takes follows, and must still find its want.
    function want.leave(c, t, was_short, granted)
        local m = more(t)

        want.settle(c, t)
        t.waiting = t.waiting - 1
        if t.waiting == 0 then
            m.wait_most = 0
        end
        if was_short then
            m.shorts, m.refused_at = m.shorts - 1, now
            want.watch(c, t)
        end
        if not granted then
            attempt(c, t)
        end
        s.tenant_changed(c, t)
    end

    return want
end
