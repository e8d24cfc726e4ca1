/* Children that are forked while other threads of the parent work on devices of their own. Each child opens a device, runs a kernel and looks at
 * what it computed. One that waits for ever for a lock of the parent is told. Usage: forks [CHILDREN] */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cubin.h"

enum { N = 256, LOOKS = 60000 }; /* of a millisecond each, until a child counts as one that never ends */

static atomic_bool done;
static const struct tegrarm_launch_config config = {.size = sizeof config, .grid_dim = {2, 1, 1}, .block_dim = {128, 1, 1}};

static bool computes(struct tegrarm_device *device)
{
    struct tegrarm_module *module = load_cubin(device, "vecadd.nvrtc.cubin");
    struct tegrarm_kernel *kernel;
    float *x, *y, *z;
    NvU64 a, b, c, fence;
    unsigned n = N, right = 0;
    CHECK(tegrarm_module_kernel(module, "vecadd", &kernel));
    struct tegrarm_buffer *buffers[] = {
        float_buffer(device, N * sizeof *x, &x, &a), float_buffer(device, N * sizeof *y, &y, &b), float_buffer(device, N * sizeof *z, &z, &c),
    };
    for (unsigned i = 0; i < N; i++)
        x[i] = (float)i, y[i] = 2 * (float)i;
    const void *arguments[] = {&a, &b, &c, &n};
    CHECK(tegrarm_launch(NULL, kernel, &config, arguments, 4, &fence));
    CHECK(tegrarm_wait(device, fence, 60000000000));
    for (unsigned i = 0; i < N; i++)
        right += z[i] == x[i] + y[i];
    for (int i = 0; i < 3; i++)
        CHECK(tegrarm_buffer_free(buffers[i]));
    CHECK(tegrarm_module_unload(module));
    return right == N;
}

static void *work(void *unused)
{
    struct tegrarm_device *device;
    CHECK(tegrarm_device_open(0, &device));
    while (!atomic_load(&done))
        assert(computes(device));
    CHECK(tegrarm_device_close(device));
    return unused;
}

static void child(void)
{
    struct tegrarm_device *device;
    CHECK(tegrarm_device_open(0, &device));
    _exit(computes(device) ? 0 : 1);
}

int main(int argc, char **argv)
{
    int children = argc > 1 ? atoi(argv[1]) : 1000;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int n = 0; n < children; n++) {
        pid_t pid = fork();
        assert(pid >= 0);
        if (pid == 0)
            child();
        int status, looks = 0;
        while (waitpid(pid, &status, WNOHANG) == 0 && looks++ < LOOKS)
            usleep(1000);
        if (looks > LOOKS) {
            fprintf(stderr, "forks: child %d does not end\n", n);
            kill(pid, SIGKILL);
            abort();
        }
        assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    atomic_store(&done, true);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    CHECK(tegrarm_shutdown());
    printf("forks: ok, %d children\n", children);
    return 0;
}
