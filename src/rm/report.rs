//! What frontends asked for and did not get.

use super::{classes, controls};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;

/// Something that was refused.
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
    /// Its name, as far as the tables know it. A control's upper half is the class whose
    /// interface it belongs to, so that much is known of a control that no table has.
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

/// Refusals, counted; each is logged the first time. Displays as the lines that `TEGRARM_REPORT=1` prints.
#[derive(Debug, Default)]
pub struct Report {
    refused: Mutex<BTreeMap<Asked, Refusals>>,
}

#[derive(Debug)]
struct Refusals {
    count: u64,
    /// The reason of the first one.
    why: String,
}

impl Report {
    /// Counts a refusal and logs the first one of its kind.
    #[cold]
    pub fn refuse(&self, what: Asked, why: &str) {
        let mut refused = self.refused.lock();
        let entry = refused.entry(what).or_insert_with(|| {
            tracing::warn!("{what} is refused: {why}");
            Refusals { count: 0, why: why.to_owned() }
        });
        entry.count += 1;
    }

    /// Everything refused so far, with counts.
    pub fn refused(&self) -> Vec<(Asked, u64)> {
        self.refused.lock().iter().map(|(what, entry)| (*what, entry.count)).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = self.refused.lock();
        if refused.is_empty() {
            return writeln!(f, "libtegrarm: nothing was refused");
        }
        writeln!(f, "libtegrarm: asked for and refused:")?;
        for (what, Refusals { count, why }) in refused.iter() {
            writeln!(f, "  {count:>6} x {what}: {why}")?;
        }
        Ok(())
    }
}
