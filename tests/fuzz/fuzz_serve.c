/* SPDX-License-Identifier: MIT */
/*
 * What a client says to ration: a target in the first line, `name: value` in the others. Whatever they are, the parts
 * found lie within them, and a fault names a field.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "serve/directives.h"
#include "serve/route.h"

#define HEADERS 32

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ration_text line_next(ration_text *input)
{
    size_t end = 0;

    while (end < input->size && input->data[end] != '\n')
        end++;
    const ration_text line = rn_text_slice(*input, 0, end);
    *input = rn_text_slice(*input, end < input->size ? end + 1 : end, input->size);
    return line;
}

static void check_route(ration_text target)
{
    char buffer[64];
    ration_text name;
    rn_route route;

    if (rn_route_parse(target, &route) != RATION_OK)
        return;
    assert(route.account.size > 0 && 1 + route.account.size + route.rest.size == target.size);
    assert(route.path.data[0] == '/' && route.path.size <= target.size);
    if (rn_route_decode(route.account, buffer, sizeof buffer, &name) == RATION_OK) {
        assert(name.size <= route.account.size && name.size <= sizeof buffer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ration_text input = {(const char *)data, size};
    ration_header headers[HEADERS];
    rn_directives directives;
    rn_directive_fault fault = {{NULL, 0}, NULL};
    size_t count = 0, colon;

    check_route(line_next(&input));
    while (count < HEADERS && input.size > 0) {
        const ration_text line = line_next(&input);
        if (rn_text_find(line, ration_text_of(":"), &colon)) {
            headers[count].name = rn_text_slice(line, 0, colon);
            headers[count++].value = rn_text_slice(line, colon + 1, line.size);
        }
    }
    if (rn_directives_read(headers, count, &directives, &fault) != RATION_OK) {
        assert(fault.field.data != NULL && fault.want != NULL);
        return 0;
    }
    assert(directives.cost >= RATION_UNSET);
    assert(directives.wait_us >= RATION_UNSET && directives.hold_us >= RATION_UNSET);
    return 0;
}
