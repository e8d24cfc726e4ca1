//! Contexts: a device of libtegrarm, with everything that a program makes on it. Each thread has a stack of them.

use crate::allocations;
use crate::captures;
use crate::handles::Handles;
use crate::machine::{Device, FOREVER, Queue};
use crate::numbers::*;
use crate::result::{Answer, Error, fail};
use crate::stack;
use crate::streams::{Kind, Order, STREAMS, Stream};
use crate::structures::ContextParameters;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// All contexts.
pub static CONTEXTS: Handles<Context> = Handles::new(1, "context", CUDA_ERROR_INVALID_CONTEXT);
/// The primary context of the only GPU.
static PRIMARY: Mutex<Primary> = Mutex::new(Primary { users: 0, flags: 0, handle: 0 });

struct Primary {
    users: u32,
    flags: u32,
    handle: usize,
}

/// The most queues that a context takes from the GPU. More streams than that share them, which only makes them wait more.
const QUEUES: usize = 24;

/// A context.
pub struct Context {
    /// Its handle.
    pub handle: usize,
    /// The number that cuCtxGetId gives.
    pub id: u64,
    /// Whether it is the primary context.
    pub primary: bool,
    /// The flags that it was made with.
    pub flags: AtomicU32,
    /// The version of the interface that it was made with.
    pub version: u32,
    /// The preferences of cuCtxSetCacheConfig and cuCtxSetSharedMemConfig, which the GPU does not need.
    pub cache: AtomicU32,
    /// See `cache`.
    pub banks: AtomicU32,
    /// Limits without an effect: the number, and the value that was set.
    pub limits: Mutex<Vec<(u32, usize)>>,
    order: Mutex<Order>,
    sticky: AtomicU32,
    queues: Mutex<Vec<Weak<Queue>>>,
    /// What the stacks of threads have of it.
    pub on_stack: Arc<stack::Context>,
    /// The last field, so that everything else ends before.
    pub device: Device,
}

impl Context {
    /// Makes a context and gives it a handle.
    fn make(flags: u32, version: u32, primary: bool) -> Answer<Arc<Context>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        crate::driver::initialized()?;
        let device = Device::open(0)?;
        let queue = Arc::new(device.queue()?);
        let (_, context) = CONTEXTS.add_with(|handle| {
            let legacy = Arc::new(Stream::new(1, handle, Kind::Legacy, 0, queue));
            Context {
                handle,
                id: NEXT.fetch_add(1, Ordering::Relaxed),
                primary,
                flags: AtomicU32::new(flags),
                version,
                cache: AtomicU32::new(CU_FUNC_CACHE_PREFER_NONE),
                banks: AtomicU32::new(CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE),
                limits: Mutex::default(),
                order: Mutex::new(Order { streams: Vec::new(), legacy: Some(legacy.clone()) }),
                sticky: AtomicU32::new(CUDA_SUCCESS),
                queues: Mutex::default(),
                on_stack: Arc::new(stack::Context::new(handle, &device, legacy)),
                device,
            }
        })?;
        Ok(context)
    }

    /// Ends a context with everything that belongs to it.
    fn end(handle: usize) -> Answer {
        let context = CONTEXTS.remove(handle)?;
        context.on_stack.close_and_wait();
        let _ = context.synchronize();
        captures::forget(handle);
        crate::modules::forget(handle);
        crate::events::forget(handle);
        STREAMS.remove_all(|stream| stream.context == handle);
        *context.order.lock() = Order::default();
        allocations::forget(handle);
        stack::change(|stack| stack.retain(|at| at.handle != handle));
        Ok(())
    }

    /// Fails if a fault stopped the context before.
    pub fn alive(&self) -> Answer {
        match self.sticky.load(Ordering::Relaxed) {
            CUDA_SUCCESS => Ok(()),
            code => Err(Error::plain(code)),
        }
    }

    /// Looks at a failure of libtegrarm: if a fault stopped the device, the context keeps its error from now on.
    pub fn told<T>(&self, answer: Answer<T>) -> Answer<T> {
        match answer {
            Err(error) if error.code == CUDA_ERROR_LAUNCH_FAILED => Err(self.stopped(error)),
            other => other,
        }
    }

    #[cold]
    fn stopped(&self, error: Error) -> Error {
        let Ok(Some(fault)) = self.device.fault() else { return error };
        let code = crate::faults::result(&fault);
        let first = self.sticky.compare_exchange(CUDA_SUCCESS, code, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            self.on_stack.close();
        }
        Error::new(first.err().unwrap_or(code), fault.sentence)
    }

    /// The legacy default stream.
    pub fn legacy(&self) -> Answer<Arc<Stream>> {
        self.order.lock().legacy.clone().ok_or_else(|| Error::plain(CUDA_ERROR_CONTEXT_IS_DESTROYED))
    }

    /// A queue for a new stream, with a priority of libtegrarm.
    pub fn queue(&self, priority: u32) -> Answer<Arc<Queue>> {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        if queues.len() < QUEUES {
            match Queue::new(&self.device, priority) {
                Ok(queue) => {
                    let queue = Arc::new(queue);
                    queues.push(Arc::downgrade(&queue));
                    return Ok(queue);
                }
                // The GPU has no channel left: a queue is shared.
                Err(error) if error.code != CUDA_ERROR_OUT_OF_MEMORY || queues.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        let least = queues.iter().filter_map(Weak::upgrade).min_by_key(Arc::strong_count);
        least.ok_or_else(|| Error::new(CUDA_ERROR_OUT_OF_MEMORY, "the GPU has no channel for a stream".to_owned()))
    }

    /// Adds a stream. Those that a program destroyed, and that have finished since, leave.
    pub fn add(&self, stream: Arc<Stream>) {
        if stream.kind == Kind::Blocking {
            // From now on, a launch on the legacy default stream has to wait for this stream.
            self.on_stack.close_and_wait();
        }
        let mut order = self.order.lock();
        let gone = order.retain(|other| {
            let newest = other.newest.load(Ordering::Acquire);
            other.is_open() || (newest != 0 && !self.device.passed(newest).unwrap_or(true))
        });
        order.streams.push(stream);
        self.on_stack.open(gone);
    }

    /// Removes a stream. Its work goes on.
    pub fn remove(&self, stream: &Arc<Stream>) {
        let gone = self.order.lock().retain(|other| !Arc::ptr_eq(other, stream));
        self.on_stack.open(gone);
    }

    /// All streams, with the legacy default stream.
    pub fn streams(&self) -> Vec<Arc<Stream>> {
        let order = self.order.lock();
        order.streams.iter().chain(&order.legacy).cloned().collect()
    }

    /// Gives a stream work: after the work of the legacy default stream, or, for that stream, after that of all streams that wait for it.
    pub fn submit(&self, stream: &Stream, work: impl FnOnce(&Queue) -> Answer<u64>) -> Answer<u64> {
        self.alive()?;
        captures::forbid(stream)?;
        // The lock is held until the work has its fence, so that the order of two threads is one order.
        let order = self.order.lock();
        self.told(order.before(stream).and_then(|()| {
            let fence = work(&stream.queue)?;
            // A launch of another thread may have taken the short way meanwhile.
            stream.newest.fetch_max(fence, Ordering::AcqRel);
            Ok(fence)
        }))
    }

    /// Waits until a stream has done everything that it was given, and everything that its next work would wait for.
    pub fn settle(&self, stream: &Stream) -> Answer {
        self.alive()?;
        captures::forbid(stream)?;
        for fence in self.pending(stream) {
            self.wait(fence)?;
        }
        Ok(())
    }

    /// Whether a stream has done everything.
    pub fn settled(&self, stream: &Stream) -> Answer<bool> {
        self.alive()?;
        captures::forbid(stream)?;
        for fence in self.pending(stream) {
            if !self.told(self.device.passed(fence))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The fences for which the next work of a stream would wait.
    fn pending(&self, stream: &Stream) -> Vec<u64> {
        let order = self.order.lock();
        let newest = |stream: &Stream| stream.newest.load(Ordering::Acquire);
        let mut fences = vec![newest(stream)];
        match stream.kind {
            Kind::Legacy => fences.extend(order.streams.iter().filter(|s| s.kind == Kind::Blocking).map(|s| newest(s))),
            Kind::Blocking => fences.extend(order.legacy.iter().map(|s| newest(s))),
            Kind::Free => {}
        }
        fences.retain(|fence| *fence != 0);
        fences
    }

    /// Waits for a fence.
    pub fn wait(&self, fence: u64) -> Answer {
        self.told(self.device.wait(fence, FOREVER))
    }

    /// Waits for everything.
    pub fn synchronize(&self) -> Answer {
        self.alive()?;
        for stream in self.streams() {
            let fence = stream.newest.load(Ordering::Acquire);
            if fence != 0 {
                self.wait(fence)?;
            }
        }
        Ok(())
    }
}

/// Forgets the contexts of the parent, in a child after fork(2). Its thread is the only one.
pub fn begin_anew() {
    stack::change(Vec::clear);
    *PRIMARY.lock() = Primary { users: 0, flags: 0, handle: 0 };
}

/// The handle of the thread's current context, or 0.
pub fn current_handle() -> usize {
    stack::current()
}

/// The thread's current context.
pub fn current() -> Answer<Arc<Context>> {
    crate::driver::initialized()?;
    match current_handle() {
        0 => fail!(CUDA_ERROR_INVALID_CONTEXT, "this thread has no current context: call cuCtxSetCurrent"),
        handle => match CONTEXTS.find(handle) {
            Some(context) => Ok(context),
            None => fail!(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context was destroyed"),
        },
    }
}

/// The context with this handle, or the current one if it is 0.
pub fn context(handle: usize) -> Answer<Arc<Context>> {
    crate::driver::initialized()?;
    if handle == 0 { current() } else { CONTEXTS.get(handle) }
}

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

pub mod rows {
    //! The functions of contexts.

    use super::*;
    use crate::device::check_device;
    use crate::pointers::Ptr;
    use std::ffi::c_void;

    pub fn cuCtxCreate_v2(pctx: Ptr<usize>, flags: u32, dev: i32) -> Answer {
        create(pctx, flags, dev, 3020)
    }

    pub fn cuCtxCreate_v3(pctx: Ptr<usize>, affinity: Ptr<c_void>, count: i32, flags: u32, dev: i32) -> Answer {
        if count != 0 || !affinity.is_null() {
            fail!(CUDA_ERROR_NOT_SUPPORTED, "a context for a part of the SMs, which needs MPS");
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
        stack::change(|stack| stack.push(context.on_stack.clone()));
        pctx.set(context.handle, "pctx")
    }

    pub fn cuCtxDestroy_v2(ctx: usize) -> Answer {
        crate::driver::initialized()?;
        if CONTEXTS.get(ctx)?.primary {
            fail!(CUDA_ERROR_INVALID_CONTEXT, "the primary context ends with cuDevicePrimaryCtxRelease");
        }
        Context::end(ctx)
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
        crate::driver::initialized()?;
        let context = CONTEXTS.get(ctx)?;
        stack::change(|stack| stack.push(context.on_stack.clone()));
        Ok(())
    }

    pub fn cuCtxPopCurrent_v2(pctx: Ptr<usize>) -> Answer {
        crate::driver::initialized()?;
        match stack::change(Vec::pop) {
            Some(context) => {
                pctx.set_any(context.handle);
                Ok(())
            }
            None => fail!(CUDA_ERROR_INVALID_CONTEXT, "this thread's stack of contexts is empty"),
        }
    }

    pub fn cuCtxSetCurrent(ctx: usize) -> Answer {
        crate::driver::initialized()?;
        let context = if ctx == 0 { None } else { Some(CONTEXTS.get(ctx)?.on_stack.clone()) };
        stack::change(|stack| {
            stack.pop();
            stack.extend(context);
        });
        Ok(())
    }

    pub fn cuCtxGetCurrent(pctx: Ptr<usize>) -> Answer {
        crate::driver::initialized()?;
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
        captures::forbid_in(&context)?;
        context.synchronize()
    }

    pub fn cuDevicePrimaryCtxRetain(pctx: Ptr<usize>, dev: i32) -> Answer {
        check_device(dev)?;
        pctx.present("pctx")?;
        let mut primary = PRIMARY.lock();
        if CONTEXTS.find(primary.handle).is_none() {
            *primary =
                Primary { users: 0, flags: primary.flags, handle: Context::make(primary.flags, 3020, true)?.handle };
        }
        primary.users += 1;
        pctx.set(primary.handle, "pctx")
    }

    pub fn cuDevicePrimaryCtxRelease_v2(dev: i32) -> Answer {
        check_device(dev)?;
        let mut primary = PRIMARY.lock();
        if primary.users == 0 || CONTEXTS.find(primary.handle).is_none() {
            fail!(CUDA_ERROR_INVALID_CONTEXT, "nobody retains the primary context");
        }
        primary.users -= 1;
        if primary.users == 0 { Context::end(primary.handle) } else { Ok(()) }
    }

    pub fn cuDevicePrimaryCtxReset_v2(dev: i32) -> Answer {
        check_device(dev)?;
        let mut primary = PRIMARY.lock();
        primary.users = 0;
        if CONTEXTS.find(primary.handle).is_some() { Context::end(primary.handle) } else { Ok(()) }
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
}
