-- SPDX-License-Identifier: MIT
--
-- The kinds of limits: one file each, which puts a maker under the kind's number (call.c has the same numbers). Lua
-- makes the functions of a script anew whenever it runs, so a kind is made when the first counter of it is met, and all
-- that belongs to it is made there. A maker returns the kind's functions:
--
--   decode(c, ...)              the state as `encode` wrote it; nothing: a fresh counter
--   encode(c)                   the instant from which it equals a fresh one, then the state
--   read(c)                     bring it up to now, by its rules in c.spec
--   check(c, ask)               what binds a charge of c.charge, as admission.lua's `bind` has it; nil: nothing. With
--                               `ask.blocked` it is a table in any case: others come first, who keep a place here for
--                               ask.ahead; `at` is when it will be there after them
--   take(c, lease, ask)         take c.charge; returns what the lease should remember of it beside the charge (`extra`)
--   settle(c, hold, to, lease)  the charge was another one; `hold` is { charge, extra }
--   give_back(c, hold, lease)   the lease has ended
--   lose(c, hold, lease, at)    it was lost at that instant; c.spec may be unknown
--   renew(c, hold, lease)       its time to live begins anew; c.spec may be unknown
--   observe(c, hold, reply, lease)  a response came: `reply` is { limited, throttled }
--
--   demand(c)                   a request wants c.charge, now or later; true: more may be there by that
--   asked(c)                    it was refused only because it may not wait
--   follow(c)                   it has been read: those who follow it stand where it does
--   foresee(c)                  until the next `follow` they stand where a demand for c.charge would put them
--
-- For those who wait:
--
--   reason                      when something is short
--   timed                       what is short comes back by time alone, so who would wait too long need not
--   next_change(c, b, ask)      when `ask`, which `b` binds, may fit by time alone; without it: never
--   lane(place)                 a text: only those of one lane wait for each other; without it there is one lane
--   note(c, what, ask, kept, reason)  `ask` waits from now on ('wait'), keeps a place here from now on ('short'), is
--                               the first of its lane and cannot take ('found', for that reason), waits no longer
--                               ('leave', 'granted'); `kept`: it keeps a place here
--   most                        `c.left` is wanted when somebody takes: the largest charge of its lane that waits here
--
-- `decode` and `encode` every kind has, `check` and `take`, too; the others where there is something to do.
local MAKERS = {}
local kinds = {}

-- A counter's limit as calls name it.
local function limit_of(c)
    return string.match(c.key, '^limit:([^:]*)', #prefix + 1)
end

-- The rest of its key, which a limit of the same scope has too.
local function key_of_limit(c)
    return string.match(c.key, '^limit:[^:]*(.*)$', #prefix + 1)
end

local function kind_of(number)
    local kind = kinds[number] or MAKERS[number]()

    kinds[number] = kind
    return kind
end
