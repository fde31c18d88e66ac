-- SPDX-License-Identifier: MIT
--
-- What an admission brings. `queue` is { priority, tenant, cost, weight, is it first come first served, most waiters,
-- most of a tenant, how long the caller may be silent }.
call.circuit, call.hold, call.ttl, call.retry, call.critical, call.wait, call.dry, call.enforcer, call.enter,
    call.again = unpack(values, 5, 14)
call.queue = { unpack(values, 15, 22) }
call.counters = counters_from(23)
