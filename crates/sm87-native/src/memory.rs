//! Memory of other places than rows and constants, and the code that reads it.
//!
//! Tables are read row by row. Words in memory are found through a *window* for each vector of the host: a piece loads a whole vector from there, and
//! each lane takes its word out of that. So lanes in a row, lanes at one place, halves of a warp and whatever lies near each other take the same
//! instructions.

use crate::emit::{Emitter, memory};
use crate::graph::Value;
use crate::host::Host;
use crate::registers::TooLarge;
use iced_x86::{Code, Instruction, MemoryOperand, Register};

const LANES: usize = 32;

/// The windows of a warp. For each vector there is a pointer, and, a vector behind it, the number of each lane's word.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Window([u64; LANES]);

/// Where the windows of some lanes are, in bytes behind the word of the first lane.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    starts: [i32; LANES / 8],
    /// The first byte that is read.
    pub begin: i64,
    /// The one behind the last.
    pub end: i64,
}

impl Shape {
    /// That of no lanes.
    pub const NONE: Shape = Shape { starts: [0; LANES / 8], begin: i64::MAX, end: i64::MIN };
}

impl Window {
    /// Windows that lead nowhere.
    pub const NONE: Window = Window([0; LANES]);

    /// How far the windows of two vectors are apart.
    pub(crate) fn step(host: Host) -> i64 {
        2 * host.bytes()
    }

    /// Arranges lanes whose words are so many bytes behind that of the first lane, as signed numbers. Windows begin at their lowest word, or end
    /// behind the highest one if `backwards`. The result is `None` if the words of a vector are too far apart, or not a number of words.
    pub fn arrange(&mut self, host: Host, at: &[u32; LANES], backwards: bool) -> Option<Shape> {
        let (lanes, bytes) = (host.lanes() as usize, host.bytes());
        let mut shape = Shape::NONE;
        for (n, vector) in at.chunks(lanes).enumerate() {
            let (mut least, mut most) = (i32::MAX, i32::MIN);
            for &x in vector {
                (least, most) = (least.min(x as i32), most.max(x as i32));
            }
            let start = if backwards { i64::from(most) + 4 - bytes } else { i64::from(least) };
            if i64::from(most) - i64::from(least) > bytes - 4 || vector.iter().any(|x| x % 4 != 0) {
                return None;
            }
            shape.starts[n] = i32::try_from(start).ok()?;
            (shape.begin, shape.end) = (shape.begin.min(start), shape.end.max(start + bytes));
            let number = |x: u32| (i64::from(x as i32) - start) as u64 / 4;
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
    /// Loads a vector from where a window is, and takes from it the word of each lane.
    pub(crate) fn loaded(&mut self, value: Value, window: u8, bytes: i32) -> Result<(), TooLarge> {
        let d = self.made(value, &[])?;
        let at = i64::from(window) * size_of::<Window>() as i64;
        let [to, words] = [d, self.host.scratch()].map(|n| self.host.vector(n));
        self.put(Instruction::with2(Code::Mov_r64_rm64, Register::RAX, memory(WINDOWS, at)))?;
        self.put(Instruction::with2(self.host.load(), words, memory(WINDOWS, at + self.host.bytes())))?;
        let code = self.host.either(Code::VEX_Vpermd_ymm_ymm_ymmm256, Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32);
        self.put(Instruction::with3(code, to, words, memory(Register::RAX, bytes.into())))
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
