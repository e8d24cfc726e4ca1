//! The report of everything that frontends asked for and the library refused.

use std::collections::BTreeMap;
use std::fmt;
use tegrarm_lock::Mutex;

/// A request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// A class.
    Class(u32),
    /// A control.
    Control(u32),
    /// An escape of `/dev/nvidiactl` or `/dev/nvidia0`.
    Escape(u32),
    /// A call of `/dev/nvidia-uvm`.
    Uvm(u32),
}

impl Asked {
    /// The words for a request that the table of its kind calls `name`.
    pub fn called(self, name: &str) -> String {
        match self {
            Asked::Class(number) => format!("class {name} ({number:#06x})"),
            Asked::Control(cmd) => format!("control {name} ({cmd:#010x})"),
            Asked::Escape(nr) => format!("escape {name} ({nr:#04x})"),
            Asked::Uvm(nr) => format!("UVM call {name} ({nr:#x})"),
        }
    }
}

/// The number of different refusals that are counted separately. A frontend asks for some dozens. A program that tries
/// every number must not fill the memory.
const REFUSALS: usize = 1024;

/// Counts refusals and logs the first of each kind. Its text has the lines that `TEGRARM_REPORT=1` prints.
#[derive(Debug, Default)]
pub struct Report(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    refused: BTreeMap<Asked, Refusals>,
    /// The number of refusals for which there was no room any more.
    others: u64,
}

#[derive(Debug)]
struct Refusals {
    count: u64,
    /// The words for the request.
    what: String,
    /// The reason of the first refusal.
    why: String,
}

impl Report {
    /// Counts a refusal and logs the first one of its kind. `name` is what the table of its kind calls the request.
    #[cold]
    pub fn refuse(&self, asked: Asked, name: &str, why: &str) {
        let mut table = self.0.lock();
        if let Some(known) = table.refused.get_mut(&asked) {
            known.count += 1;
            return;
        }
        let what = asked.called(name);
        if table.refused.len() == REFUSALS {
            if table.others == 0 {
                tracing::warn!("{what} is refused: {why}; from now on new refusals are counted, but not told apart");
            }
            table.others += 1;
            return;
        }
        tracing::warn!("{what} is refused: {why}");
        table.refused.insert(asked, Refusals { count: 1, what, why: why.to_owned() });
    }

    /// The refusals that are counted separately, with their counts.
    pub fn refused(&self) -> Vec<(Asked, u64)> {
        self.0.lock().refused.iter().map(|(asked, entry)| (*asked, entry.count)).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { refused, others } = &*self.0.lock();
        if refused.is_empty() {
            return writeln!(f, "libtegrarm: nothing was refused");
        }
        writeln!(f, "libtegrarm: asked for and refused:")?;
        for Refusals { count, what, why } in refused.values() {
            writeln!(f, "  {count:>6} x {what}: {why}")?;
        }
        if *others > 0 {
            writeln!(f, "  {others:>6} x something else: only the first {REFUSALS} different ones are told apart")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program tries every number.
    #[test]
    fn a_million_numbers_take_no_more_room_than_a_thousand() {
        let report = Report::default();
        let numbers = 0xdead_0000..0xdead_0000 + 1_000_000_u32;
        numbers.clone().for_each(|cmd| report.refuse(Asked::Control(cmd), "unknown", "no table has it"));
        report.refuse(Asked::Control(numbers.start), "unknown", "no table has it");
        let refused = report.refused();
        assert_eq!((refused.len(), refused[0]), (REFUSALS, (Asked::Control(numbers.start), 2)));
        let text = report.to_string();
        assert!(
            text.ends_with("998976 x something else: only the first 1024 different ones are told apart\n"),
            "{text}"
        );
    }
}
