/* A thread that is cancelled in a wait finishes the wait and ends after it. A thread with the smallest stack that there may be works, or
 * is told that its stack is too small. */
#include <pthread.h>
#include <limits.h>

#include "session.h"

static struct tegrarm_device *device;
static NvU64 late;
static NV_STATUS waited;
static bool went_on;
static pthread_barrier_t ready;

static void *wait_for_late(void *none)
{
    (void)none;
    pthread_barrier_wait(&ready);
    waited = tegrarm_wait_all(device, &late, 1, TEGRARM_WAIT_FOREVER);
    pthread_testcancel();
    went_on = true;
    return NULL;
}

/* The fence passes only after the thread was cancelled. */
static void cancel(void)
{
    struct tegrarm_queue *own, *other;
    struct tegrarm_queue_options options = {.size = sizeof options};
    struct tegrarm_buffer *buffer;
    NvU64 fence;
    NvU32 id, threshold;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_device_queue(device, &own));
    CHECK(tegrarm_queue_create(device, &options, &other));
    CHECK(tegrarm_buffer_alloc(device, 4096, 0, &buffer));
    CHECK(tegrarm_fill(own, buffer, 0, 4096, 1, 4, &fence));
    CHECK(tegrarm_fence_syncpoint(device, fence, &id, &threshold));
    CHECK(tegrarm_queue_after_syncpoint(other, id, threshold + 1));
    CHECK(tegrarm_fill(other, buffer, 0, 4096, 2, 4, &late));

    waited = NV_ERR_GENERIC;
    went_on = false;
    pthread_t thread;
    void *result;
    assert(pthread_barrier_init(&ready, NULL, 2) == 0 && pthread_create(&thread, NULL, wait_for_late, NULL) == 0);
    pthread_barrier_wait(&ready);
    assert(pthread_cancel(thread) == 0);
    CHECK(tegrarm_fence_syncpoint(device, fence, &id, &threshold));
    assert(pthread_join(thread, &result) == 0);
    assert(result == PTHREAD_CANCELED && waited == NV_OK && !went_on);
    assert(pthread_barrier_destroy(&ready) == 0);
    CHECK(tegrarm_device_close(device));
}

/* The whole life of a device. */
static void *live(void *status)
{
    struct tegrarm_buffer *buffer;
    NV_STATUS *first = status;
    *first = tegrarm_device_open(0, &device);
    if (*first != NV_OK)
        return NULL;
    CHECK(tegrarm_buffer_alloc(device, 4096, 0, &buffer));
    CHECK(tegrarm_fill(NULL, buffer, 0, 4096, 1, 4, &late));
    CHECK(tegrarm_wait(device, late, TEGRARM_WAIT_FOREVER));
    CHECK(tegrarm_device_close(device));
    return NULL;
}

static void narrow(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    NV_STATUS status;
    assert(pthread_attr_init(&attributes) == 0);
    assert(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) == 0);
    assert(pthread_create(&thread, &attributes, live, &status) == 0 && pthread_join(thread, NULL) == 0);
    assert(pthread_attr_destroy(&attributes) == 0);
    assert(status == NV_OK || status == NV_ERR_INSUFFICIENT_RESOURCES);
}

static void all(void)
{
    cancel();
    narrow();
}

int main(void)
{
    return run_twice(all, "cancel");
}
