//! Special registers, and instructions that move data between lanes or to the uniform datapath: S2R, S2UR, CS2R, R2UR,
//! ULDC, LDC, VOTE, VOTEU, MATCH, SHFL and REDUX.
#![allow(unsafe_code)]

use crate::exec::alu::{self, Whole};
use crate::exec::env::{Env, WarpError};
use crate::exec::lower::{Lower, Refused};
use crate::exec::record::{Operation, Record, Recorder};
use crate::exec::rows::Row;
use crate::exec::runs::Space;
use crate::exec::several::{Results, Several, Sources, several};
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};
use crate::isa::memory::{bytes, registers};
use sm87_simd::{Simd, part, put};

/// The SPA version of ga10b, in the form in which the characteristics have it. The SM version is 8.7.
const SPA_VERSION: u32 = 8 << 8 | 6;

/// The registers with masks of lanes: the lane itself, those below it, those up to it, those above it, and those from it on.
const MASKS: [[u32; 32]; 5] = {
    let (mut masks, mut lane) = ([[0; 32]; 5], 0);
    while lane < 32 {
        let (own, below) = (1 << lane, (1u32 << lane) - 1);
        (masks[0][lane], masks[1][lane], masks[2][lane]) = (own, below, below | own);
        (masks[3][lane], masks[4][lane]) = (!(below | own), !below);
        lane += 1;
    }
    masks
};

/// What a special register holds for one lane. `None` stands for a register that a compute program cannot read.
fn special(w: &Warp, env: &Env<'_>, index: u32, lane: u32) -> Option<u32> {
    let l = env.launch();
    let tid = |axis: usize| env.launched.tids[w.index as usize][axis].0[lane as usize];
    Some(match index {
        0x00 => lane,
        0x01 | 0x50 => env.cycles() as u32,
        0x03 => (w.index & 0x7f) << 8,
        // These registers belong to graphics.
        0x0f..=0x1f => 0,
        0x20 => tid(0) | tid(1) << 16 | tid(2) << 26,
        0x21..=0x23 => tid(index as usize - 0x21),
        0x25..=0x27 => env.cta.index[index as usize - 0x25],
        0x28 => l.block[0] | l.block[1] << 16 | l.block[2] << 26,
        0x2c => SPA_VERSION,
        0x2e => (l.local_window >> 32) as u32,
        0x2f => (l.shared_window >> 32) as u32,
        0x30 => l.shared_window as u32,
        0x31 | 0x35 => 1 << 24,
        0x32 => l.shared_bytes,
        0x34 => l.local_window as u32,
        0x36 => l.local_low,
        0x37 => (1 << 24) - l.local_high,
        0x38..=0x3c => MASKS[index as usize - 0x38][lane as usize],
        0x3d => l.registers,
        0x40 | 0x42 => 0,
        0x43 => env.cta.sm,
        0x44 => l.veid,
        0x51 => (env.cycles() >> 32) as u32,
        0x52 => env.timer() as u32,
        0x53 => (env.timer() >> 32) as u32,
        // These registers report errors, of which there are none yet, and counters that nobody programs.
        0x54 | 0x55 | 0x64..=0x83 => 0,
        0xff => 0,
        _ => return None,
    })
}

/// Whether a special register is a clock: CLOCK, CLOCKLO, CLOCKHI, GLOBALTIMERLO or GLOBALTIMERHI.
fn is_clock(index: u32) -> bool {
    matches!(index, 0x01 | 0x50..=0x53)
}

/// Reads a clock. Both halves of the result are of the same time, for all lanes.
fn read_clock(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    if !env.counts.with_current {
        return Flow::Count;
    }
    let flow = read(w, env, u, exec);
    if flow != Flow::Next {
        return flow;
    }
    env.clock.look();
    w.looked = true;
    // A program that waits for a time lets other warps run meanwhile.
    Flow::pause_if(w.poll())
}

fn read(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let mask = crate::exec::alu::scope(u, exec);
    match u.imm {
        0x21..=0x23 if mask == exec && u.mods == 0 => {
            let row = env.launched.tids[w.index as usize][u.imm as usize - 0x21].0;
            w.put_lanes(u.d, &row, mask);
            return Flow::Next;
        }
        0x38..=0x3c if mask == exec && u.mods == 0 => {
            w.put_lanes(u.d, &MASKS[u.imm as usize - 0x38], mask);
            return Flow::Next;
        }
        // Compilers clear pairs of registers so.
        0xff => {
            w.fill(u.d, 0, mask);
            if u.mods != 0 {
                w.fill(u.d.plus(1), 0, mask);
            }
            return Flow::Next;
        }
        _ => {}
    }
    let (first, wide) = (exec.trailing_zeros(), u.mods != 0);
    let Some(x) = special(w, env, u.imm, first) else {
        let text = format!("special register {:#x} does not exist for compute", u.imm);
        return env.warp_error(u, WarpError::IllegalParameter, text);
    };
    let high = |w: &Warp, env: &Env<'_>, lane: u32| special(w, env, u.imm + 1, lane).unwrap_or(0);
    // A uniform read has the value of the first active lane. Most registers have the same for all lanes.
    if mask != exec || !wide && !matches!(u.imm, 0x00 | 0x20..=0x23 | 0x38..=0x3c) {
        w.fill(u.d, x, mask);
        if wide {
            w.fill(u.d.plus(1), high(w, env, first), mask);
        }
        return Flow::Next;
    }
    for lane in lanes(mask) {
        w.put(u.d, lane, special(w, env, u.imm, lane).unwrap_or(0));
        if wide {
            w.put(u.d.plus(1), lane, high(w, env, lane));
        }
    }
    Flow::Next
}

pub(crate) fn s2r(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let d = l.dst(1);
    Ok(Uop { d, imm: l.bits(72, 8), ..l.uop(reader(l)) })
}

/// The handlers that read a special register.
fn reader(l: &Lower<'_>) -> Handlers {
    Handlers::all(if is_clock(l.bits(72, 8)) { read_clock } else { read })
}

/// CS2R reads one register, or two at once.
pub(crate) fn cs2r(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let wide = l.bit(80);
    let d = l.dst(if wide { 2 } else { 1 });
    Ok(Uop { d, imm: l.bits(72, 8), mods: wide.into(), ..l.uop(reader(l)) })
}

pub(crate) fn s2ur(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let d = l.udst();
    Ok(Uop { d, imm: l.bits(72, 8), aux: crate::exec::uop::UNIFORM, ..l.uop(reader(l)) })
}

/// R2UR.
struct ToUniform;
impl Whole for ToUniform {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let row = w.row(u.a);
        let any = lanes(exec).fold(0, |x, l| if u.mods != 0 { x | row[l as usize] } else { x });
        let x = if u.mods != 0 { any } else { row[exec.trailing_zeros() as usize & 31] };
        w.broadcast(u.d, x);
        // The predicate says for each lane whether its value is different.
        let (mut same, mut i) = (0, 0);
        while i < 32 {
            // SAFETY: a row has 32 words.
            let found = unsafe { V::load(row.as_ptr().add(i)) };
            same |= found.eq(V::splat(x)).to_bits() << i;
            i += V::LANES;
        }
        w.set_pred(u.pd, exec, !same);
        Flow::Next
    }
}

pub(crate) fn r2ur(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (d, a) = (l.udst(), l.a());
    let pd = l.pdst(81);
    Ok(Uop { d, a, pd, mods: l.bit(84).into(), ..l.uop(alu::whole::<ToUniform>()) })
}

pub(crate) fn extend(size: u32, x: u32, offset: u32) -> u32 {
    let x = x >> (8 * (offset & 3));
    match size {
        0 => x & 0xff,
        1 => x as i8 as u32,
        2 => x & 0xffff,
        3 => x as i16 as u32,
        _ => x,
    }
}

fn load_uniform(w: &mut Warp, _: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    for i in 0..u.mods {
        let x = extend(u.imm & 7, w.get(u.a.plus(i), 0), u.imm >> 3);
        w.broadcast(u.d.plus(i), x);
    }
    Flow::Next
}

/// ULDC.64. Words of a constant bank are rows already, so that this is a move.
struct MovePair;
impl Several for MovePair {
    const PAIRS: u32 = 1;
    const WORDS: usize = 2;
    const CONDITIONS: usize = 0;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, s: Sources<V>) -> Results<V> {
        Results::value(s.a)
    }
}

/// ULDC.
pub(crate) fn uldc(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.bit(91) {
        return Err(Refused("bindless constant bank"));
    }
    let size = l.bits(73, 3);
    let count = registers(size).ok_or(Refused("ULDC size"))?;
    let offset = l.bits(38, 16);
    let a = l.constant(l.bits(54, 5) as u8, offset & !3, count);
    let run = if size == 5 { several::<MovePair>(true) } else { Handlers::all(load_uniform).into() };
    Ok(Uop { d: l.udst(), a, imm: size | offset << 3, mods: count.into(), ..l.uop(run) })
}

/// The place of the number of the bank in `mods`, behind the size.
const BANK: u32 = 8;

/// LDC and ULDC with an index in a register.
struct LoadIndexed;
impl Whole for LoadIndexed {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let (bank, size, mut left, mut alone) = (u.mods >> BANK, u.mods & 7, alu::scope(u, exec), false);
        // The address may be in a register that the first word is written to.
        let row = w.row(u.a);
        while left != 0 {
            let (lane, first) = (left.trailing_zeros(), left & left.wrapping_neg());
            let index = row[lane as usize & 31];
            // In most programs, all lanes have the same index: it counts the turns of a loop. Other programs look up a word for each lane.
            let taken = if alone { first } else { left & alike::<V>(&row, index) };
            (left, alone) = (left & !taken, taken == first);
            let at = index.wrapping_add(u.imm);
            if !at.is_multiple_of(bytes(size)) {
                let text = format!("LDC at offset {at:#x} of bank {bank}");
                return env.warp_error(u, WarpError::MisalignedAddress, text);
            }
            for i in 0..u32::from(registers(size).unwrap_or(1)) {
                let at = at.wrapping_add(4 * i);
                w.fill(u.d.plus(i), extend(size, env.launched.banks.word(bank, at & !3), at), taken);
            }
        }
        Flow::Next
    }
}

pub(crate) fn ldc(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.bit(91) {
        return Err(Refused("bindless constant bank"));
    }
    if l.bits(78, 2) != 0 {
        return Err(Refused("LDC with a segmented index"));
    }
    indexed(l)
}

/// ULDC with an index in a uniform register.
pub(crate) fn uldc_indexed(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    indexed(l)
}

fn indexed(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let size = l.bits(73, 3);
    let count = registers(size).ok_or(Refused("LDC size"))?;
    let (d, a) = (l.dst(count), l.a());
    let imm = l.word.signed(38, 16) as u32;
    let record = (size == 4 && !l.uniform()).then_some(write_down as Record);
    let operation = Operation { run: alu::whole::<LoadIndexed>(), record };
    Ok(Uop { d, a, imm, mods: l.bits(54, 5) << BANK | size, ..l.uop(operation) })
}

/// Writes down the load of a word from a bank.
fn write_down(u: &Uop, recorder: &mut Recorder<'_>) {
    recorder.load(u, Space::Bank((u.mods >> BANK) as u8));
}

fn vote(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let ballot = w.pred(u.ps) & exec;
    let hit = match u.imm {
        0 => ballot == exec,
        1 => ballot != 0,
        _ => ballot == exec || ballot == 0,
    };
    if u.mods != 0 {
        w.broadcast(u.d, ballot);
        w.set_pred(u.pd, u32::MAX, u32::from(hit).wrapping_neg());
        return Flow::Next;
    }
    w.fill(u.d, ballot, exec);
    w.set_pred(u.pd, exec, u32::from(hit).wrapping_neg());
    Flow::Next
}

/// VOTE and VOTEU. Both read a vector predicate.
pub(crate) fn vote_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let imm = l.bits(72, 2);
    if imm == 3 {
        return Err(Refused("VOTE mode 3"));
    }
    let mut ps = l.ps();
    ps.index &= 7;
    let (d, pd) = (l.dst(1), l.pdst(81));
    Ok(Uop { d, pd, ps, imm, mods: l.uniform().into(), ..l.uop(Handlers::all(vote)) })
}

/// The lanes in which a row has this word.
#[inline(always)]
pub(crate) fn alike<V: Simd>(row: &[u32; 32], word: u32) -> u32 {
    // A closure would be a function of its own, which the host's vectors would be handed to in memory.
    let (mut mask, mut i) = (0, 0);
    while i < 32 {
        // SAFETY: the row has 32 words.
        mask |= unsafe { V::load(row.as_ptr().add(i)) }.eq(V::splat(word)).to_bits() << i;
        i += V::LANES;
    }
    mask
}

/// The active lanes that have the value of one of them.
#[inline(always)]
fn group<V: Simd>(w: &Warp, u: &Uop, exec: u32, lane: u32) -> u32 {
    let low = exec & alike::<V>(w.lanes_of(u.a), w.get(u.a, lane));
    if u.mods & 1 == 0 {
        return low;
    }
    low & alike::<V>(w.lanes_of(u.a.plus(1)), w.get(u.a.plus(1), lane))
}

/// MATCH. Bit 0 of `mods` says that values have 64 bits, and bit 1 that the lanes of each value are looked for.
struct Match;
impl Whole for Match {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let all = u32::from(group::<V>(w, u, exec, exec.trailing_zeros()) == exec).wrapping_neg();
        if u.mods & 2 == 0 {
            w.fill(u.d, exec & all, exec);
        } else {
            let (mut masks, mut left) = ([0; 32], exec);
            while left != 0 {
                let mask = group::<V>(w, u, exec, left.trailing_zeros());
                lanes(mask).for_each(|lane| masks[lane as usize & 31] = mask);
                left &= !mask;
            }
            w.put_lanes(u.d, &masks, exec);
        }
        w.set_pred(u.pd, exec, all);
        Flow::Next
    }
}

pub(crate) fn match_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let wide = l.bit(73);
    let (d, a) = (l.dst(1), l.reg(24, if wide { 2 } else { 1 }));
    let mods = u32::from(wide) | u32::from(l.bit(79)) << 1;
    Ok(Uop { d, a, pd: l.pdst(81), mods, ..l.uop(alu::whole::<Match>()) })
}

/// The modes of SHFL: by the lane's index, up, down, or across (butterfly).
const INDEX: u32 = 0;
const UP: u32 = 1;
const DOWN: u32 = 2;
const CROSSED: u32 = 3;

/// SHFL. `imm` is the mode.
struct Shuffle;
impl Whole for Shuffle {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        // Lanes read what the destination had before.
        let a = w.row(u.a);
        let (b, c, d, mut valid) = (w.src(u.b), w.src(u.c), w.dst(u.d), 0);
        let (low, mut i) = (V::splat(31), 0);
        while i < 32 {
            // SAFETY: a register and an array have 32 words.
            unsafe {
                let (lane, c) = (V::load(Row::LANES.0.as_ptr().add(i)), V::load(c.add(i)));
                let (b, clamp) = (V::load(b.add(i)).and(low), c.and(low));
                let segment = c.shr(V::splat(8)).and(low);
                let min = lane.and(segment);
                let (max, index) = (min.or(clamp.and(segment.not())), min.or(b.and(segment.not())));
                let (j, wrong) = match u.imm {
                    INDEX => (index, max.lt(index)),
                    UP => (lane.sub(b), lane.sub(b).lt(max)),
                    DOWN => (lane.add(b), max.lt(lane.add(b))),
                    _ => (lane.xor(b), max.lt(lane.xor(b))),
                };
                let found = wrong.select(lane, j).pick(a.as_ptr());
                put(d, i, exec, found);
                valid |= wrong.not().to_bits() << i;
            }
            i += V::LANES;
        }
        w.set_pred(u.pd, exec, valid);
        Flow::Next
    }
}

/// SHFL within the whole warp, by the number `imm` that all lanes have. `MODE` is as for [`Shuffle`].
struct Fixed<const MODE: u32>;
impl<const MODE: u32> Whole for Fixed<MODE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let by = (u.imm & 31) as usize;
        // Lanes read what the destination had before. A vector may begin or end outside of the row.
        let mut words = [0; 96];
        words[32..64].copy_from_slice(w.lanes_of(u.a));
        let (row, d) = (words[32..].as_ptr(), w.dst(u.d));
        let valid = match MODE {
            UP => u32::MAX << by,
            DOWN => u32::MAX >> by,
            _ => u32::MAX,
        };
        let mut i = 0;
        while i < 32 {
            // SAFETY: `row` has 32 words before it and behind its own 32, and `by` is below 32. A register has 32 words.
            unsafe {
                let found = match MODE {
                    INDEX => V::splat(*row.add(by)),
                    UP => V::load(row.add(i).sub(by)),
                    DOWN => V::load(row.add(i + by)),
                    _ => V::load_crossed(row, i, by as u32),
                };
                let found = V::from_bits(part::<V>(valid, i)).select(found, V::load(row.add(i)));
                put(d, i, exec, found);
            }
            i += V::LANES;
        }
        w.set_pred(u.pd, exec, valid);
        Flow::Next
    }
}

pub(crate) fn shfl(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (d, a) = (l.dst(1), l.a());
    let b = if matches!(l.word.form(), 1 | 2) {
        l.reg(32, 1)
    } else {
        let x = l.bits(53, 5);
        l.literal(x)
    };
    let c = if matches!(l.word.form(), 1 | 4) {
        l.slot64()
    } else {
        let x = l.bits(40, 13);
        l.literal(x)
    };
    let (mode, pd) = (l.bits(58, 2), l.pdst(81));
    let (by, clamp) = (l.bits(53, 5), l.bits(40, 13) & 0x1f1f);
    // Without segments, a lane that is out of range is above the last one, or below the first.
    if l.word.form() == 7 && clamp == if mode == UP { 0 } else { 31 } {
        let run = match mode {
            INDEX => alu::whole::<Fixed<INDEX>>(),
            UP => alu::whole::<Fixed<UP>>(),
            DOWN => alu::whole::<Fixed<DOWN>>(),
            _ => alu::whole::<Fixed<CROSSED>>(),
        };
        return Ok(Uop { d, a, imm: by, pd, ..l.uop(run) });
    }
    Ok(Uop { d, a, b, c, imm: mode, pd, ..l.uop(alu::whole::<Shuffle>()) })
}

fn reduce(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let signed = u.mods != 0;
    let x = lanes(exec).map(|l| w.get(u.a, l)).reduce(|x, y| match u.imm {
        0 => x & y,
        1 => x | y,
        2 => x ^ y,
        3 => x.wrapping_add(y),
        4 if signed => (x as i32).min(y as i32) as u32,
        4 => x.min(y),
        _ if signed => (x as i32).max(y as i32) as u32,
        _ => x.max(y),
    });
    w.broadcast(u.d, x.unwrap_or(0));
    Flow::Next
}

pub(crate) fn redux(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let imm = l.bits(78, 3);
    if imm > 5 {
        return Err(Refused("REDUX operation"));
    }
    let (d, a) = (l.udst(), l.a());
    Ok(Uop { d, a, imm, mods: l.bit(73).into(), ..l.uop(Handlers::all(reduce)) })
}
