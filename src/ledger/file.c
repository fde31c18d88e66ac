/* SPDX-License-Identifier: MIT */
/*
 * The file of a ledger, without a look at what is in it.
 *
 * Two processes that write one ledger would each spend the whole budget. SQLite's own locks come and go with its
 * transactions, so a lock of ours stands beside them: flock, which lives as long as its descriptor and dies with its
 * process, on the ledger itself. Links are followed first, and a file with two names is refused, since SQLite finds
 * the log that belongs to a file by its name.
 *
 * Invariant: who holds the lock holds it on what the path leads to at that moment.
 */
#include "ledger/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/civil.h"
#include "base/mem.h"

#define TRIES 8         /* to lock a file that others replace */
#define ASIDE_TRIES 100 /* names of one second */

static const char *const companions[] = {"", "-wal", "-shm", "-journal"};
#define COMPANIONS (sizeof companions / sizeof companions[0])

void rn_ledger_fault(rn_ledger_error *error, const char *path, const char *format, ...)
{
    va_list args;
    const int used = snprintf(error->text, sizeof error->text, "%s: ", path);

    if (used < 0 || (size_t)used >= sizeof error->text)
        return;
    va_start(args, format);
    (void)vsnprintf(error->text + used, sizeof error->text - (size_t)used, format, args);
    va_end(args);
    for (char *c = error->text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ')
            *c = ' ';
    }
}

static int fault_of_system(rn_ledger_error *error, const char *path, const char *what)
{
    const int number = errno;

    rn_ledger_fault(error, path, "%s: %s", what, strerror(number));
    return number == ENOMEM ? RATION_ERR_NOMEM : RATION_ERR_IO;
}

/* A file that is not there yet: where its folder leads, and its own name. */
static char *new_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    char *folder = NULL;
    char *real;
    char *whole = NULL;

    if (slash == NULL) {
        real = realpath(".", NULL);
    } else {
        folder = rn_mem_textdup(rn_mem_default(), (ration_text){path, (size_t)(base - path)});
        real = folder != NULL ? realpath(folder, NULL) : NULL;
    }
    if (real != NULL) {
        const size_t size = strlen(real) + strlen(base) + 2;

        whole = malloc(size);
        if (whole != NULL)
            (void)snprintf(whole, size, "%s/%s", real, base);
    }
    rn_mem_free(rn_mem_default(), folder);
    free(real);
    return whole;
}

int rn_file_find(const char *path, rn_file *out, bool *exists, rn_ledger_error *error)
{
    struct stat at;

    *out = (rn_file){.lock = -1};
    if (path[0] == '\0') {
        rn_ledger_fault(error, "ledger", "an empty path names no file");
        return RATION_ERR_IO;
    }
    *exists = stat(path, &at) == 0;
    if (*exists && !S_ISREG(at.st_mode)) {
        rn_ledger_fault(error, path, "is %s, not a file", S_ISDIR(at.st_mode) ? "a folder" : "a device or a pipe");
        return RATION_ERR_IO;
    }
    if (*exists && at.st_nlink > 1) {
        rn_ledger_fault(error, path, "has %ju names; a ledger may have one, or links to it", (uintmax_t)at.st_nlink);
        return RATION_ERR_IO;
    }
    if (*exists) {
        out->path = realpath(path, NULL);
    } else if (errno != ENOENT || (lstat(path, &at) == 0 && S_ISLNK(at.st_mode))) {
        return fault_of_system(error, path, "cannot be opened");
    } else {
        out->path = new_path(path);
    }
    if (out->path == NULL)
        return fault_of_system(error, path, *exists ? "cannot be opened" : "cannot be made");
    return RATION_OK;
}

bool rn_file_is_there(const rn_file *file)
{
    struct stat at;

    return stat(file->path, &at) == 0 && at.st_dev == file->at_open.st_dev && at.st_ino == file->at_open.st_ino;
}

int rn_file_lock(rn_file *file, const char *path, rn_ledger_error *error)
{
    for (int i = 0; i < TRIES; i++) {
        file->lock = open(file->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
        if (file->lock < 0)
            return fault_of_system(error, path, "cannot be opened to be written");
        if (flock(file->lock, LOCK_EX | LOCK_NB) != 0) {
            const bool busy = errno == EWOULDBLOCK;

            if (!busy)
                return fault_of_system(error, path, "cannot be locked");
            rn_file_close(file);
            return RATION_ERR_FULL;
        }
        if (fstat(file->lock, &file->at_open) == 0 && rn_file_is_there(file))
            return RATION_OK;
        (void)close(file->lock);
        file->lock = -1;
    }
    rn_ledger_fault(error, path, "is replaced all the time");
    return RATION_ERR_IO;
}

void rn_file_close(rn_file *file)
{
    if (file->lock >= 0)
        (void)close(file->lock);
    free(file->path);
    *file = (rn_file){.lock = -1};
}

/* ---- aside ---- */

static bool any_exists(const char *base)
{
    char name[PATH_MAX];
    struct stat at;

    for (size_t i = 0; i < COMPANIONS; i++) {
        const int size = snprintf(name, sizeof name, "%s%s", base, companions[i]);

        if (size < 0 || (size_t)size >= sizeof name || lstat(name, &at) == 0)
            return true;
    }
    return false;
}

/* A name that nothing has: "ration.db.broken-20261130T121503Z", with ".1" and so on where that is taken. */
static bool aside_name(const char *path, ration_time now, char *name, size_t size)
{
    const int64_t seconds = now.us / 1000000;
    const rn_civil day = rn_civil_of_days(seconds / 86400);
    const int of_day = (int)(seconds % 86400);
    const int used = snprintf(name, size, "%s.broken-%04d%02d%02dT%02d%02d%02dZ", path, (int)day.year, (int)day.month,
                              (int)day.day, of_day / 3600, of_day / 60 % 60, of_day % 60);

    if (used < 0 || (size_t)used + 4 >= size)
        return false;
    for (int i = 1; i < ASIDE_TRIES && any_exists(name); i++)
        (void)snprintf(name + used, size - (size_t)used, ".%d", i);
    return !any_exists(name);
}

int rn_file_put_aside(rn_file *file, const char *path, ration_time now, char **out, rn_ledger_error *error)
{
    char name[PATH_MAX];
    char from[PATH_MAX];
    char to[PATH_MAX];

    if (!aside_name(file->path, now, name, sizeof name - sizeof "-journal")) {
        rn_ledger_fault(error, path, "cannot be put aside: no name is free");
        return RATION_ERR_IO;
    }
    *out = rn_mem_strdup(rn_mem_default(), name);
    if (*out == NULL)
        return RATION_ERR_NOMEM;
    /* The ledger first: SQLite drops a log that is left beside an empty file, but would believe a file without it. */
    for (size_t i = 0; i < COMPANIONS; i++) {
        (void)snprintf(from, sizeof from, "%s%s", file->path, companions[i]);
        (void)snprintf(to, sizeof to, "%s%s", name, companions[i]);
        if (rename(from, to) != 0 && (errno != ENOENT || i == 0))
            return fault_of_system(error, path, "cannot be put aside");
    }
    (void)close(file->lock);
    file->lock = -1;
    return RATION_OK;
}
