/* SPDX-License-Identifier: MIT */
/*
 * The gate before the parser: lines are gathered whole and held against RFC 9112, letter by letter.
 *
 * Each line ends with CR LF, and neither byte stands anywhere else. A line that begins with white space is a folded
 * one and refused, not unfolded. Names are tokens up to the colon; values hold no control character but the tab. What
 * frames the body stands at most once and in one spelling: two lengths, a length beside chunks, a coding other than
 * chunked, or chunks in HTTP/1.0 are refused, because the next server on the way may count differently.
 *
 * Invariants: `line` is where the line that is not complete begins; fields point into `data` and are made only when the
 * section is complete, so that growing it moves nothing that is pointed to.
 */

#include "net/http1_gate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define FIRST_BLOCK 512
/* Empty lines before a request line are ignored (RFC 9112, 2.2), but not for ever: each begins the wait for a head. */
#define MAX_EMPTY_LINES 8

static const struct {
    rn_http1_gathered got;
    int status;
    const char *text;
} gather_faults[] = {
    {RN_HTTP1_GATHER_TOO_LARGE, 431, "head too large"},
    {RN_HTTP1_GATHER_TOO_LONG, 414, "request line too long"},
    {RN_HTTP1_GATHER_NO_HTTP, 400, "no HTTP"},
    {RN_HTTP1_GATHER_EMPTY_LINES, 400, "too many empty lines"},
    {RN_HTTP1_GATHER_BARE_LF, 400, "line feed without carriage return"},
    {RN_HTTP1_GATHER_BARE_CR, 400, "carriage return without line feed"},
    {RN_HTTP1_GATHER_NOMEM, 503, "out of memory"},
};

int rn_http1_gathered_status(rn_http1_gathered got)
{
    for (size_t i = 0; i < sizeof gather_faults / sizeof gather_faults[0]; i++) {
        if (gather_faults[i].got == got)
            return gather_faults[i].status;
    }
    return 400;
}

const char *rn_http1_gathered_text(rn_http1_gathered got)
{
    for (size_t i = 0; i < sizeof gather_faults / sizeof gather_faults[0]; i++) {
        if (gather_faults[i].got == got)
            return gather_faults[i].text;
    }
    return "malformed head";
}

void rn_http1_lines_fini(rn_http1_lines *lines)
{
    free(lines->data);
    free(lines->fields);
    memset(lines, 0, sizeof *lines);
}

void rn_http1_lines_clear(rn_http1_lines *lines, size_t keep)
{
    if (lines->capacity > keep || lines->field_capacity * sizeof *lines->fields > keep) {
        rn_http1_lines_fini(lines);
        return;
    }
    lines->used = lines->line = lines->field_count = lines->skipped = 0;
}

/* Room for `more` bytes behind the used ones. The first block fits what is there to come, rounded up a little. */
static bool lines_reserve(rn_http1_lines *lines, size_t more)
{
    const size_t need = lines->used + more;
    size_t capacity = lines->capacity > 0 ? lines->capacity : FIRST_BLOCK;

    if (need <= lines->capacity)
        return true;
    while (capacity < need)
        capacity *= 2;

    char *data = realloc(lines->data, capacity);
    if (data == NULL)
        return false;
    lines->data = data;
    lines->capacity = capacity;
    return true;
}

/* Move bytes of the input behind the used ones. */
static bool lines_append(rn_http1_lines *lines, ration_text *input, size_t size)
{
    if (size == 0)
        return true;
    if (!lines_reserve(lines, size))
        return false;
    memcpy(lines->data + lines->used, input->data, size);
    lines->used += size;
    input->data += size;
    input->size -= size;
    return true;
}

/* What speaks another protocol would often wait for an answer before it ends a line: its first byte gives it away. */
static bool may_begin(char c, rn_http1_section section)
{
    switch (section) {
    case RN_HTTP1_REQUEST:
        return c == '\r' || c == '\n' || rn_http_is_token((ration_text){&c, 1});
    case RN_HTTP1_RESPONSE:
        return c == 'H' || c == '\r' || c == '\n';
    case RN_HTTP1_TRAILERS:
        return true;
    }
    assert(false && "no such section");
    return false;
}

/* A line has ended with the `*seen` bytes of the input that are not copied yet. */
static rn_http1_gathered lines_end_line(rn_http1_lines *lines, ration_text *input, ration_text line, size_t *seen,
                                        rn_http1_section section)
{
    if (line.size < 2 || line.data[line.size - 2] != '\r')
        return RN_HTTP1_GATHER_BARE_LF;
    if (memchr(line.data, '\r', line.size - 2) != NULL)
        return RN_HTTP1_GATHER_BARE_CR;
    if (line.size > 2) {
        lines->line = lines->used + *seen;
        return RN_HTTP1_GATHER_MORE;
    }
    if (lines->line > 0 || section != RN_HTTP1_REQUEST)
        return lines_append(lines, input, *seen) ? RN_HTTP1_GATHER_DONE : RN_HTTP1_GATHER_NOMEM;
    /* Only empty ones so far. */
    *input = rn_text_slice(*input, *seen, input->size);
    *seen = lines->used = 0;
    return ++lines->skipped > MAX_EMPTY_LINES ? RN_HTTP1_GATHER_EMPTY_LINES : RN_HTTP1_GATHER_MORE;
}

/* Lines that are whole in the input are looked at where they are, and `seen` bytes of it copied in one go. */
rn_http1_gathered rn_http1_lines_gather(rn_http1_lines *lines, ration_text *input, size_t max_bytes,
                                        rn_http1_section section)
{
    size_t seen = 0;

    while (seen < input->size) {
        const char *from = input->data + seen;
        const char *feed = memchr(from, '\n', input->size - seen);
        const size_t size = feed != NULL ? (size_t)(feed - from) + 1 : input->size - seen;
        const size_t held = lines->used + seen;
        const bool amid = held > lines->line;
        ration_text line = {from, size};

        if (held == 0 && !may_begin(*from, section))
            return RN_HTTP1_GATHER_NO_HTTP;
        if (size > max_bytes - held) {
            return lines->line == 0 && section == RN_HTTP1_REQUEST ? RN_HTTP1_GATHER_TOO_LONG
                                                                   : RN_HTTP1_GATHER_TOO_LARGE;
        }
        seen += size;
        if (feed == NULL)
            break;
        if (amid) {
            if (!lines_append(lines, input, seen))
                return RN_HTTP1_GATHER_NOMEM;
            line = (ration_text){lines->data + lines->line, lines->used - lines->line};
            seen = 0;
        }

        const rn_http1_gathered got = lines_end_line(lines, input, line, &seen, section);
        if (got != RN_HTTP1_GATHER_MORE)
            return got;
    }
    return lines_append(lines, input, seen) ? RN_HTTP1_GATHER_MORE : RN_HTTP1_GATHER_NOMEM;
}

static bool fault_set(rn_http1_fault *fault, int status, const char *text)
{
    fault->status = status;
    fault->text = text;
    return false;
}

/* The next line without its CR LF; `*at` moves behind it. False at the empty line. */
static bool line_next(const rn_http1_lines *lines, size_t *at, ration_text *out)
{
    const char *data = lines->data + *at;
    const char *feed = memchr(data, '\n', lines->used - *at);
    const size_t size = (size_t)(feed - data) - 1;

    if (size == 0)
        return false;
    *out = (ration_text){data, size};
    *at += size + 2;
    return true;
}

static bool lines_add_field(rn_http1_lines *lines, rn_http_field field)
{
    if (lines->field_count == lines->field_capacity) {
        const size_t capacity = lines->field_capacity > 0 ? lines->field_capacity * 2 : 16;
        rn_http_field *fields = realloc(lines->fields, capacity * sizeof *fields);

        if (fields == NULL)
            return false;
        lines->fields = fields;
        lines->field_capacity = capacity;
    }
    lines->fields[lines->field_count++] = field;
    return true;
}

/* White space behind a value goes before it: llhttp, which reads the line after us, minds a tab at the end. */
static ration_text value_trim(rn_http1_lines *lines, ration_text raw)
{
    const ration_text value = rn_text_trim(raw);
    char *to = lines->data + (raw.data - lines->data) + (raw.size - value.size);

    if (value.size == 0 || value.data == to)
        return value;
    memmove(to, value.data, value.size);
    memset(to - (raw.size - value.size), ' ', raw.size - value.size);
    return (ration_text){to, value.size};
}

/* What is wrong with a line that does not begin with a name and a colon. */
static bool fault_name(ration_text line, rn_http1_fault *fault)
{
    if (line.data[0] == ' ' || line.data[0] == '\t')
        return fault_set(fault, 400, "folded line");
    return fault_set(fault, 400,
                     memchr(line.data, ':', line.size) != NULL ? "invalid field name" : "field without colon");
}

static bool gate_field(rn_http1_lines *lines, ration_text line, rn_http1_fault *fault)
{
    const ration_text name = {line.data, rn_http_run(line, RN_HTTP_TOKEN)};

    if (name.size == 0 || name.size == line.size || line.data[name.size] != ':')
        return fault_name(line, fault);
    const ration_text value = value_trim(lines, rn_text_slice(line, name.size + 1, line.size));
    if (!rn_http_is_value(value))
        return fault_set(fault, 400, "invalid character in a field value");
    if (lines->field_count == RN_HTTP1_MAX_FIELDS)
        return fault_set(fault, 431, "too many fields");
    if (!lines_add_field(lines, (rn_http_field){name, value}))
        return fault_set(fault, 503, "out of memory");
    return true;
}

static bool gate_fields(rn_http1_lines *lines, size_t at, rn_http1_fault *fault)
{
    ration_text line;

    while (line_next(lines, &at, &line)) {
        if (!gate_field(lines, line, fault))
            return false;
    }
    return true;
}

static bool gate_version(ration_text text, rn_http_head *head, rn_http1_fault *fault)
{
    if (rn_text_is(text, "HTTP/1.1") || rn_text_is(text, "HTTP/1.0")) {
        head->minor = text.data[7] - '0';
        return true;
    }

    const bool other = text.size == 8 && memcmp(text.data, "HTTP/", 5) == 0 && text.data[5] >= '0' &&
                       text.data[5] <= '9' && text.data[6] == '.' && text.data[7] >= '0' && text.data[7] <= '9';
    return fault_set(fault, other ? 505 : 400, other ? "HTTP version not supported" : "malformed start line");
}

static bool target_fits(ration_text method, ration_text target)
{
    if (rn_http_run(target, RN_HTTP_TARGET) < target.size)
        return false;
    if (rn_text_is(target, "*"))
        return rn_text_is(method, "OPTIONS");
    return target.data[0] == '/' || (target.size > 7 && rn_text_is_nocase(rn_text_slice(target, 0, 7), "http://")) ||
           (target.size > 8 && rn_text_is_nocase(rn_text_slice(target, 0, 8), "https://"));
}

/* method SP target SP version */
static bool gate_request_line(ration_text line, rn_http_head *head, rn_http1_fault *fault)
{
    const char *end = line.data + line.size;
    const char *first = memchr(line.data, ' ', line.size);
    const char *second = first != NULL ? memchr(first + 1, ' ', (size_t)(end - first) - 1) : NULL;

    if (second == NULL)
        return fault_set(fault, 400, "malformed start line");
    head->method = (ration_text){line.data, (size_t)(first - line.data)};
    head->target = (ration_text){first + 1, (size_t)(second - first) - 1};
    if (!rn_http_is_token(head->method) || head->target.size == 0)
        return fault_set(fault, 400, "malformed start line");
    if (!gate_version((ration_text){second + 1, (size_t)(end - second) - 1}, head, fault))
        return false;
    if (rn_text_is(head->method, "CONNECT"))
        return fault_set(fault, 501, "CONNECT is not supported");
    return target_fits(head->method, head->target) || fault_set(fault, 400, "malformed request target");
}

/* version SP status SP reason; a missing reason may take its space along */
static bool gate_status_line(ration_text line, rn_http_head *head, rn_http1_fault *fault)
{
    if (line.size < 12 || line.data[8] != ' ' || (line.size > 12 && line.data[12] != ' '))
        return fault_set(fault, 400, "malformed status line");
    if (!gate_version((ration_text){line.data, 8}, head, fault))
        return false;

    for (size_t i = 9; i < 12; i++) {
        if (line.data[i] < '0' || line.data[i] > '9')
            return fault_set(fault, 400, "malformed status line");
        head->status = head->status * 10 + (line.data[i] - '0');
    }
    if (line.size > 13)
        head->reason = (ration_text){line.data + 13, line.size - 13};
    if (head->status < 100 || !rn_http_is_value(head->reason))
        return fault_set(fault, 400, "malformed status line");
    if (head->status == 101)
        return fault_set(fault, 400, "protocol switched unasked");
    return true;
}

static bool is_digits(ration_text text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return text.size > 0;
}

static bool fits_length(ration_text digits)
{
    int64_t value = 0;

    for (size_t i = 0; i < digits.size; i++) {
        const int64_t digit = digits.data[i] - '0';

        if (value > (INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    return true;
}

/* A coding that we do not know is one thing (501); a body whose end nobody can tell is another (400; RFC 9112, 6.3). */
static bool ends_chunked(ration_text codings)
{
    size_t at = codings.size;

    while (at > 0 && codings.data[at - 1] != ',')
        at--;
    return rn_text_is_nocase(rn_text_trim(rn_text_slice(codings, at, codings.size)), "chunked");
}

/* The fields that decide how a message is read. */
typedef enum noted {
    NOTED_HOST = 0,
    NOTED_EXPECT,
    NOTED_UPGRADE,
    NOTED_CONNECTION,
    NOTED_LENGTH,
    NOTED_CODING,
    NOTED_COUNT,
} noted;

/* Of each, how many there are and what the first one says; absent: there is none. */
typedef struct notes {
    size_t count[NOTED_COUNT];
    ration_text value[NOTED_COUNT];
    bool upgrades; /* a Connection names Upgrade */
} notes;

/* What may be called so; their lengths all differ, so that most names are compared with nothing. */
static noted noted_by_size(size_t size)
{
    switch (size) {
    case 4:
        return NOTED_HOST;
    case 6:
        return NOTED_EXPECT;
    case 7:
        return NOTED_UPGRADE;
    case 10:
        return NOTED_CONNECTION;
    case 14:
        return NOTED_LENGTH;
    case 17:
        return NOTED_CODING;
    default:
        return NOTED_COUNT;
    }
}

static void fields_note(rn_http_fields fields, notes *out)
{
    static const ration_text names[NOTED_COUNT] = {
        [NOTED_HOST] = RN_TEXT("Host"),
        [NOTED_EXPECT] = RN_TEXT("Expect"),
        [NOTED_UPGRADE] = RN_TEXT("Upgrade"),
        [NOTED_CONNECTION] = RN_TEXT("Connection"),
        [NOTED_LENGTH] = RN_TEXT("Content-Length"),
        [NOTED_CODING] = RN_TEXT("Transfer-Encoding"),
    };

    *out = (notes){0};
    for (size_t i = 0; i < fields.count; i++) {
        const rn_http_field *field = &fields.items[i];
        const noted what = noted_by_size(field->name.size);

        if (what == NOTED_COUNT || !rn_text_eq_nocase(field->name, names[what]))
            continue;
        if (out->count[what]++ == 0)
            out->value[what] = field->value;
        out->upgrades = out->upgrades || (what == NOTED_CONNECTION && rn_http_list_has(field->value, "upgrade"));
    }
}

/* One way to count the body, or none. */
static bool gate_framing(const rn_http_head *head, const notes *seen, bool response, rn_http1_fault *fault)
{
    const size_t lengths = seen->count[NOTED_LENGTH];
    const size_t codings = seen->count[NOTED_CODING];
    const ration_text length = seen->value[NOTED_LENGTH];
    const ration_text coding = seen->value[NOTED_CODING];

    if (lengths > 1)
        return fault_set(fault, 400, "more than one Content-Length");
    if (lengths == 1 && !is_digits(length))
        return fault_set(fault, 400, "malformed Content-Length");
    if (lengths == 1 && !fits_length(length))
        return fault_set(fault, 400, "Content-Length overflow");
    if (codings == 0)
        return true;
    if (codings > 1 || lengths > 0)
        return fault_set(fault, 400, codings > 1 ? "more than one Transfer-Encoding" : "two ways to frame the body");
    if (head->minor == 0)
        return fault_set(fault, 400, "Transfer-Encoding in HTTP/1.0");
    if (!rn_text_is_nocase(coding, "chunked"))
        return fault_set(fault, response || !ends_chunked(coding) ? 400 : 501, "transfer coding other than chunked");
    return true;
}

static bool gate_request_fields(rn_http_head *head, const notes *seen, rn_http1_fault *fault)
{
    const size_t hosts = seen->count[NOTED_HOST];

    if (hosts > 1)
        return fault_set(fault, 400, "more than one Host");
    if (hosts == 0 && head->minor > 0)
        return fault_set(fault, 400, "no Host");
    if (hosts == 1 && !rn_http_is_host(seen->value[NOTED_HOST]))
        return fault_set(fault, 400, "malformed Host");
    if (seen->count[NOTED_EXPECT] > 0 && head->minor > 0) {
        if (!rn_text_is_nocase(seen->value[NOTED_EXPECT], "100-continue"))
            return fault_set(fault, 417, "unknown expectation");
        head->expect = true;
    }
    if (seen->upgrades)
        head->upgrade = seen->value[NOTED_UPGRADE];
    return true;
}

bool rn_http1_gate_head(rn_http1_lines *lines, bool response, rn_http_head *head, rn_http1_fault *fault)
{
    ration_text line;
    size_t at = 0;
    notes seen;

    if (memchr(lines->data, '\0', lines->used) != NULL)
        return fault_set(fault, 400, "NUL in the head");
    if (!line_next(lines, &at, &line))
        return fault_set(fault, 400, "malformed start line");
    if (!(response ? gate_status_line(line, head, fault) : gate_request_line(line, head, fault)))
        return false;
    if (!gate_fields(lines, at, fault))
        return false;
    head->fields = (rn_http_fields){lines->fields, lines->field_count};
    fields_note(head->fields, &seen);
    return gate_framing(head, &seen, response, fault) && (response || gate_request_fields(head, &seen, fault));
}

bool rn_http1_gate_trailers(rn_http1_lines *lines, rn_http1_fault *fault)
{
    if (!gate_fields(lines, 0, fault))
        return false;

    const rn_http_fields fields = {lines->fields, lines->field_count};
    if (rn_http_count(fields, "content-length") > 0 || rn_http_count(fields, "transfer-encoding") > 0)
        return fault_set(fault, 400, "framing in the trailers");
    return true;
}
