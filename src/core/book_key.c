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
