/* Lists the GPUs with their figures. */
#include "example.h"

int main(void)
{
    NvU32 count;
    CHECK(tegrarm_device_count(&count));
    printf("libtegrarm %s, %u device%s\n", tegrarm_version(), (unsigned)count, count == 1 ? "" : "s");
    for (NvU32 i = 0; i < count; i++) {
        struct tegrarm_device_profile p = {.size = sizeof p};
        CHECK(tegrarm_device_profile(i, &p));
        printf("%u: %s%s, sm_%u%u\n", (unsigned)i, p.name, p.simulated ? " (virtual)" : "", (unsigned)(p.sm_version >> 8),
               (unsigned)(p.sm_version & 0xff));
        printf("   %u SMs up to %.0f MHz, %u threads and %u bytes of shared memory a block\n", (unsigned)p.compute_units,
               (double)p.max_clock_hz / 1e6, (unsigned)p.max_threads_per_group, (unsigned)p.shared_mem_size);
        printf("   %.1f GiB of memory%s, %.0f GB/s\n", (double)p.memory_size / (1 << 30),
               p.shared_memory ? " shared with the CPU" : "", (double)p.local_bandwidth / 1e9);
    }
    CHECK(tegrarm_shutdown());
    return 0;
}
