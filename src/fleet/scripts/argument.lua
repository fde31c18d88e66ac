-- SPDX-License-Identifier: MIT
--
-- ARGV[1] is the call, a row of values (call.lua). ARGV[2], where there is one, is what a quick path needs of it. That
-- leaves here what it has read, for the whole script.
local GRAIN = 16777216 -- how exactly Redis is told when it may remove a key; a power of 2, so division by it is exact

local raws, time
