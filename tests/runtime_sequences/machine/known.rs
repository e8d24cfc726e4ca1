//! What the model knows: every handle that was given out, what it stands for, and what memory has in it.

use super::calls::nowhere;
use super::step::Pick;
use std::os::fd::OwnedFd;
use tegrarm_abi::rm::status::*;

/// All handles of one kind that were ever given out.
pub struct Table<T> {
    pub rows: Vec<Row<T>>,
}

pub struct Row<T> {
    pub handle: usize,
    pub valid: bool,
    pub object: T,
}

/// A handle that a call gets. It has a number in its table if it is valid.
#[derive(Clone, Copy)]
pub struct Chosen {
    pub handle: usize,
    pub at: Option<usize>,
}

impl<T> Table<T> {
    pub const fn new() -> Table<T> {
        Table { rows: Vec::new() }
    }

    pub fn add(&mut self, handle: usize, object: T) -> usize {
        assert!(self.rows.iter().all(|row| row.handle != handle), "the handle {handle:#x} was given out twice");
        self.rows.push(Row { handle, valid: true, object });
        self.rows.len() - 1
    }

    pub fn valid(&self) -> impl Iterator<Item = usize> {
        (0..self.rows.len()).filter(|at| self.rows[*at].valid)
    }

    pub fn choose(&self, pick: Pick) -> Chosen {
        let (pick, of) = match pick {
            Pick::Valid(n) => (n, self.valid().collect::<Vec<_>>()),
            Pick::Ended(n) => (n, (0..self.rows.len()).filter(|at| !self.rows[*at].valid).collect()),
            Pick::Foreign(n) => return Chosen { handle: foreign(n), at: None },
        };
        let Some(at) = of.get(usize::from(pick) % of.len().max(1)) else {
            return Chosen { handle: foreign(pick), at: None };
        };
        Chosen { handle: self.rows[*at].handle, at: self.rows[*at].valid.then_some(*at) }
    }

    pub fn end(&mut self, at: usize) {
        self.rows[at].valid = false;
    }
}

impl<T> std::ops::Index<usize> for Table<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.rows[at].object
    }
}

impl<T> std::ops::IndexMut<usize> for Table<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.rows[at].object
    }
}

/// Numbers that nobody was given as a handle: an address, and numbers that look like handles.
fn foreign(n: u8) -> usize {
    const STRANGE: [u64; 5] = [u64::MAX, 1 << 60, 0x7fff_ffff_f000, 0xf000_0000_0000_0001, 15];
    STRANGE.get(usize::from(n) % 6).map_or(nowhere(), |number| *number as usize)
}

pub struct Device {
    /// The queue with which it was opened.
    pub own: usize,
    /// How many queues it has made.
    pub queues: u64,
}

pub struct Queue {
    pub device: usize,
    pub number: u64,
    /// It has a copy engine alone.
    pub copies: bool,
    /// A fault stopped it.
    pub stopped: bool,
    /// The fences of its work.
    pub fences: Vec<u64>,
    /// That of the work that stopped it.
    pub fault: u64,
    /// Those of work that had stopped it before it was recovered.
    pub lost: Vec<u64>,
}

impl Queue {
    pub const fn new(device: usize, number: u64, copies: bool) -> Queue {
        Queue { device, number, copies, stopped: false, fences: Vec::new(), fault: 0, lost: Vec::new() }
    }
}

/// Bytes that buffers share: buffers and their parts, and imports of the same dmabuf.
pub struct Memory {
    pub bytes: Vec<u8>,
    /// The queue that used it last, and the fence of that work.
    pub user: Option<(usize, u64)>,
    /// The replay whose run may use it.
    pub run: Option<usize>,
    /// The address of the process's own pages.
    pub pages: Option<usize>,
}

#[derive(Clone, Copy)]
pub struct Buffer {
    pub device: usize,
    pub memory: usize,
    /// Where it starts in the memory, and in its mapping for the GPU.
    pub start: u64,
    pub size: u64,
    pub address: u64,
    pub read_only: bool,
    pub pointer: bool,
    /// Parts of one buffer share its mapping.
    pub mapping: usize,
}

pub struct Module {
    pub device: usize,
}

pub struct Kernel {
    pub module: usize,
}

/// What a replay does. The memories' ranges are given as memory, offset and size.
#[derive(Clone, Copy)]
pub enum Command {
    Copy { to: (usize, u64), from: (usize, u64), size: u64, faults: bool },
    Add { a: (usize, u64), b: (usize, u64), to: (usize, u64), floats: u32, faults: bool },
}

pub struct Replay {
    pub device: usize,
    pub commands: Vec<Command>,
    /// The buffers and modules that must stay until it ends.
    pub needs: Vec<Need>,
    pub runs: u32,
    pub in_flight: bool,
    /// A fault will stop the run that is in flight, or has stopped it.
    pub stopped: bool,
}

#[derive(Clone, Copy)]
pub enum Need {
    /// A buffer, or a part of it.
    Mapping(usize),
    Module(usize),
}

pub struct Event {
    pub device: usize,
    /// The queue that it was recorded on last, and the fence.
    pub at: Option<(usize, u64)>,
}

/// A dmabuf that the program has a descriptor of.
pub struct Shared {
    pub fd: OwnedFd,
    pub memory: usize,
}

/// The statuses whose conditions hold for a call.
#[derive(Default)]
pub struct Wrong(Vec<u32>);

impl Wrong {
    #[must_use]
    pub fn when(mut self, holds: bool, status: u32) -> Wrong {
        if holds {
            self.0.push(status);
        }
        self
    }

    /// An object that is not there.
    #[must_use]
    pub fn absent(self, chosen: Chosen) -> Wrong {
        self.when(chosen.at.is_none(), NV_ERR_OBJECT_NOT_FOUND)
    }

    /// The conditions of both.
    #[must_use]
    pub fn and(mut self, other: Wrong) -> Wrong {
        self.0.extend(other.0);
        self
    }

    /// Whether the call must succeed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the condition of a status holds.
    pub fn names(&self, status: u32) -> bool {
        self.0.contains(&status)
    }

    /// Whether a call may answer with this status.
    pub fn allows(&self, answer: u32) -> bool {
        if self.0.is_empty() { answer == NV_OK } else { self.0.contains(&answer) }
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0[..] {
            [] => write!(f, "NV_OK"),
            statuses => write!(f, "one of {statuses:#x?}"),
        }
    }
}
