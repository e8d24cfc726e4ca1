/* Time stamps: events around work, the clocks of the GPU and of the CPU, and a profile. */
#include "session.h"

enum { SIZE = 1 << 20 };

/* A fill and a copy, timed by the GPU, and where that was in the time of the CPU. */
static void elapsed(struct tegrarm_device *device, struct tegrarm_queue *queue, struct tegrarm_buffer *a, struct tegrarm_buffer *b)
{
    struct tegrarm_event *start, *end;
    CHECK(tegrarm_event_create(device, &start));
    CHECK(tegrarm_event_create(device, &end));
    NvU64 time;
    assert(tegrarm_event_time(start, &time) == NV_ERR_INVALID_STATE);
    NvU64 gpu, cpu, off, fence, gpu_after, cpu_after;
    CHECK(tegrarm_device_time(device, &gpu, &cpu, &off));
    CHECK(tegrarm_event_record(start, queue, NULL));
    CHECK(tegrarm_fill(NULL, a, 0, SIZE, 7, 1, NULL));
    CHECK(tegrarm_copy(NULL, b, 0, a, 0, SIZE, NULL));
    CHECK(tegrarm_event_record(end, NULL, &fence));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    CHECK(tegrarm_device_time(device, &gpu_after, &cpu_after, NULL));
    CHECK(tegrarm_device_time(device, NULL, NULL, NULL));

    int64_t forth, back;
    CHECK(tegrarm_event_elapsed(start, end, &forth));
    CHECK(tegrarm_event_elapsed(end, start, &back));
    assert(forth >= 0 && back == -forth && (NvU64)forth <= gpu_after - gpu);

    CHECK(tegrarm_event_time(start, &time));
    assert(time >= gpu && time <= gpu_after);
    NvU64 in_cpu_time = time - gpu + cpu;
    assert(in_cpu_time >= cpu && in_cpu_time <= cpu_after + 2 * off + 64);

    CHECK(tegrarm_event_destroy(start));
    assert(tegrarm_event_time(start, &time) == NV_ERR_OBJECT_NOT_FOUND);
    assert(tegrarm_event_record(end, (struct tegrarm_queue *)device, NULL) == NV_ERR_OBJECT_NOT_FOUND);
    /* The other event ends with the device. */
}

struct seen {
    int count;
    NvU64 fence, end;
};

static void report(const struct tegrarm_profile_record *record, void *user)
{
    struct seen *seen = user;
    assert(record->size >= sizeof *record && record->queue == 0 && record->start_ns <= record->end_ns);
    assert(record->start_ns >= seen->end && record->fence > seen->fence);
    if (record->kind == TEGRARM_PROFILE_FILL)
        assert(record->bytes == 4096 && strcmp(record->name, "fill") == 0);
    else
        assert(record->kind == TEGRARM_PROFILE_COPY && record->bytes == SIZE);
    seen->count++;
    seen->fence = record->fence;
    seen->end = record->end_ns;
}

static void profile(struct tegrarm_device *device, struct tegrarm_buffer *a, struct tegrarm_buffer *b)
{
    struct seen seen = {0};
    assert(tegrarm_profile_start(device, NULL, NULL) == NV_ERR_INVALID_POINTER);
    CHECK(tegrarm_profile_start(device, report, &seen));
    assert(tegrarm_profile_start(device, report, &seen) == NV_ERR_STATE_IN_USE);
    NvU64 fence;
    CHECK(tegrarm_fill(NULL, a, 0, 4096, 0, 4, &fence));
    CHECK(tegrarm_wait(device, fence, TEGRARM_WAIT_FOREVER));
    assert(seen.count == 1 && seen.fence == fence);
    CHECK(tegrarm_copy(NULL, a, 0, b, 0, SIZE, NULL));
    CHECK(tegrarm_profile_stop(device));
    assert(seen.count == 2);
    assert(tegrarm_profile_stop(device) == NV_ERR_INVALID_STATE);
}

/* Checks the state of the device, and the messages of the library. */
static void logged(NvU32 level, NV_STATUS status, const char *message, void *user)
{
    assert(level == TEGRARM_LOG_ERROR && status == NV_ERR_OBJECT_NOT_FOUND && !strstr(message, "NV_ERR_"));
    ++*(int *)user;
}

static void messages(struct tegrarm_device *device)
{
    struct tegrarm_device_state state = {.size = sizeof state};
    CHECK(tegrarm_device_state(device, &state));
    assert(state.clock_hz && state.clock_hz <= state.max_clock_hz && state.memory_available <= state.memory_total);
    /* The same without a device. The simulated board has no sensor of power and no thermal zone. */
    struct tegrarm_device_state other = {.size = sizeof other}, shorter = {.size = offsetof(struct tegrarm_device_state, power), .power = 7};
    CHECK(tegrarm_gpu_state(0, &other));
    assert(other.size == sizeof other && other.max_clock_hz == state.max_clock_hz && other.memory_total == state.memory_total);
    assert(other.power == TEGRARM_POWER_UNKNOWN && !other.power_rail[0] && other.temperature_slowdown == TEGRARM_TEMPERATURE_UNKNOWN);
    CHECK(tegrarm_gpu_state(0, &shorter));
    assert(shorter.power == 7 && shorter.max_clock_hz == state.max_clock_hz);
    assert(tegrarm_gpu_state(1, &other) == NV_ERR_INVALID_DEVICE && tegrarm_gpu_state(0, NULL) == NV_ERR_INVALID_POINTER);
    int count = 0;
    CHECK(tegrarm_log(TEGRARM_LOG_ERROR, logged, &count));
    assert(tegrarm_event_destroy(NULL) == NV_ERR_OBJECT_NOT_FOUND);
    CHECK(tegrarm_log(TEGRARM_LOG_OFF, NULL, NULL));
    assert(tegrarm_event_destroy(NULL) == NV_ERR_OBJECT_NOT_FOUND && count == 1);
}

/* The figures of the design, those that the device reaches, and a program that knows the first fields only. */
static void measure(struct tegrarm_device *device)
{
    struct tegrarm_device_profile design = {.size = sizeof design}, found = {.size = sizeof found}, old = {.size = sizeof old};
    CHECK(tegrarm_device_profile(0, &design));
    CHECK(tegrarm_device_measure(device, &found));
    assert(design.size == sizeof design && !design.measured && design.scalar_rate_float32 && design.matrix_rate_int8);
    assert(found.size == sizeof found && found.measured && found.launch_latency_ns && found.compute_units == design.compute_units);
    assert(found.scalar_rate_float32 && found.scalar_rate_float16 && found.scalar_rate_int32);
    assert(found.matrix_rate_float16 && found.matrix_rate_bfloat16 && found.matrix_rate_int8);
    assert(found.local_bandwidth && found.copy_in_bandwidth && found.copy_out_bandwidth);
    old.size = offsetof(struct tegrarm_device_profile, copy_in_bandwidth);
    old.launch_latency_ns = 77;
    CHECK(tegrarm_device_measure(device, &old));
    assert(old.size == offsetof(struct tegrarm_device_profile, copy_in_bandwidth) && old.launch_latency_ns == 77);
    assert(tegrarm_device_measure(device, NULL) == NV_ERR_INVALID_POINTER);
    assert(tegrarm_device_measure(NULL, &found) == NV_ERR_OBJECT_NOT_FOUND);
    found.size = 4;
    assert(tegrarm_device_measure(device, &found) == NV_ERR_INVALID_PARAM_STRUCT);
}

static void all(void)
{
    struct tegrarm_device *device;
    struct tegrarm_queue *queue, *again;
    struct tegrarm_buffer *a, *b;
    CHECK(tegrarm_device_open(0, &device));
    CHECK(tegrarm_device_queue(device, &queue));
    CHECK(tegrarm_device_queue(device, &again));
    assert(queue == again);
    CHECK(tegrarm_buffer_alloc(device, SIZE, TEGRARM_BUFFER_CACHED, &a));
    CHECK(tegrarm_buffer_alloc(device, SIZE, TEGRARM_BUFFER_CACHED, &b));
    elapsed(device, queue, a, b);
    profile(device, a, b);
    messages(device);
    measure(device);
    CHECK(tegrarm_device_close(device));
    assert(tegrarm_device_queue(device, &queue) == NV_ERR_OBJECT_NOT_FOUND);
}

int main(void)
{
    return run_twice(all, "events");
}
