/* SPDX-License-Identifier: MIT */
/*
 * `ration simulate FILE --for SPAN`: the day, then its reports.
 *
 * Nothing is written of a day that cannot be played. A page or a trace that cannot be written fails the command, even
 * if the figures have been printed: who asked for a file must not take the lack of one for success.
 */
#include "cli/simulate_day.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/day_page.h"

#define REPORT_MAX ((size_t)64 << 20)

static int file_fault(const char *path)
{
    (void)fprintf(stderr, "ration simulate: %s: %s\n", path, strerror(errno));
    return RN_EXIT_USAGE;
}

static int trace_write(void *ctx, const char *data, size_t size)
{
    return fwrite(data, 1, size, ctx) == size ? 0 : RATION_ERR_IO;
}

static int file_close(FILE *file, const char *path, int status)
{
    const bool failed = ferror(file) != 0;

    if (fclose(file) != 0 || failed)
        return file_fault(path);
    return status;
}

/* The name of a file without its folders. */
static const char *title_of(const char *file)
{
    const char *slash = strrchr(file, '/');

    return slash != NULL && slash[1] != '\0' ? slash + 1 : file;
}

static int page_write(const rn_day_command *command, const rn_day_page *day, const char *file,
                      const rn_day_result *result, int status)
{
    rn_output page;
    FILE *out = fopen(command->report, "w");

    if (out == NULL)
        return file_fault(command->report);
    rn_output_init(&page, rn_mem_default(), REPORT_MAX);
    rn_day_page_write(day, title_of(file), result, &page);
    const bool written = page.err == 0 && fwrite(page.data, 1, page.size, out) == page.size;
    if (page.err != 0)
        (void)fprintf(stderr, "ration simulate: the report: %s\n", ration_err_text(page.err));
    rn_output_fini(&page);
    const int closed = file_close(out, command->report, status);
    return written ? closed : RN_EXIT_USAGE;
}

static int result_print(const rn_day_command *command, const rn_day_result *result)
{
    rn_output text;

    rn_output_init(&text, rn_mem_default(), REPORT_MAX);
    if (command->json) {
        rn_day_json(result, &text);
    } else {
        rn_day_text(result, &text);
    }
    const int err = text.err;
    if (err == 0) {
        (void)fwrite(text.data, 1, text.size, stdout);
    } else {
        (void)fprintf(stderr, "ration simulate: the result: %s\n", ration_err_text(err));
    }
    rn_output_fini(&text);
    return rn_finish_output(err == 0 ? RN_EXIT_OK : RN_EXIT_USAGE);
}

static int result_tell(const rn_day_command *command, const rn_day_page *day, const char *file,
                       const rn_day_result *result)
{
    const int status = result_print(command, result);
    const int verdict = rn_day_passed(result) ? RN_EXIT_OK : RN_EXIT_FAULTS;

    if (status != RN_EXIT_OK)
        return status;
    return day != NULL ? page_write(command, day, file, result, verdict) : verdict;
}

static int day_play(const rn_day_command *command, const char *file, const rn_day_options *options,
                    const rn_day_page *page)
{
    rn_day_result result;
    rn_day_error error;
    const int err = rn_day_run(options, &result, &error);

    if (err != 0) {
        (void)fprintf(stderr, "ration simulate: %s: %s\n", file, error.text);
        return RN_EXIT_USAGE;
    }
    const int status = result_tell(command, page, file, &result);
    rn_day_result_fini(&result);
    return status;
}

int rn_day_command_run(const rn_day_command *command, const char *file, const ration_config *config)
{
    rn_day_options options = {
        .config = config,
        .span_us = command->span_us,
        .behaviour = command->behaviour,
        .faults = command->faults,
    };
    rn_day_watcher watcher;
    rn_day_page *page = NULL;
    FILE *trace = NULL;

    if (command->report != NULL && rn_day_page_new(&page) != RATION_OK) {
        (void)fprintf(stderr, "ration simulate: %s\n", ration_err_text(RATION_ERR_NOMEM));
        return RN_EXIT_USAGE;
    }
    if (page != NULL) {
        watcher = rn_day_page_watcher(page);
        options.watcher = &watcher;
    }
    if (command->record != NULL) {
        trace = fopen(command->record, "w");
        if (trace == NULL) {
            rn_day_page_free(page);
            return file_fault(command->record);
        }
        options.record = trace_write;
        options.record_ctx = trace;
    }
    const int status = day_play(command, file, &options, page);
    rn_day_page_free(page);
    return trace != NULL ? file_close(trace, command->record, status) : status;
}
