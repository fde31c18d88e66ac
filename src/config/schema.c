/* SPDX-License-Identifier: MIT */
/*
 * The one table of keys.
 *
 * Everything that knows the config language walks these rows: the parser and its messages, the defaults, the writer of
 * recordings, the JSON Schema, the reference page. A row says where its value goes by its offset in the structs of
 * model.h. Rows stand in the order in which they are read: a provider before the accounts that name it, a name before
 * what it names.
 *
 * Invariant: the first row of an object that stands in lists is its name, and its struct begins with that name.
 */
#include "config/schema.h"

#include <stddef.h>

#include "config/faults.h"
#include "config/loader.h"

#define AT(owner, member) .offset = offsetof(owner, member)
#define ITEMS(owner, items, number) .offset = offsetof(owner, items), .count = offsetof(owner, number)
#define LATER(word)                                                                                                    \
    {                                                                                                                  \
        .name = (word), .flags = RN_KEY_LATER, .doc = ""                                                               \
    }
#define END                                                                                                            \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

#define SECOND INT64_C(1000000)
#define DAY (86400 * SECOND)
#define YEAR (366 * DAY)

enum {
    RATE = 1 << RATION_KIND_RATE,
    CONCURRENCY = 1 << RATION_KIND_CONCURRENCY,
    QUOTA = 1 << RATION_KIND_QUOTA,
};

static const rn_word kinds[] = {{"rate", RATION_KIND_RATE, false},
                                {"concurrency", RATION_KIND_CONCURRENCY, false},
                                {"quota", RATION_KIND_QUOTA, false},
                                {"share", 0, true},
                                {"adaptive", 0, true},
                                END};
static const rn_word counts[] = {{"requests", RATION_COUNTS_REQUESTS, false}, {"cost", RATION_COUNTS_COST, false}, END};
static const rn_word enforce[] = {{"on", RATION_ENFORCE_ON, false}, {"shadow", RATION_ENFORCE_SHADOW, false}, END};
static const rn_word auth_filters[] = {{"include", RATION_AUTH_INCLUDE, false},
                                       {"only", RATION_AUTH_ONLY, false},
                                       {"exclude", RATION_AUTH_EXCLUDE, false},
                                       END};
static const rn_word periods[] = {{"minute", RATION_PERIOD_MINUTE, false}, {"hour", RATION_PERIOD_HOUR, false},
                                  {"day", RATION_PERIOD_DAY, false},       {"week", RATION_PERIOD_WEEK, false},
                                  {"month", RATION_PERIOD_MONTH, false},   END};
static const rn_word weekdays[] = {
    {"monday", 0, false}, {"tuesday", 1, false},  {"wednesday", 2, false}, {"thursday", 3, false},
    {"friday", 4, false}, {"saturday", 5, false}, {"sunday", 6, false},    END};
static const rn_word exhausted[] = {
    {"refuse", RATION_EXHAUSTED_REFUSE, false}, {"wait", RATION_EXHAUSTED_WAIT, false}, END};
static const rn_word reset_formats[] = {
    {"auto", RATION_RESET_AUTO, false},          {"epoch", RATION_RESET_EPOCH, false},
    {"epochMs", RATION_RESET_EPOCH_MS, false},   {"delta", RATION_RESET_DELTA, false},
    {"duration", RATION_RESET_DURATION, false},  {"iso8601", RATION_RESET_ISO8601, false},
    {"httpDate", RATION_RESET_HTTP_DATE, false}, END};
static const rn_word penalize[] = {
    {"narrowest", RATION_PENALIZE_NARROWEST, false}, {"all", RATION_PENALIZE_ALL, false}, END};
static const rn_word orders[] = {{"fair", RATION_QUEUE_FAIR, false}, {"fifo", RATION_QUEUE_FIFO, false}, END};
static const rn_word priorities[] = {{"critical", RATION_PRIORITY_CRITICAL, false},
                                     {"high", RATION_PRIORITY_HIGH, false},
                                     {"normal", RATION_PRIORITY_NORMAL, false},
                                     {"low", RATION_PRIORITY_LOW, false},
                                     END};

/* settings */

static const rn_key listen_keys[] = {
    {.name = "gateway",
     .type = &rn_type_address,
     .fallback = "127.0.0.1:7600",
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.gateway),
     .doc = "Where clients send their calls. Port 0 takes any free one."},
    {.name = "control",
     .type = &rn_type_address,
     .fallback = "127.0.0.1:7601",
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.control),
     .doc = "Where status, metrics and health are served."},
    END,
};
static const rn_object listen_object = {
    .name = "listen",
    .doc = "The two listeners. One that is neither loopback nor a Unix socket needs `settings.token`.",
    .keys = listen_keys,
};

static const rn_key queue_keys[] = {
    {.name = "order",
     .type = &rn_type_word,
     .words = orders,
     .fallback = "fair",
     AT(rn_config_model, rules.queue_order),
     .doc = "Order among waiters of one priority: `fair` among tenants by their weights, or `fifo` by age."},
    {.name = "maxWaiters",
     .type = &rn_type_integer,
     .fallback = "10000",
     .min = 1,
     .max = 1000000,
     AT(rn_config_model, rules.max_waiters),
     .doc = "How many may wait per provider; more are refused with `queue_full`."},
    {.name = "maxWaitersPerTenant",
     .type = &rn_type_integer,
     .fallback = "10000",
     .min = 1,
     .max = 1000000,
     AT(rn_config_model, rules.max_waiters_per_tenant),
     .doc = "How many of one tenant may wait per provider."},
    {.name = "wait",
     .type = &rn_type_duration,
     .fallback = "30s",
     .min = 0,
     .max = YEAR,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.wait_us),
     .doc = "How long a call through the gateway waits for its turn when it does not say so itself."},
    END,
};
static const rn_object queue_object = {.name = "queue", .doc = "Those who wait.", .keys = queue_keys};

static const rn_key settings_budget_keys[] = {
    {.name = "retryReserve",
     .type = &rn_type_ratio,
     .fallback = "10%",
     AT(rn_config_model, rules.retry_reserve),
     .doc = "The part of every quota that is kept for retries and critical requests."},
    LATER("retryOverhead"),
    LATER("maxStretch"),
    LATER("replanInterval"),
    END,
};
static const rn_object settings_budget_object = {
    .name = "settingsBudget", .doc = "How quotas are spent.", .keys = settings_budget_keys};

static const rn_key settings_keys[] = {
    {.name = "listen", .object = &listen_object, .flags = RN_KEY_LOCAL, .doc = "Where `ration serve` listens."},
    {.name = "token",
     .type = &rn_type_header_value,
     .flags = RN_KEY_LOCAL | RN_KEY_SECRET,
     AT(rn_config_model, settings.token),
     .doc =
         "What clients must show at listeners that others can reach. Take it from the environment: `${RATION_TOKEN}`."},
    {.name = "instance",
     .type = &rn_type_name,
     .otherwise = "the host name",
     AT(rn_config_model, rules.instance),
     .doc = "The machine as providers see it: the value of the dimension `instance`."},
    {.name = "budget", .object = &settings_budget_object, .doc = "How quotas are spent."},
    {.name = "queue", .object = &queue_object, .doc = "Those who wait."},
    {.name = "drain",
     .type = &rn_type_duration,
     .fallback = "30s",
     .min = 0,
     .max = DAY,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.drain_us),
     .doc = "How long calls may take to end after SIGTERM."},
    {.name = "maxLeases",
     .type = &rn_type_integer,
     .fallback = "1000000",
     .min = 1,
     .max = 100000000,
     AT(rn_config_model, rules.max_leases),
     .doc = "How many leases and waiters there may be at once."},
    LATER("ledger"),
    LATER("fleet"),
    LATER("log"),
    END,
};
static const rn_object settings_object = {
    .name = "settings", .doc = "What holds for the whole process.", .keys = settings_keys, .check = rn_check_settings};

/* limits */

static const rn_key scope_keys[] = {
    {.name = "by",
     .type = &rn_type_dimension,
     .shape = RN_SHAPE_LIST,
     .otherwise = "`[instance]`",
     ITEMS(rn_limit_model, rule.scope, rule.scope_count),
     .doc = "Each combination of their values has a counter of its own: `instance`, `provider`, `account`, `target`, "
            "`credential`, `endpoint`, `tenant`, or `var:NAME` for a variable of the path."},
    END,
};
static const rn_object scope_object = {.name = "scope", .doc = "What a limit is counted by.", .keys = scope_keys};

static const rn_key applies_keys[] = {
    {.name = "endpoints",
     .type = &rn_type_glob,
     .shape = RN_SHAPE_LIST,
     .otherwise = "all",
     ITEMS(rn_limit_model, rule.endpoints, rule.endpoint_count),
     .doc = "Globs on the template: `*` is one segment, `**` zero or more."},
    {.name = "methods",
     .type = &rn_type_method,
     .shape = RN_SHAPE_LIST,
     .otherwise = "all",
     ITEMS(rn_limit_model, rule.methods, rule.method_count),
     .doc = "Only requests with one of these methods."},
    {.name = "requestsWithVar",
     .type = &rn_type_name,
     AT(rn_limit_model, rule.requests_with_var),
     .doc = "Only requests whose path has this variable."},
    {.name = "authRequests",
     .type = &rn_type_word,
     .words = auth_filters,
     .fallback = "include",
     AT(rn_limit_model, rule.auth_requests),
     .doc = "Whether requests that fetch a token count: as all others, `only` they, or all but they."},
    END,
};
static const rn_object applies_object = {.name = "appliesTo",
                                         .doc =
                                             "Which requests a limit counts: those that every key here lets through.",
                                         .keys = applies_keys};

static const rn_key window_keys[] = {
    {.name = "period",
     .type = &rn_type_word,
     .words = periods,
     AT(rn_limit_model, rule.window.period),
     .doc = "A window of the calendar. Either this or `rolling`."},
    {.name = "resetAt",
     .type = &rn_type_clock,
     .otherwise = "00:00",
     AT(rn_limit_model, rule.window.reset_minute),
     .doc = "When it begins anew; for a day, a week or a month."},
    {.name = "timezone",
     .type = &rn_type_zone,
     .otherwise = "UTC",
     AT(rn_limit_model, rule.window.zone),
     .doc = "An IANA name. Days of 23 and 25 hours are one window each."},
    {.name = "weekStart",
     .type = &rn_type_word,
     .words = weekdays,
     .otherwise = "monday",
     AT(rn_limit_model, rule.window.week_start),
     .doc = "The first day of a week."},
    {.name = "monthDay",
     .type = &rn_type_small,
     .otherwise = "1",
     .min = 1,
     .max = 31,
     AT(rn_limit_model, rule.window.month_day),
     .doc = "The day on which a month begins; in a shorter month, its last day."},
    {.name = "rolling",
     .type = &rn_type_duration,
     .min = SECOND,
     .max = YEAR,
     AT(rn_limit_model, rule.window.rolling_us),
     .doc = "A window that slides: never more than `max` in any stretch of this length."},
    END,
};
static const rn_object window_object = {.name = "window", .doc = "How long a quota lasts.", .keys = window_keys};

static const rn_key sync_keys[] = {
    {.name = "limitHeader",
     .type = &rn_type_header,
     AT(rn_limit_model, rule.sync.limit_header),
     .doc = "The response field with the maximum."},
    {.name = "remainingHeader",
     .type = &rn_type_header,
     AT(rn_limit_model, rule.sync.remaining_header),
     .doc = "The response field with what is left."},
    {.name = "resetHeader",
     .type = &rn_type_header,
     AT(rn_limit_model, rule.sync.reset_header),
     .doc = "The response field with the time of the reset."},
    {.name = "resetFormat",
     .type = &rn_type_word,
     .words = reset_formats,
     .fallback = "auto",
     AT(rn_limit_model, rule.sync.reset_format),
     .doc = "How that time is written; `auto` tells by its looks."},
    {.name = "standard",
     .type = &rn_type_bool,
     .fallback = "false",
     AT(rn_limit_model, rule.sync.standard),
     .doc = "Read the IETF fields `RateLimit` and `RateLimit-Policy`."},
    END,
};
static const rn_object sync_object = {
    .name = "sync", .doc = "Response fields that tell how a quota stands.", .keys = sync_keys};

static const rn_key limit_keys[] = {
    {.name = "name",
     .type = &rn_type_name,
     .flags = RN_KEY_REQUIRED,
     AT(rn_limit_model, rule.name),
     .doc = "Stands in decisions, metrics and reports."},
    {.name = "kind",
     .type = &rn_type_word,
     .words = kinds,
     .flags = RN_KEY_REQUIRED,
     AT(rn_limit_model, rule.kind),
     .doc = "`rate`: so many per time, by token bucket. `concurrency`: so many at once. `quota`: so many per window."},
    {.name = "scope", .object = &scope_object, .doc = "What the limit is counted by."},
    {.name = "appliesTo", .object = &applies_object, .otherwise = "all requests", .doc = "Which requests it counts."},
    {.name = "counts",
     .type = &rn_type_word,
     .words = counts,
     .fallback = "requests",
     AT(rn_limit_model, rule.counts),
     .doc = "What is counted: one for each request, or its cost."},
    {.name = "enforce",
     .type = &rn_type_word,
     .words = enforce,
     .fallback = "on",
     AT(rn_limit_model, rule.enforce),
     .doc = "`shadow` makes a limit decide and report without ever binding."},
    {.name = "rate",
     .type = &rn_type_rate,
     .kinds = RATE,
     .required = RATE,
     AT(rn_limit_model, rule.rate),
     .doc = "How fast the bucket fills."},
    {.name = "burst",
     .type = &rn_type_units,
     .kinds = RATE,
     .min = 1,
     .max = RATION_UNITS_MAX,
     .otherwise = "the rate per second, floored, at least 1",
     AT(rn_limit_model, rule.burst),
     .doc = "How much the bucket holds."},
    {.name = "margin",
     .type = &rn_type_units,
     .kinds = RATE,
     .min = 0,
     .max = RATION_UNITS_MAX,
     .flags = RN_KEY_UNSET,
     .otherwise = "1 where requests are counted and the burst is 2 or more, else 0",
     AT(rn_limit_model, rule.margin),
     .doc = "How much every grant leaves in the bucket, so that the provider's own stays one ahead."},
    {.name = "max",
     .type = &rn_type_units_auto,
     .kinds = CONCURRENCY | QUOTA,
     .required = CONCURRENCY | QUOTA,
     .min = 1,
     .max = RATION_UNITS_MAX,
     AT(rn_limit_model, max),
     .doc = "How many at once, or per window. For a quota, `auto` learns it from `sync.limitHeader`."},
    {.name = "initialMax",
     .type = &rn_type_units,
     .kinds = QUOTA,
     .min = 1,
     .max = RATION_UNITS_MAX,
     .flags = RN_KEY_UNSET,
     AT(rn_limit_model, initial_max),
     .doc = "With `max: auto`: what holds until the first response says more."},
    {.name = "window", .object = &window_object, .kinds = QUOTA, .required = QUOTA, .doc = "How long a quota lasts."},
    {.name = "whenExhausted",
     .type = &rn_type_word,
     .words = exhausted,
     .kinds = QUOTA,
     .fallback = "refuse",
     AT(rn_limit_model, rule.when_exhausted),
     .doc = "`wait`: a request whose deadline lies behind the window's end waits for it."},
    {.name = "arrival",
     .type = &rn_type_duration,
     .kinds = QUOTA,
     .fallback = "2s",
     .min = 0,
     .max = DAY,
     AT(rn_limit_model, rule.arrival_us),
     .doc =
         "How long a request may take to reach the provider: one granted less than this before the window's end may be "
         "counted in the next. 0 switches this off."},
    {.name = "sync",
     .object = &sync_object,
     .kinds = QUOTA,
     .otherwise = "nothing is read",
     .doc = "Response fields that tell how the quota stands."},
    {.name = "maxKeys",
     .type = &rn_type_integer,
     .fallback = "1000000",
     .min = 1,
     .max = 100000000,
     AT(rn_limit_model, rule.max_keys),
     .doc = "How many counters the limit may have; above it, requests are refused with `too_many_keys`."},
    LATER("ceiling"),
    LATER("tenants"),
    LATER("reclaimHorizon"),
    LATER("idleAfter"),
    LATER("unknownTenant"),
    LATER("lend"),
    LATER("freeze"),
    LATER("cooldown"),
    LATER("initialLimit"),
    LATER("minLimit"),
    LATER("maxLimit"),
    LATER("leaseTtl"),
    LATER("aimd"),
    LATER("classes"),
    LATER("recovery"),
    LATER("pauseOnRetryAfter"),
    LATER("durability"),
    LATER("prefetch"),
    LATER("prefetchTtl"),
    END,
};
static const rn_object limit_object = {.name = "limit",
                                       .doc = "One constraint of a provider.",
                                       .keys = limit_keys,
                                       .size = sizeof(rn_limit_model),
                                       .check = rn_check_limit};

/* What a request without them gets: of an endpoint, and of a provider. */
/* NOLINTBEGIN(bugprone-macro-parentheses): the name of a member cannot stand in parentheses. */
#define DEFAULTS(owner, at)                                                                                            \
    {.name = "cost",                                                                                                   \
     .type = &rn_type_units,                                                                                           \
     .min = 0,                                                                                                         \
     .max = RATION_UNITS_MAX,                                                                                          \
     .flags = RN_KEY_UNSET,                                                                                            \
     .otherwise = "1",                                                                                                 \
     AT(owner, at.cost),                                                                                               \
     .doc = "What a request costs that does not say so."},                                                             \
        {.name = "hold",                                                                                               \
         .type = &rn_type_duration,                                                                                    \
         .flags = RN_KEY_UNSET,                                                                                        \
         .otherwise = "no declared end",                                                                               \
         AT(owner, at.hold_us),                                                                                        \
         .doc = "How long a request keeps its lease that does not say so."},                                           \
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
         .words = priorities,                                                                                          \
         .otherwise = "normal",                                                                                        \
         AT(owner, at.priority),                                                                                       \
         .doc = "The priority of a request that does not name one."},                                                  \
    {                                                                                                                  \
        .name = "tenant", .type = &rn_type_name, AT(owner, at.tenant),                                                 \
        .doc = "The tenant of a request that does not name one."                                                       \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

/* providers */

static const rn_key endpoint_keys[] = {
    {.name = "path",
     .type = &rn_type_template,
     .flags = RN_KEY_REQUIRED,
     AT(ration_endpoint_rule, path),
     .doc = "Such as `/networks/{networkId}/**`. The most specific template that matches names the variables."},
    DEFAULTS(ration_endpoint_rule, defaults),
    LATER("estimate"),
    LATER("actual"),
    LATER("retries"),
    END,
};
static const rn_object endpoint_object = {.name = "endpoint",
                                          .doc = "A path template. A bare text is its `path`.",
                                          .keys = endpoint_keys,
                                          .size = sizeof(ration_endpoint_rule),
                                          .shorthand = "path"};

static const rn_key rate_limited_keys[] = {
    {.name = "statuses",
     .type = &rn_type_small,
     .shape = RN_SHAPE_LIST,
     .fallback = "429",
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
     .object = &limit_object,
     .shape = RN_SHAPE_LIST,
     ITEMS(rn_provider_model, limits, rule.limit_count),
     .doc = "The provider's limits. A request needs all that apply to it."},
    {.name = "errors", .object = &errors_object, .doc = "What its responses mean."},
    DEFAULTS(rn_provider_model, rule.defaults),
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
    LATER("breaker"),
    LATER("estimate"),
    LATER("actual"),
    LATER("retries"),
    LATER("replayBody"),
    LATER("use"),
    END,
};
static const rn_object provider_object = {
    .name = "provider",
    .doc = "An outside API: its base URL, endpoints, limits, and how it says \"too many\".",
    .keys = provider_keys,
    .size = sizeof(rn_provider_model),
    .check = rn_check_provider};

/* accounts */

static const rn_key credential_keys[] = {
    {.name = "header",
     .type = &rn_type_credential_header,
     .fallback = "Authorization",
     .flags = RN_KEY_LOCAL,
     AT(rn_account_model, net.credential.header),
     .doc = "The request field that carries the secret."},
    {.name = "value",
     .type = &rn_type_header_value,
     .flags = RN_KEY_LOCAL | RN_KEY_SECRET,
     AT(rn_account_model, net.credential.value),
     .doc = "Its value, such as `Bearer ${API_KEY}`. Never printed, logged or reported."},
    {.name = "key",
     .type = &rn_type_key16,
     AT(rn_account_model, net.credential.key),
     .doc = "In place of the two: the key that stands for a secret which ration does not hold, as in a recording."},
    END,
};
static const rn_object credential_object = {.name = "credential",
                                            .doc = "What authenticates an account's calls.",
                                            .keys = credential_keys,
                                            .check = rn_check_credential};

static const rn_key account_budget_keys[] = {
    {.name = "share",
     .type = &rn_type_ratio,
     .fallback = "100%",
     AT(rn_account_model, rule.share),
     .doc = "The part of the account's quotas that is ours; the rest is left to others who use it."},
    END,
};
static const rn_object account_budget_object = {
    .name = "budget", .doc = "An account's part of its quotas.", .keys = account_budget_keys};

static const rn_key account_keys[] = {
    {.name = "name",
     .type = &rn_type_name,
     .flags = RN_KEY_REQUIRED,
     AT(rn_account_model, rule.name),
     .doc = "The first segment of a call's path through the gateway."},
    {.name = "provider",
     .type = &rn_type_name,
     .flags = RN_KEY_REQUIRED,
     AT(rn_account_model, rule.provider),
     .doc = "The name of one of `providers`."},
    {.name = "target",
     .type = &rn_type_target,
     .otherwise = "the provider's `baseUrl`",
     AT(rn_account_model, rule.target),
     .doc = "Another base URL of the provider: one of its `targets`, or a URL."},
    {.name = "credential",
     .object = &credential_object,
     .flags = RN_KEY_SECRET,
     .otherwise = "none is added",
     .doc = "What authenticates its calls."},
    {.name = "budget", .object = &account_budget_object, .doc = "Its part of the quotas."},
    {.name = "limits",
     .object = &limit_object,
     .shape = RN_SHAPE_LIST,
     .overlay = rn_overlay_limit,
     ITEMS(rn_account_model, limits, limit_count),
     .doc = "Limits of the provider that are otherwise for this account: the `name` of one whose scope has `account`, "
            "and the "
            "keys that differ."},
    LATER("breaker"),
    LATER("retries"),
    END,
};
static const rn_object account_object = {.name = "account",
                                         .doc =
                                             "A credential on a provider, with the share of its quotas that is ours.",
                                         .keys = account_keys,
                                         .size = sizeof(rn_account_model),
                                         .check = rn_check_account};

/* the file */

static const rn_key root_keys[] = {
    {.name = "include",
     .type = &rn_type_file,
     .flags = RN_KEY_LOCAL,
     .doc = "A folder (beside this file) whose .yaml, .yml and .json files belong to the config too, in order of their "
            "names: "
            "their lists and maps are joined to those here."},
    {.name = "settings", .object = &settings_object, .doc = "What holds for the whole process."},
    {.name = "tenants",
     .type = &rn_type_integer,
     .shape = RN_SHAPE_TABLE,
     .min = 1,
     .max = 1000000,
     ITEMS(rn_config_model, rules.tenants, rules.tenant_count),
     .item = sizeof(ration_tenant_rule),
     .value = offsetof(ration_tenant_rule, weight),
     .otherwise = "every tenant weighs 1",
     .doc = "Weights of tenants for their turns while they wait: 3 is served three times as often as 1."},
    {.name = "providers",
     .object = &provider_object,
     .shape = RN_SHAPE_LIST,
     ITEMS(rn_config_model, providers, rules.provider_count),
     .doc = "The outside APIs."},
    {.name = "accounts",
     .object = &account_object,
     .shape = RN_SHAPE_LIST,
     ITEMS(rn_config_model, accounts, rules.account_count),
     .doc = "Credentials on them."},
    LATER("jobs"),
    LATER("clients"),
    END,
};
const rn_object rn_schema_root = {
    .name = "config", .doc = "The whole file.", .keys = root_keys, .size = sizeof(rn_config_model)};

static const char *secret_at(const void *names, size_t index)
{
    const char *const *secrets = names;

    return secrets[index];
}

bool rn_schema_hides(ration_text name)
{
    static const char *const secrets[] = {"credential", "value", "token", "proxy"};

    return rn_nearest(name, secrets, sizeof secrets / sizeof secrets[0], secret_at) != NULL;
}
