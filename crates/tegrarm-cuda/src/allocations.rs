//! All memory that programs allocated, registered or loaded, by its address.
//!
//! The GPU's and the CPU's address of memory are the same number, unless the process had the range in use; then `pointer` differs.

use crate::machine::Buffer;
use crate::mappings::Mappings;
use crate::numbers::*;
use crate::result::{Answer, fail};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tegrarm_lock::RwLock;

/// How memory came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// cuMemAlloc and its kind.
    Device,
    /// cuMemHostAlloc and cuMemAllocHost, with the flags.
    Host(u32),
    /// cuMemHostRegister, with the flags.
    Registered(u32),
    /// cuMemAllocManaged, with the flags.
    Managed(u32),
    /// cuMemAllocAsync, with the handle of the pool.
    Pool(usize),
    /// A variable of a module, with the handle of the module.
    Variable(usize),
    /// A `__managed__` variable of a module, likewise.
    ManagedVariable(usize),
    /// cuMemAddressReserve.
    Reserved,
    /// A CUDA array with this handle, which has no address.
    Array(usize),
}

impl Kind {
    /// Whether it is memory of the CPU for CUDA: a pointer of the program.
    pub fn is_host(self) -> bool {
        matches!(self, Kind::Host(_) | Kind::Registered(_))
    }

    /// Whether it is managed memory, which the program uses by the GPU's address.
    pub fn is_managed(self) -> bool {
        matches!(self, Kind::Managed(_) | Kind::ManagedVariable(_))
    }
}

/// Some memory.
pub struct Allocation {
    /// The handle of its context.
    pub context: usize,
    /// How it came to be.
    pub kind: Kind,
    /// The GPU's address of the first byte.
    pub address: u64,
    /// The CPU's address of the first byte.
    pub pointer: usize,
    /// How many bytes it has.
    pub size: u64,
    /// A number that no other allocation has.
    pub id: u64,
    /// Where the first byte is in the buffer.
    pub start: u64,
    /// The memory itself.
    pub buffer: Buffer,
    /// CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, which changes nothing: the copies that are synchronous have always finished.
    pub sync_memops: AtomicBool,
    /// What is mapped there, if it consists of reserved addresses.
    pub mappings: Option<Mappings>,
}

impl Allocation {
    /// Fails if a range is not inside, or if the program may not read it, or, if `writes`, not write it.
    pub fn check(&self, offset: u64, size: u64, writes: bool) -> Answer {
        if offset.checked_add(size).is_none_or(|end| end > self.size) {
            let (at, start, all) = (self.address + offset, self.address, self.size);
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "{size} bytes from {at:#x} are outside the allocation of {all} bytes at {start:#x}"
            );
        }
        match &self.mappings {
            Some(mappings) => mappings.check(offset, size, writes),
            None => Ok(()),
        }
    }

    /// The memory that a byte of the allocation belongs to: the address of its first byte, its size and its number.
    pub fn piece(&self, offset: u64) -> (u64, u64, u64) {
        match self.mappings.as_ref().and_then(|mappings| mappings.find(offset)) {
            Some((start, mapping)) => (self.address + start, mapping.size, mapping.memory.id),
            None => (self.address, self.size, self.id),
        }
    }
}

/// A number that no other allocation has.
pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// By the GPU's address. Memory of the CPU whose two addresses differ is there too, under the GPU's.
static BY_ADDRESS: RwLock<BTreeMap<u64, Arc<Allocation>>> = RwLock::new(BTreeMap::new());

/// Adds memory: `size` bytes of a buffer, `start` bytes from its beginning.
pub fn add(context: usize, kind: Kind, buffer: Buffer, start: u64, size: u64) -> Arc<Allocation> {
    let made = of_buffer(context, kind, buffer, start, size);
    BY_ADDRESS.write().insert(made.address, made.clone());
    made
}

/// Memory that no address leads to: the first bytes of a buffer.
pub fn apart(context: usize, kind: Kind, buffer: Buffer, size: u64) -> Arc<Allocation> {
    of_buffer(context, kind, buffer, 0, size)
}

fn of_buffer(context: usize, kind: Kind, buffer: Buffer, start: u64, size: u64) -> Arc<Allocation> {
    Arc::new(Allocation {
        context,
        kind,
        address: buffer.address + start,
        pointer: buffer.pointer + start as usize,
        size,
        id: next_id(),
        start,
        buffer,
        sync_memops: AtomicBool::new(false),
        mappings: matches!(kind, Kind::Reserved).then(Mappings::default),
    })
}

/// Adds memory that was taken out of the table.
pub fn restore(memory: Arc<Allocation>) -> Arc<Allocation> {
    memory.sync_memops.store(false, Ordering::Relaxed);
    BY_ADDRESS.write().insert(memory.address, memory.clone());
    memory
}

/// The memory at an address of the GPU, and the offset there. Reserved addresses are memory where some is mapped.
pub fn find(address: u64) -> Option<(Arc<Allocation>, u64)> {
    let (found, offset) = find_any(address)?;
    let is_memory = found.mappings.as_ref().is_none_or(|mappings| mappings.find(offset).is_some());
    is_memory.then_some((found, offset))
}

/// The memory or the reserved addresses at an address of the GPU.
fn find_any(address: u64) -> Option<(Arc<Allocation>, u64)> {
    let map = BY_ADDRESS.read();
    let (_, found) = map.range(..=address).next_back()?;
    let offset = address - found.address;
    (offset < found.size).then(|| (found.clone(), offset))
}

/// The reserved addresses that a range is inside of, and the offset there.
pub fn find_reserved(address: u64, size: u64) -> Answer<(Arc<Allocation>, u64)> {
    match find_any(address) {
        Some((found, offset))
            if found.kind == Kind::Reserved && offset.checked_add(size).is_some_and(|end| end <= found.size) =>
        {
            Ok((found, offset))
        }
        _ => fail!(CUDA_ERROR_INVALID_VALUE, "{size:#x} bytes at {address:#x} are not inside of reserved addresses"),
    }
}

/// The memory at a pointer of the program.
pub fn find_pointer(pointer: usize) -> Option<(Arc<Allocation>, u64)> {
    if let Some((found, offset)) = find(pointer as u64)
        && found.pointer as u64 == found.address
    {
        return Some((found, offset));
    }
    let map = BY_ADDRESS.read();
    let holds = |a: &&Arc<Allocation>| {
        a.pointer as u64 != a.address && (a.pointer..a.pointer + a.size as usize).contains(&pointer)
    };
    map.values().find(holds).map(|found| (found.clone(), (pointer - found.pointer) as u64))
}

/// The memory at an address of the GPU, or an error.
pub fn get(address: u64) -> Answer<(Arc<Allocation>, u64)> {
    match find(address) {
        Some(found) => Ok(found),
        None => fail!(CUDA_ERROR_INVALID_VALUE, "{address:#x} is not an address in memory of the device"),
    }
}

/// The memory of `size` bytes at an address of the GPU, which may be read, or, if `writes`, written; or an error.
pub fn get_range(address: u64, size: u64, writes: bool) -> Answer<(Arc<Allocation>, u64)> {
    let (found, offset) = get(address)?;
    found.check(offset, size, writes)?;
    Ok((found, offset))
}

/// The reserved addresses of a context: the first one, and how many.
pub fn reserved_of(context: usize) -> Vec<(u64, u64)> {
    let map = BY_ADDRESS.read();
    let of_it = map.values().filter(|one| one.context == context && one.kind == Kind::Reserved);
    of_it.map(|one| (one.address, one.size)).collect()
}

/// Takes memory out of the table, by its first address.
pub fn remove(address: u64, wanted: impl Fn(Kind) -> bool) -> Option<Arc<Allocation>> {
    let mut map = BY_ADDRESS.write();
    if map.get(&address).is_some_and(|found| wanted(found.kind)) { map.remove(&address) } else { None }
}

/// Ends all memory that belongs to a context.
pub fn forget(context: usize) {
    remove_all(|allocation| allocation.context == context);
}

/// Ends all memory that fits.
pub fn remove_all(fits: impl Fn(&Allocation) -> bool) {
    let mut gone = Vec::new();
    BY_ADDRESS.write().retain(|_, allocation| {
        let ends = fits(allocation);
        if ends {
            gone.push(allocation.clone());
        }
        !ends
    });
    // libtegrarm is called when the lock is not held any more.
    drop(gone);
}
