//! What a program does with contexts: their ends, the stacks of threads, the primary context, limits and preferences.

use crate::allocations;
use crate::arrays;
use crate::captures;
use crate::capturing;
use crate::context::{CONTEXTS, Context, PRIMARY, context, current, current_handle};
use crate::device::check_device;
use crate::events;
use crate::libraries;
use crate::modules;
use crate::numbers::*;
use crate::pointers::Ptr;
use crate::pools;
use crate::result::{Answer, fail};
use crate::stack;
use crate::structures::ContextParameters;
use crate::virtual_memory;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// The flags that a context can have.
const FLAGS: u32 = CU_CTX_SCHED_MASK
    | CU_CTX_MAP_HOST
    | CU_CTX_LMEM_RESIZE_TO_MAX
    | CU_CTX_COREDUMP_ENABLE
    | CU_CTX_USER_COREDUMP_ENABLE
    | CU_CTX_SYNC_MEMOPS;

fn check_flags(flags: u32) -> Answer {
    if flags & !FLAGS != 0 || (flags & CU_CTX_SCHED_MASK).count_ones() > 1 {
        fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of a context");
    }
    Ok(())
}

/// The limits that libtegrarm has, and their numbers there (`enum tegrarm_limit`).
const OWN: [(u32, u32); 3] = [(CU_LIMIT_STACK_SIZE, 0), (CU_LIMIT_MALLOC_HEAP_SIZE, 1), (CU_LIMIT_PRINTF_FIFO_SIZE, 2)];
/// Limits without an effect, which CUDA calls hints, or which are about kernels that launch kernels: what they are at first.
const HINTS: [(u32, usize); 4] = [
    (CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2),
    (CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048),
    (CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64),
    (CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0),
];

/// Ends a context with everything that belongs to it.
fn end(handle: usize) -> Answer {
    let context = CONTEXTS.remove(handle)?;
    context.on_stack.close_and_wait();
    let _ = context.synchronize();
    captures::forget(handle);
    modules::forget(handle);
    events::forget(handle);
    context.forget_streams();
    virtual_memory::forget(handle);
    arrays::forget(handle);
    pools::forget(handle);
    allocations::forget(handle);
    stack::change(|stack| stack.retain(|at| at.handle != handle));
    Ok(())
}

pub mod rows {
    //! The functions of contexts.

    use super::*;

    pub fn cuCtxCreate_v2(pctx: Ptr<usize>, flags: u32, dev: i32) -> Answer {
        create(pctx, flags, dev, 3020)
    }

    pub fn cuCtxCreate_v3(pctx: Ptr<usize>, affinity: Ptr<c_void>, count: i32, flags: u32, dev: i32) -> Answer {
        if (count == 0) != affinity.is_null() {
            fail!(CUDA_ERROR_INVALID_VALUE, "{count} affinities at {:#x}", affinity.address());
        }
        if count != 0 {
            // cuDeviceGetExecAffinitySupport says so too.
            fail!(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "a context for a part of the SMs, which needs MPS");
        }
        create(pctx, flags, dev, 11040)
    }

    pub fn cuCtxCreate_v4(pctx: Ptr<usize>, params: Ptr<c_void>, flags: u32, dev: i32) -> Answer {
        if !params.is_null() {
            check_parameters(params.cast::<ContextParameters>().get("ctxCreateParams")?)?;
        }
        create(pctx, flags, dev, 12050)
    }

    fn check_parameters(given: ContextParameters) -> Answer {
        match (given.affinities, given.affinity_count, given.graphics) {
            (0, 0, 0) => Ok(()),
            (0, _, 0) | (1.., _, 1..) => fail!(CUDA_ERROR_INVALID_VALUE, "{given:?} contradicts itself"),
            _ => fail!(CUDA_ERROR_NOT_SUPPORTED, "{given:?}: a part of the SMs, or graphics"),
        }
    }

    fn create(pctx: Ptr<usize>, flags: u32, dev: i32, version: u32) -> Answer {
        check_device(dev)?;
        pctx.present("pctx")?;
        check_flags(flags)?;
        let context = Context::make(flags, version, false)?;
        if let Err(error) = libraries::enter(context.handle) {
            end(context.handle)?;
            return Err(error);
        }
        stack::change(|stack| stack.push(context.on_stack.clone()));
        pctx.set(context.handle, "pctx")
    }

    pub fn cuCtxDestroy_v2(ctx: usize) -> Answer {
        if CONTEXTS.get(ctx)?.primary {
            fail!(CUDA_ERROR_INVALID_CONTEXT, "the primary context ends with cuDevicePrimaryCtxRelease");
        }
        end(ctx)
    }

    pub fn cuCtxAttach(pctx: Ptr<usize>, flags: u32) -> Answer {
        if flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "flags {flags:#x}");
        }
        pctx.set(current()?.handle, "pctx")
    }

    pub fn cuCtxDetach(ctx: usize) -> Answer {
        context(ctx).map(drop)
    }

    pub fn cuCtxPushCurrent_v2(ctx: usize) -> Answer {
        let context = CONTEXTS.get(ctx)?;
        stack::change(|stack| stack.push(context.on_stack.clone()));
        Ok(())
    }

    pub fn cuCtxPopCurrent_v2(pctx: Ptr<usize>) -> Answer {
        match stack::change(Vec::pop) {
            Some(context) => {
                pctx.set_any(context.handle);
                Ok(())
            }
            None => fail!(CUDA_ERROR_INVALID_CONTEXT, "this thread's stack of contexts is empty"),
        }
    }

    pub fn cuCtxSetCurrent(ctx: usize) -> Answer {
        let context = if ctx == 0 { None } else { Some(CONTEXTS.get(ctx)?.on_stack.clone()) };
        stack::change(|stack| {
            stack.pop();
            stack.extend(context);
        });
        Ok(())
    }

    pub fn cuCtxGetCurrent(pctx: Ptr<usize>) -> Answer {
        pctx.set(current_handle(), "pctx")
    }

    pub fn cuCtxGetDevice(device: Ptr<i32>) -> Answer {
        current()?;
        device.set(0, "device")
    }

    pub fn cuCtxGetDevice_v2(device: Ptr<i32>, ctx: usize) -> Answer {
        context(ctx)?;
        device.set(0, "device")
    }

    pub fn cuCtxGetFlags(flags: Ptr<u32>) -> Answer {
        flags.set(current()?.flags.load(Ordering::Relaxed), "flags")
    }

    pub fn cuCtxSetFlags(flags: u32) -> Answer {
        check_flags(flags)?;
        current()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    pub fn cuCtxGetId(ctx: usize, id: Ptr<u64>) -> Answer {
        id.set(context(ctx)?.id, "ctxId")
    }

    pub fn cuCtxGetApiVersion(ctx: usize, version: Ptr<u32>) -> Answer {
        version.set(context(ctx)?.version, "version")
    }

    pub fn cuCtxSynchronize() -> Answer {
        cuCtxSynchronize_v2(0)
    }

    pub fn cuCtxSynchronize_v2(ctx: usize) -> Answer {
        let context = context(ctx)?;
        capturing::forbid_in(context.handle)?;
        context.synchronize()
    }

    pub fn cuDevicePrimaryCtxRetain(pctx: Ptr<usize>, dev: i32) -> Answer {
        check_device(dev)?;
        pctx.present("pctx")?;
        let mut primary = PRIMARY.lock();
        let handle = primary.retain()?;
        if let Err(error) = libraries::enter(handle) {
            primary.users -= 1;
            return if primary.users == 0 { end(handle).and(Err(error)) } else { Err(error) };
        }
        pctx.set(handle, "pctx")
    }

    pub fn cuDevicePrimaryCtxRelease_v2(dev: i32) -> Answer {
        check_device(dev)?;
        let mut primary = PRIMARY.lock();
        if primary.users == 0 || CONTEXTS.find(primary.handle).is_none() {
            fail!(CUDA_ERROR_INVALID_CONTEXT, "nobody retains the primary context");
        }
        primary.users -= 1;
        if primary.users == 0 { end(primary.handle) } else { Ok(()) }
    }

    pub fn cuDevicePrimaryCtxReset_v2(dev: i32) -> Answer {
        check_device(dev)?;
        let mut primary = PRIMARY.lock();
        primary.users = 0;
        if CONTEXTS.find(primary.handle).is_some() { end(primary.handle) } else { Ok(()) }
    }

    pub fn cuDevicePrimaryCtxSetFlags_v2(dev: i32, flags: u32) -> Answer {
        check_device(dev)?;
        check_flags(flags)?;
        let mut primary = PRIMARY.lock();
        primary.flags = flags;
        if let Some(context) = CONTEXTS.find(primary.handle) {
            context.flags.store(flags, Ordering::Relaxed);
        }
        Ok(())
    }

    pub fn cuDevicePrimaryCtxGetState(dev: i32, flags: Ptr<u32>, active: Ptr<i32>) -> Answer {
        check_device(dev)?;
        let primary = PRIMARY.lock();
        flags.present("flags")?;
        active.set(CONTEXTS.find(primary.handle).is_some().into(), "active")?;
        flags.set(primary.flags, "flags")
    }

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

    pub fn cuCtxEnablePeerAccess(peer: usize, flags: u32) -> Answer {
        if flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of cuCtxEnablePeerAccess");
        }
        if CONTEXTS.get(peer)?.handle == current()?.handle {
            fail!(CUDA_ERROR_INVALID_CONTEXT, "the current context is no peer of itself");
        }
        fail!(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "there is one device, and so no peer")
    }

    pub fn cuCtxDisablePeerAccess(peer: usize) -> Answer {
        current()?;
        CONTEXTS.get(peer)?;
        fail!(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "there is one device, and so no peer")
    }
}
