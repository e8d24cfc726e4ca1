//! Semaphores in memory, which the host, the copy engine, the compute class and launch descriptors write and combine.

use super::mem::Accessor;
use tegra_mm::MmuFault;

/// The operation that combines a payload with the value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Min,
    Max,
    Xor,
    And,
    Or,
    Add,
    /// Counts up to the payload and then wraps to zero.
    Inc,
    /// Counts down to zero and then wraps to the payload.
    Dec,
    /// Adds floats. Only the copy engine has this operation.
    FloatAdd,
    FloatMin,
    FloatMax,
}

impl Op {
    /// Decodes the number that the host and the copy engine use (docs/hardware/gpu-semaphores.md#sem-execute,
    /// docs/hardware/gpu-copy-engine.md#launch-dma).
    pub(crate) fn from_host(code: u32) -> Option<Op> {
        use Op::*;
        [Min, Max, Xor, And, Or, Add, Inc, Dec].get(code as usize).copied().or(match code {
            0xa => Some(FloatAdd),
            0xb => Some(FloatMin),
            0xc => Some(FloatMax),
            _ => None,
        })
    }

    /// Decodes the three-bit number of the graphics engine, in the compute class
    /// (docs/hardware/gpu-compute-class.md#report-semaphores) and in launch descriptors
    /// (docs/hardware/gpu-launch-descriptor.md#qmd-fields).
    pub(crate) fn from_graphics(code: u32) -> Op {
        use Op::*;
        [Add, Min, Max, Inc, Dec, And, Or, Xor][(code & 7) as usize]
    }
}

/// One reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    pub(crate) op: Op,
    pub(crate) signed: bool,
}

macro_rules! apply {
    ($name:ident, $u:ty, $i:ty, $f:ty) => {
        fn $name(self, v: $u, p: $u) -> $u {
            let float = |f: fn($f, $f) -> $f| f(<$f>::from_bits(v), <$f>::from_bits(p)).to_bits();
            match self.op {
                Op::Min if self.signed => (v as $i).min(p as $i) as $u,
                Op::Max if self.signed => (v as $i).max(p as $i) as $u,
                Op::Min => v.min(p),
                Op::Max => v.max(p),
                Op::Xor => v ^ p,
                Op::And => v & p,
                Op::Or => v | p,
                Op::Add => v.wrapping_add(p),
                Op::Inc => {
                    if v >= p {
                        0
                    } else {
                        v + 1
                    }
                }
                Op::Dec => {
                    if v == 0 || v > p {
                        p
                    } else {
                        v - 1
                    }
                }
                Op::FloatAdd => float(|a, b| a + b),
                Op::FloatMin => float(<$f>::min),
                Op::FloatMax => float(<$f>::max),
            }
        }
    };
}

impl Reduction {
    apply!(apply32, u32, i32, f32);
    apply!(apply64, u64, i64, f64);

    /// Whether the L2 performs the reduction for the host, by the sizes and signs of
    /// docs/hardware/gpu-semaphores.md#sem-execute.
    pub(crate) fn legal_for_host(self, wide: bool) -> bool {
        match self.op {
            Op::Min | Op::Max | Op::Xor | Op::And | Op::Or => true,
            Op::Add => !(wide && self.signed),
            Op::Inc | Op::Dec => !wide && !self.signed,
            Op::FloatAdd | Op::FloatMin | Op::FloatMax => false,
        }
    }
}

/// The data that a release writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) va: u64,
    pub(crate) payload: u64,
    /// True if the payload has 64 bits.
    pub(crate) wide: bool,
    /// With a timestamp, the release writes sixteen bytes: the payload (its upper half is zero if it has 32 bits), and
    /// then the timestamp.
    pub(crate) timestamp: Option<u64>,
    /// The reduction that combines the payload with the value in memory. Without it, the value is overwritten.
    pub(crate) reduction: Option<Reduction>,
}

impl Release {
    /// Performs the release. The timestamp is written before the payload, so that a reader that sees the payload sees
    /// the timestamp too.
    pub(crate) fn perform(&self, mem: &Accessor<'_>) -> Result<(), MmuFault> {
        if let Some(now) = self.timestamp {
            mem.write_u64(self.va.wrapping_add(8), now)?;
        }
        match self.reduction {
            Some(r) if self.wide => mem.update_u64(self.va, |v| r.apply64(v, self.payload)).map(drop),
            Some(r) => mem.update_u32(self.va, |v| r.apply32(v, self.payload as u32)).map(drop),
            None if self.wide => mem.write_u64(self.va, self.payload),
            None if self.timestamp.is_some() => mem.write_u64(self.va, u64::from(self.payload as u32)),
            None => mem.write_u32(self.va, self.payload as u32),
        }
    }
}

/// The condition of an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Equal,
    StrictGreaterEqual,
    CircularGreaterEqual,
    And,
    Nor,
}

impl Condition {
    /// Whether `value`, which was read from memory in one piece, satisfies the condition with payload `p`.
    pub(crate) fn holds(self, value: u64, p: u64, wide: bool) -> bool {
        let mask = if wide { u64::MAX } else { u64::from(u32::MAX) };
        let (s, p) = (value & mask, p & mask);
        match self {
            Condition::Equal => s == p,
            Condition::StrictGreaterEqual => s >= p,
            Condition::CircularGreaterEqual if wide => s.wrapping_sub(p) as i64 >= 0,
            Condition::CircularGreaterEqual => (s as u32).wrapping_sub(p as u32) as i32 >= 0,
            Condition::And => s & p != 0,
            Condition::Nor => !(s | p) & mask != 0,
        }
    }
}

/// Reads a semaphore of 32 or 64 bits.
pub(crate) fn read(mem: &Accessor<'_>, va: u64, wide: bool) -> Result<u64, MmuFault> {
    if wide { mem.read_u64(va) } else { mem.read_u32(va).map(u64::from) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tegra_mm::{Backing, Extent, PageTable};

    /// One thread releases semaphores with timestamps, as the copy engine does, and another one polls, as a kernel does.
    #[test]
    fn who_sees_a_payload_sees_its_timestamp() {
        const VA: u64 = 1 << 20;
        let backing = Arc::new(Backing::anonymous("semaphore", 4096).expect("memory"));
        let mut table = PageTable::default();
        table.insert(Extent { va: VA, len: 4096, backing: Some(backing), writable: true, ..Extent::default() });
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mem = Accessor::new(&table);
                for n in 1..100_000 {
                    let release = Release { va: VA, payload: n, wide: true, timestamp: Some(n), reduction: None };
                    release.perform(&mem).expect("it is mapped");
                }
                done.store(true, Ordering::Release);
            });
            let (mem, mut last) = (Accessor::new(&table), 0);
            while !done.load(Ordering::Acquire) {
                let payload = read(&mem, VA, true).expect("it is mapped");
                let stamp = read(&mem, VA + 8, true).expect("it is mapped");
                assert!(last <= payload && payload <= stamp, "payload {payload} after {last}, with timestamp {stamp}");
                last = payload;
            }
        });
    }
}
