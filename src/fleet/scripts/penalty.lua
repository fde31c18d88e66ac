-- SPDX-License-Identifier: MIT
--
-- The pause of one scope after its provider said "too many": core/penalty.c. It stands beside the state of its counter,
-- or for itself where it is an account's. A week after its end it is forgotten, with what it would have doubled.
local DOUBLED_MAX = 600 * SECOND
local KEPT = 7 * DAY

local function penalty_runs(p)
    return p and now < p[2]
end

local function doubled(doublings)
    local wait = call.penalty.default

    for _ = 2, doublings do
        if wait >= DOUBLED_MAX then
            break
        end
        wait = wait * 2
    end
    return min(wait, DOUBLED_MAX)
end

-- A penalty is { began, ends, doublings }. Returns the one after a 429 for a lease granted at `granted_at`.
local function penalty_hit(p, granted_at, retry_at)
    local known = p and now < p[2] + KEPT
    local began, ends, doublings = now, -MAX, 0

    if known then
        began, ends, doublings = p[1], p[2], p[3]
    end
    if not known or began < granted_at then
        began, doublings = now, doublings + 1
    end

    local wanted = retry_at and retry_at > now and retry_at or now + doubled(doublings)
    local last = min(wanted, min(now + call.penalty.max, MAX))

    if not known or ends < last then
        ends = last
    end
    return { began, ends, doublings }
end

-- A success of a lease granted at `granted_at`. True: it changed something.
local function penalty_success(p, granted_at)
    if p and p[1] < granted_at and p[3] > 0 then
        p[3] = 0
        return true
    end
    return false
end

local function penalty_ends(p)
    return p and p[2] + KEPT or -MAX
end

local function account_save(cell)
    local ends = penalty_ends(cell.penalty)

    return ends, cell.penalty and cmsgpack.pack(ends, cell.penalty)
end

local function account_read()
    local cell = cells[KEYS[3]]
    local ends, penalty

    if cell.raw then
        ends, penalty = cmsgpack.unpack(cell.raw)
    end
    cell.penalty = ends and now < ends and penalty or false
    cell.save = account_save
    return cell
end
