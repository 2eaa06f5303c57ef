#define _GNU_SOURCE
#include "SystemProbe.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#define NAMES 64

static struct {
  char name[64];
  char address[64];
  int lookups;
} names[NAMES];
static int nameCount;
static char prefix[256];
static int fileCount;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static int find(const char *name) {
  for (int index = 0; index < nameCount; index++) {
    if (strcmp(names[index].name, name) == 0) return index;
  }
  return -1;
}

void probe_set_name(const char *name, const char *address) {
  pthread_mutex_lock(&lock);
  int index = find(name);
  if (index < 0 && nameCount < NAMES) {
    index = nameCount++;
    snprintf(names[index].name, sizeof names[index].name, "%s", name);
  }
  if (index >= 0) snprintf(names[index].address, sizeof names[index].address, "%s", address);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

int probe_lookups(const char *name) {
  pthread_mutex_lock(&lock);
  int index = find(name);
  int count = index < 0 ? 0 : names[index].lookups;
  pthread_mutex_unlock(&lock);
  return count;
}

void probe_watch_files(const char *path) {
  pthread_mutex_lock(&lock);
  snprintf(prefix, sizeof prefix, "%s", path);
  fileCount = 0;
  pthread_mutex_unlock(&lock);
}

int probe_watched_files(void) {
  pthread_mutex_lock(&lock);
  int count = fileCount;
  pthread_mutex_unlock(&lock);
  return count;
}

static void lookedUp(const char *path) {
  if (path == NULL) return;
  pthread_mutex_lock(&lock);
  if (prefix[0] != 0 && strncmp(path, prefix, strlen(prefix)) == 0) fileCount++;
  pthread_mutex_unlock(&lock);
}

typedef int (*lookup)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  lookup real = (lookup)dlsym(RTLD_NEXT, "getaddrinfo");
  char address[64] = "";
  pthread_mutex_lock(&lock);
  int index = name == NULL ? -1 : find(name);
  if (index >= 0) {
    names[index].lookups++;
    while (names[index].address[0] == 0) pthread_cond_wait(&changed, &lock);
    memcpy(address, names[index].address, sizeof address);
  }
  pthread_mutex_unlock(&lock);
  return real(index >= 0 ? address : name, service, hints, found);
}

int stat(const char *path, struct stat *result) {
  lookedUp(path);
  return ((int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat"))(path, result);
}

FILE *fopen(const char *path, const char *mode) {
  lookedUp(path);
  return ((FILE * (*)(const char *, const char *))dlsym(RTLD_NEXT, "fopen"))(path, mode);
}

#ifdef __GLIBC__
// OpenSSL's.
FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }
#endif

size_t probe_live_heap(void) {

#ifdef __GLIBC__
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

void probe_use_one_heap(void) {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 1);
#endif
}
