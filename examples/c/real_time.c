/* A control loop with a deadline: every millisecond it runs a recorded graph. It follows the rules of docs/real-time.md.
 * Usage: real_time [CUBIN [PERIODS]] */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "example.h"

enum { JOINTS = 64, WARM = 100, PERIOD_NS = 1000000 };

/* All pages stay in memory, and the thread runs before all ordinary ones. Both need rights, without which the loop is only less punctual. */
static void ask_for_real_time(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        fprintf(stderr, "real_time: mlockall: %s; raise the limit of locked memory (ulimit -l unlimited)\n", strerror(errno));
    const struct sched_param priority = {.sched_priority = 80};
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0)
        fprintf(stderr, "real_time: SCHED_FIFO: %s; raise the limit of priorities (ulimit -r 80)\n", strerror(errno));
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static long long nanoseconds(const struct timespec *t)
{
    return t->tv_sec * 1000000000LL + t->tv_nsec;
}

int main(int argc, char **argv)
{
    struct tegrarm_device *device;
    struct tegrarm_kernel *control;
    struct tegrarm_replay *replay;
    const long periods = argc > 2 ? strtol(argv[2], NULL, 10) : 1000;

    /* Everything that allocates happens before the loop. The device belongs to this thread: others open one of their own. */
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_module_kernel(load_kernels(device, argc, argv), "control", &control));
    Floats target = floats(device, JOINTS), position = floats(device, JOINTS), command = floats(device, JOINTS);
    float wanted[JOINTS] = {0}, given[JOINTS];
    const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {1, 1, 1}, .block_dim = {JOINTS, 1, 1}};
    const int joints = JOINTS;
    const float gain = 0.5f;
    const void *arguments[] = {&target.gpu, &position.gpu, &command.gpu, &gain, &joints};
    CHECK(tegrarm_replay_create(device, &replay));
    CHECK(tegrarm_replay_input(replay, target.cpu, wanted, sizeof wanted));
    CHECK(tegrarm_replay_launch(replay, control, &config, arguments, 5, NULL));
    CHECK(tegrarm_replay_output(replay, given, command.cpu, sizeof given));
    ask_for_real_time();
    for (int i = 0; i < WARM; i++)
        CHECK(tegrarm_replay_run(replay, NULL, 0, TEGRARM_WAIT_FOREVER));

    long long worst_wake = 0, worst_run = 0;
    const long faults_before = faults();
    struct timespec next, now;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (long i = 0; i < periods; i++) {
        next.tv_nsec += PERIOD_NS;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
        const long long woke = nanoseconds(&now);
        wanted[0] = (float)i;
        CHECK(tegrarm_replay_run(replay, NULL, 0, PERIOD_NS * 1000LL));
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (woke - nanoseconds(&next) > worst_wake)
            worst_wake = woke - nanoseconds(&next);
        if (nanoseconds(&now) - woke > worst_run)
            worst_run = nanoseconds(&now) - woke;
    }
    printf("real_time: %ld periods, %ld page faults\n", periods, faults() - faults_before);
    printf("at worst it woke %lld us late, and a run took %lld us\n", worst_wake / 1000, worst_run / 1000);
    CHECK(tegrarm_replay_destroy(replay));
    CHECK(tegrarm_device_close(device));
    CHECK(tegrarm_shutdown());
    return 0;
}
