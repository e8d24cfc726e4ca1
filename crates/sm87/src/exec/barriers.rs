//! The barriers of a CTA.

use super::warp::{Warp, lanes};

/// The state of a barrier in use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Barrier {
    used: bool,
    /// The number of threads that must arrive. 0 stands for all threads that live.
    count: u32,
    /// The number of warps that arrived without waiting.
    arrivals: u32,
    all: Option<bool>,
    any: bool,
    population: u32,
    reduction: u32,
}

impl Barrier {
    /// Adds the predicates of lanes to the reduction: 0 is a population count, 1 is and, 2 is or.
    pub(crate) fn reduce(&mut self, op: u32, p: u32, lanes: u32) {
        self.reduction = op;
        self.population += (p & lanes).count_ones();
        self.all = Some(self.all.unwrap_or(true) && p & lanes == lanes);
        self.any |= p & lanes != 0;
    }

    fn result(&self) -> u32 {
        let mask = |b: bool| u32::from(b).wrapping_neg();
        match self.reduction {
            0 => self.population,
            1 => mask(self.all.unwrap_or(true)),
            _ => mask(self.any),
        }
    }

    /// Whether all have come that it waits for, if `waiting` of the `alive` warps wait at it.
    fn is_complete(&self, waiting: u32, alive: u32) -> bool {
        match self.count {
            0 => waiting > 0 && waiting == alive,
            count => (waiting + self.arrivals) * 32 >= count,
        }
    }
}

/// What happened at the barriers of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    None,
    /// Warps go on, or have arrived.
    Some,
    /// All warps go on with all of their lanes together.
    One,
}

/// All barriers of a CTA.
#[derive(Default)]
pub(crate) struct Barriers {
    all: [Barrier; 16],
    /// Those that warps of the CTA have named, one bit for each.
    named: u32,
    /// Whether a warp arrived at one without waiting there.
    news: bool,
}

impl Barriers {
    /// Notes that a warp names a barrier, with a number of threads or 0.
    pub(crate) fn name(&mut self, n: usize, count: u32) -> &mut Barrier {
        self.named |= 1 << n;
        let barrier = &mut self.all[n];
        (barrier.used, barrier.count) = (true, count);
        barrier
    }

    /// Notes that a warp arrives at a barrier and does not wait there.
    pub(crate) fn arrive(&mut self, n: usize) {
        self.all[n].arrivals += 1;
        self.news = true;
    }

    /// Whether a warp has named a barrier since it was last complete.
    pub(crate) fn is_in_use(&self, n: u32) -> bool {
        self.all.get(n as usize).is_some_and(|barrier| barrier.used)
    }

    /// Begins with another CTA, whose warps have named none.
    pub(crate) fn clear(&mut self) {
        lanes(std::mem::take(&mut self.named)).for_each(|n| self.all[n as usize] = Barrier::default());
    }

    /// Lets the warps continue that wait at barriers to which all have come. Returns what happened.
    #[inline(always)]
    pub(crate) fn complete(&mut self, warps: &mut [Warp]) -> Completed {
        if self.complete_one(warps) {
            return Completed::One;
        }
        if self.complete_all(warps) { Completed::Some } else { Completed::None }
    }

    /// Does so where all warps wait as a whole at one barrier of all threads, which is the usual case. No other barrier is complete then,
    /// unless warps have arrived at one without waiting there.
    #[inline(always)]
    fn complete_one(&mut self, warps: &mut [Warp]) -> bool {
        let Some(n) = warps.first().and_then(Warp::stopped_at) else { return false };
        let is_usual = self.all[usize::from(n)].count == 0 && !self.news;
        if !is_usual || !warps.iter().all(|w| w.stopped_at() == Some(n)) {
            return false;
        }
        self.finish(n, warps.iter_mut());
        true
    }

    /// Ends the use of a barrier. Returns its reduction, which the warps get that waited at it.
    #[inline(always)]
    pub(crate) fn end(&mut self, n: u8) -> u32 {
        std::mem::take(&mut self.all[usize::from(n)]).result()
    }

    /// Does so, and lets the warps continue.
    #[inline(always)]
    fn finish<'w>(&mut self, n: u8, warps: impl Iterator<Item = &'w mut Warp>) {
        let result = self.end(n);
        for w in warps {
            w.reduction = result;
            w.release(n);
        }
    }

    /// Does so at each barrier.
    fn complete_all(&mut self, warps: &mut [Warp]) -> bool {
        let mut moved = std::mem::take(&mut self.news);
        for n in lanes(self.named).map(|n| n as u8) {
            let barrier = self.all[usize::from(n)];
            if !barrier.used {
                continue;
            }
            let here = |w: &Warp| !w.done() && w.waiting_at(n) == w.live;
            let (mut waiting, mut alive) = (0, 0);
            for w in warps.iter() {
                waiting += u32::from(here(w));
                alive += u32::from(!w.done());
            }
            if !barrier.is_complete(waiting, alive) {
                continue;
            }
            self.finish(n, warps.iter_mut().filter(|w| here(w)));
            moved = true;
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_to_which_warps_only_arrive_is_complete_while_all_wait_at_another() {
        let (mut barriers, mut warps) = (Barriers::default(), [0, 1].map(Warp::new));
        barriers.name(1, 64);
        barriers.name(0, 0);
        for w in &mut warps {
            (w.live, w.active) = (u32::MAX, u32::MAX);
            barriers.arrive(1);
            assert!(w.stops_at(0, u32::MAX, 5));
        }
        assert_eq!(barriers.complete(&mut warps), Completed::Some);
        assert!(!barriers.is_in_use(0) && !barriers.is_in_use(1));
        assert!(warps.iter().all(|w| (w.active, w.pc) == (u32::MAX, 6)));
    }
}
