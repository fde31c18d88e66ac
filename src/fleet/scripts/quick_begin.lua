-- SPDX-License-Identifier: MIT
--
-- The beginning of the quick paths, put into each of them where it is named: the provider, at which nobody waits and
-- nothing is due. What is read here the whole script need not read again.
        local keys, call, pack, unpacked, sub = KEYS, redis.call, cmsgpack.pack, cmsgpack.unpack, string.sub

        raws = call('MGET', unpack(keys))
        if not raws[1] then
            break
        end

        local seen, grants, first, ends, kept, _, _, waiting, wake, circuits = unpacked(raws[1])

        if not now then
            time = call('TIME')
            now = time[1] * SECOND + time[2]
        end
        if waiting > 0 or now < seen or now >= first or now >= circuits then
            break
        end

        local ends_were = ends
