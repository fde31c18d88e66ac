/* SPDX-License-Identifier: MIT */
/* Heads as text, what is refused, and that the codec reads back what was written. */

#include "support/check.h"

#include <stdlib.h>

#include "net/http1.h"
#include "net/http1_write.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define TEXT(s)                                                                                                        \
    {                                                                                                                  \
        (s), sizeof(s) - 1                                                                                             \
    }

static void check_written(const rn_buffer *b, const char *want)
{
    CHECK_TEXT(rn_buffer_bytes(b), want);
}

static void requests(void **state)
{
    static const rn_http_field items[] = {
        {TEXT("Accept"), TEXT("*/*")},       {TEXT("connection"), TEXT("keep-alive")},
        {TEXT("content-length"), TEXT("7")}, {TEXT("TRANSFER-ENCODING"), TEXT("gzip")},
        {TEXT("Empty"), TEXT("")},
    };
    rn_buffer b = {0};
    rn_http1_out head = {
        .method = TEXT("POST"),
        .target = TEXT("/a?b"),
        .host = TEXT("h:8080"),
        .framing = RN_HTTP1_FRAMING_LENGTH,
        .length = 12,
        .fields = {items, COUNT(items)},
    };

    (void)state;
    CHECK_EQ(rn_http1_write_request(&b, &head), RATION_OK);
    check_written(&b, "POST /a?b HTTP/1.1\r\nHost: h:8080\r\nAccept: */*\r\nEmpty: \r\nContent-Length: 12\r\n\r\n");
    rn_buffer_fini(&b);

    static const rn_http_field with_host[] = {{TEXT("host"), TEXT("other")}};
    head.fields = (rn_http_fields){with_host, 1};
    head.framing = RN_HTTP1_FRAMING_CHUNKED;
    head.connection = "close";
    CHECK_EQ(rn_http1_write_request(&b, &head), RATION_OK);
    check_written(&b, "POST /a?b HTTP/1.1\r\nhost: other\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
    rn_buffer_fini(&b);
}

static void responses(void **state)
{
    rn_buffer b = {0};
    rn_http1_out head = {.status = 429, .framing = RN_HTTP1_FRAMING_LENGTH, .length = 0};

    (void)state;
    CHECK_EQ(rn_http1_write_response(&b, &head), RATION_OK);
    check_written(&b, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n");
    rn_buffer_fini(&b);

    head = (rn_http1_out){.status = 204, .reason = TEXT("Nix")};
    CHECK_EQ(rn_http1_write_response(&b, &head), RATION_OK);
    check_written(&b, "HTTP/1.1 204 Nix\r\n\r\n");
    rn_buffer_fini(&b);
}

static void injections(void **state)
{
    static const struct {
        const char *why;
        rn_http_field field;
    } rows[] = {
        {"CR LF in a value", {TEXT("A"), TEXT("b\r\nC: d")}}, {"CR in a value", {TEXT("A"), TEXT("b\r")}},
        {"LF in a value", {TEXT("A"), TEXT("b\n")}},          {"NUL in a value", {TEXT("A"), TEXT("b\0c")}},
        {"DEL in a value", {TEXT("A"), TEXT("\x7f")}},        {"empty name", {TEXT(""), TEXT("b")}},
        {"space in a name", {TEXT("A B"), TEXT("b")}},        {"colon in a name", {TEXT("A:"), TEXT("b")}},
        {"CR LF in a name", {TEXT("A\r\nB"), TEXT("b")}},
    };
    rn_buffer b = {0};

    (void)state;
    CHECK(rn_buffer_append(&b, "before", 6));
    for (size_t i = 0; i < COUNT(rows); i++) {
        const rn_http_fields fields = {&rows[i].field, 1};
        const rn_http1_out request = {.method = TEXT("GET"), .target = TEXT("/"), .fields = fields};
        const rn_http1_out response = {.status = 200, .fields = fields};

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_http1_write_request(&b, &request), RATION_ERR_INVALID);
        CHECK_EQ(rn_http1_write_response(&b, &response), RATION_ERR_INVALID);
        check_written(&b, "before");
    }
    CHECK_ROW(NULL);

    const rn_http1_out bad[] = {
        {.method = TEXT(""), .target = TEXT("/")},
        {.method = TEXT("G T"), .target = TEXT("/")},
        {.method = TEXT("GET"), .target = TEXT("")},
        {.method = TEXT("GET"), .target = TEXT("/ HTTP/1.1\r\nA: b")},
        {.method = TEXT("GET"), .target = TEXT("/\xc3\xa4")},
        {.method = TEXT("GET"), .target = TEXT("/"), .host = TEXT("h\r\nA: b")},
    };
    for (size_t i = 0; i < COUNT(bad); i++)
        CHECK_EQ(rn_http1_write_request(&b, &bad[i]), RATION_ERR_INVALID);

    const rn_http1_out worse[] = {{.status = 99}, {.status = 1000}, {.status = 200, .reason = TEXT("a\r\nb")}};
    for (size_t i = 0; i < COUNT(worse); i++)
        CHECK_EQ(rn_http1_write_response(&b, &worse[i]), RATION_ERR_INVALID);
    check_written(&b, "before");
    rn_buffer_fini(&b);
}

static void chunks(void **state)
{
    static const struct {
        size_t size;
        const char *want;
    } rows[] = {{1, "1\r\n"}, {15, "f\r\n"}, {16, "10\r\n"}, {65536, "10000\r\n"}, {SIZE_MAX, "ffffffffffffffff\r\n"}};
    static const rn_http_field trailers[] = {
        {TEXT("T"), TEXT("1")},
        {TEXT("Content-Length"), TEXT("5")},
        {TEXT("Bad"), TEXT("a\r\nb")},
        {TEXT("U"), TEXT("2")},
    };
    char head[RN_HTTP1_CHUNK_HEAD];
    rn_buffer b = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const size_t size = rn_http1_chunk_head(head, rows[i].size);

        CHECK_TEXT(((ration_text){head, size}), rows[i].want);
    }
    CHECK_EQ(rn_http1_write_last_chunk(&b, (rn_http_fields){trailers, COUNT(trailers)}), RATION_OK);
    check_written(&b, "0\r\nT: 1\r\nU: 2\r\n\r\n");
    rn_buffer_fini(&b);
}

static void read_back(void **state)
{
    static const rn_http_field items[] = {{TEXT("A"), TEXT("b c")}, {TEXT("D"), TEXT("\xc3\xa4")}};
    const rn_http1_out out = {.method = TEXT("PUT"),
                              .target = TEXT("/x"),
                              .host = TEXT("h"),
                              .framing = RN_HTTP1_FRAMING_LENGTH,
                              .length = 0,
                              .fields = {items, COUNT(items)}};
    rn_buffer b = {0};
    rn_http1 h;
    ration_text body;

    (void)state;
    CHECK_EQ(rn_http1_write_request(&b, &out), RATION_OK);
    rn_http1_init(&h, false, 0);
    ration_text input = rn_buffer_bytes(&b);
    CHECK_EQ(rn_http1_next(&h, &input, &body), RN_HTTP1_HEAD);
    CHECK_EQ(input.size, 0);
    CHECK_EQ(h.head.fields.count, 4);
    CHECK_TEXT(rn_http_find(h.head.fields, "d"), "\xc3\xa4");
    CHECK_EQ(rn_http1_next(&h, &input, &body), RN_HTTP1_END);
    rn_http1_fini(&h);
    rn_buffer_fini(&b);
}

static void buffer_is_a_queue(void **state)
{
    char block[1500];
    char want[6000];
    rn_buffer b = {0};
    size_t fed = 0;
    size_t taken = 0;

    (void)state;
    for (size_t i = 0; i < sizeof want; i++)
        want[i] = (char)('a' + i % 23);
    while (taken < sizeof want) {
        size_t size = sizeof block < sizeof want - fed ? sizeof block : sizeof want - fed;
        CHECK(rn_buffer_append(&b, want + fed, size));
        fed += size;
        CHECK_EQ(rn_buffer_size(&b), fed - taken);
        size = rn_buffer_size(&b) < 1100 ? rn_buffer_size(&b) : 1100;
        CHECK(memcmp(rn_buffer_bytes(&b).data, want + taken, size) == 0);
        rn_buffer_consume(&b, size);
        taken += size;
    }
    CHECK(b.data == NULL);
    CHECK(!rn_buffer_reserve(&b, SIZE_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests), cmocka_unit_test(responses), cmocka_unit_test(injections),
        cmocka_unit_test(chunks),   cmocka_unit_test(read_back), cmocka_unit_test(buffer_is_a_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
