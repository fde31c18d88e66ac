-- SPDX-License-Identifier: MIT
--
-- The pause of one scope after its provider said "too many": core/penalty.c. It stands beside the state of its counter,
-- or for itself where it is an account's. A week after its end it is forgotten, with what it would have doubled.
--
-- An operator's pause is a fourth value of it, the instant up to which the counter is kept for that: as a penalty
-- without an end. A counter that was never penalized then has one that has never begun.
local KEPT = 7 * DAY

local function is_paused(p)
    return p and p[4]
end

local function penalty_runs(p)
    return p and now < p[2]
end

local function penalty_ends(p)
    return is_paused(p) or p and p[2] + KEPT or -MAX
end

local function account_save(cell)
    local ends = penalty_ends(cell.penalty)

    return ends, cell.penalty and cmsgpack.pack(ends, cell.penalty)
end

local function account_at(key)
    local cell = cell_at(key)
    local ends, penalty

    if cell.save then
        return cell
    end
    if cell.raw then
        ends, penalty = cmsgpack.unpack(cell.raw)
        cell.was = ends
    end
    cell.penalty = ends and now < ends and penalty or false
    cell.save, cell.is_account = account_save, true
    return cell
end
