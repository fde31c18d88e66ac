/* SPDX-License-Identifier: MIT */
/*
 * Where calls go and where to listen: URLs and addresses.
 *
 * Both are read strictly and whole. A URL has no user, no query and no fragment: credentials belong in `credential`,
 * where they are kept secret, and the rest comes from each call. An address that is no loopback and no Unix socket is
 * marked as not local; whether that needs a token is for the settings to say.
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/units.h"
#include "config/loader.h"

#define HOST_MAX 253
#define SOCKET_PATH_MAX 107

static bool is_host_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
           c == '_';
}

static bool is_ipv6(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET6, host, &address) == 1;
}

/*
 * "host", "host:port", "[::1]:port". `*port` stays if there is none. The host is copied in lower case, without
 * brackets.
 */
static int authority_read(rn_loader *loader, ration_text text, const char **host, int64_t *port)
{
    const bool bracket = text.size > 0 && text.data[0] == '[';
    size_t end = bracket ? 1 : 0;

    while (end < text.size && (bracket ? text.data[end] != ']' : is_host_char(text.data[end])))
        end++;
    if (bracket && end == text.size)
        return RATION_ERR_SYNTAX;

    const ration_text name = rn_text_slice(text, bracket ? 1 : 0, end);
    const ration_text rest = rn_text_slice(text, end + (bracket ? 1 : 0), text.size);

    if (name.size == 0 || name.size > HOST_MAX || (rest.size > 0 && rest.data[0] != ':'))
        return RATION_ERR_SYNTAX;
    if (rest.size > 0 && (rest.size == 1 || rest.data[1] == '-' ||
                          rn_parse_int(rn_text_slice(rest, 1, rest.size), port) != RATION_OK || *port > 65535))
        return RATION_ERR_SYNTAX;

    char *copy = rn_loader_alloc(loader, loader->arena, name.size + 1, 1);

    if (copy == NULL)
        return RATION_ERR_NOMEM;
    for (size_t i = 0; i < name.size; i++) {
        const bool upper = name.data[i] >= 'A' && name.data[i] <= 'Z';

        copy[i] = (char)(name.data[i] + (upper ? 'a' - 'A' : 0));
    }
    if (bracket && !is_ipv6(copy))
        return RATION_ERR_SYNTAX;
    *host = copy;
    return RATION_OK;
}

static bool is_path(ration_text text)
{
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];

        if (c <= 0x20 || c == 0x7F || strchr("?#\"<>\\^`{|}", c) != NULL)
            return false;
    }
    return true;
}

int rn_url_read(rn_loader *loader, ration_text text, rn_url *out)
{
    static const char *const schemes[] = {"http://", "https://"};
    rn_url url = {.given = true};
    ration_text rest = {NULL, 0};

    for (size_t i = 0; i < 2; i++) {
        const size_t size = strlen(schemes[i]);

        if (text.size > size && rn_text_is_nocase(rn_text_slice(text, 0, size), schemes[i])) {
            url.tls = i == 1;
            rest = rn_text_slice(text, size, text.size);
        }
    }

    const char *slash = rest.size > 0 ? memchr(rest.data, '/', rest.size) : NULL;
    const size_t host_size = slash != NULL ? (size_t)(slash - rest.data) : rest.size;
    ration_text path = rn_text_slice(rest, host_size, rest.size);
    int64_t port = url.tls ? 443 : 80;

    if (host_size == 0 || !is_path(path))
        return RATION_ERR_SYNTAX;

    const int err = authority_read(loader, rn_text_slice(rest, 0, host_size), &url.host, &port);

    if (err != RATION_OK || port == 0)
        return err != RATION_OK ? err : RATION_ERR_SYNTAX;
    while (path.size > 0 && path.data[path.size - 1] == '/')
        path.size--;
    url.port = (uint16_t)port;
    url.text = rn_loader_keep(loader, text);
    url.prefix = rn_loader_keep(loader, path);
    if (url.text == NULL || url.prefix == NULL)
        return RATION_ERR_NOMEM;
    *out = url;
    return RATION_OK;
}

static int socket_read(rn_loader *loader, ration_text text, ration_text path, rn_address *out)
{
    if (path.size == 0 || path.size > SOCKET_PATH_MAX || path.data[0] != '/')
        return RATION_ERR_SYNTAX;

    const rn_address address = {
        .text = rn_loader_keep(loader, text), .path = rn_loader_keep(loader, path), .local = true};

    if (address.text == NULL || address.path == NULL)
        return RATION_ERR_NOMEM;
    *out = address;
    return RATION_OK;
}

int rn_address_read(rn_loader *loader, ration_text text, rn_address *out)
{
    struct in_addr ipv4 = {0};
    int64_t port = -1;
    rn_address address = {0};

    if (text.size > 5 && memcmp(text.data, "unix:", 5) == 0)
        return socket_read(loader, text, rn_text_slice(text, 5, text.size), out);

    const int err = authority_read(loader, text, &address.host, &port);

    if (err != RATION_OK || port < 0)
        return err != RATION_OK ? err : RATION_ERR_SYNTAX;

    const bool is_ipv4 = inet_pton(AF_INET, address.host, &ipv4) == 1;
    const bool is_localhost = strcmp(address.host, "localhost") == 0;

    /* A name would have to be resolved, and could resolve to anything. */
    if (!is_ipv4 && !is_localhost && !is_ipv6(address.host))
        return RATION_ERR_SYNTAX;
    address.local = is_localhost || (is_ipv4 && ntohl(ipv4.s_addr) >> 24 == 127) || strcmp(address.host, "::1") == 0;
    address.port = (uint16_t)port;
    address.text = rn_loader_keep(loader, text);
    if (address.text == NULL)
        return RATION_ERR_NOMEM;
    *out = address;
    return RATION_OK;
}

/* True if a user stands before the host: between "//" and the first slash behind it. */
static bool has_user(ration_text text)
{
    size_t begin = 0;
    size_t at = 0;

    if (!rn_text_find(text, ration_text_of("//"), &begin))
        return false;
    text = rn_text_slice(text, begin + 2, text.size);
    return rn_text_find(text, ration_text_of("@"), &at) && memchr(text.data, '/', at) == NULL;
}

static int url_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    const bool user = has_user(text);
    const int err = user ? RATION_ERR_CONFIG : rn_url_read(loader, text, out);
    size_t at = 0;

    (void)key;
    /* What may hold a password is not repeated. */
    if (user || (err == RATION_ERR_SYNTAX && rn_text_find(text, ration_text_of("@"), &at))) {
        loader->quiet_value = true;
        if (rn_source_hide(loader->at->at.source, &loader->work, loader->at->span) != RATION_OK)
            return RATION_ERR_NOMEM;
    }
    if (user) {
        rn_loader_fault(loader, loader->at, NULL, "put what authenticates a call into the account's `credential`",
                        "a URL here holds no user and no password");
    }
    return err;
}

static bool url_write(rn_out *out, const rn_key *key, const void *value)
{
    const rn_url *url = value;

    (void)key;
    if (url->given)
        rn_out_json(out, url->text);
    return url->given;
}

static int address_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    (void)key;
    return rn_address_read(loader, text, out);
}

static bool address_write(rn_out *out, const rn_key *key, const void *value)
{
    const rn_address *address = value;

    (void)key;
    if (address->text != NULL)
        rn_out_json(out, address->text);
    return address->text != NULL;
}

const rn_type rn_type_url = {"URL",
                             "a URL such as https://api.example.com/v1 (http or https, no query)",
                             RN_FORM_TEXT,
                             sizeof(rn_url),
                             "\"type\":\"string\",\"pattern\":\"^[Hh][Tt][Tt][Pp][Ss]?://|[$][{]\"",
                             url_read,
                             url_write,
                             NULL};
const rn_type rn_type_address = {
    "address",
    "an address such as 127.0.0.1:7600, [::1]:7600, localhost:7600 or unix:/run/ration.sock",
    RN_FORM_TEXT,
    sizeof(rn_address),
    "\"type\":\"string\"",
    address_read,
    address_write,
    NULL};
