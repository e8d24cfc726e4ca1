//! A kernel that writes down every call.

use crate::descriptors::{self, Role};
use crate::entry::{Call, Ioctl, Made};
use crate::image::{Image, Moment, spans};
use crate::labels::{Labels, kind_of_path};
use crate::sms::Sms;
use crate::written::{self, Watched, Written};
use crate::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use tegrarm_lock::Mutex;
use tegrarm_output::Harmless;

/// Passes every call on to another kernel and writes one JSON line about it.
///
/// A line has the call, the descriptor's label (`channel#2`, because numbers differ between runs), the ioctl's name,
/// its fields before and after the call, the exact bytes without descriptors and addresses, the memory behind pointers
/// that the kernel read and wrote, and the result. [`Replayed`](crate::Replayed) answers from these lines. Where the
/// program has seen that the GPU finished work, a line has what changed in the memory that the program maps.
///
/// The recorder changes nothing: results, errors and memory are those of the kernel below.
pub struct Recorded {
    inner: Arc<dyn Kmd>,
    log: Mutex<Log>,
}

struct Log {
    labels: Labels,
    watched: Watched,
    seq: u64,
    sink: Box<dyn Write + Send>,
    failure: Option<io::Error>,
    /// A line could not be written: nothing is, after it.
    over: bool,
    /// Says on whose behalf the calling thread makes its calls.
    label: Option<fn() -> String>,
}

impl Recorded {
    /// Records to `sink`. Each line is one write.
    ///
    /// # Errors
    /// The error of writing the header line.
    pub fn new(inner: Arc<dyn Kmd>, mut sink: impl Write + Send + 'static) -> io::Result<Recorded> {
        let (kernel, simulated) = (inner.name(), inner.is_simulated());
        let header =
            serde_json::json!({ "recording": super::RECORDING_VERSION, "kernel": kernel, "simulated": simulated });
        sink.write_all(format!("{header}\n").as_bytes())?;
        let (labels, watched) = Default::default();
        let log = Log { labels, watched, seq: 0, sink: Box::new(sink), failure: None, over: false, label: None };
        Ok(Recorded { inner, log: Mutex::new(log) })
    }

    /// Records to a new file at `path`, which replaces a file that exists there.
    ///
    /// # Errors
    /// The error of making or writing the file.
    pub fn create(inner: Arc<dyn Kmd>, path: &Path) -> io::Result<Recorded> {
        Recorded::new(inner, Harmless(create(path)?))
    }

    /// Adds the answer of `label` on the calling thread to every line, as `rm`. An empty answer adds nothing.
    pub fn labelled(mut self, label: fn() -> String) -> Recorded {
        self.log.get_mut().label = Some(label);
        self
    }

    /// Flushes the recording and reports the first line that could not be written. Calls continue after such an error.
    ///
    /// # Errors
    /// The first write error. It is reported once.
    pub fn flush(&self) -> io::Result<()> {
        let mut log = self.log.lock();
        match log.failure.take() {
            Some(error) => Err(error),
            None => log.sink.flush(),
        }
    }
}

impl Log {
    fn write(&mut self, call: &Call) {
        self.seq += 1;
        if self.over {
            return;
        }
        let rm = self.label.map(|label| label()).unwrap_or_default();
        let line = call.to_line(self.seq, &rm) + "\n";
        if let Err(error) = self.sink.write_all(line.as_bytes()) {
            let seq = self.seq;
            tracing::error!(target: "tegrarm::kmd", %error, seq, "the recording ends before this line");
            // Whoever records wants to know, with a log or without.
            tegrarm_output::say(&format!("the recording ends before call {seq}, which could not be written: {error}"));
            self.over = true;
            self.failure.get_or_insert(error);
        }
    }

    fn made(&mut self, fd: RawFd, kind: &str) -> Made {
        Made { label: self.labels.add(fd, kind), size: size_of_file(fd) }
    }
}

/// A new file at `path`. A FIFO that nobody reads is refused: opening it would wait for somebody.
fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(|e| match e.raw_os_error() {
        Some(libc::ENXIO) => io::Error::new(e.kind(), "nobody reads from this FIFO; start the reader first"),
        _ => e,
    })?;
    // With a reader, it is the reader who says how fast it goes.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok(file)
}

/// Size of the file behind a descriptor: a dmabuf's is its buffer's, most others have none.
fn size_of_file(fd: RawFd) -> u64 {
    std::fs::metadata(format!("/proc/self/fd/{fd}")).map_or(0, |m| m.len())
}

/// The descriptors that a successful call made, from the argument after the call.
fn made(request: u32, arg: &Arg<'_>, after: &Image) -> Vec<Made> {
    let Arg::Bytes(bytes) = arg else { return Vec::new() };
    let new = descriptors::of(request).filter(|d| d.role != Role::In && d.applies(bytes));
    new.filter_map(|d| {
        let fd = crate::describe::unsigned(bytes.get(d.offset..d.offset + 4)?) as u32 as RawFd;
        Some(Made { label: after.fds.get(&d.offset)?.clone(), size: size_of_file(fd) })
    })
    .collect()
}

impl Kmd for Recorded {
    crate::forward!(inner: name, is_simulated, examines_code, names_code, step, progress, rest, waits_in_vain, own_view);

    fn saw_gpu(&self) {
        self.inner.saw_gpu();
        let mut log = self.log.lock();
        let written = log.watched.changes();
        if written != Written::default() {
            log.write(&Call::Memory(written));
        }
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        let result = self.inner.open(path);
        let mut log = self.log.lock();
        let made = match &result {
            Ok(fd) => Ok(log.made(fd.as_raw_fd(), kind_of_path(path))),
            Err(errno) => Err(*errno),
        };
        log.write(&Call::Open { path: path.to_owned(), result: made });
        result
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, mut arg: Arg<'_>) -> Result<i32, Errno> {
        let found = spans(request, &arg, || Sms::of(&*self.inner, fd, node).bytes());
        let (opaque, spans) = (found.is_none(), found.unwrap_or_default());
        let (on, before) = {
            let labels = &mut self.log.lock().labels;
            let on = labels.of(fd.as_raw_fd(), descriptors::kind(node));
            (on, Image::take(request, &arg, &spans, Moment::Before, labels))
        };
        // The lock is not held here, because the call may wait for a call of another thread.
        let result = self.inner.ioctl(fd, node, request, arg.reborrow());
        let moment = if result == Ok(0) { Moment::Done } else { Moment::Failed };
        let mut log = self.log.lock();
        let after = Image::take(request, &arg, &spans, moment, &mut log.labels);
        let made = if moment == Moment::Done { made(request, &arg, &after) } else { Vec::new() };
        if let (Some(handle), Some(made)) = (written::handle_of_descriptor(request, &before.bytes), made.first()) {
            log.watched.made(&made.label, handle);
        }
        if let Some(handle) = written::freed_handle(request, before.value) {
            log.watched.freed(handle);
        }
        log.write(&Call::Ioctl(Box::new(Ioctl { on, node, request, before, after, made, result, opaque })));
        result
    }

    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        let result = self.inner.mmap(fd, at, len, prot, offset);
        let mut log = self.log.lock();
        let on = log.labels.of(fd.as_raw_fd(), "dmabuf");
        let outcome = result.as_ref().map(|_| ()).map_err(|e| *e);
        if outcome.is_ok() {
            log.watched.mapped(&on, fd, len, offset);
        }
        log.write(&Call::Mmap { on, len, prot, offset, place: at, result: outcome });
        result
    }

    fn close(&self, fd: OwnedFd) {
        {
            // This happens before the close: afterwards the number may already belong to another thread's new file.
            let mut log = self.log.lock();
            let on = log.labels.remove(fd.as_raw_fd(), "file");
            log.write(&Call::Close { on });
        }
        self.inner.close(fd);
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        let result = self.inner.read_text(path);
        self.log.lock().write(&Call::ReadText { path: path.to_owned(), result: result.clone() });
        result
    }

    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        let result = self.inner.write_text(path, text);
        self.log.lock().write(&Call::WriteText { path: path.to_owned(), text: text.to_owned(), result });
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestKmd, program};
    use serde_json::Value;
    use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, nvgpu_gpu_get_characteristics};

    /// A sink that the test can still read.
    #[derive(Clone, Default)]
    pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn recorded(size: u32) -> (Vec<Value>, String) {
        let sink = Shared::default();
        let inner: Arc<TestKmd> = Arc::default();
        let kmd: Arc<dyn Kmd> = Arc::new(Recorded::new(inner.clone(), sink.clone()).expect("a header"));
        let alone = program(&(Arc::<TestKmd>::default() as Arc<dyn Kmd>), size);
        assert_eq!(program(&kmd, size), alone, "the recorder must not alter anything");
        assert_eq!(inner.open_fds(), 0);
        let text = String::from_utf8(sink.0.lock().clone()).expect("text");
        (text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect(), text)
    }

    #[test]
    fn calls_are_named_decoded_and_labelled() {
        let (lines, _) = recorded(8192);
        assert_eq!(lines[0]["kernel"], "test");
        let named = |name: &str| lines.iter().find(|l| l["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        let map = named("NVGPU_AS_IOCTL_MAP_BUFFER_EX");
        assert_eq!((&map["on"], &map["fields"]["dmabuf_fd"]), (&"as#1".into(), &"dmabuf#1".into()));
        assert_eq!(map["fields"]["offset"], serde_json::json!(["0", "0xfefffff000"]));
        let get = named("NVMAP_IOC_GET_FD");
        assert_eq!(get["made"][0], serde_json::json!({"fd": "dmabuf#1", "size": 8192}));
        assert_eq!(
            named("NVGPU_GPU_IOCTL_OPEN_CHANNEL")["fields"]["channel_fd"],
            serde_json::json!(["-1", "channel#1"])
        );
        let chars = named("NVGPU_GPU_IOCTL_GET_CHARACTERISTICS");
        assert!(chars["out"]["memory"]["8"]["bytes"].as_str().expect("hex").starts_with("a5a5"));
        assert_eq!(
            named("NVGPU_GPU_IOCTL_VSMS_MAPPING")["out"]["memory"]["0"]["bytes"].as_str().map(str::len),
            Some(48)
        );
        assert_eq!(named("NVGPU_TSG_IOCTL_BIND_CHANNEL")["in"]["fds"]["0"], "channel#1");
        assert!(lines.iter().any(|l| l["call"] == "mmap" && l["on"] == "dmabuf#1"));
        assert!(lines.iter().any(|l| l["err"] == "ENOTTY"));
    }

    #[test]
    fn two_runs_record_the_same_text() {
        let strip = |text: String| text.lines().filter(|l| !l.contains("\"mmap\"")).collect::<Vec<_>>().join("\n");
        let held: Vec<_> = (0..3).map(|_| std::fs::File::open("/dev/null").expect("a file")).collect();
        let first = strip(recorded(4096).1);
        drop(held);
        assert_eq!(first, strip(recorded(4096).1), "descriptor numbers or addresses leak into the recording");
    }

    #[test]
    fn an_unreadable_pointer_is_the_kernels_business() {
        let sink = Shared::default();
        let kmd: Arc<dyn Kmd> = Arc::new(Recorded::new(Arc::<TestKmd>::default(), sink.clone()).expect("a header"));
        let ctrl = crate::File::open(&kmd, Node::Ctrl, "/dev/nvgpu/igpu0/ctrl").expect("a node");
        let mut chars =
            nvgpu_gpu_get_characteristics { gpu_characteristics_buf_size: u64::MAX, gpu_characteristics_buf_addr: 8 };
        assert_eq!(ctrl.ioctl(NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, &mut chars), Err(Errno::EFAULT));
        assert!(String::from_utf8_lossy(&sink.0.lock()).contains("EFAULT"));
    }

    #[test]
    fn a_full_disk_is_reported_and_hurts_nobody() {
        struct Full(u32);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                if self.0 > 3 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let recorder = Arc::new(Recorded::new(Arc::<TestKmd>::default(), Full(0)).expect("a header"));
        assert!(program(&(recorder.clone() as Arc<dyn Kmd>), 4096).is_ok());
        assert_eq!(recorder.flush().expect_err("lines are missing").kind(), io::ErrorKind::StorageFull);
        assert!(recorder.flush().is_ok());
    }

    /// Opening it would wait for a reader; with one it is a recording like any other, also when the reader goes.
    #[test]
    fn a_fifo_needs_a_reader() {
        let path = std::env::temp_dir().join(format!("tegrarm-fifo-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
        let recorder = || Recorded::create(Arc::<TestKmd>::default(), &path);
        let refused = recorder().err().expect("nobody reads").to_string();
        assert!(refused.contains("nobody reads from this FIFO"), "{refused}");
        let reader = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).expect("a reader");
        let recorder = Arc::new(recorder().expect("a reader"));
        std::fs::remove_file(&path).expect("removed");
        drop(reader);
        assert!(program(&(recorder.clone() as Arc<dyn Kmd>), 4096).is_ok());
        assert_eq!(recorder.flush().expect_err("the reader is gone").kind(), io::ErrorKind::BrokenPipe);
    }
}
