/* SPDX-License-Identifier: MIT */
/* Chats without a model: what a request asks for, and that whole and streamed answers say the same. */
#include "simulate/chat.h"

#include <string.h>

#include "base/event_stream.h"
#include "base/mem.h"
#include "base/text.h"
#include "support/check.h"

#define MODEL "\"model\":\"m\","
#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]"

static void test_read(void **state)
{
    static const struct {
        const char *why;
        const char *body;
        int64_t most, prompt;
        bool stream, tells_usage;
    } rows[] = {
        {"the least", "{" MODEL MESSAGES "}", 256, 9, false, false},
        {"a bound", "{" MODEL MESSAGES ",\"max_completion_tokens\":7}", 7, 9, false, false},
        {"its old name", "{" MODEL MESSAGES ",\"max_tokens\":7}", 7, 9, false, false},
        {"more than any answer has", "{" MODEL MESSAGES ",\"max_tokens\":1000000}", 4096, 9, false, false},
        {"null is nothing", "{" MODEL MESSAGES ",\"max_tokens\":null,\"stream\":null}", 256, 9, false, false},
        {"a stream", "{" MODEL MESSAGES ",\"stream\":true}", 256, 9, true, false},
        {"one that tells", "{\"stream_options\":{\"x\":1,\"include_usage\":true},\"stream\":true," MODEL MESSAGES "}",
         256, 9, true, true},
        {"one that does not", "{" MODEL MESSAGES ",\"stream\":true,\"stream_options\":{\"include_usage\":false}}", 256,
         9, true, false},
        {"what it does not know", "{" MODEL MESSAGES ",\"temperature\":0.5,\"tools\":[{}]}", 256, 9, false, false},
        {"a byte more is a token more", "{" MODEL "\"messages\":[123]}", 256, 2, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *fault = NULL;
        rn_chat chat;

        CHECK_ROW(rows[i].why);
        CHECK_EQ(rn_chat_read(ration_text_of(rows[i].body), &chat, &fault), RATION_OK);
        CHECK_STR(chat.model, "m");
        CHECK_EQ(chat.most, rows[i].most);
        CHECK_EQ(chat.prompt_tokens, rows[i].prompt);
        CHECK_EQ(chat.stream, rows[i].stream);
        CHECK_EQ(chat.tells_usage, rows[i].tells_usage);
    }
}

static void test_what_cannot_be_read(void **state)
{
    static const struct {
        const char *body, *want;
    } rows[] = {
        {"", "JSON object"},
        {"[]", "JSON object"},
        {"{" MODEL MESSAGES, "no JSON"},
        {"{" MODEL MESSAGES "} x", "no JSON"},
        {"{" MESSAGES "}", "model"},
        {"{\"model\":\"\"," MESSAGES "}", "model"},
        {"{\"model\":1," MESSAGES "}", "model"},
        {"{\"model\":\"\\u0041\"," MESSAGES "}", "no model"},
        {"{" MODEL "\"messages\":[]}", "'messages'"},
        {"{" MODEL "\"messages\":{}}", "'messages'"},
        {"{" MODEL "\"n\":1}", "'messages' is missing"},
        {"{" MODEL MESSAGES ",\"max_tokens\":0}", "number of tokens"},
        {"{" MODEL MESSAGES ",\"max_tokens\":1.5}", "number of tokens"},
        {"{" MODEL MESSAGES ",\"max_tokens\":\"7\"}", "number of tokens"},
        {"{" MODEL MESSAGES ",\"stream\":1}", "true or false"},
        {"{" MODEL MESSAGES ",\"stream\":true,\"stream_options\":[]}", "must be an object"},
        {"{" MODEL MESSAGES ",\"stream\":true,\"stream_options\":{\"include_usage\":1}}", "true or false"},
        {"{" MODEL MESSAGES ",\"stream_options\":{\"include_usage\":true}}", "only for a stream"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rn_chat chat = {.most = 99};
        const char *fault = NULL;

        CHECK_ROW(rows[i].body);
        CHECK_EQ(rn_chat_read(ration_text_of(rows[i].body), &chat, &fault), RATION_ERR_SYNTAX);
        CHECK(fault != NULL && strstr(fault, rows[i].want) != NULL);
        CHECK_EQ(chat.most, 99);
    }
}

/* A model's name is cut between characters, never amid one. */
static void test_a_long_name(void **state)
{
    const char *fault = NULL;
    char body[256];
    rn_chat chat;
    rn_builder b;

    (void)state;
    rn_builder_init(&b, body, sizeof body);
    rn_builder_str(&b, "{\"model\":\"");
    for (int i = 0; i < 40; i++)
        rn_builder_str(&b, "\xc3\xa4");
    rn_builder_str(&b, "\"," MESSAGES "}");
    CHECK_EQ(rn_chat_read((ration_text){b.data, b.used}, &chat, &fault), RATION_OK);
    CHECK_EQ(strlen(chat.model), 62);
}

static void test_draw(void **state)
{
    bool least = false, most = false;
    rn_chat chat = {.most = 5, .prompt_tokens = 10};

    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        rn_chat_draw(&chat, 1, i);
        CHECK(chat.answer_tokens >= 1 && chat.answer_tokens <= 5);
        CHECK_EQ(rn_chat_tokens(&chat), 10 + chat.answer_tokens);
        least = least || chat.answer_tokens == 1;
        most = most || chat.answer_tokens == 5;
    }
    CHECK(least && most);
}

static size_t occurrences(const char *text, const char *what)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        count++;
    return count;
}

/* The text of all events of a stream, which the caller frees. */
static rn_output stream_of(const rn_chat *chat)
{
    rn_output all, one;

    rn_output_init(&all, rn_mem_default(), 1 << 20);
    for (int64_t i = 0; i < rn_chat_events(chat); i++) {
        rn_output_init(&one, rn_mem_default(), 1 << 20);
        rn_chat_event_write(chat, 1700000000, i, &one);
        rn_output_raw(&all, (ration_text){one.data, one.size});
        rn_output_fini(&one);
    }
    rn_output_raw(&all, (ration_text){"", 1});
    CHECK_EQ(all.err, RATION_OK);
    return all;
}

static void test_streams(void **state)
{
    static const struct {
        int64_t tokens, events;
        bool tells;
    } rows[] = {{1, 4, false}, {1, 5, true}, {31, 35, true}, {32, 36, true}, {33, 36, true}, {4096, 36, true}};

    rn_pointer pointer;
    rn_arena arena;

    (void)state;
    rn_arena_init(&arena, rn_mem_default());
    CHECK_EQ(rn_pointer_parse(&arena, ration_text_of("/usage/total_tokens"), &pointer), RATION_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const rn_chat chat = {.model = "m",
                              .stream = true,
                              .tells_usage = rows[i].tells,
                              .most = 4096,
                              .prompt_tokens = 10,
                              .answer_tokens = rows[i].tokens};
        rn_output text = stream_of(&chat);
        rn_event_pick pick;
        int64_t micro = 0;

        CHECK_EQ(rn_chat_events(&chat), rows[i].events);
        rn_event_pick_init(&pick, &pointer);
        rn_event_pick_feed(&pick, (ration_text){text.data, text.size - 1});
        CHECK_EQ(rn_event_pick_end(&pick, &micro), rows[i].tells ? RN_PICKED_NUMBER : RN_PICKED_NONE);
        CHECK_EQ(micro, rows[i].tells ? (10 + rows[i].tokens) * RATION_UNIT : 0);
        CHECK_EQ(occurrences(text.data, "data: "), (size_t)rows[i].events);
        CHECK_EQ(occurrences(text.data, "\n\n"), (size_t)rows[i].events);
        CHECK_EQ(occurrences(text.data, "\"usage\":null"), rows[i].tells ? (size_t)rows[i].events - 2 : 0);
        CHECK_EQ(occurrences(text.data, rows[i].tokens == 4096 ? "\"length\"" : "\"stop\""), 1);
        CHECK(strcmp(text.data + text.size - 1 - strlen("data: [DONE]\n\n"), "data: [DONE]\n\n") == 0);
        rn_output_fini(&text);
    }
    rn_arena_fini(&arena);
}

/* The words of a whole answer, and of the pieces of a stream, joined: as many as tokens, and the same. */
static void test_whole(void **state)
{
    const rn_chat chat = {.model = "m\"", .most = 50, .prompt_tokens = 10, .answer_tokens = 50, .ordinal = 3};
    rn_output whole, stream = stream_of(&chat);
    char joined[1024] = "";

    (void)state;
    for (const char *at = stream.data; (at = strstr(at, "\"content\":\"")) != NULL;) {
        at += strlen("\"content\":\"");
        strncat(joined, at, (size_t)(strchr(at, '"') - at));
    }
    rn_output_init(&whole, rn_mem_default(), 1 << 20);
    rn_chat_write(&chat, 1700000000, &whole);
    rn_output_raw(&whole, (ration_text){"", 1});
    CHECK(strstr(whole.data, joined) != NULL);
    CHECK_EQ(occurrences(joined, " "), 49);
    CHECK(strstr(whole.data, "{\"id\":\"chatcmpl-3\",\"object\":\"chat.completion\",\"created\":1700000000,"
                             "\"model\":\"m\\\"\"") == whole.data);
    CHECK(strstr(whole.data, "\"finish_reason\":\"length\"") != NULL);
    CHECK(strstr(whole.data, "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":50,\"total_tokens\":60}") != NULL);
    rn_output_fini(&whole);
    rn_output_fini(&stream);
}

static void test_errors(void **state)
{
    rn_output out;

    (void)state;
    rn_output_init(&out, rn_mem_default(), 4096);
    rn_chat_error_write("why", "requests", "rate_limit_exceeded", &out);
    CHECK_TEXT(
        ((ration_text){out.data, out.size}),
        "{\"error\":{\"message\":\"why\",\"type\":\"requests\",\"param\":null,\"code\":\"rate_limit_exceeded\"}}");
    rn_output_clear(&out);
    rn_chat_error_write("why", "server_error", NULL, &out);
    CHECK_TEXT(((ration_text){out.data, out.size}),
               "{\"error\":{\"message\":\"why\",\"type\":\"server_error\",\"param\":null,\"code\":null}}");
    rn_output_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),        cmocka_unit_test(test_what_cannot_be_read),
        cmocka_unit_test(test_a_long_name), cmocka_unit_test(test_draw),
        cmocka_unit_test(test_streams),     cmocka_unit_test(test_whole),
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
