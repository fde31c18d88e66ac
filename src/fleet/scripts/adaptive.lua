-- SPDX-License-Identifier: MIT
--
-- Limits of kind `adaptive`: core/adaptive.c and core/aimd.c, with the same names. L is c.limit, in whole units; before
-- the first acquire there is none. What is held, in all and by class, is in micro-units. Classes are known by their
-- names, so that members with other rules agree on whose a lease is.
--
-- What was learned is never equal to a fresh state, but a week after the last call it is forgotten; not in a test, for
-- the core keeps it. `lasts` is as in slots.lua. Lanes are classes; a class that waits is not idle.
--
-- c.spec has { initial, min, max, step, factor's numerator, its denominator, window, cooldown, fast } as `aimd`, the
-- classes that reserve something as { name, numerator, denominator }, and of the request its `class` (false: none),
-- whether that is `unknown`, the `most` that can ever be granted to it, and whether it `borrows` what classes that have
-- been idle for `idle` reserve. `followers`, false where there are none, names the share limits whose ceilings stand
-- where this limit does, at the same scope key: whatever moves L resizes them in the same call.
MAKERS[5] = function()
    local KEPT = 7 * DAY
    local SLACK = 60 * SECOND
    local INITIAL, LOWEST, HIGHEST, STEP, NUM, DEN, WINDOW, COOLDOWN, FAST = 1, 2, 3, 4, 5, 6, 7, 8, 9

    local function decode(c, limit, grown_at, throttled_at, decreased_at, stride, climb_to, held, held_of, lasts, born,
        used_at, waiting)
        c.limit, c.grown_at, c.throttled_at, c.decreased_at = limit, grown_at, throttled_at, decreased_at
        c.stride, c.climb_to = stride, climb_to
        c.held, c.held_of, c.lasts, c.born, c.used_at = held or 0, held_of or {}, lasts or -MAX, born, used_at or {}
        c.waiting = waiting or {}
        if c.lasts <= now then
            c.held, c.held_of = 0, {}
        end
    end

    local function encode(c)
        local ends = call.lasting and NEVER or max(now + KEPT, c.held > 0 and c.lasts or -MAX)

        return c.limit and ends or -MAX, c.limit, c.grown_at, c.throttled_at, c.decreased_at, c.stride, c.climb_to,
            c.held, c.held_of, c.lasts, c.born, c.used_at, c.waiting
    end

    -- Within the bounds that hold now.
    local function read(c)
        local aimd = c.spec.aimd

        c.born = c.born or min(c.spec.started or now, now)
        if c.limit then
            c.limit = max(aimd[LOWEST], min(c.limit, aimd[HIGHEST]))
            c.climb_to = aimd[FAST] and min(c.climb_to, aimd[HIGHEST]) or 0
        end
    end

    -- ---- those who follow ----

    local function resize_all(c, level)
        for _, name in ipairs(c.spec.followers or {}) do
            local follower = counter_at(prefix .. 'limit:' .. name .. key_of_limit(c), 4)

            if follower.follows and follower.size ~= level * UNIT then
                kind_of(4).resize(follower, level * UNIT)
            end
        end
    end

    -- Where the limit stands now: by these rules it may be elsewhere than by those of the last call.
    local function follow(c)
        resize_all(c, c.limit or c.spec.aimd[INITIAL])
    end

    -- ---- the limit ----

    local function start(c)
        if c.limit then
            return
        end
        c.limit, c.grown_at, c.throttled_at, c.decreased_at = c.spec.aimd[INITIAL], now, false, false
        c.stride, c.climb_to = c.spec.aimd[STEP], 0
        changed(c)
    end

    local function grows_at(c)
        if not c.limit or c.limit >= c.spec.aimd[HIGHEST] then
            return NEVER
        end
        return max(c.grown_at, c.throttled_at or -MAX) + c.spec.aimd[WINDOW]
    end

    local function next_limit(c)
        if c.climb_to > 0 then
            return min(c.limit + c.stride, c.climb_to)
        end
        return min(c.limit + c.spec.aimd[STEP], c.spec.aimd[HIGHEST])
    end

    local function grow(c)
        c.limit, c.grown_at = next_limit(c), now
        if c.climb_to > c.limit then
            c.stride = min(c.stride * 2, c.spec.aimd[HIGHEST])
        else
            c.climb_to = 0
        end
        changed(c)
    end

    local function throttle(c)
        local aimd = c.spec.aimd

        start(c)

        local before = c.limit
        local cools = c.decreased_at and now < c.decreased_at + aimd[COOLDOWN]

        c.throttled_at = now
        changed(c)
        if cools then
            return
        end
        c.decreased_at = now
        c.limit = max(aimd[LOWEST], div_floor(before * aimd[NUM], aimd[DEN]))
        if aimd[FAST] then
            local back = div_floor(before * 9, 10)

            c.climb_to, c.stride = back > c.limit and back or 0, aimd[STEP]
        end
    end

    -- ---- classes ----

    local function idle_at(c, class)
        if c.held_of[class] or c.waiting[class] then
            return NEVER
        end
        return (c.used_at[class] or c.born) + c.spec.idle
    end

    local function is_idle(c, class)
        return idle_at(c, class) <= now
    end

    -- What the other classes' reserves keep from the request at that limit.
    local function kept(c, limit)
        local sum = 0

        for _, class in ipairs(c.spec.classes) do
            if class[1] ~= c.spec.class and not (c.spec.borrows and is_idle(c, class[1])) then
                local reserved = div_floor(limit * class[2] + class[3] - 1, class[3]) * UNIT

                sum = sum + max(0, reserved - (c.held_of[class[1]] or 0))
            end
        end
        return sum
    end

    local function room(c, limit)
        return limit * UNIT - c.held - kept(c, limit)
    end

    local function hold_add(c, class, amount)
        c.held = max(clamp(c.held + amount), 0)
        if class then
            c.held_of[class] = max(clamp((c.held_of[class] or 0) + amount), 0)
            if c.held_of[class] == 0 then
                c.held_of[class] = nil
            end
        end
        changed(c)
    end

    local function use(c, class, at)
        if class and (c.used_at[class] or c.spec and c.spec.idle) then
            c.used_at[class] = at
            changed(c)
        end
    end

    local function lasts(c, lease)
        c.lasts = max(c.lasts, lease.ttl_until + max(lease.ttl or 0, SLACK))
    end

    -- ---- calls ----

    local function check(c, ask)
        local limit = c.limit or c.spec.aimd[INITIAL]

        if ask.enforcer then
            return nil
        end
        if c.spec.unknown or c.charge > c.spec.most then
            return { refuses = true, reason = c.spec.unknown and 'unknown_class' or 'cost_exceeds_limit', at = NEVER,
                capacity = not c.spec.unknown and c.spec.most }
        end

        local left = room(c, limit)

        if left < c.charge and ask.demand and grows_at(c) <= now then
            limit = next_limit(c)
            left = room(c, limit)
        end
        if left >= c.charge and not ask.blocked then
            return nil
        end
        return { reason = 'adaptive_full', at = NEVER, available = max(left, 0),
            capacity = limit * UNIT }
    end

    local function moved(c, before, cause)
        if c.limit ~= before then
            happened('limit', string.sub(c.key, #prefix + 1), before * UNIT, c.limit * UNIT, cause)
            follow(c)
        end
    end

    -- It is wanted, and may find its cap full. True: it has grown by that.
    local function demand(c)
        if c.spec.unknown then
            return false
        end
        start(c)
        if c.charge > c.spec.most or room(c, c.limit) >= c.charge or now < grows_at(c) then
            return false
        end

        local before = c.limit

        grow(c)
        moved(c, before, 'demand at the cap')
        return true
    end

    -- Who follows stands where the request's demand would put the limit.
    local function foresee(c)
        local limit = c.limit or c.spec.aimd[INITIAL]

        if not c.spec.unknown and c.charge <= c.spec.most and room(c, limit) < c.charge and grows_at(c) <= now then
            resize_all(c, next_limit(c))
        end
    end

    -- Refused only because it may not wait.
    local function asked(c)
        if not c.spec.unknown then
            use(c, c.spec.class, now)
        end
    end

    local function lane(place)
        return place.class and 'c' .. place.class or ''
    end

    local function note(c, what)
        local class = c.spec.class
        local change = what == 'wait' and 1 or (what == 'leave' or what == 'granted') and -1

        if not change or not class or not c.spec.idle then
            return
        end

        local waiting = (c.waiting[class] or 0) + change

        c.waiting[class] = waiting > 0 and waiting or nil
        use(c, class, now)
    end

    local function next_change(c)
        local at = grows_at(c)

        for _, class in ipairs(c.spec.borrows and c.spec.classes or {}) do
            local idle = idle_at(c, class[1])

            at = now < idle and min(at, idle) or at
        end
        return at
    end

    local function take(c, lease)
        start(c)
        hold_add(c, c.spec.class, c.charge)
        use(c, c.spec.class, now)
        lasts(c, lease)
        return c.spec.class
    end

    -- Whatever the call cost in the end, what was taken goes back.
    local function lose(c, hold, _, at)
        hold_add(c, hold.extra, -hold.charge)
        use(c, hold.extra, at)
    end

    local function give_back(c, hold, lease)
        lose(c, hold, lease, now)
    end

    local function renew(c, _, lease)
        if lease.ttl_until > c.lasts then
            lasts(c, lease)
            changed(c)
        end
    end

    local function observe(c, _, reply)
        local before = c.limit or c.spec.aimd[INITIAL]

        if not reply.throttled then
            return
        end
        throttle(c)
        moved(c, before, 'the provider throttled')
    end

    return { reason = 'adaptive_full', lane = lane, note = note, next_change = next_change, decode = decode,
        encode = encode, read = read, follow = follow, foresee = foresee, check = check, demand = demand,
        asked = asked, take = take, give_back = give_back, lose = lose, renew = renew, observe = observe }
end
