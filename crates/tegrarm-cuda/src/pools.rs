//! Memory in the order of streams, and its pools.
//!
//! An allocation is made at once, and a free takes place when the stream comes to it: that is what CUDA promises, although a pool could
//! give the memory to the next allocation without libtegrarm.

use crate::allocations::{self, Kind};
use crate::captures;
use crate::handles::Handles;
use crate::memory::alloc;
use crate::numbers::*;
use crate::result::{Answer, fail};
use crate::streams;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// All pools.
static POOLS: Handles<Pool> = Handles::new(4, "memory pool", CUDA_ERROR_INVALID_VALUE);

/// A pool.
struct Pool {
    /// The values of the attributes that can be set: the numbers of `CUmemPool_attribute`.
    settings: Mutex<[u64; 5]>,
    used: AtomicU64,
    most: AtomicU64,
    is_default: bool,
}

impl Pool {
    fn new(is_default: bool) -> Pool {
        // Reuse is allowed in every way at first, and the threshold is 0, as in CUDA.
        Pool { settings: Mutex::new([0, 1, 1, 1, 0]), used: AtomicU64::new(0), most: AtomicU64::new(0), is_default }
    }

    fn add(&self, size: u64) {
        let now = self.used.fetch_add(size, Ordering::Relaxed) + size;
        self.most.fetch_max(now, Ordering::Relaxed);
    }
}

/// Counts that memory is not in use any more, if it came from a pool.
pub fn ended(memory: &allocations::Allocation) {
    if let Kind::Pool(pool) = memory.kind
        && let Some(pool) = POOLS.find(pool)
    {
        pool.used.fetch_sub(memory.size, Ordering::Relaxed);
    }
}

/// The pool of the device with which a program starts.
fn default_pool() -> Answer<usize> {
    static DEFAULT: Mutex<usize> = Mutex::new(0);
    let mut handle = DEFAULT.lock();
    if *handle == 0 {
        *handle = POOLS.add(Arc::new(Pool::new(true)))?;
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
        let (context, stream) = streams::find(stream)?;
        captures::forbid(&stream)?;
        let found = POOLS.get(pool)?;
        let made = alloc(&context, Kind::Pool(pool), size)?;
        found.add(made.size);
        address.set(made.address, "dptr")
    }

    pub fn cuMemFreeAsync(address: u64, stream: usize) -> Answer {
        let (context, stream) = streams::find(stream)?;
        captures::forbid(&stream)?;
        let can = |kind| matches!(kind, Kind::Device | Kind::Managed(_) | Kind::Pool(_));
        let Some(gone) = allocations::remove(address, can) else {
            fail!(CUDA_ERROR_INVALID_VALUE, "{address:#x} is not the address of an allocation")
        };
        ended(&gone);
        // libtegrarm itself keeps the memory until the work that the device has now has finished: so nothing waits here.
        context.submit(&stream, |queue| queue.fence())?;
        drop(gone);
        Ok(())
    }

    pub fn cuMemPoolCreate(pool: Ptr<usize>, properties: Ptr<c_void>) -> Answer {
        pool.present("pool")?;
        crate::driver::initialized()?;
        let wanted = properties.cast::<PoolProperties>().get("poolProps")?;
        if wanted.allocation_type != CU_MEM_ALLOCATION_TYPE_PINNED
            || wanted.location.kind != CU_MEM_LOCATION_TYPE_DEVICE
        {
            fail!(CUDA_ERROR_NOT_SUPPORTED, "a pool of other memory than pinned memory of the device");
        }
        check_device(wanted.location.id)?;
        if wanted.handle_types != CU_MEM_HANDLE_TYPE_NONE {
            fail!(CUDA_ERROR_NOT_SUPPORTED, "a pool whose memory other processes can use");
        }
        pool.set(POOLS.add(Arc::new(Pool::new(false)))?, "pool")
    }

    pub fn cuMemPoolDestroy(pool: usize) -> Answer {
        if POOLS.get(pool)?.is_default {
            fail!(CUDA_ERROR_INVALID_VALUE, "the default pool cannot be destroyed");
        }
        // What was allocated from it stays until it is freed.
        POOLS.remove(pool).map(drop)
    }

    pub fn cuMemPoolTrimTo(pool: usize, _keep: usize) -> Answer {
        // A pool keeps no free memory: there is never more than what is in use.
        POOLS.get(pool).map(drop)
    }

    pub fn cuMemPoolSetAttribute(pool: usize, attribute: u32, value: Ptr<c_void>) -> Answer {
        let pool = POOLS.get(pool)?;
        match attribute {
            CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES..=CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => {
                pool.settings.lock()[attribute as usize] = value.cast::<u32>().get("value")?.into();
                Ok(())
            }
            CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => {
                pool.settings.lock()[attribute as usize] = value.cast::<u64>().get("value")?;
                Ok(())
            }
            CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH | CU_MEMPOOL_ATTR_USED_MEM_HIGH
                if value.cast::<u64>().get("value")? == 0 =>
            {
                pool.most.store(pool.used.load(Ordering::Relaxed), Ordering::Relaxed);
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
            CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT | CU_MEMPOOL_ATTR_USED_MEM_CURRENT => {
                pool.used.load(Ordering::Relaxed)
            }
            CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH | CU_MEMPOOL_ATTR_USED_MEM_HIGH => pool.most.load(Ordering::Relaxed),
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {attribute} of a pool"),
        };
        value.cast::<u64>().set(number, "value")
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

    pub fn cuDeviceGetMemPool(pool: Ptr<usize>, device: i32) -> Answer {
        check_device(device)?;
        pool.set(chosen()?, "pool")
    }

    pub fn cuDeviceSetMemPool(device: i32, pool: usize) -> Answer {
        check_device(device)?;
        POOLS.get(pool)?;
        CHOSEN.store(pool, Ordering::Relaxed);
        Ok(())
    }
}
