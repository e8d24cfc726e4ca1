/* Brings a channel up with RM calls alone: client, device, subdevice, address space, channel group, context share, memory, ring and doorbell.
 * The file that includes this one defines CHECK, which ends the program if a call fails. */
#ifndef TEGRARM_EXAMPLE_BRINGUP_H
#define TEGRARM_EXAMPLE_BRINGUP_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "tegrarm.h"
#include "tegrarm_abi.h"

/* The objects of a program, of which each needs those before it. */
typedef struct {
    NvHandle client, device, subdevice, vaspace, mapper, group, share;
} Session;

static inline NvHandle alloc(const Session *s, NvHandle parent, NvU32 class_, void *params, NvU32 size)
{
    NvHandle object = 0;
    CHECK(rm_alloc(s->client, parent, &object, class_, params, size));
    assert(object != 0);
    return object;
}

/* The objects below a client that exists already. */
static inline Session session_of(NvHandle client)
{
    Session s = {.client = client};
    NV0080_ALLOC_PARAMETERS device = {.hClientShare = s.client};
    s.device = alloc(&s, s.client, NV01_DEVICE_0, &device, sizeof device);
    NV2080_ALLOC_PARAMETERS subdevice = {0};
    s.subdevice = alloc(&s, s.device, NV20_SUBDEVICE_0, &subdevice, sizeof subdevice);

    NV_VASPACE_ALLOCATION_PARAMETERS vaspace = {0};
    s.vaspace = alloc(&s, s.device, FERMI_VASPACE_A, &vaspace, sizeof vaspace);
    NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS mapper = {.hVASpace = s.vaspace};
    s.mapper = alloc(&s, s.device, NV01_MEMORY_VIRTUAL, &mapper, sizeof mapper);

    NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS group = {.engineType = NV2080_ENGINE_TYPE_GRAPHICS};
    s.group = alloc(&s, s.device, KEPLER_CHANNEL_GROUP_A, &group, sizeof group);
    NV_CTXSHARE_ALLOCATION_PARAMETERS share = {.hVASpace = s.vaspace, .flags = NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC};
    s.share = alloc(&s, s.group, FERMI_CONTEXT_SHARE_A, &share, sizeof share);
    return s;
}

static inline Session session_open(void)
{
    NvHandle client = 0;
    CHECK(rm_alloc(0, 0, &client, NV01_ROOT_CLIENT, NULL, 0));
    return session_of(client);
}

static inline void session_close(Session *s)
{
    CHECK(rm_free(s->client, 0, s->client));
}

/* Memory that the CPU and the GPU see at the same address, unless that address is in use, for example by the shadow of the
 * address sanitizer. */
typedef struct {
    NvHandle memory;
    NvU64 size;
    NvU64 va;
    volatile void *cpu;
} Buffer;

static inline Buffer buffer_open(const Session *s, NvU64 size)
{
    Buffer b = {.size = size};
    NV_MEMORY_ALLOCATION_PARAMS params = {.owner = s->client, .size = size, .alignment = 4096};
    b.memory = alloc(s, s->device, NV01_MEMORY_LOCAL_USER, &params, sizeof params);
    CHECK(rm_map_memory_dma(s->client, s->device, s->mapper, b.memory, 0, size, 0, &b.va));
    void *cpu = NULL;
    CHECK(rm_map_memory(s->client, s->device, b.memory, 0, size, &cpu, 0));
    b.cpu = cpu;
    return b;
}

static inline void buffer_close(const Session *s, Buffer *b)
{
    CHECK(rm_unmap_memory(s->client, s->device, b->memory, (void *)b->cpu, 0));
    CHECK(rm_unmap_memory_dma(s->client, s->device, s->mapper, b->memory, 0, b->va));
    CHECK(rm_free(s->client, s->device, b->memory));
}

enum {
    ENTRIES = 1024,           /* GPFIFO entries */
    USERD_OFFSET = ENTRIES * 8,
    AREA_SIZE = 64 << 10,
    DOORBELL = NVC361_NOTIFY_CHANNEL_PENDING / 4, /* word of the usermode page */
    USERMODE_SIZE = 0x10000,
    HOST = 0, COPY = 4,       /* subchannels */
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
#define HI(x) (NvU32)((NvU64)(x) >> 32)
#define LO(x) (NvU32)(x)

/* Gives the words of a pushbuffer to the GPU. */
static inline void channel_submit(Channel *c, NvU64 pushbuffer, NvU32 words)
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

#endif
