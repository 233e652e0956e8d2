/* Counts the calls that change files below one folder, notes them in order, and makes the n-th of them go wrong.

   cc -shared -fPIC -O1 -o faults.so chaos_faults.c -ldl; LD_PRELOAD=faults.so PROGRAM

   A process is left alone until it calls chaos_arm, or if its command line holds $CHAOS_PROGRAM: then the first that
   has an event below $CHAOS_FOLDER, and can remove the file $CHAOS_ONCE, is killed at its $CHAOS_AT-th. $CHAOS_LOG tells
   of its events. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { NONE, KILL, TORN, FAIL, FAIL_FROM, SHORT, SHORT_FROM, BACKWARDS };

static char root[PATH_MAX];
static size_t root_length;
static int action, error_number, log_handle = -1, is_armed, is_waiting;
static long at, count;

void chaos_arm(const char *folder, int what, long number, int error, const char *log) {
    is_armed = is_waiting = 0;
    root_length = strlen(strncpy(root, folder, sizeof root - 1));
    action = what, at = number, error_number = error, count = 0;
    log_handle = log ? (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    is_armed = 1;
}

long chaos_count(void) { return count; }

__attribute__((constructor)) static void arm_program(void) {
    const char *program = getenv("CHAOS_PROGRAM");
    char line[4096];
    if (!program) return;
    int handle = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY);
    ssize_t size = syscall(SYS_read, handle, line, sizeof line - 1);
    syscall(SYS_close, handle);
    for (ssize_t i = 0; i < size; i++) line[i] = line[i] ? line[i] : ' ';
    line[size > 0 ? size : 0] = 0;
    if (!strstr(line, program)) return;
    chaos_arm(getenv("CHAOS_FOLDER"), KILL, atol(getenv("CHAOS_AT")), 0, getenv("CHAOS_LOG"));
    is_waiting = 1;
}

static int is_below(const char *path) {
    char full[PATH_MAX * 2];
    if (!is_armed || path == NULL) return 0;
    if (path[0] != '/') {
        char here[PATH_MAX];
        if (getcwd(here, sizeof here) == NULL) return 0;
        snprintf(full, sizeof full, "%s/%s", here, path);
        path = full;
    }
    if (strncmp(path, root, root_length) || (path[root_length] != '/' && path[root_length] != 0)) return 0;
    if (is_waiting) is_waiting = 0, is_armed = !syscall(SYS_unlinkat, AT_FDCWD, getenv("CHAOS_ONCE"), 0);
    return is_armed;
}

static const char *name_of(int handle, char *into) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, into, PATH_MAX - 1);
    if (length < 0) return NULL;
    into[length] = 0;
    return into;
}

static void note(const char *what, const char *path, const char *other, long size) {
    char line[PATH_MAX * 2 + 128];
    if (log_handle < 0) return;
    int length = snprintf(line, sizeof line, "%s\t%s\t%s\t%ld\n", what, path, other ? other : "", size);
    syscall(SYS_write, log_handle, line, (size_t)length);
}

/* The next event: 0 goes on, -1 fails, 1 is a short or torn write. A killed process does not come back. */
static int meet(int grows, int writes) {
    count++;
    if (action == KILL && count == at) note("kill", "", NULL, at), kill(getpid(), SIGKILL), pause();
    if (action == TORN && count == at) {
        if (writes) return 1;
        kill(getpid(), SIGKILL), pause();
    }
    if ((action == FAIL && count == at) || (action == FAIL_FROM && count >= at && grows)) {
        errno = error_number;
        return -1;
    }
    return writes && ((action == SHORT && count == at) || (action == SHORT_FROM && count >= at));
}

#define REAL(result, name, ...)                                                                  \
    static result (*real)(__VA_ARGS__);                                                          \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static ssize_t write_some(int handle, size_t size, int *torn) {
    char path[PATH_MAX];
    *torn = 0;
    if (!is_armed || handle == log_handle || !is_below(name_of(handle, path))) return (ssize_t)size;
    int met = meet(1, 1);
    if (met < 0) return -1;
    if (met > 0 && size > 1) size /= 2;
    *torn = met > 0 && action == TORN;
    note("write", path, NULL, (long)size);
    return (ssize_t)size;
}

ssize_t write(int handle, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    int torn;
    ssize_t some = write_some(handle, size, &torn);
    if (some < 0) return -1;
    ssize_t done = real(handle, data, (size_t)some);
    if (torn) kill(getpid(), SIGKILL), pause();
    return done;
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t where) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    int torn;
    ssize_t some = write_some(handle, size, &torn);
    if (some < 0) return -1;
    ssize_t done = real(handle, data, (size_t)some, where);
    if (torn) kill(getpid(), SIGKILL), pause();
    return done;
}

ssize_t pwrite(int handle, const void *data, size_t size, off_t where) { return pwrite64(handle, data, size, where); }

static int meet_handle(const char *what, int handle, int grows) {
    char path[PATH_MAX];
    if (!is_armed || !is_below(name_of(handle, path))) return 0;
    if (meet(grows, 0) < 0) return -1;
    struct stat status;
    note(what, path, NULL, fstat(handle, &status) == 0 ? (long)status.st_size : -1);
    return 0;
}

static int meet_path(const char *what, const char *path, const char *other, int grows) {
    if (!is_below(path)) return 0;
    if (meet(grows, 0) < 0) return -1;
    note(what, path, other, 0);
    return 0;
}

int fsync(int handle) {
    REAL(int, "fsync", int);
    return meet_handle("fsync", handle, 0) ? -1 : real(handle);
}

int fdatasync(int handle) {
    REAL(int, "fdatasync", int);
    return meet_handle("fsync", handle, 0) ? -1 : real(handle);
}

int ftruncate64(int handle, off64_t size) {
    REAL(int, "ftruncate64", int, off64_t);
    return meet_handle("truncate", handle, 0) ? -1 : real(handle, size);
}

int ftruncate(int handle, off_t size) { return ftruncate64(handle, size); }

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return meet_path("rename", from, to, 1) ? -1 : real(from, to);
}

int renameat(int a, const char *from, int b, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return meet_path("rename", from, to, 1) ? -1 : real(a, from, b, to);
}

int link(const char *from, const char *to) {
    REAL(int, "link", const char *, const char *);
    return meet_path("link", from, to, 1) ? -1 : real(from, to);
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
    REAL(int, "linkat", int, const char *, int, const char *, int);
    return meet_path("link", from, to, 1) ? -1 : real(a, from, b, to, flags);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return meet_path("unlink", path, NULL, 0) ? -1 : real(path);
}

int unlinkat(int folder, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return meet_path("unlink", path, NULL, 0) ? -1 : real(folder, path, flags);
}

static int open_counted(int folder, const char *path, int flags, mode_t mode) {
    if ((flags & O_CREAT) && meet_path("create", path, NULL, 1)) return -1;
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define OPEN(signature, folder)                                                                  \
    signature {                                                                                  \
        va_list more;                                                                            \
        va_start(more, flags);                                                                   \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;                \
        va_end(more);                                                                            \
        return open_counted(folder, path, flags, mode);                                          \
    }

OPEN(int open(const char *path, int flags, ...), AT_FDCWD)
OPEN(int open64(const char *path, int flags, ...), AT_FDCWD)
OPEN(int openat(int folder, const char *path, int flags, ...), folder)
OPEN(int openat64(int folder, const char *path, int flags, ...), folder)

/* The clock on the wall goes back by a year at the first reading, and by an hour more at each one after it. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int result = real(clock, now);
    if (is_armed && action == BACKWARDS && clock == CLOCK_REALTIME) now->tv_sec -= 31536000 + 3600 * count++;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec fine;
    int result = clock_gettime(CLOCK_REALTIME, &fine);
    now->tv_sec = fine.tv_sec, now->tv_usec = fine.tv_nsec / 1000;
    return result;
}

time_t time(time_t *into) {
    struct timespec fine;
    clock_gettime(CLOCK_REALTIME, &fine);
    if (into) *into = fine.tv_sec;
    return fine.tv_sec;
}
