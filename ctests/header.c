/* The headers compile alone, in every C standard from C99 on, without a warning. */
#define TEGRARM_ABI_CHECK_SIZES
#include "tegrarm.h"

/* With tegrarm.h alone: statuses and constants have names. */
const char *cause(const struct tegrarm_fault *fault);
const char *cause(const struct tegrarm_fault *fault)
{
    switch (fault->cause) {
    case TEGRARM_FAULT_NONE:
        return fault->sm == TEGRARM_FAULT_NO_SM ? "none" : "an SM's error";
    case TEGRARM_FAULT_MMU:
        return "MMU";
    default:
        return "another";
    }
}

NV_STATUS wait_for_all(struct tegrarm_device *device);
NV_STATUS wait_for_all(struct tegrarm_device *device)
{
    NvU64 fence;
    struct tegrarm_queue *queue;
    NV_STATUS status = tegrarm_device_queue(device, &queue);
    if (status == NV_OK)
        status = tegrarm_fence(queue, &fence);
    if (status == NV_OK && tegrarm_wait(device, fence, TEGRARM_WAIT_POLL) == NV_ERR_TIMEOUT)
        status = tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER);
    return status;
}

#include "tegrarm_abi.h"

int main(void)
{
    return sizeof(NvHandle) == 4 && sizeof(NvU64) == 8 && NV01_ROOT_CLIENT != NV01_ROOT ? 0 : 1;
}
