/* SPDX-License-Identifier: MIT */
/*
 * Chat completions without a model.
 *
 * An answer is words, one a token, drawn from nothing but the ordinal of its call; how many is chance by the seed. So
 * its usage is known before it is sent, a stream and a whole answer to the same call say the same, and the same seed
 * gives the same tokens.
 *
 * A stream begins with the role, has its words in at most EVENTS_MAX events, then why it ended, then its usage if that
 * was asked for, then [DONE]. Until then `usage` is null in every chunk of one that tells it, as in the API.
 *
 * Units: whole tokens.
 */
#include "simulate/chat.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "simulate/random.h"
#include "trace/json.h"

#define PROMPT_BYTES_A_TOKEN 4
#define EVENTS_MAX 32
#define MODEL_UNKNOWN "you must provide a model parameter"

static const char *const words[] = {"every", "call",   "waits", "its",   "turn", "and",  "no",   "limit",
                                    "is",    "passed", "while", "there", "are",  "more", "than", "fit"};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

/* ---- what is asked for */

static const char *read_model(const rn_json_value *value, rn_chat *chat)
{
    ration_text name = rn_text_slice(value->raw, 0, sizeof chat->model - 1);

    if (value->type != RN_JSON_STRING || value->raw.size == 0)
        return MODEL_UNKNOWN;
    if (value->escaped)
        return "there is no model of this name";
    while (name.size > 0 && !rn_text_is_utf8(name))
        name.size--;
    memcpy(chat->model, name.data, name.size);
    chat->model[name.size] = '\0';
    return NULL;
}

static const char *read_messages(const rn_json_value *value, rn_chat *chat)
{
    rn_json_value first;
    rn_json inner;

    rn_json_init(&inner, value->raw);
    if (value->type != RN_JSON_ARRAY || !rn_json_enter(&inner, RN_JSON_ARRAY) || !rn_json_element(&inner, &first))
        return "'messages' must be an array with at least one message";
    chat->prompt_tokens = rn_div_ceil((int64_t)value->raw.size, PROMPT_BYTES_A_TOKEN);
    return NULL;
}

static const char *read_most(const rn_json_value *value, rn_chat *chat)
{
    int64_t most;

    if (value->type == RN_JSON_NULL)
        return NULL;
    if (value->type != RN_JSON_NUMBER || rn_json_fixed(value->raw, 0, &most) != RATION_OK || most < 1)
        return "the number of tokens of an answer must be a whole one, at least 1";
    chat->most = rn_min(most, RN_CHAT_ANSWER_MAX);
    return NULL;
}

static const char *read_flag(const rn_json_value *value, bool *out)
{
    if (value->type != RN_JSON_TRUE && value->type != RN_JSON_FALSE && value->type != RN_JSON_NULL)
        return "'stream' and 'include_usage' must be true or false";
    *out = value->type == RN_JSON_TRUE;
    return NULL;
}

static const char *read_stream(const rn_json_value *value, rn_chat *chat)
{
    return read_flag(value, &chat->stream);
}

static const char *read_stream_options(const rn_json_value *value, rn_chat *chat)
{
    rn_json_value name, member;
    const char *fault = NULL;
    rn_json inner;

    if (value->type == RN_JSON_NULL)
        return NULL;
    rn_json_init(&inner, value->raw);
    if (value->type != RN_JSON_OBJECT || !rn_json_enter(&inner, RN_JSON_OBJECT))
        return "'stream_options' must be an object";
    while (fault == NULL && rn_json_member(&inner, &name, &member)) {
        if (rn_text_is(name.raw, "include_usage"))
            fault = read_flag(&member, &chat->tells_usage);
    }
    return fault;
}

static const struct {
    const char *name;
    const char *(*read)(const rn_json_value *value, rn_chat *chat);
} members[] = {
    {"model", read_model},     {"messages", read_messages}, {"max_completion_tokens", read_most},
    {"max_tokens", read_most}, {"stream", read_stream},     {"stream_options", read_stream_options},
};

static const char *member_read(const rn_json_value *name, const rn_json_value *value, rn_chat *chat)
{
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (rn_text_is(name->raw, members[i].name))
            return members[i].read(value, chat);
    }
    return NULL;
}

int rn_chat_read(ration_text body, rn_chat *out, const char **fault)
{
    rn_chat chat = {.most = RN_CHAT_ANSWER_USUAL};
    rn_json_value name, value;
    rn_json json;

    *fault = NULL;
    rn_json_init(&json, body);
    if (!rn_json_enter(&json, RN_JSON_OBJECT)) {
        *fault = "the body must be a JSON object";
        return RATION_ERR_SYNTAX;
    }
    while (*fault == NULL && rn_json_member(&json, &name, &value))
        *fault = member_read(&name, &value, &chat);
    if (*fault == NULL && !rn_json_end(&json))
        *fault = "the body is no JSON";
    if (*fault == NULL && chat.model[0] == '\0')
        *fault = MODEL_UNKNOWN;
    if (*fault == NULL && chat.prompt_tokens == 0)
        *fault = "'messages' is missing";
    if (*fault == NULL && chat.tells_usage && !chat.stream)
        *fault = "'stream_options' is only for a stream";
    if (*fault != NULL)
        return RATION_ERR_SYNTAX;
    *out = chat;
    return RATION_OK;
}

void rn_chat_draw(rn_chat *chat, uint64_t seed, uint64_t ordinal)
{
    chat->ordinal = ordinal;
    chat->answer_tokens = rn_random_between(seed, RN_STREAM_TOKENS, ordinal, 1, chat->most);
}

int64_t rn_chat_tokens(const rn_chat *chat)
{
    return chat->prompt_tokens + chat->answer_tokens;
}

/* ---- the answer */

static const char *finish_reason(const rn_chat *chat)
{
    return chat->answer_tokens == chat->most ? "length" : "stop";
}

/* Its words from one to another, as a member; those of one event, at most an answer's. */
static void content_write(const rn_chat *chat, int64_t from, int64_t to, rn_output *out)
{
    rn_output text;

    rn_output_init(&text, out->mem, out->max);
    for (int64_t i = from; i < to; i++) {
        if (i > 0)
            rn_output_raw(&text, ration_text_of(" "));
        rn_output_raw(&text, ration_text_of(words[(chat->ordinal + (uint64_t)i) % WORD_COUNT]));
    }
    if (text.err != RATION_OK)
        out->err = text.err;
    rn_output_text(out, "content", (ration_text){text.size > 0 ? text.data : "", text.size});
    rn_output_fini(&text);
}

static void head_write(const rn_chat *chat, int64_t created_s, const char *object, rn_output *out)
{
    char id[48];
    rn_builder b;

    rn_builder_init(&b, id, sizeof id);
    rn_builder_str(&b, "chatcmpl-");
    rn_builder_int(&b, (int64_t)chat->ordinal);
    rn_output_open(out, NULL, '{');
    rn_output_text(out, "id", (ration_text){b.data, b.used});
    rn_output_str(out, "object", object);
    rn_output_int(out, "created", created_s);
    rn_output_str(out, "model", chat->model);
    rn_output_null(out, "system_fingerprint");
}

static void usage_write(const rn_chat *chat, rn_output *out)
{
    rn_output_open(out, "usage", '{');
    rn_output_int(out, "prompt_tokens", chat->prompt_tokens);
    rn_output_int(out, "completion_tokens", chat->answer_tokens);
    rn_output_int(out, "total_tokens", rn_chat_tokens(chat));
    rn_output_close(out, '}');
}

void rn_chat_write(const rn_chat *chat, int64_t created_s, rn_output *out)
{
    head_write(chat, created_s, "chat.completion", out);
    rn_output_open(out, "choices", '[');
    rn_output_open(out, NULL, '{');
    rn_output_int(out, "index", 0);
    rn_output_open(out, "message", '{');
    rn_output_str(out, "role", "assistant");
    content_write(chat, 0, chat->answer_tokens, out);
    rn_output_null(out, "refusal");
    rn_output_close(out, '}');
    rn_output_null(out, "logprobs");
    rn_output_str(out, "finish_reason", finish_reason(chat));
    rn_output_close(out, '}');
    rn_output_close(out, ']');
    usage_write(chat, out);
    rn_output_close(out, '}');
}

/* Events that have words: the shorter of an answer and EVENTS_MAX. */
static int64_t worded(const rn_chat *chat)
{
    return rn_min(chat->answer_tokens, EVENTS_MAX);
}

int64_t rn_chat_events(const rn_chat *chat)
{
    return 1 + worded(chat) + 1 + (chat->tells_usage ? 1 : 0) + 1;
}

/* The only choice: the `index`-th of the events that have one. */
static void choice_write(const rn_chat *chat, int64_t index, rn_output *out)
{
    const int64_t count = worded(chat);

    rn_output_open(out, NULL, '{');
    rn_output_int(out, "index", 0);
    rn_output_open(out, "delta", '{');
    if (index == 0) {
        rn_output_str(out, "role", "assistant");
        rn_output_str(out, "content", "");
    } else if (index <= count) {
        content_write(chat, chat->answer_tokens * (index - 1) / count, chat->answer_tokens * index / count, out);
    }
    rn_output_close(out, '}');
    rn_output_null(out, "logprobs");
    if (index <= count) {
        rn_output_null(out, "finish_reason");
    } else {
        rn_output_str(out, "finish_reason", finish_reason(chat));
    }
    rn_output_close(out, '}');
}

void rn_chat_event_write(const rn_chat *chat, int64_t created_s, int64_t index, rn_output *out)
{
    const bool is_usage = index > worded(chat) + 1;

    rn_output_raw(out, ration_text_of("data: "));
    if (index == rn_chat_events(chat) - 1) {
        rn_output_raw(out, ration_text_of("[DONE]\n\n"));
        return;
    }
    head_write(chat, created_s, "chat.completion.chunk", out);
    rn_output_open(out, "choices", '[');
    if (!is_usage)
        choice_write(chat, index, out);
    rn_output_close(out, ']');
    if (is_usage) {
        usage_write(chat, out);
    } else if (chat->tells_usage) {
        rn_output_null(out, "usage");
    }
    rn_output_close(out, '}');
    rn_output_raw(out, ration_text_of("\n\n"));
}

void rn_chat_error_write(const char *message, const char *type, const char *code, rn_output *out)
{
    rn_output_open(out, NULL, '{');
    rn_output_open(out, "error", '{');
    rn_output_str(out, "message", message);
    rn_output_str(out, "type", type);
    rn_output_null(out, "param");
    if (code != NULL) {
        rn_output_str(out, "code", code);
    } else {
        rn_output_null(out, "code");
    }
    rn_output_close(out, '}');
    rn_output_close(out, '}');
}
