//! The functions and the source lines of GPU code. The GPU knows addresses alone, and programs tell it their names.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tegrarm_lock::{Mutex, RwLock};

/// What a program tells of its code is lines whose parts are divided by tabs: `module START SIZE`, `function START SIZE NAME`,
/// `line START END NUMBER FILE`, and `gone START`. A range that the program has marked is `range BEGUN LENGTH THREAD DOMAIN NAME`, in
/// nanoseconds of the host. Addresses, sizes and times are hexadecimal. The functions and the lines belong to the
/// module that has their address.
///
/// `queue TOKEN PROGRESS NAME` names a channel by its token, and says at which address it leaves the number of its last submission. If
/// `PROGRESS` is not 0, the program tells from then on when it gives work to the channel, `gives TOKEN END` with the entry of the ring
/// behind those that it has written, and when it has waited for a number, `waited TOKEN NUMBER`. `touched TOKEN ADDRESS WHAT CALLS` says
/// that the processor has accessed a byte at an address of the channel's before it has waited for all work: `WHAT` is `load` or `store`, and
/// `CALLS` is the number by which the program knows the calls that led there.
#[derive(Debug, Default)]
pub struct CodeNames {
    processes: RwLock<HashMap<i32, Vec<Arc<CodeModule>>>>,
    queues: RwLock<HashMap<(i32, u32), Arc<str>>>,
    listener: OnceLock<Hears>,
    ranges: Mutex<Vec<MarkedRange>>,
    left_out: AtomicU64,
}

/// Hears what a process does with its channels.
type Listener = Box<dyn Fn(i32, HostNews<'_>) + Send + Sync>;

struct Hears(Listener);

impl fmt::Debug for Hears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hears")
    }
}

/// What a program tells that its processor does. Channels are named by their tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostNews<'n> {
    /// A channel is a queue of the program.
    Queue {
        /// The channel.
        token: u32,
        /// Where it leaves the number of its last submission, or 0.
        progress: u64,
        /// Its name.
        name: &'n str,
    },
    /// Entries of its ring were written.
    Gives {
        /// The channel.
        token: u32,
        /// The entry behind them.
        end: u32,
    },
    /// The processor knows that it has come to a number.
    Waited {
        /// The channel.
        token: u32,
        /// The number.
        number: u64,
    },
    /// The processor has accessed memory while there was work for which it had not waited.
    Touched {
        /// A channel with the memory's address space.
        token: u32,
        /// The address of the first byte.
        va: u64,
        /// Whether it was a store.
        wrote: bool,
        /// The number by which the program knows the calls that led there.
        calls: u64,
    },
}

impl HostNews<'_> {
    /// The channel.
    pub fn token(&self) -> u32 {
        match *self {
            HostNews::Queue { token, .. }
            | HostNews::Gives { token, .. }
            | HostNews::Waited { token, .. }
            | HostNews::Touched { token, .. } => token,
        }
    }
}

/// A part of the time of a program's thread that the program has given a name (NVTX).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedRange {
    /// The process.
    pub process: i32,
    /// The thread.
    pub thread: i32,
    /// When it began, in nanoseconds of the host.
    pub begun_ns: u64,
    /// Its length. A mark has none.
    pub ns: u64,
    /// The domain of the name, which may be empty.
    pub domain: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

/// The bits of a token that are the number of its channel.
const CHANNEL: u32 = 0xffff;

/// So many ranges are kept. Others are counted.
const MOST_RANGES: usize = 1 << 19;

/// The code of a module that a program has loaded.
#[derive(Debug)]
pub struct CodeModule {
    start: u64,
    size: u64,
    functions: Mutex<Vec<Function>>,
    lines: Mutex<Vec<Row>>,
}

#[derive(Debug)]
struct Function {
    start: u64,
    size: u64,
    name: Arc<str>,
}

#[derive(Debug)]
struct Row {
    start: u64,
    end: u64,
    line: CodeLine,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLine {
    /// The file, as the compiler was given it.
    pub file: Arc<str>,
    /// The number of the line, from 1.
    pub number: u32,
}

impl CodeModule {
    /// Whether an address is in the module.
    pub fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.size
    }

    /// The function at an address: the smallest one, because the code of a kernel contains functions that it calls.
    pub fn function(&self, address: u64) -> Option<Arc<str>> {
        let functions = self.functions.lock();
        let inside = functions.iter().filter(|function| address.wrapping_sub(function.start) < function.size);
        inside.min_by_key(|function| function.size).map(|function| function.name.clone())
    }

    /// The line of the source from which the instruction at an address comes.
    pub fn line(&self, address: u64) -> Option<CodeLine> {
        let lines = self.lines.lock();
        lines.iter().rev().find(|row| row.start <= address && address < row.end).map(|row| row.line.clone())
    }
}

/// The text is not what [`CodeNames`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotUnderstood;

impl CodeNames {
    /// Takes lines that a process wrote.
    ///
    /// # Errors
    /// A line is not understood. Those before it are taken.
    pub fn tell(&self, process: i32, text: &str) -> Result<(), NotUnderstood> {
        text.lines().try_for_each(|line| self.take(process, line).ok_or(NotUnderstood))
    }

    fn take(&self, process: i32, line: &str) -> Option<()> {
        let mut parts = line.split('\t');
        let (word, start) = (parts.next()?, hexadecimal(parts.next()?)?);
        if word == "gone" {
            self.processes.write().get_mut(&process)?.retain(|module| module.start != start);
            return Some(());
        }
        let second = hexadecimal(parts.next()?)?;
        match word {
            "range" => {
                let (thread, domain, name) = (parts.next()?.parse().ok()?, parts.next()?.into(), parts.next()?.into());
                self.mark(MarkedRange { process, thread, begun_ns: start, ns: second, domain, name });
            }
            "queue" => {
                let (token, name) = (u32::try_from(start).ok()?, parts.next()?);
                self.queues.write().insert((process, token), name.into());
                self.tell_news(process, HostNews::Queue { token, progress: second, name });
            }
            "gives" => {
                let (token, end) = (u32::try_from(start).ok()?, u32::try_from(second).ok()?);
                self.tell_news(process, HostNews::Gives { token, end });
            }
            "waited" => self.tell_news(process, HostNews::Waited { token: u32::try_from(start).ok()?, number: second }),
            "touched" => {
                let wrote = match parts.next()? {
                    "load" => false,
                    "store" => true,
                    _ => return None,
                };
                let (token, calls) = (u32::try_from(start).ok()?, parts.next()?.parse().ok()?);
                self.tell_news(process, HostNews::Touched { token, va: second, wrote, calls });
            }
            "module" => self.load(process, start, second),
            "function" => {
                let function = Function { start, size: second, name: parts.next()?.into() };
                self.module(process, start)?.functions.lock().push(function);
            }
            "line" => {
                let (number, file) = (parts.next()?.parse().ok()?, parts.next()?);
                let module = self.module(process, start)?;
                let mut lines = module.lines.lock();
                let same = lines.last().filter(|row| *row.line.file == *file).map(|row| row.line.file.clone());
                let line = CodeLine { file: same.unwrap_or_else(|| file.into()), number };
                lines.push(Row { start, end: second, line });
            }
            _ => return None,
        }
        Some(())
    }

    fn tell_news(&self, process: i32, news: HostNews<'_>) {
        if let Some(Hears(listener)) = self.listener.get() {
            listener(process, news);
        }
    }

    /// Sets who hears what programs do with their channels. The first one stays.
    pub fn listen(&self, listener: Listener) {
        self.listener.get_or_init(|| Hears(listener));
    }

    /// The name of a channel of a process, by its token.
    pub fn queue(&self, process: i32, token: u32) -> Option<Arc<str>> {
        self.queues.read().get(&(process, token)).cloned()
    }

    /// The name of a channel that exists, by its number: the low bits of its token.
    pub fn queue_of_channel(&self, channel: u32) -> Option<Arc<str>> {
        let queues = self.queues.read();
        queues.iter().find(|((_, token), _)| token & CHANNEL == channel).map(|(_, name)| name.clone())
    }

    /// A channel of a process exists no more. Another one may get its token.
    pub fn closed(&self, process: i32, token: u32) {
        self.queues.write().remove(&(process, token));
    }

    fn mark(&self, range: MarkedRange) {
        let mut ranges = self.ranges.lock();
        if ranges.len() < MOST_RANGES {
            ranges.push(range);
        } else {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The ranges that programs have marked, and how many more there were.
    pub fn ranges(&self) -> (Vec<MarkedRange>, u64) {
        (self.ranges.lock().clone(), self.left_out.load(Ordering::Relaxed))
    }

    fn load(&self, process: i32, start: u64, size: u64) {
        let module = CodeModule { start, size, functions: Mutex::default(), lines: Mutex::default() };
        let mut processes = self.processes.write();
        let modules = processes.entry(process).or_default();
        // What was at these addresses before is not there any more, whether its program has said so or not.
        modules.retain(|other| !other.has(start) && !module.has(other.start));
        modules.push(Arc::new(module));
    }

    /// The module of a process that has an address.
    pub fn module(&self, process: i32, address: u64) -> Option<Arc<CodeModule>> {
        self.processes.read().get(&process)?.iter().find(|module| module.has(address)).cloned()
    }

    /// The function at an address of a process.
    pub fn function(&self, process: i32, address: u64) -> Option<Arc<str>> {
        self.module(process, address)?.function(address)
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "module\t0x1000\t0x1000\nfunction\t0x1100\t0x200\tsum\nfunction\t0x1200\t0x40\thelps\n\
                        line\t0x1100\t0x1120\t12\ta.cu\nline\t0x1110\t0x1120\t13\ta.cu\n";

    #[test]
    fn the_smallest_function_and_the_newest_line_have_an_address() {
        let names = CodeNames::default();
        assert_eq!(names.tell(7, TOLD), Ok(()));
        let name = |at| names.function(7, at).map(|name| name.to_string());
        assert_eq!([0x1100, 0x1210, 0x1300, 0x2000].map(|at| name(at).unwrap_or_default()), ["sum", "helps", "", ""]);
        let module = names.module(7, 0x1100).unwrap();
        let line = |at| module.line(at).map(|line| (line.file.to_string(), line.number));
        assert_eq!(line(0x1100), Some(("a.cu".to_owned(), 12)));
        assert_eq!((line(0x1110).unwrap().1, line(0x1120)), (13, None));
    }

    #[test]
    fn each_process_has_its_own_addresses() {
        let names = CodeNames::default();
        names.tell(7, TOLD).unwrap();
        names.tell(8, "module\t0x1000\t0x1000\nfunction\t0x1100\t0x10\tother").unwrap();
        let name = |process| names.function(process, 0x1100);
        assert_eq!((name(7).as_deref(), name(8).as_deref(), name(9)), (Some("sum"), Some("other"), None));
    }

    #[test]
    fn a_module_goes_when_it_is_unloaded_or_its_memory_is_used_again() {
        let names = CodeNames::default();
        names.tell(7, TOLD).unwrap();
        let kept = names.module(7, 0x1100).unwrap();
        names.tell(7, "module\t0x1800\t0x1000").unwrap();
        assert!(names.function(7, 0x1100).is_none() && kept.function(0x1100).is_some());
        names.tell(7, "gone\t0x1800").unwrap();
        assert!(names.module(7, 0x1800).is_none());
    }

    #[test]
    fn ranges_are_kept_in_order() {
        let names = CodeNames::default();
        names.tell(7, "range\t0x10\t0x20\t9\t\tstep one\nrange\t0x15\t0x0\t8\tloader\tread\n").unwrap();
        let (ranges, left_out) = names.ranges();
        let all: Vec<_> =
            ranges.iter().map(|r| (r.process, r.thread, r.begun_ns, r.ns, &*r.domain, &*r.name)).collect();
        assert_eq!(all, [(7, 9, 16, 32, "", "step one"), (7, 8, 21, 0, "loader", "read")]);
        assert_eq!(left_out, 0);
    }

    #[test]
    fn who_listens_hears_of_queues_in_the_order_of_the_lines() {
        let (names, heard) = (CodeNames::default(), Arc::new(Mutex::new(Vec::new())));
        let all = heard.clone();
        names.listen(Box::new(move |process, news| all.lock().push(format!("{process} {news:?}"))));
        names.tell(7, "queue\t0x1ff\t0x2000\tthe copy queue\ngives\t0x1ff\t0x3\nwaited\t0x1ff\t0x9\n").unwrap();
        names.tell(7, "touched\t0x1ff\t0x5000\tstore\t2\n").unwrap();
        let told = [
            "7 Queue { token: 511, progress: 8192, name: \"the copy queue\" }",
            "7 Gives { token: 511, end: 3 }",
            "7 Waited { token: 511, number: 9 }",
            "7 Touched { token: 511, va: 20480, wrote: true, calls: 2 }",
        ];
        assert_eq!(*heard.lock(), told);
        assert_eq!((names.queue(7, 511).as_deref(), names.queue(8, 511)), (Some("the copy queue"), None));
        assert_eq!(
            (names.queue_of_channel(0x1ff).as_deref(), names.queue_of_channel(1)),
            (Some("the copy queue"), None)
        );
        names.tell(7, "queue\t0x7fe0003\t0x0\tthe third\n").unwrap();
        assert_eq!(names.queue_of_channel(3).as_deref(), Some("the third"));
        names.closed(7, 511);
        assert_eq!(names.queue(7, 511), None, "another channel may get the token");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let names = CodeNames::default();
        for bad in [
            "",
            "module",
            "module\t1000\t0x10",
            "x\t0x1\t0x1",
            "range\t0x1\t0x1\tx\td\tn",
            "range\t0x1\t0x1\t5\td",
            "function\t0x1\t0x1\tf",
            "gone\t0x1",
            "queue\t0x1\t0x0",
            "gives\t0x1\t0x100000000",
            "waited\t0x100000000\t0x1",
            "touched\t0x1\t0x1\tlook\t1",
            "touched\t0x1\t0x1\tload\tx",
        ] {
            assert_eq!(names.tell(7, &format!("{bad}\n")), Err(NotUnderstood), "{bad}");
        }
    }
}
