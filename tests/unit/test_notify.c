/* SPDX-License-Identifier: MIT */
/* Words to the service manager: what arrives, and addresses that are none. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ration/types.h>

#include "net/notify.h"

/* A datagram socket at `address`, as a manager has one. */
static int manager_make(const char *address)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const size_t size = strlen(address);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0 && size < sizeof at.sun_path);
    memcpy(at.sun_path, address, size);
    if (address[0] == '@')
        at.sun_path[0] = '\0';
    assert_int_equal(bind(fd, (const struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)),
                     0);
    return fd;
}

static void hears(const char *address)
{
    char got[64];
    const int fd = manager_make(address);

    assert_int_equal(rn_notify(address, "READY=1\nSTATUS=well"), RATION_OK);
    const ssize_t size = recv(fd, got, sizeof got, 0);
    assert_int_equal(size, 19);
    assert_memory_equal(got, "READY=1\nSTATUS=well", 19);
    assert_int_equal(recv(fd, got, sizeof got, 0), -1); /* one datagram */
    (void)close(fd);
}

static void test_path(void **state)
{
    char folder[] = "/tmp/ration-notify-XXXXXX";
    char path[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/s", folder);
    hears(path);
    (void)unlink(path);
    (void)rmdir(folder);
}

static void test_abstract(void **state)
{
    char name[64];

    (void)state;
    (void)snprintf(name, sizeof name, "@ration-notify-%ld", (long)getpid());
    hears(name);
}

static void test_addresses(void **state)
{
    char longest[200];
    const struct {
        const char *why, *address;
        int want;
    } rows[] = {
        {"empty", "", RATION_ERR_INVALID},
        {"no form that is known", "vsock:2:3", RATION_ERR_INVALID},
        {"relative", "run/notify", RATION_ERR_INVALID},
        {"an abstract name without a name", "@", RATION_ERR_INVALID},
        {"a folder without a name", "/", RATION_ERR_INVALID},
        {"too long", longest, RATION_ERR_INVALID},
        {"nobody there", "/nowhere/at/all", RATION_ERR_IO},
        {"nobody there, abstract", "@ration-nobody-listens-here", RATION_ERR_IO},
    };

    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rn_notify(rows[i].address, "READY=1") != rows[i].want)
            fail_msg("%s", rows[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_abstract),
        cmocka_unit_test(test_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
