// The headers compile alone in C++, and their functions link as C.
#include "tegrarm.h"
#include "tegrarm_abi.h"

int main()
{
    NvHandle client = 0;
    if (tegrarm_version() == nullptr || rm_alloc(0, 0, &client, NV01_ROOT_CLIENT, nullptr, 0) != NV_OK)
        return 1;
    return rm_free(client, 0, client) == NV_OK ? 0 : 1;
}
