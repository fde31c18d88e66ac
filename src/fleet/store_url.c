/* SPDX-License-Identifier: MIT */
/*
 * The URL of a store.
 *
 * It is read strictly: what is not understood is not ignored, because whoever writes `/1` or `?timeout=` expects that
 * it does something. A password in it would be shown wherever the URL is; it is refused, and never repeated.
 */
#include "fleet/store_url.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define PORT 6379
#define SENTINEL_PORT 26379

static const char expected[] = "not a store: redis://HOST[:PORT] is, or rediss:// for TLS, redis+sentinel://HOST,HOST/"
                               "MASTER, redis+cluster://HOST,HOST, unix:PATH";

static bool host_is_fine(ration_text host)
{
    if (host.size == 0 || host.size >= RN_STORE_HOST_MAX)
        return false;
    for (size_t i = 0; i < host.size; i++) {
        const char c = host.data[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!letter && strchr("-._:%", c) == NULL)
            return false;
    }
    return true;
}

bool rn_store_place_set(rn_store_place *place, ration_text host, int64_t port)
{
    if (!host_is_fine(host) || port < 1 || port > 65535)
        return false;
    memcpy(place->host, host.data, host.size);
    place->host[host.size] = '\0';
    place->port = (uint16_t)port;
    return true;
}

int64_t rn_store_number(ration_text text)
{
    int64_t number = 0;

    if (text.size == 0 || text.size > 5)
        return -1;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -1;
        number = 10 * number + (text.data[i] - '0');
    }
    return number;
}

/* HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT. */
static bool place_read(ration_text text, int64_t port, rn_store_place *out)
{
    const char *const end = text.data + text.size;
    const char *colon;
    ration_text host = text;

    if (text.size > 0 && text.data[0] == '[') {
        const char *const bracket = memchr(text.data, ']', text.size);

        if (bracket == NULL)
            return false;
        host = (ration_text){text.data + 1, (size_t)(bracket - text.data) - 1};
        colon = bracket + 1;
        if (colon < end && *colon != ':')
            return false;
    } else {
        colon = text.size > 0 ? memchr(text.data, ':', text.size) : NULL;
        if (colon == NULL)
            colon = end;
        host.size = (size_t)(colon - text.data);
    }
    if (colon < end)
        port = rn_store_number((ration_text){colon + 1, (size_t)(end - colon) - 1});
    return rn_store_place_set(out, host, port);
}

static const char *places_read(ration_text text, rn_store_url *out)
{
    const int64_t port = out->kind == RN_STORE_SENTINEL ? SENTINEL_PORT : PORT;

    for (;;) {
        const char *const comma = text.size > 0 ? memchr(text.data, ',', text.size) : NULL;
        const size_t size = comma != NULL ? (size_t)(comma - text.data) : text.size;

        if (out->count == RN_STORE_PLACES_MAX)
            return "not a store: it has more than 16 hosts";
        if (!place_read((ration_text){text.data, size}, port, &out->places[out->count++]))
            return expected;
        if (comma == NULL)
            return NULL;
        text.data += size + 1;
        text.size -= size + 1;
    }
}

/* What stands behind the hosts: the master's name, and nothing else anywhere. */
static const char *path_read(ration_text path, rn_store_url *out)
{
    if (out->kind != RN_STORE_SENTINEL)
        return path.size == 0 ? NULL : "not a store: nothing may stand behind the hosts; a fleet uses database 0";
    if (path.size < 2 || path.size > RN_STORE_NAME_MAX)
        return "not a store: Sentinel's URL ends with /MASTER, the name that the Sentinels know";
    for (size_t i = 1; i < path.size; i++) {
        if (path.data[i] <= ' ' || path.data[i] >= 0x7f || strchr("/?#,@", path.data[i]) != NULL)
            return "not a store: the master's name is one word of letters, digits, dots, dashes or underscores";
    }
    memcpy(out->master, path.data + 1, path.size - 1);
    out->master[path.size - 1] = '\0';
    return NULL;
}

static const char *socket_read(const char *path, rn_store_url *out)
{
    const size_t size = strlen(path);

    /* As many bytes as the address of a socket has. */
    if (size == 0 || size > 107)
        return "not a store: the path of a socket has 1 to 107 bytes";
    memcpy(out->places[0].host, path, size + 1);
    out->count = 1;
    return NULL;
}

const char *rn_store_url_read(const char *text, rn_store_url *out)
{
    static const struct {
        const char *scheme;
        rn_store_kind kind;
        bool tls;
    } schemes[] = {
        {"redis://", RN_STORE_SINGLE, false},
        {"rediss://", RN_STORE_SINGLE, true},
        {"redis+sentinel://", RN_STORE_SENTINEL, false},
        {"rediss+sentinel://", RN_STORE_SENTINEL, true},
        {"redis+cluster://", RN_STORE_CLUSTER, false},
        {"rediss+cluster://", RN_STORE_CLUSTER, true},
    };

    *out = (rn_store_url){0};
    if (strncmp(text, "unix:", 5) == 0)
        return socket_read(text + 5, out);
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        const size_t size = strlen(schemes[i].scheme);

        if (strncmp(text, schemes[i].scheme, size) != 0)
            continue;

        const char *const hosts = text + size;
        const size_t hosts_size = strcspn(hosts, "/?#");

        if (strchr(hosts, '@') != NULL)
            return "not a store: a user and a password come from the environment, not from the URL";
        out->kind = schemes[i].kind;
        out->tls = schemes[i].tls;

        const char *const wrong = places_read((ration_text){hosts, hosts_size}, out);

        return wrong != NULL ? wrong : path_read(ration_text_of(hosts + hosts_size), out);
    }
    return expected;
}

void rn_store_place_text(const rn_store_place *place, char text[RN_STORE_PLACE_TEXT])
{
    if (place->port == 0) {
        (void)snprintf(text, RN_STORE_PLACE_TEXT, "%s", place->host);
    } else {
        const bool bare = strchr(place->host, ':') == NULL;

        (void)snprintf(text, RN_STORE_PLACE_TEXT, bare ? "%s:%u" : "[%s]:%u", place->host, (unsigned)place->port);
    }
}

bool rn_store_place_eq(const rn_store_place *a, const rn_store_place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}
