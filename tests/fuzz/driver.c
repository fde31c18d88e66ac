/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over files instead of under a fuzzer: `driver PATH...`, where a folder stands for all in it.
 *
 * So the corpus, and every crash that was ever added to it, is an ordinary test with any compiler. Each file's bytes
 * are in a block of exactly their size, where a sanitizer or valgrind sees a read past the end. Prints one line of TAP
 * per input; the empty input is always the first.
 */

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int ran;

static void run_bytes(const char *name, const uint8_t *data, size_t size)
{
    ran++;
    (void)LLVMFuzzerTestOneInput(data, size);
    (void)printf("ok %d - %s\n", ran, name);
    (void)fflush(stdout);
}

static bool run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    bool read = false;
    long size;

    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        goto out;
    size = ftell(file);
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0)
        goto out;
    data = malloc(size > 0 ? (size_t)size : 1);
    if (data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size)
        goto out;
    run_bytes(path, data, (size_t)size);
    read = true;
out:
    if (!read)
        (void)fprintf(stderr, "cannot read %s\n", path);
    free(data);
    if (file != NULL)
        (void)fclose(file);
    return read;
}

static bool run_folder(DIR *folder, const char *path)
{
    bool all = true;

    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char inner[4096];
        const int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);

        if (entry->d_name[0] == '.')
            continue;
        all &= length > 0 && (size_t)length < sizeof inner && run_file(inner);
    }
    return all;
}

int main(int argc, char **argv)
{
    static const uint8_t none;
    bool all = true;

    run_bytes("(empty)", &none, 0);
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);

        if (folder == NULL) {
            all &= run_file(argv[i]);
            continue;
        }
        all &= run_folder(folder, argv[i]);
        (void)closedir(folder);
    }
    return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
