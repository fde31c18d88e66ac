/* SPDX-License-Identifier: MIT */
/*
 * The one table of keys: the file, its settings and its accounts. schema_limit.c, schema_provider.c,
 * schema_breaker.c, schema_fleet.c, schema_jobs.c and schema_clients.c have the other rows.
 *
 * Everything that knows the config language walks these rows: the parser and its messages, the defaults, the writer of
 * recordings, the JSON Schema, the reference page. A row says where its value goes by its offset in the structs of
 * model.h. Rows stand in the order in which they are read: a provider before the accounts that name it, a name before
 * what it names.
 *
 * Invariant: the first row of an object that stands in lists is its name, and its struct begins with that name.
 */
#include "config/schema.h"

#include <ration/plan.h>

#include "config/faults.h"
#include "config/table.h"

static const rn_word log_formats[] = {{"logfmt", RN_LOG_LOGFMT}, {"json", RN_LOG_JSON}, END};
static const rn_word log_levels[] = {{"info", RN_LOG_INFO}, {"warn", RN_LOG_WARN}, {"error", RN_LOG_ERROR}, END};
static const rn_word orders[] = {{"fair", RATION_QUEUE_FAIR}, {"fifo", RATION_QUEUE_FIFO}, END};

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
    .doc = "The two listeners. One that is neither loopback nor a Unix socket needs `settings.token` or `clients`.",
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
    {.name = "retryOverhead",
     .type = &rn_type_ratio,
     .fallback = "5%",
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.retry_overhead),
     .doc = "What plans add to a job's requests for retries, until its runs are known."},
    {.name = "maxStretch",
     .type = &rn_type_integer,
     .fallback = "12",
     .min = 1,
     .max = RATION_PLAN_STRETCH_MAX,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.max_stretch),
     .doc = "How many times its `interval` a job's effective interval may be, where quotas are short."},
    {.name = "replanInterval",
     .type = &rn_type_duration,
     .fallback = "5m",
     .min = SECOND,
     .max = DAY,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.replan_us),
     .doc = "How often `ration serve` plans its jobs anew with what has been spent by then."},
    END,
};
static const rn_object settings_budget_object = {
    .name = "settingsBudget", .doc = "How quotas are spent.", .keys = settings_budget_keys};

static const rn_key ledger_keys[] = {
    {.name = "path",
     .type = &rn_type_file,
     .fallback = "ration.db",
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.ledger),
     .doc =
         "The file, made when it is not there; beside it stand files of the same name with an ending. `none`: nothing "
         "is kept, and a restart forgets what was spent."},
    {.name = "flush",
     .type = &rn_type_duration,
     .fallback = "5s",
     .min = 10000,
     .max = 3600 * SECOND,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.ledger_flush_us),
     .doc = "How often what has changed is written. After a kill at most as much is forgotten."},
    END,
};
static const rn_object ledger_object = {.name = "ledger",
                                        .doc =
                                            "What outlives the process: what quotas have spent, penalties, circuits.",
                                        .keys = ledger_keys,
                                        .check = rn_check_ledger};

static const rn_key log_keys[] = {
    {.name = "format",
     .type = &rn_type_word,
     .words = log_formats,
     .fallback = "logfmt",
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.log_format),
     .doc = "How a line is written: `time=… level=… msg=…`, or one JSON object."},
    {.name = "level",
     .type = &rn_type_word,
     .words = log_levels,
     .fallback = "info",
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.log_level),
     .doc = "The least that is written."},
    END,
};
static const rn_object log_object = {
    .name = "log", .doc = "Lines for the operator, on standard error.", .keys = log_keys};

static const rn_key patience_keys[] = {
    {.name = "head",
     .type = &rn_type_duration,
     .fallback = "30s",
     .min = 1000,
     .max = DAY,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.patience.head_us),
     .doc = "From the first byte of a request's head, or the beginning of the connection, to its end; then 408."},
    {.name = "idle",
     .type = &rn_type_duration,
     .fallback = "75s",
     .min = 1000,
     .max = DAY,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.patience.idle_us),
     .doc = "Between two requests of a connection; then it is closed."},
    {.name = "body",
     .type = &rn_type_duration,
     .fallback = "60s",
     .min = 1000,
     .max = DAY,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.patience.body_us),
     .doc = "Between two pieces of a request's body that is being read; then 408, or the end."},
    {.name = "write",
     .type = &rn_type_duration,
     .fallback = "60s",
     .min = 1000,
     .max = DAY,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.patience.write_us),
     .doc = "In which a client takes nothing of its answer; then its connection is broken."},
    END,
};
static const rn_object patience_object = {
    .name = "settingsTimeouts", .doc = "How long both listeners wait for slow clients.", .keys = patience_keys};

static const rn_key settings_keys[] = {
    {.name = "listen", .object = &listen_object, .flags = RN_KEY_LOCAL, .doc = "Where `ration serve` listens."},
    {.name = "token",
     .type = &rn_type_header_value,
     .flags = RN_KEY_LOCAL | RN_KEY_SECRET,
     AT(rn_config_model, settings.token),
     .doc =
         "What clients must show at listeners that others can reach. Take it from the environment: `${RATION_TOKEN}`. "
         "With `clients` it is the operator's own: its bearer may claim anything."},
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
    {.name = "timeouts",
     .object = &patience_object,
     .flags = RN_KEY_LOCAL,
     .doc = "How long both listeners wait for slow clients."},
    {.name = "maxLeases",
     .type = &rn_type_integer,
     .fallback = "1000000",
     .min = 1,
     .max = 100000000,
     AT(rn_config_model, rules.max_leases),
     .doc = "How many leases and waiters there may be at once."},
    {.name = "ledger",
     .object = &ledger_object,
     .flags = RN_KEY_LOCAL,
     .doc = "Where is kept what a restart must not forget."},
    {.name = "fleet",
     .object = &rn_schema_fleet,
     .flags = RN_KEY_LOCAL,
     .otherwise = "the limits of this process are its own",
     .doc = "All limits shared with other processes through a Redis."},
    {.name = "log", .object = &log_object, .flags = RN_KEY_LOCAL, .doc = "Lines for the operator, on standard error."},
    END,
};
static const rn_object settings_object = {
    .name = "settings", .doc = "What holds for the whole process.", .keys = settings_keys, .check = rn_check_settings};

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
     .object = &rn_schema_limit,
     .shape = RN_SHAPE_LIST,
     .overlay = rn_overlay_limit,
     ITEMS(rn_account_model, limits, limit_count),
     .doc = "Limits of the provider that are otherwise for this account: the `name` of one whose scope has `account`, "
            "and the "
            "keys that differ."},
    {.name = "retries",
     .type = &rn_type_integer,
     .flags = RN_KEY_LOCAL | RN_KEY_UNSET,
     .otherwise = "the endpoint's or provider's",
     .min = 0,
     .max = RN_RETRIES_MAX,
     AT(rn_account_model, net.retries),
     .doc = "How often the gateway sends a failed call of this account again; where the endpoint says so too, the "
            "smaller number holds."},
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
     .object = &rn_schema_provider,
     .shape = RN_SHAPE_LIST,
     ITEMS(rn_config_model, providers, rules.provider_count),
     .doc = "The outside APIs."},
    {.name = "accounts",
     .object = &account_object,
     .shape = RN_SHAPE_LIST,
     ITEMS(rn_config_model, accounts, rules.account_count),
     .doc = "Credentials on them."},
    {.name = "jobs",
     .object = &rn_schema_job,
     .shape = RN_SHAPE_LIST,
     .flags = RN_KEY_LOCAL,
     ITEMS(rn_config_model, jobs, job_count),
     .doc = "What runs again and again, for `ration plan`: how often each may run within the quotas."},
    {.name = "clients",
     .object = &rn_schema_client,
     .shape = RN_SHAPE_LIST,
     .flags = RN_KEY_LOCAL | RN_KEY_FILLED,
     ITEMS(rn_config_model, clients, client_count),
     .otherwise = "whoever is let in may claim anything",
     .doc = "Who may claim what. With it every call needs a token: that of one of these, or `settings.token`, whose "
            "bearer may claim anything."},
    END,
};
const rn_object rn_schema_root = {.name = "config",
                                  .doc = "The whole file.",
                                  .keys = root_keys,
                                  .size = sizeof(rn_config_model),
                                  .check = rn_check_file};

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
