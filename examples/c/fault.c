/* A kernel writes to an address without memory. The device says what happened, and a new device works. */
#include "example.h"

int main(int argc, char **argv)
{
    struct tegrarm_device *device;
    struct tegrarm_kernel *vecadd;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_module_kernel(load_kernels(device, argc, argv), "vecadd", &vecadd));

    const NvU64 nowhere = 0x1234567000;
    const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {1, 1, 1}, .block_dim = {32, 1, 1}};
    const int n = 32;
    const void *arguments[] = {&nowhere, &nowhere, &nowhere, &n};
    NvU64 fence;
    CHECK(tegrarm_launch(NULL, vecadd, &config, arguments, 4, &fence));
    NV_STATUS status = tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER); /* The call returns at once, because the channel is dead. */
    if (status != NV_ERR_RESET_REQUIRED) {
        fprintf(stderr, "the wait returned %s\n", tegrarm_status_name(status));
        return 1;
    }
    struct tegrarm_fault fault = {.size = sizeof fault};
    CHECK(tegrarm_device_fault(device, &fault));
    printf("fault: %s\n", fault.sentence);
    if (fault.cause != TEGRARM_FAULT_MMU || fault.pc == 0)
        return 1;

    CHECK(tegrarm_device_close(device)); /* A device that has stopped runs nothing any more. */
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_device_close(device));
    CHECK(tegrarm_shutdown());
    return 0;
}
