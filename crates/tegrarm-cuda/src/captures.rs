//! Capture: work that streams are given becomes nodes of a graph.

use crate::capturing::{ALL, COUNT, Capture, Captured, MODE, Mark, any, check_legacy, of, this_thread};
use crate::context::{CONTEXTS, stream_of};
use crate::graphs::{self, Operation};
use crate::numbers::*;
use crate::order::{Kind, Stream};
use crate::pointers::Ptr;
use crate::result::{Answer, fail};
use crate::topology::plain;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_lock::Mutex;

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

/// Adds a node to the graph of a capture, for which the next one of the stream waits.
fn add(capture: &Capture, stream: &Stream, operation: Operation) -> Answer {
    let after = capture.with_tip(stream, |tip| tip.nodes.clone());
    let node = graphs::add(capture.graph, after, operation)?;
    capture.with_tip(stream, |tip| tip.set(vec![node]));
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
    add(&capture, stream, operation()?)?;
    Ok(true)
}

/// Records an event in a stream that takes part in a capture. Says whether it does.
pub fn record(stream: &Stream, event: &Mark, external: Option<usize>) -> Answer<bool> {
    if let Some(handle) = external {
        return take(stream, || Ok(Operation::Record(handle)));
    }
    check_legacy(stream)?;
    let Some(capture) = of(stream) else {
        event.set(None);
        return Ok(false);
    };
    capture.check()?;
    let nodes = capture.with_tip(stream, |tip| tip.nodes.clone());
    event.set(Some(Captured { capture: capture.id, nodes }));
    Ok(true)
}

/// Lets a stream wait for an event, if one of the two belongs to a capture. Says whether one does.
pub fn wait(stream: &Stream, event: &Mark, external: Option<usize>) -> Answer<bool> {
    if let Some(handle) = external {
        return take(stream, || Ok(Operation::Wait(handle)));
    }
    check_legacy(stream)?;
    let (own, theirs) = (of(stream), event.get());
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
    let (context, origin, thread) = (stream.context, stream.id, this_thread());
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
    if capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.thread != this_thread() {
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

    pub fn cuStreamBeginCapture(stream: usize) -> Answer {
        cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL)
    }

    pub fn cuStreamBeginCapture_v2(stream: usize, mode: u32) -> Answer {
        begin(&stream_of(stream)?.1, mode, None)
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
        begin(&stream_of(stream)?.1, mode, Some((graph, nodes)))
    }

    pub fn cuStreamEndCapture(stream: usize, graph: Ptr<usize>) -> Answer {
        let ended = end(&stream_of(stream)?.1);
        graph.set_any(*ended.as_ref().unwrap_or(&0));
        ended.map(drop)
    }

    pub fn cuStreamIsCapturing(stream: usize, status: Ptr<u32>) -> Answer {
        status.present("captureStatus")?;
        status.set(info(&stream_of(stream)?.1)?.status, "captureStatus")
    }

    pub fn cuStreamGetCaptureInfo(stream: usize, status: Ptr<u32>, id: Ptr<usize>) -> Answer {
        status.present("captureStatus_out")?;
        let info = info(&stream_of(stream)?.1)?;
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
        let info = info(&stream_of(stream)?.1)?;
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
        edges.set_any(info(&stream_of(stream)?.1)?.edges);
        Ok(())
    }

    pub fn cuStreamUpdateCaptureDependencies(stream: usize, nodes: Ptr<usize>, count: usize, flags: u32) -> Answer {
        let (_, stream) = stream_of(stream)?;
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
