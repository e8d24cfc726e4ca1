//! Misuse of barriers.

use super::report::Kind;
use super::{Inspector, Part};
use sm87::Word;
use sm87::isa::{End, Flow};
use sm87::observe::{Env, Group, Image, Uop, Wait, Warp, lanes, named_barrier, waits_at_barrier};

/// Who named a barrier first since it was last complete, and for how many threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    count: u32,
    warp: u32,
    lane: u32,
    pub(crate) at: u32,
}

/// The reports of one place.
const CONDITION: u8 = 0;
const APART: u8 = 1;
const COUNTS: u8 = 2;
const MASK: u8 = 3;
const NEVER: u8 = 4;
const TORN: u8 = 5;
/// The turns after which lanes that go on without others count as such that do not come.
const TURNS: u32 = 4;

/// The barriers of a CTA.
const BARRIERS: u32 = 16;

/// Lanes as a list.
fn list(mask: u32) -> String {
    format!("{mask:#010x}")
}

impl Inspector {
    /// The lanes in `exec` are about to execute a BAR.
    pub(super) fn barrier(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, exec: u32, aligned: bool) {
        let (number, count) = named_barrier(w, u, exec);
        let here = Part {
            what: format!("barrier {number}"),
            warp: w.index(),
            lane: exec.trailing_zeros(),
            at: u.at(),
            block: None,
        };
        if let Some(races) = &mut self.races {
            let begins = number < BARRIERS && !env.is_in_use(number);
            races.order.arrives(w.index() as usize, number as usize, begins, waits_at_barrier(u));
        }
        if !self.shared.checks().sync {
            return;
        }
        if aligned && exec != w.active() {
            self.report(env, Kind::Sync, CONDITION, u.at(), |party| {
                let title = format!(
                    "a barrier under a condition that is not the same for all threads: lanes {} of a warp come to \
                     barrier {number}, lanes {} do not",
                    list(exec),
                    list(w.active() & !exec)
                );
                (title, vec![party(here.clone())])
            });
        }
        let apart = |g: &&Group| aligned && matches!(g.wait, Wait::Cta(_)) && g.pc != u.at();
        let other = w.groups().iter().find(apart);
        if let Some(other) = other {
            self.report_pair(env, Kind::Sync, APART, u.at(), other.pc, |party| {
                let title = format!(
                    "threads of one warp are at different barrier instructions: lanes {} and lanes {}",
                    list(exec),
                    list(other.mask)
                );
                (title, vec![party(here.clone()), party(waiting(w, other))])
            });
        }
        self.compare_counts(w, env, u, exec, (number, count));
    }

    /// All threads must name a barrier with the same number of threads.
    fn compare_counts(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, exec: u32, (number, count): (u32, u32)) {
        let Some(slot) = self.named.get_mut(number as usize) else { return };
        let now = Named { count, warp: w.index(), lane: exec.trailing_zeros(), at: u.at() };
        // A barrier that is not in use has been complete since.
        let first = match *slot {
            Some(first) if env.is_in_use(number) => first,
            _ => *slot.insert(now),
        };
        let threads = env.launch().block.iter().product::<u32>().next_multiple_of(32);
        let part = |who: Named| {
            let what = format!("barrier {number}, {} threads", if who.count == 0 { threads } else { who.count });
            Part { what, warp: who.warp, lane: who.lane, at: who.at, block: None }
        };
        let real = |count: u32| if count == 0 { threads } else { count };
        if real(first.count) != real(count) {
            self.report_pair(env, Kind::Sync, COUNTS, u.at(), first.at, |party| {
                let title = format!("threads name barrier {number} with different numbers of threads");
                (title, vec![party(part(now)), party(part(first))])
            });
        } else if count > threads {
            self.report(env, Kind::Sync, COUNTS, u.at(), |party| {
                let title = format!("barrier {number} waits for {count} threads, and the block has {threads}");
                (title, vec![party(part(now))])
            });
        }
    }

    /// The lanes in `exec` are about to execute a WARPSYNC.
    pub(super) fn warpsync(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, exec: u32) {
        let arrived = exec & w.pred(u.predicate_sources()[0]);
        self.passed_by(w, env, u, arrived);
        let Some(lane) = lanes(arrived).find(|&lane| w.get(u.a(), lane) >> lane & 1 == 0) else { return };
        let mask = w.get(u.a(), lane);
        self.report(env, Kind::Sync, MASK, u.at(), |party| {
            let title = format!("a thread synchronises with lanes {} of its warp, and is not among them", list(mask));
            let what = "synchronisation of a warp".to_owned();
            (title, vec![party(Part { what, warp: w.index(), lane, at: u.at(), block: None })])
        });
    }

    /// Lanes that run together with those that synchronise are named in the mask, and do not come. Compilers synchronise a warp
    /// before an aligned barrier, too.
    fn passed_by(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, arrived: u32) {
        let Some(lane) = lanes(arrived).next() else { return };
        let missing = w.get(u.a(), lane) & w.active() & !arrived;
        if missing == 0 {
            return;
        }
        self.report(env, Kind::Sync, CONDITION, u.at(), |party| {
            let title = format!(
                "a synchronisation under a condition that is not the same for all threads: lanes {} of a warp wait for \
                 lanes {}, which do not come",
                list(arrived),
                list(missing)
            );
            let what = "synchronisation of a warp".to_owned();
            (title, vec![party(Part { what, warp: w.index(), lane, at: u.at(), block: None })])
        });
    }

    /// No warp of the CTA can run now. Lanes of one warp may wait at a barrier for lanes that wait for them.
    pub(crate) fn at_rest(&mut self, env: &Env<'_>, warps: &[Warp]) {
        if !self.shared.checks().sync {
            return;
        }
        for w in warps {
            let at = |wanted: fn(&Wait) -> bool| w.groups().iter().find(move |g| wanted(&g.wait));
            let barrier = at(|wait| matches!(wait, Wait::Cta(_)));
            let apart = at(|wait| matches!(wait, Wait::Converge(_) | Wait::Lanes(_)));
            let (Some(first), Some(second)) = (barrier, apart) else { continue };
            self.report_pair(env, Kind::Sync, APART, first.pc, second.pc, |party| {
                let title =
                    "a barrier that only a part of a warp comes to, while the other part waits for it".to_owned();
                (title, vec![party(waiting(w, first)), party(waiting(w, second))])
            });
        }
    }

    /// A turn of the CTA has ended. A part of a warp may wait at a barrier for the other part, which runs where no way leads to the barrier:
    /// a mistake at once, if all that it does is to wait for memory, and otherwise after several such turns.
    pub(crate) fn torn(&mut self, env: &Env<'_>, warps: &[Warp], idles: bool) {
        if !self.shared.checks().sync {
            return;
        }
        if idles {
            self.at_rest(env, warps);
        }
        let found = warps.iter().filter(|w| w.active() != 0).find_map(|w| Some((w, w.torn()?)));
        let Some((w, (first, rest))) = found.filter(|(_, (first, rest))| !may_reach(env.image(), rest.pc, first.pc))
        else {
            self.torn = (None, 0);
            return;
        };
        let place = Some((w.index(), first.mask, first.pc));
        let turns = if self.torn.0 == place { self.torn.1 + 1 } else { 1 };
        self.torn = (place, turns);
        if !idles && turns < TURNS {
            return;
        }
        self.report(env, Kind::Sync, TORN, first.pc, |party| {
            let title = format!(
                "a barrier that only a part of a warp comes to: lanes {} wait for lanes {} of their warp, which go on without them{}",
                list(first.mask),
                list(rest.mask),
                if idles { " and wait for memory" } else { "" }
            );
            let what = format!("lanes {} of warp {} go on", list(rest.mask), w.index());
            let others = Part { what, warp: w.index(), lane: rest.mask.trailing_zeros(), at: rest.pc, block: None };
            (title, vec![party(waiting(w, &first)), party(others)])
        });
    }

    /// No warp of the CTA can run, although some have not ended. Reports the first barrier at which lanes wait.
    pub(crate) fn stuck(&mut self, env: &Env<'_>, warps: &[Warp]) {
        if !self.shared.checks().sync {
            return;
        }
        let groups = || warps.iter().flat_map(|w| w.groups().iter().map(move |g| (w, g)));
        let waits = |(_, g): &(&Warp, &Group)| matches!(g.wait, Wait::Cta(_) | Wait::Lanes(_) | Wait::Alone(_));
        let Some((w, first)) = groups().find(waits) else { return };
        let missing = groups().filter(|(_, g)| g.wait != first.wait || g.pc != first.pc).take(4);
        let parts: Vec<Part> = missing.map(|(w, g)| waiting(w, g)).collect();
        let gone: Vec<_> = warps.iter().filter(|w| w.done()).map(|w| w.index().to_string()).collect();
        self.report(env, Kind::Sync, NEVER, first.pc, |party| {
            let mut title = format!("{}: some threads never come", waiting(w, first).what);
            if !gone.is_empty() {
                title += &format!("; these warps have exited: {}", gone.join(", "));
            }
            (title, std::iter::once(waiting(w, first)).chain(parts).map(party).collect())
        });
    }
}

/// A group of lanes that waits.
fn waiting(w: &Warp, group: &Group) -> Part {
    let mask = list(group.mask);
    let what = match group.wait {
        Wait::Cta(n) => format!("lanes {mask} of warp {} wait at barrier {n}", w.index()),
        Wait::Lanes(want) | Wait::Alone(want) => {
            format!("lanes {mask} of warp {} wait for lanes {} of it", w.index(), list(want))
        }
        Wait::Converge(_) => format!("lanes {mask} of warp {} wait to converge with others", w.index()),
        Wait::Turn => format!("lanes {mask} of warp {} wait for their turn", w.index()),
    };
    Part { what, warp: w.index(), lane: group.mask.trailing_zeros(), at: group.pc, block: None }
}

/// Whether lanes at one instruction may come to another. Where a jump or a return goes that is not in the word is not known, so that they
/// may come anywhere from there.
fn may_reach(image: &Image, from: u32, to: u32) -> bool {
    let (mut seen, mut todo) = (vec![false; image.len() as usize], vec![from]);
    while let Some(at) = todo.pop() {
        let Some(known) = seen.get_mut(at as usize) else { return true };
        if at == to {
            return true;
        }
        if std::mem::replace(known, true) {
            continue;
        }
        let (word, Some(row)) = (Word(image.word(at)), image.row(at)) else { return true };
        match (row.flow, image.jumps_to(at)) {
            (_, Some(target)) => todo.push(target),
            (Flow::Next | Flow::Ends(End::Exit), None) => {}
            _ => return true,
        }
        if !row.flow.ends(word) {
            todo.push(at + 1);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use sm87::observe::find;

    #[test]
    fn the_ways_from_one_instruction_to_another() {
        // @P0 BRA to the instruction after the next; EXIT; NOP; EXIT.
        let exit = Word::new(0x794d, 0x000f_ea00_0380_0000);
        let nop = Word::new(0x7918, 0x000f_c000_0000_0000);
        let program = [Word::new(0x0000_0010_0000_0947, 0x000f_ea00_0380_0000), exit, nop, exit];
        let image = find(0, &mut |n| usize::try_from(n).ok().and_then(|n| program.get(n).copied()));
        assert_eq!([0, 1, 2, 3].map(|to| may_reach(&image, 0, to)), [true; 4]);
        assert!(!may_reach(&image, 1, 2) && !may_reach(&image, 2, 1) && may_reach(&image, 2, 3));
    }
}
