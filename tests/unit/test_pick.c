/* SPDX-License-Identifier: MIT */
/* The number at a JSON pointer, from texts in any pieces. Each row is read whole, by bytes and cut at every place. */
#include "support/check.h"

#include "base/mem.h"
#include "base/pick.h"

#define UNIT RATION_UNIT
#define MAX RATION_UNITS_MAX
#define NONE RN_PICKED_NONE
#define NUMBER RN_PICKED_NUMBER
#define LARGE RN_PICKED_LARGE
#define OTHER RN_PICKED_OTHER
#define BS "\\" /* a backslash of the text */

static const struct {
    const char *why;
    const char *pointer;
    const char *text;
    rn_picked want;
    int64_t micro;
} rows[] = {
    {"as providers tell it", "/usage/total_tokens", "{\"id\":\"x\",\"usage\":{\"total_tokens\":57}}", NUMBER,
     57 * UNIT},
    {"blanks everywhere", "/a/b", " \t\r\n{ \"a\" : { \"b\" : 5 } , \"c\" : [ 1 , 2 ] } \n", NUMBER, 5 * UNIT},
    {"the whole text", "", " 12.5 ", NUMBER, 12500000},
    {"the whole text, at its end", "", "12", NUMBER, 12 * UNIT},
    {"the whole text is a map", "", "{\"a\":1}", OTHER, 0},
    {"an element", "/a/1", "{\"a\":[7,8,9]}", NUMBER, 8 * UNIT},
    {"an element behind others of all kinds", "/4/1", "[{\"1\":2},[[3]],\"a,b\",null,[4,[5],6]]", OTHER, 0},
    {"the tenth", "/10", "[0,1,2,3,4,5,6,7,8,9,10,11]", NUMBER, 10 * UNIT},
    {"beyond the last element", "/2", "[1,2]", NONE, 0},
    {"no element is '-'", "/-", "[1,2]", NONE, 0},
    {"digits are a key of a map", "/0", "{\"0\":3}", NUMBER, 3 * UNIT},
    {"an empty key", "/", "{\"\":3}", NUMBER, 3 * UNIT},
    {"a key that begins alike", "/ab", "{\"a\":1,\"abc\":2,\"b\":3}", NONE, 0},
    {"the same key deeper", "/a", "{\"b\":{\"a\":1},\"c\":[{\"a\":2}]}", NONE, 0},
    {"the same way below another", "/a/b", "{\"x\":{\"a\":{\"b\":1}},\"a\":{\"c\":{\"b\":2}}}", NONE, 0},
    {"back on the way", "/a/b", "{\"a\":{\"c\":{\"d\":[]},\"b\":4},\"e\":{}}", NUMBER, 4 * UNIT},
    {"below a number", "/a/b", "{\"a\":1}", NONE, 0},
    {"below a list", "/a/b", "{\"a\":[1,{\"b\":2}]}", NONE, 0},

    {"of two equal keys the last", "/a", "{\"a\":1,\"a\":2}", NUMBER, 2 * UNIT},
    {"a last one that is no number", "/a", "{\"a\":1,\"a\":null}", OTHER, 0},
    {"a last one without the rest of the way", "/a/b", "{\"a\":{\"b\":1},\"a\":{\"c\":2}}", NONE, 0},
    {"a last one that is no map", "/a/b", "{\"a\":{\"b\":1},\"a\":3}", NONE, 0},
    {"a list that stands twice is counted anew", "/a/1", "{\"a\":[1,2],\"a\":[3,4]}", NUMBER, 4 * UNIT},

    {"escapes in a key", "/a~1b", "{\"a" BS "/b\":1}", NUMBER, UNIT},
    {"all escapes", "/\"\\/\b\f\n\r\t", "{\"" BS "\"" BS BS BS "/" BS "b" BS "f" BS "n" BS "r" BS "t\":1}", NONE, 0},
    {"a character by number", "/A\xC3\xA9\xE2\x82\xAC", "{\"" BS "u0041" BS "u00e9" BS "u20AC\":1}", NUMBER, UNIT},
    {"a pair of halves", "/\xF0\x9F\x98\x80", "{\"" BS "ud83d" BS "uDE00\":1}", NUMBER, UNIT},
    {"a character of four bytes", "/\xF0\x9F\x98\x80", "{\"\xF0\x9F\x98\x80\":1}", NUMBER, UNIT},
    {"a number in a text is none", "/a", "{\"a\":\"5\"}", OTHER, 0},
    {"a brace in a text", "/b", "{\"a\":\"}]{[,:" BS "\"\",\"b\":1}", NUMBER, UNIT},

    {"true", "/a", "{\"a\":true}", OTHER, 0},
    {"false", "/a", "{\"a\":false}", OTHER, 0},
    {"null", "/a", "{\"a\":null}", OTHER, 0},
    {"a list", "/a", "{\"a\":[1]}", OTHER, 0},
    {"a map", "/a", "{\"a\":{\"a\":1}}", OTHER, 0},
    {"below zero", "/a", "{\"a\":-1}", OTHER, 0},
    {"a little below zero", "/a", "{\"a\":-1e-400}", OTHER, 0},
    {"zero, below", "/a", "{\"a\":-0.00e9}", NUMBER, 0},

    {"six places", "", "0.000001", NUMBER, 1},
    {"a seventh rounds up", "", "0.0000001", NUMBER, 1},
    {"so does one far behind", "", "1.00000000000000000000000000000000001", NUMBER, UNIT + 1},
    {"zeros behind change nothing", "", "1.50000000000000000000000000000000000000", NUMBER, 1500000},
    {"an exponent", "", "1.25E2", NUMBER, 125 * UNIT},
    {"one with a sign", "", "1.25e+2", NUMBER, 125 * UNIT},
    {"a negative one", "", "125e-2", NUMBER, 1250000},
    {"exact where doubles are not", "", "9007199254.740991", NUMBER, MAX - 1},
    {"the largest", "", "9007199254.740992", NUMBER, MAX},
    {"a little more", "", "9007199254.740993", LARGE, 0},
    {"a little more, rounded up", "", "9007199254.7409920000000001", LARGE, 0},
    {"ten times the largest", "", "9007199254740992e-5", LARGE, 0},
    {"the largest of many digits", "", "900719925474099200000000e-14", NUMBER, MAX},
    {"much more", "", "1e400", LARGE, 0},
    {"more than any exponent", "", "1e99999999999999999999999999", LARGE, 0},
    {"less than any exponent", "", "1e-99999999999999999999999999", NUMBER, 1},
    {"nothing, however often", "", "0e99999999999999999999999999", NUMBER, 0},
    {"many digits", "", "123456789012345678901234567890", LARGE, 0},
    {"many digits that a negative exponent takes back", "", "1234567890123456789012345e-20", NUMBER, 12345678902},
    {"many zeros that an exponent takes back", "", "0.0000000000000000000000000000000000000005e40", NUMBER, 5 * UNIT},

    {"nothing", "", "", NONE, 0},
    {"blanks", "", "  \n", NONE, 0},
    {"the end of a stream", "", "[DONE]", NONE, 0},
    {"a text that breaks off behind the number", "/a", "{\"a\":1", NONE, 0},
    {"a comma at the end of a map", "/a", "{\"a\":1,}", NONE, 0},
    {"a comma at the end of a list", "/0", "[1,]", NONE, 0},
    {"no comma", "/a", "{\"a\":1 \"b\":2}", NONE, 0},
    {"no colon", "/a", "{\"a\" 1}", NONE, 0},
    {"two texts", "/a", "{\"a\":1}{\"a\":2}", NONE, 0},
    {"something behind", "/a", "{\"a\":1}x", NONE, 0},
    {"a key that is none", "/a", "{a:1}", NONE, 0},
    {"single quotes", "/a", "{'a':1}", NONE, 0},
    {"a list that ends as a map", "/0", "[1}", NONE, 0},
    {"a map that ends as a list", "/a", "{\"a\":1]", NONE, 0},
    {"an end too many", "/0", "[1]]", NONE, 0},
    {"a byte order mark", "",
     "\xEF\xBB\xBF"
     "1",
     NONE, 0},
    {"a zero before digits", "", "01", NONE, 0},
    {"a zero before digits, below", "", "-01", NONE, 0},
    {"a plus", "", "+1", NONE, 0},
    {"a sign alone", "", "-", NONE, 0},
    {"no digit before the point", "", ".5", NONE, 0},
    {"no digit behind it", "", "5.", NONE, 0},
    {"no digit behind it, and an exponent", "", "5.e1", NONE, 0},
    {"an exponent without digits", "", "5e", NONE, 0},
    {"an exponent with a sign alone", "", "5e+", NONE, 0},
    {"hexadecimal", "", "0x10", NONE, 0},
    {"not a number", "/a", "{\"a\":NaN}", NONE, 0},
    {"infinity", "/a", "{\"a\":Infinity}", NONE, 0},
    {"a word cut short", "/b", "{\"a\":nul,\"b\":1}", NONE, 0},
    {"a word too long", "/b", "{\"a\":nulll,\"b\":1}", NONE, 0},
    {"a comment", "/a", "{\"a\":1} // one", NONE, 0},
    {"a line feed in a text", "/b", "{\"a\":\"x\ny\",\"b\":1}", NONE, 0},
    {"an escape that is none", "/b", "{\"a\":\"" BS "x\",\"b\":1}", NONE, 0},
    {"a number of a character that is none", "/b", "{\"a\":\"" BS "u00g0\",\"b\":1}", NONE, 0},
    {"a first half alone", "/b", "{\"a\":\"" BS "ud83d\",\"b\":1}", NONE, 0},
    {"a first half before a character", "/b", "{\"a\":\"" BS "ud83dx\",\"b\":1}", NONE, 0},
    {"a first half before an escape", "/b", "{\"a\":\"" BS "ud83d" BS "n\",\"b\":1}", NONE, 0},
    {"an escape between the halves", "/b", "{\"a\":\"" BS "ud83d" BS "n" BS "ude00\",\"b\":1}", NONE, 0},
    {"others between the halves", "/b", "{\"a\":\"" BS "ud83dxx" BS "ude00\",\"b\":1}", NONE, 0},
    {"others in a character", "/b", "{\"a\":\"\xE2xx\x82\xAC\",\"b\":1}", NONE, 0},
    {"two first halves", "/b", "{\"a\":\"" BS "ud83d" BS "ud83d\",\"b\":1}", NONE, 0},
    {"a second half alone", "/b", "{\"a\":\"" BS "ude00\",\"b\":1}", NONE, 0},
    {"a byte that is no UTF-8", "/b", "{\"a\":\"\xFF\",\"b\":1}", NONE, 0},
    {"a character cut short", "/b", "{\"a\":\"\xE2\x82\",\"b\":1}", NONE, 0},
    {"a tail alone", "/b", "{\"a\":\"\x82\",\"b\":1}", NONE, 0},
    {"an overlong slash", "/b", "{\"a\":\"\xC0\xAF\",\"b\":1}", NONE, 0},
    {"an overlong one of three", "/b", "{\"a\":\"\xE0\x9F\x80\",\"b\":1}", NONE, 0},
    {"an overlong one of four", "/b", "{\"a\":\"\xF0\x8F\x80\x80\",\"b\":1}", NONE, 0},
    {"half a pair as bytes", "/b", "{\"a\":\"\xED\xA0\x80\",\"b\":1}", NONE, 0},
    {"beyond the last character", "/b", "{\"a\":\"\xF4\x90\x80\x80\",\"b\":1}", NONE, 0},
    {"the last character", "/b", "{\"a\":\"\xF4\x8F\xBF\xBF\",\"b\":1}", NUMBER, UNIT},
    {"UTF-8 outside of a text", "/b", "{\"b\":1}\xC3\xA9", NONE, 0},
};

static rn_picked picked(const rn_pointer *pointer, ration_text text, size_t cut, size_t step, int64_t *micro)
{
    rn_pick pick;
    size_t at = 0;

    rn_pick_init(&pick, pointer);
    while (at < text.size) {
        const size_t end = at < cut ? cut : at + step < text.size ? at + step : text.size;

        rn_pick_feed(&pick, (ration_text){text.data + at, end - at});
        at = end;
    }
    return rn_pick_end(&pick, micro);
}

static void each_text_has_its_number(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ration_text text = ration_text_of(rows[i].text);
        rn_pointer pointer;
        rn_arena arena;

        CHECK_ROW(rows[i].why);
        rn_arena_init(&arena, rn_mem_default());
        CHECK_EQ(rn_pointer_parse(&arena, ration_text_of(rows[i].pointer), &pointer), RATION_OK);
        for (size_t cut = 0; cut <= text.size; cut++) {
            int64_t micro = -1;

            CHECK_EQ(picked(&pointer, text, cut, cut > 0 ? text.size : 1, &micro), rows[i].want);
            CHECK_EQ(micro, rows[i].want == NUMBER ? rows[i].micro : -1);
        }
        rn_arena_fini(&arena);
    }
}

/* Lists in each other: as deep as may be, and one deeper. */
static void depth_has_an_end(void **state)
{
    static const ration_text step = {"0", 1};
    const rn_pointer pointer = {"/0", &step, 1};
    char text[2 * (RN_PICK_DEPTH + 1)];

    (void)state;
    for (size_t depth = RN_PICK_DEPTH; depth <= RN_PICK_DEPTH + 1; depth++) {
        int64_t micro = 0;

        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        CHECK_EQ(picked(&pointer, (ration_text){text, 2 * depth}, 0, 7, &micro),
                 depth == RN_PICK_DEPTH ? RN_PICKED_OTHER : RN_PICKED_NONE);
    }
}

static void what_breaks_off_was_seen(void **state)
{
    static const struct {
        const char *text;
        rn_picked want;
    } seen[] = {
        {"", NONE},
        {"{\"a\":", NONE},
        {"{\"a\":5", NONE},
        {"{\"a\":5.", NONE},
        {"{\"a\":\"5", NONE},
        {"{\"a\":\"5" BS, NONE},
        {"{\"a\":\"5\"", OTHER},
        {"{\"a\":nul", NONE},
        {"{\"a\":null", OTHER},
        {"{\"a\":[5", OTHER},
        {"{\"a\":4,\"a\":5", NONE},
        {"{\"a\":5,\"b\":7", NUMBER},
        {"{\"a\":5 ", NUMBER},
        {"{\"a\":5,", NUMBER},
        {"{\"a\":5,\"b\":\"long te", NUMBER},
        {"{\"a\":5,\"a\":", NUMBER},
        {"{\"a\":5,\"a\":{", OTHER},
        {"{\"a\":5}", NUMBER},
        {"{\"a\":5,?", NONE},
    };
    static const ration_text step = {"a", 1};
    const rn_pointer pointer = {"/a", &step, 1};

    (void)state;
    for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++) {
        int64_t micro = 0;
        rn_pick pick;

        CHECK_ROW(seen[i].text);
        rn_pick_init(&pick, &pointer);
        rn_pick_feed(&pick, ration_text_of(seen[i].text));
        CHECK_EQ(rn_pick_seen(&pick, &micro), seen[i].want);
        CHECK_EQ(micro, seen[i].want == NUMBER ? 5 * UNIT : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_text_has_its_number),
        cmocka_unit_test(depth_has_an_end),
        cmocka_unit_test(what_breaks_off_was_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
