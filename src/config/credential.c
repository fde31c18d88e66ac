/* SPDX-License-Identifier: MIT */
/*
 * The key of a credential: what stands for it in scope keys, reports and recordings.
 *
 * HMAC-SHA256 under a salt, so that a recording does not let anyone test guesses of the secret who has not the salt.
 * The name of the field counts without regard to case, a colon keeps name and value apart.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "config/loader.h"
#include "config/model.h"

#define KEY_BYTES 8

int rn_credential_key(const ration_config_options *options, rn_arena *arena, const rn_credential *credential,
                      const char **out)
{
    static const char hex[] = "0123456789abcdef";
    const size_t name = strlen(credential->header);
    const size_t value = strlen(credential->value);
    unsigned char *message = rn_arena_zalloc(arena, name + 1 + value, 1);
    char *key = rn_arena_zalloc(arena, KEY_BYTES * 2 + 1, 1);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_size = 0;

    if (message == NULL || key == NULL || options->salt_size > 4096)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < name; i++) {
        const char c = credential->header[i];

        message[i] = (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    message[name] = ':';
    memcpy(message + name + 1, credential->value, value);

    const bool done = HMAC(EVP_sha256(), options->salt, (int)options->salt_size, message, name + 1 + value, digest,
                           &digest_size) != NULL;

    OPENSSL_cleanse(message, name + 1 + value);
    if (!done || digest_size < KEY_BYTES)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < KEY_BYTES; i++) {
        key[2 * i] = hex[digest[i] >> 4];
        key[2 * i + 1] = hex[digest[i] & 0xF];
    }
    *out = key;
    return RATION_OK;
}

int rn_config_salted(const ration_config *config, ration_text salt, rn_arena *arena, ration_rules *out)
{
    const ration_config_options options = {.salt = salt.data, .salt_size = salt.size};
    const rn_config_model *model = &config->model;
    ration_account_rule *rules = rn_arena_zalloc(arena, model->rules.account_count + 1, sizeof *rules);
    int err = rules != NULL ? RATION_OK : RATION_ERR_NOMEM;

    for (size_t i = 0; i < model->rules.account_count && err == RATION_OK; i++) {
        const rn_credential *credential = &model->accounts[i].net.credential;

        rules[i] = model->rules.accounts[i];
        if (credential->value != NULL)
            err = rn_credential_key(&options, arena, credential, &rules[i].credential_key);
    }
    if (err != RATION_OK)
        return err;
    *out = model->rules;
    out->accounts = rules;
    return RATION_OK;
}

int rn_config_resalt(ration_config *config, ration_text salt)
{
    rn_config_model *model = &config->model;
    ration_rules salted;
    const int err = rn_config_salted(config, salt, &config->arena, &salted);

    if (err != RATION_OK)
        return err;
    for (size_t i = 0; i < salted.account_count; i++) {
        model->accounts[i].rule.credential_key = salted.accounts[i].credential_key;
        model->accounts[i].net.credential.key = salted.accounts[i].credential_key;
    }
    model->rules = salted;
    return RATION_OK;
}
