/* The headers compile alone, in every C standard from C99 on, without a warning. */
#include "tegrarm.h"
#include "tegrarm_abi.h"

int main(void)
{
    return sizeof(NvHandle) == 4 && sizeof(NvU64) == 8 ? 0 : 1;
}
