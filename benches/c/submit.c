/* A launch, COUNT times: through the runtime, through a replay, and by hand from C, which writes the same descriptor,
 * parameter bank, pushbuffer words, ring entry, pointer and doorbell (examples/c/raw.h).
 *
 * `submit KERNELS WAY`: WAY is "runtime", "replay" or "hand", the functions that callgrind collects are called measured_*; or
 * "all", which prints the median microseconds of each. */
#include "../../examples/c/raw.h"
#include "timing.h"

enum { COUNT = 1000, N = 32 };

static double took[3][COUNT];

static const NvU32 grid[] = {1, 1, 1}, block[] = {N, 1, 1};

__attribute__((noinline)) void measured_runtime(struct tegrarm_kernel *kernel, const void *const *arguments, NvU64 *fence)
{
    CHECK(tegrarm_launch(kernel, grid, block, 0, arguments, 4, fence));
}

__attribute__((noinline)) void measured_replay(struct tegrarm_replay *replay, const NvU64 *values)
{
    CHECK(tegrarm_replay_submit(replay, values, 1));
}

/* Arguments come as for the runtime: a pointer to each. */
__attribute__((noinline)) NvU64 measured_hand(Gpu *g, Kernel *k, const void *const *arguments)
{
    char *to = (char *)k->bank + PARAMETERS;
    memcpy(to, arguments[0], 8);
    memcpy(to + 8, arguments[1], 8);
    memcpy(to + 16, arguments[2], 8);
    memcpy(to + 24, arguments[3], 4);
    return raw_launch(g, k);
}

/* By hand what a replay does: one changed argument, the fence to wait for, the number to release, entry, pointer, doorbell. */
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
    r->ring[(number - 1) % ENTRIES] = r->entry;
    atomic_thread_fence(memory_order_seq_cst);
    *r->put = (NvU32)(number % ENTRIES);
    atomic_thread_fence(memory_order_seq_cst);
    *g->doorbell = g->token;
    return number;
}

/* Records a launch on a channel of its own. */
static Recorded record(Gpu *g, Kernel *k, const void *const *arguments)
{
    Recorded r;
    Memory m = raw_memory(g, 4096);
    NvU64 qmd = m.gpu + 256, bank = qmd + QMD_WORDS * 4;
    Push p = {m.cpu, 0};
    NvU32 geq = NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ |
                NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT << NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_SHIFT;
    for (int i = 0; i < 4; i++)
        memcpy((char *)k->bank + PARAMETERS + 8 * i, arguments[i], i < 3 ? 8 : 4);
    QMD_AT(k, CONSTANT_BUFFER_ADDR_LOWER, 0, LO(bank));
    QMD_AT(k, CONSTANT_BUFFER_ADDR_UPPER, 0, HI(bank));
    memcpy((char *)m.cpu + 256, k->qmd, sizeof k->qmd);
    memcpy((char *)m.cpu + 256 + sizeof k->qmd, k->bank, sizeof k->bank);
    METHOD(&p, HOST, NVC56F_SEM_ADDR_LO, LO(g->semaphore.gpu), HI(g->semaphore.gpu), 0, 0, geq);
    METHOD(&p, COMPUTE, NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI,
           1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_INSTRUCTION_SHIFT |
               1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_CONSTANT_SHIFT);
    METHOD(&p, COMPUTE, NVC6C0_SEND_PCAS_A, LO(qmd >> 8));
    METHOD(&p, COMPUTE, NVC6C0_SEND_SIGNALING_PCAS2_B,
           NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_SCHEDULE);
    METHOD(&p, HOST, NVC56F_SEM_ADDR_LO, LO(g->semaphore.gpu), HI(g->semaphore.gpu), 0, 0,
           NVC56F_SEM_EXECUTE_OPERATION_RELEASE | NVC56F_SEM_EXECUTE_RELEASE_WFI_EN << NVC56F_SEM_EXECUTE_RELEASE_WFI_SHIFT |
               NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT << NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_SHIFT);
    r.words = m.cpu;
    r.argument = (volatile NvU32 *)((volatile char *)m.cpu + 256 + sizeof k->qmd + PARAMETERS);
    r.ring = g->area.cpu;
    r.put = (volatile NvU32 *)((volatile char *)g->area.cpu + USERD + GP_PUT);
    r.entry = m.gpu | (NvU64)p.used << 42 | (NvU64)1 << 41;
    return r;
}

int main(int argc, char **argv)
{
    const char *way = argc > 2 ? argv[2] : "all";
    int all = !strcmp(way, "all");
    struct tegrarm_device *device;
    struct tegrarm_kernel *vecadd;
    struct tegrarm_replay *replay;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_module_kernel(load_kernels(device, argc, argv), "vecadd", &vecadd));
    Floats f = floats(device, 3 * N);
    const NvU64 a = f.gpu, b = a + 4 * N, c = b + 4 * N;
    const int n = N;
    const void *arguments[] = {&a, &b, &c, &n};
    CHECK(tegrarm_replay_create(device, &replay));
    CHECK(tegrarm_replay_launch(replay, vecadd, grid, block, 0, arguments, 4, NULL));
    CHECK(tegrarm_replay_argument(replay, 0, 0, 0));

    Gpu g;
    raw_open(&g);
    size_t size;
    unsigned char *image = read_file(argv[1], &size);
    Kernel hand = raw_kernel(&g, image, "vecadd");
    free(image);
    Memory m = raw_memory(&g, 12 * N);
    const NvU64 x = m.gpu, y = x + 4 * N, z = y + 4 * N;
    const void *raw_arguments[] = {&x, &y, &z, &n};
    raw_prepare(&g, &hand, grid, block);
    Recorded recorded = record(&g, &hand, raw_arguments);

    NvU64 fence;
    CHECK(tegrarm_replay_run(replay, &a, 1, UINT64_MAX)); /* the first run makes kernel calls */
    for (int i = 0; i < COUNT; i++) { /* in turns, so that a busy machine is busy for all */
        double start = now_us();
        if (all || !strcmp(way, "runtime")) {
            measured_runtime(vecadd, arguments, &fence);
            took[0][i] = now_us() - start;
            CHECK(tegrarm_wait(device, fence, UINT64_MAX));
        }
        if (all || !strcmp(way, "replay")) {
            start = now_us();
            measured_replay(replay, &a);
            took[1][i] = now_us() - start;
            CHECK(tegrarm_replay_wait(replay, UINT64_MAX));
        }
        if (all || !strcmp(way, "hand")) {
            start = now_us();
            NvU64 number = measured_hand(&g, &hand, raw_arguments);
            took[2][i] = now_us() - start;
            raw_wait(&g, number);
        }
        if (!strcmp(way, "handreplay"))
            raw_wait(&g, measured_handreplay(&g, &recorded, x));
    }
    if (all)
        printf("%.3f %.3f %.3f\n", percentile(took[0], COUNT, 50), percentile(took[1], COUNT, 50), percentile(took[2], COUNT, 50));
    raw_close(&g);
    CHECK(tegrarm_device_close(device));
    return 0;
}
