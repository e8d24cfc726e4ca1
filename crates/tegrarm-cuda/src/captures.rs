//! Capture: work that streams are given becomes nodes of a graph.
//!
//! A stream takes part from cuStreamBeginCapture on, or from when it waits for an event of a stream that takes part. What a graph cannot
//! have, such as waiting for the stream, makes the capture invalid: it ends without a graph.

use crate::context::{CONTEXTS, Context};
use crate::events::{Captured, Event};
use crate::graphs::{self, Operation};
use crate::numbers::*;
use crate::result::{Answer, Error, fail};
use crate::streams::{Kind, Stream};
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::ThreadId;

/// How many captures there are, so that a program without one does not look for it.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static ALL: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());

thread_local! {
    /// The mode of this thread, which cuThreadExchangeStreamCaptureMode changes.
    static MODE: Cell<u32> = const { Cell::new(CU_STREAM_CAPTURE_MODE_GLOBAL) };
}

/// A capture.
pub struct Capture {
    /// The number that cuStreamGetCaptureInfo gives.
    pub id: u64,
    /// The handle of its graph.
    pub graph: usize,
    /// Whether the graph is the capture's own, and not one that the program made.
    own: bool,
    context: usize,
    /// The number of the stream in which it began.
    origin: u64,
    mode: u32,
    thread: ThreadId,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    invalid: bool,
    /// The streams that take part, by their numbers.
    tips: BTreeMap<u64, Tip>,
}

/// What the next node of a stream waits for.
struct Tip {
    kind: Kind,
    nodes: Vec<usize>,
    /// A word of zeroes for each node: what CUgraphEdgeData is for a dependency without anything special.
    edges: Vec<u64>,
}

impl Tip {
    fn set(&mut self, nodes: Vec<usize>) {
        self.edges = vec![0; nodes.len()];
        self.nodes = nodes;
    }

    fn extend(&mut self, more: &[usize]) {
        let mut nodes = self.nodes.clone();
        nodes.extend(more.iter().filter(|node| !self.nodes.contains(node)));
        self.set(nodes);
    }
}

/// What cuStreamGetCaptureInfo says.
pub struct Info {
    /// A value of `CUstreamCaptureStatus`.
    pub status: u32,
    /// The number of the capture.
    pub id: u64,
    /// The handle of the graph.
    pub graph: usize,
    /// The address of the handles of the nodes for which the next node waits.
    pub nodes: usize,
    /// The address of the data of these edges.
    pub edges: usize,
    /// How many there are.
    pub count: usize,
}

impl Capture {
    fn invalidate(&self) {
        self.state.lock().invalid = true;
    }

    fn check(&self) -> Answer {
        if self.state.lock().invalid {
            return Err(Error::plain(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
        }
        Ok(())
    }

    /// Changes what the next node of a stream waits for.
    fn with_tip<T>(&self, stream: &Stream, change: impl FnOnce(&mut Tip) -> T) -> T {
        let mut state = self.state.lock();
        let new = || Tip { kind: stream.kind, nodes: Vec::new(), edges: Vec::new() };
        change(state.tips.entry(stream.id).or_insert_with(new))
    }

    /// Adds a node, for which the next one of the stream waits.
    fn add(&self, stream: &Stream, operation: Operation) -> Answer {
        let after = self.with_tip(stream, |tip| tip.nodes.clone());
        let node = graphs::add(self.graph, after, operation)?;
        self.with_tip(stream, |tip| tip.set(vec![node]));
        Ok(())
    }
}

/// Whether there is a capture.
fn any() -> bool {
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
fn check_legacy(stream: &Stream) -> Answer {
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

/// Makes a node of the work, if the stream takes part in a capture. Says whether it did.
#[inline]
pub fn take(stream: &Stream, operation: impl FnOnce() -> Answer<Operation>) -> Answer<bool> {
    if !any() {
        return Ok(false);
    }
    check_legacy(stream)?;
    let Some(capture) = of(stream) else { return Ok(false) };
    capture.check()?;
    capture.add(stream, operation()?)?;
    Ok(true)
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
pub fn forbid_in(context: &Context) -> Answer {
    if !any() {
        return Ok(());
    }
    let Some(capture) = ALL.lock().iter().find(|capture| capture.context == context.handle).cloned() else {
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
    let me = std::thread::current().id();
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

/// Records an event in a stream that takes part in a capture. Says whether it does.
pub fn record(stream: &Stream, event: &Event, external: Option<usize>) -> Answer<bool> {
    if let Some(handle) = external {
        return take(stream, || Ok(Operation::Record(handle)));
    }
    check_legacy(stream)?;
    let Some(capture) = of(stream) else {
        event.captured(None);
        return Ok(false);
    };
    capture.check()?;
    let nodes = capture.with_tip(stream, |tip| tip.nodes.clone());
    event.captured(Some(Captured { capture: capture.id, nodes }));
    Ok(true)
}

/// Lets a stream wait for an event, if one of the two belongs to a capture. Says whether one does.
pub fn wait(stream: &Stream, event: &Event, external: Option<usize>) -> Answer<bool> {
    if let Some(handle) = external {
        return take(stream, || Ok(Operation::Wait(handle)));
    }
    check_legacy(stream)?;
    let (own, theirs) = (of(stream), event.is_captured());
    let Some(theirs) = theirs else {
        let Some(capture) = own else { return Ok(false) };
        capture.check()?;
        capture.invalidate();
        fail!(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "the event was recorded outside the capture of the stream");
    };
    let capture = ALL.lock().iter().find(|capture| capture.id == theirs.capture).cloned();
    let Some(capture) = capture else {
        fail!(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture that has ended");
    };
    if let Some(own) = own
        && own.id != capture.id
    {
        own.invalidate();
        capture.invalidate();
        fail!(CUDA_ERROR_STREAM_CAPTURE_MERGE, "the event and the stream belong to two captures");
    }
    capture.check()?;
    if stream.kind == Kind::Legacy || stream.context != capture.context {
        capture.invalidate();
        fail!(
            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
            "the legacy default stream, or one of another context, cannot take part"
        );
    }
    capture.with_tip(stream, |tip| tip.extend(&theirs.nodes));
    Ok(true)
}

/// Fails if an event was last recorded in a stream that takes part in a capture.
pub fn forbid_event(event: &Event) -> Answer {
    let Some(theirs) = event.is_captured() else { return Ok(()) };
    if let Some(capture) = ALL.lock().iter().find(|capture| capture.id == theirs.capture) {
        capture.invalidate();
    }
    fail!(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a stream that was being captured")
}

/// A stream ends. A capture that began in it ends too, and another one in which it takes part is invalid.
pub fn leave(stream: &Stream) {
    let Some(capture) = of(stream) else { return };
    capture.invalidate();
    if capture.origin == stream.id {
        // Whether the capture was good does not matter to anybody any more.
        let _ = end_of(&capture);
    }
}

/// Ends the captures of a context, without graphs.
pub fn forget(context: usize) {
    let mut ended = Vec::new();
    ALL.lock().retain(|capture| {
        if capture.context == context {
            ended.push(capture.clone());
        }
        capture.context != context
    });
    COUNT.fetch_sub(ended.len(), Ordering::AcqRel);
    for capture in ended.iter().filter(|capture| capture.own) {
        // The program does not know the graph, so that it exists until here.
        let _ = graphs::end(capture.graph);
    }
}

/// Begins a capture, of a new graph or of one of the program.
fn begin(stream: &Stream, mode: u32, graph: Option<(usize, Vec<usize>)>) -> Answer {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if mode > CU_STREAM_CAPTURE_MODE_RELAXED {
        fail!(CUDA_ERROR_INVALID_VALUE, "the capture mode {mode}");
    }
    if stream.kind == Kind::Legacy {
        fail!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the legacy default stream cannot be captured");
    }
    if of(stream).is_some() {
        fail!(CUDA_ERROR_ILLEGAL_STATE, "the stream is being captured already");
    }
    let on_stack = CONTEXTS.get(stream.context)?.on_stack.clone();
    let own = graph.is_none();
    let (graph, nodes) = match graph {
        Some(given) => given,
        None => (graphs::make(false)?, Vec::new()),
    };
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let (context, origin, thread) = (stream.context, stream.id, std::thread::current().id());
    let capture = Capture { id, graph, own, context, origin, mode, thread, state: Mutex::default() };
    capture.with_tip(stream, |tip| tip.set(nodes));
    ALL.lock().push(Arc::new(capture));
    COUNT.fetch_add(1, Ordering::AcqRel);
    // A launch on the legacy default stream has to look whether it waits for a stream of the capture.
    on_stack.close_and_wait();
    Ok(())
}

/// Ends the capture of a stream. Returns the graph.
fn end(stream: &Stream) -> Answer<usize> {
    let Some(capture) = of(stream) else { fail!(CUDA_ERROR_ILLEGAL_STATE, "the stream is not being captured") };
    if capture.origin != stream.id {
        capture.invalidate();
        fail!(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "the capture began in another stream");
    }
    if capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.thread != std::thread::current().id() {
        fail!(
            CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
            "the capture began in another thread, and not in the relaxed mode"
        );
    }
    end_of(&capture)
}

fn end_of(capture: &Capture) -> Answer<usize> {
    ALL.lock().retain(|other| other.id != capture.id);
    COUNT.fetch_sub(1, Ordering::AcqRel);
    CONTEXTS.find(capture.context).inspect(|context| context.on_stack.open(1));
    let finished = capture.check().and_then(|()| joined(capture));
    if finished.is_err() && capture.own {
        graphs::end(capture.graph)?;
    }
    finished.map(|()| capture.graph)
}

/// Fails if the work of another stream of the capture is not behind that of the first one.
fn joined(capture: &Capture) -> Answer {
    let state = capture.state.lock();
    let Some(origin) = state.tips.get(&capture.origin) else { return Ok(()) };
    let known = graphs::all_before(&origin.nodes);
    for (stream, tip) in &state.tips {
        if !tip.nodes.iter().all(|node| known.contains(node)) {
            fail!(
                CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                "the first stream of the capture does not wait for stream {stream}"
            );
        }
    }
    Ok(())
}

/// What is known of the capture of a stream.
fn info(stream: &Stream) -> Answer<Info> {
    check_legacy(stream)?;
    let Some(capture) = of(stream) else {
        let status = CU_STREAM_CAPTURE_STATUS_NONE;
        return Ok(Info { status, id: 0, graph: 0, nodes: 0, edges: 0, count: 0 });
    };
    let status =
        if capture.check().is_ok() { CU_STREAM_CAPTURE_STATUS_ACTIVE } else { CU_STREAM_CAPTURE_STATUS_INVALIDATED };
    let (id, graph) = (capture.id, capture.graph);
    Ok(capture.with_tip(stream, |tip| {
        let (nodes, edges) = (tip.nodes.as_ptr() as usize, tip.edges.as_ptr() as usize);
        Info { status, id, graph, nodes, edges, count: tip.nodes.len() }
    }))
}

pub mod rows {
    //! The functions of captures.

    use super::*;
    use crate::pointers::Ptr;
    use crate::streams::find;
    use crate::topology::plain;
    use std::ffi::c_void;

    pub fn cuStreamBeginCapture(stream: usize) -> Answer {
        cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL)
    }

    pub fn cuStreamBeginCapture_v2(stream: usize, mode: u32) -> Answer {
        begin(&find(stream)?.1, mode, None)
    }

    pub fn cuStreamBeginCaptureToGraph(
        stream: usize,
        graph: usize,
        nodes: Ptr<usize>,
        edges: Ptr<c_void>,
        count: usize,
        mode: u32,
    ) -> Answer {
        plain(edges, count)?;
        graphs::GRAPHS.get(graph)?;
        let nodes = nodes.list(count, "dependencies")?;
        for node in &nodes {
            graphs::of_graph(graph, *node)?;
        }
        begin(&find(stream)?.1, mode, Some((graph, nodes)))
    }

    pub fn cuStreamEndCapture(stream: usize, graph: Ptr<usize>) -> Answer {
        let ended = end(&find(stream)?.1);
        graph.set_any(*ended.as_ref().unwrap_or(&0));
        ended.map(drop)
    }

    pub fn cuStreamIsCapturing(stream: usize, status: Ptr<u32>) -> Answer {
        status.present("captureStatus")?;
        status.set(info(&find(stream)?.1)?.status, "captureStatus")
    }

    pub fn cuStreamGetCaptureInfo(stream: usize, status: Ptr<u32>, id: Ptr<usize>) -> Answer {
        status.present("captureStatus_out")?;
        let info = info(&find(stream)?.1)?;
        id.set_any(info.id as usize);
        status.set(info.status, "captureStatus_out")
    }

    pub fn cuStreamGetCaptureInfo_v2(
        stream: usize,
        status: Ptr<u32>,
        id: Ptr<usize>,
        graph: Ptr<usize>,
        nodes: Ptr<usize>,
        count: Ptr<usize>,
    ) -> Answer {
        cuStreamGetCaptureInfo(stream, status, id)?;
        let info = info(&find(stream)?.1)?;
        graph.set_any(info.graph);
        nodes.set_any(info.nodes);
        count.set_any(info.count);
        Ok(())
    }

    pub fn cuStreamGetCaptureInfo_v3(
        stream: usize,
        status: Ptr<u32>,
        id: Ptr<usize>,
        graph: Ptr<usize>,
        nodes: Ptr<usize>,
        edges: Ptr<usize>,
        count: Ptr<usize>,
    ) -> Answer {
        cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, count)?;
        edges.set_any(info(&find(stream)?.1)?.edges);
        Ok(())
    }

    pub fn cuStreamUpdateCaptureDependencies(stream: usize, nodes: Ptr<usize>, count: usize, flags: u32) -> Answer {
        let (_, stream) = find(stream)?;
        let Some(capture) = of(&stream) else { fail!(CUDA_ERROR_ILLEGAL_STATE, "the stream is not being captured") };
        capture.check()?;
        let nodes = nodes.list(count, "dependencies")?;
        for node in &nodes {
            graphs::of_graph(capture.graph, *node)?;
        }
        match flags {
            CU_STREAM_ADD_CAPTURE_DEPENDENCIES => capture.with_tip(&stream, |tip| tip.extend(&nodes)),
            CU_STREAM_SET_CAPTURE_DEPENDENCIES => capture.with_tip(&stream, |tip| tip.set(nodes)),
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x}"),
        }
        Ok(())
    }

    pub fn cuStreamUpdateCaptureDependencies_v2(
        stream: usize,
        nodes: Ptr<usize>,
        edges: Ptr<c_void>,
        count: usize,
        flags: u32,
    ) -> Answer {
        plain(edges, count)?;
        cuStreamUpdateCaptureDependencies(stream, nodes, count, flags)
    }

    pub fn cuThreadExchangeStreamCaptureMode(mode: Ptr<u32>) -> Answer {
        let new = mode.get("mode")?;
        if new > CU_STREAM_CAPTURE_MODE_RELAXED {
            fail!(CUDA_ERROR_INVALID_VALUE, "the capture mode {new}");
        }
        mode.set(MODE.replace(new), "mode")
    }
}
