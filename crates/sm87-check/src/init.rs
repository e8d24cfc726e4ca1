//! Values that were never written: where they come from, and where they are used.
//!
//! A value that is only copied is not used, and neither is one that makes no difference. It is used in an address, in a
//! decision about where a thread goes on, in an atomic, and when a number that was made of it is stored in global memory.
//!
//! As long as a CTA has met no such value, only its accesses are looked at, and the registers that its program may read
//! before it writes them. Then it continues with a copy of the program in which every instruction is looked at.

use super::operands::{Operands, Registers, Sort};
use super::report::Kind;
use super::shadow::{ALL_BITS, Shadow, Unwritten};
use super::trial;
use super::written::{MADE_OF_SUCH, NEVER, Own, Pages, Together, WRITTEN, all_written, together};
use super::{Inspector, Part, looked};
use sm87::Launch;
use sm87::Word;
use sm87::isa;
use sm87::isa::memory::{Shape, Space};
use sm87::observe::access::{Access, Memory};
use sm87::observe::{Env, Flow, REGISTER, Step, Uop, Warp, lanes};

/// Where a value comes from: a load.
#[derive(Clone, Copy, Debug)]
struct Load {
    at: u32,
    memory: Memory,
    address: u64,
    warp: u32,
    lane: u32,
    block: [u32; 3],
}

/// An origin with this bit is the number of a register. Others are one more than the index of a load.
const REGISTERS: u32 = 1 << 31;
/// The most loads that are remembered.
const MOST_LOADS: usize = 1 << 16;

/// The origin of what a register holds that nothing wrote.
pub(super) fn register(row: usize) -> u32 {
    REGISTERS | row.saturating_sub(REGISTER as usize) as u32
}

/// How a value is used.
#[derive(Clone, Copy)]
struct Usage {
    at: u32,
    lane: u32,
    what: &'static str,
    does: &'static str,
}

/// What is known of the values of a CTA.
#[derive(Debug)]
pub(super) struct Init {
    own: Own,
    registers: Registers,
    shadows: Vec<Shadow>,
    loads: Vec<Load>,
    /// Whether the CTA has met an unwritten value and its program must be looked at as a whole.
    pub wants: bool,
}

impl Init {
    pub(super) fn new(launch: &Launch, arrays: u32, registers: Registers) -> Box<Init> {
        let own = Own::new(launch, arrays);
        let mut init = Init { own, registers, shadows: Vec::new(), loads: Vec::new(), wants: false };
        init.begin(launch);
        Box::new(init)
    }

    /// Another CTA begins.
    pub(super) fn begin(&mut self, launch: &Launch) {
        self.own.clear();
        let warps = launch.block.iter().product::<u32>().div_ceil(32) as usize;
        self.shadows.truncate(warps);
        self.shadows.iter_mut().for_each(|shadow| shadow.begin(self.registers));
        self.shadows.resize_with(warps, || Shadow::new(self.registers));
    }

    /// The indices of the instructions that are remembered.
    pub(super) fn instructions(&mut self) -> impl Iterator<Item = &mut u32> {
        self.loads.iter_mut().map(|load| &mut load.at)
    }

    fn load(&mut self, load: Load) -> u32 {
        let known = self.loads.iter().rposition(|known| known.at == load.at);
        if known.is_none() && self.loads.len() < MOST_LOADS {
            self.loads.push(load);
        }
        known.unwrap_or(self.loads.len() - 1) as u32 + 1
    }
}

/// The bytes of an access, unless they count as written.
fn bytes<'i>(own: &'i mut Own, pages: &'i mut Pages, env: &Env<'_>, w: &Warp, access: &Access) -> Option<&'i mut [u8]> {
    let thread = (w.index() * 32 + access.lane) as usize;
    match access.memory {
        Memory::Global => {
            let (first, len) = ((access.at & 4095) as usize, access.len as usize);
            pages.at(env.launch(), access.at)?.get_mut(first..first + len)
        }
        memory => own.at(memory, thread, access.at, access.len.into()),
    }
}

/// The words of an access of which no byte was written, and those of them that have a byte made of such. One bit each.
fn unwritten(bytes: &[u8]) -> (u32, u32) {
    let words = bytes.chunks(4).enumerate().filter(|(_, word)| word.iter().all(|byte| *byte != WRITTEN));
    words.fold((0, 0), |(all, made), (i, word)| (all | 1 << i, made | u32::from(word.contains(&MADE_OF_SUCH)) << i))
}

impl Inspector {
    /// Looks at what an instruction reads and writes, before it does. The result is false if it must not be executed yet.
    pub(super) fn values(
        &mut self,
        pages: &mut Pages,
        w: &Warp,
        env: &Env<'_>,
        u: &Uop,
        shape: Shape,
        exec: u32,
    ) -> bool {
        let Some(mut init) = self.init.take() else { return true };
        let operands = looked(env.image()).program(env.image()).at(u.at());
        self.addresses(&mut init, w, env, u, (shape, exec), &operands);
        match shape {
            Shape { space: Space::Copy, .. } => self.copies(&mut init, pages, w, env),
            Shape { atomic: true, .. } => {
                self.atomics(&mut init, pages, w, env, u, &operands);
                init.shadows[w.index() as usize].writes(u, &operands, exec);
            }
            Shape { writes: true, .. } => self.stores(&mut init, pages, w, env, u, &operands),
            _ if self.are_written(&mut init, pages, env) => init.shadows[w.index() as usize].writes(u, &operands, exec),
            _ => self.loads(&mut init, pages, (w, env, u), shape, exec, &operands),
        }
        let goes_on = !init.wants;
        self.init = Some(init);
        goes_on
    }

    /// Whether all bytes between the ends of what an instruction accesses were written.
    fn are_written(&self, init: &mut Init, pages: &mut Pages, env: &Env<'_>) -> bool {
        let Some(span) = &self.span else { return false };
        match together(&mut init.own, pages, env.launch(), span) {
            Together::Written => true,
            Together::Bytes(bytes) => all_written(bytes),
            Together::Apart => false,
        }
    }

    /// Looks at the registers of an address, and at the guard of a store.
    fn addresses(&self, init: &mut Init, w: &Warp, env: &Env<'_>, u: &Uop, how: (Shape, u32), operands: &Operands) {
        let shadow = &mut init.shadows[w.index() as usize];
        if !shadow.any {
            return;
        }
        let ((shape, exec), mut found) = (how, Vec::new());
        let what = if shape.atomic {
            "atomic"
        } else if shape.writes {
            "store"
        } else {
            "load"
        };
        let on = self.accesses.iter().fold(0, |on, access| on | 1 << access.lane);
        let last = if shape.swaps { (0, 0) } else { operands.reads[2] };
        for (first, count) in [operands.reads[0], last] {
            for row in (first..first + u16::from(count)).map(usize::from) {
                let of = shadow.rows[row];
                let lanes = of.lanes & on;
                if lanes != 0 {
                    shadow.rows[row].forget(lanes);
                    found.push((row, of, lanes, "it is part of an address"));
                }
            }
        }
        let guard = &mut shadow.predicates[usize::from(u.guard().index)];
        let doubtful = guard.lanes & exec;
        if shape.writes && doubtful != 0 {
            found.push((0, *guard, doubtful, "it decides whether a thread stores"));
            guard.forget(u32::MAX);
        }
        for (row, of, lanes, does) in found {
            self.used(init, w, env, (row, of), Usage { at: u.at(), lane: lanes.trailing_zeros(), what, does });
        }
    }

    fn loads(
        &mut self,
        init: &mut Init,
        pages: &mut Pages,
        (w, env, u): (&Warp, &Env<'_>, &Uop),
        shape: Shape,
        exec: u32,
        operands: &Operands,
    ) {
        let (mut masks, mut first) = ([(0u32, 0u32); 4], None);
        for (i, access) in self.accesses.iter().enumerate() {
            let Some(bytes) = bytes(&mut init.own, pages, env, w, access) else { continue };
            if all_written(bytes) {
                continue;
            }
            let (words, made) = unwritten(bytes);
            if words == 0 {
                continue;
            }
            first = first.or(Some((access, words)));
            for word in lanes(words) {
                // Four lanes share a row of a matrix, and eight rows make a register.
                let (slot, mask) = match shape.space {
                    Space::Rows => (i / 8, 1 << (i % 8 * 4 + word as usize)),
                    _ => (word as usize, 1 << access.lane),
                };
                masks[slot].0 |= mask;
                masks[slot].1 |= if made >> word & 1 == 1 { mask } else { 0 };
            }
        }
        let Some((access, words)) = first else {
            return init.shadows[w.index() as usize].writes(u, operands, exec);
        };
        if !looked(env.image()).whole {
            init.wants = true;
            return;
        }
        let address = access.at + 4 * u64::from(words.trailing_zeros());
        let (memory, lane, block) = (access.memory, access.lane, env.ctaid());
        let origin = init.load(Load { at: u.at(), memory, address, warp: w.index(), lane, block });
        let shadow = &mut init.shadows[w.index() as usize];
        shadow.writes(u, operands, exec);
        for (row, (lanes, made)) in operands.written().zip(masks) {
            shadow.rows[row].note(lanes, made, &ALL_BITS, origin);
        }
        shadow.any = true;
    }

    fn stores(&self, init: &mut Init, pages: &mut Pages, w: &Warp, env: &Env<'_>, u: &Uop, operands: &Operands) {
        let (first, count) = operands.reads[1];
        let shadow = &init.shadows[w.index() as usize];
        let rows = usize::from(first)..usize::from(first) + usize::from(count);
        let mut data = [Unwritten::default(); 4];
        if !shadow.any {
            return self.fill(init, pages, w, env);
        }
        data.iter_mut().zip(rows.clone()).for_each(|(data, row)| *data = shadow.rows[row]);
        let mut found = None;
        for access in &self.accesses {
            let on = 1u32 << access.lane;
            for (word, (of, row)) in data.iter().zip(rows.clone()).enumerate() {
                let is_register = trial::origin(row, *of) & REGISTERS != 0;
                let counts = of.made & on != 0 || is_register && of.lanes & on != 0 && access.len <= 4;
                if access.memory == Memory::Global && counts && found.is_none() {
                    found = Some((word, access.lane));
                }
            }
            let Some(bytes) = bytes(&mut init.own, pages, env, w, access) else { continue };
            for (word, bytes) in bytes.chunks_mut(4).enumerate() {
                let of = data[word & 3];
                let stored = match () {
                    () if of.made & on != 0 => MADE_OF_SUCH,
                    () if of.lanes & on != 0 => NEVER,
                    () => WRITTEN,
                };
                for (byte, bits) in bytes.iter_mut().zip(of.bits[access.lane as usize & 31].to_le_bytes()) {
                    *byte = if bits == 0 { WRITTEN } else { stored };
                }
            }
        }
        if let Some((word, lane)) = found {
            let does = "a result of it is stored";
            self.used(init, w, env, (rows.start + word, data[word]), Usage { at: u.at(), lane, what: "store", does });
        }
    }

    /// Everything that an instruction stores was written.
    fn fill(&self, init: &mut Init, pages: &mut Pages, w: &Warp, env: &Env<'_>) {
        if let Some(span) = self.span.filter(|span| span.dense) {
            match together(&mut init.own, pages, env.launch(), &span) {
                Together::Written => return,
                Together::Bytes(bytes) => return bytes.fill(WRITTEN),
                Together::Apart => {}
            }
        }
        for access in &self.accesses {
            bytes(&mut init.own, pages, env, w, access).into_iter().for_each(|bytes| bytes.fill(WRITTEN));
        }
    }

    fn atomics(&self, init: &mut Init, pages: &mut Pages, w: &Warp, env: &Env<'_>, u: &Uop, operands: &Operands) {
        let mut found = None;
        for access in &self.accesses {
            let Some(bytes) = bytes(&mut init.own, pages, env, w, access) else { continue };
            if bytes.iter().all(|byte| *byte != WRITTEN) {
                found = found.or(Some(*access));
            }
            bytes.fill(WRITTEN);
        }
        let word = Word(env.image().word(u.at()));
        let exchanges =
            isa::lookup(word).and_then(|row| row.effects.memory()).is_some_and(|memory| memory.exchanges(word));
        if let Some(access) = found.filter(|_| !exchanges) {
            let load = Load {
                at: u.at(),
                memory: access.memory,
                address: access.at,
                warp: w.index(),
                lane: access.lane,
                block: env.ctaid(),
            };
            let of = Unwritten { lanes: 1, made: 0, bits: ALL_BITS, origin: init.load(load) };
            let does = "an atomic changes it";
            self.used(init, w, env, (0, of), Usage { at: u.at(), lane: access.lane, what: "atomic", does });
        }
        let (first, count) = operands.reads[1];
        let on = self.accesses.iter().fold(0, |on, access| on | 1 << access.lane);
        for row in (first..first + u16::from(count)).map(usize::from) {
            let of = init.shadows[w.index() as usize].rows[row];
            if of.lanes & on != 0 {
                let lane = (of.lanes & on).trailing_zeros();
                self.used(
                    init,
                    w,
                    env,
                    (row, of),
                    Usage { at: u.at(), lane, what: "atomic", does: "an atomic uses it" },
                );
            }
        }
    }

    /// LDGSTS: what is copied was written as far as its source was.
    fn copies(&self, init: &mut Init, pages: &mut Pages, w: &Warp, env: &Env<'_>) {
        let mut source = [WRITTEN; 16];
        for access in &self.accesses {
            let bytes = bytes(&mut init.own, pages, env, w, access);
            match (access.reads, bytes) {
                (true, None) => source = [WRITTEN; 16],
                (true, Some(bytes)) => {
                    source = [WRITTEN; 16];
                    source[..bytes.len()].copy_from_slice(bytes);
                }
                (false, bytes) => {
                    bytes.into_iter().for_each(|bytes| bytes.copy_from_slice(&source[..bytes.len()]));
                    source = [WRITTEN; 16];
                }
            }
        }
    }

    /// Executes an instruction, and follows what it makes of values that were never written.
    pub(super) fn follow(&mut self, step: &mut Step<'_, '_>) -> Flow {
        let (w, env, u) = step.parts();
        self.begin(env.ctaid(), env.launch());
        let (looked, warp) = (looked(env.image()), w.index() as usize);
        let (operands, is_whole) = (looked.program(env.image()).at(u.at()), looked.whole);
        let Some(mut init) = self.init.take() else { return step.execute() };
        let reads = init.shadows[warp].reads(u, &operands);
        let flow = match operands.sort {
            // Reports, and the shadow of what is loaded, are made before.
            Sort::Access => step.execute(),
            Sort::Pure if reads && !is_whole => {
                init.wants = true;
                step.asks_for_another_program()
            }
            Sort::Pure if reads => trial::execute(&mut init.shadows[warp], step, &operands),
            sort => {
                if sort == Sort::Control && reads {
                    self.decides(&mut init, w, env, u, &operands);
                }
                let flow = step.execute();
                if flow != Flow::Count {
                    init.shadows[warp].writes(step.uop(), &operands, step.exec());
                }
                flow
            }
        };
        self.init = Some(init);
        flow
    }

    /// An instruction decides where threads continue.
    fn decides(&self, init: &mut Init, w: &Warp, env: &Env<'_>, u: &Uop, operands: &Operands) {
        let shadow = &mut init.shadows[w.index() as usize];
        let mut found = None;
        for p in [u.guard()].into_iter().chain(u.predicate_sources()) {
            let of = &mut shadow.predicates[usize::from(p.index)];
            if of.lanes & w.active() != 0 {
                found = found.or(Some((0, *of)));
                of.forget(u32::MAX);
            }
        }
        for row in operands.rows() {
            let of = &mut shadow.rows[row];
            if of.lanes & w.active() != 0 {
                found = found.or(Some((row, *of)));
                of.forget(u32::MAX);
            }
        }
        if let Some((row, of)) = found {
            let lane = (of.lanes & w.active()).trailing_zeros();
            let does = "it decides where a thread continues";
            self.used(init, w, env, (row, of), Usage { at: u.at(), lane, what: "branch", does });
        }
    }

    /// Reports the use of a value that was never written.
    fn used(&self, init: &Init, w: &Warp, env: &Env<'_>, (row, of): (usize, Unwritten), usage: Usage) {
        let Usage { at, lane, what, does } = usage;
        let here = Part { what: what.to_owned(), warp: w.index(), lane, at, block: None };
        let origin = trial::origin(row, of);
        let load = init.loads.get((origin as usize).wrapping_sub(1)).filter(|_| origin & REGISTERS == 0);
        let Some(load) = load else {
            return self.report(env, Kind::Init, (origin & 255) as u8, at, |party| {
                let number = origin & 255;
                (format!("register R{number} was never written, and {does}"), vec![party(here)])
            });
        };
        self.report(env, Kind::Init, 0, load.at, |party| {
            let (memory, address) = (load.memory.name(), load.address);
            let place =
                if load.memory == Memory::Global { crate::memory::place(&env.launch().table, address) } else { None };
            let place = place.map_or_else(String::new, |place| format!(", {place},"));
            let title = format!("{memory} memory at {address:#x}{place} was never written, and {does}");
            let mut parties = vec![party(here)];
            if load.at != at {
                let (what, block) = ("earlier load".to_owned(), Some(load.block));
                parties.push(party(Part { what, warp: load.warp, lane: load.lane, at: load.at, block }));
            }
            (title, parties)
        });
    }
}
