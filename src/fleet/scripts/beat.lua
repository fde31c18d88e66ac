-- SPDX-License-Identifier: MIT
--
-- A member is alive, and wants to know of the others. Of no provider: one hash of the fleet, a field a member. Those
-- that have not been heard of for a minute are forgotten; whoever takes leave is at once.
--
-- Beside it stands the salt of credentials' keys. Whoever needs it brings the one that it goes by, or would: the first
-- one is everybody's, also of a store that has lost it. It is forgotten long after the last of them has gone.
--
-- Stands alone, with none of the other parts.
local call = cmsgpack.unpack(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local FORGOTTEN = 60 * 1000000
local SALT_FORGOTTEN = 400 * 86400 * 1000 -- in milliseconds: longer than any limit looks back
local DONE = 4
local others = {}

if call.leave then
    redis.call('HDEL', KEYS[1], call.member)
else
    redis.call('HSET', KEYS[1], call.member, cmsgpack.pack(now, call.instance, call.config))
    redis.call('PEXPIRE', KEYS[1], 2 * FORGOTTEN / 1000)
end

local salt = {}

if call.salt then
    redis.call('SET', KEYS[2], call.salt, 'NX')
    redis.call('PEXPIRE', KEYS[2], SALT_FORGOTTEN)
    salt[1] = redis.call('GET', KEYS[2])
end

local all = redis.call('HGETALL', KEYS[1])

for i = 1, #all, 2 do
    local heard, instance, config = cmsgpack.unpack(all[i + 1])

    if now - heard > FORGOTTEN then
        redis.call('HDEL', KEYS[1], all[i])
    else
        others[#others + 1] = { all[i], instance, config, math.max(now - heard, 0) }
    end
end
return { DONE, now, salt, others, {} }
