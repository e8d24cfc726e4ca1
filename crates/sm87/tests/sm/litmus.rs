//! Litmus tests: programs of a few accesses on several host threads, and the outcomes that the memory model of PTX forbids. Every
//! role of a test is a grid of its own on a thread of its own. Roles with the scope of a CTA are warps of one CTA. `ptx` finds out what
//! the model allows.
//!
//! `cargo test` makes some thousand runs of each test with each order, `make test-litmus` many more and prints what was seen.

mod mixed;
mod ptx;

use crate::kernel;
use crate::support::{Arg, Buffer, Gpu};
use std::collections::{BTreeMap, BTreeSet};

/// What stands between the two accesses of a role, or belongs to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// All accesses are relaxed.
    Relaxed,
    /// Loads acquire, and stores release.
    AcquireRelease,
    /// `fence.acq_rel` between the accesses.
    Fence,
    /// `fence.sc` between the accesses.
    FenceSc,
}
use Order::*;

/// The places of a test.
const X: u32 = 0;
const Y: u32 = 1;

/// An access of a role.
#[derive(Clone, Copy)]
enum Access {
    /// Stores a number.
    St(u32, u32),
    /// Loads into a result.
    Ld(u32, u32),
}
use Access::*;

const MP: &[&[Access]] = &[&[St(X, 1), St(Y, 1)], &[Ld(Y, 0), Ld(X, 1)]];
const SB: &[&[Access]] = &[&[St(X, 1), Ld(Y, 0)], &[St(Y, 1), Ld(X, 1)]];
const LB: &[&[Access]] = &[&[Ld(X, 0), St(Y, 1)], &[Ld(Y, 1), St(X, 1)]];
const IRIW: &[&[Access]] = &[&[St(X, 1)], &[St(Y, 1)], &[Ld(X, 0), Ld(Y, 1)], &[Ld(Y, 2), Ld(X, 3)]];
const TWO_WRITES: &[&[Access]] = &[&[St(X, 1), St(Y, 2)], &[St(Y, 1), St(X, 2)]];
const CORR: &[&[Access]] = &[&[St(X, 1), St(X, 3)], &[Ld(X, 0), Ld(X, 1)]];

/// The tests: the accesses of each role.
const TESTS: &[(&str, &[&[Access]])] =
    &[("MP", MP), ("SB", SB), ("LB", LB), ("IRIW", IRIW), ("2+2W", TWO_WRITES), ("CoRR", CORR)];
const ORDERS: [(Order, &str); 4] =
    [(Relaxed, "relaxed"), (AcquireRelease, "acquire, release"), (Fence, "fence.acq_rel"), (FenceSc, "fence.sc")];

/// A test with one order of its accesses.
struct Row {
    name: &'static str,
    roles: &'static [&'static [Access]],
    order: Order,
}

/// How the accesses of a run are made.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// The logarithm of the bytes of an access.
    width: u32,
    /// 0 is the CTA, 1 the GPU, 2 the system.
    scope: u32,
    /// How many lanes make a run each, and how many bytes lie between their places.
    lanes: u32,
    stride: u32,
    /// Whether stores are reductions (RED.OR), which read what they change.
    reduces: bool,
}

/// What a load returns if it found a part of a store.
const TORN: u32 = 0xbad;

impl Form {
    /// The word of `litmus.cu` for an access.
    fn access(self, access: Access, order: Order) -> u32 {
        let common = self.width << 4 | u32::from(order == AcquireRelease) << 7 | self.scope << 8;
        match access {
            St(place, x) => common | if self.reduces { 4 } else { 1 } | place << 12 | x << 16,
            Ld(place, result) => common | 2 | place << 12 | result << 16,
        }
    }

    /// The program of a role: its accesses, and a fence after the first one.
    fn program(self, role: &[Access], order: Order) -> [u32; 4] {
        let fence = 3 | u32::from(order == FenceSc) << 7 | self.scope << 8;
        let mut words = role.iter().map(|&access| self.access(access, order));
        let first = words.next().unwrap_or(0);
        let fence = if matches!(order, Fence | FenceSc) { fence } else { 0 };
        [first, fence, words.next().unwrap_or(0), 0]
    }
}

/// All forms that a test can have.
fn forms(row: &Row) -> Vec<Form> {
    let mut forms = Vec::new();
    for scope in 0..3 {
        for width in 0..5 {
            // The roles of a CTA are whole warps.
            for (lanes, stride) in
                [(32, 1 << width), (32, 32), (1, 32)].into_iter().filter(|form| form.0 == 32 || scope > 0)
            {
                forms.push(Form { width, scope, lanes, stride, reduces: false });
                if (2..4).contains(&width) && row.order != AcquireRelease && row.name != "2+2W" {
                    forms.push(Form { width, scope, lanes, stride, reduces: true });
                }
            }
        }
    }
    forms
}

/// What was seen, and how often.
type Seen = BTreeMap<Vec<u32>, u64>;

/// Makes `runs` runs, or some more, in one form.
fn try_out(row: &Row, form: Form, runs: u32, seen: &mut Seen) {
    let rounds = (runs / form.lanes).clamp(16, 4096);
    let instances = rounds * form.lanes;
    let apart = (instances * form.stride).next_multiple_of(64);
    let mut gpu = Gpu { threads: 1, ..Gpu::default() };
    let program: Vec<u32> = row.roles.iter().flat_map(|role| form.program(role, row.order)).collect();
    let (places, out, met) = (gpu.alloc(2 * apart as usize), gpu.alloc(16 * instances as usize), gpu.alloc(4096));
    let program = gpu.upload(&program);
    let roles = row.roles.len() as u32;
    let (grids, threads) = if form.scope == 0 { (1, form.lanes * roles) } else { (roles, form.lanes) };
    let kernel = kernel!("litmus");
    let launches: Vec<_> = (0..grids)
        .map(|role| {
            let numbers = [role, roles, rounds, form.lanes, form.stride, apart].map(|n| Arg::Int(n as i32));
            let args = [&places, &out, &met, &program].map(Arg::Ptr);
            gpu.launch(&kernel, [1, 1, 1], [threads, 1, 1], &args.into_iter().chain(numbers).collect::<Vec<_>>())
        })
        .collect();
    for _ in 0..runs.div_ceil(instances) {
        for buffer in [&places, &out, &met] {
            assert!(buffer.backing.write(0, &vec![0; buffer.backing.len()]));
        }
        std::thread::scope(|scope| {
            let running: Vec<_> = launches.iter().map(|launch| scope.spawn(|| sm87::run(launch).unwrap())).collect();
            for thread in running {
                thread.join().unwrap();
            }
        });
        count(row, form, (&places, &out), (instances, apart), seen);
    }
}

/// Counts the outcomes of all instances of a run.
fn count(row: &Row, form: Form, (places, out): (&Buffer, &Buffer), (instances, apart): (u32, u32), seen: &mut Seen) {
    let loads = row.roles.iter().flat_map(|role| role.iter()).filter(|access| matches!(access, Ld(..))).count();
    let (results, memory) = (out.read::<u32>(4 * instances as usize), places.read::<u8>(2 * apart as usize));
    for i in 0..instances as usize {
        let mut outcome = results[4 * i..4 * i + loads].to_vec();
        if loads == 0 {
            for place in [0, apart as usize] {
                let at = place + i * form.stride as usize;
                let bytes = &memory[at..at + (1 << form.width)];
                outcome.push(if bytes.iter().all(|b| *b == bytes[0]) { bytes[0].into() } else { TORN });
            }
        }
        *seen.entry(outcome).or_default() += 1;
    }
}

/// Makes about `runs` runs of a row, in all forms, and returns what was seen. Everything else than what is allowed fails.
fn judged(row: &Row, allowed: &BTreeSet<Vec<u32>>, runs: u64) -> Seen {
    let forms = forms(row);
    let each = runs.div_ceil(forms.len() as u64) as u32;
    let mut all = Seen::new();
    for form in forms {
        let mut seen = Seen::new();
        try_out(row, form, each, &mut seen);
        for (outcome, times) in seen {
            let named = (row.name, row.order);
            assert!(
                allowed.contains(&outcome),
                "{named:?}, {form:?}: {outcome:?} in {times} runs, where PTX allows {allowed:?}"
            );
            *all.entry(outcome).or_default() += times;
        }
    }
    all
}

/// How often each test is run.
fn runs() -> u64 {
    let wanted = std::env::var("TEGRARM_TEST_LITMUS").ok();
    wanted.map_or(10_000, |n| n.parse().expect("TEGRARM_TEST_LITMUS is a number of runs"))
}

/// Outcomes as a cell of the table.
fn listed<'o>(outcomes: impl IntoIterator<Item = &'o Vec<u32>>) -> String {
    let one = |outcome: &Vec<u32>| outcome.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let all = outcomes.into_iter().map(one).collect::<Vec<_>>().join(", ");
    if all.is_empty() { "nothing".to_owned() } else { all }
}

#[test]
fn no_outcome_that_ptx_forbids_is_seen() {
    let show = std::env::var_os("TEGRARM_TEST_LITMUS").is_some();
    let mut total = 0;
    for &(name, roles) in TESTS {
        for (order, text) in ORDERS {
            let (all, allowed) = ptx::outcomes(roles, order);
            let seen = judged(&Row { name, roles, order }, &allowed, runs());
            let runs: u64 = seen.values().sum();
            total += runs;
            if show {
                let unseen = listed(allowed.iter().filter(|outcome| !seen.contains_key(*outcome)));
                let forbidden = listed(all.difference(&allowed));
                println!("| {name} | {text} | {runs} | {} | {unseen} | {forbidden} |", listed(seen.keys()));
            }
        }
    }
    if show {
        println!("{total} runs");
    }
}

/// Bytes of one word that two grids change do not undo each other, whether by stores or by reductions.
#[test]
fn a_store_of_a_byte_changes_no_other_byte() {
    const WORDS: usize = 4096;
    for _ in 0..runs().div_ceil(10 * WORDS as u64) {
        let mut gpu = Gpu { threads: 1, ..Gpu::default() };
        let (v, met) = (gpu.alloc(4 * WORDS), gpu.alloc(4096));
        let launches = [0, 1].map(|role| {
            let args = [Arg::Ptr(&v), Arg::Ptr(&met), Arg::Int(role), Arg::Int(WORDS as i32)];
            gpu.launch(&kernel!("beside"), [1, 1, 1], [64, 1, 1], &args)
        });
        std::thread::scope(|scope| {
            let running = launches.each_ref().map(|launch| scope.spawn(|| sm87::run(launch).unwrap()));
            for thread in running {
                thread.join().unwrap();
            }
        });
        assert_eq!(v.read::<u32>(WORDS), vec![0x4433_2211; WORDS]);
    }
}
