-- SPDX-License-Identifier: MIT
--
-- The kinds of limits: one file each, which puts a maker under the kind's number (call.c has the same numbers). Lua
-- makes the functions of a script anew whenever it runs, so a kind is made when the first counter of it is met, and all
-- that belongs to it is made there. A maker returns the kind's functions:
--
--   decode(c, ...)              the state as `encode` wrote it; nothing: a fresh counter
--   encode(c)                   the instant from which it equals a fresh one, then the state
--   read(c)                     bring it up to now, by its rules in c.spec
--   check(c, ask)               what binds a charge of c.charge: a table as admit.lua's `bind` has it; nil: nothing
--   take(c, lease)              take c.charge; returns what the lease should remember of it beside the charge (`extra`)
--   settle(c, hold, to, lease)  the charge was another one; `hold` is { charge, extra }
--   give_back(c, hold, lease)   the lease has ended
--   lose(c, hold, lease, at)    it was lost at that instant; c.spec may be unknown
--   renew(c, hold, lease)       its time to live begins anew; c.spec may be unknown
--   observe(c, hold, reply, lease)  a response came: `reply` is { limited, throttled }
--
--   demand(c)                   a request wants c.charge, now or later; true: more may be there by that
--   asked(c)                    it was refused only because it may not wait
--
-- `decode` and `encode` every kind has, `check` and `take`, too; the others where there is something to do.
local MAKERS = {}
local kinds = {}

-- A counter's limit as calls name it.
local function limit_of(c)
    return string.match(c.key, '^limit:([^:]*)', #prefix + 1)
end

local function kind_of(number)
    local kind = kinds[number] or MAKERS[number]()

    kinds[number] = kind
    return kind
end
