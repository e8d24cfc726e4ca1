//! How the host lets callers wait for the answers to their calls.

use super::sys;

/// How the caller of a trapped call waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Any signal with a handler takes it away (before Linux 5.19).
    Interruptible,
    /// Only a deadly signal takes it away after it has noticed that its call was received. It notices that when something
    /// wakes it up (before Linux 6.18, and some later releases of older lines).
    Unaware,
    /// Only a deadly signal takes it away after its call was received.
    Killable,
}

impl Waiting {
    /// How callers wait on this host.
    pub fn here() -> Waiting {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if sys::waits_killable() { Waiting::of_release(&release) } else { Waiting::Interruptible }
    }

    fn of_release(release: &str) -> Waiting {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) if (major, minor) >= (6, 18) => Waiting::Killable,
            _ => Waiting::Unaware,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_hosts_are_known_by_their_release() {
        let old = Waiting::Unaware;
        let of = ["6.18.44-fc-v669\n", "7.0\n", "6.17.9-1\n", "5.19.0", "6\n", ""].map(Waiting::of_release);
        assert_eq!(of, [Waiting::Killable, Waiting::Killable, old, old, old, old]);
    }
}
