//! The opening of a program: the instructions behind the [template](super::template), up to the first one that may go elsewhere, wait or
//! fail.
//!
//! Among them are those that make addresses. If all numbers that they compute are linear in the index of the CTA, they are executed once
//! for a launch. CTAs get only those of the numbers that other instructions read. Loads and stores whose addresses are linear find their
//! memory once for a launch, too ([`super::linear`]). What is left is executed in one run.
#![allow(unsafe_code)]

use super::alu::{self, Whole};
use super::env::Env;
use super::image::Image;
use super::interp;
use super::known::Pattern;
use super::linear::{Form, Linear, Makes, Part, Slope};
use super::live::{self, Rows};
use super::ops::{int, logic, memory};
use super::rows::{self, Row, Src, pred};
use super::runs::Run;
use super::straight;
use super::template::{Needed, Template};
use super::uop::{Flow, Handlers, Uop};
use super::warp::{Warp, lanes};
use crate::isa::memory::{Access, Space};
use crate::isa::{self, Formula, Op, Row as Opcode};
use crate::word::Word;
use sm87_simd::Simd;

/// So many instructions of an opening usually have results that are kept.
const USUAL: usize = 16;
/// The most instructions of an opening. It is much less than a slice has.
pub(super) const OPENING_PARTS: usize = 160;
/// It is worth the effort in a grid of so many warps.
pub(super) const WORTH: u64 = 192;

/// What an instruction makes, if it may belong to an opening.
pub(crate) fn part(row: &Opcode, word: Word, u: &Uop) -> Option<Makes> {
    let effects = &row.effects;
    if row.flow != isa::Flow::Next || !effects.straight {
        return None;
    }
    if let Some(register) = row.special_register(word) {
        return (u.guard.is_always_true() && depends_on_places(register)).then_some(Makes::Special(register));
    }
    if let Some(memory) = effects.memory() {
        let moves = memory.space == Space::Global && matches!(memory.access, Access::Load | Access::Store);
        let all = u.guard.is_always_true() && (stores(row) || u.ps.is_always_true());
        return (moves && all && super::access::is_pair(u)).then_some(Makes::Access);
    }
    // ULDC reads a word of a constant bank, which is a row of the launch.
    (live::computes(row) && (effects.pure || row.op == Op::Uldc)).then(|| makes(effects.formula, word, u))
}

/// Whether a special register holds an index of the thread or of the CTA, or the same for all of them.
fn depends_on_places(register: u32) -> bool {
    matches!(register, 0x00 | 0x20..=0x23 | 0x25..=0x28 | 0x38..=0x3c | 0xff)
}

/// Whether an instruction writes registers to memory.
fn stores(row: &Opcode) -> bool {
    row.effects.memory().is_some_and(|memory| memory.access == Access::Store)
}

/// What an instruction of arithmetic makes of its sources.
fn makes(formula: Formula, word: Word, u: &Uop) -> Makes {
    let no_carry = [u.pd, u.pe].iter().all(|p| matches!(*p, pred::SINK | pred::UNIFORM_SINK));
    let sign = |n: usize| if u.mods & int::NEG[n] != 0 { -1 } else { 1 };
    // Bit 74 is .X, which adds a carry.
    let carries = word.bit(74) || !no_carry;
    match formula {
        Formula::Copy => Makes::Sum([1, 0, 0]),
        Formula::Sum if !carries => Makes::Sum([sign(0), sign(1), sign(2)]),
        Formula::Product if !carries => Makes::Product(sign(2)),
        Formula::Wide if !carries && u.mods & int::NEG[2] == 0 => Makes::Wide(word.bit(73)),
        Formula::Scaled if !carries && u.mods == 0 => Makes::Sum([1 << u.imm, 1, 0]),
        Formula::Shifted if no_carry && u.mods & 15 == logic::TO_THE_LEFT => Makes::Shifted,
        Formula::Shifted if no_carry && u.mods == logic::TO_THE_RIGHT_SIGNED => Makes::ShiftedRight,
        Formula::Word(depends) if no_carry && depends.of(word) == 0 => Makes::Word,
        _ => Makes::Something,
    }
}

/// What is known of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    /// A number for each lane.
    Word(Form),
    /// The low row of a pair whose number is linear, and its high row.
    Low(Slope),
    High,
}

/// What an instruction becomes.
enum Becomes {
    /// It is executed as it is.
    Itself,
    /// It is left out, because its destination holds the result already.
    Nothing,
    /// It loads or stores where the access with this number does.
    Accesses(u32),
    /// So many registers get what they hold in the first CTA of each warp, and what other CTAs add, if somebody reads them.
    /// The last number says where [`Linear::keep`] has put what they hold.
    Puts(usize, Slope, usize),
}

/// The instructions that are left of an opening.
pub(crate) struct Opening {
    uops: Vec<Uop>,
    runs: Vec<Run>,
    /// Where the warp goes on, and whether all of its lanes exit instead.
    end: u32,
    exits: bool,
    preds: [u32; pred::COUNT],
    /// What is needed of what the template holds.
    pub needed: Needed,
    /// The number of instructions, and how many of them a lane executes.
    issued: u32,
    executed: u32,
}

impl Opening {
    /// Finds the opening of a launch, with warps that have begun behind the template. What it keeps of its accesses and registers is
    /// left in `env`. The result is `None` if none of them is linear, or nothing would be gained.
    pub(crate) fn of(env: &mut Env<'_>, image: &Image, warps: &mut [Warp], template: &Template) -> Option<Opening> {
        let parts = image.parts_from(template.pc)?;
        let whole = warps.iter().all(|w| w.active == u32::MAX);
        if image.ordered || image.keeps_time() || !whole && image.reads_across() {
            return None;
        }
        env.memory.linear = Linear::new(env.cta.index, USUAL * warps.len());
        let mut finder = Finder { env, image, warps, known: vec![None; rows::rows_per_warp(image.registers)] };
        finder.knows(template);
        let mut became = Vec::with_capacity(parts.len());
        became.extend(parts.iter().zip(template.pc..).map_while(|(part, at)| finder.becomes(part, at)));
        let linear = |b: &Becomes| !matches!(b, Becomes::Itself);
        if !became.iter().any(linear) {
            return None;
        }
        Some(finder.finish(parts, became, &image.opening.behind, template))
    }

    /// Puts a warp that has just begun behind the opening. [`Self::execute`] executes it.
    #[inline]
    pub(crate) fn begin(&self, w: &mut Warp, rows: &mut [Row]) {
        self.needed.put(rows);
        (w.preds, w.ahead, w.opens) = (self.preds, (self.issued, self.executed), true);
        w.pc = self.end;
    }

    /// Executes what is left of the opening.
    #[inline]
    pub(crate) fn execute(&self, env: &mut Env<'_>, w: &mut Warp) {
        // SAFETY: the micro-ops are those of the program whose arrays the warp has, apart from those that read what `env` keeps for
        // this opening. No other opening has been found since.
        unsafe { interp::run_straight(w, env, &self.uops, &self.runs) };
        if self.exits {
            interp::count_ahead(w, env);
            w.exit(w.active);
        }
    }
}

/// The least and the most of what lanes hold, as numbers with a sign.
fn bounds(row: &[u32; 32], active: u32) -> (i32, i32) {
    let within = |(least, most): (i32, i32), x: u32| (least.min(x as i32), most.max(x as i32));
    let nothing = (i32::MAX, i32::MIN);
    if active == u32::MAX {
        // The compiler makes vectors of this.
        return row.iter().copied().fold(nothing, within);
    }
    lanes(active).map(|lane| row[lane as usize]).fold(nothing, within)
}

/// Finds out what is linear, one instruction after another.
struct Finder<'f, 'a> {
    env: &'f mut Env<'a>,
    image: &'f Image,
    warps: &'f mut [Warp],
    known: Vec<Option<Held>>,
}

impl Finder<'_, '_> {
    /// Begins with what the template has computed, and with the rows that are always zero.
    fn knows(&mut self, template: &Template) {
        // All lanes of all warps hold the same there.
        for row in template.written.all() {
            let number = template.number(row) as i32;
            self.known[row] = Some(Held::Word(Form::between((number, number))));
        }
        self.knows_zero();
    }

    /// What a row holds in all warps, whatever the index of the CTA is.
    fn fixed(&self, row: usize) -> Form {
        let bounds = self.warps.iter().map(|w| bounds(w.lanes_of(Src::nth(row)), w.active));
        let all = bounds.reduce(|(least, most), (x, y)| (least.min(x), most.max(y)));
        Form::between(all.unwrap_or_default())
    }

    /// What is known of a source of one word.
    fn word(&self, s: Src) -> Option<Form> {
        if !s.is_own() {
            let x = i64::from(self.warps[0].get(s, 0) as i32);
            return Some(Form { slope: [0; 3], least: x, most: x });
        }
        match self.known[s.own() / 32] {
            Some(Held::Word(form)) => Some(form),
            _ => None,
        }
    }

    /// What is known of a source of two words.
    fn pair(&self, s: Src) -> Option<Slope> {
        if s.is_own() && self.known[s.own() / 32 + 1] == Some(Held::High) {
            return if let Some(Held::Low(slope)) = self.known[s.own() / 32] { Some(slope) } else { None };
        }
        let both = [self.word(s)?, self.word(s.plus(1))?];
        both.iter().all(Form::is_fixed).then(Slope::default)
    }

    /// What an instruction becomes, or `None` if the opening ends before it.
    fn becomes(&mut self, part: &Part, at: u32) -> Option<Becomes> {
        let u = self.image.uops[at as usize];
        let becomes = match part.makes {
            Makes::Access => self.access(&u)?,
            Makes::Special(register) => self.special(&u, register)?,
            _ => self.computes(&u, part).unwrap_or(Becomes::Itself),
        };
        if !matches!(becomes, Becomes::Puts(..) | Becomes::Nothing) {
            self.forget(&u, part);
        }
        Some(becomes)
    }

    /// Forgets what is known of the rows that an instruction may write.
    fn forget(&mut self, u: &Uop, part: &Part) {
        let first = u.d.offset() / 32;
        let row = part.touched.overwrites.all().chain(first..first + 4);
        row.for_each(|row| self.known[row] = None);
        self.knows_zero();
    }

    /// Rows that are always zero are never forgotten, wherever an instruction writes.
    fn knows_zero(&mut self) {
        for zero in [Src::reg(255), Src::ureg(63)].map(|s| s.own() / 32) {
            self.known[zero..zero + 4].fill(Some(Held::Word(Form::default())));
        }
    }

    /// Executes an instruction for all warps. Returns whether nothing happened besides.
    fn execute(&mut self, u: &Uop, run: &Handlers) -> bool {
        let mut flows = self.warps.iter_mut().map(|w| {
            let active = w.active;
            // SAFETY: the warps have the arrays of the program to which the micro-op belongs.
            unsafe { run.of(active)(w, self.env, u, active) }
        });
        flows.all(|flow| flow == Flow::Next)
    }

    /// A load or a store.
    fn access(&mut self, u: &Uop) -> Option<Becomes> {
        let slope = self.pair(u.a)?;
        self.pair(u.c).filter(|slope| *slope == Slope::default())?;
        let run = memory::locating(u, self.image.row(u.at));
        let mut all = Vec::with_capacity(self.warps.len());
        for w in &mut *self.warps {
            let active = w.active;
            // SAFETY: as for `execute`; the handler reads the address of `u` and finds its memory.
            unsafe { run.of(active)(w, self.env, u, active) };
            all.push(self.env.memory.linear.located.take()?);
        }
        // Outside of an opening, several loads of one piece are executed together, which takes less time.
        let joins = self.image.runs[u.at as usize].loading >= 4;
        if joins && all.iter().any(|lanes| lanes.layout.how == Pattern::Scattered) {
            return None;
        }
        let len = isa::memory::bytes(u.mods & 7);
        Some(Becomes::Accesses(self.env.memory.linear.add_access(slope, len, all)))
    }

    /// The index of the CTA, or something that has nothing to do with it.
    fn special(&mut self, u: &Uop, register: u32) -> Option<Becomes> {
        if !self.execute(u, &u.run) {
            return None;
        }
        let axis = register.wrapping_sub(0x25) as usize;
        if axis < 3 {
            let mut slope = [0; 3];
            slope[axis] = 1;
            let most = i64::from(self.env.launch().grid[axis]) - 1;
            let form = Form { slope, least: 0, most }.word()?;
            return Some(self.keeps(u, &form));
        }
        // CS2R reads one register, or two at once.
        Some(self.is_fixed(u, if u.mods != 0 { 2 } else { 1 }))
    }

    /// Notes that the registers of a destination have nothing to do with the CTA.
    fn is_fixed(&mut self, u: &Uop, words: usize) -> Becomes {
        let row = u.d.offset() / 32;
        (row..row + words).for_each(|row| self.known[row] = Some(Held::Word(self.fixed(row))));
        self.knows_zero();
        self.puts(u, words, Slope::default())
    }

    /// Notes that a register is linear.
    fn keeps(&mut self, u: &Uop, form: &Form) -> Becomes {
        if form.is_fixed() {
            return self.is_fixed(u, 1);
        }
        self.known[u.d.offset() / 32] = Some(Held::Word(*form));
        self.puts(u, 1, form.wrapping())
    }

    /// An instruction of arithmetic, whose result may be linear.
    fn computes(&mut self, u: &Uop, part: &Part) -> Option<Becomes> {
        if !u.guard.is_always_true() {
            return None;
        }
        if let Makes::Wide(signed) = part.makes {
            return self.wide(u, signed);
        }
        if matches!(part.makes, Makes::Sum(times) if self.keeps_high(u, times)) {
            return Some(Becomes::Nothing);
        }
        if let Some(form) = self.form(u, part.makes) {
            return self.execute(u, &u.run).then(|| self.keeps(u, &form));
        }
        let words = match part.makes {
            Makes::Something if self.image.row(u.at)?.op == Op::Uldc && u.mods <= 2 => u.mods as usize,
            Makes::Something => return None,
            _ => 1,
        };
        let fixed = |row: usize| matches!(self.known[row], Some(Held::Word(form)) if form.is_fixed());
        if !part.touched.reads.all().all(fixed) {
            return None;
        }
        self.execute(u, &u.run).then(|| self.is_fixed(u, words))
    }

    /// Whether an instruction adds nothing to the high row of a pair. Where an index is not negative, that is the upper half of its product with a size.
    fn keeps_high(&self, u: &Uop, times: [i64; 3]) -> bool {
        let row = u.d.offset() / 32;
        let is_high = |s: Src| s.is_own() && s.own() / 32 == row;
        let is_zero = |s: Src| self.word(s).and_then(|form| form.number()) == Some(0);
        let mut sources = [u.a, u.b, u.c].into_iter().zip(times);
        let high = sources.clone().filter(|(source, times)| is_high(*source) && *times == 1).count();
        let others = sources.all(|(source, times)| times == 0 || is_high(source) || is_zero(source));
        self.known[row] == Some(Held::High) && high == 1 && others
    }

    /// The linear number that an instruction makes.
    fn form(&self, u: &Uop, makes: Makes) -> Option<Form> {
        let [a, b, c] = [u.a, u.b, u.c];
        let form = match makes {
            Makes::Sum(times) => {
                let mut sum = Form::default();
                for (source, times) in [a, b, c].into_iter().zip(times).filter(|(_, times)| *times != 0) {
                    sum = sum.plus(&self.word(source)?.times(times)?)?;
                }
                sum
            }
            Makes::Product(times) => self.product(a, b)?.plus(&self.word(c)?.times(times)?)?,
            Makes::Shifted => {
                let by = self.word(b)?.number().filter(|by| (0..32).contains(by))?;
                self.word(a)?.times(1 << by)?
            }
            Makes::ShiftedRight if self.word(b)?.number() == Some(31) => self.word(c)?.sign()?,
            _ => return None,
        };
        form.word()
    }

    /// A product of which one factor is a number.
    fn product(&self, a: Src, b: Src) -> Option<Form> {
        let (a, b) = (self.word(a)?, self.word(b)?);
        match (a.number(), b.number()) {
            (_, Some(number)) => a.times(number),
            (Some(number), _) => b.times(number),
            _ => None,
        }
    }

    /// A product of 64 bits plus a pair.
    fn wide(&mut self, u: &Uop, signed: bool) -> Option<Becomes> {
        let product = self.product(u.a, u.b)?;
        // Without signs, the factors are the same numbers only if they have none.
        if !signed && (self.word(u.a)?.least < 0 || self.word(u.b)?.least < 0) {
            return None;
        }
        let (more, slope) = (self.pair(u.c)?, product.wrapping());
        let slope = Slope(std::array::from_fn(|axis| slope.0[axis].wrapping_add(more.0[axis])));
        if !self.execute(u, &u.run) {
            return None;
        }
        if slope == Slope::default() {
            return Some(self.is_fixed(u, 2));
        }
        let row = u.d.offset() / 32;
        (self.known[row], self.known[row + 1]) = (Some(Held::Low(slope)), Some(Held::High));
        self.knows_zero();
        Some(self.puts(u, 2, slope))
    }

    /// The registers of a destination get what they hold now, and what other CTAs add to it.
    fn puts(&mut self, u: &Uop, words: usize, slope: Slope) -> Becomes {
        let row = |w: &Warp, n: usize| Row(*w.lanes_of(u.d.as_src().plus(n as u32)));
        let rows = self.warps.iter().flat_map(|w| (0..words).map(move |n| row(w, n)));
        Becomes::Puts(words, slope, self.env.memory.linear.keep(rows))
    }

    /// Keeps the instructions whose results somebody reads.
    fn finish(self, parts: &[Part], became: Vec<Becomes>, behind: &Rows, template: &Template) -> Opening {
        let (image, count) = (self.image, became.len() as u32);
        let end = template.pc + count;
        let exits = image.exits_at(end);
        let mut live = match parts.get(became.len()) {
            _ if exits => Rows::default(),
            Some(part) => part.live.with(&image.across),
            None => behind.with(&image.across),
        };
        let mut uops = Vec::with_capacity(became.len());
        for (n, (becomes, part)) in became.into_iter().zip(parts).enumerate().rev() {
            let at = template.pc + n as u32;
            let u = image.uops[at as usize];
            live = match becomes {
                Becomes::Itself => {
                    uops.push(u);
                    live.without(&part.touched.overwrites).with(&part.touched.reads)
                }
                Becomes::Nothing => live,
                Becomes::Accesses(number) => {
                    uops.push(memory::linear(&u, image.row(at), number));
                    live.without(&part.touched.overwrites).with(&stored(&u, image.row(at)))
                }
                Becomes::Puts(words, slope, first) => {
                    let mut written = Rows::default();
                    written.add(u.d.offset() / 32, words);
                    if live.meets(&written) {
                        let imm = self.env.memory.linear.add_value(slope, first);
                        uops.push(put(&u, words, imm));
                    }
                    live.without(&written)
                }
            };
        }
        uops.reverse();
        let opcodes: Vec<_> = uops.iter().map(|u| image.row(u.at)).collect();
        let runs = straight::find(&uops, &opcodes);
        let needed = template.needed(image, &live);
        let [issued, executed] = [template.issued, template.executed].map(|n| n + count + u32::from(exits));
        Opening { uops, runs, end, exits, preds: template.preds, needed, issued, executed }
    }
}

/// The rows whose contents a store writes to memory.
fn stored(u: &Uop, row: Option<&Opcode>) -> Rows {
    let mut rows = Rows::default();
    if row.is_some_and(stores) && u.b.is_own() {
        rows.add(u.b.own() / 32, isa::memory::registers(u.mods & 7).unwrap_or(4).into());
    }
    rows
}

/// The micro-op that puts numbers into registers in the place of an instruction.
fn put(u: &Uop, words: usize, imm: u32) -> Uop {
    let run = if words == 1 { alu::whole::<Put<1>>() } else { alu::whole::<Put<2>>() };
    let zero = Src::reg(255);
    Uop { run, a: zero, b: zero, c: zero, imm, mods: 0, ..*u }
}

struct Put<const WORDS: usize>;
impl<const WORDS: usize> Whole for Put<WORDS> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
        let (rows, moved) = env.memory.linear.value::<WORDS>(w.index, u.imm);
        let more = [V::splat(moved as u32), V::splat((moved >> 32) as u32)];
        let (low, high) = (w.dst(u.d), w.dst(u.d.plus(1)));
        let mut i = 0;
        while i < 32 {
            // SAFETY: rows have 32 words; a pair was lowered as two rows.
            unsafe {
                let x = rows.each_ref().map(|row| V::load(row.0.as_ptr().add(i)));
                if WORDS == 1 {
                    x[0].add(more[0]).store(low.add(i));
                } else {
                    let sum = V::add_wide([x[0], x[WORDS - 1]], more).0;
                    sum[0].store(low.add(i));
                    sum[1].store(high.add(i));
                }
            }
            i += V::LANES;
        }
        Flow::Next
    }
}
