-- SPDX-License-Identifier: MIT
--
-- What a call brings that concerns no counter: with names, if there is anything.
for name, value in pairs(values[5] or {}) do
    call[name] = value
end
