/* SPDX-License-Identifier: MIT */
/*
 * The JSON that traces are made of, both ways: what is taken, what is a fault and where, numbers to the last digit, and
 * that any bytes in a name come out as valid JSON.
 */
#include "support/check.h"

#include "base/mem.h"
#include "trace/canonical.h"
#include "trace/json.h"
#include "trace/output.h"

#define NEST_16 "[[[[[[[[[[[[[[[["
#define END_16 "]]]]]]]]]]]]]]]]"

static const struct {
    const char *why;
    const char *text;
    const char *fault; /* NULL: good */
    size_t at;
} documents[] = {
    {"a number", "0", NULL, 0},
    {"all of a number", "-12.5e+3", NULL, 0},
    {"blanks around", " \t\r\n{ \"a\" : [ 1 , 2 ] } ", NULL, 0},
    {"empty ones", "[[],{},\"\"]", NULL, 0},
    {"words", "[true,false,null]", NULL, 0},
    {"every escape", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u0000\"", NULL, 0},
    {"a surrogate pair", "\"\\ud83d\\ude00\"", NULL, 0},
    {"UTF-8", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"", NULL, 0},
    {"deepest", NEST_16 NEST_16 NEST_16 NEST_16 END_16 END_16 END_16 END_16, NULL, 0},

    {"nothing", "", "ends where a value should be", 0},
    {"only blanks", "  ", "ends where a value should be", 2},
    {"one too deep", NEST_16 NEST_16 NEST_16 NEST_16 "[", "nested too deeply", 64},
    {"two values", "1 2", "something follows the value", 2},
    {"a word in part", "[tru]", "not a value", 1},
    {"a capital", "True", "not a value", 0},
    {"NaN", "[NaN]", "not a value", 1},
    {"single quotes", "{'a':1}", "a member's name in quotes should be here", 1},
    {"a name without quotes", "{a:1}", "a member's name in quotes should be here", 1},
    {"a number as a name", "{1:1}", "a member's name in quotes should be here", 1},
    {"no colon", "{\"a\" 1}", "a colon should be here", 5},
    {"a comma too many in an object", "{\"a\":1,}", "a member's name in quotes should be here", 7},
    {"a comma too many in an array", "[1,]", "not a value", 3},
    {"no comma in an array", "[1 2]", "a comma or ] should be here", 3},
    {"no comma in an object", "{\"a\":1 \"b\":2}", "a comma or } should be here", 7},
    {"the wrong bracket", "[1}", "a comma or ] should be here", 2},
    {"an object that does not end", "{\"a\":1", "a comma or } should be here", 6},
    {"an array that does not end", "[1,", "ends where a value should be", 3},
    {"a comment", "[1] // one", "something follows the value", 4},

    {"a text that does not end", "\"abc", "a text that does not end", 0},
    {"an escape at the end", "\"abc\\", "no such escape", 4},
    {"an escape that is none", "\"\\x41\"", "no such escape", 1},
    {"\\u too short", "\"\\u12\"", "\\u needs four hexadecimal digits", 1},
    {"\\u at the end", "\"\\u1", "\\u needs four hexadecimal digits", 1},
    {"a high surrogate alone", "\"\\ud83d\"", "half of a surrogate pair", 1},
    {"a high surrogate and something", "\"\\ud83d\\u0041\"", "half of a surrogate pair", 1},
    {"a low surrogate alone", "\"\\ude00\"", "half of a surrogate pair", 1},
    {"a line feed in a text", "\"a\nb\"", "a control character in a text", 2},
    {"latin 1", "[\"\xe9\"]", "a text that is not UTF-8", 1},
    {"an overlong form", "\"\xc0\xaf\"", "a text that is not UTF-8", 0},
    {"a surrogate in UTF-8", "\"\xed\xa0\x80\"", "a text that is not UTF-8", 0},
    {"UTF-8 cut by the quote", "\"\xe2\x82\"", "a text that is not UTF-8", 0},

    {"a zero in front", "01", "a number with a zero in front", 0},
    {"two zeros, negative", "-00", "a number with a zero in front", 0},
    {"a plus", "+1", "not a value", 0},
    {"only a sign", "-", "a sign without a number", 1},
    {"a point at the end", "1.", "a decimal point without digits behind it", 2},
    {"a point in front", ".5", "not a value", 0},
    {"an exponent at the end", "1e", "an exponent without digits", 2},
    {"an exponent's sign at the end", "1e-", "an exponent without digits", 3},
    {"hexadecimal", "0x10", "something follows the value", 1},
};

static void documents_are_taken_or_say_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        rn_json json;
        rn_json_value value;

        CHECK_ROW(documents[i].why);
        rn_json_init(&json, ration_text_of(documents[i].text));

        const bool good = rn_json_value_next(&json, &value) && rn_json_end(&json);

        CHECK_STR(json.fault, documents[i].fault);
        CHECK_EQ(good, documents[i].fault == NULL);
        CHECK_EQ(json.fault_at, documents[i].at);
    }
}

/* The same text, cut short at every byte, from a block of exactly its size. */
static void cut_documents_are_faults(void **state)
{
    static const char text[] = "{\"a\":[1.5e3,\"\\u00e9\\ud83d\\ude00\",{}],\"b\":true}";

    (void)state;
    for (size_t size = 0; size < sizeof text - 1; size++) {
        char *const copy = rn_mem_textdup(rn_mem_default(), (ration_text){text, size});
        rn_json json;
        rn_json_value value;

        rn_json_init(&json, (ration_text){copy, size});
        CHECK(!rn_json_value_next(&json, &value));
        rn_mem_free(rn_mem_default(), copy);
    }
}

static const struct {
    const char *why;
    const char *number;
    int places;
    int err;
    int64_t want;
} numbers[] = {
    {"whole", "48", 6, 0, 48000000},
    {"a place", "48.5", 6, 0, 48500000},
    {"all places", "0.000001", 6, 0, 1},
    {"one place too many", "0.0000001", 6, RATION_ERR_SYNTAX, 0},
    {"zeros beyond the places", "1.50000000000000000000", 3, 0, 1500},
    {"nothing but zeros", "0.00000000000000000000000", 3, 0, 0},
    {"minus zero", "-0", 3, 0, 0},
    {"negative", "-1000.001", 3, 0, -1000001},
    {"an exponent", "1.7e3", 3, 0, 1700000},
    {"a capital exponent with a sign", "12E+2", 0, 0, 1200},
    {"a negative exponent that leaves nothing over", "1200e-2", 0, 0, 12},
    {"a negative exponent that does", "1201e-2", 0, RATION_ERR_SYNTAX, 0},
    {"zero to a huge power", "0e999999999999999999999", 0, 0, 0},
    {"one to a huge power", "1e999999999999999999999", 0, RATION_ERR_RANGE, 0},
    {"one to a huge negative power", "1e-999999999999999999999", 3, RATION_ERR_SYNTAX, 0},
    {"2^53 + 1, which a double cannot say", "9007199254740.993", 3, 0, INT64_C(9007199254740993)},
    {"the largest", "9223372036854775807", 0, 0, INT64_MAX},
    {"one more", "9223372036854775808", 0, RATION_ERR_RANGE, 0},
    {"larger than 64 bits", "18446744073709551616", 0, RATION_ERR_RANGE, 0},
    {"a long tail", "0.1000000000000000000000000000000000000000000000000001", 6, RATION_ERR_RANGE, 0},
    {"zeros inside", "100000000000000000000001e-20", 0, RATION_ERR_RANGE, 0},
};

static void numbers_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int64_t got = 0;

        CHECK_ROW(numbers[i].why);

        const int err = rn_json_fixed(ration_text_of(numbers[i].number), numbers[i].places, &got);

        CHECK_EQ(err == RATION_OK, numbers[i].err == RATION_OK);
        CHECK_EQ(got, numbers[i].want);
        if (numbers[i].err == RATION_ERR_SYNTAX)
            CHECK_EQ(err, RATION_ERR_SYNTAX);
    }
}

static void members_come_one_by_one(void **state)
{
    const ration_text text = ration_text_of("{\"a\":1,\"b\\u0063\":[true,\"x\\ny\"],\"d\":{}} ");
    rn_arena arena;
    rn_json json;
    rn_json inner;
    rn_json_value name;
    rn_json_value value;
    ration_text said;

    (void)state;
    rn_arena_init(&arena, rn_mem_default());
    rn_json_init(&json, text);
    CHECK(rn_json_enter(&json, RN_JSON_OBJECT));
    CHECK(rn_json_member(&json, &name, &value));
    CHECK_TEXT(name.raw, "a");
    CHECK_EQ(value.type, RN_JSON_NUMBER);
    CHECK(rn_json_member(&json, &name, &value));
    CHECK_EQ(rn_json_text(&name, &arena, &said), RATION_OK);
    CHECK_TEXT(said, "bc");
    CHECK_EQ(value.at, 17);

    rn_json_reopen(&json, &value, &inner);
    CHECK(rn_json_element(&inner, &value));
    CHECK_EQ(value.type, RN_JSON_TRUE);
    CHECK(rn_json_element(&inner, &value));
    CHECK_EQ(rn_json_text(&value, &arena, &said), RATION_OK);
    CHECK_TEXT(said, "x\ny");
    CHECK(!rn_json_element(&inner, &value));
    CHECK_STR(inner.fault, NULL);

    CHECK(rn_json_member(&json, &name, &value));
    CHECK(!rn_json_member(&json, &name, &value));
    CHECK(rn_json_end(&json));
    rn_arena_fini(&arena);
}

static const struct {
    const char *why;
    const char *bytes;
    size_t size;
    const char *want;
} texts[] = {
    {"plain", "acc/org=7", 9, "\"acc/org=7\"\n"},
    {"empty", "", 0, "\"\"\n"},
    {"quotes and backslashes", "a\"b\\c", 5, "\"a\\\"b\\\\c\"\n"},
    {"control characters", "\b\f\n\r\t\x01\x1f", 7, "\"\\b\\f\\n\\r\\t\\u0001\\u001f\"\n"},
    {"NUL", "a\0b", 3, "\"a\\u0000b\"\n"},
    {"UTF-8 stays", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"\n"},
    {"what is not UTF-8", "a\xff\xe2\x82z", 5, "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"\n"},
    {"a surrogate in UTF-8", "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"\n"},
};

static void texts_come_out_as_valid_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        rn_output out;

        CHECK_ROW(texts[i].why);
        rn_output_init(&out, rn_mem_default(), 1000);
        rn_output_text(&out, NULL, (ration_text){texts[i].bytes, texts[i].size});
        rn_output_newline(&out);
        CHECK_TEXT(((ration_text){out.data, out.size}), texts[i].want);
        rn_output_fini(&out);
    }
}

static void commas_stand_where_they_must(void **state)
{
    rn_output out;

    (void)state;
    rn_output_init(&out, rn_mem_default(), 1000);
    rn_output_open(&out, NULL, '{');
    rn_output_micro(&out, "a", 48500000);
    rn_output_ms(&out, "b", -333334);
    rn_output_open(&out, "c", '[');
    rn_output_bool(&out, NULL, true);
    rn_output_int(&out, NULL, -7);
    rn_output_open(&out, NULL, '{');
    rn_output_close(&out, '}');
    rn_output_close(&out, ']');
    rn_output_key(&out, ration_text_of("d\n"));
    rn_output_str(&out, NULL, "x");
    rn_output_close(&out, '}');
    rn_output_newline(&out);
    CHECK_TEXT(((ration_text){out.data, out.size}), "{\"a\":48.5,\"b\":-333.334,\"c\":[true,-7,{}],\"d\\n\":\"x\"}\n");
    rn_output_fini(&out);
}

static void output_stops_at_its_maximum(void **state)
{
    rn_output out;

    (void)state;
    rn_output_init(&out, rn_mem_default(), 1000);
    for (int i = 0; i < 1000; i++)
        rn_output_str(&out, NULL, "0123456789");
    CHECK_EQ(out.err, RATION_ERR_FULL);
    CHECK(out.size <= 1000);
    rn_output_clear(&out);
    CHECK_EQ(out.err, RATION_OK);
    rn_output_str(&out, NULL, "x");
    CHECK_TEXT(((ration_text){out.data, out.size}), "\"x\"");
    rn_output_fini(&out);
}

static const struct {
    const char *why;
    const char *line;
    const char *want; /* NULL: no JSON */
} forms[] = {
    {"members by name, blanks gone", "{ \"b\" : 1, \"a\" : [ 2 , 3 ] }", "{\"a\":[2,3],\"b\":1}"},
    {"numbers by value", "[1.0, 1e0, 1.50, 15e-1, -0]", "[1,1,1.5,1.5,0]"},
    {"a number that is none of ours", "[0.12345678]", "[0.12345678]"},
    {"texts by what they say", "[\"\\u0041\\/\"]", "[\"A/\"]"},
    {"no explanation", "{\"at\":1,\"explanation\":{\"a\":[1]}}", "{\"at\":1}"},
    {"unless it is deeper", "{\"a\":{\"explanation\":1}}", "{\"a\":{\"explanation\":1}}"},
    {"twice the same name: as they stood", "{\"a\":2,\"a\":1}", "{\"a\":2,\"a\":1}"},
    {"words", "[true,null,{}]", "[true,null,{}]"},
    {"no JSON", "[", NULL},
    {"two values", "1 2", NULL},
};

static void lines_that_mean_the_same_have_one_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        rn_output out;

        CHECK_ROW(forms[i].why);
        rn_output_init(&out, rn_mem_default(), 1000);

        const int err = rn_trace_canonical(ration_text_of(forms[i].line), rn_mem_default(), &out);

        CHECK_EQ(err, forms[i].want != NULL ? RATION_OK : RATION_ERR_SYNTAX);
        if (forms[i].want != NULL)
            CHECK_TEXT(((ration_text){out.data, out.size}), forms[i].want);
        rn_output_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_taken_or_say_why),
        cmocka_unit_test(cut_documents_are_faults),
        cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(members_come_one_by_one),
        cmocka_unit_test(texts_come_out_as_valid_json),
        cmocka_unit_test(commas_stand_where_they_must),
        cmocka_unit_test(output_stops_at_its_maximum),
        cmocka_unit_test(lines_that_mean_the_same_have_one_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
