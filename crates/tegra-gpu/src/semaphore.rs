//! Semaphores in memory: what host, copy engine, compute class and launch descriptors write and combine.

use super::mem::Accessor;
use tegra_mm::MmuFault;

/// How a payload is combined with the value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Min,
    Max,
    Xor,
    And,
    Or,
    Add,
    /// Counts up to the payload, then wraps to zero.
    Inc,
    /// Counts down to zero, then wraps to the payload.
    Dec,
    /// Float addition, copy engine only.
    FloatAdd,
    FloatMin,
    FloatMax,
}

impl Op {
    /// The encoding of host and copy engine (docs/hardware/gpu-semaphores.md#sem-execute,
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

    /// The three-bit encoding of the graphics engine: compute class (docs/hardware/gpu-compute-class.md#report-semaphores)
    /// and launch descriptors (docs/hardware/gpu-launch-descriptor.md#qmd-fields).
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

    /// Whether host's L2 does it: sizes and signs of docs/hardware/gpu-semaphores.md#sem-execute.
    pub(crate) fn legal_for_host(self, wide: bool) -> bool {
        match self.op {
            Op::Min | Op::Max | Op::Xor | Op::And | Op::Or => true,
            Op::Add => !(wide && self.signed),
            Op::Inc | Op::Dec => !wide && !self.signed,
            Op::FloatAdd | Op::FloatMin | Op::FloatMax => false,
        }
    }
}

/// What a release writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) va: u64,
    pub(crate) payload: u64,
    /// The payload has 64 bits.
    pub(crate) wide: bool,
    /// Sixteen bytes: payload (upper half zero when it has 32 bits), then a timestamp.
    pub(crate) timestamp: Option<u64>,
    /// Combine instead of overwrite.
    pub(crate) reduction: Option<Reduction>,
}

impl Release {
    /// Performs it. The timestamp is written before the payload, so whoever sees the payload sees it too.
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

/// When an acquire succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Equal,
    StrictGreaterEqual,
    CircularGreaterEqual,
    And,
    Nor,
}

impl Condition {
    /// Whether `value`, read from memory in one piece, satisfies it against payload `p`.
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
