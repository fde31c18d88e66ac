/* SPDX-License-Identifier: MIT */
/*
 * What a member hears of its waiters: a channel at each provider, on which whoever grants or refuses one of them says
 * its name. A message says no more than that: what has come of it is asked for. Messages may be lost, and come before
 * the answer by which a request waits.
 */
#include "base/mem.h"
#include "base/text.h"
#include "fleet/member_parts.h"

static void on_message(void *ctx, ration_text channel, ration_text payload)
{
    rn_member *const m = ctx;
    rn_member_lease *const lease = rn_member_lease_named(m, payload);

    (void)channel;
    if (lease == NULL)
        return;
    if (lease->stage == RN_OURS_ASKING)
        lease->called = true;
    if (lease->stage != RN_OURS_WAITING)
        return;
    rn_member_lease_due(m, lease, rn_member_now(m));
    m->woken(m->ctx);
}

static bool is_heard(const rn_member *m, ration_text name)
{
    const rn_member_channel *channel;

    SLIST_FOREACH (channel, &m->channels, link) {
        if (rn_text_is(name, channel->name))
            return true;
    }
    return false;
}

void rn_member_listen_at(rn_member *m, ration_text provider, const char *what, ration_text whose,
                         rn_store_message *message)
{
    rn_member_channel *channel = NULL;
    ration_text name;

    if (rn_call_channel(&m->call, provider, what, whose, &name) != RATION_OK || is_heard(m, name))
        return;
    channel = rn_mem_zalloc(&m->mem, 1, sizeof *channel);
    if (channel == NULL)
        return;
    channel->name = rn_mem_textdup(&m->mem, name);
    if (channel->name == NULL || rn_store_subscribe(m->store, name, message, m) != RATION_OK) {
        rn_mem_free(&m->mem, channel->name);
        rn_mem_free(&m->mem, channel);
        return;
    }
    SLIST_INSERT_HEAD(&m->channels, channel, link);
}

void rn_member_listen(rn_member *m)
{
    const rn_book *const book = &m->world->rules.book;

    rn_member_call_for(m, m->world);
    for (size_t i = 0; i < book->provider_count; i++)
        rn_member_listen_at(m, book->providers[i].name, "wake:", m->call.member, on_message);
}

void rn_member_channels_fini(rn_member *m)
{
    while (!SLIST_EMPTY(&m->channels)) {
        rn_member_channel *const channel = SLIST_FIRST(&m->channels);

        SLIST_REMOVE_HEAD(&m->channels, link);
        rn_mem_free(&m->mem, channel->name);
        rn_mem_free(&m->mem, channel);
    }
}
