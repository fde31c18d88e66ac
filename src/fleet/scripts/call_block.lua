-- SPDX-License-Identifier: MIT
--
-- What a call about a block brings: of prefetch units and time to live, of settle units and cost.
call.units, call.ttl, call.cost = values[5], values[6], values[6]
call.counters = counters_from(7)
