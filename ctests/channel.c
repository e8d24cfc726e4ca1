/* Starts with an empty process and makes a semaphore release and a DMA copy on the GPU, with RM calls only. */
#include "channel.h"

static void semaphore_release(void)
{
    Channel c = channel_open(AMPERE_COMPUTE_B);
    Buffer push = buffer_open(&c.s, 4096), semaphore = buffer_open(&c.s, 4096);
    volatile uint32_t *value = semaphore.cpu;
#ifndef __SANITIZE_ADDRESS__ /* The shadow of the sanitizer may have the address. */
    assert((uintptr_t)push.cpu == push.va && "the library places a mapping at the same address for CPU and GPU");
#endif

    for (uint32_t round = 1; round <= 3; round++) {
        Push p = {push.cpu, 0};
        METHOD(&p, HOST, NVC56F_SEM_ADDR_LO, LO(semaphore.va), HI(semaphore.va), 0xc0de0000 + round, 0,
               NVC56F_SEM_EXECUTE_OPERATION_RELEASE);
        channel_submit(&c, push.va, p.used);
        await(value, 0xc0de0000 + round);
    }
    session_close(&c.s); /* Channel, engine, buffers and mappings are freed with the client. */
}

static void dma_copy(void)
{
    enum { BYTES = 200000 }; /* not a multiple of a page */
    Channel c = channel_open(AMPERE_DMA_COPY_B);
    Buffer push = buffer_open(&c.s, 4096), semaphore = buffer_open(&c.s, 4096);
    Buffer from = buffer_open(&c.s, 256 << 10), to = buffer_open(&c.s, 256 << 10);
    volatile unsigned char *src = from.cpu, *dst = to.cpu;
    for (unsigned i = 0; i < from.size; i++) {
        src[i] = (unsigned char)(i * 31 + i / 251);
        dst[i] = 0xee;
    }

    Push p = {push.cpu, 0};
    METHOD(&p, COPY, NVC56F_SET_OBJECT, AMPERE_DMA_COPY_B);
    METHOD(&p, COPY, NVC6B5_OFFSET_IN_UPPER, HI(from.va), LO(from.va), HI(to.va), LO(to.va));
    METHOD(&p, COPY, NVC6B5_LINE_LENGTH_IN, BYTES);
    METHOD(&p, COPY, NVC6B5_LAUNCH_DMA,
           NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED | NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_PITCH << NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_SHIFT |
               NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_PITCH << NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_SHIFT);
    METHOD(&p, COPY, NVC6B5_SET_SEMAPHORE_A, HI(semaphore.va), LO(semaphore.va), 77);
    METHOD(&p, COPY, NVC6B5_LAUNCH_DMA,
           NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_TRUE << NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_SHIFT | NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_FOUR_WORD_SEMAPHORE << NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_SHIFT);
    channel_submit(&c, push.va, p.used);
    await(semaphore.cpu, 77);

    for (unsigned i = 0; i < from.size; i++)
        assert(dst[i] == (i < BYTES ? src[i] : 0xee));
    buffer_close(&c.s, &to); /* This client frees everything itself, in the order that a careful client uses. */
    buffer_close(&c.s, &from);
    CHECK(rm_free(c.s.client, c.s.group, c.channel));
    session_close(&c.s);
}

int main(void)
{
    NvU32 devices = 0;
    CHECK(tegrarm_device_count(&devices)); /* This opens the backend, whose own descriptors stay open. */
    assert(devices >= 1);
    semaphore_release(); /* The first use may load libraries, so the counts start after it. */

    int fds = open_fds(), mappings = shared_mappings();
    semaphore_release();
    dma_copy();
    assert(open_fds() == fds && "a file descriptor leaked");
    assert(shared_mappings() == mappings && "a mapping leaked");
    CHECK(tegrarm_shutdown());
    puts("channel: ok");
    return 0;
}
