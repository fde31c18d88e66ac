/* SPDX-License-Identifier: MIT */
/*
 * Names of the public enumerations.
 *
 * Each table comes from the X-macro or stands beside the enumerators that it names, indexed by them. A value outside
 * the table is no fault: a caller may hold one from a newer library, and gets "" or the harmless answer.
 */
#include <ration/types.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

const char *ration_err_text(int err)
{
    switch (err) {
#define RATION_X(code, value, text)                                                                                    \
    case code:                                                                                                         \
        return text;
        RATION_ERRORS(RATION_X)
#undef RATION_X
    case RATION_OK:
        return "no error";
    default:
        return "unknown error";
    }
}

static const struct {
    const char *name;
    ration_category category;
    bool retryable;
} reasons[RATION_REASON_COUNT] = {[RATION_REASON_NONE] = {"", RATION_CATEGORY_CAPACITY, false},
#define RATION_X(code, name, category, retryable) [code] = {name, category, retryable},
                                  RATION_REASONS(RATION_X)
#undef RATION_X
};

static ration_reason reason_known(ration_reason reason)
{
    return (unsigned)reason < RATION_REASON_COUNT ? reason : RATION_REASON_NONE;
}

const char *ration_reason_name(ration_reason reason)
{
    return reasons[reason_known(reason)].name;
}

ration_category ration_reason_category(ration_reason reason)
{
    return reasons[reason_known(reason)].category;
}

bool ration_reason_retryable(ration_reason reason)
{
    return reasons[reason_known(reason)].retryable;
}

const char *ration_category_name(ration_category category)
{
    static const char *const names[] = {
        [RATION_CATEGORY_CAPACITY] = "capacity", [RATION_CATEGORY_BUDGET] = "budget",
        [RATION_CATEGORY_PROVIDER] = "provider", [RATION_CATEGORY_FAIRNESS] = "fairness",
        [RATION_CATEGORY_CALLER] = "caller",     [RATION_CATEGORY_STORE] = "store",
    };

    return (size_t)category < COUNT_OF(names) ? names[category] : "";
}

const char *ration_priority_name(ration_priority priority)
{
    static const char *const names[] = {
        [RATION_PRIORITY_UNSET] = "",        [RATION_PRIORITY_CRITICAL] = "critical", [RATION_PRIORITY_HIGH] = "high",
        [RATION_PRIORITY_NORMAL] = "normal", [RATION_PRIORITY_LOW] = "low",
    };

    return (size_t)priority < COUNT_OF(names) ? names[priority] : "";
}

const char *ration_outcome_name(ration_outcome outcome)
{
    static const char *const names[] = {
        [RATION_OUTCOME_SUCCESS] = "success",
        [RATION_OUTCOME_THROTTLED] = "throttled",
        [RATION_OUTCOME_FAILURE] = "failure",
        [RATION_OUTCOME_CANCELLED] = "cancelled",
    };

    return (size_t)outcome < COUNT_OF(names) ? names[outcome] : "";
}

const char *ration_circuit_state_name(ration_circuit_state state)
{
    static const char *const names[] = {
        [RATION_BREAKER_CLOSED] = "closed",
        [RATION_BREAKER_OPEN] = "open",
        [RATION_BREAKER_HALF_OPEN] = "half-open",
    };

    return (size_t)state < COUNT_OF(names) ? names[state] : "";
}
