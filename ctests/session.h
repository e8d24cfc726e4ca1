/* The bring-up that all C tests use: client, device, subdevice, address space, channel group and context share. Every step is
 * an RM call. If one fails, the library's sentence about it is printed and the program aborts. */
#ifndef TEGRARM_CTESTS_SESSION_H
#define TEGRARM_CTESTS_SESSION_H

#include <assert.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tegrarm.h"
#include "tegrarm_abi.h"

#define CHECK(call) check(__FILE__, __LINE__, #call, (call))

static inline void check(const char *file, int line, const char *call, NV_STATUS status)
{
    if (status == NV_OK)
        return;
    char why[512] = "";
    tegrarm_last_error(why, sizeof why);
    fprintf(stderr, "%s:%d: %s\n  %s: %s\n", file, line, call, tegrarm_status_name(status), why);
    abort();
}

/* The number of open file descriptors of this process, without the descriptor that is used for counting. */
static inline int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    assert(dir);
    int count = -3; /* ".", ".." and the directory itself */
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* The number of shared mappings in /proc/self/maps. A leaked mapping of a device or a buffer is one of them. */
static inline int shared_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    assert(maps);
    char line[512];
    int count = 0;
    while (fgets(line, sizeof line, maps)) {
        char perms[5];
        if (sscanf(line, "%*s %4s", perms) == 1 && perms[3] == 's')
            count++;
    }
    fclose(maps);
    return count;
}

/* The whole of a test program: the second run of `all` may leave no descriptor and no mapping behind. The first run may, because
 * it loads libraries and opens the backend. */
static inline int run_twice(void (*all)(void), const char *name)
{
    all();
    int fds = open_fds(), mappings = shared_mappings();
    all();
    assert(open_fds() == fds && "a file descriptor leaked");
    assert(shared_mappings() == mappings && "a mapping leaked");
    CHECK(tegrarm_shutdown());
    printf("%s: ok\n", name);
    return 0;
}

typedef struct {
    NvHandle client, device, subdevice, vaspace, mapper, group, share;
} Session;

static inline NvHandle alloc(const Session *s, NvHandle parent, NvU32 class_, void *params, NvU32 size)
{
    NvHandle object = 0;
    CHECK(rm_alloc(s->client, parent, &object, class_, params, size));
    assert(object != 0);
    return object;
}

/* The objects below a client that exists already. */
static inline Session session_of(NvHandle client)
{
    Session s = {.client = client};
    NV0080_ALLOC_PARAMETERS device = {.hClientShare = s.client};
    s.device = alloc(&s, s.client, NV01_DEVICE_0, &device, sizeof device);
    NV2080_ALLOC_PARAMETERS subdevice = {0};
    s.subdevice = alloc(&s, s.device, NV20_SUBDEVICE_0, &subdevice, sizeof subdevice);

    NV_VASPACE_ALLOCATION_PARAMETERS vaspace = {0};
    s.vaspace = alloc(&s, s.device, FERMI_VASPACE_A, &vaspace, sizeof vaspace);
    NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS mapper = {.hVASpace = s.vaspace};
    s.mapper = alloc(&s, s.device, NV01_MEMORY_VIRTUAL, &mapper, sizeof mapper);

    NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS group = {.engineType = NV2080_ENGINE_TYPE_GRAPHICS};
    s.group = alloc(&s, s.device, KEPLER_CHANNEL_GROUP_A, &group, sizeof group);
    NV_CTXSHARE_ALLOCATION_PARAMETERS share = {.hVASpace = s.vaspace, .flags = NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC};
    s.share = alloc(&s, s.group, FERMI_CONTEXT_SHARE_A, &share, sizeof share);
    return s;
}

static inline Session session_open(void)
{
    NvHandle client = 0;
    CHECK(rm_alloc(0, 0, &client, NV01_ROOT_CLIENT, NULL, 0));
    return session_of(client);
}

static inline void session_close(Session *s)
{
    CHECK(rm_free(s->client, 0, s->client));
}

/* Memory that the CPU and the GPU see at the same address, unless that address is in use, for example by the shadow of the
 * address sanitizer. */
typedef struct {
    NvHandle memory;
    NvU64 size;
    NvU64 va;
    volatile void *cpu;
} Buffer;

static inline Buffer buffer_open(const Session *s, NvU64 size)
{
    Buffer b = {.size = size};
    NV_MEMORY_ALLOCATION_PARAMS params = {.owner = s->client, .size = size, .alignment = 4096};
    b.memory = alloc(s, s->device, NV01_MEMORY_LOCAL_USER, &params, sizeof params);
    CHECK(rm_map_memory_dma(s->client, s->device, s->mapper, b.memory, 0, size, 0, &b.va));
    void *cpu = NULL;
    CHECK(rm_map_memory(s->client, s->device, b.memory, 0, size, &cpu, 0));
    b.cpu = cpu;
#ifndef __SANITIZE_ADDRESS__
    assert((uintptr_t)cpu == b.va && "the library places a mapping at the same address for CPU and GPU");
#endif
    return b;
}

static inline void buffer_close(const Session *s, Buffer *b)
{
    CHECK(rm_unmap_memory(s->client, s->device, b->memory, (void *)b->cpu, 0));
    CHECK(rm_unmap_memory_dma(s->client, s->device, s->mapper, b->memory, 0, b->va));
    CHECK(rm_free(s->client, s->device, b->memory));
}

#endif
