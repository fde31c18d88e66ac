/* SPDX-License-Identifier: MIT */
#ifndef RN_CLI_CLI_H
#define RN_CLI_CLI_H

/* The commands of the binary. A new one is a file cmd_<verb>.c, a line here and a row in main.c's table. */

#include <stdio.h>

#include <ration/config.h>

struct rn_jobs;

enum {
    RN_EXIT_OK = 0,
    RN_EXIT_FAULTS = 1, /* the command did its work and the answer is no: faults, a decision that differs */
    RN_EXIT_USAGE = 2,  /* it could not do its work: arguments, a file that cannot be read, no memory */
};

typedef struct rn_command {
    const char *name;
    const char *arguments; /* as the usage line shows them */
    const char *summary;   /* one line */
    const char *help;      /* paragraphs below the usage line; NULL: none */
    /* `argv[0]` is the command's name. Returns the exit status. */
    int (*run)(const struct rn_command *self, int argc, char **argv);
} rn_command;

int rn_cmd_demo(const rn_command *self, int argc, char **argv);
int rn_cmd_ledger(const rn_command *self, int argc, char **argv);
int rn_cmd_plan(const rn_command *self, int argc, char **argv);
int rn_cmd_replay(const rn_command *self, int argc, char **argv);
int rn_cmd_schema(const rn_command *self, int argc, char **argv);
int rn_cmd_simulate(const rn_command *self, int argc, char **argv);
int rn_cmd_validate(const rn_command *self, int argc, char **argv);
int rn_cmd_serve(const rn_command *self, int argc, char **argv);
int rn_cmd_status(const rn_command *self, int argc, char **argv);
int rn_cmd_top(const rn_command *self, int argc, char **argv);
int rn_cmd_version(const rn_command *self, int argc, char **argv);

/* The usage of one command on standard error, with what is wrong before it. Returns RN_EXIT_USAGE. */
int rn_usage_error(const rn_command *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Every fault of a config as a line, with the line of the file and a caret below it. */
void rn_faults_print(const ration_config_faults *faults, FILE *out);

/*
 * The plan of a config alone, as if nothing had been spent. RATION_ERR_CONFIG: a job that cannot be planned; it has
 * been printed to `out`. RATION_ERR_NOMEM.
 */
int rn_plan_make(const ration_config *config, struct rn_jobs *jobs, ration_time now, FILE *out);

/* Flushes standard output; RN_EXIT_USAGE with a message if it could not be written, else `status`. */
int rn_finish_output(int status);

#endif
