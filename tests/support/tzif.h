/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_TZIF_H
#define TESTS_SUPPORT_TZIF_H

/* TZif files in memory, so that a test says in one line what its zone does and needs no file of the machine. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TZIF_MAX 4096

typedef struct tzif_step {
    int64_t at; /* seconds since the epoch */
    int32_t offset;
} tzif_step;

typedef struct tzif {
    unsigned char bytes[TZIF_MAX];
    size_t size;
} tzif;

static inline void tzif_put(tzif *file, uint64_t value, size_t width)
{
    for (size_t i = width; i > 0; i--)
        file->bytes[file->size++] = (unsigned char)(value >> (8 * (i - 1)));
}

/* One header and table with times of `width` bytes. The first step holds before all others; its `at` is not used. */
static inline void tzif_table(tzif *file, char version, size_t width, const tzif_step *steps, size_t count)
{
    memcpy(file->bytes + file->size, "TZif", 4);
    file->size += 4;
    tzif_put(file, (unsigned char)version, 1);
    memset(file->bytes + file->size, 0, 15);
    file->size += 15;
    for (size_t i = 0; i < 3; i++)
        tzif_put(file, 0, 4);
    tzif_put(file, count - 1, 4);
    tzif_put(file, count, 4);
    tzif_put(file, 4, 4);
    for (size_t i = 1; i < count; i++)
        tzif_put(file, (uint64_t)steps[i].at, width);
    for (size_t i = 1; i < count; i++)
        tzif_put(file, i, 1);
    for (size_t i = 0; i < count; i++) {
        tzif_put(file, (uint32_t)steps[i].offset, 4);
        tzif_put(file, 0, 2);
    }
    memcpy(file->bytes + file->size, "LMT", 4);
    file->size += 4;
}

/** A version 2 file: steps, then the rule ("" for none). */
static inline void tzif_write(tzif *file, const tzif_step *steps, size_t count, const char *rule)
{
    const tzif_step nothing = {0, 0};

    file->size = 0;
    tzif_table(file, '2', 4, &nothing, 1);
    tzif_table(file, '2', 8, steps, count);
    tzif_put(file, '\n', 1);
    memcpy(file->bytes + file->size, rule, strlen(rule));
    file->size += strlen(rule);
    tzif_put(file, '\n', 1);
}

/** A file that is all rule. */
static inline void tzif_write_rule(tzif *file, const char *rule)
{
    const tzif_step nothing = {0, 0};

    tzif_write(file, &nothing, 1, rule);
}

#endif
