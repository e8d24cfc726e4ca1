//! All memory that programs allocated, registered or loaded, by its address.
//!
//! The GPU's and the CPU's address of memory are the same number, unless the process had the range in use; then `pointer` differs.

use crate::machine::Buffer;
use crate::numbers::*;
use crate::result::{Answer, fail};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// A variable of a module.
    Variable(usize),
}

impl Kind {
    /// Whether it is memory of the CPU for CUDA: a pointer of the program.
    pub fn is_host(self) -> bool {
        matches!(self, Kind::Host(_) | Kind::Registered(_))
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
}

/// By the GPU's address. Memory of the CPU whose two addresses differ is there too, under the GPU's.
static BY_ADDRESS: RwLock<BTreeMap<u64, Arc<Allocation>>> = RwLock::new(BTreeMap::new());

/// Adds memory: `size` bytes of a buffer, `start` bytes from its beginning.
pub fn add(context: usize, kind: Kind, buffer: Buffer, start: u64, size: u64) -> Arc<Allocation> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let made = Arc::new(Allocation {
        context,
        kind,
        address: buffer.address + start,
        pointer: buffer.pointer + start as usize,
        size,
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        start,
        buffer,
    });
    BY_ADDRESS.write().insert(made.address, made.clone());
    made
}

/// The memory at an address of the GPU, and the offset there.
pub fn find(address: u64) -> Option<(Arc<Allocation>, u64)> {
    let map = BY_ADDRESS.read();
    let (_, found) = map.range(..=address).next_back()?;
    let offset = address - found.address;
    (offset < found.size).then(|| (found.clone(), offset))
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

/// The memory of `size` bytes at an address of the GPU, or an error.
pub fn get_range(address: u64, size: u64) -> Answer<(Arc<Allocation>, u64)> {
    let (found, offset) = get(address)?;
    if offset.checked_add(size).is_none_or(|end| end > found.size) {
        let (start, all) = (found.address, found.size);
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "{size} bytes from {address:#x} are outside the allocation of {all} bytes at {start:#x}"
        );
    }
    Ok((found, offset))
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
