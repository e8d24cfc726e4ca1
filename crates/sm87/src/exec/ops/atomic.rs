//! ATOMG, ATOM, RED and ATOMS, their forms that compare and swap, and ARRIVES.
#![allow(unsafe_code)]

use super::memory::{
    PAIR, Spaces, Target, addresses, generic_target, global_address, global_target, misaligned, out_of_range,
};
use crate::exec::alu::{self, Whole};
use crate::exec::env::{Env, WarpError};
use crate::exec::lower::{Lower, Refused};
use crate::exec::rows::{Dst, Src, pred};
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};
use crate::isa::memory::is_wide;
use sm87_num::atomic::{Atomic, Op, Type, arrive, compare_and_swap};
use sm87_simd::Simd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The bits of `aux`: the fields of operation and type, and then the flags below.
const TYPE: u32 = 4;
const CAS: u16 = 1 << 8;
const GENERIC: u16 = 1 << 9;
/// The flag of ATOMS.CAS.CAST, whose result says whether the swap happened.
const CAST: u16 = 1 << 10;
const SHARED: u16 = 1 << 11;
/// The flag of an arrival at a barrier in shared memory.
const ARRIVE: u16 = 1 << 12;
/// The flag of operations that shared memory does not have. At a generic address the predicate destination says whether
/// the operation was done.
const GLOBAL_ONLY: u16 = 1 << 13;
/// The shift of the register of a shared address, in `mods`.
const SCALE: u32 = 4;

/// The change that an atomic makes to memory.
#[derive(Clone, Copy)]
enum Change {
    Apply(Atomic, u64),
    Swap { compare: u64, with: u64 },
    Arrive,
}

impl Change {
    fn of(self, old: u64) -> u64 {
        match self {
            Change::Apply(atomic, operand) => atomic.apply(old, operand),
            Change::Swap { compare, with } => compare_and_swap(old, compare, with),
            Change::Arrive => arrive(old),
        }
    }
}

/// Changes `len` bytes (4 or 8) at `p` indivisibly to what `how` makes of them. If somebody else changes them meanwhile, `how` is asked again.
/// Returns what was there before.
///
/// # Safety
/// `p` is aligned to `len` and valid for reads and writes of `len` bytes.
unsafe fn change(p: *mut u8, len: u32, mut how: impl FnMut(u64) -> u64) -> u64 {
    let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
    if len == 8 {
        // SAFETY: `atomic` has looked `p` up for `len` writable bytes and has refused misaligned addresses. All who
        // share this memory use raw pointers.
        let cell = unsafe { AtomicU64::from_ptr(p.cast()) };
        cell.fetch_update(set, get, |old| Some(how(old))).unwrap_or(0)
    } else {
        // SAFETY: the same holds for four bytes.
        let cell = unsafe { AtomicU32::from_ptr(p.cast()) };
        cell.fetch_update(set, get, |old| Some(how(old.into()) as u32)).unwrap_or(0).into()
    }
}

/// The same for memory that no other thread uses.
///
/// # Safety
/// As for [`change`], and only this thread uses the bytes.
unsafe fn change_own(p: *mut u8, len: u32, how: Change) -> u64 {
    // SAFETY: whoever calls says so.
    unsafe {
        if len == 8 {
            let old = p.cast::<u64>().read();
            p.cast::<u64>().write(how.of(old));
            old
        } else {
            let old = p.cast::<u32>().read();
            p.cast::<u32>().write(how.of(old.into()) as u32);
            old.into()
        }
    }
}

fn operation(u: &Uop) -> Option<Atomic> {
    Atomic::from_bits(u32::from(u.aux) & 15, u32::from(u.aux) >> TYPE & 7)
}

/// The memory spaces that have the operation at generic addresses.
fn spaces(u: &Uop) -> Spaces {
    match u.aux & (GLOBAL_ONLY | ARRIVE) {
        0 => Spaces::Both,
        GLOBAL_ONLY => Spaces::Global,
        _ => Spaces::Shared,
    }
}

fn atomic(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let wide = is_wide(u32::from(u.aux) >> TYPE & 7);
    let len = if wide { 8 } else { 4 };
    let value = |w: &Warp, s, lane| if wide { w.get64(s, lane) } else { w.get(s, lane).into() };
    let shared = u.aux & SHARED != 0;
    let cas = u.aux & CAS != 0;
    // In a compare-and-swap the operand C is the new value. In other operations it is a uniform offset.
    let offset = if cas { 0 } else { w.get64(u.c, 0) };
    let va = if shared { [0; 32] } else { addresses(w, u, offset) };
    let operation = operation(u);
    if let Some(how) = operation.filter(|_| !shared && !cas && u.aux & ARRIVE == 0)
        && let Some(at) = one_place(&va, exec).filter(|at| at % u64::from(len) == 0)
        && let Target::Memory(p) = if u.aux & GENERIC != 0 {
            generic_target(env, u, at, len, spaces(u))
        } else {
            global_target(env, u, at, len)
        }
    {
        // SAFETY: the target is `len` writable bytes, and the address is aligned.
        unsafe { all_at_once(w, u, exec, p, how) };
        w.set_pred(u.pd, exec, exec);
        return Flow::Next;
    }
    let mut done = 0;
    for lane in lanes(exec) {
        let how = match operation {
            _ if u.aux & ARRIVE != 0 => Change::Arrive,
            _ if cas => Change::Swap { compare: value(w, u.b, lane), with: value(w, u.c, lane) },
            Some(a) => Change::Apply(a, value(w, u.b, lane)),
            None => return Flow::Next,
        };
        let at = if shared {
            u64::from((w.get(u.a, lane) << (u.mods >> SCALE & 7)).wrapping_add(u.imm).wrapping_add(offset as u32))
        } else {
            va[lane as usize]
        };
        if at % u64::from(len) != 0 {
            return misaligned(env, u, "atomic", at, len);
        }
        let target = if shared {
            match env.memory.shared.get(at as u32, len) {
                Some(p) => Target::Memory(p),
                None => {
                    let size = env.memory.shared.bytes();
                    return out_of_range(env, u, "atomic on shared memory", at as u32, size);
                }
            }
        } else if u.aux & GENERIC != 0 {
            generic_target(env, u, at, len, spaces(u))
        } else {
            global_target(env, u, at, len)
        };
        let old = match target {
            // SAFETY: the target is `len` writable bytes, and the address is aligned. Only the thread that executes a CTA uses its
            // shared memory.
            Target::Memory(p) if shared => unsafe { change_own(p, len, how) },
            // SAFETY: as above, but other threads may use the target.
            Target::Memory(p) => unsafe { change(p, len, |old| how.of(old)) },
            Target::Nothing => 0,
            // The operation is not done, and the predicate tells the program so. Without a predicate the change would
            // be lost.
            Target::Elsewhere(_) if u.pd != pred::SINK => continue,
            Target::Elsewhere(space) => {
                let text = format!("atomic at {at:#x}, which is {space} memory and has no such operation");
                return env.warp_error(u, WarpError::AddressSpace, text);
            }
            Target::Failed(flow) => return flow,
        };
        done |= 1 << lane;
        let result = match how {
            Change::Swap { compare, .. } if u.aux & CAST != 0 => u64::from(old == compare),
            _ => old,
        };
        if wide { w.put64(u.d, lane, result) } else { w.put(u.d, lane, result as u32) }
    }
    w.set_pred(u.pd, exec, done);
    Flow::Next
}

/// The address of several lanes, if it is the same for all of them.
fn one_place(va: &[u64; 32], on: u32) -> Option<u64> {
    let first = va[on.trailing_zeros() as usize & 31];
    let mut others = lanes(on & on.wrapping_sub(1)).peekable();
    (others.peek().is_some() && others.all(|lane| va[lane as usize] == first)).then_some(first)
}

/// Sums of words in shared memory, by some lanes or by all 32 if it is `FULL`.
struct AddShared<const FULL: bool>;
impl<const FULL: bool> Whole for AddShared<FULL> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let exec = if FULL { u32::MAX } else { exec };
        let (row, scale, offset) = (w.src(u.a), V::splat(u.mods >> SCALE & 7), u.imm.wrapping_add(w.get(u.c, 0)));
        let (mut at, mut most, mut bits, mut i) = ([0u32; 32], V::splat(0), V::splat(0), 0);
        while i < 32 {
            // SAFETY: rows and the array have 32 words.
            unsafe {
                let x = V::load(row.add(i)).shl(scale).add(V::splat(offset)).and(V::from_bits(exec >> i));
                x.store(at.as_mut_ptr().add(i));
                (most, bits) = (most.maxu(x), bits.or(x));
            }
            i += V::LANES;
        }
        let (last, aligned) = (most.most(), !bits.and(V::splat(3)).any());
        let Some(base) = env.memory.shared.get(last, 4).filter(|_| aligned).map(|p| p.wrapping_sub(last as usize))
        else {
            // It says what is wrong with which lane.
            return atomic(w, env, u, exec);
        };
        for lane in (0..32).filter(|lane| exec >> lane & 1 != 0) {
            let p = base.wrapping_add(at[lane as usize & 31] as usize).cast::<u32>();
            // SAFETY: the place is aligned and not behind the last one, which `get` has found. Only the thread that executes a CTA uses its
            // shared memory.
            let old = unsafe {
                let old = p.read();
                p.write(old.wrapping_add(w.get(u.b, lane)));
                old
            };
            w.put(u.d, lane, old);
        }
        Flow::Next
    }
}

/// A change that all lanes make to one place of global memory is one access: each lane sees what the lanes before it have left, as if
/// they had come one after another and nobody between them.
///
/// # Safety
/// As for [`change`], with the bytes of the operation.
unsafe fn all_at_once(w: &mut Warp, u: &Uop, exec: u32, p: *mut u8, how: Atomic) {
    let is_wide = how.bytes() == 8;
    let mut seen = [0; 32];
    let all = |first: u64| {
        lanes(exec).fold(first, |old, lane| {
            seen[lane as usize] = old;
            how.apply(old, if is_wide { w.get64(u.b, lane) } else { w.get(u.b, lane).into() })
        })
    };
    // SAFETY: the conditions are those of this function.
    unsafe { change(p, how.bytes(), all) };
    for lane in lanes(exec) {
        let old = seen[lane as usize];
        if is_wide { w.put64(u.d, lane, old) } else { w.put(u.d, lane, old as u32) }
    }
}

fn checked(op: u32, ty: u32, cas: bool) -> Result<u16, Refused> {
    if cas {
        return if matches!(ty, 0 | 2) { Ok((ty << TYPE) as u16 | CAS) } else { Err(Refused("CAS type")) };
    }
    Atomic::from_bits(op, ty).ok_or(Refused("atomic operation on this type"))?;
    Ok((op | ty << TYPE) as u16)
}

/// What an atomic on a 64-bit address returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returns {
    /// ATOM and ATOMG return what was there before.
    Old,
    /// A compare-and-swap returns what was there before.
    Compared,
    /// RED returns nothing.
    Nothing,
}

/// ATOM, whose address may lie in any space (docs/hardware/sm87-memory.md#atomic-predicate).
pub(crate) fn generic(l: &mut Lower<'_>, returns: Returns) -> Result<Uop, Refused> {
    let u = global(l, returns)?;
    let everywhere = returns == Returns::Compared || operation(&u).is_some_and(in_shared);
    Ok(Uop { aux: u.aux | GENERIC | if everywhere { 0 } else { GLOBAL_ONLY }, ..u })
}

/// Whether shared memory has the operation.
fn in_shared(atomic: Atomic) -> bool {
    matches!((atomic.op(), atomic.ty()), (_, Type::U32 | Type::S32) | (Op::Exch, Type::U64))
}

/// ATOMG and RED.
pub(crate) fn global(l: &mut Lower<'_>, returns: Returns) -> Result<Uop, Refused> {
    let (cas, red) = (returns == Returns::Compared, returns == Returns::Nothing);
    let ty = l.bits(73, 3);
    let op = l.bits(87, if red { 3 } else { 4 });
    let aux = checked(op, ty, cas)?;
    let count = if is_wide(ty) { 2 } else { 1 };
    let offset = (l.bit(91) && !cas && !l.bit(71)).then_some(64);
    // RED has the bit in the same place as loads and stores. The others have their operation there.
    let pair = if red && l.bit(91) { 90 } else { 72 };
    let (a, c, mods) = global_address(l, pair, offset);
    let b = l.reg(32, count);
    let imm = l.word.signed(40, 24) as u32;
    let mut u = Uop { a, b, c, imm, mods, aux, ..l.uop(Handlers::all(atomic)) };
    if cas {
        u.c = l.reg(64, count);
    }
    if !red {
        u.d = l.dst(count);
        u.pd = l.pdst(81);
    }
    u.registers = l.uop(u.run).registers;
    Ok(u)
}

/// The handlers of an atomic with these fields and flags.
fn handlers(aux: u16) -> Handlers {
    // The bit says whether the word is signed.
    if aux & !(1 << TYPE) != SHARED {
        return Handlers::all(atomic);
    }
    alu::whole_or_part::<AddShared<true>, AddShared<false>>()
}

/// ATOMS, or ATOMS.CAS if `cas` is true.
pub(crate) fn shared(l: &mut Lower<'_>, cas: bool) -> Result<Uop, Refused> {
    let ty = l.bits(73, 2);
    let mut aux = checked(l.bits(87, 4), ty, cas)? | SHARED;
    if cas && l.bit(87) {
        aux |= CAST;
    }
    let count = if is_wide(ty) { 2 } else { 1 };
    let scale = [0, 2, 3, 4][l.bits(78, 2) as usize];
    let (a, b) = (l.a(), l.reg(32, count));
    let imm = l.word.signed(40, 24) as u32;
    let mut u = Uop { a, b, imm, mods: scale << SCALE, aux, ..l.uop(handlers(aux)) };
    u.c = match (cas, l.bit(91)) {
        (true, _) => l.reg(64, count),
        (false, true) => l.ureg(64),
        (false, false) => Src::reg(255),
    };
    u.d = l.dst(count);
    u.registers = l.uop(u.run).registers;
    Ok(u)
}

/// ATOMS.POPC.INC and ATOMS.ARRIVE (docs/hardware/sm87-memory.md#atoms-popc-inc). Each lane counts as one.
pub(crate) fn count(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let scale = [0, 2, 3, 4][l.bits(78, 2) as usize];
    let aux = counted(l)? | SHARED;
    counter(l, aux, scale << SCALE)
}

/// ATOM.POPC.INC and ATOM.ARRIVE do the same at generic addresses.
pub(crate) fn count_anywhere(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let aux = counted(l)? | GENERIC;
    counter(l, aux, PAIR)
}

/// Tells whether each lane arrives at a barrier or adds one to a counter.
fn counted(l: &Lower<'_>) -> Result<u16, Refused> {
    match (l.bits(87, 4), l.bits(73, 2)) {
        (9, 2) => Ok(ARRIVE | 2 << TYPE),
        (10, 0) => Ok(0),
        _ => Err(Refused("an atomic that counts this type")),
    }
}

/// ARRIVES.LDGSTSBAR: the thread arrives when its copies are complete, which they always are
/// (docs/hardware/sm87-memory.md#mbarrier-meaning).
pub(crate) fn arrives(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let u = counter(l, SHARED | ARRIVE | 2 << TYPE, 0)?;
    Ok(Uop { d: Dst::SINK, pd: pred::SINK, ..u })
}

fn counter(l: &mut Lower<'_>, aux: u16, mods: u32) -> Result<Uop, Refused> {
    let count = if aux & ARRIVE != 0 { 2 } else { 1 };
    let a = l.reg(24, if mods & PAIR != 0 { 2 } else { 1 });
    let (b, c, d) = (l.literal(1), l.ureg(64), l.dst(count));
    let pd = if aux & GENERIC != 0 { l.pdst(81) } else { pred::SINK };
    let imm = l.word.signed(40, 24) as u32;
    Ok(Uop { d, a, b, c, imm, mods, pd, aux, ..l.uop(handlers(aux)) })
}
