/* Several queues: dependencies, copies by the CPU in order, lists of fences, callbacks, descriptors, recovery after a fault. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "cubin.h"

enum { N = 1024, SIZE = N * sizeof(float) };

struct told {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    NvU64 fence;
    NV_STATUS status;
    int times;
};

static void tell(NvU64 fence, NV_STATUS status, void *user)
{
    struct told *told = user;
    pthread_mutex_lock(&told->lock);
    told->fence = fence;
    told->status = status;
    told->times++;
    pthread_cond_signal(&told->changed);
    pthread_mutex_unlock(&told->lock);
}

static void wait_told(struct told *told, int times)
{
    pthread_mutex_lock(&told->lock);
    while (told->times < times)
        pthread_cond_wait(&told->changed, &told->lock);
    pthread_mutex_unlock(&told->lock);
}

static void work(struct tegrarm_device *device)
{
    struct tegrarm_queue *own, *high, *copies, *none;
    CHECK(tegrarm_device_queue(device, &own));
    struct tegrarm_queue_options options = {
        .size = sizeof options, .priority = TEGRARM_PRIORITY_HIGH, .timeslice_us = 2000};
    CHECK(tegrarm_queue_create(device, &options, &high));
    options = (struct tegrarm_queue_options){.size = sizeof options, .kind = TEGRARM_QUEUE_COPY};
    CHECK(tegrarm_queue_create(device, &options, &copies));
    options.kind = 7;
    assert(tegrarm_queue_create(device, &options, &none) == NV_ERR_INVALID_ARGUMENT);
    options.size = 8;
    assert(tegrarm_queue_create(device, &options, &none) == NV_ERR_INVALID_PARAM_STRUCT);
    options = (struct tegrarm_queue_options){.size = sizeof options, .timeslice_us = 1};
    assert(tegrarm_queue_create(device, &options, &none) == NV_ERR_INVALID_ARGUMENT);

    struct tegrarm_kernel *vecadd;
    CHECK(tegrarm_module_kernel(load_cubin(device, "vecadd.nvrtc.cubin"), "vecadd", &vecadd));
    float *pa, *pb, *pc, in[N], out[N];
    NvU64 a, b, c;
    struct tegrarm_buffer *ba = float_buffer(device, SIZE, &pa, &a), *bb = float_buffer(device, SIZE, &pb, &b),
                          *bc = float_buffer(device, SIZE, &pc, &c);
    for (int i = 0; i < N; i++)
        in[i] = (float)i;

    /* a = in by the CPU; b = a by the copy engine; c = a + b by the queue of high priority; out = c by the CPU. */
    unsigned n = N;
    const void *arguments[] = {&a, &b, &c, &n};
    struct tegrarm_launch_config config = {
        .size = sizeof config, .grid_dim = {8, 1, 1}, .block_dim = {128, 1, 1}, .priority = TEGRARM_PRIORITY_HIGH};
    NvU64 fences[4];
    CHECK(tegrarm_fill(own, ba, 0, SIZE, 0, 4, NULL));
    CHECK(tegrarm_copy_in(own, ba, 0, in, SIZE, &fences[0]));
    CHECK(tegrarm_queue_after(copies, fences[0]));
    CHECK(tegrarm_copy(copies, bb, 0, ba, 0, SIZE, &fences[1]));
    CHECK(tegrarm_queue_after(high, fences[1]));
    CHECK(tegrarm_launch(high, vecadd, &config, arguments, 4, &fences[2]));
    CHECK(tegrarm_copy_out(high, bc, 0, out, SIZE, &fences[3]));
    assert(tegrarm_launch(own, vecadd, &config, arguments, 4, NULL) == NV_ERR_INVALID_ARGUMENT); /* a queue of low priority */
    config.priority = TEGRARM_PRIORITY_DEFAULT;
    assert(tegrarm_launch(copies, vecadd, &config, arguments, 4, NULL) == NV_ERR_INVALID_ARGUMENT);
    CHECK(tegrarm_wait_all(device, fences, 4, TEGRARM_WAIT_FOREVER));
    for (int i = 0; i < N; i++)
        assert(out[i] == 2 * (float)i);
    /* Without a place for the fence, a copy of the CPU returns when it is done, after the work of its queue. */
    memset(out, 0, sizeof out);
    CHECK(tegrarm_fill(high, bc, 0, SIZE, 0, 4, NULL));
    CHECK(tegrarm_copy_in(high, ba, SIZE / 2, out, SIZE / 2, NULL));
    CHECK(tegrarm_launch(high, vecadd, &config, arguments, 4, NULL));
    CHECK(tegrarm_copy_out(high, bc, 0, out, SIZE, NULL));
    for (int i = 0; i < N; i++)
        assert(out[i] == (i < N / 2 ? 2 : 1) * (float)i);
    assert(tegrarm_fence(NULL, &fences[0]) == NV_ERR_OBJECT_NOT_FOUND);
    NvU32 number, index = 9;
    CHECK(tegrarm_queue_number(copies, &number));
    assert(number == 2 && fences[1] >> 48 == 2);
    CHECK(tegrarm_wait_any(device, fences, 4, TEGRARM_WAIT_POLL, &index));
    assert(index == 0);
    assert(tegrarm_wait_any(device, NULL, 0, TEGRARM_WAIT_POLL, NULL) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_wait_all(device, NULL, 1, TEGRARM_WAIT_POLL) == NV_ERR_INVALID_POINTER);

    /* A word that the GPU writes. */
    const NvU64 *word = (const NvU64 *)(const void *)pc;
    CHECK(tegrarm_fill(own, bc, 0, SIZE, 0, 4, &fences[0]));
    CHECK(tegrarm_wait(device, fences[0], TEGRARM_WAIT_FOREVER)); /* floats are larger numbers */
    CHECK(tegrarm_fill(own, bc, 0, SIZE, 7, 4, NULL));
    CHECK(tegrarm_wait_value(word, 0x700000007, TEGRARM_WAIT_FOREVER));
    CHECK(tegrarm_wait_value(word, 0x700000006, TEGRARM_WAIT_POLL));
    assert(tegrarm_wait_value(word, 0x700000008, TEGRARM_WAIT_POLL) == NV_ERR_TIMEOUT);
    assert(tegrarm_wait_value(word, 0x700000008, 3000000) == NV_ERR_TIMEOUT);
    assert(tegrarm_wait_value(NULL, 0, TEGRARM_WAIT_POLL) == NV_ERR_INVALID_POINTER);
    assert(tegrarm_wait_value((const NvU64 *)(const void *)((const char *)pc + 4), 0, 0) == NV_ERR_INVALID_ADDRESS);

    /* A fault stops one queue; recovery keeps everything but its work. */
    struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    NvU64 nowhere = 0x1234567000, lost, fence;
    const void *bad[] = {&nowhere, &nowhere, &nowhere, &n};
    CHECK(tegrarm_launch(high, vecadd, &config, bad, 4, &lost));
    CHECK(tegrarm_fence_notify(device, lost, tell, &told));
    wait_told(&told, 1);
    assert(told.fence == lost && told.status == NV_ERR_RESET_REQUIRED);
    assert(tegrarm_wait(device, lost, TEGRARM_WAIT_FOREVER) == NV_ERR_RESET_REQUIRED);
    CHECK(tegrarm_fill(own, bb, 0, SIZE, 0, 4, &fence)); /* others go on */
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    NvU32 recovered;
    CHECK(tegrarm_device_recover(device, &recovered));
    assert(recovered == 1);
    assert(tegrarm_wait(device, lost, TEGRARM_WAIT_FOREVER) == NV_ERR_RESOURCE_LOST);
    CHECK(tegrarm_launch(high, vecadd, &config, arguments, 4, &fence));
    int fd;
    CHECK(tegrarm_fence_fd(device, fence, &fd));
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    assert(poll(&polled, 1, -1) == 1);
    assert(close(fd) == 0);
    bool passed = false;
    CHECK(tegrarm_fence_query(device, fence, &passed));
    assert(passed && pc[7] == 7);

    assert(tegrarm_queue_destroy(own) == NV_ERR_INVALID_ARGUMENT);
    CHECK(tegrarm_queue_destroy(copies));
    assert(tegrarm_queue_destroy(copies) == NV_ERR_OBJECT_NOT_FOUND);
    CHECK(tegrarm_wait(device, fences[1], TEGRARM_WAIT_POLL)); /* of a queue that has ended */
    assert(tegrarm_wait(device, (NvU64)9 << 48, TEGRARM_WAIT_POLL) == NV_ERR_INVALID_ARGUMENT);
    /* The other queue ends with the device. */
}

static void all(void)
{
    struct tegrarm_device *device;
    CHECK(tegrarm_device_open(0, &device));
    work(device);
    CHECK(tegrarm_device_close(device));
}

int main(void)
{
    return run_twice(all, "queues");
}
