// The ceilings: what a client of the load server costs that does nothing but libcurl's work and the least of its own.
//
//     ceiling count|copy blast|trickle|lat|late URL [-n CONNECTIONS] [-s SECONDS] [-B BYTES]
//
//   count    looks at each payload where it lies
//   copy     copies each payload into memory of its own and frees it: the least of a client that hands payloads on
//   blast    until every body ends; figures over the whole run
//   trickle  figures over a window of SECONDS (default 5), half a second after all CONNECTIONS (default 1) answered
//   lat      as blast; payloads carry the time they were sent at
//   late     as trickle; payloads carry the time they were due at
//   -B       CURLOPT_BUFFERSIZE; default 256 KiB for a blast, libcurl's own otherwise
//
// One thread: curl_multi_socket_action(3) under epoll_wait(2), lines found by memchr(3). Knows the fields `data` and
// `event`, events over any cut, CRLF; no limit, no lone CR, no id, no UTF-8. Prints one line: RESULT key=value ...
// Fails where a stream did, had other events than n= in its URL, ended inside a window, or was not open after 30 s.

#define _GNU_SOURCE
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const uint64_t NEVER = UINT64_MAX;
static const int OPENING_AT_ONCE = 128;
static const int OPENING_SECONDS = 30;

// MARK: What the system says

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static long resident(void) {
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return 0;
    char line[256];
    long kilobytes = 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %ld", &kilobytes) == 1) break;
    fclose(file);
    return kilobytes;
}

static void *must(void *memory) {
    if (!memory) {
        fputs("ceiling: out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

// MARK: Payloads

static bool copies, stamped;
static uint64_t events, body_bytes;
// A byte of each payload, its middle one: the compiler may leave nothing out, and all clients must have the same.
static uint64_t sum;
// What else is read, for the same reason.
static uint64_t looks;
static uint64_t *delays;
static size_t delay_count, delay_room;

static void note_delay(const char *payload, size_t length) {
    if (length < 24) return;
    uint64_t sent = 0;
    for (int digit = 0; digit < 19; digit++) sent = sent * 10 + (uint64_t)(payload[5 + digit] - '0');
    if (delay_count == delay_room) {
        delay_room = delay_room ? 2 * delay_room : 4096;
        delays = must(realloc(delays, delay_room * sizeof *delays));
    }
    delays[delay_count++] = now() - sent;
}

// In line whatever the compiler thinks of it: a call costs a twentieth of an event of 50 bytes.
__attribute__((always_inline)) static inline void payload(const char *bytes, size_t length) {
    events++;
    if (copies) {
        char *copy = must(malloc(length + 1));
        memcpy(copy, bytes, length);
        if (length) sum += (unsigned char)copy[length / 2];
        free(copy);
    } else if (length) {
        sum += (unsigned char)bytes[length / 2];
    }
    if (stamped) note_delay(bytes, length);
}

// MARK: Lines

struct bytes {
    char *start;
    size_t length, room;
};

static void append(struct bytes *bytes, const char *from, size_t length) {
    if (bytes->length + length > bytes->room) {
        while (bytes->length + length > bytes->room) bytes->room = bytes->room ? 2 * bytes->room : 256;
        bytes->start = must(realloc(bytes->start, bytes->room));
    }
    memcpy(bytes->start + bytes->length, from, length);
    bytes->length += length;
}

struct splitter {
    struct bytes cut;  // a line without its end
    struct bytes data; // data lines of the event under way that could not stay where they came
    // The event's one data line, where it came.
    const char *line;
    size_t line_length;
    int lines;
};

static void keep(struct splitter *splitter) {
    if (!splitter->line) return;
    splitter->data.length = 0;
    append(&splitter->data, splitter->line, splitter->line_length);
    splitter->line = NULL;
}

static inline void take_line(struct splitter *splitter, const char *line, size_t length) {
    if (length && line[length - 1] == '\r') length--;
    if (!length) {
        if (!splitter->lines) return;
        if (splitter->line) payload(splitter->line, splitter->line_length);
        else payload(splitter->data.start, splitter->data.length);
        splitter->line = NULL;
        splitter->lines = 0;
        return;
    }
    if (length < 5 || memcmp(line, "data:", 5)) {
        if (length > 6 && !memcmp(line, "event:", 6)) looks += (unsigned char)line[length - 1];
        return;
    }
    size_t head = length > 5 && line[5] == ' ' ? 6 : 5;
    if (!splitter->lines) {
        splitter->line = line + head;
        splitter->line_length = length - head;
    } else {
        keep(splitter);
        append(&splitter->data, "\n", 1);
        append(&splitter->data, line + head, length - head);
    }
    splitter->lines++;
}

static void split(struct splitter *splitter, const char *bytes, size_t length) {
    const char *end = bytes + length, *line_end;
    if (splitter->cut.length) {
        line_end = memchr(bytes, '\n', length);
        append(&splitter->cut, bytes, (size_t)((line_end ? line_end : end) - bytes));
        if (!line_end) return;
        // Stays where it is until the next cut, before which it is kept.
        size_t whole = splitter->cut.length;
        splitter->cut.length = 0;
        take_line(splitter, splitter->cut.start, whole);
        bytes = line_end + 1;
    }
    for (; bytes < end && (line_end = memchr(bytes, '\n', (size_t)(end - bytes))); bytes = line_end + 1)
        take_line(splitter, bytes, (size_t)(line_end - bytes));
    keep(splitter);
    append(&splitter->cut, bytes, (size_t)(end - bytes));
}

// MARK: libcurl

struct transfer {
    struct splitter splitter;
    bool answered;
};

static CURLM *multi;
static int poller;
static uint64_t timeout = NEVER;
static int answered, finished, failures;

static size_t received(char *bytes, size_t size, size_t count, void *context) {
    struct transfer *transfer = context;
    if (!transfer->answered) answered++;
    transfer->answered = true;
    body_bytes += size * count;
    split(&transfer->splitter, bytes, size * count);
    return size * count;
}

static int socket_changed(CURL *easy, curl_socket_t socket, int what, void *context, void *known) {
    (void)easy, (void)context;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(poller, EPOLL_CTL_DEL, socket, NULL);
        return 0;
    }
    struct epoll_event event = {.data.fd = socket};
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (known || epoll_ctl(poller, EPOLL_CTL_ADD, socket, &event)) epoll_ctl(poller, EPOLL_CTL_MOD, socket, &event);
    if (!known) curl_multi_assign(multi, socket, &poller);
    return 0;
}

static int timer_changed(CURLM *of, long milliseconds, void *context) {
    (void)of, (void)context;
    timeout = milliseconds < 0 ? NEVER : now() + (uint64_t)milliseconds * 1000000;
    return 0;
}

static void start(const char *url, struct transfer *transfer, long buffer) {
    CURL *easy = must(curl_easy_init());
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, received);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    if (buffer) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, buffer);
    curl_multi_add_handle(multi, easy);
}

// One turn of the loop: at most a tenth of a second.
static void turn(void) {
    static struct epoll_event ready[512];
    uint64_t time = now();
    int wait = 100;
    if (timeout <= time) wait = 0;
    else if (timeout != NEVER && (timeout - time) / 1000000 < 100) wait = (int)((timeout - time + 999999) / 1000000);
    int count = epoll_wait(poller, ready, 512, wait), running;
    for (int i = 0; i < count; i++) {
        int what = 0;
        if (ready[i].events & EPOLLIN) what |= CURL_CSELECT_IN;
        if (ready[i].events & EPOLLOUT) what |= CURL_CSELECT_OUT;
        if (ready[i].events & (EPOLLERR | EPOLLHUP)) what |= CURL_CSELECT_ERR;
        curl_multi_socket_action(multi, ready[i].data.fd, what, &running);
    }
    if (timeout != NEVER && now() >= timeout) {
        timeout = NEVER;
        curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &left));) {
        if (message->msg != CURLMSG_DONE) continue;
        CURL *easy = message->easy_handle;
        long status = 0;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (message->data.result || status != 200) {
            // Ten thousand may fail alike.
            if (!failures++) fprintf(stderr, "ceiling: %s, status %ld\n", curl_easy_strerror(message->data.result), status);
        }
        curl_multi_remove_handle(multi, easy);
        curl_easy_cleanup(easy);
        finished++;
    }
}

// MARK: The process

static int ascending(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// The events a stream has by its URL; 0 where it does not say.
static uint64_t asked(const char *url) {
    const char *query = strchr(url, '?');
    for (; query; query = strchr(query, '&'))
        if (!strncmp(++query, "n=", 2)) return strtoull(query + 2, NULL, 10);
    return 0;
}

static int usage(void) {
    fputs("usage: ceiling count|copy blast|trickle|lat|late URL [-n CONNECTIONS] [-s SECONDS] [-B BYTES]\n", stderr);
    return 2;
}

int main(int count, char **words) {
    if (count < 4) return usage();
    const char *mode = words[1], *kind = words[2], *url = words[3];
    bool late = !strcmp(kind, "late"), window = late || !strcmp(kind, "trickle");
    copies = !strcmp(mode, "copy");
    stamped = !strcmp(kind, "lat");
    if (!copies && strcmp(mode, "count")) return usage();
    if (!window && !stamped && strcmp(kind, "blast")) return usage();
    int connections = 1, option;
    double seconds = 5;
    long buffer = window || stamped ? 0 : 256 << 10;
    optind = 4;
    while ((option = getopt(count, words, "n:s:B:")) != -1) {
        if (option == 'n') connections = atoi(optarg);
        else if (option == 's') seconds = atof(optarg);
        else if (option == 'B') buffer = atol(optarg);
        else return usage();
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = must(curl_multi_init());
    poller = epoll_create1(EPOLL_CLOEXEC);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer_changed);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)connections);
    long resident_before = resident();
    struct transfer *transfers = must(calloc((size_t)connections, sizeof *transfers));

    uint64_t first = now(), begin = NEVER, end = NEVER, events_before = 0;
    double cpu_before = cpu();
    int started = 0;
    uint64_t deadline = first + (uint64_t)OPENING_SECONDS * 1000000000;
    while (finished < connections && now() < end) {
        // Not all at once: a listener's queue is short.
        while (started < connections && started - answered < OPENING_AT_ONCE) start(url, &transfers[started++], buffer);
        turn();
        if (!window || end != NEVER) continue;
        if (answered < connections && (finished || now() > deadline)) {
            fprintf(stderr, "ceiling: %d of %d streams answered, %d ended; no figures\n", answered, connections, finished);
            return 1;
        }
        // What the openings left behind is none of the window's.
        if (begin == NEVER && answered == connections) begin = now() + 500000000;
        if (now() >= begin) {
            first = now();
            stamped = late;
            cpu_before = cpu();
            events_before = events;
            end = first + (uint64_t)(seconds * 1e9);
        }
    }
    double used = cpu() - cpu_before;
    double wall = (double)(now() - first) / 1e9;
    uint64_t counted = events - events_before, expected = asked(url) * (uint64_t)connections;
    if (window && finished) {
        fprintf(stderr, "ceiling: %d streams ended inside the window\n", finished);
        failures += finished;
    }
    if (!window && expected && counted != expected) {
        fprintf(stderr, "ceiling: %llu events, not %llu\n", (unsigned long long)counted, (unsigned long long)expected);
        failures++;
    }
    printf("RESULT peer=c-%s kind=%s conns=%d events=%llu mb=%.1f wall=%.4f cpu=%.4f ev_s=%.0f mb_s=%.1f cpu_per_m=%.4f",
        mode, kind, connections, (unsigned long long)counted, (double)body_bytes / 1e6, wall, used, (double)counted / wall,
        (double)body_bytes / 1e6 / wall, counted ? used / (double)counted * 1e6 : 0.0);
    printf(" rss0_kb=%ld rss1_kb=%ld sum=%llu looks=%llu failures=%d", resident_before, resident(), (unsigned long long)sum,
        (unsigned long long)looks, failures);
    if (delay_count) {
        qsort(delays, delay_count, sizeof *delays, ascending);
        printf(" p50_us=%.1f p99_us=%.1f max_us=%.1f", (double)delays[delay_count / 2] / 1e3,
            (double)delays[delay_count * 99 / 100] / 1e3, (double)delays[delay_count - 1] / 1e3);
    }
    printf("\n");
    return failures > 0;
}
