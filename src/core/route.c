/* SPDX-License-Identifier: MIT */

/*
 * Routes: the names of a request, resolved once.
 *
 * The names are written one after the other, each behind its length, into a scratch buffer; that text is the key of the
 * cache. A route holds no capacity and may be forgotten whenever nobody uses it; what must last is in the counters.
 * Routes that nobody uses are kept in a bounded list, the least recently used goes first.
 *
 * A counter may be forgotten when it equals a fresh one and no lease, waiter or undelivered event needs it; its idle
 * routes go with it. That happens only when its limit is at `maxKeys`.
 *
 * Bounds: the names of a request together NAMES_MAX bytes, a scope key KEY_MAX bytes.
 */

#include "core/route.h"

#include <string.h>

#include "base/mem.h"
#include "core/lane.h"

#define NAME_TENANT 7 /* their places among the names */
#define NAME_CLASS 8
#define NAMES_MAX 16384
#define KEY_MAX 8192
#define IDLE_MAX 16384
#define EVICT_LOOKS 1024

int rn_routes_init(rn_routes *routes, const ration_allocator *mem, rn_book *book, rn_alarms *timers,
                   size_t *timers_needed) /* NOLINT(readability-non-const-parameter): the struct keeps it, to count */
{
    *routes = (rn_routes){.mem = mem, .book = book, .timers = timers, .timers_needed = timers_needed};
    routes->lost_at.us = RN_NEVER_LOST;
    rn_map_init(&routes->by_names, mem);
    rn_map_init(&routes->counters, mem);
    rn_circuits_init(&routes->circuits, mem, timers, timers_needed);
    rn_kept_init(&routes->kept, mem);
    TAILQ_INIT(&routes->idle);
    TAILQ_INIT(&routes->bare);
    routes->scratch = rn_mem_alloc(mem, NAMES_MAX + KEY_MAX);
    return routes->scratch == NULL ? RATION_ERR_NOMEM : RATION_OK;
}

static void route_free(rn_routes *routes, rn_route *route)
{
    for (size_t i = 0; i < route->count; i++)
        TAILQ_REMOVE(&route->links[i].counter->routes, &route->links[i], next);
    if (route->circuit != NULL)
        TAILQ_REMOVE(&route->circuit->routes, route, in_circuit);
    if (route->cached)
        rn_map_remove(&routes->by_names, &route->node);
    if (route->bare)
        TAILQ_REMOVE(&routes->bare, route, idle);
    rn_mem_free(routes->mem, route->links);
    rn_mem_free(routes->mem, route->names);
    rn_mem_free(routes->mem, route);
}

/* Whom it follows hears no more of it, and who follows it no more of this one: at the end all go, in any order. */
static void counter_unfollow(rn_counter *counter)
{
    rn_counter *leader = counter->lanes->leader;
    rn_counter *follower;

    if (leader != NULL) {
        TAILQ_REMOVE(&leader->lanes->followers, counter, in_followers);
        leader->pins--;
    }
    TAILQ_FOREACH (follower, &counter->lanes->followers, in_followers)
        follower->lanes->leader = NULL;
}

static void counter_free(rn_routes *routes, rn_counter *counter)
{
    rn_limit *limit = counter->limit;

    rn_alarm_disarm(routes->timers, &counter->wake);
    rn_alarm_disarm(routes->timers, &counter->penalty_timer);
    *routes->timers_needed -= 2;
    TAILQ_REMOVE(&limit->counters, counter, in_limit);
    limit->counter_count--;
    rn_map_remove(&routes->counters, &counter->node);
    if (counter->lanes != NULL)
        counter_unfollow(counter);
    counter->limit->kind->fini(counter);
    rn_lanes_fini(counter);
    rn_mem_free(routes->mem, counter->name);
    rn_mem_free(routes->mem, counter);
}

void rn_routes_fini(rn_routes *routes)
{
    rn_map_node *node;

    while ((node = rn_map_first(&routes->by_names)) != NULL)
        route_free(routes, (rn_route *)(void *)node);
    while (!TAILQ_EMPTY(&routes->bare))
        route_free(routes, TAILQ_FIRST(&routes->bare));
    while ((node = rn_map_first(&routes->counters)) != NULL)
        counter_free(routes, (rn_counter *)(void *)((char *)node - offsetof(rn_counter, node)));
    rn_circuits_fini(&routes->circuits);
    rn_kept_fini(&routes->kept);
    rn_map_fini(&routes->by_names);
    rn_map_fini(&routes->counters);
    rn_mem_free(routes->mem, routes->scratch);
    routes->scratch = NULL;
}

/* Names in the scratch buffer, up to NAMES_MAX bytes. */
typedef struct name_list {
    char *data;
    size_t used;
    bool full;
} name_list;

/* The names as one text, each behind its length; an absent one differs from an empty one. */
static void names_put(name_list *names, ration_text text)
{
    const uint32_t size = text.data == NULL ? UINT32_MAX : (uint32_t)text.size;
    char *at = names->data + names->used;

    if (text.data == NULL)
        text.size = 0;
    if (names->full || NAMES_MAX - names->used < sizeof size || text.size > NAMES_MAX - names->used - sizeof size) {
        names->full = true;
        return;
    }
    memcpy(at, &size, sizeof size);
    if (text.data != NULL && text.size > 0)
        memcpy(at + sizeof size, text.data, text.size);
    names->used += sizeof size + text.size;
}

static bool names_build(const ration_request *request, name_list *names)
{
    const char auth = (char)('0' + (int)request->auth);

    names_put(names, request->provider);
    names_put(names, request->account);
    names_put(names, request->target);
    names_put(names, request->credential);
    names_put(names, request->method);
    names_put(names, request->endpoint);
    names_put(names, rn_path_without_query(request->path));
    names_put(names, request->tenant);
    names_put(names, request->class_name);
    names_put(names, (ration_text){&auth, 1});
    for (size_t i = 0; i < request->var_count; i++) {
        names_put(names, request->vars[i].name);
        names_put(names, request->vars[i].value);
    }
    return !names->full;
}

static bool subject_add(rn_subject *subject, ration_text name, ration_text value)
{
    if (rn_subject_var(subject, name).data != NULL)
        return true;
    if (subject->var_count == RN_VARS_MAX)
        return false;
    subject->vars[subject->var_count++] = (ration_var){name, value};
    return true;
}

/* The most specific template that matches; of equals, the one declared first. */
static const rn_template *template_find(const rn_provider *provider, const rn_path *path, size_t *index)
{
    const size_t found = rn_template_find(provider->templates, provider->rule.endpoint_count, path);

    if (found == provider->rule.endpoint_count)
        return NULL;
    *index = found;
    return &provider->templates[found];
}

static bool subject_from_path(const rn_provider *provider, ration_text raw, rn_subject *subject,
                              const ration_defaults **endpoint)
{
    ration_text values[RN_SEGMENTS_MAX];
    rn_path path;
    size_t index = 0;

    subject->path = rn_path_without_query(raw);
    if (!rn_path_split(raw, &path))
        return false;

    const rn_template *template = template_find(provider, &path, &index);

    if (template == NULL)
        return true;
    subject->path = template->text;
    subject->dimension[RN_DIMENSION_ENDPOINT] = template->text;
    *endpoint = &provider->rule.endpoints[index].defaults;
    (void)rn_template_match(template, &path, values);
    for (size_t i = 0; i < template->count; i++) {
        if (template->segments[i].kind == RN_SEGMENT_VAR &&
            !subject_add(subject, template->segments[i].text, values[i]))
            return false;
    }
    return true;
}

static void subject_from_endpoint(const rn_provider *provider, ration_text text, rn_subject *subject,
                                  const ration_defaults **endpoint)
{
    subject->path = text;
    subject->dimension[RN_DIMENSION_ENDPOINT] = text;
    for (size_t i = 0; i < provider->rule.endpoint_count; i++) {
        if (rn_text_eq(provider->templates[i].text, text))
            *endpoint = &provider->rule.endpoints[i].defaults;
    }
}

static ration_text text_or(ration_text a, ration_text b)
{
    return a.data != NULL ? a : b;
}

/* What the request says, else its endpoint, else its provider. */
static ration_text text_or_default(ration_text given, const char *endpoint, const char *provider)
{
    return text_or(given, ration_text_of(endpoint != NULL ? endpoint : provider));
}

static bool request_is_auth(const ration_request *request, const rn_provider *provider, const ration_defaults *endpoint)
{
    if (request->auth != RATION_AUTH_UNSET)
        return request->auth == RATION_AUTH_YES;
    return (endpoint != NULL && endpoint->auth) || provider->rule.defaults.auth;
}

bool rn_subject_init(rn_subject *subject, const rn_book *book, const ration_request *request, const rn_account *account,
                     const ration_defaults **endpoint)
{
    const rn_provider *provider = account->provider;

    *subject = (rn_subject){.method = request->method};
    *endpoint = NULL;
    for (size_t i = 0; i < request->var_count; i++) {
        if (!subject_add(subject, request->vars[i].name, request->vars[i].value))
            return false;
    }
    subject->plain_count = subject->var_count;
    if (request->endpoint.data != NULL) {
        subject_from_endpoint(provider, request->endpoint, subject, endpoint);
    } else if (request->path.data != NULL && !subject_from_path(provider, request->path, subject, endpoint)) {
        return false;
    }

    subject->auth = request_is_auth(request, provider, *endpoint);
    subject->dimension[RN_DIMENSION_INSTANCE] = book->instance;
    subject->dimension[RN_DIMENSION_PROVIDER] = provider->name;
    subject->dimension[RN_DIMENSION_ACCOUNT] = account->name;
    subject->dimension[RN_DIMENSION_TARGET] = text_or(request->target, account->target);
    subject->dimension[RN_DIMENSION_CREDENTIAL] = text_or(request->credential, account->credential);
    subject->dimension[RN_DIMENSION_TENANT] = text_or_default(
        request->tenant, *endpoint != NULL ? (*endpoint)->tenant : NULL, provider->rule.defaults.tenant);
    return true;
}

static bool has_cost(const ration_defaults *defaults)
{
    return defaults != NULL && (defaults->cost > 0 || (defaults->has_cost && defaults->cost == 0));
}

int64_t rn_request_cost(const ration_request *request, const ration_defaults *endpoint, const ration_defaults *general)
{
    if (request->cost != RATION_UNSET)
        return request->cost;
    if (has_cost(endpoint))
        return endpoint->cost;
    return has_cost(general) ? general->cost : RATION_UNIT;
}

ration_ratio rn_limit_share(const rn_limit *limit, const rn_book *book, const rn_account *account,
                            const rn_subject *subject)
{
    const rn_scope *scope = limit->scope;
    ration_ratio share = account->share;

    if (rn_scope_has(scope, RN_DIMENSION_ACCOUNT))
        return share;
    for (size_t i = 0; i < book->account_count; i++) {
        const rn_account *other = &book->accounts[i];

        if (other->provider != account->provider || other->limits[limit->index] != limit)
            continue;
        if (rn_scope_has(scope, RN_DIMENSION_TARGET) &&
            !rn_text_eq(other->target, subject->dimension[RN_DIMENSION_TARGET]))
            continue;
        if (rn_scope_has(scope, RN_DIMENSION_CREDENTIAL) &&
            !rn_text_eq(other->credential, subject->dimension[RN_DIMENSION_CREDENTIAL]))
            continue;
        share = rn_ratio_min(share, other->share);
    }
    return share;
}

static bool counter_is_idle(rn_counter *counter, ration_time now)
{
    const rn_route_link *link;

    if (counter->paused || counter->pins > 0 || !TAILQ_EMPTY(&counter->holds) || counter->watcher_count > 0 ||
        rn_penalty_runs(&counter->penalty, now) || counter->dirty || counter->changed || counter->given)
        return false;
    TAILQ_FOREACH (link, &counter->routes, next) {
        if (link->route->refs > 0)
            return false;
    }
    return counter->limit->kind->is_fresh(counter, now);
}

static void idle_remove(rn_routes *routes, rn_route *route)
{
    TAILQ_REMOVE(&routes->idle, route, idle);
    routes->idle_count--;
}

/* Forget one counter of the limit that equals a fresh one. Looks at a bounded number, and at others the next time. */
static bool counter_evict(rn_routes *routes, rn_limit *limit, ration_time now)
{
    for (int looks = 0; looks < EVICT_LOOKS; looks++) {
        rn_counter *counter = TAILQ_FIRST(&limit->counters);

        if (counter == NULL)
            return false;
        if (counter_is_idle(counter, now)) {
            rn_route_link *link;

            while ((link = TAILQ_FIRST(&counter->routes)) != NULL) {
                idle_remove(routes, link->route);
                route_free(routes, link->route);
            }
            counter_free(routes, counter);
            return true;
        }
        TAILQ_REMOVE(&limit->counters, counter, in_limit);
        TAILQ_INSERT_TAIL(&limit->counters, counter, in_limit);
    }
    return false;
}

int rn_routes_prepare(const rn_routes *routes, rn_limit *limit, rn_counter *counter)
{
    *counter = (rn_counter){.limit = limit,
                            .mem = routes->mem,
                            .started_at = routes->started_at,
                            .unclean = routes->unclean,
                            .lost_at = routes->lost_at};
    counter->watch_deadline_min.us = RATION_NEVER_US;
    TAILQ_INIT(&counter->holds);
    TAILQ_INIT(&counter->watchers);
    TAILQ_INIT(&counter->parked);
    TAILQ_INIT(&counter->routes);
    rn_alarm_init(&counter->wake, RN_ALARM_WAKE);
    rn_alarm_init(&counter->penalty_timer, RN_ALARM_PENALTY);
    return rn_lanes_init(counter);
}

static int counter_enter(rn_routes *routes, rn_limit *limit, rn_counter *counter, ration_time now)
{
    int err = rn_alarms_reserve(routes->timers, *routes->timers_needed + 2);

    if (err == RATION_OK)
        err = rn_map_add(&routes->counters, &counter->node, counter->name, counter->name_size);
    if (err != RATION_OK)
        return err;

    err = limit->kind->init(counter, now);
    if (err != RATION_OK) {
        rn_map_remove(&routes->counters, &counter->node);
        return err;
    }
    rn_kept_give(&routes->kept, counter, now);
    *routes->timers_needed += 2;
    TAILQ_INSERT_TAIL(&limit->counters, counter, in_limit);
    limit->counter_count++;
    return RATION_OK;
}

static int counter_new(rn_routes *routes, ration_time now, rn_limit *limit, ration_text name, ration_ratio share,
                       rn_counter **out)
{
    rn_counter *counter = rn_mem_alloc(routes->mem, sizeof *counter);

    if (counter == NULL || rn_routes_prepare(routes, limit, counter) != RATION_OK) {
        rn_mem_free(routes->mem, counter);
        return RATION_ERR_NOMEM;
    }
    counter->share = share;
    counter->name_size = name.size;
    counter->name = rn_mem_textdup(routes->mem, name);
    if (counter->name != NULL)
        counter->key = (ration_text){counter->name + sizeof limit->uid, name.size - sizeof limit->uid};

    const int err = counter->name == NULL ? RATION_ERR_NOMEM : counter_enter(routes, limit, counter, now);

    if (err != RATION_OK) {
        rn_lanes_fini(counter);
        rn_mem_free(routes->mem, counter->name);
        rn_mem_free(routes->mem, counter);
        return err;
    }
    *out = counter;
    return RATION_OK;
}

/* One more, if there is room for it. */
static int counter_add(rn_routes *routes, ration_time now, rn_limit *limit, ration_text name, ration_ratio share,
                       rn_counter **out)
{
    const int64_t max = limit->rule->max_keys == 0 ? INT64_C(1000000) : limit->rule->max_keys;

    if (limit->counter_count >= max && !counter_evict(routes, limit, now))
        return RATION_ERR_FULL;
    return counter_new(routes, now, limit, name, share, out);
}

/* The counter of a limit for a subject: NULL where the limit does not apply; RATION_ERR_FULL at maxKeys. */
static int counter_find(rn_routes *routes, ration_time now, rn_limit *limit, const rn_account *account,
                        const rn_subject *subject, rn_counter **out)
{
    char uid[sizeof limit->uid];
    rn_builder b;

    *out = NULL;
    memcpy(uid, &limit->uid, sizeof uid);
    rn_builder_init(&b, routes->scratch + NAMES_MAX, KEY_MAX);
    rn_builder_text(&b, (ration_text){uid, sizeof uid});
    if (!rn_scope_key(limit->scope, subject, &b))
        return RATION_OK;
    if (b.full)
        return RATION_ERR_INVALID;

    rn_map_node *node = rn_map_find(&routes->counters, b.data, b.used);

    if (node != NULL) {
        *out = (rn_counter *)(void *)((char *)node - offsetof(rn_counter, node));
        return RATION_OK;
    }
    return counter_add(routes, now, limit, (ration_text){b.data, b.used},
                       rn_limit_share(limit, routes->book, account, subject), out);
}

/* The name of a counter, in the scratch buffer; absent: no key is as long. */
static ration_text counter_name(const rn_routes *routes, const rn_limit *limit, ration_text key)
{
    char uid[sizeof limit->uid];
    rn_builder b;

    memcpy(uid, &limit->uid, sizeof uid);
    rn_builder_init(&b, routes->scratch + NAMES_MAX, KEY_MAX);
    rn_builder_text(&b, (ration_text){uid, sizeof uid});
    rn_builder_text(&b, key);
    return b.full ? (ration_text){NULL, 0} : (ration_text){b.data, b.used};
}

rn_counter *rn_routes_counter(const rn_routes *routes, const rn_limit *limit, ration_text key)
{
    const ration_text name = counter_name(routes, limit, key);
    rn_map_node *node = name.data == NULL ? NULL : rn_map_find(&routes->counters, name.data, name.size);

    return node == NULL ? NULL : (rn_counter *)(void *)((char *)node - offsetof(rn_counter, node));
}

int rn_routes_wake(rn_routes *routes, ration_time now, rn_limit *limit, ration_text key, rn_counter **out)
{
    rn_counter *counter = rn_routes_counter(routes, limit, key);

    if (counter == NULL) {
        const ration_text name = counter_name(routes, limit, key);

        if (name.data == NULL || rn_map_find(&routes->kept.counters, name.data, name.size) == NULL)
            return RATION_ERR_UNKNOWN;
        return counter_add(routes, now, limit, name, rn_book_share(routes->book, limit, key), out);
    }
    *out = counter;
    return RATION_OK;
}

int rn_routes_make(rn_routes *routes, ration_time now, rn_limit *limit, ration_text key, rn_counter **out)
{
    const ration_text name = counter_name(routes, limit, key);

    /* It has been, so it is no longer than any. */
    return name.data == NULL ? RATION_ERR_NOMEM
                             : counter_new(routes, now, limit, name, rn_book_share(routes->book, limit, key), out);
}

static rn_route *route_alloc(rn_routes *routes, rn_account *account, ration_text names)
{
    rn_route *route = rn_mem_zalloc(routes->mem, 1, sizeof *route);

    if (route == NULL)
        return NULL;
    route->refs = 1; /* from now on, so that making its counters cannot evict one of them */
    route->account = account;
    route->provider = account->provider;
    route->links = rn_mem_zalloc(routes->mem, account->provider->limit_count + 1, sizeof *route->links);
    route->names = rn_mem_textdup(routes->mem, names);
    route->names_size = names.size;
    if (route->links == NULL || route->names == NULL) {
        rn_mem_free(routes->mem, route->links);
        rn_mem_free(routes->mem, route->names);
        rn_mem_free(routes->mem, route);
        return NULL;
    }
    return route;
}

/* The n-th of the names that `names_build` wrote first. */
static ration_text names_field(ration_text names, size_t n)
{
    size_t at = 0;

    for (;;) {
        uint32_t size;

        memcpy(&size, names.data + at, sizeof size);
        at += sizeof size;
        if (n == 0)
            return size == UINT32_MAX ? (ration_text){NULL, 0} : rn_text_slice(names, at, at + size);
        at += size == UINT32_MAX ? 0 : size;
        n--;
    }
}

/* A ceiling that follows an adaptive limit stands where that one does at the same key. */
static void counter_follow(rn_counter *counter, rn_counter *leader, ration_time now)
{
    counter->lanes->leader = leader;
    TAILQ_INSERT_TAIL(&leader->lanes->followers, counter, in_followers);
    leader->pins++;
    rn_share_resize(counter, now, leader->limit->kind->level(leader));
}

static void route_follow(const rn_route *route, ration_time now, rn_counter *counter)
{
    for (size_t i = 0; i < route->count && counter->lanes->leader == NULL; i++) {
        rn_counter *leader = route->links[i].counter;

        if (leader->limit->index == counter->limit->follows->index)
            counter_follow(counter, leader, now);
    }
}

void rn_routes_follow(const rn_routes *routes, ration_time now, rn_counter *counter)
{
    rn_counter *leader = counter->limit->follows == NULL || counter->lanes->leader != NULL
                             ? NULL
                             : rn_routes_counter(routes, counter->limit->follows, counter->key);

    if (leader != NULL)
        counter_follow(counter, leader, now);
}

static void route_follows(const rn_route *route, ration_time now)
{
    for (size_t i = 0; i < route->count; i++) {
        rn_counter *counter = route->links[i].counter;

        if (counter->limit->follows != NULL && counter->lanes->leader == NULL)
            route_follow(route, now, counter);
    }
}

static int route_link(rn_routes *routes, ration_time now, rn_route *route, const rn_subject *subject,
                      const rn_limit **full)
{
    for (size_t i = 0; i < route->provider->limit_count; i++) {
        rn_limit *limit = route->account->limits[i];
        rn_counter *counter;
        const int err = counter_find(routes, now, limit, route->account, subject, &counter);

        if (err == RATION_ERR_FULL)
            *full = limit;
        if (err != RATION_OK)
            return err;
        if (counter == NULL)
            continue;
        route->links[route->count] = (rn_route_link){.route = route, .counter = counter};
        if (limit->kind->lanes != RN_LANES_ONE) {
            route->has_lanes = true;
            route->links[route->count].lane = limit->kind->lane_of(limit, route->tenant, route->class_name);
        }
        route->has_shadows = route->has_shadows || limit->rule->enforce != RATION_ENFORCE_ON;
        TAILQ_INSERT_TAIL(&counter->routes, &route->links[route->count], next);
        route->count++;
    }
    return RATION_OK;
}

static int route_circuit(rn_routes *routes, ration_time now, rn_route *route, const rn_subject *subject)
{
    rn_builder key;

    rn_builder_init(&key, routes->scratch + NAMES_MAX, KEY_MAX);

    const int err = rn_circuits_find(&routes->circuits, now, route->account, subject, &key, &route->circuit);

    if (err != RATION_OK || route->circuit == NULL)
        return err;
    /* One that has just been made may have been open in an earlier life. */
    if (routes->kept.circuits.size > 0 && TAILQ_EMPTY(&route->circuit->routes)) {
        rn_kept_give_circuit(&routes->kept, route->circuit, now);
        rn_alarm_arm(routes->timers, &route->circuit->alarm, rn_breaker_next(&route->circuit->breaker));
    }
    TAILQ_INSERT_TAIL(&route->circuit->routes, route, in_circuit);
    return RATION_OK;
}

/* What a request's names lead to. On error the route is the caller's to free. */
static int route_fill(rn_routes *routes, ration_time now, const ration_request *request, rn_route *route,
                      const rn_limit **full)
{
    const ration_defaults *endpoint;
    const ration_defaults *general = &route->provider->rule.defaults;
    const ration_text copy = {route->names, route->names_size};
    rn_subject subject;

    if (!rn_subject_init(&subject, routes->book, request, route->account, &endpoint))
        return RATION_ERR_INVALID;
    route->endpoint = endpoint;
    route->tenant =
        text_or_default(names_field(copy, NAME_TENANT), endpoint != NULL ? endpoint->tenant : NULL, general->tenant);
    route->class_name = text_or_default(names_field(copy, NAME_CLASS), endpoint != NULL ? endpoint->class_name : NULL,
                                        general->class_name);

    route->weight = rn_book_weight(routes->book, route->account, route->tenant);

    int err = route_circuit(routes, now, route, &subject);

    if (err == RATION_OK)
        err = route_link(routes, now, route, &subject, full);
    if (err != RATION_OK)
        return err;
    route_follows(route, now);
    err = rn_map_add(&routes->by_names, &route->node, route->names, route->names_size);
    route->cached = err == RATION_OK;
    return err;
}

static rn_account *account_find(const rn_book *book, const ration_request *request, ration_reason *reason)
{
    rn_account *account = rn_book_account(book, request->account);
    const rn_provider *provider = rn_book_provider(book, request->provider);

    if (request->provider.data != NULL && provider == NULL) {
        *reason = RATION_REASON_UNKNOWN_PROVIDER;
    } else if (account == NULL || (provider != NULL && account->provider != provider)) {
        *reason = RATION_REASON_UNKNOWN_ACCOUNT;
    } else {
        return account;
    }
    return NULL;
}

int rn_routes_find(rn_routes *routes, ration_time now, const ration_request *request, rn_route **out,
                   ration_reason *reason, const rn_limit **limit)
{
    name_list names = {.data = routes->scratch};

    *out = NULL;
    *reason = RATION_REASON_NONE;
    *limit = NULL;
    if (!names_build(request, &names))
        return RATION_ERR_INVALID;

    rn_map_node *node = rn_map_find(&routes->by_names, names.data, names.used);

    if (node != NULL) {
        *out = (rn_route *)(void *)node;
        if ((*out)->refs++ == 0)
            idle_remove(routes, *out);
        return RATION_OK;
    }

    rn_account *account = account_find(routes->book, request, reason);

    if (account == NULL)
        return RATION_OK;

    rn_route *route = route_alloc(routes, account, (ration_text){names.data, names.used});

    if (route == NULL)
        return RATION_ERR_NOMEM;

    const int err = route_fill(routes, now, request, route, limit);

    if (err == RATION_OK) {
        *out = route;
        return RATION_OK;
    }
    route_free(routes, route);
    if (err != RATION_ERR_FULL)
        return err;
    *reason = RATION_REASON_TOO_MANY_KEYS;
    return RATION_OK;
}

void rn_route_release(rn_routes *routes, rn_route *route)
{
    if (--route->refs > 0)
        return;
    if (route->bare) {
        route_free(routes, route);
        return;
    }
    TAILQ_INSERT_TAIL(&routes->idle, route, idle);
    routes->idle_count++;
    if (routes->idle_count > IDLE_MAX) {
        rn_route *oldest = TAILQ_FIRST(&routes->idle);

        idle_remove(routes, oldest);
        route_free(routes, oldest);
    }
}

/* ---- for a reload ---- */

/* Take the next of the names that `names_build` wrote. */
static ration_text names_next(const rn_route *route, size_t *at)
{
    uint32_t size;

    memcpy(&size, route->names + *at, sizeof size);
    *at += sizeof size;
    if (size == UINT32_MAX)
        return (ration_text){NULL, 0};
    *at += size;
    return (ration_text){route->names + *at - size, size};
}

void rn_route_request(const rn_route *route, ration_request *out, ration_var *vars)
{
    ration_text *const texts[] = {&out->provider, &out->account, &out->target, &out->credential, &out->method,
                                  &out->endpoint, &out->path,    &out->tenant, &out->class_name};
    size_t at = 0;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        *texts[i] = names_next(route, &at);

    const ration_text auth = names_next(route, &at);

    out->auth = auth.data == NULL ? RATION_AUTH_UNSET : (ration_auth)(auth.data[0] - '0');
    out->vars = vars;
    for (out->var_count = 0; at < route->names_size; out->var_count++) {
        vars[out->var_count].name = names_next(route, &at);
        vars[out->var_count].value = names_next(route, &at);
    }
}

/* A copy at `*to`, which moves on. */
static ration_text text_into(char **to, ration_text text)
{
    const ration_text copy = {text.data == NULL ? NULL : *to, text.size};

    if (text.data != NULL && text.size > 0)
        memcpy(*to, text.data, text.size);
    *to += text.size;
    return copy;
}

int rn_routes_bare(rn_routes *routes, rn_account *account, rn_circuit *circuit, const rn_route *like, rn_route **out)
{
    rn_route *route = rn_mem_zalloc(routes->mem, 1, sizeof *route);

    if (route == NULL)
        return RATION_ERR_NOMEM;
    route->names = rn_mem_alloc(routes->mem, like->tenant.size + like->class_name.size + 1);
    if (route->names == NULL) {
        rn_mem_free(routes->mem, route);
        return RATION_ERR_NOMEM;
    }

    char *to = route->names;

    route->bare = true;
    route->account = account;
    route->provider = account->provider;
    route->tenant = text_into(&to, like->tenant);
    route->class_name = text_into(&to, like->class_name);
    route->has_lanes = like->has_lanes;
    route->circuit = circuit;
    TAILQ_INSERT_TAIL(&routes->bare, route, idle);
    if (circuit != NULL)
        TAILQ_INSERT_TAIL(&circuit->routes, route, in_circuit);
    *out = route;
    return RATION_OK;
}
