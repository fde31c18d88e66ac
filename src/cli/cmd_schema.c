/* SPDX-License-Identifier: MIT */
/* `ration schema`: the table of config keys as a JSON Schema, or as the reference page. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "config/schema.h"

int rn_cmd_schema(const rn_command *self, int argc, char **argv)
{
    const ration_allocator *mem = rn_mem_default();
    const bool markdown = argc == 2 && strcmp(argv[1], "--markdown") == 0;
    char *text = NULL;
    size_t size = 0;

    if (argc > 1 && !markdown)
        return rn_usage_error(self, "unknown argument '%s'", argv[1]);

    const int err = markdown ? rn_schema_markdown(mem, &text, &size) : rn_schema_json(mem, &text, &size);

    if (err != RATION_OK) {
        (void)fprintf(stderr, "ration schema: %s\n", ration_err_text(err));
        return RN_EXIT_USAGE;
    }
    (void)fwrite(text, 1, size, stdout);
    rn_mem_free(mem, text);
    return rn_finish_output(RN_EXIT_OK);
}
