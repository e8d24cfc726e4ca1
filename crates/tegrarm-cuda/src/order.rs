//! Streams: queues of a context, and their order by the rules of CUDA's default streams.

use crate::handles::Handles;
use crate::machine::Queue;
use crate::numbers::*;
use crate::result::Answer;
use crate::structures::Attributes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_lock::Mutex;

/// The streams that programs made.
pub static STREAMS: Handles<Stream> = Handles::new(2, "stream", CUDA_ERROR_INVALID_HANDLE);

/// CU_STREAM_PER_THREAD of cuda.h. CU_STREAM_LEGACY is 1.
pub const PER_THREAD: usize = 2;

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
    /// The attributes that a program set.
    pub attributes: Mutex<Attributes>,
    /// Its priority, as cuStreamCreateWithPriority takes it.
    priority: i32,
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
        let attributes = Mutex::default();
        Stream { handle, context, kind, attributes, priority, id, queue, newest, joined, seen }
    }
}

impl Stream {
    /// Its priority. One that a program set later is a hint, and its queue keeps the one with which it began.
    pub fn priority(&self) -> i32 {
        let set = self.attributes.lock().get(CU_LAUNCH_ATTRIBUTE_PRIORITY);
        set.map_or(self.priority, |value| (value[0] as u32 as i32).clamp(PRIORITIES.1, PRIORITIES.0))
    }

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
pub fn priority_of_queue(priority: i32) -> u32 {
    match priority {
        0.. => 0,
        -2..=-1 => 2,
        _ => 3,
    }
}
