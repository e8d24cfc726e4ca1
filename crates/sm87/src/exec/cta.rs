//! A CTA: its warps take turns until all have exited.
#![allow(unsafe_code)]

use super::barriers::Completed;
use super::env::Env;
use super::groups::Wait;
use super::image::Image;
use super::interp::{self, Stop};
use super::opening::{self, Opening};
use super::rounds;
use super::rows::{self, Lasting, Row, rows_per_warp};
use super::schedule::{Drawn, Interrupt, Order, Reports, Supervisor};
use super::template::{self, Template};
use super::warp::Warp;
use crate::fault::{Site, SmFault};
use std::fmt::Write;
use std::sync::Arc;

/// The number of instructions that a warp runs before the next warp runs.
const SLICE: u32 = 1 << 14;

/// What debug builds write to rows that may hold anything, so that tests notice who reads one.
#[cfg(debug_assertions)]
const UNSET: [u32; 32] = [0xa5a5_0bad; 32];

/// A CTA in which all warps only wait lets another CTA run when its rounds in a row have counted to `IDLE`. A round
/// counts `SPINNING`, or `SLEEPING` if warps sleep, because a sleep ends by itself.
const IDLE: u32 = 16;
const SPINNING: u32 = 8;
const SLEEPING: u32 = 1;

/// The warps of a CTA, and the arrays that hold their registers and operands. They are kept for the next CTA.
pub(crate) struct Warps {
    rows: Lasting<Row>,
    warps: Lasting<Warp>,
    /// Whether they belong to this launch.
    begun: bool,
    /// The constants of the image. They are replaced when the image grows.
    constants: Lasting<Row>,
    /// The image, while the CTA does not run. All threads count in one place how many hold an image, so this one is not given up
    /// between one CTA and the next.
    image: Option<Arc<Image>>,
    /// What all warps begin with, and what all CTAs begin with.
    template: Option<Template>,
    opening: Option<Opening>,
    /// Whether many CTAs are expected to use this memory one after another.
    lasts: bool,
    /// What decides about turns, if the schedule is not the usual one.
    drawn: Option<Drawn>,
}

impl Warps {
    pub(crate) fn new(constants: Lasting<Row>, lasts: bool) -> Self {
        Warps {
            rows: Lasting::default(),
            warps: Lasting::default(),
            begun: false,
            constants,
            image: None,
            template: None,
            opening: None,
            lasts,
            drawn: None,
        }
    }

    /// The order of the warps in the next round, if it is not the usual one.
    fn order(&mut self) -> Option<Order> {
        let key = self.drawn.as_mut()?.next();
        Some(Order::of(key, 0, self.warps.len() as u64))
    }

    /// The instructions of the next turn of the CTA, of which usually there are so many.
    pub(crate) fn turn(&mut self, usual: u64) -> u64 {
        self.drawn.as_mut().map_or(usual, |drawn| drawn.turn(usual))
    }

    /// The address of the instruction at which the first warp is that has not ended.
    pub(crate) fn pc(&self, env: &Env<'_>) -> u64 {
        self.warps.iter().find(|w| !w.done()).map_or(env.launch().code, |w| env.pc(w.pc))
    }

    /// Says that a part of a warp waits at a barrier while the other part does not come there, if there is such a warp.
    pub(crate) fn apart(&self, env: &Env<'_>) -> Option<String> {
        let (w, at, rest) = self.warps.iter().find_map(|w| w.torn().map(|(at, rest)| (w, at, rest)))?;
        let [x, y, z] = env.cta.index;
        let (mask, pc, others, theirs) = (at.mask, env.pc(at.pc), rest.mask, env.pc(rest.pc));
        let place = match at.wait {
            Wait::Cta(number) => format!("barrier {number}"),
            _ => "WARPSYNC".to_owned(),
        };
        Some(format!(
            "in CTA ({x}, {y}, {z}), lanes {mask:#010x} of warp {} wait at {place} at pc {pc:#x} for the other lanes of it, of which \
             {others:#010x} have not come and are at pc {theirs:#x}",
            w.index
        ))
    }
}

/// How a CTA ended, or why it stopped for now.
pub(crate) enum End {
    Done,
    /// Its turn is over, and it can continue later.
    Turn,
    /// All of its warps wait for something that other CTAs or the CPU may do.
    Idle,
    Stopped(Interrupt, u64),
    Failed(SmFault),
}

/// Runs the CTA that was started in `env` for about `turn` instructions.
pub(crate) fn run(env: &mut Env<'_>, store: &mut Warps, supervisor: &dyn Supervisor, turn: u64) -> End {
    let mut image = store.image.take().unwrap_or_else(|| env.image.clone());
    let end = take_turns(env, store, &mut image, supervisor, turn);
    store.image = Some(image);
    end
}

/// Runs the CTA, whose image is `image`.
fn take_turns(
    env: &mut Env<'_>,
    store: &mut Warps,
    image: &mut Arc<Image>,
    supervisor: &dyn Supervisor,
    turn: u64,
) -> End {
    let begun = env.counts.stats.warp_instructions;
    let mut reports = Reports::new(begun);
    let (mut idle, mut timed) = (0, false);
    loop {
        let (mut moved, mut busy, mut sleeping) = (false, false, false);
        let order = store.order();
        for n in 0..store.warps.len() {
            let i = order.map_or(n, |order| order.at(n as u64) as usize);
            while env.lets_run(&store.warps[i]) {
                moved = true;
                if let Err(why) = reports.report(env, supervisor) {
                    return End::Stopped(why, env.pc(store.warps[i].pc));
                }
                match advance(env, store, image, i) {
                    Ok(Stop::Slice) => {
                        busy = true;
                        break;
                    }
                    Ok(Stop::Pause) => {
                        let looked = std::mem::take(&mut store.warps[i].looked);
                        sleeping |= looked || store.warps[i].wake > env.cycles();
                        timed |= looked;
                        break;
                    }
                    Ok(Stop::Extend) => {
                        // Decoding counts as work: a program that jumps to ever new addresses must come to an end.
                        if let Err(why) = supervisor.poll(env.image.len().into()) {
                            return End::Stopped(why, env.pc(store.warps[i].pc));
                        }
                    }
                    Ok(_) => busy = true,
                    Err(mut fault) => {
                        fault.happened_at(site(env, &store.warps[i], &fault));
                        return End::Failed(aftermath(env, store, image, i, fault));
                    }
                }
            }
        }
        let completed = env.barriers.complete(&mut store.warps);
        busy |= completed != Completed::None;
        let mut goes_on = completed == Completed::One && store.drawn.is_none() && rounds::fit(env, image);
        while goes_on && env.counts.stats.warp_instructions - begun < turn {
            if let Err(why) = reports.report(env, supervisor) {
                return End::Stopped(why, store.pc(env));
            }
            // SAFETY: `start` and `extend` give every warp the arrays of `env.image`, which is `image`.
            goes_on = unsafe { rounds::run(env, &mut store.warps, image) };
        }
        if !moved && !busy {
            sleeping = env.wake_up(&store.warps);
        }
        moved |= busy || sleeping;
        let rest = reports.left(env);
        if store.warps.iter().all(Warp::done) {
            // The grid's budget also counts the instructions of many short CTAs.
            return supervisor.poll(rest).map_or_else(|why| End::Stopped(why, env.launch().code), |()| End::Done);
        }
        if !moved {
            env.observed_by(|observer, env| observer.rests(env, &store.warps));
        }
        if !moved && !unlock(&mut store.warps) {
            env.observed_by(|observer, env| observer.is_stuck(env, &store.warps));
            return End::Failed(stuck(env, &store.warps));
        }
        idle = match busy {
            true => 0,
            false => idle + if sleeping { SLEEPING } else { SPINNING },
        };
        if idle >= IDLE || env.counts.stats.warp_instructions - begun >= turn {
            let idles = idle >= IDLE;
            env.observed_by(|observer, env| observer.turn_ends(env, &store.warps, idles));
            return match supervisor.poll(rest) {
                // A CTA that waits for a time continues by itself.
                Ok(()) if idle >= IDLE && !timed => End::Idle,
                Ok(()) => End::Turn,
                Err(why) => End::Stopped(why, env.pc(store.warps.first().map_or(0, |w| w.pc))),
            };
        }
    }
}

/// In every warp, lets lanes continue that wait only for each other ([`Warp::unlock`]). Returns whether any had such lanes.
fn unlock(warps: &mut [Warp]) -> bool {
    warps.iter_mut().filter_map(|w| w.unlock().then_some(())).count() > 0
}

/// Executes the opening of a warp that has yet to do so.
fn open(env: &mut Env<'_>, store: &mut Warps, i: usize) {
    if std::mem::take(&mut store.warps[i].opens)
        && let Some(opening) = &store.opening
    {
        opening.execute(env, &mut store.warps[i]);
    }
}

/// Gives a warp a slice. If the warp reaches code that is not decoded, this decodes it.
fn advance(env: &mut Env<'_>, store: &mut Warps, image: &mut Arc<Image>, i: usize) -> Result<Stop, SmFault> {
    if store.warps[i].opens {
        open(env, store, i);
        if store.warps[i].done() {
            return Ok(Stop::Blocked);
        }
    }
    let length = env.before_wake(&store.warps, SLICE);
    let length = store.drawn.as_mut().map_or(length, |drawn| drawn.slice(length));
    let stop = slice(env, &mut store.warps[i], image, length);
    match stop {
        Stop::Extend => {
            extend(env, store)?;
            *image = env.image.clone();
        }
        Stop::Fault => return Err(fault(env)),
        Stop::Slice | Stop::Pause | Stop::Blocked => {}
    }
    Ok(stop)
}

/// The site of a fault: the warp and the instruction that failed.
fn site(env: &Env<'_>, w: &Warp, fault: &SmFault) -> Site {
    let u = &env.image.uops[w.pc as usize];
    let lanes = w.active & w.pred(u.guard);
    let access = match fault {
        SmFault::Mmu { fetch: true, .. } => None,
        SmFault::Mmu { fault, .. } => Some((fault.va, 0)),
        _ => env.outcome.accessed,
    };
    let lane = match access {
        _ if lanes.count_ones() == 1 => Some(lanes.trailing_zeros()),
        Some((va, _)) => env.image.row(u.at).and_then(|row| super::ops::memory::lane_of(w, u, &row.effects, lanes, va)),
        None => None,
    };
    let first = lane.unwrap_or(lanes.trailing_zeros()) as usize & 31;
    let thread = env.launched.tids.get(w.index as usize).map_or([0; 3], |of| [0, 1, 2].map(|axis| of[axis].0[first]));
    let (pc, kernel, shared) = (env.pc(u.at), env.launch().code, env.launch().shared_bytes);
    Site {
        block: env.cta.index,
        warp: w.index,
        lanes,
        lane,
        thread,
        pc,
        kernel,
        word: env.image.word(u.at),
        access,
        shared,
    }
}

/// Runs the other warps after one warp has had an exception. They continue for one slice each, until the kernel stops
/// the SM. If one of them has an exception too, the global error register says so.
fn aftermath(
    env: &mut Env<'_>,
    store: &mut Warps,
    image: &mut Arc<Image>,
    first: usize,
    mut fault: SmFault,
) -> SmFault {
    for i in (0..store.warps.len()).filter(|i| *i != first) {
        // A warp that jumps to code that is not decoded gets its slice in the second round.
        for _ in 0..2 {
            if store.warps[i].active == 0 {
                break;
            }
            match advance(env, store, image, i) {
                Ok(Stop::Extend) => {}
                Ok(_) => break,
                Err(other) => {
                    fault.joined_by(&other);
                    break;
                }
            }
        }
    }
    fault
}

fn fault(env: &mut Env<'_>) -> SmFault {
    env.outcome.fault.take().map_or_else(|| SmFault::Hang { pc: 0, text: "fault without a record".to_owned() }, |f| *f)
}

/// Puts the warps of the CTA that `env` describes at the entry point. `drawn` decides about turns, if the schedule is not the usual one.
pub(super) fn start(env: &mut Env<'_>, store: &mut Warps, drawn: Option<Drawn>) {
    store.drawn = drawn;
    let count = threads(env).div_ceil(32);
    env.memory.shared.clear();
    env.memory.local.clear();
    env.memory.known.forget();
    env.barriers.clear();
    env.counts.with_current = false;
    if !std::mem::replace(&mut store.begun, true) {
        find_memory(env, store, count as usize);
        prepare(env, store, count);
    }
    let opens = store.opening.is_some() && env.memory.linear.reach(env.cta.index);
    begin(env, store, opens);
}

/// Gets memory for the warps of all CTAs that follow.
fn find_memory(env: &Env<'_>, store: &mut Warps, count: usize) {
    let rows = stride(env) * count;
    (store.rows, store.warps) = (Lasting::kept(rows), Lasting::kept(count));
    store.rows.resize(rows, Row::ZERO);
    // Memory of other launches holds anything.
    #[cfg(debug_assertions)]
    store.rows.fill(Row(UNSET));
    store.rows.chunks_exact_mut(stride(env)).for_each(|rows| rows::clear_constant(rows, env.image.registers));
    store.warps.truncate(count);
    let known = store.warps.len();
    store.warps.extend((known..count).map(|index| Warp::new(index as u32)));
}

/// The number of threads of the CTA, and the number of rows that each of its warps has.
fn threads(env: &Env<'_>) -> u32 {
    env.launch().block.iter().product()
}

fn stride(env: &Env<'_>) -> usize {
    rows_per_warp(env.launch().registers.max(1))
}

/// Begins all warps: behind the opening, behind the template if there is one, or at the entry point.
fn begin(env: &Env<'_>, store: &mut Warps, opens: bool) {
    let (image, threads, stride) = (&env.image, threads(env), stride(env));
    let (template, opening) = (store.template.as_ref(), store.opening.as_ref().filter(|_| opens));
    let cleared = template.map_or(&image.cleared, |template| &template.needed.cleared);
    let cleared = opening.map_or(cleared, |opening| &opening.needed.cleared);
    let mut rest = &mut store.rows[..];
    for warp in store.warps.iter_mut() {
        let rows;
        (rows, rest) = std::mem::take(&mut rest).split_at_mut(stride);
        // What a program does not read before it writes it may hold anything. If that were wrong, tests would notice.
        #[cfg(debug_assertions)]
        rows::used(image.uniform, image.registers).for_each(|row| rows[row] = Row(UNSET));
        rows::clear(rows, cleared);
        let left = threads - 32 * warp.index;
        let lanes = if left >= 32 { u32::MAX } else { (1 << left) - 1 };
        warp.begin(lanes, image.entry, rows, &image.pool.immediates, &store.constants);
        match (opening, template) {
            (Some(opening), _) => opening.begin(warp, rows),
            (None, Some(template)) => template.begin(warp, rows),
            (None, None) => {}
        }
    }
}

/// Finds what all CTAs of a large grid begin with, which have `warps` warps.
fn prepare(env: &mut Env<'_>, store: &mut Warps, warps: u32) {
    let ctas: u64 = env.launch().grid.iter().map(|&n| u64::from(n)).product();
    let warps = ctas * u64::from(warps);
    if warps < template::WORTH {
        return;
    }
    let image = env.image.clone();
    store.template = Template::of(env, &image, &store.constants);
    if warps >= opening::WORTH && store.lasts && store.template.is_some() {
        begin(env, store, false);
        let template = store.template.as_ref();
        store.opening = template.and_then(|template| Opening::of(env, &image, &mut store.warps, template));
    }
}

fn slice(env: &mut Env<'_>, w: &mut Warp, image: &Image, length: u32) -> Stop {
    let length = length.saturating_sub(interp::count_ahead(w, env)).max(1);
    // SAFETY: `start` and `extend` give every warp the arrays of `env.image`, and callers check that the warp can run.
    let stop = unsafe { interp::run(w, env, image, length) };
    if !matches!(stop, Stop::Slice | Stop::Pause) {
        return stop;
    }
    w.starve();
    // Lanes of this warp may wait in a loop for other lanes of the same warp, so those get a turn.
    if !w.has_rivals() {
        return stop;
    }
    let stop = finish_block(env, w, image);
    if !matches!(stop, Stop::Slice | Stop::Pause) {
        return stop;
    }
    let Some(turn) = w.rotate() else { return stop };
    // SAFETY: the warp still has the arrays of `env.image`; `rotate` made another group the running one.
    let mut stop = unsafe { interp::run(w, env, image, turn) };
    if stop == Stop::Slice {
        stop = finish_block(env, w, image);
    }
    if matches!(stop, Stop::Slice | Stop::Pause | Stop::Extend) {
        w.end_turn();
    }
    stop
}

/// The most instructions that a group may run to reach the end of its basic block.
const BLOCK: u32 = 4096;

/// Runs a group until it has passed the next branch. The groups of a warp share its uniform registers, which a group
/// uses from one instruction to the next. So another group may run only between two basic blocks.
fn finish_block(env: &mut Env<'_>, w: &mut Warp, image: &Image) -> Stop {
    for _ in 0..BLOCK {
        let last = image.transfers(w.pc);
        // SAFETY: the warp has the arrays of `env.image`, which is `image`; its last slice ended with a running group.
        let stop = unsafe { interp::run(w, env, image, 1) };
        if last || !matches!(stop, Stop::Slice | Stop::Pause) {
            return stop;
        }
    }
    Stop::Slice
}

/// Decodes the code that a warp reached, and moves all warps to the larger image.
fn extend(env: &mut Env<'_>, store: &mut Warps) -> Result<(), SmFault> {
    let image = super::grid::extended(env)?;
    go_on_with(env, store, image);
    // Whoever looked at a copy of the program before wants one of the larger program.
    if let Some(image) = super::grid::another(env) {
        go_on_with(env, store, image);
    }
    Ok(())
}

/// Moves all warps to another image of the program, which has all code that they know.
fn go_on_with(env: &mut Env<'_>, store: &mut Warps, image: Arc<Image>) {
    // The opening belongs to the old image, so warps that have yet to execute it do so now. Nobody can see that: it neither waits for other
    // warps nor fails.
    (0..store.warps.len()).for_each(|i| open(env, store, i));
    env.memory.known.forget();
    store.constants = env.launched.banks.rows(&image.pool.constants);
    for w in store.warps.iter_mut() {
        w.rebase(&image.pool.immediates, &store.constants, |at| image.moved(&env.image, at));
    }
    (store.template, store.opening) = (None, None);
    let before = std::mem::replace(&mut env.image, image);
    let used = |image: &Image| [image.uniform, image.registers];
    store.warps.iter_mut().for_each(|w| w.uses(used(&before), used(&env.image)));
    env.observed_by(|observer, env| observer.program_changes(&before, &env.image));
}

/// The fault of a CTA in which no warp can run although some have not exited. It says where each warp waits and which
/// warps have exited.
fn stuck(env: &Env<'_>, warps: &[Warp]) -> SmFault {
    let Some(first) = warps.iter().find(|w| !w.done()).and_then(|w| w.groups().first()) else {
        return SmFault::Hang { pc: env.launch().code, text: "no warp can run".to_owned() };
    };
    let pc = env.pc(first.pc);
    let [x, y, z] = env.cta.index;
    let mut text = format!("CTA ({x}, {y}, {z})");
    for (number, w) in warps.iter().enumerate() {
        for group in w.groups() {
            let (mask, at, wait) = (group.mask, env.pc(group.pc), group.wait);
            let _ = write!(text, ", warp {number}: lanes {mask:#010x} of {:#010x} wait {wait} at pc {at:#x}", w.live);
        }
    }
    let gone: Vec<String> = warps.iter().filter(|w| w.done()).map(|w| w.index.to_string()).collect();
    if !gone.is_empty() {
        let _ = write!(text, "; of {} warps, these have exited: {}", warps.len(), gone.join(", "));
    }
    SmFault::Hang { pc, text }
}
