/* SPDX-License-Identifier: MIT */
/*
 * The number at a pointer is the one that jansson sees, whatever the text and however it is cut.
 *
 * Texts are drawn as values in each other with a few keys, so that ways of the pointer begin often, end early and stand
 * twice; one in two then has a byte changed, dropped or doubled, and is mostly no JSON any more. The same texts, with a
 * field's name before some of their lines, are streams of events.
 */
#include "support/check.h"
#include "support/pick_model.h"
#include "support/property.h"

#include <stdio.h>

#include "base/mem.h"

#define TEXT_MAX 4096

typedef struct drawn {
    choices *c;
    char text[TEXT_MAX];
    size_t size;
} drawn;

static void put(drawn *d, const char *s)
{
    for (; *s != '\0' && d->size < TEXT_MAX - 1; s++)
        d->text[d->size++] = *s;
}

#define PICK(c, words) ((words)[choose((c), sizeof(words) / sizeof((words)[0]) - 1)])

static void put_scalar(drawn *d)
{
    static const char *const words[] = {
        "7",
        "0",
        "-0",
        "-3",
        "1.5",
        "0.0000001",
        "1e3",
        "12E-1",
        "9007199254",
        "9007199255",
        "1e300",
        "123456.789",
        "-0.0e1",
        "true",
        "null",
        "\"5\"",
        "\"\"",
        "\"\\n\"",
        "\"\\u00e9\"",
        "\"\xC3\xA9\"",
        "\"\\ud83d\\ude00\"",
        "\"\\ud83d\"",
        "01",
        "5.",
        "nul",
        "\"\xFF\"",
        "",
        "\"a\\",
        "-",
    };

    /* The last nine are no JSON. */
    put(d, words[choose(d->c, choose(d->c, 20) == 20 ? sizeof words / sizeof words[0] - 1 : 19)]);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as was drawn */
static void put_value(drawn *d, unsigned depth)
{
    static const char *const keys[] = {"\"a\"", "\"b\"", "\"\"", "\"0\"", "\"\\u0061\"", "\"a/b\"", "\"ab\""};
    static const char *const blanks[] = {"", "", " ", "\n", "\t "};
    const uint64_t kind = depth > 0 ? choose(d->c, 2) : 0;

    put(d, PICK(d->c, blanks));
    if (kind == 0) {
        put_scalar(d);
    } else {
        put(d, kind == 1 ? "{" : "[");
        for (uint64_t left = choose(d->c, 4); left > 0; left--) {
            if (kind == 1) {
                put(d, PICK(d->c, keys));
                put(d, ":");
            }
            put_value(d, depth - 1);
            put(d, left > 1 ? "," : "");
        }
        put(d, kind == 1 ? "}" : "]");
    }
    put(d, PICK(d->c, blanks));
}

/* One byte other than it was. */
static void spoil(drawn *d)
{
    const size_t at = d->size > 0 ? (size_t)choose(d->c, d->size - 1) : 0;
    static const char bytes[] = "{}[]:,\"\\ 0-eu.\n\x80\xED";

    if (d->size == 0 || d->size == TEXT_MAX - 1)
        return;
    switch (choose(d->c, 2)) {
    case 0:
        d->text[at] = bytes[choose(d->c, sizeof bytes - 2)];
        break;
    case 1:
        memmove(d->text + at, d->text + at + 1, d->size - at - 1);
        d->size--;
        break;
    default:
        memmove(d->text + at + 1, d->text + at, d->size - at);
        d->size++;
        break;
    }
}

static void pointer_draw(choices *c, rn_arena *arena, rn_pointer *out)
{
    static const char *const pointers[] = {"/a",   "/a/b", "",      "/a/a",   "/0", "/a/0",
                                           "/1/a", "/",    "/a~1b", "/b/1/a", "/-"};
    const char *text = PICK(c, pointers);

    NOTE(c, "pointer '%s'", text);
    CHECK_EQ(rn_pointer_parse(arena, ration_text_of(text), out), RATION_OK);
}

static void texts_have_their_number(choices *c, void *context)
{
    drawn d = {.c = c};
    rn_arena arena;
    rn_pointer pointer;
    rn_pick pick;
    int64_t micro = 0;
    size_t at = 0;

    (void)context;
    rn_arena_init(&arena, rn_mem_default());
    pointer_draw(c, &arena, &pointer);
    put_value(&d, 4);
    if (choose(c, 1) == 1)
        spoil(&d);
    NOTE(c, "text '%.*s'", (int)d.size, d.text);
    rn_pick_init(&pick, &pointer);
    while (at < d.size) {
        const size_t end = at + 1 + (size_t)choose(c, d.size - at - 1);

        rn_pick_feed(&pick, (ration_text){d.text + at, end - at});
        at = end;
    }

    const rn_picked picked = rn_pick_end(&pick, &micro);

    NOTE(c, "picked %d, %" PRId64, (int)picked, micro);
    HOLDS(c, model_check(&pointer, (ration_text){d.text, d.size}, picked, micro));
    rn_arena_fini(&arena);
}

static void put_line(drawn *d)
{
    static const char *const names[] = {"data: ", "data:", "data", ":", "event: ", "dat: ", "", "data: [DONE]"};
    static const char *const ends[] = {"\n", "\r\n", "\r", "\n\n"};

    put(d, PICK(d->c, names));
    if (choose(d->c, 3) != 0)
        put_value(d, 2);
    put(d, PICK(d->c, ends));
}

static void streams_have_their_number(choices *c, void *context)
{
    drawn d = {.c = c};
    rn_arena arena;
    rn_pointer pointer;
    rn_event_pick events;
    int64_t micro = 0, wanted = 0;
    size_t at = 0;

    (void)context;
    rn_arena_init(&arena, rn_mem_default());
    pointer_draw(c, &arena, &pointer);
    while (choose(c, 8) != 0)
        put_line(&d);
    NOTE(c, "stream '%.*s'", (int)d.size, d.text);
    rn_event_pick_init(&events, &pointer);
    while (at < d.size) {
        const size_t end = at + 1 + (size_t)choose(c, d.size - at - 1);

        rn_event_pick_feed(&events, (ration_text){d.text + at, end - at});
        at = end;
    }

    const rn_picked picked = rn_event_pick_end(&events, &micro);

    HOLDS(c, picked == model_events(&pointer, (ration_text){d.text, d.size}, &wanted));
    HOLDS(c, picked != RN_PICKED_NUMBER || micro == wanted);
    rn_arena_fini(&arena);
}

static void texts(void **state)
{
    (void)state;
    property_check("texts have their number", texts_have_their_number, NULL, 60000);
}

static void streams(void **state)
{
    (void)state;
    property_check("streams have their number", streams_have_their_number, NULL, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts),
        cmocka_unit_test(streams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
