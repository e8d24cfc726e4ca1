/* Callbacks that do not return: they throw, end the program or their thread, or jump. Each case has a process of its own. */
#include <csignal>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "tegrarm.h"

#define MUST(condition) \
    do { \
        if (!(condition)) { \
            std::fprintf(stderr, "callbacks.cc:%d: %s\n", __LINE__, #condition); \
            std::abort(); \
        } \
    } while (0)
#define CHECK(call) MUST((call) == NV_OK)

namespace {

enum Way { THROW, EXIT, END_THREAD, JUMP };
enum Callback { LOG, PROFILE, NOTIFY };
enum { LEFT = 7, SIZE = 4096 };

Way way;
std::jmp_buf back;
int called;

void leave()
{
    called++;
    std::string on_the_way = "its destructor runs";
    switch (way) {
    case THROW:
        throw std::runtime_error(on_the_way);
    case EXIT:
        std::exit(LEFT);
    case END_THREAD:
        pthread_exit(nullptr);
    case JUMP:
        on_the_way.~basic_string();
        std::longjmp(back, 1);
    }
}

void logged(NvU32, NV_STATUS, const char *, void *) { leave(); }
void recorded(const struct tegrarm_profile_record *, void *) { leave(); }
void told(NvU64, NV_STATUS, void *) { leave(); }

bool said(const char *words)
{
    char why[512] = "";
    tegrarm_last_error(why, sizeof why);
    return std::strstr(why, words) != nullptr;
}

void work(struct tegrarm_device *device, struct tegrarm_buffer *buffer)
{
    unsigned char bytes[SIZE];
    CHECK(tegrarm_fill(nullptr, buffer, 0, SIZE, 3, 4, nullptr));
    CHECK(tegrarm_copy_out(nullptr, buffer, 0, bytes, SIZE, nullptr));
    MUST(bytes[SIZE - 4] == 3);
    (void)device;
}

/* The callback is called, and leaves in its way. */
void call(Callback callback, struct tegrarm_device *device, struct tegrarm_buffer *buffer)
{
    NvU64 fence;
    if (callback == LOG) {
        CHECK(tegrarm_log(TEGRARM_LOG_ERROR, logged, nullptr));
        MUST(tegrarm_event_destroy(nullptr) == NV_ERR_OBJECT_NOT_FOUND && said("event"));
        CHECK(tegrarm_log(TEGRARM_LOG_OFF, nullptr, nullptr));
        return;
    }
    if (callback == PROFILE)
        CHECK(tegrarm_profile_start(device, recorded, nullptr));
    CHECK(tegrarm_fill(nullptr, buffer, 0, SIZE, 1, 4, &fence));
    if (callback == NOTIFY)
        CHECK(tegrarm_fence_notify(device, fence, told, nullptr));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    if (callback == PROFILE)
        CHECK(tegrarm_profile_stop(device));
}

void thrown(Callback callback, struct tegrarm_device *device, struct tegrarm_buffer *buffer)
{
    for (int round = 0; round < 3; round++) {
        call(callback, device, buffer);
        work(device, buffer);
        MUST(std::uncaught_exceptions() == 0);
    }
    CHECK(tegrarm_device_close(device));
    CHECK(tegrarm_shutdown());
    MUST(called == 3);
}

void jumped(Callback callback, struct tegrarm_device *device, struct tegrarm_buffer *buffer)
{
    if (setjmp(back) == 0) {
        call(callback, device, buffer);
        std::abort();
    }
    MUST(tegrarm_fill(nullptr, buffer, 0, SIZE, 1, 4, nullptr) == NV_ERR_INVALID_STATE && said("longjmp"));
    MUST(tegrarm_device_close(device) == NV_ERR_INVALID_STATE);
}

void one(Callback callback)
{
    struct tegrarm_device *device;
    struct tegrarm_buffer *buffer;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_buffer_alloc(device, SIZE, 0, &buffer));
    work(device, buffer);
    if (way == THROW)
        return thrown(callback, device, buffer);
    if (way == JUMP)
        return jumped(callback, device, buffer);
    call(callback, device, buffer);
    CHECK(tegrarm_device_close(device)); /* Its thread calls before this returns. */
    std::abort();
}

/* How a process ends in which a callback leaves in its way. */
int ended(Callback callback, Way as)
{
    std::fflush(nullptr);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        way = as;
        one(callback);
        if (as == JUMP)
            raise(SIGKILL); /* A jump loses what the frames below it held. Nobody shall count that at a normal end. */
        std::exit(0);
    }
    int status = 0;
    MUST(waitpid(child, &status, 0) == child);
    return status;
}

} // namespace

int main()
{
    for (Callback callback : {LOG, PROFILE, NOTIFY}) {
        int status = ended(callback, THROW);
        MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        status = ended(callback, EXIT);
        MUST(WIFEXITED(status) && WEXITSTATUS(status) == LEFT);
        status = ended(callback, END_THREAD);
        MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        if (callback == NOTIFY)
            continue; /* The thread of the library has no place to jump to. */
        status = ended(callback, JUMP);
        MUST(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    std::puts("callbacks: ok");
    return 0;
}
