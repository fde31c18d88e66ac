/* SPDX-License-Identifier: MIT */
/* `use:`: what a provider file and the provider that uses it make together, and where their faults are. */
#include "support/config.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define SHIPPED "share/ration/providers"

static char folder[] = "/tmp/ration-test-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[512];
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    CHECK(file != NULL);
    (void)fputs(text, file);
    CHECK_EQ(fclose(file), 0);
}

static void remove_file(const char *name)
{
    char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)remove(path);
}

static ration_config_options options_of(void)
{
    return (ration_config_options){.salt = "salt", .salt_size = 4, .instance = "here", .provider_dir = folder};
}

/* What stands in base.yaml. */
#define BASE                                                                                                           \
    "name: base\n"                                                                                                     \
    "baseUrl: http://base\n"                                                                                           \
    "endpoints: [ /a/{x}, { path: /b, cost: 2, hold: 5s } ]\n"                                                         \
    "limits:\n"                                                                                                        \
    "- { name: r, kind: rate, rate: 1/s, burst: 7, scope: { by: [account] } }\n"                                       \
    "- { name: q, kind: quota, max: 5, window: { period: day }, scope: { by: [account] } }\n"                          \
    "errors: { rateLimited: { statuses: [403], defaultPenalty: 9s }, transient: { statuses: [500] } }\n"               \
    "breaker: { strategy: consecutive, threshold: 3 }\n"                                                               \
    "cost: 4\n"

static const struct {
    const char *why;
    const char *item; /* of `providers` */
    const char *same; /* written out */
} joins[] = {
    {"all of it", "{ use: base }",
     "{ name: base, baseUrl: http://base, cost: 4, endpoints: [ '/a/{x}', { path: /b, cost: 2, hold: 5s } ],"
     "  limits: [ { name: r, kind: rate, rate: 1/s, burst: 7, scope: { by: [account] } },"
     "            { name: q, kind: quota, max: 5, window: { period: day }, scope: { by: [account] } } ],"
     "  errors: { rateLimited: { statuses: [403], defaultPenalty: 9s }, transient: { statuses: [500] } },"
     "  breaker: { strategy: consecutive, threshold: 3 } }"},
    {"a key takes the place of the file's",
     "{ use: base, name: base, cost: 1, breaker: { strategy: consecutive, threshold: 9 } }",
     "{ name: base, baseUrl: http://base, cost: 1, endpoints: [ '/a/{x}', { path: /b, cost: 2, hold: 5s } ],"
     "  limits: [ { name: r, kind: rate, rate: 1/s, burst: 7, scope: { by: [account] } },"
     "            { name: q, kind: quota, max: 5, window: { period: day }, scope: { by: [account] } } ],"
     "  errors: { rateLimited: { statuses: [403], defaultPenalty: 9s }, transient: { statuses: [500] } },"
     "  breaker: { strategy: consecutive, threshold: 9 } }"},
    {"limits by name, endpoints by path, errors key by key",
     "{ use: base, limits: [ { name: q, window: { rolling: 1h } }, { name: n, kind: concurrency, max: 1 } ],"
     "  endpoints: [ { path: /b, cost: 3 }, /c, { path: '/a/{x}', priority: low } ],"
     "  errors: { rateLimited: { defaultPenalty: 1s } } }",
     "{ name: base, baseUrl: http://base, cost: 4,"
     "  endpoints: [ { path: '/a/{x}', priority: low }, { path: /b, cost: 3, hold: 5s }, /c ],"
     "  limits: [ { name: r, kind: rate, rate: 1/s, burst: 7, scope: { by: [account] } },"
     "            { name: q, kind: quota, max: 5, window: { rolling: 1h }, scope: { by: [account] } },"
     "            { name: n, kind: concurrency, max: 1 } ],"
     "  errors: { rateLimited: { statuses: [403], defaultPenalty: 1s }, transient: { statuses: [500] } },"
     "  breaker: { strategy: consecutive, threshold: 3 } }"},
    {"a bare path says nothing more of the file's", "{ use: base, endpoints: [ /b ], limits: [] }",
     "{ name: base, baseUrl: http://base, cost: 4, endpoints: [ '/a/{x}', { path: /b, cost: 2, hold: 5s } ],"
     "  limits: [ { name: r, kind: rate, rate: 1/s, burst: 7, scope: { by: [account] } },"
     "            { name: q, kind: quota, max: 5, window: { period: day }, scope: { by: [account] } } ],"
     "  errors: { rateLimited: { statuses: [403], defaultPenalty: 9s }, transient: { statuses: [500] } },"
     "  breaker: { strategy: consecutive, threshold: 3 } }"},
    {"a list in place of the file's where nothing joins",
     "{ use: base, limits: [ { name: r, scope: { by: [account, tenant] } } ],"
     "  errors: { rateLimited: { statuses: [418, 429] } } }",
     "{ name: base, baseUrl: http://base, cost: 4, endpoints: [ '/a/{x}', { path: /b, cost: 2, hold: 5s } ],"
     "  limits: [ { name: r, kind: rate, rate: 1/s, burst: 7, scope: { by: [account, tenant] } },"
     "            { name: q, kind: quota, max: 5, window: { period: day }, scope: { by: [account] } } ],"
     "  errors: { rateLimited: { statuses: [418, 429], defaultPenalty: 9s }, transient: { statuses: [500] } },"
     "  breaker: { strategy: consecutive, threshold: 3 } }"},
};

#define REST "\naccounts: [ { name: a, provider: base, limits: [ { name: r, burst: 3 } ] } ]\n"

/* Rules of the two are the same, and so is what a recording of the first gives without any file. */
static void provider_files_are_laid_below(void **state)
{
    const ration_config_options options = options_of();
    const ration_config_options recording = {.recording = true, .provider_dir = "/nowhere"};

    (void)state;
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        char text[2048];
        char *line = NULL;
        size_t size = 0;

        CHECK_ROW(joins[i].why);
        (void)snprintf(text, sizeof text, "providers:\n- %s" REST, joins[i].item);

        ration_config *used = config_of(text, &options);

        (void)snprintf(text, sizeof text, "providers:\n- %s" REST, joins[i].same);

        ration_config *plain = config_of(text, &options);

        CHECK_STR(rules_differ(ration_config_rules(used), ration_config_rules(plain)), NULL);
        CHECK_EQ(rn_config_json(used, &line, &size), RATION_OK);
        CHECK(strstr(line, "\"use\"") == NULL);

        ration_config *recorded = config_of(line, &recording);

        CHECK_STR(rules_differ(ration_config_rules(used), ration_config_rules(recorded)), NULL);
        rn_mem_free(rn_mem_default(), line);
        ration_config_free(recorded);
        ration_config_free(plain);
        ration_config_free(used);
    }
}

/* Two providers may use one file, and neither changes it for the other. */
static void a_file_serves_several(void **state)
{
    const ration_config_options options = options_of();
    ration_config *config = config_of(
        "providers:\n- { use: base, name: one, limits: [ { name: q, max: 1 } ] }\n- { use: base, name: two }\n",
        &options);
    const ration_rules *rules = ration_config_rules(config);

    (void)state;
    CHECK_EQ(rules->provider_count, 2);
    CHECK_EQ(rules->providers[0].limits[1].max, RATION_UNIT);
    CHECK_EQ(rules->providers[1].limits[1].max, 5 * RATION_UNIT);
    ration_config_free(config);
}

/* A path is beside the file in which it stands. */
static void a_path_is_beside_the_config(void **state)
{
    const ration_config_options options = options_of();
    ration_config *config = NULL;
    ration_config_faults faults = {NULL, 0, NULL};
    char path[512];

    (void)state;
    write_file("config.yaml", "providers: [ { use: ./base.yaml } ]\n");
    (void)snprintf(path, sizeof path, "%s/config.yaml", folder);
    CHECK_EQ(ration_config_load(path, &options, &config, &faults), RATION_OK);
    CHECK_STR(rn_config_provider(config, 0)->base_url.host, "base");
    ration_config_free(config);
    remove_file("config.yaml");
}

#define AUTO                                                                                                           \
    "name: auto\nbaseUrl: http://h\nlimits:\n- { name: q, kind: quota, max: auto, window: { period: day },\n"          \
    "    sync: { limitHeader: L } }\n"

static const struct {
    const char *why;
    const char *item;
    const char *want; /* D: the folder */
} faulty[] = {
    {"no such file, and a guess", "{ use: bsae }",
     "f:2:10: providers[0].use: there is no provider file 'bsae' (did you mean 'base'?)\n"},
    {"no such file", "{ use: something-else }",
     "f:2:10: providers[0].use: there is no provider file 'something-else' (provider files are in D)\n"},
    {"neither name nor path", "{ use: Base }",
     "f:2:10: providers[0].use: 'Base' is neither the name of a provider file nor a path (such as github, or ./my.yaml "
     "for a file beside this one)\n"},
    {"a dash cannot begin a name", "{ use: -base }",
     "f:2:10: providers[0].use: '-base' is neither the name of a provider file nor a path (such as github, or "
     "./my.yaml for a file beside this one)\n"},
    {"a text has no folder", "{ use: ./base.yaml }",
     "f:2:10: providers[0].use: only a file can name another beside it\n"},
    {"a path that is not there", "{ use: /nowhere/a.yaml }",
     "f:2:10: providers[0].use: the file '/nowhere/a.yaml' cannot be read (No such file or directory)\n"},
    {"no name at all", "{ use: [base] }",
     "f:2:10: providers[0].use: must be the name of a provider file (such as github)\n"},
    {"an empty one", "{ use: }", "f:2:10: providers[0].use: must be the name of a provider file (such as github)\n"},
    {"from outside", "{ use: '${NAME}' }",
     "f:2:10: providers[0].use: the name of a provider file must be written out, without '${...}'\n"},
    {"a chain", "{ use: chain }",
     "D/chain.yaml:2:1: providers[0].use: a provider file cannot use another (name it in "
     "the config)\n"},
    {"a file that breaks off", "{ use: broken }",
     "D/broken.yaml:2:1: did not find expected node content while parsing a flow node\n"},
    {"a fault in the file has the file's line",
     "{ use: base, limits: [ { name: q, window: { rolling: 1d } } ], "
     "breaker: { strategy: rate } }",
     "f:2:87: providers[0].breaker.strategy: 'rate' is not one of: consecutive, count, sampling\n"},
    {"a fault of what both say is where it stands", "{ use: base, limits: [ { name: r, max: 1 } ] }",
     "f:2:37: providers[0].limits[0].max: a limit of this kind has no such key\n"},
    {"a key that the file leaves out", "{ use: nameless }", "f:2:3: providers[0]: the key 'name' is missing\n"},
    {"a start that the file leaves out", "{ use: auto }",
     "f:2:10: providers[0].limits[0].initialMax: the provider file leaves this key to you (what holds until the first "
     "response says more: `limits: [{ name: q, initialMax: N }]` beside 'use')\n"},
    {"a start that the user leaves out", "{ use: auto, limits: [ { name: q, arrival: 1s } ] }",
     "f:2:26: providers[0].limits[0].initialMax: the provider file leaves this key to you (what holds until the first "
     "response says more: `limits: [{ name: q, initialMax: N }]` beside 'use')\n"},
    {"a start that is given", "{ use: auto, limits: [ { name: q, initialMax: 5 } ] }", ""},
    {"a key of the file that is wrong", "{ use: wrong }",
     "D/wrong.yaml:3:39: providers[0].limits[0].rate: '10' is not a rate such as 10/s or 100/15m (write 10/s for so "
     "many a second)\n"},
    {"a limit that stands twice", "{ use: base, limits: [ { name: q, max: 1 }, { name: q, max: 2 } ] }",
     "f:2:47: providers[0].limits[2]: the key 'kind' is missing\n"
     "f:2:55: providers[0].limits[2].name: the name 'q' stands here a second time (the first is in line 2)\n"},
    {"a key that stands twice", "{ use: base, cost: 1, cost: 2 }",
     "f:2:25: providers[0].cost: the key stands here a second time (the first is in line 2)\n"},
    {"a list that the user makes a number", "{ use: base, limits: 5 }",
     "f:2:24: providers[0].limits: must be a list (put it in [ ])\n"},
    {"a list that the file makes a number", "{ use: shapeless }",
     "D/shapeless.yaml:3:9: providers[0].limits: must be a list (put it in [ ])\n"},
    {"all of those that cannot be used", "{ use: one-thing }\n- { use: another-thing }",
     "f:2:10: providers[0].use: there is no provider file 'one-thing' (provider files are in D)\n"
     "f:3:10: providers[1].use: there is no provider file 'another-thing' (provider files are in D)\n"},
};

/* The folder's own name as D. */
static void shorten(const char *text, char *out, size_t room)
{
    size_t used = 0;

    while (*text != '\0' && used < room - 1) {
        if (strncmp(text, folder, strlen(folder)) == 0) {
            out[used++] = 'D';
            text += strlen(folder);
        } else {
            out[used++] = *text++;
        }
    }
    out[used] = '\0';
}

static void each_fault_has_its_file_and_line(void **state)
{
    const ration_config_options options = options_of();

    (void)state;
    for (size_t i = 0; i < sizeof faulty / sizeof faulty[0]; i++) {
        char text[512];
        char got[4096];
        char told[4096];

        CHECK_ROW(faulty[i].why);
        (void)snprintf(text, sizeof text, "providers:\n- %s\n", faulty[i].item);
        faults_of(text, strlen(text), &options, got, sizeof got);
        shorten(got, told, sizeof told);
        CHECK_STR(told, faulty[i].want);
    }
}

static void a_recording_uses_no_file(void **state)
{
    const ration_config_options options = {.recording = true, .provider_dir = folder};
    const char text[] = "{\"providers\":[{\"use\":\"base\"}]}";
    char got[512];

    (void)state;
    faults_of(text, strlen(text), &options, got, sizeof got);
    CHECK_STR(got, "f:1:22: providers[0].use: a recording holds all of a provider and uses no file\n");
}

static void no_folder_says_which_is_meant(void **state)
{
    const ration_config_options options = {.provider_dir = "/nowhere", .instance = "here"};
    const char text[] = "providers: [ { use: github } ]";
    char got[512];

    (void)state;
    faults_of(text, strlen(text), &options, got, sizeof got);
    CHECK_STR(got, "f:1:21: providers[0].use: there is no provider file 'github' (the folder /nowhere cannot be read; "
                   "RATION_PROVIDERS names another)\n");
}

static void many_uses_are_too_many(void **state)
{
    const ration_config_options options = options_of();
    static char text[64 * 1024] = "providers:\n";
    static char got[4096];
    size_t used = strlen(text);

    (void)state;
    for (int i = 0; i <= 1002; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "- { use: base, name: p%d }\n", i);
    faults_of(text, used, &options, got, sizeof got);
    CHECK_STR(got, "f:1002:10: providers[1000].use: more than 1000 providers use a file\n");
}

static void many_items_are_too_many(void **state)
{
    const ration_config_options options = options_of();
    static char text[64 * 1024] = "providers:\n- { use: base, endpoints: [";
    static char got[4096];
    size_t used = strlen(text);

    (void)state;
    for (int i = 0; i <= 1000; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " /%d,", i);
    used += (size_t)snprintf(text + used, sizeof text - used, " ] }\n");
    faults_of(text, used, &options, got, sizeof got);
    CHECK_STR(got, "f:2:27: providers[0]: more than 1000 items beside 'use'\n");
}

/* Every file that we ship, as somebody uses it who writes as little as possible. */
static void the_shipped_files_are_good(void **state)
{
    const ration_config_options options = {.instance = "here", .provider_dir = SHIPPED};
    const ration_config_options recording = {.recording = true};
    DIR *dir = opendir(SHIPPED);
    const struct dirent *entry = NULL;
    size_t files = 0;

    (void)state;
    CHECK(dir != NULL);
    while ((entry = readdir(dir)) != NULL) {
        ration_config *config = NULL;
        ration_config_faults faults = {NULL, 0, NULL};
        char path[512];
        char *line = NULL;
        size_t size = 0;

        if (entry->d_name[0] == '.')
            continue;
        CHECK_ROW(entry->d_name);
        (void)snprintf(path, sizeof path, "tests/providers/%s", entry->d_name);
        CHECK_EQ(ration_config_load(path, &options, &config, &faults), RATION_OK);
        CHECK(ration_config_warnings(config, &size) == NULL || size == 0);
        CHECK_EQ(strncmp(entry->d_name, rn_config_provider(config, 0)->name, strlen(entry->d_name) - 5), 0);
        CHECK(rn_config_account(config, 0)->base_url.tls);
        CHECK_EQ(rn_config_json(config, &line, &size), RATION_OK);

        ration_config *recorded = config_of(line, &recording);

        CHECK_STR(rules_differ(ration_config_rules(config), ration_config_rules(recorded)), NULL);
        rn_mem_free(rn_mem_default(), line);
        ration_config_free(recorded);
        ration_config_free(config);
        files++;
    }
    (void)closedir(dir);
    CHECK(files >= 6);
}

static const char *const written[] = {"base.yaml", "chain.yaml", "broken.yaml",   "nameless.yaml",
                                      "auto.yaml", "wrong.yaml", "shapeless.yaml"};

static int folder_make(void **state)
{
    (void)state;
    CHECK(mkdtemp(folder) != NULL);
    write_file("base.yaml", BASE);
    write_file("chain.yaml", "name: chain\nuse: base\n");
    write_file("broken.yaml", "name: [\n");
    write_file("nameless.yaml", "baseUrl: http://h\n");
    write_file("auto.yaml", AUTO);
    write_file("shapeless.yaml", "name: s\nbaseUrl: http://h\nlimits: 5\n");
    write_file("wrong.yaml", "name: w\nbaseUrl: http://h\nlimits: [{ name: l, kind: rate, rate: 10 }]\n");
    return 0;
}

static int folder_remove(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
        remove_file(written[i]);
    (void)rmdir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(provider_files_are_laid_below), cmocka_unit_test(a_file_serves_several),
        cmocka_unit_test(a_path_is_beside_the_config),   cmocka_unit_test(each_fault_has_its_file_and_line),
        cmocka_unit_test(a_recording_uses_no_file),      cmocka_unit_test(no_folder_says_which_is_meant),
        cmocka_unit_test(many_uses_are_too_many),        cmocka_unit_test(many_items_are_too_many),
        cmocka_unit_test(the_shipped_files_are_good),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
