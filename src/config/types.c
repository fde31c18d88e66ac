/* SPDX-License-Identifier: MIT */
/*
 * The kinds of scalars: numbers, spans, words, switches.
 *
 * Each is one row with its reader, its writer and its description, so that what the parser takes, what a recording
 * holds and what the schema says cannot drift apart. Values are moved with memcpy: the table knows where a value lives,
 * not its C type.
 *
 * Invariant: what `write` writes, `read` reads back as an equal value.
 */
#include <limits.h>
#include <string.h>

#include "base/units.h"
#include "config/loader.h"

#define RATIO_MAX 1000000 /* numerator and denominator */

/* Brackets in place of backslashes, which JSON would want doubled. */
#define EXPANSION "[$][{]"
#define DURATION "([0-9]+([.][0-9]+)?(d|h|ms|us|m|s))+"

static int range_check(const rn_key *key, int64_t value)
{
    const bool ranged = key->min != 0 || key->max != 0;

    return ranged && (value < key->min || value > key->max) ? RATION_ERR_RANGE : RATION_OK;
}

static int int64_store(const rn_key *key, int err, int64_t value, void *out)
{
    if (err == RATION_OK)
        err = range_check(key, value);
    if (err == RATION_OK)
        memcpy(out, &value, sizeof value);
    return err;
}

static int64_t int64_load(const void *value)
{
    int64_t loaded = 0;

    memcpy(&loaded, value, sizeof loaded);
    return loaded;
}

static int32_t int32_load(const void *value)
{
    int32_t loaded = 0;

    memcpy(&loaded, value, sizeof loaded);
    return loaded;
}

/* A number below zero is a number: it is out of range and not malformed. */
static int micro_parse(ration_text text, int64_t *out)
{
    if (text.size > 1 && text.data[0] == '-') {
        int64_t ignored = 0;

        text = rn_text_slice(text, 1, text.size);
        return rn_parse_micro(text, &ignored) == RATION_ERR_SYNTAX ? RATION_ERR_SYNTAX : RATION_ERR_RANGE;
    }
    return rn_parse_micro(text, out);
}

/* "3" and "3.0", which some writers of JSON make of it. */
static int integer_parse(ration_text text, int64_t *out)
{
    int64_t micro = 0;
    const int err = rn_parse_int(text, out);

    if (err != RATION_ERR_SYNTAX)
        return err;
    if (micro_parse(text, &micro) != RATION_OK || micro % RATION_UNIT != 0)
        return RATION_ERR_SYNTAX;
    *out = micro / RATION_UNIT;
    return RATION_OK;
}

static int integer_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    int64_t value = 0;
    const int err = integer_parse(text, &value);

    (void)loader;
    return int64_store(key, err, value, out);
}

static bool integer_write(rn_out *out, const rn_key *key, const void *value)
{
    const int64_t loaded = int64_load(value);

    if (loaded == 0 && key->fallback == NULL)
        return false;
    rn_out_int(out, loaded);
    return true;
}

static void integer_show(rn_out *out, int64_t bound)
{
    rn_out_int(out, bound);
}

static int small_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    int64_t value = 0;
    int err = integer_parse(text, &value);

    (void)loader;
    if (err == RATION_OK)
        err = range_check(key, value);
    if (err == RATION_OK && (value < INT32_MIN || value > INT32_MAX))
        err = RATION_ERR_RANGE;
    if (err != RATION_OK)
        return err;

    const int32_t small = (int32_t)value;

    memcpy(out, &small, sizeof small);
    return RATION_OK;
}

static bool small_write(rn_out *out, const rn_key *key, const void *value)
{
    const int32_t loaded = int32_load(value);

    if (loaded == 0 && key->fallback == NULL)
        return false;
    rn_out_int(out, loaded);
    return true;
}

static int units_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    int64_t value = 0;
    const int err = micro_parse(text, &value);

    (void)loader;
    return int64_store(key, err, value, out);
}

static bool units_write(rn_out *out, const rn_key *key, const void *value)
{
    const int64_t micro = int64_load(value);
    const bool absent = (key->flags & RN_KEY_UNSET) != 0 ? micro == RATION_UNSET : micro == 0;

    if (!absent)
        rn_out_micro(out, micro);
    return !absent;
}

static void units_show(rn_out *out, int64_t bound)
{
    rn_out_micro(out, bound);
}

static int units_auto_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    const int64_t unset = RATION_UNSET;

    if (!rn_text_is(text, "auto"))
        return units_read(loader, key, text, out);
    memcpy(out, &unset, sizeof unset);
    return RATION_OK;
}

static bool units_auto_write(rn_out *out, const rn_key *key, const void *value)
{
    const int64_t micro = int64_load(value);

    if (micro == RATION_UNSET) {
        rn_out_json(out, "auto");
    } else if (micro != 0) {
        return units_write(out, key, value);
    }
    return micro != 0;
}

static int duration_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    int64_t value = 0;
    const int err = rn_parse_duration(text, &value);

    (void)loader;
    return int64_store(key, err, value, out);
}

/* In the largest unit that has no rest. */
static bool duration_write(rn_out *out, const rn_key *key, const void *value)
{
    static const struct {
        const char *name;
        int64_t us;
    } units[] = {{"d", INT64_C(86400000000)},
                 {"h", INT64_C(3600000000)},
                 {"m", 60000000},
                 {"s", 1000000},
                 {"ms", 1000},
                 {"us", 1}};
    const int64_t us = int64_load(value);
    size_t unit = 0;

    if (us == RATION_UNSET || (us == 0 && (key->flags & RN_KEY_UNSET) == 0 && key->fallback == NULL))
        return false;
    while (us % units[unit].us != 0)
        unit++;
    rn_out_str(out, "\"");
    rn_out_int(out, us / units[unit].us);
    rn_out_str(out, units[unit].name);
    rn_out_str(out, "\"");
    return true;
}

static void duration_show(rn_out *out, int64_t bound)
{
    char buffer[64];
    rn_builder b;

    rn_builder_init(&b, buffer, sizeof buffer);
    rn_builder_duration(&b, bound);
    rn_out_str(out, buffer);
}

static int duration_auto_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    const int64_t learned = RN_HOLD_AUTO;

    if (!rn_text_is(text, "auto"))
        return duration_read(loader, key, text, out);
    memcpy(out, &learned, sizeof learned);
    return RATION_OK;
}

/* What was learned stands in each call of a recording, so that it is learned decides nothing there. */
static bool duration_auto_write(rn_out *out, const rn_key *key, const void *value)
{
    return int64_load(value) != RN_HOLD_AUTO && duration_write(out, key, value);
}

static int rate_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    ration_rate rate = {0, 0};
    const int err = rn_parse_rate(text, &rate);

    (void)loader;
    (void)key;
    if (err == RATION_OK)
        memcpy(out, &rate, sizeof rate);
    return err;
}

static bool rate_write(rn_out *out, const rn_key *key, const void *value)
{
    ration_rate rate = {0, 0};

    (void)key;
    memcpy(&rate, value, sizeof rate);
    if (rate.per_us == 0)
        return false;
    rn_out_str(out, "\"");
    rn_out_micro(out, rate.units);
    rn_out_str(out, "/");
    rn_out_int(out, rate.per_us);
    rn_out_str(out, "us\"");
    return true;
}

static int ratio_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    ration_ratio ratio = {0, 0};
    const int err = rn_parse_ratio(text, &ratio);

    (void)loader;
    (void)key;
    if (err == RATION_OK)
        memcpy(out, &ratio, sizeof ratio);
    return err;
}

static bool ratio_write(rn_out *out, const rn_key *key, const void *value)
{
    ration_ratio ratio = {0, 0};

    (void)key;
    memcpy(&ratio, value, sizeof ratio);
    if (ratio.den == 0)
        return false;
    rn_out_str(out, "\"");
    rn_out_int(out, ratio.num);
    rn_out_str(out, "/");
    rn_out_int(out, ratio.den);
    rn_out_str(out, "\"");
    return true;
}

/* A decimal as a fraction, which may be above 1; the range is the key's, in millionths. */
static int factor_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    int64_t micro = 0;
    int err = micro_parse(text, &micro);

    if (err == RATION_OK)
        err = range_check(key, micro);
    if (err != RATION_OK)
        return err;

    const int64_t divisor = (int64_t)rn_gcd((uint64_t)micro, (uint64_t)RATION_UNIT);

    if (micro / divisor > RATIO_MAX) {
        rn_loader_fault(loader, loader->at, NULL, "it must be a fraction of whole numbers up to a million",
                        "the number has too many digits");
        return RATION_ERR_CONFIG;
    }

    const ration_ratio ratio = {(int32_t)(micro / divisor), (int32_t)(RATION_UNIT / divisor)};

    memcpy(out, &ratio, sizeof ratio);
    return RATION_OK;
}

static bool factor_write(rn_out *out, const rn_key *key, const void *value)
{
    ration_ratio ratio = {0, 0};

    (void)key;
    memcpy(&ratio, value, sizeof ratio);
    if (ratio.den == 0)
        return false;
    rn_out_micro(out, ratio.num * (RATION_UNIT / ratio.den));
    return true;
}

static int bool_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    const bool value = rn_text_is_nocase(text, "true");

    (void)loader;
    (void)key;
    if (!value && !rn_text_is_nocase(text, "false"))
        return RATION_ERR_SYNTAX;
    memcpy(out, &value, sizeof value);
    return RATION_OK;
}

static bool bool_write(rn_out *out, const rn_key *key, const void *value)
{
    bool loaded = false;

    (void)key;
    memcpy(&loaded, value, sizeof loaded);
    rn_out_str(out, loaded ? "true" : "false");
    return true;
}

static const char *word_at(const void *names, size_t index)
{
    const rn_word *words = names;

    return words[index].name;
}

static int word_unknown(rn_loader *loader, const rn_key *key, ration_text text)
{
    char buffer[200];
    rn_builder b;
    size_t count = 0;

    rn_builder_init(&b, buffer, sizeof buffer);
    for (; key->words[count].name != NULL; count++) {
        rn_builder_str(&b, count > 0 ? ", " : "");
        rn_builder_str(&b, key->words[count].name);
    }

    const char *nearest = loader->quiet_value ? NULL : rn_nearest(text, key->words, count, word_at);
    const char *hint = nearest != NULL ? rn_loader_format(loader, "did you mean '%s'?", nearest) : NULL;

    rn_loader_fault(loader, loader->at, NULL, hint, "%s is not one of: %s",
                    loader->quiet_value ? "the value" : rn_loader_quote(loader, text), buffer);
    return RATION_ERR_CONFIG;
}

static int word_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    for (const rn_word *word = key->words; word->name != NULL; word++) {
        if (rn_text_is(text, word->name)) {
            memcpy(out, &word->value, sizeof word->value);
            return RATION_OK;
        }
    }
    return word_unknown(loader, key, text);
}

static bool word_write(rn_out *out, const rn_key *key, const void *value)
{
    const int loaded = int32_load(value);

    if (loaded == 0 && key->fallback == NULL)
        return false;
    for (const rn_word *word = key->words; word->name != NULL; word++) {
        if (word->value == loaded) {
            rn_out_json(out, word->name);
            return true;
        }
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HH:MM" to minutes after midnight. */
static int clock_read(rn_loader *loader, const rn_key *key, ration_text text, void *out)
{
    const char *s = text.data;

    (void)loader;
    (void)key;
    if (text.size != 5 || !is_digit(s[0]) || !is_digit(s[1]) || s[2] != ':' || !is_digit(s[3]) || !is_digit(s[4]))
        return RATION_ERR_SYNTAX;

    const int32_t hours = (s[0] - '0') * 10 + s[1] - '0';
    const int32_t minutes = (s[3] - '0') * 10 + s[4] - '0';
    const int32_t value = hours * 60 + minutes;

    if (hours > 23 || minutes > 59)
        return RATION_ERR_SYNTAX;
    memcpy(out, &value, sizeof value);
    return RATION_OK;
}

static bool clock_write(rn_out *out, const rn_key *key, const void *value)
{
    const int32_t minutes = int32_load(value);
    const char text[] = {(char)('0' + minutes / 600),     (char)('0' + minutes / 60 % 10), ':',
                         (char)('0' + minutes % 60 / 10), (char)('0' + minutes % 10),      '\0'};

    (void)key;
    if (minutes == 0)
        return false;
    rn_out_json(out, text);
    return true;
}

const rn_type rn_type_bool = {"boolean", "true or false", RN_FORM_BOOL, sizeof(bool), "\"type\":\"boolean\"",
                              bool_read, bool_write,      NULL};
const rn_type rn_type_word = {"word",    "a word",   RN_FORM_ANY, sizeof(int), "\"type\":\"string\"",
                              word_read, word_write, NULL};
const rn_type rn_type_integer = {"integer",
                                 "a whole number such as 100",
                                 RN_FORM_NUMBER,
                                 sizeof(int64_t),
                                 "\"type\":[\"integer\",\"string\"],\"pattern\":\"" EXPANSION "\"",
                                 integer_read,
                                 integer_write,
                                 integer_show};
const rn_type rn_type_small = {"integer",
                               "a whole number such as 5",
                               RN_FORM_NUMBER,
                               sizeof(int32_t),
                               "\"type\":[\"integer\",\"string\"],\"pattern\":\"" EXPANSION "\"",
                               small_read,
                               small_write,
                               integer_show};
const rn_type rn_type_units = {"number",
                               "a number with at most six places, such as 10 or 2.5",
                               RN_FORM_NUMBER,
                               sizeof(int64_t),
                               "\"type\":[\"number\",\"string\"],\"pattern\":\"" EXPANSION "\"",
                               units_read,
                               units_write,
                               units_show};
const rn_type rn_type_units_auto = {"number or `auto`",
                                    "a number such as 5000, or auto",
                                    RN_FORM_ANY,
                                    sizeof(int64_t),
                                    "\"type\":[\"number\",\"string\"],\"pattern\":\"^auto$|" EXPANSION "\"",
                                    units_auto_read,
                                    units_auto_write,
                                    units_show};
const rn_type rn_type_duration = {"duration",
                                  "a duration such as 250ms, 10s or 1h30m",
                                  RN_FORM_ANY,
                                  sizeof(int64_t),
                                  "\"type\":[\"string\",\"integer\"],\"pattern\":\"^" DURATION "$|^0$|" EXPANSION "\"",
                                  duration_read,
                                  duration_write,
                                  duration_show};
const rn_type rn_type_duration_auto = {"duration or `auto`",
                                       "a duration such as 250ms, 10s or 1h30m, or auto",
                                       RN_FORM_ANY,
                                       sizeof(int64_t),
                                       "\"type\":[\"string\",\"integer\"],\"pattern\":\"^auto$|^" DURATION
                                       "$|^0$|" EXPANSION "\"",
                                       duration_auto_read,
                                       duration_auto_write,
                                       duration_show};
const rn_type rn_type_rate = {"rate",
                              "a rate such as 10/s or 100/15m",
                              RN_FORM_ANY,
                              sizeof(ration_rate),
                              "\"type\":\"string\",\"pattern\":\"^[0-9]+([.][0-9]+)?/([smhd]|" DURATION ")$|" EXPANSION
                              "\"",
                              rate_read,
                              rate_write,
                              NULL};
const rn_type rn_type_ratio = {"ratio",
                               "a ratio from 0 to 1 such as 80%, 0.8 or 4/5",
                               RN_FORM_ANY,
                               sizeof(ration_ratio),
                               "\"type\":[\"string\",\"number\"],\"minimum\":0,\"maximum\":1,\"pattern\":"
                               "\"^[0-9]+([.][0-9]+)?%?$|^[0-9]+/[0-9]+$|" EXPANSION "\"",
                               ratio_read,
                               ratio_write,
                               NULL};
const rn_type rn_type_factor = {"number",
                                "a number with at most six places, such as 2 or 1.5",
                                RN_FORM_NUMBER,
                                sizeof(ration_ratio),
                                "\"type\":[\"number\",\"string\"],\"pattern\":\"" EXPANSION "\"",
                                factor_read,
                                factor_write,
                                units_show};
const rn_type rn_type_clock = {"time of day",
                               "a time of day such as 00:00 or 23:30",
                               RN_FORM_ANY,
                               sizeof(int32_t),
                               "\"type\":\"string\",\"pattern\":\"^([01][0-9]|2[0-3]):[0-5][0-9]$|" EXPANSION "\"",
                               clock_read,
                               clock_write,
                               NULL};
