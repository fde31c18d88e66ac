/* SPDX-License-Identifier: MIT */
/*
 * The dashboard's files over HTTP.
 *
 * They have no secrets, so they need no token: the page asks for one and sends it with what it reads. What keeps it
 * harmless is said in each answer's fields: nothing but its own scripts and styles runs, nothing is asked of anybody
 * else, and nobody puts it into a frame. A file may be kept by a browser, which asks each time whether it is still
 * the one; a tag of its content answers that.
 */
#include "serve/web.h"

#include "base/text.h"

/* Scripts never write markup: a browser that knows trusted types holds them to it. */
#define POLICY                                                                                                         \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "              \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

#define FIELDS_MAX 10
#define TAG_BYTES 32

const rn_web_file *rn_web_find(ration_text path)
{
    static const ration_text folder = {"/ui/", 4};
    const bool root = rn_text_is(path, "/");
    const bool inside = rn_text_eq(rn_text_slice(path, 0, folder.size), folder);
    const ration_text name = root ? ration_text_of("index.html") : rn_text_slice(path, folder.size, path.size);

    for (size_t i = 0; i < rn_web_file_count && (root || inside); i++) {
        if (rn_text_is(name, rn_web_files[i].path))
            return &rn_web_files[i];
    }
    return NULL;
}

/* The tag as it stands in a field; the packed file is another thing than the plain one. */
static ration_text tag_write(const rn_web_file *file, bool packed, char buffer[TAG_BYTES])
{
    rn_builder b;

    rn_builder_init(&b, buffer, TAG_BYTES);
    rn_builder_char(&b, '"');
    rn_builder_str(&b, file->tag);
    rn_builder_str(&b, packed ? "-gz\"" : "\"");
    return (ration_text){b.data, b.used};
}

void rn_web_answer(rn_inbound *in, const rn_http_head *head, const rn_web_file *file)
{
    const bool packed = rn_http_list_has(rn_http_find(head->fields, "Accept-Encoding"), "gzip");
    char buffer[TAG_BYTES];
    const ration_text tag = tag_write(file, packed, buffer);
    const bool known = rn_http_list_has(rn_http_find(head->fields, "If-None-Match"), buffer);
    const rn_http_field fields[FIELDS_MAX] = {
        {ration_text_of("Content-Type"), ration_text_of(file->type)},
        {ration_text_of("Cache-Control"), ration_text_of("no-cache")},
        {ration_text_of("ETag"), tag},
        {ration_text_of("Vary"), ration_text_of("Accept-Encoding")},
        {ration_text_of("Content-Security-Policy"), ration_text_of(POLICY)},
        {ration_text_of("X-Content-Type-Options"), ration_text_of("nosniff")},
        {ration_text_of("Referrer-Policy"), ration_text_of("no-referrer")},
        {ration_text_of("Cross-Origin-Opener-Policy"), ration_text_of("same-origin")},
        {ration_text_of("Cross-Origin-Resource-Policy"), ration_text_of("same-origin")},
        {ration_text_of("Content-Encoding"), ration_text_of("gzip")},
    };
    const rn_response response = {.status = known ? 304 : 200,
                                  .fields = {fields, packed && !known ? FIELDS_MAX : FIELDS_MAX - 1}};
    const ration_text whole = packed ? (ration_text){(const char *)file->packed, file->packed_size}
                                     : (ration_text){(const char *)file->plain, file->plain_size};

    if (rn_inbound_respond(in, &response, known ? (ration_text){NULL, 0} : whole) != RATION_OK)
        rn_inbound_abort(in);
}
