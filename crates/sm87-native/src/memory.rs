//! Memory of other places than rows and constants, and the code that reads it.
//!
//! Tables are read row by row. Words in memory are found through a *window* for each vector of the host: a piece loads a whole vector from there, and
//! each lane takes its word out of that. So lanes in a row, lanes at one place, halves of a warp and whatever lies near each other take the same
//! instructions. If lanes are spread, another function of the piece loads the word of each lane from its own place.

use crate::emit::{Emitter, memory};
use crate::graph::Value;
use crate::host::{Host, Last, MASK};
use crate::registers::TooLarge;
use iced_x86::{Code, Instruction, MemoryOperand, Register};

const LANES: usize = 32;

/// The lanes for which a function is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// All lanes. What the lanes of a vector load is near each other.
    All,
    /// Some lanes, which load likewise.
    Some,
    /// All lanes, of which each loads its own words.
    Spread,
}

/// The windows of a warp. For each vector there is a pointer, and, a vector behind it, the number of each lane's word, which is signed.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Window([u64; LANES]);

/// Where windows begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// At the lowest word of each vector.
    Forwards,
    /// A vector before the end of the highest word.
    Backwards,
    /// At the word of the first lane. Only the words of lanes are read.
    Spread,
}

/// Where the windows of some lanes are, in bytes behind the word of the first lane.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Whether each lane loads its own word.
    pub spread: bool,
    starts: [i32; LANES / 8],
    /// The first byte that is read.
    pub begin: i64,
    /// The one behind the last.
    pub end: i64,
}

impl Shape {
    /// That of no lanes.
    pub const NONE: Shape = Shape { spread: false, starts: [0; LANES / 8], begin: i64::MAX, end: i64::MIN };
}

impl Window {
    /// Windows that lead nowhere.
    pub const NONE: Window = Window([0; LANES]);

    /// How far the windows of two vectors are apart.
    pub(crate) fn step(host: Host) -> i64 {
        2 * host.bytes()
    }

    /// Arranges lanes whose words are so many bytes behind that of the first lane, as signed numbers. Vectors without lanes that are active load
    /// nothing; in others, lanes that are not active load a word of the vector. The result is `None` if the words of a vector are too far apart,
    /// or not a number of words.
    pub fn arrange(&mut self, host: Host, at: &[u32; LANES], active: u32, arrangement: Arrangement) -> Option<Shape> {
        let (lanes, bytes) = (host.lanes() as usize, host.bytes());
        let spread = arrangement == Arrangement::Spread;
        let mut shape = Shape { spread, ..Shape::NONE };
        for (n, vector) in at.chunks(lanes).enumerate() {
            let is_active = |lane: usize| active >> (n * lanes + lane) & 1 == 1;
            let Some(first) = (0..lanes).find(|lane| is_active(*lane)) else { continue };
            let mut words = [vector[first]; LANES];
            (0..lanes).filter(|lane| is_active(*lane)).for_each(|lane| words[lane] = vector[lane]);
            let vector = &words[..lanes];
            let (mut least, mut most) = (i32::MAX, i32::MIN);
            for &x in vector {
                (least, most) = (least.min(x as i32), most.max(x as i32));
            }
            let (least, end) = (i64::from(least), i64::from(most) + 4);
            let (start, reads) = match arrangement {
                Arrangement::Forwards => (least, least..least + bytes),
                Arrangement::Backwards => (end - bytes, end - bytes..end),
                Arrangement::Spread => (0, least..end),
            };
            if !spread && end - least > bytes || vector.iter().any(|x| x % 4 != 0) {
                return None;
            }
            shape.starts[n] = i32::try_from(start).ok()?;
            (shape.begin, shape.end) = (shape.begin.min(reads.start), shape.end.max(reads.end));
            let number = |x: u32| u64::from(((i64::from(x as i32) - start) / 4) as u32);
            for (k, pair) in vector.chunks(2).enumerate() {
                self.0[n * lanes + lanes / 2 + k] = number(pair[0]) | number(pair[1]) << 32;
            }
        }
        Some(shape)
    }

    /// Lets lanes that lie as `shape` says find their words. The word of the first lane is at `first`.
    #[inline(always)]
    pub fn lead(&mut self, host: Host, shape: &Shape, first: *const u8) {
        let lanes = host.lanes() as usize;
        let mut n = 0;
        while n < LANES / lanes {
            self.0[n * lanes] = first.wrapping_offset(shape.starts[n] as isize) as u64;
            n += 1;
        }
    }
}

/// The register that leads to the windows. The caller's value of it is kept.
pub(crate) const WINDOWS: Register = Register::RBX;

impl Emitter<'_> {
    /// Loads a vector from where a window is, and takes from it the word of each lane. Or it loads the words of lanes that are spread.
    pub(crate) fn loaded(&mut self, value: Value, window: u8, bytes: i32) -> Result<(), TooLarge> {
        let d = self.made(value, &[])?;
        let at = i64::from(window) * size_of::<Window>() as i64;
        let [to, words] = [d, self.host.scratch()].map(|n| self.host.vector(n));
        self.put(Instruction::with2(Code::Mov_r64_rm64, Register::RAX, memory(WINDOWS, at)))?;
        self.put(Instruction::with2(self.host.load(), words, memory(WINDOWS, at + self.host.bytes())))?;
        if self.lanes == Lanes::Spread {
            return self.gathered(
                d,
                MemoryOperand::with_base_index_scale_displ_size(Register::RAX, words, 4, bytes.into(), 1),
            );
        }
        let code = self.host.either(Code::VEX_Vpermd_ymm_ymm_ymmm256, Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32);
        self.put(Instruction::with3(code, to, words, memory(Register::RAX, bytes.into())))
    }

    /// Loads the word of each lane from its own place.
    fn gathered(&mut self, d: usize, words: MemoryOperand) -> Result<(), TooLarge> {
        // It would wait for what the register held before.
        self.op(
            self.host.either(Code::VEX_Vpxor_ymm_ymm_ymmm256, Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32),
            d,
            d,
            Last::Register(d),
        )?;
        let to = self.host.vector(d);
        if self.host == Host::Avx2 {
            let all = self.host.active();
            self.op(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, all, all, Last::Register(all))?;
            return self.put(Instruction::with3(Code::VEX_Vpgatherdd_ymm_vm32y_ymm, to, words, self.host.vector(all)));
        }
        self.put(Instruction::with3(Code::VEX_Kxnorw_kr_kr_kr, MASK, MASK, MASK))?;
        let gather = Instruction::with2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, to, words);
        self.put(gather.map(|mut gather| {
            gather.set_op_mask(MASK);
            gather
        }))
    }

    /// Four words of each of some lanes, from a table.
    pub(crate) fn quads(&mut self, value: Value, table: usize, bytes: Value, lane: u8) -> Result<(), TooLarge> {
        use Register::*;
        // The numbers of bytes are read one by one, so they have to be in memory.
        let home = self.registers.keep(bytes)?;
        let d = self.registers.make(value, &[bytes])?;
        self.moved()?;
        let mut from = self.address(home);
        from.displacement += 4 * i64::from(lane);
        self.put(Instruction::with2(Code::Mov_r64_imm64, RAX, table as u64))?;
        self.put(Instruction::with2(Code::Mov_r32_rm32, R10D, from))?;
        let row = MemoryOperand::with_base_index(RAX, R10);
        let (vector, quarter) = (self.host.vector(d), XMM0 + d as u32);
        let first = self.host.either(Code::VEX_Vmovdqu_xmm_xmmm128, Code::EVEX_Vmovdqu32_xmm_k1z_xmmm128);
        self.put(Instruction::with2(first, quarter, row))?;
        let insert = self
            .host
            .either(Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, Code::EVEX_Vinserti32x4_zmm_k1z_zmm_xmmm128_imm8);
        for n in 1..self.host.lanes() / 4 {
            from.displacement += 16;
            self.put(Instruction::with2(Code::Mov_r32_rm32, R10D, from))?;
            self.put(Instruction::with4(insert, vector, vector, row, n))?;
        }
        self.registers.used(&[bytes]);
        Ok(())
    }
}
