//! `--trace` writes a timeline for Perfetto and Chrome, as a JSON array of trace events.
//!
//! Each process of the program is a track that shows its ioctls, with a line for each thread that marks ranges. The GPU is a track with one line
//! for each channel, which has the name of the queue that it is.

use super::say;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tegra_gpu::{Event, Gpu, host_ns};
use tegra_sim::Kernel;
use tegra_sim::supervisor::{Answered, Observer};
use tegrarm_kmd::describe;

/// The id of the GPU's track. The ids of real processes are larger.
const GPU: u32 = 0;

/// Writes events while they happen.
pub struct Timeline {
    start_ns: u64,
    out: Mutex<BufWriter<File>>,
    kernel: Arc<Kernel>,
    /// The names of channels that were written.
    named: Mutex<HashMap<u32, Arc<str>>>,
}

impl Timeline {
    /// Makes a timeline in `file` and records what `gpu` does. Calls of programs are reported to it as to an
    /// [`Observer`].
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(file: File, gpu: &Gpu, kernel: &Arc<Kernel>) -> io::Result<Arc<Timeline>> {
        let mut out = BufWriter::new(file);
        let name = json!({"name": "process_name", "ph": "M", "pid": GPU, "tid": 0, "args": {"name": "GPU"}});
        write!(out, "[\n{name}")?;
        let (out, kernel, named) = (Mutex::new(out), kernel.clone(), Mutex::default());
        let timeline = Arc::new(Timeline { start_ns: host_ns(), out, kernel, named });
        let watching = timeline.clone();
        gpu.observe(Arc::new(move |event| watching.gpu(event)));
        Ok(timeline)
    }

    /// Ends the array. Later events are not written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&self) -> io::Result<()> {
        let (ranges, left_out) = self.kernel.names().ranges();
        for range in ranges {
            let (process, thread) = (range.process as u32, range.thread as u32);
            let time = (range.begun_ns, range.begun_ns + range.ns);
            self.span((process, thread), (&range.name, "range"), time, &json!({"domain": range.domain}));
        }
        if left_out > 0 {
            say(format_args!("--trace: {left_out} ranges of the program were left out"));
        }
        let mut out = self.out();
        writeln!(out, "\n]")?;
        out.flush()
    }

    fn out(&self) -> MutexGuard<'_, BufWriter<File>> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, event: &Value) {
        // A full disk does not stop the program. `finish` reports it.
        let _ = write!(self.out(), ",\n{event}");
    }

    fn microseconds(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.start_ns) as f64 / 1e3
    }

    /// Writes an event that took some time.
    fn span(&self, who: (u32, u32), (name, kind): (&str, &str), (start, end): (u64, u64), args: &Value) {
        let (ts, dur) = (self.microseconds(start), end.saturating_sub(start) as f64 / 1e3);
        let (pid, tid) = who;
        self.write(&json!({
            "name": name, "cat": kind, "ph": "X", "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args
        }));
    }

    /// Writes an event of this moment.
    fn instant(&self, channel: u32, name: &str, kind: &str, args: &Value) {
        let ts = self.microseconds(host_ns());
        self.write(&json!({
            "name": name, "cat": kind, "ph": "i", "s": "t", "ts": ts, "pid": GPU, "tid": channel, "args": args
        }));
    }

    /// Writes the name of a channel's queue, if it has one that was not written yet.
    fn name(&self, channel: u32) {
        let Some(name) = self.kernel.names().queue_of_channel(channel) else { return };
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.insert(channel, name.clone()).as_ref() != Some(&name) {
            let args = json!({"name": &*name});
            self.write(&json!({"name": "thread_name", "ph": "M", "pid": GPU, "tid": channel, "args": args}));
        }
    }

    fn gpu(&self, event: &Event) {
        if let Event::Launch { channel, .. } | Event::Copy { channel, .. } | Event::GpEntry { channel, .. } = event {
            self.name(*channel);
        }
        let hex = |v: &u64| format!("{v:#x}");
        match event {
            Event::GpEntry { channel, index, entry } => {
                self.instant(*channel, "entry", "gpfifo", &json!({"index": index, "entry": hex(entry)}));
            }
            Event::Copy { channel, from, to, bytes, start_ns, end_ns } => {
                let args = json!({"from": hex(from), "to": hex(to), "bytes": bytes});
                self.span((GPU, *channel), ("copy", "copy"), (*start_ns, *end_ns), &args);
            }
            Event::Launch { channel, qmd, code, name, grid, block, warp_instructions, start_ns, end_ns, .. } => {
                let args = json!({
                    "qmd": hex(qmd), "code": hex(code), "grid": grid, "block": block,
                    "warp_instructions": warp_instructions
                });
                let name = name.as_deref().map_or_else(|| format!("kernel {code:#x}"), str::to_owned);
                self.span((GPU, *channel), (&name, "launch"), (*start_ns, *end_ns), &args);
            }
            Event::Semaphore { channel, va, what, payload } => {
                self.instant(*channel, what, "semaphore", &json!({"va": hex(va), "payload": hex(payload)}));
            }
            Event::Blocked { channel, va, payload } => {
                self.instant(*channel, "waits", "semaphore", &json!({"va": hex(va), "payload": hex(payload)}));
            }
            Event::NonStall { channel, tsg } => {
                self.instant(*channel, "interrupt", "interrupt", &json!({"tsg": tsg}));
            }
            Event::Logged { channel, tsg, text } => {
                self.instant(*channel, "logged", "interrupt", &json!({"tsg": tsg, "text": text}));
            }
            Event::Fault { channel, tsg, fault } => {
                self.instant(*channel, "fault", "fault", &json!({"tsg": tsg, "text": fault.text}));
            }
            _ => {}
        }
    }
}

impl Observer for Timeline {
    fn ioctl(&self, call: &Answered<'_>) {
        let fields = describe::fields(call.node, call.request, call.after);
        let mut args: serde_json::Map<String, Value> =
            fields.iter().map(|f| (f.name.to_string(), f.value.to_string().into())).collect();
        args.insert("fd".into(), call.fd.into());
        args.insert("result".into(), call.result.map_or_else(|e| format!("{e:?}"), |v| v.to_string()).into());
        let pid = call.pid as u32;
        let name = describe::name(call.node, call.request);
        self.span((pid, pid), (&name, "ioctl"), call.time_ns, &args.into());
    }
}
