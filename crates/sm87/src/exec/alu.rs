//! Drivers make the handlers of an instruction from an operation that is written for lanes.
#![allow(unsafe_code)]

use super::env::Env;
use super::host::wide;
use super::lower::{Lower, Refused};
use super::record::{Operation, Recorded, Recorder, named};
use super::uop::{Flow, Handlers, UNIFORM, Uop};
use super::warp::Warp;
use sm87_simd::{Simd, in_values, load_part, part, put};

/// A function of up to three 32-bit sources (and a predicate) with one 32-bit result.
pub(crate) trait Alu {
    /// The number of sources that the operation reads.
    const SOURCES: usize = 3;

    /// Computes the result. Bit `i` of `p` is the predicate source of lane `i`.
    fn eval<V: Simd>(u: &Uop, a: V, b: V, c: V, p: u32) -> V;
}

/// A comparison.
pub(crate) trait Compare {
    /// The result is three masks: the lanes that are less, those that are equal, and those that are unordered.
    fn eval<V: Simd>(u: &Uop, a: V, b: V) -> (V, V, V);
}

/// A condition of two sources that is one comparison.
pub(crate) trait Condition {
    /// A mask of the lanes in which it is true.
    fn eval<V: Simd>(a: V, b: V) -> V;
}

/// An operation that is written for one lane at a time, because it uses pairs of registers or has several results.
pub(crate) trait Each {
    /// Executes the operation for `lane`.
    fn each(w: &mut Warp, u: &Uop, lane: u32);
}

/// An operation on the warp as a whole, written so that the compiler vectorises its loops.
pub(crate) trait Whole {
    /// Executes the operation for the lanes in `exec`. Where it computes, it handles `V::LANES` lanes at a time.
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow;
}

/// The lanes that an operation works on. A uniform register or predicate holds its value in every lane, so that a
/// uniform operation is a vector operation on all lanes.
#[inline(always)]
pub(crate) fn scope(u: &Uop, exec: u32) -> u32 {
    if u.aux & UNIFORM != 0 { u32::MAX } else { exec }
}

/// # Safety
/// The conditions are those of [`super::uop::Handler`].
#[inline(always)]
pub(super) unsafe fn rows<V: Simd, O: Alu, const FULL: bool>(w: &mut Warp, u: &Uop, exec: u32) -> Flow {
    let (a, b, c, d) = (w.src(u.a), w.src(u.b), w.src(u.c), w.dst(u.d));
    let p = w.pred(u.ps);
    let whole = FULL || in_values::<V>(exec);
    let mut i = 0;
    while i < 32 {
        let on = if FULL { V::ALL } else { part::<V>(exec, i) };
        if !whole || on != 0 {
            // SAFETY: rows have 32 words.
            unsafe {
                let x = load_part::<V>(a.add(i), on, whole);
                let y = if O::SOURCES > 1 { load_part(b.add(i), on, whole) } else { x };
                let z = if O::SOURCES > 2 { load_part(c.add(i), on, whole) } else { x };
                let r = O::eval(u, x, y, z, p >> i);
                let r = if whole { r } else { V::from_bits(on).select(r, V::load(d.add(i))) };
                r.store(d.add(i));
            }
        }
        i += V::LANES;
    }
    Flow::Next
}

#[inline(always)]
fn lane<O: Alu>(w: &mut Warp, u: &Uop, exec: u32) -> Flow {
    let at = exec.trailing_zeros();
    let a = w.get(u.a, at);
    let b = if O::SOURCES > 1 { w.get(u.b, at) } else { a };
    let c = if O::SOURCES > 2 { w.get(u.c, at) } else { a };
    let r = O::eval(u, a, b, c, w.pred(u.ps) >> at);
    w.put(u.d, at, r);
    Flow::Next
}

#[inline(always)]
fn uniform<O: Alu>(w: &mut Warp, u: &Uop) -> Flow {
    let (a, b, c) = (w.get(u.a, 0), w.get(u.b, 0), w.get(u.c, 0));
    let r = O::eval(u, a, b, c, w.pred(u.ps));
    w.broadcast(u.d, r);
    Flow::Next
}

/// What makes masks of two sources. A closure might become a function of its own, which the host's vectors would be handed to in memory.
trait Masks<const N: usize> {
    fn eval<V: Simd>(u: &Uop, a: V, b: V) -> [V; N];
}

struct Three<O>(O);
impl<O: Compare> Masks<3> for Three<O> {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V) -> [V; 3] {
        O::eval(u, a, b).into()
    }
}

struct One<O>(O);
impl<O: Condition> Masks<1> for One<O> {
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, b: V) -> [V; 1] {
        [O::eval(a, b)]
    }
}

/// The lanes of the masks of two sources, for values in which a lane of `exec` is.
///
/// # Safety
/// See [`super::uop::Handler`].
#[inline(always)]
unsafe fn masks<V: Simd, M: Masks<N>, const N: usize, const FULL: bool>(w: &Warp, u: &Uop, exec: u32) -> [u32; N] {
    let (a, b) = (w.src(u.a), w.src(u.b));
    let whole = in_values::<V>(exec);
    let mut found = [0; N];
    let mut i = 0;
    while i < 32 {
        if FULL || !whole || part::<V>(exec, i) != 0 {
            // SAFETY: rows have 32 words.
            let made = unsafe { M::eval(u, V::load(a.add(i)), V::load(b.add(i))) };
            for (found, mask) in found.iter_mut().zip(made) {
                *found |= mask.to_bits() << i;
            }
        }
        i += V::LANES;
    }
    found
}

/// The lanes that are less, those that are equal, and those that are unordered, for values in which a lane of `exec` is.
#[inline(always)]
unsafe fn relation<V: Simd, O: Compare, const FULL: bool>(w: &Warp, u: &Uop, exec: u32) -> [u32; 3] {
    // SAFETY: the conditions are those of this function.
    unsafe { masks::<V, Three<O>, 3, FULL>(w, u, exec) }
}

#[inline(always)]
fn relation_at<O: Compare>(w: &Warp, u: &Uop, at: u32) -> [u32; 3] {
    <[u32; 3]>::from(O::eval(u, w.get(u.a, at), w.get(u.b, at))).map(|mask| mask & 1 << at)
}

/// The bits of `mods` that all comparisons use. The lowest four are the compare code: less, equal, greater, unordered.
pub(crate) mod cmp {
    /// How the result is combined with the predicate source: see [`combined`](super::combined).
    pub(crate) const COMBINE: u32 = 4;
    /// ISETP.EX compares high words: lanes in which these are equal take the result of the low words, which is the
    /// second predicate source.
    pub(crate) const EXTENDED: u32 = 1 << 6;
}

/// The lanes that a compare code accepts, of which the lowest four bits count. `relation` has the lanes that are less, equal and unordered.
/// `equal` says instead of the code which of the equal lanes are accepted. Masks are vectors, or words with a bit for each lane.
#[inline(always)]
pub(crate) fn accepted<V: Simd>(code: u32, relation: [V; 3], equal: Option<V>) -> V {
    let on = |bit: u32| V::splat((code >> bit & 1).wrapping_neg());
    // Lanes that are none of the three are greater. If these are accepted, the result is what the others do not exclude.
    let greater = on(2);
    let [less, same, unordered] = relation;
    let of = |lanes: V, accepted: V| lanes.and(accepted.xor(greater));
    of(less, on(0)).or(of(same, equal.unwrap_or(on(1)))).or(of(unordered, on(3))).xor(greater)
}

/// Combines the result of a comparison with the predicate source: 0 is and, 1 is or, 2 is xor.
#[inline(always)]
pub(crate) fn combined<V: Simd>(how: u32, x: V, p: V) -> V {
    match how & 3 {
        0 => x.and(p),
        1 => x.or(p),
        _ => x.xor(p),
    }
}

/// The lanes that the compare code of a micro-op accepts.
#[inline(always)]
fn accepted_by(w: &Warp, u: &Uop, relation: [u32; 3]) -> u32 {
    accepted(u.mods, relation, (u.mods & cmp::EXTENDED != 0).then(|| w.pred(u.pt)))
}

#[inline(always)]
fn set_predicates(w: &mut Warp, u: &Uop, exec: u32, relation: [u32; 3]) -> Flow {
    set_combined(w, u, exec, accepted_by(w, u, relation))
}

#[inline(always)]
fn set_combined(w: &mut Warp, u: &Uop, exec: u32, hit: u32) -> Flow {
    let (p, how) = (w.pred(u.ps), u.mods >> cmp::COMBINE);
    w.set_pred(u.pd, exec, combined(how, hit, p));
    w.set_pred(u.pe, exec, combined(how, !hit, p));
    Flow::Next
}

/// Makes the two handler functions of a driver: one for any host and one for AVX2.
macro_rules! handlers {
    ($plain:ident $wide:ident <$bound:ident $(, $flag:ident)?> |$w:ident, $u:ident, $exec:ident, $v:ident| $body:expr) => {
        unsafe fn $plain<O: $bound $(, const $flag: bool)?>($w: &mut Warp, _: &mut Env<'_>, $u: &Uop, $exec: u32) -> Flow {
            type $v = u32;
            $body
        }
        wide! {
            unsafe fn $wide<O: $bound $(, const $flag: bool)?>($w: &mut Warp, _: &mut Env<'_>, $u: &Uop, $exec: u32) -> Flow {
                type $v = sm87_simd::avx2::Avx2;
                $body
            }
        }
    };
}

handlers!(rows_plain rows_wide <Alu, FULL> |w, u, exec, V| {
    // SAFETY: the interpreter calls handlers with the warp whose arrays the micro-op was lowered for: its operands are rows.
    unsafe { rows::<V, O, FULL>(w, u, exec) }
});
handlers!(lane_plain lane_wide <Alu> |w, u, exec, _V| lane::<O>(w, u, exec));
handlers!(uniform_plain uniform_wide <Alu> |w, u, _exec, _V| uniform::<O>(w, u));
handlers!(setp_plain setp_wide <Compare, FULL> |w, u, exec, V| {
    // SAFETY: the interpreter calls handlers with the warp whose arrays the micro-op was lowered for: its operands are rows.
    let r = unsafe { relation::<V, O, FULL>(w, u, exec) };
    set_predicates(w, u, exec, r)
});
handlers!(setp_lane_plain setp_lane_wide <Compare> |w, u, exec, _V| {
    let r = relation_at::<O>(w, u, exec.trailing_zeros());
    set_predicates(w, u, exec, r)
});
handlers!(setp_uniform_plain setp_uniform_wide <Compare> |w, u, _exec, _V| {
    let relation = O::eval(u, w.get(u.a, 0), w.get(u.b, 0)).into();
    set_predicates(w, u, u32::MAX, relation)
});
handlers!(condition_plain condition_wide <Condition, FULL> |w, u, exec, V| {
    // SAFETY: the interpreter calls handlers with the warp whose arrays the micro-op was lowered for: its operands are rows.
    let [hit] = unsafe { masks::<V, One<O>, 1, FULL>(w, u, exec) };
    set_combined(w, u, exec, hit ^ u.imm)
});
handlers!(condition_lane_plain condition_lane_wide <Condition> |w, u, exec, _V| {
    let lane = exec.trailing_zeros();
    set_combined(w, u, exec, O::eval(w.get(u.a, lane), w.get(u.b, lane)) ^ u.imm)
});
handlers!(set_plain set_wide <Compare> |w, u, exec, V| {
    // SAFETY: the interpreter calls handlers with the warp whose arrays the micro-op was lowered for: its operands are rows.
    let r = unsafe { relation::<V, O, false>(w, u, exec) };
    let hit = combined(u.mods >> cmp::COMBINE, accepted_by(w, u, r), w.pred(u.ps));
    let (d, value) = (w.dst(u.d), V::splat(u.imm));
    let mut i = 0;
    while i < 32 {
        // SAFETY: rows have 32 words.
        unsafe {
            let r = V::from_bits(hit >> i).and(value);
            put(d, i, exec, r);
        }
        i += V::LANES;
    }
    Flow::Next
});

handlers!(each_plain each_wide <Each> |w, u, exec, _V| {
    for lane in super::warp::lanes(scope(u, exec)) {
        O::each(w, u, lane);
    }
    Flow::Next
});

/// Executes an operation as a function of its own, which does not become a part of the one that calls it.
#[inline(always)]
pub(crate) fn apart<V: Simd, O: Whole>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    #[cfg(target_arch = "x86_64")]
    if V::LANES > 1 {
        // SAFETY: values of several lanes are made only in handlers that are chosen where the host has AVX2.
        return unsafe { whole_wide::<O>(w, env, u, exec) };
    }
    // SAFETY: this function needs nothing of the host.
    unsafe { whole_plain::<O>(w, env, u, exec) }
}

#[inline(never)]
unsafe fn whole_plain<O: Whole>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    O::run::<u32>(w, env, u, exec)
}

wide! {
    #[inline(never)]
    unsafe fn whole_wide<O: Whole>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        O::run::<sm87_simd::avx2::Avx2>(w, env, u, exec)
    }
}

/// Chooses between the two functions by what this host can do.
macro_rules! pick {
    ($plain:expr, $wide:expr) => {{
        #[cfg(target_arch = "x86_64")]
        let h: crate::exec::uop::Handler = if crate::exec::host::avx2() { $wide } else { $plain };
        #[cfg(not(target_arch = "x86_64"))]
        let h: crate::exec::uop::Handler = $plain;
        h
    }};
}
pub(crate) use pick;

/// Records an operation of up to three sources with one result.
pub(crate) fn record<O: Alu>(u: &Uop, r: &mut Recorder<'_>) {
    let a = r.source(u.a);
    let b = if O::SOURCES > 1 { r.source(u.b) } else { a };
    let c = if O::SOURCES > 2 { r.source(u.c) } else { a };
    let value = O::eval(u, a, b, c, named(u.ps));
    r.set_row(u.d, value);
}

/// Records which lanes the compare code accepts.
fn record_accepted<O: Compare>(u: &Uop, r: &Recorder<'_>) -> Recorded {
    let relation = O::eval(u, r.source(u.a), r.source(u.b)).into();
    accepted(u.mods, relation, (u.mods & cmp::EXTENDED != 0).then(|| r.lanes(u.pt)))
}

/// Records what [`set_combined`] does.
fn record_predicates(u: &Uop, r: &Recorder<'_>, hit: Recorded) {
    let (p, how) = (r.lanes(u.ps), u.mods >> cmp::COMBINE);
    r.set_lanes(u.pd, combined(how, hit, p));
    r.set_lanes(u.pe, combined(how, hit.not(), p));
}

fn record_comparison<O: Compare>(u: &Uop, r: &mut Recorder<'_>) {
    let hit = record_accepted::<O>(u, r);
    record_predicates(u, r, hit);
}

fn record_condition<O: Condition>(u: &Uop, r: &mut Recorder<'_>) {
    let hit = O::eval(r.source(u.a), r.source(u.b)).xor(Recorded::splat(u.imm));
    record_predicates(u, r, hit);
}

fn record_set<O: Compare>(u: &Uop, r: &mut Recorder<'_>) {
    let hit = combined(u.mods >> cmp::COMBINE, record_accepted::<O>(u, r), r.lanes(u.ps));
    r.set_row(u.d, hit.and(Recorded::splat(u.imm)));
}

/// Handlers of a vector operation.
pub(crate) fn alu<O: Alu>() -> Operation {
    let run = Handlers {
        full: pick!(rows_plain::<O, true>, rows_wide::<O, true>),
        part: pick!(rows_plain::<O, false>, rows_wide::<O, false>),
        one: pick!(lane_plain::<O>, lane_wide::<O>),
    };
    Operation { run, record: Some(record::<O>) }
}

/// Handlers of the same operation on the uniform datapath, which is executed once per warp.
pub(crate) fn ualu<O: Alu>() -> Operation {
    let run = Handlers::all(pick!(uniform_plain::<O>, uniform_wide::<O>));
    Operation { run, record: Some(record::<O>) }
}

/// Handlers of a comparison that sets two predicates.
pub(crate) fn setp<O: Compare>() -> Operation {
    let run = Handlers {
        full: pick!(setp_plain::<O, true>, setp_wide::<O, true>),
        part: pick!(setp_plain::<O, false>, setp_wide::<O, false>),
        one: pick!(setp_lane_plain::<O>, setp_lane_wide::<O>),
    };
    Operation { run, record: Some(record_comparison::<O>) }
}

/// Handlers of a condition that sets two predicates. `imm` is all ones if the opposite of the condition is meant.
pub(crate) fn condition<O: Condition>() -> Operation {
    let run = Handlers {
        full: pick!(condition_plain::<O, true>, condition_wide::<O, true>),
        part: pick!(condition_plain::<O, false>, condition_wide::<O, false>),
        one: pick!(condition_lane_plain::<O>, condition_lane_wide::<O>),
    };
    Operation { run, record: Some(record_condition::<O>) }
}

/// Two predicates by one of [`condition`]'s handlers, with the sources exchanged or the opposite of the condition.
pub(crate) fn conditional(l: &mut Lower<'_>, run: Operation, exchanged: bool, opposite: bool) -> Result<Uop, Refused> {
    let (pd, pe, mods) = (l.pdst(81), l.pdst(84), l.bits(74, 2) << cmp::COMBINE);
    let imm = if opposite { u32::MAX } else { 0 };
    let u = l.ab(run)?;
    let (a, b) = if exchanged { (u.b, u.a) } else { (u.a, u.b) };
    Ok(Uop { a, b, mods, imm, pd, pe, ..u })
}

/// Handlers of a comparison of two uniform registers.
pub(crate) fn usetp<O: Compare>() -> Operation {
    let run = Handlers::all(pick!(setp_uniform_plain::<O>, setp_uniform_wide::<O>));
    Operation { run, record: Some(record_comparison::<O>) }
}

/// Handlers of a comparison whose result is a value: `imm` where the comparison is true.
pub(crate) fn set<O: Compare>() -> Operation {
    let run = Handlers::all(pick!(set_plain::<O>, set_wide::<O>));
    Operation { run, record: Some(record_set::<O>) }
}

/// Handlers of an operation that is written for one lane.
pub(crate) fn each<O: Each>() -> Operation {
    Handlers::all(pick!(each_plain::<O>, each_wide::<O>)).into()
}

/// Handlers of an operation that is written for the whole warp.
pub(crate) fn whole<O: Whole>() -> Handlers {
    Handlers::all(pick!(whole_plain::<O>, whole_wide::<O>))
}

/// Handlers of an operation that is written for the whole warp, one for all 32 lanes and one for some of them.
pub(crate) fn whole_or_part<W: Whole, P: Whole>() -> Handlers {
    Handlers { full: whole::<W>().full, ..whole::<P>() }
}
