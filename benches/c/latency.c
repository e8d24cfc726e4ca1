/* Measures the time from the doorbell to the semaphore's value that the CPU polls: its median and 99th percentile. Then it
 * measures the cost of an idle device: CPU time, and how often per second its threads wake up. No other program on the machine
 * changes this number. */
#include <sys/resource.h>

#include "channel.h"
#include "timing.h"

enum { ROUNDS = 5000, IDLE_S = 2 };

static double cpu_us(const struct rusage *u)
{
    return (u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e6 + u->ru_utime.tv_usec + u->ru_stime.tv_usec;
}

int main(void)
{
    static double took[ROUNDS];
    Channel c = channel_open(AMPERE_COMPUTE_B);
    Buffer push = buffer_open(&c.s, 4096), semaphore = buffer_open(&c.s, 4096);
    volatile uint32_t *value = semaphore.cpu;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        Push p = {push.cpu, 0};
        METHOD(&p, HOST, NVC56F_SEM_ADDR_LO, LO(semaphore.va), HI(semaphore.va), i + 1, 0, NVC56F_SEM_EXECUTE_OPERATION_RELEASE);
        double start = now_us();
        channel_submit(&c, push.va, p.used);
        while (*value != i + 1)
            atomic_thread_fence(memory_order_acquire);
        took[i] = now_us() - start;
    }
    printf("%.1f ", percentile(took, ROUNDS, 50));
    printf("%.1f ", percentile(took, ROUNDS, 99));

    nanosleep(&(struct timespec){.tv_sec = 1}, NULL); /* The GPU's threads go to sleep in this time. */
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    nanosleep(&(struct timespec){.tv_sec = IDLE_S}, NULL);
    getrusage(RUSAGE_SELF, &after);
    printf("%.3f ", (cpu_us(&after) - cpu_us(&before)) / (IDLE_S * 1e6) * 100);
    printf("%ld\n", (after.ru_nvcsw - before.ru_nvcsw) / IDLE_S);
    session_close(&c.s);
    return 0;
}
