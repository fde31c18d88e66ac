/* SPDX-License-Identifier: MIT */
/* Other processes, full and read-only disks, files that somebody takes away, and kills: nothing that was told to be
 * kept is lost, and no two processes have one ledger. */
#include "support/ledger_stage.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static pid_t child_begin(void)
{
    const pid_t child = fork();

    CHECK(child >= 0);
    return child;
}

/* A child says what it did by its status: 0 that all went as it should. */
static void child_end(pid_t child)
{
    int status = -1;

    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* ---- locks ---- */

static void wait_for_byte(int pipe_end)
{
    char byte;

    CHECK_EQ(read(pipe_end, &byte, 1), 1);
}

static void two_processes_never_share_it(void **state)
{
    ledger_stage s;
    int ready[2];
    int go[2];
    char want[256];

    (void)state;
    ledger_stage_begin(&s);
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(pipe(go), 0);

    const pid_t child = child_begin();

    if (child == 0) {
        char byte;

        if (ledger_try(&s, false) != RATION_OK || write(ready[1], "r", 1) != 1)
            _exit(1);
        _exit(read(go[0], &byte, 1) == 1 ? 0 : 2); /* as a kill would */
    }
    wait_for_byte(ready[0]);
    for (int aside = 0; aside < 2; aside++) {
        CHECK_EQ(ledger_try(&s, aside == 1), RATION_ERR_IO);
        (void)snprintf(want, sizeof want,
                       "%s: is locked by another process, %d: end it, or name another settings.ledger.path", s.path,
                       (int)child);
        CHECK_STR(s.error.text, want);
    }

    /* By another name it is the same ledger. */
    char real[sizeof s.path];
    char link_path[sizeof s.folder + 16];
    memcpy(real, s.path, sizeof real);
    (void)snprintf(link_path, sizeof link_path, "%s/link", s.folder);
    CHECK_EQ(symlink(real, link_path), 0);
    memcpy(s.path, link_path, strlen(link_path) + 1);
    CHECK_EQ(ledger_try(&s, false), RATION_ERR_IO);
    CHECK(strstr(s.error.text, "link: is locked by another process") != NULL);
    memcpy(s.path, real, sizeof real);

    /* To look inside is no crime. */
    const rn_ledger_options looking = {.path = s.path, .now = at_us(NOON_US), .read_only = true};
    CHECK_EQ(rn_ledger_open(&looking, &s.ledger, &s.error), RATION_OK);
    ledger_close(&s);

    CHECK_EQ(write(go[1], "g", 1), 1);
    child_end(child);
    ledger_open(&s); /* the lock died with its process */
    CHECK(ledger_load(&s).unclean);
    for (int i = 0; i < 2; i++) {
        (void)close(ready[i]);
        (void)close(go[i]);
    }
    ledger_stage_end(&s);
}

static void nor_does_one_process_twice(void **state)
{
    ledger_stage s;
    rn_ledger *mine;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    mine = s.ledger;
    CHECK_EQ(ledger_try(&s, false), RATION_ERR_IO);
    CHECK(strstr(s.error.text, "is locked by another process") != NULL);
    s.ledger = mine;
    ledger_stage_end(&s);
}

static void a_shell_that_holds_it_delays_a_flush(void **state)
{
    ledger_stage s;
    sqlite3 *shell = NULL;
    rn_ledger_status status;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 1));
    CHECK_EQ(sqlite3_open(s.path, &shell), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(shell, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(ledger_flush_off(&s), RATION_ERR_IO);
    rn_ledger_look(s.ledger, &status);
    CHECK(status.failing);
    CHECK(strstr(status.error, "ration.db: cannot be written: another program has it locked") != NULL);
    CHECK_EQ(sqlite3_exec(shell, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_close(shell), SQLITE_OK);
    CHECK_EQ(ledger_flush_off(&s), RATION_OK);
    CHECK_EQ(count_of(&s, "SELECT used FROM quotas"), 1);
    ledger_stage_end(&s);
}

/* A statement in the midst of a flush fails: nothing of it is there. */
static void all_of_a_flush_or_nothing(void **state)
{
    ledger_stage s;
    sqlite3 *shell = NULL;
    const rn_ledger_run run = {ration_text_of("sync"), at_us(NOON_US), {1, 2, 3}};
    rn_ledger_status status;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 1));
    CHECK_EQ(rn_ledger_put_run(s.ledger, &run), RATION_OK);
    CHECK_EQ(sqlite3_open(s.path, &shell), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(shell, "CREATE TRIGGER t BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'not today'); END",
                          NULL, NULL, NULL),
             SQLITE_OK);
    CHECK_EQ(ledger_flush_off(&s), RATION_ERR_IO);
    rn_ledger_look(s.ledger, &status);
    CHECK(strstr(status.error, "ration.db: cannot be written: not today") != NULL);
    CHECK_EQ(status.rows, 0);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quotas"), 0);
    CHECK_EQ(sqlite3_exec(shell, "DROP TRIGGER t", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(sqlite3_close(shell), SQLITE_OK);
    CHECK_EQ(ledger_flush_off(&s), RATION_OK);
    rn_ledger_look(s.ledger, &status);
    CHECK_EQ(status.rows, 2);
    ledger_stage_end(&s);
}

/* What was put while a flight was under way that failed is newer than what comes back. */
static void a_flight_that_failed_is_older(void **state)
{
    ledger_stage s;
    char away[96];

    (void)state;
    ledger_stage_begin(&s);
    (void)snprintf(away, sizeof away, "%s.away", s.path);
    ledger_open(&s);
    CHECK_EQ(rename(s.path, away), 0);
    ledger_put(&s, a_quota("k", 1));
    ledger_put(&s, a_quota("other", 10));
    s.done = 0;
    CHECK_EQ(rn_ledger_flush(s.ledger, s.loop, at_us(NOON_US), ledger_done, &s), RATION_OK);
    ledger_put(&s, a_quota("k", 2));
    rn_loop_run(s.loop);
    CHECK_EQ(s.done_err, RATION_ERR_IO);
    CHECK_EQ(rename(away, s.path), 0);
    CHECK_EQ(ledger_flush_off(&s), RATION_OK);
    CHECK_EQ(count_of(&s, "SELECT used FROM quotas WHERE scope_key = 'k'"), 2);
    CHECK_EQ(count_of(&s, "SELECT used FROM quotas WHERE scope_key = 'other'"), 10);
    ledger_stage_end(&s);
}

/* ---- disks ---- */

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void put_many(ledger_stage *s, int round)
{
    char key[32];

    for (int i = 0; i < 500; i++) {
        (void)snprintf(key, sizeof key, "/user=%d", i);
        ledger_put(s, a_quota(key, 1000 * round + i));
    }
}

/* No file may grow beyond so many bytes: the disk is full. */
static void a_full_disk_loses_nothing(void **state)
{
    ledger_stage s;
    rn_ledger_status status;

    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN);
    ledger_stage_begin(&s);
    ledger_open(&s);
    put_many(&s, 1);
    ledger_flush(&s);
    for (int round = 2; round < 5; round++) {
        struct stat at;
        char log_path[96];

        (void)snprintf(log_path, sizeof log_path, "%s-wal", s.path);
        CHECK_EQ(stat(log_path, &at), 0);
        put_many(&s, round);
        limit_files((rlim_t)at.st_size + 4096 * (rlim_t)round);
        for (int tries = 0; tries < 3; tries++) {
            CHECK_EQ(tries % 2 == 0 ? ledger_flush_off(&s) : rn_ledger_flush_now(s.ledger, at_us(NOON_US)),
                     RATION_ERR_IO);
            rn_ledger_look(s.ledger, &status);
            CHECK(status.failing);
            CHECK_EQ(status.pending, 500);
            CHECK_EQ(status.faults, 3 * (round - 2) + tries + 1);
            CHECK_EQ(status.flushes, round - 1);
            CHECK(strstr(status.error, "ration.db: cannot be written: ") != NULL);
            ledger_put(&s, a_quota("/user=0", 7)); /* takes the place of what waits */
        }
        CHECK_EQ(count_of(&s, "SELECT used FROM quotas WHERE scope_key = '/user=9'"), 1000 * (round - 1) + 9);
        limit_files(RLIM_INFINITY);
        CHECK_EQ(ledger_flush_off(&s), RATION_OK);
        rn_ledger_look(s.ledger, &status);
        CHECK(!status.failing);
        CHECK_EQ(status.pending, 0);
        CHECK_EQ(count_of(&s, "SELECT sum(used) FROM quotas"), INT64_C(499) * (1000 * (int64_t)round + 250) + 7);
    }
    ledger_close(&s);
    ledger_open(&s);
    CHECK_EQ(ledger_load(&s).count, 500);
    CHECK(!ledger_load(&s).unclean);
    ledger_stage_end(&s);
}

static void no_room_to_begin(void **state)
{
    static const rlim_t sizes[] = {0, 512, 4096, 8192, 20000};
    ledger_stage s;

    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN);
    ledger_stage_begin(&s);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        limit_files(sizes[i]);

        const int err = ledger_try(&s, false);

        limit_files(RLIM_INFINITY);
        CHECK_EQ(err, RATION_ERR_IO);
        CHECK(strstr(s.error.text, "ration.db: cannot be opened to be written: ") != NULL);
    }
    ledger_open(&s); /* and nothing of that is in its way */
    CHECK_EQ(ledger_load(&s).count, 0);
    CHECK(!ledger_load(&s).unclean);
    ledger_stage_end(&s);
}

/* As somebody who may not: root may everything. */
static void give_up_rights(void)
{
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        _exit(3);
}

static int refused_with(ledger_stage *s, const char *want)
{
    const int err = ledger_try(s, true);

    if (err == RATION_ERR_IO && strstr(s->error.text, want) != NULL)
        return 0;
    print_error("%d %s, want %s\n", err, s->error.text, want);
    return 1;
}

static void without_the_right_to_write(void **state)
{
    ledger_stage s;
    pid_t child;

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 5));
    ledger_flush(&s);
    ledger_close(&s);

    CHECK_ROW("a file that may only be read");
    CHECK_EQ(chmod(s.path, 0444), 0);
    CHECK_EQ(chmod(s.folder, 0555), 0);
    child = child_begin();
    if (child == 0) {
        const rn_ledger_options looking = {.path = s.path, .now = at_us(NOON_US), .read_only = true};

        give_up_rights();
        if (refused_with(&s, "ration.db: cannot be opened to be written: Permission denied") != 0)
            _exit(1);
        /* But it may be looked into, and a copy on a disk that cannot be written as well. */
        if (rn_ledger_open(&looking, &s.ledger, &s.error) != RATION_OK || ledger_load(&s).count != 1)
            _exit(2);
        _exit(0);
    }
    child_end(child);

    CHECK_ROW("a folder that may only be read: there is no place for the log");
    CHECK_EQ(chmod(s.path, 0666), 0);
    child = child_begin();
    if (child == 0) {
        give_up_rights();
        _exit(refused_with(&s, "ration.db: cannot be opened to be written: "));
    }
    child_end(child);

    CHECK_ROW("a file that may not even be read");
    CHECK_EQ(chmod(s.path, 0000), 0);
    child = child_begin();
    if (child == 0) {
        give_up_rights();
        _exit(refused_with(&s, "ration.db: cannot be opened to be written: Permission denied"));
    }
    child_end(child);

    CHECK_EQ(chmod(s.path, 0600), 0);
    CHECK_EQ(chmod(s.folder, 0700), 0);
    ledger_open(&s);
    CHECK_EQ(ledger_load(&s).count, 1);
    CHECK(!ledger_load(&s).unclean);
    ledger_stage_end(&s);
}

/* ---- files that are taken away ---- */

static void check_not_written(ledger_stage *s)
{
    rn_ledger_status status;

    CHECK_EQ(ledger_flush_off(s), RATION_ERR_IO);
    rn_ledger_look(s->ledger, &status);
    CHECK(strstr(status.error, "was moved, deleted or replaced") != NULL);
    CHECK_EQ(status.pending, 1);
}

static void a_file_that_was_taken_away_is_not_written(void **state)
{
    ledger_stage s;
    char away[96];
    char log_path[96];
    char log_away[96];

    (void)state;
    ledger_stage_begin(&s);
    (void)snprintf(away, sizeof away, "%s.away", s.path);
    (void)snprintf(log_path, sizeof log_path, "%s-wal", s.path);
    (void)snprintf(log_away, sizeof log_away, "%s.away-wal", s.path);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 1));
    ledger_flush(&s);

    CHECK_ROW("moved");
    ledger_put(&s, a_quota("k", 2));
    CHECK_EQ(rename(s.path, away), 0);
    check_not_written(&s);
    CHECK_ROW("replaced");
    (void)close(open(s.path, O_CREAT | O_WRONLY, 0600));
    check_not_written(&s);
    CHECK_ROW("its log moved");
    CHECK_EQ(rename(away, s.path), 0);
    CHECK_EQ(rename(log_path, log_away), 0);
    check_not_written(&s);
    CHECK_ROW("both are back");
    CHECK_EQ(rename(log_away, log_path), 0);
    CHECK_EQ(ledger_flush_off(&s), RATION_OK);
    CHECK_EQ(count_of(&s, "SELECT used FROM quotas"), 2);

    CHECK_ROW("deleted, and not marked as closed in order");
    ledger_put(&s, a_quota("k", 3));
    CHECK_EQ(unlink(s.path), 0);
    check_not_written(&s);
    ledger_close(&s);
    struct stat at;
    CHECK(stat(s.path, &at) != 0);
    ledger_open(&s); /* a log without its file is of nothing */
    CHECK_EQ(ledger_load(&s).count, 0);
    ledger_stage_end(&s);
}

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 20];
    const int in = open(from, O_RDONLY);
    const int out = open(to, O_WRONLY | O_CREAT, 0600);
    const ssize_t size = read(in, bytes, sizeof bytes);

    CHECK(size > 0);
    CHECK_EQ(write(out, bytes, (size_t)size), size);
    (void)close(in);
    (void)close(out);
}

static void replaced_after_all_was_written(void **state)
{
    ledger_stage s;
    char copy[96];
    (void)state;
    ledger_stage_begin(&s);
    (void)snprintf(copy, sizeof copy, "%s.copy", s.path);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 1));
    ledger_flush(&s);
    ledger_close(&s);
    copy_file(s.path, copy);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 2));
    ledger_flush(&s);
    CHECK_EQ(rename(copy, s.path), 0); /* somebody brings a back-up while it is in use */
    ledger_close(&s);
    CHECK_EQ(count_of(&s, "SELECT value FROM meta WHERE name = 'clean'"), 1); /* the back-up's own word */
    ledger_stage_end(&s);
}

/* ---- kills ---- */

enum { KILLS = 40 };

/* Flush for ever, and say each time which one is durable. */
static _Noreturn void flush_until_killed(ledger_stage *s, int out, int64_t from)
{
    if (ledger_try(s, false) != RATION_OK)
        _exit(1);
    for (int64_t i = from + 1;; i++) {
        const ration_part parts[] = {{{NOON_US - 5}, i}, {{NOON_US - 4 + i % 3}, i}};
        ration_record quota = a_quota("q", i);
        const rn_ledger_run run = {ration_text_of("sync"), at_us(NOON_US), {i, 0, 0}};
        const ration_record bucket = a_bucket("b", i);

        quota.u.quota.parts = parts;
        quota.u.quota.part_count = 2;
        if (rn_ledger_put(s->ledger, &quota) != RATION_OK || rn_ledger_put(s->ledger, &bucket) != RATION_OK ||
            rn_ledger_put_run(s->ledger, &run) != RATION_OK ||
            rn_ledger_flush_now(s->ledger, at_us(NOON_US)) != RATION_OK ||
            write(out, &i, sizeof i) != (ssize_t)sizeof i)
            _exit(2);
    }
}

/* The last that was told, or `last`; the writer is dead. */
static int64_t last_told(int in, int64_t last)
{
    int64_t told;

    while (read(in, &told, sizeof told) == (ssize_t)sizeof told)
        last = told;
    return last;
}

static void kills_at_any_moment_lose_nothing_that_was_told(void **state)
{
    ledger_stage s;
    uint64_t seed = 20261130;
    int64_t told = 0;

    (void)state;
    ledger_stage_begin(&s);
    for (int k = 0; k < KILLS; k++) {
        int ends[2];
        int64_t first = 0;
        const rn_ledger_run *runs;
        size_t count;
        int status;

        CHECK_EQ(pipe(ends), 0);

        const pid_t child = child_begin();

        if (child == 0)
            flush_until_killed(&s, ends[1], told);
        (void)close(ends[1]);
        if (k % 4 != 0) /* once in four it may not even have opened it */
            CHECK_EQ(read(ends[0], &first, sizeof first), (int64_t)sizeof first);
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        for (volatile uint64_t spin = seed >> 44; spin > 0; spin = spin - 1)
            ;
        CHECK_EQ(kill(child, SIGKILL), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status));
        told = last_told(ends[0], k % 4 != 0 ? first : told);
        (void)close(ends[0]);

        ledger_open(&s);

        const ration_state loaded = ledger_load(&s);

        if (loaded.count == 0) {
            CHECK_EQ(told, 0);
            ledger_close(&s);
            continue;
        }
        CHECK_EQ(loaded.count, 2);

        const ration_record *q = &loaded.records[0];
        const int64_t kept = q->u.quota.used;

        /* All of one flush or nothing: at most one more than was told. */
        CHECK(kept == told || kept == told + 1);
        CHECK_EQ(q->u.quota.part_count, 2);
        CHECK_EQ(q->u.quota.parts[0].units, kept);
        CHECK_EQ(q->u.quota.parts[1].units, kept);
        CHECK_EQ(q->u.quota.parts[1].last.us, NOON_US - 4 + kept % 3);
        CHECK_EQ(loaded.records[1].u.available, kept);
        CHECK_EQ(rn_ledger_load_runs(s.ledger, &runs, &count, &s.error), RATION_OK);
        CHECK(count > 0);
        CHECK_EQ(runs[count - 1].run.requests, kept);
        told = kept;
        ledger_kill(&s);
    }
    CHECK(told > KILLS / 2);
    ledger_stage_end(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_never_share_it),
        cmocka_unit_test(nor_does_one_process_twice),
        cmocka_unit_test(a_shell_that_holds_it_delays_a_flush),
        cmocka_unit_test(all_of_a_flush_or_nothing),
        cmocka_unit_test(a_flight_that_failed_is_older),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(no_room_to_begin),
        cmocka_unit_test(without_the_right_to_write),
        cmocka_unit_test(a_file_that_was_taken_away_is_not_written),
        cmocka_unit_test(replaced_after_all_was_written),
        cmocka_unit_test(kills_at_any_moment_lose_nothing_that_was_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
