/* A channel, the words that it executes, and waiting for a semaphore. */
#ifndef TEGRARM_CTESTS_CHANNEL_H
#define TEGRARM_CTESTS_CHANNEL_H

#include <time.h>

#include "session.h"

enum { DEADLINE_S = 20 };

static inline void await(const volatile uint32_t *semaphore, uint32_t value)
{
    time_t deadline = time(NULL) + DEADLINE_S;
    while (*semaphore != value) {
        assert(time(NULL) < deadline && "the GPU never released the semaphore");
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    atomic_thread_fence(memory_order_acquire);
}

#endif
