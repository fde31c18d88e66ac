/* SPDX-License-Identifier: MIT */
/* `ration version`: the version that meson.build gives, and those of what others read. docs/reference/versions.md. */
#include <stdio.h>

#include "cli/cli.h"
#include "fleet/call.h"
#include "ledger/ledger.h"
#include "trace/reader.h"

int rn_cmd_version(const rn_command *self, int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return rn_usage_error(self, "takes no argument");
    (void)printf("ration %s\nabi %s\ntrace %d\nledger %d\nredis %d\n", RATION_VERSION, RATION_ABI, RN_TRACE_VERSION,
                 RN_LEDGER_VERSION, RN_FLEET_LAYOUT);
    return rn_finish_output(RN_EXIT_OK);
}
