/* SPDX-License-Identifier: MIT */
/*
 * The plan for people: a line that says whether it fits, a table of jobs, one of limits, and what would have to change.
 *
 * A table is a function that writes one cell. It is walked twice, to find the widths of the columns and to write them,
 * so nothing is kept. Width is counted in characters of UTF-8.
 */
#include "base/units.h"
#include "jobs/parts.h"

#define CELL_SIZE 512
#define COLUMNS_MAX 8
#define LINE_SIZE 3072

typedef struct heading {
    const char *title;
    bool right; /* numbers stand at the right */
} heading;

typedef struct table {
    const rn_jobs *jobs;
    const heading *columns;
    size_t column_count;
    size_t row_count;
    void (*cell)(const rn_jobs *jobs, size_t row, size_t column, rn_builder *b);
} table;

static void put(rn_output *out, const char *text)
{
    rn_output_raw(out, ration_text_of(text));
}

static size_t width_of(const rn_builder *b)
{
    size_t width = 0;

    for (size_t i = 0; i < b->used; i++)
        width += ((unsigned char)b->data[i] & 0xC0) != 0x80;
    return width;
}

static void cell_build(const table *t, size_t row, size_t column, char buffer[CELL_SIZE], rn_builder *b)
{
    rn_builder_init(b, buffer, CELL_SIZE);
    if (row == 0) {
        rn_builder_str(b, t->columns[column].title);
    } else {
        t->cell(t->jobs, row - 1, column, b);
    }
}

static void spaces(rn_output *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put(out, " ");
}

static void cell_write(const table *t, size_t row, size_t column, size_t width, rn_output *out)
{
    char buffer[CELL_SIZE];
    rn_builder b;

    cell_build(t, row, column, buffer, &b);

    const size_t fill = width - width_of(&b);

    if (t->columns[column].right)
        spaces(out, fill);
    put(out, buffer);
    if (column + 1 == t->column_count) {
        put(out, "\n");
        return;
    }
    spaces(out, (t->columns[column].right ? 0 : fill) + 2);
}

static void table_write(const table *t, rn_output *out)
{
    size_t widths[COLUMNS_MAX] = {0};
    char buffer[CELL_SIZE];
    rn_builder b;

    for (size_t row = 0; row <= t->row_count; row++) {
        for (size_t c = 0; c < t->column_count; c++) {
            cell_build(t, row, c, buffer, &b);
            widths[c] = width_of(&b) > widths[c] ? width_of(&b) : widths[c];
        }
    }
    for (size_t row = 0; row <= t->row_count; row++) {
        for (size_t c = 0; c < t->column_count; c++)
            cell_write(t, row, c, widths[c], out);
    }
}

/* Two places, rounded up so that what is too much never looks as if it fitted. */
static void amount_write(rn_builder *b, int64_t micro)
{
    rn_builder_micro(b, rn_mul(rn_div_ceil(micro, 10000), 10000));
}

static void limit_write(rn_builder *b, const rn_scope_name *name)
{
    rn_builder_str(b, name->limit);
    rn_builder_str(b, " (");
    rn_builder_str(b, name->key);
    rn_builder_str(b, ")");
}

enum { JOB_NAME, JOB_PRIORITY, JOB_DESIRED, JOB_PLANNED, JOB_STRETCH, JOB_CALLS, JOB_BOUND, JOB_COLUMNS };

static const heading job_columns[JOB_COLUMNS] = {
    [JOB_NAME] = {"job", false},         [JOB_PRIORITY] = {"priority", false}, [JOB_DESIRED] = {"wanted", true},
    [JOB_PLANNED] = {"planned", true},   [JOB_STRETCH] = {"stretch", true},    [JOB_CALLS] = {"calls a run", true},
    [JOB_BOUND] = {"because of", false},
};

static void bound_write(const rn_jobs *jobs, const ration_job_plan *plan, rn_builder *b)
{
    if (plan->scope != RATION_PLAN_NONE)
        limit_write(b, rn_jobs_scope(jobs, plan->scope));
    if (plan->rate != RATION_PLAN_NONE)
        limit_write(b, rn_jobs_rate(jobs, plan->rate));
    if (!plan->feasible) {
        rn_builder_str(b, "DOES NOT FIT: a run takes ");
        rn_builder_span(b, plan->least_us);
    } else if (b->used == 0) {
        rn_builder_char(b, '-');
    }
}

static void job_cell(const rn_jobs *jobs, size_t row, size_t column, rn_builder *b)
{
    const ration_job_plan *plan = &jobs->plan->jobs[row];

    switch (column) {
    case JOB_NAME:
        rn_builder_str(b, jobs->jobs[row].job->name);
        break;
    case JOB_PRIORITY:
        rn_builder_str(b, rn_priority_name(jobs->jobs[row].job->priority));
        break;
    case JOB_DESIRED:
        rn_builder_span(b, plan->desired_us);
        break;
    case JOB_PLANNED:
        rn_builder_span(b, plan->effective_us);
        break;
    case JOB_STRETCH:
        amount_write(b, plan->stretch);
        break;
    case JOB_CALLS:
        amount_write(b, rn_job_calls(jobs, row));
        break;
    default:
        bound_write(jobs, plan, b);
    }
}

enum { LIMIT_NAME, LIMIT_BUDGET, LIMIT_SPAN, LIMIT_WANTED, LIMIT_PLANNED, LIMIT_END, LIMIT_COLUMNS };

static const heading limit_columns[LIMIT_COLUMNS] = {
    [LIMIT_NAME] = {"limit", false},   [LIMIT_BUDGET] = {"for jobs", true}, [LIMIT_SPAN] = {"within", true},
    [LIMIT_WANTED] = {"wanted", true}, [LIMIT_PLANNED] = {"planned", true}, [LIMIT_END] = {"lasts", false},
};

static void limit_cell(const rn_jobs *jobs, size_t row, size_t column, rn_builder *b)
{
    const ration_scope_plan *plan = &jobs->plan->scopes[row];

    switch (column) {
    case LIMIT_NAME:
        limit_write(b, rn_jobs_scope(jobs, row));
        break;
    case LIMIT_BUDGET:
        rn_builder_micro(b, plan->budget);
        break;
    case LIMIT_SPAN:
        rn_builder_span(b, plan->horizon_us);
        break;
    case LIMIT_WANTED:
        amount_write(b, plan->wanted);
        break;
    case LIMIT_PLANNED:
        amount_write(b, plan->projected);
        break;
    default:
        rn_builder_str(b, plan->feasible ? "yes" : "NO: until ");
        if (!plan->feasible)
            rn_builder_instant(b, ration_time_of(plan->exhausted_at.us / RATION_UNIT * RATION_UNIT));
    }
}

static void head_write(const rn_jobs *jobs, rn_output *out)
{
    char line[256];
    size_t later = 0;
    rn_builder b;

    for (size_t i = 0; i < jobs->count; i++)
        later += jobs->plan->jobs[i].effective_us > jobs->plan->jobs[i].desired_us;
    rn_builder_init(&b, line, sizeof line);
    rn_builder_str(&b, jobs->plan->feasible ? "The plan fits: " : "The plan DOES NOT FIT: ");
    if (later == 0) {
        rn_builder_str(&b, jobs->plan->feasible ? "every job runs as often as wanted.\n"
                                                : "there is no job that may be stretched.\n");
    } else {
        rn_builder_int(&b, (int64_t)later);
        rn_builder_str(&b, " of ");
        rn_builder_int(&b, (int64_t)jobs->count);
        rn_builder_str(&b, later == 1 ? " jobs runs less often than wanted.\n" : " jobs run less often than wanted.\n");
    }
    put(out, line);
}

void rn_jobs_table(const rn_jobs *jobs, rn_output *out)
{
    const table list = {jobs, job_columns, JOB_COLUMNS, jobs->count, job_cell};
    const table limits = {jobs, limit_columns, LIMIT_COLUMNS, jobs->keys.scope_count, limit_cell};
    bool first = true;

    if (jobs->plan == NULL || jobs->count == 0) {
        put(out, "There are no jobs to plan.\n");
        return;
    }
    head_write(jobs, out);
    put(out, "\n");
    table_write(&list, out);
    if (limits.row_count > 0) {
        put(out, "\n");
        table_write(&limits, out);
    }
    for (size_t i = 0; i < jobs->count; i++) {
        char line[LINE_SIZE];
        rn_builder b;

        rn_builder_init(&b, line, sizeof line);
        rn_builder_str(&b, first ? "\nWhat would have to change:\n  " : "  ");
        if (!rn_job_remedy(jobs, i, &b))
            continue;
        rn_builder_str(&b, "\n");
        first = false;
        put(out, line);
    }
}
