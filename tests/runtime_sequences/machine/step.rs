//! One step of a sequence: which call is made, and the numbers from which its arguments are chosen.
//!
//! A step is made of ten bytes, whatever they are, so that a fuzzer and a property test make the same sequences. It has
//! a meaning in every state: its numbers choose among what there is.

/// The number of bytes of a step.
pub const BYTES: usize = 10;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Open,
    Close,
    Alloc,
    Part,
    Export,
    Import,
    ImportPages,
    Free,
    Address,
    CopyIn,
    CopyOut,
    Copy,
    Fill,
    QueueCreate,
    QueueDestroy,
    QueueNumber,
    QueueCopyIn,
    QueueCopyOut,
    After,
    Load,
    Unload,
    Kernel,
    Launch,
    Crash,
    Fault,
    Recover,
    Wait,
    WaitAll,
    Query,
    Pollable,
    Stack,
    ReplayCreate,
    ReplayLaunch,
    ReplayCopy,
    ReplaySubmit,
    ReplayWait,
    ReplayDestroy,
    EventCreate,
    EventRecord,
    EventTime,
    EventElapsed,
    EventDestroy,
}

use What::*;

/// What the first byte of a step chooses from. A call that much depends on stands there several times.
const CHOICES: &[What] = &[
    Open,
    Close,
    Alloc,
    Alloc,
    Alloc,
    Alloc,
    Alloc,
    Part,
    Part,
    Export,
    Export,
    Import,
    Import,
    ImportPages,
    Free,
    Free,
    Address,
    CopyIn,
    CopyIn,
    CopyIn,
    CopyOut,
    CopyOut,
    CopyOut,
    Copy,
    Copy,
    Copy,
    Copy,
    Fill,
    Fill,
    Fill,
    QueueCreate,
    QueueCreate,
    QueueDestroy,
    QueueNumber,
    QueueCopyIn,
    QueueCopyIn,
    QueueCopyOut,
    QueueCopyOut,
    After,
    After,
    Load,
    Load,
    Unload,
    Kernel,
    Kernel,
    Kernel,
    Launch,
    Launch,
    Launch,
    Launch,
    Crash,
    Fault,
    Recover,
    Recover,
    Wait,
    Wait,
    WaitAll,
    Query,
    Pollable,
    Stack,
    ReplayCreate,
    ReplayCreate,
    ReplayLaunch,
    ReplayLaunch,
    ReplayCopy,
    ReplayCopy,
    ReplaySubmit,
    ReplaySubmit,
    ReplaySubmit,
    ReplayWait,
    ReplayWait,
    ReplayDestroy,
    EventCreate,
    EventRecord,
    EventRecord,
    EventTime,
    EventElapsed,
    EventDestroy,
];

/// One step.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub what: What,
    /// The handles that the call gets.
    pub picks: [Pick; 3],
    /// Numbers for sizes, offsets and values.
    pub x: u16,
    pub y: u16,
    pub z: u8,
    pub w: u8,
}

/// Which handle a call gets.
#[derive(Clone, Copy, Debug)]
pub enum Pick {
    /// One of those that are valid, if there is one.
    Valid(u8),
    /// One of something that has ended, if there is one.
    Ended(u8),
    /// A number that was never a handle of this kind.
    Foreign(u8),
}

impl Pick {
    fn of(byte: u8) -> Pick {
        match byte {
            0..=229 => Pick::Valid(byte),
            230..=242 => Pick::Ended(byte - 230),
            _ => Pick::Foreign(byte - 243),
        }
    }
}

impl Step {
    pub fn of(bytes: [u8; BYTES]) -> Step {
        let [what, a, b, c, x, xx, y, yy, z, w] = bytes;
        Step {
            what: CHOICES[usize::from(what) % CHOICES.len()],
            picks: [a, b, c].map(Pick::of),
            x: u16::from_le_bytes([x, xx]),
            y: u16::from_le_bytes([y, yy]),
            z,
            w,
        }
    }

    /// A range of `size` bytes: mostly inside, in units of `unit` bytes. One in sixteen lies anywhere.
    pub fn range(&self, size: u64, unit: u64) -> (u64, u64) {
        let (x, y) = (u64::from(self.x), u64::from(self.y));
        match self.z % 16 {
            14 => (x * 5, y * 3),
            15 => (u64::MAX - x, y),
            _ => {
                let at = x % (size + 1);
                let len = y % (size - at + 1);
                (at - at % unit, len - len % unit)
            }
        }
    }

    /// The size of a new buffer.
    pub fn size(&self) -> u64 {
        const SIZES: [u64; 8] = [4096, 128, 1000, 5000, 8192, 20_000, 65_536, 262_144];
        match self.x % 32 {
            29 => 0,
            30 => 1 << 46,
            31 => u64::MAX - u64::from(self.y),
            x => SIZES[usize::from(x) % SIZES.len()],
        }
    }

    /// The flags of a new buffer: mostly known ones.
    pub fn flags(&self) -> u32 {
        const FLAGS: [u32; 12] = [0, 0, 0, 0, 1, 1, 0, 2, 3, 4, 5, 8];
        FLAGS[usize::from(self.z) % FLAGS.len()]
    }
}
