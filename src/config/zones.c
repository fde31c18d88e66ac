/* SPDX-License-Identifier: MIT */
/*
 * Time zones by name, from the system's zone files.
 *
 * A name is letters, digits and a few signs between slashes: nothing that could leave the folder. "UTC" needs no file.
 * For a name that is not there the nearest in its folder is suggested, which is where most slips are
 * (America/Los_Angles).
 *
 * Invariant: each zone stands once in `rules.zones`, however many windows name it.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/loader.h"
#include "core/zone.h"

#define ZONE_NAME_MAX 64
#define ZONE_FILE_MAX ((size_t)1024 * 1024)
#define ZONES_MAX 1000
#define NEIGHBOURS_MAX 512

static bool is_zone_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
           c == '+';
}

/* Words of letters, digits, '_', '-' and '+' with single slashes between them. */
static bool is_zone_name(ration_text name)
{
    bool fresh = true;

    if (name.size == 0 || name.size > ZONE_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '/' ? fresh : !is_zone_char(name.data[i]))
            return false;
        fresh = name.data[i] == '/';
    }
    return !fresh;
}

static const char *zone_folder(const rn_loader *loader)
{
    const char *folder = loader->options->zone_dir;

    if (folder == NULL)
        folder = getenv("TZDIR");
    return folder != NULL && folder[0] != '\0' ? folder : "/usr/share/zoneinfo";
}

static const char *neighbour_at(const void *names, size_t index)
{
    const char *const *neighbours = names;

    return neighbours[index];
}

/* The name in the folder of `name` that is nearest to it; NULL: none is. */
static const char *zone_nearest(rn_loader *loader, const char *name)
{
    const char *slash = strrchr(name, '/');
    const int size = slash != NULL ? (int)(slash - name) : 0;
    const char *last = slash != NULL ? slash + 1 : name;
    const char *path = rn_loader_format(loader, "%s/%.*s", zone_folder(loader), size, name);
    const char **names = rn_loader_alloc(loader, &loader->work, NEIGHBOURS_MAX, sizeof *names);
    DIR *dir = path != NULL && names != NULL ? opendir(path) : NULL;
    const struct dirent *entry = NULL;
    size_t count = 0;

    if (dir == NULL)
        return NULL;
    while (count < NEIGHBOURS_MAX && (entry = readdir(dir)) != NULL) {
        names[count] = rn_arena_strdup(&loader->work, entry->d_name);
        count += names[count] != NULL;
    }
    (void)closedir(dir);

    const char *nearest = rn_nearest(ration_text_of(last), names, count, neighbour_at);

    if (nearest == NULL)
        return NULL;
    return rn_loader_format(loader, "did you mean '%.*s%s%s'?", size, name, slash != NULL ? "/" : "", nearest);
}

static int zone_fault(rn_loader *loader, ration_text name, const char *hint)
{
    rn_loader_fault(loader, loader->at, NULL, hint, "%s is not a known time zone",
                    loader->quiet_value ? "the value" : rn_loader_quote(loader, name));
    return RATION_ERR_CONFIG;
}

/* One more zone among the rules'. */
static int zone_keep(rn_loader *loader, const char *name, ration_text bytes)
{
    ration_rules *rules = &loader->model->rules;

    if (rules->zone_count == ZONES_MAX)
        return RATION_ERR_RANGE;

    ration_zone_data *zones = rn_loader_alloc(loader, loader->arena, rules->zone_count + 1, sizeof *zones);
    void *data = rn_loader_alloc(loader, loader->arena, bytes.size, 1);

    if (zones == NULL || data == NULL)
        return RATION_ERR_NOMEM;
    if (rules->zone_count > 0)
        memcpy(zones, rules->zones, rules->zone_count * sizeof *zones);
    memcpy(data, bytes.data, bytes.size);
    zones[rules->zone_count] = (ration_zone_data){name, data, bytes.size};
    rules->zones = zones;
    rules->zone_count++;
    return RATION_OK;
}

static int zone_read(rn_loader *loader, const char *name, ration_text *bytes)
{
    const char *path = rn_loader_format(loader, "%s/%s", zone_folder(loader), name);
    const char *why = NULL;
    rn_zone *zone = NULL;

    if (path == NULL)
        return RATION_ERR_NOMEM;

    int err = rn_file_read(&loader->work, path, ZONE_FILE_MAX, bytes, &why);

    if (err == RATION_OK)
        err = rn_zone_new(loader->mem, bytes->data, bytes->size, &zone);
    rn_zone_free(zone);
    return err;
}

int rn_zone_load(rn_loader *loader, ration_text name, const char **out)
{
    const ration_rules *rules = &loader->model->rules;
    ration_text bytes = {NULL, 0};

    *out = NULL;
    if (rn_text_is(name, "UTC"))
        return RATION_OK;
    for (size_t i = 0; i < rules->zone_count; i++) {
        if (rn_text_is(name, rules->zones[i].name)) {
            *out = rules->zones[i].name;
            return RATION_OK;
        }
    }
    if (!is_zone_name(name))
        return zone_fault(loader, name, "such as America/Los_Angeles");

    const char *kept = rn_loader_keep(loader, name);
    int err = kept != NULL ? zone_read(loader, kept, &bytes) : RATION_ERR_NOMEM;

    if (err == RATION_ERR_IO || err == RATION_ERR_SYNTAX)
        return zone_fault(loader, name, loader->quiet_value ? NULL : zone_nearest(loader, kept));
    if (err == RATION_OK)
        err = zone_keep(loader, kept, bytes);
    if (err == RATION_OK)
        *out = kept;
    return err;
}
