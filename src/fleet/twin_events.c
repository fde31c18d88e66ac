/* SPDX-License-Identifier: MIT */
/*
 * Two tellings of the same happenings.
 *
 * The engine tells a thing when its time has come, the store at the next call at the provider. So each side's tale is
 * kept until the other's has come so far; for one subject both must tell the same in the same order. What the store
 * tells the engine has always told before, but not the other way round.
 */
#include "fleet/twin_events.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/units.h"

void rn_twin_events_init(rn_twin_events *events, const ration_allocator *mem)
{
    *events = (rn_twin_events){.mem = mem};
}

static void event_free(const rn_twin_events *events, rn_twin_event *event)
{
    rn_mem_free(events->mem, event->subject);
    rn_mem_free(events->mem, event->text);
}

static void tale_free(const rn_twin_events *events, rn_twin_tale *tale)
{
    for (size_t i = 0; i < tale->count; i++)
        event_free(events, &tale->events[i]);
    rn_mem_free(events->mem, tale->events);
    *tale = (rn_twin_tale){0};
}

void rn_twin_events_fini(rn_twin_events *events)
{
    if (events->mem == NULL)
        return;
    tale_free(events, &events->said);
    tale_free(events, &events->told);
}

static void tale_add(rn_twin_events *events, rn_twin_tale *tale, const char *subject, const char *text)
{
    if (tale->count == tale->capacity) {
        const size_t capacity = 2 * tale->capacity + 8;
        rn_twin_event *const grown = rn_mem_resize(events->mem, tale->events, capacity, sizeof *grown);

        if (grown == NULL) {
            events->err = RATION_ERR_NOMEM;
            return;
        }
        tale->events = grown;
        tale->capacity = capacity;
    }

    const rn_twin_event event = {rn_mem_strdup(events->mem, subject), rn_mem_strdup(events->mem, text)};

    tale->events[tale->count++] = event;
    if (event.subject == NULL || event.text == NULL) {
        event_free(events, &tale->events[--tale->count]);
        events->err = RATION_ERR_NOMEM;
    }
}

static void tale_drop(const rn_twin_events *events, rn_twin_tale *tale, size_t index)
{
    event_free(events, &tale->events[index]);
    memmove(&tale->events[index], &tale->events[index + 1], (tale->count - index - 1) * sizeof tale->events[0]);
    tale->count--;
}

/* ---- as text: names as they stand in keys ---- */

/* One happening in words. */
typedef struct happening {
    rn_builder subject, text;
    char subject_room[400], text_room[200];
} happening;

static void happening_init(happening *h)
{
    rn_builder_init(&h->subject, h->subject_room, sizeof h->subject_room);
    rn_builder_init(&h->text, h->text_room, sizeof h->text_room);
}

static void say_limit(happening *h, ration_text limit, ration_text key, int64_t before, int64_t value)
{
    rn_builder_str(&h->subject, "limit ");
    rn_builder_text(&h->subject, limit);
    rn_builder_str(&h->subject, " key ");
    rn_builder_text(&h->subject, key);
    rn_builder_str(&h->text, "from ");
    rn_builder_int(&h->text, before);
    rn_builder_str(&h->text, " to ");
    rn_builder_int(&h->text, value);
}

static void say_breaker(happening *h, ration_text key, int64_t state, ration_time retry_at)
{
    static const char *const states[] = {
        [RATION_BREAKER_CLOSED] = "closed", [RATION_BREAKER_OPEN] = "open", [RATION_BREAKER_HALF_OPEN] = "half-open"};

    rn_builder_str(&h->subject, "breaker ");
    rn_builder_text(&h->subject, key);
    rn_builder_str(&h->text, state >= 0 && state <= RATION_BREAKER_HALF_OPEN ? states[state] : "in no state");
    rn_builder_str(&h->text, " retry ");
    if (rn_time_known(retry_at)) {
        rn_builder_int(&h->text, retry_at.us);
    } else {
        rn_builder_str(&h->text, "unknown");
    }
}

static void say_cause(happening *h, ration_time at, ration_text cause)
{
    rn_builder_str(&h->text, " at ");
    rn_builder_int(&h->text, at.us);
    rn_builder_str(&h->text, " us: ");
    rn_builder_text(&h->text, cause);
}

void rn_twin_events_said(rn_twin_events *events, const ration_event *event)
{
    happening said;
    rn_pack name;

    happening_init(&said);
    if (event->type == RATION_EVENT_LIMIT) {
        rn_pack_init(&name, events->mem);
        rn_call_name(&name, ration_text_of(event->decision.limit));
        say_limit(&said, (ration_text){name.data, name.size}, event->decision.key, event->before, event->value);
        rn_pack_fini(&name);
    } else if (event->type == RATION_EVENT_BREAKER) {
        say_breaker(&said, event->decision.key, event->breaker, event->decision.retry_at);
    } else {
        return;
    }
    say_cause(&said, event->at, ration_text_of(event->cause));
    tale_add(events, &events->said, said.subject_room, said.text_room);
}

/* The name and the scope key in a counter's key: "limit:NAME:KEY" or "limit:NAME@ACCOUNT:KEY". */
static bool key_split(ration_text whole, ration_text *name, ration_text *key)
{
    static const char begin[] = "limit:";
    size_t at = 0;

    if (whole.size < sizeof begin - 1 || memcmp(whole.data, begin, sizeof begin - 1) != 0)
        return false;

    const ration_text rest = rn_text_slice(whole, sizeof begin - 1, whole.size);

    if (!rn_text_find(rest, ration_text_of(":"), &at))
        return false;
    *key = rn_text_slice(rest, at + 1, rest.size);
    *name = rn_text_slice(rest, 0, at);
    if (rn_text_find(*name, ration_text_of("@"), &at))
        *name = rn_text_slice(*name, 0, at);
    return true;
}

int rn_twin_events_told(rn_twin_events *events, const rn_fleet_event *event)
{
    happening told;
    ration_text name;
    ration_text key;

    happening_init(&told);
    if (rn_text_is(event->what, "limit") && key_split(event->key, &name, &key)) {
        say_limit(&told, name, key, event->before, event->value);
    } else if (rn_text_is(event->what, "breaker")) {
        say_breaker(&told, event->key, event->before, ration_time_of(event->value));
    } else if (rn_text_is(event->what, "health")) {
        return RATION_OK; /* of many that were due the scripts ask for the last */
    } else {
        return RATION_ERR_IO;
    }
    say_cause(&told, event->at, event->cause);
    tale_add(events, &events->told, told.subject_room, told.text_room);
    return events->err;
}

int rn_twin_events_add(rn_twin_events *events, bool by_store, ration_text provider, const char *text)
{
    char subject[400];
    rn_builder named;

    rn_builder_init(&named, subject, sizeof subject);
    rn_builder_str(&named, "provider ");
    rn_builder_text(&named, provider);
    tale_add(events, by_store ? &events->told : &events->said, subject, text);
    return events->err;
}

/* ---- compared ---- */

/* The first of that subject; `count`: there is none. */
static size_t tale_find(const rn_twin_tale *tale, const char *subject)
{
    size_t i = 0;

    while (i < tale->count && strcmp(tale->events[i].subject, subject) != 0)
        i++;
    return i;
}

bool rn_twin_events_agree(rn_twin_events *events, bool all, size_t *compared, char *text, size_t size)
{
    rn_twin_tale *const said = &events->said;
    rn_twin_tale *const told = &events->told;

    while (told->count > 0) {
        const rn_twin_event *const store = &told->events[0];
        const size_t at = tale_find(said, store->subject);

        if (at == said->count || strcmp(said->events[at].text, store->text) != 0) {
            (void)snprintf(text, size, "%s: core: %s; store: %s", store->subject,
                           at < said->count ? said->events[at].text : "nothing happened", store->text);
            return false;
        }
        tale_drop(events, told, 0);
        tale_drop(events, said, at);
        ++*compared;
    }
    if (all && said->count > 0) {
        (void)snprintf(text, size, "%s: core: %s; store: nothing happened", said->events[0].subject,
                       said->events[0].text);
        return false;
    }
    return true;
}
