//! A profile: what every kernel did, line by line, and when. It becomes a file of JSON, which `tegrarm profile` makes a page of.
#![allow(unsafe_code)]

use super::clock::host_ns;
use super::pace;
use super::trace::Event;
use once_cell::race::OnceBox;
use serde_json::{Value, json};
use sm87::Launch;
use sm87_check::{Party, Report};
use sm87_model::{Accesses, Counters, Estimate, Listed, Occupancy, Rows, Stall, Unit};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tegra_hw::{CodeModule, HwChannel, HwGpu, MarkedRange, Speeds};
use tegrarm_lock::Mutex;

/// The profile that is written when the process ends, where, and the process that writes it: a forked child writes nothing.
static AT_EXIT: OnceBox<(u32, Arc<Profile>, PathBuf)> = OnceBox::new();

/// So many pieces of work of each kind are kept. Others are counted.
const PIECES: usize = 1 << 19;

/// What is known of a board before it does anything.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// The module.
    pub module: &'static str,
    /// Its SMs.
    pub sms: u32,
    /// Its speeds.
    pub speeds: Speeds,
    /// Whether programs see the modelled time.
    pub clock: &'static str,
}

/// A profile of one board.
#[derive(Debug)]
pub struct Profile {
    board: Profiled,
    hw: OnceLock<Arc<HwGpu>>,
    noted: Mutex<Noted>,
}

/// Pieces of work of one kind.
#[derive(Debug)]
struct Kept<T> {
    list: Vec<T>,
    left_out: u64,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { list: Vec::new(), left_out: 0 }
    }
}

impl<T> Kept<T> {
    fn add(&mut self, piece: T) {
        if self.list.len() < PIECES {
            self.list.push(piece);
        } else {
            self.left_out += 1;
        }
    }
}

#[derive(Debug, Default)]
struct Noted {
    kernels: Vec<Kernel>,
    /// The newest kernel of a process at an address.
    at: HashMap<(i32, u64), usize>,
    launches: Kept<[u64; 11]>,
    copies: Kept<[u64; 6]>,
    waits: Kept<[u64; 4]>,
    calls: Kept<(usize, i32, [u64; 2])>,
    names: Texts,
    reports: Vec<Value>,
    /// Since when a channel waits, and at which semaphore.
    blocked: HashMap<u32, (u64, u64)>,
    queues: QueueNames,
}

/// The queues of a profile. Work has the number of its queue in the list.
#[derive(Debug, Default)]
struct QueueNames {
    /// The channel of each, and its name if the program has told one.
    list: Vec<(u32, Option<Arc<str>>)>,
    /// The newest queue of a channel.
    of: HashMap<u32, usize>,
}

impl QueueNames {
    /// The number of a channel's queue. A channel that has another name than before is another queue.
    fn number(&mut self, channel: u32, name: Option<Arc<str>>) -> u64 {
        let known = self.of.get(&channel).copied();
        let number = match known.map(|at| (at, &mut self.list[at].1)) {
            Some((at, old)) if name.is_none() || *old == name => at,
            Some((at, old @ None)) => {
                *old = name;
                at
            }
            _ => {
                self.list.push((channel, name));
                self.list.len() - 1
            }
        };
        self.of.insert(channel, number);
        number as u64
    }

    /// The names, each once: a channel without one is called by its number, which also tells queues of one name apart.
    fn names(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for (channel, name) in &self.list {
            let plain = name.as_deref().map_or_else(|| format!("channel {channel}"), str::to_owned);
            let name = if all.contains(&plain) { format!("{plain} (channel {channel})") } else { plain };
            all.push(name);
        }
        all
    }
}

/// The name that the program of a channel has told.
fn name_of(channel: &HwChannel) -> Option<Arc<str>> {
    channel.tsg.gpu.names.queue(channel.tsg.process, channel.token())
}

/// A kernel: all launches of the same code at one address.
#[derive(Debug)]
struct Kernel {
    process: i32,
    code: u64,
    name: Option<Arc<str>>,
    module: Option<Arc<CodeModule>>,
    shapes: Vec<Value>,
    rows: Rows,
    launches: u64,
}

/// A grid that has ended.
pub(crate) struct Ended<'a> {
    pub channel: &'a HwChannel,
    pub launch: &'a Launch,
    pub rows: Rows,
    pub estimate: Estimate,
    pub warp_instructions: u64,
    pub cpu_ns: u64,
    pub start_ns: u64,
}

impl Profile {
    /// The profile of a board that has done nothing yet.
    pub fn new(board: Profiled) -> Arc<Profile> {
        Arc::new(Profile { board, hw: OnceLock::new(), noted: Mutex::default() })
    }

    /// The speeds of the board.
    pub(crate) fn speeds(&self) -> Speeds {
        self.board.speeds
    }

    /// Writes the profile when the process ends. `%p` in the path is the number of the process.
    pub fn write_at_exit(self: &Arc<Profile>, path: &str) {
        let pid = std::process::id();
        let made = || Box::new((pid, self.clone(), path.replace("%p", &pid.to_string()).into()));
        if AT_EXIT.get().is_none() && AT_EXIT.set(made()).is_ok() {
            // SAFETY: the function takes and returns nothing, and cannot unwind.
            unsafe { libc::atexit(at_exit) };
        }
    }

    /// Notes a grid that has ended.
    pub(crate) fn launched(&self, ended: Ended<'_>) {
        let Ended { channel, launch, rows, estimate, warp_instructions, cpu_ns, start_ns } = ended;
        let host_ns = host_ns().saturating_sub(start_ns);
        let (hw, process) = (self.hw.get_or_init(|| channel.tsg.gpu.clone()), channel.tsg.process);
        let (module, name) = (hw.names.module(process, launch.code), name_of(channel));
        let mut noted = self.noted.lock();
        let number = noted.kernel(process, launch.code, module, &rows);
        let kernel = &mut noted.kernels[number];
        kernel.launches += 1;
        for (place, (listed, counters)) in rows {
            kernel.rows.entry(place).or_insert((listed, Counters::default())).1.add(&counters);
        }
        let shape = kernel.shape(launch);
        let Estimate { cycles, bound, .. } = estimate;
        let (ns, queue) = (pace::grid_ns(Some(estimate)), noted.queues.number(channel.id, name));
        let (number, shape, bound) = (number as u64, shape as u64, bound as u64);
        let launch =
            [number, shape, queue, launch.begun, ns, start_ns, host_ns, cycles, bound, warp_instructions, cpu_ns];
        noted.launches.add(launch);
    }

    /// Notes a copy that has ended.
    pub(crate) fn copied(&self, channel: &HwChannel, (bytes, moved): (u64, u64), begun: u64, start_ns: u64) {
        let (ns, host) = (pace::copy_ns(self.board.speeds, moved), host_ns().saturating_sub(start_ns));
        let (name, mut noted) = (name_of(channel), self.noted.lock());
        let queue = noted.queues.number(channel.id, name);
        noted.copies.add([queue, bytes, begun, ns, start_ns, host]);
    }

    /// Notes a call of a program: its name, its process, and when it was, in nanoseconds of the host since boot.
    pub fn called(&self, name: &str, process: i32, (start_ns, end_ns): (u64, u64)) {
        let mut noted = self.noted.lock();
        let name = noted.names.number(name);
        noted.calls.add((name, process, [start_ns, end_ns.saturating_sub(start_ns)]));
    }

    /// Notes a report of the checker about the grid that has just ended, or about no grid with the code 0. Then it belongs to a kernel of its
    /// parties.
    pub(crate) fn reported(&self, report: &Report, channel: &HwChannel, code: u64) {
        let (names, process) = (&channel.tsg.gpu.names, channel.tsg.process);
        let mut noted = self.noted.lock();
        let before = |party: &Party| {
            let module = names.module(process, party.pc).filter(|_| party.pc != 0)?;
            let kernels = noted.at.keys().filter(|(whose, at)| *whose == process && *at <= party.pc && module.has(*at));
            kernels.map(|(_, at)| *at).max()
        };
        let code = if code == 0 { report.parties.iter().find_map(before).unwrap_or(0) } else { code };
        let party = |party: &Party| {
            let module = names.module(channel.tsg.process, party.pc);
            let line = module.as_ref().and_then(|module| module.line(party.pc));
            let (low, high) = (party.word as u64, (party.word >> 64) as u64);
            json!({
                "what": party.what.split(" (calls ").next(), "block": party.threads.map(|threads| threads.0),
                "thread": party.threads.map(|threads| threads.1), "pc": hex(party.pc),
                "place": (party.pc.wrapping_sub(code) as i64) >> 4,
                "text": sm87::disassemble(low, high, party.pc),
                "function": module.and_then(|module| module.function(party.pc)).as_deref(),
                "file": line.as_ref().map(|line| &*line.file), "line": line.map(|line| line.number),
            })
        };
        let parties: Vec<_> = report.parties.iter().map(party).collect();
        let kernel = noted.at.get(&(channel.tsg.process, code)).copied();
        let report = json!({"kind": report.kind.name(), "title": report.title, "kernel": kernel, "parties": parties});
        noted.reports.push(report);
    }

    /// Notes for how long channels wait.
    pub fn event(&self, event: &Event) {
        match *event {
            Event::Blocked { channel, va, .. } => {
                self.noted.lock().blocked.entry(channel).or_insert((host_ns(), va));
            }
            Event::Semaphore { channel, .. } | Event::Launch { channel, .. } | Event::Copy { channel, .. } => {
                let mut noted = self.noted.lock();
                if let Some((since, va)) = noted.blocked.remove(&channel) {
                    let queue = noted.queues.number(channel, None);
                    noted.waits.add([queue, va, since, host_ns().saturating_sub(since)]);
                }
            }
            _ => {}
        }
    }

    /// Writes the profile.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        serde_json::to_writer(&mut out, &self.json())?;
        out.write_all(b"\n")?;
        out.flush()
    }

    fn json(&self) -> Value {
        let noted = self.noted.lock();
        let Profiled { module, sms, speeds, clock } = &self.board;
        let machine = pace::machine(*speeds, u64::MAX);
        let names = |all: &[&str]| Value::from(all.to_vec());
        let mut files = Texts::default();
        let kernels: Vec<_> = noted.kernels.iter().map(|kernel| kernel.json(self.hw.get(), &mut files)).collect();
        let (ranges, ranges_left) = self.hw.get().map(|hw| hw.names.ranges()).unwrap_or_default();
        let range = |r: &MarkedRange| json!([r.name, r.domain, r.process, r.thread, r.begun_ns, r.ns]);
        let left = (&noted.launches.left_out, &noted.copies.left_out, &noted.waits.left_out, &noted.calls.left_out);
        json!({
            "format": "tegrarm-profile-raw", "version": 1, "process": std::process::id(),
            "board": {
                "module": module, "clock": clock, "sms": sms, "hz": speeds.gpu_hz, "l2_bytes": speeds.l2_bytes,
                "dram_bytes_per_second": speeds.dram_bytes_per_second, "moved_per_second": machine.moved_per_second(),
                "operations_per_cycle": sm87_model::operations_per_cycle().into_iter().collect::<BTreeMap<_, _>>(),
                "instructions_per_cycle": sm87_model::instructions_per_cycle(),
            },
            "units": names(&Unit::ALL.map(Unit::name)), "stalls": names(&Stall::ALL.map(Stall::name)),
            "kernels": kernels, "files": files.list, "names": noted.names.list, "reports": noted.reports,
            "queues": noted.queues.names(),
            "launches": noted.launches.list.iter().map(|launch| json!(launch)).collect::<Vec<_>>(),
            "copies": noted.copies.list, "waits": noted.waits.list,
            "calls": noted.calls.list.iter().map(|(name, pid, [at, ns])| json!([name, pid, at, ns])).collect::<Vec<_>>(),
            "ranges": ranges.iter().map(range).collect::<Vec<_>>(),
            "left_out": {"launches": left.0, "copies": left.1, "waits": left.2, "calls": left.3, "ranges": ranges_left},
        })
    }
}

impl Noted {
    /// The number of a kernel. Code that has come to the address of other code is another kernel.
    fn kernel(&mut self, process: i32, code: u64, module: Option<Arc<CodeModule>>, rows: &Rows) -> usize {
        let same_module = |kernel: &Kernel| kernel.module.as_ref().map(Arc::as_ptr) == module.as_ref().map(Arc::as_ptr);
        let same_words = |kernel: &Kernel| {
            let known = |(place, (listed, _)): (&i64, &(Listed, _))| Some((kernel.rows.get(place)?.0, *listed));
            rows.iter().filter_map(known).all(|(old, new)| old.word == new.word)
        };
        let known = self.at.get(&(process, code)).copied();
        if let Some(number) = known.filter(|&at| same_module(&self.kernels[at]) && same_words(&self.kernels[at])) {
            return number;
        }
        let name = module.as_ref().and_then(|module| module.function(code));
        let (shapes, rows) = (Vec::new(), Rows::new());
        self.kernels.push(Kernel { process, code, name, module, shapes, rows, launches: 0 });
        self.at.insert((process, code), self.kernels.len() - 1);
        self.kernels.len() - 1
    }
}

impl Kernel {
    /// The number of the shape of a launch.
    fn shape(&mut self, launch: &Launch) -> usize {
        let Occupancy { ctas, warps, of, limit } = Occupancy::of(launch);
        let shape = json!({
            "grid": launch.grid, "block": launch.block, "registers": launch.registers, "shared": launch.shared_bytes,
            "local": launch.local_low + launch.local_high,
            "occupancy": {"blocks": ctas, "warps": warps, "of": of, "limit": limit},
        });
        self.shapes.iter().position(|known| *known == shape).unwrap_or_else(|| {
            self.shapes.push(shape);
            self.shapes.len() - 1
        })
    }

    fn json(&self, hw: Option<&Arc<HwGpu>>, files: &mut Texts) -> Value {
        let rows = self.rows.iter().map(|(place, (listed, counters))| {
            let pc = self.code.wrapping_add_signed(place.wrapping_mul(16));
            let own = self.module.clone().filter(|module| module.has(pc));
            let module = own.or_else(|| hw.and_then(|hw| hw.names.module(self.process, pc)));
            let line = module.as_ref().and_then(|module| module.line(pc));
            let (low, high) = (listed.word as u64, (listed.word >> 64) as u64);
            let text = sm87::disassemble(low, high, pc).unwrap_or_else(|| format!("{:#034x}", listed.word));
            json!({
                "place": place, "text": text, "unit": listed.unit.name(), "stall": listed.stall,
                "issued": counters.issued, "lanes": counters.lanes, "waited": counters.waited,
                "global": three(&counters.global), "shared": three(&counters.shared), "local": three(&counters.local),
                "l2": counters.l2_bytes, "dram": counters.dram_bytes,
                "function": module.and_then(|module| module.function(pc)).as_deref(),
                "file": line.as_ref().map(|line| files.number(&line.file)), "line": line.map(|line| line.number),
            })
        });
        let rows: Vec<_> = rows.collect();
        let (name, code) = (self.name.as_deref(), hex(self.code));
        json!({"name": name, "code": code, "process": self.process, "launches": self.launches, "shapes": self.shapes, "rows": rows})
    }
}

/// Texts, such as the names of files, each once. Others name a text by its place.
#[derive(Debug, Default)]
struct Texts {
    list: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        self.list.iter().position(|known| known == text).unwrap_or_else(|| {
            self.list.push(text.to_owned());
            self.list.len() - 1
        })
    }
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

fn three(accesses: &Accesses) -> [u64; 3] {
    [accesses.requests, accesses.taken, accesses.least]
}

extern "C" fn at_exit() {
    let Some((pid, profile, path)) = AT_EXIT.get() else { return };
    if *pid != std::process::id() {
        return;
    }
    if let Err(e) = std::fs::File::create(path).and_then(|file| profile.write(file)) {
        tegrarm_output::say(&format!("TEGRARM_SIM_PROFILE: {}: {e}", path.display()));
    }
}
