/* SPDX-License-Identifier: MIT */
/*
 * Files: reading one, and merging the folder that `include:` names.
 *
 * Included files are merged as nodes, before anything is read: lists are joined in order of the files' names, maps as
 * well, so a name or a setting that stands in two files is found by the same check as one that stands twice in a file,
 * and every fault knows its own file. Only the first file may include, so there is no circle.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/loader.h"
#include "config/parse.h"

#define INCLUDES_MAX 1000

/* Up to `max` + 1 bytes: one more than allowed tells that it is too large. */
static int read_all(int fd, char *data, size_t max, size_t *size)
{
    *size = 0;
    while (*size <= max) {
        const ssize_t n = read(fd, data + *size, max + 1 - *size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return RATION_ERR_IO;
        if (n == 0)
            return RATION_OK;
        *size += (size_t)n;
    }
    return RATION_ERR_RANGE;
}

static int file_read(rn_arena *arena, int fd, size_t max, ration_text *out, const char **why)
{
    struct stat st;
    size_t size = 0;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        *why = "it is not a regular file";
        return RATION_ERR_IO;
    }

    /* Files of /proc say 0. */
    const size_t room = st.st_size <= 0 ? max : (size_t)st.st_size < max ? (size_t)st.st_size : max;
    char *data = rn_arena_zalloc(arena, room + 2, 1);
    const int err = data != NULL ? read_all(fd, data, room, &size) : RATION_ERR_NOMEM;

    if (err == RATION_ERR_IO)
        *why = strerror(errno);
    if (err == RATION_ERR_RANGE)
        *why = room < max ? "it grew while it was read" : "it is too large";
    if (err != RATION_OK)
        return err == RATION_ERR_NOMEM ? err : RATION_ERR_IO;
    data[size] = '\0';
    *out = (ration_text){data, size};
    return RATION_OK;
}

int rn_file_read(rn_arena *arena, const char *path, size_t max, ration_text *out, const char **why)
{
    /* Not blocking: opening a pipe that nobody writes to must not stop a reload. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        *why = strerror(errno);
        return RATION_ERR_IO;
    }

    const int err = file_read(arena, fd, max, out, why);

    (void)close(fd);
    return err;
}

static bool has_suffix(const char *name, const char *suffix)
{
    const size_t size = strlen(name);
    const size_t tail = strlen(suffix);

    return size > tail && strcmp(name + size - tail, suffix) == 0;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The config files of a folder, in order of their names. */
static int folder_list(rn_loader *loader, DIR *dir, const char *folder, const char **names, size_t *count)
{
    const struct dirent *entry = NULL;

    while ((entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;

        if (name[0] == '.' || !(has_suffix(name, ".yaml") || has_suffix(name, ".yml") || has_suffix(name, ".json")))
            continue;
        if (*count == INCLUDES_MAX)
            return RATION_ERR_RANGE;
        names[*count] = rn_loader_format(loader, "%s/%s", folder, name);
        if (names[(*count)++] == NULL)
            return RATION_ERR_NOMEM;
    }
    qsort(names, *count, sizeof *names, name_compare);
    return RATION_OK;
}

/* A member of an included file joins the root's of the same key, or stands beside it. */
static int member_merge(rn_loader *loader, rn_node *root, const rn_entry *member)
{
    const rn_entry *there = rn_node_find(root, member->key->text);

    if (there == NULL || there->value->kind != member->value->kind || member->value->kind == RN_NODE_SCALAR)
        return rn_node_append(&loader->work, root, member->key, member->value);

    rn_node *joined = rn_loader_alloc(loader, &loader->work, 1, sizeof *joined);

    if (joined == NULL)
        return RATION_ERR_NOMEM;
    joined->kind = member->value->kind;
    joined->at = there->value->at;
    for (const rn_entry *e = there->value->first; e != NULL; e = e->next) {
        if (rn_node_append(&loader->work, joined, e->key, e->value) != RATION_OK)
            return RATION_ERR_NOMEM;
    }
    for (const rn_entry *e = member->value->first; e != NULL; e = e->next) {
        if (rn_node_append(&loader->work, joined, e->key, e->value) != RATION_OK)
            return RATION_ERR_NOMEM;
    }
    for (rn_entry *e = root->first; e != NULL; e = e->next) {
        if (e == there)
            e->value = joined;
    }
    return RATION_OK;
}

static int file_merge(rn_loader *loader, const char *path, const rn_node *asked, rn_node *root)
{
    ration_text text = {NULL, 0};
    const char *why = NULL;
    const rn_node *included = NULL;
    int err = rn_file_read(&loader->work, path, RN_SOURCE_MAX, &text, &why);

    if (err == RATION_ERR_IO) {
        rn_loader_fault(loader, asked, NULL, why, "the file %s cannot be read",
                        rn_loader_quote(loader, ration_text_of(path)));
        return RATION_OK;
    }
    if (err == RATION_OK)
        err = rn_loader_source(loader, path, text, 1, &included);
    if (err != RATION_OK || included == NULL)
        return err;
    for (const rn_entry *member = included->first; member != NULL && err == RATION_OK; member = member->next) {
        if (rn_text_is(member->key->text, "include")) {
            rn_loader_fault(loader, member->key, NULL, "name it in the first file",
                            "an included file cannot include others");
        } else {
            err = member_merge(loader, root, member);
        }
    }
    return err;
}

static int folder_merge(rn_loader *loader, const char *folder, const rn_node *asked, rn_node *root)
{
    const char **names = rn_loader_alloc(loader, &loader->work, INCLUDES_MAX, sizeof *names);
    size_t count = 0;

    if (names == NULL)
        return RATION_ERR_NOMEM;

    DIR *dir = opendir(folder);

    if (dir == NULL && errno == ENOTDIR)
        return file_merge(loader, folder, asked, root);
    if (dir == NULL) {
        rn_loader_fault(loader, asked, NULL, strerror(errno), "the folder %s cannot be read",
                        rn_loader_quote(loader, ration_text_of(folder)));
        return RATION_OK;
    }

    int err = folder_list(loader, dir, folder, names, &count);

    (void)closedir(dir);
    if (err == RATION_ERR_RANGE) {
        rn_loader_fault(loader, asked, NULL, NULL, "more than %d files in one folder", INCLUDES_MAX);
        return RATION_OK;
    }
    if (err == RATION_OK && count == 0) {
        rn_loader_fault(loader, asked, NULL, "their names end in .yaml, .yml or .json",
                        "no config file in the folder %s", rn_loader_quote(loader, ration_text_of(folder)));
    }
    for (size_t i = 0; i < count && err == RATION_OK; i++)
        err = file_merge(loader, names[i], asked, root);
    return err;
}

/* A name beside the first file, unless it is absolute. */
static const char *beside(rn_loader *loader, const char *path, ration_text name)
{
    const char *slash = strrchr(path, '/');

    if (name.data[0] == '/' || slash == NULL)
        return rn_loader_format(loader, "%s", name.data);
    return rn_loader_format(loader, "%.*s/%s", (int)(slash - path), path, name.data);
}

int rn_include(rn_loader *loader, const char *path, const rn_node **root)
{
    const rn_node *asked = rn_node_get(*root, "include");
    ration_text name = {NULL, 0};
    bool expanded = false;

    if (asked == NULL)
        return RATION_OK;

    const size_t size = rn_path_push(loader, ration_text_of("include"));
    int err = RATION_ERR_CONFIG;

    loader->at = asked;
    if (loader->options->recording || path == NULL) {
        rn_loader_fault(loader, asked, NULL, NULL, "only a file can include others");
    } else if (asked->kind != RN_NODE_SCALAR || rn_node_is_null(asked)) {
        rn_loader_fault(loader, asked, NULL, NULL, "must be the path of a folder");
    } else {
        err = rn_expand(loader, asked, &name, &expanded);
    }
    if (err == RATION_OK && name.size > 0) {
        rn_node *merged = rn_loader_alloc(loader, &loader->work, 1, sizeof *merged);
        const char *folder = beside(loader, path, name);

        if (merged == NULL || folder == NULL)
            return RATION_ERR_NOMEM;
        *merged = (rn_node){.kind = RN_NODE_MAP, .at = (*root)->at};
        for (const rn_entry *e = (*root)->first; e != NULL && err == RATION_OK; e = e->next)
            err = rn_node_append(&loader->work, merged, e->key, e->value);
        if (err == RATION_OK)
            err = folder_merge(loader, folder, asked, merged);
        *root = merged;
    }
    rn_path_pop(loader, size);
    return err == RATION_ERR_CONFIG ? RATION_OK : err;
}
