//! What the checker looks for in kernels, and what it has found and nobody has read yet.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_lock::Mutex;

/// What is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Accesses outside of buffers, shared memory and local frames.
    pub memory: bool,
    /// Values that come from memory or registers that were never written.
    pub init: bool,
    /// Accesses to one place that nothing orders.
    pub race: bool,
    /// All of them that PTX's memory model has, lane by lane. It is a kind of `race`.
    pub strict: bool,
    /// Misuse of barriers.
    pub sync: bool,
    /// Results that depend on the order of blocks and warps: each launch runs in other schedules, too.
    pub order: bool,
    /// Accesses of the processor to memory that the GPU may still use. With it, `race` is strict.
    pub cpu: bool,
}

impl Checks {
    /// The names of the checks.
    pub const NAMES: [&'static str; 7] = ["memory", "init", "race", "race=strict", "sync", "order", "cpu"];

    /// Whether anything is looked for.
    pub fn any(self) -> bool {
        self != Checks::default()
    }

    fn switch(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "memory" => Some(&mut self.memory),
            "init" => Some(&mut self.init),
            "race" => Some(&mut self.race),
            "race=strict" => Some(&mut self.strict),
            "sync" => Some(&mut self.sync),
            "order" => Some(&mut self.order),
            "cpu" => Some(&mut self.cpu),
            _ => None,
        }
    }
}

impl fmt::Display for Checks {
    /// Writes the names as they are read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut checks = Checks { race: self.race && !self.strict, ..*self };
        let on = |name: &&&str| checks.switch(name).is_some_and(|on| *on);
        let names: Vec<_> = Checks::NAMES.iter().filter(on).copied().collect();
        f.write_str(&names.join(","))
    }
}

/// The other schedules in which each launch runs, if results that depend on them are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedules {
    /// How many there are.
    pub others: u32,
    /// They follow from this number.
    pub seed: u64,
}

impl Default for Schedules {
    fn default() -> Schedules {
        Schedules { others: 4, seed: 1 }
    }
}

/// A name that is no check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCheck(pub String);

impl fmt::Display for UnknownCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no check {:?}; the checks are {}, divided by commas", self.0, Checks::NAMES.join(", "))
    }
}

impl std::error::Error for UnknownCheck {}

impl FromStr for Checks {
    type Err = UnknownCheck;

    /// Reads names that are divided by commas. An empty text means no check.
    fn from_str(text: &str) -> Result<Checks, UnknownCheck> {
        let mut checks = Checks::default();
        if text.is_empty() {
            return Ok(checks);
        }
        for name in text.split(',').map(str::trim) {
            *checks.switch(name).ok_or_else(|| UnknownCheck(name.to_owned()))? = true;
        }
        // What the processor's accesses are compared with is what `race=strict` knows of a launch.
        checks.strict |= checks.cpu && checks.race;
        checks.race |= checks.strict;
        Ok(checks)
    }
}

/// The reports that nobody has read yet. Each is one line, whose parts are divided by tabs.
#[derive(Debug, Default)]
pub struct CheckLog {
    lines: Mutex<Vec<String>>,
    suppressed: AtomicU64,
}

impl CheckLog {
    /// Adds a report.
    pub fn note(&self, line: String) {
        self.lines.lock().push(line);
    }

    /// Who reads the reports says that he has left out so many of them, because a list of known ones has them.
    pub fn suppress(&self, count: u64) {
        self.suppressed.fetch_add(count, Ordering::Relaxed);
    }

    /// How many reports were left out.
    pub fn suppressed(&self) -> u64 {
        self.suppressed.load(Ordering::Relaxed)
    }

    /// Gives out the reports that were not given out before, one per line.
    pub fn take(&self) -> String {
        std::mem::take(&mut *self.lines.lock()).into_iter().map(|line| line + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_others_refused() {
        assert_eq!("".parse(), Ok(Checks::default()));
        assert_eq!("sync".parse(), Ok(Checks { sync: true, ..Checks::default() }));
        let every = Checks::NAMES.join(", ").parse::<Checks>().unwrap();
        assert!(
            every.any()
                && every.memory
                && every.init
                && every.race
                && every.strict
                && every.sync
                && every.order
                && every.cpu
        );
        assert_eq!(every.to_string(), "memory,init,race=strict,sync,order,cpu", "strict is a kind of race");
        assert_eq!(every.to_string().parse(), Ok(every));
        let plain = "race".parse::<Checks>().unwrap();
        assert!(plain.race && !plain.strict && plain.to_string() == "race");
        assert_eq!("race,cpu".parse::<Checks>().unwrap().to_string(), "race=strict,cpu");
        assert_eq!("cpu".parse(), Ok(Checks { cpu: true, ..Checks::default() }));
        let error = "memory,speed".parse::<Checks>().unwrap_err();
        assert!(error.to_string().starts_with("there is no check \"speed\"; the checks are memory, "), "{error}");
    }

    #[test]
    fn a_report_is_given_out_once() {
        let log = CheckLog::default();
        log.note("a\tb".to_owned());
        assert_eq!((log.take().as_str(), log.take().as_str()), ("a\tb\n", ""));
        log.suppress(2);
        log.suppress(1);
        assert_eq!(log.suppressed(), 3);
    }
}
