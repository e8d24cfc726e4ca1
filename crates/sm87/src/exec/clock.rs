//! Time as programs see it: it passes with the instructions that a CTA issues, and while it sleeps. It does not depend on
//! the machine that the engine runs on, so a program finds the same times every time.

/// The GPU's clock, megahertz.
const MHZ: u64 = 1300;
/// Cycles that a look at a clock takes beside its own issue.
const LOOK: u64 = 32;
/// Most nanoseconds that NANOSLEEP sleeps.
const LONGEST: u32 = 1_000_000;

/// The clock of the SM that a CTA is on, as the CTA sees it: a cycle for each instruction, and those that passed otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// Wraps: the CTA's count of instructions does not start at zero.
    offset: u64,
}

impl Clock {
    /// One that shows `cycles` now, when `issued` instructions have been issued.
    pub(crate) fn new(cycles: u64, issued: u64) -> Clock {
        Clock { offset: cycles.wrapping_sub(issued) }
    }

    /// What it shows when `issued` instructions have been issued.
    pub(crate) fn at(self, issued: u64) -> u64 {
        self.offset.wrapping_add(issued)
    }

    /// Time passes.
    pub(crate) fn pass(&mut self, cycles: u64) {
        self.offset = self.offset.wrapping_add(cycles);
    }

    /// Somebody looks at it.
    pub(crate) fn look(&mut self) {
        self.pass(LOOK);
    }
}

/// Nanoseconds, in the steps of the GPU's timer.
pub(crate) fn nanoseconds(cycles: u64) -> u64 {
    (u128::from(cycles) * 1000 / u128::from(MHZ)) as u64 & !0x1f
}

/// Cycles that a sleep of `ns` takes. PTX allows up to twice as long, and what the timer shows is less by a step at most.
pub(crate) fn sleep(ns: u32) -> u64 {
    let ns = u64::from(ns.min(LONGEST));
    (ns + ns / 4) * MHZ / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_takes_at_least_what_was_asked_and_less_than_twice() {
        for ns in [0, 1, 20, 63, 100, 1000, 999_999, 1_000_000, u32::MAX] {
            let asked = u64::from(ns.min(1_000_000));
            let cycles = sleep(ns);
            assert!(cycles >= asked && cycles <= 2 * asked * MHZ / 1000, "{ns}: {cycles} cycles");
        }
        assert_eq!(nanoseconds(1300), 992);
    }

    #[test]
    fn clocks_pass_with_instructions_and_otherwise() {
        let mut clock = Clock::new(1000, 5_000_000);
        assert_eq!(clock.at(5_000_001), 1001);
        clock.pass(10);
        clock.look();
        assert_eq!(clock.at(5_000_001), 1011 + LOOK);
    }
}
