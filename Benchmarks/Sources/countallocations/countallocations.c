// Counts a process's allocations: LD_PRELOAD=libcountallocations.so PROGRAM ..., glibc only.
//
// At the process's end one line goes to standard error: ALLOCATIONS COUNT. A call of malloc, calloc, realloc,
// posix_memalign, aligned_alloc or memalign that returns memory counts as one, on any thread.
//
// With COUNTED_SLOWLY=N in the environment the clocks that do not jump pass N times slower: a program under an instrument
// that slows it so much then does by the clock, such as to leave others their turn, what it does without.

#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// glibc's own names of its allocator, under the ones that are replaced here.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static _Atomic unsigned long allocations;

static void *counted(void *memory) {
    if (memory) atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    return memory;
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }

void *realloc(void *memory, size_t size) { return counted(__libc_realloc(memory, size)); }

void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

void *aligned_alloc(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    *memory = counted(__libc_memalign(alignment, size));
    return *memory ? 0 : ENOMEM;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static _Atomic int64_t slowness = -1;
    static _Atomic int64_t first[2];
    int64_t slow = atomic_load_explicit(&slowness, memory_order_relaxed);
    if (slow < 0) {
        const char *word = getenv("COUNTED_SLOWLY");
        atomic_store(&slowness, slow = word ? atoll(word) : 0);
    }
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result || slow < 2 || (clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)) return result;
    _Atomic int64_t *begin = &first[clock == CLOCK_BOOTTIME];
    int64_t now = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec, none = 0;
    if (!atomic_load(begin)) atomic_compare_exchange_strong(begin, &none, now);
    now = atomic_load(begin) + (now - atomic_load(begin)) / slow;
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

__attribute__((destructor)) static void report(void) {
    fprintf(stderr, "ALLOCATIONS %lu\n", atomic_load(&allocations));
}
