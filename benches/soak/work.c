/* What a long-running program does with a GPU, again and again until it is ended: memory, launches, replays, forks, faults and
 * recovery. `make soak` runs it and watches what it takes. Usage: work CUBIN SECONDS */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../ctests/session.h"

enum { N = 256, BUFFERS = 8 };
static char image[1 << 16];
static size_t image_size;
static unsigned long rounds, faults, forks, runs;

static const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {2, 1, 1}, .block_dim = {128, 1, 1}};

static void launch(struct tegrarm_device *device, struct tegrarm_kernel *kernel, NvU64 a, NvU64 b, NvU64 c, NvU64 *fence)
{
    unsigned n = N;
    const void *arguments[] = {&a, &b, &c, &n};
    CHECK(tegrarm_launch(NULL, kernel, &config, arguments, 4, fence));
    (void)device;
}

static struct tegrarm_kernel *load(struct tegrarm_device *device, struct tegrarm_module **module)
{
    struct tegrarm_kernel *kernel;
    CHECK(tegrarm_module_load(device, image, image_size, module));
    CHECK(tegrarm_module_kernel(*module, "vecadd", &kernel));
    return kernel;
}

/* Allocates buffers of changing sizes, and computes a sum in some of them. */
static void memory(struct tegrarm_device *device, struct tegrarm_kernel *kernel)
{
    struct tegrarm_buffer *buffer[BUFFERS];
    float *cpu[BUFFERS];
    NvU64 gpu[BUFFERS], fence;
    for (unsigned i = 0; i < BUFFERS; i++) {
        void *at;
        CHECK(tegrarm_buffer_alloc(device, 4096u << ((rounds + i) % 9), TEGRARM_BUFFER_CACHED, &buffer[i]));
        CHECK(tegrarm_buffer_address(buffer[i], &at, &gpu[i]));
        cpu[i] = at;
        for (unsigned k = 0; k < N; k++)
            cpu[i][k] = (float)(i + k);
    }
    launch(device, kernel, gpu[0], gpu[1], gpu[2], &fence);
    CHECK(tegrarm_copy(NULL, buffer[3], 0, buffer[2], 0, 4 * N, &fence));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    assert(cpu[3][7] == 15);
    for (unsigned i = 0; i < BUFFERS; i++)
        CHECK(tegrarm_buffer_free(buffer[i]));
}

/* Records a replay and runs it several times. */
static void replay(struct tegrarm_device *device, struct tegrarm_kernel *kernel)
{
    struct tegrarm_buffer *buffer;
    struct tegrarm_replay *recorded;
    NvU64 gpu;
    void *at;
    CHECK(tegrarm_buffer_alloc(device, 3 * 4 * N, TEGRARM_BUFFER_CACHED, &buffer));
    CHECK(tegrarm_buffer_address(buffer, &at, &gpu));
    CHECK(tegrarm_replay_create(device, &recorded));
    unsigned n = N;
    NvU64 a = gpu, b = gpu + 4 * N, c = gpu + 8 * N;
    const void *arguments[] = {&a, &b, &c, &n};
    CHECK(tegrarm_replay_launch(recorded, kernel, &config, arguments, 4, NULL));
    for (int run = 0; run < 5; run++, runs++)
        CHECK(tegrarm_replay_run(recorded, NULL, 0, TEGRARM_WAIT_FOREVER));
    CHECK(tegrarm_replay_destroy(recorded));
    CHECK(tegrarm_buffer_free(buffer));
}

/* Runs a kernel that writes to an address without memory. Afterwards the device works again. */
static void fault(struct tegrarm_device *device, struct tegrarm_kernel *kernel)
{
    NvU64 nowhere = 0x1234567000, fence;
    launch(device, kernel, nowhere, nowhere, nowhere, &fence);
    assert(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER) == NV_ERR_RESET_REQUIRED);
    CHECK(tegrarm_device_recover(device, NULL));
    faults++;
}

/* Forks a child. The child may not use its parent's device, opens its own one, and ends in one of several ways. */
static void fork_a_child(struct tegrarm_device *device)
{
    fflush(NULL);
    pid_t pid = fork();
    assert(pid >= 0);
    if (pid == 0) {
        struct tegrarm_queue *none;
        if (tegrarm_device_queue(device, &none) != NV_ERR_INVALID_CLIENT)
            _exit(1);
        struct tegrarm_device *own;
        struct tegrarm_module *module;
        CHECK(tegrarm_device_open(0, &own));
        memory(own, load(own, &module));
        if (forks % 3 == 0)
            CHECK(tegrarm_device_close(own));
        if (forks % 3 == 1)
            raise(SIGKILL);
        _exit(0);
    }
    int status;
    while (waitpid(pid, &status, 0) < 0)
        assert(errno == EINTR);
    assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    forks++;
}

int main(int argc, char **argv)
{
    assert(argc == 3);
    FILE *file = fopen(argv[1], "rbe");
    assert(file);
    image_size = fread(image, 1, sizeof image, file);
    fclose(file);
    time_t end = time(NULL) + atol(argv[2]);
    while (time(NULL) < end) {
        struct tegrarm_device *device;
        CHECK(tegrarm_device_open(0, &device));
        for (int i = 0; i < 20 && time(NULL) < end; i++, rounds++) {
            struct tegrarm_module *module;
            struct tegrarm_kernel *kernel = load(device, &module);
            memory(device, kernel);
            replay(device, kernel);
            if (i % 10 == 3)
                fault(device, kernel);
            if (i % 10 == 7)
                fork_a_child(device);
            CHECK(tegrarm_module_unload(module));
        }
        CHECK(tegrarm_device_close(device));
    }
    printf("%lu rounds, %lu runs of replays, %lu faults, %lu children\n", rounds, runs, faults, forks);
    return 0;
}
