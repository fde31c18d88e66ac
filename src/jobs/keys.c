/* SPDX-License-Identifier: MIT */
/*
 * Which limits bind a job's calls, and at which keys.
 *
 * A job is asked about as a call is: names resolved, template found, key made, by the functions of core that do it for
 * calls. Variables of its path that only its children know stand in the key as {name}, so children of all jobs have
 * one key there, which stands for each of theirs. Where it has all of the path's open variables, each child is alone
 * at its own; else all of them may meet at one.
 *
 * A child may also meet a job that names its variable: {org} is 7 for one of them. So whoever uses an open key uses
 * the narrower ones too that it is a pattern of. To find these, and the keys that a counter belongs to, dimensions are
 * replaced by {name} as in each set of open ones that occurs in the limit, which are few, and the text looked up: no
 * key is ever compared with all patterns.
 *
 * Bounds: a key has at most KEY_MAX bytes, as in core, where a call with a longer one is refused as invalid.
 */
#include "jobs/keys.h"

#include <string.h>

#include "base/mem.h"
#include "core/book.h"
#include "core/route.h"

#define KEY_MAX 8192
#define OPEN_MAX 64 /* dimensions that can be open */

static int groups_make(rn_plan_keys *keys)
{
    const rn_book *book = keys->book;
    uint32_t number = 0;

    keys->groups = rn_arena_zalloc(&keys->arena, book->provider_count, sizeof(rn_plan_group *));
    for (size_t i = 0; keys->groups != NULL && i < book->provider_count; i++) {
        const rn_provider *provider = &book->providers[i];

        keys->limits_max = provider->limit_count > keys->limits_max ? provider->limit_count : keys->limits_max;
        keys->groups[i] = rn_arena_zalloc(&keys->arena, provider->limit_count, sizeof(rn_plan_group));
        if (keys->groups[i] == NULL)
            return RATION_ERR_NOMEM;
        for (size_t k = 0; k < provider->limit_count; k++) {
            keys->groups[i][k] = (rn_plan_group){.limit = provider->limits[k], .number = number};
            number++;
            SLIST_INIT(&keys->groups[i][k].opens);
        }
    }
    return keys->groups != NULL ? RATION_OK : RATION_ERR_NOMEM;
}

int rn_plan_keys_init(rn_plan_keys *keys, const ration_allocator *mem, const ration_rules *rules)
{
    rn_book *book;

    *keys = (rn_plan_keys){.mem = mem};
    rn_arena_init(&keys->arena, mem);
    rn_map_init(&keys->by_name, mem);
    STAILQ_INIT(&keys->all);
    keys->scratch = rn_arena_zalloc(&keys->arena, KEY_MAX, 1);
    book = rn_arena_zalloc(&keys->arena, 1, sizeof *book);
    if (keys->scratch == NULL || book == NULL || rn_book_init(book, mem, rules, NULL) != RATION_OK)
        return RATION_ERR_NOMEM;
    keys->book = book;
    return groups_make(keys);
}

ration_ratio rn_plan_keys_reserve(const rn_plan_keys *keys)
{
    return keys->book->reserve;
}

void rn_plan_keys_fini(rn_plan_keys *keys)
{
    rn_plan_key *key;

    STAILQ_FOREACH (key, &keys->all, next)
        rn_mem_free(keys->mem, key->units);
    if (keys->book != NULL)
        rn_book_fini(keys->book);
    rn_map_fini(&keys->by_name);
    rn_arena_fini(&keys->arena);
}

static rn_plan_key *key_of(rn_map_node *node)
{
    return (rn_plan_key *)(void *)node;
}

/* Begin a name of the map in the scratch buffer: the group's number, and the key to follow. */
static void name_begin(const rn_plan_keys *keys, const rn_plan_group *group, rn_builder *b)
{
    char number[sizeof group->number];

    memcpy(number, &group->number, sizeof number);
    rn_builder_init(b, keys->scratch, KEY_MAX);
    rn_builder_text(b, (ration_text){number, sizeof number});
}

/* The variable at a key's dimension, left open: "name={name}". */
static void open_write(rn_builder *b, ration_text name)
{
    rn_builder_key(b, name);
    rn_builder_str(b, "={");
    rn_builder_key(b, name);
    rn_builder_char(b, '}');
}

/* The key of a limit with the dimensions of `mask` left open, as a name of the map. */
static bool name_opened(const rn_plan_keys *keys, const rn_plan_group *group, ration_text key, uint64_t mask,
                        rn_builder *b)
{
    const rn_scope *scope = group->limit->scope;

    name_begin(keys, group, b);
    for (size_t i = 0; i < scope->count; i++) {
        size_t end = key.size;
        const bool more = rn_text_find(key, ration_text_of("/"), &end);

        rn_builder_str(b, i > 0 ? "/" : "");
        if (i < OPEN_MAX && (mask >> i & 1) != 0) {
            open_write(b, scope->dimensions[i].name);
        } else {
            rn_builder_text(b, rn_text_slice(key, 0, end));
        }
        key = more ? rn_text_slice(key, end + 1, key.size) : (ration_text){"", 0};
    }
    return !b->full;
}

static rn_plan_key *key_opened(rn_plan_keys *keys, const rn_plan_group *group, ration_text key, uint64_t mask)
{
    rn_builder b;

    if (!name_opened(keys, group, key, mask, &b))
        return NULL;
    return key_of(rn_map_find(&keys->by_name, b.data, b.used));
}

/* A job's call with its names resolved. */
typedef struct asked {
    const rn_account *account;
    rn_subject subject;
    const ration_defaults *endpoint;
    uint64_t open;     /* a bit for each of the subject's variables */
    size_t open_count; /* variables of the path that only children know */
    int64_t cost;
} asked;

_Static_assert(RN_VARS_MAX <= 64, "one bit for each variable of a subject");

static bool is_open(ration_text value)
{
    return value.size > 2 && value.data[0] == '{' && value.data[value.size - 1] == '}';
}

/* Whatever a job calls an open variable, the key has the endpoint's name for it. */
static int variables_open(rn_plan_keys *keys, ration_text path, asked *a)
{
    for (size_t i = 0; i < a->subject.var_count; i++) {
        ration_var *var = &a->subject.vars[i];

        if (!is_open(var->value))
            continue;

        const size_t size = var->name.size + 3;
        char *text = rn_arena_zalloc(&keys->arena, size, 1);
        rn_builder b;

        if (text == NULL)
            return RATION_ERR_NOMEM;
        rn_builder_init(&b, text, size);
        rn_builder_char(&b, '{');
        rn_builder_text(&b, var->name);
        rn_builder_char(&b, '}');
        var->value = (ration_text){b.data, b.used};
        a->open |= UINT64_C(1) << i;
    }
    for (size_t i = 1; i < path.size; i++)
        a->open_count += path.data[i - 1] == '/' && path.data[i] == '{';
    return RATION_OK;
}

/* Which dimensions of the scope are open, and whether they are all that the path has. */
static uint64_t scope_open(const rn_scope *scope, const asked *a, bool *apart)
{
    uint64_t mask = 0;
    size_t count = 0;

    for (size_t i = 0; i < scope->count && i < OPEN_MAX; i++) {
        for (size_t k = 0; k < a->subject.var_count && scope->dimensions[i].kind == RN_DIMENSION_VAR; k++) {
            if ((a->open >> k & 1) == 0 || !rn_text_eq(a->subject.vars[k].name, scope->dimensions[i].name))
                continue;
            mask |= UINT64_C(1) << i;
            count++;
        }
    }
    *apart = count > 0 && count == a->open_count;
    return mask;
}

static int open_add(rn_plan_keys *keys, rn_plan_group *group, uint64_t mask)
{
    rn_open *open;

    SLIST_FOREACH (open, &group->opens, next) {
        if (open->mask == mask)
            return RATION_OK;
    }
    open = rn_arena_zalloc(&keys->arena, 1, sizeof *open);
    if (open == NULL)
        return RATION_ERR_NOMEM;
    open->mask = mask;
    SLIST_INSERT_HEAD(&group->opens, open, next);
    return RATION_OK;
}

/* The key whose name is in the scratch buffer, new. */
static int key_add(rn_plan_keys *keys, const rn_limit *limit, const asked *a, uint64_t mask, const rn_builder *b,
                   rn_plan_key **out)
{
    rn_plan_group *group = &keys->groups[a->account->provider->index][limit->index];
    const size_t prefix = sizeof group->number;
    rn_plan_key *key = rn_arena_zalloc(&keys->arena, 1, sizeof *key);
    char *name = rn_arena_textdup(&keys->arena, (ration_text){b->data, b->used});

    if (key == NULL || name == NULL || open_add(keys, group, mask) != RATION_OK)
        return RATION_ERR_NOMEM;
    key->limit = limit;
    key->group = group;
    key->key = (ration_text){name + prefix, b->used - prefix};
    key->name = (rn_scope_name){.provider = limit->provider,
                                .limit = limit->rule->name,
                                .account = a->account->name.data,
                                .key = name + prefix};
    key->share = rn_limit_share(limit, keys->book, a->account, &a->subject);
    key->open = mask;
    key->place = limit->rule->kind == RATION_KIND_QUOTA ? keys->scope_count : keys->rate_count;
    SLIST_INIT(&key->narrower);

    const int err = rn_map_add(&keys->by_name, &key->node, name, b->used);

    if (err != RATION_OK)
        return err;
    STAILQ_INSERT_TAIL(&keys->all, key, next);
    *(limit->rule->kind == RATION_KIND_QUOTA ? &keys->scope_count : &keys->rate_count) += 1;
    *out = key;
    return RATION_OK;
}

/* Quotas and rates bind how often a job can run; what only watches does not, nor what counts calls in flight. */
static bool is_planned(const rn_limit *limit)
{
    return (limit->rule->kind == RATION_KIND_QUOTA || limit->rule->kind == RATION_KIND_RATE) &&
           limit->rule->enforce == RATION_ENFORCE_ON;
}

int rn_plan_keys_of(rn_plan_keys *keys, size_t account, const ration_request *request, rn_plan_call *out, size_t *count)
{
    asked a = {.account = &keys->book->accounts[account]};

    *count = 0;
    if (!rn_subject_init(&a.subject, keys->book, request, a.account, &a.endpoint))
        return RATION_OK;
    a.cost = rn_request_cost(request, a.endpoint, &a.account->provider->rule.defaults);

    int err = variables_open(keys, request->path, &a);

    for (size_t i = 0; i < a.account->provider->limit_count && err == RATION_OK; i++) {
        const rn_limit *limit = a.account->limits[i];
        const rn_plan_group *group = &keys->groups[a.account->provider->index][i];
        const int64_t charge = limit->rule->counts == RATION_COUNTS_COST ? a.cost : RATION_UNIT;
        bool apart = false;
        rn_builder b;

        if (!is_planned(limit) || charge == 0)
            continue;
        name_begin(keys, group, &b);
        if (!rn_scope_key(limit->scope, &a.subject, &b) || b.full)
            continue;

        rn_plan_key *key = key_of(rn_map_find(&keys->by_name, b.data, b.used));
        const uint64_t mask = scope_open(limit->scope, &a, &apart);

        if (key == NULL)
            err = key_add(keys, limit, &a, mask, &b, &key);
        if (err == RATION_OK)
            out[(*count)++] = (rn_plan_call){key, charge, apart};
    }
    return err;
}

/* Whoever uses a key with more left open uses this one too. */
static int key_narrows(rn_plan_keys *keys, rn_plan_key *key)
{
    const rn_open *open;

    SLIST_FOREACH (open, &key->group->opens, next) {
        if (open->mask == key->open || (open->mask & key->open) != key->open)
            continue;

        rn_plan_key *wider = key_opened(keys, key->group, key->key, open->mask);
        rn_narrower *link = wider != NULL ? rn_arena_zalloc(&keys->arena, 1, sizeof *link) : NULL;

        if (wider != NULL && link == NULL)
            return RATION_ERR_NOMEM;
        if (link == NULL)
            continue;
        link->key = key;
        SLIST_INSERT_HEAD(&wider->narrower, link, next);
    }
    return RATION_OK;
}

int rn_plan_keys_close(rn_plan_keys *keys)
{
    rn_plan_key *key;

    keys->scopes = rn_arena_zalloc(&keys->arena, keys->scope_count, sizeof(rn_plan_key *));
    keys->rates = rn_arena_zalloc(&keys->arena, keys->rate_count, sizeof(rn_plan_key *));
    if (keys->scopes == NULL || keys->rates == NULL)
        return RATION_ERR_NOMEM;
    STAILQ_FOREACH (key, &keys->all, next) {
        if (key->limit->rule->kind != RATION_KIND_QUOTA) {
            keys->rates[key->place] = key;
            continue;
        }
        keys->scopes[key->place] = key;

        const int err = key_narrows(keys, key);

        if (err != RATION_OK)
            return err;
    }
    return RATION_OK;
}

rn_plan_group *rn_plan_group_of(const rn_plan_keys *keys, ration_text provider, const char *limit)
{
    const rn_provider *found = rn_book_provider(keys->book, provider);

    for (size_t i = 0; found != NULL && i < found->limit_count; i++) {
        if (rn_text_is(ration_text_of(limit), found->limits[i]->rule->name))
            return &keys->groups[found->index][i];
    }
    return NULL;
}

rn_plan_key *rn_plan_keys_next(rn_plan_keys *keys, const rn_plan_group *group, ration_text key, const rn_open **open)
{
    rn_plan_key *found = NULL;

    *open = *open == NULL ? SLIST_FIRST(&group->opens) : SLIST_NEXT(*open, next);
    while (*open != NULL) {
        found = key_opened(keys, group, key, (*open)->mask);
        if (found != NULL)
            break;
        *open = SLIST_NEXT(*open, next);
    }
    return found;
}
