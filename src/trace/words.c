/* SPDX-License-Identifier: MIT */
/*
 * The nearest known word, for messages about unknown ones.
 *
 * Distance by optimal string alignment: three rows of the usual table, for a swap looks two rows back. Words longer
 * than WORD_MAX are never near anything. A guess that needs more than a third of the letters changed would be no
 * help.
 */
#include "trace/words.h"

#include <string.h>

#define WORD_MAX 32

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance(ration_text a, ration_text b)
{
    size_t rows[3][WORD_MAX + 1];

    for (size_t j = 0; j <= b.size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.size; i++) {
        size_t *const row = rows[i % 3];
        const size_t *const above = rows[(i - 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            const size_t changed = above[j - 1] + (a.data[i - 1] != b.data[j - 1]);

            row[j] = smaller(changed, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                row[j] = smaller(row[j], rows[(i - 2) % 3][j - 2] + 1);
        }
    }
    return rows[a.size % 3][b.size];
}

const char *rn_words_nearest(ration_text word, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t best = 0;

    if (word.size == 0 || word.size > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const ration_text known = ration_text_of(words[i]);

        if (known.size > WORD_MAX)
            continue;

        const size_t edits = distance(word, known);
        const size_t longer = word.size > known.size ? word.size : known.size;

        if (edits <= (longer + 2) / 3 && (nearest == NULL || edits < best)) {
            nearest = words[i];
            best = edits;
        }
    }
    return nearest;
}
