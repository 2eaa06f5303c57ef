// Counts a process's allocations: LD_PRELOAD=libcountallocations.so PROGRAM ..., glibc only.
//
// At the process's end one line goes to standard error: ALLOCATIONS COUNT. A call of malloc, calloc, realloc,
// posix_memalign, aligned_alloc or memalign that returns memory counts as one, on any thread.

#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

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

__attribute__((destructor)) static void report(void) {
    fprintf(stderr, "ALLOCATIONS %lu\n", atomic_load(&allocations));
}
