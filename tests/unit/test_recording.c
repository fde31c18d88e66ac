/* SPDX-License-Identifier: MIT */
/* The file of a recording: parts in order, an earlier run kept, a fault told once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/recording.h"

#include "support/check.h"

typedef struct stage {
    rn_loop *loop;
    rn_log log;
    char folder[32];
    char path[64];
} stage;

static void stage_open(stage *s)
{
    *s = (stage){.log = {.descriptor = -1}, .folder = "/tmp/ration-test-XXXXXX"};
    assert_non_null(mkdtemp(s->folder));
    (void)snprintf(s->path, sizeof s->path, "%s/calls.jsonl", s->folder);
    CHECK_EQ(rn_loop_new(&s->loop), RATION_OK);
}

static void stage_close(stage *s)
{
    static const char *const suffixes[] = {"", ".old", ".1", ".2", ".3", ".4"};
    char path[80];

    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", s->path, suffixes[i]);
        (void)unlink(path);
    }
    CHECK_EQ(rmdir(s->folder), 0);
    rn_loop_free(s->loop);
}

static rn_recording *recording_open(stage *s, uint64_t part_bytes)
{
    const rn_recording_options options = {.loop = s->loop, .log = &s->log, .path = s->path, .part_bytes = part_bytes};
    rn_recording *r = NULL;
    rn_net_error error;

    CHECK_EQ(rn_recording_open(&options, &r, &error), RATION_OK);
    CHECK_EQ(rn_recording_begin(r), RATION_OK);
    return r;
}

static void check_file(const stage *s, const char *suffix, const char *want)
{
    char path[80], got[64] = "";

    (void)snprintf(path, sizeof path, "%s%s", s->path, suffix);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    CHECK(fread(got, 1, sizeof got - 1, file) < sizeof got);
    (void)fclose(file);
    CHECK_STR(got, want);
}

static void test_parts(void **state)
{
    struct stat found;
    stage s;
    (void)state;

    stage_open(&s);
    rn_recording *r = recording_open(&s, 8);
    CHECK_EQ(rn_recording_write(r, "one\n", 4), RATION_OK);
    CHECK_EQ(rn_recording_write(r, "two\n", 4), RATION_OK);
    CHECK_EQ(rn_recording_write(r, "more than a part\n", 17), RATION_OK);
    CHECK_EQ(rn_recording_write(r, "end\n", 4), RATION_OK);
    CHECK_EQ(rn_recording_bytes(r), 29);
    CHECK_STR(rn_recording_error(r), NULL);
    rn_recording_close(r);
    check_file(&s, ".1", "one\ntwo\n");
    check_file(&s, ".2", "more than a part\n");
    check_file(&s, "", "end\n");
    CHECK_EQ(stat(s.path, &found), 0);
    CHECK_EQ(found.st_mode & 0777, 0600);
    stage_close(&s);
}

/* A second run goes on with the numbers of the first, also where the first has gaps. */
static void test_parts_of_an_earlier_run_are_kept(void **state)
{
    static const char *const runs[] = {"first 1\n", "second 1\n"};
    char path[80], aside[80];
    stage s;
    (void)state;

    stage_open(&s);
    for (size_t i = 0; i < 2; i++) {
        rn_recording *r = recording_open(&s, 8);

        CHECK_EQ(rn_recording_write(r, runs[i], strlen(runs[i])), RATION_OK);
        CHECK_EQ(rn_recording_write(r, "end\n", 4), RATION_OK);
        CHECK_STR(rn_recording_error(r), NULL);
        rn_recording_close(r);
    }
    check_file(&s, ".1", "first 1\n");
    check_file(&s, ".2", "second 1\n");
    check_file(&s, ".old", "end\n");

    (void)snprintf(path, sizeof path, "%s.1", s.path);
    (void)snprintf(aside, sizeof aside, "%s.3", s.path);
    CHECK_EQ(rename(path, aside), 0);
    rn_recording *r = recording_open(&s, 8);
    CHECK_EQ(rn_recording_write(r, "third 1\n", 8), RATION_OK);
    CHECK_EQ(rn_recording_write(r, "third 2\n", 8), RATION_OK);
    rn_recording_close(r);
    check_file(&s, ".1", "third 1\n");
    check_file(&s, ".2", "second 1\n");
    check_file(&s, ".3", "first 1\n");
    check_file(&s, ".4", "third 2\n");
    stage_close(&s);
}

static void test_an_earlier_run_is_kept(void **state)
{
    stage s;
    (void)state;

    stage_open(&s);
    for (const char *run = "12"; *run != '\0'; run++) {
        rn_recording *r = recording_open(&s, 0);
        CHECK_EQ(rn_recording_write(r, run, 1), RATION_OK);
        rn_recording_close(r);
    }
    check_file(&s, ".old", "1");
    check_file(&s, "", "2");
    stage_close(&s);
}

/* Ports that are taken, say: the process ends after it has opened its recording. */
static void test_a_start_that_fails(void **state)
{
    stage s;
    rn_net_error error;
    (void)state;

    stage_open(&s);
    for (const char *run = "123"; *run != '\0'; run++) {
        const rn_recording_options options = {.loop = s.loop, .log = &s.log, .path = s.path};
        rn_recording *r = NULL;

        CHECK_EQ(rn_recording_open(&options, &r, &error), RATION_OK);
        CHECK_EQ(rn_recording_write(r, run, 1), RATION_OK);
        if (*run != '3')
            CHECK_EQ(rn_recording_begin(r), RATION_OK);
        rn_recording_close(r);
    }
    check_file(&s, ".old", "1");
    check_file(&s, "", "2");
    stage_close(&s);
}

static void test_another_process_records(void **state)
{
    stage s;
    rn_net_error error;
    rn_recording *second = NULL;
    (void)state;

    stage_open(&s);
    rn_recording *first = recording_open(&s, 8);
    const rn_recording_options options = {.loop = s.loop, .log = &s.log, .path = s.path};
    for (int part = 0; part < 2; part++) {
        CHECK_EQ(rn_recording_open(&options, &second, &error), RATION_ERR_IO);
        CHECK(strstr(error.text, "calls.jsonl: another process records into it") != NULL);
        CHECK_EQ(rn_recording_write(first, "a whole part", 12), RATION_OK);
    }
    rn_recording_close(first);
    second = recording_open(&s, 0);
    rn_recording_close(second);
    stage_close(&s);
}

static void test_a_full_disk(void **state)
{
    stage s;
    struct stat found;
    (void)state;

    stage_open(&s);
    (void)snprintf(s.path, sizeof s.path, "/dev/full");
    rn_recording *r = recording_open(&s, 0);
    CHECK_EQ(rn_recording_write(r, "x", 1), RATION_ERR_IO);
    CHECK_STR(rn_recording_error(r), "cannot write: No space left on device");
    CHECK_EQ(rn_recording_write(r, "y", 1), RATION_ERR_IO);
    rn_recording_failed(r, RATION_ERR_NOMEM);
    CHECK_STR(rn_recording_error(r), "cannot write: No space left on device");
    CHECK_EQ(rn_recording_bytes(r), 0);
    rn_recording_close(r);
    CHECK(stat("/dev/full", &found) == 0 && S_ISCHR(found.st_mode));
    (void)snprintf(s.path, sizeof s.path, "%s/calls.jsonl", s.folder);
    stage_close(&s);
}

static void test_no_such_folder(void **state)
{
    stage s;
    rn_net_error error;
    rn_recording *r = NULL;
    (void)state;

    stage_open(&s);
    const rn_recording_options options = {.loop = s.loop, .log = &s.log, .path = "/nonexistent/x"};
    CHECK_EQ(rn_recording_open(&options, &r, &error), RATION_ERR_IO);
    CHECK_STR(error.text, "/nonexistent/x: No such file or directory");
    CHECK(r == NULL);
    rn_recording_close(NULL);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_parts_of_an_earlier_run_are_kept),
        cmocka_unit_test(test_an_earlier_run_is_kept),
        cmocka_unit_test(test_a_start_that_fails),
        cmocka_unit_test(test_another_process_records),
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_no_such_folder),
    };

    return cmocka_run_group_tests_name("recording", tests, NULL, NULL);
}
