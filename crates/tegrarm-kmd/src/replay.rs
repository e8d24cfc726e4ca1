//! A kernel that answers from a recording.

use crate::entry::{Call, Ioctl, MEMORY};
use crate::image::{Image, Moment, Spans, spans};
use crate::insights;
use crate::labels::Labels;
use crate::sms::Sms;
use crate::stand_ins::{self, StandIns};
use crate::written;
use crate::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot, describe, descriptors};
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead};
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use tegrarm_lock::Mutex;
use tegrarm_output::say;

/// The reason why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot read the recording: {0}")]
    Io(#[from] io::Error),
    /// The file does not begin as a recording does.
    #[error("not a recording of version {version}: the first line is {0:?}", version = super::RECORDING_VERSION)]
    Header(String),
    /// A line is not a recorded call.
    #[error("line {0} of the recording is not a recorded call: {1}")]
    Line(usize, String),
}

/// Answers every call from a recording, without any kernel.
///
/// Descriptors are stand-ins: they are real, with empty memory that is as large as the recording mapped. Calls are
/// matched in order for each descriptor and each path, so that threads may interleave differently. A call, a name or an
/// input field that differs from the recording is an error. It is logged with the decoded difference, remembered for
/// [`first_difference`](Replayed::first_difference), and answered with `EIO`.
///
/// A recording has what the GPU wrote to the memory that the program mapped. It was recorded each time the program had
/// waited for the GPU. A replay writes the next part of it to the memory when the program waits ([`Kmd::step`]). If the
/// program waits and no part is left, the wait fails with a sentence. A program that reads memory without a call of the
/// library cannot be replayed.
pub struct Replayed {
    name: String,
    simulated: bool,
    /// Whether the recorded program read reports about GPU code.
    examines_code: bool,
    names_code: bool,
    compare_inputs: bool,
    rest: Mutex<Rest>,
}

struct Rest {
    /// The calls that were not made yet, by descriptor or path.
    queues: HashMap<String, VecDeque<Call>>,
    labels: Labels,
    first_difference: Option<String>,
    files: StandIns,
    /// What the program was told about the SMs.
    sms: Sms,
    /// The reason why the program waits for something that never comes.
    vain: Option<String>,
}

impl Replayed {
    /// Reads the recording at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is not a recording.
    pub fn open(path: &Path) -> Result<Replayed, RecordingError> {
        // Opening a FIFO would wait for somebody who writes.
        if path.metadata()?.file_type().is_fifo() {
            return Err(
                io::Error::new(io::ErrorKind::InvalidInput, "a FIFO is not a recording; copy it to a file").into()
            );
        }
        Replayed::new(io::BufReader::new(std::fs::File::open(path)?))
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// The data cannot be read, or is not a recording.
    pub fn new(reader: impl BufRead) -> Result<Replayed, RecordingError> {
        let (header, calls) = calls(reader)?;
        let mut queues: HashMap<String, VecDeque<Call>> = HashMap::new();
        let mut files = StandIns::default();
        for call in calls {
            files.note_sizes(&call);
            queues.entry(call.key()).or_default().push_back(call);
        }
        let has = |is: fn(&str) -> bool| queues.keys().any(|key| is(key));
        let (examines_code, names_code) = (has(insights::is_of_reports), has(insights::is_of_names));
        let name = format!("replay of {}", header.kernel);
        let rest =
            Rest { queues, labels: Labels::default(), first_difference: None, files, sms: Sms::default(), vain: None };
        let simulated = header.simulated;
        Ok(Replayed { name, simulated, examines_code, names_code, compare_inputs: true, rest: Mutex::new(rest) })
    }

    /// Lets input fields differ. Only the kind, the order and the names of the calls must agree with the recording.
    pub fn ignoring_inputs(mut self) -> Replayed {
        self.compare_inputs = false;
        self
    }

    /// The first call that differs from the recording, decoded. It is `None` while all calls agree.
    pub fn first_difference(&self) -> Option<String> {
        self.rest.lock().first_difference.clone()
    }

    /// The number of recorded calls that were not made yet.
    pub fn remaining(&self) -> usize {
        let rest = self.rest.lock();
        rest.queues.iter().filter(|(key, _)| *key != MEMORY).map(|(_, calls)| calls.len()).sum()
    }
}

/// Why the answer to a call cannot be given.
const NO_LENGTH: &str = "the length of the memory behind its pointers is not known: a program that calls VSMS_MAPPING asks \
                         NUM_VSMS and GET_CHARACTERISTICS before";

/// The kernel of which a recording was made.
pub(crate) struct Header {
    kernel: String,
    simulated: bool,
}

/// Reads a recording: its kernel, and its calls in order.
pub(crate) fn calls(reader: impl BufRead) -> Result<(Header, Vec<Call>), RecordingError> {
    let mut lines = reader.lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let header: serde_json::Value = serde_json::from_str(&first).unwrap_or_default();
    let version = header["recording"].as_u64().filter(|v| (1..=super::RECORDING_VERSION.into()).contains(v));
    if version.is_none() {
        return Err(RecordingError::Header(first));
    }
    let mut calls = Vec::new();
    for (i, line) in lines.enumerate() {
        let line = line?;
        calls.push(Call::from_line(&line).ok_or_else(|| RecordingError::Line(i + 2, line))?);
    }
    let kernel = header["kernel"].as_str().unwrap_or("an unknown kernel").to_owned();
    Ok((Header { kernel, simulated: header["simulated"] == true }, calls))
}

impl Rest {
    /// The next recorded call for `key`, if `check` finds no difference in it.
    fn next(&mut self, key: &str, what: &str, check: impl FnOnce(&Call) -> Vec<String>) -> Result<Call, Errno> {
        let queue = self.queues.get_mut(key);
        let differences = match queue.as_ref().and_then(|q| q.front()) {
            None => vec!["the recording has no further call here".to_owned()],
            Some(call) => check(call),
        };
        match (differences.is_empty(), queue.and_then(VecDeque::pop_front)) {
            (true, Some(call)) => Ok(call),
            (_, popped) => {
                // The call stays the next one, because a later call of the program may be the one that was recorded.
                if let (Some(call), Some(queue)) = (popped, self.queues.get_mut(key)) {
                    queue.push_front(call);
                }
                self.differ(format!("{what}: {}", differences.join("; ")));
                Err(Errno::EIO)
            }
        }
    }

    /// Answers a wait for the GPU for which the recording has nothing more.
    fn give_up(&mut self) {
        if self.vain.is_none() {
            let why = "the recording has nothing more of what the GPU wrote, so this wait would never end";
            self.vain = Some(why.to_owned());
            self.differ(why.to_owned());
        }
    }

    /// Says that the program cannot be replayed. This happens if it maps a doorbell and the recording has nothing that
    /// the GPU wrote.
    fn warn_of_doorbell(&mut self, fd: BorrowedFd<'_>) {
        let doorbell = self.labels.of(fd.as_raw_fd(), "dmabuf").starts_with("ctrl#");
        if doorbell && !self.queues.contains_key(MEMORY) {
            say(
                "the recording has nothing of what the GPU wrote. Waits of the library fail; a program that looks at memory \
                 itself will wait for ever",
            );
        }
    }

    fn differ(&mut self, text: String) {
        tracing::error!(target: "tegrarm::kmd", "differs from the recording: {text}");
        self.first_difference.get_or_insert(text);
    }
}

/// The difference between calls of different kinds.
fn other_kind(recorded: &Call) -> Vec<String> {
    vec![format!("the recording has {} here", recorded.name())]
}

impl Kmd for Replayed {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_simulated(&self) -> bool {
        self.simulated
    }

    fn examines_code(&self) -> bool {
        self.examines_code
    }

    fn names_code(&self) -> bool {
        self.names_code
    }

    /// Shows the program what the GPU had written when the recorded program had waited.
    fn step(&self) -> bool {
        let mut rest = self.rest.lock();
        match rest.queues.get_mut(MEMORY).and_then(VecDeque::pop_front) {
            Some(Call::Memory(written)) => {
                rest.files.show(&written);
                true
            }
            _ => {
                rest.give_up();
                false
            }
        }
    }

    fn waits_in_vain(&self) -> Option<String> {
        self.rest.lock().vain.clone()
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        let mut rest = self.rest.lock();
        let call = rest.next(&format!("open {path}"), &format!("open {path}"), |_| Vec::new())?;
        let Call::Open { result, .. } = call else { return Err(Errno::EIO) };
        let made = result?;
        let fd = rest.files.make(&made.label)?;
        rest.labels.assign(fd.as_raw_fd(), &made.label);
        Ok(fd)
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, mut arg: Arg<'_>) -> Result<i32, Errno> {
        let mut rest = self.rest.lock();
        let told = rest.sms;
        let found = spans(request, &arg, || told.bytes());
        let (opaque, spans) = (found.is_none(), found.unwrap_or_default());
        let on = rest.labels.of(fd.as_raw_fd(), descriptors::kind(node));
        let now = Image::take(request, &arg, &spans, Moment::Before, &mut rest.labels);
        let call = rest.next(&on, &format!("{} on {on}", describe::name(node, request)), |call| match call {
            Call::Ioctl(i) if (i.node, i.request) == (node, request) => match opaque {
                true => vec![NO_LENGTH.into()],
                false => self.differences(i, &now, &spans),
            },
            other => other_kind(other),
        })?;
        let Call::Ioctl(recorded) = call else { return Err(Errno::EIO) };
        if let Arg::Bytes(bytes) = &mut arg {
            if recorded.result == Ok(0) {
                rest.sms.hear(request, &recorded.after.bytes);
            }
            let handle = written::handle_of_descriptor(request, &recorded.before.bytes);
            let Rest { files, labels, .. } = &mut *rest;
            // Nobody takes a descriptor from a call that does not return 0, so that these are closed here.
            let mut made: Vec<OwnedFd> = Vec::new();
            let applied = recorded.after.apply(request, bytes, &spans, |label| {
                let fd = match handle {
                    Some(handle) => files.make_of(handle, label)?,
                    None => files.make(label)?,
                };
                labels.assign(fd.as_raw_fd(), label);
                made.push(fd);
                Ok(made.last().map_or(-1, AsRawFd::as_raw_fd))
            });
            if applied.is_err() || recorded.result != Ok(0) {
                made.iter().for_each(|fd| drop(labels.remove(fd.as_raw_fd(), "file")));
                return applied.and(recorded.result);
            }
            made.into_iter().for_each(|fd| _ = fd.into_raw_fd());
        }
        if let Some(handle) = written::freed_handle(request, recorded.before.value) {
            rest.files.freed(handle);
        }
        recorded.result
    }

    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        let call = {
            let mut rest = self.rest.lock();
            rest.warn_of_doorbell(fd);
            let on = rest.labels.of(fd.as_raw_fd(), "dmabuf");
            rest.next(&on, &format!("mmap of {on}"), |call| match call {
                Call::Mmap { len: l, prot: p, offset: o, place, .. } => {
                    let same_kind = std::mem::discriminant(place) == std::mem::discriminant(&at);
                    match !self.compare_inputs || (*l, *p, *o, same_kind) == (len, prot, offset, true) {
                        true => Vec::new(),
                        false => vec![format!(
                            "recorded {l:#x} bytes {p:?} at {o:#x} {place:x?}, now {len:#x} bytes {prot:?} at {offset:#x} {at:x?}"
                        )],
                    }
                }
                other => other_kind(other),
            })?
        };
        match call {
            Call::Mmap { result: Err(errno), .. } => Err(errno),
            _ => {
                stand_ins::reach(fd, offset, len)?;
                Mapping::new(fd, at, len, prot, offset)
            }
        }
    }

    fn close(&self, fd: OwnedFd) {
        let mut rest = self.rest.lock();
        let on = rest.labels.remove(fd.as_raw_fd(), "file");
        // A close cannot fail. A difference is remembered, and the descriptor is closed in any case.
        let _remembered = rest.next(&on, &format!("close of {on}"), |call| match call {
            Call::Close { .. } => Vec::new(),
            other => other_kind(other),
        });
        drop(fd);
    }

    fn own_view(&self, _: BorrowedFd<'_>) -> Option<usize> {
        None
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        let key = format!("read {path}");
        match self.rest.lock().next(&key, &key, |_| Vec::new())? {
            Call::ReadText { result, .. } => result,
            _ => Err(Errno::EIO),
        }
    }

    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        let key = format!("write {path}");
        let call = self.rest.lock().next(&key, &key, |call| match call {
            Call::WriteText { text: recorded, .. } if self.compare_inputs && recorded != text => {
                vec![format!("recorded {recorded:?}, now {text:?}")]
            }
            _ => Vec::new(),
        })?;
        match call {
            Call::WriteText { result, .. } => result,
            _ => Err(Errno::EIO),
        }
    }
}

impl Replayed {
    fn differences(&self, recorded: &Ioctl, now: &Image, spans: &Spans) -> Vec<String> {
        if recorded.opaque {
            return vec!["the recording could not keep what this call does behind its pointers".into()];
        }
        let Ioctl { node, request, before, after, .. } = recorded;
        let mut differences = if recorded.result == Ok(0) { after.without_label(*request, now) } else { Vec::new() };
        if self.compare_inputs {
            differences.extend(before.differences(*node, *request, now));
            differences.extend(after.too_long(*request, spans));
        }
        differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_ins::DOORBELL_WINDOW;
    use crate::testing::{TestKmd, adopt, program, raw};
    use crate::{File, Recorded};
    use std::sync::Arc;
    use tegrarm_abi::layout::{FromZeros, IntoBytes};
    use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_ALLOC_AS, nvgpu_alloc_as_args};
    use tegrarm_abi::nvmap::{NVMAP_IOC_CREATE, nvmap_create_handle};

    /// Records [`program`] with a buffer of 8 KiB. Each test has its own file, because recordings are read by path.
    fn recording(test: &str) -> String {
        let path = std::env::temp_dir().join(format!("tegrarm-kmd-{}-{test}.jsonl", std::process::id()));
        let recorder = Recorded::create(Arc::<TestKmd>::default(), &path).expect("a recording");
        program(&(Arc::new(recorder) as Arc<dyn Kmd>), 8192).expect("the test kernel knows the program");
        let text = std::fs::read_to_string(&path).expect("the recording");
        assert!(Replayed::open(&path).is_ok());
        std::fs::remove_file(&path).expect("a file to remove");
        text
    }

    fn replay(text: &str) -> Arc<Replayed> {
        Arc::new(Replayed::new(text.as_bytes()).expect("a recording"))
    }

    #[test]
    fn the_same_program_learns_the_same() {
        let kernel: Arc<dyn Kmd> = Arc::<TestKmd>::default();
        let replay = replay(&recording("same"));
        assert_eq!(replay.name(), "replay of test");
        assert_eq!(program(&(replay.clone() as Arc<dyn Kmd>), 8192), program(&kernel, 8192));
        assert_eq!((replay.first_difference(), replay.remaining()), (None, 0));
    }

    #[test]
    fn a_different_input_is_named() {
        let replay = replay(&recording("input"));
        assert_eq!(program(&(replay.clone() as Arc<dyn Kmd>), 4096), Err(Errno::EIO));
        let text = replay.first_difference().expect("a difference");
        assert_eq!(text, "NVMAP_IOC_CREATE on nvmap#1: size: recorded 0x2000, now 0x1000");
        assert!(replay.remaining() > 0);
    }

    #[test]
    fn inputs_may_be_ignored() {
        let text = recording("ignored");
        let replay = Arc::new(Replayed::new(text.as_bytes()).expect("a recording").ignoring_inputs());
        assert!(program(&(replay.clone() as Arc<dyn Kmd>), 4096).is_ok());
        assert_eq!(replay.first_difference(), None);
    }

    #[test]
    fn a_different_or_additional_call_is_named() {
        let replay = replay(&recording("call"));
        let kmd: Arc<dyn Kmd> = replay.clone();
        let ctrl = File::open(&kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").expect("recorded");
        let mut space = nvgpu_alloc_as_args::new_zeroed();
        assert_eq!(ctrl.ioctl(NVGPU_GPU_IOCTL_ALLOC_AS, &mut space), Err(Errno::EIO));
        let text = replay.first_difference().expect("a difference");
        assert!(text.contains("the recording has NVGPU_GPU_IOCTL_GET_CHARACTERISTICS here"), "{text}");
        assert_eq!(kmd.open("/dev/null").err(), Some(Errno::EIO));
        assert_eq!(replay.first_difference(), Some(text), "the first one stays");
    }

    #[test]
    fn memory_behind_pointers_is_compared() {
        let line = |bytes: &str| {
            format!(
                concat!(
                    r#"{{"seq":1,"call":"ioctl","on":"foreign-nvmap#1","node":"nvmap","request":"0x40104e18","#,
                    r#""in":{{"bytes":"00000000020000000100000000000000","memory":{{"8":{{"bytes":"{}"}}}}}},"ret":0}}"#
                ),
                bytes
            )
        };
        for (recorded, same) in [("6162", true), ("6163", false)] {
            let replay = replay(&format!("{{\"recording\":1}}\n{}\n", line(recorded)));
            let name = *b"ab";
            let mut arg = [0u8; 16];
            arg[4] = 2;
            arg[8..].copy_from_slice(&(name.as_ptr() as u64).to_le_bytes());
            let file = std::fs::File::open("/dev/null").expect("a file");
            let fd = std::os::fd::AsFd::as_fd(&file);
            let result = replay.ioctl(fd, Node::Nvmap, 0x4010_4e18, Arg::Bytes(&mut arg));
            assert_eq!(result, if same { Ok(0) } else { Err(Errno::EIO) });
            let text = replay.first_difference().unwrap_or_default();
            assert_eq!(same, !text.contains("memory behind addr: recorded 6163, now 6162"), "{text}");
        }
    }

    #[test]
    fn descriptors_keep_their_own_order() {
        // Two nodes are opened in the other order, as two threads might do it.
        let replay = replay(&recording("order"));
        let kmd: Arc<dyn Kmd> = replay.clone();
        let _ctrl = File::open(&kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").expect("recorded");
        let nvmap = File::open(&kmd, Node::Nvmap, "/dev/nvmap").expect("recorded");
        let mut handle = nvmap_create_handle { size: 8192, handle: 0 };
        assert_eq!(nvmap.ioctl(NVMAP_IOC_CREATE, &mut handle), Ok(()));
        assert_eq!(handle.handle, 0x8000_0000);
    }

    #[test]
    fn stand_ins_are_real_files_of_the_right_size() {
        let replay = replay(&recording("files"));
        let fd = replay.open("/dev/nvgpu/igpu0/ctrl").expect("recorded");
        let len = std::fs::metadata(format!("/proc/self/fd/{}", raw(&fd))).expect("open").len();
        assert_eq!(len, DOORBELL_WINDOW);
        let (mut arg, nvmap) =
            (nvmap_create_handle { size: 8192, handle: 0 }, replay.open("/dev/nvmap").expect("recorded"));
        let ask = |request, arg: &mut nvmap_create_handle| {
            replay.ioctl(std::os::fd::AsFd::as_fd(&nvmap), Node::Nvmap, request, Arg::Bytes(arg.as_mut_bytes()))
        };
        assert_eq!(ask(NVMAP_IOC_CREATE, &mut arg), Ok(0));
        assert_eq!(ask(tegrarm_abi::nvmap::NVMAP_IOC_GET_FD, &mut arg), Ok(0));
        let dmabuf = adopt(arg.size as i32);
        assert_eq!(std::fs::metadata(format!("/proc/self/fd/{}", raw(&dmabuf))).expect("open").len(), 8192);
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        assert!(matches!(Replayed::new(&b""[..]), Err(RecordingError::Header(_))));
        assert!(matches!(Replayed::new(&b"{\"recording\":99}\n"[..]), Err(RecordingError::Header(_))));
        assert!(matches!(Replayed::new(&b"{\"recording\":1}\nnoise\n"[..]), Err(RecordingError::Line(2, _))));
        assert!(matches!(Replayed::open(Path::new("/nonexistent")), Err(RecordingError::Io(_))));
    }
}
