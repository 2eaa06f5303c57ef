/* libcurl for Swift.

   curl_easy_setopt(), curl_easy_getinfo() and curl_multi_setopt() are variadic
   in C, which Swift cannot call: one wrapper here for each argument type that
   libcurl documents. Macros with casts come as functions. No logic. */

#ifndef CCURL_SHIM_H
#define CCURL_SHIM_H

#include <curl/curl.h>
#include <curl/multi.h>
#include <curl/urlapi.h>

#ifdef __linux__
/* Swift's Glibc module leaves these out. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <netinet/tcp.h>
#include <pthread.h>

/* glibc declares it for _GNU_SOURCE alone; musl has it too. */
int pthread_setname_np(pthread_t thread, const char *name);
#endif

#if LIBCURL_VERSION_NUM < 0x075500
#error "libcurl 7.85.0 or newer is needed to build (CURLOPT_PROTOCOLS_STR)"
#endif

/* libcurl copies the value. */
static inline CURLcode ccurl_easy_setopt_long(CURL *easy, CURLoption option, long value)
{
  return curl_easy_setopt(easy, option, value);
}

/* libcurl copies the value. */
static inline CURLcode ccurl_easy_setopt_off_t(CURL *easy, CURLoption option, curl_off_t value)
{
  return curl_easy_setopt(easy, option, value);
}

/* libcurl copies the string; NULL sets the option back. */
static inline CURLcode ccurl_easy_setopt_string(CURL *easy, CURLoption option, const char *value)
{
  return curl_easy_setopt(easy, option, value);
}

/* libcurl keeps the pointer (a list, a buffer, a callback's argument): it must
   outlive the transfer. CURLOPT_COPYPOSTFIELDS is the exception: copied. */
static inline CURLcode ccurl_easy_setopt_pointer(CURL *easy, CURLoption option, void *value)
{
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_easy_setopt_data_function(CURL *easy, CURLoption option, curl_write_callback value)
{
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_easy_setopt_opensocket_function(CURL *easy, curl_opensocket_callback value)
{
  return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, value);
}

static inline CURLcode ccurl_easy_setopt_prereq_function(CURL *easy, curl_prereq_callback value)
{
  return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, value);
}

static inline CURLcode ccurl_easy_getinfo_long(CURL *easy, CURLINFO info, long *value)
{
  return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_easy_getinfo_off_t(CURL *easy, CURLINFO info, curl_off_t *value)
{
  return curl_easy_getinfo(easy, info, value);
}

/* The string belongs to the easy handle. */
static inline CURLcode ccurl_easy_getinfo_string(CURL *easy, CURLINFO info, const char **value)
{
  return curl_easy_getinfo(easy, info, (char **)value);
}

static inline CURLMcode ccurl_multi_setopt_long(CURLM *multi, CURLMoption option, long value)
{
  return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode ccurl_multi_setopt_pointer(CURLM *multi, CURLMoption option, void *value)
{
  return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode ccurl_multi_setopt_socket_function(CURLM *multi, curl_socket_callback value)
{
  return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, value);
}

static inline CURLMcode ccurl_multi_setopt_timer_function(CURLM *multi, curl_multi_timer_callback value)
{
  return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, value);
}

/* The result of a message: a union member in C. */
static inline CURLcode ccurl_message_result(const CURLMsg *message)
{
  return message->data.result;
}

/* Options newer than the oldest libcurl this builds with; 0 where the headers have none. */
#if LIBCURL_VERSION_NUM >= 0x075700
static inline CURLoption ccurl_option_quick_exit(void) { return CURLOPT_QUICK_EXIT; }
#else
static inline CURLoption ccurl_option_quick_exit(void) { return (CURLoption)0; }
#endif

static inline curl_socket_t ccurl_socket_timeout(void) { return CURL_SOCKET_TIMEOUT; }
static inline size_t ccurl_writefunc_pause(void) { return CURL_WRITEFUNC_PAUSE; }
static inline size_t ccurl_error_size(void) { return CURL_ERROR_SIZE; }
static inline const curl_version_info_data *ccurl_version_info(void) { return curl_version_info(CURLVERSION_NOW); }

#ifdef __linux__
/* epoll_data is a union, which Swift reads only through a copy of its bytes. */
static inline unsigned long long ccurl_epoll_data(const struct epoll_event *event) { return event->data.u64; }
static inline struct epoll_event ccurl_epoll_event(unsigned int events, unsigned long long data)
{
  struct epoll_event event;
  event.events = events;
  event.data.u64 = data;
  return event;
}
#endif

#endif
