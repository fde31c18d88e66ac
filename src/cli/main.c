/* SPDX-License-Identifier: MIT */
/*
 * The door of the binary: one table of commands.
 *
 * Help that was asked for goes to standard output with status 0; help that answers a mistake goes to standard error
 * with status 2. A command whose standard output cannot be written fails, so that a full disk is never taken for
 * success.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#define PROVIDERS "/../share/ration/providers"

static const rn_command commands[] = {
    {"demo", "[--json] [--seed N] [--record FILE] [--keep]",
     "the same traffic straight to a provider and through ration",
     "Starts two fake providers and a gateway on this machine, sends both the same calls and prints what became of "
     "them,\n"
     "in about 25 seconds. Needs no config, no network and no key.\n"
     "\n"
     "  --json         print the figures as JSON\n"
     "  --seed N       another schedule and other latencies; 1 without it\n"
     "  --record FILE  write every decision down, for `ration replay --verify`\n"
     "  --keep         leave it running after the report, until Ctrl-C\n"
     "\n"
     "Exits 1 if the provider refused a call that went through ration, or if one was not answered.",
     rn_cmd_demo},
    {"simulate", "FILE [OPTION]...", "a provider on a real port, or a day of jobs in virtual time",
     "Without --for a fake provider that keeps the limits of a config, until a signal:\n"
     "\n"
     "  --provider NAME       which provider of FILE; needed only where there are several\n"
     "  --listen ADDR         HOST:PORT or PORT; 127.0.0.1:7700 without it, port 0 is any free one\n"
     "  --shape openai        POST /chat/completions of OpenAI's API, with tokens, streams and its errors; plain\n"
     "                        without it: any request is answered\n"
     "\n"
     "With it, FILE's jobs run against its providers through planner and engine, in seconds and with no socket:\n"
     "\n"
     "  --for 24h             how long, from 1m to 31d\n"
     "  --fault NAME,...      what goes wrong: latency, errors, clock, restart, kill, external, or all\n"
     "  --json                the figures as JSON\n"
     "  --report FILE         a page with charts\n"
     "  --record FILE         every decision, for `ration replay --verify`\n"
     "\n"
     "In both:\n"
     "\n"
     "  --seed N              same seed, same behaviour; 1 without it\n"
     "  --latency 50ms+-20ms  how long a call takes, evenly spread\n"
     "  --errors 1%           how many calls fail with a transient status\n"
     "  --external 100/h      another client that spends the same quotas\n"
     "  --ceiling 20..40/60s  a hidden limit on calls in flight that goes from 20 to 40 and back in a minute; 30: "
     "stays\n"
     "  --retry-after 2s      what a refusal by --ceiling tells; nothing without it\n"
     "\n"
     "GET /__ration/counts on the provider's port tells what it has seen. A simulated day ends with status 1 if a "
     "provider\n"
     "refused a call for a quota's sake, or if more than our share of one was spent.",
     rn_cmd_simulate},
    {"validate", "FILE", "check a config file and print every fault with its line",
     "Prints nothing and exits 0 when the file is good. Exits 1 when it has faults or its jobs cannot be planned "
     "within\n"
     "its quotas, 2 when it cannot be read.",
     rn_cmd_validate},
    {"plan", "FILE [--fanout NAME=N]... [--at TIME] [--json]",
     "how often the jobs of a config can run within its quotas",
     "Prints each job's interval as wanted and as planned, and what of each quota that uses; where jobs have to run\n"
     "less often than wanted, what would have to change. Every window is a whole one, with nothing spent.\n"
     "\n"
     "  --fanout NAME=N  the inventory NAME has N members, instead of the estimates in FILE\n"
     "  --at TIME        plan for the windows of another time than now, such as 2027-02-01 or 2027-02-01T12:00:00Z\n"
     "  --json           print it as the gateway's GET /v1/plan does\n"
     "\n"
     "Exits 1 when the plan does not fit or FILE has faults, 2 when it cannot be read.",
     rn_cmd_plan},
    {"schema", "[--markdown]", "print the JSON Schema of the config file",
     "For editors that complete and check YAML. --markdown prints the reference page of all keys instead.",
     rn_cmd_schema},
    {"replay", "[--config FILE] [--verify | --store URL] TRACE",
     "run a trace through a fresh engine and print its decisions",
     "TRACE is JSON Lines; - reads standard input. Its first line is its config, or --config names a file,\n"
     "which then counts. Decisions and events go to standard output, one JSON object a line. With --verify they\n"
     "are compared with the lines recorded in the trace instead: the first that differs is shown, and the status\n"
     "is 1. A malformed line is named as file:line:column and ends the replay with status 2.\n"
     "With --store the scripts of a fleet decide in that Redis beside the engine, in keys of their own that are\n"
     "removed afterwards: redis://HOST:PORT, rediss: for TLS, redis+sentinel://HOST:PORT/MASTER, redis+cluster:\n"
     "or unix:PATH, with RATION_STORE_USER, RATION_STORE_PASSWORD and RATION_STORE_CA_FILE of the environment.\n"
     "The first answer in which they differ is shown, and the status is 1. Strict quotas, state, step,\n"
     "reload and drain are not possible there: status 2.",
     rn_cmd_replay},
    {"ledger", "show FILE | export FILE [--format json|csv]", "what a ledger holds, also while a gateway has it open",
     "show prints tables for people, times in UTC. export prints every record as a line of JSON, in the form that a\n"
     "trace's state line has, or with --format csv as one table with a column for each member. The file is only read.\n"
     "The salt of credential keys is a secret and in neither. Exits 2 if the file cannot be read, or is broken.",
     rn_cmd_ledger},
    {"serve", "[FILE] [--record FILE] [--ledger FILE] [--ledger-aside]", "run the gateway and the control port",
     "The config is ration.yaml unless named (`--config FILE` is the same). --record writes every call of the engine\n"
     "as a trace, for `ration replay`; a FILE of an earlier run is kept as FILE.old.\n"
     "--ledger overrides settings.ledger.path, where counts outlive the process; `none` keeps nothing. A ledger that\n"
     "cannot be read ends the start; --ledger-aside renames it and begins a new one.\n"
     "SIGTERM lets calls end first; a second one does not. SIGHUP reads the config anew: all of it, or nothing.",
     rn_cmd_serve},
    {"status", "[--control ADDR] [--watch] [--all] [--json]", "what a running gateway limits now, and by what",
     "  --control ADDR  HOST:PORT or unix:PATH of its control port; 127.0.0.1:7601 without it\n"
     "  --watch         again every second\n"
     "  --all           every counter, not only the fullest twenty\n"
     "  --json          the body of /v1/status as it is\n"
     "\n"
     "A token is taken from RATION_TOKEN. Exits 2 if nobody answers.",
     rn_cmd_status},
    {"top", "[--control ADDR]", "the status of a running gateway, live on a terminal",
     "Keys: q ends, s sorts by the next column, / filters by a part of a limit's name or key, p pauses, arrows and "
     "page "
     "keys\n"
     "move. A token is taken from RATION_TOKEN.",
     rn_cmd_top},
    {"version", "", "print the version",
     "Then those of what others read, a line each: the library's ABI, the form of traces, the schema of ledgers.",
     rn_cmd_version},
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void command_print(FILE *out, const rn_command *command)
{
    (void)fprintf(out, "usage: ration %s%s%s\n", command->name, command->arguments[0] != '\0' ? " " : "",
                  command->arguments);
    if (command->help != NULL)
        (void)fprintf(out, "\n%s\n", command->help);
}

static void usage_print(FILE *out)
{
    (void)fputs("usage: ration COMMAND [ARGUMENT]...\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        (void)fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    (void)fputs("\n`ration help COMMAND` says more about one of them.\n", out);
}

int rn_usage_error(const rn_command *self, const char *format, ...)
{
    va_list args;

    (void)fprintf(stderr, "ration %s: ", self->name);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    command_print(stderr, self);
    return RN_EXIT_USAGE;
}

int rn_finish_output(int status)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return status;
    (void)fprintf(stderr, "ration: cannot write the output: %s\n", strerror(errno));
    return RN_EXIT_USAGE;
}

static const rn_command *command_find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int help(const char *name)
{
    const rn_command *command = name != NULL ? command_find(name) : NULL;

    if (name != NULL && command == NULL) {
        (void)fprintf(stderr, "ration: no command '%s'\n", name);
        usage_print(stderr);
        return RN_EXIT_USAGE;
    }
    if (command != NULL) {
        command_print(stdout, command);
    } else {
        usage_print(stdout);
    }
    return rn_finish_output(RN_EXIT_OK);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/*
 * Provider files belong to the binary that they came with: in ../share/ration/providers from where it stands, in a
 * build folder of the source as where it is installed. A folder that the user names counts; without either the library
 * looks where they were meant to be installed.
 */
static void providers_beside(void)
{
    char path[PATH_MAX];
    struct stat st;
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    char *slash = NULL;

    if (size <= 0 || (size_t)size >= sizeof path)
        return;
    path[size] = '\0';
    slash = strrchr(path, '/');

    const size_t room = slash != NULL ? sizeof path - (size_t)(slash - path) : 0;

    if (room > sizeof PROVIDERS && snprintf(slash, room, "%s", PROVIDERS) > 0 && stat(path, &st) == 0 &&
        S_ISDIR(st.st_mode))
        (void)setenv("RATION_PROVIDERS", path, 0);
}

int main(int argc, char **argv)
{
    /* A reader that went away shows as a write that failed, not as a silent death. */
    (void)signal(SIGPIPE, SIG_IGN);

    if (argc < 2) {
        usage_print(stderr);
        return RN_EXIT_USAGE;
    }
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0)
        return help(argc > 2 ? argv[2] : NULL);

    const char *name = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
    const rn_command *command = command_find(name);
    if (command == NULL || (argc > 2 && is_help(argv[2])))
        return help(name);
    providers_beside();
    return command->run(command, argc - 1, argv + 1);
}
