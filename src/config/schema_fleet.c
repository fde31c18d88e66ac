/* SPDX-License-Identifier: MIT */
/*
 * The table of keys: the fleet. schema.c says what the table is.
 *
 * Where limits are kept decides nothing about what is answered, so recordings leave all of it out.
 */
#include "config/table.h"

static const rn_word on_unavailable[] = {{"refuse", RN_UNAVAILABLE_REFUSE}, END};

static const rn_key unavailable_keys[] = {
    {.name = "mode",
     .type = &rn_type_word,
     .words = on_unavailable,
     .fallback = "refuse",
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.on_unavailable),
     .doc = "`refuse`: whoever asks meanwhile is refused with `store_unavailable`."},
    {.name = "localLimit",
     .type = &rn_type_integer,
     .flags = RN_KEY_LOCAL | RN_KEY_UNSET,
     .min = 1,
     .max = 1000000,
     AT(rn_config_model, settings.fleet.local_limit),
     .otherwise = "no lease is granted meanwhile",
     .doc = "This process grants so many leases at once by itself, whatever the limits say; more are refused with "
            "`store_unavailable`. Those still held are entered into Redis when it is back."},
    END,
};
static const rn_object unavailable_object = {.name = "onUnavailable",
                                             .doc = "What happens while Redis cannot be asked.",
                                             .keys = unavailable_keys,
                                             .shorthand = "mode",
                                             .check = rn_check_unavailable};

static const rn_key fleet_keys[] = {
    {.name = "redis",
     .type = &rn_type_text,
     .flags = RN_KEY_LOCAL | RN_KEY_REQUIRED | RN_KEY_SECRET, /* where others write a password */
     AT(rn_config_model, settings.fleet.redis),
     .doc =
         "The Redis that has the state of all limits: `redis://HOST[:PORT]`, `rediss://…` (TLS), `unix:PATH`; several "
         "addresses of one are separated by commas. `redis+sentinel://HOST:PORT,HOST:PORT/MASTER` asks Sentinels, "
         "`redis+cluster://HOST:PORT,HOST:PORT` is a Cluster."},
    {.name = "name",
     .type = &rn_type_name,
     .fallback = "default",
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.name),
     .doc = "Processes with this name share their limits. Two fleets in one Redis have two names."},
    {.name = "userEnv",
     .type = &rn_type_variable,
     .flags = RN_KEY_LOCAL | RN_KEY_SECRET,
     .otherwise = "the user `default`",
     AT(rn_config_model, settings.fleet.user_env),
     .doc = "The environment variable that has the user of Redis' access control list."},
    {.name = "passwordEnv",
     .type = &rn_type_variable,
     .flags = RN_KEY_LOCAL | RN_KEY_SECRET,
     .otherwise = "no password is sent",
     AT(rn_config_model, settings.fleet.password_env),
     .doc = "The environment variable that has the password. Never in the URL, never logged."},
    {.name = "caFile",
     .type = &rn_type_file,
     .flags = RN_KEY_LOCAL,
     .otherwise = "the system's certificates",
     AT(rn_config_model, settings.fleet.ca),
     .doc = "With TLS: a file of PEM certificates to trust."},
    {.name = "connectTimeout",
     .type = &rn_type_duration,
     .fallback = "250ms",
     .min = 1000,
     .max = 60 * SECOND,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.connect_us),
     .doc = "How long a connection to Redis may take."},
    {.name = "commandTimeout",
     .type = &rn_type_duration,
     .fallback = "250ms",
     .min = 1000,
     .max = 60 * SECOND,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.command_us),
     .doc = "How long an answer of Redis may take. Whoever waits for it knows by then that there is none."},
    {.name = "backoff",
     .type = &rn_type_duration,
     .fallback = "1s",
     .min = 10000,
     .max = 60 * SECOND,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.backoff_us),
     .doc =
         "The longest pause between two attempts to reach Redis. Whoever is refused with `store_unavailable` is told "
         "to come back after it."},
    {.name = "onUnavailable",
     .object = &unavailable_object,
     .flags = RN_KEY_LOCAL,
     .otherwise = "`refuse`",
     .doc = "What happens while Redis cannot be asked."},
    {.name = "leaseTtl",
     .type = &rn_type_duration,
     .fallback = "30s",
     .min = SECOND,
     .max = 3600 * SECOND,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.lease_ttl_us),
     .doc = "What a process that dies has held comes back after so long. Leases are renewed at four fifths of it."},
    {.name = "waiterTtl",
     .type = &rn_type_duration,
     .fallback = "3s",
     .min = SECOND,
     .max = 60 * SECOND,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.waiter_ttl_us),
     .doc =
         "Those who wait at a process that has not been heard of for so long are removed. It is the longest time for "
         "which a dead process can hold the others up."},
    {.name = "wait",
     .type = &rn_type_integer,
     .fallback = "0",
     .min = 0,
     .max = 16,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.replicas),
     .doc =
         "How many replicas must have a grant before it is given out: fewer grants are forgotten at a fail-over, each "
         "one takes longer."},
    {.name = "prefetch",
     .type = &rn_type_integer,
     .fallback = "1",
     .min = 1,
     .max = 10000,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.prefetch),
     .doc =
         "So many requests a process takes at once where all limits of a request are `rate` and `quota`, and lets them "
         "go by itself. In any stretch of time up to so many more than a rate allows may leave, for each process. `1`: "
         "each request asks."},
    {.name = "prefetchTtl",
     .type = &rn_type_duration,
     .fallback = "1s",
     .min = 10000,
     .max = 60 * SECOND,
     .flags = RN_KEY_LOCAL,
     AT(rn_config_model, settings.fleet.prefetch_ttl_us),
     .doc =
         "What of them is not used by then goes back. So long others may be refused for want of units that one process "
         "has and does not need."},
    END,
};
const rn_object rn_schema_fleet = {.name = "fleet",
                                   .doc = "All limits shared with other processes through a Redis.",
                                   .keys = fleet_keys,
                                   .check = rn_check_fleet};
