// SPDX-License-Identifier: Apache-2.0
// Linked into the libraries of the wheel, so that they run with glibc 2.28 and later wherever they were built: what
// they and libstdc++.a call by a newer symbol version is defined here, hidden, by the version that every x86-64 glibc
// has. The old versions of exp, log and pow are the new ones behind a test for errors. tools/wheel_tag.py finds what is
// missing here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define HIDDEN __attribute__((visibility("hidden")))
/// Defines `name`, whose parameters and arguments are given in parentheses, as a call of name@version.
#define OLD(result, name, version, parameters, arguments)    \
  __asm__(".symver old_" #name "," #name "@GLIBC_" version); \
  extern result old_##name parameters;                       \
  HIDDEN result name parameters { return old_##name arguments; }

#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#pragma GCC diagnostic ignored "-Wnonnull-compare"

// 2.29: libm without the error handling of System V.
OLD(double, exp, "2.2.5", (double x), (x))
OLD(double, exp2, "2.2.5", (double x), (x))
OLD(double, log, "2.2.5", (double x), (x))
OLD(double, log2, "2.2.5", (double x), (x))
OLD(double, pow, "2.2.5", (double x, double y), (x, y))

// 2.32 and 2.34: libpthread and libdl became parts of libc.
OLD(int, pthread_sigmask, "2.2.5", (int how, const sigset_t* set, sigset_t* old), (how, set, old))
OLD(int, pthread_create, "2.2.5", (pthread_t * t, const pthread_attr_t* a, void* (*f)(void*), void* x), (t, a, f, x))
OLD(int, pthread_detach, "2.2.5", (pthread_t t), (t))
OLD(int, pthread_join, "2.2.5", (pthread_t t, void** result), (t, result))
OLD(int, pthread_once, "2.2.5", (pthread_once_t * once, void (*f)(void)), (once, f))
OLD(int, pthread_key_create, "2.2.5", (pthread_key_t * key, void (*destroy)(void*)), (key, destroy))
OLD(int, pthread_key_delete, "2.2.5", (pthread_key_t key), (key))
OLD(void*, pthread_getspecific, "2.2.5", (pthread_key_t key), (key))
OLD(int, pthread_setspecific, "2.2.5", (pthread_key_t key, const void* value), (key, value))
OLD(int, pthread_mutex_trylock, "2.2.5", (pthread_mutex_t * mutex), (mutex))
OLD(int, pthread_rwlock_rdlock, "2.2.5", (pthread_rwlock_t * lock), (lock))
OLD(int, pthread_rwlock_wrlock, "2.2.5", (pthread_rwlock_t * lock), (lock))
OLD(int, pthread_rwlock_unlock, "2.2.5", (pthread_rwlock_t * lock), (lock))
OLD(int, pthread_setaffinity_np, "2.3.4", (pthread_t t, size_t bytes, const cpu_set_t* set), (t, bytes, set))
OLD(void*, dlopen, "2.2.5", (const char* path, int mode), (path, mode))
OLD(void*, dlsym, "2.2.5", (void* library, const char* symbol), (library, symbol))
OLD(int, dlclose, "2.2.5", (void* library), (library))
OLD(char*, dlerror, "2.2.5", (void), ())
OLD(int, dladdr, "2.2.5", (const void* address, Dl_info* info), (address, info))

// 2.32: shared_ptr counts without atomic operations while a process has one thread. This one says that it has more.
HIDDEN char __libc_single_threaded = 0;

// 2.33: functions in place of inline calls of these, whose first argument is the version of struct stat.
extern int __xstat(int, const char*, struct stat*), __lxstat(int, const char*, struct stat*),
    __fxstat(int, int, struct stat*);
HIDDEN int stat(const char* path, struct stat* s) { return __xstat(1, path, s); }
HIDDEN int lstat(const char* path, struct stat* s) { return __lxstat(1, path, s); }
HIDDEN int fstat(int file, struct stat* s) { return __fxstat(1, file, s); }
HIDDEN int fstat64(int file, struct stat64* s) {
  return __fxstat(1, file, (struct stat*)s);
}  // the same struct on x86-64

// 2.29. The caller has another way (flashinfer/core/process.cc).
HIDDEN int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t* actions, const char* path) {
  int (*const add)(posix_spawn_file_actions_t*, const char*) =
      (int (*)(posix_spawn_file_actions_t*, const char*))dlsym(RTLD_DEFAULT, "posix_spawn_file_actions_addchdir_np");
  return add == NULL ? ENOSYS : add(actions, path);
}

// 2.30: a wait by another clock than the realtime one, by which the condition variables of libstdc++ wait (the
// default).
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until) {
  struct timespec theirs, ours;
  clock_gettime(clock, &theirs);
  clock_gettime(CLOCK_REALTIME, &ours);
  ours.tv_sec += until->tv_sec - theirs.tv_sec;
  ours.tv_nsec += until->tv_nsec - theirs.tv_nsec;
  if (ours.tv_nsec < 0) ours.tv_sec -= 1, ours.tv_nsec += 1000000000;
  if (ours.tv_nsec >= 1000000000) ours.tv_sec += 1, ours.tv_nsec -= 1000000000;
  return pthread_cond_timedwait(condition, mutex, &ours);
}

// 2.36, called by std::random_device.
HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != sizeof value)
    if (errno != EINTR) abort();
  return value;
}
