/* Hands work over with syncpoints and sync files between two queues. The same calls hand work over to other drivers. */
#include <poll.h>
#include <unistd.h>

#include "session.h"

enum { SIZE = 4096 };

static int is_readable(int fd, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int ready = poll(&p, 1, timeout_ms);
    assert(ready >= 0);
    return ready;
}

static void hand_over(struct tegrarm_device *device)
{
    struct tegrarm_queue *own, *other, *third;
    CHECK(tegrarm_device_queue(device, &own));
    CHECK(tegrarm_queue_create(device, NULL, &other));
    CHECK(tegrarm_queue_create(device, NULL, &third));
    struct tegrarm_buffer *buffer;
    void *pointer;
    CHECK(tegrarm_buffer_alloc(device, SIZE, TEGRARM_BUFFER_CACHED, &buffer));
    CHECK(tegrarm_buffer_address(buffer, &pointer, NULL));
    unsigned char *bytes = pointer;
    NvU64 fence, last;
    NvU32 id, threshold, next, number;

    /* The other queue waits for a value that the device's own queue reaches later. */
    CHECK(tegrarm_fence(own, &fence));
    CHECK(tegrarm_fence_syncpoint(device, fence, &id, &threshold));
    CHECK(tegrarm_queue_after_syncpoint(other, id, threshold + 1));
    CHECK(tegrarm_fill(other, buffer, 0, SIZE, 7, 1, &last));
    assert(tegrarm_wait(device, last, 1000000) == NV_ERR_TIMEOUT);
    unsigned char before = 1; /* A copy waits for its own queue, and not for another one that waits. */
    CHECK(tegrarm_copy_out(NULL, buffer, 0, &before, 1, NULL));
    assert(before == 0);
    CHECK(tegrarm_fence_syncpoint(device, fence, &number, &next));
    assert(number == id && next == threshold + 1);
    CHECK(tegrarm_wait(device, last, TEGRARM_WAIT_FOREVER));
    assert(bytes[0] == 7 && bytes[SIZE - 1] == 7);

    /* The same with a sync file, which a program can also poll. */
    int file;
    CHECK(tegrarm_fence_syncpoint(device, last, &number, &next));
    assert(number != id);
    CHECK(tegrarm_queue_after_syncpoint(own, number, next + 1));
    CHECK(tegrarm_fill(NULL, buffer, 0, SIZE, 8, 1, &fence));
    CHECK(tegrarm_fence_sync_file(device, fence, &file));
    assert(!is_readable(file, 0));
    CHECK(tegrarm_queue_after_sync_file(third, file));
    CHECK(tegrarm_fence_syncpoint(device, last, &number, &next));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    assert(is_readable(file, -1) && bytes[0] == 8);
    NvU64 behind;
    CHECK(tegrarm_fill(third, buffer, 0, SIZE, 9, 1, &behind));
    CHECK(tegrarm_wait(device, behind, TEGRARM_WAIT_FOREVER));
    assert(bytes[0] == 9);
    close(file);

    int fds[2];
    assert(pipe(fds) == 0);
    assert(tegrarm_queue_after_sync_file(other, fds[0]) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_queue_after_sync_file(other, -1) == NV_ERR_INVALID_ARGUMENT);
    close(fds[0]);
    close(fds[1]);
    assert(tegrarm_queue_after_syncpoint(other, 1 << 20, 0) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_fence_syncpoint(device, ~0ull, &id, &threshold) == NV_ERR_INVALID_ARGUMENT);
    assert(tegrarm_fence_syncpoint(device, fence, NULL, &threshold) == NV_ERR_INVALID_POINTER);
    assert(tegrarm_fence_sync_file(device, fence, NULL) == NV_ERR_INVALID_POINTER);
    CHECK(tegrarm_queue_destroy(other));
    assert(tegrarm_queue_after_syncpoint(other, 0, 0) == NV_ERR_OBJECT_NOT_FOUND);
    assert(tegrarm_fence_sync_file(device, last, &file) == NV_ERR_INVALID_ARGUMENT);
}

int main(void)
{
    struct tegrarm_device *device;
    CHECK(tegrarm_device_open(0, &device));
    hand_over(device);
    CHECK(tegrarm_device_close(device));
    CHECK(tegrarm_shutdown());
    puts("syncpoints: ok");
    return 0;
}
