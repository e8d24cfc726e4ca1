/* A frontend that compiles whole schedules, as tinygrad's NV device does after its release 0.14, in the order of its calls: the
 * context share comes first, channels are made when they are first needed, staging is 128 MiB of the process's own memory, which
 * the GPU gets at the same address, and a schedule has command buffers of its own that are patched for each run. A schedule
 * copies in, runs a chain of ten launches, copies out, and is waited for without a limit. Each queue signals the next one in a
 * slot: the copy engine with one word, and the last launch of the chain with two.
 *
 * It is built twice from this source: with rm_open, rm_ioctl, rm_mmap and rm_close, and (PLAIN) with libc only, to run under
 * LD_PRELOAD. The first argument is the number of runs. */
#include "frontend.h"

enum {
    AREA = 3 << 20, ENTRIES = 0x10000, RING_STEP = 0x100000,
    STAGING = 128 << 20, SLOT_RING = 64 << 20,
    LAUNCHES = 10, FLOATS = 64, VECTOR = FLOATS * 4,
    BANK = 0x180, PARAMETERS = 0x160, STRIDE = 256 + 512, /* a launch's slot: the descriptor, then its constants */
    COMPUTE_ENGINE = 1, COPY_ENGINE = 4,                  /* subchannels */
    RUNS = 200,
};

typedef struct {
    volatile uint64_t *ring;
    volatile uint32_t *gp_put;
    uint32_t token, put;
} Fifo;

static Fifo compute, copies;
static volatile uint32_t *doorbell;
static uint32_t group, share;

static Fifo fifo(const Memory *area, uint64_t at, uint32_t engine)
{
    Memory notifier = system_memory(48 << 20);
    NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS params = {
        .hObjectError = notifier.handle, .hObjectBuffer = area->handle, .gpFifoOffset = area->va + at, .gpFifoEntries = ENTRIES,
        .hContextShare = share,
    };
    params.hUserdMemory[0] = area->handle;
    params.userdOffset[0] = at + ENTRIES * 8;
    uint32_t channel = alloc(group, AMPERE_CHANNEL_GPFIFO_A, &params);
    alloc(channel, engine, NULL);
    NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS token = {.workSubmitToken = ~0u};
    control(channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &token, sizeof token);
    register_channel(channel);
    volatile char *cpu = area->cpu;
    return (Fifo){(volatile uint64_t *)(cpu + at), (volatile uint32_t *)(cpu + at + ENTRIES * 8 + 0x8c), token.workSubmitToken, 0};
}

/* The area and the channels, when there is something to submit for the first time. */
static void open_fifos(void)
{
    Memory area = local_memory(AREA, 1);
    compute = fifo(&area, 0, AMPERE_COMPUTE_B);
    copies = fifo(&area, RING_STEP, AMPERE_DMA_COPY_B);
    NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS schedule = {.bEnable = 1};
    control(group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &schedule, sizeof schedule);
}

static void submit(Fifo *f, uint64_t va, uint32_t words)
{
    uint64_t entry = va | (uint64_t)words << 42 | (uint64_t)1 << 41;
    f->ring[f->put % ENTRIES] = entry;
    assert(f->ring[f->put % ENTRIES] == entry && "the ring is read back");
    f->put++;
    atomic_thread_fence(memory_order_seq_cst);
    *f->gp_put = f->put % ENTRIES;
    atomic_thread_fence(memory_order_seq_cst);
    *doorbell = f->token;
}

/* Words of a command buffer. */
typedef struct {
    volatile uint32_t *words;
    uint64_t va;
    uint32_t used;
} Push;

static Push push(const Memory *m, uint64_t at)
{
    return (Push){(volatile uint32_t *)((volatile char *)m->cpu + at), m->va + at, 0};
}

static void method(Push *p, uint32_t subchannel, uint32_t address, uint32_t count, const uint32_t *args)
{
    p->words[p->used++] = 2u << 28 | count << 16 | subchannel << 13 | address >> 2;
    for (uint32_t i = 0; i < count; i++)
        p->words[p->used++] = args[i];
}
#define METHOD(p, subchannel, address, ...) \
    method(p, subchannel, address, sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})

static void semaphore(Push *p, uint64_t va, uint64_t value, uint32_t operation)
{
    METHOD(p, 0, NVC56F_SEM_ADDR_LO, LO(va), HI(va), LO(value), HI(value),
           operation | NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT << NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_SHIFT);
}
#define ACQUIRE(p, va, value) semaphore(p, va, value, NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ)
#define RELEASE(p, va, value) semaphore(p, va, value, NVC56F_SEM_EXECUTE_OPERATION_RELEASE | 1u << NVC56F_SEM_EXECUTE_RELEASE_WFI_SHIFT)

static void copy(Push *p, uint64_t from, uint64_t to, uint32_t bytes)
{
    METHOD(p, COPY_ENGINE, NVC6B5_OFFSET_IN_UPPER, HI(from), LO(from), HI(to), LO(to));
    METHOD(p, COPY_ENGINE, NVC6B5_LINE_LENGTH_IN, bytes);
    METHOD(p, COPY_ENGINE, NVC6B5_LAUNCH_DMA,
           NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED | 1u << NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_SHIFT |
               1u << NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_SHIFT);
}

/* The copy engine's release of one word. */
static void release_one_word(Push *p, uint64_t va, uint32_t value)
{
    METHOD(p, COPY_ENGINE, NVC6B5_SET_SEMAPHORE_A, HI(va), LO(va), value);
    METHOD(p, COPY_ENGINE, NVC6B5_LAUNCH_DMA,
           NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_TRUE << NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_SHIFT |
               NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_ONE_WORD_SEMAPHORE << NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_SHIFT);
}

static void field(volatile uint32_t *qmd, uint32_t shift, uint32_t width, uint64_t value)
{
    uint32_t mask = width == 32 ? ~0u : (1u << width) - 1;
    qmd[shift / 32] = (qmd[shift / 32] & ~(mask << shift % 32)) | ((uint32_t)value & mask) << shift % 32;
}
#define QMD(q, name, value) field(q, NVC6C0_QMDV03_00_##name##_SHIFT, NVC6C0_QMDV03_00_##name##_WIDTH, value)
#define QMD_AT(q, name, i, value) field(q, NVC6C0_QMDV03_00_##name##_SHIFT(i), NVC6C0_QMDV03_00_##name##_WIDTH, value)

/* Writes what every launch of the kernel has in common. */
static void describe(volatile uint32_t *qmd, const Kernel *k, uint64_t code, uint64_t bank)
{
    QMD(qmd, QMD_MAJOR_VERSION, 3);
    QMD(qmd, QMD_GROUP_ID, 0x3f);
    QMD(qmd, SASS_VERSION, 0x87);
    QMD(qmd, API_VISIBLE_CALL_LIMIT, NVC6C0_QMDV03_00_API_VISIBLE_CALL_LIMIT_NO_CHECK);
    QMD(qmd, SAMPLER_INDEX, NVC6C0_QMDV03_00_SAMPLER_INDEX_VIA_HEADER_INDEX);
    QMD(qmd, SM_GLOBAL_CACHING_ENABLE, 1);
    QMD(qmd, INVALIDATE_SHADER_DATA_CACHE, 1);
    QMD(qmd, CWD_MEMBAR_TYPE, NVC6C0_QMDV03_00_CWD_MEMBAR_TYPE_L1_SYSMEMBAR);
    QMD(qmd, CTA_RASTER_WIDTH, 1);
    QMD(qmd, CTA_RASTER_HEIGHT, 1);
    QMD(qmd, CTA_RASTER_DEPTH, 1);
    QMD(qmd, CTA_THREAD_DIMENSION0, FLOATS);
    QMD(qmd, CTA_THREAD_DIMENSION1, 1);
    QMD(qmd, CTA_THREAD_DIMENSION2, 1);
    QMD(qmd, PROGRAM_ADDRESS_LOWER, LO(code));
    QMD(qmd, PROGRAM_ADDRESS_UPPER, HI(code));
    QMD(qmd, PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED, LO(code >> 8));
    QMD(qmd, PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED, code >> 40);
    QMD(qmd, PROGRAM_PREFETCH_SIZE, k->size >> 8);
    QMD(qmd, REGISTER_COUNT_V, k->registers);
    QMD(qmd, BARRIER_COUNT, 1);
    QMD(qmd, SHARED_MEMORY_SIZE, 1024);
    QMD(qmd, MIN_SM_CONFIG_SHARED_MEM_SIZE, 32 / 4 + 1);
    QMD(qmd, TARGET_SM_CONFIG_SHARED_MEM_SIZE, 32 / 4 + 1);
    QMD(qmd, MAX_SM_CONFIG_SHARED_MEM_SIZE, 100 / 4 + 1);
    QMD_AT(qmd, CONSTANT_BUFFER_SIZE_SHIFTED4, 0, BANK / 16);
    QMD_AT(qmd, CONSTANT_BUFFER_INVALIDATE, 0, 1);
    QMD_AT(qmd, CONSTANT_BUFFER_VALID, 0, 1);
    QMD_AT(qmd, CONSTANT_BUFFER_ADDR_LOWER, 0, LO(bank));
    QMD_AT(qmd, CONSTANT_BUFFER_ADDR_UPPER, 0, HI(bank));
}

/* Everything that a schedule needs. */
typedef struct {
    Memory staging, slots, commands, launches, program, vectors;
    Kernel kernel;
} Schedule;

enum { TIMELINE = 0, COPIED_IN = 16, COMPUTED = 32, COPIED_OUT = 48 }; /* in the slots */

static Schedule prepare(void)
{
    Schedule s = {.kernel = read_kernel("vecadd.nvrtc.cubin", "vecadd")};
    s.staging = process_memory(STAGING);
    s.slots = host_memory(SLOT_RING);
    s.commands = local_memory(SLOT_RING, 1);
    s.launches = local_memory(LAUNCHES * STRIDE, 1);
    s.program = local_memory(s.kernel.size + 8192, 1);
    s.vectors = local_memory((LAUNCHES + 2) * VECTOR, 0);
    memcpy((void *)s.program.cpu, s.kernel.code, s.kernel.size);
    Push p = push(&s.commands, 0);
    METHOD(&p, COMPUTE_ENGINE, NVC56F_SET_OBJECT, AMPERE_COMPUTE_B);
    METHOD(&p, COMPUTE_ENGINE, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, 0x7293, 0);
    METHOD(&p, COMPUTE_ENGINE, NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, 0x7294, 0);
    submit(&compute, p.va, p.used);
    Push q = push(&s.commands, 4096);
    METHOD(&q, COPY_ENGINE, NVC56F_SET_OBJECT, AMPERE_DMA_COPY_B);
    submit(&copies, q.va, q.used);
    return s;
}

/* Writes the chain of one run: x[i + 2] = x[i + 1] + x[i]. The last launch releases two words. */
static void patch(Schedule *s, uint64_t run)
{
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        volatile uint32_t *qmd = (volatile uint32_t *)((volatile char *)s->launches.cpu + i * STRIDE);
        uint64_t va = s->launches.va + i * STRIDE, bank = va + 256, x = s->vectors.va + i * VECTOR;
        volatile uint32_t *constants = qmd + 64;
        uint64_t arguments[] = {x, x + VECTOR, x + 2 * VECTOR, FLOATS};
        memset((void *)qmd, 0, STRIDE);
        constants[0] = FLOATS, constants[1] = constants[2] = constants[3] = constants[4] = constants[5] = 1;
        memcpy((char *)constants + PARAMETERS, arguments, 28);
        describe(qmd, &s->kernel, s->program.va, bank);
        if (i + 1 < LAUNCHES) {
            QMD(qmd, DEPENDENT_QMD0_POINTER, (va + STRIDE) >> 8);
            QMD(qmd, DEPENDENT_QMD0_ACTION, 1);
            QMD(qmd, DEPENDENT_QMD0_PREFETCH, 1);
            QMD(qmd, DEPENDENT_QMD0_ENABLE, 1);
            continue;
        }
        QMD(qmd, RELEASE0_ADDRESS_LOWER, LO(s->slots.va + COMPUTED));
        QMD(qmd, RELEASE0_ADDRESS_UPPER, HI(s->slots.va + COMPUTED));
        QMD(qmd, RELEASE0_PAYLOAD_LOWER, LO(run));
        QMD(qmd, RELEASE0_PAYLOAD_UPPER, HI(run));
        QMD(qmd, RELEASE0_STRUCTURE_SIZE, NVC6C0_QMDV03_00_RELEASE0_STRUCTURE_SIZE_SEMAPHORE_TWO_WORDS);
        QMD(qmd, RELEASE0_PAYLOAD64B, 1);
        QMD(qmd, RELEASE0_ENABLE, 1);
    }
}

static volatile uint64_t *slot(Schedule *s, uint32_t at)
{
    return (volatile uint64_t *)((volatile char *)s->slots.cpu + at);
}

/* Runs the schedule once. Values of the timeline begin above 2^32, which the host's releases of 64 bits can hold. */
static void run(Schedule *s, uint64_t number)
{
    const uint64_t timeline = ((uint64_t)1 << 32) + number, in = s->staging.va, out = in + STAGING / 2, x = s->vectors.va;
    const uint32_t tag = (uint32_t)number;
    for (uint32_t at = COPIED_IN; at <= COPIED_OUT; at += 16)
        *slot(s, at) = 0;
    patch(s, timeline);
    Push a = push(&s->commands, 8192), b = push(&s->commands, 12288);
    METHOD(&b, COMPUTE_ENGINE, NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI,
           1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_INSTRUCTION_SHIFT | 1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_GLOBAL_DATA_SHIFT |
               1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_CONSTANT_SHIFT);
    ACQUIRE(&b, s->slots.va + TIMELINE, timeline - 1);
    ACQUIRE(&b, s->slots.va + COPIED_IN, tag);
    METHOD(&b, COMPUTE_ENGINE, NVC6C0_SEND_PCAS_A, LO(s->launches.va >> 8));
    METHOD(&b, COMPUTE_ENGINE, NVC6C0_SEND_SIGNALING_PCAS2_B, NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_PREFETCH_SCHEDULE);
    ACQUIRE(&b, s->slots.va + COPIED_OUT, tag);
    RELEASE(&b, s->slots.va + TIMELINE, timeline);
    ACQUIRE(&a, s->slots.va + TIMELINE, timeline - 1);
    copy(&a, in, x, 2 * VECTOR);
    release_one_word(&a, s->slots.va + COPIED_IN, tag);
    ACQUIRE(&a, s->slots.va + COMPUTED, timeline);
    copy(&a, x + 2 * VECTOR, out, LAUNCHES * VECTOR);
    release_one_word(&a, s->slots.va + COPIED_OUT, tag);
    submit(&copies, a.va, a.used);
    submit(&compute, b.va, b.used);
    wait_for(slot(s, TIMELINE), timeline);
    assert(*slot(s, COPIED_IN) == tag && *slot(s, COPIED_OUT) == tag && "a release of one word leaves the other");
    assert(*slot(s, COMPUTED) == timeline && "a release of two words has 64 bits");
}

static void check(Schedule *s, uint64_t number)
{
    volatile float *in = s->staging.cpu, *out = (volatile float *)((volatile char *)s->staging.cpu + STAGING / 2);
    float before[FLOATS], last[FLOATS];
    for (uint32_t i = 0; i < FLOATS; i++)
        before[i] = in[i], last[i] = in[FLOATS + i];
    for (uint32_t launch = 0; launch < LAUNCHES; launch++)
        for (uint32_t i = 0; i < FLOATS; i++) {
            float sum = before[i] + last[i];
            if (out[launch * FLOATS + i] != sum)
                FAIL("run %llu: launch %u, item %u is %g and not %g", (unsigned long long)number, launch, i,
                     (double)out[launch * FLOATS + i], (double)sum);
            before[i] = last[i], last[i] = sum;
        }
}

int main(int argc, char **argv)
{
    uint64_t runs = argc > 1 ? strtoull(argv[1], NULL, 10) : RUNS;
    open_nodes();
    open_objects();
    NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS group_params = {.engineType = NV2080_ENGINE_TYPE_GRAPHICS};
    group = alloc(device, KEPLER_CHANNEL_GROUP_A, &group_params);
    NV_CTXSHARE_ALLOCATION_PARAMETERS share_params = {.hVASpace = vaspace, .flags = NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC};
    share = alloc(group, FERMI_CONTEXT_SHARE_A, &share_params);
    ask_for_sizes();
    doorbell = (volatile uint32_t *)map_usermode() + NVC361_NOTIFY_CHANNEL_PENDING / 4;
    open_fifos();
    Schedule s = prepare();
    *slot(&s, TIMELINE) = (uint64_t)1 << 32;
    for (uint64_t number = 1; number <= runs; number++) {
        volatile float *in = s.staging.cpu;
        for (uint32_t i = 0; i < 2 * FLOATS; i++)
            in[i] = (float)((number * 31 + i) % 97);
        run(&s, number);
        check(&s, number);
    }
    close_nodes();
    free(s.kernel.image);
    printf("schedules: %llu runs of %d launches, ok\n", (unsigned long long)runs, LAUNCHES);
    return 0;
}
