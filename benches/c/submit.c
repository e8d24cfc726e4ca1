/* Measures a launch through the runtime and by hand from C (examples/c/raw.h). Both write the same descriptor, parameter bank,
 * words, ring entry, pointer and doorbell. There are two launches by hand: "hand" is a program that does what tegrarm_launch
 * does, for any kernel, thread and grid; "bare" makes only the stores for this one kernel, from one thread, without any check.
 * A replay's submit is measured too, and its stores by hand.
 *
 * Usage: submit KERNELS WAY. WAY is "runtime", "hand", "bare", "replay" or "handreplay". The function of each is called
 * measured_*, and callgrind measures it. With "all", the program prints the median microseconds of runtime, hand, bare and
 * replay. */
#include <pthread.h>

#include "../../examples/c/raw.h"
#include "timing.h"

enum { ROUNDS = 1000, BATCH = 8, N = 32, WAYS = 5 };
static const char *const ways[WAYS] = {"runtime", "hand", "bare", "replay", "handreplay"};

static double took[WAYS][ROUNDS];

static const NvU32 grid[] = {1, 1, 1}, block[] = {N, 1, 1};
static const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {1, 1, 1}, .block_dim = {N, 1, 1}};

__attribute__((noinline)) void measured_runtime(struct tegrarm_kernel *kernel, const void *const *arguments, NvU64 *fence)
{
    CHECK(tegrarm_launch(NULL, kernel, &config, arguments, 4, fence));
}

__attribute__((noinline)) void measured_replay(struct tegrarm_replay *replay, const NvU64 *values)
{
    CHECK(tegrarm_replay_submit(replay, values, 1));
}

/* The properties of a kernel that tegrarm_launch needs. */
typedef struct {
    pthread_mutex_t lock;
    Gpu *gpu;
    Kernel kernel;
    NvU32 grid[3], block[3];
    NvU32 count;
    struct { NvU32 offset, size; } parameters[4];
} Launcher;

static int same(const NvU32 *a, const NvU32 *b)
{
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2])) == 0;
}

__attribute__((noinline)) NV_STATUS measured_hand(Launcher *l, const NvU32 *at_grid, const NvU32 *at_block,
                                                  const void *const *arguments, NvU32 count, NvU64 *fence)
{
    if (count != l->count)
        return NV_ERR_INVALID_ARGUMENT;
    pthread_mutex_lock(&l->lock);
    if (!same(at_grid, l->grid) || !same(at_block, l->block)) {
        raw_prepare(l->gpu, &l->kernel, at_grid, at_block);
        memcpy(l->grid, at_grid, sizeof l->grid);
        memcpy(l->block, at_block, sizeof l->block);
    }
    char *to = (char *)l->kernel.bank + PARAMETERS;
    for (NvU32 i = 0; i < count; i++) {
        NvU32 offset = l->parameters[i].offset, size = l->parameters[i].size;
        if (size == 8)
            memcpy(to + offset, arguments[i], 8);
        else if (size == 4)
            memcpy(to + offset, arguments[i], 4);
        else
            memcpy(to + offset, arguments[i], size);
    }
    *fence = raw_launch(l->gpu, &l->kernel);
    pthread_mutex_unlock(&l->lock);
    return NV_OK;
}

__attribute__((noinline)) NvU64 measured_bare(Gpu *g, Kernel *k, const void *const *arguments)
{
    char *to = (char *)k->bank + PARAMETERS;
    memcpy(to, arguments[0], 8);
    memcpy(to + 8, arguments[1], 8);
    memcpy(to + 16, arguments[2], 8);
    memcpy(to + 24, arguments[3], 4);
    return raw_launch(g, k);
}

/* The places that a replay by hand writes: one changed argument, the fence to wait for, the number to release, the entry, the
 * pointer and the doorbell. */
typedef struct {
    volatile NvU32 *words, *argument;
    volatile NvU64 *ring;
    volatile NvU32 *put;
    NvU64 entry;
} Recorded;

__attribute__((noinline)) NvU64 measured_handreplay(Gpu *g, const Recorded *r, NvU64 value)
{
    NvU64 number = ++g->last;
    *(volatile NvU64 *)r->argument = value;
    r->words[3] = 0;
    r->words[4] = 0;
    r->words[15] = LO(number);
    r->words[16] = HI(number);
    r->ring[g->channel.put] = r->entry;
    g->channel.put = (g->channel.put + 1) % ENTRIES;
    atomic_thread_fence(memory_order_seq_cst);
    *r->put = g->channel.put;
    atomic_thread_fence(memory_order_seq_cst);
    *g->channel.doorbell = g->channel.token;
    return number;
}

/* Records a launch on a separate channel. */
static Recorded record(Gpu *g, Kernel *k, const void *const *arguments)
{
    Recorded r;
    Buffer m = buffer_open(&g->channel.s, 4096);
    NvU64 qmd = m.va + 256, bank = qmd + QMD_WORDS * 4;
    Push p = {m.cpu, 0};
    NvU32 geq = NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ |
                NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT << NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_SHIFT;
    for (int i = 0; i < 4; i++)
        memcpy((char *)k->bank + PARAMETERS + 8 * i, arguments[i], i < 3 ? 8 : 4);
    QMD_AT(k, CONSTANT_BUFFER_ADDR_LOWER, 0, LO(bank));
    QMD_AT(k, CONSTANT_BUFFER_ADDR_UPPER, 0, HI(bank));
    memcpy((char *)m.cpu + 256, k->qmd, sizeof k->qmd);
    memcpy((char *)m.cpu + 256 + sizeof k->qmd, k->bank, sizeof k->bank);
    METHOD(&p, HOST, NVC56F_SEM_ADDR_LO, LO(g->semaphore.va), HI(g->semaphore.va), 0, 0, geq);
    METHOD(&p, COMPUTE, NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI,
           1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_INSTRUCTION_SHIFT |
               1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_CONSTANT_SHIFT);
    METHOD(&p, COMPUTE, NVC6C0_SEND_PCAS_A, LO(qmd >> 8));
    METHOD(&p, COMPUTE, NVC6C0_SEND_SIGNALING_PCAS2_B,
           NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_SCHEDULE);
    METHOD(&p, HOST, NVC56F_SEM_ADDR_LO, LO(g->semaphore.va), HI(g->semaphore.va), 0, 0,
           NVC56F_SEM_EXECUTE_OPERATION_RELEASE | NVC56F_SEM_EXECUTE_RELEASE_WFI_EN << NVC56F_SEM_EXECUTE_RELEASE_WFI_SHIFT |
               NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT << NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_SHIFT);
    r.words = m.cpu;
    r.argument = (volatile NvU32 *)((volatile char *)m.cpu + 256 + sizeof k->qmd + PARAMETERS);
    r.ring = g->channel.area.cpu;
    r.put = (volatile NvU32 *)((volatile char *)g->channel.area.cpu + USERD_OFFSET + offsetof(AmpereAControlGPFifo, GPPut));
    r.entry = m.va | (NvU64)p.used << 42 | (NvU64)1 << 41;
    return r;
}

typedef struct {
    struct tegrarm_device *device;
    struct tegrarm_kernel *kernel;
    struct tegrarm_replay *replay;
    const void *arguments[4], *raw_arguments[4];
    NvU64 a, b, c, x, y, z;
    int n;
    Gpu gpu;
    Launcher hand;
    Recorded recorded;
} Bench;

static void open_all(Bench *t, int argc, char **argv)
{
    t->n = N;
    CHECK(tegrarm_device_open(0, &t->device));
    CHECK(tegrarm_module_kernel(load_kernels(t->device, argc, argv), "vecadd", &t->kernel));
    t->a = floats(t->device, 3 * N).gpu, t->b = t->a + 4 * N, t->c = t->b + 4 * N;
    memcpy(t->arguments, (const void *[]){&t->a, &t->b, &t->c, &t->n}, sizeof t->arguments);
    CHECK(tegrarm_replay_create(t->device, &t->replay));
    CHECK(tegrarm_replay_launch(t->replay, t->kernel, &config, t->arguments, 4, NULL));
    CHECK(tegrarm_replay_argument(t->replay, 0, 0, 0));
    CHECK(tegrarm_replay_run(t->replay, &t->a, 1, TEGRARM_WAIT_FOREVER)); /* The first run makes kernel calls. */

    raw_open(&t->gpu);
    size_t size;
    unsigned char *image = read_file(argv[1], &size);
    t->hand = (Launcher){.lock = PTHREAD_MUTEX_INITIALIZER, .gpu = &t->gpu, .kernel = raw_kernel(&t->gpu, image, "vecadd"),
                         .count = 4, .parameters = {{0, 8}, {8, 8}, {16, 8}, {24, 4}}};
    free(image);
    t->x = buffer_open(&t->gpu.channel.s, 12 * N).va, t->y = t->x + 4 * N, t->z = t->y + 4 * N;
    memcpy(t->raw_arguments, (const void *[]){&t->x, &t->y, &t->z, &t->n}, sizeof t->raw_arguments);
    NvU64 fence;
    CHECK(measured_hand(&t->hand, grid, block, t->raw_arguments, 4, &fence));
    raw_wait(&t->gpu, fence);
    t->recorded = record(&t->gpu, &t->hand.kernel, t->raw_arguments);
}

/* Makes `count` submissions in one way. Afterwards all of them have finished and the GPU sleeps, so that no way finds warmer
 * caches than another. */
static double submit(Bench *t, const char *way, int count)
{
    NvU64 fence = 0;
    double start = now_us(), took_us;
    if (!strcmp(way, "runtime")) {
        for (int i = 0; i < count; i++)
            measured_runtime(t->kernel, t->arguments, &fence);
        took_us = now_us() - start;
        CHECK(tegrarm_wait(t->device, fence, TEGRARM_WAIT_FOREVER));
    } else if (!strcmp(way, "replay")) { /* One replay runs at a time. */
        measured_replay(t->replay, &t->a);
        took_us = (now_us() - start) * count;
        CHECK(tegrarm_replay_wait(t->replay, TEGRARM_WAIT_FOREVER));
    } else {
        for (int i = 0; i < count; i++) {
            if (!strcmp(way, "hand"))
                CHECK(measured_hand(&t->hand, grid, block, t->raw_arguments, 4, &fence));
            else if (!strcmp(way, "bare"))
                fence = measured_bare(&t->gpu, &t->hand.kernel, t->raw_arguments);
            else
                fence = measured_handreplay(&t->gpu, &t->recorded, t->x);
        }
        took_us = now_us() - start;
        raw_wait(&t->gpu, fence);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    return took_us / count;
}

int main(int argc, char **argv)
{
    const char *way = argc > 2 ? argv[2] : "all";
    static Bench t;
    open_all(&t, argc, argv);
    for (int i = 0; i < ROUNDS; i++) {
        if (strcmp(way, "all")) {
            submit(&t, way, 1);
            continue;
        }
        for (int k = 0; k < WAYS - 1; k++) { /* The ways take turns in both orders: other load affects all of them. */
            int w = i % 2 ? WAYS - 2 - k : k;
            took[w][i] = submit(&t, ways[w], BATCH);
        }
    }
    if (!strcmp(way, "all")) {
        for (int w = 0; w < WAYS - 1; w++)
            printf("%.3f ", percentile(took[w], ROUNDS, 50));
        puts("");
    }
    raw_close(&t.gpu);
    CHECK(tegrarm_device_close(t.device));
    return 0;
}
