// The load server: HTTP requests on the loopback device to event streams, as fast or as often as the URL asks.
//
//     loadserver [-p PORT] [-t SECONDS]        PORT: default 18080, 0 for any; SECONDS it lives: default 60
//
// Prints "listening on 127.0.0.1:PORT" once it accepts. One thread, one epoll(7) instance.
//
// GET /sse?size=50&n=0&rate=0&batch=0&ts=0&te=chunked&hello=0&idle=0&nl=lf&id=0&after=0
//   size   bytes of each payload, 2 to 64 MiB
//   n      events after which the body ends, at a rate by whole batches; 0 for no end
//   rate   events a second of this connection; 0 for as fast as the socket takes them
//   batch  events of one chunk; 0 for one at a rate, and for about 16 KB of them without
//   ts     sent | due: the payload begins by {"t": and nineteen digits, the nanoseconds of CLOCK_MONOTONIC when it was
//          sent, or should have been
//   te     chunked | close: how the body ends
//   hello  1: at a rate, a comment at once, so that a client knows that its stream is open
//   after  streams at a rate that must be open before any of them is sent events: openings have the server to themselves
//   idle   1: a comment, then nothing more
//   nl     lf | crlf: what a line ends by
//   id     1: each event has an id line, of ten digits
// POST is answered as GET: the body is passed over.
//
// GET /stats   one line: events=N skipped=N, of all connections at a rate since the start. Skipped is what was due while
//              the socket was full of what came before.
//
// What is sent without a rate is written once and sent again and again, so that the sender costs the kernel's copy. Its
// payloads differ from event to event, until it begins anew.

#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    REQUEST_BYTES = 8192,
    REPEATED_BYTES = 1 << 20,
    BATCH_BYTES = 16384,
    MAX_PAYLOAD = 64 << 20,
    MIN_STAMPED = 36,
    STAMP_DIGITS = 19,
    TURN_BYTES = 8 << 20,
};

static const uint64_t MILLISECOND = 1000000;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *must(void *memory) {
    if (!memory) {
        fputs("loadserver: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

// MARK: What is sent

// How a stream's events look.
struct form {
    size_t size, batch;
    bool chunked, stamped, crlf, numbered;
};

// Events written once: chunks of one length, one after the other. Kept for ever, since few forms are asked for.
struct text {
    struct text *next;
    struct form form;
    size_t chunks;
    char *bytes;
    size_t chunk_length, event_length;
    size_t stamp; // where the first event's digits are in its chunk
};

static struct text *texts;

static bool same(const struct form *a, const struct form *b) {
    return a->size == b->size && a->batch == b->batch && a->chunked == b->chunked && a->stamped == b->stamped
        && a->crlf == b->crlf && a->numbered == b->numbered;
}

// Writes one event; returns its length, which is the same for all numbers. `stamp` becomes the place of its digits.
static size_t write_event(char *to, const struct form *form, size_t number, size_t *stamp) {
    const char *end_of_line = form->crlf ? "\r\n" : "\n";
    const char *head = form->stamped ? "{\"t\":0000000000000000000,\"d\":\"" : form->size >= 24 ? "{\"data\":{\"v\":\"" : "\"";
    const char *tail = form->stamped ? "\"}" : form->size >= 24 ? "\"}}" : "\"";
    size_t start = 0;
    if (form->numbered) start += (size_t)sprintf(to, "id: %010zu%s", number % 10000000000, end_of_line);
    start += (size_t)sprintf(to + start, "event: next%sdata: ", end_of_line);
    size_t length = start + (size_t)sprintf(to + start, "%s", head);
    *stamp = start + strlen("{\"t\":");
    for (size_t fill = number; length < start + form->size - strlen(tail); fill++) to[length++] = (char)('a' + fill % 26);
    return length + (size_t)sprintf(to + length, "%s%s%s", tail, end_of_line, end_of_line);
}

// The text of a form: one chunk, or as many as are worth a call of send(2).
static struct text *text_of(const struct form *form, bool repeated) {
    for (struct text *text = texts; text; text = text->next)
        if (same(&text->form, form) && (text->chunks > 1) == repeated) return text;

    char *event = must(malloc(form->size + 128));
    struct text *text = must(calloc(1, sizeof *text));
    text->form = *form;
    text->event_length = write_event(event, form, 0, &text->stamp);
    size_t content = text->event_length * form->batch;
    char head[32] = "";
    if (form->chunked) sprintf(head, "%zx\r\n", content);
    const char *tail = form->chunked ? "\r\n" : "";
    text->stamp += strlen(head);
    text->chunk_length = strlen(head) + content + strlen(tail);
    text->chunks = repeated ? REPEATED_BYTES / text->chunk_length + 2 : 1;
    char *to = text->bytes = must(malloc(text->chunk_length * text->chunks));
    for (size_t chunk = 0; chunk < text->chunks; chunk++) {
        to = mempcpy(to, head, strlen(head));
        for (size_t count = 0; count < form->batch; count++) {
            size_t unused;
            write_event(event, form, chunk * form->batch + count, &unused);
            to = mempcpy(to, event, text->event_length);
        }
        to = mempcpy(to, tail, strlen(tail));
    }
    free(event);
    text->next = texts;
    return texts = text;
}

// MARK: Connections

enum phase { ASKING, BLASTING, TICKING, QUIET, CLOSING };

struct connection {
    int socket;
    enum phase phase;
    bool wants_out, keeps_alive, chunked, stamps_due;
    char *request;
    size_t request_length;
    // Bytes that the socket has not taken, before anything else.
    char *pending;
    size_t pending_length, pending_sent;
    // A blast: whole texts, then a part of one; then the last chunks.
    struct text *text;
    uint64_t blast_length, blast_sent;
    char *last;
    size_t last_length;
    // At a rate.
    uint64_t limit, sent;
    double interval, due; // nanoseconds
    size_t place;         // in the heap, from 1; 0 for none
    struct connection *next_closed;
};

static int poller;
static struct connection *closed;
static uint64_t ticked, skipped;

// Those at a rate, the earliest due first.
static struct connection **heap;
static size_t heap_count, heap_room;

static void put(struct connection *connection, size_t place) {
    heap[place] = connection;
    connection->place = place;
}

static void sift(struct connection *connection, size_t place) {
    for (; place > 1 && connection->due < heap[place / 2]->due; place /= 2) put(heap[place / 2], place);
    for (;;) {
        size_t child = 2 * place;
        if (child > heap_count) break;
        if (child < heap_count && heap[child + 1]->due < heap[child]->due) child++;
        if (heap[child]->due >= connection->due) break;
        put(heap[child], place);
        place = child;
    }
    put(connection, place);
}

static void schedule(struct connection *connection) {
    if (connection->place) return sift(connection, connection->place);
    if (heap_count + 2 > heap_room) {
        heap_room = heap_room ? 2 * heap_room : 1024;
        heap = must(realloc(heap, heap_room * sizeof *heap));
    }
    heap_count++;
    sift(connection, heap_count);
}

static void unschedule(struct connection *connection) {
    size_t place = connection->place;
    if (!place) return;
    struct connection *last = heap[heap_count--];
    connection->place = 0;
    if (last != connection) sift(last, place);
}

// All that wait for the last of them to open begin, each at its own phase, so that streams do not tick together.
static void begin_all(void) {
    size_t all = heap_count;
    for (heap_count = 0; heap_count < all;) {
        struct connection *connection = heap[++heap_count];
        if (connection->due == INFINITY) connection->due = (double)now() + connection->interval * drand48();
        sift(connection, heap_count);
    }
}

static void close_connection(struct connection *connection) {
    if (connection->socket < 0) return;
    close(connection->socket);
    connection->socket = -1;
    unschedule(connection);
    free(connection->request);
    free(connection->pending);
    free(connection->last);
    // Events of this turn may still name it.
    connection->next_closed = closed;
    closed = connection;
}

static void watch(struct connection *connection, bool out) {
    if (connection->socket < 0 || connection->wants_out == out) return;
    connection->wants_out = out;
    struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = connection};
    epoll_ctl(poller, EPOLL_CTL_MOD, connection->socket, &event);
}

// What the socket takes of the bytes now; -1 when the connection is closed.
static ssize_t send_some(struct connection *connection, const char *bytes, size_t length) {
    ssize_t count = send(connection->socket, bytes, length, MSG_NOSIGNAL);
    if (count >= 0) return count;
    if (errno == EAGAIN || errno == EINTR) return 0;
    close_connection(connection);
    return -1;
}

// Sends, or keeps what the socket does not take. False when the connection is closed.
static bool send_all(struct connection *connection, const char *bytes, size_t length) {
    if (!connection->pending) {
        ssize_t count = send_some(connection, bytes, length);
        if (count < 0) return false;
        bytes += count;
        length -= (size_t)count;
        if (!length) return true;
        connection->pending_length = connection->pending_sent = 0;
    }
    connection->pending = must(realloc(connection->pending, connection->pending_length + length));
    memcpy(connection->pending + connection->pending_length, bytes, length);
    connection->pending_length += length;
    watch(connection, true);
    return true;
}

// Whether nothing is pending any more.
static bool flush(struct connection *connection) {
    while (connection->pending) {
        ssize_t count = send_some(
            connection, connection->pending + connection->pending_sent,
            connection->pending_length - connection->pending_sent
        );
        if (count <= 0) return false;
        connection->pending_sent += (size_t)count;
        if (connection->pending_sent < connection->pending_length) continue;
        free(connection->pending);
        connection->pending = NULL;
    }
    return true;
}

// The body is over, and all of it is with the socket.
static void finish(struct connection *connection) {
    unschedule(connection);
    watch(connection, false);
    if (connection->chunked && connection->keeps_alive) {
        connection->phase = ASKING;
        return;
    }
    shutdown(connection->socket, SHUT_WR);
    connection->phase = CLOSING;
}

static void blast(struct connection *connection) {
    if (!flush(connection)) return;
    struct text *text = connection->text;
    size_t text_length = text->chunk_length * text->chunks;
    size_t turn = 0;
    while (connection->blast_sent < connection->blast_length) {
        // Others are served in between.
        if (turn >= TURN_BYTES) return watch(connection, true);
        size_t offset = connection->blast_sent % text_length;
        uint64_t left = connection->blast_length - connection->blast_sent;
        size_t length = text_length - offset < left ? text_length - offset : (size_t)left;
        ssize_t count = send_some(connection, text->bytes + offset, length);
        if (count < 0) return;
        if (!count) return watch(connection, true);
        connection->blast_sent += (uint64_t)count;
        turn += (size_t)count;
    }
    if (connection->last) {
        bool open = send_all(connection, connection->last, connection->last_length);
        if (!open) return;
        free(connection->last);
        connection->last = NULL;
    }
    if (!connection->pending) finish(connection);
}

static void stamp(char *digits, uint64_t time) {
    for (int place = STAMP_DIGITS - 1; place >= 0; place--, time /= 10) digits[place] = (char)('0' + time % 10);
}

// Sends what is due; an event that finds the socket full is left out, and counted.
static void tick(struct connection *connection, double time) {
    struct text *text = connection->text;
    size_t batch = text->form.batch;
    for (int turn = 0; connection->due <= time && turn < 64; turn++) {
        uint64_t due = (uint64_t)connection->due;
        connection->due += connection->interval;
        if (connection->pending) {
            skipped += batch;
            continue;
        }
        if (text->form.stamped) {
            uint64_t stamped = connection->stamps_due ? due : now();
            for (size_t event = 0; event < batch; event++) stamp(text->bytes + text->stamp + event * text->event_length, stamped);
        }
        if (!send_all(connection, text->bytes, text->chunk_length)) return;
        connection->sent += batch;
        ticked += batch;
        if (!connection->limit || connection->sent < connection->limit) continue;
        if (connection->chunked && !send_all(connection, "0\r\n\r\n", 5)) return;
        unschedule(connection);
        if (connection->pending) {
            connection->phase = BLASTING;
            connection->blast_length = connection->blast_sent = 0;
        } else {
            finish(connection);
        }
        return;
    }
    schedule(connection);
}

// MARK: Requests

// The value of a key in a query, up to the next one; NULL without.
static const char *value_of(const char *query, const char *key) {
    size_t length = strlen(key);
    while (query && *query) {
        if (!strncmp(query, key, length) && query[length] == '=') return query + length + 1;
        query = strchr(query, '&');
        if (query) query++;
    }
    return NULL;
}

static uint64_t number_of(const char *query, const char *key, uint64_t otherwise) {
    const char *value = value_of(query, key);
    return value ? strtoull(value, NULL, 10) : otherwise;
}

static bool says(const char *query, const char *key, const char *word) {
    const char *value = value_of(query, key);
    return value && !strncmp(value, word, strlen(word));
}

static void answer(struct connection *connection, const char *target) {
    const char *query = strchr(target, '?');
    if (!strcmp(target, "/stats")) {
        char line[64], answer[192];
        int length = sprintf(line, "events=%llu skipped=%llu\n", (unsigned long long)ticked, (unsigned long long)skipped);
        length = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", length, line);
        send_all(connection, answer, (size_t)length);
        return;
    }
    if (strncmp(target, "/sse", 4) || (target[4] && target[4] != '?')) {
        const char *missing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        send_all(connection, missing, strlen(missing));
        return;
    }
    if (query) query++;
    uint64_t limit = number_of(query, "n", 0);
    uint64_t rate = number_of(query, "rate", 0);
    bool idle = number_of(query, "idle", 0);
    struct form form = {
        .size = number_of(query, "size", 50),
        .batch = number_of(query, "batch", 0),
        .chunked = !says(query, "te", "close"),
        .stamped = says(query, "ts", "sent") || says(query, "ts", "due"),
        .crlf = says(query, "nl", "crlf"),
        .numbered = number_of(query, "id", 0),
    };
    if (form.size < 2) form.size = 2;
    if (form.stamped && form.size < MIN_STAMPED) form.size = MIN_STAMPED;
    if (form.size > MAX_PAYLOAD) form.size = MAX_PAYLOAD;
    if (!form.batch) form.batch = rate ? 1 : BATCH_BYTES / (form.size + 21 + (form.numbered ? 15 : 0));
    if (!form.batch) form.batch = 1;
    if (limit && form.batch > limit) form.batch = limit;
    if (form.batch > MAX_PAYLOAD / form.size) form.batch = MAX_PAYLOAD / form.size;

    connection->chunked = form.chunked;
    connection->stamps_due = says(query, "ts", "due");
    connection->limit = limit;
    connection->sent = 0;
    char head[512];
    int length = sprintf(
        head, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n%s\r\n",
        form.chunked ? "Transfer-Encoding: chunked\r\n" : "Connection: close\r\n"
    );
    if (idle || (rate && number_of(query, "hello", 0)))
        length += sprintf(head + length, "%s", form.chunked ? "5\r\n:ok\n\n\r\n" : ":ok\n\n");
    if (!send_all(connection, head, (size_t)length)) return;
    if (idle) {
        connection->phase = QUIET;
    } else if (rate) {
        connection->text = text_of(&form, false);
        connection->phase = TICKING;
        connection->interval = 1e9 * (double)form.batch / (double)rate;
        connection->due = INFINITY;
        schedule(connection);
        if (heap_count >= number_of(query, "after", 0)) begin_all();
    } else {
        connection->text = text_of(&form, true);
        connection->phase = BLASTING;
        connection->blast_sent = 0;
        connection->blast_length = limit ? limit / form.batch * connection->text->chunk_length : UINT64_MAX;
        connection->last_length = 0;
        connection->last = must(malloc((limit % form.batch + 1) * (connection->text->event_length + 32)));
        if (limit % form.batch) {
            form.batch = limit % form.batch;
            struct text *rest = text_of(&form, false);
            memcpy(connection->last, rest->bytes, rest->chunk_length);
            connection->last_length = rest->chunk_length;
        }
        if (form.chunked) {
            memcpy(connection->last + connection->last_length, "0\r\n\r\n", 5);
            connection->last_length += 5;
        }
        blast(connection);
    }
}

// Reads a request; its body, if it says the length of one, is passed over.
static void read_request(struct connection *connection) {
    if (!connection->request) {
        connection->request = must(malloc(REQUEST_BYTES + 1));
        connection->request_length = 0;
    }
    size_t room = REQUEST_BYTES - connection->request_length;
    ssize_t count = recv(connection->socket, connection->request + connection->request_length, room, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return close_connection(connection);
    connection->request_length += (size_t)count;
    char *request = connection->request;
    request[connection->request_length] = 0;
    char *end = strstr(request, "\r\n\r\n");
    if (!end) {
        if (connection->request_length == REQUEST_BYTES) close_connection(connection);
        return;
    }
    char *length = strcasestr(request, "\r\ncontent-length:");
    size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    if (connection->request_length - (size_t)(end + 4 - request) < body) {
        if (connection->request_length == REQUEST_BYTES) close_connection(connection);
        return;
    }
    char *closes = strcasestr(request, "\r\nconnection: close");
    connection->keeps_alive = !closes || closes > end;
    char *target = strchr(request, ' ');
    char *after = target ? strchr(target + 1, ' ') : NULL;
    if (!after || after > end) return close_connection(connection);
    *after = 0;
    connection->request = NULL;
    answer(connection, target + 1);
    free(request);
}

// Whoever sends more than a request is not read; only that it has gone matters.
static void read_end(struct connection *connection) {
    char bytes[4096];
    ssize_t count = recv(connection->socket, bytes, sizeof bytes, 0);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) close_connection(connection);
}

static void accept_all(int listener) {
    for (int turn = 0; turn < 256; turn++) {
        int socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket < 0) return;
        int one = 1;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct connection *connection = must(calloc(1, sizeof *connection));
        connection->socket = socket;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event);
    }
}

// MARK: The process

static int listen_on(int *port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
    };
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 4096)
        || getsockname(listener, (struct sockaddr *)&address, &length)) {
        perror("loadserver");
        exit(1);
    }
    *port = ntohs(address.sin_port);
    return listener;
}

int main(int count, char **words) {
    int port = 18080, option;
    double seconds = 60;
    while ((option = getopt(count, words, "p:t:")) != -1) {
        if (option == 'p') port = atoi(optarg);
        else if (option == 't') seconds = atof(optarg);
        else return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);

    uint64_t end = now() + (uint64_t)(seconds * 1e9);
    srand48((long)now());
    int listener = listen_on(&port);
    poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    printf("listening on 127.0.0.1:%d\n", port);
    fflush(stdout);

    static struct epoll_event events[1024];
    uint64_t last_tick = now() / MILLISECOND;
    for (uint64_t time = now(); time < end; time = now()) {
        int ready = epoll_wait(poller, events, 1024, heap_count ? 1 : 200);
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!connection) {
                accept_all(listener);
                continue;
            }
            if (connection->socket >= 0 && (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP))) {
                if (connection->phase == ASKING) read_request(connection);
                else read_end(connection);
            }
            if (connection->socket >= 0 && (events[i].events & EPOLLOUT)) {
                if (connection->phase == BLASTING) blast(connection);
                else if (flush(connection)) watch(connection, false);
            }
        }
        // Rates are kept by the millisecond: what is due within one is sent together.
        uint64_t tick_now = now() / MILLISECOND;
        if (tick_now > last_tick) {
            last_tick = tick_now;
            double due = (double)(tick_now * MILLISECOND);
            while (heap_count && heap[1]->due <= due) tick(heap[1], due);
        }
        while (closed) {
            struct connection *connection = closed;
            closed = connection->next_closed;
            free(connection);
        }
    }
    return 0;
}
