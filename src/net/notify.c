/* SPDX-License-Identifier: MIT */
/*
 * One datagram to the service manager. A socket for each, since there are three or four in the life of a process.
 */
#include "net/notify.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ration/types.h>

int rn_notify(const char *address, const char *state)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const size_t size = strlen(address);

    if ((address[0] != '/' && address[0] != '@') || size < 2 || size >= sizeof to.sun_path)
        return RATION_ERR_INVALID;
    memcpy(to.sun_path, address, size);
    if (address[0] == '@')
        to.sun_path[0] = '\0';

    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return RATION_ERR_IO;

    const socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    const ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to, length);

    (void)close(fd);
    return sent == (ssize_t)strlen(state) ? RATION_OK : RATION_ERR_IO;
}
