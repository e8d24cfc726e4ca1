/* Measures the cost of the preload library for calls that do not concern it. Prints the nanoseconds per call of an open, an
 * ioctl, an ioctl that the file refuses with ENOTTY, and a close, the least over many batches. The difference between a run
 * with and a run without LD_PRELOAD is the cost. */
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 200, CALLS = 2000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#define LEAST(result, call)                                  \
    do {                                                     \
        result = 1e18;                                       \
        for (int batch = 0; batch < BATCHES; batch++) {      \
            double start = now();                            \
            for (int i = 0; i < CALLS; i++)                  \
                call;                                        \
            double each = (now() - start) / CALLS;           \
            result = each < result ? each : result;          \
        }                                                    \
    } while (0)

int main(void)
{
    int null = open("/dev/null", O_RDWR), ends[2], bytes = 0;
    assert(null >= 0 && pipe(ends) == 0);
    double opens, ioctls, refused, closes;
    LEAST(opens, (void)!open("/dev/nv-none", O_RDWR)); /* ENOENT; the path starts like a node's */
    LEAST(ioctls, (void)!ioctl(ends[0], FIONREAD, &bytes));
    LEAST(refused, (void)!ioctl(null, FIONREAD, &bytes)); /* It might be a node that came from elsewhere: looked up again. */
    LEAST(closes, (void)!close(ends[1] + 1)); /* EBADF, but the number could be a file's */
    printf("%.1f %.1f %.1f %.1f\n", opens, ioctls, refused, closes);
    return 0;
}
