-- SPDX-License-Identifier: MIT
--
-- What a response or a release brings. `penalized`: 0 the account, -1 all limits that bind, else one by its place.
call.circuit, call.outcome, call.cost, call.status, call.limited, call.success, call.retry_at = unpack(values, 5, 11)
call.penalty = { default = values[12], max = values[13] }
call.penalized = values[14]
call.counters = counters_from(15)
