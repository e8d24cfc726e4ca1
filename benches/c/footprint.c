/* What a process pays for the GPU: it opens a device, launches a kernel once and waits for it. Then it prints its resident memory in KiB by kind,
 * its processor time in microseconds since it was started, its page faults and its mappings.
 *
 * Compiled with -DBASELINE it does nothing of that and needs no library: the difference is the library's share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#ifndef BASELINE
#include "../../examples/c/example.h"
#endif

static long kib(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    return line ? atol(line + strlen(key)) : -1;
}

static void print_sample(void)
{
    static char status[8192];
    static char line[4096];
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    long maps = 0;
    FILE *file = fopen("/proc/self/status", "r");
    size_t got = file ? fread(status, 1, sizeof status - 1, file) : 0;
    status[got] = 0;
    if (file)
        fclose(file);
    file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file))
        maps += strchr(line, '\n') != NULL;
    if (file)
        fclose(file);
    printf("{\"anonymous\": %ld, \"file\": %ld, \"shared\": %ld, \"cpu\": %.0f, \"faults\": %ld, \"maps\": %ld, \"threads\": %ld}\n",
           kib(status, "RssAnon:"), kib(status, "RssFile:"), kib(status, "RssShmem:"), (double)cpu.tv_sec * 1e6 + (double)cpu.tv_nsec / 1e3,
           usage.ru_minflt + usage.ru_majflt, maps, kib(status, "Threads:"));
}

int main(int argc, char **argv)
{
#ifndef BASELINE
    enum { JOINTS = 64 };
    struct tegrarm_device *device;
    struct tegrarm_kernel *control;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_module_kernel(load_kernels(device, argc, argv), "control", &control));
    Floats memory = floats(device, 3 * JOINTS);
    const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {1, 1, 1}, .block_dim = {JOINTS, 1, 1}};
    const NvU64 parts[] = {memory.gpu, memory.gpu + 4 * JOINTS, memory.gpu + 8 * JOINTS};
    const int joints = JOINTS;
    const float gain = 1;
    const void *arguments[] = {&parts[0], &parts[1], &parts[2], &gain, &joints};
    NvU64 fence;
    CHECK(tegrarm_launch(NULL, control, &config, arguments, 5, &fence));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
#else
    (void)argc, (void)argv;
#endif
    print_sample();
    return 0;
}
