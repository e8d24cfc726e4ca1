//! HMMA, IMMA, BMMA, DMMA and MOVM. The matrix units work on fragments, and each register of a fragment is one row.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use super::hmma;
use crate::exec::alu::{self, Whole};
use crate::exec::env::{Env, WarpError};
use crate::exec::lower::{Lower, Refused};
use crate::exec::rows::{Dst, Src};
use crate::exec::rows::{Pred, pred};
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::Warp;
use sm87_num::Round;
use sm87_num::hmma::Hmma;
use sm87_num::mma::{Bmma, Fragment, Imma, dmma, transpose};
use sm87_simd::Simd;

#[inline(always)]
fn load<const N: usize>(w: &Warp, s: Src, used: usize) -> [Fragment; N] {
    let mut f = [[0; 32]; N];
    for (i, row) in f.iter_mut().enumerate().take(used) {
        *row = w.row(s.plus(i as u32));
    }
    f
}

#[inline(always)]
fn store(w: &mut Warp, d: Dst, rows: &[Fragment]) {
    for (i, row) in rows.iter().enumerate() {
        w.put_row(d.plus(i as u32), row);
    }
}

/// Refuses a matrix instruction that is not executed by the whole warp.
fn whole(env: &mut Env<'_>, u: &Uop, exec: u32) -> Result<(), Flow> {
    if exec == u32::MAX {
        env.counts.matrices += 1;
        return Ok(());
    }
    let text = format!("matrix instruction with lanes {exec:#010x} only");
    Err(env.warp_error(u, WarpError::IllegalParameter, text))
}

/// Where the metadata of a sparse matrix are: the register, and the number that says which lanes of each quad hold them. They
/// are kept in `imm`, above its other bits.
#[derive(Clone, Copy)]
struct Metadata {
    register: u8,
    selector: u32,
}

impl Metadata {
    const AT: u32 = 16;

    fn of(l: &mut Lower<'_>) -> u32 {
        // This register, too, is one that the code uses.
        l.reg(40, 1);
        (l.bits(40, 8) | l.bits(48, 2) << 8) << Self::AT
    }

    const fn from_imm(imm: u32) -> Self {
        Metadata { register: (imm >> Self::AT) as u8, selector: imm >> (Self::AT + 8) & 3 }
    }

    fn load(self, w: &Warp) -> Fragment {
        load::<1>(w, Src::reg(self.register), 1)[0]
    }
}

fn hmma_of(l: &Lower<'_>) -> Option<Hmma> {
    let shape = u32::from(l.bit(78)) << 1 | u32::from(l.bit(75));
    let make = if l.bit(73) { Hmma::sparse_from_bits } else { Hmma::from_bits };
    let mut h = make(shape, l.bits(82, 2), l.bit(76))?;
    h.neg_a = l.bit(72);
    h.neg_b = l.bit(63);
    Some(h)
}

/// HMMA whose shape, type of A and B, and type of C and D are in `FORM` as [`Hmma::from_bits`] takes them: two bits, two
/// bits, one bit.
struct Halves<const FORM: u32>;
impl<const FORM: u32> Whole for Halves<FORM> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if let Err(flow) = whole(env, u, exec) {
            return flow;
        }
        let Some(mut h) = Hmma::from_bits(FORM & 3, FORM >> 2 & 3, FORM & 16 != 0) else {
            return env.warp_error(u, WarpError::IllegalEncoding, "HMMA shape".to_owned());
        };
        (h.neg_a, h.neg_b) = (u.imm & 32 != 0, u.imm & 64 != 0);
        let nothing = w.pred(u.ps) == 0;
        #[cfg(target_arch = "x86_64")]
        if V::LANES > 1 {
            static ZERO: [Fragment; 4] = [[0; 32]; 4];
            let c = if nothing { ZERO.as_ptr().cast() } else { w.src(u.c) };
            // Registers that follow each other have different places.
            let places = [u.a.offset() / 128, u.b.offset() / 64];
            let operands = env.operands.get_or_insert_with(|| Box::new(crate::exec::converted::Converted::none()));
            // SAFETY: only AVX2 has several lanes. The micro-op was lowered with as many registers, and rows follow each other.
            if unsafe { hmma::run(h, [w.src(u.a), w.src(u.b), c], operands, places, w.dst(u.d)) } {
                return Flow::Next;
            }
        }
        exactly(w, u, h, nothing);
        Flow::Next
    }
}

/// Computes the result for any numbers.
#[cold]
fn exactly(w: &mut Warp, u: &Uop, h: Hmma, nothing: bool) {
    let [ra, rb, rc] = h.registers();
    let c = if nothing { [[0; 32]; 4] } else { load::<4>(w, u.c, rc) };
    let d = h.run(&load(w, u.a, ra), &load(w, u.b, rb), &c);
    store(w, u.d, &d[..rc]);
}

fn sparse_halves(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    if let Err(flow) = whole(env, u, exec) {
        return flow;
    }
    let (f, metadata) = (u.imm, Metadata::from_imm(u.imm));
    let Some(mut h) = Hmma::sparse_from_bits(f & 3, f >> 2 & 3, f & 16 != 0) else {
        return env.warp_error(u, WarpError::IllegalEncoding, "HMMA shape".to_owned());
    };
    (h.neg_a, h.neg_b) = (f & 32 != 0, f & 64 != 0);
    let [ra, rb, rc] = h.registers();
    let c = if w.pred(u.ps) == 0 { [[0; 32]; 4] } else { load::<4>(w, u.c, rc) };
    let (a, b) = (load::<4>(w, u.a, ra), load::<4>(w, u.b, 2 * rb));
    let d = h.run_sparse(&a, &b, &c, &metadata.load(w), metadata.selector as usize);
    store(w, u.d, &d[..rc]);
    Flow::Next
}

struct Transpose;
impl Whole for Transpose {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if let Err(flow) = whole(env, u, exec) {
            return flow;
        }
        let [fragment] = load::<1>(w, u.a, 1);
        store(w, u.d, &[transpose(&fragment)]);
        Flow::Next
    }
}

/// MOVM.16.MT88.
pub(crate) fn movm(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.bits(78, 2) != 0 {
        return Err(Refused("MOVM shape"));
    }
    let (d, a) = (l.dst(1), l.a());
    Ok(Uop { d, a, ..l.uop(alu::whole::<Transpose>()) })
}

/// The uniform predicate of HMMA and IMMA, which is stored as 7 - p. If it is false, C counts as zero.
fn addend(l: &Lower<'_>) -> Pred {
    Pred { index: pred::UNIFORM + (7 - l.bits(87, 3) as u8), invert: -(l.bit(90) as i8) }
}

pub(crate) fn hmma_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let h = hmma_of(l).ok_or(Refused("HMMA shape"))?;
    let [ra, rb, rc] = h.registers().map(|n| n as u8);
    let sparse = l.bit(73);
    let (d, a, b, c) = (l.dst(rc), l.reg(24, ra), l.reg(32, rb << u8::from(sparse)), l.reg(64, rc));
    let imm = u32::from(l.bit(78)) << 1
        | u32::from(l.bit(75))
        | l.bits(82, 2) << 2
        | u32::from(l.bit(76)) << 4
        | u32::from(h.neg_a) << 5
        | u32::from(h.neg_b) << 6;
    if sparse {
        let imm = imm | Metadata::of(l);
        return Ok(Uop { d, a, b, c, imm, ps: addend(l), ..l.uop(Handlers::all(sparse_halves)) });
    }
    let run = match imm & 31 {
        0b0_00_00 => alu::whole::<Halves<0b0_00_00>>(),
        0b0_00_01 => alu::whole::<Halves<0b0_00_01>>(),
        0b1_00_00 => alu::whole::<Halves<0b1_00_00>>(),
        0b1_00_01 => alu::whole::<Halves<0b1_00_01>>(),
        0b1_01_00 => alu::whole::<Halves<0b1_01_00>>(),
        0b1_01_01 => alu::whole::<Halves<0b1_01_01>>(),
        0b1_10_00 => alu::whole::<Halves<0b1_10_00>>(),
        0b1_10_10 => alu::whole::<Halves<0b1_10_10>>(),
        _ => return Err(Refused("HMMA shape")),
    };
    Ok(Uop { d, a, b, c, imm, ps: addend(l), ..l.uop(run) })
}

struct Integers;
impl Whole for Integers {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if let Err(flow) = whole(env, u, exec) {
            return flow;
        }
        let f = u.imm;
        let sparse = f & 256 != 0;
        let make = if sparse { Imma::sparse_from_bits } else { Imma::from_bits };
        let Some(mut i) = make(f & 7, f & 8 != 0, f & 16 != 0) else {
            return env.warp_error(u, WarpError::IllegalEncoding, "IMMA shape".to_owned());
        };
        (i.signed_a, i.signed_b, i.saturate) = (f & 32 != 0, f & 64 != 0, f & 128 != 0);
        let [ra, rb, rc] = i.registers();
        let c = if w.pred(u.ps) == 0 { [[0; 32]; 4] } else { load::<4>(w, u.c, rc) };
        let a = load::<4>(w, u.a, ra);
        let d = if sparse {
            let metadata = Metadata::from_imm(f);
            i.run_sparse(&a, &load::<4>(w, u.b, 2 * rb), &c, &metadata.load(w), metadata.selector as usize)
        } else {
            i.run(&a, &load::<2>(w, u.b, rb), &c)
        };
        store(w, u.d, &d[..rc]);
        Flow::Next
    }
}

pub(crate) fn imma_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let shape = u32::from(l.bit(86)) << 2 | u32::from(l.bit(85)) << 1 | u32::from(l.bit(75));
    let (na, nb) = (l.bit(83), l.bit(84));
    let sparse = l.bit(72);
    let make = if sparse { Imma::sparse_from_bits } else { Imma::from_bits };
    let shape_ok = make(shape, na, nb).filter(|_| !l.bit(73) && l.bit(74));
    let [ra, rb, rc] = shape_ok.ok_or(Refused("IMMA shape"))?.registers().map(|n| n as u8);
    let (d, a, b, c) = (l.dst(rc), l.reg(24, ra), l.reg(32, rb << u8::from(sparse)), l.reg(64, rc));
    let imm = shape
        | u32::from(na) << 3
        | u32::from(nb) << 4
        | u32::from(l.bit(76)) << 5
        | u32::from(l.bit(78)) << 6
        | u32::from(l.bit(82)) << 7
        | u32::from(sparse) << 8
        | if sparse { Metadata::of(l) } else { 0 };
    Ok(Uop { d, a, b, c, imm, ps: addend(l), ..l.uop(alu::whole::<Integers>()) })
}

fn bmma(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    if let Err(flow) = whole(env, u, exec) {
        return flow;
    }
    let Some(m) = Bmma::from_bits(u.imm & 3, u.imm & 4 != 0) else {
        return env.warp_error(u, WarpError::IllegalEncoding, "BMMA shape".to_owned());
    };
    let [ra, rb, rc] = m.registers();
    let c = if w.pred(u.ps) == 0 { [[0; 32]; 4] } else { load::<4>(w, u.c, rc) };
    let d = m.run(&load::<4>(w, u.a, ra), &load::<2>(w, u.b, rb), &c);
    store(w, u.d, &d[..rc]);
    Flow::Next
}

pub(crate) fn bmma_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (shape, and) = (l.bits(75, 2), l.bit(78));
    let [ra, rb, rc] = Bmma::from_bits(shape, and).ok_or(Refused("BMMA shape"))?.registers().map(|n| n as u8);
    let (d, a, b, c) = (l.dst(rc), l.reg(24, ra), l.reg(32, rb), l.reg(64, rc));
    Ok(Uop { d, a, b, c, imm: shape | u32::from(and) << 2, ps: addend(l), ..l.uop(Handlers::all(bmma)) })
}

struct Doubles;
impl Whole for Doubles {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if let Err(flow) = whole(env, u, exec) {
            return flow;
        }
        let (a, b, c) = (load::<2>(w, u.a, 2), load::<2>(w, u.b, 2), load::<4>(w, u.c, 4));
        let d = dmma(&a, &b, &c, Round::from_bits(u.imm));
        store(w, u.d, &d);
        Flow::Next
    }
}

pub(crate) fn dmma_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.bits(72, 4) != 0 || l.bits(62, 2) != 0 || l.bits(87, 4) != 0 {
        return Err(Refused("DMMA with signs or a predicate"));
    }
    let (d, a, b, c) = (l.dst(4), l.reg(24, 2), l.reg(32, 2), l.reg(64, 4));
    Ok(Uop { d, a, b, c, imm: l.bits(78, 2), ..l.uop(alu::whole::<Doubles>()) })
}
