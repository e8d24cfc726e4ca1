//! The figures of sm_87: throughputs, latencies and sizes, each with its source.
//!
//! "Guide" is the table of the throughput of native arithmetic instructions in NVIDIA's CUDA C++ Best Practices Guide, column
//! of compute capability 8.6: the guide has none for 8.7, whose SM has as many lanes for single precision (2048 lanes of 16
//! SMs). "Paper" is arXiv 2208.11174, which measured an A100. "Huerta" is "Dissecting and Modeling the Architecture of Modern GPU
//! Cores" by Huerta, Shoushtary, Cruz and González (MICRO 2025, arXiv 2503.20481), which measured GPUs of GA10x.

use super::machine::Unit;
use sm87::isa::cost::{Class, Elements};
use sm87::isa::memory::{Shape, Space};

/// The schedulers of an SM. Each has a quarter of the lanes.
pub(super) const SCHEDULERS: usize = 4;
/// The warps, CTAs, registers and bytes of shared memory that an SM holds (CUDA C++ Programming Guide, technical
/// specifications for compute capability 8.7).
pub(super) const WARPS: u32 = 48;
pub(super) const CTAS: u32 = 16;
pub(super) const REGISTERS: u32 = 64 << 10;
pub(super) const SHARED_BYTES: u32 = 164 << 10;
/// Registers are given to a warp in units of this many (CUDA occupancy calculator).
pub(super) const REGISTER_UNIT: u32 = 256;
/// Shared memory is given to a CTA in units of this many bytes (CUDA occupancy calculator).
pub(super) const SHARED_UNIT: u32 = 128;
/// The bytes of an SM that are L1 cache and shared memory (the same specifications: unified data cache of 8.7).
pub(super) const L1: u32 = 192 << 10;

/// The bytes of a cache line, and of the sectors that are filled one by one (CUDA C++ Best Practices Guide, coalesced access).
pub(super) const LINE: u64 = 128;
pub(super) const SECTOR: u64 = 32;
/// The bytes that an SM takes from the L2 cache in a cycle, and those that a slice of it gives (NVIDIA A100 whitepaper: 5120
/// bytes in a cycle of 80 slices, 64 for each of them; the same is assumed for an SM).
pub(super) const FILL: u64 = 64;
pub(super) const SLICE: u64 = 64;
/// The cycles that a slice needs for a sector that is written, and the tenths of a cycle that it needs in addition if only a part of the sector is.
/// Published rows of a copy within the L1 cache, and of the use of the L2 cache by `reduceInteger`
/// (python/tegrarm/validate/data/published.json).
pub(super) const L2_WRITE: u64 = 1;
pub(super) const L2_PART: u64 = 7;

/// The latency in cycles of what the L1 cache does not have, for a word at an address in regular registers, and the nanoseconds that follow
/// until the DRAM has given it. The DRAM has a clock of its own. Published rows of a pointer chase on an AGX Orin: 190 cycles, and 675 ns in all.
pub(super) const L2_HIT: u32 = 190;
pub(super) const DRAM_NS: u64 = 529;
/// The cycles until another instruction that sets a scoreboard has read its operands. Assumed.
pub(super) const READ: u16 = 12;

/// What instructions wait for that depend on an access to memory, in cycles since it was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Latencies {
    /// Until its operands may be overwritten.
    pub operands: u16,
    /// Until its result may be used, if the nearest cache or shared memory has it. For stores it is the same as `operands`.
    pub result: u16,
}

/// An access of 32, 64 and 128 bits, each with the cycles until its operands may be overwritten, and until its result may be used.
type BySize = [[u16; 2]; 3];
/// The latencies of a kind of access, if its address is in uniform registers or a constant, and if it is in regular ones.
type ByAddress = [BySize; 2];

/// Huerta, table 2. Global stores of 64 and 128 bits at uniform addresses are approximations there, and copies were measured at regular
/// addresses alone.
const GLOBAL_LOAD: ByAddress = [[[9, 29], [9, 31], [9, 35]], [[11, 32], [11, 34], [11, 38]]];
const GLOBAL_STORE: ByAddress = [[[10, 10], [12, 12], [16, 16]], [[14, 14], [16, 16], [20, 20]]];
const SHARED_LOAD: ByAddress = [[[9, 23], [9, 23], [9, 25]], [[9, 24], [9, 24], [9, 26]]];
const SHARED_STORE: ByAddress = [[[10, 10], [12, 12], [16, 16]], [[12, 12], [14, 14], [18, 18]]];
const COPY: ByAddress = [[[13, 39]; 3]; 2];
/// The same table has one size at an immediate address.
const CONSTANT_LOAD: ByAddress = [[[10, 26]; 3], [[29, 29]; 3]];

/// The latency of a word in the L1 cache, at an address in regular registers.
pub(super) const L1_HIT: u32 = GLOBAL_LOAD[1][0][1] as u32;
/// The latency of a word in shared memory, likewise.
const SHARED: u32 = SHARED_LOAD[1][0][1] as u32;

/// What depends on an access waits so long. Local memory and addresses of any memory are assumed to be like global memory, atomics like a
/// store and a load, and rows of matrices like a load of 128 bits.
pub(super) fn latencies(shape: &Shape, is_uniform: bool) -> Latencies {
    let (stores, loads) = match shape.space {
        Space::Shared | Space::Rows => (SHARED_STORE, SHARED_LOAD),
        Space::Copy => (COPY, COPY),
        Space::Global | Space::Local | Space::Generic => (GLOBAL_STORE, GLOBAL_LOAD),
    };
    let of = |table: ByAddress| of_size(table, is_uniform, shape.len);
    let operands = if shape.writes { of(stores) } else { of(loads) }.operands;
    let result = if shape.reads { of(loads) } else { of(stores) }.result;
    Latencies { operands, result }
}

/// What depends on a load of a constant waits so long, if its address is in no register, and if it is in one.
pub(super) fn of_constants(is_uniform: bool) -> Latencies {
    of_size(CONSTANT_LOAD, is_uniform, 4)
}

fn of_size(table: ByAddress, is_uniform: bool, bytes: u32) -> Latencies {
    let size = usize::from(bytes > 4) + usize::from(bytes > 8);
    let [operands, result] = table[usize::from(!is_uniform)][size];
    Latencies { operands, result }
}

/// The operations that an SM can do in a cycle, by the kind of their numbers. A multiply-add is two.
pub fn operations_per_cycle() -> [(&'static str, u32); 6] {
    let of = |class: Class, each: u32| figures_of(class).lanes * each;
    [
        ("fp32", of(Class::Single, 2)),
        ("fp16", of(Class::Half, 4)),
        ("fp64", of(Class::Double, 2)),
        ("tensor fp16", HALVES * 2),
        ("tensor tf32", TF32 * 2),
        ("tensor int8", BYTES * 2),
    ]
}

/// The instructions that the schedulers of an SM can issue in a cycle.
pub fn instructions_per_cycle() -> u32 {
    SCHEDULERS as u32
}

/// What instructions of one class cost.
pub(super) struct Figures {
    pub unit: Unit,
    /// The results per cycle and SM.
    pub lanes: u32,
    /// The cycles until the result is there, for instructions that set a scoreboard.
    pub latency: u32,
}

const fn figures(unit: Unit, lanes: u32, latency: u32) -> Figures {
    Figures { unit, lanes, latency }
}

/// The figures of a class. Those of matrices also depend on their elements: see [`products`].
pub(super) fn figures_of(class: Class) -> Figures {
    match class {
        // Guide: 32-bit floating-point add, multiply, multiply-add.
        Class::Single => figures(Unit::Single, 128, 4),
        // Guide: 32-bit integer multiply, multiply-add. Paper: they run on the lanes of FMA, not on those of integers.
        Class::Product => figures(Unit::Multiply, 64, 4),
        // A published row of HFMA2 on an AGX Orin: 9.64 Tflop/s are 116 pairs. Guide: 256 results for 8.0, but 128 for 8.6.
        Class::Half => figures(Unit::Half, 128, 4),
        // Guide: 64-bit floating-point add, multiply, multiply-add. The latency is assumed.
        Class::Double => figures(Unit::Double, 2, 40),
        // Guide: reciprocal, square root, logarithm, exponential, sine. Paper: up to 18 cycles.
        Class::Function => figures(Unit::Special, 16, 18),
        // Guide: bit reverse, leading zeros, population count. The latency is assumed to be that of MUFU.
        Class::BitCount => figures(Unit::Special, 16, 18),
        // Guide: type conversions (64 for 8.6). The latency is assumed to be that of MUFU.
        Class::Conversion => figures(Unit::Special, 64, 18),
        // Guide: warp shuffle. It passes through the crossbar of shared memory; the latency is assumed to be the same.
        Class::Shuffle => figures(Unit::LoadStore, 32, SHARED),
        // Guide: warp reduce and match. The latency is assumed.
        Class::Reduction => figures(Unit::Special, 16, SHARED),
        // Not in the guide: special registers. Assumed.
        Class::SpecialRegister => figures(Unit::Special, 16, SHARED),
        // The lanes are assumed. The latency depends on the address: see `of_constants`.
        Class::Constant => figures(Unit::LoadStore, 32, L1_HIT),
        // Lines and banks are counted when the addresses are known: see `memory`. The latency is that of `latencies`.
        Class::Memory => figures(Unit::LoadStore, 32, L1_HIT),
        Class::Matrix(_) => figures(Unit::Tensor, 32, MATRIX),
        // They use a slot of the scheduler, and nothing else that is modelled.
        Class::Slot => figures(Unit::Issue, 128, 4),
        // Guide: integer add, compare, minimum, shift and logic have 64 results; moves, selections and votes are not in it or have
        // the same.
        Class::Integer => figures(Unit::Integer, 64, 4),
    }
}

/// The uniform datapath has one lane for a scheduler. That an instruction takes two cycles is assumed.
pub(super) const UNIFORM: Figures = figures(Unit::Uniform, 64, 12);

/// The products that the matrix units of an SM add in a cycle.
pub(super) fn products(elements: Elements) -> u32 {
    match elements {
        Elements::Halves => HALVES,
        Elements::Tf32 => TF32,
        Elements::Doubles => DOUBLES,
        Elements::Bytes => BYTES,
        Elements::Nibbles => NIBBLES,
        Elements::Bits => BITS,
    }
}

/// Products of elements that the matrix units of an SM add in a cycle. Halves: paper, table III: HMMA.16816 has 2048 products in
/// 8 cycles of a quarter. The others as in the A100 whitepaper: TF32 a half of it, bytes twice and 4 bits four times, bits 16
/// times as many. Orin has the same for bytes: 85 TOPS of 16 SMs at 1.3 GHz.
const HALVES: u32 = 1024;
const TF32: u32 = 512;
const BYTES: u32 = 2048;
const NIBBLES: u32 = 4096;
const BITS: u32 = 16384;
/// DMMA has no units of its own in 8.6 (guide: 64-bit floating-point).
const DOUBLES: u32 = 2;
/// The cycles until a matrix is there, for those that set a scoreboard. Assumed.
pub(super) const MATRIX: u32 = 33;

#[cfg(test)]
mod tests {
    use super::*;
    use sm87::isa::memory::{Access, Memory, Size};

    /// Rows of table 2 as its text also tells them: addresses in uniform registers are faster in global memory, wide values come in parts of
    /// 512 bits for each cycle, and stores read the value, too.
    #[test]
    fn latencies_depend_on_the_address_and_the_size() {
        let word = sm87::Word::default();
        let of = |space, access, bytes, is_uniform| {
            let memory = Memory { space, access, size: Size::Bytes(bytes), order: None };
            let Latencies { operands, result } = latencies(&memory.shape(word), is_uniform);
            (operands, result)
        };
        let load = |space, bytes, is_uniform| of(space, Access::Load, bytes, is_uniform);
        assert_eq!([4, 8, 16].map(|n| load(Space::Global, n, true)), [(9, 29), (9, 31), (9, 35)]);
        assert_eq!([1, 4, 8, 16].map(|n| load(Space::Global, n, false)), [(11, 32), (11, 32), (11, 34), (11, 38)]);
        assert_eq!([true, false].map(|uniform| load(Space::Shared, 4, uniform)), [(9, 23), (9, 24)]);
        assert_eq!([4, 16].map(|n| of(Space::Global, Access::Store, n, false).0), [14, 20]);
        assert_eq!([4, 16].map(|n| of(Space::Shared, Access::Store, n, false).0), [12, 18]);
        assert_eq!(of(Space::Copy, Access::Copy, 16, false), (13, 39));
        let constants = [true, false].map(of_constants).map(|l| (l.operands, l.result));
        assert_eq!(constants, [(10, 26), (29, 29)]);
    }
}
