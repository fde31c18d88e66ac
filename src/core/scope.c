/* SPDX-License-Identifier: MIT */

/*
 * A limit applies to a request when every dimension of its scope has a value and every filter matches; the values in
 * order of the scope's declaration make the key: "acme-meraki/organizationId=549236". Inside a value '/', '=' and '%'
 * are percent-encoded, so different values can never make the same key. A variable of a path has the value that the
 * provider reads there, however the client has encoded it.
 *
 * Methods are compared without regard to case, everything else to the byte.
 */

#include "core/scope.h"

#include "base/percent.h"

static const char *const dimension_names[RN_DIMENSION_VAR] = {
    [RN_DIMENSION_INSTANCE] = "instance",     [RN_DIMENSION_PROVIDER] = "provider",
    [RN_DIMENSION_ACCOUNT] = "account",       [RN_DIMENSION_TARGET] = "target",
    [RN_DIMENSION_CREDENTIAL] = "credential", [RN_DIMENSION_ENDPOINT] = "endpoint",
    [RN_DIMENSION_TENANT] = "tenant",
};

static bool dimension_init(ration_text name, rn_dimension *out)
{
    static const char prefix[] = "var:";
    const size_t skip = sizeof prefix - 1;

    for (int kind = 0; kind < RN_DIMENSION_VAR; kind++) {
        if (rn_text_is(name, dimension_names[kind])) {
            *out = (rn_dimension){(rn_dimension_kind)kind, {NULL, 0}};
            return true;
        }
    }
    if (name.size <= skip || !rn_text_is(rn_text_slice(name, 0, skip), prefix))
        return false;
    *out = (rn_dimension){RN_DIMENSION_VAR, rn_text_slice(name, skip, name.size)};
    return true;
}

static void name_element(rn_builder *bad, const char *list, size_t index)
{
    rn_builder_str(bad, list);
    rn_builder_char(bad, '[');
    rn_builder_int(bad, (int64_t)index);
    rn_builder_char(bad, ']');
}

static int dimensions_init(rn_scope *scope, rn_arena *arena, const ration_limit_rule *rule, rn_builder *bad)
{
    const size_t count = rule->scope_count == 0 ? 1 : rule->scope_count;

    scope->dimensions = rn_arena_zalloc(arena, count, sizeof *scope->dimensions);
    if (scope->dimensions == NULL)
        return RATION_ERR_NOMEM;
    scope->count = count;

    for (size_t i = 0; i < rule->scope_count; i++) {
        if (!dimension_init(ration_text_of(rule->scope[i]), &scope->dimensions[i])) {
            name_element(bad, "scope.by", i);
            return RATION_ERR_CONFIG;
        }
    }
    return RATION_OK;
}

static int filters_init(rn_scope *scope, rn_arena *arena, const ration_limit_rule *rule, rn_builder *bad)
{
    scope->endpoints = rn_arena_zalloc(arena, rule->endpoint_count, sizeof *scope->endpoints);
    scope->methods = rn_arena_zalloc(arena, rule->method_count, sizeof *scope->methods);
    if (scope->endpoints == NULL || scope->methods == NULL)
        return RATION_ERR_NOMEM;

    for (size_t i = 0; i < rule->endpoint_count; i++) {
        const int err = rn_template_init(&scope->endpoints[i], arena, ration_text_of(rule->endpoints[i]));

        if (err == RATION_ERR_SYNTAX) {
            name_element(bad, "appliesTo.endpoints", i);
            return RATION_ERR_CONFIG;
        }
        if (err != RATION_OK)
            return err;
    }
    scope->endpoint_count = rule->endpoint_count;

    for (size_t i = 0; i < rule->method_count; i++)
        scope->methods[i] = ration_text_of(rule->methods[i]);
    scope->method_count = rule->method_count;
    scope->with_var = ration_text_of(rule->requests_with_var);
    scope->auth = rule->auth_requests;
    return RATION_OK;
}

int rn_scope_init(rn_scope *scope, rn_arena *arena, const ration_limit_rule *rule, rn_builder *bad)
{
    *scope = (rn_scope){0};

    const int err = dimensions_init(scope, arena, rule, bad);

    return err != RATION_OK ? err : filters_init(scope, arena, rule, bad);
}

static size_t var_find(const rn_subject *subject, ration_text name)
{
    size_t i = 0;

    while (i < subject->var_count && !rn_text_eq(subject->vars[i].name, name))
        i++;
    return i;
}

ration_text rn_subject_var(const rn_subject *subject, ration_text name)
{
    const size_t i = var_find(subject, name);

    return i < subject->var_count ? subject->vars[i].value : (ration_text){NULL, 0};
}

static bool auth_matches(ration_auth_filter filter, bool auth)
{
    switch (filter) {
    case RATION_AUTH_INCLUDE:
        return true;
    case RATION_AUTH_ONLY:
        return auth;
    case RATION_AUTH_EXCLUDE:
        return !auth;
    }
    return false;
}

static bool method_matches(const rn_scope *scope, ration_text method)
{
    for (size_t i = 0; i < scope->method_count; i++) {
        if (rn_text_eq_nocase(scope->methods[i], method))
            return true;
    }
    return scope->method_count == 0;
}

static bool endpoint_matches(const rn_scope *scope, ration_text path)
{
    rn_path split;

    if (scope->endpoint_count == 0)
        return true;
    if (path.data == NULL || !rn_path_split(path, &split))
        return false;
    for (size_t i = 0; i < scope->endpoint_count; i++) {
        if (rn_template_match(&scope->endpoints[i], &split, NULL))
            return true;
    }
    return false;
}

static ration_text dimension_value(const rn_dimension *dimension, const rn_subject *subject)
{
    return dimension->kind == RN_DIMENSION_VAR ? rn_subject_var(subject, dimension->name)
                                               : subject->dimension[dimension->kind];
}

bool rn_scope_key(const rn_scope *scope, const rn_subject *subject, rn_builder *key)
{
    if (!auth_matches(scope->auth, subject->auth) || !method_matches(scope, subject->method) ||
        !endpoint_matches(scope, subject->path))
        return false;
    if (scope->with_var.data != NULL && rn_subject_var(subject, scope->with_var).data == NULL)
        return false;
    for (size_t i = 0; i < scope->count; i++) {
        if (dimension_value(&scope->dimensions[i], subject).data == NULL)
            return false;
    }

    for (size_t i = 0; i < scope->count; i++) {
        if (i > 0)
            rn_builder_char(key, '/');
        if (scope->dimensions[i].kind != RN_DIMENSION_VAR) {
            rn_builder_key(key, dimension_value(&scope->dimensions[i], subject));
            continue;
        }

        const size_t var = var_find(subject, scope->dimensions[i].name);

        rn_builder_key(key, scope->dimensions[i].name);
        rn_builder_char(key, '=');
        rn_percent_key(key, subject->vars[var].value, var >= subject->plain_count);
    }
    return true;
}

bool rn_scope_has(const rn_scope *scope, rn_dimension_kind kind)
{
    for (size_t i = 0; i < scope->count; i++) {
        if (scope->dimensions[i].kind == kind)
            return true;
    }
    return false;
}

/* The n-th of the parts that a key has between its slashes. */
static ration_text key_part(ration_text key, size_t n)
{
    size_t from = 0;

    for (size_t i = 0; i < key.size; i++) {
        if (key.data[i] != '/')
            continue;
        if (n-- == 0)
            return rn_text_slice(key, from, i);
        from = i + 1;
    }
    return n == 0 ? rn_text_slice(key, from, key.size) : (ration_text){NULL, 0};
}

/* As `rn_builder_key` writes it, byte by byte. */
static bool part_is(ration_text part, ration_text value)
{
    size_t at = 0;

    for (size_t i = 0; i < value.size; i++) {
        char code[4];
        rn_builder b;

        rn_builder_init(&b, code, sizeof code);
        rn_builder_key(&b, rn_text_slice(value, i, i + 1));
        if (!rn_text_eq(rn_text_slice(part, at, at + b.used), (ration_text){code, b.used}))
            return false;
        at += b.used;
    }
    return at == part.size;
}

bool rn_scope_matches(const rn_scope *scope, ration_text key, rn_dimension_kind kind, ration_text value)
{
    for (size_t i = 0; i < scope->count; i++) {
        const ration_text part = key_part(key, i);

        if (scope->dimensions[i].kind == kind && (value.data == NULL || part.data == NULL || !part_is(part, value)))
            return false;
    }
    return true;
}
