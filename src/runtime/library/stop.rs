//! The reason why a thread stopped its kernel: a failed assertion, or an address that cannot be freed.

use super::state::stop as at;
use crate::runtime::memory::Memory;
use std::fmt;
use std::sync::atomic::{Ordering, fence};

/// What a thread wrote down before it stopped its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The reason.
    pub reason: Reason,
    /// The block of the thread.
    pub block: [u32; 3],
    /// The thread in its block.
    pub thread: [u32; 3],
}

/// The reason why a thread stopped its kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `assert` failed.
    Assert {
        /// The expression that was false.
        message: String,
        /// The file of the assertion, as it was given to the compiler.
        file: String,
        /// The line of the assertion.
        line: u32,
        /// The function of the assertion.
        function: String,
    },
    /// `free` or `delete` got an address that it cannot free.
    Free {
        /// The address.
        address: u64,
        /// True if the address was freed before. False if `malloc` never returned it.
        twice: bool,
    },
}

impl Stop {
    /// Takes the record out of the state, so that another thread can write one. The result is `None` if there is no record.
    pub fn take(state: &Memory) -> Option<Stop> {
        if state.read_u32(at::TOLD) == 0 {
            return None;
        }
        fence(Ordering::Acquire);
        let three = |offset| [0, 4, 8].map(|n| state.read_u32(offset + n));
        let reason = match state.read_u32(at::REASON) {
            at::ASSERT => Reason::Assert {
                message: text(state, at::MESSAGE),
                file: text(state, at::FILE),
                line: state.read_u32(at::LINE),
                function: text(state, at::FUNCTION),
            },
            reason => Reason::Free { address: state.read_u64(at::ADDRESS), twice: reason == at::FREE_TWICE },
        };
        let stop = Stop { reason, block: three(at::BLOCK), thread: three(at::THREAD) };
        // The next thread that stops its kernel must find the record empty.
        let cleared = state.zero(at::TOLD, 4).and_then(|()| state.zero(at::REASON, 4));
        debug_assert!(cleared.is_ok(), "the state is as long as it was made");
        Some(stop)
    }
}

fn text(state: &Memory, offset: u64) -> String {
    let mut bytes = [0; at::TEXT];
    // The read fits into the state. If it failed, the text would be empty.
    let _ = state.read(offset, &mut bytes);
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Three numbers in parentheses, as blocks and threads are written.
pub struct Triple(pub [u32; 3]);

impl fmt::Display for Triple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.0;
        write!(f, "({x}, {y}, {z})")
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Reason::Assert { message, file, line, function } => {
                write!(f, "assertion `{message}` failed at {file}:{line} in {function}")?;
            }
            Reason::Free { address, twice: true } => write!(f, "free({address:#x}): that memory was freed before")?,
            Reason::Free { address, twice: false } => write!(f, "free({address:#x}): malloc never gave that address")?,
        }
        write!(f, ", block {}, thread {}", Triple(self.block), Triple(self.thread))
    }
}
