//! The runtime: devices, buffers, modules, launches.

use super::guard::status;
use super::instance::{self, Cell};
use super::objects::{NV_STATUS, NvU32, NvU64};
use crate::runtime::device::{Buffer, Device, KernelRef, Module};
use crate::runtime::fault::{Cause, FaultInfo};
use crate::runtime::launch::{Dim3, Launch};
use crate::runtime::memory::Cache;
use crate::status::{RmError, RmResult, fail};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tegrarm_abi::rm::status::*;

/// An open GPU. The pointer is a handle, not an address: a closed one is recognised and refused.
#[allow(non_camel_case_types)]
pub struct tegrarm_device {
    _private: [u8; 0],
}

/// Memory of a device that CPU and GPU share. A handle, as `tegrarm_device`.
#[allow(non_camel_case_types)]
pub struct tegrarm_buffer {
    _private: [u8; 0],
}

/// Loaded machine code. A handle, as `tegrarm_device`.
#[allow(non_camel_case_types)]
pub struct tegrarm_module {
    _private: [u8; 0],
}

/// A kernel of a module. A handle, as `tegrarm_device`; it belongs to its module.
#[allow(non_camel_case_types)]
pub struct tegrarm_kernel {
    _private: [u8; 0],
}

/// What stopped a device. Set `size` to `sizeof` before the call; later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_fault {
    /// In: bytes the caller has. Out: bytes that are valid.
    pub size: usize,
    /// 0 none: the device works; 1 MMU fault; 2 SM exception; 3 exception of the compute engine; 4 scheduler
    /// timeout; 5 error in the pushbuffer; 6 another.
    pub cause: u32,
    /// nvgpu's error code (`NVGPU_CHANNEL_*`).
    pub code: u32,
    /// Number of the channel.
    pub channel: u32,
    /// The SM that reported an error; `UINT32_MAX`: none did.
    pub sm: u32,
    /// That SM's warp error register; 0 without one.
    pub warp_error: u32,
    /// Address of the instruction; 0 without one.
    pub pc: u64,
    /// The address accessed; 0 when the kernel does not tell.
    pub address: u64,
    /// A sentence with all of it, NUL-terminated.
    pub text: [c_char; 256],
}

/// What a handle stands for.
#[derive(Clone)]
enum Entry {
    Device(Arc<Device>),
    Buffer(Arc<Buffer>),
    Module(Arc<Module>),
    /// With the handle of its module.
    Kernel(Arc<KernelRef>, u64),
}

impl Entry {
    fn device(&self) -> &Arc<Device> {
        match self {
            Entry::Device(d) => d,
            Entry::Buffer(b) => b.device(),
            Entry::Module(m) => m.device(),
            Entry::Kernel(k, _) => k.module().device(),
        }
    }
}

type Handles = RwLock<Option<HashMap<u64, Entry>>>;

/// All handles of this process.
static HANDLES: Cell<Handles> = Cell::new(RwLock::new(None));
/// Handles are never used twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn handles() -> &'static Handles {
    HANDLES.get()
}

/// In a forked child: the handles are the parent's.
///
/// # Safety
/// No other thread exists.
pub(super) unsafe fn forget_handles() {
    // SAFETY: the caller's promise.
    unsafe { HANDLES.replace(RwLock::new(None)) };
}

/// Closes every handle.
pub(super) fn close_all() {
    // Not under the lock: closing waits for the GPU.
    let all = handles().write().take();
    drop(all);
}

fn insert<T>(entry: Entry) -> *mut T {
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    handles().write().get_or_insert_default().insert(handle, entry);
    handle as *mut T
}

fn find<T, U>(handle: *const T, what: &str, of: impl Fn(&Entry) -> Option<U>) -> RmResult<U> {
    let found = handles().read().as_ref().and_then(|all| all.get(&(handle as u64))).and_then(of);
    found.ok_or_else(|| {
        let text = format!("{handle:?} is no {what}: it was never made, or closed, or belongs to another process");
        RmError::new(NV_ERR_OBJECT_NOT_FOUND, text)
    })
}

fn device(handle: *const tegrarm_device) -> RmResult<Arc<Device>> {
    find(handle, "device", |e| if let Entry::Device(d) = e { Some(d.clone()) } else { None })
}

fn buffer(handle: *const tegrarm_buffer) -> RmResult<Arc<Buffer>> {
    find(handle, "buffer", |e| if let Entry::Buffer(b) = e { Some(b.clone()) } else { None })
}

fn module(handle: *const tegrarm_module) -> RmResult<Arc<Module>> {
    find(handle, "module", |e| if let Entry::Module(m) = e { Some(m.clone()) } else { None })
}

fn kernel(handle: *const tegrarm_kernel) -> RmResult<Arc<KernelRef>> {
    find(handle, "kernel", |e| if let Entry::Kernel(k, _) = e { Some(k.clone()) } else { None })
}

/// Takes entries out of the table, to be dropped where no lock is held.
fn remove(doomed: impl Fn(u64, &Entry) -> bool) -> Vec<Entry> {
    let mut table = handles().write();
    let Some(all) = table.as_mut() else { return Vec::new() };
    all.extract_if(|handle, entry| doomed(*handle, entry)).map(|(_, entry)| entry).collect()
}

/// Writes a result.
///
/// # Safety
/// `p` is NULL or valid for writes.
unsafe fn give<T>(p: *mut T, value: T, name: &str) -> RmResult<()> {
    if p.is_null() {
        fail!(NV_ERR_INVALID_POINTER, "{name} is NULL");
    }
    // SAFETY: not NULL, so valid by the caller's promise; alignment is not assumed.
    unsafe { p.write_unaligned(value) };
    Ok(())
}

/// Refuses NULL before anything is done that would have to be undone.
fn present<T>(p: *const T, name: &str) -> RmResult<()> {
    if p.is_null() {
        fail!(NV_ERR_INVALID_POINTER, "{name} is NULL");
    }
    Ok(())
}

/// # Safety
/// `p` is NULL or NUL-terminated, and stays so for as long as the result lives.
unsafe fn text<'a>(p: *const c_char) -> RmResult<&'a str> {
    present(p, "name")?;
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(p) }.to_str();
    text.map_err(|_| RmError::new(NV_ERR_INVALID_ARGUMENT, "name is not UTF-8"))
}

/// # Safety
/// `p` is NULL or valid for reads of `size` bytes.
unsafe fn bytes(p: *const c_void, size: usize, name: &str) -> RmResult<Vec<u8>> {
    present(p, name)?;
    let mut copy = vec![0; size];
    // SAFETY: the caller's promise; the copy is ours.
    unsafe { std::ptr::copy_nonoverlapping(p.cast(), copy.as_mut_ptr(), size) };
    Ok(copy)
}

/// Opens GPU `index` (0 on a Tegra): an address space, a channel with compute and copy engines, local memory.
///
/// `*device` is a new handle; close it with `tegrarm_device_close`. Any thread may use it. Errors: 0x26 no such
/// device, 0x51 out of memory, what `tegrarm_device_count` says when there is no GPU at all.
///
/// # Safety
/// `device` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_open(index: NvU32, device: *mut *mut tegrarm_device) -> NV_STATUS {
    status(|| {
        present(device, "device")?;
        let opened = Device::open(&instance::get()?, index)?;
        // SAFETY: not NULL; the caller's promise.
        unsafe { give(device, insert(Entry::Device(opened)), "device") }
    })
}

/// Closes a device and everything that belongs to it: buffers, modules and kernels. Waits up to ten seconds for work
/// in flight. Pointers into its buffers are invalid afterwards. Errors: 0x57 no such device.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_device_close(device: *mut tegrarm_device) -> NV_STATUS {
    status(|| {
        let closing = self::device(device)?;
        let mut doomed = remove(|_, entry| Arc::ptr_eq(entry.device(), &closing));
        // Kernels before modules before the device: each keeps the next one alive.
        doomed.sort_by_key(|entry| match entry {
            Entry::Kernel(..) => 0,
            Entry::Module(_) | Entry::Buffer(_) => 1,
            Entry::Device(_) => 2,
        });
        drop(doomed);
        Ok(())
    })
}

/// Allocates `size` bytes that CPU and GPU share, zeroed.
///
/// `flags`: 0 cached, for data the CPU reads; 1 write-combined, for data it only writes. `*buffer` is a new handle;
/// free it with `tegrarm_buffer_free`. Errors: 0x57 no such device, 0x1F a size of 0 or unknown flags, 0x51 out of memory.
///
/// # Safety
/// `buffer` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_buffer_alloc(
    device: *mut tegrarm_device,
    size: NvU64,
    flags: NvU32,
    buffer: *mut *mut tegrarm_buffer,
) -> NV_STATUS {
    status(|| {
        present(buffer, "buffer")?;
        let cache = match flags {
            0 => Cache::Cached,
            1 => Cache::WriteCombined,
            other => fail!(NV_ERR_INVALID_ARGUMENT, "buffer flags {other:#x}: 0 cached, 1 write-combined"),
        };
        let allocated = self::device(device)?.alloc(size, cache)?;
        // SAFETY: not NULL; the caller's promise.
        unsafe { give(buffer, insert(Entry::Buffer(allocated)), "buffer") }
    })
}

/// Frees a buffer, after the work given so far. Pointers into it are invalid afterwards. Errors: 0x57 no such buffer.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_buffer_free(buffer: *mut tegrarm_buffer) -> NV_STATUS {
    status(|| {
        self::buffer(buffer)?;
        drop(remove(|handle, _| handle == buffer as u64));
        Ok(())
    })
}

/// Where a buffer is. `*pointer` is its CPU address, `*address` its GPU address: the same number, unless the process
/// had that range in use. Either may be NULL. The CPU may read what the GPU wrote once a wait for it has returned.
/// Errors: 0x57 no such buffer.
///
/// # Safety
/// `pointer` and `address` are NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_buffer_address(
    buffer: *mut tegrarm_buffer,
    pointer: *mut *mut c_void,
    address: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let b = self::buffer(buffer)?;
        if !pointer.is_null() {
            // SAFETY: not NULL; the caller's promise.
            unsafe { give(pointer, b.pointer() as *mut c_void, "pointer") }?;
        }
        if !address.is_null() {
            // SAFETY: as above.
            unsafe { give(address, b.address(), "address") }?;
        }
        Ok(())
    })
}

/// Waits for the work given so far, then copies `size` bytes to `offset` of a buffer.
///
/// Errors: 0x57 no such buffer, 0x3D NULL, 0x20 the range lies outside, 0x62 the device was stopped by a fault.
///
/// # Safety
/// `from` is valid for reads of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy_in(
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    from: *const c_void,
    size: NvU64,
) -> NV_STATUS {
    status(|| {
        let b = self::buffer(buffer)?;
        present(from, "from")?;
        let to = b.ready(offset, size)? as *mut u8;
        // SAFETY: `ready` checked the range, `b` keeps it mapped; `from` is valid by the caller's promise, and may
        // itself be buffer memory: raw copies that allow overlap.
        unsafe { std::ptr::copy(from.cast::<u8>(), to, size as usize) };
        Ok(())
    })
}

/// Waits for the work given so far, then copies `size` bytes from `offset` of a buffer. Errors as `tegrarm_copy_in`.
///
/// # Safety
/// `to` is valid for writes of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy_out(
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    to: *mut c_void,
    size: NvU64,
) -> NV_STATUS {
    status(|| {
        let b = self::buffer(buffer)?;
        present(to, "to")?;
        let from = b.ready(offset, size)? as *const u8;
        // SAFETY: as in `tegrarm_copy_in`.
        unsafe { std::ptr::copy(from, to.cast::<u8>(), size as usize) };
        Ok(())
    })
}

/// Copies between two buffers of a device on the GPU, in order with other work. Returns at once; `*fence`, if not
/// NULL, is what to wait for.
///
/// Errors: 0x57 no such buffer, 0x1F buffers of two devices or ranges that overlap, 0x20 a range lies outside, 0x62 the
/// device was stopped by a fault.
///
/// # Safety
/// `fence` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy(
    to: *mut tegrarm_buffer,
    to_offset: NvU64,
    from: *mut tegrarm_buffer,
    from_offset: NvU64,
    size: NvU64,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let (to, from) = (self::buffer(to)?, self::buffer(from)?);
        if !Arc::ptr_eq(to.device(), from.device()) {
            fail!(NV_ERR_INVALID_ARGUMENT, "the buffers belong to two devices");
        }
        let given = to.device().copy(&to, to_offset, &from, from_offset, size)?;
        // SAFETY: the caller's promise.
        unsafe { give_fence(fence, given) }
    })
}

/// # Safety
/// `fence` is NULL or valid for writes.
unsafe fn give_fence(fence: *mut NvU64, given: u64) -> RmResult<()> {
    if fence.is_null() {
        return Ok(());
    }
    // SAFETY: not NULL; the caller's promise.
    unsafe { give(fence, given, "fence") }
}

/// Loads a cubin: machine code of NVRTC, ptxas or nvJitLink for exactly this GPU (sm_87 on Orin).
///
/// `image` is not kept. `*module` is a new handle; unload it with `tegrarm_module_unload`. Errors: 0x57 no such
/// device, 0x1F a file that cannot be loaded (`tegrarm_last_error` names section and offset), 0x51 out of memory.
///
/// # Safety
/// `image` is valid for reads of `size` bytes; `module` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_load(
    device: *mut tegrarm_device,
    image: *const c_void,
    size: usize,
    module: *mut *mut tegrarm_module,
) -> NV_STATUS {
    status(|| {
        present(module, "module")?;
        let device = self::device(device)?;
        // SAFETY: the caller's promise.
        let loaded = device.load(&unsafe { bytes(image, size, "image") }?)?;
        // SAFETY: not NULL; the caller's promise.
        unsafe { give(module, insert(Entry::Module(loaded)), "module") }
    })
}

/// Unloads a module and its kernels, after the work given so far. Errors: 0x57 no such module.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_module_unload(module: *mut tegrarm_module) -> NV_STATUS {
    status(|| {
        self::module(module)?;
        let this = module as u64;
        drop(remove(|handle, entry| handle == this || matches!(entry, Entry::Kernel(_, of) if *of == this)));
        Ok(())
    })
}

/// Finds a kernel by its name (`extern "C"`, or mangled). `*kernel` is a new handle that lives as long as the module.
/// Errors: 0x57 no such module, or no such kernel (`tegrarm_last_error` names those there are).
///
/// # Safety
/// `name` is NULL or NUL-terminated; `kernel` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_kernel(
    module: *mut tegrarm_module,
    name: *const c_char,
    kernel: *mut *mut tegrarm_kernel,
) -> NV_STATUS {
    status(|| {
        present(kernel, "kernel")?;
        // SAFETY: the caller's promise.
        let found = self::module(module)?.kernel(unsafe { text(name) }?)?;
        // SAFETY: not NULL; the caller's promise.
        unsafe { give(kernel, insert(Entry::Kernel(Arc::new(found), module as u64)), "kernel") }
    })
}

/// Finds a `__device__` or `__constant__` variable: `*address` is its GPU address, `*size` its bytes; either may be
/// NULL. Errors: 0x57 no such module or variable.
///
/// # Safety
/// `name` is NULL or NUL-terminated; `address` and `size` are NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_variable(
    module: *mut tegrarm_module,
    name: *const c_char,
    address: *mut NvU64,
    size: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        // SAFETY: the caller's promise.
        let (at, len) = self::module(module)?.variable(unsafe { text(name) }?)?;
        for (p, value) in [(address, at), (size, len)] {
            // SAFETY: the caller's promise.
            unsafe { give_fence(p, value) }?;
        }
        Ok(())
    })
}

/// Waits for the work given so far, then copies `size` bytes to the start of a variable. Errors: 0x57 no such module
/// or variable, 0x20 more bytes than it has, 0x62 the device was stopped by a fault.
///
/// # Safety
/// `name` is NULL or NUL-terminated; `from` is valid for reads of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_module_write(
    module: *mut tegrarm_module,
    name: *const c_char,
    from: *const c_void,
    size: usize,
) -> NV_STATUS {
    status(|| {
        // SAFETY: the caller's promise, both times.
        let (name, from) = unsafe { (text(name)?, bytes(from, size, "from")?) };
        self::module(module)?.write_variable(name, &from)
    })
}

/// Launches a kernel, in order with other work. Returns at once; `*fence`, if not NULL, is what to wait for.
///
/// `grid` is blocks, `block` threads of each, in x, y, z; `shared_bytes` is dynamic shared memory of a block.
/// `arguments` points at one pointer per parameter, each to that argument's value, as CUDA's own launch takes them; the
/// values are copied. Local memory grows on demand, which waits for the work given so far. Errors: 0x57 no such kernel,
/// 0x1F a launch the GPU cannot run or another number of arguments, 0x62 the device was stopped by a fault.
///
/// # Safety
/// `grid` and `block` are valid for reads of three words; `arguments` is valid for reads of `argument_count` pointers,
/// each valid for reads of its parameter's size; `fence` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_launch(
    kernel: *mut tegrarm_kernel,
    grid: *const NvU32,
    block: *const NvU32,
    shared_bytes: NvU32,
    arguments: *const *const c_void,
    argument_count: NvU32,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let k = self::kernel(kernel)?;
        // SAFETY: the caller's promise, both times.
        let (grid, block) = unsafe { (three(grid, "grid")?, three(block, "block")?) };
        let launch = Launch { grid, block, dynamic_shared: shared_bytes };
        // SAFETY: the caller's promise.
        let arguments = unsafe { gather(&k, arguments, argument_count as usize) }?;
        let given = k.module().device().launch(&k, &launch, &arguments)?;
        // SAFETY: the caller's promise.
        unsafe { give_fence(fence, given) }
    })
}

/// # Safety
/// `p` is NULL or valid for reads of three words.
unsafe fn three(p: *const NvU32, name: &str) -> RmResult<Dim3> {
    present(p, name)?;
    // SAFETY: not NULL; the caller's promise.
    let [x, y, z] = unsafe { p.cast::<[u32; 3]>().read_unaligned() };
    Ok(Dim3::new(x, y, z))
}

/// The block of arguments, from one pointer for each.
///
/// # Safety
/// `arguments` is NULL or valid for reads of `count` pointers, each NULL or valid for reads of its parameter's size.
unsafe fn gather(kernel: &KernelRef, arguments: *const *const c_void, count: usize) -> RmResult<Vec<u8>> {
    let k = kernel.kernel();
    if count != k.parameters.len() {
        let wanted = k.parameters.len();
        fail!(NV_ERR_INVALID_ARGUMENT, "launching '{}': {count} arguments for {wanted} parameters", k.name);
    }
    let mut block = vec![0u8; k.parameter_size as usize];
    if count == 0 {
        return Ok(block);
    }
    present(arguments, "arguments")?;
    for (index, parameter) in k.parameters.iter().enumerate() {
        // SAFETY: `index` is below `count`; the caller's promise.
        let from = unsafe { arguments.add(index).read_unaligned() };
        present(from, "an argument")?;
        let to = &mut block[parameter.offset as usize..][..parameter.size as usize];
        // SAFETY: the caller's promise; the block is ours.
        unsafe { std::ptr::copy_nonoverlapping(from.cast(), to.as_mut_ptr(), to.len()) };
    }
    Ok(block)
}

/// `*fence` is what to wait for to have all work given so far finished. Errors: 0x57 no such device, 0x3D NULL.
///
/// # Safety
/// `fence` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_fence(device: *mut tegrarm_device, fence: *mut NvU64) -> NV_STATUS {
    status(|| {
        let last = self::device(device)?.fence();
        // SAFETY: the caller's promise.
        unsafe { give(fence, last, "fence") }
    })
}

/// Waits until everything up to `fence` has finished: spins shortly, then sleeps. `timeout_ns` is how long to wait at
/// most, in nanoseconds; `UINT64_MAX` waits for as long as it takes, 0 only looks.
///
/// Errors: 0x57 no such device, 0x1F a fence never given, 0x62 the device was stopped by a fault (at once; the sentence
/// names it), 0x65 the time is over (the sentence says what is pending).
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_wait(device: *mut tegrarm_device, fence: NvU64, timeout_ns: NvU64) -> NV_STATUS {
    status(|| {
        let deadline = (timeout_ns != u64::MAX).then(|| Duration::from_nanos(timeout_ns));
        self::device(device)?.wait(fence, deadline)
    })
}

/// What stopped a device; `cause` 0 while it works. A stopped device runs nothing any more: close it.
///
/// Errors: 0x57 no such device, 0x3D NULL, 0x3A `fault->size` too small.
///
/// # Safety
/// `fault` is NULL or points at `fault->size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_fault(device: *mut tegrarm_device, fault: *mut tegrarm_fault) -> NV_STATUS {
    status(|| {
        present(fault, "fault")?;
        // SAFETY: the first field is there in every version of the structure.
        let size = unsafe { (&raw const (*fault).size).read_unaligned() };
        if size < size_of::<tegrarm_fault>() {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "fault->size is {size}: set it to sizeof(struct tegrarm_fault)");
        }
        let found = tegrarm_fault::of(self::device(device)?.fault()?);
        // SAFETY: the caller has at least that many bytes.
        unsafe { give(fault, found, "fault") }
    })
}

impl tegrarm_fault {
    fn of(info: Option<FaultInfo>) -> tegrarm_fault {
        let size = size_of::<tegrarm_fault>();
        let mut fault = tegrarm_fault {
            size,
            cause: 0,
            code: 0,
            channel: 0,
            sm: u32::MAX,
            warp_error: 0,
            pc: 0,
            address: 0,
            text: [0; 256],
        };
        let Some(info) = info else { return fault };
        fault.cause = match info.cause {
            Cause::Mmu => 1,
            Cause::Sm => 2,
            Cause::Graphics => 3,
            Cause::Timeout => 4,
            Cause::Pushbuffer => 5,
            Cause::Other => 6,
        };
        (fault.code, fault.channel) = (info.code, info.channel);
        (fault.sm, fault.warp_error) = info.sm.unwrap_or((u32::MAX, 0));
        (fault.pc, fault.address) = (info.pc.unwrap_or(0), info.address.unwrap_or(0));
        for (to, from) in fault.text[..255].iter_mut().zip(info.to_string().bytes()) {
            *to = from as c_char;
        }
        fault
    }
}
