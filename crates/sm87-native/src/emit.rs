//! The machine code of a graph.
//!
//! The function gets the rows in RDI, the constants in RSI, the sets of lanes in RDX, the words of the pool in RCX and the lanes that execute
//! the piece in R8D. It executes the piece four times, for eight lanes each, and returns in EAX how many instructions lanes did not execute,
//! because a guard was false for them.

use crate::code::Pool;
use crate::graph::{Graph, Node, One, Place, Two, Value};
use crate::order::{Step, steps};
use crate::registers::{ACTIVE, Home, Move, Registers, SCRATCH, SLOTS, TooLarge};
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

const VECTOR: [Register; 16] = {
    use Register::*;
    [YMM0, YMM1, YMM2, YMM3, YMM4, YMM5, YMM6, YMM7, YMM8, YMM9, YMM10, YMM11, YMM12, YMM13, YMM14, YMM15]
};
const HALF: [Register; 16] = {
    use Register::*;
    [XMM0, XMM1, XMM2, XMM3, XMM4, XMM5, XMM6, XMM7, XMM8, XMM9, XMM10, XMM11, XMM12, XMM13, XMM14, XMM15]
};
/// The bytes of a vector, and of the stack that the function uses.
const BYTES: i64 = 32;
const STACK: i32 = SLOTS as i32 * BYTES as i32;
/// The NaN that the machine makes.
const NAN: u32 = 0x7fff_ffff;

/// The last operand of an instruction: a register or eight words in memory.
#[derive(Clone, Copy)]
enum Last {
    Register(usize),
    Memory(MemoryOperand),
}

/// Makes the machine code of a function. `masked` is for pieces that some lanes do not execute.
pub(crate) fn function(graph: &Graph, pool: &mut Pool, masked: bool) -> Result<Vec<u8>, TooLarge> {
    // The length of the code is known when it was made once.
    let mut end = 0;
    let (mut code, mut again) = (Vec::new(), true);
    while again {
        let mut emitter = Emitter::new(graph, pool, masked);
        let found = emitter.whole(end)?;
        (again, end) = (found != end, found);
        code = emitter.encoder.take_buffer();
    }
    Ok(code)
}

struct Emitter<'a> {
    graph: &'a Graph,
    pool: &'a mut Pool,
    steps: Vec<Step>,
    registers: Registers,
    encoder: Encoder,
    at: u64,
    masked: bool,
}

fn memory(base: Register, displacement: i64) -> MemoryOperand {
    MemoryOperand::with_base_displ(base, displacement)
}

impl<'a> Emitter<'a> {
    fn new(graph: &'a Graph, pool: &'a mut Pool, masked: bool) -> Self {
        let steps = steps(graph);
        let registers = Registers::new(graph, &steps);
        Emitter { graph, pool, steps, registers, encoder: Encoder::new(64), at: 0, masked }
    }

    /// Appends an instruction. Operands that an instruction cannot have are a mistake of this file.
    fn put(&mut self, made: Result<Instruction, iced_x86::IcedError>) -> Result<(), TooLarge> {
        let instruction = made.map_err(|_| TooLarge)?;
        self.at += self.encoder.encode(&instruction, self.at).map_err(|_| TooLarge)? as u64;
        Ok(())
    }

    /// The whole function. `end` is the place behind the steps, and so is the result.
    fn whole(&mut self, end: u64) -> Result<u64, TooLarge> {
        use Register::*;
        self.put(Instruction::with2(Code::Sub_rm64_imm32, RSP, STACK))?;
        self.put(Instruction::with2(Code::Mov_r32_imm32, R9D, 4u32))?;
        self.put(Instruction::with2(Code::Xor_r32_rm32, R11D, R11D))?;
        let top = self.at;
        if self.masked {
            let everywhere = self.graph.writes.values().any(|write| write.everywhere);
            if !everywhere {
                self.put(Instruction::with2(Code::Test_rm8_imm8, R8L, 0xffu32))?;
                self.put(Instruction::with_branch(Code::Je_rel32_64, end))?;
            }
            self.put(Instruction::with2(Code::VEX_Vmovd_xmm_rm32, HALF[ACTIVE], R8D))?;
            self.put(Instruction::with2(Code::VEX_Vpbroadcastd_ymm_xmmm32, VECTOR[ACTIVE], HALF[ACTIVE]))?;
            self.lanes_of(ACTIVE)?;
        }
        for at in 0..self.steps.len() {
            self.step(self.steps[at])?;
        }
        let found = self.at;
        self.put(Instruction::with2(Code::Add_rm64_imm8, RDI, BYTES as i32))?;
        self.put(Instruction::with1(Code::Inc_rm64, RDX))?;
        self.put(Instruction::with2(Code::Shr_rm32_imm8, R8D, 8u32))?;
        self.put(Instruction::with1(Code::Dec_rm32, R9D))?;
        self.put(Instruction::with_branch(Code::Jne_rel32_64, top))?;
        self.put(Instruction::with2(Code::Mov_r32_rm32, EAX, R11D))?;
        self.put(Instruction::with2(Code::Add_rm64_imm32, RSP, STACK))?;
        self.put(Ok(Instruction::with(Code::Retnq)))?;
        Ok(found)
    }

    /// Turns a register whose lanes all hold a set of lanes into a mask.
    fn lanes_of(&mut self, at: usize) -> Result<(), TooLarge> {
        let bits = memory(Register::RCX, self.pool.bits() * BYTES);
        self.op(Code::VEX_Vpand_ymm_ymm_ymmm256, at, at, Last::Memory(bits))?;
        self.op(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, at, at, Last::Memory(bits))
    }

    /// An instruction with three operands.
    fn op(&mut self, code: Code, d: usize, a: usize, last: Last) -> Result<(), TooLarge> {
        let made = match last {
            Last::Register(b) => Instruction::with3(code, VECTOR[d], VECTOR[a], VECTOR[b]),
            Last::Memory(b) => Instruction::with3(code, VECTOR[d], VECTOR[a], b),
        };
        self.put(made)
    }

    /// An instruction with three operands and a number.
    fn with_number(&mut self, code: Code, d: usize, a: usize, last: Last, n: u32) -> Result<(), TooLarge> {
        let made = match last {
            Last::Register(b) => Instruction::with4(code, VECTOR[d], VECTOR[a], VECTOR[b], n),
            Last::Memory(b) => Instruction::with4(code, VECTOR[d], VECTOR[a], b, n),
        };
        self.put(made)
    }

    fn compare(&mut self, d: usize, a: usize, last: Last, how: u32) -> Result<(), TooLarge> {
        self.with_number(Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8, d, a, last, how)
    }

    /// `d = mask ? yes : no`.
    fn blend(&mut self, d: usize, mask: usize, yes: Last, no: usize) -> Result<(), TooLarge> {
        let code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
        let made = match yes {
            Last::Register(b) => Instruction::with4(code, VECTOR[d], VECTOR[no], VECTOR[b], VECTOR[mask]),
            Last::Memory(b) => Instruction::with4(code, VECTOR[d], VECTOR[no], b, VECTOR[mask]),
        };
        self.put(made)
    }

    fn address(&mut self, home: Home) -> MemoryOperand {
        match home {
            Home::Row(offset) => memory(Register::RDI, i64::from(offset) * 4),
            Home::Constant(offset) => memory(Register::RSI, i64::from(offset) * 4),
            Home::Word(x) => memory(Register::RCX, self.pool.place(x) * BYTES),
            Home::Slot(slot) => memory(Register::RSP, slot as i64 * BYTES),
            Home::Lanes(index) => memory(Register::RDX, i64::from(index) * 4),
        }
    }

    /// Executes what the registers asked for.
    fn moved(&mut self) -> Result<(), TooLarge> {
        for asked in std::mem::take(&mut self.registers.moves) {
            match asked {
                Move::Load(at, home) => {
                    let from = self.address(home);
                    if matches!(home, Home::Lanes(_)) {
                        self.put(Instruction::with2(Code::VEX_Vpbroadcastb_ymm_xmmm8, VECTOR[at], from))?;
                        self.lanes_of(at)?;
                    } else {
                        self.put(Instruction::with2(Code::VEX_Vmovdqu_ymm_ymmm256, VECTOR[at], from))?;
                    }
                }
                Move::Spill(at, slot) => {
                    let to = self.address(Home::Slot(slot));
                    self.put(Instruction::with2(Code::VEX_Vmovdqu_ymmm256_ymm, to, VECTOR[at]))?;
                }
            }
        }
        Ok(())
    }

    /// The register of a value.
    fn bring(&mut self, value: Value, kept: &[Value]) -> Result<usize, TooLarge> {
        let at = self.registers.bring(value, kept)?;
        self.moved()?;
        Ok(at)
    }

    /// A value as a last operand: from memory if this is the only step that still needs it.
    fn last(&mut self, value: Value, kept: &[Value]) -> Result<Last, TooLarge> {
        if self.registers.find(value).is_none()
            && self.registers.left(value) == 1
            && let Some(home) = self.registers.in_memory(value)
        {
            return Ok(Last::Memory(self.address(home)));
        }
        Ok(Last::Register(self.bring(value, kept)?))
    }

    /// The register for the result of a step, whose operands may make room for it.
    fn made(&mut self, value: Value, operands: &[Value]) -> Result<usize, TooLarge> {
        self.registers.used(operands);
        let at = self.registers.make(value, operands)?;
        self.moved()?;
        Ok(at)
    }

    fn step(&mut self, step: Step) -> Result<(), TooLarge> {
        self.registers.begin();
        match step {
            Step::Make(value) => self.make(value),
            Step::Write { place: Place::Row(offset), value, everywhere } => self.write_row(offset, value, everywhere),
            Step::Write { place: Place::Lanes(index), value, everywhere } => self.write_lanes(index, value, everywhere),
            Step::Count { mask, times } => self.count(mask, times),
        }
    }

    fn make(&mut self, value: Value) -> Result<(), TooLarge> {
        match self.graph.of(value) {
            Node::One(op, a) => self.one(value, op, a),
            Node::By(op, a, n) => {
                let x = self.bring(a, &[a])?;
                let d = self.made(value, &[a])?;
                let code = match op {
                    Two::Shl => Code::VEX_Vpslld_ymm_ymm_imm8,
                    Two::Shr => Code::VEX_Vpsrld_ymm_ymm_imm8,
                    Two::ShlPairs => Code::VEX_Vpsllq_ymm_ymm_imm8,
                    Two::ShrPairs => Code::VEX_Vpsrlq_ymm_ymm_imm8,
                    _ => Code::VEX_Vpsrad_ymm_ymm_imm8,
                };
                self.put(Instruction::with3(code, VECTOR[d], VECTOR[x], u32::from(n)))
            }
            Node::Quads { table, bytes, lane } => self.quads(value, table, bytes, lane),
            Node::Two(op, a, b) => self.two(value, op, a, b),
            Node::Fma { a, b, c, minus_product, minus_c } => self.fma(value, [a, b, c], minus_product, minus_c),
            Node::Select { mask, yes, no } => {
                let all = [mask, yes, no];
                let (m, n) = (self.bring(mask, &all)?, self.bring(no, &all)?);
                let y = self.last(yes, &all)?;
                let d = self.made(value, &all)?;
                self.blend(d, m, y, n)
            }
            Node::Row(_) | Node::Constant(_) | Node::Word(_) | Node::Lanes(_) => Ok(()),
        }
    }

    fn one(&mut self, value: Value, op: One, a: Value) -> Result<(), TooLarge> {
        let x = self.bring(a, &[a])?;
        let d = self.made(value, &[a])?;
        let (to, from) = (VECTOR[d], VECTOR[x]);
        match op {
            One::ToFloat => self.put(Instruction::with2(Code::VEX_Vcvtdq2ps_ymm_ymmm256, to, from)),
            One::ToInteger => self.put(Instruction::with2(Code::VEX_Vcvttps2dq_ymm_ymmm256, to, from)),
            // To nearest even, without an exception.
            One::Nearest => self.put(Instruction::with3(Code::VEX_Vroundps_ymm_ymmm256_imm8, to, from, 8u32)),
            One::Half => {
                self.put(Instruction::with3(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, HALF[SCRATCH], from, 0u32))?;
                self.put(Instruction::with2(Code::VEX_Vpmovzxwd_ymm_xmmm128, to, HALF[SCRATCH]))
            }
            One::Canonical => {
                const UNORDERED: u32 = 3;
                let nan = Last::Memory(memory(Register::RCX, self.pool.place(NAN) * BYTES));
                self.compare(SCRATCH, x, Last::Register(x), UNORDERED)?;
                self.blend(d, SCRATCH, nan, x)
            }
        }
    }

    fn two(&mut self, value: Value, op: Two, a: Value, b: Value) -> Result<(), TooLarge> {
        // An operand that is in memory and not needed again is best the last one.
        let (a, b) = if op.commutes() && self.only_in_memory(a) && !self.only_in_memory(b) { (b, a) } else { (a, b) };
        let x = self.bring(a, &[a, b])?;
        let y = self.last(b, &[a, b])?;
        let d = self.made(value, &[a, b])?;
        let code = match op {
            Two::Add => Code::VEX_Vpaddd_ymm_ymm_ymmm256,
            Two::Sub => Code::VEX_Vpsubd_ymm_ymm_ymmm256,
            Two::Mul => Code::VEX_Vpmulld_ymm_ymm_ymmm256,
            Two::And => Code::VEX_Vpand_ymm_ymm_ymmm256,
            Two::AndNot => Code::VEX_Vpandn_ymm_ymm_ymmm256,
            Two::Or => Code::VEX_Vpor_ymm_ymm_ymmm256,
            Two::Xor => Code::VEX_Vpxor_ymm_ymm_ymmm256,
            Two::Shl => Code::VEX_Vpsllvd_ymm_ymm_ymmm256,
            Two::Shr => Code::VEX_Vpsrlvd_ymm_ymm_ymmm256,
            Two::Sar => Code::VEX_Vpsravd_ymm_ymm_ymmm256,
            Two::Equal => Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256,
            Two::Greater => Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256,
            Two::Least => Code::VEX_Vpminud_ymm_ymm_ymmm256,
            Two::Most => Code::VEX_Vpmaxud_ymm_ymm_ymmm256,
            Two::AddFloat => Code::VEX_Vaddps_ymm_ymm_ymmm256,
            Two::SubFloat => Code::VEX_Vsubps_ymm_ymm_ymmm256,
            Two::MulFloat => Code::VEX_Vmulps_ymm_ymm_ymmm256,
            // The conditions of VCMPPS that signal nothing for quiet NaNs.
            Two::LessFloat => return self.compare(d, x, y, 0x11),
            Two::EqualFloat => return self.compare(d, x, y, 0),
            Two::AtMostFloat => return self.compare(d, x, y, 0x12),
            Two::Unordered => return self.compare(d, x, y, 3),
            Two::HighHalves => Code::VEX_Vpmulhuw_ymm_ymm_ymmm256,
            Two::Product => Code::VEX_Vpmuludq_ymm_ymm_ymmm256,
            Two::SignedProduct => Code::VEX_Vpmuldq_ymm_ymm_ymmm256,
            Two::AddPairs => Code::VEX_Vpaddq_ymm_ymm_ymmm256,
            Two::EqualPairs => Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256,
            Two::SubDoubles => Code::VEX_Vsubpd_ymm_ymm_ymmm256,
            Two::Low => Code::VEX_Vpunpckldq_ymm_ymm_ymmm256,
            Two::High => Code::VEX_Vpunpckhdq_ymm_ymm_ymmm256,
            Two::LowPairs => Code::VEX_Vpunpcklqdq_ymm_ymm_ymmm256,
            Two::HighPairs => Code::VEX_Vpunpckhqdq_ymm_ymm_ymmm256,
            Two::Mixed => return self.with_number(Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8, d, x, y, 0xaa),
            // These have a number that is known.
            Two::ShlPairs | Two::ShrPairs => return Err(TooLarge),
        };
        self.op(code, d, x, y)
    }

    fn only_in_memory(&self, value: Value) -> bool {
        self.registers.find(value).is_none()
            && self.registers.left(value) == 1
            && self.registers.in_memory(value).is_some()
    }

    fn quads(&mut self, value: Value, table: usize, bytes: Value, lane: u8) -> Result<(), TooLarge> {
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
        self.put(Instruction::with2(Code::VEX_Vmovdqu_xmm_xmmm128, HALF[d], row))?;
        from.displacement += 16;
        self.put(Instruction::with2(Code::Mov_r32_rm32, R10D, from))?;
        self.put(Instruction::with4(Code::VEX_Vinserti128_ymm_ymm_xmmm128_imm8, VECTOR[d], VECTOR[d], row, 1u32))?;
        self.registers.used(&[bytes]);
        Ok(())
    }

    fn fma(&mut self, value: Value, [a, b, c]: [Value; 3], minus_product: bool, minus_c: bool) -> Result<(), TooLarge> {
        let all = [a, b, c];
        // The result replaces an operand: that of the sum if it is not needed again, otherwise a factor.
        let ends =
            |this: &Self, value: Value| this.registers.left(value) == all.iter().filter(|x| **x == value).count();
        let (a, b) = if ends(self, b) && !ends(self, a) { (b, a) } else { (a, b) };
        let (into, others) = if ends(self, c) || !ends(self, a) { (c, [a, b]) } else { (a, [b, c]) };
        let sum = into == c && others == [a, b];
        let old = self.bring(into, &all)?;
        let x = self.bring(others[0], &all)?;
        let y = self.last(others[1], &all)?;
        let d = if ends(self, into) {
            self.registers.used(&all);
            self.registers.becomes(old, value);
            old
        } else {
            // The factors are read after the copy, so it must not take the place of one.
            let d = self.registers.make(value, &all)?;
            self.moved()?;
            self.put(Instruction::with2(Code::VEX_Vmovaps_ymm_ymmm256, VECTOR[d], VECTOR[old]))?;
            self.registers.used(&all);
            d
        };
        // 231 adds the product of the others to the register, and 213 multiplies the register and adds the last.
        use Code::*;
        let code = match (sum, minus_product, minus_c) {
            (true, false, false) => VEX_Vfmadd231ps_ymm_ymm_ymmm256,
            (true, false, true) => VEX_Vfmsub231ps_ymm_ymm_ymmm256,
            (true, true, false) => VEX_Vfnmadd231ps_ymm_ymm_ymmm256,
            (true, true, true) => VEX_Vfnmsub231ps_ymm_ymm_ymmm256,
            (false, false, false) => VEX_Vfmadd213ps_ymm_ymm_ymmm256,
            (false, false, true) => VEX_Vfmsub213ps_ymm_ymm_ymmm256,
            (false, true, false) => VEX_Vfnmadd213ps_ymm_ymm_ymmm256,
            (false, true, true) => VEX_Vfnmsub213ps_ymm_ymm_ymmm256,
        };
        self.op(code, d, x, y)
    }

    fn write_row(&mut self, offset: u32, value: Value, everywhere: bool) -> Result<(), TooLarge> {
        let at = self.bring(value, &[value])?;
        self.registers.rescue(self.graph, Place::Row(offset), value)?;
        self.moved()?;
        let row = self.address(Home::Row(offset));
        let from = if self.masked && !everywhere {
            self.put(Instruction::with2(Code::VEX_Vmovdqu_ymm_ymmm256, VECTOR[SCRATCH], row))?;
            self.blend(SCRATCH, ACTIVE, Last::Register(at), SCRATCH)?;
            SCRATCH
        } else {
            // Otherwise other lanes of the row have what they had, and not this value.
            self.registers.stands_in(value, offset);
            at
        };
        self.put(Instruction::with2(Code::VEX_Vmovdqu_ymmm256_ymm, row, VECTOR[from]))?;
        self.registers.used(&[value]);
        Ok(())
    }

    fn write_lanes(&mut self, index: u8, value: Value, everywhere: bool) -> Result<(), TooLarge> {
        use Register::*;
        let at = self.bring(value, &[value])?;
        self.registers.rescue(self.graph, Place::Lanes(index), value)?;
        self.moved()?;
        let byte = self.address(Home::Lanes(index));
        self.put(Instruction::with2(Code::VEX_Vmovmskps_r32_ymm, EAX, VECTOR[at]))?;
        if self.masked && !everywhere {
            // The old bits are kept where the mask of active lanes is clear.
            self.put(Instruction::with2(Code::Movzx_r32_rm8, R10D, byte))?;
            self.put(Instruction::with2(Code::Xor_r32_rm32, EAX, R10D))?;
            self.put(Instruction::with2(Code::And_r32_rm32, EAX, R8D))?;
            self.put(Instruction::with2(Code::Xor_r32_rm32, EAX, R10D))?;
        }
        self.put(Instruction::with2(Code::Mov_rm8_r8, byte, AL))?;
        self.registers.used(&[value]);
        Ok(())
    }

    /// Adds the active lanes outside of a mask to the count.
    fn count(&mut self, mask: Value, times: u32) -> Result<(), TooLarge> {
        use Register::*;
        let at = self.bring(mask, &[mask])?;
        self.put(Instruction::with2(Code::VEX_Vmovmskps_r32_ymm, EAX, VECTOR[at]))?;
        self.put(Instruction::with2(Code::Xor_rm32_imm32, EAX, 0xffu32))?;
        self.put(Instruction::with2(Code::And_r32_rm32, EAX, R8D))?;
        self.put(Instruction::with2(Code::Popcnt_r32_rm32, EAX, EAX))?;
        if times > 1 {
            self.put(Instruction::with3(Code::Imul_r32_rm32_imm32, EAX, EAX, times))?;
        }
        self.put(Instruction::with2(Code::Add_r32_rm32, R11D, EAX))?;
        self.registers.used(&[mask]);
        Ok(())
    }
}
