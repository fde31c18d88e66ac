/* SPDX-License-Identifier: MIT */
/*
 * A closed-loop client of the decision API: each connection acquires a lease, releases what it got, and begins anew.
 *
 * Latency is from a request's write to the end of its answer; every answer counts. epoll, one thread. The lease that an
 * answer names is what is released: a server that always names the same one is asked to release that.
 *
 * usage: bench_api_load ADDRESS CONNECTIONS SECONDS      ADDRESS: a port of 127.0.0.1, or a Unix socket's path
 * prints: calls a second, p50, p99 and the worst in microseconds, answers that were not 200
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1024
#define SECOND_NS INT64_C(1000000000)
#define BUCKETS 100000 /* of a microsecond each */
#define HEAD " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: "
#define ACQUIRE "{\"account\":\"bench\",\"method\":\"GET\",\"path\":\"/orders/7\",\"tenant\":\"web\",\"timeout\":10000}"

typedef struct connection {
    int fd;
    bool releasing;
    int64_t sent_at;
    size_t used;
    char lease[32];
    char answer[2048];
} connection;

typedef struct load {
    connection connections[CONNECTIONS_MAX];
    size_t connection_count;
    uint64_t done;
    uint64_t failed;
    int64_t worst_ns;
    uint64_t latencies[BUCKETS];
} load;

static void give_up(const char *what)
{
    (void)fprintf(stderr, "bench_api_load: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static int64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static int connect_path(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof to.sun_path)
        give_up("no such socket");
    memcpy(to.sun_path, path, strlen(path));
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        give_up("cannot connect");
    return fd;
}

static int connect_port(uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        give_up("cannot connect");
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        give_up("cannot set TCP_NODELAY");
    return fd;
}

static size_t put(char *to, const char *text, size_t size)
{
    memcpy(to, text, size);
    return size;
}

/* Into `to`: the request after the last answer. No printf: whoever asks must cost less than whoever answers. */
static size_t request_write(const connection *c, char *to)
{
    static const char acquire[] = "POST /v1/acquire" HEAD "84\r\n\r\n" ACQUIRE;
    static const char release[] = "POST /v1/release" HEAD;
    static const char rest[] = "\",\"status\":200}";
    size_t used = 0;

    _Static_assert(sizeof ACQUIRE - 1 == 84, "its length is told");
    if (!c->releasing)
        return put(to, acquire, sizeof acquire - 1);

    const size_t lease_size = strlen(c->lease);
    const size_t body_size = 10 + lease_size + sizeof rest - 1;
    used += put(to + used, release, sizeof release - 1);
    to[used++] = (char)('0' + body_size / 10); /* 10 to 99: a lease has no more than 31 bytes */
    to[used++] = (char)('0' + body_size % 10);
    used += put(to + used, "\r\n\r\n{\"lease\":\"", 14);
    used += put(to + used, c->lease, lease_size);
    return used + put(to + used, rest, sizeof rest - 1);
}

static void ask(connection *c)
{
    char request[512];
    const size_t size = request_write(c, request);

    c->used = 0;
    c->sent_at = now_ns();
    if (send(c->fd, request, size, MSG_NOSIGNAL) != (ssize_t)size)
        give_up("cannot send");
}

/* The end of the answer in it, 0: it has not come yet. Both servers spell the field so. */
static size_t answer_end(connection *c)
{
    c->answer[c->used] = '\0';

    const char *length = strstr(c->answer, "\r\nContent-Length: ");
    const char *body = length != NULL ? strstr(length + 18, "\r\n\r\n") : NULL;

    if (body == NULL)
        return 0;

    const size_t end = (size_t)(body + 4 - c->answer) + strtoul(length + 18, NULL, 10);
    return c->used >= end ? end : 0;
}

static void lease_take(connection *c)
{
    const char *lease = strstr(c->answer, "\"lease\":\"");
    const char *end = lease != NULL ? strchr(lease + 9, '"') : NULL;

    if (end == NULL || (size_t)(end - lease - 9) >= sizeof c->lease)
        give_up("an answer without a lease");
    memcpy(c->lease, lease + 9, (size_t)(end - lease - 9));
    c->lease[end - lease - 9] = '\0';
}

static void receive(load *l, connection *c)
{
    const ssize_t got = recv(c->fd, c->answer + c->used, sizeof c->answer - 1 - c->used, 0);

    if (got <= 0)
        give_up(got == 0 ? "a connection was closed" : "cannot receive");
    c->used += (size_t)got;
    if (answer_end(c) == 0)
        return;

    const int64_t took = now_ns() - c->sent_at;
    const int64_t bucket = took / 1000;
    const bool well = strncmp(c->answer, "HTTP/1.1 200", 12) == 0;

    l->done++;
    l->failed += !well;
    l->worst_ns = took > l->worst_ns ? took : l->worst_ns;
    l->latencies[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
    if (well && !c->releasing)
        lease_take(c);
    c->releasing = well && !c->releasing;
    ask(c);
}

static int64_t part_us(const load *l, uint64_t thousandths)
{
    const uint64_t wanted = l->done * thousandths / 1000;
    uint64_t seen = 0;
    int64_t at = 0;

    while (at < BUCKETS - 1 && (seen += l->latencies[at]) <= wanted)
        at++;
    return at;
}

static void run(load *l, int epoll, int64_t end)
{
    struct epoll_event events[64];

    for (size_t i = 0; i < l->connection_count; i++)
        ask(&l->connections[i]);
    while (now_ns() < end) {
        const int ready = epoll_wait(epoll, events, 64, 5000);

        if (ready == 0)
            give_up("no answer for five seconds");
        for (int i = 0; i < ready; i++)
            receive(l, events[i].data.ptr);
    }
}

int main(int argc, char **argv)
{
    static load l;

    if (argc < 4) {
        (void)fprintf(stderr, "usage: bench_api_load ADDRESS CONNECTIONS SECONDS\n");
        return 2;
    }
    l.connection_count = strtoul(argv[2], NULL, 10);

    const int64_t span_ns = strtol(argv[3], NULL, 10) * SECOND_NS;
    const int epoll = epoll_create1(EPOLL_CLOEXEC);

    if (l.connection_count == 0 || l.connection_count > CONNECTIONS_MAX || span_ns <= 0 || epoll < 0)
        return 2;
    for (size_t i = 0; i < l.connection_count; i++) {
        connection *c = &l.connections[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};

        c->fd = argv[1][0] == '/' ? connect_path(argv[1]) : connect_port((uint16_t)strtoul(argv[1], NULL, 10));
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
            give_up("cannot watch");
    }

    const int64_t start = now_ns();
    run(&l, epoll, start + span_ns);
    const double seconds = (double)(now_ns() - start) / 1e9;

    (void)printf("%.0f %lld %lld %lld %llu\n", (double)l.done / seconds, (long long)part_us(&l, 500),
                 (long long)part_us(&l, 990), (long long)(l.worst_ns / 1000), (unsigned long long)l.failed);
    return 0;
}
