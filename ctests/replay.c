/* Replays compute the right results with new values in each run. Their loop makes no system call, allocates nothing, and can
 * be entered by only one thread at a time. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cubin.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
enum { N = 64, RUNS = 300 };

/* --- allocations of this thread, unless another tool counts them --------------------------------------------------- */

static _Thread_local unsigned allocations;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *malloc(size_t size) { allocations++; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { allocations++; return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { allocations++; return __libc_realloc(old, size); }
#endif

/* --- system calls of this thread: each one gives a signal while `watching` is 1 -------------------------------------- */

static volatile char watching; /* With 0, system calls are allowed. With 1, each gives a signal. */
static volatile sig_atomic_t calls, last_call;

static void trapped(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    watching = 0; /* The loop continues, and the test fails because of the count. */
    calls++;
    last_call = info->si_syscall;
}

/* The result is false if the kernel cannot do this, or if something else (valgrind, the thread sanitizer) makes this program's system calls
 * or more of them. */
static int can_watch(void)
{
#ifdef __SANITIZE_THREAD__
    return 0;
#endif
    const char *preload = getenv("LD_PRELOAD");
    if (preload && strstr(preload, "vgpreload"))
        return 0;
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    assert(sigaction(SIGSYS, &action, NULL) == 0);
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &watching) != 0)
        return 0;
    watching = 1;
    syscall(SYS_getppid);
    watching = 0;
    assert(calls == 1 && last_call == SYS_getppid && "a system call is noticed");
    calls = 0;
    return 1;
}

/* --- the graph ------------------------------------------------------------------------------------------------------ */

typedef struct {
    struct tegrarm_device *device;
    struct tegrarm_buffer *buffer[4];
    float *cpu[4];
    NvU64 gpu[4];
    float in[N], out[N];
    struct tegrarm_replay *replay;
} Graph;

static struct tegrarm_kernel *vecadd(struct tegrarm_device *device)
{
    struct tegrarm_kernel *kernel;
    CHECK(tegrarm_module_kernel(load_cubin(device, "vecadd.nvrtc.cubin"), "vecadd", &kernel));
    return kernel;
}

/* Computes out = in + buffer 1, and then copies out to buffer 3 on the copy engine. The value of a run chooses which buffer is
 * added. */
static void record(Graph *g)
{
    CHECK(tegrarm_device_open(0, &g->device));
    for (int i = 0; i < 4; i++) {
        void *cpu;
        CHECK(tegrarm_buffer_alloc(g->device, sizeof g->in, TEGRARM_BUFFER_CACHED, &g->buffer[i]));
        CHECK(tegrarm_buffer_address(g->buffer[i], &cpu, &g->gpu[i]));
        g->cpu[i] = cpu;
        for (int k = 0; k < N; k++)
            g->cpu[i][k] = (float)(100 * i + k);
    }
    CHECK(tegrarm_replay_create(g->device, &g->replay));
    CHECK(tegrarm_replay_input(g->replay, g->cpu[0], g->in, sizeof g->in));
    const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {2, 1, 1}, .block_dim = {32, 1, 1}};
    unsigned n = N;
    const void *arguments[] = {&g->gpu[0], &g->gpu[1], &g->gpu[2], &n};
    NvU32 launch = 9;
    CHECK(tegrarm_replay_launch(g->replay, vecadd(g->device), &config, arguments, 4, &launch));
    assert(launch == 0);
    CHECK(tegrarm_replay_argument(g->replay, launch, 1, 0));
    CHECK(tegrarm_replay_copy(g->replay, g->buffer[3], 0, g->buffer[2], 0, sizeof g->in));
    CHECK(tegrarm_replay_output(g->replay, g->out, g->cpu[3], sizeof g->out));
}

static void loop(Graph *g)
{
    NvU64 values[2] = {g->gpu[1], g->gpu[1]};
    CHECK(tegrarm_replay_run(g->replay, values, 1, TEGRARM_WAIT_FOREVER)); /* The first run makes kernel calls. */
    CHECK(tegrarm_replay_spin(g->replay, 60000000000u));          /* The wait does not sleep, because sleeping is a system call. */
    int watched = can_watch();
    for (int run = 0; run < RUNS; run++) {
        for (int k = 0; k < N; k++)
            g->in[k] = (float)(run + k);
        values[0] = g->gpu[1 + run % 2]; /* Every second run adds the result of the run before it. */
        float last = g->out[3];
        unsigned before = allocations;
        watching = (char)watched;
        NV_STATUS status = tegrarm_replay_run(g->replay, values, 1, TEGRARM_WAIT_FOREVER);
        watching = 0;
        if (calls)
            fprintf(stderr, "run %d made system call %d\n", run, (int)last_call);
        assert(calls == 0 && "a system call in the loop");
        assert(allocations == before && "an allocation in the loop");
        CHECK(status);
        float added = run % 2 ? last : 103;
        assert(g->out[3] == (float)(run + 3) + added);
    }
    if (watched)
        prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
    printf("replay: %d runs%s\n", RUNS, watched ? " without a system call" : "; system calls SKIPPED, this kernel cannot tell");
}

static void *intruder(void *replay)
{
    NV_STATUS status = tegrarm_replay_wait(replay, TEGRARM_WAIT_POLL);
    assert(status == NV_ERR_STATE_IN_USE);
    return NULL;
}

static void misuse(Graph *g)
{
    NvU64 value = g->gpu[1];
    assert(tegrarm_replay_submit(g->replay, &value, 2) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_replay_submit(g->replay, NULL, 1) == NV_ERR_INVALID_POINTER);
    assert(tegrarm_replay_input(g->replay, g->out, g->in, 4) == NV_ERR_INVALID_STATE);
    assert(tegrarm_replay_push(g->replay, 0, 0, 1) == NV_ERR_INVALID_STATE);
    struct tegrarm_replay *none;
    assert(tegrarm_replay_create((struct tegrarm_device *)g->replay, &none) == NV_ERR_OBJECT_NOT_FOUND);
    assert(tegrarm_replay_wait((struct tegrarm_replay *)g->device, TEGRARM_WAIT_POLL) == NV_ERR_OBJECT_NOT_FOUND);

    /* A replay's run never finishes. The wait for it times out, other threads are refused during the wait, and the replay can
     * be ended. */
    static NvU64 signal, timeline, kick, written;
    signal = kick = written = 0;
    timeline = 41;
    CHECK(tegrarm_replay_create(NULL, &none));
    assert(tegrarm_replay_submit(none, NULL, 0) == NV_ERR_INVALID_STATE);
    CHECK(tegrarm_replay_timeline(none, &signal, &timeline, 1, &kick));
    struct tegrarm_replay_value what = {.source = TEGRARM_REPLAY_SOURCE_TIMELINE, .add = 1, .mask = UINT64_MAX};
    CHECK(tegrarm_replay_patch(none, &written, 8, 0, &what));
    struct tegrarm_replay_value bad = what;
    bad.source = TEGRARM_REPLAY_SOURCE_SLOT + 1;
    assert(tegrarm_replay_patch(none, &written, 8, 0, &bad) == NV_ERR_INVALID_ARGUMENT);
    bad = what, bad.source = TEGRARM_REPLAY_SOURCE_SLOT, bad.slot = TEGRARM_REPLAY_SLOTS;
    assert(tegrarm_replay_patch(none, &written, 8, 0, &bad) == NV_ERR_INVALID_ARGUMENT);
    bad = what, bad.reserved = 1; /* A later version may give this field a meaning. */
    assert(tegrarm_replay_patch(none, &written, 8, 0, &bad) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_replay_patch(none, (char *)&written + 1, 4, 0, &what) == NV_ERR_INVALID_ADDRESS);
    CHECK(tegrarm_replay_submit(none, NULL, 0));
    assert(written == 42 && timeline == 42 && kick == 1);
    assert(tegrarm_replay_wait(none, 1000000) == NV_ERR_TIMEOUT);
    assert(tegrarm_replay_submit(none, NULL, 0) == NV_ERR_INVALID_STATE);
    *(volatile NvU64 *)&signal = 42;
    CHECK(tegrarm_replay_wait(none, TEGRARM_WAIT_FOREVER));
    CHECK(tegrarm_replay_destroy(none));
    assert(tegrarm_replay_destroy(none) == NV_ERR_OBJECT_NOT_FOUND);
}

static void *waiter(void *replay)
{
    NV_STATUS status;
    while ((status = tegrarm_replay_wait(replay, TEGRARM_WAIT_FOREVER)) == NV_ERR_STATE_IN_USE)
        ; /* The other thread is checking whether this one is inside. */
    CHECK(status);
    return NULL;
}

/* While one thread is inside, another thread is refused and does not wait. */
static void one_at_a_time(void)
{
    static NvU64 signal, timeline, kick;
    struct tegrarm_replay *replay;
    CHECK(tegrarm_replay_create(NULL, &replay));
    CHECK(tegrarm_replay_timeline(replay, &signal, &timeline, 1, &kick));
    CHECK(tegrarm_replay_submit(replay, NULL, 0));
    pthread_t inside, second;
    assert(pthread_create(&inside, NULL, waiter, replay) == 0);
    while (tegrarm_replay_spin(replay, 1000) != NV_ERR_STATE_IN_USE) /* This repeats until the other thread is inside. */
        ;
    assert(pthread_create(&second, NULL, intruder, replay) == 0);
    assert(pthread_join(second, NULL) == 0);
    __atomic_store_n(&signal, 1, __ATOMIC_SEQ_CST);
    assert(pthread_join(inside, NULL) == 0);
    CHECK(tegrarm_replay_destroy(replay));
}

int main(void)
{
    NvU32 devices = 0;
    CHECK(tegrarm_device_count(&devices));
    for (int round = 0, fds = 0, mappings = 0; round < 2; round++) {
        Graph g = {0};
        record(&g);
        loop(&g);
        misuse(&g);
        CHECK(tegrarm_device_close(g.device)); /* This also ends the replay. */
        assert(tegrarm_replay_destroy(g.replay) == NV_ERR_OBJECT_NOT_FOUND);
        assert(round == 0 || (open_fds() == fds && shared_mappings() == mappings));
        fds = open_fds(), mappings = shared_mappings();
    }
    one_at_a_time();
    CHECK(tegrarm_shutdown());
    puts("replay: ok");
    return 0;
}
