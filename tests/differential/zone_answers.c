/* SPDX-License-Identifier: MIT */
/*
 * Answers questions about zones, one a line, so that another program can compare:
 *
 *     zone PATH                             the zone of the questions that follow
 *     offset AT                             -> seconds east of UTC
 *     window PERIOD RESET WEEK MONTH AT     -> START END
 *
 * Instants are in seconds. Reads standard input to its end.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/window.h"
#include "core/zone.h"

#define SECOND_US INT64_C(1000000)

static rn_zone *zone_read(const char *path)
{
    static unsigned char bytes[1 << 16];
    FILE *const file = fopen(path, "rb");
    rn_zone *zone = NULL;

    if (file == NULL)
        return NULL;

    const size_t size = fread(bytes, 1, sizeof(bytes), file);

    (void)fclose(file);
    return rn_zone_new(rn_mem_default(), bytes, size, &zone) == RATION_OK ? zone : NULL;
}

static void answer_window(const rn_zone *zone, char *question)
{
    int64_t numbers[5] = {0};
    ration_time start = {0};
    ration_time end = {0};

    for (size_t i = 0; i < 5; i++)
        numbers[i] = strtoll(question, &question, 10);

    const rn_calendar calendar = {
        .period = (ration_period)numbers[0],
        .reset_minute = (int32_t)numbers[1],
        .week_start = (int32_t)numbers[2],
        .month_day = (int32_t)numbers[3],
        .zone = zone,
    };

    rn_calendar_window(&calendar, ration_time_of(numbers[4] * SECOND_US), &start, &end);
    (void)printf("%" PRId64 " %" PRId64 "\n", start.us / SECOND_US, end.us / SECOND_US);
}

int main(void)
{
    char line[512];
    rn_zone *zone = NULL;

    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "zone ", 5) == 0) {
            rn_zone_free(zone);
            zone = zone_read(line + 5);
            (void)puts(zone != NULL ? "ok" : "refused");
        } else if (strncmp(line, "offset ", 7) == 0) {
            (void)printf("%" PRId32 "\n", rn_zone_offset(zone, strtoll(line + 7, NULL, 10)));
        } else if (strncmp(line, "window ", 7) == 0) {
            answer_window(zone, line + 7);
        }
    }
    rn_zone_free(zone);
    return 0;
}
