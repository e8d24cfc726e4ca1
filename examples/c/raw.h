/* Runs a kernel on the GPU with RM calls alone: bring-up, machine code, parameter bank, launch descriptor and submission.
 *
 * This is for people who know the Resource Manager. Everybody else uses tegrarm_launch. The machine code is read from a cubin
 * without relocations. NVRTC makes such cubins of kernels that call no function and use no global variable. */
#ifndef TEGRARM_EXAMPLE_RAW_H
#define TEGRARM_EXAMPLE_RAW_H

#include <elf.h>
#include <stdatomic.h>
#include <time.h>

#include "example.h"

#define HI(x) (NvU32)((NvU64)(x) >> 32)
#define LO(x) (NvU32)(x)

/* Memory that CPU and GPU share. */
typedef struct {
    NvHandle handle;
    volatile void *cpu;
    NvU64 gpu;
} Memory;

typedef struct {
    NvHandle client, device, subdevice, vaspace, mapper, group, share, channel;
    Memory area, program, local, slots, semaphore; /* area has the ring and USERD; slots has the data of each submission */
    volatile NvU32 *doorbell;
    NvU32 token;
    NvU64 last;                                    /* submissions so far */
    struct tegrarm_device_profile profile;
} Gpu;

enum { ENTRIES = 1024, USERD = ENTRIES * 8, GP_PUT = offsetof(AmpereAControlGPFifo, GPPut), HOST = 0, COMPUTE = 1, SLOTS = 512, SLOT = 2048, LOCAL = 0x400 };

static inline NvHandle raw_alloc(const Gpu *g, NvHandle parent, NvU32 class_, void *params, NvU32 size)
{
    NvHandle object = 0;
    CHECK(rm_alloc(g->client, parent, &object, class_, params, size));
    return object;
}

static inline Memory raw_memory(const Gpu *g, NvU64 size)
{
    Memory m;
    NV_MEMORY_ALLOCATION_PARAMS params = {.owner = g->client, .size = size, .alignment = 4096};
    m.handle = raw_alloc(g, g->device, NV01_MEMORY_LOCAL_USER, &params, sizeof params);
    CHECK(rm_map_memory_dma(g->client, g->device, g->mapper, m.handle, 0, size, 0, &m.gpu));
    void *cpu = NULL;
    CHECK(rm_map_memory(g->client, g->device, m.handle, 0, size, &cpu, 0));
    m.cpu = cpu;
    return m;
}

/* --- submission --------------------------------------------------------------------------------------------------- */

typedef struct {
    volatile NvU32 *words;
    NvU32 used;
} Push;

static inline void raw_method(Push *p, NvU32 subchannel, NvU32 address, NvU32 count, const NvU32 *args)
{
    p->words[p->used++] = 1u << 29 | count << 16 | subchannel << 13 | address >> 2;
    for (NvU32 i = 0; i < count; i++)
        p->words[p->used++] = args[i];
}
#define METHOD(p, subchannel, address, ...) \
    raw_method(p, subchannel, address, sizeof(NvU32[]){__VA_ARGS__} / sizeof(NvU32), (NvU32[]){__VA_ARGS__})

/* Returns the slot of the next submission, whose words are its first 256 bytes. Waits until the GPU has finished with the last
 * use of the slot. */
static inline NvU64 raw_slot(Gpu *g)
{
    NvU64 next = g->last + 1;
    while (next > SLOTS && *(volatile NvU64 *)g->semaphore.cpu < next - SLOTS)
        atomic_thread_fence(memory_order_acquire);
    return next % SLOTS * SLOT;
}

/* Ends the words of a slot with a release of the submission's number and gives them to the GPU. Returns the number. */
static inline NvU64 raw_submit(Gpu *g, NvU64 slot, Push *p)
{
    NvU64 number = ++g->last;
    METHOD(p, HOST, NVC56F_SEM_ADDR_LO, LO(g->semaphore.gpu), HI(g->semaphore.gpu), LO(number), HI(number),
           NVC56F_SEM_EXECUTE_OPERATION_RELEASE | NVC56F_SEM_EXECUTE_RELEASE_WFI_EN << NVC56F_SEM_EXECUTE_RELEASE_WFI_SHIFT |
               NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT << NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_SHIFT);
    volatile NvU64 *ring = g->area.cpu;
    volatile NvU32 *put = (volatile NvU32 *)((volatile char *)g->area.cpu + USERD + GP_PUT);
    ring[(number - 1) % ENTRIES] = (g->slots.gpu + slot) | (NvU64)p->used << 42 | (NvU64)1 << 41;
    atomic_thread_fence(memory_order_seq_cst);
    *put = (NvU32)(number % ENTRIES);
    atomic_thread_fence(memory_order_seq_cst); /* All stores come before the doorbell. */
    *g->doorbell = g->token;
    return number;
}

static inline void raw_wait(const Gpu *g, NvU64 number)
{
    time_t deadline = time(NULL) + 30;
    while (*(volatile NvU64 *)g->semaphore.cpu < number) {
        if (time(NULL) > deadline) {
            fprintf(stderr, "the GPU did not finish submission %llu\n", (unsigned long long)number);
            exit(1);
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    atomic_thread_fence(memory_order_acquire);
}

/* --- bring-up ----------------------------------------------------------------------------------------------------- */

static inline void raw_channel(Gpu *g)
{
    NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS params = {
        .hObjectBuffer = g->area.handle, .gpFifoOffset = g->area.gpu, .gpFifoEntries = ENTRIES, .hContextShare = g->share,
    };
    params.hUserdMemory[0] = g->area.handle;
    params.userdOffset[0] = USERD;
    g->channel = raw_alloc(g, g->group, AMPERE_CHANNEL_GPFIFO_A, &params, sizeof params);
    raw_alloc(g, g->channel, AMPERE_COMPUTE_B, NULL, 0);
    NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS schedule = {.bEnable = 1};
    CHECK(rm_control(g->client, g->group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &schedule, sizeof schedule));
    NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS token = {0};
    CHECK(rm_control(g->client, g->channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &token, sizeof token));
    g->token = token.workSubmitToken;
    NvHandle usermode = raw_alloc(g, g->subdevice, TURING_USERMODE_A, NULL, 0);
    void *page = NULL;
    CHECK(rm_map_memory(g->client, g->subdevice, usermode, 0, 0x10000, &page, 0));
    g->doorbell = (volatile NvU32 *)page + NVC361_NOTIFY_CHANNEL_PENDING / 4;
}

/* Tells the compute engine where kernels find shared and local memory: windows in the address space, and the memory itself. */
static inline void raw_setup(Gpu *g)
{
    NvU64 sms = g->profile.compute_units, per_tpc = (NvU64)LOCAL * 32 * 48 * 2;
    g->local = raw_memory(g, (per_tpc * ((sms + 1) / 2) + 0x1ffff) & ~(NvU64)0x1ffff);
    NvU64 slot = raw_slot(g);
    Push p = {(volatile NvU32 *)((volatile char *)g->slots.cpu + slot), 0};
    METHOD(&p, COMPUTE, NVC6C0_SET_OBJECT, AMPERE_COMPUTE_B);
    METHOD(&p, COMPUTE, NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, HI(g->profile.shared_window), LO(g->profile.shared_window));
    METHOD(&p, COMPUTE, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, HI(g->profile.local_window), LO(g->profile.local_window));
    METHOD(&p, COMPUTE, NVC6C0_SET_SHADER_LOCAL_MEMORY_A, HI(g->local.gpu), LO(g->local.gpu));
    METHOD(&p, COMPUTE, NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, HI(per_tpc), LO(per_tpc), 0xff);
    raw_wait(g, raw_submit(g, slot, &p));
}

static inline void raw_open(Gpu *g)
{
    memset(g, 0, sizeof *g);
    g->profile.size = sizeof g->profile;
    CHECK(tegrarm_device_profile(0, &g->profile));
    CHECK(rm_alloc(0, 0, &g->client, NV01_ROOT_CLIENT, NULL, 0));
    NV0080_ALLOC_PARAMETERS device = {.hClientShare = g->client};
    g->device = raw_alloc(g, g->client, NV01_DEVICE_0, &device, sizeof device);
    NV2080_ALLOC_PARAMETERS subdevice = {0};
    g->subdevice = raw_alloc(g, g->device, NV20_SUBDEVICE_0, &subdevice, sizeof subdevice);
    NV_VASPACE_ALLOCATION_PARAMETERS vaspace = {0};
    g->vaspace = raw_alloc(g, g->device, FERMI_VASPACE_A, &vaspace, sizeof vaspace);
    NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS mapper = {.hVASpace = g->vaspace};
    g->mapper = raw_alloc(g, g->device, NV01_MEMORY_VIRTUAL, &mapper, sizeof mapper);
    NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS group = {.engineType = NV2080_ENGINE_TYPE_GRAPHICS};
    g->group = raw_alloc(g, g->device, KEPLER_CHANNEL_GROUP_A, &group, sizeof group);
    NV_CTXSHARE_ALLOCATION_PARAMETERS share = {.hVASpace = g->vaspace, .flags = NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC};
    g->share = raw_alloc(g, g->group, FERMI_CONTEXT_SHARE_A, &share, sizeof share);
    g->area = raw_memory(g, 64 << 10);
    g->slots = raw_memory(g, SLOTS * SLOT);
    g->semaphore = raw_memory(g, 4096);
    raw_channel(g);
    raw_setup(g);
}

/* Frees the client with all its objects. */
static inline void raw_close(Gpu *g)
{
    CHECK(rm_free(g->client, 0, g->client));
}

/* --- a kernel ----------------------------------------------------------------------------------------------------- */

enum { QMD_WORDS = 64, BANK_WORDS = 0x180 / 4, PARAMETERS = 0x160 };

typedef struct {
    NvU64 code, code_size;
    NvU32 registers, shared;
    NvU32 qmd[QMD_WORDS], bank[BANK_WORDS];
} Kernel;

/* The section with a name. Its size is 0 if there is no such section. */
static inline const unsigned char *raw_section(const unsigned char *image, const char *name, const char *suffix, NvU64 *size)
{
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)image;
    const Elf64_Shdr *s = (const Elf64_Shdr *)(image + e->e_shoff);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%s%s", name, suffix);
    for (int i = 0; i < e->e_shnum; i++)
        if (!strcmp((const char *)image + s[e->e_shstrndx].sh_offset + s[i].sh_name, wanted)) {
            *size = s[i].sh_size;
            return image + s[i].sh_offset;
        }
    *size = 0;
    return NULL;
}

/* Registers of a kernel: attribute 0x2f of .nv.info, one record for each symbol of a function. */
static inline NvU32 raw_registers(const unsigned char *image, const char *name)
{
    NvU64 size, symbols_size, strings_size;
    const unsigned char *info = raw_section(image, ".nv.info", "", &size);
    const Elf64_Sym *symbols = (const Elf64_Sym *)raw_section(image, ".symtab", "", &symbols_size);
    const char *strings = (const char *)raw_section(image, ".strtab", "", &strings_size);
    for (NvU64 at = 0; at + 4 <= size;) {
        NvU32 length = info[at] == 4 ? info[at + 2] | (NvU32)info[at + 3] << 8 : 0, record[2];
        if (info[at] == 4 && info[at + 1] == 0x2f) {
            memcpy(record, info + at + 4, sizeof record);
            if (!strcmp(strings + symbols[record[0]].st_name, name))
                return record[1];
        }
        at += 4 + length;
    }
    return 255;
}

#define QMD(k, field, value) raw_field((k)->qmd, NVC6C0_QMDV03_00_##field##_SHIFT, NVC6C0_QMDV03_00_##field##_WIDTH, value)
#define QMD_AT(k, field, i, value) raw_field((k)->qmd, NVC6C0_QMDV03_00_##field##_SHIFT(i), NVC6C0_QMDV03_00_##field##_WIDTH, value)
static inline void raw_field(NvU32 *qmd, NvU32 shift, NvU32 width, NvU64 value)
{
    NvU32 mask = width == 32 ? ~0u : (1u << width) - 1;
    qmd[shift / 32] = (qmd[shift / 32] & ~(mask << shift % 32)) | ((NvU32)value & mask) << shift % 32;
}

/* Loads a kernel of a cubin: its code goes to GPU memory. */
static inline Kernel raw_kernel(Gpu *g, const unsigned char *image, const char *name)
{
    Kernel k;
    NvU64 shared;
    memset(&k, 0, sizeof k);
    const unsigned char *code = raw_section(image, ".text.", name, &k.code_size);
    if (!code) {
        fprintf(stderr, "the file has no kernel %s\n", name);
        exit(1);
    }
    raw_section(image, ".nv.shared.", name, &shared);
    k.registers = raw_registers(image, name);
    k.shared = ((NvU32)shared + 127) / 128 * 128 + 1024;
    g->program = raw_memory(g, k.code_size + 8192); /* The GPU fetches instructions in advance. */
    memcpy((void *)g->program.cpu, code, k.code_size);
    k.code = g->program.gpu;
    return k;
}

/* Fills in the descriptor and the parameter bank of a launch, except the address of the bank. */
static inline void raw_prepare(const Gpu *g, Kernel *k, const NvU32 grid[3], const NvU32 block[3])
{
    NvU32 launch[] = {block[0], block[1], block[2], grid[0], grid[1], grid[2], LO(g->profile.shared_window),
                      HI(g->profile.shared_window), LO(g->profile.local_window), HI(g->profile.local_window), 0xfffdc0};
    memcpy(k->bank, launch, sizeof launch);
    QMD(k, QMD_MAJOR_VERSION, 3);
    QMD(k, QMD_GROUP_ID, 0x3f);
    QMD(k, SASS_VERSION, 0x87);
    QMD(k, API_VISIBLE_CALL_LIMIT, NVC6C0_QMDV03_00_API_VISIBLE_CALL_LIMIT_NO_CHECK);
    QMD(k, SAMPLER_INDEX, NVC6C0_QMDV03_00_SAMPLER_INDEX_VIA_HEADER_INDEX);
    QMD(k, SM_GLOBAL_CACHING_ENABLE, 1);
    QMD(k, INVALIDATE_SHADER_DATA_CACHE, 1);
    QMD(k, INVALIDATE_INSTRUCTION_CACHE, 1);
    QMD(k, INVALIDATE_SHADER_CONSTANT_CACHE, 1);
    QMD(k, CWD_MEMBAR_TYPE, NVC6C0_QMDV03_00_CWD_MEMBAR_TYPE_L1_SYSMEMBAR);
    QMD(k, CTA_RASTER_WIDTH, grid[0]);
    QMD(k, CTA_RASTER_HEIGHT, grid[1]);
    QMD(k, CTA_RASTER_DEPTH, grid[2]);
    QMD(k, CTA_THREAD_DIMENSION0, block[0]);
    QMD(k, CTA_THREAD_DIMENSION1, block[1]);
    QMD(k, CTA_THREAD_DIMENSION2, block[2]);
    QMD(k, PROGRAM_ADDRESS_LOWER, LO(k->code));
    QMD(k, PROGRAM_ADDRESS_UPPER, HI(k->code));
    QMD(k, PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED, LO(k->code >> 8));
    QMD(k, PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED, k->code >> 40);
    QMD(k, PROGRAM_PREFETCH_SIZE, k->code_size >> 8);
    QMD(k, REGISTER_COUNT_V, k->registers);
    QMD(k, BARRIER_COUNT, 1);
    QMD(k, SHARED_MEMORY_SIZE, k->shared);
    QMD(k, MIN_SM_CONFIG_SHARED_MEM_SIZE, 8 / 4 + 1);
    QMD(k, TARGET_SM_CONFIG_SHARED_MEM_SIZE, 8 / 4 + 1);
    QMD(k, MAX_SM_CONFIG_SHARED_MEM_SIZE, 164 / 4 + 1);
    QMD(k, SHADER_LOCAL_MEMORY_HIGH_SIZE, LOCAL);
    QMD_AT(k, CONSTANT_BUFFER_SIZE_SHIFTED4, 0, sizeof k->bank / 16);
    QMD_AT(k, CONSTANT_BUFFER_INVALIDATE, 0, 1);
    QMD_AT(k, CONSTANT_BUFFER_VALID, 0, 1);
}

/* Launches a kernel. The descriptor, the bank and the words are written to the slot of the submission. Returns the number of
 * the submission. */
static inline NvU64 raw_launch(Gpu *g, Kernel *k)
{
    NvU64 slot = raw_slot(g), qmd = g->slots.gpu + slot + 256, bank = qmd + QMD_WORDS * 4;
    volatile NvU32 *words = (volatile NvU32 *)((volatile char *)g->slots.cpu + slot);
    QMD_AT(k, CONSTANT_BUFFER_ADDR_LOWER, 0, LO(bank));
    QMD_AT(k, CONSTANT_BUFFER_ADDR_UPPER, 0, HI(bank));
    memcpy((char *)g->slots.cpu + slot + 256, k->qmd, sizeof k->qmd);
    memcpy((char *)g->slots.cpu + slot + 256 + sizeof k->qmd, k->bank, sizeof k->bank);
    Push p = {words, 0};
    METHOD(&p, COMPUTE, NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI,
           1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_INSTRUCTION_SHIFT |
               1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_GLOBAL_DATA_SHIFT |
               1u << NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_CONSTANT_SHIFT);
    METHOD(&p, COMPUTE, NVC6C0_SEND_PCAS_A, LO(qmd >> 8));
    METHOD(&p, COMPUTE, NVC6C0_SEND_SIGNALING_PCAS2_B,
           NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_SCHEDULE);
    return raw_submit(g, slot, &p);
}

#endif
