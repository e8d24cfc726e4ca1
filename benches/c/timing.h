/* Times in microseconds, and percentiles of many times. */
#ifndef TEGRARM_BENCH_TIMING_H
#define TEGRARM_BENCH_TIMING_H

#include <stdlib.h>
#include <time.h>

static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static inline int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the times and returns one of their percentiles. */
static inline double percentile(double *times, size_t count, unsigned percent)
{
    qsort(times, count, sizeof times[0], ascending);
    return times[count * percent / 100];
}

#endif
