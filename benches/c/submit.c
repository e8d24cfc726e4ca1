/* A launch, COUNT times, inside functions that callgrind collects and whose time is printed: through the runtime, through a
 * replay, and by hand: the same descriptor, parameter bank, pushbuffer words, ring entry, pointer and doorbell, from C.
 * Arguments: a cubin with vecadd(a, b, c, n), and which one to run ("runtime", "replay", "hand", or all). */
#include <time.h>

#include "channel.h"

enum { COUNT = 1000, WARM = 16, QMD_WORDS = 64, BANK_WORDS = 96, SLOT = 1024, SLOTS = 512 };

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double took[COUNT];

static void report(const char *what)
{
    qsort(took, COUNT, sizeof took[0], ascending);
    printf("%s %.3f\n", what, took[COUNT / 2]);
}

/* --- by hand ------------------------------------------------------------------------------------------------------ */

typedef struct {
    Channel c;
    Buffer slots;             /* QMD, bank and words of each submission in flight */
    Buffer semaphore;
    NvU64 last;
    uint32_t qmd[QMD_WORDS], bank[BANK_WORDS];
} Hand;

/* One launch: waits for its slot to be free, fills it in, submits. Arguments are copied from one pointer each. */
__attribute__((noinline)) NvU64 by_hand(Hand *h, const void *const *arguments)
{
    NvU64 fence = ++h->last, offset = fence % SLOTS * SLOT, qmd = h->slots.va + offset + 256, bank = qmd + 256;
    while (fence > SLOTS && *(volatile NvU64 *)h->semaphore.cpu < fence - SLOTS)
        atomic_thread_fence(memory_order_acquire);
    memcpy((char *)h->bank + 0x160, arguments[0], 8);
    memcpy((char *)h->bank + 0x168, arguments[1], 8);
    memcpy((char *)h->bank + 0x170, arguments[2], 8);
    memcpy((char *)h->bank + 0x178, arguments[3], 4);
    h->qmd[1024 / 32] = LO(bank); /* CONSTANT_BUFFER_ADDR_LOWER(0), UPPER(0) */
    h->qmd[1056 / 32] = (h->qmd[1056 / 32] & ~0x1ffffu) | HI(bank);
    volatile uint32_t *slot = (volatile uint32_t *)((volatile char *)h->slots.cpu + offset);
    for (int i = 0; i < QMD_WORDS; i++)
        slot[64 + i] = h->qmd[i];
    for (int i = 0; i < BANK_WORDS; i++)
        slot[128 + i] = h->bank[i];
    Push p = {slot, 0};
    METHOD(&p, 1, NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI, 0x1011);
    METHOD(&p, 1, NVC6C0_SEND_PCAS_A, (NvU32)(qmd >> 8));
    METHOD(&p, 1, NVC6C0_SEND_SIGNALING_PCAS2_B, 9);
    METHOD(&p, HOST, NVC56F_SEM_ADDR_LO, LO(h->semaphore.va), HI(h->semaphore.va), LO(fence), HI(fence), 0x1100001);
    submit(&h->c, h->slots.va + offset, p.used);
    return fence;
}
