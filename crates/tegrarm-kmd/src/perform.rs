//! Makes the calls of a recording on another kernel and compares the answers.
//!
//! This is the opposite of [`Replayed`](crate::Replayed): there a program runs without a kernel, and here a kernel runs
//! without its program. A recording does not have the contents of device memory, so calls that depend on them are left
//! out.

use crate::descriptors::{self, Role};
use crate::entry::{Call, Ioctl};
use crate::image::{Image, Moment, spans};
use crate::labels::Labels;
use crate::lent::Lent;
use crate::pointers::{self, Use};
use crate::replay::{RecordingError, calls};
use crate::sms::Sms;
use crate::{Arg, Errno, File, Kmd, Mapping, Node, Placement, describe};
use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, RawFd};
use std::sync::Arc;
use tegrarm_abi::layout::argument_size;
use tegrarm_abi::nvgpu::channel::{NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT, NVGPU_IOCTL_CHANNEL_WAIT};
use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO, NVGPU_GPU_IOCTL_GET_GPU_TIME};
use tegrarm_abi::nvgpu::debugger::NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE;
use tegrarm_abi::nvgpu::tsg::{NVGPU_TSG_IOCTL_READ_ALL_SM_ERROR_STATES, NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE};
use tegrarm_abi::nvmap::{NVMAP_IOC_FREE, NVMAP_IOC_FROM_VA};

/// The calls whose answer is a time.
const TIMES: [u32; 2] = [NVGPU_GPU_IOCTL_GET_GPU_TIME, NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO];
/// The calls whose answer is what the GPU's work has left. A recording has no work of the GPU, so only their results are
/// compared.
const OF_WORK: [u32; 4] = [
    NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT,
    NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE,
    NVGPU_TSG_IOCTL_READ_ALL_SM_ERROR_STATES,
    NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE,
];
/// The size of the memory that is given where a recording says only that an address was given.
const SCRATCH: usize = 64 << 10;

/// The result of making a recording's calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Performed {
    /// The number of calls that were made.
    pub made: usize,
    /// The number of calls that were left out, because the recording does not contain what they depend on.
    pub left_out: usize,
    /// The first call that ended differently, decoded. No call was made after it.
    pub difference: Option<String>,
}

/// A call of a recording that ended differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its line in the recording, from 1.
    pub line: usize,
    /// What was called, and on which file.
    pub call: String,
    /// The differences, field by field: `name: recorded A, now B`. A result has no name.
    pub fields: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.fields.join("; "))
    }
}

/// The result of making all calls of a recording, whatever becomes of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerformedAll {
    /// The number of calls that were made.
    pub made: usize,
    /// The number of calls that were left out, because the recording, or a call that now failed, does not give what they
    /// depend on.
    pub left_out: usize,
    /// The calls that ended differently, in order.
    pub differences: Vec<Difference>,
}

impl fmt::Display for Performed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Performed { made, left_out, difference } = self;
        match difference {
            None => write!(f, "{made} calls, all as recorded; {left_out} left out"),
            Some(difference) => write!(f, "{made} calls as recorded, then\n{difference}"),
        }
    }
}

/// Makes the calls of `recording` on `kernel`, in order, up to the first one that ends differently.
///
/// Descriptors are those that the same calls make now. Addresses of the program are replaced by memory of this process
/// with the recorded contents. Mappings are made at any address and dropped.
///
/// # Errors
/// When the file is not a recording.
pub fn perform(recording: impl BufRead, kernel: Arc<dyn Kmd>) -> Result<Performed, RecordingError> {
    let mut outcome = Performed::default();
    each(recording, kernel, |_, end| {
        match end {
            Outcome::Same => outcome.made += 1,
            Outcome::LeftOut => outcome.left_out += 1,
            Outcome::Differs { call, fields } => {
                outcome.difference = Some(Difference { line: 0, call, fields }.to_string());
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(outcome)
}

/// Makes all calls of `recording` on `kernel`, also those after one that ends differently. `progress` hears how many of
/// how many were made.
///
/// nvmap's handles are numbers that a board counts on from process to process. Where CREATE gives another one than the
/// recorded one, later calls are made with the new one.
///
/// # Errors
/// When the file is not a recording.
pub fn perform_all(
    recording: impl BufRead,
    kernel: Arc<dyn Kmd>,
    mut progress: impl FnMut(usize, usize),
) -> Result<PerformedAll, RecordingError> {
    let mut outcome = PerformedAll::default();
    each(recording, kernel, |(index, count), end| {
        match end {
            Outcome::Same => outcome.made += 1,
            Outcome::LeftOut => outcome.left_out += 1,
            Outcome::Differs { call, fields } => {
                outcome.made += 1;
                // The first line of the file is its header.
                outcome.differences.push(Difference { line: index + 2, call, fields });
            }
        }
        progress(index + 1, count);
        ControlFlow::Continue(())
    })?;
    Ok(outcome)
}

/// Makes the calls, and tells how each ended, with its index and the number of calls, until it is told to stop.
fn each(
    recording: impl BufRead,
    kernel: Arc<dyn Kmd>,
    mut tell: impl FnMut((usize, usize), Outcome) -> ControlFlow<()>,
) -> Result<(), RecordingError> {
    let (_, calls) = calls(recording)?;
    let mut stage =
        Stage { kernel, files: HashMap::new(), labels: Labels::default(), handles: HashMap::new(), pinned: Vec::new() };
    for (index, call) in calls.iter().enumerate() {
        let end = stage.call(call);
        if tell((index, calls.len()), end).is_break() {
            break;
        }
    }
    Ok(())
}

/// The result of one call.
enum Outcome {
    Same,
    LeftOut,
    Differs { call: String, fields: Vec<String> },
}

/// The kernel, the files that are open on it, and the memory that replaces the program's.
struct Stage {
    kernel: Arc<dyn Kmd>,
    files: HashMap<String, File>,
    labels: Labels,
    /// nvmap's handles that have another number than in the recording: the recorded one, and that of now.
    handles: HashMap<u32, u32>,
    /// The pages of which handles were made.
    pinned: Vec<Mapping>,
}

impl Stage {
    fn call(&mut self, call: &Call) -> Outcome {
        match call {
            Call::Open { path, result } => {
                let now = File::open(&self.kernel, Node::Dmabuf, path);
                let same = same_end(&format!("open {path}"), result, &now);
                if let (Ok(made), Ok(file)) = (result, now) {
                    self.adopt(file, &made.label);
                }
                same
            }
            Call::Ioctl(i) => self.ioctl(i).unwrap_or(Outcome::LeftOut),
            Call::Mmap { on, len, prot, offset, place, result } => {
                // Whether an address was occupied depends on the program and not on the kernel.
                let taken = *result == Err(Errno::EEXIST) && *place != Placement::Anywhere;
                let Some(file) = self.files.get(on).filter(|_| !taken) else { return Outcome::LeftOut };
                let now = file.mmap(Placement::Anywhere, *len, *prot, *offset);
                same_end(&format!("mmap of {len:#x} bytes of {on} at {offset:#x}"), result, &now)
            }
            Call::Close { on } => match self.files.remove(on) {
                Some(file) => {
                    self.labels.remove(file.raw(), on);
                    Outcome::Same
                }
                None => Outcome::LeftOut,
            },
            Call::ReadText { path, result } => {
                same_end(&format!("read of {path}"), result, &self.kernel.read_text(path))
            }
            // The contents of memory are the program's business, which is not here.
            Call::Memory(_) => Outcome::LeftOut,
            Call::WriteText { path, text, result } => {
                same_end(&format!("write of {text:?} to {path}"), result, &self.kernel.write_text(path, text))
            }
        }
    }

    fn adopt(&mut self, file: File, label: &str) {
        self.labels.assign(file.raw(), label);
        self.files.insert(label.to_owned(), file);
    }

    /// Makes one ioctl. The result is `None` if the recording does not contain what the call depends on.
    fn ioctl(&mut self, call: &Ioctl) -> Option<Outcome> {
        if call.opaque || call.request == NVGPU_IOCTL_CHANNEL_WAIT {
            return None;
        }
        // A plain integer is not the address of an argument, and an argument is as long as the request says.
        let said = if call.before.value.is_some() { 0 } else { call.before.bytes.len() };
        if said != argument_size(call.request) {
            return None;
        }
        let file = self.files.get(&call.on)?;
        // The recording does not say how much the kernel of now writes: this kernel says it.
        let per_sm = || Sms::of(&*self.kernel, file.as_fd(), call.node).bytes();
        let mut lent = Lent::default();
        let mut bytes = self.argument(call, &mut lent, per_sm)?;
        self.exchange_handle(call, &mut bytes);
        let mut arg = call.before.value.map_or(Arg::Bytes(&mut bytes), |v| Arg::Value(self.handle_now(call, v)));
        let spans = spans(call.request, &arg, per_sm)?;
        let result = self.kernel.ioctl(file.as_fd(), call.node, call.request, arg.reborrow());
        let moment = if result == Ok(0) { Moment::Done } else { Moment::Failed };
        let mut after = Image::take(call.request, &arg, &spans, moment, &mut self.labels);
        if result == Ok(0) {
            self.note_handle(call, &after);
            self.adopt_made(call, &arg);
            self.pinned.append(&mut lent.pages);
        }
        self.restore_handle(call, &mut after);
        Some(compare(call, result, after))
    }

    /// The handle of now for a call that takes one as its whole argument.
    fn handle_now(&self, call: &Ioctl, value: u64) -> u64 {
        let known = if call.request == NVMAP_IOC_FREE { u32::try_from(value).ok() } else { None };
        known.and_then(|handle| self.handles.get(&handle)).map_or(value, |now| u64::from(*now))
    }

    /// Puts the handle of now in place of the recorded one.
    fn exchange_handle(&self, call: &Ioctl, bytes: &mut [u8]) {
        for at in handle_fields(call) {
            let recorded = bytes.get(at..at + 4).map_or(0, describe::unsigned) as u32;
            if let (Some(now), Some(field)) = (self.handles.get(&recorded), bytes.get_mut(at..at + 4)) {
                field.copy_from_slice(&now.to_le_bytes());
            }
        }
    }

    /// Notes that a call made another handle than it did when it was recorded.
    fn note_handle(&mut self, call: &Ioctl, after: &Image) {
        for at in handle_fields(call) {
            let of = |bytes: &[u8]| bytes.get(at..at + 4).map_or(0, describe::unsigned) as u32;
            let (recorded, before, now) = (of(&call.after.bytes), of(&call.before.bytes), of(&after.bytes));
            if call.result == Ok(0) && recorded != before && recorded != now {
                self.handles.insert(recorded, now);
            }
        }
    }

    /// A handle that went in is compared as it was recorded.
    fn restore_handle(&self, call: &Ioctl, after: &mut Image) {
        if let Some(value) = call.before.value {
            after.value = Some(value);
        }
        for at in handle_fields(call) {
            let of = |bytes: &[u8]| bytes.get(at..at + 4).map_or(0, describe::unsigned) as u32;
            let (before, now) = (of(&call.before.bytes), of(&after.bytes));
            if self.handles.get(&before) == Some(&now)
                && let (Some(field), Some(recorded)) =
                    (after.bytes.get_mut(at..at + 4), call.before.bytes.get(at..at + 4))
            {
                field.copy_from_slice(recorded);
            }
        }
    }

    /// The argument for this run: its own descriptors, and addresses of memory with the recorded contents.
    fn argument(&self, call: &Ioctl, lent: &mut Lent, per_sm: impl Fn() -> Option<usize>) -> Option<Vec<u8>> {
        let mut bytes = call.before.bytes.clone();
        for (at, label) in &call.before.fds {
            self.put_fd(&mut bytes, *at, label)?;
        }
        // A recording has 1 for every address that was given. This is enough to find out how many bytes lie behind
        // each.
        let lengths = {
            let mut copy = bytes.clone();
            spans(call.request, &Arg::Bytes(&mut copy), per_sm)?
        };
        for p in pointers::of(call.request) {
            let given = bytes.get(p.offset..p.offset + 8).is_some_and(|b| describe::unsigned(b) != 0);
            if !given {
                continue;
            }
            let addr = match (lengths.get(&p.offset), p.usage) {
                (Some((_, len)), Use::In | Use::Out | Use::InOut) => {
                    let mut contents = Vec::new();
                    if let Some(recorded) = call.before.buffers.get(&p.offset) {
                        contents.extend_from_slice(&recorded.bytes[..recorded.bytes.len().min(*len)]);
                        for (at, label) in &recorded.fds {
                            self.put_fd(&mut contents, *at, label)?;
                        }
                    }
                    lent.bytes(*len, &contents)?
                }
                _ if call.request == NVMAP_IOC_FROM_VA => lent.pages(&bytes)?,
                _ => lent.bytes(SCRATCH, &[])?,
            };
            bytes.get_mut(p.offset..p.offset + 8)?.copy_from_slice(&addr.to_le_bytes());
        }
        Some(bytes)
    }

    fn put_fd(&self, bytes: &mut [u8], at: usize, label: &str) -> Option<()> {
        let fd: RawFd = self.files.get(label)?.raw();
        bytes.get_mut(at..at.checked_add(4)?)?.copy_from_slice(&fd.to_le_bytes());
        Some(())
    }

    /// Takes ownership of the descriptors that a successful call made, under the labels of the recording.
    fn adopt_made(&mut self, call: &Ioctl, arg: &Arg<'_>) {
        let Arg::Bytes(bytes) = arg else { return };
        for d in descriptors::of(call.request).filter(|d| d.role != Role::In && d.applies(bytes)) {
            let number = bytes.get(d.offset..d.offset + 4).map_or(0, describe::unsigned) as u32 as RawFd;
            // A descriptor for which the recording has no label is closed again.
            if let (Ok(file), Some(label)) =
                (File::from_output(&self.kernel, Node::Dmabuf, number), call.after.fds.get(&d.offset))
            {
                self.adopt(file, label);
            }
        }
    }
}

/// Where the argument of one of nvmap's calls has a handle.
fn handle_fields(call: &Ioctl) -> impl Iterator<Item = usize> + use<> {
    let fields = if call.node == Node::Nvmap && call.before.value.is_none() {
        describe::fields(call.node, call.request, &call.before.bytes)
    } else {
        Vec::new()
    };
    fields.into_iter().filter(|f| f.name == "handle").map(|f| f.offset)
}

fn compare(call: &Ioctl, result: Result<i32, Errno>, mut after: Image) -> Outcome {
    let what = format!("{} on {}", describe::name(call.node, call.request), call.on);
    if result != call.result {
        return Outcome::Differs { call: what, fields: vec![format!("recorded {:?}, now {result:?}", call.result)] };
    }
    if TIMES.contains(&call.request) || OF_WORK.contains(&call.request) {
        return Outcome::Same;
    }
    // New descriptors got new labels here. They get the labels of the recording afterwards.
    for d in descriptors::of(call.request).filter(|d| d.role != Role::In) {
        if let (Some(label), true) = (call.after.fds.get(&d.offset), after.fds.contains_key(&d.offset)) {
            after.fds.insert(d.offset, label.clone());
        }
    }
    let differences = call.after.differences(call.node, call.request, &after);
    if differences.is_empty() { Outcome::Same } else { Outcome::Differs { call: what, fields: differences } }
}

/// Whether a call without an argument ended in the same way. Its result is not compared.
fn same_end<A, B>(what: &str, recorded: &Result<A, Errno>, now: &Result<B, Errno>) -> Outcome {
    let end = |errno: Option<Errno>| errno.map_or_else(|| "success".to_owned(), |e| format!("{e:?}"));
    let (recorded, now) = (recorded.as_ref().err().copied(), now.as_ref().err().copied());
    if recorded == now {
        Outcome::Same
    } else {
        let fields = vec![format!("recorded {}, now {}", end(recorded), end(now))];
        Outcome::Differs { call: what.to_owned(), fields }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recorded;
    use crate::testing::{TestKmd, program};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn recording(size: u32) -> Vec<u8> {
        // Tests run at the same time, and several record the same program.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name =
            format!("tegrarm-kmd-{}-perform-{}.jsonl", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let recorder = Recorded::create(Arc::<TestKmd>::default(), &path).expect("a recording");
        program(&(Arc::new(recorder) as Arc<dyn Kmd>), size).expect("the test kernel knows the program");
        let text = std::fs::read(&path).expect("the recording");
        std::fs::remove_file(&path).expect("a file to remove");
        text
    }

    #[test]
    fn the_same_kernel_answers_alike_and_nothing_stays_open() {
        let kernel = Arc::<TestKmd>::default();
        let outcome = perform(&recording(8192)[..], kernel.clone()).expect("a recording");
        assert_eq!(outcome.difference, None);
        assert!(outcome.made > 10, "{outcome}");
        assert_eq!(kernel.open_fds(), 0);
    }

    #[test]
    fn another_answer_is_named() {
        let text = String::from_utf8(recording(4096)).expect("text");
        let altered = text.replacen("fefffff000", "fefffff111", usize::MAX).replacen("00f0fffffe", "11f1fffffe", 9);
        assert_ne!(altered, text);
        let outcome = perform(altered.as_bytes(), Arc::<TestKmd>::default()).expect("a recording");
        let text = outcome.difference.expect("a difference");
        assert!(text.contains("NVGPU_AS_IOCTL_MAP_BUFFER_EX on as#1: offset: recorded"), "{text}");
    }

    #[test]
    fn all_differences_are_named_with_their_lines() {
        let text = String::from_utf8(recording(4096)).expect("text");
        let altered = text.replacen("fefffff000", "fefffff111", usize::MAX).replacen("00f0fffffe", "11f1fffffe", 9);
        let mut heard = Vec::new();
        let outcome = perform_all(altered.as_bytes(), Arc::<TestKmd>::default(), |made, of| heard.push((made, of)))
            .expect("a recording");
        let calls = text.lines().count() - 1;
        assert_eq!((heard.len(), heard.last()), (calls, Some(&(calls, calls))), "each call is heard of");
        assert_eq!(outcome.made + outcome.left_out, calls);
        let first = outcome.differences.first().expect("a difference");
        let line: serde_json::Value =
            serde_json::from_str(text.lines().nth(first.line - 1).expect("the line")).expect("a call");
        assert_eq!(line["name"], "NVGPU_AS_IOCTL_MAP_BUFFER_EX");
        assert!(first.fields[0].starts_with("offset: recorded "), "{first}");
    }

    #[test]
    fn a_kernel_that_counts_its_handles_on_differs_in_the_handle_alone() {
        let kernel = Arc::<TestKmd>::default();
        program(&(kernel.clone() as Arc<dyn Kmd>), 4096).expect("the test kernel knows the program");
        let outcome = perform_all(&recording(4096)[..], kernel, |_, _| {}).expect("a recording");
        let handles: Vec<_> = outcome.differences.iter().filter(|d| d.call.starts_with("NVMAP")).collect();
        assert_eq!(handles.len(), 1, "{handles:?}");
        assert!(handles[0].call.starts_with("NVMAP_IOC_CREATE on nvmap"), "{}", handles[0]);
        assert_eq!(handles[0].fields, ["handle: recorded 0x80000000, now 0x80000001"]);
    }
}
