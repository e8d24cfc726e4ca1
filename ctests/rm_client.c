/* A second RM client, which works differently from the first frontend. It uses device nodes and not functions, the long form
 * of RM_ALLOC, a version handshake and its own handle values. It wraps every call in XFER_CMD. Its VA space is managed by RM
 * and filled by RM_MAP_MEMORY_DMA, its CPU mappings lie where mmap puts them, and its USERD is a separate buffer. It also uses
 * OS events.
 *
 * It is built twice from this source: with rm_open, rm_ioctl, rm_mmap and rm_close, and (PLAIN) with libc only, to run under
 * LD_PRELOAD. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
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

enum {
    /* Handles, which this client chooses. */
    DEVICE = 0x5c000001, SUBDEVICE, VASPACE, MAPPER, GROUP, CHANNEL, COMPUTE, COPY_ENGINE, USERMODE, EVENT, MEMORY = 0x5c001000,
    ENTRIES = 512,
    HOST = 0, COPY = 4,
    DEADLINE_S = 20,
    RM_MANAGED = 0x4,
};

#define FAIL(...) (fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), abort())

static int ctl = -1;
static uint32_t client;

/* Makes an escape inside NV_ESC_IOCTL_XFER_CMD. */
static int escape(int fd, uint32_t nr, void *arg, uint32_t size)
{
    nv_ioctl_xfer_t xfer = {.cmd = nr, .size = size, .ptr = (uintptr_t)arg};
    return NODE_IOCTL(fd, _IOWR('F', NV_ESC_IOCTL_XFER_CMD, nv_ioctl_xfer_t), &xfer);
}

#define ESCAPE(fd, nr, arg) must(__LINE__, #nr, escape(fd, nr, arg, sizeof *(arg)))
#define STATUS(what, status) ok(__LINE__, what, status)

static void must(int line, const char *what, int result)
{
    if (result != 0)
        FAIL("rm_client.c:%d: %s: %s", line, what, why());
}

static void ok(int line, const char *what, uint32_t status)
{
    if (status != NV_OK)
        FAIL("rm_client.c:%d: %s: status %#x: %s", line, what, status, why());
}

static uint32_t alloc_status(uint32_t parent, uint32_t handle, uint32_t class_, void *params, uint32_t size)
{
    NVOS64_PARAMETERS p = {.hRoot = client, .hObjectParent = parent, .hObjectNew = handle, .hClass = class_,
                           .pAllocParms = (uintptr_t)params, .paramsSize = size};
    ESCAPE(ctl, NV_ESC_RM_ALLOC, &p);
    assert(p.status != NV_OK || p.hObjectNew == handle);
    return p.status;
}

static void alloc(uint32_t parent, uint32_t handle, uint32_t class_, void *params, uint32_t size)
{
    STATUS("RM_ALLOC", alloc_status(parent, handle, class_, params, size));
}

static uint32_t control_status(uint32_t object, uint32_t cmd, void *params, uint32_t size)
{
    NVOS54_PARAMETERS p = {.hClient = client, .hObject = object, .cmd = cmd, .params = (uintptr_t)params, .paramsSize = size};
    ESCAPE(ctl, NV_ESC_RM_CONTROL, &p);
    return p.status;
}

static uint32_t free_status(uint32_t object)
{
    NVOS00_PARAMETERS p = {.hRoot = client, .hObjectParent = 0, .hObjectOld = object};
    ESCAPE(ctl, NV_ESC_RM_FREE, &p);
    return p.status;
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

/* Makes an RM_MAP_MEMORY on a new descriptor, and then an mmap at an address that the kernel chooses. */
static volatile void *map_cpu(uint32_t memory, uint64_t size)
{
    int fd = open_gpu();
    nv_ioctl_nvos33_parameters_with_fd p = {.params = {.hClient = client, .hDevice = DEVICE, .hMemory = memory, .length = size}, .fd = fd};
    ESCAPE(ctl, NV_ESC_RM_MAP_MEMORY, &p);
    STATUS("RM_MAP_MEMORY", p.params.status);
    void *at = NODE_MMAP(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        FAIL("mmap: %s", why());
    assert(NODE_CLOSE(fd) == 0);
    return at;
}

typedef struct {
    uint32_t handle;
    uint64_t size, va;
    volatile void *cpu;
} Buffer;

static Buffer buffer(uint64_t size)
{
    static uint32_t next = MEMORY;
    Buffer b = {.handle = next++, .size = size};
    NV_MEMORY_ALLOCATION_PARAMS params = {.owner = client, .size = size, .alignment = 4096};
    alloc(DEVICE, b.handle, NV01_MEMORY_LOCAL_USER, &params, sizeof params);
    NVOS46_PARAMETERS map = {.hClient = client, .hDevice = DEVICE, .hDma = MAPPER, .hMemory = b.handle, .length = size};
    ESCAPE(ctl, NV_ESC_RM_MAP_MEMORY_DMA, &map);
    STATUS("RM_MAP_MEMORY_DMA", map.status);
    assert(map.dmaOffset != 0);
    b.va = map.dmaOffset;
    b.cpu = map_cpu(b.handle, size);
    return b;
}

/* The ring and USERD, which are separate buffers. */
static Buffer ring, userd;
static volatile uint32_t *doorbell;
static uint32_t token, put;

static void handshake(void)
{
    nv_ioctl_rm_api_version_t version = {.cmd = '2', .versionString = "0"};
    ESCAPE(ctl, NV_ESC_CHECK_VERSION_STR, &version);
    assert(version.reply == 1 && version.versionString[0] == '5');
    version.cmd = 0; /* This is the strict comparison, with the string that the library has just returned. */
    ESCAPE(ctl, NV_ESC_CHECK_VERSION_STR, &version);
    version.versionString[0] = '1';
    assert(escape(ctl, NV_ESC_CHECK_VERSION_STR, &version, sizeof version) == -1 && errno == EINVAL);
    assert(version.versionString[0] == '5' && "the string is filled in all the same");

    nv_ioctl_sys_params_t sys = {.memblock_size = 128 << 20};
    ESCAPE(ctl, NV_ESC_SYS_PARAMS, &sys);
    nv_ioctl_card_info_t cards[32];
    memset(cards, 0xff, sizeof cards); /* The answer fills the whole array, with zeros for absent cards. */
    ESCAPE(ctl, NV_ESC_CARD_INFO, &cards);
    assert(cards[0].valid && !cards[1].valid && cards[0].minor_number == 0);
    uint32_t gpus[1] = {cards[0].gpu_id};
    ESCAPE(ctl, NV_ESC_ATTACH_GPUS_TO_FD, &gpus);
    assert(escape(ctl, NV_ESC_ATTACH_GPUS_TO_FD, gpus, sizeof gpus) == -1 && errno == EINVAL);
}

static void objects(void)
{
    NVOS64_PARAMETERS root = {.hClass = NV01_ROOT_CLIENT};
    ESCAPE(ctl, NV_ESC_RM_ALLOC, &root);
    STATUS("RM_ALLOC of a client", root.status);
    client = root.hObjectNew;

    NV0080_ALLOC_PARAMETERS device = {.hClientShare = client};
    alloc(client, DEVICE, NV01_DEVICE_0, &device, sizeof device);
    NV2080_ALLOC_PARAMETERS subdevice = {0};
    alloc(DEVICE, SUBDEVICE, NV20_SUBDEVICE_0, &subdevice, sizeof subdevice);
    assert(alloc_status(DEVICE, SUBDEVICE, NV20_SUBDEVICE_0, &subdevice, sizeof subdevice) == NV_ERR_INSERT_DUPLICATE_NAME);

    NV_VASPACE_ALLOCATION_PARAMETERS vaspace = {.flags = RM_MANAGED};
    alloc(DEVICE, VASPACE, FERMI_VASPACE_A, &vaspace, sizeof vaspace);
    NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS mapper = {.hVASpace = VASPACE};
    alloc(DEVICE, MAPPER, NV01_MEMORY_VIRTUAL, &mapper, sizeof mapper);

    NV0005_ALLOC_PARAMETERS event = {.hParentClient = client, .hClass = NV01_EVENT_OS_EVENT};
    alloc(SUBDEVICE, EVENT, NV01_EVENT_OS_EVENT, &event, sizeof event);
    nv_ioctl_alloc_os_event_t os_event = {.hClient = client, .hDevice = DEVICE, .fd = (uint32_t)ctl};
    ESCAPE(ctl, NV_ESC_ALLOC_OS_EVENT, &os_event);
    STATUS("ALLOC_OS_EVENT", os_event.Status);
}

static void channel(void)
{
    NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS group = {.hVASpace = VASPACE, .engineType = NV2080_ENGINE_TYPE_GRAPHICS};
    alloc(DEVICE, GROUP, KEPLER_CHANNEL_GROUP_A, &group, sizeof group);
    ring = buffer(ENTRIES * 8);
    userd = buffer(4096);
    NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS params = {.hObjectBuffer = ring.handle, .gpFifoOffset = ring.va, .gpFifoEntries = ENTRIES};
    params.hUserdMemory[0] = userd.handle;
    alloc(GROUP, CHANNEL, AMPERE_CHANNEL_GPFIFO_A, &params, sizeof params);
    alloc(CHANNEL, COMPUTE, AMPERE_COMPUTE_B, NULL, 0);
    alloc(CHANNEL, COPY_ENGINE, AMPERE_DMA_COPY_B, NULL, 0);

    NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS schedule = {.bEnable = 1};
    STATUS("schedule", control_status(CHANNEL, NVA06F_CTRL_CMD_GPFIFO_SCHEDULE, &schedule, sizeof schedule));
    NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS submit_token = {.workSubmitToken = ~0u};
    STATUS("token", control_status(CHANNEL, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &submit_token, sizeof submit_token));
    token = submit_token.workSubmitToken;
    alloc(SUBDEVICE, USERMODE, TURING_USERMODE_A, NULL, 0);
    doorbell = (volatile uint32_t *)map_cpu(USERMODE, 0x10000) + NVC361_NOTIFY_CHANNEL_PENDING / 4;
}

static volatile uint32_t *words;
static uint32_t used;

static void method(uint32_t subchannel, uint32_t address, uint32_t count, const uint32_t *args)
{
    words[used++] = 1u << 29 | count << 16 | subchannel << 13 | address >> 2;
    for (uint32_t i = 0; i < count; i++)
        words[used++] = args[i];
}
#define METHOD(subchannel, address, ...) \
    method(subchannel, address, sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t), (uint32_t[]){__VA_ARGS__})
#define HI(x) (uint32_t)((x) >> 32)
#define LO(x) (uint32_t)(x)

static void run(const Buffer *push, volatile uint32_t *semaphore, uint32_t value)
{
    ((volatile uint64_t *)ring.cpu)[put] = push->va | (uint64_t)used << 42 | (uint64_t)1 << 41;
    put = (put + 1) % ENTRIES;
    atomic_thread_fence(memory_order_seq_cst); /* The GPU may read GPPut at any time, so the entry is written before it. */
    ((volatile AmpereAControlGPFifo *)userd.cpu)->GPPut = put;
    atomic_thread_fence(memory_order_seq_cst); /* All stores come before the doorbell. */
    *doorbell = token;
    time_t deadline = time(NULL) + DEADLINE_S;
    while (*semaphore != value) {
        if (time(NULL) >= deadline)
            FAIL("the GPU never released the semaphore: it is %#x, not %#x", *semaphore, value);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    atomic_thread_fence(memory_order_acquire);
    used = 0;
}

static void work(void)
{
    enum { BYTES = 100003 };
    Buffer push = buffer(4096), semaphore = buffer(4096), from = buffer(128 << 10), to = buffer(128 << 10);
    words = push.cpu;

    METHOD(HOST, NVC56F_SEM_ADDR_LO, LO(semaphore.va), HI(semaphore.va), 0xfeed, 0, NVC56F_SEM_EXECUTE_OPERATION_RELEASE);
    run(&push, semaphore.cpu, 0xfeed);

    volatile unsigned char *src = from.cpu, *dst = to.cpu;
    for (unsigned i = 0; i < from.size; i++) {
        src[i] = (unsigned char)(i * 7 + i / 253);
        dst[i] = 0x55;
    }
    METHOD(COPY, NVC56F_SET_OBJECT, AMPERE_DMA_COPY_B);
    METHOD(COPY, NVC6B5_OFFSET_IN_UPPER, HI(from.va), LO(from.va), HI(to.va), LO(to.va));
    METHOD(COPY, NVC6B5_LINE_LENGTH_IN, BYTES);
    METHOD(COPY, NVC6B5_LAUNCH_DMA,
           NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED | NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_PITCH << NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_SHIFT |
               NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_PITCH << NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_SHIFT);
    METHOD(COPY, NVC6B5_SET_SEMAPHORE_A, HI(semaphore.va), LO(semaphore.va), 0xbeef);
    METHOD(COPY, NVC6B5_LAUNCH_DMA,
           NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_TRUE << NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_SHIFT | NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_FOUR_WORD_SEMAPHORE << NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_SHIFT);
    run(&push, semaphore.cpu, 0xbeef);
    for (unsigned i = 0; i < from.size; i++)
        assert(dst[i] == (i < BYTES ? src[i] : 0x55));

    NVOS47_PARAMETERS unmap = {.hClient = client, .hDevice = DEVICE, .hDma = MAPPER, .hMemory = to.handle, .dmaOffset = to.va};
    ESCAPE(ctl, NV_ESC_RM_UNMAP_MEMORY_DMA, &unmap);
    STATUS("RM_UNMAP_MEMORY_DMA", unmap.status);
    ESCAPE(ctl, NV_ESC_RM_UNMAP_MEMORY_DMA, &unmap);
    assert(unmap.status == NV_ERR_OBJECT_NOT_FOUND);
    STATUS("RM_FREE", free_status(to.handle));
    assert(src[5] == (unsigned char)35 && "another buffer's pages stay");
}

int main(void)
{
    ctl = NODE_OPEN("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
    if (ctl < 0)
        FAIL("/dev/nvidiactl: %s", why());
    handshake();
    objects();
    channel();
    work();
    STATUS("RM_FREE", free_status(0x12345678)); /* An unknown object is not an error. */
    STATUS("RM_FREE", free_status(client));
    assert(control_status(DEVICE, 0, NULL, 0) == NV_ERR_INVALID_CLIENT);
    assert(NODE_CLOSE(ctl) == 0);
    puts("rm_client: ok");
    return 0;
}
