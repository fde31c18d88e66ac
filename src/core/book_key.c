/* SPDX-License-Identifier: MIT */
/*
 * From a scope key back to what it stands for. Requests lead from names to keys; operators, a reload and what was kept
 * name a counter by its key alone.
 *
 * A limit that an account replaces has `account` in its scope, so a key tells whose limit it leads to.
 */
#include "core/book.h"

#include "base/units.h"

rn_limit *rn_book_limit(const rn_book *book, const rn_provider *provider, ration_text name, ration_text key)
{
    size_t i = 0;

    while (i < provider->limit_count && !rn_text_is(name, provider->limits[i]->rule->name))
        i++;
    if (i == provider->limit_count)
        return NULL;
    for (size_t k = 0; k < book->account_count; k++) {
        const rn_account *account = &book->accounts[k];
        rn_limit *own = account->provider == provider ? account->limits[i] : provider->limits[i];

        if (own != provider->limits[i] && rn_scope_matches(own->scope, key, RN_DIMENSION_ACCOUNT, account->name))
            return own;
    }
    return provider->limits[i];
}

bool rn_counter_name_is_valid(const ration_counter_name *name)
{
    return name != NULL && name->limit.data != NULL && name->key.data != NULL &&
           (name->provider.data != NULL || name->provider.size == 0);
}

int rn_book_named(const rn_book *book, const ration_counter_name *name, rn_limit **out)
{
    *out = NULL;
    for (size_t i = 0; i < book->provider_count; i++) {
        const rn_provider *provider = &book->providers[i];
        rn_limit *limit;

        if (name->provider.data != NULL && !rn_text_eq(name->provider, provider->name))
            continue;
        limit = rn_book_limit(book, provider, name->limit, name->key);
        if (limit != NULL && *out != NULL)
            return RATION_ERR_INVALID;
        *out = limit != NULL ? limit : *out;
    }
    return *out == NULL ? RATION_ERR_UNKNOWN : RATION_OK;
}

static bool reaches(const rn_account *account, const rn_limit *limit, ration_text key)
{
    return rn_scope_matches(limit->scope, key, RN_DIMENSION_ACCOUNT, account->name) &&
           rn_scope_matches(limit->scope, key, RN_DIMENSION_TARGET, account->target) &&
           rn_scope_matches(limit->scope, key, RN_DIMENSION_CREDENTIAL, account->credential);
}

ration_ratio rn_book_share(const rn_book *book, const rn_limit *limit, ration_text key)
{
    ration_ratio all = {1, 1};
    ration_ratio reaching = {1, 1};
    bool any = false;

    for (size_t i = 0; i < book->account_count; i++) {
        const rn_account *account = &book->accounts[i];

        if (account->provider->name.data != limit->provider || account->limits[limit->index] != limit)
            continue;
        all = rn_ratio_min(all, account->share);
        if (reaches(account, limit, key)) {
            reaching = rn_ratio_min(reaching, account->share);
            any = true;
        }
    }
    return any ? reaching : all;
}

/* All that the key is made of stands in the rules, and it has as many parts. */
static bool is_of_names(const rn_scope *scope, ration_text key)
{
    size_t parts = 1;

    for (size_t i = 0; i < key.size; i++)
        parts += key.data[i] == '/';
    for (size_t i = 0; i < scope->count; i++) {
        const rn_dimension_kind kind = scope->dimensions[i].kind;

        if (kind != RN_DIMENSION_PROVIDER && kind != RN_DIMENSION_ACCOUNT && kind != RN_DIMENSION_TARGET)
            return false;
    }
    return parts == scope->count;
}

bool rn_book_leads(const rn_book *book, const rn_limit *limit, ration_text key)
{
    bool found = false;

    for (size_t i = 0; i < book->account_count && !found; i++) {
        const rn_account *account = &book->accounts[i];

        found = account->provider->name.data == limit->provider && account->limits[limit->index] == limit &&
                rn_scope_matches(limit->scope, key, RN_DIMENSION_PROVIDER, account->provider->name) &&
                reaches(account, limit, key);
    }
    return found && is_of_names(limit->scope, key);
}

bool rn_scope_is_like(const rn_scope *a, const rn_scope *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (a->dimensions[i].kind != b->dimensions[i].kind || !rn_text_eq(a->dimensions[i].name, b->dimensions[i].name))
            return false;
    }
    return true;
}

bool rn_limit_is_like(const rn_limit *a, const rn_limit *b)
{
    return a->kind == b->kind && (a->rule->counts == RATION_COUNTS_COST) == (b->rule->counts == RATION_COUNTS_COST) &&
           rn_scope_is_like(a->scope, b->scope);
}

static char *text_copy(rn_book *book, ration_text text)
{
    char *copy = rn_arena_zalloc(&book->arena, text.size + 1, 1);

    for (size_t i = 0; copy != NULL && i < text.size; i++)
        copy[i] = text.data[i];
    return copy;
}

static rn_provider *ghost_provider(rn_book *book, ration_text name)
{
    rn_provider *provider = rn_arena_zalloc(&book->arena, 1, sizeof *provider);
    char *copy = text_copy(book, name);

    if (provider == NULL || copy == NULL)
        return NULL;
    provider->name = (ration_text){copy, name.size};
    provider->rule.name = copy;
    rn_queue_init(&provider->queue, book->mem, book->fifo);
    return provider;
}

rn_account *rn_book_ghost(rn_book *book, ration_text provider, ration_text name)
{
    rn_account *account = rn_book_account(book, name);

    if (account != NULL && rn_text_eq(account->provider->name, provider))
        return account;
    SLIST_FOREACH (account, &book->ghosts, in_ghosts) {
        if (rn_text_eq(account->name, name) && rn_text_eq(account->provider->name, provider))
            return account;
    }

    char *copy = text_copy(book, name);

    account = rn_arena_zalloc(&book->arena, 1, sizeof *account);
    if (account == NULL || copy == NULL)
        return NULL;
    account->name = (ration_text){copy, name.size};
    account->provider = rn_book_provider(book, provider);
    if (account->provider == NULL)
        account->provider = ghost_provider(book, provider);
    rn_alarm_init(&account->penalty_timer, RN_ALARM_ACCOUNT);
    if (account->provider == NULL)
        return NULL;
    SLIST_INSERT_HEAD(&book->ghosts, account, in_ghosts);
    return account;
}
