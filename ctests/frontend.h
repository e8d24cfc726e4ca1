/* A client of the device nodes that chooses GPU addresses itself, as tinygrad's interface to the desktop driver does: objects, UVM
 * ranges, memory of the GPU and of the process. With PLAIN it calls libc only. */
#ifndef TEGRARM_CTESTS_FRONTEND_H
#define TEGRARM_CTESTS_FRONTEND_H

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tegrarm_abi.h"

#ifdef PLAIN
#define NODE_OPEN(path, flags) open(path, flags)
#define NODE_IOCTL ioctl
#define NODE_MMAP mmap
#define NODE_CLOSE close
static const char *why(void) { return strerror(errno); }
#else
#include "tegrarm.h"
#define NODE_OPEN rm_open
#define NODE_IOCTL rm_ioctl
#define NODE_MMAP rm_mmap
#define NODE_CLOSE rm_close
static const char *why(void)
{
    static char text[512];
    tegrarm_last_error(text, sizeof text);
    return text;
}
#endif

#define FAIL(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), abort())
#define HI(x) (uint32_t)((x) >> 32)
#define LO(x) (uint32_t)(x)

/* The parameters of UVM calls, whose numbers are bare integers. */
typedef struct { uint8_t uuid[16]; } Uuid;
typedef struct { Uuid gpu; uint32_t mapping, caching, format, bits, compression; } Attributes;
enum {
    UVM_MAP_EXTERNAL_ALLOCATION = 0x21, UVM_FREE = 0x22, UVM_REGISTER_GPU_VASPACE = 0x19, UVM_REGISTER_CHANNEL = 0x1b,
    UVM_REGISTER_GPU = 0x25, UVM_CREATE_EXTERNAL_RANGE = 0x49, UVM_MM_INITIALIZE = 0x4b, UVM_INITIALIZE = 0x30000001,
    PAGE = 4096, BIG_PAGE = 2 << 20, DEADLINE_S = 120,
};

static int ctl = -1, uvm = -1, gpu = -1;
static uint32_t client, device, subdevice, mapper, vaspace;
static Uuid uuid;
static uint64_t low_va = 0x1000000000, high_va = 0x2000000000;
static uint32_t host_handle = 0x1000;

static void escape(int fd, uint32_t nr, void *arg, uint32_t size)
{
    if (NODE_IOCTL(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', nr, size), arg) != 0)
        FAIL("escape %#x: %s", nr, why());
}
#define ESCAPE(fd, nr, arg) escape(fd, nr, arg, sizeof *(arg))
#define STATUS(what, status) ((status) == NV_OK ? (void)0 : (void)FAIL("%s: status %#x: %s", what, (unsigned)(status), why()))
#define UVM(nr, arg) (NODE_IOCTL(uvm, nr, arg) == 0 ? STATUS(#nr, (arg)->status) : (void)FAIL("%s: %s", #nr, why()))

static uint32_t alloc(uint32_t parent, uint32_t class_, void *params)
{
    NVOS21_PARAMETERS p = {.hRoot = client, .hObjectParent = parent, .hClass = class_, .pAllocParms = (uintptr_t)params};
    ESCAPE(ctl, NV_ESC_RM_ALLOC, &p);
    if (p.status != NV_OK)
        FAIL("class %#x: status %#x: %s", class_, p.status, why());
    return p.hObjectNew;
}

static void control(uint32_t object, uint32_t cmd, void *params, uint32_t size)
{
    NVOS54_PARAMETERS p = {.hClient = client, .hObject = object, .cmd = cmd, .params = (uintptr_t)params, .paramsSize = size};
    ESCAPE(ctl, NV_ESC_RM_CONTROL, &p);
    STATUS("control", p.status);
}

static int open_gpu(void)
{
    int fd = NODE_OPEN("/dev/nvidia0", O_RDWR | O_CLOEXEC);
    if (fd < 0)
        FAIL("/dev/nvidia0: %s", why());
    nv_ioctl_register_fd_t registration = {.ctl_fd = ctl};
    ESCAPE(fd, NV_ESC_REGISTER_FD, &registration);
    return fd;
}

static void open_nodes(void)
{
    ctl = NODE_OPEN("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
    uvm = NODE_OPEN("/dev/nvidia-uvm", O_RDWR | O_CLOEXEC);
    if (ctl < 0 || uvm < 0)
        FAIL("/dev/nvidiactl, /dev/nvidia-uvm: %s", why());
    client = alloc(0, NV01_ROOT_CLIENT, NULL);
    struct { uint64_t flags; uint32_t status, pad; } start = {0};
    UVM(UVM_INITIALIZE, &start);
    gpu = open_gpu();
}

static void open_objects(void)
{
    NV0080_ALLOC_PARAMETERS device_params = {.hClientShare = client};
    device = alloc(client, NV01_DEVICE_0, &device_params);
    NV2080_ALLOC_PARAMETERS subdevice_params = {0};
    subdevice = alloc(device, NV20_SUBDEVICE_0, &subdevice_params);
    NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS range = {.limit = 0x1ffffffffffff};
    mapper = alloc(device, NV01_MEMORY_VIRTUAL, &range);
    NV_VASPACE_ALLOCATION_PARAMETERS space = {.flags = 0x48, .vaBase = 0x1000, .vaSize = 0x1fffffb000000};
    vaspace = alloc(device, FERMI_VASPACE_A, &space);
    NV2080_CTRL_GPU_GET_GID_INFO_PARAMS gid = {.flags = 2, .length = 16};
    control(subdevice, NV2080_CTRL_CMD_GPU_GET_GID_INFO, &gid, sizeof gid);
    memcpy(&uuid, gid.data, sizeof uuid);
    struct { Uuid gpu; uint8_t numa, pad[3]; int32_t node, fd; uint32_t client, smc, status; } add = {.gpu = uuid, .fd = -1};
    UVM(UVM_REGISTER_GPU, &add);
    struct { Uuid gpu; int32_t fd; uint32_t client, space, status; } spaces = {uuid, ctl, client, vaspace, 0};
    UVM(UVM_REGISTER_GPU_VASPACE, &spaces);
}

/* What the frontend asks about the GPU, before there is a channel. */
__attribute__((unused)) static void ask_for_sizes(void)
{
    NV2080_CTRL_GR_INFO info[] = {{.index = NV2080_CTRL_GR_INFO_INDEX_SM_VERSION}};
    NV2080_CTRL_GR_GET_INFO_PARAMS ask = {.grInfoListSize = 1, .grInfoList = (uintptr_t)info};
    control(subdevice, NV2080_CTRL_CMD_GR_GET_INFO, &ask, sizeof ask);
    assert(info[0].data != 0);
}

static uint64_t take(uint64_t *from, uint64_t size, uint64_t align)
{
    uint64_t va = (*from + align - 1) / align * align;
    *from = va + size;
    return va;
}

__attribute__((unused)) static void register_channel(uint32_t channel)
{
    struct { Uuid gpu; int32_t fd; uint32_t client, channel, pad; uint64_t base, length; uint32_t status, pad2; } p =
        {uuid, ctl, client, channel, 0, take(&low_va, 64 << 20, PAGE), 64 << 20, 0, 0};
    UVM(UVM_REGISTER_CHANNEL, &p);
}

typedef struct {
    uint32_t handle;
    uint64_t va, size;
    volatile void *cpu;
} Memory;

/* Maps memory for the GPU: a range, a mapping at its address in the device's own space, and one in the channels' space. */
static void map_gpu(const Memory *m)
{
    struct { uint64_t base, length; uint32_t status, pad; } range = {m->va, m->size, 0, 0};
    UVM(UVM_CREATE_EXTERNAL_RANGE, &range);
    NVOS46_PARAMETERS map = {.hClient = client, .hDevice = device, .hDma = mapper, .hMemory = m->handle, .length = m->size,
                             .flags = 0x8110, .dmaOffset = m->va};
    ESCAPE(ctl, NV_ESC_RM_MAP_MEMORY_DMA, &map);
    STATUS("RM_MAP_MEMORY_DMA", map.status);
    assert(map.dmaOffset == m->va);
    static struct { uint64_t base, length, offset; Attributes each[256]; uint64_t count; int32_t fd; uint32_t client, memory, status; } p;
    memset(&p, 0, sizeof p);
    p.base = m->va, p.length = m->size, p.count = 1, p.fd = ctl, p.client = client, p.memory = m->handle;
    p.each[0] = (Attributes){.gpu = uuid, .mapping = 1};
    UVM(UVM_MAP_EXTERNAL_ALLOCATION, &p);
}

static volatile void *map_cpu(uint32_t memory, uint64_t size, uint64_t at)
{
    int fd = open_gpu();
    nv_ioctl_nvos33_parameters_with_fd p = {.params = {.hClient = client, .hDevice = device, .hMemory = memory, .length = size}, .fd = fd};
    ESCAPE(ctl, NV_ESC_RM_MAP_MEMORY, &p);
    STATUS("RM_MAP_MEMORY", p.params.status);
    void *cpu = NODE_MMAP((void *)(uintptr_t)at, size, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
    if (cpu == MAP_FAILED)
        FAIL("mmap: %s", why());
    assert(NODE_CLOSE(fd) == 0);
    return cpu;
}

__attribute__((unused)) static volatile void *map_usermode(void)
{
    return map_cpu(alloc(subdevice, TURING_USERMODE_A, NULL), 0x10000, 0);
}

__attribute__((unused)) static Memory local_memory(uint64_t bytes, int cpu_access)
{
    uint64_t page = bytes >= 8 << 20 ? BIG_PAGE : PAGE, size = (bytes + page - 1) / page * page;
    NV_MEMORY_ALLOCATION_PARAMS params = {.owner = client, .flags = 0x1c101, .attr2 = 5, .format = 6, .size = size, .alignment = page,
                                          .limit = size - 1};
    Memory m = {.handle = alloc(device, NV01_MEMORY_LOCAL_USER, &params), .size = size};
    m.va = take(cpu_access ? &low_va : &high_va, size, page);
    if (cpu_access)
        m.cpu = map_cpu(m.handle, size, m.va);
    map_gpu(&m);
    return m;
}

/* Memory of a notifier, which nobody looks at. */
__attribute__((unused)) static Memory system_memory(uint64_t size)
{
    NV_MEMORY_ALLOCATION_PARAMS params = {.owner = client, .type = NVOS32_TYPE_NOTIFIER, .flags = 0xc101, .attr = 0x1a000000, .attr2 = 9,
                                          .format = 6, .size = size, .alignment = PAGE, .limit = size - 1};
    Memory m = {.handle = alloc(device, NV01_MEMORY_SYSTEM, &params), .size = size, .va = take(&high_va, size, PAGE)};
    map_gpu(&m);
    return m;
}

/* Registers memory of the process and maps it for the GPU at the address that it has. */
static Memory own_memory(void *cpu, uint64_t size)
{
    nv_ioctl_nvos02_parameters_with_fd p = {
        .params = {.hRoot = client, .hObjectParent = device, .hObjectNew = ++host_handle, .hClass = NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
                   .flags = 0x40001010, .pMemory = (uintptr_t)cpu, .limit = size - 1},
        .fd = -1,
    };
    ESCAPE(gpu, NV_ESC_RM_ALLOC_MEMORY, &p);
    STATUS("RM_ALLOC_MEMORY", p.params.status);
    Memory m = {.handle = p.params.hObjectNew, .va = (uintptr_t)cpu, .size = size, .cpu = cpu};
    map_gpu(&m);
    return m;
}

/* Memory of the process at an address that the frontend chooses. */
__attribute__((unused)) static Memory host_memory(uint64_t size)
{
    void *at = (void *)(uintptr_t)take(&low_va, size, PAGE);
    void *cpu = NODE_MMAP(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    assert(cpu == at);
    return own_memory(cpu, size);
}

/* Memory of the process at an address that mmap chooses. */
__attribute__((unused)) static Memory process_memory(uint64_t size)
{
    void *cpu = NODE_MMAP(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(cpu != MAP_FAILED);
    return own_memory(cpu, size);
}

/* Ends the mapping of memory of the process, as the frontend does it: it never frees the object. */
__attribute__((unused)) static void forget_memory(const Memory *m)
{
    struct { uint64_t base, length; uint32_t status, pad; } p = {m->va, m->size, 0, 0};
    UVM(UVM_FREE, &p);
    assert(munmap((void *)m->cpu, m->size) == 0);
}

__attribute__((unused)) static void free_memory(const Memory *m)
{
    NVOS00_PARAMETERS p = {.hRoot = client, .hObjectParent = device, .hObjectOld = m->handle};
    ESCAPE(ctl, NV_ESC_RM_FREE, &p);
    STATUS("RM_FREE", p.status);
    struct { uint64_t base, length; uint32_t status, pad; } range = {m->va, m->size, 0, 0};
    UVM(UVM_FREE, &range);
    if (m->cpu)
        assert(munmap((void *)m->cpu, m->size) == 0);
}

/* Spins until a word has a value. A release that was lost would make this wait for ever; the test then fails. */
__attribute__((unused)) static void wait_for(const volatile uint64_t *word, uint64_t value)
{
    time_t deadline = time(NULL) + DEADLINE_S;
    while (*word < value) {
        if (time(NULL) > deadline)
            FAIL("a release was lost: there is %#llx and not %#llx", (unsigned long long)*word, (unsigned long long)value);
        sched_yield();
    }
    atomic_thread_fence(memory_order_acquire);
}

static void close_nodes(void)
{
    assert(NODE_CLOSE(gpu) == 0 && NODE_CLOSE(uvm) == 0 && NODE_CLOSE(ctl) == 0);
}

typedef struct {
    unsigned char *image;
    const unsigned char *code;
    uint64_t size;
    uint32_t registers;
} Kernel;

/* Finds a kernel's code in a cubin of tests/data. Its section says how many registers it needs. */
__attribute__((unused)) static Kernel read_kernel(const char *file, const char *name)
{
    char path[512], wanted[128];
    const char *folder = getenv("TEGRARM_TEST_CUBINS");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "../tests/data/cubin", file);
    snprintf(wanted, sizeof wanted, ".text.%s", name);
    FILE *from = fopen(path, "rbe");
    if (!from)
        FAIL("%s: %s", path, strerror(errno));
    assert(fseek(from, 0, SEEK_END) == 0);
    size_t length = (size_t)ftell(from);
    rewind(from);
    Kernel k = {.image = malloc(length)};
    assert(k.image && fread(k.image, 1, length, from) == length && fclose(from) == 0);
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)k.image;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(k.image + head->e_shoff);
    const char *names = (const char *)k.image + sections[head->e_shstrndx].sh_offset;
    for (int i = 0; i < head->e_shnum; i++)
        if (strcmp(names + sections[i].sh_name, wanted) == 0) {
            k.code = k.image + sections[i].sh_offset;
            k.size = sections[i].sh_size;
            k.registers = sections[i].sh_info >> 24;
        }
    if (!k.code || !k.registers)
        FAIL("%s has no kernel %s", path, name);
    return k;
}

#endif
