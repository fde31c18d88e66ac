/* SPDX-License-Identifier: MIT */
/*
 * An open-loop HTTP client: so many calls a second, whatever the answers do.
 *
 * Call i is due at start + i / rate. Its latency counts from then, not from when a connection was free to send it, so
 * a server that stalls is charged for all the calls that its stall delayed (no coordinated omission). What this client
 * is late itself counts too: a run without a proxy is the baseline to subtract.
 *
 * Invariants: a connection has at most one call under way; calls are sent in the order in which they are due.
 *
 * usage: bench_open_loop PORT PATH RATE SECONDS [CONNECTIONS]
 * prints: calls sent, calls failed, and p50, p99, p99.9 and the worst in microseconds
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define SECOND_NS INT64_C(1000000000)
#define PATIENCE_NS (5 * SECOND_NS)

typedef struct connection {
    int64_t due;
    size_t used;
    bool busy;
    char answer[16384];
} connection;

typedef struct load {
    connection *connections;
    struct pollfd polls[CONNECTIONS_MAX];
    size_t connection_count;
    char request[512];
    size_t request_bytes;
    int64_t start;
    int64_t rate;
    long total;
    long sent;
    long done;
    long failed;
    int64_t *latencies;
} load;

static int64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static void give_up(const char *what)
{
    (void)fprintf(stderr, "bench_open_loop: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        give_up("cannot connect");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        give_up("cannot set TCP_NODELAY");
    return fd;
}

static int64_t due_of(const load *l, long call)
{
    return l->start + call * SECOND_NS / l->rate;
}

static void send_due(load *l, int64_t now)
{
    for (size_t i = 0; i < l->connection_count && l->sent < l->total && due_of(l, l->sent) <= now; i++) {
        connection *c = &l->connections[i];

        if (c->busy)
            continue;
        c->busy = true;
        c->used = 0;
        c->due = due_of(l, l->sent++);
        if (send(l->polls[i].fd, l->request, l->request_bytes, MSG_NOSIGNAL) != (ssize_t)l->request_bytes)
            give_up("cannot send");
    }
}

/* Whether the answer is whole: a head, and as many bytes after it as it says. */
static bool answer_ends(connection *c)
{
    c->answer[c->used] = '\0';
    const char *body = strstr(c->answer, "\r\n\r\n");
    const char *length = strcasestr(c->answer, "\r\ncontent-length:");

    if (body == NULL)
        return false;
    if (length == NULL || length > body)
        give_up("an answer without Content-Length");
    return c->used >= (size_t)(body + 4 - c->answer) + strtoul(length + 17, NULL, 10);
}

static void receive(load *l, size_t i)
{
    connection *c = &l->connections[i];
    const ssize_t got = recv(l->polls[i].fd, c->answer + c->used, sizeof c->answer - 1 - c->used, MSG_DONTWAIT);

    if (got <= 0)
        give_up(got == 0 ? "a connection was closed" : "cannot receive");
    c->used += (size_t)got;
    if (!answer_ends(c))
        return;
    c->busy = false;
    if (strncmp(c->answer, "HTTP/1.1 200", 12) != 0)
        l->failed++;
    l->latencies[l->done++] = now_ns() - c->due;
}

static void run(load *l)
{
    l->start = now_ns();
    while (l->done < l->total) {
        const int64_t now = now_ns();

        send_due(l, now);
        const bool all_sent = l->sent == l->total;
        int64_t wait = all_sent ? PATIENCE_NS : due_of(l, l->sent) - now;

        /* Due, but every connection is busy: the next answer is what to wait for. */
        if (wait <= 0)
            wait = PATIENCE_NS;
        const struct timespec t = {wait / SECOND_NS, wait % SECOND_NS};
        const int ready = ppoll(l->polls, l->connection_count, &t, NULL);

        if (ready < 0)
            give_up("poll");
        if (ready == 0 && wait == PATIENCE_NS)
            give_up("no answer for five seconds");
        for (size_t i = 0; ready > 0 && i < l->connection_count; i++) {
            if (l->polls[i].revents != 0)
                receive(l, i);
        }
    }
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static double part_us(const load *l, long thousandths)
{
    const long index = (l->done - 1) * thousandths / 1000;

    return (double)l->latencies[index] / 1e3;
}

int main(int argc, char **argv)
{
    load l = {.connection_count = 32};

    if (argc < 5) {
        (void)fprintf(stderr, "usage: bench_open_loop PORT PATH RATE SECONDS [CONNECTIONS]\n");
        return 2;
    }
    const uint16_t port = (uint16_t)strtoul(argv[1], NULL, 10);

    l.rate = strtol(argv[3], NULL, 10);
    l.total = l.rate * strtol(argv[4], NULL, 10);
    if (argc > 5)
        l.connection_count = strtoul(argv[5], NULL, 10);
    if (l.total <= 0 || l.connection_count == 0 || l.connection_count > CONNECTIONS_MAX) {
        (void)fprintf(stderr, "bench_open_loop: RATE and SECONDS from 1, CONNECTIONS from 1 to 256\n");
        return 2;
    }
    const int size = snprintf(l.request, sizeof l.request, "GET %s HTTP/1.1\r\nHost: bench\r\n\r\n", argv[2]);

    if (size < 0 || (size_t)size >= sizeof l.request)
        return 2;
    l.request_bytes = (size_t)size;
    l.latencies = calloc((size_t)l.total, sizeof *l.latencies);
    l.connections = calloc(l.connection_count, sizeof *l.connections);
    if (l.latencies == NULL || l.connections == NULL)
        give_up("memory");
    for (size_t i = 0; i < l.connection_count; i++)
        l.polls[i] = (struct pollfd){.fd = connect_to(port), .events = POLLIN};
    (void)prctl(PR_SET_TIMERSLACK, 1UL);

    run(&l);
    qsort(l.latencies, (size_t)l.done, sizeof *l.latencies, by_size);
    (void)printf("%ld %ld %.1f %.1f %.1f %.1f\n", l.done, l.failed, part_us(&l, 500), part_us(&l, 990),
                 part_us(&l, 999), part_us(&l, 1000));
    for (size_t i = 0; i < l.connection_count; i++)
        (void)close(l.polls[i].fd);
    free(l.connections);
    free(l.latencies);
    return EXIT_SUCCESS;
}
