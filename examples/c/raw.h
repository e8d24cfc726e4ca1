/* Runs a kernel on the GPU with RM calls alone: bring-up, machine code, parameter bank, launch descriptor and submission.
 *
 * This is for people who know the Resource Manager. Everybody else uses tegrarm_launch. The machine code is read from a cubin
 * without relocations. NVRTC makes such cubins of kernels that call no function and use no global variable. */
#ifndef TEGRARM_EXAMPLE_RAW_H
#define TEGRARM_EXAMPLE_RAW_H

#include <elf.h>
#include <time.h>

#include "example.h"

#include "bringup.h"

typedef struct {
    Channel channel;                            /* its area has the ring and USERD */
    Buffer program, local, slots, semaphore;    /* slots has the data of each submission */
    NvU64 last;                                 /* submissions so far */
    struct tegrarm_device_profile profile;
} Gpu;

enum { COMPUTE = 1, SLOTS = 512, SLOT = 2048, LOCAL = 0x400 };

/* --- submission --------------------------------------------------------------------------------------------------- */

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
    METHOD(p, HOST, NVC56F_SEM_ADDR_LO, LO(g->semaphore.va), HI(g->semaphore.va), LO(number), HI(number),
           NVC56F_SEM_EXECUTE_OPERATION_RELEASE | NVC56F_SEM_EXECUTE_RELEASE_WFI_EN << NVC56F_SEM_EXECUTE_RELEASE_WFI_SHIFT |
               NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT << NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_SHIFT);
    channel_submit(&g->channel, g->slots.va + slot, p->used);
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

/* Tells the compute engine where kernels find shared and local memory: windows in the address space, and the memory itself. */
static inline void raw_setup(Gpu *g)
{
    NvU64 sms = g->profile.compute_units, per_tpc = (NvU64)LOCAL * 32 * 48 * 2;
    g->local = buffer_open(&g->channel.s, (per_tpc * ((sms + 1) / 2) + 0x1ffff) & ~(NvU64)0x1ffff);
    NvU64 slot = raw_slot(g);
    Push p = {(volatile NvU32 *)((volatile char *)g->slots.cpu + slot), 0};
    METHOD(&p, COMPUTE, NVC6C0_SET_OBJECT, AMPERE_COMPUTE_B);
    METHOD(&p, COMPUTE, NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, HI(g->profile.shared_window), LO(g->profile.shared_window));
    METHOD(&p, COMPUTE, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, HI(g->profile.local_window), LO(g->profile.local_window));
    METHOD(&p, COMPUTE, NVC6C0_SET_SHADER_LOCAL_MEMORY_A, HI(g->local.va), LO(g->local.va));
    METHOD(&p, COMPUTE, NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, HI(per_tpc), LO(per_tpc), 0xff);
    raw_wait(g, raw_submit(g, slot, &p));
}

static inline void raw_open(Gpu *g)
{
    memset(g, 0, sizeof *g);
    g->profile.size = sizeof g->profile;
    CHECK(tegrarm_device_profile(0, &g->profile));
    g->channel = channel_open(AMPERE_COMPUTE_B);
    g->slots = buffer_open(&g->channel.s, SLOTS * SLOT);
    g->semaphore = buffer_open(&g->channel.s, 4096);
    raw_setup(g);
}

/* Frees the client with all its objects. */
static inline void raw_close(Gpu *g)
{
    session_close(&g->channel.s);
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
    g->program = buffer_open(&g->channel.s, k.code_size + 8192); /* The GPU fetches instructions in advance. */
    memcpy((void *)g->program.cpu, code, k.code_size);
    k.code = g->program.va;
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
    NvU64 slot = raw_slot(g), qmd = g->slots.va + slot + 256, bank = qmd + QMD_WORDS * 4;
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
