/* The calls of NVML that PyTorch makes when it runs out of memory: it finds the device by the address that CUDA gives, and sums up what
 * other processes have. Then a set of events that times out, a fork, and threads. The arguments are processes that must be listed.
 *
 * `refresh COUNT` asks what a monitor shows, so often, ten times a second, and says how many processes it sees whenever the number changes. */
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

static nvmlReturn_t (*device_by_address)(const char *, nvmlDevice_t *);
static nvmlReturn_t (*processes)(nvmlDevice_t, unsigned int *, nvmlProcessInfo_v1_t *);
static nvmlReturn_t (*memory)(nvmlDevice_t, nvmlMemory_t *);
static nvmlDevice_t device;

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    assert(found);
    return found;
}

/* What callgrind counts. Returns the number of processes. */
__attribute__((noinline)) unsigned int measured_refresh(nvmlReturn_t (*load)(nvmlDevice_t, nvmlUtilization_t *),
                                                        nvmlReturn_t (*clock)(nvmlDevice_t, nvmlClockType_t, unsigned int *),
                                                        nvmlReturn_t (*temperature)(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned int *),
                                                        nvmlReturn_t (*power)(nvmlDevice_t, unsigned int *))
{
    static nvmlProcessInfo_v1_t found[1024];
    nvmlUtilization_t busy;
    nvmlMemory_t now;
    unsigned int value, count = 1024;
    assert(load(device, &busy) == NVML_SUCCESS && memory(device, &now) == NVML_SUCCESS);
    assert(clock(device, NVML_CLOCK_SM, &value) == NVML_SUCCESS);
    (void)temperature(device, NVML_TEMPERATURE_GPU, &value); /* The virtual Orin has neither. */
    (void)power(device, &value);
    assert(processes(device, &count, found) == NVML_SUCCESS);
    return count;
}

static int refresh(void *library, int often)
{
    unsigned int before = 0;
    for (int i = 0; i < often; i++) {
        unsigned int count = measured_refresh(find(library, "nvmlDeviceGetUtilizationRates"), find(library, "nvmlDeviceGetClockInfo"),
                                              find(library, "nvmlDeviceGetTemperature"), find(library, "nvmlDeviceGetPowerUsage"));
        if (count != before) {
            printf("processes: %u\n", count);
            fflush(stdout);
        }
        before = count;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return 0;
}

static void *ask(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        nvmlMemory_t now;
        unsigned int count = 0;
        assert(memory(device, &now) == NVML_SUCCESS && now.total && now.total == now.free + now.used);
        nvmlReturn_t counted = processes(device, &count, NULL);
        assert(counted == NVML_SUCCESS || counted == NVML_ERROR_INSUFFICIENT_SIZE);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
    assert(library);
    nvmlReturn_t (*init)(void) = find(library, "nvmlInit_v2"), (*end)(void) = find(library, "nvmlShutdown");
    device_by_address = find(library, "nvmlDeviceGetHandleByPciBusId_v2");
    processes = find(library, "nvmlDeviceGetComputeRunningProcesses");
    memory = find(library, "nvmlDeviceGetMemoryInfo");
    assert(end() == NVML_ERROR_UNINITIALIZED);
    assert(init() == NVML_SUCCESS && init() == NVML_SUCCESS && end() == NVML_SUCCESS);
    char address[80];
    snprintf(address, sizeof address, "%08x:%02x:%02x.0", 0, 0, 0);
    assert(device_by_address(address, &device) == NVML_SUCCESS && device);
    assert(device_by_address("00000000:07:00.0", &device) == NVML_ERROR_NOT_FOUND);
    if (argc == 3 && !strcmp(argv[1], "refresh"))
        return refresh(library, atoi(argv[2]));
    nvmlProcessInfo_v1_t found[1024];
    unsigned int count = 1024;
    assert(processes(device, &count, found) == NVML_SUCCESS);
    for (int i = 1; i < argc; i++) {
        unsigned int at = 0;
        while (at < count && found[at].pid != (unsigned int)atoi(argv[i]))
            at++;
        assert(at < count && found[at].usedGpuMemory > 0);
        printf("%u %llu\n", found[at].pid, found[at].usedGpuMemory);
    }

    nvmlReturn_t (*create)(nvmlEventSet_t *) = find(library, "nvmlEventSetCreate"), (*gone)(nvmlEventSet_t) = find(library, "nvmlEventSetFree");
    nvmlReturn_t (*wait_for)(nvmlEventSet_t, nvmlEventData_t *, unsigned int) = find(library, "nvmlEventSetWait_v2");
    nvmlEventSet_t set;
    nvmlEventData_t event;
    assert(create(&set) == NVML_SUCCESS && wait_for(set, &event, 20) == NVML_ERROR_TIMEOUT && wait_for(set, &event, 0) == NVML_ERROR_TIMEOUT);
    assert(gone(set) == NVML_SUCCESS && gone(set) == NVML_ERROR_INVALID_ARGUMENT);

    /* Children of a process whose threads are inside the library can use it. */
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert(!pthread_create(&threads[i], NULL, ask, NULL));
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();
        if (!child) {
            ask(NULL);
            _exit(end() == NVML_SUCCESS && end() == NVML_ERROR_UNINITIALIZED ? 0 : 1);
        }
        int status;
        assert(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < 4; i++)
        assert(!pthread_join(threads[i], NULL));
    assert(end() == NVML_SUCCESS && end() == NVML_ERROR_UNINITIALIZED);
    puts("nvml: ok");
    return 0;
}
