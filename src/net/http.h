/* SPDX-License-Identifier: MIT */
#ifndef RN_NET_HTTP_H
#define RN_NET_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ration/types.h>

/* The words of HTTP that the codec, the server and the connections share. */

/** Body length: chunked, or until the connection closes. */
#define RN_LENGTH_UNKNOWN INT64_C(-1)

typedef struct rn_http_field {
    ration_text name;
    ration_text value; /* without white space around it; never absent */
} rn_http_field;

typedef struct rn_http_fields {
    const rn_http_field *items;
    size_t count;
} rn_http_fields;

/** The head of a request or response, all parts borrowed from the codec. */
typedef struct rn_http_head {
    ration_text method; /* request */
    ration_text target; /* request: as it stood, never empty */
    ration_text reason; /* response; may be empty */
    int status;         /* response */
    int minor;          /* HTTP/1.0 or HTTP/1.1 */
    int64_t body_bytes; /* 0: no body follows */
    int64_t
        told_bytes;  /* what Content-Length says, also where no body follows (HEAD, 304); RN_LENGTH_UNKNOWN: nothing */
    bool keep_alive; /* the peer is ready for another message on this connection */
    bool expect;     /* request: it waits for 100 Continue */
    ration_text upgrade; /* the value of Upgrade where Connection names it, else absent */
    rn_http_fields fields;
} rn_http_head;

/** Value of the first field called `name` (any case); absent if there is none. */
ration_text rn_http_find_text(rn_http_fields fields, ration_text name);
static inline ration_text rn_http_find(rn_http_fields fields, const char *name)
{
    return rn_http_find_text(fields, ration_text_of(name));
}
/** Number of fields called `name`. */
size_t rn_http_count_text(rn_http_fields fields, ration_text name);
static inline size_t rn_http_count(rn_http_fields fields, const char *name)
{
    return rn_http_count_text(fields, ration_text_of(name));
}
/** Both at once: how many there are, and the value of the first; absent if there is none. */
size_t rn_http_look_text(rn_http_fields fields, ration_text name, ration_text *first);
static inline size_t rn_http_look(rn_http_fields fields, const char *name, ration_text *first)
{
    return rn_http_look_text(fields, ration_text_of(name), first);
}
/** Whether the list value (`a, b;q=1`) has the member `token` (any case, parameters aside). */
bool rn_http_list_has(ration_text value, const char *token);
/** What a byte may stand in. */
typedef enum rn_http_kind {
    RN_HTTP_TOKEN = 1,
    RN_HTTP_VALUE = 2,  /* of a field, as rn_http_is_value */
    RN_HTTP_TARGET = 4, /* of a request */
    RN_HTTP_HOST = 8,   /* reg-name of RFC 3986 but for the escapes' own sign: unreserved and sub-delims */
} rn_http_kind;
/** How many bytes at the front of `text` are of that kind. */
size_t rn_http_run(ration_text text, rn_http_kind kind);
/** A token of RFC 9110: what a field name or a method may be. */
bool rn_http_is_token(ration_text text);
/** A field value that may be sent: no control character but the tab. */
bool rn_http_is_value(ration_text text);
/** A value of Host: a name or address, and perhaps a port (RFC 9110, 7.2). It may be empty. */
bool rn_http_is_host(ration_text text);
/** Fields that concern one connection only, among them those that `Connection` in `fields` names: not to be relayed. */
bool rn_http_is_hop_by_hop(rn_http_fields fields, ration_text name);
/** A field that a trailer must not be, because whoever merges it into the head would be led by it (RFC 9110, 6.5.1). */
bool rn_http_is_of_head(ration_text name);
/** The standard phrase of a status; "Unknown" for others. */
const char *rn_http_reason(int status);

#endif
