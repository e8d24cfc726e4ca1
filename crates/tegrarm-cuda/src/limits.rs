//! Limits and preferences of contexts.

use crate::context::current;
use crate::numbers::*;
use crate::result::{Answer, fail};
use std::sync::atomic::Ordering;

/// The limits that libtegrarm has, and their numbers there (`enum tegrarm_limit`).
const OWN: [(u32, u32); 3] = [(CU_LIMIT_STACK_SIZE, 0), (CU_LIMIT_MALLOC_HEAP_SIZE, 1), (CU_LIMIT_PRINTF_FIFO_SIZE, 2)];
/// Limits without an effect, which CUDA calls hints, or which are about kernels that launch kernels: what they are at first.
const HINTS: [(u32, usize); 4] = [
    (CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2),
    (CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048),
    (CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64),
    (CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0),
];

pub mod rows {
    //! The functions of limits.

    use super::*;
    use crate::pointers::Ptr;

    pub fn cuCtxSetLimit(limit: u32, value: usize) -> Answer {
        let context = current()?;
        context.alive()?;
        if let Some((_, own)) = OWN.iter().find(|(number, _)| *number == limit) {
            return context.told(context.device.set_limit(*own, value as u64));
        }
        match HINTS.iter().find(|(number, _)| *number == limit) {
            Some((_, first)) if *first != 0 || value == 0 => {
                let mut set = context.limits.lock();
                set.retain(|(number, _)| *number != limit);
                set.push((limit, value));
                Ok(())
            }
            Some(_) => fail!(CUDA_ERROR_UNSUPPORTED_LIMIT, "the GPU has no persisting part of its L2 cache"),
            None if limit < CU_LIMIT_MAX => fail!(CUDA_ERROR_UNSUPPORTED_LIMIT, "the limit {limit}"),
            None => fail!(CUDA_ERROR_INVALID_VALUE, "the limit {limit}"),
        }
    }

    pub fn cuCtxGetLimit(value: Ptr<usize>, limit: u32) -> Answer {
        let context = current()?;
        if let Some((_, own)) = OWN.iter().find(|(number, _)| *number == limit) {
            return value.set(context.told(context.device.limit(*own))? as usize, "pvalue");
        }
        let set = context.limits.lock().iter().find(|(number, _)| *number == limit).map(|(_, value)| *value);
        match set.or_else(|| HINTS.iter().find(|(number, _)| *number == limit).map(|(_, first)| *first)) {
            Some(number) => value.set(number, "pvalue"),
            None if limit < CU_LIMIT_MAX => fail!(CUDA_ERROR_UNSUPPORTED_LIMIT, "the limit {limit}"),
            None => fail!(CUDA_ERROR_INVALID_VALUE, "the limit {limit}"),
        }
    }

    pub fn cuCtxSetCacheConfig(config: u32) -> Answer {
        if config > CU_FUNC_CACHE_PREFER_EQUAL {
            fail!(CUDA_ERROR_INVALID_VALUE, "the cache configuration {config}");
        }
        current()?.cache.store(config, Ordering::Relaxed);
        Ok(())
    }

    pub fn cuCtxGetCacheConfig(config: Ptr<u32>) -> Answer {
        config.set(current()?.cache.load(Ordering::Relaxed), "pconfig")
    }

    pub fn cuCtxSetSharedMemConfig(config: u32) -> Answer {
        if config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE {
            fail!(CUDA_ERROR_INVALID_VALUE, "the configuration {config} of shared memory");
        }
        // The banks of this architecture have four bytes, so that CUDA ignores it too.
        current().map(drop)
    }

    pub fn cuCtxGetSharedMemConfig(config: Ptr<u32>) -> Answer {
        config.set(current()?.banks.load(Ordering::Relaxed), "pConfig")
    }

    pub fn cuCtxResetPersistingL2Cache() -> Answer {
        current().map(drop)
    }
}
