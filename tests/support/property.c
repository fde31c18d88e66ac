/* SPDX-License-Identifier: MIT */
/*
 * Random choices, recorded so that they can be replayed and made simpler.
 *
 * A run either draws from a seed, or reads a given sequence and takes 0 once that has ended. Either way what was drawn
 * is written down. Shrinking edits the sequence, not the values made of it: it deletes stretches of choices, then
 * lowers single ones, and keeps an edit whenever the property still breaks. So any generator shrinks, without code of
 * its own.
 *
 * Invariant: `used` <= CHOICES_MAX, and the first `used` entries of `made` reproduce the run.
 */

#include "support/property.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICES_MAX = 1 << 16, SHRINK_RUNS_MAX = 4000 };

struct choices {
    uint64_t random;      /* state of the generator */
    const uint64_t *plan; /* choices to take; NULL: draw them */
    size_t planned;
    const uint8_t *bytes; /* a fuzzer's bytes to take them from */
    size_t byte_count;
    uint64_t made[CHOICES_MAX];
    size_t used;
    bool aloud; /* print the notes and what broke */
    jmp_buf broken;
};

/* splitmix64 */
static uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t bytes_next(choices *c, uint64_t bound)
{
    uint64_t value = 0;

    for (uint64_t left = bound; left > 0 && c->byte_count > 0; left >>= 8) {
        value = value << 8 | *c->bytes++;
        c->byte_count--;
    }
    return value;
}

uint64_t choose(choices *c, uint64_t bound)
{
    uint64_t value = 0;

    if (c->used == CHOICES_MAX)
        return 0;
    if (c->bytes != NULL) {
        value = bytes_next(c, bound);
    } else if (c->plan == NULL) {
        value = random_next(&c->random);
    } else if (c->used < c->planned) {
        value = c->plan[c->used];
    }
    if (value > bound)
        value %= bound + 1;
    c->made[c->used++] = value;
    return value;
}

int64_t choose_from(choices *c, int64_t low, int64_t high)
{
    return (int64_t)((uint64_t)low + choose(c, (uint64_t)high - (uint64_t)low));
}

uint64_t choose_wide(choices *c, uint64_t bound)
{
    uint64_t width = 0;

    while (width < 64 && bound >> width != 0)
        width++;

    const uint64_t bits = choose(c, width);
    const uint64_t most = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;

    return choose(c, most < bound ? most : bound);
}

void property_note(choices *c, const char *format, ...)
{
    va_list arguments;

    if (!c->aloud)
        return;
    va_start(arguments, format);
    (void)fputs("  ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
}

void property_hold(choices *c, bool holds, const char *what, const char *file, int line)
{
    if (holds)
        return;
    if (c->aloud)
        (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    longjmp(c->broken, 1);
}

static bool run_holds(choices *c, property_fn *property, void *context)
{
    c->used = 0;
    if (setjmp(c->broken) != 0)
        return false;
    property(c, context);
    return true;
}

typedef struct shrinker {
    choices *c;
    property_fn *property;
    void *context;
    uint64_t best[CHOICES_MAX]; /* the simplest sequence that still breaks it */
    size_t count;
    uint64_t trial[CHOICES_MAX];
    unsigned runs;
} shrinker;

/* Keeps the first `count` of `trial` as the best if they break the property too. */
static bool shrink_try(shrinker *s, size_t count)
{
    if (s->runs >= SHRINK_RUNS_MAX)
        return false;
    s->runs++;
    s->c->plan = s->trial;
    s->c->planned = count;
    if (run_holds(s->c, s->property, s->context))
        return false;
    s->count = s->c->used;
    memcpy(s->best, s->c->made, s->count * sizeof s->best[0]);
    return true;
}

static bool shrink_delete(shrinker *s, size_t stretch)
{
    bool better = false;

    for (size_t at = s->count; at >= stretch; at--) {
        const size_t from = at - stretch;

        if (at > s->count)
            continue;
        memcpy(s->trial, s->best, from * sizeof s->trial[0]);
        memcpy(s->trial + from, s->best + at, (s->count - at) * sizeof s->trial[0]);
        better |= shrink_try(s, s->count - stretch);
    }
    return better;
}

static bool shrink_lower(shrinker *s)
{
    bool better = false;

    for (size_t i = 0; i < s->count; i++) {
        for (uint64_t step = s->best[i]; step > 0;) {
            memcpy(s->trial, s->best, s->count * sizeof s->trial[0]);
            s->trial[i] -= step;
            if (!shrink_try(s, s->count)) {
                step /= 2;
                continue;
            }
            better = true;
            if (i >= s->count)
                break;
            step = step < s->best[i] ? step : s->best[i];
        }
    }
    return better;
}

static void shrink(shrinker *s)
{
    bool better = true;

    while (better && s->runs < SHRINK_RUNS_MAX) {
        better = false;
        for (size_t stretch = 32; stretch > 0; stretch /= 2)
            better |= shrink_delete(s, stretch);
        better |= shrink_lower(s);
    }
}

static void report(shrinker *s, const char *name, uint64_t seed)
{
    (void)fprintf(stderr, "%s: broken; the simplest case found, of %zu choices:\n", name, s->count);
    s->c->plan = s->best;
    s->c->planned = s->count;
    s->c->aloud = true;
    (void)run_holds(s->c, s->property, s->context);
    (void)fprintf(stderr, "replay: %" PRIu64 "\n", seed);
}

static bool seed_holds(choices *c, const char *name, property_fn *property, void *context, uint64_t seed)
{
    c->random = seed;
    c->plan = NULL;
    if (run_holds(c, property, context))
        return true;

    shrinker *s = calloc(1, sizeof *s);

    if (s == NULL)
        return false;
    *s = (shrinker){.c = c, .property = property, .context = context, .count = c->used};
    memcpy(s->best, c->made, c->used * sizeof s->best[0]);
    shrink(s);
    report(s, name, seed);
    free(s);
    return false;
}

bool property_run(const char *name, property_fn *property, void *context, uint64_t runs)
{
    const char *only = getenv("PROPERTY_SEED");
    const char *times = getenv("PROPERTY_RUNS");
    choices *c = calloc(1, sizeof *c);
    bool holds = c != NULL;

    if (times != NULL)
        runs *= strtoull(times, NULL, 10);
    if (only != NULL) {
        holds = holds && seed_holds(c, name, property, context, strtoull(only, NULL, 10));
        runs = 0;
    }
    for (uint64_t seed = 1; holds && seed <= runs; seed++)
        holds = seed_holds(c, name, property, context, seed);
    free(c);
    return holds;
}

void property_fuzz(property_fn *property, void *context, const uint8_t *data, size_t size)
{
    static const uint8_t none;
    choices *c = calloc(1, sizeof *c);

    if (c == NULL)
        abort();
    for (int run = 0; run < 2; run++) {
        c->bytes = data != NULL ? data : &none;
        c->byte_count = size;
        if (run_holds(c, property, context))
            break;
        if (c->aloud)
            abort();
        c->aloud = true; /* once more, for the reader */
    }
    free(c);
}
