/* SPDX-License-Identifier: MIT */
#include "support/check.h"
#include "support/property.h"

#include "base/tree.h"

#define MEMBERS 48

typedef struct member {
    rn_tree_node node;
    int64_t key;
} member;

static const member *member_of(const rn_tree_node *node)
{
    return (const member *)(const void *)((const char *)node - offsetof(member, node));
}

static bool member_less(const rn_tree_node *a, const rn_tree_node *b)
{
    return member_of(a)->key < member_of(b)->key;
}

static void an_empty_tree(void **state)
{
    member one = {.key = 1};
    rn_tree tree;

    (void)state;
    rn_tree_init(&tree, member_less);
    rn_tree_node_init(&one.node);
    CHECK(rn_tree_first(&tree) == NULL);
    CHECK(rn_tree_first_within(&tree, NULL, INT64_MAX) == NULL);
    CHECK(rn_tree_first_within(&tree, &one.node, INT64_MAX) == NULL);
    CHECK(!rn_tree_contains(&one.node));
    rn_tree_remove(&tree, &one.node);
    rn_tree_add(&tree, &one.node, 7);
    CHECK(rn_tree_contains(&one.node));
    CHECK(rn_tree_first(&tree) == &one.node);
    CHECK(rn_tree_next(&one.node) == NULL);
    rn_tree_remove(&tree, &one.node);
    CHECK(!rn_tree_contains(&one.node));
    CHECK(rn_tree_first(&tree) == NULL);
}

/* Keys 10, 20, ... 80 with these values; asked from a key that is or is not there. */
static void first_within(void **state)
{
    static const int64_t values[] = {5, 9, 3, 9, 4, 9, 3, 8};
    static const struct {
        const char *why;
        int64_t after; /* 0: from the beginning */
        int64_t bound;
        int64_t want; /* 0: none */
    } rows[] = {
        {"the first of all", 0, 9, 10},
        {"at the bound is within", 0, 5, 10},
        {"one past the bound is not", 0, 4, 30},
        {"the second of two that are equally small", 30, 3, 70},
        {"itself does not count", 10, 5, 30},
        {"from between two", 35, 4, 50},
        {"from before the first", 5, 9, 10},
        {"from the last", 80, 9, 0},
        {"from behind the last", 85, 9, 0},
        {"nothing is small enough", 0, 2, 0},
        {"nothing behind is small enough", 70, 3, 0},
    };
    member members[8];
    member from = {.key = 0};
    rn_tree tree;

    (void)state;
    rn_tree_init(&tree, member_less);
    for (size_t i = 0; i < 8; i++) {
        members[i].key = (int64_t)(i + 1) * 10;
        rn_tree_add(&tree, &members[i].node, values[i]);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_ROW(rows[i].why);
        from.key = rows[i].after;

        const rn_tree_node *found = rn_tree_first_within(&tree, rows[i].after == 0 ? NULL : &from.node, rows[i].bound);

        CHECK_EQ(found == NULL ? 0 : member_of(found)->key, rows[i].want);
    }
    CHECK_ROW("a value that changes");
    rn_tree_set(&members[1].node, 2);
    CHECK(rn_tree_first_within(&tree, NULL, 2) == &members[1].node);
    rn_tree_set(&members[1].node, 9);
    CHECK(rn_tree_first_within(&tree, NULL, 2) == NULL);
    CHECK_ROW(NULL);
}

static int64_t least(const rn_tree_node *node, int64_t otherwise)
{
    return node == NULL || node->lowest > otherwise ? otherwise : node->lowest;
}

/* Every node's numbers follow from its children's; the number of members below and here. */
/* NOLINTNEXTLINE(misc-no-recursion): the tree under test is balanced, or a height is wrong before it gets deep. */
static size_t node_holds(choices *c, const rn_tree_node *node, const rn_tree_node *parent)
{
    if (node == NULL)
        return 0;

    const size_t left = node_holds(c, node->left, node);
    const size_t right = node_holds(c, node->right, node);
    const int32_t left_height = node->left == NULL ? 0 : node->left->height;
    const int32_t right_height = node->right == NULL ? 0 : node->right->height;

    HOLDS(c, node->parent == parent);
    HOLDS(c, node->height == 1 + (left_height > right_height ? left_height : right_height));
    HOLDS(c, left_height - right_height <= 1 && right_height - left_height <= 1);
    HOLDS(c, node->lowest == least(node->left, least(node->right, node->value)));
    HOLDS(c, node->left == NULL || member_less(node->left, node));
    HOLDS(c, node->right == NULL || member_less(node, node->right));
    return left + right + 1;
}

/* Going through the tree meets the members in order, each once. */
static void order_holds(choices *c, const rn_tree *tree, const member *members)
{
    const rn_tree_node *at = rn_tree_first(tree);

    for (size_t i = 0; i < MEMBERS; i++) {
        if (!rn_tree_contains(&members[i].node))
            continue;
        HOLDS(c, at == &members[i].node);
        at = rn_tree_next(at);
    }
    HOLDS(c, at == NULL);
}

static void search_holds(choices *c, const rn_tree *tree, const member *members)
{
    const size_t after = choose(c, MEMBERS);
    const int64_t bound = choose_from(c, 0, 9);
    const rn_tree_node *want = NULL;

    for (size_t i = after; i < MEMBERS && want == NULL; i++) {
        if (rn_tree_contains(&members[i].node) && members[i].node.value <= bound)
            want = &members[i].node;
    }
    HOLDS(c, rn_tree_first_within(tree, after == 0 ? NULL : &members[after - 1].node, bound) == want);
}

static void like_an_array(choices *c, void *context)
{
    member members[MEMBERS];
    size_t in = 0;
    rn_tree tree;

    (void)context;
    rn_tree_init(&tree, member_less);
    for (size_t i = 0; i < MEMBERS; i++) {
        members[i].key = (int64_t)i;
        rn_tree_node_init(&members[i].node);
    }
    for (uint64_t action = choose(c, 60); action != 0; action = choose(c, 60)) {
        member *const one = &members[choose(c, MEMBERS - 1)];

        if (!rn_tree_contains(&one->node)) {
            rn_tree_add(&tree, &one->node, choose_from(c, 0, 9));
            in++;
        } else if (action % 2 == 0) {
            rn_tree_remove(&tree, &one->node);
            HOLDS(c, !rn_tree_contains(&one->node));
            in--;
        } else {
            rn_tree_set(&one->node, choose_from(c, 0, 9));
        }
        HOLDS(c, node_holds(c, tree.root, NULL) == in);
        order_holds(c, &tree, members);
        search_holds(c, &tree, members);
    }
}

static void any_sequence(void **state)
{
    (void)state;
    property_check("tree", like_an_array, NULL, 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_tree),
        cmocka_unit_test(first_within),
        cmocka_unit_test(any_sequence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
