/* SPDX-License-Identifier: MIT */
/*
 * Socket activation without a library: three variables and descriptors from 3 on.
 *
 * The name decides which listener a socket is for, so that the order of sockets in a unit means nothing. Whether others
 * can reach it is asked of the socket itself and not of the config, which says nothing of it.
 */
#include "net/activation.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/text.h"
#include "base/units.h"

#define FIRST 3
#define MOST 64

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
} any_address;

/* How many descriptors are ours. */
static int64_t count_of(const rn_activation *activation, int64_t pid)
{
    int64_t meant = 0, count = 0;

    if (activation->pid == NULL || activation->fds == NULL)
        return 0;
    if (rn_parse_int(ration_text_of(activation->pid), &meant) != RATION_OK || meant != pid)
        return 0;
    if (rn_parse_int(ration_text_of(activation->fds), &count) != RATION_OK || count < 0)
        return 0;
    return count > MOST ? MOST : count;
}

/* The next of the names, which are separated by colons; an absent one where there are no more. */
static ration_text name_next(ration_text *names)
{
    size_t colon = names->size;

    if (names->data == NULL)
        return *names;
    (void)rn_text_find(*names, ration_text_of(":"), &colon);

    const ration_text name = rn_text_slice(*names, 0, colon);

    *names = colon < names->size ? rn_text_slice(*names, colon + 1, names->size) : (ration_text){NULL, 0};
    return name;
}

static int fail(rn_net_error *error, const char *name, const char *what)
{
    rn_builder b;

    rn_builder_init(&b, error->text, sizeof error->text);
    rn_builder_str(&b, "the socket '");
    rn_builder_str(&b, name);
    rn_builder_str(&b, "' from the service manager: ");
    rn_builder_str(&b, what);
    return RATION_ERR_CONFIG;
}

static bool is_listening(int descriptor)
{
    int listens = 0, type = 0;
    socklen_t size = sizeof listens;

    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
        return false;
    size = sizeof type;
    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/* Its address in words, and whether others can reach it. False: it is of a family that is not served. */
static bool address_tell(int descriptor, rn_given_socket *out)
{
    any_address address = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "";
    uint16_t port = 0;
    rn_builder b;

    if (getsockname(descriptor, &address.any, &size) != 0)
        return false;
    rn_builder_init(&b, out->text, sizeof out->text);
    if (address.any.sa_family == AF_UNIX) {
        address.local.sun_path[sizeof address.local.sun_path - 1] = '\0';
        rn_builder_str(&b, "unix:");
        rn_builder_str(&b, address.local.sun_path);
        out->local = true;
        return true;
    }
    if (address.any.sa_family == AF_INET) {
        out->local = (ntohl(address.v4.sin_addr.s_addr) >> 24) == 127;
        port = ntohs(address.v4.sin_port);
        (void)inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host);
    } else if (address.any.sa_family == AF_INET6) {
        out->local = IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
        port = ntohs(address.v6.sin6_port);
        (void)inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host);
    } else {
        return false;
    }
    rn_builder_str(&b, address.any.sa_family == AF_INET6 ? "[" : "");
    rn_builder_str(&b, host);
    rn_builder_str(&b, address.any.sa_family == AF_INET6 ? "]:" : ":");
    rn_builder_int(&b, port);
    return true;
}

int rn_activation_take(const rn_activation *activation, int64_t pid, const char *name, rn_given_socket *out,
                       rn_net_error *error)
{
    ration_text names = ration_text_of(activation->names);
    const int64_t count = count_of(activation, pid);
    rn_given_socket given = {.descriptor = 0};

    for (int64_t i = 0; i < count; i++) {
        if (!rn_text_is(name_next(&names), name))
            continue;
        if (given.descriptor != 0)
            return fail(error, name, "there are two of that name");
        given.descriptor = (int)(FIRST + i);
    }
    if (given.descriptor != 0) {
        const int flags = fcntl(given.descriptor, F_GETFL);

        if (!is_listening(given.descriptor) || !address_tell(given.descriptor, &given))
            return fail(error, name, "it is no stream socket that listens");
        (void)fcntl(given.descriptor, F_SETFL, flags | O_NONBLOCK);
        (void)fcntl(given.descriptor, F_SETFD, FD_CLOEXEC);
    }
    *out = given;
    return RATION_OK;
}

size_t rn_activation_unknown(const rn_activation *activation, int64_t pid, const char *const *names)
{
    ration_text given = ration_text_of(activation->names);
    const int64_t count = count_of(activation, pid);
    size_t unknown = 0;

    for (int64_t i = 0; i < count; i++) {
        const ration_text name = name_next(&given);
        bool known = false;

        for (size_t k = 0; names[k] != NULL && !known; k++)
            known = rn_text_is(name, names[k]);
        unknown += !known;
    }
    return unknown;
}
