/* SPDX-License-Identifier: MIT */
/* The table of keys: providers and their endpoints. schema.c says what the table is. */
#include "config/table.h"

static const rn_word penalize[] = {{"narrowest", RATION_PENALIZE_NARROWEST}, {"all", RATION_PENALIZE_ALL}, END};
const rn_word rn_words_priority[] = {{"critical", RATION_PRIORITY_CRITICAL},
                                     {"high", RATION_PRIORITY_HIGH},
                                     {"normal", RATION_PRIORITY_NORMAL},
                                     {"low", RATION_PRIORITY_LOW},
                                     END};

/* What a request without them gets: of an endpoint, and of a provider. */
/* NOLINTBEGIN(bugprone-macro-parentheses): the name of a member cannot stand in parentheses. */
#define DEFAULTS(owner, at, floor)                                                                                     \
    {.name = "cost",                                                                                                   \
     .type = &rn_type_units,                                                                                           \
     .min = 0,                                                                                                         \
     .max = RATION_UNITS_MAX,                                                                                          \
     .flags = RN_KEY_UNSET,                                                                                            \
     .otherwise = "1",                                                                                                 \
     AT(owner, at.cost),                                                                                               \
     .doc = "What a request costs that does not say so."},                                                             \
        {.name = "hold",                                                                                               \
         .type = &rn_type_duration_auto,                                                                               \
         .flags = RN_KEY_UNSET,                                                                                        \
         .otherwise = "no declared end",                                                                               \
         AT(owner, at.hold_us),                                                                                        \
         .doc = "How long a request keeps its lease that does not say so. `auto`: the gateway learns it, as what 95 "  \
                "% of the calls stay below."},                                                                         \
        {.name = "holdFloor",                                                                                          \
         .type = &rn_type_duration,                                                                                    \
         .flags = RN_KEY_UNSET | RN_KEY_LOCAL,                                                                         \
         .otherwise = "the provider's, else 50ms",                                                                     \
         .min = 0,                                                                                                     \
         .max = DAY,                                                                                                   \
         AT(owner, floor),                                                                                             \
         .doc = "With `hold: auto`: the shortest hold that is declared."},                                             \
        {.name = "auth",                                                                                               \
         .type = &rn_type_bool,                                                                                        \
         .fallback = "false",                                                                                          \
         AT(owner, at.auth),                                                                                           \
         .doc = "These requests fetch a token (`appliesTo.authRequests`)."},                                           \
        {.name = "class",                                                                                              \
         .type = &rn_type_name,                                                                                        \
         AT(owner, at.class_name),                                                                                     \
         .doc = "The class of a request that does not name one."},                                                     \
        {.name = "priority",                                                                                           \
         .type = &rn_type_word,                                                                                        \
         .words = rn_words_priority,                                                                                   \
         .otherwise = "normal",                                                                                        \
         AT(owner, at.priority),                                                                                       \
         .doc = "The priority of a request that does not name one."},                                                  \
    {                                                                                                                  \
        .name = "tenant", .type = &rn_type_name, AT(owner, at.tenant),                                                 \
        .doc = "The tenant of a request that does not name one."                                                       \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

static const rn_key endpoint_keys[] = {
    {.name = "path",
     .type = &rn_type_template,
     .flags = RN_KEY_REQUIRED,
     AT(rn_endpoint_model, rule.path),
     .doc = "Such as `/networks/{networkId}/**`. The most specific template that matches names the variables."},
    DEFAULTS(rn_endpoint_model, rule.defaults, hold_floor_us),
    {.name = "estimate",
     .object = &rn_schema_estimate,
     .flags = RN_KEY_LOCAL,
     .otherwise = "the provider's",
     AT(rn_endpoint_model, cost),
     .doc = "What a request will cost that does not say so in `Ration-Cost`."},
    {.name = "actual",
     .object = &rn_schema_actual,
     .flags = RN_KEY_LOCAL,
     .otherwise = "the provider's",
     AT(rn_endpoint_model, cost),
     .doc = "What a call has cost, as its response tells."},
    {.name = "retries",
     .type = &rn_type_integer,
     .flags = RN_KEY_LOCAL | RN_KEY_UNSET,
     .otherwise = "the provider's",
     .min = 0,
     .max = RN_RETRIES_MAX,
     AT(rn_endpoint_model, retries),
     .doc = "How often the gateway sends a failed call of this path again; where the account says so too, the smaller "
            "number holds."},
    END,
};
static const rn_object endpoint_object = {.name = "endpoint",
                                          .doc = "A path template. A bare text is its `path`.",
                                          .keys = endpoint_keys,
                                          .size = sizeof(rn_endpoint_model),
                                          .shorthand = "path",
                                          .check = rn_check_endpoint};

static const rn_key rate_limited_keys[] = {
    {.name = "statuses",
     .type = &rn_type_small,
     .shape = RN_SHAPE_LIST,
     .fallback = "429",
     .flags = RN_KEY_FILLED,
     .min = 100,
     .max = 599,
     ITEMS(rn_provider_model, rule.errors.rate_limited, rule.errors.rate_limited_count),
     .doc = "Statuses that say \"too many\"."},
    {.name = "bodyContains",
     .type = &rn_type_text,
     AT(rn_provider_model, rule.errors.body_contains),
     .doc = "Only if the beginning of the body has this text too."},
    {.name = "defaultPenalty",
     .type = &rn_type_duration,
     .fallback = "2s",
     .min = 1,
     .max = YEAR,
     AT(rn_provider_model, rule.errors.default_penalty_us),
     .doc = "How long to pause when the response does not say; doubles with each further one, up to 10 minutes."},
    {.name = "maxPenalty",
     .type = &rn_type_duration,
     .fallback = "24h",
     .min = 1,
     .max = YEAR,
     AT(rn_provider_model, rule.errors.max_penalty_us),
     .doc = "The longest pause that a response can ask for."},
    {.name = "penalize",
     .type = &rn_type_word,
     .words = penalize,
     .fallback = "narrowest",
     AT(rn_provider_model, rule.errors.penalize),
     .doc = "What pauses: the applicable scope with the most dimensions, or all."},
    END,
};
static const rn_object rate_limited_object = {
    .name = "rateLimited", .doc = "How a provider says \"too many\".", .keys = rate_limited_keys};

static const rn_key transient_keys[] = {
    {.name = "statuses",
     .type = &rn_type_small,
     .shape = RN_SHAPE_LIST,
     .fallback = "500 502 503 504",
     .flags = RN_KEY_FILLED,
     .min = 100,
     .max = 599,
     ITEMS(rn_provider_model, rule.errors.transient, rule.errors.transient_count),
     .doc = "Statuses that say \"try again\"."},
    END,
};
static const rn_object transient_object = {
    .name = "transient", .doc = "How a provider says \"try again\".", .keys = transient_keys};

static const rn_key error_keys[] = {
    {.name = "rateLimited", .object = &rate_limited_object, .doc = "How the provider says \"too many\"."},
    {.name = "transient", .object = &transient_object, .doc = "How it says \"try again\"."},
    END,
};
static const rn_object errors_object = {
    .name = "errors", .doc = "What a provider's responses mean.", .keys = error_keys};

static const rn_key outcome_keys[] = {
    {.name = "throttled",
     .type = &rn_type_small,
     .shape = RN_SHAPE_LIST,
     .otherwise = "`errors.rateLimited`",
     .flags = RN_KEY_FILLED,
     .min = 100,
     .max = 599,
     ITEMS(rn_provider_model, rule.errors.throttled, rule.errors.throttled_count),
     .doc = "Statuses that shrink adaptive limits. To a breaker they are no result at all."},
    {.name = "failure",
     .type = &rn_type_small,
     .shape = RN_SHAPE_LIST,
     .otherwise = "`errors.transient.statuses`",
     .flags = RN_KEY_FILLED,
     .min = 100,
     .max = 599,
     ITEMS(rn_provider_model, rule.errors.failure, rule.errors.failure_count),
     .doc = "Statuses that are failures to a breaker. They move no adaptive limit."},
    END,
};
static const rn_object outcome_object = {
    .name = "outcome",
    .doc = "What adaptive limits and breakers make of a status; any other is a success.",
    .keys = outcome_keys,
    .check = rn_check_outcome};

static const rn_key timeout_keys[] = {
    {.name = "connect",
     .type = &rn_type_duration,
     .fallback = "10s",
     .min = 1000,
     .max = DAY,
     .flags = RN_KEY_LOCAL,
     AT(rn_provider_model, net.connect_us),
     .doc = "To resolve, connect and shake hands."},
    {.name = "firstByte",
     .type = &rn_type_duration,
     .fallback = "60s",
     .min = 1000,
     .max = DAY,
     .flags = RN_KEY_LOCAL,
     AT(rn_provider_model, net.first_byte_us),
     .doc = "From the end of the request to the first byte of the response."},
    {.name = "idle",
     .type = &rn_type_duration,
     .fallback = "60s",
     .min = 1000,
     .max = DAY,
     .flags = RN_KEY_LOCAL,
     AT(rn_provider_model, net.idle_us),
     .doc = "Between two pieces of a body."},
    END,
};
static const rn_object timeouts_object = {
    .name = "timeouts", .doc = "How long the gateway waits for a provider.", .keys = timeout_keys};

static const rn_key tls_keys[] = {
    {.name = "ca",
     .type = &rn_type_file,
     .flags = RN_KEY_LOCAL,
     .otherwise = "the system's",
     AT(rn_provider_model, net.ca),
     .doc = "A file of PEM certificates to trust in place of the system's, for a private authority."},
    END,
};
static const rn_object tls_object = {.name = "tls", .doc = "TLS to a provider.", .keys = tls_keys};

static const rn_key provider_keys[] = {
    {.name = "name",
     .type = &rn_type_name,
     .flags = RN_KEY_REQUIRED,
     AT(rn_provider_model, rule.name),
     .doc = "What accounts call it."},
    {.name = "use",
     .type = &rn_type_text,
     .flags = RN_KEY_LOCAL,
     .otherwise = "all is written here",
     AT(rn_provider_model, use),
     .doc =
         "A ready-made provider file that this one is laid over: `github` for one that comes with ration, `./my.yaml` "
         "for one beside this file. `limits` are laid over by name, `endpoints` by path, `errors`, `outcome`, "
         "`timeouts`, `tls`, `targets` and `estimate` key by key; any other key takes the place of the file's."},
    {.name = "baseUrl",
     .type = &rn_type_url,
     .flags = RN_KEY_NEEDED,
     AT(rn_provider_model, net.base_url),
     .doc = "Where its calls go. Paths of calls are appended to the URL's own."},
    {.name = "targets",
     .type = &rn_type_url,
     .shape = RN_SHAPE_TABLE,
     ITEMS(rn_provider_model, targets, target_count),
     .item = sizeof(rn_target_model),
     .value = offsetof(rn_target_model, url),
     .doc = "Other base URLs of the same provider, by names that an account's `target` can take."},
    {.name = "endpoints",
     .object = &endpoint_object,
     .shape = RN_SHAPE_LIST,
     ITEMS(rn_provider_model, endpoints, rule.endpoint_count),
     .doc = "Path templates: they name the variables of scopes, and say what requests get that do not say."},
    {.name = "limits",
     .object = &rn_schema_limit,
     .shape = RN_SHAPE_LIST,
     .flags = RN_KEY_LAID,
     ITEMS(rn_provider_model, limits, rule.limit_count),
     .doc = "The provider's limits. A request needs all that apply to it."},
    {.name = "errors", .object = &errors_object, .doc = "What its responses mean."},
    {.name = "outcome",
     .object = &outcome_object,
     .doc = "What adaptive limits and the breaker make of its statuses, where that differs from `errors`."},
    {.name = "breaker",
     .object = &rn_schema_breaker,
     .otherwise = "there is none",
     .doc = "A circuit breaker: stops calls to a provider that fails, and tries it again by and by."},
    DEFAULTS(rn_provider_model, rule.defaults, hold_floor_us),
    {.name = "timeouts",
     .object = &timeouts_object,
     .flags = RN_KEY_LOCAL,
     .doc = "How long the gateway waits for it."},
    {.name = "tls", .object = &tls_object, .flags = RN_KEY_LOCAL, .doc = "TLS to it."},
    {.name = "proxy",
     .type = &rn_type_proxy,
     .flags = RN_KEY_LOCAL | RN_KEY_SECRET,
     .otherwise = "none, whatever the environment says",
     AT(rn_provider_model, net.proxy),
     .doc = "A proxy to go through."},
    {.name = "estimate",
     .object = &rn_schema_estimate,
     .flags = RN_KEY_LOCAL,
     .otherwise = "`cost`",
     AT(rn_provider_model, net.cost),
     .doc = "What a request will cost that does not say so in `Ration-Cost`."},
    {.name = "actual",
     .object = &rn_schema_actual,
     .flags = RN_KEY_LOCAL,
     .otherwise = "the estimate stands",
     AT(rn_provider_model, net.cost),
     .doc = "What a call has cost, as its response tells."},
    {.name = "retries",
     .type = &rn_type_integer,
     .fallback = "2",
     .flags = RN_KEY_LOCAL,
     .min = 0,
     .max = RN_RETRIES_MAX,
     AT(rn_provider_model, net.retries),
     .doc = "How often the gateway sends a call again that met \"too many\" or \"try again\" (`errors`) or whose "
            "connection broke, where that can do no harm; from the reserve that quotas keep for retries."},
    {.name = "replayBody",
     .type = &rn_type_size,
     .flags = RN_KEY_LOCAL,
     .fallback = "256KiB",
     AT(rn_provider_model, net.replay_body),
     .doc = "Bodies of requests up to this size are kept while they are sent, so that they can be sent again."},
    END,
};
const rn_object rn_schema_provider = {
    .name = "provider",
    .doc = "An outside API: its base URL, endpoints, limits, and how it says \"too many\".",
    .keys = provider_keys,
    .size = sizeof(rn_provider_model),
    .base = "use",
    .check = rn_check_provider};
