// The headers compile alone in C++, and their functions link as C.
#define TEGRARM_ABI_CHECK_SIZES
#include "tegrarm.h"

// With tegrarm.h alone: statuses and constants have names, and they convert to what functions take.
static bool refuses_without_a_device()
{
    tegrarm_buffer *buffer = nullptr;
    return tegrarm_buffer_alloc(nullptr, 1, TEGRARM_BUFFER_CACHED, &buffer) == NV_ERR_OBJECT_NOT_FOUND &&
           tegrarm_wait(nullptr, 0, TEGRARM_WAIT_FOREVER) == NV_ERR_OBJECT_NOT_FOUND;
}

#include "tegrarm_abi.h"

int main()
{
    NvHandle client = 0;
    if (tegrarm_version() == nullptr || rm_alloc(0, 0, &client, NV01_ROOT_CLIENT, nullptr, 0) != NV_OK)
        return 1;
    return refuses_without_a_device() && rm_free(client, 0, client) == NV_OK ? 0 : 1;
}
