/* SPDX-License-Identifier: MIT */
/*
 * `${NAME}`, `${file:/path}` and `$${` in values.
 *
 * One pass, left to right; what comes in is not looked at again, so nothing can be nested. A value that holds anything
 * from outside is marked: no message repeats it, for it may be a secret wherever it stands.
 */
#include <stdlib.h>
#include <string.h>

#include "config/loader.h"

#define SECRET_FILE_MAX ((size_t)64 * 1024)
#define VALUE_MAX ((size_t)1024 * 1024)

static int expand_fault(rn_loader *loader, const char *hint, const char *text)
{
    rn_loader_fault(loader, loader->at, NULL, hint, "%s", text);
    return RATION_ERR_CONFIG;
}

static bool is_variable_name(ration_text name)
{
    for (size_t i = 0; i < name.size; i++) {
        const char c = name.data[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.size > 0;
}

static int expand_variable(rn_loader *loader, ration_text name, ration_text *out)
{
    const ration_config_options *options = loader->options;

    if (!is_variable_name(name)) {
        return expand_fault(loader, "write ${NAME}, ${file:/path}, or $${ for the characters themselves",
                            "'${' is not followed by the name of a variable");
    }

    const char *key = rn_arena_textdup(&loader->work, name);
    const char *value = NULL;

    if (key == NULL)
        return RATION_ERR_NOMEM;
    value = options->variable != NULL ? options->variable(options->ctx, key) : getenv(key);
    if (value == NULL)
        return expand_fault(loader, NULL, rn_loader_format(loader, "the environment variable %s is not set", key));
    *out = ration_text_of(value);
    return RATION_OK;
}

static int expand_file(rn_loader *loader, ration_text path, ration_text *out)
{
    const char *name = rn_arena_textdup(&loader->work, path);
    const char *why = NULL;

    if (name == NULL)
        return RATION_ERR_NOMEM;
    if (path.size == 0 || path.data[0] != '/')
        return expand_fault(loader, "such as ${file:/run/secrets/key}", "'${file:' needs a path that begins with '/'");

    const int err = rn_file_read(&loader->work, name, SECRET_FILE_MAX, out, &why);

    if (err == RATION_ERR_IO)
        return expand_fault(loader, why, rn_loader_format(loader, "the file %s cannot be read", name));
    if (err == RATION_OK && out->size > 0 && out->data[out->size - 1] == '\n')
        out->size--;
    if (err == RATION_OK && out->size > 0 && out->data[out->size - 1] == '\r')
        out->size--;
    return err;
}

/* What stands between "${" and "}". */
static int expand_one(rn_loader *loader, ration_text inner, ration_text *out)
{
    const bool is_file = inner.size >= 5 && memcmp(inner.data, "file:", 5) == 0;
    const int err =
        is_file ? expand_file(loader, rn_text_slice(inner, 5, inner.size), out) : expand_variable(loader, inner, out);

    if (err != RATION_OK)
        return err;
    if (!rn_text_is_utf8(*out) || (out->size > 0 && memchr(out->data, '\0', out->size) != NULL))
        return expand_fault(loader, NULL, "what comes in for '${...}' is not UTF-8 text");
    return RATION_OK;
}

/* The next piece of `rest`, up to and with one `${...}` or `$${`. */
static int expand_piece(rn_loader *loader, ration_text *rest, rn_out *out, bool *expanded)
{
    size_t at = 0;
    size_t end = 0;
    ration_text value = {NULL, 0};

    if (!rn_text_find(*rest, ration_text_of("${"), &at)) {
        rn_out_text(out, *rest);
        *rest = rn_text_slice(*rest, rest->size, rest->size);
        return RATION_OK;
    }
    if (at > 0 && rest->data[at - 1] == '$') {
        rn_out_text(out, rn_text_slice(*rest, 0, at - 1));
        rn_out_str(out, "${");
        *rest = rn_text_slice(*rest, at + 2, rest->size);
        return RATION_OK;
    }
    rn_out_text(out, rn_text_slice(*rest, 0, at));
    *rest = rn_text_slice(*rest, at + 2, rest->size);
    if (!rn_text_find(*rest, ration_text_of("}"), &end))
        return expand_fault(loader, "write $${ for the characters themselves", "'${' is not closed");

    const int err = expand_one(loader, rn_text_slice(*rest, 0, end), &value);

    if (err != RATION_OK)
        return err;
    *expanded = true;
    rn_out_text(out, value);
    *rest = rn_text_slice(*rest, end + 1, rest->size);
    return out->size <= VALUE_MAX ? RATION_OK : expand_fault(loader, NULL, "the value is too long");
}

int rn_expand(rn_loader *loader, const rn_node *node, ration_text *out, bool *expanded)
{
    ration_text rest = node->text;
    size_t at = 0;
    int err = RATION_OK;
    rn_out grown;

    *expanded = false;
    *out = rest;
    if (loader->options->recording || !rn_text_find(rest, ration_text_of("${"), &at))
        return RATION_OK;
    rn_out_init(&grown, loader->mem);
    while (err == RATION_OK && rest.size > 0)
        err = expand_piece(loader, &rest, &grown, expanded);
    if (err == RATION_OK && grown.failed)
        err = RATION_ERR_NOMEM;
    if (err == RATION_OK) {
        out->size = grown.size;
        out->data = rn_arena_textdup(&loader->work, (ration_text){grown.data != NULL ? grown.data : "", grown.size});
        err = out->data != NULL ? RATION_OK : RATION_ERR_NOMEM;
    }
    rn_out_fini(&grown);
    return err;
}
