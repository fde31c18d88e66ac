/* SPDX-License-Identifier: MIT */
/* Files that are no ledger, broken ones and newer ones: refused with their name and left as they are, or put aside. */
#include "support/ledger_stage.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "base/map.h"

/* A number for all that is in the folder, but what SQLite shares between processes. */
static uint64_t folder_sum(const ledger_stage *s)
{
    DIR *folder = opendir(s->folder);
    struct dirent *entry;
    uint64_t sum = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        char path[320];
        static char bytes[1 << 20];
        ssize_t size;

        if (strstr(entry->d_name, "-shm") != NULL || entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", s->folder, entry->d_name);

        const int file = open(path, O_RDONLY | O_NONBLOCK);

        size = read(file, bytes, sizeof bytes);
        (void)close(file);
        sum += rn_hash(entry->d_name, strlen(entry->d_name)) ^ (size > 0 ? rn_hash(bytes, (size_t)size) : 1);
    }
    (void)closedir(folder);
    return sum;
}

static void sql_with_log(const ledger_stage *s, const char *text, bool keep_log)
{
    sqlite3 *db = NULL;

    CHECK_EQ(sqlite3_open(s->path, &db), SQLITE_OK);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep_log ? 1 : 0, NULL);

    const int rc = sqlite3_exec(db, text, NULL, NULL, NULL);

    if (rc != SQLITE_OK)
        print_error("%s: %s\n", text, sqlite3_errmsg(db));
    CHECK_EQ(rc, SQLITE_OK);
    CHECK_EQ(sqlite3_close(db), SQLITE_OK);
}

static void sql(const ledger_stage *s, const char *text)
{
    sql_with_log(s, text, false);
}

/* A ledger with something of everything, closed in order. */
static void make_ledger(ledger_stage *s)
{
    static const steps parts = {2, {P(1, 1), P(2, 2)}};
    const rn_ledger_run run = {ration_text_of("sync"), at_us(NOON_US), {1, 2, 3}};
    char key[16];

    ledger_open(s);
    for (int i = 0; i < 200; i++) { /* some pages */
        ration_record record = with_parts(&parts, &parts);

        (void)snprintf(key, sizeof key, "/user=%d", i);
        record.key = ration_text_of(key);
        ledger_put(s, record);
    }
    ledger_put(s, a_bucket("b", 1));
    ledger_put(s, (ration_record){.type = RATION_RECORD_ADAPTIVE,
                                  .provider = ration_text_of("p"),
                                  .limit = ration_text_of("l"),
                                  .key = ration_text_of("a"),
                                  .at = at_us(NOON_US),
                                  .u.adaptive = {5, {1}, true, true, {2}, {3}, 4, 5}});
    ledger_put(s, (ration_record){.type = RATION_RECORD_PENALTY,
                                  .provider = ration_text_of("p"),
                                  .key = ration_text_of("main"),
                                  .at = at_us(NOON_US),
                                  .u.penalty = {at_us(NOON_US), at_us(NOON_US + 1), 1, 1}});
    ledger_put(s, (ration_record){.type = RATION_RECORD_BREAKER,
                                  .provider = ration_text_of("p"),
                                  .key = ration_text_of("main"),
                                  .at = at_us(NOON_US),
                                  .u.breaker = {RATION_BREAKER_OPEN, 1, at_us(NOON_US), 1}});
    CHECK_EQ(rn_ledger_put_run(s->ledger, &run), RATION_OK);
    ledger_flush(s);
    ledger_close(s);
}

/* ---- ways to spoil it ---- */

static void write_at(const ledger_stage *s, off_t at, const void *bytes, size_t size)
{
    const int file = open(s->path, O_WRONLY);

    CHECK_EQ(pwrite(file, bytes, size, at), (int64_t)size);
    (void)close(file);
}

static void spoil_garbage(const ledger_stage *s)
{
    static const char text[] = "This is somebody's diary, and no business of a program. It is longer than a header, "
                               "which SQLite would take for an empty file else.";

    CHECK_EQ(truncate(s->path, 0), 0);
    write_at(s, 0, text, sizeof text - 1);
}

static void spoil_truncated(const ledger_stage *s)
{
    struct stat at;

    CHECK_EQ(stat(s->path, &at), 0);
    CHECK_EQ(truncate(s->path, at.st_size / 4096 / 2 * 4096), 0);
}

static void spoil_cut_short(const ledger_stage *s)
{
    CHECK_EQ(truncate(s->path, 50), 0);
}

static void spoil_page(const ledger_stage *s)
{
    write_at(s, 5 * (off_t)4096, "\xa5\xa5\xa5\xa5\xa5\xa5\xa5\xa5", 8);
}

/* What no reader needs, and the next writer does. */
static void spoil_index(const ledger_stage *s)
{
    const int64_t page = count_of(
        s, "SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'quotas' ORDER BY name DESC");
    char bytes[64];

    CHECK(page > 1);
    memset(bytes, 0x5a, sizeof bytes);
    write_at(s, (page - 1) * 4096 + 8, bytes, sizeof bytes);
}

/* Pointers to where a page's rows stand. */
static void spoil_pointers(const ledger_stage *s)
{
    char bytes[64];

    memset(bytes, 0x5a, sizeof bytes);
    for (off_t page = 2; page < 8; page++)
        write_at(s, 4096 * page + 8, bytes, sizeof bytes);
}

static const struct {
    const char *why;
    void (*spoil)(const ledger_stage *s);
    const char *sql;
    const char *want; /* in the message */
} spoilt[] = {
    {"garbage", spoil_garbage, NULL, "is not a ledger"},
    {"cut in half", spoil_truncated, NULL, "is broken"},
    {"cut in its header", spoil_cut_short, NULL, "is broken"},
    {"a page's begin overwritten", spoil_page, NULL, "is broken"},
    {"pages' pointers overwritten", spoil_pointers, NULL, "is broken"},
    {"an index overwritten", spoil_index, NULL, "is broken"},
    {"another program's", NULL, "PRAGMA application_id = 1", "is not a ledger, but a database of something else"},
    {"no program's", NULL, "PRAGMA application_id = 0", "is not a ledger, but a database of something else"},
    {"a version before the first", NULL, "PRAGMA user_version = 0", "is broken: its version"},
    {"no version at all", NULL, "PRAGMA user_version = -1", "is broken: its version"},
    {"a table is missing", NULL, "DROP TABLE breakers", "the table breakers is missing"},
    {"an array is missing", NULL, "DROP TABLE quota_timeline", "the table quota_timeline is missing"},
    {"meta is missing", NULL, "DROP TABLE meta", "the table meta is missing"},
    {"a table by that name", NULL, "DROP TABLE buckets; CREATE TABLE buckets (available)",
     "the table buckets is missing"},
    {"a view by that name", NULL, "ALTER TABLE runs RENAME TO r; CREATE VIEW runs AS SELECT * FROM r",
     "the table runs is missing"},
    {"another type of column", NULL,
     "ALTER TABLE quotas RENAME TO q; CREATE TABLE quotas AS SELECT * FROM q; DROP TABLE q",
     "the table quotas is missing"},
    {"a column more", NULL, "ALTER TABLE penalties ADD COLUMN note TEXT", "the table penalties is missing"},
    {"no salt", NULL, "DELETE FROM meta WHERE name = 'salt'", "meta has no salt"},
    {"a short salt", NULL, "UPDATE meta SET value = x'00' WHERE name = 'salt'", "meta has no salt"},
    {"a salt that is a text", NULL, "UPDATE meta SET value = '01234567890123456789012345678901' WHERE name = 'salt'",
     "meta has no salt"},
    {"not said how it was left", NULL, "DELETE FROM meta WHERE name = 'clean'", "does not say how it was left"},
    {"said in words", NULL, "UPDATE meta SET value = 'yes' WHERE name = 'clean'", "does not say how it was left"},
    {"a death before all time", NULL, "INSERT INTO meta VALUES ('unclean_at', -1)", "meta names no time"},
    {"used below nothing", NULL, "UPDATE quotas SET used = -1 WHERE scope_key = '/user=7'",
     "quotas, the row of openai/rpd, '/user=7': is out of range"},
    {"used at the end of int64", NULL, "UPDATE quotas SET used = 9223372036854775807 WHERE id = 1", "is out of range"},
    {"a window at the end of int64", NULL, "UPDATE quotas SET window_end = 9223372036854775807 WHERE id = 1",
     "is out of range"},
    {"neither yes nor no", NULL, "UPDATE quotas SET exhausted = 2 WHERE id = 1", "exhausted is not what it may be"},
    {"a number of nobody", NULL, "UPDATE quotas SET id = 0 WHERE id = 1", "id is not what it may be"},
    {"two windows of one quota", NULL,
     "UPDATE quotas SET scope_key = '/user=1', window_start = 5 WHERE scope_key = '/user=0'", "has two windows"},
    {"units below nothing", NULL, "UPDATE quota_parts SET units = -1 WHERE quota_id = 3", "is out of range"},
    {"the same in a timeline", NULL, "UPDATE quota_timeline SET units = -1 WHERE quota_id = 3", "is out of range"},
    {"a part after its record", NULL, "UPDATE quota_parts SET last = last + 86400000000 WHERE quota_id = 3",
     "is out of range"},
    {"a bucket beyond all units", NULL, "UPDATE buckets SET available = -9223372036854775807 - 1",
     "buckets, the row of openai/slow, 'b': is out of range"},
    {"an instant beyond all time", NULL, "UPDATE buckets SET updated_at = -9223372036854775807", "is out of range"},
    {"a limit without a name", NULL, "UPDATE buckets SET limit_name = ''", "is out of range"},
    {"an adaptive limit of nothing", NULL, "UPDATE adaptive SET current = 0", "adaptive, the row of p/l, 'a'"},
    {"more doublings than are counted", NULL, "UPDATE penalties SET doublings = 4294967296",
     "penalties, the row of p, 'main': doublings is not what it may be"},
    {"fewer events than none", NULL, "UPDATE penalties SET events = -1", "events is not what it may be"},
    {"a penalty without an end", NULL, "UPDATE penalties SET until = 9223372036854775807", "is out of range"},
    {"a state that there is not", NULL, "UPDATE breakers SET state = 'ajar'", "state is not what it may be"},
    {"a generation before the first", NULL, "UPDATE breakers SET generation = -1", "is out of range"},
    {"a run below nothing", NULL, "UPDATE runs SET requests = -1", "a run is out of range"},
    {"more runs than are kept", NULL,
     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)"
     " INSERT INTO runs SELECT 'sync', i, 0, 0, 0, 0 FROM n",
     "the runs of a job are too many"},
};
enum { SPOILT = sizeof spoilt / sizeof spoilt[0] };

static void check_refused(ledger_stage *s, bool aside, const char *want)
{
    const uint64_t before = folder_sum(s);

    CHECK_EQ(ledger_try(s, aside), RATION_ERR_IO);
    CHECK(strncmp(s->error.text, s->path, strlen(s->path)) == 0);
    if (strstr(s->error.text, want) == NULL)
        CHECK_STR(s->error.text, want);
    CHECK(strchr(s->error.text, '\n') == NULL);
    CHECK(folder_sum(s) == before);
}

static void a_broken_file_is_refused_or_put_aside(void **state)
{
    (void)state;
    for (size_t i = 0; i < SPOILT; i++) {
        ledger_stage s;
        static char bytes[8192];
        static char aside_bytes[8192];

        CHECK_ROW(spoilt[i].why);
        ledger_stage_begin(&s);
        make_ledger(&s);
        if (spoilt[i].spoil != NULL)
            spoilt[i].spoil(&s);
        if (spoilt[i].sql != NULL)
            sql(&s, spoilt[i].sql);
        check_refused(&s, false, spoilt[i].want);
        check_refused(&s, false, spoilt[i].want); /* nothing is left of the first time */

        /* Aside it goes, whole. */
        const int file = open(s.path, O_RDONLY);
        const ssize_t size = read(file, bytes, sizeof bytes);

        (void)close(file);
        CHECK_EQ(ledger_try(&s, true), RATION_OK);
        assert_non_null(rn_ledger_aside(s.ledger));
        CHECK(strstr(rn_ledger_aside(s.ledger), "/ration.db.broken-20261130T120000Z") != NULL);

        const int other = open(rn_ledger_aside(s.ledger), O_RDONLY);

        CHECK_EQ(read(other, aside_bytes, sizeof aside_bytes), size);
        CHECK(memcmp(bytes, aside_bytes, (size_t)size) == 0);
        (void)close(other);

        /* The new one knows nothing, not even how the last stop was. */
        const ration_state loaded = ledger_load(&s);

        CHECK_EQ(loaded.count, 0);
        CHECK(loaded.unclean);
        ledger_put(&s, a_quota("k", 4));
        ledger_flush(&s);
        ledger_close(&s);
        ledger_open(&s);
        CHECK(rn_ledger_aside(s.ledger) == NULL);
        CHECK_EQ(ledger_load(&s).count, 1);
        CHECK(!ledger_load(&s).unclean);
        CHECK_EQ(ledger_load(&s).unclean_at.us, NOON_US);
        ledger_stage_end(&s);
    }
}

/* Bytes at random places: refused or read, and never more than that. */
static void bytes_that_a_disk_forgot(void **state)
{
    enum { ROUNDS = 300 };
    static char good[1 << 18];
    ledger_stage s;
    uint64_t seed = 7;
    int refused = 0;

    (void)state;
    ledger_stage_begin(&s);
    make_ledger(&s);

    int file = open(s.path, O_RDONLY);
    const ssize_t size = read(file, good, sizeof good);

    (void)close(file);
    CHECK(size > 8192 && size < (ssize_t)sizeof good);
    for (int round = 0; round < ROUNDS; round++) {
        const rn_ledger_options looking = {.path = s.path, .now = at_us(NOON_US), .read_only = true};
        rn_ledger *ledger = NULL;

        write_at(&s, 0, good, (size_t)size);
        for (int i = 0; i <= round % 8; i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            write_at(&s, (off_t)(seed >> 33) % size, &(char){(char)(seed >> 24)}, 1);
        }
        if (rn_ledger_open(&looking, &ledger, &s.error) != RATION_OK) {
            CHECK(strncmp(s.error.text, s.path, strlen(s.path)) == 0);
            refused++;
            continue;
        }

        ration_state loaded;

        CHECK_EQ(rn_ledger_load(ledger, at_us(NOON_US), &loaded, &s.error), RATION_OK);
        rn_ledger_abandon(ledger);
    }
    CHECK(refused > ROUNDS / 10);
    CHECK(refused < ROUNDS);
    ledger_stage_end(&s);
}

static void a_good_file_is_not_put_aside(void **state)
{
    ledger_stage s;

    (void)state;
    ledger_stage_begin(&s);
    make_ledger(&s);
    CHECK_EQ(ledger_try(&s, true), RATION_OK);
    CHECK(rn_ledger_aside(s.ledger) == NULL);
    CHECK_EQ(ledger_load(&s).count, 204);
    ledger_stage_end(&s);
}

static int64_t size_of(const char *base, const char *suffix)
{
    char path[192];
    struct stat at;

    (void)snprintf(path, sizeof path, "%s%s", base, suffix);
    return stat(path, &at) == 0 ? (int64_t)at.st_size : -1;
}

static void a_log_goes_aside_with_its_file(void **state)
{
    static const char *const endings[] = {"Z", "Z.1", "Z.2"}; /* of the same second */
    ledger_stage s;

    (void)state;
    ledger_stage_begin(&s);
    for (size_t i = 0; i < 3; i++) {
        ledger_open(&s);
        ledger_put(&s, a_quota("k", 1));
        ledger_flush(&s);
        ledger_kill(&s);
        sql_with_log(&s, "UPDATE quotas SET used = -1", true);

        const int64_t size = size_of(s.path, "");
        const int64_t log_size = size_of(s.path, "-wal");

        CHECK(log_size > 4096);
        check_refused(&s, false, "is out of range");
        CHECK_EQ(ledger_try(&s, true), RATION_OK);

        const char *aside = rn_ledger_aside(s.ledger);

        CHECK_STR(strrchr(aside, 'Z'), endings[i]);
        CHECK_EQ(size_of(aside, ""), size);
        CHECK_EQ(size_of(aside, "-wal"), log_size);
        CHECK_EQ(ledger_load(&s).count, 0);
        ledger_close(&s);
    }
    ledger_stage_end(&s);
}

static void a_newer_one_is_refused_whatever_is_asked(void **state)
{
    ledger_stage s;

    (void)state;
    ledger_stage_begin(&s);
    make_ledger(&s);
    sql(&s, "PRAGMA user_version = 2");
    check_refused(&s, false, "was written by a newer version of ration (ledger version 2, this one knows 1)");
    check_refused(&s, true, "was written by a newer version of ration");
    sql(&s, "DROP TABLE quotas"); /* whatever it may look like */
    check_refused(&s, true, "was written by a newer version of ration");
    ledger_stage_end(&s);
}

/* ---- paths ---- */

static void paths(void **state)
{
    ledger_stage s;
    char other[128];
    struct stat at;

    (void)state;
    ledger_stage_begin(&s);
    (void)snprintf(other, sizeof other, "%s/other", s.folder);

    CHECK_ROW("a folder");
    CHECK_EQ(mkdir(s.path, 0700), 0);
    check_refused(&s, true, "is a folder, not a file");
    CHECK_EQ(rmdir(s.path), 0);

    CHECK_ROW("a pipe, without waiting for who writes it");
    CHECK_EQ(mkfifo(s.path, 0600), 0);
    check_refused(&s, true, "is a device or a pipe, not a file");
    CHECK_EQ(unlink(s.path), 0);

    CHECK_ROW("a link that leads nowhere");
    CHECK_EQ(symlink(other, s.path), 0);
    check_refused(&s, true, "No such file");
    CHECK_ROW("a link to itself");
    CHECK_EQ(unlink(s.path), 0);
    CHECK_EQ(symlink(s.path, s.path), 0);
    check_refused(&s, true, "levels of symbolic links");
    CHECK_EQ(unlink(s.path), 0);

    CHECK_ROW("an empty file is a new ledger");
    (void)close(open(s.path, O_CREAT | O_WRONLY, 0600));
    ledger_open(&s);
    CHECK(!ledger_load(&s).unclean);
    CHECK_EQ(stat(s.path, &at), 0);
    ledger_close(&s);

    CHECK_ROW("a file with two names");
    CHECK_EQ(link(s.path, other), 0);
    check_refused(&s, true, "has 2 names");
    CHECK_EQ(unlink(other), 0);

    CHECK_ROW("a link to a ledger is the ledger");
    CHECK_EQ(rename(s.path, other), 0);
    CHECK_EQ(symlink(other, s.path), 0);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 1));
    ledger_flush(&s);
    ledger_close(&s);
    CHECK_EQ(unlink(s.path), 0);
    CHECK_EQ(rename(other, s.path), 0);
    ledger_open(&s);
    CHECK_EQ(ledger_load(&s).count, 1);
    ledger_stage_end(&s);
}

static void paths_that_lead_nowhere(void **state)
{
    static const struct {
        const char *path, *want;
    } table[] = {
        {"/nowhere/at/all/ration.db", "/nowhere/at/all/ration.db: cannot be made: No such file or directory"},
        {"/dev/null/ration.db", "/dev/null/ration.db: cannot be opened: Not a directory"},
        {"", "ledger: an empty path names no file"},
        {"/dev/null", "/dev/null: is a device or a pipe, not a file"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const rn_ledger_options options = {.path = table[i].path, .now = at_us(NOON_US), .aside = true};
        rn_ledger_error error;
        rn_ledger *ledger = NULL;

        CHECK_EQ(rn_ledger_open(&options, &ledger, &error), RATION_ERR_IO);
        CHECK_STR(error.text, table[i].want);
    }
}

/* What has a meaning in the names that SQLite reads. */
static void odd_names(void **state)
{
    static const char *const names[] = {
        "a b?mode=memory&x=1", "50%25", "#1", "file:x", "\xff\xfe", "'\";DROP", ":memory:"};
    ledger_stage s;

    (void)state;
    ledger_stage_begin(&s);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK_ROW(names[i]);
        (void)snprintf(s.path, sizeof s.path, "%s/%s", s.folder, names[i]);
        for (int k = 0; k < 2; k++) {
            struct stat at;

            ledger_open(&s);
            CHECK_EQ(ledger_load(&s).count, k);
            ledger_put(&s, a_quota("k", 1));
            ledger_flush(&s);
            ledger_close(&s);
            CHECK_EQ(stat(s.path, &at), 0);
            CHECK_EQ(at.st_mode & 0777, 0600);
            CHECK(at.st_size > 4096);
        }
    }
    ledger_stage_end(&s);
}

static void only_its_owner_may_read_it(void **state)
{
    ledger_stage s;
    struct stat at;
    char path[96];
    const mode_t old = umask(0);

    (void)state;
    ledger_stage_begin(&s);
    ledger_open(&s);
    ledger_put(&s, a_quota("k", 1));
    ledger_flush(&s);
    (void)umask(old);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof path, "%s%s", s.path, (const char *[]){"", "-wal", "-shm"}[i]);
        CHECK_EQ(stat(path, &at), 0);
        CHECK_EQ(at.st_mode & 0777, 0600);
    }
    ledger_stage_end(&s);
}

/* ---- looking ---- */

static void looking_changes_nothing(void **state)
{
    ledger_stage s;
    rn_ledger *looking = NULL;
    ration_state loaded;

    (void)state;
    ledger_stage_begin(&s);

    const rn_ledger_options options = {.path = s.path, .now = at_us(NOON_US), .read_only = true, .aside = true};

    CHECK_ROW("there is none");
    CHECK_EQ(rn_ledger_open(&options, &looking, &s.error), RATION_ERR_IO);
    CHECK(strstr(s.error.text, "there is no such file") != NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_ROW(i == 0 ? "in use" : i == 1 ? "left by a kill" : "left in order");
        ledger_open(&s);
        ledger_put(&s, a_quota("k", i));
        ledger_flush(&s);
        if (i == 1)
            ledger_kill(&s);
        if (i == 2)
            ledger_close(&s);

        const uint64_t before = folder_sum(&s);

        CHECK_EQ(rn_ledger_open(&options, &looking, &s.error), RATION_OK);
        CHECK_EQ(rn_ledger_load(looking, at_us(NOON_US), &loaded, &s.error), RATION_OK);
        CHECK_EQ(loaded.count, 1);
        CHECK_EQ(used_of(&loaded, "k"), i);
        CHECK_EQ(loaded.unclean, i < 2);

        const ration_record record = a_quota("k", 9);

        CHECK_EQ(rn_ledger_put(looking, &record), RATION_ERR_INVALID);
        CHECK_EQ(rn_ledger_flush_now(looking, at_us(NOON_US)), RATION_ERR_INVALID);
        CHECK_EQ(rn_ledger_flush(looking, s.loop, at_us(NOON_US), ledger_done, &s), RATION_ERR_INVALID);
        rn_ledger_close(looking, at_us(NOON_US));
        CHECK(folder_sum(&s) == before);
        if (i == 0)
            ledger_close(&s);
    }
    CHECK_ROW("broken: said, and left where it is");
    sql(&s, "UPDATE quotas SET used = -1");

    const uint64_t before = folder_sum(&s);

    CHECK_EQ(rn_ledger_open(&options, &looking, &s.error), RATION_ERR_IO);
    CHECK(folder_sum(&s) == before);
    ledger_stage_end(&s);
}

static void rows_that_somebody_left_behind_are_dropped(void **state)
{
    ledger_stage s;

    (void)state;
    ledger_stage_begin(&s);
    make_ledger(&s);
    sql(&s, "DELETE FROM quotas WHERE id = 7; CREATE VIEW mine AS SELECT scope_key, used / 1e6 FROM quotas");
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quota_parts"), 400);
    ledger_open(&s);
    CHECK_EQ(ledger_load(&s).count, 203);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quota_parts"), 398);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM quota_timeline WHERE quota_id = 7"), 0);
    CHECK_EQ(count_of(&s, "SELECT count(*) FROM mine"), 199);
    ledger_stage_end(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_file_is_refused_or_put_aside),
        cmocka_unit_test(bytes_that_a_disk_forgot),
        cmocka_unit_test(a_good_file_is_not_put_aside),
        cmocka_unit_test(a_log_goes_aside_with_its_file),
        cmocka_unit_test(a_newer_one_is_refused_whatever_is_asked),
        cmocka_unit_test(paths),
        cmocka_unit_test(paths_that_lead_nowhere),
        cmocka_unit_test(odd_names),
        cmocka_unit_test(only_its_owner_may_read_it),
        cmocka_unit_test(looking_changes_nothing),
        cmocka_unit_test(rows_that_somebody_left_behind_are_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
