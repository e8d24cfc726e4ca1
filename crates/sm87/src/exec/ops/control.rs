//! Instructions that move lanes: branches, calls, moves of convergence barriers, WARPSYNC and EXIT.

use super::special;
use crate::exec::alu::{self, Whole};
use crate::exec::clock;
use crate::exec::env::{Env, WarpError};
use crate::exec::groups::Wait;
use crate::exec::live::Rows;
use crate::exec::lower::{Lower, Refused};
use crate::exec::places::NOWHERE;
use crate::exec::rows::{Dst, Pred, Src, pred};
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};
use crate::isa::{Op, Row};
use sm87_simd::Simd;
use std::sync::atomic::{Ordering, fence};

/// Moves the lanes `taken` to `target`, and the others to the next instruction.
#[inline(always)]
fn branch(w: &mut Warp, u: &Uop, taken: u32, target: u32) -> Flow {
    let rest = w.active & !taken;
    if taken == 0 {
        return Flow::Next;
    }
    w.pc = target;
    if rest != 0 {
        w.active = taken;
        w.park(rest, u.at + 1, Wait::Turn);
        w.active = taken;
    }
    Flow::Jump
}

/// Asks for the code at the target of a branch, which is not in the image.
#[cold]
fn leave(env: &mut Env<'_>, u: &Uop) -> Flow {
    env.outcome.extend = env.image.sends_to(u.at).map_or(0, |place| env.address(place));
    Flow::Extend
}

fn bra(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let taken = exec & w.pred(u.ps);
    if u.imm == NOWHERE && taken != 0 {
        return leave(env, u);
    }
    branch(w, u, taken, u.imm)
}

/// BRA.DIV and BRA.CONV ask whether the guard holds for all lanes that the uniform register names. If it does, these
/// lanes take the converged branch, and the other lanes of the group take the other branch. The micro-op has no guard,
/// so that it is executed even if the guard holds for no lane.
fn bra_converged(w: &mut Warp, env: &mut Env<'_>, u: &Uop, active: u32) -> Flow {
    let named = w.get(u.a, 0) ^ if u.mods & 2 != 0 { u32::MAX } else { 0 };
    let here = active & w.pred(u.pt) & w.pred(u.ps);
    let converged = if named & w.live == here { here } else { 0 };
    let taken = if u.mods & 1 != 0 { converged } else { active & !converged };
    if u.imm == NOWHERE && taken != 0 {
        return leave(env, u);
    }
    branch(w, u, taken, u.imm)
}

/// LEPC: the address of the instruction itself.
fn address_of_itself(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let pc = env.pc(u.at);
    lanes(exec).for_each(|lane| w.put64(u.d, lane, pc));
    Flow::Next
}

pub(crate) fn lepc_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let d = l.dst(2);
    Ok(Uop { d, ..l.uop(Handlers::all(address_of_itself)) })
}

/// BPT: a trap stops the grid, as it does on a board without a debugger. The other kinds do nothing.
fn trap(_: &mut Warp, env: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    env.trap(u)
}

pub(crate) fn bpt_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let stops = matches!(l.bits(84, 3), 3 | 4);
    Ok(l.uop(Handlers::all(if stops { trap } else { nothing })))
}

pub(crate) fn bra_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mut u = jump(l)?;
    if l.bits(32, 2) >= 2 {
        u.a = l.ureg(24);
        u.mods = l.bits(32, 1) | u32::from(l.bit(30)) << 1;
        (u.pt, u.guard) = (u.guard, Pred::TRUE);
        u.run = Handlers::all(bra_converged);
    }
    Ok(u)
}

/// BRA.U with a uniform predicate as its condition.
pub(crate) fn bra_uniform(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let ps = Pred { index: pred::UNIFORM + l.bits(24, 3) as u8, invert: -(l.bit(27) as i8) };
    Ok(Uop { ps, ..jump(l)? })
}

/// A branch to an address relative to the next instruction.
fn jump(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.word.signed(34, 48) % 4 != 0 {
        return Err(Refused("misaligned branch target"));
    }
    Ok(Uop { imm: l.target, ps: l.ps(), ..l.uop(Handlers::all(bra)) })
}

/// A number for a return address, as the warp uses it to tell calls apart.
fn place(env: &Env<'_>, at: u32) -> u32 {
    (env.pc(at) >> 4) as u32
}

/// A call. The program has put the return address into a register already, so a call is a branch that the warp takes
/// note of.
fn call_relative(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let flow = bra(w, env, u, exec);
    if flow == Flow::Jump {
        w.enter(w.active, place(env, u.at + 1));
    }
    flow
}

/// CALL of an address relative to the next instruction.
pub(crate) fn call(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    Ok(Uop { run: Handlers::all(call_relative), ..jump(l)? })
}

/// The purposes of jumps to addresses in registers.
const JUMP: u8 = 0;
const CALL: u8 = 1;
const RETURN: u8 = 2;

/// Those of some lanes whose pair of registers holds what that of the first of them does.
fn lanes_at(w: &Warp, pair: Src, of: u32) -> u32 {
    let first = of.trailing_zeros();
    let there = |s: Src| special::alike::<u32>(w.lanes_of(s), w.get(s, first));
    of & there(pair) & there(pair.plus(1))
}

/// Lanes jump, each to its own address: the register pair plus an offset.
fn indirect<const PURPOSE: u8>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32, base: u64) -> Flow {
    let mut left = exec & w.pred(u.ps);
    if left == 0 {
        return Flow::Next;
    }
    let offset = base.wrapping_add(u64::from(u.imm) | u64::from(u.mods) << 32);
    let mut groups = [(0u32, 0u32); 32];
    let mut count = 0;
    let taken = left;
    while left != 0 {
        let va = offset.wrapping_add(w.get64(u.a, left.trailing_zeros()));
        if !va.is_multiple_of(16) {
            // Compilers make a null pointer to a function, too, into such an address.
            let why = if PURPOSE == CALL { ": the pointer to the function is null or was never set" } else { "" };
            let text = format!("branch to {va:#x}, which is not 16-byte aligned{why}");
            return env.warp_error(u, WarpError::MisalignedPc, text);
        }
        let Some(target) = env.target(va) else {
            env.outcome.extend = va;
            return Flow::Extend;
        };
        let here = lanes_at(w, u.a, left);
        groups[count] = (here, target);
        count += 1;
        left &= !here;
    }
    match PURPOSE {
        CALL => w.enter(taken, place(env, u.at + 1)),
        RETURN => groups[..count].iter().for_each(|&(mask, target)| w.leave(mask, place(env, target))),
        _ => {}
    }
    let rest = w.active & !taken;
    w.active = groups[0].0;
    w.pc = groups[0].1;
    let first = w.active;
    for &(mask, target) in &groups[1..count] {
        w.park(mask, target, Wait::Turn);
    }
    w.park(rest, u.at + 1, Wait::Turn);
    w.active = first;
    Flow::Jump
}

/// Jumps to absolute addresses. [`pc_relative`] jumps to addresses relative to the next instruction.
fn absolute<const PURPOSE: u8>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    indirect::<PURPOSE>(w, env, u, exec, 0)
}

fn pc_relative<const PURPOSE: u8>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let base = env.pc(u.at + 1);
    indirect::<PURPOSE>(w, env, u, exec, base)
}

fn indirect_lower<const PURPOSE: u8>(l: &mut Lower<'_>, a: Src, is_absolute: bool) -> Uop {
    let offset = (l.word.signed(34, 48) * 4) as u64;
    let run = Handlers::all(if is_absolute { absolute::<PURPOSE> } else { pc_relative::<PURPOSE> });
    Uop { a, imm: offset as u32, mods: (offset >> 32) as u32, ps: l.ps(), ..l.uop(run) }
}

/// CALL of an absolute address. Only one that is not aligned is not known before the launch.
pub(crate) fn call_absolute(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.target == NOWHERE {
        return Ok(indirect_lower::<CALL>(l, Src::reg(255), true));
    }
    Ok(Uop { imm: l.target, ps: l.ps(), ..l.uop(Handlers::all(call_relative)) })
}

/// CALL of an address that is a register plus an offset.
pub(crate) fn call_absolute_register(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let a = l.reg(24, 2);
    Ok(indirect_lower::<CALL>(l, a, true))
}

/// BRX and BRXU jump to a register plus the address of the next instruction.
pub(crate) fn brx(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let a = if l.bit(91) { l.ureg(24) } else { l.reg(24, 2) };
    Ok(indirect_lower::<JUMP>(l, a, false))
}

/// CALL of an address that is a register plus an offset from the next instruction.
pub(crate) fn call_register(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let a = l.reg(24, 2);
    Ok(indirect_lower::<CALL>(l, a, false))
}

/// RET to an address in a register. It is absolute, or relative to the next instruction.
pub(crate) fn ret(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (a, is_absolute) = (l.reg(24, 2), l.bit(85));
    Ok(indirect_lower::<RETURN>(l, a, is_absolute))
}

fn exit(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let gone = exec & w.pred(u.ps);
    if gone == 0 {
        return Flow::Next;
    }
    w.exit(gone);
    w.pc = u.at + 1;
    w.settle();
    Flow::Jump
}

pub(crate) fn exit_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    Ok(Uop { ps: l.ps(), ..l.uop(Handlers::all(exit)) })
}

struct Bmov;
impl Whole for Bmov {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        w.copy(u.d, u.a, exec);
        if u.mods != 0 {
            w.copy(Dst::barrier(u.imm as u8), Src::reg(255), exec);
        }
        w.barrier_changed();
        Flow::Next
    }
}

/// Moves a barrier's value from `a` to `d`. `cleared` is the barrier that the value is moved out of.
fn bmov(l: &Lower<'_>, d: Dst, a: Src, cleared: Option<u8>) -> Uop {
    let clear = cleared.filter(|_| l.bit(84));
    Uop { d, a, mods: clear.is_some().into(), imm: clear.unwrap_or(0).into(), ..l.uop(alu::whole::<Bmov>()) }
}

/// The number of BMOV in the prologue of sm_87 (docs/hardware/gpu-launch-abi.md#sm87-prologue). The prologue moves a
/// number through all barriers, from each to the next, and writes zero to the last one.
const PROLOGUE: usize = 17;

/// Executes all BMOV of a prologue at once.
fn prologue(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    if !w.groups().is_empty() {
        return Bmov::run::<u32>(w, env, u, exec);
    }
    // The warp has no other group of lanes that could need a barrier, so barriers may be overwritten. Most of them nobody reads.
    lanes(u.imm).for_each(|n| w.broadcast(Dst::barrier(n as u8), 0));
    env.outcome.together = PROLOGUE as u32 - 1;
    Flow::Together
}

/// Gives the first BMOV of each prologue the handler that executes the whole prologue. `is_zero` says whether the immediate
/// of an instruction is zero, and `live` which rows are read from an instruction on. Returns the places of the prologues.
pub(crate) fn fuse_prologues(
    uops: &mut [Uop],
    rows: &[Option<&Row>],
    is_zero: impl Fn(usize) -> bool,
    live: impl Fn(usize) -> Rows,
) -> Vec<usize> {
    let mut fused = Vec::new();
    for at in 0..uops.len().saturating_sub(PROLOGUE) {
        if is(rows[at], Op::BmovImmediate)
            && is_prologue(&uops[at..at + PROLOGUE], &rows[at..at + PROLOGUE])
            && is_zero(at + PROLOGUE - 1)
        {
            let live = live(at + PROLOGUE);
            let is_read = |n: &u32| live.has(Src::barrier(*n as u8).own() / 32);
            uops[at].imm = (0..16).filter(is_read).fold(0, |mask, n| mask | 1 << n);
            uops[at].run = Handlers::all(prologue);
            fused.push(at);
        }
    }
    fused
}

fn is(row: Option<&Row>, op: Op) -> bool {
    row.is_some_and(|row| row.op == op)
}

fn is_prologue(uops: &[Uop], rows: &[Option<&Row>]) -> bool {
    let place = |n: usize| Dst::barrier(n.min(15) as u8);
    let moves = |n: usize| {
        let from = Src::barrier(n.max(1) as u8 - 1);
        is(rows[n], Op::BmovBetween) && uops[n].a == from && uops[n].mods != 0
    };
    let sets = |n: usize| is(rows[n], Op::BmovImmediate);
    (0..PROLOGUE).all(|n| {
        let right = if n == 0 || n == PROLOGUE - 1 { sets(n) } else { moves(n) };
        right && uops[n].d == place(n) && uops[n].guard == Pred::TRUE
    })
}

pub(crate) fn bmov_immediate(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let n = barrier(l, 24)?;
    let d = l.barrier(n);
    let x = l.bits(32, 32);
    let a = l.literal(x);
    Ok(bmov(l, d, a, None))
}

pub(crate) fn bmov_to_barrier(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let n = barrier(l, 24)?;
    let (d, a) = (l.barrier(n), l.reg(32, 1));
    Ok(bmov(l, d, a, None))
}

pub(crate) fn bmov_from_barrier(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.bits(24, 6) == MACTIVE {
        return Ok(Uop { d: l.dst(1), ..l.uop(Handlers::all(active_mask)) });
    }
    let n = barrier(l, 24)?;
    let d = l.dst(1);
    Ok(bmov(l, d, Src::barrier(n), Some(n)))
}

pub(crate) fn bmov_between(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let n = barrier(l, 24)?;
    let to = barrier(l, 16)?;
    let d = l.barrier(to);
    Ok(bmov(l, d, Src::barrier(n), Some(n)))
}

/// The number that stands for the executing lanes.
const MACTIVE: u32 = 30;

/// MACTIVE reads which lanes execute.
fn active_mask(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    w.fill(u.d, w.active, exec);
    Flow::Next
}

fn barrier(l: &Lower<'_>, lo: u32) -> Result<u8, Refused> {
    let n = l.bits(lo, 6) as u8;
    if n < 16 { Ok(n) } else { Err(Refused("BMOV of thread state")) }
}

fn warpsync(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let arrived = exec & w.pred(u.ps);
    if arrived == 0 {
        return Flow::Next;
    }
    let (mut left, running, exclusive) = (arrived, w.active, u.mods != 0);
    while left != 0 {
        let want = w.get(u.a, left.trailing_zeros());
        let here = lanes(left).filter(|&l| w.get(u.a, l) == want).fold(0, |m, l| m | 1 << l);
        left &= !here;
        // The whole running group is here and no lane is missing, so the group continues without waiting.
        if here == running && !exclusive && !w.alone && want & w.live & !here == 0 {
            return Flow::Next;
        }
        w.park(here, u.at, if exclusive { Wait::Alone(want) } else { Wait::Lanes(want) });
    }
    w.pc = u.at + 1;
    w.settle();
    Flow::Jump
}

pub(crate) fn warpsync_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let a = l.slot32()?;
    let exclusive = l.word.form() == 1 && l.bit(86);
    Ok(Uop { a, ps: l.ps(), mods: exclusive.into(), ..l.uop(Handlers::all(warpsync)) })
}

fn yields(w: &mut Warp, _: &mut Env<'_>, _: &Uop, exec: u32) -> Flow {
    w.yielded |= exec;
    Flow::pause_if(w.poll())
}

/// NANOSLEEP: the warp does not run until the time has passed.
fn sleeps(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let asleep = exec & w.pred(u.ps);
    if asleep == 0 {
        return Flow::Next;
    }
    if !env.counts.with_current {
        return Flow::Count;
    }
    let longest = lanes(asleep).map(|l| w.get(u.a, l)).max().unwrap_or(0);
    w.yielded |= asleep;
    env.clock.slept = true;
    w.wake = env.cycles() + clock::sleep(longest);
    Flow::Pause
}

pub(crate) fn nanosleep(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let a = l.slot32()?;
    Ok(Uop { a, ps: l.ps(), ..l.uop(Handlers::all(sleeps)) })
}

/// YIELD: these lanes may have to let other lanes run first.
pub(crate) fn yield_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    Ok(l.uop(Handlers::all(yields)))
}

fn nothing(_: &mut Warp, _: &mut Env<'_>, _: &Uop, _: u32) -> Flow {
    Flow::Next
}

/// Instructions that wait for others or give hints. There is nothing to wait for, because each instruction completes before the
/// next begins.
pub(crate) fn nop(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    Ok(l.uop(Handlers::all(nothing)))
}

fn orders(_: &mut Warp, _: &mut Env<'_>, _: &Uop, _: u32) -> Flow {
    fence(Ordering::AcqRel);
    Flow::Next
}

fn orders_all(_: &mut Warp, _: &mut Env<'_>, _: &Uop, _: u32) -> Flow {
    fence(Ordering::SeqCst);
    Flow::Next
}

/// The scope of a MEMBAR that is the CTA.
const CTA: u32 = 0;

/// MEMBAR: the host thread orders its accesses as the warp does, for other host threads. Warps of a CTA run on one host thread.
pub(crate) fn membar(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (consistent, scope) = (l.bits(79, 2) == 0, l.bits(76, 3));
    Ok(l.uop(Handlers::all(match (scope, consistent) {
        (CTA, _) => nothing,
        (_, true) => orders_all,
        (_, false) => orders,
    })))
}

/// CCTL: there are no caches, but compilers end a load that acquires with CCTL.IVALL: loads behind it must not be made before it.
pub(crate) fn cctl(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    Ok(l.uop(Handlers::all(orders)))
}
