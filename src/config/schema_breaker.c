/* SPDX-License-Identifier: MIT */
/*
 * The table of keys: circuit breakers. schema.c says what the table is.
 *
 * Which rows a breaker has depends on its strategy; `threshold` is a number of failures or a part of the calls.
 */
#include "config/table.h"

enum {
    CONSECUTIVE = 1 << RATION_BREAKER_CONSECUTIVE,
    COUNT = 1 << RATION_BREAKER_COUNT,
    SAMPLING = 1 << RATION_BREAKER_SAMPLING,
};

static const rn_word strategies[] = {{"consecutive", RATION_BREAKER_CONSECUTIVE},
                                     {"count", RATION_BREAKER_COUNT},
                                     {"sampling", RATION_BREAKER_SAMPLING},
                                     END};
static const rn_word recoveries[] = {
    {"probe", RATION_RECOVERY_PROBE}, {"healthCheck", RATION_RECOVERY_HEALTH_CHECK}, END};

static const rn_key probe_keys[] = {
    {.name = "n",
     .type = &rn_type_integer,
     .otherwise = "1",
     .min = 1,
     .max = 1000000,
     AT(rn_provider_model, rule.breaker.probes),
     .doc = "So many requests are let through; when all of them succeed, the circuit closes."},
    END,
};
static const rn_object probe_object = {
    .name = "probe", .doc = "Recovery by requests of the callers.", .keys = probe_keys};

static const rn_key check_keys[] = {
    {.name = "method",
     .type = &rn_type_method,
     .otherwise = "GET",
     AT(rn_provider_model, rule.breaker.check_method),
     .doc = "Its method."},
    {.name = "path",
     .type = &rn_type_path,
     .flags = RN_KEY_REQUIRED,
     AT(rn_provider_model, rule.breaker.check_path),
     .doc = "Its path, below the account's base URL."},
    {.name = "expect",
     .type = &rn_type_small,
     .shape = RN_SHAPE_LIST,
     .otherwise = "200 to 299",
     .flags = RN_KEY_FILLED,
     .min = 100,
     .max = 599,
     ITEMS(rn_provider_model, rule.breaker.check_expect, rule.breaker.check_expect_count),
     .doc = "Statuses that are healthy."},
    END,
};
static const rn_object check_object = {.name = "healthCheck",
                                       .doc = "A request of the gateway's own that asks whether the provider is well.",
                                       .keys = check_keys};

static const rn_key backoff_keys[] = {
    {.name = "delay",
     .type = &rn_type_duration,
     .min = 1,
     .max = YEAR,
     AT(rn_provider_model, backoff_delay_us),
     .doc = "Always this long. Either this or `initial` and `multiplier`."},
    {.name = "initial",
     .type = &rn_type_duration,
     .min = 1,
     .max = YEAR,
     AT(rn_provider_model, backoff_initial_us),
     .doc = "This long at first."},
    {.name = "multiplier",
     .type = &rn_type_factor,
     .min = RATION_UNIT,
     .max = 1000 * RATION_UNIT,
     AT(rn_provider_model, rule.breaker.backoff_multiplier),
     .doc = "So many times as long each further time that it opens without having closed."},
    {.name = "max",
     .type = &rn_type_duration,
     .min = 1,
     .max = YEAR,
     .otherwise = "no bound",
     AT(rn_provider_model, rule.breaker.backoff_max_us),
     .doc = "But never longer than this."},
    END,
};
static const rn_object backoff_object = {
    .name = "backoff", .doc = "How long an open circuit refuses before it is tried.", .keys = backoff_keys};

static const rn_key idle_keys[] = {
    {.name = "interval",
     .type = &rn_type_duration,
     .flags = RN_KEY_REQUIRED,
     .min = 1,
     .max = YEAR,
     AT(rn_provider_model, rule.breaker.idle_interval_us),
     .doc = "After so long without a result, and then again and again."},
    {.name = "failures",
     .type = &rn_type_integer,
     .otherwise = "1",
     .min = 1,
     .max = 1000000,
     AT(rn_provider_model, rule.breaker.idle_failures),
     .doc = "So many failed checks in a row open the circuit."},
    END,
};
static const rn_object idle_object = {
    .name = "idleProbe", .doc = "Health checks while a closed circuit is quiet.", .keys = idle_keys};

static const rn_key scope_keys[] = {
    {.name = "by",
     .type = &rn_type_dimension,
     .shape = RN_SHAPE_LIST,
     .otherwise = "`[account]`",
     .flags = RN_KEY_FILLED,
     ITEMS(rn_provider_model, rule.breaker.scope, rule.breaker.scope_count),
     .doc = "Each combination of their values has a circuit of its own; the dimensions are those of a limit's scope."},
    END,
};
static const rn_object scope_object = {
    .name = "breakerScope", .doc = "What there is one circuit for.", .keys = scope_keys};

static const rn_key breaker_keys[] = {
    {.name = "strategy",
     .type = &rn_type_word,
     .words = strategies,
     .flags = RN_KEY_REQUIRED,
     AT(rn_provider_model, rule.breaker.strategy),
     .doc = "What opens the circuit: so many failures in a row, or a part of the last `size` results, or of those of "
            "the last `duration`."},
    {.name = "threshold",
     .type = &rn_type_integer,
     .kinds = CONSECUTIVE,
     .fallback = "5",
     .min = 1,
     .max = 1000000,
     AT(rn_provider_model, rule.breaker.threshold),
     .doc = "So many failures in a row."},
    {.name = "threshold",
     .type = &rn_type_ratio,
     .kinds = COUNT | SAMPLING,
     .fallback = "50%",
     AT(rn_provider_model, rule.breaker.ratio),
     .doc = "When so large a part of the results are failures."},
    {.name = "size",
     .type = &rn_type_integer,
     .kinds = COUNT,
     .fallback = "100",
     .min = 1,
     .max = 65536,
     AT(rn_provider_model, rule.breaker.size),
     .doc = "How many results count."},
    {.name = "duration",
     .type = &rn_type_duration,
     .kinds = SAMPLING,
     .fallback = "60s",
     .min = 1,
     .max = YEAR,
     AT(rn_provider_model, rule.breaker.duration_us),
     .doc = "How long a result counts."},
    {.name = "minimumCalls",
     .type = &rn_type_integer,
     .kinds = COUNT | SAMPLING,
     .fallback = "10",
     .min = 1,
     .max = 1000000,
     AT(rn_provider_model, rule.breaker.minimum_calls),
     .doc = "With fewer results than this the circuit does not open."},
    {.name = "quorum",
     .type = &rn_type_integer,
     .fallback = "1",
     .min = 1,
     .max = 1000,
     AT(rn_provider_model, rule.breaker.quorum),
     .doc =
         "In a fleet: how many of its processes must have seen a failure that counts. One alone is enough for itself."},
    {.name = "recovery",
     .type = &rn_type_word,
     .words = recoveries,
     .fallback = "probe",
     AT(rn_provider_model, rule.breaker.recovery),
     .doc = "How an open circuit is tried: by requests of the callers, or by a health check."},
    {.name = "probe", .object = &probe_object, .doc = "With `recovery: probe`."},
    {.name = "healthCheck", .object = &check_object, .doc = "With `recovery: healthCheck` or an `idleProbe`."},
    {.name = "backoff",
     .object = &backoff_object,
     .otherwise = "`{ delay: 1s }`",
     .doc = "How long it refuses before it is tried."},
    {.name = "idleProbe", .object = &idle_object, .otherwise = "none", .doc = "Health checks while it is quiet."},
    {.name = "scope", .object = &scope_object, .doc = "What there is one circuit for."},
    END,
};
const rn_object rn_schema_breaker = {.name = "breaker",
                                     .doc = "Stops calls to a provider that fails: an open circuit refuses with "
                                            "`circuit_open` before any limit is looked at.",
                                     .keys = breaker_keys,
                                     .kind = "strategy",
                                     .check = rn_check_breaker};
