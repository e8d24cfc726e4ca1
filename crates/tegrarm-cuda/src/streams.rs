//! Streams: queues of a context, with the rules of CUDA's default streams.

use crate::context::{Context, current};
use crate::guard::per_thread_default;
use crate::handles::Handles;
use crate::machine::Queue;
use crate::numbers::*;
use crate::result::{Answer, fail};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The streams that programs made.
pub static STREAMS: Handles<Stream> = Handles::new(2, "stream", CUDA_ERROR_INVALID_HANDLE);

/// CU_STREAM_PER_THREAD of cuda.h. CU_STREAM_LEGACY is 1.
const PER_THREAD: usize = 2;

/// How a stream stands to the legacy default stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It is the legacy default stream.
    Legacy,
    /// It waits for the legacy default stream, which waits for it.
    Blocking,
    /// It has nothing to do with it.
    Free,
}

/// A stream.
pub struct Stream {
    /// Its handle, or that of a default stream.
    handle: usize,
    /// The handle of its context.
    pub context: usize,
    /// How it stands to the legacy default stream.
    pub kind: Kind,
    /// Its priority, as cuStreamCreateWithPriority takes it.
    pub priority: i32,
    /// The number that cuStreamGetId gives.
    pub id: u64,
    /// Where its work goes.
    pub queue: Arc<Queue>,
    /// The fence of its newest work, or 0.
    pub newest: AtomicU64,
    /// The fence of this stream for which the legacy default stream waits already.
    pub joined: AtomicU64,
    /// The fence of the legacy default stream for which this stream waits already.
    pub seen: AtomicU64,
}

impl Stream {
    /// A stream with a queue.
    pub fn new(handle: usize, context: usize, kind: Kind, priority: i32, queue: Arc<Queue>) -> Stream {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let [newest, joined, seen] = [const { AtomicU64::new(0) }; 3];
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Stream { handle, context, kind, priority, id, queue, newest, joined, seen }
    }
}

impl Stream {
    /// Whether a program can still give it work.
    pub fn is_open(&self) -> bool {
        self.handle <= PER_THREAD || STREAMS.find(self.handle).is_some()
    }
}

/// The streams of a context.
#[derive(Default)]
pub struct Order {
    /// All but the legacy default stream.
    pub streams: Vec<Arc<Stream>>,
    /// It is none when the context has ended.
    pub legacy: Option<Arc<Stream>>,
}

impl Order {
    /// Keeps the streams for which `stays` is true. Returns how many of the others wait for the legacy default stream.
    pub fn retain(&mut self, stays: impl Fn(&Arc<Stream>) -> bool) -> u32 {
        let blocking = |order: &Order| order.streams.iter().filter(|other| other.kind == Kind::Blocking).count();
        let before = blocking(self);
        self.streams.retain(stays);
        (before - blocking(self)) as u32
    }

    /// Lets the queue of a stream wait as the rules of the legacy default stream demand it.
    pub fn before(&self, stream: &Stream) -> Answer {
        let wait_for = |other: &Stream, seen: &AtomicU64| -> Answer {
            let newest = other.newest.load(Ordering::Acquire);
            if newest != 0 && newest != seen.swap(newest, Ordering::Relaxed) {
                stream.queue.after(newest)?;
            }
            Ok(())
        };
        match stream.kind {
            Kind::Legacy => {
                for other in self.streams.iter().filter(|other| other.kind == Kind::Blocking) {
                    wait_for(other, &other.joined)?;
                }
            }
            Kind::Blocking => {
                if let Some(legacy) = &self.legacy {
                    wait_for(legacy, &stream.seen)?;
                }
            }
            Kind::Free => {}
        }
        Ok(())
    }
}

/// The priorities: the lowest and the highest, as on an Orin.
pub const PRIORITIES: (i32, i32) = (0, -5);

/// The priority of libtegrarm for one of CUDA.
fn priority_of_queue(priority: i32) -> u32 {
    match priority {
        0.. => 0,
        -2..=-1 => 2,
        _ => 3,
    }
}

/// The context and the stream that a handle means.
pub fn find(handle: usize) -> Answer<(Arc<Context>, Arc<Stream>)> {
    if handle > PER_THREAD {
        let stream = STREAMS.get(handle)?;
        return Ok((crate::context::context(stream.context)?, stream));
    }
    let context = current()?;
    let stream = if handle == PER_THREAD || handle == 0 && per_thread_default() {
        of_thread(&context)?
    } else {
        context.legacy()?
    };
    Ok((context, stream))
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
        if let Some(context) = crate::context::CONTEXTS.find(self.stream.context) {
            context.remove(&self.stream);
        }
    }
}

/// This thread's default stream in a context.
fn of_thread(context: &Arc<Context>) -> Answer<Arc<Stream>> {
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

pub mod rows {
    //! The functions of streams.

    use super::*;
    use crate::captures;
    use crate::events;
    use crate::pointers::{Ptr, at, call_stream_callback};
    use crate::result::Error;
    use crate::works::{Work, give};

    pub fn cuStreamCreate(stream: Ptr<usize>, flags: u32) -> Answer {
        cuStreamCreateWithPriority(stream, flags, 0)
    }

    pub fn cuStreamCreateWithPriority(stream: Ptr<usize>, flags: u32, priority: i32) -> Answer {
        stream.present("phStream")?;
        if flags & !CU_STREAM_NON_BLOCKING != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of a stream");
        }
        let context = current()?;
        context.alive()?;
        // CUDA takes every number, and makes it one that exists.
        let priority = priority.clamp(PRIORITIES.1, PRIORITIES.0);
        let kind = if flags & CU_STREAM_NON_BLOCKING != 0 { Kind::Free } else { Kind::Blocking };
        let queue = context.queue(priority_of_queue(priority))?;
        let (handle, made) = STREAMS.add_with(|handle| Stream::new(handle, context.handle, kind, priority, queue))?;
        context.add(made);
        stream.set(handle, "phStream")
    }

    pub fn cuStreamDestroy_v2(stream: usize) -> Answer {
        if stream <= PER_THREAD {
            fail!(CUDA_ERROR_INVALID_HANDLE, "a default stream cannot be destroyed");
        }
        let stream = STREAMS.remove(stream)?;
        captures::leave(&stream);
        if let Some(context) = crate::context::CONTEXTS.find(stream.context) {
            // Its work goes on: whoever waits for the whole context waits for it too, so that it leaves when it has finished.
            if context.settled(&stream).unwrap_or(true) {
                context.remove(&stream);
            }
        }
        Ok(())
    }

    pub fn cuStreamQuery(stream: usize) -> Answer {
        let (context, stream) = find(stream)?;
        if context.settled(&stream)? { Ok(()) } else { Err(Error::plain(CUDA_ERROR_NOT_READY)) }
    }

    pub fn cuStreamSynchronize(stream: usize) -> Answer {
        let (context, stream) = find(stream)?;
        context.settle(&stream)
    }

    pub fn cuStreamWaitEvent(stream: usize, event: usize, flags: u32) -> Answer {
        if flags & !CU_EVENT_WAIT_EXTERNAL != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of cuStreamWaitEvent");
        }
        let (context, stream) = find(stream)?;
        let external = (flags & CU_EVENT_WAIT_EXTERNAL != 0).then_some(event);
        let event = events::EVENTS.get(event)?;
        if captures::wait(&stream, &event, external)? {
            return Ok(());
        }
        events::wait_in(&context, &stream, &event)
    }

    pub fn cuStreamAddCallback(stream: usize, callback: usize, user: Ptr<std::ffi::c_void>, flags: u32) -> Answer {
        if callback == 0 || flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "cuStreamAddCallback: the callback is NULL, or flags are not 0");
        }
        let (context, found) = find(stream)?;
        let user = user.address();
        let task = move |finished: bool| {
            let result = if finished { CUDA_SUCCESS } else { CUDA_ERROR_LAUNCH_FAILED };
            call_stream_callback(callback, stream, result, user);
        };
        context.submit(&found, |queue| queue.call(Box::new(task))).map(drop)
    }

    pub fn cuLaunchHostFunc(stream: usize, function: usize, user: Ptr<std::ffi::c_void>) -> Answer {
        if function == 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "fn is NULL");
        }
        let (context, stream) = find(stream)?;
        give(&context, &stream, &Work::Host { function, user: user.address() })
    }

    pub fn cuLaunchHostFunc_v2(stream: usize, function: usize, user: Ptr<std::ffi::c_void>, mode: u32) -> Answer {
        if mode > CU_HOST_TASK_SPINWAIT {
            fail!(CUDA_ERROR_INVALID_VALUE, "the mode {mode} of a host function");
        }
        cuLaunchHostFunc(stream, function, user)
    }

    pub fn cuStreamGetPriority(stream: usize, priority: Ptr<i32>) -> Answer {
        priority.set(find(stream)?.1.priority, "priority")
    }

    pub fn cuStreamGetFlags(stream: usize, flags: Ptr<u32>) -> Answer {
        let free = find(stream)?.1.kind == Kind::Free;
        flags.set(if free { CU_STREAM_NON_BLOCKING } else { CU_STREAM_DEFAULT }, "flags")
    }

    pub fn cuStreamGetId(stream: usize, id: Ptr<u64>) -> Answer {
        id.set(find(stream)?.1.id, "streamId")
    }

    pub fn cuStreamGetCtx(stream: usize, context: Ptr<usize>) -> Answer {
        context.set(find(stream)?.0.handle, "pctx")
    }

    pub fn cuStreamGetDevice(stream: usize, device: Ptr<i32>) -> Answer {
        find(stream)?;
        device.set(0, "device")
    }

    pub fn cuStreamCopyAttributes(to: usize, from: usize) -> Answer {
        find(to)?;
        find(from).map(drop)
    }

    /// The attributes of a stream, of which only the priority has an effect here.
    pub fn cuStreamGetAttribute(stream: usize, attribute: u32, value: Ptr<std::ffi::c_void>) -> Answer {
        let (_, stream) = find(stream)?;
        value.present("value_out")?;
        match attribute {
            CU_LAUNCH_ATTRIBUTE_PRIORITY => value.cast::<i32>().set(stream.priority, "value_out"),
            CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => value.cast::<u32>().set(CU_SYNC_POLICY_AUTO, "value_out"),
            CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => {
                value.cast::<u32>().set(CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT, "value_out")
            }
            _ => fail!(CUDA_ERROR_NOT_SUPPORTED, "the attribute {attribute} of a stream"),
        }
    }

    pub fn cuStreamSetAttribute(stream: usize, attribute: u32, value: Ptr<std::ffi::c_void>) -> Answer {
        let (_, stream) = find(stream)?;
        value.present("value")?;
        match attribute {
            CU_LAUNCH_ATTRIBUTE_PRIORITY if value.cast::<i32>().get("value")? == stream.priority => Ok(()),
            CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY
                if value.cast::<u32>().get("value")? <= CU_SYNC_POLICY_BLOCKING_SYNC =>
            {
                Ok(())
            }
            // There is no cache whose lines a window would keep: it is a wish without an effect.
            CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => Ok(()),
            _ => fail!(CUDA_ERROR_NOT_SUPPORTED, "setting the attribute {attribute} of a stream"),
        }
    }

    pub fn cuStreamAttachMemAsync(stream: usize, address: u64, length: usize, flags: u32) -> Answer {
        captures::forbid(&find(stream)?.1)?;
        let known = [CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_HOST, CU_MEM_ATTACH_SINGLE];
        if !known.contains(&flags) {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of cuStreamAttachMemAsync");
        }
        // The CPU and the GPU always see managed memory both, so that nothing has to be done for any of them.
        let (found, offset) = crate::allocations::get(address)?;
        if length != 0 && offset + length as u64 > found.size {
            fail!(CUDA_ERROR_INVALID_VALUE, "{length} bytes from {address:#x} are outside the allocation");
        }
        Ok(())
    }

    /// Writes a word in the order of a stream. `width` is 4 or 8.
    fn write_value(stream: usize, address: u64, value: u64, width: usize, flags: u32) -> Answer {
        if flags & !CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER != 0 || !address.is_multiple_of(width as u64) {
            fail!(CUDA_ERROR_INVALID_VALUE, "writing {width} bytes to {address:#x} with the flags {flags:#x}");
        }
        let (context, stream) = find(stream)?;
        let (found, offset) = crate::allocations::get_range(address, width as u64)?;
        let place = found.pointer + offset as usize;
        let task = move |finished: bool| {
            if finished && width == 4 {
                at::<u32>(place).set_any(value as u32);
            } else if finished {
                at::<u64>(place).set_any(value);
            }
            drop(found);
        };
        context.submit(&stream, |queue| queue.call(Box::new(task))).map(drop)
    }

    pub fn cuStreamWriteValue32_v2(stream: usize, address: u64, value: u32, flags: u32) -> Answer {
        write_value(stream, address, value.into(), 4, flags)
    }

    pub fn cuStreamWriteValue64_v2(stream: usize, address: u64, value: usize, flags: u32) -> Answer {
        write_value(stream, address, value as u64, 8, flags)
    }

    pub fn cuCtxGetStreamPriorityRange(least: Ptr<i32>, greatest: Ptr<i32>) -> Answer {
        current()?;
        least.set_any(PRIORITIES.0);
        greatest.set_any(PRIORITIES.1);
        Ok(())
    }
}
