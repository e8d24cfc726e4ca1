//! Pieces of work that a stream is given.

use crate::captures;
use crate::context::Context;
use crate::graphs::Operation;
use crate::machine::Queue;
use crate::numbers::*;
use crate::order::Stream;
use crate::pointers::{call_host_function, copy_bytes, copy_checked, repeat_bytes};
use crate::result::{Answer, fail};
use crate::shapes::{End, Fill, Shape, reach};
use crate::structures::HostNode;

/// A copy or a fill of at most this many pieces is given to the GPU, and one of more pieces to the CPU, which has the same memory.
const PIECES: usize = 64;
/// A copy of at most this many bytes is done at once if the stream has nothing to do.
const AT_ONCE: usize = 256 << 10;

/// A piece of work.
#[derive(Clone)]
pub enum Work {
    /// A copy.
    Copy(Shape),
    /// A fill.
    Fill(Fill),
    /// A call of a function of the program.
    Host {
        /// The function.
        function: usize,
        /// Its argument.
        user: usize,
    },
}

impl Work {
    /// The node of a graph that does it.
    fn operation(&self) -> Operation {
        match self {
            Work::Copy(shape) => Operation::copy(shape),
            Work::Fill(fill) => Operation::fill(fill),
            Work::Host { function, user } => Operation::Host(HostNode { function: *function, user: *user }),
        }
    }
}

/// Gives a stream work.
pub fn give(context: &Context, stream: &Stream, work: &Work) -> Answer {
    if captures::take(stream, || Ok(work.operation()))? {
        return context.alive();
    }
    match work {
        Work::Copy(shape) => copy(context, stream, shape),
        Work::Fill(fill) => self::fill(context, stream, fill),
        Work::Host { function, user } => {
            let (function, user) = (*function, *user);
            let task = move |finished: bool| {
                if finished {
                    call_host_function(function, user);
                }
            };
            context.submit(stream, |queue| queue.call(Box::new(task))).map(drop)
        }
    }
}

/// Copies in the order of a stream. Memory that the GPU does not see is copied before the function returns.
fn copy(context: &Context, stream: &Stream, shape: &Shape) -> Answer {
    context.alive()?;
    if shape.bytes() == 0 {
        return Ok(());
    }
    shape.check_mapped()?;
    if shape.to.is_pageable() || shape.from.is_pageable() {
        context.settle(stream)?;
        for (to, from, size) in shape.pieces() {
            copy_checked(shape.to.pointer + to, shape.from.pointer + from, size)?;
        }
        return Ok(());
    }
    if shape.bytes() <= AT_ONCE && context.settled(stream)? {
        by_cpu(shape);
        return Ok(());
    }
    if copied_by_gpu(context, shape) {
        return context.submit(stream, |queue| by_gpu(queue, shape)).map(drop);
    }
    let own = shape.clone();
    let task = move |finished: bool| {
        if finished {
            by_cpu(&own);
        }
    };
    context.submit(stream, |queue| queue.call(Box::new(task))).map(drop)
}

/// Whether the GPU of a context can do a copy: both ends are memory of the context, in few pieces.
pub fn copied_by_gpu(context: &Context, shape: &Shape) -> bool {
    let ours = |end: &End| end.memory.as_ref().is_some_and(|(memory, _)| memory.context == context.handle);
    ours(&shape.to) && ours(&shape.from) && shape.count() <= PIECES && !overlaps(shape)
}

/// Whether the GPU of a context can do a fill: the target is memory of the context, in few pieces.
pub fn filled_by_gpu(context: &Context, fill: &Fill) -> bool {
    fill.rows <= PIECES && fill.to.0.context == context.handle
}

/// Whether a row of the source may be a row of the target.
fn overlaps(shape: &Shape) -> bool {
    let end = |end: &End| end.pointer + (shape.layers * end.height.max(shape.rows)) * end.pitch.max(shape.width);
    shape.to.pointer < end(&shape.from) && shape.from.pointer < end(&shape.to)
}

fn by_cpu(shape: &Shape) {
    for (to, from, size) in shape.pieces() {
        copy_bytes(shape.to.pointer + to, shape.from.pointer + from, size);
    }
}

fn by_gpu(queue: &Queue, shape: &Shape) -> Answer<u64> {
    let (Some((to, to_at)), Some((from, from_at))) = (&shape.to.memory, &shape.from.memory) else {
        fail!(CUDA_ERROR_INVALID_VALUE, "the GPU does not see the memory")
    };
    let mut fence = 0;
    for (at, source, size) in shape.pieces() {
        let target = (&to.buffer, to.start + to_at + at as u64);
        fence = queue.copy(target, (&from.buffer, from.start + from_at + source as u64), size as u64)?;
    }
    Ok(fence)
}

/// Fills in the order of a stream.
fn fill(context: &Context, stream: &Stream, fill: &Fill) -> Answer {
    let (memory, at) = &fill.to;
    if fill.width == 0 || fill.rows == 0 {
        return context.alive();
    }
    if memory.mappings.is_some() {
        memory.check(*at, reach(fill.width * fill.size, fill.rows, 1, fill.pitch, fill.rows)? as u64, true)?;
    }
    if filled_by_gpu(context, fill) {
        let row = (fill.width * fill.size) as u64;
        return context
            .submit(stream, |queue| {
                let mut fence = 0;
                for y in 0..fill.rows as u64 {
                    let offset = memory.start + at + y * fill.pitch as u64;
                    fence = queue.fill((&memory.buffer, offset), row, fill.value, fill.size as u32)?;
                }
                Ok(fence)
            })
            .map(drop);
    }
    let own = fill.clone();
    let task = move |finished: bool| {
        let first = own.to.0.pointer + own.to.1 as usize;
        for y in 0..if finished { own.rows } else { 0 } {
            repeat_bytes(first + y * own.pitch, own.width * own.size, own.value, own.size);
        }
    };
    context.submit(stream, |queue| queue.call(Box::new(task))).map(drop)
}
