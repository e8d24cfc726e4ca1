//! Memory in the order of streams, and its pools.
//!
//! An allocation is made at once, and a free takes place when the stream comes to it. A pool keeps freed memory up to its threshold, and
//! gives it to the next allocation of the same size: in the same stream at once, and in others when the stream has come to the free.

use crate::allocations::{self, Allocation, Kind};
use crate::capturing;
use crate::context::{Context, stream_of};
use crate::handles::Handles;
use crate::numbers::*;
use crate::order::Stream;
use crate::result::{Answer, Error, fail};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tegrarm_lock::Mutex;

/// All pools.
static POOLS: Handles<Pool> = Handles::new(4, "memory pool", CUDA_ERROR_INVALID_VALUE);

/// A pool.
struct Pool {
    /// The values of the attributes that can be set: the numbers of `CUmemPool_attribute`.
    settings: Mutex<[u64; 5]>,
    used: Count,
    reserved: Count,
    /// Memory that was freed.
    free: Mutex<Vec<Free>>,
    is_default: bool,
    /// It never has more bytes, or 0 if it may have all that there are.
    most: u64,
}

/// A number of bytes, and the largest that it was.
#[derive(Default)]
struct Count {
    now: AtomicU64,
    most: AtomicU64,
}

impl Count {
    fn add(&self, size: u64) {
        self.add_within(size, u64::MAX);
    }

    /// Adds bytes, unless there would be more than so many then.
    fn add_within(&self, size: u64, most: u64) -> bool {
        let more = |now: u64| now.checked_add(size).filter(|all| *all <= most);
        let added = self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if let Ok(before) = added {
            self.most.fetch_max(before + size, Ordering::Relaxed);
        }
        added.is_ok()
    }

    fn remove(&self, size: u64) {
        self.now.fetch_sub(size, Ordering::Relaxed);
    }

    /// The largest number counts from now on.
    fn forget(&self) {
        self.most.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Memory that was freed in the order of a stream.
struct Free {
    memory: Arc<Allocation>,
    /// The number of the stream.
    stream: u64,
    /// The fence behind which it is free for all streams.
    fence: u64,
}

impl Pool {
    fn new(is_default: bool, most: u64) -> Pool {
        // Reuse is allowed in every way at first, and the threshold is 0, as in CUDA.
        let settings = Mutex::new([0, 1, 1, 1, 0]);
        Pool { settings, used: Count::default(), reserved: Count::default(), free: Mutex::default(), is_default, most }
    }

    /// Memory of this size that was freed, if the stream may have it.
    fn again(&self, context: &Context, stream: &Stream, size: u64) -> Option<Arc<Allocation>> {
        let mut free = self.free.lock();
        let fits = |one: &Free| {
            one.memory.context == context.handle
                && one.memory.size == size
                && (one.stream == stream.id || context.device.passed(one.fence).unwrap_or(false))
        };
        let at = free.iter().position(fits)?;
        Some(free.swap_remove(at).memory)
    }

    /// Counts memory that the pool gets. What it keeps ends, if that makes the room.
    fn grow(&self, size: u64) -> Answer {
        let most = if self.most == 0 { u64::MAX } else { self.most };
        if self.reserved.add_within(size, most) {
            return Ok(());
        }
        self.release(|_| false, most.saturating_sub(size));
        if self.reserved.add_within(size, most) {
            return Ok(());
        }
        let now = self.reserved.now.load(Ordering::Relaxed);
        fail!(
            CUDA_ERROR_OUT_OF_MEMORY,
            "{size} bytes of a pool that has {now} and may have {most}: maxSize of its properties"
        )
    }

    /// More memory, which is counted. If there is none, what the pool keeps may be what is missing.
    fn more(&self, context: &Context, kind: Kind, size: usize) -> Answer<Arc<Allocation>> {
        self.grow(size as u64)?;
        let made = context.alloc(kind, size).or_else(|error| {
            self.release(|_| false, 0);
            if error.code == CUDA_ERROR_OUT_OF_MEMORY { context.alloc(kind, size) } else { Err(error) }
        });
        if made.is_err() {
            self.reserved.remove(size as u64);
        }
        made
    }

    /// Keeps freed memory, or ends it if that is more than the pool may keep.
    fn keep(&self, freed: Free) {
        let may = self.settings.lock()[CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as usize];
        if self.reserved.now.load(Ordering::Relaxed) <= may {
            self.free.lock().push(freed);
        } else {
            self.reserved.remove(freed.memory.size);
        }
    }

    /// Ends freed memory that is wanted no more. libtegrarm is called when the lock is not held any more.
    fn release(&self, wanted: impl Fn(&Free) -> bool, keep: u64) {
        let mut gone = Vec::new();
        self.free.lock().retain(|one| {
            let stays = self.reserved.now.load(Ordering::Relaxed) <= keep || wanted(one);
            if !stays {
                self.reserved.remove(one.memory.size);
                gone.push(one.memory.clone());
            }
            stays
        });
        drop(gone);
    }
}

/// Ends the freed memory of a context.
pub fn forget(context: usize) {
    for pool in POOLS.all() {
        pool.release(|one| one.memory.context != context, 0);
    }
}

/// Counts that memory is not in use any more, if it came from a pool.
pub fn ended(memory: &Allocation) {
    if let Kind::Pool(pool) = memory.kind
        && let Some(pool) = POOLS.find(pool)
    {
        pool.used.remove(memory.size);
        pool.reserved.remove(memory.size);
    }
}

/// The pool of the device with which a program starts.
fn default_pool() -> Answer<usize> {
    static DEFAULT: Mutex<usize> = Mutex::new(0);
    let mut handle = DEFAULT.lock();
    if *handle == 0 {
        *handle = POOLS.add(Arc::new(Pool::new(true, 0)))?;
    }
    Ok(*handle)
}

/// The pool that cuDeviceSetMemPool chose, or 0.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

fn chosen() -> Answer<usize> {
    match CHOSEN.load(Ordering::Relaxed) {
        handle if POOLS.find(handle).is_some() => Ok(handle),
        _ => default_pool(),
    }
}

pub mod rows {
    //! The functions of pools.

    use super::*;
    use crate::device::check_device;
    use crate::pointers::{Location, Ptr};
    use crate::structures::{AccessDescription, PoolProperties};
    use std::ffi::c_void;

    pub fn cuMemAllocAsync(address: Ptr<u64>, size: usize, stream: usize) -> Answer {
        cuMemAllocFromPoolAsync(address, size, chosen()?, stream)
    }

    pub fn cuMemAllocFromPoolAsync(address: Ptr<u64>, size: usize, pool: usize, stream: usize) -> Answer {
        address.present("dptr")?;
        let (context, stream) = stream_of(stream)?;
        capturing::forbid(&stream)?;
        let found = POOLS.get(pool)?;
        context.alive()?;
        let made = match found.again(&context, &stream, size as u64) {
            Some(made) => allocations::restore(made),
            None => found.more(&context, Kind::Pool(pool), size)?,
        };
        found.used.add(made.size);
        address.set(made.address, "dptr")
    }

    pub fn cuMemFreeAsync(address: u64, stream: usize) -> Answer {
        let (context, stream) = stream_of(stream)?;
        capturing::forbid(&stream)?;
        let can = |kind| matches!(kind, Kind::Device | Kind::Managed(_) | Kind::Pool(_));
        let Some(gone) = allocations::remove(address, can) else {
            fail!(CUDA_ERROR_INVALID_VALUE, "{address:#x} is not the address of an allocation")
        };
        // libtegrarm itself keeps memory until the work that the device has now has finished: so nothing waits here.
        let fence = context.submit(&stream, |queue| queue.fence());
        match (&fence, POOLS.find(if let Kind::Pool(pool) = gone.kind { pool } else { 0 })) {
            (Ok(fence), Some(pool)) if gone.context == context.handle => {
                pool.used.remove(gone.size);
                pool.keep(Free { memory: gone, stream: stream.id, fence: *fence });
            }
            _ => ended(&gone),
        }
        fence.map(drop)
    }

    pub fn cuMemPoolCreate(pool: Ptr<usize>, properties: Ptr<c_void>) -> Answer {
        pool.present("pool")?;
        let wanted = properties.cast::<PoolProperties>().get("poolProps")?;
        check_properties(&wanted)?;
        pool.set(POOLS.add(Arc::new(Pool::new(false, wanted.max_size as u64)))?, "pool")
    }

    /// Fails unless there can be such a pool. The attributes of the device say the same.
    fn check_properties(wanted: &PoolProperties) -> Answer {
        let of_host = CU_MEM_LOCATION_TYPE_HOST..=CU_MEM_LOCATION_TYPE_HOST_NUMA;
        match wanted.allocation_type {
            CU_MEM_ALLOCATION_TYPE_PINNED => {}
            CU_MEM_ALLOCATION_TYPE_MANAGED => fail!(
                CUDA_ERROR_NOT_SUPPORTED,
                "a pool of managed memory: CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS is 0"
            ),
            other => fail!(CUDA_ERROR_INVALID_VALUE, "the type {other} of a pool's allocations"),
        }
        match wanted.location.kind {
            CU_MEM_LOCATION_TYPE_DEVICE => check_device(wanted.location.id)?,
            kind if of_host.contains(&kind) && wanted.handle_types == CU_MEM_HANDLE_TYPE_NONE => fail!(
                CUDA_ERROR_NOT_SUPPORTED,
                "a pool of the host's memory: CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED is 0"
            ),
            CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN => {
                fail!(CUDA_ERROR_NOT_SUPPORTED, "a pool of one domain: CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT is 0")
            }
            other => fail!(CUDA_ERROR_INVALID_VALUE, "the type {other} of a pool's location"),
        }
        if wanted.handle_types != CU_MEM_HANDLE_TYPE_NONE {
            fail!(
                CUDA_ERROR_NOT_SUPPORTED,
                "a pool with handles for other processes: CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES is 0"
            );
        }
        if wanted.usage != 0 {
            fail!(
                CUDA_ERROR_NOT_SUPPORTED,
                "a pool for the engine that decompresses: CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK is 0"
            );
        }
        Ok(())
    }

    pub fn cuMemPoolDestroy(pool: usize) -> Answer {
        if POOLS.get(pool)?.is_default {
            fail!(CUDA_ERROR_INVALID_VALUE, "the default pool cannot be destroyed");
        }
        // What was allocated from it stays until it is freed.
        POOLS.remove(pool).map(drop)
    }

    pub fn cuMemPoolTrimTo(pool: usize, keep: usize) -> Answer {
        POOLS.get(pool)?.release(|_| false, keep as u64);
        Ok(())
    }

    pub fn cuMemPoolSetAttribute(pool: usize, attribute: u32, value: Ptr<c_void>) -> Answer {
        let pool = POOLS.get(pool)?;
        match attribute {
            CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES..=CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => {
                pool.settings.lock()[attribute as usize] = value.cast::<u32>().get("value")?.into();
                Ok(())
            }
            CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => {
                let threshold = value.cast::<u64>().get("value")?;
                pool.settings.lock()[attribute as usize] = threshold;
                pool.release(|_| false, threshold);
                Ok(())
            }
            CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH if value.cast::<u64>().get("value")? == 0 => {
                pool.reserved.forget();
                Ok(())
            }
            CU_MEMPOOL_ATTR_USED_MEM_HIGH if value.cast::<u64>().get("value")? == 0 => {
                pool.used.forget();
                Ok(())
            }
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {attribute} of a pool cannot have this value"),
        }
    }

    pub fn cuMemPoolGetAttribute(pool: usize, attribute: u32, value: Ptr<c_void>) -> Answer {
        let pool = POOLS.get(pool)?;
        let number = match attribute {
            CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES..=CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => {
                return value.cast::<u32>().set(pool.settings.lock()[attribute as usize] as u32, "value");
            }
            CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => pool.settings.lock()[attribute as usize],
            CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT => pool.reserved.now.load(Ordering::Relaxed),
            CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => pool.reserved.most.load(Ordering::Relaxed),
            CU_MEMPOOL_ATTR_USED_MEM_CURRENT => pool.used.now.load(Ordering::Relaxed),
            CU_MEMPOOL_ATTR_USED_MEM_HIGH => pool.used.most.load(Ordering::Relaxed),
            CU_MEMPOOL_ATTR_MAX_POOL_SIZE => pool.most,
            CU_MEMPOOL_ATTR_ALLOCATION_TYPE..=CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID => {
                return value.cast::<u32>().set(of_every_pool(attribute), "value");
            }
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {attribute} of a pool"),
        };
        value.cast::<u64>().set(number, "value")
    }

    /// Attributes that are the same for all pools: they have pinned memory of the device, in no domain, for this process alone.
    fn of_every_pool(attribute: u32) -> u32 {
        match attribute {
            CU_MEMPOOL_ATTR_ALLOCATION_TYPE => CU_MEM_ALLOCATION_TYPE_PINNED,
            CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES => CU_MEM_HANDLE_TYPE_NONE,
            CU_MEMPOOL_ATTR_LOCATION_TYPE => CU_MEM_LOCATION_TYPE_DEVICE,
            CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID => -1i32 as u32,
            // The number of the device, and whether there is an engine that decompresses.
            _ => 0,
        }
    }

    pub fn cuMemPoolSetAccess(pool: usize, list: Ptr<c_void>, count: usize) -> Answer {
        POOLS.get(pool)?;
        for wanted in list.cast::<AccessDescription>().list(count, "map")? {
            if wanted.location.kind != CU_MEM_LOCATION_TYPE_DEVICE || wanted.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            {
                fail!(
                    CUDA_ERROR_INVALID_VALUE,
                    "the one device reads and writes the memory of its pools, and nobody else does"
                );
            }
            check_device(wanted.location.id)?;
        }
        Ok(())
    }

    pub fn cuMemPoolGetAccess(flags: Ptr<u32>, pool: usize, location: Ptr<c_void>) -> Answer {
        POOLS.get(pool)?;
        let location = location.cast::<Location>().get("location")?;
        let seen = location.kind == CU_MEM_LOCATION_TYPE_DEVICE && location.id == 0;
        flags.set(if seen { CU_MEM_ACCESS_FLAGS_PROT_READWRITE } else { CU_MEM_ACCESS_FLAGS_PROT_NONE }, "flags")
    }

    pub fn cuDeviceGetDefaultMemPool(pool: Ptr<usize>, device: i32) -> Answer {
        check_device(device)?;
        pool.set(default_pool()?, "pool_out")
    }

    /// Fails if there is no device with this number: with the result that these functions have for it.
    fn the_device(device: i32) -> Answer {
        check_device(device).map_err(|error| match error.code {
            CUDA_ERROR_INVALID_DEVICE => Error { code: CUDA_ERROR_INVALID_VALUE, ..error },
            _ => error,
        })
    }

    pub fn cuDeviceGetMemPool(pool: Ptr<usize>, device: i32) -> Answer {
        the_device(device)?;
        pool.set(chosen()?, "pool")
    }

    pub fn cuDeviceSetMemPool(device: i32, pool: usize) -> Answer {
        the_device(device)?;
        POOLS.get(pool)?;
        CHOSEN.store(pool, Ordering::Relaxed);
        Ok(())
    }
}
