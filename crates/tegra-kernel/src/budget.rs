//! What one process may take of what all processes share, so that it cannot starve the others.
//!
//! A board has no such limits, because its driver and its programs have the memory of a whole machine. The supervisor of
//! several programs has the descriptors, mappings and threads of one process. Within one process nothing is divided.

use crate::rule::Because;
use std::collections::HashMap;
use std::sync::Arc;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The things that are divided. Each is a row of [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Mappings of the simulator: one for each buffer and for each doorbell page.
    Mappings,
    /// Ids of nvmap.
    Handles,
    /// Bytes of system memory in buffers.
    Memory,
    /// Channels.
    Channels,
    /// Channel groups.
    Groups,
    /// Open files that are memory: nodes and dmabufs.
    Files,
    /// Open files that are sockets or pipes: events, fences, sessions of debuggers.
    Ends,
    /// Files of sysfs that are open for writing.
    Writers,
    /// Calls that sleep, each in a thread of the simulator.
    Sleepers,
}

struct Row {
    resource: Resource,
    /// The word for it in messages.
    name: &'static str,
    /// The part of what the others have left that one process may have.
    part: (u64, u64),
    /// The most that one process may have in any case.
    most: u64,
    /// The errno for a process that has its part, and for one that finds nothing left.
    errno: (Errno, Errno),
}

macro_rules! table {
    ($($resource:ident $name:literal, $n:literal / $d:literal, $most:expr, $one:ident, $all:ident;)*) => {
        &[$(Row {
            resource: Resource::$resource,
            name: $name,
            part: ($n, $d),
            most: $most,
            errno: (Errno::$one, Errno::$all),
        }),*]
    };
}

static TABLE: &[Row] = table! {
    Mappings "buffers and doorbell pages", 1 / 2, u64::MAX, ENOMEM, ENOMEM;
    Handles "nvmap handles", 1 / 2, u64::MAX, ENOMEM, ENOMEM;
    // Programs use nearly all memory of a board, and nearly all channels.
    Memory "bytes of buffers", 15 / 16, u64::MAX, ENOMEM, ENOMEM;
    Channels "channels", 15 / 16, u64::MAX, ENOMEM, ENOMEM;
    Groups "channel groups", 15 / 16, u64::MAX, ENOMEM, ENOMEM;
    Files "open nodes and dmabufs", 1 / 2, u64::MAX, EMFILE, ENFILE;
    Ends "open events, fences and debuggers", 1 / 2, u64::MAX, EMFILE, ENFILE;
    Writers "files of sysfs open for writing", 1 / 2, 256, EMFILE, ENFILE;
    Sleepers "calls that sleep", 1 / 2, u64::MAX, ENOMEM, ENOMEM;
};

/// The budgets of all resources.
#[derive(Debug)]
pub struct Budgets(Vec<Mutex<Taken>>);

/// What is taken of one resource.
#[derive(Debug, Default)]
struct Taken {
    total: u64,
    all: u64,
    of: HashMap<i32, u64>,
}

/// Something that a process has. Dropping it gives it back.
#[derive(Debug)]
pub struct Share {
    budgets: Arc<Budgets>,
    row: usize,
    process: i32,
    amount: u64,
}

impl Budgets {
    /// Makes the budgets. `total` says how much there is of a resource.
    pub fn new(total: impl Fn(Resource) -> u64) -> Arc<Budgets> {
        let taken = |row: &Row| Mutex::new(Taken { total: total(row.resource), ..Taken::default() });
        Arc::new(Budgets(TABLE.iter().map(taken).collect()))
    }

    /// Takes something for a process.
    ///
    /// # Errors
    /// The errno of the row, if the process has its part of it or if nothing is left. The rule names the limit.
    pub fn take(self: &Arc<Self>, resource: Resource, process: i32, amount: u64) -> Result<Share, Errno> {
        let row = TABLE.iter().position(|row| row.resource == resource).expect("each resource has a row");
        let Row { name, part: (n, d), most, errno: (one, every), .. } = TABLE[row];
        let mut taken = self.0[row].lock();
        let own = taken.of.get(&process).copied().unwrap_or(0);
        // The others cannot have more than all.
        let left = taken.total - (taken.all - own).min(taken.total);
        let allowed = (left / d * n + left % d * n / d).min(most);
        let refused = if own.checked_add(amount).is_none_or(|sum| sum > left) {
            Some((every, format!("{} {name} are taken, and there are {}", taken.all, taken.total)))
        } else if own + amount > allowed {
            let whose = format!("process {process} has {own} {name} and asks for {amount}");
            Some((one, format!("{whose}: it may have {allowed} of {}, so that others get some", taken.total)))
        } else {
            None
        };
        if let Some((errno, why)) = refused {
            drop(taken);
            tracing::warn!("{why}: {errno:?}");
            return Err(errno.because(why));
        }
        taken.all += amount;
        *taken.of.entry(process).or_default() += amount;
        Ok(Share { budgets: self.clone(), row, process, amount })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.budgets.0[self.row].lock();
        taken.all -= self.amount;
        if let Some(own) = taken.of.get_mut(&self.process) {
            *own -= self.amount;
            if *own == 0 {
                taken.of.remove(&self.process);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets() -> Arc<Budgets> {
        Budgets::new(|resource| if resource == Resource::Memory { u64::MAX } else { 64 })
    }

    #[test]
    fn every_process_gets_half_of_what_the_others_leave() {
        let budgets = budgets();
        let mut held = Vec::new();
        let mut takes = |process| {
            let before = held.len();
            held.extend(std::iter::from_fn(|| budgets.take(Resource::Files, process, 1).ok()));
            held.len() - before
        };
        assert_eq!([takes(1), takes(2), takes(3), takes(4), takes(5), takes(6)], [32, 16, 8, 4, 2, 1]);
        assert_eq!(takes(1), 0);
        drop(held);
        assert!(budgets.0.iter().all(|taken| taken.lock().of.is_empty() && taken.lock().all == 0));
    }

    #[test]
    fn the_refusal_says_whose_limit_it_is() {
        let budgets = budgets();
        let held: Vec<_> = (0..32).map(|_| budgets.take(Resource::Ends, 7, 1).unwrap()).collect();
        assert_eq!(budgets.take(Resource::Ends, 7, 1).unwrap_err(), Errno::EMFILE);
        let rule = crate::rule::take().unwrap_or_default();
        assert!(rule.contains("process 7 has 32 open events") && rule.contains("may have 32 of 64"), "{rule}");
        let rest: Vec<_> = (100..).map_while(|process| budgets.take(Resource::Ends, process, 1).ok()).collect();
        assert_eq!(budgets.take(Resource::Ends, 8, 33).unwrap_err(), Errno::ENFILE);
        assert_eq!(held.len() + rest.len(), 63);
    }

    #[test]
    fn amounts_that_do_not_fit_are_refused() {
        let budgets = budgets();
        let held = budgets.take(Resource::Memory, 1, 1 << 63).unwrap();
        for amount in [1 << 63, u64::MAX] {
            assert_eq!(budgets.take(Resource::Memory, 1, amount).unwrap_err(), Errno::ENOMEM);
        }
        drop(held);
        assert!(budgets.take(Resource::Memory, 1, u64::MAX / 16 * 15).is_ok());
    }
}
