/* SPDX-License-Identifier: MIT */
/*
 * The codec's events as text: each input is fed whole, byte by byte, and cut in two at every place, and must say the
 * same.
 */

#include "support/http1_trace.h"

typedef struct row {
    const char *why;
    const char *input;
    const char *want;
} row;

static void check_rows(const row *rows, size_t count, bool response, bool answers_head)
{
    static trace t;

    for (size_t i = 0; i < count; i++) {
        const ration_text input = ration_text_of(rows[i].input);

        CHECK_ROW(rows[i].why);
        for (size_t cut = 0; cut <= input.size; cut++) {
            trace_run(&t, response, answers_head, input, (cuts){.first = cut});
            CHECK_STR(t.text, rows[i].want);
        }
        trace_run(&t, response, answers_head, input, (cuts){.most = 1});
        CHECK_STR(t.text, rows[i].want);
    }
    CHECK_ROW(NULL);
}

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define HOST "Host: h\r\n"

static void requests(void **state)
{
    static const row rows[] = {
        {"nothing", "", ""},
        {"plain", "GET /a?b=c HTTP/1.1\r\n" HOST "\r\n", "GET /a?b=c 1.1 0 keep Host=h\nend\n"},
        {"white space around a value", "GET / HTTP/1.1\r\nHost: \t h \t\r\nE:\r\n\r\n",
         "GET / 1.1 0 keep Host=h E=\nend\n"},
        {"empty lines before", "\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", "GET / 1.1 0 keep Host=h\nend\n"},
        {"length", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
         "POST / 1.1 5 keep Host=h Content-Length=5\n[hello]\nend\n"},
        {"no length", "POST / HTTP/1.1\r\n" HOST "\r\n", "POST / 1.1 0 keep Host=h\nend\n"},
        {"length nought", "POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n",
         "POST / 1.1 0 keep Host=h Content-Length=0\nend\n"},
        {"pipelined",
         "GET /1 HTTP/1.1\r\n" HOST "\r\nPOST /2 HTTP/1.1\r\n" HOST
         "Content-Length: 2\r\n\r\nhiGET /3 HTTP/1.1\r\n" HOST "\r\n",
         "GET /1 1.1 0 keep Host=h\nend\nPOST /2 1.1 2 keep Host=h Content-Length=2\n[hi]\nend\nGET /3 1.1 0 keep "
         "Host=h\nend\n"},
        {"chunks and trailers",
         "PUT / HTTP/1.1\r\n" HOST
         "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: 1\r\n"
         "U: 2\r\n\r\n",
         "PUT / 1.1 -1 keep Host=h Transfer-Encoding=Chunked\n[abc0123456789]\nend T=1 U=2\n"},
        {"no chunk", "PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         "PUT / 1.1 -1 keep Host=h Transfer-Encoding=chunked\nend\n"},
        {"close", "GET / HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n",
         "GET / 1.1 0 Host=h Connection=x, Close\nend\n"},
        {"HTTP/1.0 closes", "GET / HTTP/1.0\r\n\r\n", "GET / 1.0 0\nend\n"},
        {"HTTP/1.0 kept", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
         "GET / 1.0 0 keep Connection=keep-alive\nend\n"},
        {"expect", "PUT / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx",
         "PUT / 1.1 1 keep expect Host=h Expect=100-Continue Content-Length=1\n[x]\nend\n"},
        {"expect means nothing in HTTP/1.0", "PUT / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
         "PUT / 1.0 1 Expect=100-continue Content-Length=1\n[x]\nend\n"},
        {"upgrade is an offer", "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
         "GET / 1.1 0 keep upgrade Host=h Connection=Upgrade Upgrade=websocket\nend\n"},
        {"upgrade with a body",
         "POST / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
         "POST / 1.1 2 keep upgrade Host=h Connection=Upgrade Upgrade=h2c Content-Length=2\n[hi]\nend\n"},
        {"Upgrade that Connection does not name", "GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\n\r\n",
         "GET / 1.1 0 keep Host=h Upgrade=h2c\nend\n"},
        {"whole URL as target", "GET http://h/x HTTP/1.1\r\n" HOST "\r\n", "GET http://h/x 1.1 0 keep Host=h\nend\n"},
        {"asterisk", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "OPTIONS * 1.1 0 keep Host=h\nend\n"},
        {"bytes over 0x7f in a value", "GET / HTTP/1.1\r\n" HOST "X: \xc3\xa4\xff\r\n\r\n",
         "GET / 1.1 0 keep Host=h X=\xc3\xa4\xff\nend\n"},
    };

    (void)state;
    check_rows(rows, COUNT(rows), false, false);
}

static const row bad_request_rows[] = {
    /* start lines */
    {"no HTTP", "hello\r\n\r\n", "400 malformed start line\n"},
    {"HTTP/0.9", "GET /\r\n\r\n", "400 malformed start line\n"},
    {"two spaces", "GET  / HTTP/1.1\r\n" HOST "\r\n", "400 malformed start line\n"},
    {"space in the target", "GET /a b HTTP/1.1\r\n" HOST "\r\n", "400 malformed start line\n"},
    {"tab in the start line", "GET\t/ HTTP/1.1\r\n" HOST "\r\n", "400 malformed start line\n"},
    {"space after the version", "GET / HTTP/1.1 \r\n" HOST "\r\n", "400 malformed start line\n"},
    {"space before the method", " GET / HTTP/1.1\r\n" HOST "\r\n", "400 no HTTP\n"},
    {"small letters", "GET / http/1.1\r\n" HOST "\r\n", "400 malformed start line\n"},
    {"HTTP/1.10", "GET / HTTP/1.10\r\n" HOST "\r\n", "400 malformed start line\n"},
    {"HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 HTTP version not supported\n"},
    {"HTTP/1.2", "GET / HTTP/1.2\r\n" HOST "\r\n", "505 HTTP version not supported\n"},
    {"unknown method", "BREW / HTTP/1.1\r\n" HOST "\r\n", "501 Invalid method encountered\n"},
    {"method in small letters", "get / HTTP/1.1\r\n" HOST "\r\n", "501 Invalid method encountered\n"},
    {"CONNECT", "CONNECT h:443 HTTP/1.1\r\n" HOST "\r\n", "501 CONNECT is not supported\n"},
    {"relative target", "GET a HTTP/1.1\r\n" HOST "\r\n", "400 malformed request target\n"},
    {"asterisk for GET", "GET * HTTP/1.1\r\n" HOST "\r\n", "400 malformed request target\n"},
    {"other scheme", "GET ftp://h/ HTTP/1.1\r\n" HOST "\r\n", "400 malformed request target\n"},
    {"byte over 0x7f in the target", "GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n", "400 malformed request target\n"},
    {"TLS", "\x16\x03\x01\x02\x01\x01\x01", "400 no HTTP\n"},
    /* lines */
    {"bare LF", "GET / HTTP/1.1\n" HOST "\r\n", "400 line feed without carriage return\n"},
    {"bare LF at the end", "GET / HTTP/1.1\r\n" HOST "\n", "400 line feed without carriage return\n"},
    {"bare CR hides a field", "GET / HTTP/1.1\r\n" HOST "X: a\rContent-Length: 5\r\n\r\n",
     "400 carriage return without line feed\n"},
    {"CVE-2023-30589", "GET / HTTP/1.1\r\n" HOST "X-Abc: \rxTransfer-Encoding: chunked\r\n\r\n",
     "400 carriage return without line feed\n"},
    {"CR CR LF", "GET / HTTP/1.1\r\n" HOST "X: a\r\r\n\r\n", "400 carriage return without line feed\n"},
    {"folded line", "GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", "400 folded line\n"},
    {"folded length", "GET / HTTP/1.1\r\n" HOST "X: a\r\n\tContent-Length: 5\r\n\r\n", "400 folded line\n"},
    {"folded first field", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", "400 folded line\n"},
    /* fields */
    {"no colon", "GET / HTTP/1.1\r\n" HOST "X\r\n\r\n", "400 field without colon\n"},
    {"no name", "GET / HTTP/1.1\r\n" HOST ": x\r\n\r\n", "400 invalid field name\n"},
    {"space before the colon", "GET / HTTP/1.1\r\n" HOST "Content-Length : 5\r\n\r\n", "400 invalid field name\n"},
    {"tab before the colon", "GET / HTTP/1.1\r\n" HOST "Content-Length\t: 5\r\n\r\n", "400 invalid field name\n"},
    {"no token", "GET / HTTP/1.1\r\n" HOST "Content(Length: 5\r\n\r\n", "400 invalid field name\n"},
    {"control character",
     "GET / HTTP/1.1\r\n" HOST "X: a\x01"
     "b\r\n\r\n",
     "400 invalid character in a field value\n"},
    {"DEL", "GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n", "400 invalid character in a field value\n"},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", "400 no Host\n"},
    {"two Hosts", "GET / HTTP/1.1\r\n" HOST HOST "\r\n", "400 more than one Host\n"},
    {"two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\n" HOST HOST "\r\n", "400 more than one Host\n"},
    {"other expectation", "GET / HTTP/1.1\r\n" HOST "Expect: a miracle\r\n\r\n", "417 unknown expectation\n"},
    /* framing */
    {"two lengths", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
     "400 more than one Content-Length\n"},
    {"the same length twice", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\ncontent-length: 5\r\n\r\n",
     "400 more than one Content-Length\n"},
    {"list of lengths", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n", "400 malformed Content-Length\n"},
    {"length with sign", "POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n", "400 malformed Content-Length\n"},
    {"negative length", "POST / HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\n", "400 malformed Content-Length\n"},
    {"hexadecimal length", "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n", "400 malformed Content-Length\n"},
    {"empty length", "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", "400 malformed Content-Length\n"},
    {"length with a space", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5 5\r\n\r\n", "400 malformed Content-Length\n"},
    {"length over 64 bits", "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551617\r\n\r\n",
     "400 Content-Length overflow\n"},
    {"length over 63 bits", "POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775808\r\n\r\n",
     "400 Content-Length overflow\n"},
    {"length and chunks", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "400 two ways to frame the body\n"},
    {"chunks and length", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
     "400 two ways to frame the body\n"},
    {"two codings", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
     "400 more than one Transfer-Encoding\n"},
    {"coding list", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n",
     "501 transfer coding other than chunked\n"},
    {"chunked not last", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, identity\r\n\r\n",
     "400 transfer coding other than chunked\n"},
    {"coding with a vertical tab", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \vchunked\r\n\r\n",
     "400 invalid character in a field value\n"},
    {"quoted coding", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \"chunked\"\r\n\r\n",
     "400 transfer coding other than chunked\n"},
    {"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "400 Transfer-Encoding in HTTP/1.0\n"},
    /* closed early */
    {"closed in the head", "GET / HTTP/1.1\r\nHo", "400 connection closed amid the head\n"},
    {"closed in the body", "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel",
     "POST / 1.1 5 keep Host=h Content-Length=5\n[hel]\n400 connection closed amid the body\n"},
};

static void bad_requests(void **state)
{
    (void)state;
    check_rows(bad_request_rows, COUNT(bad_request_rows), false, false);
}

#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
#define CHUNKED_HEAD "POST / 1.1 -1 keep Host=h Transfer-Encoding=chunked\n"

/* What llhttp says about chunks is its own: only that it fails, and where, is checked. */
static void bad_chunks(void **state)
{
    static const row rows[] = {
        {"no number", CHUNKED "x\r\n", CHUNKED_HEAD},
        {"empty line", CHUNKED "\r\n", CHUNKED_HEAD},
        {"negative", CHUNKED "-1\r\n", CHUNKED_HEAD},
        {"sign", CHUNKED "+1\r\n", CHUNKED_HEAD},
        {"0x", CHUNKED "0x1\r\na\r\n", CHUNKED_HEAD},
        {"space after", CHUNKED "1 \r\na\r\n", CHUNKED_HEAD},
        {"space before", CHUNKED " 1\r\na\r\n", CHUNKED_HEAD},
        {"bare LF after the size", CHUNKED "1\na\r\n", CHUNKED_HEAD},
        {"bare CR after the size", CHUNKED "1\ra\r\n", CHUNKED_HEAD},
        {"bare LF in an extension", CHUNKED "1;a\nx\r\n", CHUNKED_HEAD},
        {"bare CR in an extension", CHUNKED "1;a\rx\r\na\r\n", CHUNKED_HEAD},
        {"size over 64 bits", CHUNKED "10000000000000000\r\na", CHUNKED_HEAD},
        {"data longer than the size", CHUNKED "1\r\nab\r\n", CHUNKED_HEAD "[a]\n"},
        {"data without CR LF", CHUNKED "1\r\na0\r\n\r\n", CHUNKED_HEAD "[a]\n"},
        {"data with bare LF", CHUNKED "1\r\na\n0\r\n\r\n", CHUNKED_HEAD "[a]\n"},
        {"folded trailer", CHUNKED "0\r\nT: 1\r\n 2\r\n\r\n", CHUNKED_HEAD},
        {"bare CR in a trailer", CHUNKED "0\r\nT: 1\rU: 2\r\n\r\n", CHUNKED_HEAD},
        {"bare LF in a trailer", CHUNKED "0\r\nT: 1\nU: 2\r\n\r\n", CHUNKED_HEAD},
        {"length in the trailers", CHUNKED "0\r\nContent-Length: 2\r\n\r\n", CHUNKED_HEAD},
        {"coding in the trailers", CHUNKED "0\r\ntransfer-encoding: chunked\r\n\r\n", CHUNKED_HEAD},
        {"trailer without colon", CHUNKED "0\r\nT\r\n\r\n", CHUNKED_HEAD},
        {"closed in a chunk", CHUNKED "5\r\nab", CHUNKED_HEAD "[ab]\n"},
        {"closed between chunks", CHUNKED "2\r\nab\r\n", CHUNKED_HEAD "[ab]\n"},
        {"closed in the trailers", CHUNKED "0\r\n", CHUNKED_HEAD},
    };
    static trace t;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const ration_text input = ration_text_of(rows[i].input);
        const size_t want = strlen(rows[i].want);

        CHECK_ROW(rows[i].why);
        for (size_t cut = 0; cut <= input.size; cut++) {
            trace_run(&t, false, false, input, (cuts){.first = cut, .most = cut == 0});
            CHECK(strncmp(t.text, rows[i].want, want) == 0);
            CHECK(strncmp(t.text + want, "400 ", 4) == 0);
        }
    }
    CHECK_ROW(NULL);
}

static void responses(void **state)
{
    static const row rows[] = {
        {"length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "200 1.1 2 keep Content-Length=2\n[hi]\nend\n"},
        {"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "200 1.1 0 keep Content-Length=0\nend\n"},
        {"space but no reason", "HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n", "299 1.1 0 keep Content-Length=0\nend\n"},
        {"until close", "HTTP/1.1 200 OK\r\n\r\nhi there", "200 1.1 -1\n[hi there]\nend\n"},
        {"until close, empty", "HTTP/1.1 200 OK\r\n\r\n", "200 1.1 -1\nend\n"},
        {"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", "200 1.0 2 Content-Length=2\n[hi]\nend\n"},
        {"close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
         "200 1.1 2 Connection=close Content-Length=2\n[hi]\nend\n"},
        {"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nT: 1\r\n\r\n",
         "200 1.1 -1 keep Transfer-Encoding=chunked\n[hi]\nend T=1\n"},
        {"204 has no body", "HTTP/1.1 204 No Content\r\n\r\n", "204 1.1 0 keep\nend\n"},
        {"204 that tells a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
         "204 1.1 0 keep Content-Length=5\nend\n"},
        {"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 1.1 0 keep Content-Length=5\nend\n"},
        {"1xx, then the response",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
         "1\r\n\r\nx",
         "100 1.1 0 keep\nend\n103 1.1 0 keep Link=x\nend\n200 1.1 1 keep Content-Length=1\n[x]\nend\n"},
        {"closed early", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi",
         "200 1.1 5 keep Content-Length=5\n[hi]\n400 connection closed amid the body\n"},
        {"101", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
         "400 protocol switched unasked\n"},
        {"empty line before", "\r\nHTTP/1.1 200 OK\r\n\r\n", "400 malformed start line\n"},
        {"HTTP/2", "HTTP/2 200 OK\r\nxxxx\r\n\r\n", "400 malformed status line\n"},
        {"HTTP/2.0", "HTTP/2.0 200 OK\r\n\r\n", "505 HTTP version not supported\n"},
        {"SSH", "SSH-2.0-OpenSSH_9.2\r\n", "400 no HTTP\n"},
        {"two digits", "HTTP/1.1 20 OK\r\n\r\n", "400 malformed status line\n"},
        {"four digits", "HTTP/1.1 2000 OK\r\n\r\n", "400 malformed status line\n"},
        {"099", "HTTP/1.1 099 OK\r\n\r\n", "400 malformed status line\n"},
        {"length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
         "400 two ways to frame the body\n"},
        {"other coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
         "400 transfer coding other than chunked\n"},
        {"folded line", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "400 folded line\n"},
    };
    static const row to_head[] = {
        {"length without a body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
         "200 1.1 0 keep Content-Length=5\nend\n200 1.1 0 keep\nend\n"},
        {"chunked without a body", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         "200 1.1 0 keep Transfer-Encoding=chunked\nend\n"},
    };

    (void)state;
    check_rows(rows, COUNT(rows), true, false);
    check_rows(to_head, COUNT(to_head), true, true);
}

/* A head of exactly `size` bytes with `fields` fields. */
static rn_http1_event feed_head(size_t size, size_t fields, int *status)
{
    char *head = malloc(size + fields * 4 + 64);
    rn_http1 h;
    size_t used;
    ration_text body;

    assert_non_null(head);
    used = (size_t)sprintf(head, "GET / HTTP/1.0\r\n");
    for (size_t i = 0; i + 1 < fields; i++)
        used += (size_t)sprintf(head + used, "A:\r\n");
    used += (size_t)sprintf(head + used, "A:");
    while (used + 4 < size)
        head[used++] = 'x';
    used += (size_t)sprintf(head + used, "\r\n\r\n");

    rn_http1_init(&h, false, 0);
    ration_text input = {head, used};
    const rn_http1_event event = rn_http1_next(&h, &input, &body);
    *status = h.status;
    rn_http1_fini(&h);
    free(head);
    return event;
}

static void bounds(void **state)
{
    int status;

    (void)state;
    CHECK_EQ(feed_head(RN_HTTP1_MAX_HEAD, 1, &status), RN_HTTP1_HEAD);
    CHECK_EQ(feed_head(RN_HTTP1_MAX_HEAD + 1, 1, &status), RN_HTTP1_FAILED);
    CHECK_EQ(status, 431);
    CHECK_EQ(feed_head(0, RN_HTTP1_MAX_FIELDS, &status), RN_HTTP1_HEAD);
    CHECK_EQ(feed_head(0, RN_HTTP1_MAX_FIELDS + 1, &status), RN_HTTP1_FAILED);
    CHECK_EQ(status, 431);
}

static void nul_is_refused(void **state)
{
    static const char with_nul[] = "GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n";
    static trace t;

    (void)state;
    trace_run(&t, false, false, (ration_text){with_nul, sizeof with_nul - 1}, (cuts){.most = 1});
    CHECK_STR(t.text, "400 NUL in the head\n");
}

/* Endless extensions without a byte of body. */
static void chunk_padding_is_bounded(void **state)
{
    rn_http1 h;
    ration_text body;
    ration_text input = ration_text_of(CHUNKED "1;");
    rn_http1_event event;

    (void)state;
    rn_http1_init(&h, false, 0);
    CHECK_EQ(rn_http1_next(&h, &input, &body), RN_HTTP1_HEAD);
    CHECK_EQ(rn_http1_next(&h, &input, &body), RN_HTTP1_MORE);
    size_t fed = 0;
    do {
        input = ration_text_of("abcdefghijklmnop");
        event = rn_http1_next(&h, &input, &body);
        fed += 16;
    } while (event == RN_HTTP1_MORE && fed < 65536);
    CHECK_EQ(event, RN_HTTP1_FAILED);
    CHECK(fed < 8192);
    rn_http1_fini(&h);
}

/* Words of HTTP. */
static void words(void **state)
{
    static const rn_http_field items[] = {
        {{"Connection", 10}, {"close, X-Mine", 13}},
        {{"A", 1}, {"1", 1}},
        {{"a", 1}, {"2", 1}},
    };
    const rn_http_fields fields = {items, COUNT(items)};

    (void)state;
    CHECK_TEXT(rn_http_find(fields, "a"), "1");
    CHECK(rn_http_find(fields, "b").data == NULL);
    CHECK_EQ(rn_http_count(fields, "A"), 2);
    CHECK(rn_http_list_has(ration_text_of("gzip;q=1 , Identity;q=0"), "identity"));
    CHECK(!rn_http_list_has(ration_text_of("gzipped"), "gzip"));
    CHECK(!rn_http_list_has(ration_text_of(""), "gzip"));
    CHECK(rn_http_is_hop_by_hop(fields, ration_text_of("x-mine")));
    CHECK(rn_http_is_hop_by_hop(fields, ration_text_of("Keep-Alive")));
    CHECK(rn_http_is_hop_by_hop((rn_http_fields){NULL, 0}, ration_text_of("TE")));
    CHECK(!rn_http_is_hop_by_hop(fields, ration_text_of("A")));
    CHECK_STR(rn_http_reason(429), "Too Many Requests");
    CHECK_STR(rn_http_reason(799), "Unknown");
    CHECK(rn_http_is_token(ration_text_of("!#$%&'*+-.^_`|~09azAZ")));
    for (const char *c = " \t\"(),/:;<=>?@[\\]{}\x7f\x80\xff"; *c != '\0'; c++)
        CHECK(!rn_http_is_token((ration_text){c, 1}));
    CHECK(!rn_http_is_token((ration_text){"", 0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(bad_requests),
        cmocka_unit_test(bad_chunks),
        cmocka_unit_test(responses),
        cmocka_unit_test(bounds),
        cmocka_unit_test(nul_is_refused),
        cmocka_unit_test(chunk_padding_is_bounded),
        cmocka_unit_test(words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
