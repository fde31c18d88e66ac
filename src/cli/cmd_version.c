/* SPDX-License-Identifier: MIT */
/* `ration version`: the version that meson.build gives. */
#include <stdio.h>

#include "cli/cli.h"

int rn_cmd_version(const rn_command *self, int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return rn_usage_error(self, "takes no argument");
    (void)printf("ration %s\n", RATION_VERSION);
    return rn_finish_output(RN_EXIT_OK);
}
