//! A program of ioctls as data, and what a kernel answered. The comparison with NVIDIA's driver (`judge/`) writes such
//! programs, and a test replays them without the driver.
//!
//! A descriptor is named by the step that made it, so that a program means the same for two kernels, and still means
//! something after steps were taken out of it.

use std::fmt::Write;

/// The place of a descriptor in the bytes of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    pub at: usize,
    /// The step that made the descriptor. A step that made none stands for the descriptor -1.
    pub step: usize,
}

/// A second piece of memory, to which a pointer in the argument refers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The place of the pointer in the argument.
    pub at: usize,
    pub bytes: Vec<u8>,
    pub fds: Vec<Slot>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ioctl {
    pub on: usize,
    pub request: u32,
    pub bytes: Vec<u8>,
    pub fds: Vec<Slot>,
    pub pieces: Vec<Piece>,
    /// The place of the descriptor that the call makes.
    pub makes: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Opens a node by its short name.
    Open(String),
    /// Makes a buffer of so many bytes.
    Buffer(u32),
    /// Makes a read-only descriptor of the buffer of a step.
    View(usize),
    Ioctl(Ioctl),
    Close(usize),
    Dup(usize),
    /// Lets the work of the channel of a step fail.
    Fail(usize, Failing),
    /// Reads so many bytes of the buffer of a step, from an offset on.
    Read(usize, usize, usize),
}

/// A unit of the GPU that reports a failure, with what its registers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// The client (the host, the copy engine, the front end, SKED, an SM, the instruction cache), the type of the fault, that of the
    /// access, and the address.
    Mmu {
        client: usize,
        kind: u32,
        access: u32,
        va: u64,
    },
    Sm {
        sm: u32,
        global_esr: u32,
        warp_esr: u32,
        pc: u64,
    },
    /// The bits of the graphics engine's interrupt, and those of its exception.
    Graphics {
        interrupt: u32,
        exception: u32,
    },
    /// The register of the interrupt, and the bit.
    Pbdma {
        register: u8,
        bit: u8,
    },
    /// How often the interrupt comes, once in 100 ms.
    Switch {
        times: u32,
    },
    Copy {
        report: u32,
    },
    /// The group is preempted, and does not leave its engine.
    Preemption,
}

impl Failing {
    fn to_words(self) -> String {
        match self {
            Failing::Mmu { client, kind, access, va } => format!("mmu {client} {kind} {access} {va}"),
            Failing::Sm { sm, global_esr, warp_esr, pc } => format!("sm {sm} {global_esr} {warp_esr} {pc}"),
            Failing::Graphics { interrupt, exception } => format!("graphics {interrupt} {exception}"),
            Failing::Pbdma { register, bit } => format!("pbdma {register} {bit}"),
            Failing::Switch { times } => format!("switch {times}"),
            Failing::Copy { report } => format!("copy {report}"),
            Failing::Preemption => "preemption".to_owned(),
        }
    }

    fn from_words(unit: &str, words: &[&str]) -> Option<Failing> {
        let numbers: Vec<u64> = words.iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let word = |at: usize| u32::try_from(*numbers.get(at)?).ok();
        Some(match unit {
            "mmu" => Failing::Mmu { client: word(0)? as usize, kind: word(1)?, access: word(2)?, va: *numbers.get(3)? },
            "sm" => Failing::Sm { sm: word(0)?, global_esr: word(1)?, warp_esr: word(2)?, pc: *numbers.get(3)? },
            "graphics" => Failing::Graphics { interrupt: word(0)?, exception: word(1)? },
            "pbdma" => Failing::Pbdma { register: word(0)? as u8, bit: word(1)? as u8 },
            "switch" => Failing::Switch { times: word(0)? },
            "copy" => Failing::Copy { report: word(0)? },
            "preemption" => Failing::Preemption,
            _ => return None,
        })
    }
}

/// What lies behind a range of GPU addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    Sparse,
    /// The buffer of a step.
    Buffer(usize),
    Syncpoints,
    /// Memory of the kernel.
    Kernel,
}

/// A range of GPU addresses that is mapped to one range of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub va: u64,
    pub len: u64,
    pub behind: Behind,
    pub offset: u64,
    /// The entry of each page without its address. A bit of that asks for the L3 cache, and stays.
    pub entry: u64,
}

impl Run {
    /// Adds a run, as a part of the last one if it continues that.
    pub fn push(self, runs: &mut Vec<Run>) {
        if let Some(last) = runs.last_mut()
            && last.va + last.len == self.va
            && (last.behind, last.entry) == (self.behind, self.entry)
            && (matches!(self.behind, Behind::Sparse | Behind::Kernel) || last.offset + last.len == self.offset)
        {
            last.len += self.len;
            return;
        }
        runs.push(self);
    }
}

/// The answer to a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The result, which is a negative errno for a failure. 0 stands for every descriptor.
    pub result: i32,
    /// The argument after the call, with 0 in place of descriptors.
    pub bytes: Vec<u8>,
    pub pieces: Vec<Vec<u8>>,
    /// What is mapped in the address space on which the call was made.
    pub runs: Vec<Run>,
    /// What the kernel's log says of a failure.
    pub said: String,
}

/// The driver's words in the log before a value, and what ends the value. The end of the line and a bracket end it, too. Without an end,
/// the words are all.
const SAID: [(&str, &str); 37] = [
    ("mmu engine id:", ","),
    ("ch id:", ","),
    ("fault addr:", ","),
    ("fault type:", ", access"),
    ("access type:", ","),
    ("client type:", ","),
    ("client id:", ","),
    ("gpc id if client type is gpc:", ","),
    ("sm machine check err.", ""),
    ("gpc_id(", ")"),
    ("tpc_id(", ")"),
    ("sm_id(", ")"),
    ("sm hww global", "warp"),
    ("warp 0x", ","),
    ("hww_warp_esr_pc", ","),
    ("pbdma_intr_0(", ")"),
    (")= 0x", ","),
    ("PBDMA intr", " Error"),
    ("semaphore acquire timeout!", ""),
    ("hce err: pbdma_intr_1(", " "),
    ("ce launch error interrupt with errcode:", ","),
    ("ctxsw timeout error: active engine id =", ","),
    ("tsg=", ","),
    ("info: awaiting ack ms=", ","),
    ("preempt timed out for tsgid:", ","),
    ("illegal method", ""),
    ("class error 0x", ","),
    ("firmware method 0x", ","),
    ("firmware method error", ""),
    ("fe exception", ""),
    ("memfmt exception", ""),
    ("pd exception", ""),
    ("scc exception", ""),
    ("ds exception", ""),
    ("sked exception", ""),
    ("mme exception", ""),
    ("mme_fe1 exception", ""),
];

/// What a log says of a failure, as far as both kernels say it.
pub fn said(log: &str) -> String {
    let found = SAID.iter().filter_map(|(words, end)| {
        let (_, rest) = log.split_once(words)?;
        let value = rest.lines().next().filter(|_| !end.is_empty()).unwrap_or_default();
        let value = value.split_once(end).filter(|_| !end.is_empty()).map_or(value, |(value, _)| value);
        let value = value.split_once(" (").map_or(value, |(value, _)| value);
        let space = if words.ends_with(|last: char| last == ':' || last.is_alphabetic()) { " " } else { "" };
        Some(format!("{words}{space}{}", value.trim()).trim_end().to_owned())
    });
    found.collect::<Vec<_>>().join("; ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::from("x"), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix('x')?;
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()).collect()
}

fn slots(fds: &[Slot]) -> String {
    fds.iter().map(|fd| format!(" fd@{}={}", fd.at, fd.step)).collect()
}

impl Step {
    pub fn to_line(&self) -> String {
        match self {
            Step::Open(node) => format!("open {node}"),
            Step::Buffer(size) => format!("buffer {size}"),
            Step::View(step) => format!("view {step}"),
            Step::Close(step) => format!("close {step}"),
            Step::Dup(step) => format!("dup {step}"),
            Step::Fail(step, what) => format!("fail {step} {}", what.to_words()),
            Step::Read(step, at, count) => format!("read {step} {at} {count}"),
            Step::Ioctl(call) => {
                let mut line = format!("ioctl {} {:08x} {}", call.on, call.request, hex(&call.bytes));
                line += &slots(&call.fds);
                for piece in &call.pieces {
                    let _ = write!(line, " mem@{}={}{}", piece.at, hex(&piece.bytes), slots(&piece.fds));
                }
                if let Some(at) = call.makes {
                    let _ = write!(line, " makes@{at}");
                }
                line
            }
        }
    }

    /// Reads a line that `to_line` wrote.
    pub fn from_line(line: &str) -> Option<Step> {
        let (verb, rest) = line.split_once(' ')?;
        Some(match verb {
            "open" => Step::Open(rest.to_owned()),
            "buffer" => Step::Buffer(rest.parse().ok()?),
            "view" => Step::View(rest.parse().ok()?),
            "close" => Step::Close(rest.parse().ok()?),
            "dup" => Step::Dup(rest.parse().ok()?),
            "ioctl" => Step::Ioctl(Ioctl::from_words(rest)?),
            "fail" | "read" => Step::of_words(verb, &rest.split(' ').collect::<Vec<_>>())?,
            _ => return None,
        })
    }

    fn of_words(verb: &str, words: &[&str]) -> Option<Step> {
        match (verb, words) {
            ("fail", [step, unit, words @ ..]) => {
                Some(Step::Fail(step.parse().ok()?, Failing::from_words(unit, words)?))
            }
            ("read", [step, at, count]) => Some(Step::Read(step.parse().ok()?, at.parse().ok()?, count.parse().ok()?)),
            _ => None,
        }
    }

    /// The steps to which this step refers are counted anew after some were taken out.
    pub fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        match self {
            Step::Open(_) | Step::Buffer(_) => {}
            Step::View(step) | Step::Close(step) | Step::Dup(step) | Step::Fail(step, _) | Step::Read(step, ..) => {
                *step = number(*step);
            }
            Step::Ioctl(call) => {
                call.on = number(call.on);
                let pieces = call.pieces.iter_mut().flat_map(|piece| &mut piece.fds);
                call.fds.iter_mut().chain(pieces).for_each(|fd| fd.step = number(fd.step));
            }
        }
    }
}

impl Ioctl {
    fn from_words(rest: &str) -> Option<Ioctl> {
        let mut words = rest.split(' ');
        let on = words.next()?.parse().ok()?;
        let request = u32::from_str_radix(words.next()?, 16).ok()?;
        let bytes = unhex(words.next()?)?;
        let mut call = Ioctl { on, request, bytes, fds: vec![], pieces: vec![], makes: None };
        for word in words {
            let (kind, rest) = word.split_once('@')?;
            let (at, value) = rest.split_once('=').unwrap_or((rest, ""));
            let at = at.parse().ok()?;
            match kind {
                "mem" => call.pieces.push(Piece { at, bytes: unhex(value)?, fds: vec![] }),
                "makes" => call.makes = Some(at),
                _ => {
                    let fds = call.pieces.last_mut().map_or(&mut call.fds, |piece| &mut piece.fds);
                    fds.push(Slot { at, step: value.parse().ok()? });
                }
            }
        }
        Some(call)
    }
}

impl Answer {
    pub fn to_line(&self) -> String {
        let mut line = format!("= {} {}", self.result, hex(&self.bytes));
        self.pieces.iter().for_each(|piece| line += &format!(" {}", hex(piece)));
        for run in &self.runs {
            let behind = match run.behind {
                Behind::Sparse => "sparse".to_owned(),
                Behind::Buffer(step) => format!("buffer {step}"),
                Behind::Syncpoints => "syncpoints".to_owned(),
                Behind::Kernel => "kernel".to_owned(),
            };
            let _ = write!(line, "; {:#x}+{:#x} {behind}+{:#x} {:x}", run.va, run.len, run.offset, run.entry);
        }
        if !self.said.is_empty() {
            let _ = write!(line, " says {}", self.said);
        }
        line
    }
}
