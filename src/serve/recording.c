/* SPDX-License-Identifier: MIT */
/*
 * The file of a recording.
 *
 * The recorder gathers lines and hands over large pieces; a write goes to the page cache, so the loop does not wait for
 * the disk as long as the kernel has memory.
 *
 * Invariant: the file ends with a whole piece at all times but within a write; a write that fails is cut off again.
 */
#include "serve/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* rename */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define PART_BYTES (UINT64_C(1) << 30)
#define PATH_BYTES 4096

struct rn_recording {
    rn_loop *loop;
    const rn_log *log;
    char *path;
    int descriptor; /* below 0: closed */
    uint64_t part_bytes;
    uint64_t part_written;
    uint64_t written;
    unsigned parts;
    char error[160]; /* "" while it goes on */
};

static void recording_fail(rn_recording *r, const char *what, const char *why)
{
    rn_builder b;

    rn_builder_init(&b, r->error, sizeof r->error);
    rn_builder_str(&b, what);
    rn_builder_str(&b, ": ");
    rn_builder_str(&b, why);
    rn_log_line(r->log, rn_loop_now(r->loop), "error", "the recording has ended", "file", r->path, "error", r->error,
                NULL);
}

static bool path_with(rn_builder *b, char *buffer, const char *path, const char *suffix)
{
    rn_builder_init(b, buffer, PATH_BYTES);
    rn_builder_str(b, path);
    rn_builder_str(b, suffix);
    return !b->full;
}

static int file_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
}

/* The part is full: set it aside and go on in a new one. */
static void recording_rotate(rn_recording *r)
{
    char aside[PATH_BYTES];
    rn_builder b;
    const bool fits = path_with(&b, aside, r->path, ".");

    rn_builder_int(&b, (int64_t)r->parts + 1);
    if (!fits || b.full || rename(r->path, aside) != 0) {
        recording_fail(r, "cannot set a part aside", strerror(fits && !b.full ? errno : ENAMETOOLONG));
        return;
    }
    const int descriptor = file_open(r->path);
    if (descriptor < 0) {
        recording_fail(r, "cannot begin a new part", strerror(errno));
        return;
    }
    (void)close(r->descriptor);
    r->descriptor = descriptor;
    r->parts++;
    r->part_written = 0;
}

int rn_recording_write(void *recording, const char *data, size_t size)
{
    rn_recording *r = recording;
    size_t done = 0;

    while (done < size && r->error[0] == '\0') {
        const ssize_t n = write(r->descriptor, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            const int code = n < 0 ? errno : ENOSPC;
            if (ftruncate(r->descriptor, (off_t)r->part_written) != 0)
                rn_log_line(r->log, rn_loop_now(r->loop), "warn", "the last line of the recording is cut", NULL);
            recording_fail(r, "cannot write", strerror(code));
            return RATION_ERR_IO;
        }
        done += (size_t)n;
    }
    r->written += done;
    r->part_written += done;
    if (r->part_written >= r->part_bytes && r->error[0] == '\0')
        recording_rotate(r);
    return r->error[0] == '\0' ? RATION_OK : RATION_ERR_IO;
}

void rn_recording_failed(void *recording, int err)
{
    rn_recording *r = recording;

    if (r->error[0] == '\0')
        recording_fail(r, "cannot go on", ration_err_text(err));
}

int rn_recording_open(const rn_recording_options *options, rn_recording **out, rn_net_error *error)
{
    rn_recording *r = rn_mem_zalloc(rn_mem_default(), 1, sizeof *r);
    char old[PATH_BYTES];
    struct stat found;
    rn_builder b;

    if (r == NULL)
        return RATION_ERR_NOMEM;
    r->loop = options->loop;
    r->log = options->log;
    r->descriptor = -1;
    r->part_bytes = options->part_bytes != 0 ? options->part_bytes : PART_BYTES;
    r->path = rn_mem_strdup(rn_mem_default(), options->path);
    if (r->path == NULL) {
        rn_recording_close(r);
        return RATION_ERR_NOMEM;
    }
    /* A device or a pipe is no earlier recording. */
    if (stat(r->path, &found) == 0 && S_ISREG(found.st_mode) && path_with(&b, old, r->path, ".old"))
        (void)rename(r->path, old);
    r->descriptor = file_open(r->path);
    if (r->descriptor < 0) {
        const int code = errno;
        rn_builder_init(&b, error->text, sizeof error->text);
        rn_builder_str(&b, r->path);
        rn_builder_str(&b, ": ");
        rn_builder_str(&b, strerror(code));
        rn_recording_close(r);
        return RATION_ERR_IO;
    }
    *out = r;
    return RATION_OK;
}

void rn_recording_close(rn_recording *r)
{
    if (r == NULL)
        return;
    if (r->descriptor >= 0)
        (void)close(r->descriptor);
    rn_mem_free(rn_mem_default(), r->path);
    rn_mem_free(rn_mem_default(), r);
}

const char *rn_recording_path(const rn_recording *r)
{
    return r->path;
}

uint64_t rn_recording_bytes(const rn_recording *r)
{
    return r->written;
}

const char *rn_recording_error(const rn_recording *r)
{
    return r->error[0] != '\0' ? r->error : NULL;
}
