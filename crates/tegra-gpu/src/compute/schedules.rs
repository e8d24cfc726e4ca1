//! Runs a launch in other schedules, with the memory put back between, and reports where its results are others.

use sm87::observe::Observer;
use sm87::{Launch, Limits, RunStats};
use sm87_check::{Checker, Outcome};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegra_hw::Schedules;

/// A schedule may need so many times the instructions of the usual one, and so many more, before it counts as one without an end.
const LONGER: (u64, u64) = (16, 1 << 22);

/// Runs a launch that has ended well in all other schedules. `usual` has observed it. Memory then holds again what the launch has left.
pub(super) fn compare(schedules: Schedules, checker: &Checker, launch: &Launch, usual: &Outcome, stats: RunStats) {
    let results = usual.results(launch);
    let limits = &launch.limits;
    let stops = || limits.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
    for number in (1..=u64::from(schedules.others)).take_while(|_| !stops()) {
        let budget = limits.budget.min(stats.warp_instructions.saturating_mul(LONGER.0).saturating_add(LONGER.1));
        let schedule = Some(schedules.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(number));
        let limits = Limits { budget, schedule, progress: None, told: None, ..limits.clone() };
        let launch = Launch { limits, table: Arc::clone(&launch.table), ..launch.clone() };
        let (other, which) =
            (Outcome::default(), format!("order {number} of {} with the seed {}", schedules.others, schedules.seed));
        usual.put_back(&launch);
        let ended = sm87::run_observed(&launch, &[&other as &dyn Observer]);
        match ended {
            _ if stops() => {}
            Err(stopped) => usual.report_failure(checker, &stopped.fault, &which),
            Ok(_) => {
                if let Some(found) = usual.differs(&results, &other, &launch) {
                    usual.report(checker, &launch, &found, &which);
                }
            }
        }
        other.put_back(&launch);
        usual.put_again(&launch, &results);
    }
}
