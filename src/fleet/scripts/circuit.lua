-- SPDX-License-Identifier: MIT
--
-- Circuit breakers: core/breaker.c, breaker_ring.c and circuit.c, with their names. All of it is made when a call meets
-- a circuit; where nothing is due, one comparison with the head's `circuits` tells so.
--
-- A circuit stands under `circuit:KEY` with its rule, since time moves it in calls that do not know the rule; a request
-- that comes through it brings the newest. `circuits` is a sorted set of those that time will move, by when. Beside it
-- `results:KEY` has a bit for each of the last results (strategy `count`, set for a failure), `samples:KEY` the results
-- before the newest instant (`sampling`), INSTANT:FAILURES:SUCCESSES by instant.
--
-- A rule is { strategy, threshold, ratio's numerator, its denominator, size, duration, minimum of calls, is recovery by
-- probes, probes, first back-off, multiplier's numerator, its denominator (0: constant), longest back-off (0: none),
-- idle interval (0: none), idle failures, quorum, and what is told when it trips, recovers, is unwell }. The owner is
-- the account, its target and credential, that came first: the health checks are its own.
--
-- Whoever brings a health check about is told of it, and nobody else: it runs the check. The check's number goes with
-- its answer, so that an answer is none once somebody has been told of a later one. One that falls due in the very call
-- that brings an answer is answered by it.
local function circuits_make()
    local CONSECUTIVE, COUNT, SAMPLING = 1, 2, 3
    local STRATEGY, THRESHOLD, NUM, DEN, SIZE, DURATION, MINIMUM, BY_PROBES, PROBES, INITIAL, TIMES, PER, LONGEST, IDLE,
        IDLE_FAILURES, QUORUM, TRIPPED, RECOVERED, UNWELL = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19
    local CLOSED, OPEN, HALF_OPEN = 0, 1, 2
    local KEPT = 7 * DAY
    local INSTANTS = 65536
    local AGENDA = prefix .. 'circuits'

    local met = {}

    -- ---- the state ----

    local function is_fresh(c)
        return c.state == CLOSED and c.generation == 1 and c.failures == 0 and c.calls == 0 and not c.check_out and
            c.rule[IDLE] == 0
    end

    local function save(c)
        local fresh = is_fresh(c)
        local ends = fresh and -MAX or call.lasting and NEVER or
            max(now, c.until_at ~= NEVER and c.until_at or now) + KEPT

        if c.until_at ~= c.until_was then
            if c.until_at == NEVER then
                later('ZREM', AGENDA, c.name)
            else
                later('ZADD', AGENDA, c.until_at, c.name)
                expire_later(AGENDA, max(head.ends, ends))
            end
            if c.until_at < head.circuits then
                head.circuits, head.changed = c.until_at, true
            end
        end
        return ends, cmsgpack.pack(ends, c.rule, c.owner, c.state, c.generation, c.until_at, c.cause, c.delay,
            c.permits, c.successes, c.check_out, c.checks, c.failures, c.idle_failures, c.quiet_since, c.first, c.count,
            c.calls, c.failed, c.newest, c.total, c.failers)
    end

    local function after(at, span)
        local ends = min(at + span, MAX)

        return ends > at and ends or NEVER
    end

    local function idle_check(c)
        return c.rule[IDLE] > 0 and after(now, c.rule[IDLE]) or NEVER
    end

    local function results_clear(c)
        if c.newest then
            later('DEL', prefix .. 'samples:' .. c.name)
        end
        c.count, c.calls, c.failed, c.newest, c.failers = 0, 0, 0, false, {}
    end

    -- floor(a * by / per) and a rest: of any a, where `a` itself is at most 2^53.
    local function next_delay(c)
        local rule = c.rule
        local by, per = rule[TIMES], rule[PER]

        if c.delay == 0 then
            return rule[INITIAL]
        end
        if per == 0 then
            return c.delay
        end

        local rest = fmod(c.delay, per)
        local whole = (c.delay - rest) / per

        if whole > div_floor(MAX, by) then
            return rule[LONGEST] > 0 and rule[LONGEST] or MAX
        end
        return min(whole * by + div_floor(rest * by + per - 1, per), rule[LONGEST] > 0 and rule[LONGEST] or MAX)
    end

    local function back_off(c)
        c.delay = next_delay(c)
        c.until_at = after(now, c.delay)
        changed(c)
    end

    -- The only writer of `state`.
    local function enter_state(c, state, cause)
        c.state, c.generation, c.cause = state, c.generation + 1, cause
        c.permits, c.successes, c.failures, c.idle_failures, c.check_out = 0, 0, 0, 0, false
        results_clear(c)
        changed(c)
        if state == CLOSED then
            c.delay, c.quiet_since, c.until_at = 0, now, idle_check(c)
        elseif state == OPEN then
            back_off(c)
        else
            c.permits, c.until_at = c.rule[PROBES], NEVER
        end
    end

    local function refuses(c)
        return c.state == OPEN or c.state == HALF_OPEN and c.permits == 0
    end

    local function retry_at(c)
        return refuses(c) and c.until_at ~= NEVER and c.until_at
    end

    local function tell(c)
        local retry = retry_at(c)

        happened('breaker', c.name, c.state, retry, c.cause)
        announce(prefix .. 'circuit', string.format('%d\n%.0f\n%.0f\n%s\n%s\n%s', c.state, c.generation, now,
            retry and string.format('%.0f', retry) or '-', c.cause, c.name))
    end

    local function counts_alike(a, b)
        for _, i in ipairs({ STRATEGY, SIZE, DURATION, BY_PROBES, PROBES, IDLE }) do
            if a[i] ~= b[i] then
                return false
            end
        end
        return true
    end

    -- Where other rules count otherwise, they begin with what they find: probes anew, results with none.
    local function rule_bring(c, rule)
        if not c.rule then
            c.rule = rule
        elseif not counts_alike(c.rule, rule) then
            c.rule = rule
            if c.state == HALF_OPEN then
                enter_state(c, HALF_OPEN, c.cause)
            else
                results_clear(c)
                c.failures = 0
            end
            if c.state == CLOSED then
                c.until_at = idle_check(c)
            end
            changed(c)
        end
        c.rule = rule
    end

    local function begin(c, rule, owner)
        c.rule, c.owner, c.state, c.generation, c.until_at, c.cause = rule, owner, CLOSED, 0, NEVER, ''
        c.delay, c.permits, c.successes, c.check_out, c.checks, c.failures, c.idle_failures = 0, 0, 0, false, 0, 0, 0
        c.quiet_since, c.first, c.count, c.calls, c.failed, c.newest, c.total, c.failers = now, 0, 0, 0, 0, false, 0, {}
        c.generation, c.until_at = 1, idle_check(c)
        if c.until_at ~= NEVER then
            changed(c)
        end
    end

    -- The circuit of that name; nil: it is not known, and no rule of one.
    local function at(name)
        local c = met[name]
        local given = KEYS[#KEYS] == prefix .. 'circuit:' .. name and call.circuit
        local ends

        if c then
            return c
        end
        c = cell_at(prefix .. 'circuit:' .. name)
        if c.raw then
            ends, c.rule, c.owner, c.state, c.generation, c.until_at, c.cause, c.delay, c.permits, c.successes,
                c.check_out, c.checks, c.failures, c.idle_failures, c.quiet_since, c.first, c.count, c.calls, c.failed,
                c.newest, c.total, c.failers = cmsgpack.unpack(c.raw)
        end
        c.name, c.save, c.is_circuit, c.was = name, save, true, ends
        c.until_was = ends and c.until_at or NEVER
        if ends and now < ends then
            if given then
                rule_bring(c, given.rule)
            end
        elseif given then
            begin(c, given.rule, given.owner)
        else
            return nil
        end
        met[name] = c
        return c
    end

    -- ---- results ----

    local function count_add(c, ok)
        local key, size = prefix .. 'results:' .. c.name, c.rule[SIZE]

        if c.count == size then
            c.failed = c.failed - redis.call('GETBIT', key, c.first)
        else
            c.count, c.calls = c.count + 1, c.calls + 1
        end
        c.failed = c.failed + (ok and 0 or 1)
        later('SETBIT', key, c.first, ok and 0 or 1)
        expire_later(key, now + KEPT)
        c.first = fmod(c.first + 1, size)
    end

    local function sample_forget(c, failures, successes)
        c.calls, c.failed = c.calls - failures - successes, c.failed - failures
    end

    local function sample_parts(member)
        local failures, successes = string.match(member, ':(%d+):(%d+)$')

        return tonumber(failures), tonumber(successes)
    end

    local function sample(instant, failures, successes)
        return string.format('%.0f:%.0f:%.0f', instant, failures, successes)
    end

    -- The two oldest instants become one, the later: some results stay in too long, none is lost.
    local function samples_merge(c, key)
        local two = redis.call('ZRANGE', key, 0, 1, 'WITHSCORES')
        local failures, successes = sample_parts(two[1])
        local more_failures, more_successes = sample_parts(two[3])

        later('ZREM', key, two[1], two[3])
        later('ZADD', key, two[4], sample(tonumber(two[4]), failures + more_failures, successes + more_successes))
        c.count = c.count - 1
    end

    -- `count`: instants, the newest among them.
    local function sampling_add(c, ok)
        local key, gone = prefix .. 'samples:' .. c.name, now - c.rule[DURATION]

        if c.count > (c.newest and 1 or 0) then
            local old = redis.call('ZRANGEBYSCORE', key, '-inf', gone)

            for _, member in ipairs(old) do
                sample_forget(c, sample_parts(member))
            end
            if #old > 0 then
                c.count = c.count - #old
                later('ZREMRANGEBYSCORE', key, '-inf', gone)
            end
        end
        if c.newest and c.newest[1] <= gone then
            sample_forget(c, c.newest[2], c.newest[3])
            c.count, c.newest = c.count - 1, false
        end
        if not c.newest or c.newest[1] < now then
            if c.count == INSTANTS then
                samples_merge(c, key)
            end
            if c.newest then
                later('ZADD', key, c.newest[1], sample(unpack(c.newest)))
                expire_later(key, now + KEPT + c.rule[DURATION])
            end
            c.newest, c.count = { now, 0, 0 }, c.count + 1
        end
        c.newest[2], c.newest[3] = c.newest[2] + (ok and 0 or 1), c.newest[3] + (ok and 1 or 0)
        c.calls, c.failed = c.calls + 1, c.failed + (ok and 0 or 1)
    end

    -- How many processes have seen a failure that counts still.
    local function failers_of(c)
        local strategy, gone, count = c.rule[STRATEGY], now - c.rule[DURATION], 0

        for member, last in pairs(c.failers) do
            if strategy == SAMPLING and last[1] <= gone or strategy == COUNT and last[2] + c.rule[SIZE] <= c.total then
                c.failers[member] = nil
            else
                count = count + 1
            end
        end
        return count
    end

    local function trips(c)
        local rule = c.rule

        if rule[QUORUM] > 1 and call.member and failers_of(c) < rule[QUORUM] then
            return false
        end
        if rule[STRATEGY] == CONSECUTIVE then
            return c.failures >= rule[THRESHOLD]
        end
        return c.calls >= rule[MINIMUM] and c.failed * rule[DEN] >= c.calls * rule[NUM]
    end

    local function closed_result(c, ok)
        c.total = c.total + 1
        if c.rule[STRATEGY] == COUNT then
            count_add(c, ok)
        elseif c.rule[STRATEGY] == SAMPLING then
            sampling_add(c, ok)
        end
        c.quiet_since, c.until_at = now, idle_check(c)
        if ok then
            c.idle_failures = 0
            if c.rule[STRATEGY] == CONSECUTIVE then
                c.failers = {}
            end
            if c.failures > 0 or c.rule[STRATEGY] ~= CONSECUTIVE or c.rule[IDLE] > 0 then
                changed(c)
            end
            c.failures = 0
            return
        end
        c.failures = c.failures + 1
        if call.member and c.rule[QUORUM] > 1 then
            c.failers[call.member] = { now, c.total }
        end
        changed(c)
        if trips(c) then
            enter_state(c, OPEN, c.rule[TRIPPED])
            tell(c)
        end
    end

    -- ---- probes ----

    local function out(c)
        return c.rule[PROBES] - c.permits - c.successes
    end

    local function has_out(c, pass)
        return c.state == HALF_OPEN and pass[2] == c.generation and pass[3] and out(c) > 0
    end

    local function probe_back(c)
        if out(c) == 0 then
            c.until_at = NEVER
        end
        changed(c)
    end

    local function probe_result(c, ok)
        if not ok then
            enter_state(c, OPEN, 'a probe failed')
            tell(c)
            return
        end
        c.successes = c.successes + 1
        probe_back(c)
        if c.successes >= c.rule[PROBES] then
            enter_state(c, CLOSED, c.rule[RECOVERED])
            tell(c)
        end
    end

    -- ---- calls ----

    -- Let one through: what it was let through under is { name, generation, is it a probe }.
    local function enter(c)
        local probe = c.state == HALF_OPEN

        if probe then
            if out(c) == 0 then
                c.until_at = after(now, c.delay)
            end
            c.permits = c.permits - 1
            changed(c)
        end
        return { c.name, c.generation, probe }
    end

    -- It has ended without a result.
    local function leave(pass)
        local c = at(pass[1])

        if c and has_out(c, pass) then
            c.permits = c.permits + 1
            probe_back(c)
        end
    end

    local function result(pass, ok)
        local c = at(pass[1])

        if not c or pass[2] ~= c.generation then
            return
        end
        if c.state == CLOSED then
            closed_result(c, ok)
        elseif has_out(c, pass) then
            probe_result(c, ok)
        end
    end

    local function health_forget(c)
        for i = #events, 1, -1 do
            if events[i][1] == 'health' and events[i][3] == c.name then
                table.remove(events, i)
            end
        end
    end

    -- What a health check came to; `number`: which, nil: nobody asked for it.
    local function health(c, ok, number)
        if number and number ~= c.checks - (c.handed or 0) then
            return
        end
        if number then
            health_forget(c)
        end
        changed(c)
        c.check_out = false
        if c.state == CLOSED and ok then
            c.idle_failures = 0
        elseif c.state == CLOSED then
            if c.rule[IDLE] == 0 or now < c.quiet_since + c.rule[IDLE] then
                return
            end
            c.idle_failures = c.idle_failures + 1
            if c.idle_failures >= c.rule[IDLE_FAILURES] then
                enter_state(c, OPEN, c.rule[UNWELL])
                tell(c)
            end
        elseif c.state == OPEN and ok then
            enter_state(c, CLOSED, 'health check succeeded')
            tell(c)
        elseif c.state == OPEN then
            back_off(c)
        end
    end

    -- ---- time ----

    -- Of all the checks that were due by `till` the last: nobody would have run the others.
    local function check_due(c, span, till)
        local more = div_floor(till - c.until_at, span)
        local due_at = c.until_at + more * span

        c.check_out, c.checks, c.until_at = true, c.checks + 1, after(due_at, span)
        c.handed = (c.handed or 0) + 1
        happened('health', c.name, c.checks, false, c.owner[1])
        changed(c)
    end

    -- What time does now; of checks all that are due by `till`.
    local function advance(c, till)
        if c.state == HALF_OPEN then
            enter_state(c, HALF_OPEN, 'probes were lost')
        elseif c.state == CLOSED then
            check_due(c, c.rule[IDLE], till)
        elseif c.rule[BY_PROBES] then
            enter_state(c, HALF_OPEN, 'the back-off is over')
            tell(c)
        else
            check_due(c, c.delay, till)
        end
    end

    -- The circuits that time moves by `till`; the head knows the first instant after it.
    local function due(till)
        local found = {}

        local ended = redis.call('ZRANGEBYSCORE', AGENDA, '-inf', till)
        local following = redis.call('ZRANGEBYSCORE', AGENDA, '(' .. string.format('%.0f', till), '+inf', 'WITHSCORES',
            'LIMIT', 0, 1)

        for _, name in ipairs(ended) do
            local c = at(name)

            if c then
                found[#found + 1] = c
            else
                later('ZREM', AGENDA, name)
            end
        end
        head.circuits, head.changed = following[2] and tonumber(following[2]) or NEVER, true
        return found
    end

    -- All that time will move: to the others a health check means nothing.
    local function timed()
        local found = {}

        for _, name in ipairs(redis.call('ZRANGE', AGENDA, 0, -1)) do
            found[#found + 1] = at(name)
        end
        return found
    end

    -- The next of them to be moved, by `till`.
    local function next_of(moving, till)
        local first

        for _, c in ipairs(moving) do
            if c.until_at <= till and (not first or c.until_at < first.until_at) then
                first = c
            end
        end
        return first
    end

    -- Those that wait for a call through it, once it has opened.
    local function is_open(name)
        local c = at(name)

        return c and c.state == OPEN
    end

    return { at = at, next_of = next_of, is_open = is_open, timed = timed, refuses = refuses, retry_at = retry_at,
        enter = enter, leave = leave, result = result, health = health, due = due, advance = advance }
end

local circuit_part

local function circuits()
    circuit_part = circuit_part or circuits_make()
    return circuit_part
end

-- The circuits that time moves by `till`.
local function circuits_due(till)
    return till < head.circuits and {} or circuits().due(till)
end
