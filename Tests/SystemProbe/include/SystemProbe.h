// What tests need to know of, and to say in, calls that libcurl and its TLS make into the C library; and its heap.
//
// The test executable's own definitions of those calls come before the C library's in the order in which the dynamic
// linker looks for them, and go on to them. Any thread.

#ifndef SYSTEM_PROBE_H
#define SYSTEM_PROBE_H

#include <stddef.h>

/// Has getaddrinfo(3) give this numeric address for a name; with an empty one it does not return until there is another.
void probe_set_name(const char *name, const char *address);

/// How often getaddrinfo(3) was asked for a name that was set.
int probe_lookups(const char *name);

/// Has opened and looked up files counted whose path begins so.
void probe_watch_files(const char *prefix);

/// How many such files stat(2) or fopen(3) was asked for.
int probe_watched_files(void);

/// How many bytes of the heap are in use (mallinfo2(3)): what has been freed is not among them, as it is in the resident
/// memory, but for what a thread keeps of small ones. 0 where the C library does not tell.
size_t probe_live_heap(void);

/// Has all threads take from one heap, so that what is in use does not depend on which thread came by.
void probe_use_one_heap(void);

#endif
