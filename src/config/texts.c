/* SPDX-License-Identifier: MIT */
/*
 * The kinds of scalars that are texts: names, header fields, templates, scopes.
 *
 * All share one shape: a test says whether the text is one, and the config keeps a copy. What the core reads
 * itself, templates and globs, it is asked about.
 */
#include <string.h>

#include "config/loader.h"
#include "core/template.h"

#define NAME_MAX_BYTES 255
#define TEXT_MAX_BYTES 65536
#define CALL_PATH_MAX 2048

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7F;
}

static bool is_text(ration_text text, size_t max)
{
    for (size_t i = 0; i < text.size; i++) {
        if (is_control(text.data[i]))
            return false;
    }
    return text.size > 0 && text.size <= max;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A token of RFC 9110: names of fields, methods. */
static bool is_token(ration_text text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (!is_alnum(text.data[i]) && (text.data[i] == '\0' || strchr("!#$%&'*+-.^_`|~", text.data[i]) == NULL))
            return false;
    }
    return text.size > 0 && text.size <= NAME_MAX_BYTES;
}

static int text_store(rn_loader *loader, bool good, ration_text text, void *out)
{
    const char *kept = good ? rn_loader_keep(loader, text) : NULL;

    if (!good)
        return RATION_ERR_SYNTAX;
    if (kept == NULL)
        return RATION_ERR_NOMEM;
    memcpy(out, &kept, sizeof kept);
    return RATION_OK;
}

static bool text_write(rn_out *out, const rn_key *key, const void *value)
{
    const char *s = NULL;

    (void)key;
    memcpy(&s, value, sizeof s);
    if (s != NULL)
        rn_out_json(out, s);
    return s != NULL;
}

static int text_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    return text_store(loader, text.size > 0 && text.size <= TEXT_MAX_BYTES, text, out);
}

static int name_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    return text_store(loader, is_text(text, NAME_MAX_BYTES), text, out);
}

/* An empty name of a field says that it is not read. */
static int header_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    return text.size == 0 ? RATION_OK : text_store(loader, is_token(text), text, out);
}

/* Fields whose meaning is the connection's, the message's or our own: a secret in one of them would never arrive. */
static bool is_of_http(ration_text name)
{
    static const char *const names[] = {
        "connection", "content-length",    "expect",          "host", "keep-alive", "te", "trailer",
        "upgrade",    "transfer-encoding", "proxy-connection"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (rn_text_is_nocase(name, names[i]))
            return true;
    }
    return rn_text_is_nocase(rn_text_slice(name, 0, 7), "ration-");
}

static int credential_header_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    return text_store(loader, is_token(text) && !is_of_http(text), text, out);
}

static int header_value_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    return text_store(loader, is_text(text, TEXT_MAX_BYTES), text, out);
}

static int method_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    return text_store(loader, is_token(text), text, out);
}

/* The length of the variable that begins at `at` with its braces; 0: malformed. */
static size_t variable_size(ration_text text, size_t at)
{
    size_t end = at + 1;

    while (end < text.size && strchr("{}/", text.data[end]) == NULL)
        end++;
    if (end == text.size || text.data[end] != '}' || end == at + 1)
        return 0;
    return end + 1 - at;
}

static int template_fault(rn_loader *loader, const char *text, const char *hint)
{
    rn_loader_fault(loader, loader->at, NULL, hint, "%s", text);
    return RATION_ERR_CONFIG;
}

/* As the core will read it. */
static int pattern_try(rn_loader *loader, ration_text text)
{
    rn_template pattern;

    return rn_template_init(&pattern, &loader->work, text);
}

static int template_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    if (text.size == 0 || text.data[0] != '/') {
        return template_fault(loader, "a path template must begin with '/'",
                              loader->quiet_value ? NULL : rn_loader_format(loader, "/%s", text.data));
    }
    if (!is_text(text, TEXT_MAX_BYTES))
        return RATION_ERR_SYNTAX;
    for (size_t i = 0; i < text.size;) {
        const size_t variable = text.data[i] == '{' ? variable_size(text, i) : 1;

        if (variable == 0 || text.data[i] == '}') {
            return template_fault(loader, "the braces of a path template do not match",
                                  "a variable is a name in braces, such as /networks/{networkId}");
        }
        if (text.data[i] == '?' || text.data[i] == '#') {
            return template_fault(loader, "a path template has no query and no fragment",
                                  "end it before the '?' or '#'");
        }
        i += variable;
    }

    const int err = pattern_try(loader, text);

    if (err == RATION_ERR_SYNTAX) {
        return template_fault(loader, "a variable of a path template must be a whole segment, its name stand once",
                              "such as /networks/{networkId}; a template has at most 64 segments");
    }
    return err == RATION_OK ? text_store(loader, true, text, out) : err;
}

static int glob_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    const int err = is_text(text, TEXT_MAX_BYTES) ? pattern_try(loader, text) : RATION_ERR_SYNTAX;

    (void)key;
    return err == RATION_OK ? text_store(loader, true, text, out) : err;
}

static bool has_any(ration_text text, const char *characters)
{
    for (size_t i = 0; i < text.size; i++) {
        if (strchr(characters, text.data[i]) != NULL)
            return true;
    }
    return false;
}

/* "GET /a/{b}"; a bare path is kept as a GET of it. */
static int call_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    size_t blank = 0;
    const bool bare = text.size == 0 || text.data[0] == '/' || !rn_text_find(text, ration_text_of(" "), &blank);
    const ration_text method = bare ? ration_text_of("GET") : rn_text_slice(text, 0, blank);
    const ration_text path = bare ? text : rn_text_trim(rn_text_slice(text, blank, text.size));
    const char *kept = NULL;

    if (!is_token(method) || has_any(path, " ") || path.size > CALL_PATH_MAX)
        return RATION_ERR_SYNTAX;

    const int err = template_read(loader, key, path, &kept);

    if (err != RATION_OK)
        return err;
    kept = rn_loader_format(loader, "%.*s %s", (int)method.size, method.data, kept);
    return kept == NULL ? RATION_ERR_NOMEM : text_store(loader, true, ration_text_of(kept), out);
}

/* What can stand between two slashes of a path. */
static int segment_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    return text_store(loader, is_text(text, NAME_MAX_BYTES) && !has_any(text, "/?#{} "), text, out);
}

static const char *const dimensions[] = {"instance",   "provider", "account", "target",
                                         "credential", "endpoint", "tenant"};
enum { DIMENSION_COUNT = sizeof dimensions / sizeof dimensions[0] };

static const char *dimension_at(const void *names, size_t index)
{
    (void)names;
    return dimensions[index];
}

static int dimension_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    if (text.size >= 4 && memcmp(text.data, "var:", 4) == 0) {
        if (!is_text(text, NAME_MAX_BYTES) || text.size == 4)
            return template_fault(loader, "'var:' needs the name of a variable", "such as var:organizationId");
        return text_store(loader, true, text, out);
    }
    for (size_t i = 0; i < DIMENSION_COUNT; i++) {
        if (rn_text_is(text, dimensions[i]))
            return text_store(loader, true, text, out);
    }
    if (loader->quiet_value)
        return RATION_ERR_SYNTAX;

    const char *nearest = rn_nearest(text, NULL, DIMENSION_COUNT, dimension_at);
    const char *hint = nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest)
                                       : "for a variable of the path, 'var:' and its name";

    rn_loader_fault(loader, loader->at, NULL, hint, "%s is no dimension of a scope", rn_loader_quote(loader, text));
    return RATION_ERR_CONFIG;
}

static int key16_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    bool good = text.size == 16;

    (void)key;
    for (size_t i = 0; good && i < text.size; i++)
        good = (text.data[i] >= '0' && text.data[i] <= '9') || (text.data[i] >= 'a' && text.data[i] <= 'f');
    return text_store(loader, good, text, out);
}

static bool has_prefix(ration_text text, const char *prefix)
{
    const size_t size = strlen(prefix);

    return text.size > size && memcmp(text.data, prefix, size) == 0;
}

static int proxy_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    const bool known = has_prefix(text, "http://") || has_prefix(text, "https://") || has_prefix(text, "socks5://") ||
                       has_prefix(text, "socks5h://");

    (void)key;
    return text_store(loader, known && is_text(text, TEXT_MAX_BYTES), text, out);
}

/* What a request line can carry as it stands. */
static int path_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    bool good = is_text(text, TEXT_MAX_BYTES) && text.data[0] == '/';

    (void)key;
    for (size_t i = 0; good && i < text.size; i++)
        good = text.data[i] != ' ' && text.data[i] != '#' && (unsigned char)text.data[i] < 0x80;
    return text_store(loader, good, text, out);
}

/* The name of an environment variable. */
static int variable_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    bool good = is_text(text, NAME_MAX_BYTES) && !(text.data[0] >= '0' && text.data[0] <= '9');

    (void)key;
    for (size_t i = 0; good && i < text.size; i++)
        good = is_alnum(text.data[i]) || text.data[i] == '_';
    return text_store(loader, good, text, out);
}

static int zone_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    const char *name = NULL;
    const int err = rn_zone_load(loader, text, &name);

    (void)key;
    if (err == RATION_OK)
        memcpy(out, &name, sizeof name);
    return err;
}

#define STRING "\"type\":\"string\""
#define FILLED STRING ",\"minLength\":1"

const rn_type rn_type_text = {"text", "a text", RN_FORM_TEXT, sizeof(char *), FILLED, text_read, text_write, NULL};
const rn_type rn_type_name = {"name",       "a name of 1 to 255 bytes without control characters",
                              RN_FORM_TEXT, sizeof(char *),
                              FILLED,       name_read,
                              text_write,   NULL};
const rn_type rn_type_header = {
    "field name", "the name of a header field", RN_FORM_TEXT, sizeof(char *), STRING, header_read, text_write, NULL};
const rn_type rn_type_credential_header = {
    "field name", "a header field that may carry a secret, such as Authorization or X-Api-Key",
    RN_FORM_TEXT, sizeof(char *),
    FILLED,       credential_header_read,
    text_write,   NULL};
const rn_type rn_type_header_value = {
    "text", "one line of text, and not empty", RN_FORM_TEXT, sizeof(char *), FILLED, header_value_read, text_write,
    NULL};
const rn_type rn_type_method = {
    "method", "a method such as GET", RN_FORM_TEXT, sizeof(char *), FILLED, method_read, text_write, NULL};
const rn_type rn_type_file = {"path", "a path",          RN_FORM_TEXT, sizeof(char *),
                              FILLED, header_value_read, text_write,   NULL};
const rn_type rn_type_template = {"path template",
                                  "a path template such as /networks/{networkId}/devices",
                                  RN_FORM_TEXT,
                                  sizeof(char *),
                                  STRING ",\"pattern\":\"^/|[$][{]\"",
                                  template_read,
                                  text_write,
                                  NULL};
const rn_type rn_type_glob = {"glob",
                              "a glob that begins with '/', such as /networks/*/devices or /oauth/**",
                              RN_FORM_TEXT,
                              sizeof(char *),
                              STRING ",\"pattern\":\"^/|[$][{]\"",
                              glob_read,
                              text_write,
                              NULL};
const rn_type rn_type_dimension = {
    "dimension",
    "a dimension of a scope",
    RN_FORM_TEXT,
    sizeof(char *),
    STRING ",\"pattern\":\"^(instance|provider|account|target|credential|endpoint|tenant|var:.+)$|[$][{]\"",
    dimension_read,
    text_write,
    NULL};
const rn_type rn_type_zone = {
    "time zone", "a time zone such as America/Los_Angeles", RN_FORM_TEXT, sizeof(char *), FILLED, zone_read, text_write,
    NULL};
const rn_type rn_type_key16 = {"credential key",
                               "a credential key: 16 digits of 0-9 and a-f",
                               RN_FORM_TEXT,
                               sizeof(char *),
                               STRING ",\"pattern\":\"^[0-9a-f]{16}$\"",
                               key16_read,
                               text_write,
                               NULL};
const rn_type rn_type_proxy = {
    "proxy",      "a proxy such as http://proxy.example:3128 (http, https, socks5 or socks5h)",
    RN_FORM_TEXT, sizeof(char *),
    FILLED,       proxy_read,
    text_write,   NULL};
const rn_type rn_type_path = {"path",
                              "a path that begins with '/', such as /health, without blanks and fragment",
                              RN_FORM_TEXT,
                              sizeof(char *),
                              STRING ",\"pattern\":\"^/|[$][{]\"",
                              path_read,
                              text_write,
                              NULL};
const rn_type rn_type_variable = {"variable name",
                                  "the name of an environment variable, such as REDIS_PASSWORD",
                                  RN_FORM_TEXT,
                                  sizeof(char *),
                                  STRING ",\"pattern\":\"^[A-Za-z_][A-Za-z0-9_]*$|[$][{]\"",
                                  variable_read,
                                  text_write,
                                  NULL};
const rn_type rn_type_target = {"target",     "the name of a target of the provider, or a URL",
                                RN_FORM_TEXT, sizeof(char *),
                                FILLED,       name_read,
                                text_write,   NULL};
const rn_type rn_type_call = {"method and path",
                              "a method and a path such as GET /networks/{networkId}/devices",
                              RN_FORM_TEXT,
                              sizeof(char *),
                              STRING ",\"pattern\":\"^([^ /]+ +)?/|[$][{]\"",
                              call_read,
                              text_write,
                              NULL};
const rn_type rn_type_segment = {"text or number",
                                 "one segment of a path, without blanks and any of / ? # { }",
                                 RN_FORM_ANY,
                                 sizeof(char *),
                                 "\"type\":[\"string\",\"number\"],\"pattern\":\"^[^/?#{} ]+$|[$][{]\"",
                                 segment_read,
                                 text_write,
                                 NULL};
