/* From an empty process to a semaphore release and a DMA copy on the GPU, with RM calls only. */
#include <stdatomic.h>
#include <time.h>

#include "session.h"

enum {
    ENTRIES = 1024,           /* GPFIFO entries */
    USERD_OFFSET = ENTRIES * 8,
    AREA_SIZE = 64 << 10,
    DOORBELL = 0x90 / 4,      /* word of the usermode page */
    USERMODE_SIZE = 0x10000,
    HOST = 0, COPY = 4,       /* subchannels */
    DEADLINE_S = 20,
};

typedef struct {
    Session s;
    Buffer area;              /* ring at 0, USERD at USERD_OFFSET */
    NvHandle channel;
    volatile uint32_t *doorbell;
    NvU32 token, put;
} Channel;

static Channel channel_open(NvU32 engine_class)
{
    Channel c = {.s = session_open()};
    c.area = buffer_open(&c.s, AREA_SIZE);

    NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS params = {
        .hObjectBuffer = c.area.memory, .gpFifoOffset = c.area.va, .gpFifoEntries = ENTRIES, .hContextShare = c.s.share,
    };
    params.hUserdMemory[0] = c.area.memory;
    params.userdOffset[0] = USERD_OFFSET;
    c.channel = alloc(&c.s, c.s.group, AMPERE_CHANNEL_GPFIFO_A, &params, sizeof params);
    alloc(&c.s, c.channel, engine_class, NULL, 0);

    NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS schedule = {.bEnable = 1};
    CHECK(rm_control(c.s.client, c.s.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &schedule, sizeof schedule));
    NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS token = {.workSubmitToken = ~0u};
    CHECK(rm_control(c.s.client, c.channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &token, sizeof token));
    assert(token.workSubmitToken != ~0u);
    c.token = token.workSubmitToken;

    NvHandle usermode = alloc(&c.s, c.s.subdevice, TURING_USERMODE_A, NULL, 0);
    void *page = NULL;
    CHECK(rm_map_memory(c.s.client, c.s.subdevice, usermode, 0, USERMODE_SIZE, &page, 0));
    c.doorbell = (volatile uint32_t *)page + DOORBELL;
    return c;
}

/* Pushbuffer writer: an incrementing method header and its arguments. */
typedef struct {
    volatile uint32_t *words;
    NvU32 used;
} Push;

static void method(Push *p, NvU32 subchannel, NvU32 address, NvU32 count, const NvU32 *args)
{
    p->words[p->used++] = 1u << 29 | count << 16 | subchannel << 13 | address >> 2;
    for (NvU32 i = 0; i < count; i++)
        p->words[p->used++] = args[i];
}
#define METHOD(p, subchannel, address, ...) \
    method(p, subchannel, address, sizeof(NvU32[]){__VA_ARGS__} / sizeof(NvU32), (NvU32[]){__VA_ARGS__})
#define HI(x) (NvU32)((x) >> 32)
#define LO(x) (NvU32)(x)

static void submit(Channel *c, NvU64 pushbuffer, NvU32 words)
{
    volatile uint64_t *ring = c->area.cpu;
    volatile uint32_t *gp_put = (volatile uint32_t *)((volatile char *)c->area.cpu + USERD_OFFSET + 0x8c);
    ring[c->put] = pushbuffer | (NvU64)words << 42 | (NvU64)1 << 41;
    c->put = (c->put + 1) % ENTRIES;
    *gp_put = c->put;
    atomic_thread_fence(memory_order_seq_cst);
    *c->doorbell = c->token;
}

static void await(const volatile uint32_t *semaphore, uint32_t value)
{
    time_t deadline = time(NULL) + DEADLINE_S;
    while (*semaphore != value) {
        assert(time(NULL) < deadline && "the GPU never released the semaphore");
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    atomic_thread_fence(memory_order_acquire);
}

static void semaphore_release(void)
{
    Channel c = channel_open(AMPERE_COMPUTE_B);
    Buffer push = buffer_open(&c.s, 4096), semaphore = buffer_open(&c.s, 4096);
    volatile uint32_t *value = semaphore.cpu;

    for (uint32_t round = 1; round <= 3; round++) {
        Push p = {push.cpu, 0};
        METHOD(&p, HOST, NVC56F_SEM_ADDR_LO, LO(semaphore.va), HI(semaphore.va), 0xc0de0000 + round, 0,
               NVC56F_SEM_EXECUTE_OPERATION_RELEASE);
        submit(&c, push.va, p.used);
        await(value, 0xc0de0000 + round);
    }
    session_close(&c.s); /* channel, engine, buffers and mappings go with the client */
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
           NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED | NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_PITCH << 7 |
               NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_PITCH << 8);
    METHOD(&p, COPY, NVC6B5_SET_SEMAPHORE_A, HI(semaphore.va), LO(semaphore.va), 77);
    METHOD(&p, COPY, NVC6B5_LAUNCH_DMA,
           NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_TRUE << 2 | NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_FOUR_WORD_SEMAPHORE << 3);
    submit(&c, push.va, p.used);
    await(semaphore.cpu, 77);

    for (unsigned i = 0; i < from.size; i++)
        assert(dst[i] == (i < BYTES ? src[i] : 0xee));
    buffer_close(&c.s, &to); /* by hand, in the order a careful client uses */
    buffer_close(&c.s, &from);
    CHECK(rm_free(c.s.client, c.s.group, c.channel));
    session_close(&c.s);
}

int main(void)
{
    NvU32 devices = 0;
    CHECK(tegrarm_device_count(&devices)); /* opens the backend, whose own fds stay open */
    assert(devices >= 1);
    semaphore_release(); /* first use may load lazily; the counts start after it */

    int fds = open_fds(), mappings = shared_mappings();
    semaphore_release();
    dma_copy();
    assert(open_fds() == fds && "a file descriptor leaked");
    assert(shared_mappings() == mappings && "a mapping leaked");
    CHECK(tegrarm_shutdown());
    puts("channel: ok");
    return 0;
}
