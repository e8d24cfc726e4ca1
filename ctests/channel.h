/* A channel, and the functions that give it work: ring, USERD, doorbell, pushbuffer words, and waiting for a semaphore. */
#ifndef TEGRARM_CTESTS_CHANNEL_H
#define TEGRARM_CTESTS_CHANNEL_H

#include <stdatomic.h>
#include <time.h>

#include "session.h"

enum {
    ENTRIES = 1024,           /* GPFIFO entries */
    USERD_OFFSET = ENTRIES * 8,
    AREA_SIZE = 64 << 10,
    DOORBELL = NVC361_NOTIFY_CHANNEL_PENDING / 4, /* word of the usermode page */
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

static inline Channel channel_of(Session session, NvU32 engine_class)
{
    Channel c = {.s = session};
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

static inline Channel channel_open(NvU32 engine_class)
{
    return channel_of(session_open(), engine_class);
}

/* Pushbuffer writer: an incrementing method header and its arguments. */
typedef struct {
    volatile uint32_t *words;
    NvU32 used;
} Push;

static inline void method(Push *p, NvU32 subchannel, NvU32 address, NvU32 count, const NvU32 *args)
{
    p->words[p->used++] = 1u << 29 | count << 16 | subchannel << 13 | address >> 2;
    for (NvU32 i = 0; i < count; i++)
        p->words[p->used++] = args[i];
}
#define METHOD(p, subchannel, address, ...) \
    method(p, subchannel, address, sizeof(NvU32[]){__VA_ARGS__} / sizeof(NvU32), (NvU32[]){__VA_ARGS__})
#define HI(x) (NvU32)((x) >> 32)
#define LO(x) (NvU32)(x)

static inline void submit(Channel *c, NvU64 pushbuffer, NvU32 words)
{
    volatile uint64_t *ring = c->area.cpu;
    volatile AmpereAControlGPFifo *userd = (volatile AmpereAControlGPFifo *)((volatile char *)c->area.cpu + USERD_OFFSET);
    ring[c->put] = pushbuffer | (NvU64)words << 42 | (NvU64)1 << 41;
    c->put = (c->put + 1) % ENTRIES;
    atomic_thread_fence(memory_order_seq_cst); /* The GPU may read GPPut at any time, so the entry is written before it. */
    userd->GPPut = c->put;
    atomic_thread_fence(memory_order_seq_cst); /* All stores come before the doorbell. */
    *c->doorbell = c->token;
}

static inline void await(const volatile uint32_t *semaphore, uint32_t value)
{
    time_t deadline = time(NULL) + DEADLINE_S;
    while (*semaphore != value) {
        assert(time(NULL) < deadline && "the GPU never released the semaphore");
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    atomic_thread_fence(memory_order_acquire);
}

#endif
