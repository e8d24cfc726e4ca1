//! Virtual memory: addresses that are reserved, memory without addresses, and what is mapped where.
//!
//! Contexts have address spaces of their own, so that addresses belong to the context that was current when they were reserved. Memory is a
//! buffer of the context that was current when it was made, and another context maps it through its dma-buf. The dma-buf keeps it when its
//! context ends before its handles and mappings.

use crate::allocations::{self, Kind, find_reserved};
use crate::capturing;
use crate::context::{CONTEXTS, Context, current_or_primary};
use crate::device::check_device;
use crate::handles::Handles;
use crate::machine::Buffer;
use crate::mappings::{Handle, Home, Memory};
use crate::numbers::*;
use crate::pointers::Location;
use crate::result::{Answer, fail};
use crate::structures::AllocationProperties;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::{Arc, Weak};
use tegrarm_lock::Mutex;

/// Sizes and addresses of memory are multiples of this, as on NVIDIA's own driver.
const GRANULARITY: u64 = 2 << 20;
/// Reserved addresses are whole pages.
const PAGE: u64 = 4096;

/// The memory that programs have handles of.
static MEMORIES: Handles<Memory> = Handles::new(6, "memory allocation", CUDA_ERROR_INVALID_VALUE);

/// All memory that lives, by handles or by mappings.
static LIVING: Mutex<Vec<Weak<Memory>>> = Mutex::new(Vec::new());

/// Addresses that were reserved in contexts which have ended since: the first one, and how many. CUDA's are not a context's, so that a
/// program may unmap and free them after it has destroyed the context.
static ENDED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Whether a range was reserved in a context that has ended, and is not reserved now.
fn has_ended(address: u64, size: u64) -> bool {
    let inside = |&(first, all): &(u64, u64)| {
        address >= first && address.checked_add(size).is_some_and(|end| end <= first + all)
    };
    find_reserved(address, size).is_err() && ENDED.lock().iter().any(inside)
}

/// Ends the addresses that belong to a context. Its memory stays.
pub fn forget(context: usize) {
    ENDED.lock().extend(allocations::reserved_of(context));
    let living: Vec<Arc<Memory>> = LIVING.lock().iter().filter_map(Weak::upgrade).collect();
    for memory in living {
        if let Err(error) = memory.leave(context) {
            let text = error.text.unwrap_or_default();
            crate::log::say(crate::log::Level::Notice, &format!("memory ends with its context: {text}"));
            drop(MEMORIES.remove_all(|other| other.id == memory.id));
        }
    }
}

/// Gives memory a handle, or counts one more user of the handle that it has.
fn name(memory: &Arc<Memory>) -> Answer<u64> {
    let mut handle = memory.handle.lock();
    if handle.users == 0 {
        handle.number = MEMORIES.add(memory.clone())?;
    }
    handle.users += 1;
    Ok(handle.number as u64)
}

fn make(context: usize, size: u64, properties: AllocationProperties, buffer: Buffer) -> Answer<u64> {
    let (id, handle) = (allocations::next_id(), Mutex::new(Handle::default()));
    let home = Mutex::new(Home::In(context, Arc::new(buffer)));
    let memory = Arc::new(Memory { home, size, properties, id, handle });
    let mut living = LIVING.lock();
    living.retain(|one| one.strong_count() != 0);
    living.push(Arc::downgrade(&memory));
    drop(living);
    name(&memory)
}

/// Memory as a context has it.
fn seen_by(context: &Context, memory: &Memory) -> Answer<Arc<Buffer>> {
    if let Home::In(of, buffer) = &*memory.home.lock()
        && *of == context.handle
    {
        return Ok(buffer.clone());
    }
    let fd = memory.descriptor()?;
    Buffer::import(&context.device, fd.as_raw_fd()).map(|(buffer, _)| Arc::new(buffer))
}

fn check_multiple(what: &str, number: u64) -> Answer {
    if number == 0 || !number.is_multiple_of(GRANULARITY) {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "{what} is {number:#x}, which is not a multiple of the granularity {GRANULARITY:#x}"
        );
    }
    Ok(())
}

/// Fails unless a location is the device.
fn check_location(location: Location) -> Answer {
    match location.kind {
        CU_MEM_LOCATION_TYPE_DEVICE => check_device(location.id),
        CU_MEM_LOCATION_TYPE_HOST | CU_MEM_LOCATION_TYPE_HOST_NUMA => fail!(
            CUDA_ERROR_NOT_SUPPORTED,
            "memory of the host (the location {}): CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is 0",
            location.kind
        ),
        other => fail!(CUDA_ERROR_INVALID_VALUE, "the type {other} of a location"),
    }
}

/// Fails unless memory with these properties can be.
fn check_properties(wanted: &AllocationProperties) -> Answer {
    if wanted.allocation_type != CU_MEM_ALLOCATION_TYPE_PINNED {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "the type {} of an allocation: it is CU_MEM_ALLOCATION_TYPE_PINNED",
            wanted.allocation_type
        );
    }
    check_location(wanted.location)?;
    if wanted.handle_types & !CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR != 0 {
        fail!(
            CUDA_ERROR_NOT_SUPPORTED,
            "handles of the types {:#x}: memory has file descriptors (1) alone",
            wanted.handle_types
        );
    }
    if wanted.rdma != 0 {
        fail!(CUDA_ERROR_NOT_SUPPORTED, "gpuDirectRDMACapable: an integrated GPU has no GPUDirect RDMA");
    }
    if wanted.usage != 0 {
        fail!(
            CUDA_ERROR_NOT_SUPPORTED,
            "the usage {:#x}: memory for sparse CUDA arrays, multicast or decompression",
            wanted.usage
        );
    }
    Ok(())
}

pub mod rows {
    //! The functions of virtual memory.

    use super::*;
    use crate::pointers::Ptr;
    use crate::structures::AccessDescription;
    use std::ffi::c_void;

    /// The wish for an address is a hint, and the GPU's addresses are the driver's choice.
    pub fn cuMemAddressReserve(ptr: Ptr<u64>, size: usize, alignment: usize, wish: u64, flags: u64) -> Answer {
        ptr.present("ptr")?;
        let size = size as u64;
        if size == 0 || !size.is_multiple_of(PAGE) || !wish.is_multiple_of(PAGE) {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "{size:#x} bytes at {wish:#x}: both are multiples of the page size {PAGE:#x}"
            );
        }
        if flags != 0 || !(alignment == 0 || alignment.is_power_of_two()) {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "the flags {flags:#x}, or the alignment {alignment:#x}: 0 and a power of two can be"
            );
        }
        let context = current_or_primary()?;
        context.alive()?;
        let alignment = (alignment as u64).max(GRANULARITY);
        let Some(room) = size.checked_add(alignment - PAGE) else {
            fail!(CUDA_ERROR_OUT_OF_MEMORY, "{size:#x} addresses with the alignment {alignment:#x}")
        };
        let buffer = Buffer::reserve(&context.device, room)?;
        let start = buffer.address.next_multiple_of(alignment) - buffer.address;
        let made = allocations::add(context.handle, Kind::Reserved, buffer, start, size);
        // They are not those of an earlier context any more.
        let (first, end) = (made.address, made.address + size);
        ENDED.lock().retain(|&(other, all)| other + all <= first || end <= other);
        ptr.set(first, "ptr")
    }

    pub fn cuMemAddressFree(ptr: u64, size: usize) -> Answer {
        if has_ended(ptr, size as u64) {
            let mut ended = ENDED.lock();
            if let Some(at) = ended.iter().position(|one| *one == (ptr, size as u64)) {
                ended.swap_remove(at);
                return Ok(());
            }
        }
        let (found, offset) = find_reserved(ptr, size as u64)?;
        if offset != 0 || found.size != size as u64 {
            let (start, all) = (found.address, found.size);
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "{size:#x} bytes at {ptr:#x} are a part of {all:#x} reserved bytes at {start:#x}"
            );
        }
        if found.mappings.as_ref().is_some_and(|mappings| !mappings.is_empty()) {
            fail!(CUDA_ERROR_INVALID_VALUE, "memory is mapped at {ptr:#x}: call cuMemUnmap first");
        }
        drop(allocations::remove(ptr, |kind| kind == Kind::Reserved));
        Ok(())
    }

    pub fn cuMemGetAllocationGranularity(granularity: Ptr<usize>, prop: Ptr<c_void>, option: u32) -> Answer {
        check_properties(&prop.cast::<AllocationProperties>().get("prop")?)?;
        if option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED {
            fail!(CUDA_ERROR_INVALID_VALUE, "the granularity {option}: 0 and 1 can be");
        }
        granularity.set(GRANULARITY as usize, "granularity")
    }

    pub fn cuMemCreate(handle: Ptr<u64>, size: usize, prop: Ptr<c_void>, flags: u64) -> Answer {
        capturing::forbid_unsafe()?;
        handle.present("handle")?;
        let mut properties = prop.cast::<AllocationProperties>().get("prop")?;
        check_properties(&properties)?;
        check_multiple("the size", size as u64)?;
        if flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of cuMemCreate");
        }
        // Compression is a wish, and cuMemGetAllocationPropertiesFromHandle says whether it came true.
        properties.compression = 0;
        let context = current_or_primary()?;
        context.alive()?;
        let buffer = Buffer::alloc(&context.device, size as u64, NO_POINTER)?;
        handle.set(make(context.handle, size as u64, properties, buffer)?, "handle")
    }

    /// TEGRARM_BUFFER_NO_POINTER: the CPU uses the memory where it is mapped.
    const NO_POINTER: u32 = 4;

    pub fn cuMemRelease(handle: u64) -> Answer {
        let memory = MEMORIES.get(handle as usize)?;
        let mut named = memory.handle.lock();
        if named.users == 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "{handle:#x} was released by another thread");
        }
        named.users -= 1;
        if named.users == 0 {
            // What is mapped keeps the memory.
            drop(MEMORIES.remove(handle as usize)?);
        }
        Ok(())
    }

    pub fn cuMemRetainAllocationHandle(handle: Ptr<u64>, addr: Ptr<c_void>) -> Answer {
        handle.present("handle")?;
        let address = addr.address() as u64;
        let (found, offset) = find_reserved(address, 1)?;
        match found.mappings.as_ref().and_then(|mappings| mappings.find(offset)) {
            Some((_, mapping)) => handle.set(name(&mapping.memory)?, "handle"),
            None => fail!(CUDA_ERROR_INVALID_VALUE, "no memory is mapped at {address:#x}"),
        }
    }

    pub fn cuMemGetAllocationPropertiesFromHandle(prop: Ptr<c_void>, handle: u64) -> Answer {
        prop.cast::<AllocationProperties>().set(MEMORIES.get(handle as usize)?.properties, "prop")
    }

    pub fn cuMemMap(ptr: u64, size: usize, offset: usize, handle: u64, flags: u64) -> Answer {
        let (memory, size) = (MEMORIES.get(handle as usize)?, size as u64);
        if flags != 0 || offset != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} and the offset {offset:#x} of a mapping: both are 0");
        }
        check_multiple("the size", size)?;
        check_multiple("the address", ptr)?;
        if size > memory.size {
            fail!(CUDA_ERROR_INVALID_VALUE, "a mapping of {size:#x} bytes of memory that has {:#x} bytes", memory.size);
        }
        let (found, at) = find_reserved(ptr, size)?;
        let context = CONTEXTS.get(found.context)?;
        context.alive()?;
        let buffer = seen_by(&context, &memory)?;
        found.mappings.as_ref().map_or(Ok(()), |mappings| mappings.add(at, memory, buffer, size))
    }

    /// CUDA's cuMemUnmap waits for the work that may use the memory. After a fault the memory is unmapped nevertheless.
    pub fn cuMemUnmap(ptr: u64, size: usize) -> Answer {
        capturing::forbid_unsafe()?;
        let size = size as u64;
        check_multiple("the size", size)?;
        if has_ended(ptr, size) {
            return Ok(());
        }
        let (found, at) = find_reserved(ptr, size)?;
        let finished = CONTEXTS.get(found.context)?.synchronize();
        if let Some(mappings) = &found.mappings {
            mappings.remove(&found.buffer, found.start, at, size)?;
        }
        finished
    }

    pub fn cuMemSetAccess(ptr: u64, size: usize, desc: Ptr<c_void>, count: usize) -> Answer {
        capturing::forbid_unsafe()?;
        let (wanted, size) = (desc.cast::<AccessDescription>().list(count, "desc")?, size as u64);
        check_multiple("the size", size)?;
        let known = [CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_READWRITE];
        for one in &wanted {
            check_location(one.location)?;
            if !known.contains(&one.flags) {
                fail!(CUDA_ERROR_INVALID_VALUE, "the access {:#x}: 0, 1 and 3 can be", one.flags);
            }
        }
        let Some(access) = wanted.last().map(|one| one.flags) else { fail!(CUDA_ERROR_INVALID_VALUE, "count is 0") };
        let (found, at) = find_reserved(ptr, size)?;
        let context = CONTEXTS.get(found.context)?;
        context.alive()?;
        match &found.mappings {
            Some(mappings) => mappings.set_access(&found.buffer, found.start, at, size, access),
            None => Ok(()),
        }
    }

    pub fn cuMemGetAccess(flags: Ptr<u64>, location: Ptr<c_void>, ptr: u64) -> Answer {
        flags.present("flags")?;
        check_location(location.cast::<Location>().get("location")?)?;
        let (found, offset) = find_reserved(ptr, 1)?;
        match found.mappings.as_ref().and_then(|mappings| mappings.find(offset)) {
            Some((_, mapping)) => flags.set(mapping.access.into(), "flags"),
            None => fail!(CUDA_ERROR_INVALID_VALUE, "no memory is mapped at {ptr:#x}"),
        }
    }

    /// The descriptor is that of a dma-buf, whose first byte is that of the memory.
    pub fn cuMemExportToShareableHandle(handle: Ptr<c_void>, of: u64, kind: u32, flags: u64) -> Answer {
        handle.present("shareableHandle")?;
        let memory = MEMORIES.get(of as usize)?;
        if flags != 0 || kind != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "a handle of the type {kind} with the flags {flags:#x}: descriptors (1) can be"
            );
        }
        if memory.properties.handle_types & kind == 0 {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "requestedHandleTypes of cuMemCreate has no CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"
            );
        }
        handle.cast::<i32>().set(memory.descriptor()?.into_raw_fd(), "shareableHandle")
    }

    /// The pointer is the descriptor itself, as CUDA defines it. The caller keeps the descriptor.
    pub fn cuMemImportFromShareableHandle(handle: Ptr<u64>, os_handle: Ptr<c_void>, kind: u32) -> Answer {
        capturing::forbid_unsafe()?;
        handle.present("handle")?;
        if kind != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
            fail!(CUDA_ERROR_NOT_SUPPORTED, "a handle of the type {kind}: descriptors (1) can be imported");
        }
        let context = current_or_primary()?;
        context.alive()?;
        let (buffer, size) = Buffer::import(&context.device, os_handle.address() as i32)?;
        check_multiple("the size of the descriptor's memory", size)?;
        let properties = AllocationProperties {
            allocation_type: CU_MEM_ALLOCATION_TYPE_PINNED,
            handle_types: CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            location: Location { kind: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 },
            windows: 0,
            compression: 0,
            rdma: 0,
            usage: 0,
            reserved: [0; 4],
        };
        handle.set(make(context.handle, size, properties, buffer)?, "handle")
    }
}
