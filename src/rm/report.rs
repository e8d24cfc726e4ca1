//! The report of everything that frontends asked for and the library refused.

use super::{classes, controls};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;

/// A request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asked {
    /// A class.
    Class(u32),
    /// A control.
    Control(u32),
    /// An escape of `/dev/nvidiactl` or `/dev/nvidia0`, with its name.
    Escape(u32, &'static str),
    /// A call of `/dev/nvidia-uvm`, with its name.
    Uvm(u32, &'static str),
}

impl Asked {
    /// The name of the request, if a table has it. The upper half of a control's number is the class of its interface,
    /// so the class is given even for a control that is in no table.
    pub fn name(self) -> String {
        match self {
            Asked::Class(number) => {
                classes::find(number).map_or_else(|| "unknown".to_owned(), |row| row.name.to_owned())
            }
            Asked::Control(cmd) => match (controls::find(cmd), classes::find(cmd >> 16)) {
                (Some(row), _) => row.name.to_owned(),
                (None, Some(class)) => format!("unknown, of {}", class.name),
                (None, None) => format!("unknown, of class {:#06x}", cmd >> 16),
            },
            Asked::Escape(_, name) | Asked::Uvm(_, name) => name.to_owned(),
        }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::Class(number) => write!(f, "class {} ({number:#06x})", self.name()),
            Asked::Control(cmd) => write!(f, "control {} ({cmd:#010x})", self.name()),
            Asked::Escape(nr, name) => write!(f, "escape {name} ({nr:#04x})"),
            Asked::Uvm(nr, name) => write!(f, "UVM call {name} ({nr:#x})"),
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
    /// The reason of the first refusal.
    why: String,
}

impl Report {
    /// Counts a refusal and logs the first one of its kind.
    #[cold]
    pub fn refuse(&self, what: Asked, why: &str) {
        let mut table = self.0.lock();
        if let Some(known) = table.refused.get_mut(&what) {
            known.count += 1;
            return;
        }
        if table.refused.len() == REFUSALS {
            if table.others == 0 {
                tracing::warn!("{what} is refused: {why}; from now on new refusals are counted, but not told apart");
            }
            table.others += 1;
            return;
        }
        tracing::warn!("{what} is refused: {why}");
        table.refused.insert(what, Refusals { count: 1, why: why.to_owned() });
    }

    /// The refusals that are counted separately, with their counts.
    pub fn refused(&self) -> Vec<(Asked, u64)> {
        self.0.lock().refused.iter().map(|(what, entry)| (*what, entry.count)).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Table { refused, others } = &*self.0.lock();
        if refused.is_empty() {
            return writeln!(f, "libtegrarm: nothing was refused");
        }
        writeln!(f, "libtegrarm: asked for and refused:")?;
        for (what, Refusals { count, why }) in refused.iter() {
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
        numbers.clone().for_each(|cmd| report.refuse(Asked::Control(cmd), "unknown"));
        report.refuse(Asked::Control(numbers.start), "unknown");
        let refused = report.refused();
        assert_eq!((refused.len(), refused[0]), (REFUSALS, (Asked::Control(numbers.start), 2)));
        let text = report.to_string();
        assert!(
            text.ends_with("998976 x something else: only the first 1024 different ones are told apart\n"),
            "{text}"
        );
    }
}
