/* SPDX-License-Identifier: MIT */
/*
 * The file of a recording.
 *
 * The recorder gathers lines and hands over large pieces; a write goes to the page cache, so the loop does not wait for
 * the disk as long as the kernel has memory.
 *
 * Nothing that is there is overwritten but FILE.old: parts of earlier runs keep their numbers, and those of this one
 * have the next.
 *
 * Until `begin` all goes into FILE.new, so that a start that fails leaves the recordings of earlier runs alone. Whoever
 * writes a file holds a lock on it, so that nobody sets it aside meanwhile.
 *
 * Invariant: the file ends with a whole piece at all times but within a write; a write that fails is cut off again.
 */
#include "serve/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* rename */
#include <string.h>
#include <sys/file.h> /* flock */
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
    bool begun;     /* else it is still FILE.new */
    int descriptor; /* below 0: closed */
    uint64_t part_bytes;
    uint64_t part_written;
    uint64_t written;
    unsigned parts;  /* the number of the last one */
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

/* Where there are no locks, it goes without one. */
static int file_open(const char *path)
{
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);

    if (descriptor >= 0)
        (void)flock(descriptor, LOCK_EX | LOCK_NB);
    return descriptor;
}

static bool file_is_busy(const char *path)
{
    const int descriptor = open(path, O_WRONLY | O_CLOEXEC);

    if (descriptor < 0)
        return false;
    const bool busy = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    (void)close(descriptor);
    return busy;
}

/* The name of the next part: its number is the least above the last one that nothing has, such as an earlier run. */
static bool part_name(rn_recording *r, char aside[PATH_BYTES])
{
    struct stat found;
    rn_builder b;

    do {
        (void)path_with(&b, aside, r->path, ".");
        rn_builder_int(&b, (int64_t)++r->parts);
        if (b.full) {
            errno = ENAMETOOLONG;
            return false;
        }
    } while (lstat(aside, &found) == 0);
    return errno == ENOENT;
}

/* The part is full: set it aside and go on in a new one. */
static void recording_rotate(rn_recording *r)
{
    char aside[PATH_BYTES];

    if (!part_name(r, aside) || rename(r->path, aside) != 0) {
        recording_fail(r, "cannot set a part aside", strerror(errno));
        return;
    }
    rn_log_line(r->log, rn_loop_now(r->loop), "info", "a part of the recording is full", "file", aside, NULL);
    const int descriptor = file_open(r->path);
    if (descriptor < 0) {
        recording_fail(r, "cannot begin a new part", strerror(errno));
        return;
    }
    (void)close(r->descriptor);
    r->descriptor = descriptor;
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

static int open_failed(rn_recording *r, const char *why, rn_net_error *error)
{
    rn_builder b;

    rn_builder_init(&b, error->text, sizeof error->text);
    rn_builder_str(&b, r->path);
    rn_builder_str(&b, ": ");
    rn_builder_str(&b, why);
    rn_recording_close(r);
    return RATION_ERR_IO;
}

int rn_recording_open(const rn_recording_options *options, rn_recording **out, rn_net_error *error)
{
    rn_recording *r = rn_mem_zalloc(rn_mem_default(), 1, sizeof *r);
    char fresh[PATH_BYTES];
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

    const bool exists = stat(r->path, &found) == 0;
    const bool earlier = exists && S_ISREG(found.st_mode);

    if (!path_with(&b, fresh, r->path, ".new"))
        return open_failed(r, strerror(ENAMETOOLONG), error);
    if ((earlier && file_is_busy(r->path)) || file_is_busy(fresh))
        return open_failed(r, "another process records into it", error);
    /* A device or a pipe is no earlier recording. */
    r->begun = exists && !earlier;
    r->descriptor = file_open(r->begun ? r->path : fresh);
    if (r->descriptor < 0)
        return open_failed(r, strerror(errno), error);
    *out = r;
    return RATION_OK;
}

int rn_recording_begin(rn_recording *r)
{
    char fresh[PATH_BYTES], old[PATH_BYTES];
    rn_builder b;

    if (r->begun)
        return RATION_OK;
    if (!path_with(&b, fresh, r->path, ".new") || !path_with(&b, old, r->path, ".old"))
        return RATION_ERR_IO;
    if ((rename(r->path, old) != 0 && errno != ENOENT) || rename(fresh, r->path) != 0)
        return RATION_ERR_IO;
    r->begun = true;
    return RATION_OK;
}

void rn_recording_close(rn_recording *r)
{
    char fresh[PATH_BYTES];
    rn_builder b;

    if (r == NULL)
        return;
    if (r->descriptor >= 0 && !r->begun && path_with(&b, fresh, r->path, ".new"))
        (void)unlink(fresh);
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
