/* SPDX-License-Identifier: MIT */
/*
 * `ration top`: the status, live, on a terminal.
 *
 * ncurses draws; each second, and after each key, the screen is drawn whole from the last view. A gateway that does not
 * answer shows as a line, with what was last seen below it, until it is back.
 *
 * A signal that ends it is only noted, for ncurses cannot be trusted inside a handler: what it was interrupted in may
 * hold what putting the terminal back needs.
 *
 * Invariant: whatever ends the program, the terminal is put back (`endwin`), before anything is printed.
 */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <curses.h>

#include <ration/types.h>

#include "cli/watch.h"

#define PERIOD_MS INT64_C(1000)
#define ESCAPE 27

typedef struct top_run {
    rn_watch_options options;
    rn_view view;
    bool seen;       /* `view` is of some gateway */
    char error[512]; /* of the last look; "": it went well */
    char filter[64];
    bool typing; /* a filter */
    bool paused;
    size_t first; /* row at the top */
    int64_t looked_ms;
} top_run;

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

/* The signal that has come; 0: none. */
static volatile sig_atomic_t ended;

static void note_end(int signum)
{
    ended = signum;
}

static void heed_ends(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        (void)sigaction(ends[i], &action, NULL);
}

static int64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void look(top_run *run)
{
    rn_view view;

    run->error[0] = '\0';
    run->looked_ms = now_ms();
    if (rn_watch_look(&run->options, &view, run->error, sizeof run->error) != RATION_OK) {
        rn_view_fini(&view);
        return;
    }
    rn_view_fini(&run->view);
    run->view = view;
    run->seen = true;
}

static bool row_matches(const top_run *run, const rn_view_row *row)
{
    return run->filter[0] == '\0' || strstr(row->limit, run->filter) != NULL || strstr(row->key, run->filter) != NULL;
}

static size_t rows_matching(const top_run *run)
{
    size_t count = 0;

    for (size_t i = 0; i < run->view.row_count; i++)
        count += row_matches(run, &run->view.rows[i]);
    return count;
}

static void put(int line, attr_t attributes, const char *text)
{
    (void)attron(attributes);
    (void)mvaddnstr(line, 0, text, -1);
    (void)attroff(attributes);
}

/* What is limited, at most a third of the screen. Returns the next line. */
static int draw_words(const top_run *run, int line)
{
    const size_t room = LINES > 12 ? (size_t)LINES / 3 : 2;

    if (run->seen && run->view.word_count == 0)
        put(line++, A_NORMAL, "Nothing is limited now.");
    for (size_t i = 0; i < run->view.word_count && i < room; i++)
        put(line++, A_BOLD, run->view.words[i]);
    if (run->view.word_count > room) {
        char more[64];

        (void)snprintf(more, sizeof more, "... and %zu more", run->view.word_count - room);
        put(line++, A_DIM, more);
    }
    return line + 1;
}

static void draw_rows(const top_run *run, int line)
{
    char text[1024];
    size_t skip = run->first;

    rn_view_line(NULL, (size_t)COLS, text, sizeof text);
    put(line++, A_REVERSE, text);
    for (size_t i = 0; i < run->view.row_count && line < LINES - 1; i++) {
        const rn_view_row *row = &run->view.rows[i];

        if (!row_matches(run, row))
            continue;
        if (skip > 0) {
            skip--;
            continue;
        }
        rn_view_line(row, (size_t)COLS, text, sizeof text);
        put(line++, row->binds ? A_BOLD : A_NORMAL, text);
    }
}

static void draw(const top_run *run)
{
    char foot[256];

    (void)erase();
    put(0, A_BOLD, run->seen ? run->view.head : "ration");
    if (run->error[0] != '\0')
        put(1, A_REVERSE, run->error);
    draw_rows(run, draw_words(run, 2));
    if (run->typing) {
        (void)snprintf(foot, sizeof foot, "/%s_   Enter: keep, Esc: none", run->filter);
    } else {
        (void)snprintf(foot, sizeof foot,
                       "q quit   s sort: %s   / filter%s%s   p pause%s   arrows, page keys   %zu rows",
                       rn_view_order_name(run->options.order), run->filter[0] != '\0' ? ": " : "", run->filter,
                       run->paused ? "d" : "", rows_matching(run));
    }
    put(LINES - 1, A_DIM, foot);
    (void)refresh();
}

static void type(top_run *run, int key)
{
    const size_t size = strlen(run->filter);

    if (key == '\n' || key == KEY_ENTER) {
        run->typing = false;
    } else if (key == ESCAPE) {
        run->typing = false;
        run->filter[0] = '\0';
    } else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && size > 0) {
        run->filter[size - 1] = '\0';
    } else if (key >= ' ' && key < 127 && size + 1 < sizeof run->filter) {
        run->filter[size] = (char)key;
        run->filter[size + 1] = '\0';
    }
    run->first = 0;
}

static void scroll_by(top_run *run, long rows)
{
    const long count = (long)rows_matching(run);
    long first = (long)run->first + rows;

    if (first > count - 1)
        first = count - 1;
    run->first = first > 0 ? (size_t)first : 0;
}

static void act(top_run *run, int key)
{
    const long page = LINES > 6 ? LINES - 6 : 1;

    switch (key) {
    case 's':
        run->options.order = (rn_view_order)((run->options.order + 1) % RN_VIEW_ORDERS);
        rn_view_sort(&run->view, run->options.order);
        break;
    case '/':
        run->typing = true;
        break;
    case 'p':
        run->paused = !run->paused;
        break;
    case KEY_UP:
    case 'k':
        scroll_by(run, -1);
        break;
    case KEY_DOWN:
    case 'j':
        scroll_by(run, 1);
        break;
    case KEY_PPAGE:
        scroll_by(run, -page);
        break;
    case KEY_NPAGE:
        scroll_by(run, page);
        break;
    case KEY_HOME:
        run->first = 0;
        break;
    case KEY_END:
        scroll_by(run, (long)run->view.row_count);
        break;
    default:
        break;
    }
}

static void watch(top_run *run)
{
    while (ended == 0) {
        const int64_t waited = now_ms() - run->looked_ms;

        if (!run->paused && waited >= PERIOD_MS)
            look(run);
        draw(run);

        const int64_t left = run->paused ? PERIOD_MS : PERIOD_MS - (now_ms() - run->looked_ms);
        timeout(left > 0 ? (int)left : 0);
        const int key = getch();
        if (key == ERR || key == KEY_RESIZE)
            continue;
        if (run->typing) {
            type(run, key);
        } else if (key == 'q' || key == 'Q') {
            return;
        } else {
            act(run, key);
        }
    }
}

int rn_cmd_top(const rn_command *self, int argc, char **argv)
{
    top_run run = {.first = 0};

    if (!rn_watch_arguments(self, argc, argv, true, &run.options))
        return RN_EXIT_USAGE;
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
        (void)fprintf(stderr, "ration top: needs a terminal; `ration status` prints the same\n");
        return RN_EXIT_USAGE;
    }
    (void)setlocale(LC_CTYPE, "");
    run.options.fetch.timeout_ms = 2 * PERIOD_MS;

    SCREEN *screen = newterm(NULL, stdout, stdin);
    if (screen == NULL) {
        (void)fprintf(stderr, "ration top: no such terminal; see TERM\n");
        return RN_EXIT_USAGE;
    }
    heed_ends(note_end);
    (void)cbreak();
    (void)noecho();
    (void)curs_set(0);
    (void)keypad(stdscr, TRUE);
    look(&run);
    watch(&run);
    (void)endwin();
    delscreen(screen);
    rn_view_fini(&run.view);
    if (ended != 0) {
        heed_ends(SIG_DFL);
        (void)raise(ended);
    }
    return RN_EXIT_OK;
}
