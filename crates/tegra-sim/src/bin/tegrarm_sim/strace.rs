//! `--strace` writes one line for each call, with names and decoded fields.

use std::io::Write;
use std::sync::Mutex;
use std::time::Instant;
use tegra_sim::supervisor::{Answered, MapCall, Observer};
use tegrarm_abi::nvmap::NVMAP_IOC_FREE;
use tegrarm_kmd::describe::{self, Field, Value};
use tegrarm_kmd::{Errno, Node};

/// Writes one line for each call.
pub struct Strace {
    begun: Instant,
    out: Mutex<Box<dyn Write + Send>>,
}

impl Strace {
    /// Makes an observer that writes to `out`. Times are counted from now on.
    pub fn new(out: Box<dyn Write + Send>) -> Strace {
        Strace { begun: Instant::now(), out: Mutex::new(out) }
    }

    fn line(&self, pid: i32, text: &str) {
        let time = self.begun.elapsed();
        let mut out = self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // If the reader has closed the pipe, the program continues.
        let _ = writeln!(out, "[{pid}] {}.{:06} {text}", time.as_secs(), time.subsec_micros());
    }
}

impl Observer for Strace {
    fn opened(&self, pid: i32, path: &str, fd: i32) {
        self.line(pid, &format!("open({path:?}) = {fd}"));
    }

    fn ioctl(&self, call: &Answered<'_>) {
        let (before, after) = (arguments(call, call.before), fields(call, call.after));
        let line = describe::line(&call.fd, call.node, call.request, &before, &after, call.result);
        self.line(call.pid, &line_with_rule(line, call.result.err(), call.rule, call.node));
    }

    fn mapped(&self, call: &MapCall<'_>) {
        let MapCall { fd, node, len, offset, .. } = call;
        let result = match call.result {
            // The host makes the mapping. Only the program knows its address.
            Ok(()) => "allowed".to_owned(),
            Err(e) => format!("-1 {e:?}"),
        };
        let line = format!("mmap({fd} ({node:?}), len={len:#x}, {}, offset={offset:#x}) = {result}", access(call.prot));
        self.line(call.pid, &line_with_rule(line, call.result.err(), call.rule, *node));
    }

    fn wrote(&self, pid: i32, path: &str, line: &str, result: Result<(), Errno>) {
        let result = result.map_or_else(|e| format!("-1 {e:?}"), |()| line.len().to_string());
        self.line(pid, &format!("write({path:?}, {line:?}) = {result}"));
    }
}

/// The fields of a structure. Flags have their names instead of their numbers.
fn fields(call: &Answered<'_>, bytes: &[u8]) -> Vec<Field> {
    let mut fields = describe::fields(call.node, call.request, bytes);
    for field in &mut fields {
        if let Some(names) = describe::flag_names(call.node, call.request, field) {
            field.value = Value::Text(names);
        }
    }
    fields
}

/// The fields of the argument. If the argument is a number and not a structure, this is the number.
fn arguments(call: &Answered<'_>, bytes: &[u8]) -> Vec<Field> {
    if !bytes.is_empty() || call.argument == 0 {
        return fields(call, bytes);
    }
    let name = if call.request == NVMAP_IOC_FREE { "handle" } else { "argument" };
    vec![Field { name: name.into(), offset: 0, value: Value::Unsigned(call.argument) }]
}

fn access(prot: i32) -> String {
    let bits = [(libc::PROT_READ, "PROT_READ"), (libc::PROT_WRITE, "PROT_WRITE"), (libc::PROT_EXEC, "PROT_EXEC")];
    let names: Vec<&str> = bits.iter().filter(|(bit, _)| prot & bit != 0).map(|(_, name)| *name).collect();
    if names.is_empty() { "PROT_NONE".to_owned() } else { names.join("|") }
}

/// A line, followed by the rule by which its call was refused. If there is no rule, the chapter with the rules of the
/// node follows.
fn line_with_rule(line: String, errno: Option<Errno>, rule: Option<&str>, node: Node) -> String {
    match (errno, rule) {
        (None, _) => line,
        (Some(_), Some(rule)) => format!("{line} ({rule})"),
        (Some(_), None) => format!("{line} (its rules: {})", chapter(node)),
    }
}

/// The chapter that has the rules of the calls of a node.
fn chapter(node: Node) -> &'static str {
    match node {
        Node::Nvmap | Node::Dmabuf => "docs/hardware/nvmap.md",
        Node::Ctrl => "docs/hardware/nvgpu-ctrl.md",
        Node::As => "docs/hardware/nvgpu-address-space.md",
        Node::Tsg => "docs/hardware/nvgpu-tsg.md",
        Node::Channel | Node::SyncFile => "docs/hardware/nvgpu-channel.md",
        _ => "docs/hardware/README.md",
    }
}
