//! The environment variables of the project, and what is said of a variable that looks like one of them and is none.
//!
//! A setting that is misspelt would change nothing, and nobody would notice.

use crate::say_as;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

/// Every variable that the library, the Python package or the simulator reads. docs/settings.md says what they mean.
pub const NAMES: [&str; 31] = [
    "TEGRARM_BACKEND",
    "TEGRARM_COMPILED",
    "TEGRARM_CPU_CACHE",
    "TEGRARM_HEAP_SIZE",
    "TEGRARM_LEAKS",
    "TEGRARM_LIB",
    "TEGRARM_LOG",
    "TEGRARM_PRINTF_SIZE",
    "TEGRARM_RECORD",
    "TEGRARM_REPORT",
    "TEGRARM_SIM_CHECK",
    "TEGRARM_SIM_CHECK_EXIT",
    "TEGRARM_SIM_CHIP",
    "TEGRARM_SIM_CLOCK",
    "TEGRARM_SIM_CLOCK_RAMP_MS",
    "TEGRARM_SIM_FAULTS",
    "TEGRARM_SIM_HOST_LAUNCH_US",
    "TEGRARM_SIM_L4T",
    "TEGRARM_SIM_NVMAP",
    "TEGRARM_SIM_POWER",
    "TEGRARM_SIM_PROFILE",
    "TEGRARM_SIM_RUN",
    "TEGRARM_SIM_SCHEDULES",
    "TEGRARM_SIM_SEED",
    "TEGRARM_SIM_STATS",
    "TEGRARM_SIM_STEP",
    "TEGRARM_SIM_STRICT",
    "TEGRARM_SIM_TRANSLATE",
    "TEGRARM_SUPPRESSIONS",
    TOLD,
    "TEGRARM_TRACE_NAMES",
];
/// The beginning of our variables.
const OURS: &str = "TEGRARM_";
/// The beginning of those of tests, which each test names for itself.
const OF_TESTS: &str = "TEGRARM_TEST_";
/// The variable with the unknown names of which the user has been told. Whoever tells sets it for the programs that it starts.
pub const TOLD: &str = "TEGRARM_TOLD";
/// What only builds of this project read.
const OF_BUILDS: &str = "TEGRARM_WHEEL_PLATFORM";
/// A name with at most this many letters wrong is taken for a misspelt one.
const NEAR: usize = 3;

/// Tells the user once of each variable that looks like a setting and is none. `library` begins the sentences.
///
/// Returns the names of which the user has been told now or before, for [`TOLD`].
pub fn tell_of_unknown(library: &str) -> String {
    let told = std::env::var(TOLD).unwrap_or_default();
    let mut all: Vec<String> = told.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    for name in unknown(std::env::vars_os().map(|(name, _)| name)) {
        if !all.contains(&name) {
            say_as(library, &sentence(&name));
            all.push(name);
        }
    }
    all.join(",")
}

/// [`tell_of_unknown`], if it was not called in this process before.
pub fn tell_of_unknown_once(library: &str) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::AcqRel) {
        drop(tell_of_unknown(library));
    }
}

/// The names that look like settings and are none, in order.
fn unknown(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut found: Vec<String> = names.filter_map(|name| name.into_string().ok()).filter(|n| is_unknown(n)).collect();
    found.sort();
    found
}

/// Whether a name looks like a setting and is none. That is every name with our beginning, and one whose beginning has one letter
/// wrong: other programs have variables that begin with `TEGRA`.
fn is_unknown(name: &str) -> bool {
    if name.starts_with(OURS) {
        return !name.starts_with(OF_TESTS) && name != OF_BUILDS && !NAMES.contains(&name);
    }
    name.len() > OURS.len() && nearest(name).is_some_and(|(_, wrong)| wrong <= 1)
}

/// The setting that a name was probably meant to be, and how many letters of it are wrong. A word that was left out, as in
/// `TEGRARM_CHIP`, counts as one.
fn nearest(name: &str) -> Option<(&'static str, usize)> {
    let upper = name.to_ascii_uppercase();
    let rest = upper.strip_prefix(OURS).map(|rest| format!("_{rest}"));
    let wrong = |known: &str| match &rest {
        Some(rest) if rest.len() > 1 && known.ends_with(rest.as_str()) && known.len() > upper.len() => 1,
        _ => strsim::osa_distance(&upper, known),
    };
    let near = NAMES.iter().map(|&known| (known, wrong(known))).min_by_key(|&(_, wrong)| wrong);
    near.filter(|&(_, wrong)| wrong <= NEAR.min(upper.len().saturating_sub(OURS.len()) / 2))
}

fn sentence(name: &str) -> String {
    match nearest(name) {
        Some((known, _)) => format!("there is no setting {name}, so it changes nothing: is {known} meant?"),
        None => format!("there is no setting {name}, so it changes nothing (docs/settings.md lists them all)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said_of(names: &[&str]) -> Vec<String> {
        unknown(names.iter().map(OsString::from)).iter().map(|name| sentence(name)).collect()
    }

    #[test]
    fn a_misspelt_name_is_told_with_the_nearest_known_one() {
        for (misspelt, known) in [
            ("TEGRARM_BACKED", "TEGRARM_BACKEND"),
            ("TEGRARM_SIM_CLOKC", "TEGRARM_SIM_CLOCK"),
            ("TEGRARM_SIM_STAT", "TEGRARM_SIM_STATS"),
            ("TEGRARM_CHIP", "TEGRARM_SIM_CHIP"),
            ("tegrarm_log", "TEGRARM_LOG"),
            ("TEGRAM_RECORD", "TEGRARM_RECORD"),
            ("TEGARRM_SIM_CHIP", "TEGRARM_SIM_CHIP"),
        ] {
            let said = said_of(&[misspelt]);
            assert!(said.len() == 1 && said[0].contains(misspelt) && said[0].contains(known), "{said:?}");
        }
        for strange in ["TEGRARM_WHATEVER_THIS_IS", "TEGRARM_X", "TEGRARM_"] {
            assert!(said_of(&[strange])[0].contains("docs/settings.md"), "{strange}");
        }
    }

    #[test]
    fn settings_variables_of_tests_and_those_of_other_programs_are_silent() {
        assert!(said_of(&NAMES).is_empty() && said_of(&[OF_BUILDS]).is_empty());
        let others = ["TEGRARM_TEST_ANYTHING", "TEGRA_LOG", "TEGRA_RELEASE", "HOME", "LIB", "TEGRARM", "LOG", ""];
        assert!(said_of(&others).is_empty(), "{:?}", said_of(&others));
    }

    #[test]
    fn the_names_are_in_order_and_none_is_there_twice() {
        assert!(NAMES.is_sorted_by(|a, b| a < b));
    }
}
