/* SPDX-License-Identifier: MIT */
/*
 * `ration ledger show|export`: what outlives the gateway, for people and for programs.
 *
 * The file is opened to be read only, so a running gateway is not disturbed. The salt of credential keys is a secret,
 * and in neither. Columns come from the ledger's own tables, so nothing that is kept is forgotten here.
 *
 * A table is gone through twice, for the widths of its columns and to be printed. What stands in a key may come from
 * clients: what a terminal would obey is shown as a question mark.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "cli/cli.h"
#include "ledger/columns.h"
#include "ledger/ledger.h"
#include "net/clock.h"
#include "trace/state.h"

#define CELL_BYTES 512
#define KEY_SHOWN 60
#define COLUMNS_MAX 8
#define LINE_MAX_BYTES ((size_t)64 << 20)

/* A ledger that was opened, and all that is in it. */
typedef struct contents {
    const char *path;
    rn_ledger *ledger;
    ration_state state;
    const rn_ledger_run *runs;
    size_t run_count;
} contents;

/* ---- cells ---- */

/* A text with nothing in it that a terminal would obey. */
static void text_put(rn_builder *b, ration_text text, size_t most)
{
    const bool is_utf8 = rn_text_is_utf8(text);

    size_t i = 0;

    for (; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];

        if (i >= most && (c & 0xc0) != 0x80) /* not within a character */
            break;

        const bool c1 = c == 0xc2 && i + 1 < text.size && (unsigned char)text.data[i + 1] < 0xa0;
        const bool obeyed = c < 0x20 || c == 0x7f || c1 || (c >= 0x80 && !is_utf8);

        if (obeyed) {
            rn_builder_char(b, '?');
        } else {
            rn_builder_char(b, text.data[i]);
        }
        if (c1)
            i++;
    }
    if (i < text.size)
        rn_builder_str(b, "...");
}

static void name_put(rn_builder *b, const ration_record *record)
{
    text_put(b, record->provider, KEY_SHOWN);
    if (record->limit.data != NULL) {
        rn_builder_char(b, '/');
        text_put(b, record->limit, KEY_SHOWN);
    }
}

static void instant_put(rn_builder *b, ration_time at)
{
    if (at.us == RATION_NEVER_US) {
        rn_builder_char(b, '-');
    } else {
        rn_builder_instant(b, at);
    }
}

static void micro_or_dash(rn_builder *b, bool is_set, int64_t value)
{
    if (is_set) {
        rn_builder_micro(b, value);
    } else {
        rn_builder_char(b, '-');
    }
}

static void quota_cell(rn_builder *b, const ration_record *record, int column)
{
    const ration_quota_record *q = &record->u.quota;

    switch (column) {
    case 0:
        if (q->window_start.us < q->window_end.us) {
            instant_put(b, q->window_start);
            rn_builder_str(b, " to ");
            instant_put(b, q->window_end);
        } else {
            rn_builder_str(b, "the last ");
            rn_builder_duration(b, q->rolling_us);
        }
        break;
    case 1:
        rn_builder_micro(b, q->used);
        break;
    case 2:
        micro_or_dash(b, q->mark != RATION_UNSET, q->mark);
        break;
    case 3:
        micro_or_dash(b, q->has_remaining || q->exhausted, q->exhausted ? 0 : q->remaining);
        break;
    case 4:
        micro_or_dash(b, q->max != RATION_UNSET, q->max);
        break;
    default:
        rn_builder_micro(b, q->external);
        break;
    }
}

static void bucket_cell(rn_builder *b, const ration_record *record, int column)
{
    (void)column;
    rn_builder_micro(b, record->u.available);
}

static void adaptive_cell(rn_builder *b, const ration_record *record, int column)
{
    const ration_adaptive_record *a = &record->u.adaptive;

    if (column == 0) {
        rn_builder_int(b, a->limit);
    } else {
        instant_put(b, a->decreased ? a->decreased_at : ration_time_of(RATION_NEVER_US));
    }
}

static void penalty_cell(rn_builder *b, const ration_record *record, int column)
{
    const ration_penalty_record *p = &record->u.penalty;

    switch (column) {
    case 0:
        instant_put(b, p->began);
        break;
    case 1:
        instant_put(b, p->until);
        break;
    default:
        rn_builder_int(b, p->events);
        break;
    }
}

static void breaker_cell(rn_builder *b, const ration_record *record, int column)
{
    if (column == 0) {
        rn_builder_str(b, ration_circuit_state_name(record->u.breaker.state));
    } else {
        instant_put(b, record->u.breaker.until);
    }
}

static void pause_cell(rn_builder *b, const ration_record *record, int column)
{
    (void)column;
    rn_builder_str(b, record->u.paused ? "yes" : "no more");
}

/* What `show` says of each type of record, after its name and key and before its time. */
static const struct section {
    const char *title;
    const char *heads[COLUMNS_MAX];
    void (*cell)(rn_builder *b, const ration_record *record, int column);
} sections[RN_TABLES] = {
    [RATION_RECORD_QUOTA] = {"quotas",
                             {"window", "used", "mark", "observed left", "observed max", "others", NULL},
                             quota_cell},
    [RATION_RECORD_BUCKET] = {"slow buckets", {"available", NULL}, bucket_cell},
    [RATION_RECORD_ADAPTIVE] = {"adaptive limits", {"limit", "decreased", NULL}, adaptive_cell},
    [RATION_RECORD_PENALTY] = {"penalties", {"began", "until", "429s", NULL}, penalty_cell},
    [RATION_RECORD_BREAKER] = {"circuits", {"state", "tries again", NULL}, breaker_cell},
    [RATION_RECORD_PAUSE] = {"paused by operators", {"paused", NULL}, pause_cell},
};

/* ---- tables ---- */

/* A table: `cell` writes what stands in a row and a column, and says whether there is such a row. */
typedef struct table {
    const char *title;
    const char *heads[COLUMNS_MAX + 4];
    size_t columns;
    size_t rows;
    void (*cell)(rn_builder *b, const void *ctx, size_t row, size_t column);
    const void *ctx;
} table;

/* Characters, not bytes: UTF-8 has gone through `text_put`. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void cell_make(const table *t, size_t row, size_t column, char *buffer)
{
    rn_builder b;

    rn_builder_init(&b, buffer, CELL_BYTES);
    t->cell(&b, t->ctx, row, column);
}

static void cell_print(const char *text, size_t width, bool last)
{
    (void)fputs(text, stdout);
    for (size_t i = width_of(text); !last && i < width + 2; i++)
        (void)putchar(' ');
}

static void table_print(const table *t)
{
    size_t widths[COLUMNS_MAX + 4];
    char cell[CELL_BYTES];

    if (t->rows == 0)
        return;
    for (size_t c = 0; c < t->columns; c++) {
        widths[c] = width_of(t->heads[c]);
        for (size_t r = 0; r < t->rows; r++) {
            cell_make(t, r, c, cell);
            widths[c] = width_of(cell) > widths[c] ? width_of(cell) : widths[c];
        }
    }
    (void)printf("\n%s\n", t->title);
    for (size_t c = 0; c < t->columns; c++) {
        (void)fputs(c == 0 ? "  " : "", stdout);
        cell_print(t->heads[c], widths[c], c + 1 == t->columns);
    }
    (void)putchar('\n');
    for (size_t r = 0; r < t->rows; r++) {
        for (size_t c = 0; c < t->columns; c++) {
            (void)fputs(c == 0 ? "  " : "", stdout);
            cell_make(t, r, c, cell);
            cell_print(cell, widths[c], c + 1 == t->columns);
        }
        (void)putchar('\n');
    }
}

/* The records of one type; they stand together, because each type is a table of the ledger. */
typedef struct slice {
    const struct section *section;
    const ration_record *records;
    size_t between; /* columns of the section */
} slice;

static void record_cell(rn_builder *b, const void *ctx, size_t row, size_t column)
{
    const slice *s = ctx;
    const ration_record *record = &s->records[row];

    if (column == 0) {
        name_put(b, record);
    } else if (column == 1) {
        text_put(b, record->key, KEY_SHOWN);
    } else if (column < 2 + s->between) {
        s->section->cell(b, record, (int)column - 2);
    } else {
        instant_put(b, record->at);
    }
}

static void section_print(const contents *c, ration_record_type type)
{
    slice s = {.section = &sections[type]};
    table t = {.title = s.section->title, .heads = {"limit", "key"}, .columns = 2, .cell = record_cell, .ctx = &s};

    if (type == RATION_RECORD_BREAKER)
        t.heads[0] = "provider";
    for (; s.section->heads[s.between] != NULL; s.between++)
        t.heads[t.columns++] = s.section->heads[s.between];
    t.heads[t.columns++] = "as of";
    for (size_t i = 0; i < c->state.count; i++) {
        if (c->state.records[i].type != type)
            continue;
        if (t.rows++ == 0)
            s.records = &c->state.records[i];
    }
    table_print(&t);
}

static void run_cell(rn_builder *b, const void *ctx, size_t row, size_t column)
{
    const rn_ledger_run *run = &((const contents *)ctx)->runs[row];

    switch (column) {
    case 0:
        text_put(b, run->job, KEY_SHOWN);
        break;
    case 1:
        instant_put(b, run->at);
        break;
    case 2:
        rn_builder_int(b, run->run.requests);
        break;
    case 3:
        rn_builder_int(b, run->run.retries);
        break;
    default:
        rn_builder_int(b, run->run.fan_out);
        break;
    }
}

static void story_print(const contents *c)
{
    const rn_ledger_story *told = rn_ledger_told(c->ledger);
    char line[CELL_BYTES];
    rn_builder b;

    rn_builder_init(&b, line, sizeof line);
    rn_builder_str(&b, "opened ");
    instant_put(&b, told->opened_at);
    rn_builder_str(&b, " by process ");
    rn_builder_int(&b, told->pid);
    rn_builder_str(&b, " (ration ");
    text_put(&b, ration_text_of(told->version), sizeof told->version);
    rn_builder_str(&b, told->clean ? "), closed in order " : "), in use since, or its process was killed");
    if (told->clean)
        instant_put(&b, told->closed_at);
    (void)printf("%s\n", line);
}

static int show(const contents *c)
{
    const table runs = {.title = "runs of jobs",
                        .heads = {"job", "at", "requests", "retries", "children"},
                        .columns = 5,
                        .rows = c->run_count,
                        .cell = run_cell,
                        .ctx = c};

    story_print(c);
    for (int type = 0; type < (int)RN_TABLES; type++)
        section_print(c, (ration_record_type)type);
    table_print(&runs);
    if (c->state.count + c->run_count == 0)
        (void)puts("nothing is kept in it yet");
    return RN_EXIT_OK;
}

/* ---- JSON Lines ---- */

static void story_write(rn_output *out, const rn_ledger_story *told)
{
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "type", "ledger");
    rn_output_str(out, "version", told->version);
    rn_output_bool(out, "clean", told->clean);
    rn_output_int(out, "pid", told->pid);
    if (told->opened_at.us != RATION_NEVER_US)
        rn_output_ms(out, "openedAt", told->opened_at.us);
    if (told->closed_at.us != RATION_NEVER_US)
        rn_output_ms(out, "closedAt", told->closed_at.us);
    if (told->unclean_at.us != 0)
        rn_output_ms(out, "uncleanAt", told->unclean_at.us);
    rn_output_close(out, '}');
}

static void run_write(rn_output *out, const rn_ledger_run *run)
{
    rn_output_open(out, NULL, '{');
    rn_output_str(out, "type", "run");
    rn_output_text(out, "job", run->job);
    rn_output_ms(out, "at", run->at.us);
    rn_output_int(out, "requests", run->run.requests);
    rn_output_int(out, "retries", run->run.retries);
    rn_output_int(out, "fanOut", run->run.fan_out);
    rn_output_close(out, '}');
}

/* A line goes out and its place is free again. */
static int line_end(rn_output *out)
{
    const int err = out->err;

    rn_output_newline(out);
    if (err == RATION_OK)
        (void)fwrite(out->data, 1, out->size, stdout);
    rn_output_clear(out);
    return err;
}

static int export_json(const contents *c)
{
    rn_output out;
    int err;

    rn_output_init(&out, rn_mem_default(), LINE_MAX_BYTES);
    story_write(&out, rn_ledger_told(c->ledger));
    err = line_end(&out);
    for (size_t i = 0; i < c->state.count && err == RATION_OK; i++) {
        rn_record_write(&out, &c->state.records[i]);
        err = line_end(&out);
    }
    for (size_t i = 0; i < c->run_count && err == RATION_OK; i++) {
        run_write(&out, &c->runs[i]);
        err = line_end(&out);
    }
    rn_output_fini(&out);
    if (err == RATION_OK)
        return RN_EXIT_OK;
    (void)fprintf(stderr, "ration ledger: %s: %s\n", c->path, ration_err_text(err));
    return RN_EXIT_USAGE;
}

/* ---- CSV ---- */

static const char *const csv_types[] = {
    [RATION_RECORD_QUOTA] = "quota",     [RATION_RECORD_BUCKET] = "bucket",   [RATION_RECORD_ADAPTIVE] = "adaptive",
    [RATION_RECORD_PENALTY] = "penalty", [RATION_RECORD_BREAKER] = "breaker", [RATION_RECORD_PAUSE] = "pause",
};

/* Every column of every table once, without the numbers that hold tables together. */
typedef struct csv {
    const char *names[64];
    size_t count;
} csv;

static const rn_column *column_find(const rn_table *from, const char *name)
{
    for (int i = 0; i < from->count; i++) {
        if (strcmp(from->columns[i].name, name) == 0)
            return &from->columns[i];
    }
    return NULL;
}

static void csv_add(csv *sheet, const char *name)
{
    for (size_t i = 0; i < sheet->count; i++) {
        if (strcmp(sheet->names[i], name) == 0)
            return;
    }
    if (sheet->count < sizeof sheet->names / sizeof sheet->names[0])
        sheet->names[sheet->count++] = name;
}

static csv csv_make(void)
{
    static const char *const of_runs[] = {"job", "at", "requests", "retries", "fan_out"};
    csv sheet = {.count = 0};

    for (size_t t = 0; t < RN_TABLES; t++) {
        for (int i = 0; i < rn_tables[t].count; i++) {
            if (rn_tables[t].columns[i].form != RN_FORM_ID)
                csv_add(&sheet, rn_tables[t].columns[i].name);
        }
    }
    for (size_t i = 0; i < sizeof of_runs / sizeof of_runs[0]; i++)
        csv_add(&sheet, of_runs[i]);
    return sheet;
}

/* RFC 4180: quotes where they are needed, and doubled inside. */
static void csv_text(ration_text text)
{
    bool quoted = false;

    for (size_t i = 0; i < text.size && !quoted; i++)
        quoted = text.data[i] == '"' || text.data[i] == ',' || text.data[i] == '\r' || text.data[i] == '\n';
    if (quoted)
        (void)putchar('"');
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"')
            (void)putchar('"');
        (void)putchar(text.data[i]);
    }
    if (quoted)
        (void)putchar('"');
}

static void csv_cell(const rn_column *column, const ration_record *record)
{
    char cell[64];
    rn_builder b;

    rn_builder_init(&b, cell, sizeof cell);
    if (column == NULL || !rn_column_is_set(column, record))
        return;
    switch (column->form) {
    case RN_FORM_TEXT:
    case RN_FORM_LIMIT:
        csv_text(*(const ration_text *)rn_column_at(column, record));
        return;
    case RN_FORM_INSTANT:
        if (rn_column_number(column, record) != 0) /* a rolling window has no begin and no end */
            instant_put(&b, ration_time_of(rn_column_number(column, record)));
        break;
    case RN_FORM_UNITS:
        rn_builder_micro(&b, rn_column_number(column, record));
        break;
    case RN_FORM_STATE:
        rn_builder_str(&b, ration_circuit_state_name(record->u.breaker.state));
        break;
    case RN_FORM_SPAN:
        rn_builder_ms(&b, rn_column_number(column, record));
        break;
    case RN_FORM_COUNT:
    case RN_FORM_SMALL:
    case RN_FORM_YES:
        rn_builder_int(&b, rn_column_number(column, record));
        break;
    case RN_FORM_ID:
        break;
    }
    (void)fputs(cell, stdout);
}

static void csv_record(const csv *sheet, const char *type, const rn_table *from, const ration_record *record)
{
    (void)fputs(type, stdout);
    for (size_t i = 0; i < sheet->count; i++) {
        (void)putchar(',');
        csv_cell(column_find(from, sheet->names[i]), record);
    }
    (void)fputs("\r\n", stdout);
}

/* A part of a quota as a row like the quota's own: what was used, and up to when. */
static void csv_parts(const csv *sheet, const char *type, const ration_record *record, const ration_part *parts,
                      size_t count)
{
    static const rn_column columns[] = {
        {"provider", RN_FORM_TEXT, offsetof(ration_record, provider), 0, false},
        {"limit_name", RN_FORM_TEXT, offsetof(ration_record, limit), 0, false},
        {"scope_key", RN_FORM_TEXT, offsetof(ration_record, key), 0, false},
        {"used", RN_FORM_UNITS, offsetof(ration_record, u.quota.used), 0, false},
        {"at", RN_FORM_INSTANT, offsetof(ration_record, at), 0, false},
    };
    static const rn_table of_parts = {"", RATION_RECORD_QUOTA, columns, 5, 0};
    ration_record part = *record;

    for (size_t i = 0; i < count; i++) {
        part.at = parts[i].last;
        part.u.quota.used = parts[i].units;
        csv_record(sheet, type, &of_parts, &part);
    }
}

static void csv_run(const csv *sheet, const rn_ledger_run *run)
{
    const int64_t numbers[] = {run->run.requests, run->run.retries, run->run.fan_out};
    static const char *const names[] = {"requests", "retries", "fan_out"};
    char cell[64];
    rn_builder b;

    (void)fputs("run", stdout);
    for (size_t i = 0; i < sheet->count; i++) {
        (void)putchar(',');
        rn_builder_init(&b, cell, sizeof cell);
        if (strcmp(sheet->names[i], "job") == 0)
            csv_text(run->job);
        if (strcmp(sheet->names[i], "at") == 0)
            instant_put(&b, run->at);
        for (size_t k = 0; k < 3; k++) {
            if (strcmp(sheet->names[i], names[k]) == 0)
                rn_builder_int(&b, numbers[k]);
        }
        (void)fputs(cell, stdout);
    }
    (void)fputs("\r\n", stdout);
}

static int export_csv(const contents *c)
{
    const csv sheet = csv_make();

    (void)fputs("type", stdout);
    for (size_t i = 0; i < sheet.count; i++)
        (void)printf(",%s", sheet.names[i]);
    (void)fputs("\r\n", stdout);
    for (size_t i = 0; i < c->state.count; i++) {
        const ration_record *record = &c->state.records[i];

        csv_record(&sheet, csv_types[record->type], &rn_tables[record->type], record);
        if (record->type == RATION_RECORD_QUOTA) {
            csv_parts(&sheet, "part", record, record->u.quota.parts, record->u.quota.part_count);
            csv_parts(&sheet, "timeline", record, record->u.quota.timeline, record->u.quota.timeline_count);
        }
    }
    for (size_t i = 0; i < c->run_count; i++)
        csv_run(&sheet, &c->runs[i]);
    return RN_EXIT_OK;
}

/* ---- the command ---- */

static int contents_open(contents *c, const char *path)
{
    rn_ledger_error error = {""};
    rn_clock clock;

    rn_clock_start(&clock);

    const rn_ledger_options options = {.path = path, .now = rn_clock_now(&clock), .read_only = true};
    int err = rn_ledger_open(&options, &c->ledger, &error);

    c->path = path;
    if (err == RATION_OK)
        err = rn_ledger_load_all(c->ledger, &c->state);
    if (err == RATION_OK)
        err = rn_ledger_load_runs(c->ledger, &c->runs, &c->run_count, &error);
    if (err == RATION_OK)
        return RN_EXIT_OK;
    if (error.text[0] != '\0') {
        (void)fprintf(stderr, "ration ledger: %s\n", error.text);
    } else {
        (void)fprintf(stderr, "ration ledger: %s: %s\n", path, ration_err_text(err));
    }
    return RN_EXIT_USAGE;
}

typedef struct ledger_arguments {
    const char *path;
    int (*run)(const contents *c);
} ledger_arguments;

static int arguments_read(const rn_command *self, int argc, char **argv, ledger_arguments *out)
{
    const bool exports = argc > 1 && strcmp(argv[1], "export") == 0;

    if (argc < 2)
        return rn_usage_error(self, "show or export?");
    if (!exports && strcmp(argv[1], "show") != 0)
        return rn_usage_error(self, "'%s' is neither show nor export", argv[1]);
    *out = (ledger_arguments){.run = exports ? export_json : show};
    for (int i = 2; i < argc; i++) {
        if (exports && strcmp(argv[i], "--format") == 0) {
            const char *format = ++i < argc ? argv[i] : "";

            if (strcmp(format, "json") != 0 && strcmp(format, "csv") != 0)
                return rn_usage_error(self, "--format is json or csv");
            out->run = strcmp(format, "csv") == 0 ? export_csv : export_json;
        } else if (argv[i][0] == '-') {
            return rn_usage_error(self, "unknown option '%s'", argv[i]);
        } else if (out->path != NULL) {
            return rn_usage_error(self, "one ledger at a time");
        } else {
            out->path = argv[i];
        }
    }
    return out->path != NULL && out->path[0] != '\0' ? RN_EXIT_OK : rn_usage_error(self, "which file?");
}

int rn_cmd_ledger(const rn_command *self, int argc, char **argv)
{
    ledger_arguments arguments = {.run = show};
    contents c = {.ledger = NULL};
    int status = arguments_read(self, argc, argv, &arguments);

    if (status != RN_EXIT_OK)
        return status;
    status = contents_open(&c, arguments.path);
    if (status == RN_EXIT_OK)
        status = rn_finish_output(arguments.run(&c));
    rn_ledger_abandon(c.ledger);
    return status;
}
