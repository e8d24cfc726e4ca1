/* A control loop: one recorded graph is run again and again with new inputs, and the time of each run is counted.
 * Usage: control_loop [CUBIN [RUNS]]
 *
 * The loop makes no system call, unless the GPU takes longer than the wait spins. It allocates nothing, and it never waits for
 * a lock. */
#include <time.h>

#include "example.h"

enum { JOINTS = 64, BUCKETS = 16 };

/* After this time a run has failed. A robot takes its own period; the examples also run on busy machines under Valgrind. */
static const NvU64 DEADLINE_NS = 30000000000;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Each bucket is twice as wide as the one before: below 1 us, below 2 us, below 4 us, … */
static void histogram(const unsigned *count, unsigned runs)
{
    for (int b = 0; b < BUCKETS; b++) {
        if (!count[b])
            continue;
        printf("%8d us %6u ", 1 << b, count[b]);
        for (unsigned i = 0; i < count[b] * 50 / runs; i++)
            putchar('#');
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    struct tegrarm_device *device;
    struct tegrarm_kernel *control;
    struct tegrarm_replay *replay;
    const unsigned runs = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 2000;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_module_kernel(load_kernels(device, argc, argv), "control", &control));
    Floats target = floats(device, JOINTS), position = floats(device, JOINTS), command = floats(device, JOINTS);
    float wanted[JOINTS], given[JOINTS];

    /* The recording: targets are copied in, one kernel runs, commands are copied out. Each run has its own gain. */
    CHECK(tegrarm_replay_create(device, &replay));
    CHECK(tegrarm_replay_input(replay, target.cpu, wanted, sizeof wanted));
    const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {1, 1, 1}, .block_dim = {JOINTS, 1, 1}};
    const int joints = JOINTS;
    float gain = 0;
    const void *arguments[] = {&target.gpu, &position.gpu, &command.gpu, &gain, &joints};
    NvU32 launch;
    CHECK(tegrarm_replay_launch(replay, control, &config, arguments, 5, &launch));
    CHECK(tegrarm_replay_argument(replay, launch, 3, 0));
    CHECK(tegrarm_replay_output(replay, given, command.cpu, sizeof given));

    unsigned count[BUCKETS] = {0};
    float expected = 0;
    for (unsigned run = 0; run < runs; run++) {
        for (int i = 0; i < JOINTS; i++)
            wanted[i] = (float)(run / 100 + (unsigned)i);
        gain = run % 2 ? 0.5f : 0.25f;
        NvU64 value = 0;
        memcpy(&value, &gain, sizeof gain);
        double start = now_us();
        CHECK(tegrarm_replay_run(replay, &value, 1, DEADLINE_NS));
        double took = now_us() - start;
        int bucket = 0;
        while (bucket < BUCKETS - 1 && took >= (double)(1 << bucket))
            bucket++;
        count[bucket]++;

        float u = gain * (wanted[0] - expected);
        expected += u;
        if (given[0] - u > 1e-5f || u - given[0] > 1e-5f) {
            fprintf(stderr, "run %u: joint 0 was told %g, not %g\n", run, (double)given[0], (double)u);
            return 1;
        }
    }
    printf("control_loop: %u runs; time of each, less than\n", runs);
    histogram(count, runs);
    CHECK(tegrarm_replay_destroy(replay));
    CHECK(tegrarm_device_close(device));
    CHECK(tegrarm_shutdown());
    return 0;
}
