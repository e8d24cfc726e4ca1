/*
 * libtegrarm: desktop NVIDIA's Resource Manager interface on Jetson's nvgpu and nvmap.
 *
 * Statuses are NV_STATUS numbers; 0 is NV_OK, tegrarm_status_name() names the others. Numbers and structures of the
 * Resource Manager itself (classes, controls, parameters) are in tegrarm_abi.h.
 */

#ifndef TEGRARM_H
#define TEGRARM_H

/* Made from src/capi by `make header`: edit there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEGRARM_VERSION_MAJOR 0
#define TEGRARM_VERSION_MINOR 1
#define TEGRARM_VERSION_PATCH 0
#define TEGRARM_VERSION "0.1.0"

/**
 * Memory of a device that CPU and GPU share. A handle, as `tegrarm_device`.
 */
struct tegrarm_buffer;

/**
 * An open GPU. The pointer is a handle, not an address: a closed one is recognised and refused.
 */
struct tegrarm_device;

/**
 * A kernel of a module. A handle, as `tegrarm_device`; it belongs to its module.
 */
struct tegrarm_kernel;

/**
 * Loaded machine code. A handle, as `tegrarm_device`.
 */
struct tegrarm_module;

/**
 * Loaded CPU machine code. A handle, as `tegrarm_device`; it belongs to the process, not to a device.
 */
struct tegrarm_object;

/**
 * Work that was recorded once and runs many times. A handle, as `tegrarm_device`. One thread at a time may be in a
 * call of one replay; a second is refused.
 */
struct tegrarm_replay;

/**
 * Result of a Resource Manager call; 0 is success.
 */
typedef uint32_t NV_STATUS;

/**
 * RM handle: names an object within a client, or a client.
 */
typedef uint32_t NvHandle;

/**
 * 32-bit unsigned integer.
 */
typedef uint32_t NvU32;

/**
 * 64-bit unsigned integer.
 */
typedef uint64_t NvU64;

/**
 * What `tegrarm_init` takes instead of the environment. Zero it, set `size` to `sizeof`, fill in the rest; later
 * versions only append fields.
 */
struct tegrarm_config {
    /**
     * `sizeof(struct tegrarm_config)` as the caller knows it.
     */
    size_t size;
    /**
     * As `TEGRARM_BACKEND`: `nvgpu`, `sim`, `record:PATH`, `replay:PATH`, `sim,record:PATH`. NULL: the environment's.
     */
    const char *backend;
};

/**
 * What a scheduler wants to know about a device. Set `size` to `sizeof` before the call; at most that many bytes are
 * written, and `size` becomes the number that is valid. Later versions only append fields.
 */
struct tegrarm_device_profile {
    /**
     * In: bytes the caller has. Out: bytes that are valid.
     */
    size_t size;
    /**
     * PCI vendor id: 0x10DE.
     */
    uint32_t vendor;
    /**
     * Name, NUL-terminated.
     */
    char name[64];
    /**
     * CPU and GPU use the same memory: pointers can be shared, copies are unnecessary.
     */
    bool shared_memory;
    /**
     * Bytes of memory.
     */
    uint64_t memory_size;
    /**
     * Peak bytes per second between GPU and memory.
     */
    uint64_t local_bandwidth;
    /**
     * Peak bytes per second between CPU memory and GPU memory.
     */
    uint64_t transfer_bandwidth;
    /**
     * Has tensor cores.
     */
    bool has_matrix_hw;
    /**
     * Can reduce across a warp in one instruction.
     */
    bool has_simd_reduction;
    /**
     * Streaming multiprocessors that are enabled.
     */
    uint32_t compute_units;
    /**
     * Threads of a warp.
     */
    uint32_t simd_width;
    /**
     * Threads a block can have.
     */
    uint32_t max_threads_per_group;
    /**
     * Bytes of shared memory a block can have.
     */
    uint32_t shared_mem_size;
    /**
     * SM version, `major << 8 | minor`: 0x807 is sm_87.
     */
    uint32_t sm_version;
    /**
     * Highest clock in hertz.
     */
    uint64_t max_clock_hz;
    /**
     * Identifier, the same as RM's GID control gives.
     */
    uint8_t uuid[16];
    /**
     * The virtual Orin, not a board.
     */
    bool simulated;
    /**
     * First GPU address of the local memory window (1 GiB) of VA spaces whose addresses the library chooses.
     */
    uint64_t local_window;
    /**
     * First GPU address of their shared memory window (1 GiB).
     */
    uint64_t shared_window;
};

/**
 * What stopped a device. Set `size` to `sizeof` before the call; later versions only append fields.
 */
struct tegrarm_fault {
    /**
     * In: bytes the caller has. Out: bytes that are valid.
     */
    size_t size;
    /**
     * 0 none: the device works; 1 MMU fault; 2 SM exception; 3 exception of the compute engine; 4 scheduler
     * timeout; 5 error in the pushbuffer; 6 another.
     */
    uint32_t cause;
    /**
     * nvgpu's error code (`NVGPU_CHANNEL_*`).
     */
    uint32_t code;
    /**
     * Number of the channel.
     */
    uint32_t channel;
    /**
     * The SM that reported an error; `UINT32_MAX`: none did.
     */
    uint32_t sm;
    /**
     * That SM's warp error register; 0 without one.
     */
    uint32_t warp_error;
    /**
     * Address of the instruction; 0 without one.
     */
    uint64_t pc;
    /**
     * A sentence with all of it, NUL-terminated.
     */
    char text[256];
};

/**
 * A channel of the caller's. Set `size` to `sizeof`; later versions only append fields.
 */
struct tegrarm_replay_channel {
    /**
     * `sizeof(struct tegrarm_replay_channel)` as the caller knows it.
     */
    size_t size;
    /**
     * The GPFIFO: entries of 8 bytes.
     */
    uint64_t *ring;
    /**
     * How many entries: a power of two.
     */
    uint32_t entries;
    /**
     * The channel's work submit token.
     */
    uint32_t token;
    /**
     * `GPPut` in its USERD.
     */
    uint32_t *gp_put;
    /**
     * The doorbell: the word at 0x90 of the usermode page.
     */
    uint32_t *doorbell;
    /**
     * Number of entries ever written to the ring: read and advanced by each submit, the caller's in between.
     */
    uint64_t *put;
    /**
     * Its error notifier (16 bytes), or NULL: then a stopped channel is a timeout.
     */
    const void *notifier;
};

/**
 * What a patch point gets in each run: `(source + add) >> shift & mask`, modulo 2^64.
 */
struct tegrarm_replay_value {
    /**
     * 0 nothing; 1 the timeline's number before the run; 2 the number of the run, from the kick counter plus 1; 3 a
     * value of the run.
     */
    uint32_t source;
    /**
     * Which value of the run, for source 3.
     */
    uint32_t slot;
    /**
     * Added.
     */
    uint64_t add;
    /**
     * Bits that are kept, after the shift.
     */
    uint64_t mask;
    /**
     * Shift to the right, below 64.
     */
    uint32_t shift;
    /**
     * 0.
     */
    uint32_t reserved;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Allocates an RM object.
 *
 * A client is made with `hClient` and `hParent` 0 and class 0x41 (or 0x0, 0x1); everything else below a client.
 * `*phObject` is the handle to use, or 0 to let the library choose; the handle is written back. `pAllocParams` are the
 * class's parameters, read and written back; `paramsSize` 0 stands for the class's own size. The object belongs to
 * the client until `rm_free` of it, its parent or the client.
 *
 * Thread-safe. A failed call leaves no trace. Errors, first failing check: 0x22 unknown class, 0x1F parameters
 * missing, 0x3A their size, 0x33 unknown client, 0x23 a client of another process, 0x57 unknown parent, 0x36 wrong
 * parent, 0x16 too deep, 0x33 reserved handle, 0x19 handle in use, then the class's own; 0x51 means out of memory.
 *
 * # Safety
 * Pointers are NULL or valid for what they are said to point at.
 */
NV_STATUS rm_alloc(NvHandle hClient,
                   NvHandle hParent,
                   NvHandle *phObject,
                   NvU32 hClass,
                   void *pAllocParams,
                   NvU32 paramsSize);

/**
 * Sends a control command to an object.
 *
 * `pParams` are the command's parameters, read and, on success, written back. Command 0 does nothing. Thread-safe;
 * no lock is held while the kernel works.
 *
 * Errors: 0x1F when exactly one of `pParams` and `paramsSize` is there, 0x23 unknown client, 0x57 unknown object, 0x56
 * a command this object does not have, 0x3A a wrong size, then the command's own.
 *
 * # Safety
 * `pParams` is NULL or valid for reads and writes of `paramsSize` bytes.
 */
NV_STATUS rm_control(NvHandle hClient, NvHandle hObject, NvU32 cmd, void *pParams, NvU32 paramsSize);

/**
 * Frees an object, its children and whatever depends on it. `hParent` is ignored, as in RM.
 *
 * Freed memory leaves every CPU and GPU address it was mapped at; a client's end frees everything it had. Freeing an
 * unknown object is no error. Thread-safe. Errors: 0x33 unknown client, 0x23 a client of another process.
 */
NV_STATUS rm_free(NvHandle hClient, NvHandle hParent, NvHandle hObject);

/**
 * Makes another handle for a memory object, possibly of another client of this process.
 *
 * Both handles own the memory: it is freed with the last one. `*phObject` as in `rm_alloc`. `flags` are ignored.
 * Thread-safe. Errors: 0x1F for anything but memory, otherwise as `rm_alloc`.
 *
 * # Safety
 * `phObject` is NULL or valid for reads and writes.
 */
NV_STATUS rm_dup_object(NvHandle hClient,
                        NvHandle hParent,
                        NvHandle *phObject,
                        NvHandle hClientSrc,
                        NvHandle hObjectSrc,
                        NvU32 flags);

/**
 * Registers pages of this process as a memory object (class 0x71), or allocates system memory (class 0x3E).
 *
 * For 0x71, `*ppAddress` is the first page, `*pLimit` the size minus one, and `flags` must say location PCI (0) and
 * NO_MAP (1 << 30). The pages stay the caller's, at the same address; anonymous shared pages are exchanged there for
 * GPU memory with the same contents. For 0x3E without NO_MAP the memory is mapped and `*ppAddress` written.
 *
 * Thread-safe. Errors: 0x22 another class, 0x29 flags, 0x56 an address off page boundaries, 0x2E a size of 0, 0x1E
 * pages that cannot be used; otherwise as `rm_alloc`.
 *
 * # Safety
 * Pointers are NULL or valid for reads and writes; nothing else accesses the pages during the call.
 */
NV_STATUS rm_alloc_memory(NvHandle hClient,
                          NvHandle hParent,
                          NvHandle *phMemory,
                          NvU32 hClass,
                          NvU32 flags,
                          void **ppAddress,
                          NvU64 *pLimit);

/**
 * Maps `length` bytes of memory from `offset`, or the doorbell page of a usermode object, into this process.
 *
 * `*ppAddress` NULL: memory goes to its GPU address if the library chose that one and the range is free, otherwise
 * anywhere. Not NULL: exactly there, replacing what is there; the range is the caller's. The address is written back.
 * The mapping ends with `rm_unmap_memory` or when the memory is freed. `hDevice` is a device or subdevice. Of `flags`,
 * the access bits (0, 1) count: 1 is read-only.
 *
 * Thread-safe. Errors: 0x23, 0x57, 0x26 `hDevice` is none, 0x31 not mappable, 0x2E a length of 0, 0x20 beyond the end,
 * 0x37 an offset off page boundaries, 0x1E an address off page boundaries, 0x51, 0x59.
 *
 * # Safety
 * `ppAddress` is NULL or valid for reads and writes; a range it names may be replaced.
 */
NV_STATUS rm_map_memory(NvHandle hClient,
                        NvHandle hDevice,
                        NvHandle hMemory,
                        NvU64 offset,
                        NvU64 length,
                        void **ppAddress,
                        NvU32 flags);

/**
 * Removes a mapping that `rm_map_memory` made. `flags` are ignored.
 *
 * Thread-safe. Errors: 0x57 when nothing of that object is mapped at `pAddress`; handles as `rm_map_memory`.
 */
NV_STATUS rm_unmap_memory(NvHandle hClient, NvHandle hDevice, NvHandle hMemory, void *pAddress, NvU32 flags);

/**
 * Maps `length` bytes of memory from `offset` into the VA space of a mapper (class 0x70 or 0x50A0).
 *
 * With bit 15 of `flags` set the GPU address is `*pDmaOffset`, otherwise it is chosen; it is written back either way.
 * The mapping ends with `rm_unmap_memory_dma` or when the memory is freed. The GPU must be done with it by then.
 *
 * Thread-safe. Errors: 0x33 `hDma` is no mapper, 0x31 `hMemory` is no memory, 0x2E a length of 0, 0x20 beyond the end,
 * 0x37 off page boundaries, 0x5B outside the GPU's reach, 0x5D in a shader window, 0x1A occupied, 0x51 no room.
 *
 * # Safety
 * `pDmaOffset` is NULL or valid for reads and writes.
 */
NV_STATUS rm_map_memory_dma(NvHandle hClient,
                            NvHandle hDevice,
                            NvHandle hDma,
                            NvHandle hMemory,
                            NvU64 offset,
                            NvU64 length,
                            NvU32 flags,
                            NvU64 *pDmaOffset);

/**
 * Removes the GPU mapping of a memory object that starts at `dmaOffset`. `flags` are ignored.
 *
 * Does not wait for the GPU. Thread-safe. Errors: 0x57 when there is none; handles as `rm_map_memory_dma`.
 */
NV_STATUS rm_unmap_memory_dma(NvHandle hClient,
                              NvHandle hDevice,
                              NvHandle hDma,
                              NvHandle hMemory,
                              NvU32 flags,
                              NvU64 dmaOffset);

/**
 * Opens `/dev/nvidiactl`, `/dev/nvidia0`, `/dev/nvidia-uvm` or `/dev/nvidia-uvm-tools`, as `open(2)` would.
 *
 * Returns a descriptor, a real one: it can be duplicated, inherited, polled and closed; of `flags`, `O_CLOEXEC` counts.
 * Clients allocated through it are freed when its last descriptor is closed with `rm_close`. Returns -1 with errno
 * ENOENT for another path, ENODEV or EACCES when there is no GPU (`tegrarm_last_error` says why), EMFILE, EFAULT.
 * Thread-safe.
 *
 * # Safety
 * `path` is NULL or NUL-terminated.
 */
int rm_open(const char *path, int flags);

/**
 * One ioctl of a descriptor that `rm_open` returned, as `ioctl(2)`.
 *
 * Returns 0 when the call was understood: what RM thinks of it is in the structure's status. Returns -1 with errno
 * EINVAL for a number, size or node that is wrong, EFAULT for a bad `argp`, EBADF for a closed descriptor, ENOTTY for
 * one that is no RM node. Sentences of both kinds of failure: `tegrarm_last_error`. Thread-safe. Nothing is kept of
 * `argp`, and a bad pointer in or behind it is a failure, not a signal.
 */
int rm_ioctl(int fd, unsigned long request, void *argp);

/**
 * Maps a descriptor that RM_MAP_MEMORY named, as `mmap(2)`; other descriptors that are no RM nodes are mapped too.
 *
 * A program may as well call `mmap(2)` itself. Returns MAP_FAILED with errno EINVAL for an RM node without something to
 * map, otherwise `mmap(2)`'s. Thread-safe.
 *
 * # Safety
 * As `mmap(2)`: MAP_FIXED replaces what is there.
 */
void *rm_mmap(void *addr, size_t length, int prot, int flags, int fd, int64_t offset);

/**
 * Closes a descriptor, as `close(2)`; any descriptor. Returns -1 with errno EBADF when it is not open. Thread-safe.
 */
int rm_close(int fd);

/**
 * Version of the library, for example `"0.1.0"`. The string is static. Never fails.
 */
const char *tegrarm_version(void);

/**
 * Initialises the library with a configuration, or from the environment when `config` is NULL. Optional: the first
 * call of any other function does the latter. Opens no device.
 *
 * Thread-safe. Errors: 0x40 initialised already, 0x1F a bad configuration, 0x6A fields that a later version of the
 * library added are set, 0x6D a backend that this build does not have, 0x59 a recording that cannot be used.
 *
 * # Safety
 * `config` is NULL or points at `config->size` bytes; its strings are NULL or NUL-terminated. Nothing is kept.
 */
NV_STATUS tegrarm_init(const struct tegrarm_config *config);

/**
 * Frees every client, puts the GPU's clock back and forgets the configuration. May be called at any time, any number
 * of times; a later call of another function initialises the library again. Thread-safe. Never fails.
 */
NV_STATUS tegrarm_shutdown(void);

/**
 * Name of a status, for example `"NV_ERR_INVALID_CLASS"`; `"Unknown"` for a number that has none. The string is
 * static. Never fails.
 */
const char *tegrarm_status_name(NV_STATUS status);

/**
 * The sentence of the last call that failed on this thread: what went wrong, with names, numbers and what to do.
 *
 * Writes at most `len` bytes, NUL included, and returns the number needed for all of it; 1 (the NUL) when nothing
 * failed yet. `buf` may be NULL when `len` is 0. A later success does not clear it.
 *
 * # Safety
 * `buf` is valid for writes of `len` bytes.
 */
size_t tegrarm_last_error(char *buf, size_t len);

/**
 * Number of GPUs. Thread-safe. Errors: 0x3D `count` is NULL, otherwise why there is none.
 *
 * # Safety
 * `count` is NULL or valid for writes.
 */
NV_STATUS tegrarm_device_count(NvU32 *count);

/**
 * Figures of one GPU. `out->size` says how many bytes the caller has.
 *
 * Thread-safe. Errors: 0x3D `out` is NULL, 0x3A `out->size` is too small for any version, 0x26 no such device.
 *
 * # Safety
 * `out` is NULL or points at `out->size` bytes.
 */
NV_STATUS tegrarm_device_profile(NvU32 index, struct tegrarm_device_profile *out);

/**
 * Opens GPU `index` (0 on a Tegra): an address space, a channel with compute and copy engines, local memory.
 *
 * `*device` is a new handle; close it with `tegrarm_device_close`. Any thread may use it. Errors: 0x26 no such
 * device, 0x3D NULL, 0x51 out of memory, what `tegrarm_device_count` says when there is no GPU at all.
 *
 * # Safety
 * `device` is NULL or valid for writes.
 */
NV_STATUS tegrarm_device_open(NvU32 index, struct tegrarm_device **device);

/**
 * Closes a device and everything that belongs to it: buffers, modules, kernels and replays. Waits up to ten seconds for work
 * in flight. Pointers into its buffers are invalid afterwards. Errors: 0x57 no such device.
 */
NV_STATUS tegrarm_device_close(struct tegrarm_device *device);

/**
 * `*fence` is what to wait for to have all work given so far finished. Errors: 0x57 no such device, 0x3D NULL.
 *
 * # Safety
 * `fence` is NULL or valid for writes.
 */
NV_STATUS tegrarm_fence(struct tegrarm_device *device, NvU64 *fence);

/**
 * Waits until everything up to `fence` has finished: spins shortly, then sleeps. `timeout_ns` is how long to wait at
 * most, in nanoseconds; `UINT64_MAX` waits for as long as it takes, 0 only looks.
 *
 * Errors: 0x57 no such device, 0x1F a fence never given, 0x62 the device was stopped by a fault (at once; the sentence
 * names it), 0x65 the time is over (the sentence says what is pending).
 */
NV_STATUS tegrarm_wait(struct tegrarm_device *device, NvU64 fence, NvU64 timeout_ns);

/**
 * What stopped a device; `cause` 0 while it works. A stopped device runs nothing any more: close it.
 *
 * Errors: 0x57 no such device, 0x3D NULL, 0x3A `fault->size` too small.
 *
 * # Safety
 * `fault` is NULL or points at `fault->size` bytes.
 */
NV_STATUS tegrarm_device_fault(struct tegrarm_device *device, struct tegrarm_fault *fault);

/**
 * Allocates `size` bytes that CPU and GPU share, zeroed.
 *
 * `flags`: 0 cached, for data the CPU reads; 1 write-combined, for data it only writes. `*buffer` is a new handle;
 * free it with `tegrarm_buffer_free`. Errors: 0x57 no such device, 0x3D NULL, 0x1F a size of 0 or unknown flags, 0x51
 * out of memory.
 *
 * # Safety
 * `buffer` is NULL or valid for writes.
 */
NV_STATUS tegrarm_buffer_alloc(struct tegrarm_device *device, NvU64 size, NvU32 flags, struct tegrarm_buffer **buffer);

/**
 * Frees a buffer, after the work given so far. Pointers into it are invalid afterwards. Errors: 0x57 no such buffer.
 */
NV_STATUS tegrarm_buffer_free(struct tegrarm_buffer *buffer);

/**
 * Where a buffer is. `*pointer` is its CPU address, `*address` its GPU address: the same number, unless the process
 * had that range in use. Either may be NULL. The CPU may read what the GPU wrote once a wait for it has returned.
 * Errors: 0x57 no such buffer.
 *
 * # Safety
 * `pointer` and `address` are NULL or valid for writes.
 */
NV_STATUS tegrarm_buffer_address(struct tegrarm_buffer *buffer, void **pointer, NvU64 *address);

/**
 * Waits for the work given so far, then copies `size` bytes to `offset` of a buffer.
 *
 * Errors: 0x57 no such buffer, 0x3D NULL, 0x20 the range lies outside, 0x62 the device was stopped by a fault.
 *
 * # Safety
 * `from` is valid for reads of `size` bytes.
 */
NV_STATUS tegrarm_copy_in(struct tegrarm_buffer *buffer, NvU64 offset, const void *from, NvU64 size);

/**
 * Waits for the work given so far, then copies `size` bytes from `offset` of a buffer. Errors as `tegrarm_copy_in`.
 *
 * # Safety
 * `to` is valid for writes of `size` bytes.
 */
NV_STATUS tegrarm_copy_out(struct tegrarm_buffer *buffer, NvU64 offset, void *to, NvU64 size);

/**
 * Copies between two buffers of a device on the GPU, in order with other work. Returns at once; `*fence`, if not
 * NULL, is what to wait for.
 *
 * Errors: 0x57 no such buffer, 0x1F buffers of two devices or ranges that overlap, 0x20 a range lies outside, 0x62 the
 * device was stopped by a fault.
 *
 * # Safety
 * `fence` is NULL or valid for writes.
 */
NV_STATUS tegrarm_copy(struct tegrarm_buffer *to,
                       NvU64 to_offset,
                       struct tegrarm_buffer *from,
                       NvU64 from_offset,
                       NvU64 size,
                       NvU64 *fence);

/**
 * Loads a cubin: machine code of NVRTC, ptxas or nvJitLink for exactly this GPU (sm_87 on Orin).
 *
 * `image` is not kept. `*module` is a new handle; unload it with `tegrarm_module_unload`. Errors: 0x57 no such
 * device, 0x3D NULL, 0x1F a file that cannot be loaded (`tegrarm_last_error` names section and offset), 0x51 out of
 * memory.
 *
 * # Safety
 * `image` is valid for reads of `size` bytes; `module` is NULL or valid for writes.
 */
NV_STATUS tegrarm_module_load(struct tegrarm_device *device,
                              const void *image,
                              size_t size,
                              struct tegrarm_module **module);

/**
 * Unloads a module and its kernels, after the work given so far. Errors: 0x57 no such module.
 */
NV_STATUS tegrarm_module_unload(struct tegrarm_module *module);

/**
 * Finds a kernel by its name (`extern "C"`, or mangled). `*kernel` is a new handle that lives as long as the module.
 * Errors: 0x57 no such module, or no such kernel (`tegrarm_last_error` names those there are), 0x3D NULL.
 *
 * # Safety
 * `name` is NULL or NUL-terminated; `kernel` is NULL or valid for writes.
 */
NV_STATUS tegrarm_module_kernel(struct tegrarm_module *module, const char *name, struct tegrarm_kernel **kernel);

/**
 * Finds a `__device__` or `__constant__` variable: `*address` is its GPU address, `*size` its bytes; either may be
 * NULL. Errors: 0x57 no such module or variable, 0x3D NULL.
 *
 * # Safety
 * `name` is NULL or NUL-terminated; `address` and `size` are NULL or valid for writes.
 */
NV_STATUS tegrarm_module_variable(struct tegrarm_module *module, const char *name, NvU64 *address, NvU64 *size);

/**
 * Waits for the work given so far, then copies `size` bytes to the start of a variable. Errors: 0x57 no such module
 * or variable, 0x3D NULL, 0x20 more bytes than it has, 0x62 the device was stopped by a fault.
 *
 * # Safety
 * `name` is NULL or NUL-terminated; `from` is valid for reads of `size` bytes.
 */
NV_STATUS tegrarm_module_write(struct tegrarm_module *module, const char *name, const void *from, size_t size);

/**
 * Loads a relocatable object of this CPU, x86-64 or AArch64 (what `cc -c` makes): its code is placed in executable memory
 * and can be called.
 *
 * `names` and `addresses`, `count` of each, are what the object uses but does not define; NULL and 0 for a self-contained
 * one. They may lie anywhere in memory. `image` is not kept. `*object` is a new handle; unload it with
 * `tegrarm_object_unload`. Constructors and thread-local variables are refused. Errors: 0x3D NULL, 0x1F a file that
 * cannot be loaded (`tegrarm_last_error` names section and offset, or the symbols nobody defines), 0x51 no executable
 * memory.
 *
 * # Safety
 * `image` is valid for reads of `size` bytes; `names` and `addresses` for reads of `count` pointers, the names are
 * NUL-terminated; `object` is NULL or valid for writes. What the object's functions do is its author's promise.
 */
NV_STATUS tegrarm_object_load(const void *image,
                              size_t size,
                              const char *const *names,
                              const void *const *addresses,
                              size_t count,
                              struct tegrarm_object **object);

/**
 * Finds a function or variable that the object exports. `*address` is callable, and valid until the object is unloaded.
 * Errors: 0x57 no such object or symbol, 0x3D NULL.
 *
 * # Safety
 * `name` is NULL or NUL-terminated; `address` is NULL or valid for writes.
 */
NV_STATUS tegrarm_object_symbol(struct tegrarm_object *object, const char *name, void **address);

/**
 * Unloads an object: its functions must not be running, nor be called any more. Errors: 0x57 no such object.
 */
NV_STATUS tegrarm_object_unload(struct tegrarm_object *object);

/**
 * Launches a kernel, in order with other work. Returns at once; `*fence`, if not NULL, is what to wait for.
 *
 * `grid` is blocks, `block` threads of each, in x, y, z; `shared_bytes` is dynamic shared memory of a block.
 * `arguments` points at one pointer per parameter, each to that argument's value, as CUDA's own launch takes them; the
 * values are copied. Local memory grows on demand, which waits for the work given so far; a thousand launches that have
 * not finished make the next one wait. Errors: 0x57 no such kernel, 0x3D NULL, 0x1F a launch the GPU cannot run or another
 * number of arguments, 0x51 out of memory, 0x62 the device was stopped by a fault, 0x65 nothing finished for a minute.
 *
 * # Safety
 * `grid` and `block` are valid for reads of three words; `arguments` is valid for reads of `argument_count` pointers,
 * each valid for reads of its parameter's size; `fence` is NULL or valid for writes.
 */
NV_STATUS tegrarm_launch(struct tegrarm_kernel *kernel,
                         const NvU32 *grid,
                         const NvU32 *block,
                         NvU32 shared_bytes,
                         const void *const *arguments,
                         NvU32 argument_count,
                         NvU64 *fence);

/**
 * Makes an empty replay. What it does in each run is recorded with the functions below; the first submit ends the
 * recording.
 *
 * With a device, launches and copies are recorded (`tegrarm_replay_launch`, `tegrarm_replay_copy`); they run one after
 * another on a channel of the replay's own, after the work the device was given before the run. Without one (NULL),
 * words for channels of the caller's are (`tegrarm_replay_push`). `*replay` is a new handle; end it with
 * `tegrarm_replay_destroy`. Errors: 0x57 no such device, 0x3D NULL, 0x51 out of memory.
 *
 * # Safety
 * `replay` is NULL or valid for writes.
 */
NV_STATUS tegrarm_replay_create(struct tegrarm_device *device, struct tegrarm_replay **replay);

/**
 * Ends a replay. Waits up to ten seconds for a run in flight, whose outputs are not copied. Errors: 0x57 no such replay.
 */
NV_STATUS tegrarm_replay_destroy(struct tegrarm_replay *replay);

/**
 * Sets how long waits for this replay spin before they sleep, in nanoseconds; 20000 at first.
 *
 * A wait that ends while it spins makes no system call. When the last run took more than eight times as long, the next
 * wait does not spin: it sleeps, through most of that time and then in small steps. Errors: 0x57 no such replay, 0x63
 * another thread is in a call of it.
 */
NV_STATUS tegrarm_replay_spin(struct tegrarm_replay *replay, NvU64 nanoseconds);

/**
 * Starts a run: copies inputs, writes patch points, gives the GPU the words. Returns at once.
 *
 * `values` are the run's values, one for each slot, `count` of them; NULL and 0 when no slot was recorded. From the
 * second submit on it makes no system call, allocates nothing and takes no lock. The first ends the recording.
 * Errors: 0x57 no such replay, 0x3D NULL, 0x63 another thread is in a call of it, 0x40 the last run has not been
 * waited for or nothing was recorded, 0x1F another number of values than of slots, 0x62 the channel was stopped by a
 * fault; the first submit also 0x51.
 *
 * # Safety
 * `values` is valid for reads of `count` numbers; places and buffers that were recorded are still valid.
 */
NV_STATUS tegrarm_replay_submit(struct tegrarm_replay *replay, const NvU64 *values, NvU32 count);

/**
 * Waits until the run has finished, then copies outputs; returns at once when no run is in flight.
 *
 * Spins as long as `tegrarm_replay_spin` says, then sleeps. `timeout_ns` is how long to wait at most, in nanoseconds;
 * `UINT64_MAX` waits for as long as it takes, 0 only looks. Errors: 0x57 no such replay, 0x63 another thread is in a call
 * of it, 0x62 a channel was stopped by a fault (at once; the sentence names it), 0x65 the time is over: the run is still
 * in flight and can be waited for again.
 */
NV_STATUS tegrarm_replay_wait(struct tegrarm_replay *replay,
                              NvU64 timeout_ns);

/**
 * `tegrarm_replay_submit` and `tegrarm_replay_wait` in one call: an iteration of a control loop. Errors as theirs.
 *
 * # Safety
 * As `tegrarm_replay_submit`.
 */
NV_STATUS tegrarm_replay_run(struct tegrarm_replay *replay, const NvU64 *values, NvU32 count, NvU64 timeout_ns);

/**
 * Records a launch; parameters as of `tegrarm_launch`. `*launch`, if not NULL, is its index, from 0.
 *
 * Argument values are those of every run unless `tegrarm_replay_argument` says otherwise. The kernel's module and
 * whatever its arguments point at must stay until the replay ends. Errors: 0x57 no such replay or kernel, 0x3D NULL,
 * 0x1F a launch the GPU cannot run, another number of arguments, a kernel of another device or a replay without
 * device, 0x40 the replay has run, 0x63 another thread is in a call of it, 0x51 out of memory.
 *
 * # Safety
 * As `tegrarm_launch`; `launch` is NULL or valid for writes.
 */
NV_STATUS tegrarm_replay_launch(struct tegrarm_replay *replay,
                                struct tegrarm_kernel *kernel,
                                const NvU32 *grid,
                                const NvU32 *block,
                                NvU32 shared_bytes,
                                const void *const *arguments,
                                NvU32 argument_count,
                                NvU32 *launch);

/**
 * Takes argument `argument` of recorded launch `launch` (both from 0) from value `slot` of each run: its low bytes, as
 * many as the parameter has. Errors: 0x57 no such replay, 0x1F no such launch or argument, or a parameter of another
 * size than 1, 2, 4 or 8 bytes, 0x40 the replay has run, 0x63 another thread is in a call of it.
 */
NV_STATUS tegrarm_replay_argument(struct tegrarm_replay *replay, NvU32 launch, NvU32 argument, NvU32 slot);

/**
 * Records a copy between two buffers on the GPU, of less than 4 GiB; the replay keeps them alive. Errors: 0x57 no such
 * replay or buffer, 0x1F buffers of other devices, ranges that overlap or are too long, 0x20 a range lies outside, 0x40
 * the replay has run, 0x63 another thread is in a call of it.
 */
NV_STATUS tegrarm_replay_copy(struct tegrarm_replay *replay,
                              struct tegrarm_buffer *to,
                              NvU64 to_offset,
                              struct tegrarm_buffer *from,
                              NvU64 from_offset,
                              NvU64 size);

/**
 * Has the CPU copy `size` bytes at the start of each run, before the GPU starts: inputs.
 *
 * `to` is usually a buffer's CPU pointer. Errors: 0x57 no such replay, 0x3D NULL, 0x40 the replay has run, 0x63 another
 * thread is in a call of it.
 *
 * # Safety
 * Until the replay ends, `to` is valid for writes and `from` for reads of `size` bytes.
 */
NV_STATUS tegrarm_replay_input(struct tegrarm_replay *replay, void *to, const void *from, size_t size);

/**
 * Has the CPU copy `size` bytes at the end of each run, when the GPU has finished: outputs. Errors as
 * `tegrarm_replay_input`.
 *
 * # Safety
 * As `tegrarm_replay_input`.
 */
NV_STATUS tegrarm_replay_output(struct tegrarm_replay *replay, void *to, const void *from, size_t size);

/**
 * Tells a replay without a device about a channel. `*index`, if not NULL, is what `tegrarm_replay_push` names it by.
 *
 * Errors: 0x57 no such replay, 0x3D NULL, 0x3A `channel->size` too small, 0x1F a replay with a device or a number of
 * entries that is no power of two, 0x1E a pointer that is not aligned, 0x40 the replay has run, 0x63 another thread is in
 * a call of it.
 *
 * # Safety
 * `channel` is NULL or points at `channel->size` bytes. Until the replay ends its pointers are valid, and between a
 * submit and the next nobody else submits to the channel with another idea of `*put`. `index` is NULL or valid for
 * writes.
 */
NV_STATUS tegrarm_replay_add_channel(struct tegrarm_replay *replay,
                                     const struct tegrarm_replay_channel *channel,
                                     NvU32 *index);

/**
 * Says when a run of a replay without a device has finished: when `*signal`, which the words release, reaches
 * `*timeline` plus `step`.
 *
 * `*timeline` is read and advanced by `step`, `*kick` by 1, with each submit; both are the caller's in between.
 * Errors: 0x57 no such replay, 0x3D NULL, 0x1F a replay with a device, 0x1E a pointer that is not aligned, 0x40 the
 * replay has run, 0x63 another thread is in a call of it.
 *
 * # Safety
 * Until the replay ends the pointers are valid for reads, `timeline` and `kick` for writes too.
 */
NV_STATUS tegrarm_replay_timeline(struct tegrarm_replay *replay,
                                  const NvU64 *signal,
                                  NvU64 *timeline,
                                  NvU64 step,
                                  NvU64 *kick);

/**
 * Adds a patch point: each run writes `value` to the `size` bytes (1, 2, 4, 8) at `where`, keeping the bits of `keep`.
 *
 * Patches and pushes are carried out in the order in which they were added. Errors: 0x57 no such replay, 0x3D NULL,
 * 0x1F a bad size, source or shift, 0x1E `where` is not aligned, 0x40 the replay has run, 0x63 another thread is in a call
 * of it.
 *
 * # Safety
 * Until the replay ends, `where` is valid for reads and writes of `size` bytes; `value` is NULL or valid for reads.
 */
NV_STATUS tegrarm_replay_patch(struct tegrarm_replay *replay,
                               void *where,
                               NvU32 size,
                               NvU64 keep,
                               const struct tegrarm_replay_value *value);

/**
 * Adds a run of words at GPU address `address` for a channel: each run writes a ring entry for it and rings the doorbell.
 * Errors: 0x57 no such replay, 0x1F no such channel, a replay with a device, no words, 2^21 or more, an address that is
 * not aligned or above 2^40, more pushes than the ring has entries, 0x40 the replay has run, 0x63 another thread is in a
 * call of it.
 */
NV_STATUS tegrarm_replay_push(struct tegrarm_replay *replay,
                              NvU32 channel,
                              NvU64 address,
                              NvU32 words);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TEGRARM_H */
