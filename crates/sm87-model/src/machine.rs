//! What a grid would take on a board: the machine that is modelled, and the estimate. A launch that
//! names a [`Machine`] is executed with a copy of its program in which every instruction is accounted for. Other launches
//! know nothing of it.

/// What kernels that do nothing but wait for the DRAM get of the bandwidth that its pins have, in thousandths: what is read alone, and what is read
/// and written together. Two published figures set them (python/tegrarm/validate/data/published.json, rows `read` and `copy`): kernels whose warps
/// also take time of their own get 152.8 and 183.3 of 204.8 GB/s.
pub(super) const DRAM_READS: u64 = 774;
pub(super) const DRAM_ALL: u64 = 949;
/// What copies by the copy engine get is assumed to be what that kernel gets.
const COPIES: u64 = 895;

/// The figures of a module. What all GPUs with sm_87 have in common stands in `table`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The frequency of the GPU's clock, in Hz.
    pub hz: u64,
    /// The bytes that the DRAM moves in a second.
    pub dram_bytes_per_second: u64,
    /// The size of the L2 cache in bytes.
    pub l2_bytes: u64,
    /// The number of parts of the L2 cache that work at the same time.
    pub l2_slices: u32,
}

impl Machine {
    /// The bytes that are moved in a second by work that reads and writes: less than what the DRAM's pins could move.
    pub fn moved_per_second(&self) -> u64 {
        self.part_of_dram(COPIES)
    }

    /// The bytes in a second that are so many thousandths of what the DRAM's pins could move.
    pub(super) fn part_of_dram(&self, thousandths: u64) -> u64 {
        self.dram_bytes_per_second / 1000 * thousandths
    }
}

/// What can limit the speed of a grid. Each has a throughput, except for `Latency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Unit {
    /// The time that warps wait for their own instructions, and for warps of their CTA.
    Latency,
    /// The slots in which schedulers issue instructions.
    Issue,
    /// Single-precision arithmetic.
    Single,
    /// Integer additions, logic, comparisons and moves.
    Integer,
    /// Integer products.
    Multiply,
    /// Arithmetic on pairs of halves.
    Half,
    /// Double-precision arithmetic.
    Double,
    /// Special functions and conversions.
    Special,
    /// Matrix instructions.
    Tensor,
    /// The uniform datapath.
    Uniform,
    /// Loads, stores and shuffles of an SM: lines of global memory, and words of one bank of shared memory, one after another.
    LoadStore,
    /// The bytes that an SM gets from the L2 cache.
    L1Fill,
    /// The bytes that the L2 cache gives to all SMs.
    L2,
    /// The bytes that the DRAM moves.
    Dram,
}

impl Unit {
    /// Every unit, in the order of their numbers.
    pub const ALL: [Unit; 14] = [
        Unit::Latency,
        Unit::Issue,
        Unit::Single,
        Unit::Integer,
        Unit::Multiply,
        Unit::Half,
        Unit::Double,
        Unit::Special,
        Unit::Tensor,
        Unit::Uniform,
        Unit::LoadStore,
        Unit::L1Fill,
        Unit::L2,
        Unit::Dram,
    ];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Latency => "latency",
            Unit::Issue => "issue",
            Unit::Single => "fp32",
            Unit::Integer => "integer",
            Unit::Multiply => "multiply",
            Unit::Half => "fp16",
            Unit::Double => "fp64",
            Unit::Special => "special",
            Unit::Tensor => "tensor",
            Unit::Uniform => "uniform",
            Unit::LoadStore => "load/store",
            Unit::L1Fill => "L2 to L1",
            Unit::L2 => "L2",
            Unit::Dram => "DRAM",
        }
    }
}

/// What a grid would take, without the work of the front end before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The cycles of the GPU's clock.
    pub cycles: u64,
    /// The same in nanoseconds.
    pub ns: u64,
    /// What limits the speed most.
    pub bound: Unit,
    /// The bytes that the DRAM moves.
    pub dram_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_listed_by_their_numbers_and_have_different_names() {
        for (number, unit) in Unit::ALL.into_iter().enumerate() {
            assert_eq!(unit as usize, number);
            assert_eq!(Unit::ALL.iter().filter(|other| other.name() == unit.name()).count(), 1);
        }
    }
}
