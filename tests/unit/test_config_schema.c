/* SPDX-License-Identifier: MIT */
/* The table of keys keeps its own promises, and the reference page is the one that it makes. */
#include "support/check.h"

#include <stdio.h>

#include "base/mem.h"
#include "config/schema.h"

static void check_key(const rn_object *object, const rn_key *key)
{
    CHECK_ROW(key->name);
    CHECK((key->type != NULL) != (key->object != NULL));
    CHECK(key->doc[0] != '\0');
    CHECK(key->doc[strlen(key->doc) - 1] == '.');
    CHECK((key->type == &rn_type_word) == (key->words != NULL));
    CHECK(key->min <= key->max);
    CHECK(key->fallback == NULL || (key->flags & RN_KEY_REQUIRED) == 0);
    CHECK(key->shape != RN_SHAPE_TABLE || key->item > 0);
    CHECK(key->shape != RN_SHAPE_TABLE || (key->value > 0) == (key->object == NULL));
    CHECK((key->kinds | key->required) == 0 || object->kind != NULL);
    CHECK(key->kinds == 0 || (key->required & ~key->kinds) == 0);
    CHECK((key->flags & RN_KEY_FILLED) == 0 || key->shape != RN_SHAPE_ONE);
    CHECK((key->min == 0 && key->max == 0) || (key->type != NULL && key->type->show != NULL));
    for (const rn_key *other = object->keys; other != key; other++) {
        const bool apart = other->kinds != 0 && key->kinds != 0 && (other->kinds & key->kinds) == 0;

        CHECK(strcmp(other->name, key->name) != 0 || apart);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): no deeper than the table of keys */
static void check_object(const rn_object *object, bool item)
{
    CHECK_ROW(object->name);
    CHECK(object->doc[0] != '\0');
    CHECK(object->kind == NULL || rn_object_kind(object)->type == &rn_type_word);
    CHECK(!item || (object->size > 0 && object->keys[0].offset == 0 && object->keys[0].type->size == sizeof(char *)));
    for (const rn_key *key = object->keys; key->name != NULL; key++) {
        if ((key->flags & RN_KEY_LATER) != 0)
            continue;
        check_key(object, key);
        if (key->object != NULL)
            check_object(key->object, key->shape == RN_SHAPE_LIST);
    }
}

static void each_row_is_whole(void **state)
{
    (void)state;
    check_object(&rn_schema_root, false);
}

static void the_reference_is_current(void **state)
{
    FILE *file = fopen("docs/reference/config.md", "r");
    char *page = NULL;
    size_t size = 0;
    static char text[128 * 1024];

    (void)state;
    CHECK(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    CHECK_EQ(fclose(file), 0);
    CHECK_EQ(rn_schema_markdown(rn_mem_default(), &page, &size), RATION_OK);

    /* If this fails: build/ration schema --markdown > docs/reference/config.md */
    CHECK_STR(text, page);
    rn_mem_free(rn_mem_default(), page);
}

static void secrets_are_known_by_their_names(void **state)
{
    static const char *const hidden[] = {"credential", "credentail", "value",  "vaule",
                                         "token",      "Token",      "tokens", "proxy"};
    static const char *const open[] = {"header", "key", "name", "rate", "window", "timezone", "period", "max", ""};

    (void)state;
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        CHECK_ROW(hidden[i]);
        CHECK(rn_schema_hides(ration_text_of(hidden[i])));
    }
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        CHECK_ROW(open[i]);
        CHECK(!rn_schema_hides(ration_text_of(open[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_whole),
        cmocka_unit_test(the_reference_is_current),
        cmocka_unit_test(secrets_are_known_by_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
