/* SPDX-License-Identifier: MIT */
/*
 * Recorded lines against those that come out.
 *
 * Two queues, of which at least one is empty between calls: as soon as both have a head, the heads are compared and
 * leave. Lines that are equal byte for byte, which is the rule in a recording, are not parsed.
 *
 * Invariant: `pending` is the sum of the sizes in both queues. On a difference the lines concerned stay in them, where
 * `difference` borrows them.
 */
#include "trace/verify.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "trace/canonical.h"
#include "trace/reader.h"

struct rn_verify_line {
    STAILQ_ENTRY(rn_verify_line) next;
    size_t number;
    size_t size;
    char data[];
};

void rn_verify_init(rn_verify *verify, const ration_allocator *mem)
{
    *verify = (rn_verify){.mem = mem};
    STAILQ_INIT(&verify->recorded);
    STAILQ_INIT(&verify->produced);
    rn_output_init(&verify->left, mem, RN_VERIFY_PENDING_MAX);
    rn_output_init(&verify->right, mem, RN_VERIFY_PENDING_MAX);
}

static ration_text line_text(const rn_verify_line *line)
{
    return (ration_text){line->data, line->size};
}

static void lines_drop(rn_verify *verify, struct rn_verify_lines *lines)
{
    rn_verify_line *const line = STAILQ_FIRST(lines);

    STAILQ_REMOVE_HEAD(lines, next);
    verify->pending -= line->size;
    rn_mem_free(verify->mem, line);
}

void rn_verify_fini(rn_verify *verify)
{
    while (!STAILQ_EMPTY(&verify->recorded))
        lines_drop(verify, &verify->recorded);
    while (!STAILQ_EMPTY(&verify->produced))
        lines_drop(verify, &verify->produced);
    rn_output_fini(&verify->left);
    rn_output_fini(&verify->right);
}

static int lines_add(rn_verify *verify, struct rn_verify_lines *lines, size_t number, ration_text text)
{
    if (text.size > RN_VERIFY_PENDING_MAX - verify->pending)
        return RATION_ERR_FULL;

    rn_verify_line *const line = rn_mem_alloc(verify->mem, sizeof *line + text.size);

    if (line == NULL)
        return RATION_ERR_NOMEM;
    line->number = number;
    line->size = text.size;
    if (text.size > 0)
        memcpy(line->data, text.data, text.size);
    verify->pending += text.size;
    STAILQ_INSERT_TAIL(lines, line, next);
    return RATION_OK;
}

static int canonical_equal(rn_verify *verify, ration_text a, ration_text b, bool *out)
{
    rn_output *const left = &verify->left;
    rn_output *const right = &verify->right;

    rn_output_clear(left);
    rn_output_clear(right);

    int err = rn_trace_canonical(a, verify->mem, left);

    if (err == RATION_OK)
        err = rn_trace_canonical(b, verify->mem, right);
    if (err == RATION_OK)
        *out = left->size == right->size && memcmp(left->data, right->data, left->size) == 0;
    return err;
}

static void verify_differ(rn_verify *verify, size_t number, ration_text recorded, ration_text produced)
{
    verify->differs = true;
    verify->difference = (rn_verify_difference){number, recorded, produced};
}

/* Compares the heads, while there are two. */
static int verify_match(rn_verify *verify)
{
    while (!verify->differs && !STAILQ_EMPTY(&verify->recorded) && !STAILQ_EMPTY(&verify->produced)) {
        const rn_verify_line *const recorded = STAILQ_FIRST(&verify->recorded);
        const rn_verify_line *const produced = STAILQ_FIRST(&verify->produced);
        bool equal = rn_text_eq(line_text(recorded), line_text(produced));

        if (!equal) {
            const int err = canonical_equal(verify, line_text(recorded), line_text(produced), &equal);

            if (err != RATION_OK)
                return err;
        }
        if (!equal) {
            verify_differ(verify, recorded->number, line_text(recorded), line_text(produced));
            return RATION_OK;
        }
        lines_drop(verify, &verify->recorded);
        lines_drop(verify, &verify->produced);
        verify->matched++;
    }
    return RATION_OK;
}

static int verify_add(rn_verify *verify, struct rn_verify_lines *lines, size_t number, ration_text line)
{
    if (verify->differs)
        return RATION_OK;

    const int err = lines_add(verify, lines, number, line);

    return err != RATION_OK ? err : verify_match(verify);
}

int rn_verify_recorded(rn_verify *verify, size_t number, ration_text line)
{
    return verify_add(verify, &verify->recorded, number, line);
}

int rn_verify_produced(rn_verify *verify, size_t number, ration_text line)
{
    return verify_add(verify, &verify->produced, number, line);
}

void rn_verify_end(rn_verify *verify)
{
    const rn_verify_line *const recorded = STAILQ_FIRST(&verify->recorded);
    const rn_verify_line *const produced = STAILQ_FIRST(&verify->produced);
    const ration_text none = {NULL, 0};

    if (verify->differs)
        return;
    if (recorded != NULL) {
        verify_differ(verify, recorded->number, line_text(recorded), none);
    } else if (produced != NULL) {
        verify_differ(verify, produced->number, none, line_text(produced));
    }
}
