/* SPDX-License-Identifier: MIT */
/* Work of another thread: once, then its end on the loop; and whoever waits for it. */
#include <pthread.h>

#include "net/work.h"

#include "support/check.h"

typedef struct job {
    pthread_t thread;
    int runs;
    int ends;
} job;

static void job_runs(void *user)
{
    job *j = user;

    j->thread = pthread_self();
    j->runs++;
}

static void job_ends(void *user)
{
    job *j = user;

    CHECK_EQ(j->runs, 1);
    j->ends++;
}

static void it_runs_elsewhere_and_ends_here(void **state)
{
    rn_loop *loop = NULL;
    rn_work *work = NULL;
    job j = {.runs = 0};

    (void)state;
    CHECK_EQ(rn_loop_new(&loop), RATION_OK);
    CHECK_EQ(rn_work_start(loop, job_runs, job_ends, &j, &work), RATION_OK);
    CHECK_EQ(j.ends, 0);
    rn_loop_run(loop);
    CHECK_EQ(j.runs, 1);
    CHECK_EQ(j.ends, 1);
    CHECK(pthread_equal(j.thread, pthread_self()) == 0);
    rn_loop_free(loop);
}

/* More than the pool has threads: some are taken back before they have begun, some are waited for. */
static void whoever_waits_has_it_done(void **state)
{
    enum { COUNT = 64 };
    rn_loop *loop = NULL;
    rn_work *works[COUNT];
    job jobs[COUNT];

    (void)state;
    memset(jobs, 0, sizeof jobs);
    CHECK_EQ(rn_loop_new(&loop), RATION_OK);
    for (size_t i = 0; i < COUNT; i++)
        CHECK_EQ(rn_work_start(loop, job_runs, job_ends, &jobs[i], &works[i]), RATION_OK);
    for (size_t i = 0; i < COUNT; i++) {
        const size_t k = COUNT - 1 - i;

        if (k % 3 != 0) {
            rn_work_join(works[k]);
            CHECK_EQ(jobs[k].runs, 1);
        }
    }
    rn_loop_run(loop);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(jobs[i].runs, 1);
        CHECK_EQ(jobs[i].ends, i % 3 == 0);
    }
    rn_loop_free(loop);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_runs_elsewhere_and_ends_here),
        cmocka_unit_test(whoever_waits_has_it_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
