//! What an instruction makes of values that were never written. It is tried with several values in their place: what is the
//! same every time does not depend on them. So no rule is needed for any operation, and none reports what makes no difference.

use super::operands::Operands;
use super::shadow::{ALL_BITS, Shadow, Unwritten};
use sm87::isa::Does;
use sm87::observe::{Flow, REGISTER, Step, lanes, pred};

/// Values of all kinds: zero, all ones and no number, a large positive one and a small negative one.
const VALUES: [u32; 4] = [0, u32::MAX, 0x7f7f_7b01, 0x8000_8400];
/// A last trial is made with the values of another source.
const TRIALS: usize = VALUES.len() + 1;

type Lanes = [u32; 32];

/// A row or predicate that an instruction reads, and its unwritten lanes.
type Source = (usize, Unwritten);

/// The value of source `k` in a trial.
fn value(trial: usize, k: usize, lane: u32, equal: &Lanes) -> u32 {
    if trial < VALUES.len() { VALUES[(trial + k) % VALUES.len()] } else { equal[lane as usize] }
}

/// What an instruction left behind in a trial.
struct Outcome {
    rows: Vec<Lanes>,
    predicates: [u32; 2],
}

/// Executes an instruction that only changes registers and predicates, and finds which of them depend on what was never
/// written.
pub(super) fn execute(shadow: &mut Shadow, step: &mut Step<'_, '_>, operands: &Operands) -> Flow {
    let (u, exec) = (step.uop(), step.exec());
    let mut sources: Vec<Source> = operands.rows().map(|row| (row, shadow.rows[row])).collect();
    sources.retain(|(_, unwritten)| unwritten.lanes != 0);
    sources.dedup_by_key(|(row, _)| *row);
    let predicate = |p: u8| (usize::from(p), shadow.predicates[usize::from(p)]);
    let mut predicates = u.predicate_sources().map(|p| predicate(p.index)).to_vec();
    predicates.retain(|(_, unwritten)| unwritten.lanes != 0);
    let guard = shadow.predicates[usize::from(u.guard().index)];
    let outcomes = outcomes(step, operands, &sources, &predicates);
    let flow = step.execute();
    if flow != Flow::Next {
        return flow;
    }
    shadow.writes(u, operands, exec);
    let all = || sources.iter().chain(&predicates).map(|(row, unwritten)| (*row, *unwritten));
    let Some(origin) = all().map(|(row, unwritten)| origin(row, unwritten)).chain([guard.origin]).next() else {
        return flow;
    };
    // Whether one of the sources is more than a copy. What moves parts about makes nothing new.
    let made = |lanes: u32| if all().any(|(_, unwritten)| unwritten.made != 0) { lanes } else { 0 };
    // Nobody knows whether lanes with an unwritten guard execute the instruction.
    let doubtful = step.parts().0.active() & guard.lanes;
    // A part of a register may come from another one. Such a value counts as written, as in memory.
    let is_source = |row: usize| sources.iter().any(|(source, _)| *source == row);
    let mixes = operands.rows().any(|row| row >= REGISTER as usize && !is_source(row));
    let merges = match () {
        // What has had bits cut out gets those of another register: a field of a structure is set.
        () if operands.is(Does::CombinesBits) && mixes && sources.iter().any(|(_, of)| is_part(of, exec)) => {
            Merges::Bits
        }
        () if operands.is(Does::Moves) || mixes => Merges::Bytes,
        () => Merges::No,
    };
    for (i, row) in operands.written().enumerate() {
        let own = if row < REGISTER as usize { u32::MAX } else { exec };
        let tried = outcomes.as_deref();
        let (differ, copied, bits) = tried.map_or((0, 0, [0; 32]), |tried| compare(tried, i, sources.len(), merges));
        let copied = if operands.is(Does::Moves) { u32::MAX } else { copied };
        shadow.rows[row].note(differ & own, made(differ) | differ & !copied, &bits, origin);
        shadow.rows[row].note(doubtful, doubtful, &ALL_BITS, origin);
    }
    for (i, p) in u
        .predicate_destinations()
        .into_iter()
        .enumerate()
        .filter(|(_, p)| ![pred::SINK, pred::UNIFORM_SINK].contains(p))
    {
        let tried = outcomes.as_deref().unwrap_or_default();
        let first = tried.first().map_or(0, |outcome| outcome.predicates[i]);
        let differ = tried.iter().fold(0, |differ, outcome| differ | outcome.predicates[i] ^ first);
        let own = if p >= pred::UNIFORM { u32::MAX } else { exec };
        shadow.predicates[usize::from(p)].note(differ & own | doubtful, differ & own | doubtful, &ALL_BITS, origin);
    }
    flow
}

/// Whether some of these lanes holds a value of which a part was written.
fn is_part(unwritten: &Unwritten, on: u32) -> bool {
    lanes(unwritten.lanes & on).any(|lane| unwritten.bits[lane as usize] != u32::MAX)
}

/// Where the value of a source comes from: a register that nothing wrote has itself as its origin.
pub(super) fn origin(row: usize, unwritten: Unwritten) -> u32 {
    if unwritten.origin != 0 { unwritten.origin } else { super::init::register(row) }
}

/// The outcomes of all trials, unless the instruction fails in one of them. The warp is as before.
fn outcomes(
    step: &mut Step<'_, '_>,
    operands: &Operands,
    sources: &[Source],
    predicates: &[Source],
) -> Option<Vec<Outcome>> {
    if sources.is_empty() && predicates.is_empty() {
        return None;
    }
    let u = step.uop();
    let touched: Vec<usize> = operands.written().chain(sources.iter().map(|(row, _)| *row)).collect();
    let before: Vec<Lanes> = touched.iter().map(|row| step.row(*row)).collect();
    let before_predicates = step.predicates();
    let written = operands.written().len();
    let is_source = |row: usize| sources.iter().any(|(source, _)| *source == row);
    let equal = operands.rows().find(|row| operands.is(Does::Compares) && !is_source(*row));
    let constant = [u.a(), u.b()].into_iter().find(|s| !s.is_own()).map(|s| step.parts().0.row(s));
    let equal = constant.or_else(|| equal.map(|row| step.row(row))).unwrap_or([0; 32]);
    let mut outcomes = Vec::with_capacity(TRIALS);
    for trial in 0..TRIALS {
        for (k, (row, unwritten)) in sources.iter().enumerate() {
            let mut values = before[written + k];
            for lane in lanes(unwritten.lanes) {
                let x = &mut values[lane as usize];
                let bits = unwritten.bits[lane as usize];
                *x = *x & !bits | value(trial, k, lane, &equal) & bits;
            }
            step.set_row(*row, &values);
        }
        let mut tried = before_predicates;
        for (k, (p, unwritten)) in predicates.iter().enumerate() {
            let (all, set) = (&mut tried[*p & 31], if trial >> k & 1 == 1 { unwritten.lanes } else { 0 });
            *all = *all & !unwritten.lanes | set;
        }
        step.set_predicates(&tried);
        // It only changes what is restored below.
        let flow = step.try_out();
        let rows = operands.written().map(|row| step.row(row)).collect();
        let predicates = u.predicate_destinations().map(|p| step.predicates()[usize::from(p) & 31]);
        touched.iter().zip(&before).for_each(|(row, values)| step.set_row(*row, values));
        step.set_predicates(&before_predicates);
        if flow != Flow::Next {
            return None;
        }
        outcomes.push(Outcome { rows, predicates });
    }
    Some(outcomes)
}

/// Which part of a result must come from another register so that the whole counts as written.
#[derive(Clone, Copy)]
enum Merges {
    No,
    Bytes,
    Bits,
}

impl Merges {
    /// Whether a value counts as written of which these bits depend on what was not.
    fn excuses(self, bits: u32) -> bool {
        match self {
            Merges::No => bits == 0,
            Merges::Bytes => bits.to_le_bytes().contains(&0),
            Merges::Bits => bits != u32::MAX,
        }
    }
}

/// The lanes of a written row that were not the same in all trials, those that were always equal to one of the sources, and the
/// bits of each lane that differ.
fn compare(tried: &[Outcome], row: usize, sources: usize, merges: Merges) -> (u32, u32, Lanes) {
    let (mut differ, mut copied, mut all) = (0, 0, [0; 32]);
    for lane in 0..32 {
        let value_in = |trial: usize| tried[trial].rows[row][lane as usize];
        let bits = (1..TRIALS).fold(0, |bits, trial| bits | value_in(trial) ^ value_in(0));
        let same = merges.excuses(bits);
        let copies = |k: usize| (0..VALUES.len()).all(|trial| value_in(trial) == value(trial, k, lane, &[0; 32]));
        differ |= u32::from(!same) << lane;
        all[lane as usize] = bits;
        copied |= u32::from((0..sources).any(copies)) << lane;
    }
    (differ, copied, all)
}
