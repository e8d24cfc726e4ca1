//! Contexts: a device of libtegrarm, with everything that a program makes on it. Each thread has a stack of them.

use crate::allocations;
use crate::capturing;
use crate::guard::per_thread_default;
use crate::handles::Handles;
use crate::machine::{self, Buffer, Device, FOREVER, Fault, Queue};
use crate::numbers::*;
use crate::order::{Kind, Order, PER_THREAD, STREAMS, Stream, priority_of_queue};
use crate::result::{Answer, Error, fail};
use crate::stack;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tegrarm_lock::Mutex;

/// All contexts.
pub static CONTEXTS: Handles<Context> = Handles::new(1, "context", CUDA_ERROR_INVALID_CONTEXT);
/// The primary context of the only GPU.
pub static PRIMARY: Mutex<Primary> = Mutex::new(Primary { users: 0, flags: 0, handle: 0, for_memory: false });

/// Who uses the primary context.
pub struct Primary {
    /// How often it was retained.
    pub users: u32,
    /// The flags that it has, or will have.
    pub flags: u32,
    /// Its handle, which may have ended.
    pub handle: usize,
    /// Whether the library itself is one of the users, for memory that a program makes without a context.
    for_memory: bool,
}

impl Primary {
    /// Adds a user. Returns the handle.
    pub fn retain(&mut self) -> Answer<usize> {
        if CONTEXTS.find(self.handle).is_none() {
            let handle = Context::make(self.flags, 3020, true)?.handle;
            *self = Primary { users: 0, flags: self.flags, handle, for_memory: false };
        }
        self.users += 1;
        Ok(self.handle)
    }
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
    pub fn make(flags: u32, version: u32, primary: bool) -> Answer<Arc<Context>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
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
        let code = result_of(&fault);
        let first = self.sticky.compare_exchange(CUDA_SUCCESS, code, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_ok() {
            self.on_stack.close();
        }
        Error::new(first.err().unwrap_or(code), fault.sentence)
    }

    /// Allocates memory.
    pub fn alloc(&self, kind: allocations::Kind, size: usize) -> Answer<Arc<allocations::Allocation>> {
        self.alive()?;
        if size == 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
        }
        let buffer = Buffer::alloc(&self.device, size as u64, 0)?;
        if matches!(kind, allocations::Kind::Managed(_)) && buffer.pointer as u64 != buffer.address {
            fail!(
                CUDA_ERROR_OUT_OF_MEMORY,
                "the process uses the addresses that managed memory would have for the GPU"
            );
        }
        Ok(allocations::add(self.handle, kind, buffer, 0, size as u64))
    }

    /// The context ends: it has no streams any more.
    pub fn forget_streams(&self) {
        STREAMS.remove_all(|stream| stream.context == self.handle);
        *self.order.lock() = Order::default();
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
        capturing::forbid(stream)?;
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
        capturing::forbid(stream)?;
        for fence in self.pending(stream) {
            self.wait(fence)?;
        }
        Ok(())
    }

    /// Whether a stream has done everything.
    pub fn settled(&self, stream: &Stream) -> Answer<bool> {
        self.alive()?;
        capturing::forbid(stream)?;
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

/// The result of CUDA for a fault. The numbers of causes are those of `enum tegrarm_fault_cause`.
fn result_of(fault: &Fault) -> u32 {
    match fault.cause {
        1 => CUDA_ERROR_ILLEGAL_ADDRESS,
        2 => match fault.warp_error & 0xFFFF {
            // The error numbers of the register, which docs/hardware/nvgpu-faults.md lists.
            0x02 => CUDA_ERROR_HARDWARE_STACK_ERROR,
            0x05 | 0x06 => CUDA_ERROR_INVALID_PC,
            0x08 | 0x09 | 0x0B | 0x0D => CUDA_ERROR_ILLEGAL_INSTRUCTION,
            0x0E | 0x12 | 0x17 | 0x20 => CUDA_ERROR_ILLEGAL_ADDRESS,
            0x0F => CUDA_ERROR_MISALIGNED_ADDRESS,
            0x10 => CUDA_ERROR_INVALID_ADDRESS_SPACE,
            _ => CUDA_ERROR_LAUNCH_FAILED,
        },
        4 => CUDA_ERROR_LAUNCH_TIMEOUT,
        8 => CUDA_ERROR_ASSERT,
        _ => CUDA_ERROR_LAUNCH_FAILED,
    }
}

/// Forgets the contexts of the parent, in a child after fork(2). Its thread is the only one.
pub fn begin_anew() {
    stack::change(Vec::clear);
    machine::begin_anew();
    *PRIMARY.lock() = Primary { users: 0, flags: 0, handle: 0, for_memory: false };
}

/// The handle of the thread's current context, or 0.
pub fn current_handle() -> usize {
    stack::current()
}

/// The thread's current context.
pub fn current() -> Answer<Arc<Context>> {
    match current_handle() {
        0 => fail!(CUDA_ERROR_INVALID_CONTEXT, "this thread has no current context: call cuCtxSetCurrent"),
        handle => match CONTEXTS.find(handle) {
            Some(context) => Ok(context),
            None => fail!(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context was destroyed"),
        },
    }
}

/// The thread's current context, or without one the primary context, which then stays until it is reset.
pub fn current_or_primary() -> Answer<Arc<Context>> {
    if current_handle() != 0 {
        return current();
    }
    let mut primary = PRIMARY.lock();
    if !primary.for_memory || CONTEXTS.find(primary.handle).is_none() {
        primary.retain()?;
        primary.for_memory = true;
    }
    CONTEXTS.get(primary.handle)
}

/// The context with this handle, or the current one if it is 0.
pub fn context(handle: usize) -> Answer<Arc<Context>> {
    if handle == 0 { current() } else { CONTEXTS.get(handle) }
}

/// The context and the stream that a handle means.
pub fn stream_of(handle: usize) -> Answer<(Arc<Context>, Arc<Stream>)> {
    if handle > PER_THREAD {
        let stream = STREAMS.get(handle)?;
        return Ok((context(stream.context)?, stream));
    }
    let context = current()?;
    let stream = if handle == PER_THREAD || handle == 0 && per_thread_default() {
        of_thread(&context)?
    } else {
        context.legacy()?
    };
    Ok((context, stream))
}

/// Waits until the stream that a handle means has done its work.
pub fn settle(handle: usize) -> Answer {
    let (context, stream) = stream_of(handle)?;
    context.settle(&stream)
}

thread_local! {
    /// The default streams of this thread. They end with it.
    static OWN: RefCell<Vec<Own>> = const { RefCell::new(Vec::new()) };
}

struct Own {
    stream: Arc<Stream>,
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(context) = CONTEXTS.find(self.stream.context) {
            context.remove(&self.stream);
        }
    }
}

/// This thread's default stream in a context.
fn of_thread(context: &Arc<Context>) -> Answer<Arc<Stream>> {
    if OWN.try_with(|_| ()).is_err() {
        fail!(CUDA_ERROR_INVALID_CONTEXT, "the thread ends, and its default streams have ended");
    }
    OWN.with_borrow_mut(|own| {
        if let Some(own) = own.iter().find(|own| own.stream.context == context.handle) {
            return Ok(own.stream.clone());
        }
        let queue = context.queue(priority_of_queue(0))?;
        let stream = Arc::new(Stream::new(PER_THREAD, context.handle, Kind::Blocking, 0, queue));
        context.add(stream.clone());
        own.push(Own { stream: stream.clone() });
        Ok(stream)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The errors of warps are those that docs/hardware/nvgpu-faults.md lists, of which the virtual Orin makes some only.
    #[test]
    fn each_fault_has_cudas_result() {
        let of = |cause, warp_error| result_of(&Fault { cause, warp_error, sentence: String::new() });
        let page = include_str!("../../../docs/hardware/nvgpu-faults.md");
        let table = page.split_once("| code | meaning |").and_then(|(_, rest)| rest.split_once("\n\n")).unwrap().0;
        let cells: Vec<&str> = table.split('|').map(|cell| cell.trim().trim_matches('*')).collect();
        let mut errors = HashMap::new();
        for pair in cells.windows(2).filter(|pair| pair[0].starts_with("0x")) {
            let codes = pair[0].split(", ").map(|code| u32::from_str_radix(&code[2..], 16).unwrap());
            errors.extend(codes.map(|code| (code, pair[1])));
        }
        assert_eq!(errors.len(), 16, "{errors:?}");
        for (code, meaning) in errors {
            let expected = match meaning {
                "API stack error" => CUDA_ERROR_HARDWARE_STACK_ERROR,
                "misaligned PC" | "PC overflow" => CUDA_ERROR_INVALID_PC,
                "misaligned register" | "register out of range" => CUDA_ERROR_ILLEGAL_INSTRUCTION,
                _ if meaning.starts_with("illegal instruction") => CUDA_ERROR_ILLEGAL_INSTRUCTION,
                "misaligned address" => CUDA_ERROR_MISALIGNED_ADDRESS,
                "invalid address space" => CUDA_ERROR_INVALID_ADDRESS_SPACE,
                _ if meaning.starts_with("texture") || meaning == "arrive" => CUDA_ERROR_LAUNCH_FAILED,
                "address out of range" | "invalid constant address (LDC)" | "MMU fault" | "MMU nack" => {
                    CUDA_ERROR_ILLEGAL_ADDRESS
                }
                other => panic!("{other}: a new row of the table"),
            };
            assert_eq!(of(2, code), expected, "{code:#x}: {meaning}");
            // Only the low half of the register is the error.
            assert_eq!(of(2, code | 0x24_0000), expected, "{code:#x}: {meaning}");
        }
        let results = [of(1, 0), of(3, 0), of(4, 0), of(5, 0), of(8, 0)];
        let by_cause = [
            CUDA_ERROR_ILLEGAL_ADDRESS,
            CUDA_ERROR_LAUNCH_FAILED,
            CUDA_ERROR_LAUNCH_TIMEOUT,
            CUDA_ERROR_LAUNCH_FAILED,
            CUDA_ERROR_ASSERT,
        ];
        assert_eq!(results, by_cause);
    }
}
