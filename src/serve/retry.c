/* SPDX-License-Identifier: MIT */
/*
 * The one question that a failed attempt asks: once more?
 *
 * What may be done twice follows from what is known of the first time. A "too many" says that nothing was done, and
 * without a connection nothing was sent: then every request may go again. A provider that fails, or says nothing, may
 * have done all of it: then only what does no more harm twice than once.
 *
 * The pause has a part that differs between calls, so that those which failed together do not come back together; it
 * comes from the call's number and from nothing else, so the same calls pause the same way.
 *
 * Invariants: no retry is due at or behind the deadline, none before the instant that the provider has named.
 */
#include "serve/retry.h"

#include "base/text.h"
#include "base/units.h"

#define PAUSE_FIRST_US INT64_C(500000)
#define PAUSE_MAX_US INT64_C(8000000)
#define PARTS 1024

const char *rn_retry_verdict_name(rn_retry_verdict verdict)
{
    static const char *const names[RN_RETRY_VERDICTS] = {"again", "off",    "draining", "spent",  "unsafe",
                                                         "body",  "answer", "deadline", "refused"};

    return names[verdict];
}

/* splitmix64: every bit of the seed moves every bit of the result. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

int64_t rn_retry_pause(int64_t attempts, uint64_t seed)
{
    int64_t whole_us = PAUSE_FIRST_US;

    for (int64_t i = 1; i < attempts && whole_us < PAUSE_MAX_US; i++)
        whole_us *= 2;
    whole_us = rn_min(whole_us, PAUSE_MAX_US);

    const int64_t part = (int64_t)(mix(seed ^ ((uint64_t)attempts << 56)) % (PARTS + 1));
    return whole_us / 2 + whole_us / 2 * part / PARTS;
}

static bool is_safe(const rn_retry_facts *facts)
{
    switch (facts->cause) {
    case RN_RETRY_THROTTLED:
    case RN_RETRY_UNSENT:
        return true;
    case RN_RETRY_TRANSIENT:
    case RN_RETRY_BROKEN:
        return facts->idempotent;
    }
    return false;
}

rn_retry_verdict rn_retry_decide(const rn_retry_facts *facts, ration_time *at)
{
    if (facts->retries == 0)
        return RN_RETRY_OFF;
    if (facts->draining)
        return RN_RETRY_DRAINING;
    if (facts->attempts > facts->retries)
        return RN_RETRY_SPENT;
    if (!is_safe(facts))
        return RN_RETRY_UNSAFE;
    if (!facts->kept)
        return RN_RETRY_BODY;

    const bool named = rn_time_known(facts->after);
    ration_time earliest = facts->now;
    if (facts->cause != RN_RETRY_THROTTLED)
        earliest = rn_time_add(facts->now, rn_retry_pause(facts->attempts, facts->seed));
    const ration_time free_at = named ? rn_time_max(earliest, facts->after) : earliest;
    if (!rn_time_before(free_at, facts->deadline))
        return RN_RETRY_LATE;
    *at = facts->cause == RN_RETRY_THROTTLED ? facts->now : free_at;
    return RN_RETRY_AGAIN;
}

bool rn_request_is_idempotent(const rn_http_head *head)
{
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};

    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (rn_text_is(head->method, methods[i]))
            return true;
    }
    return rn_http_count(head->fields, "Idempotency-Key") > 0;
}

int64_t rn_retries_allowed(const rn_provider *provider, size_t endpoint, const rn_account *account)
{
    const int64_t own = endpoint != SIZE_MAX ? provider->endpoint_retries[endpoint] : RATION_UNSET;

    if (own == RATION_UNSET && account->retries == RATION_UNSET)
        return provider->retries;
    if (own == RATION_UNSET || account->retries == RATION_UNSET)
        return own == RATION_UNSET ? account->retries : own;
    return rn_min(own, account->retries);
}
