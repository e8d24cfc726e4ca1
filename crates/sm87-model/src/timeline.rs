//! The time of one warp, which issues its instructions in order, as if no other warp needed the same units.

use super::ledger::{Stall, Waited};
use super::segment::Event;
use super::step::{NONE, Step};

/// The groups of copies that are remembered. Programs have fewer on the way.
const GROUPS: usize = 8;

/// Where a warp is, in cycles since its CTA began.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// When it can issue its next instruction.
    at: u64,
    /// When what the scoreboards stand for is done.
    scoreboards: [u64; 6],
    /// What each of them stands for. Only a profile knows it.
    reasons: [Stall; 6],
    /// When the copies that are in no group are done, and the last groups, the newest first.
    copies: u64,
    groups: [u64; GROUPS],
    /// The segment that follows the last one, if nothing else can.
    pub next: Option<u32>,
    /// How often it came to each barrier.
    pub arrivals: [u32; 16],
    /// The barrier at which it waits, and which of the two phases of it.
    pub waits: Option<(usize, usize)>,
    /// The segment that waits there, and the lanes that executed the last segment, for a profile.
    pub waits_in: u32,
    pub lanes: u32,
}

impl Timeline {
    /// Issues an instruction whose result takes `latency` cycles. Returns when that was.
    pub(super) fn issue(&mut self, step: &Step, latency: u64) -> u64 {
        let begun = self.begin(step.waits, (step.writes, latency), (step.reads, step.operands));
        self.at = begun + u64::from(step.stall);
        begun
    }

    /// Waits for scoreboards and sets others: until the result is there, and until the operands are read. Returns when that was.
    fn begin(&mut self, waits: u8, writes: (u8, u64), reads: (u8, u16)) -> u64 {
        self.wait_for(waits);
        self.sets(writes, reads);
        self.at
    }

    /// Sets scoreboards for an instruction that is issued now, each with the cycles until that is done for which it stands.
    #[inline(always)]
    fn sets(&mut self, (writes, latency): (u8, u64), (reads, operands): (u8, u16)) {
        self.set(writes, self.at + latency);
        self.set(reads, self.at + latency.min(operands.into()));
    }

    /// Issues instructions whose latencies are known, and that take `tail` cycles after the last one of these.
    pub(super) fn run(&mut self, events: &[Event], tail: u32) {
        for event in events {
            self.at += u64::from(event.delay);
            self.begin(event.waits, (event.writes, event.latency.into()), (event.reads, event.operands));
        }
        self.at += u64::from(tail);
    }

    /// The same as [`Timeline::run`], and adds the cycles for which each of them waits.
    pub(super) fn run_noted(&mut self, events: &[Event], tail: u32, waited: &mut [Waited]) {
        for (event, waited) in events.iter().zip(waited) {
            self.at += u64::from(event.delay);
            let (at, why) = (self.at, self.reason(event.waits));
            let done = self.begin(event.waits, (event.writes, event.latency.into()), (event.reads, event.operands));
            waited[why as usize] += done - at;
            self.stands_for(event.writes, Stall::Unit);
            self.stands_for(event.reads, Stall::Unit);
        }
        self.at += u64::from(tail);
    }

    /// When the next instruction can be issued, if it waits for nothing.
    pub(super) fn now(&self) -> u64 {
        self.at
    }

    /// What the scoreboard stands for that is done last of those that are waited for, one bit each.
    pub(super) fn reason(&self, waits: u8) -> Stall {
        let waited = (0..self.scoreboards.len()).filter(|board| waits >> board & 1 == 1);
        waited.max_by_key(|&board| self.scoreboards[board]).map_or(Stall::Unit, |board| self.reasons[board])
    }

    /// Notes what a scoreboard stands for.
    pub(super) fn stands_for(&mut self, scoreboard: u8, why: Stall) {
        if let Some(reason) = self.reasons.get_mut(usize::from(scoreboard)) {
            *reason = why;
        }
    }

    /// Waits for scoreboards, one bit each.
    fn wait_for(&mut self, mut waits: u8) {
        while waits != 0 {
            let done = self.scoreboards.get(waits.trailing_zeros() as usize).copied();
            self.at = self.at.max(done.unwrap_or(0));
            waits &= waits - 1;
        }
    }

    /// Notes that something is done at a time for which a scoreboard stands.
    pub(super) fn set(&mut self, scoreboard: u8, done: u64) {
        if scoreboard != NONE
            && let Some(known) = self.scoreboards.get_mut(usize::from(scoreboard))
        {
            *known = done.max(*known);
        }
    }

    /// Lets the warp wait.
    pub(super) fn wait_until(&mut self, time: u64) {
        self.at = self.at.max(time);
    }

    /// Notes a copy that is done at a time.
    pub(super) fn copy(&mut self, done: u64) {
        self.copies = self.copies.max(done);
    }

    /// Makes a group of all copies so far. Returns when it is done.
    pub(super) fn group(&mut self) -> u64 {
        self.groups.rotate_right(1);
        self.groups[0] = self.copies;
        self.copies
    }

    /// Waits for all groups but the newest ones, or for a scoreboard if nothing was copied.
    pub(super) fn depends(&mut self, scoreboard: u8, but: u8) {
        let group = self.groups.get(usize::from(but)).copied().unwrap_or(0);
        let all = self.scoreboards.get(usize::from(scoreboard)).copied().filter(|_| but == 0);
        self.wait_until(group.max(all.unwrap_or(0)));
    }

    /// When everything is done that it has begun.
    pub(super) fn end(&self) -> u64 {
        self.scoreboards.iter().fold(self.at.max(self.copies), |end, &done| end.max(done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Step = Step::PLAIN;

    #[test]
    fn a_warp_stalls_and_waits_for_scoreboards() {
        let mut warp = Timeline::default();
        assert_eq!(warp.issue(&Step { stall: 4, ..STEP }, 4), 0);
        assert_eq!(warp.issue(&Step { writes: 2, ..STEP }, 33), 4);
        assert_eq!(warp.issue(&STEP, 4), 5, "what does not wait goes on");
        assert_eq!(warp.issue(&Step { waits: 1 << 2, ..STEP }, 4), 37);
        assert_eq!(warp.end(), 38);
        assert_eq!(warp.issue(&Step { reads: 3, operands: 9, ..STEP }, 200), 38);
        assert_eq!(
            warp.issue(&Step { waits: 1 << 3, ..STEP }, 4),
            47,
            "the operands are read before the result is there"
        );
    }

    #[test]
    fn many_instructions_take_as_long_together_as_alone() {
        let steps = [(3, 0, 1, 33), (2, 0, NONE, 4), (5, 0, NONE, 4), (1, 1 << 1, 0, 20), (4, 1 << 0, NONE, 4)];
        let mut alone = Timeline::default();
        let mut events = Vec::new();
        let mut delay = 0;
        for (stall, waits, writes, latency) in steps {
            alone.issue(&Step { stall, waits, writes, ..STEP }, latency);
            if waits != 0 || writes != NONE {
                events.push(Event { delay, waits, writes, reads: NONE, latency: latency as u16, operands: 0 });
                delay = 0;
            }
            delay += u32::from(stall);
        }
        let mut together = Timeline::default();
        together.run(&events, delay);
        assert_eq!((together.at, together.end()), (alone.at, alone.end()));
        let (mut noted, mut waited) = (Timeline::default(), vec![Waited::default(); events.len()]);
        noted.run_noted(&events, delay, &mut waited);
        assert_eq!((noted.at, noted.end()), (together.at, together.end()));
        let all: u64 = waited.iter().flatten().sum();
        assert_eq!(
            all + steps.iter().map(|step| u64::from(step.0)).sum::<u64>(),
            noted.at,
            "all time is accounted for"
        );
        assert_eq!(together.at, 33 + 20 + 4);
    }

    #[test]
    fn groups_of_copies_are_waited_for_from_the_oldest_on() {
        let mut warp = Timeline::default();
        for done in [100, 200, 300] {
            warp.copy(done);
            warp.group();
        }
        for (but, time) in [(2, 100), (1, 200), (0, 300)] {
            warp.depends(0, but);
            assert_eq!(warp.at, time);
        }
    }
}
