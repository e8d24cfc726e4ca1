/* The rules of real time: once a program has warmed up, a launch, a wait and a run of a replay allocate nothing, touch no new page, and make no
 * system call but the sleep of a wait that takes long. In particular they wait for no lock (futex), whatever other threads do with a device of
 * their own (docs/real-time.md).
 *
 * Allocations are counted by functions that replace the C library's, page faults by getrusage(2), and system calls by a seccomp filter of the
 * thread, which sends a signal for each. All three count for one thread only, so that a simulated GPU in the process does not disturb. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cubin.h"

enum { N = 256, RUNS = 3000, WARM = 200 };

/* *** What is counted *** */

static _Thread_local volatile int counting;
static _Thread_local unsigned long allocations, calls;
static unsigned char called[512]; /* By the number of a call. */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static void count_allocation(void)
{
    if (counting)
        allocations++;
}

void *malloc(size_t size)
{
    count_allocation();
    return __libc_malloc(size);
}
void *calloc(size_t count, size_t size)
{
    count_allocation();
    return __libc_calloc(count, size);
}
void *realloc(void *old, size_t size)
{
    count_allocation();
    return __libc_realloc(old, size);
}
void *aligned_alloc(size_t alignment, size_t size)
{
    count_allocation();
    return __libc_memalign(alignment, size);
}
int posix_memalign(void **made, size_t alignment, size_t size)
{
    count_allocation();
    *made = __libc_memalign(alignment, size);
    return *made ? 0 : ENOMEM;
}
void free(void *old)
{
    if (old)
        count_allocation();
    __libc_free(old);
}

/* A call that the filter traps. It is not made; the program only counts it, and reports its number. */
static void trapped(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    calls++;
    called[(unsigned)info->si_syscall % sizeof called] = 1;
}

static const int permitted[] = {SYS_clock_nanosleep, SYS_nanosleep, SYS_sched_yield, SYS_rt_sigreturn, SYS_exit, SYS_getrusage};

/* From here on the thread can make no other call than the permitted ones. There is no way back, so that the thread ends after this. */
static void forbid_calls(void)
{
    enum { PERMITTED = sizeof permitted / sizeof permitted[0] };
    struct sock_filter program[PERMITTED + 3];
    unsigned at = 0;
    program[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < PERMITTED; i++)
        program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)permitted[i], (unsigned char)(PERMITTED - i), 0);
    program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog whole = {(unsigned short)at, program};
    assert(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    assert(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &whole) == 0);
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* *** The work *** */

static atomic_bool stop;

static struct tegrarm_device *open_device(struct tegrarm_kernel **kernel)
{
    struct tegrarm_device *device;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_module_kernel(load_cubin(device, "vecadd.nvrtc.cubin"), "vecadd", kernel));
    return device;
}

/* Another thread of the program, without deadlines: it launches, allocates and frees without a pause. */
static void *others(void *unused)
{
    (void)unused;
    struct tegrarm_kernel *kernel;
    struct tegrarm_device *device = open_device(&kernel);
    while (!atomic_load(&stop)) {
        float *p;
        NvU64 gpu, fence;
        struct tegrarm_buffer *buffer = float_buffer(device, 1 << 16, &p, &gpu);
        const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {1, 1, 1}, .block_dim = {N, 1, 1}};
        const int n = N;
        const void *arguments[] = {&gpu, &gpu, &gpu, &n};
        CHECK(tegrarm_launch(NULL, kernel, &config, arguments, 4, &fence));
        CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
        CHECK(tegrarm_buffer_free(buffer));
    }
    return NULL;
}

struct outcome {
    const char *what;
    unsigned long allocations, calls;
    long faults;
};

static struct outcome results[2];

static void *real_time(void *unused)
{
    (void)unused;
    struct tegrarm_kernel *kernel;
    struct tegrarm_device *device = open_device(&kernel);
    float *pa, *pb, *pc, in[N], out[N];
    NvU64 a, b, c, fence;
    float_buffer(device, sizeof in, &pa, &a);
    float_buffer(device, sizeof in, &pb, &b);
    float_buffer(device, sizeof in, &pc, &c);
    const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {1, 1, 1}, .block_dim = {N, 1, 1}};
    const int n = N;
    const void *arguments[] = {&a, &b, &c, &n};
    struct tegrarm_replay *replay;
    NvU32 launch;
    CHECK(tegrarm_replay_create(device, &replay));
    CHECK(tegrarm_replay_input(replay, pa, in, sizeof in));
    CHECK(tegrarm_replay_launch(replay, kernel, &config, arguments, 4, &launch));
    CHECK(tegrarm_replay_output(replay, out, pc, sizeof out));
    for (int i = 0; i < N; i++)
        in[i] = pb[i] = (float)i;
    for (int i = 0; i < WARM; i++) {
        CHECK(tegrarm_launch(NULL, kernel, &config, arguments, 4, &fence));
        CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
        CHECK(tegrarm_replay_run(replay, NULL, 0, TEGRARM_WAIT_FOREVER));
    }
    forbid_calls();
    for (int phase = 0; phase < 2; phase++) {
        allocations = calls = 0;
        long before = faults();
        NV_STATUS worst = NV_OK;
        counting = 1;
        for (int i = 0; i < RUNS && worst == NV_OK; i++) {
            in[0] = (float)i;
            if (phase == 0) {
                worst = tegrarm_launch(NULL, kernel, &config, arguments, 4, &fence);
                worst = worst ? worst : tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER);
            } else {
                worst = tegrarm_replay_run(replay, NULL, 0, TEGRARM_WAIT_FOREVER);
                if (out[0] != (float)i || out[N - 1] != 2 * (N - 1))
                    worst = NV_ERR_INVALID_DATA;
            }
        }
        counting = 0;
        const char *what = worst ? "failed" : phase == 0 ? "launch and wait" : "replay";
        results[phase] = (struct outcome){what, allocations, calls, faults() - before};
    }
    /* The thread can do nothing else any more, not even end as a thread of the C library does: futexes and munmap are calls. */
    syscall(SYS_exit, 0);
    return NULL;
}

int main(int argc, char **argv)
{
    int alone = argc > 1 && strcmp(argv[argc - 1], "alone") == 0;
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    assert(sigaction(SIGSYS, &action, NULL) == 0);
    /* Pages of files and of the stack stay where they are, and new ones are there at once. */
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        printf("real_time: memory cannot be locked (%s); ulimit -l is too small. What was touched once stays, too.\n", strerror(errno));
    pthread_t thread, other;
    assert(alone || pthread_create(&other, NULL, others, NULL) == 0);
    assert(pthread_create(&thread, NULL, real_time, NULL) == 0);
    while (!((volatile struct outcome *)results)[1].what)
        usleep(1000);
    atomic_store(&stop, 1);
    if (!alone)
        pthread_join(other, NULL);
    int bad = 0;
    for (int i = 0; i < 2; i++) {
        struct outcome *r = &results[i];
        printf("%s: %d runs, %lu allocations, %ld page faults, %lu system calls", r->what, RUNS, r->allocations, r->faults, r->calls);
        for (unsigned call = 0; r->calls && call < sizeof called; call++)
            if (called[call])
                printf(" (number %u)", call);
        printf("\n");
        bad |= r->allocations || r->faults || r->calls || strcmp(r->what, "failed") == 0;
    }
    fflush(stdout);
    _exit(bad);
}
