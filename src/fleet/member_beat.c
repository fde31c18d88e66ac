/* SPDX-License-Identifier: MIT */
/*
 * Heart-beats: once a second a member shows that it is alive, with a hash of its config, and learns who else is.
 *
 * Who is alive decides nothing here; waiters have their members' signs of life at their provider. So a beat that is
 * lost is not repeated: the next one follows.
 */
#include "fleet/member_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

#define BEAT_US INT64_C(1000000)

static void text_take(const redisReply *from, char *to, size_t size)
{
    const size_t length = from->type == REDIS_REPLY_STRING ? (size_t)from->len : 0;
    const ration_text text = {from->str, length < size ? length : size - 1};

    if (text.size > 0)
        memcpy(to, text.data, text.size);
    to[text.size] = '\0';
}

static bool peer_read(const rn_member *m, const redisReply *row, rn_member_peer *out)
{
    if (row->type != REDIS_REPLY_ARRAY || row->elements != 4 || row->element[3]->type != REDIS_REPLY_INTEGER)
        return false;
    text_take(row->element[0], out->id, sizeof out->id);
    text_take(row->element[1], out->instance, sizeof out->instance);
    text_take(row->element[2], out->config, sizeof out->config);
    out->seen.heard_us = row->element[3]->integer;
    out->seen.self = strcmp(out->id, m->id) == 0;
    return true;
}

static void peers_take(rn_member *m, const redisReply *rows)
{
    rn_member_peer *const peers = rn_mem_zalloc(&m->mem, rows->elements + 1, sizeof *peers);
    rn_member_seen *const seen = rn_mem_zalloc(&m->mem, rows->elements + 1, sizeof *seen);
    size_t count = 0;

    if (peers == NULL || seen == NULL) {
        rn_mem_free(&m->mem, peers);
        rn_mem_free(&m->mem, seen);
        return;
    }
    for (size_t i = 0; i < rows->elements; i++) {
        rn_member_peer *const peer = &peers[count];

        if (!peer_read(m, rows->element[i], peer))
            continue;
        peer->seen.id = peer->id;
        peer->seen.instance = peer->instance;
        peer->seen.config = peer->config;
        seen[count++] = peer->seen;
    }
    rn_mem_free(&m->mem, m->peers);
    rn_mem_free(&m->mem, m->seen);
    m->peers = peers;
    m->seen = seen;
    m->peer_count = count;
}

static void beat(rn_member *m);

static void on_beaten(void *ctx, int err, const redisReply *reply, const char *text)
{
    rn_member *const m = ctx;
    const ration_time now = rn_member_now(m);

    m->beating = false;
    if (m->leaves == RN_LEAVES_SOON)
        beat(m);
    rn_member_leave_look(m);
    if (err != RATION_OK && m->store != NULL && rn_member_lacks_salt(m))
        (void)snprintf(m->last_error, sizeof m->last_error, "%s", text != NULL ? text : "");
    if (err != RATION_OK || m->store == NULL || !rn_answer_is(reply))
        return;
    m->ahead_us = rn_sub(rn_answer_at(reply).us, now.us);
    rn_member_times_add(&m->times[RN_SCRIPT_BEAT], rn_sub(now.us, m->beat_sent_at.us));
    peers_take(m, rn_answer_rest(reply));
    rn_member_salt_take(m, rn_answer_salt(reply));
}

static void beat(rn_member *m)
{
    const rn_call_beating beat = {.member = ration_text_of(m->id),
                                  .instance = ration_text_of(m->instance),
                                  .config = ration_text_of(m->config),
                                  .salt = rn_member_salt_beat(m),
                                  .leaves = m->leaves != RN_LEAVES_NOT};
    ration_text keys[RN_CALL_KEYS_MAX];

    rn_member_call_for(m, m->world);
    if (m->beating || rn_store_state_of(m->store) == RN_STORE_DOWN || rn_call_beat(&m->call, &beat) != RATION_OK)
        return;
    rn_call_keys(&m->call, keys);
    m->beat_sent_at = rn_member_now(m);
    if (m->leaves == RN_LEAVES_SOON)
        m->leaves = RN_LEAVES_TOLD;
    m->beating = rn_store_run(m->store,
                              &(rn_store_script){.name = RN_SCRIPT_BEAT,
                                                 .keys = keys,
                                                 .key_count = m->call.key_count,
                                                 .argument = {m->call.argument.data, m->call.argument.size}},
                              on_beaten, m) == RATION_OK;
}

static void on_beat(void *user, ration_time now)
{
    rn_member *const m = user;

    beat(m);
    rn_member_circuits_advance(m);
    rn_member_figures_beat(m);
    (void)rn_timer_set(&m->beat, rn_time_add(now, BEAT_US));
}

void rn_member_beat_init(rn_member *m)
{
    rn_timer_init(&m->beat, m->loop, on_beat, m);
}

void rn_member_beat_now(rn_member *m)
{
    beat(m);
}

int rn_member_beat_start(rn_member *m)
{
    return rn_timer_set(&m->beat, rn_member_now(m));
}

void rn_member_beat_fini(rn_member *m)
{
    rn_timer_stop(&m->beat);
    rn_mem_free(&m->mem, m->peers);
    rn_mem_free(&m->mem, m->seen);
}

void rn_member_beat_leave(rn_member *m)
{
    rn_timer_stop(&m->beat);
    m->leaves = RN_LEAVES_SOON;
    beat(m);
}
