//! The phases of a CTA: from one barrier of all its warps to the next, or to the end.
//!
//! Warps are executed one after another, as if each had the units of its SM alone. A phase takes at least as long as the busiest unit needs for
//! all warps of the CTA, so nobody goes on after a barrier before the units have done what was asked of them until then.

use super::gpu::{Busy, busiest};

/// The barriers of a CTA.
const BARRIERS: usize = 16;

/// A phase of a barrier that warps have come to.
#[derive(Clone, Copy, Default)]
struct Meeting {
    /// When the last of them came.
    last: u64,
    /// How many came. 0 means that the first of them has gone on already.
    arrived: u32,
}

/// The barriers of a CTA, and the phase that it is in.
#[derive(Default)]
pub(super) struct Phases {
    /// Those of each barrier with even and with odd numbers. Before one with the next number of the same kind begins, all warps have gone on.
    meetings: [[Meeting; 2]; BARRIERS],
    /// When the phase began, and for how long each unit was busy until then.
    begun: u64,
    spent: Busy,
}

impl Phases {
    /// A warp comes to a barrier.
    pub(super) fn arrives(&mut self, (barrier, parity): (usize, usize), at: u64) {
        let meeting = &mut self.meetings[barrier % BARRIERS][parity % 2];
        meeting.last = meeting.last.max(at);
        meeting.arrived += 1;
    }

    /// When one of the `warps` of the CTA goes on after a barrier. `busy` is for how long the units were busy so far, and `fill` what comes from the
    /// L2 cache: see [`busiest`].
    pub(super) fn passes(
        &mut self,
        (barrier, parity): (usize, usize),
        warps: usize,
        (busy, fill): (&Busy, u64),
    ) -> u64 {
        let meeting = self.meetings[barrier % BARRIERS][parity % 2];
        let mut last = meeting.last;
        if meeting.arrived as usize == warps {
            last = last.max(self.units(busy, fill));
            (self.begun, self.spent) = (last, *busy);
        }
        self.meetings[barrier % BARRIERS][parity % 2] = Meeting { last, arrived: 0 };
        last
    }

    /// When the units have done what they were asked for, which is `busy` since the CTA began.
    pub(super) fn units(&self, busy: &Busy, fill: u64) -> u64 {
        let mut since = *busy;
        for (now, before) in since.iter_mut().flatten().zip(self.spent.iter().flatten()) {
            *now -= before;
        }
        self.begun + busiest(&since, fill).1
    }
}

#[cfg(test)]
mod tests {
    use super::super::gpu::WHOLE_FILL;
    use super::super::machine::Unit;
    use super::*;

    #[test]
    fn nobody_passes_before_the_units_have_done_what_all_warps_asked_for() {
        let (mut phases, mut busy) = (Phases::default(), Busy::default());
        let mut meet = |asked: u64, at: [u64; 2]| {
            busy[0][Unit::LoadStore as usize] += asked;
            at.into_iter().for_each(|at| phases.arrives((0, 1), at));
            [(); 2].map(|()| phases.passes((0, 1), 2, (&busy, WHOLE_FILL)))
        };
        assert_eq!(meet(100, [40, 60]), [100, 100], "loads take longer than the warps by themselves");
        assert_eq!(meet(100, [120, 230]), [230, 230], "a warp takes longer than the loads of this phase");
        assert_eq!(meet(50, [240, 250]), [280, 280]);
        assert_eq!(phases.units(&busy, WHOLE_FILL), 280, "nothing was asked for since");
    }

    #[test]
    fn a_barrier_of_some_warps_ends_no_phase() {
        let (mut phases, mut busy) = (Phases::default(), Busy::default());
        busy[0][Unit::LoadStore as usize] = 100;
        phases.arrives((3, 0), 10);
        assert_eq!(phases.passes((3, 0), 2, (&busy, WHOLE_FILL)), 10);
        assert_eq!(phases.units(&busy, WHOLE_FILL), 100);
    }
}
