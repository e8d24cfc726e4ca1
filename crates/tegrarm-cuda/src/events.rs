//! Events: points in the work of streams, with their times.

use crate::captures;
use crate::capturing::{self, Mark};
use crate::context::{CONTEXTS, Context, context, current, stream_of};
use crate::handles::Handles;
use crate::machine::Stamp;
use crate::numbers::*;
use crate::order::Stream;
use crate::result::{Answer, Error, fail};
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// All events.
pub static EVENTS: Handles<Event> = Handles::new(3, "event", CUDA_ERROR_INVALID_HANDLE);

/// An event.
pub struct Event {
    context: usize,
    /// Its time, unless it was made without one.
    stamp: Option<Stamp>,
    /// The fence of what it was recorded behind, or 0 if it never was.
    fence: Mutex<u64>,
    /// The capture in which it was recorded last, if it was one.
    pub mark: Mark,
}

/// Ends the events of a context.
pub fn forget(context: usize) {
    drop(EVENTS.remove_all(|event| event.context == context));
}

impl Event {
    fn context(&self) -> Answer<Arc<Context>> {
        CONTEXTS.find(self.context).ok_or_else(|| Error::plain(CUDA_ERROR_CONTEXT_IS_DESTROYED))
    }

    /// Whether it has a time.
    pub fn has_time(&self) -> bool {
        self.stamp.is_some()
    }

    /// Whether the work has finished. An event that was never recorded has.
    fn passed(&self) -> Answer<bool> {
        let (context, fence) = (self.context()?, *self.fence.lock());
        context.alive()?;
        if fence == 0 { Ok(true) } else { context.told(context.device.passed(fence)) }
    }
}

/// Puts an event behind the work of a stream.
pub fn record_in(context: &Context, stream: &Stream, event: &Event) -> Answer {
    if event.context != context.handle {
        fail!(CUDA_ERROR_INVALID_HANDLE, "the event and the stream belong to two contexts");
    }
    let mut fence = event.fence.lock();
    *fence = context.submit(stream, |queue| match &event.stamp {
        Some(stamp) => stamp.record(queue),
        None => queue.fence(),
    })?;
    Ok(())
}

/// Lets a stream wait for an event.
pub fn wait_in(context: &Context, stream: &Stream, event: &Event) -> Answer {
    let fence = *event.fence.lock();
    if fence == 0 {
        return context.alive();
    }
    if event.context != context.handle {
        // Queues of two contexts do not know each other's fences: the CPU waits.
        let other = event.context()?;
        return other.wait(fence);
    }
    context.submit(stream, |queue| {
        queue.after(fence)?;
        queue.fence()
    })?;
    Ok(())
}

pub mod rows {
    //! The functions of events.

    use super::*;
    use crate::pointers::Ptr;

    const FLAGS: u32 = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

    pub fn cuEventCreate(event: Ptr<usize>, flags: u32) -> Answer {
        event.present("phEvent")?;
        if flags & !FLAGS != 0 || (flags & CU_EVENT_INTERPROCESS != 0 && flags & CU_EVENT_DISABLE_TIMING == 0) {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of an event");
        }
        if flags & CU_EVENT_INTERPROCESS != 0 {
            fail!(CUDA_ERROR_NOT_SUPPORTED, "CU_EVENT_INTERPROCESS: CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED is 0");
        }
        let context = current()?;
        context.alive()?;
        let stamp = if flags & CU_EVENT_DISABLE_TIMING == 0 { Some(Stamp::new(&context.device)?) } else { None };
        event.set(
            EVENTS.add(Arc::new(Event {
                context: context.handle,
                stamp,
                fence: Mutex::new(0),
                mark: Mark::default(),
            }))?,
            "phEvent",
        )
    }

    pub fn cuEventDestroy_v2(event: usize) -> Answer {
        EVENTS.remove(event).map(drop)
    }

    pub fn cuEventRecord(event: usize, stream: usize) -> Answer {
        record(event, stream, None)
    }

    fn record(event: usize, stream: usize, external: Option<usize>) -> Answer {
        let event = EVENTS.get(event)?;
        let (context, stream) = stream_of(stream)?;
        if event.context != context.handle {
            fail!(CUDA_ERROR_INVALID_HANDLE, "the event and the stream belong to two contexts");
        }
        if captures::record(&stream, &event.mark, external)? {
            return Ok(());
        }
        record_in(&context, &stream, &event)
    }

    pub fn cuEventRecordWithFlags(event: usize, stream: usize, flags: u32) -> Answer {
        if flags & !CU_EVENT_RECORD_EXTERNAL != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of cuEventRecordWithFlags");
        }
        record(event, stream, (flags & CU_EVENT_RECORD_EXTERNAL != 0).then_some(event))
    }

    pub fn cuEventQuery(event: usize) -> Answer {
        let event = EVENTS.get(event)?;
        event.mark.forbid()?;
        capturing::forbid_unsafe()?;
        if event.passed()? { Ok(()) } else { Err(Error::plain(CUDA_ERROR_NOT_READY)) }
    }

    pub fn cuEventSynchronize(event: usize) -> Answer {
        let event = EVENTS.get(event)?;
        event.mark.forbid()?;
        capturing::forbid_unsafe()?;
        let (context, fence) = (event.context()?, *event.fence.lock());
        context.alive()?;
        if fence == 0 { Ok(()) } else { context.wait(fence) }
    }

    pub fn cuEventElapsedTime_v2(time: Ptr<f32>, start: usize, end: usize) -> Answer {
        time.present("pMilliseconds")?;
        let (start, end) = (EVENTS.get(start)?, EVENTS.get(end)?);
        start.mark.forbid()?;
        end.mark.forbid()?;
        let (Some(first), Some(last)) = (&start.stamp, &end.stamp) else {
            fail!(CUDA_ERROR_INVALID_HANDLE, "an event was made with CU_EVENT_DISABLE_TIMING")
        };
        if start.context != end.context || *start.fence.lock() == 0 || *end.fence.lock() == 0 {
            fail!(CUDA_ERROR_INVALID_HANDLE, "an event was never recorded, or the events belong to two contexts");
        }
        if !start.passed()? || !end.passed()? {
            return Err(Error::plain(CUDA_ERROR_NOT_READY));
        }
        time.set(last.since(first)? as f32 / 1e6, "pMilliseconds")
    }

    pub fn cuCtxRecordEvent(ctx: usize, event: usize) -> Answer {
        let (context, event) = (context(ctx)?, EVENTS.get(event)?);
        capturing::forbid_in(context.handle)?;
        record_in(&context, &*context.legacy()?, &event)
    }

    pub fn cuCtxWaitEvent(ctx: usize, event: usize) -> Answer {
        let (context, event) = (context(ctx)?, EVENTS.get(event)?);
        capturing::forbid_in(context.handle)?;
        for stream in context.streams() {
            wait_in(&context, &stream, &event)?;
        }
        Ok(())
    }
}
