/* SPDX-License-Identifier: MIT */
/*
 * A scanner for header values: small takers from the front of a text, without a state but the text itself.
 *
 * Numbers keep their fraction apart, exact to a millionth and rounded up beyond, because all that is read with them are
 * times until something may be done again. They saturate instead of wrapping.
 */
#include "core/scan.h"

#include "base/text.h"
#include "base/units.h"

#define PLACES 6

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t digits_at(ration_text text)
{
    size_t count = 0;

    while (count < text.size && is_digit(text.data[count]))
        count++;
    return count;
}

bool rn_scan_char(ration_text *text, char c)
{
    if (text->size == 0 || text->data[0] != c)
        return false;
    *text = rn_text_slice(*text, 1, text->size);
    return true;
}

bool rn_scan_digits(ration_text *text, size_t least, size_t most, int64_t *out)
{
    const size_t there = digits_at(*text);
    const size_t count = there < most ? there : most;
    int64_t value = 0;

    if (count < least)
        return false;
    for (size_t i = 0; i < count; i++)
        value = value * 10 + (text->data[i] - '0');
    *text = rn_text_slice(*text, count, text->size);
    *out = value;
    return true;
}

bool rn_scan_number(ration_text *text, rn_number *out)
{
    rn_number number = {0};
    ration_text rest = *text;
    const size_t whole = digits_at(rest);

    if (whole == 0)
        return false;
    for (size_t i = 0; i < whole; i++)
        number.whole = rn_add(rn_mul(number.whole, 10), rest.data[i] - '0');
    rest = rn_text_slice(rest, whole, rest.size);
    if (rn_scan_char(&rest, '.')) {
        const size_t places = digits_at(rest);
        if (places == 0)
            return false;
        number.fraction = true;
        for (size_t i = 0; i < PLACES; i++)
            number.micro = number.micro * 10 + (i < places ? rest.data[i] - '0' : 0);
        for (size_t i = PLACES; i < places; i++)
            number.rounded = number.rounded || rest.data[i] != '0';
        number.micro += number.rounded ? 1 : 0;
        rest = rn_text_slice(rest, places, rest.size);
    }
    *text = rest;
    *out = number;
    return true;
}

ration_text rn_scan_letters(ration_text *text)
{
    size_t count = 0;

    while (count < text->size && is_letter(text->data[count]))
        count++;

    const ration_text letters = rn_text_slice(*text, 0, count);

    *text = rn_text_slice(*text, count, text->size);
    return letters;
}

int64_t rn_number_times(const rn_number *number, int64_t unit)
{
    return rn_add(rn_mul(number->whole, unit), rn_div_ceil(rn_mul(number->micro, unit), 1000000));
}

bool rn_number_above(const rn_number *number, int64_t bound)
{
    return number->whole > bound || (number->whole == bound && number->micro > 0);
}
