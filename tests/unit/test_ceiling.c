/* SPDX-License-Identifier: MIT */
/* One ceiling by itself: the traces of chapter 2, to the letter. */
#include "support/check.h"
#include "support/tenants.h"

#define MS INT64_C(1000)

/* How a guarantee that was lent comes back, and what averages say of it. */
static void the_first_trace(void **state)
{
    static const tenants_step steps[] = {
        {"within its own guarantee", 0, "acquire b1 b 50 1000", "granted"},
        {"its own", 0, "state b", "guarantee 50 held 50 own 50 lent 0 borrowed 0 want 0 busy"},
        {"a loan may not outlive the horizon", 0, "acquire x b 50 1000", "hold_exceeds_reclaim_horizon -"},
        {"within it, a lends", 0, "acquire b2 b 50 100", "granted"},
        {"what b has", 0, "state b", "guarantee 50 held 100 own 50 lent 0 borrowed 50 want 0 busy"},
        {"what a has given", 0, "state a", "guarantee 50 held 0 own 0 lent 50 borrowed 0 want 0 idle"},
        {"a comes back", 10 * MS, "acquire a1 a 50 50", "guarantee_on_loan 90 b2"},
        {"and is no longer idle", 10 * MS, "state a", "guarantee 50 held 0 own 0 lent 50 borrowed 0 want 50 busy"},
        {"the targets of both", 10 * MS, "targets", "a:50 b:50"},
        {"the loan ends", 100 * MS, "release b2", "released"},
        {"and is not renewed: a asked", 100 * MS, "acquire b3 b 50 100", "nothing_to_borrow 900"},
        {"a is whole", 100 * MS, "acquire a1 a 50 50", "granted"},
        {"what it cost", 100 * MS, "toll a", "deficit 4500 reclaims 1 worst 90 granted 1 refused guarantee_on_loan:1"},
        {"b was short of nothing", 100 * MS, "toll b",
         "deficit 0 reclaims 0 worst 0 granted 2 refused hold_exceeds_reclaim_horizon:1 nothing_to_borrow:1"},
        {"a", 150 * MS, "release a1", "released"},
        {"a again", 150 * MS, "acquire a2 a 50 50", "granted"},
        {"a ends", 200 * MS, "release a2", "released"},
        {"by averages all is well", 200 * MS, "fairness", "a 0.5 0.5 0.5 1 1; b 0.5 0.5 0.5 1 1; agree"},
        {"what a has lost stays", 200 * MS, "toll a",
         "deficit 4500 reclaims 1 worst 90 granted 2 refused guarantee_on_loan:1"},
        {"a lease ends once", 200 * MS, "release a2", "unknown"},
    };
    const ration_ceiling_options options = tenants_two();

    (void)state;
    TENANTS_RUN(&options, steps);
}

/* The same without the call at 10 ms: nobody knows that a is back. */
static void without_the_demand(void **state)
{
    static const tenants_step steps[] = {
        {"own", 0, "acquire b1 b 50 1000", "granted"},
        {"lent", 0, "acquire b2 b 50 100", "granted"},
        {"the loan ends", 100 * MS, "release b2", "released"},
        {"and is renewed", 100 * MS, "acquire b3 b 50 100", "granted"},
        {"a is too late", 100 * MS, "acquire a1 a 50 50", "guarantee_on_loan 100 b3"},
    };
    const ration_ceiling_options options = tenants_two();

    (void)state;
    TENANTS_RUN(&options, steps);
}

static void requests_or_cost(void **state)
{
    static const tenants_step requests[] = {
        {"b is there", 0, "acquire b0 b 1 1000", "granted"},
        {"one of five", 0, "acquire a1 a 4 1000", "granted"},
        {"two of five", 0, "acquire a2 a 4 1000", "granted"},
        {"units count what is asked, costs are told apart", 0, "fairness",
         "a 0.5 0.888889 0.666667 1.777778 1.333333; b 0.5 0.111111 0.333333 0.222222 0.666667; disagree"},
    };
    static const tenants_step cost[] = {
        {"b is there", 0, "acquire b0 b 1 1000", "granted"},
        {"four of five", 0, "acquire a1 a 4 1000", "granted"},
        {"eight of five", 0, "acquire a2 a 4 1000", "hold_exceeds_reclaim_horizon -"},
    };
    ration_ceiling_options options = tenants_two();

    (void)state;
    options.rule.ceiling = 10 * RATION_UNIT;
    options.counts = RATION_COUNTS_REQUESTS;
    TENANTS_RUN(&options, requests);
    options.counts = RATION_COUNTS_COST;
    TENANTS_RUN(&options, cost);
}

/* One lender is exposed, the others are not. */
static void four_tenants(void **state)
{
    static const ration_tenant_share four[] = {{"a", 1, {0}}, {"b", 1, {0}}, {"c", 3, {0}}, {"d", 1, {0}}};
    static const tenants_step steps[] = {
        {"d is there", 0, "acquire d0 d 0 -", "granted"},
        {"ten of its own, twenty of c's", 0, "acquire d1 d 30 100", "granted"},
        {"d", 0, "state d", "guarantee 10 held 30 own 10 lent 0 borrowed 20 want 0 busy"},
        {"c alone lends", 0, "state c", "guarantee 30 held 0 own 0 lent 20 borrowed 0 want 0 idle"},
        {"a is whole", 0, "acquire a1 a 10 1000", "granted"},
        {"b is whole", 0, "acquire b1 b 10 1000", "granted"},
        {"c waits for d's lease", 0, "acquire c1 c 30 1000", "guarantee_on_loan 100 d1"},
    };
    ration_ceiling_options options = tenants_two();

    (void)state;
    options.rule.ceiling = 60 * RATION_UNIT;
    options.rule.tenants = four;
    options.rule.tenant_count = 4;
    TENANTS_RUN(&options, steps);
}

/* The trace `when-enough`. */
static void when_enough(void **state)
{
    static const tenants_step steps[] = {
        {"a is busy", 0, "acquire a0 a 1 9000", "granted"},
        {"30", 0, "acquire b1 b 30 1000", "granted"},
        {"10", 0, "acquire b2 b 10 500", "granted"},
        {"all of its own", 0, "acquire x b 45 50", "nothing_to_borrow 1000"},
        {"the first to end is enough", 0, "acquire x b 20 50", "nothing_to_borrow 500"},
        {"more than its guarantee", 0, "acquire x b 51 50", "nothing_to_borrow -"},
        {"one of those needed has overrun", 501 * MS, "acquire x b 20 50", "nothing_to_borrow -"},
        {"it is listed", 501 * MS, "total", "41 of 100 draining 0 overrun b2"},
    };
    const ration_ceiling_options options = tenants_two();

    (void)state;
    TENANTS_RUN(&options, steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_trace), cmocka_unit_test(without_the_demand), cmocka_unit_test(requests_or_cost),
        cmocka_unit_test(four_tenants),    cmocka_unit_test(when_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
