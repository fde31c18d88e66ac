/* SPDX-License-Identifier: MIT */
/*
 * JSON as a scanner: one function a production, each of which moves `pos` behind what it read or sets `fault`.
 *
 * A value is checked whole before it is handed out, without recursion: what stands around the place at which the
 * scanner is is one bit a level, array or object. Going into an object that was read before reads its bytes once
 * more, which is bounded by RN_JSON_DEPTH_MAX and in practice two or three levels. Numbers are never converted here:
 * the caller knows how many places count.
 *
 * Invariants: `pos <= size`; once `fault` is set neither changes.
 */
#include "trace/json.h"

#include <string.h>

#include "base/text.h"

static void json_fail(rn_json *json, size_t at, const char *what)
{
    if (json->fault != NULL)
        return;
    json->fault = what;
    json->fault_at = at;
}

/* The byte `ahead` of here; NUL at the end, where a NUL in the text would be a fault all the same. */
static unsigned char json_peek(const rn_json *json, size_t ahead)
{
    return ahead < json->size - json->pos ? (unsigned char)json->data[json->pos + ahead] : 0;
}

static bool is_blank(unsigned char c)
{
    return c <= ' ' && (c == ' ' || c == '\t' || c == '\n' || c == '\r');
}

static void json_blank(rn_json *json)
{
    while (is_blank(json_peek(json, 0)))
        json->pos++;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(unsigned char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits of a \u at `p`, of which `left` bytes are there; -1 if they are not all hexadecimal. */
static int32_t hex_quad(const char *p, size_t left)
{
    int32_t unit = 0;

    if (left < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        const int digit = hex_digit((unsigned char)p[i]);

        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Over one escape; `pos` is at its backslash. */
static void json_escape(rn_json *json)
{
    const size_t at = json->pos;
    const unsigned char kind = json_peek(json, 1);

    if (kind != 'u') {
        if (kind == 0 || strchr("\"\\/bfnrt", kind) == NULL) {
            json_fail(json, at, "no such escape");
            return;
        }
        json->pos += 2;
        return;
    }

    const int32_t unit = hex_quad(json->data + at + 2, json->size - at - 2);

    if (unit < 0) {
        json_fail(json, at, "\\u needs four hexadecimal digits");
        return;
    }
    json->pos += 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return;
    if (unit <= 0xdbff && json_peek(json, 0) == '\\' && json_peek(json, 1) == 'u') {
        const int32_t low = hex_quad(json->data + json->pos + 2, json->size - json->pos - 2);

        if (low >= 0xdc00 && low <= 0xdfff) {
            json->pos += 6;
            return;
        }
    }
    json_fail(json, at, "half of a surrogate pair");
}

/* A string that may have anything in it. */
static void json_string_any(rn_json *json, rn_json_value *out)
{
    const size_t at = json->pos++;
    bool ascii = true;

    out->escaped = false;
    while (json->fault == NULL) {
        json->pos += rn_text_plain((ration_text){json->data + json->pos, json->size - json->pos});
        const unsigned char c = json_peek(json, 0);

        if (json->pos == json->size) {
            json_fail(json, at, "a text that does not end");
        } else if (c == '"') {
            out->type = RN_JSON_STRING;
            out->raw = (ration_text){json->data + at + 1, json->pos - at - 1};
            if (!ascii && !rn_text_is_utf8(out->raw))
                json_fail(json, at, "a text that is not UTF-8");
            json->pos++;
            return;
        } else if (c == '\\') {
            out->escaped = true;
            json_escape(json);
        } else if (c < 0x20) {
            json_fail(json, json->pos, "a control character in a text");
        } else {
            ascii = false;
            json->pos++;
        }
    }
}

/* Most strings are plain to their end. */
static void json_string(rn_json *json, rn_json_value *out)
{
    const ration_text rest = {json->data + json->pos + 1, json->size - json->pos - 1};
    const size_t plain = rn_text_plain(rest);

    if (plain == rest.size || rest.data[plain] != '"') {
        json_string_any(json, out);
        return;
    }
    out->type = RN_JSON_STRING;
    out->escaped = false;
    out->raw = (ration_text){rest.data, plain};
    json->pos += plain + 2;
}

/* Over at least one digit. */
static void json_digits(rn_json *json, const char *otherwise)
{
    if (!is_digit(json_peek(json, 0)))
        json_fail(json, json->pos, otherwise);
    while (is_digit(json_peek(json, 0)))
        json->pos++;
}

static void json_number(rn_json *json, rn_json_value *out)
{
    const size_t at = json->pos;

    if (json_peek(json, 0) == '-')
        json->pos++;
    if (json_peek(json, 0) == '0' && is_digit(json_peek(json, 1)))
        json_fail(json, at, "a number with a zero in front");
    json_digits(json, "a sign without a number");
    if (json_peek(json, 0) == '.') {
        json->pos++;
        json_digits(json, "a decimal point without digits behind it");
    }
    if (json_peek(json, 0) == 'e' || json_peek(json, 0) == 'E') {
        json->pos += json_peek(json, 1) == '+' || json_peek(json, 1) == '-' ? 2 : 1;
        json_digits(json, "an exponent without digits");
    }
    out->type = RN_JSON_NUMBER;
    out->raw = (ration_text){json->data + at, json->pos - at};
}

static void json_word(rn_json *json, rn_json_value *out)
{
    static const struct {
        const char *text;
        size_t size;
        rn_json_type type;
    } words[] = {{"true", 4, RN_JSON_TRUE}, {"false", 5, RN_JSON_FALSE}, {"null", 4, RN_JSON_NULL}};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (json->size - json->pos < words[i].size || memcmp(json->data + json->pos, words[i].text, words[i].size) != 0)
            continue;
        out->type = words[i].type;
        out->raw = (ration_text){json->data + json->pos, words[i].size};
        json->pos += words[i].size;
        return;
    }
    json_fail(json, json->pos, "not a value");
}

/* Over a value that contains no other. */
static void json_scalar(rn_json *json, rn_json_value *out)
{
    const unsigned char c = json_peek(json, 0);

    if (json->pos == json->size) {
        json_fail(json, json->pos, "ends where a value should be");
    } else if (c == '"') {
        json_string(json, out);
    } else if (c == '-' || is_digit(c)) {
        json_number(json, out);
    } else {
        json_word(json, out);
    }
}

static void json_expect(rn_json *json, char c, const char *otherwise)
{
    json_blank(json);
    if (json_peek(json, 0) == (unsigned char)c) {
        json->pos++;
    } else {
        json_fail(json, json->pos, otherwise);
    }
}

static void json_name(rn_json *json, rn_json_value *out)
{
    json_blank(json);
    if (json_peek(json, 0) != '"') {
        json_fail(json, json->pos, "a member's name in quotes should be here");
        return;
    }
    out->at = json->pos;
    json_string(json, out);
    json_expect(json, ':', "a colon should be here");
}

/* Which arrays and objects stand around a place: bit 0 of `objects` for the innermost. */
typedef struct nesting {
    uint64_t objects;
    unsigned depth;
} nesting;

/*
 * Behind a value: over commas and closing brackets to where the next value begins. True: the outermost one has
 * ended.
 */
static bool json_close(rn_json *json, nesting *around)
{
    while (around->depth > 0 && json->fault == NULL) {
        const bool object = (around->objects & 1) != 0;
        rn_json_value name;

        json_blank(json);
        if (json_peek(json, 0) == ',') {
            json->pos++;
            if (object)
                json_name(json, &name);
            return false;
        }
        json_expect(json, object ? '}' : ']', object ? "a comma or } should be here" : "a comma or ] should be here");
        around->objects >>= 1;
        around->depth--;
    }
    return true;
}

/* Into an array or object. True: it is empty, so that a value has ended. */
static bool json_open(rn_json *json, nesting *around)
{
    const bool object = json_peek(json, 0) == '{';
    rn_json_value name;

    if (around->depth == RN_JSON_DEPTH_MAX) {
        json_fail(json, json->pos, "nested too deeply");
        return true;
    }
    around->objects = around->objects << 1 | (object ? 1 : 0);
    around->depth++;
    json->pos++;
    json_blank(json);
    if (json_peek(json, 0) == (object ? '}' : ']')) {
        json->pos++;
        around->objects >>= 1;
        around->depth--;
        return true;
    }
    if (object)
        json_name(json, &name);
    return false;
}

void rn_json_init(rn_json *json, ration_text text)
{
    *json = (rn_json){.data = text.data, .size = text.size};
}

/* An array or object, to its end. */
static void json_nested(rn_json *json, rn_json_value *out)
{
    nesting around = {0, 0};
    rn_json_value scalar;

    out->type = json_peek(json, 0) == '{' ? RN_JSON_OBJECT : RN_JSON_ARRAY;
    while (json->fault == NULL) {
        bool ended = true;

        json_blank(json);
        if (json_peek(json, 0) == '{' || json_peek(json, 0) == '[') {
            ended = json_open(json, &around);
        } else {
            json_scalar(json, &scalar);
        }
        if (ended && json_close(json, &around))
            break;
    }
    out->raw = (ration_text){json->data + out->at, json->pos - out->at};
}

bool rn_json_value_next(rn_json *json, rn_json_value *out)
{
    json_blank(json);
    if (json->fault != NULL)
        return false;
    out->at = json->pos;
    out->escaped = false;
    if (json_peek(json, 0) == '{' || json_peek(json, 0) == '[') {
        json_nested(json, out);
    } else {
        json_scalar(json, out);
    }
    return json->fault == NULL;
}

bool rn_json_end(rn_json *json)
{
    json_blank(json);
    if (json->pos < json->size)
        json_fail(json, json->pos, "something follows the value");
    return json->fault == NULL;
}

bool rn_json_enter(rn_json *json, rn_json_type type)
{
    if (type == RN_JSON_OBJECT) {
        json_expect(json, '{', "an object should be here");
    } else {
        json_expect(json, '[', "an array should be here");
    }
    json->first = true;
    return json->fault == NULL;
}

void rn_json_reopen(const rn_json *json, const rn_json_value *value, rn_json *inner)
{
    *inner = (rn_json){.data = json->data, .size = value->at + value->raw.size, .pos = value->at + 1, .first = true};
}

/* To the next member or element; false at the closing bracket, which it passes, and at a fault. */
static bool json_advance(rn_json *json, char closing, const char *otherwise)
{
    json_blank(json);
    if (json->fault != NULL)
        return false;
    if (json_peek(json, 0) == (unsigned char)closing) {
        json->pos++;
        return false;
    }
    if (!json->first)
        json_expect(json, ',', otherwise);
    json->first = false;
    return json->fault == NULL;
}

bool rn_json_member(rn_json *json, rn_json_value *name, rn_json_value *value)
{
    if (!json_advance(json, '}', "a comma or } should be here"))
        return false;
    json_name(json, name);
    return json->fault == NULL && rn_json_value_next(json, value);
}

bool rn_json_element(rn_json *json, rn_json_value *value)
{
    return json_advance(json, ']', "a comma or ] should be here") && rn_json_value_next(json, value);
}

/* A character as UTF-8; its size. */
static size_t utf8_put(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }

    const size_t size = c < 0x800 ? 2 : (c < 0x10000 ? 3 : 4);
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = size - 1; i > 0; i--) {
        out[i] = (char)(unsigned char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(unsigned char)(marks[size] | c);
    return size;
}

/* The escape at `p`, whole and checked before: what it means into `out`, whose size counts up, and its own size. */
static size_t unescape_one(const char *p, char *out, size_t *used)
{
    static const char names[] = "bfnrt";
    static const char meant[] = "\b\f\n\r\t";

    if (p[1] != 'u') {
        const char *const name = strchr(names, p[1]);

        out[*used] = p[1];
        if (name != NULL)
            out[*used] = meant[name - names];
        *used += 1;
        return 2;
    }

    uint32_t c = (uint32_t)hex_quad(p + 2, 4);
    size_t size = 6;

    if (c >= 0xd800 && c <= 0xdbff) {
        c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)hex_quad(p + 8, 4) - 0xdc00);
        size = 12;
    }
    *used += utf8_put(c, out + *used);
    return size;
}

size_t rn_json_unescape(const rn_json_value *string, char *out)
{
    const char *const data = string->raw.data;
    size_t used = 0;

    for (size_t i = 0; i < string->raw.size;) {
        if (data[i] == '\\') {
            i += unescape_one(data + i, out, &used);
        } else {
            out[used++] = data[i++];
        }
    }
    return used;
}

int rn_json_text_copy(const rn_json_value *string, rn_arena *arena, ration_text *out)
{
    char *const copy = rn_arena_zalloc(arena, string->raw.size, 1);

    if (copy == NULL)
        return RATION_ERR_NOMEM;
    *out = (ration_text){copy, rn_json_unescape(string, copy)};
    return RATION_OK;
}

/* A number taken apart: its digits without leading zeros, and how often to multiply by ten what they say. */
typedef struct decimal {
    bool negative;
    uint64_t digits;
    bool overflow;
    int64_t exponent; /* counts the zeros at the end that were left out of `digits` */
} decimal;

static void decimal_digit(decimal *d, unsigned digit, uint64_t *zeros)
{
    /* Zeros wait until a digit follows them: "100e-2" needs no more room than "1". */
    if (digit == 0) {
        *zeros += 1;
        return;
    }
    for (; *zeros > 0 && d->digits > 0 && !d->overflow; --*zeros)
        d->overflow = __builtin_mul_overflow(d->digits, 10, &d->digits);
    *zeros = 0;
    d->overflow = d->overflow || __builtin_mul_overflow(d->digits, 10, &d->digits) ||
                  __builtin_add_overflow(d->digits, digit, &d->digits);
}

/* The digits behind an e; a number of them that no exponent needs counts as very many. */
static int64_t exponent_read(const char *p, size_t size)
{
    const bool negative = size > 0 && p[0] == '-';
    int64_t value = 0;

    for (size_t i = size > 0 && (p[0] == '-' || p[0] == '+') ? 1 : 0; i < size; i++)
        value = value < INT64_C(1) << 40 ? value * 10 + (p[i] - '0') : value;
    return negative ? -value : value;
}

static decimal decimal_read(ration_text number)
{
    decimal d = {0};
    uint64_t zeros = 0;
    int64_t places = 0;
    bool point = false;

    for (size_t i = 0; i < number.size; i++) {
        const char c = number.data[i];

        if (c == 'e' || c == 'E') {
            d.exponent = exponent_read(number.data + i + 1, number.size - i - 1);
            break;
        }
        if (c == '-') {
            d.negative = true;
        } else if (c == '.') {
            point = true;
        } else {
            decimal_digit(&d, (unsigned)(c - '0'), &zeros);
            places += point ? 1 : 0;
        }
    }
    d.exponent += (int64_t)zeros - places;
    return d;
}

/* A few digits and nothing else, as most numbers are. */
static bool fixed_is_short(ration_text number, int places, int64_t *out)
{
    int64_t value = 0;

    if (number.size > 9 || places > 9)
        return false;
    for (size_t i = 0; i < number.size; i++) {
        if (!is_digit((unsigned char)number.data[i]))
            return false;
        value = value * 10 + (number.data[i] - '0');
    }
    for (; places > 0; places--)
        value *= 10;
    *out = value;
    return true;
}

int rn_json_fixed(ration_text number, int places, int64_t *out)
{
    if (fixed_is_short(number, places, out))
        return RATION_OK;

    decimal d = decimal_read(number);

    if (d.digits == 0 && !d.overflow) {
        *out = 0;
        return RATION_OK;
    }
    d.exponent += places;
    if (d.exponent < 0)
        return RATION_ERR_SYNTAX;
    for (; d.exponent > 0 && !d.overflow; d.exponent--)
        d.overflow = __builtin_mul_overflow(d.digits, 10, &d.digits);
    if (d.overflow || d.digits > INT64_MAX)
        return RATION_ERR_RANGE;
    *out = d.negative ? -(int64_t)d.digits : (int64_t)d.digits;
    return RATION_OK;
}

const char *rn_json_type_name(rn_json_type type)
{
    static const char *const names[] = {"null", "false", "true", "a number", "a text", "an array", "an object"};

    return names[type];
}
