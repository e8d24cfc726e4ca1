//! What a program does with streams.

use crate::captures;
use crate::capturing;
use crate::context::{CONTEXTS, current, settle, stream_of};
use crate::events;
use crate::numbers::*;
use crate::order::{Kind, PER_THREAD, PRIORITIES, STREAMS, Stream, priority_of_queue};
use crate::pointers::{Ptr, at, call_stream_callback};
use crate::result::{Answer, Error, fail};
use crate::structures::AttributeValue;
use crate::works::{Work, give};
use std::ffi::c_void;

pub mod rows {
    //! The functions of streams.

    use super::*;

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
        if let Some(context) = CONTEXTS.find(stream.context) {
            // Its work goes on: whoever waits for the whole context waits for it too, so that it leaves when it has finished.
            if context.settled(&stream).unwrap_or(true) {
                context.remove(&stream);
            }
        }
        Ok(())
    }

    pub fn cuStreamQuery(stream: usize) -> Answer {
        let (context, stream) = stream_of(stream)?;
        if context.settled(&stream)? { Ok(()) } else { Err(Error::plain(CUDA_ERROR_NOT_READY)) }
    }

    pub fn cuStreamSynchronize(stream: usize) -> Answer {
        settle(stream)
    }

    pub fn cuStreamWaitEvent(stream: usize, event: usize, flags: u32) -> Answer {
        if flags & !CU_EVENT_WAIT_EXTERNAL != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of cuStreamWaitEvent");
        }
        let (context, stream) = stream_of(stream)?;
        let external = (flags & CU_EVENT_WAIT_EXTERNAL != 0).then_some(event);
        let event = events::EVENTS.get(event)?;
        if captures::wait(&stream, &event.mark, external)? {
            return Ok(());
        }
        events::wait_in(&context, &stream, &event)
    }

    pub fn cuStreamAddCallback(stream: usize, callback: usize, user: Ptr<c_void>, flags: u32) -> Answer {
        if callback == 0 || flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "cuStreamAddCallback: the callback is NULL, or flags are not 0");
        }
        let (context, found) = stream_of(stream)?;
        let user = user.address();
        let task = move |finished: bool| {
            let result = if finished { CUDA_SUCCESS } else { CUDA_ERROR_LAUNCH_FAILED };
            call_stream_callback(callback, stream, result, user);
        };
        context.submit(&found, |queue| queue.call(Box::new(task))).map(drop)
    }

    pub fn cuLaunchHostFunc(stream: usize, function: usize, user: Ptr<c_void>) -> Answer {
        if function == 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "fn is NULL");
        }
        let (context, stream) = stream_of(stream)?;
        give(&context, &stream, &Work::Host { function, user: user.address() })
    }

    pub fn cuLaunchHostFunc_v2(stream: usize, function: usize, user: Ptr<c_void>, mode: u32) -> Answer {
        if mode > CU_HOST_TASK_SPINWAIT {
            fail!(CUDA_ERROR_INVALID_VALUE, "the mode {mode} of a host function");
        }
        cuLaunchHostFunc(stream, function, user)
    }

    pub fn cuStreamGetPriority(stream: usize, priority: Ptr<i32>) -> Answer {
        priority.set(stream_of(stream)?.1.priority(), "priority")
    }

    pub fn cuStreamGetFlags(stream: usize, flags: Ptr<u32>) -> Answer {
        let free = stream_of(stream)?.1.kind == Kind::Free;
        flags.set(if free { CU_STREAM_NON_BLOCKING } else { CU_STREAM_DEFAULT }, "flags")
    }

    pub fn cuStreamGetId(stream: usize, id: Ptr<u64>) -> Answer {
        id.set(stream_of(stream)?.1.id, "streamId")
    }

    pub fn cuStreamGetCtx(stream: usize, context: Ptr<usize>) -> Answer {
        context.set(stream_of(stream)?.0.handle, "pctx")
    }

    pub fn cuStreamGetDevice(stream: usize, device: Ptr<i32>) -> Answer {
        stream_of(stream)?;
        device.set(0, "device")
    }

    pub fn cuStreamCopyAttributes(to: usize, from: usize) -> Answer {
        let (to, from) = (stream_of(to)?.1, stream_of(from)?.1);
        let priority = from.priority();
        let mut copied = from.attributes.lock().clone();
        copied.set(CU_LAUNCH_ATTRIBUTE_PRIORITY, value_of(priority as u32));
        *to.attributes.lock() = copied;
        Ok(())
    }

    /// A value of an attribute that is a number.
    fn value_of(number: u32) -> AttributeValue {
        [number.into(), 0, 0, 0, 0, 0, 0, 0]
    }

    pub fn cuStreamGetAttribute(stream: usize, attribute: u32, value: Ptr<c_void>) -> Answer {
        let (_, stream) = stream_of(stream)?;
        value.present("value_out")?;
        let first = match attribute {
            CU_LAUNCH_ATTRIBUTE_PRIORITY => stream.priority() as u32,
            CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => CU_SYNC_POLICY_AUTO,
            // The GPU has one domain, whose number is 0.
            CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
            | CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            | CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => 0,
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {attribute} of a stream"),
        };
        let set = stream.attributes.lock().get(attribute).filter(|_| attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY);
        value.cast::<AttributeValue>().set(set.unwrap_or(value_of(first)), "value_out")
    }

    /// What is set is kept. It has no effect but on what a program reads and on the priority of launches in a graph: all of it is
    /// hints for the scheduler, for the waiting CPU, and for a cache that has no persisting part here.
    pub fn cuStreamSetAttribute(stream: usize, attribute: u32, value: Ptr<c_void>) -> Answer {
        let (_, stream) = stream_of(stream)?;
        let value = value.cast::<AttributeValue>().get("value")?;
        let word = value[0] as u32;
        let valid = match attribute {
            CU_LAUNCH_ATTRIBUTE_PRIORITY | CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => true,
            CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {
                (CU_SYNC_POLICY_AUTO..=CU_SYNC_POLICY_BLOCKING_SYNC).contains(&word)
            }
            CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => word <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE,
            // Two bytes: the domains of both kinds of work.
            CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => word & 0xFFFF == 0,
            _ => false,
        };
        if !valid {
            fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {attribute} of a stream cannot begin with {word:#x}");
        }
        stream.attributes.lock().set(attribute, value);
        Ok(())
    }

    pub fn cuStreamAttachMemAsync(stream: usize, address: u64, length: usize, flags: u32) -> Answer {
        capturing::forbid(&stream_of(stream)?.1)?;
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
        let (context, stream) = stream_of(stream)?;
        let (found, offset) = crate::allocations::get_range(address, width as u64, true)?;
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
