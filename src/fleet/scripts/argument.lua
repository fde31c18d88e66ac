-- SPDX-License-Identifier: MIT
--
-- What a call brings: ARGV[1], a row of values without names (src/fleet/call.c writes it, call.lua gives it names). It
-- begins with the path that may be taken (0 the whole script, 1 also the quick one, 2 that or nothing: tests ask for
-- it), the time that a test tells or false, whether keys have no end then, the caller's name, what a script has asked
-- for. Whoever reads the keys of the call or the clock first leaves here what it found.
local PATH, TOLD, LASTING = 1, 2, 3
local GRAIN = 16777216 -- how exactly Redis is told when it may remove a key; a power of 2, so division by it is exact

local values = { cmsgpack.unpack(ARGV[1]) }
local raws, time
