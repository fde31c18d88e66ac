-- SPDX-License-Identifier: MIT
--
-- The end of the quick paths, put into each of them where it is named: the head, where it has something to tell, as
-- store.lua writes it. `told`: it has, whatever the clock says.
        if told or now - seen >= 1000 or ends - ends_were >= DAY then
            local head = pack(now, grants, first, ends, kept, false, false, 0, wake, circuits)
            local was, will = ends_were > kept and ends_were or kept, ends > kept and ends or kept

            was, will = (seen > was and seen or was) + 2 * DAY, (now > will and now or will) + 2 * DAY
            will = will - will % GRAIN
            if lasting then
                call('SET', keys[1], head)
            elseif was - was % GRAIN == will then
                call('SET', keys[1], head, 'KEEPTTL')
            else
                will = will + 2 * GRAIN
                call('SET', keys[1], head, 'PXAT', (will - will % 1000) / 1000 + 1)
            end
        end
