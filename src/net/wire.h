/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_WIRE_H
#define RN_NET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <ration/types.h>

/*
 * Connections to other servers, whatever is spoken over them: TCP, TLS or a Unix socket, made by libcurl.
 *
 * An `rn_connector` is libcurl's part of an event loop of libuv; an `rn_wire` one connection. No handler is called
 * inside `rn_wire_open`, none after `rn_wire_close`.
 */

#define RN_WIRE_TEXT 256

struct uv_loop_s;

typedef struct rn_connector rn_connector;
typedef struct rn_wire rn_wire;

/* RATION_ERR_NOMEM. */
RATION_MUST_CHECK int rn_connector_new(struct uv_loop_s *loop, rn_connector **out);
/* After its wires. Ends within the loop's next turns. NULL is fine. */
void rn_connector_free(rn_connector *c);

typedef struct rn_wire_options {
    const char *url;       /* http://HOST:PORT, or https: with TLS */
    const char *unix_path; /* NULL: TCP */
    const char *ca_file;   /* PEM file of trusted CAs; NULL: the system's */
    const char *cert_file; /* PEM file of a certificate to show; NULL: none */
    const char *key_file;  /* and its key */
    const char *proxy;     /* as curl writes it; NULL: none, whatever the environment says */
    bool tls;
    bool alpn; /* offer HTTP/1.1 */
    int64_t connect_timeout_us;
} rn_wire_options;

typedef enum rn_wire_fault {
    RN_WIRE_CONNECT = 0, /* no name, no route, refused, no descriptor */
    RN_WIRE_TLS,         /* handshake or verification */
    RN_WIRE_TIMEOUT,
} rn_wire_fault;

typedef struct rn_wire_handlers {
    void (*connected)(void *user);
    /* Not: `text` is curl's, `os_error` an errno or 0. The wire is closed by its owner. */
    void (*refused)(void *user, rn_wire_fault fault, const char *text, int os_error);
    /* What was watched for. A negative `status`: libuv cannot poll any more. */
    void (*ready)(void *user, int status, int events);
} rn_wire_handlers;

/* Start to connect. Texts are copied, `handlers` borrowed. NULL: no memory. */
rn_wire *rn_wire_open(rn_connector *c, const rn_wire_options *options, const rn_wire_handlers *handlers, void *user);
void rn_wire_close(rn_wire *wire);

typedef enum rn_io {
    RN_IO_AGAIN = -1,
    RN_IO_END = -2,
    RN_IO_BROKEN = -3, /* `rn_wire_error` says why */
} rn_io;

/* The number of bytes, or an rn_io. With TLS a send of which not all was taken must be repeated with the same bytes. */
ssize_t rn_wire_send(rn_wire *wire, const char *data, size_t size);
/* With TLS bytes may be there that the socket does not tell of: receive until RN_IO_AGAIN. */
ssize_t rn_wire_receive(rn_wire *wire, char *data, size_t size);
/* Poll for these events of libuv; 0: none. */
void rn_wire_watch(rn_wire *wire, int events);
/* Nothing to read, and no end: what an idle connection should look like. */
bool rn_wire_is_quiet(const rn_wire *wire);
const char *rn_wire_error(const rn_wire *wire);

#endif
