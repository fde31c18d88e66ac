/* SPDX-License-Identifier: MIT */
/*
 * Zones from TZif bytes.
 *
 * A zone is a list of instants, each with the offset in force from then on, and a rule for the time after them. Names,
 * the mark of summer time and other things that windows do not need are dropped, and so are changes that change no
 * offset: what is left are true stretches. Of the two tables in a file the one with 64-bit instants is read where it
 * exists.
 *
 * The bytes come from a file and are not trusted: all counts are checked against the size before anything is read,
 * times must grow, offsets must be within 26 hours, and a file that counts leap seconds is refused, since our clock
 * does not.
 *
 * Invariants: steps[0].at is INT64_MIN; `at` grows strictly; neighbours differ in their offset.
 */
#include "core/zone.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "core/zone_posix.h"

#define HEADER_SIZE 44
#define STEPS_MAX 4096
#define OFFSET_MAX (26 * 3600)

typedef struct zone_step {
    int64_t at;
    int32_t offset;
} zone_step;

struct rn_zone {
    const ration_allocator *mem;
    int64_t rule_from; /* the rule holds from here on */
    bool has_rule;
    rn_posix_zone rule;
    size_t count;
    zone_step steps[];
};

/* One of a file's two tables. */
typedef struct zone_table {
    const unsigned char *times;
    const unsigned char *types; /* of the times */
    const unsigned char *infos; /* six bytes a type */
    size_t time_size;
    size_t time_count;
    size_t type_count;
} zone_table;

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t read_time(const unsigned char *p, size_t size)
{
    if (size == 4)
        return (int32_t)read_u32(p);
    return (int64_t)((uint64_t)read_u32(p) << 32 | read_u32(p + 4));
}

/* The table whose header is at the front of the bytes; `*used` is where it ends. */
static bool table_find(const unsigned char *data, size_t size, size_t time_size, zone_table *out, size_t *used)
{
    if (size < HEADER_SIZE || memcmp(data, "TZif", 4) != 0)
        return false;

    const uint64_t utc_count = read_u32(data + 20);
    const uint64_t standard_count = read_u32(data + 24);
    const uint64_t leap_count = read_u32(data + 28);
    const uint64_t time_count = read_u32(data + 32);
    const uint64_t type_count = read_u32(data + 36);
    const uint64_t char_count = read_u32(data + 40);
    const uint64_t bytes = HEADER_SIZE + time_count * (time_size + 1) + type_count * 6 + char_count +
                           leap_count * (time_size + 4) + standard_count + utc_count;

    if (bytes > size || leap_count > 0)
        return false;
    out->times = data + HEADER_SIZE;
    out->types = out->times + time_count * time_size;
    out->infos = out->types + time_count;
    out->time_size = time_size;
    out->time_count = (size_t)time_count;
    out->type_count = (size_t)type_count;
    *used = (size_t)bytes;
    return true;
}

static bool table_offset(const zone_table *table, size_t type, int32_t *out)
{
    if (type >= table->type_count)
        return false;
    *out = (int32_t)read_u32(table->infos + 6 * type);
    return *out >= -OFFSET_MAX && *out <= OFFSET_MAX;
}

/* The rule between two newlines at the front of the bytes; an empty one is none. */
static bool footer_parse(const unsigned char *data, size_t size, rn_zone *zone)
{
    const unsigned char *const end = size > 1 && data[0] == '\n' ? memchr(data + 1, '\n', size - 1) : NULL;

    if (end == NULL)
        return false;

    const ration_text text = {(const char *)data + 1, (size_t)(end - data - 1)};

    zone->has_rule = text.size > 0;
    return !zone->has_rule || rn_posix_zone_parse(text, &zone->rule) == RATION_OK;
}

static void zone_add(rn_zone *zone, int64_t at, int32_t offset)
{
    zone_step *const last = zone->count > 0 ? &zone->steps[zone->count - 1] : NULL;

    if (last != NULL && last->offset == offset)
        return;
    if (last != NULL && last->at == at) {
        last->offset = offset;
        return;
    }
    zone->steps[zone->count].at = at;
    zone->steps[zone->count].offset = offset;
    zone->count++;
}

static bool zone_fill(rn_zone *zone, const zone_table *table)
{
    int32_t offset = 0;

    if (!table_offset(table, 0, &offset))
        return false;
    zone_add(zone, INT64_MIN, offset);
    zone->rule_from = INT64_MIN;
    for (size_t i = 0; i < table->time_count; i++) {
        const int64_t at = read_time(table->times + i * table->time_size, table->time_size);

        if ((i > 0 && at <= zone->rule_from) || !table_offset(table, table->types[i], &offset))
            return false;
        zone_add(zone, at, offset);
        zone->rule_from = at;
    }
    return true;
}

int rn_zone_new(const ration_allocator *mem, const void *data, size_t size, rn_zone **out)
{
    const unsigned char *const bytes = data;
    zone_table table;
    size_t used = 0;

    if (data == NULL || !table_find(bytes, size, 4, &table, &used))
        return RATION_ERR_SYNTAX;

    const bool wide = bytes[4] >= '2';
    size_t end = used;

    if (wide) {
        if (!table_find(bytes + used, size - used, 8, &table, &end))
            return RATION_ERR_SYNTAX;
        end += used;
    }
    if (table.time_count > STEPS_MAX)
        return RATION_ERR_SYNTAX;

    rn_zone *const zone = rn_mem_zalloc(mem, 1, sizeof(*zone) + (table.time_count + 1) * sizeof(zone_step));

    if (zone == NULL)
        return RATION_ERR_NOMEM;
    zone->mem = mem;
    if (!zone_fill(zone, &table) || (wide && !footer_parse(bytes + end, size - end, zone))) {
        rn_zone_free(zone);
        return RATION_ERR_SYNTAX;
    }
    *out = zone;
    return RATION_OK;
}

void rn_zone_free(rn_zone *zone)
{
    if (zone != NULL)
        rn_mem_free(zone->mem, zone);
}

/* The stretch of the rule, joined to what the table says before it. */
static int32_t zone_rule_segment(const rn_zone *zone, int64_t utc_s, int64_t *from_s, int64_t *to_s)
{
    const zone_step *const last = &zone->steps[zone->count - 1];
    const int32_t offset = rn_posix_zone_segment(&zone->rule, utc_s, from_s, to_s);

    if (*from_s <= zone->rule_from)
        *from_s = last->offset == offset ? last->at : zone->rule_from;
    return offset;
}

int32_t rn_zone_segment(const rn_zone *zone, int64_t utc_s, int64_t *from_s, int64_t *to_s)
{
    *from_s = INT64_MIN;
    *to_s = INT64_MAX;
    if (zone == NULL)
        return 0;
    if (zone->has_rule && utc_s >= zone->rule_from)
        return zone_rule_segment(zone, utc_s, from_s, to_s);

    size_t low = 0;
    size_t high = zone->count;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (zone->steps[middle].at <= utc_s) {
            low = middle;
        } else {
            high = middle;
        }
    }

    const zone_step *const step = &zone->steps[low];

    *from_s = step->at;
    if (high < zone->count) {
        *to_s = zone->steps[high].at;
    } else if (zone->has_rule) {
        int64_t rule_from = 0;

        if (rn_posix_zone_segment(&zone->rule, zone->rule_from, &rule_from, to_s) != step->offset)
            *to_s = zone->rule_from;
    }
    return step->offset;
}

int32_t rn_zone_offset(const rn_zone *zone, int64_t utc_s)
{
    int64_t from = 0;
    int64_t to = 0;

    return rn_zone_segment(zone, utc_s, &from, &to);
}
