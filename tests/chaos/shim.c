/* Preloaded into a controller: makes flushes slow or hang and the wall clock wrong, as a page of shared
 * memory says at that moment (tests/chaos/disks.py writes it).
 *
 * Only what Python reads of the wall clock is shifted. gRPC computes absolute deadlines from it for
 * futexes, which the kernel measures by the true clock; shifting those would make waits of hours
 * out of milliseconds, which no wrong but steady clock does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct control {
    int64_t flush_delay_ns;
    int64_t skew_ns;
    int64_t hangs;
};

static volatile struct control *control;
static const void *python;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("QUORATE_CHAOS_CONTROL");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *page = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, file, 0);
        control = page == MAP_FAILED ? NULL : page;
        close(file);
    }
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "Py_Initialize");
    if (symbol && dladdr(symbol, &info)) python = info.dli_fbase;
}

static int is_python(const void *caller) {
    Dl_info info;
    return python && dladdr(caller, &info) && info.dli_fbase == python;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real ? real(clock, now) : (int)syscall(SYS_clock_gettime, clock, now);
    int64_t skew = control ? control->skew_ns : 0;
    if (result == 0 && skew && clock == CLOCK_REALTIME && is_python(__builtin_return_address(0))) {
        int64_t at = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + skew;
        now->tv_sec = at / 1000000000;
        now->tv_nsec = at % 1000000000;
    }
    return result;
}

static void delay(void) {
    const struct timespec pause = {0, 5000000};
    while (control && control->hangs) nanosleep(&pause, NULL);
    int64_t left = control ? control->flush_delay_ns : 0;
    struct timespec time = {left / 1000000000, left % 1000000000};
    if (left > 0) nanosleep(&time, NULL);
}

int fdatasync(int file) {
    delay();
    return (int)syscall(SYS_fdatasync, file);
}

int fsync(int file) {
    delay();
    return (int)syscall(SYS_fsync, file);
}
