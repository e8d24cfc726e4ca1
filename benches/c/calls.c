/* Measures calls of the runtime, and the same work done by hand in C: fills, copies, events, queues that wait, syncpoints, and fences
 * that are queried. By hand (examples/c/raw.h) the program writes the words, the ring entry, the pointer and the doorbell itself. It
 * holds a mutex while it does so, because the library also holds one.
 *
 * Usage: calls CALL WAY, where WAY is "runtime" or "hand". The functions have names measured_*, which callgrind selects.
 * it. Each is called COUNT times. */
#include <pthread.h>

#include "../../examples/c/raw.h"

enum { COUNT = 400, SIZE = 4096 };

typedef struct {
    struct tegrarm_device *device;
    struct tegrarm_queue *own, *other;
    struct tegrarm_buffer *to, *from;
    struct tegrarm_event *event;
    NvU64 fence, other_fence;
    pthread_mutex_t lock;
    Gpu gpu;
    Buffer here, there;
} Bench;

static const NvU32 linear = 2u << NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_SHIFT |
                            NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_PITCH << NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_SHIFT |
                            NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_PITCH << NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_SHIFT |
                            1u << NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_SHIFT;

static Push begin(Bench *b, NvU64 *slot)
{
    pthread_mutex_lock(&b->lock);
    *slot = raw_slot(&b->gpu);
    return (Push){(volatile NvU32 *)((volatile char *)b->gpu.slots.cpu + *slot), 0};
}

static NvU64 end(Bench *b, NvU64 slot, Push *p)
{
    NvU64 number = raw_submit(&b->gpu, slot, p);
    pthread_mutex_unlock(&b->lock);
    return number;
}

static NvU64 semaphore(Bench *b, NvU64 at, NvU32 execute)
{
    NvU64 slot;
    Push p = begin(b, &slot);
    METHOD(&p, HOST, NVC56F_SEM_ADDR_LO, LO(at), HI(at), 0, 0, execute);
    return end(b, slot, &p);
}

__attribute__((noinline)) void measured_runtime_fill(Bench *b) { CHECK(tegrarm_fill(b->own, b->to, 0, SIZE, 7, 4, &b->fence)); }

__attribute__((noinline)) void measured_hand_fill(Bench *b)
{
    NvU64 slot;
    Push p = begin(b, &slot);
    NvU32 components = NVC6B5_SET_REMAP_COMPONENTS_DST_X_CONST_A | 3u << NVC6B5_SET_REMAP_COMPONENTS_COMPONENT_SIZE_SHIFT;
    METHOD(&p, COPY, NVC6B5_SET_REMAP_CONST_A, 7, 0, components);
    METHOD(&p, COPY, NVC6B5_OFFSET_OUT_UPPER, HI(b->here.va), LO(b->here.va));
    METHOD(&p, COPY, NVC6B5_LINE_LENGTH_IN, SIZE / 4);
    METHOD(&p, COPY, NVC6B5_LAUNCH_DMA, linear | 1u << NVC6B5_LAUNCH_DMA_REMAP_ENABLE_SHIFT);
    b->fence = end(b, slot, &p);
}

__attribute__((noinline)) void measured_runtime_copy(Bench *b)
{
    CHECK(tegrarm_copy(b->own, b->to, 0, b->from, 0, SIZE, &b->fence));
}

__attribute__((noinline)) void measured_hand_copy(Bench *b)
{
    NvU64 slot;
    Push p = begin(b, &slot);
    METHOD(&p, COPY, NVC6B5_OFFSET_IN_UPPER, HI(b->there.va), LO(b->there.va), HI(b->here.va), LO(b->here.va));
    METHOD(&p, COPY, NVC6B5_LINE_LENGTH_IN, SIZE);
    METHOD(&p, COPY, NVC6B5_LAUNCH_DMA, linear);
    b->fence = end(b, slot, &p);
}

__attribute__((noinline)) void measured_runtime_event(Bench *b) { CHECK(tegrarm_event_record(b->event, b->own, &b->fence)); }

__attribute__((noinline)) void measured_hand_event(Bench *b)
{
    b->fence = semaphore(b, b->there.va, NVC56F_SEM_EXECUTE_OPERATION_RELEASE |
                         NVC56F_SEM_EXECUTE_RELEASE_WFI_EN << NVC56F_SEM_EXECUTE_RELEASE_WFI_SHIFT |
                         NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP_EN << NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP_SHIFT |
                         NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT << NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_SHIFT);
}

__attribute__((noinline)) void measured_runtime_after(Bench *b)
{
    CHECK(tegrarm_queue_after_syncpoint(b->own, 17, 0)); /* The syncpoint has reached this value already, so the GPU only reads it. */
}

__attribute__((noinline)) void measured_hand_after(Bench *b)
{
    b->fence = semaphore(b, b->there.va, NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ |
                         NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG_EN << NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG_SHIFT);
}

__attribute__((noinline)) void measured_runtime_syncpoint(Bench *b)
{
    NvU32 id, threshold;
    CHECK(tegrarm_fence_syncpoint(b->device, b->fence, &id, &threshold));
}

__attribute__((noinline)) void measured_hand_syncpoint(Bench *b)
{
    b->fence = semaphore(b, b->there.va, NVC56F_SEM_EXECUTE_OPERATION_RELEASE |
                         NVC56F_SEM_EXECUTE_RELEASE_WFI_EN << NVC56F_SEM_EXECUTE_RELEASE_WFI_SHIFT);
}

__attribute__((noinline)) void measured_runtime_query(Bench *b)
{
    bool passed;
    CHECK(tegrarm_fence_query(b->device, b->fence, &passed));
}

__attribute__((noinline)) void measured_hand_query(Bench *b)
{
    volatile bool passed = *(volatile NvU64 *)b->gpu.semaphore.cpu >= b->fence;
    (void)passed;
    atomic_thread_fence(memory_order_acquire);
}

static const struct {
    const char *name;
    void (*ways[2])(Bench *);
} calls[] = {
    {"fill", {measured_runtime_fill, measured_hand_fill}},
    {"copy", {measured_runtime_copy, measured_hand_copy}},
    {"event", {measured_runtime_event, measured_hand_event}},
    {"after", {measured_runtime_after, measured_hand_after}},
    {"syncpoint", {measured_runtime_syncpoint, measured_hand_syncpoint}},
    {"query", {measured_runtime_query, measured_hand_query}},
};

/* The first call of some functions makes an ioctl. These first calls are made before anything is measured. */
static void open_all(Bench *b)
{
    CHECK(tegrarm_device_open(0, &b->device));
    CHECK(tegrarm_device_queue(b->device, &b->own));
    CHECK(tegrarm_buffer_alloc(b->device, SIZE, TEGRARM_BUFFER_CACHED, &b->to));
    CHECK(tegrarm_buffer_alloc(b->device, SIZE, TEGRARM_BUFFER_CACHED, &b->from));
    CHECK(tegrarm_event_create(b->device, &b->event));
    CHECK(tegrarm_fence(b->own, &b->fence));
    NvU32 id, threshold;
    CHECK(tegrarm_fence_syncpoint(b->device, b->fence, &id, &threshold));
    CHECK(tegrarm_queue_after_syncpoint(b->own, id, threshold));

    raw_open(&b->gpu);
    pthread_mutex_init(&b->lock, NULL);
    alloc(&b->gpu.channel.s, b->gpu.channel.channel, AMPERE_DMA_COPY_B, NULL, 0);
    b->here = buffer_open(&b->gpu.channel.s, SIZE);
    b->there = buffer_open(&b->gpu.channel.s, SIZE);
    NvU64 slot;
    Push p = begin(b, &slot);
    METHOD(&p, COPY, 0, AMPERE_DMA_COPY_B);
    raw_wait(&b->gpu, end(b, slot, &p));
}

int main(int argc, char **argv)
{
    static Bench b;
    if (argc < 3)
        return 2;
    int hand = !strcmp(argv[2], "hand");
    open_all(&b);
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++)
        if (!strcmp(calls[c].name, argv[1]))
            for (int i = 0; i < COUNT; i++)
                calls[c].ways[hand](&b);
    CHECK(tegrarm_fence(b.own, &b.fence));
    CHECK(tegrarm_wait(b.device, b.fence, TEGRARM_WAIT_FOREVER));
    raw_wait(&b.gpu, b.gpu.last);
    raw_close(&b.gpu);
    CHECK(tegrarm_device_close(b.device));
    return 0;
}
