//! The captures that there are: which streams take part, and what a capture forbids.
//!
//! A stream takes part from cuStreamBeginCapture on, or from when it waits for an event of a stream that takes part. What a graph cannot
//! have, such as waiting for the stream, makes the capture invalid: it ends without a graph.

use crate::numbers::*;
use crate::order::{Kind, Stream};
use crate::result::{Answer, Error, fail};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tegrarm_lock::Mutex;

/// How many captures there are, so that a program without one does not look for it.
pub static COUNT: AtomicUsize = AtomicUsize::new(0);
/// All captures.
pub static ALL: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());

thread_local! {
    /// The mode of this thread, which cuThreadExchangeStreamCaptureMode changes.
    pub static MODE: Cell<u32> = const { Cell::new(CU_STREAM_CAPTURE_MODE_GLOBAL) };
    /// The number of this thread, or 0 if it has none yet. The standard library's own cannot be had when the thread ends.
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// The number of the calling thread, which no other thread of the process has or had.
pub fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if THREAD.get() == 0 {
        THREAD.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    THREAD.get()
}

/// A capture.
pub struct Capture {
    /// The number that cuStreamGetCaptureInfo gives.
    pub id: u64,
    /// The handle of its graph.
    pub graph: usize,
    /// Whether the graph is the capture's own, and not one that the program made.
    pub own: bool,
    /// The handle of its context.
    pub context: usize,
    /// The number of the stream in which it began.
    pub origin: u64,
    /// A value of `CUstreamCaptureMode`.
    pub mode: u32,
    /// The thread in which it began.
    pub thread: u64,
    /// What its streams have done.
    pub state: Mutex<State>,
}

/// What the streams of a capture have done.
#[derive(Default)]
pub struct State {
    /// Whether something happened that a graph cannot have.
    pub invalid: bool,
    /// The streams that take part, by their numbers.
    pub tips: BTreeMap<u64, Tip>,
}

/// What the next node of a stream waits for.
pub struct Tip {
    /// How the stream stands to the legacy default stream.
    pub kind: Kind,
    /// The handles of the nodes.
    pub nodes: Vec<usize>,
    /// A word of zeroes for each node: what CUgraphEdgeData is for a dependency without anything special.
    pub edges: Vec<u64>,
}

impl Tip {
    /// Waits for these nodes alone.
    pub fn set(&mut self, nodes: Vec<usize>) {
        self.edges = vec![0; nodes.len()];
        self.nodes = nodes;
    }

    /// Waits for these nodes too.
    pub fn extend(&mut self, more: &[usize]) {
        let mut nodes = self.nodes.clone();
        nodes.extend(more.iter().filter(|node| !self.nodes.contains(node)));
        self.set(nodes);
    }
}

impl Capture {
    /// Something happened that a graph cannot have.
    pub fn invalidate(&self) {
        self.state.lock().invalid = true;
    }

    /// Fails if something happened that a graph cannot have.
    pub fn check(&self) -> Answer {
        if self.state.lock().invalid {
            return Err(Error::plain(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
        }
        Ok(())
    }

    /// Changes what the next node of a stream waits for.
    pub fn with_tip<T>(&self, stream: &Stream, change: impl FnOnce(&mut Tip) -> T) -> T {
        let mut state = self.state.lock();
        let new = || Tip { kind: stream.kind, nodes: Vec::new(), edges: Vec::new() };
        change(state.tips.entry(stream.id).or_insert_with(new))
    }
}

/// A record of an event in a stream that is being captured.
#[derive(Clone)]
pub struct Captured {
    /// The number of the capture.
    pub capture: u64,
    /// The nodes behind which it was recorded.
    pub nodes: Vec<usize>,
}

/// The capture in which an event was recorded last, if it was one.
#[derive(Default)]
pub struct Mark(Mutex<Option<Captured>>);

impl Mark {
    /// Keeps in which capture the event was recorded last.
    pub fn set(&self, captured: Option<Captured>) {
        *self.0.lock() = captured;
    }

    /// The capture in which the event was recorded last.
    pub fn get(&self) -> Option<Captured> {
        self.0.lock().clone()
    }

    /// Fails if the event was last recorded in a stream that takes part in a capture.
    pub fn forbid(&self) -> Answer {
        let Some(theirs) = self.get() else { return Ok(()) };
        if let Some(capture) = ALL.lock().iter().find(|capture| capture.id == theirs.capture) {
            capture.invalidate();
        }
        fail!(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a stream that was being captured")
    }
}

/// Whether there is a capture.
pub fn any() -> bool {
    COUNT.load(Ordering::Acquire) != 0
}

/// The capture in which a stream takes part.
pub fn of(stream: &Stream) -> Option<Arc<Capture>> {
    if !any() {
        return None;
    }
    ALL.lock().iter().find(|capture| capture.state.lock().tips.contains_key(&stream.id)).cloned()
}

/// Fails if the stream is the legacy default stream, and a stream that waits for it takes part in a capture.
pub fn check_legacy(stream: &Stream) -> Answer {
    if stream.kind != Kind::Legacy || !any() {
        return Ok(());
    }
    for capture in ALL.lock().iter().filter(|capture| capture.context == stream.context) {
        let mut state = capture.state.lock();
        if state.tips.values().any(|tip| tip.kind == Kind::Blocking) {
            state.invalid = true;
            fail!(
                CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                "work for the legacy default stream waits for all blocking streams, and one of them is being captured"
            );
        }
    }
    Ok(())
}

/// Fails if the stream takes part in a capture, which then is invalid.
#[inline]
pub fn forbid(stream: &Stream) -> Answer {
    if !any() {
        return Ok(());
    }
    forbid_captured(stream)
}

fn forbid_captured(stream: &Stream) -> Answer {
    check_legacy(stream)?;
    let Some(capture) = of(stream) else { return Ok(()) };
    capture.invalidate();
    fail!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream that is being captured cannot do this")
}

/// Fails if a stream of the context takes part in a capture, which then is invalid.
pub fn forbid_in(context: usize) -> Answer {
    if !any() {
        return Ok(());
    }
    let Some(capture) = ALL.lock().iter().find(|capture| capture.context == context).cloned() else {
        return Ok(());
    };
    capture.invalidate();
    fail!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "a stream of the context is being captured")
}

/// Fails if a capture forbids what may wait for the GPU, such as allocations. The capture then is invalid.
pub fn forbid_unsafe() -> Answer {
    let own = MODE.get();
    if !any() || own == CU_STREAM_CAPTURE_MODE_RELAXED {
        return Ok(());
    }
    let me = this_thread();
    let forbids = |capture: &&Arc<Capture>| match capture.mode {
        CU_STREAM_CAPTURE_MODE_RELAXED => false,
        CU_STREAM_CAPTURE_MODE_GLOBAL if own == CU_STREAM_CAPTURE_MODE_GLOBAL => true,
        _ => capture.thread == me,
    };
    let Some(capture) = ALL.lock().iter().find(forbids).cloned() else { return Ok(()) };
    capture.invalidate();
    fail!(
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        "the call may wait for the GPU, and a capture in the mode {} forbids it: use CU_STREAM_CAPTURE_MODE_RELAXED",
        capture.mode
    )
}
