-- SPDX-License-Identifier: MIT
--
-- What a share limit's counter has to tell, KEYS[2], as of now: its rules' tenants in order. Writes nothing, so it does
-- not grant either what time has made possible.
local REPORTED = 4

local function row(t, tenant, is_quiet)
    local m, refused = t.more, {}

    for reason, count in pairs(m.refused) do
        refused[#refused + 1] = reason
        refused[#refused + 1] = count
    end
    return { tenant[1], tenant[2], t.guarantee, t.held, t.own, t.lent, m.want, is_quiet and 1 or 0, t.waiting, m.high,
        m.low, m.rest, m.reclaims, m.worst, t.granted, t.cost_high, t.cost_low, refused }
end

-- Names of those that are past their declared end, in order.
local function overrun(c)
    local late, ids = {}, {}

    for _, hold in pairs(c.holds) do
        if hold and hold.ends_at < now then
            late[#late + 1] = hold
        end
    end
    table.sort(late, function(a, b)
        if a.ends_at ~= b.ends_at then
            return a.ends_at < b.ends_at
        end
        if a.serial ~= b.serial then
            return a.serial < b.serial
        end
        return a.turn < b.turn
    end)
    for i, hold in ipairs(late) do
        ids[i] = hold.id
    end
    return ids
end

head_read()
now = clock()
call.asked = setmetatable({}, { __index = function() return {} end }) -- nothing is to be asked for
for _, lease in ipairs(leases_due(now)) do
    lease_lose(lease[1], lease[2])
end

local c = counter_at(KEYS[2], REPORTED)

if not c.digest then
    return { UNKNOWN, now, {}, {}, {} }
end

local parts, rows, draining = kind_of(REPORTED).parts, {}, 0

for i, tenant in ipairs(parts.splitter().whole(c)) do
    local t = parts.tenant_at(c, i - 1)

    parts.more(t)
    rows[i] = row(t, tenant, t.leases == 0 and t.waiting == 0 and now >= t.asked_at + c.idle_after)
    draining = draining + max(0, -parts.free_of(t))
end
return { DONE, now, {}, { c.size, c.held, draining, overrun(c), rows }, {} }
