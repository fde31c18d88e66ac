/* SPDX-License-Identifier: MIT */
/*
 * `ration status`: what a running gateway limits now, in words, and its fullest counters.
 *
 * Prints once and is done; `--watch` prints again every second: in the same place on a terminal, else below what it has
 * printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <ration/types.h>

#include "cli/watch.h"

#define ROWS_SHOWN 20
#define TIMEOUT_MS 5000

bool rn_watch_arguments(const rn_command *self, int argc, char **argv, bool top, rn_watch_options *out)
{
    *out = (rn_watch_options){.fetch = {.control = RN_CONTROL_DEFAULT, .timeout_ms = TIMEOUT_MS}};
    out->fetch.token = getenv("RATION_TOKEN");
    for (int i = 1; i < argc; i++) {
        bool *flag = top                               ? NULL
                     : strcmp(argv[i], "--all") == 0   ? &out->all
                     : strcmp(argv[i], "--json") == 0  ? &out->json
                     : strcmp(argv[i], "--watch") == 0 ? &out->watch
                                                       : NULL;

        if (flag != NULL) {
            *flag = true;
        } else if (strcmp(argv[i], "--control") == 0) {
            if (++i == argc || argv[i][0] == '\0') {
                (void)rn_usage_error(self, "--control needs an address");
                return false;
            }
            out->fetch.control = argv[i];
        } else {
            (void)rn_usage_error(self, "unknown argument '%s'", argv[i]);
            return false;
        }
    }
    if (out->json && out->watch) {
        (void)rn_usage_error(self, "--json is printed once");
        return false;
    }
    return true;
}

int rn_watch_look(const rn_watch_options *options, rn_view *out, char *error, size_t error_size)
{
    char *body = NULL;
    size_t size = 0;

    *out = (rn_view){.rows = NULL};
    int err = rn_fetch(&options->fetch, "/v1/status", &body, &size, error, error_size);
    if (err == RATION_OK)
        err = rn_view_read(body, size, out, error, error_size);
    free(body);
    if (err == RATION_OK)
        rn_view_sort(out, options->order);
    return err;
}

static size_t columns_of(FILE *out)
{
    struct winsize window = {0};

    return ioctl(fileno(out), TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 160;
}

static void costs_print(const rn_view *view)
{
    if (view->cost_count > 0)
        (void)printf("\n");
    for (size_t i = 0; i < view->cost_count; i++)
        (void)printf("%s.\n", view->costs[i]);
}

static void view_print(const rn_view *view, const rn_watch_options *options, size_t columns)
{
    const size_t shown = options->all || view->row_count < ROWS_SHOWN ? view->row_count : ROWS_SHOWN;
    char line[1024];

    (void)printf("%s\n\n", view->head);
    if (view->word_count == 0)
        (void)printf("Nothing is limited now.\n");
    for (size_t i = 0; i < view->word_count && (options->all || i < ROWS_SHOWN); i++)
        (void)printf("%s.\n", view->words[i]);
    if (!options->all && view->word_count > ROWS_SHOWN)
        (void)printf("... and %zu more.\n", view->word_count - ROWS_SHOWN);
    if (view->row_count == 0)
        return;
    rn_view_line(NULL, columns, line, sizeof line);
    (void)printf("\n%s\n", line);
    for (size_t i = 0; i < shown; i++) {
        rn_view_line(&view->rows[i], columns, line, sizeof line);
        (void)printf("%s\n", line);
    }
    if (shown < view->row_count)
        (void)printf("... and %zu more; --all prints them.\n", view->row_count - shown);
}

static int status_json(const rn_watch_options *options)
{
    char error[512];
    char *body = NULL;
    size_t size = 0;

    if (rn_fetch(&options->fetch, "/v1/status", &body, &size, error, sizeof error) != RATION_OK) {
        (void)fprintf(stderr, "ration status: %s\n", error);
        return RN_EXIT_USAGE;
    }
    (void)fwrite(body, 1, size, stdout);
    free(body);
    return RN_EXIT_OK;
}

int rn_cmd_status(const rn_command *self, int argc, char **argv)
{
    const struct timespec second = {1, 0};
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    rn_watch_options options;
    int status = RN_EXIT_OK;

    if (!rn_watch_arguments(self, argc, argv, false, &options))
        return RN_EXIT_USAGE;
    if (options.json)
        return rn_finish_output(status_json(&options));
    do {
        char error[512];
        rn_view view;

        if (options.watch && terminal)
            (void)fputs("\033[H\033[2J", stdout);
        status = rn_watch_look(&options, &view, error, sizeof error) == RATION_OK ? RN_EXIT_OK : RN_EXIT_USAGE;
        if (status == RN_EXIT_OK) {
            view_print(&view, &options, columns_of(stdout));
            costs_print(&view);
        } else {
            (void)fprintf(stderr, "ration status: %s\n", error);
        }
        rn_view_fini(&view);
        /* A watch outlives a restart of what it watches, but not its own reader. */
        if (options.watch && rn_finish_output(RN_EXIT_OK) == RN_EXIT_OK)
            (void)nanosleep(&second, NULL);
    } while (options.watch && ferror(stdout) == 0);
    return rn_finish_output(status);
}
