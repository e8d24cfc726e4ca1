//! The machine code of a graph.
//!
//! The function gets the rows in RDI, the constants in RSI, the sets of lanes in RDX, the words of the pool in RCX, the lanes that execute
//! the piece in R8D, and the windows in R9. It executes the piece for as many lanes at a time as a vector of the host has. It returns in EAX how
//! many instructions lanes did not execute, because a guard was false for them.
//! Lanes that do not execute it compute with zeros, because they may hold a denormal, with which a host takes eighty times as long for a product.

use crate::code::Pool;
use crate::graph::{Graph, Node, One, Place, Two, Value};
use crate::host::{ACTIVE_MASK, Host, Last, MASK, Made, ODD_MASK};
use crate::memory::{Lanes, WINDOWS, Window};
use crate::order::{Step, steps};
use crate::registers::{Home, Move, Registers, SLOTS, TooLarge};
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

/// The NaN that the machine makes.
const NAN: u32 = 0x7fff_ffff;

/// Makes the machine code of a piece: a function for all lanes, one for some lanes, and, if the piece loads something, one for lanes that load from
/// places of their own.
pub(crate) fn functions(host: Host, graph: &Graph, pool: &mut Pool) -> Result<Vec<Vec<u8>>, TooLarge> {
    let steps = steps(graph);
    let mut made = |lanes: Lanes, end: u64| {
        let mut emitter = Emitter::new(host, graph, &steps, pool, lanes);
        emitter.whole(end).map(|end| (emitter.encoder.take_buffer(), end))
    };
    let (all, _) = made(Lanes::All, 0)?;
    // The place to which a function for some lanes may jump is known when the function was made once.
    let (_, end) = made(Lanes::Some, 0)?;
    let mut functions = vec![all, made(Lanes::Some, end)?.0];
    if graph.loads() {
        functions.push(made(Lanes::Spread, 0)?.0);
    }
    Ok(functions)
}

pub(crate) struct Emitter<'a> {
    pub host: Host,
    graph: &'a Graph,
    pool: &'a mut Pool,
    steps: &'a [Step],
    pub registers: Registers,
    encoder: Encoder,
    at: u64,
    pub lanes: Lanes,
    /// Of each value, whether lanes need it that do not execute the piece.
    everywhere: Vec<bool>,
}

pub(crate) fn memory(base: Register, displacement: i64) -> MemoryOperand {
    MemoryOperand::with_base_displ(base, displacement)
}

impl<'a> Emitter<'a> {
    fn new(host: Host, graph: &'a Graph, steps: &'a [Step], pool: &'a mut Pool, lanes: Lanes) -> Self {
        let registers = Registers::new(graph, steps, host.registers());
        let everywhere = graph.needed_everywhere();
        Emitter { host, graph, pool, steps, registers, encoder: Encoder::new(64), at: 0, lanes, everywhere }
    }

    /// Appends an instruction. Operands that an instruction cannot have are a mistake of this file.
    pub(crate) fn put(&mut self, made: Made) -> Result<(), TooLarge> {
        let encoded = made.and_then(|instruction| self.encoder.encode(&instruction, self.at));
        debug_assert!(encoded.is_ok(), "{encoded:?}");
        self.at += encoded.map_err(|_| TooLarge)? as u64;
        Ok(())
    }

    /// The whole function. `end` is the place behind the steps, and so is the result.
    fn whole(&mut self, end: u64) -> Result<u64, TooLarge> {
        use Register::*;
        let lanes = self.host.lanes();
        // Values on the stack begin at lines of the host's caches.
        self.put(Instruction::with1(Code::Push_r64, RBP))?;
        self.put(Instruction::with2(Code::Mov_r64_rm64, RBP, RSP))?;
        let loads = self.graph.loads();
        if loads {
            self.put(Instruction::with1(Code::Push_r64, WINDOWS))?;
            self.put(Instruction::with2(Code::Mov_r64_rm64, WINDOWS, R9))?;
        }
        self.put(Instruction::with2(Code::Sub_rm64_imm32, RSP, (SLOTS as i64 * self.host.bytes()) as i32))?;
        self.put(Instruction::with2(Code::And_rm64_imm8, RSP, -64i32))?;
        self.put(Instruction::with2(Code::Mov_r32_imm32, R9D, 32 / lanes))?;
        self.put(Instruction::with2(Code::Xor_r32_rm32, R11D, R11D))?;
        if self.host == Host::Avx512 {
            self.put(Instruction::with2(Code::Mov_r32_imm32, EAX, 0xaaaau32))?;
            self.put(Instruction::with2(Code::VEX_Kmovw_kr_r32, ODD_MASK, EAX))?;
        }
        let top = self.at;
        if self.lanes == Lanes::Some {
            self.begin_masked(end)?;
        }
        for &step in self.steps {
            self.step(step)?;
        }
        let found = self.at;
        self.put(Instruction::with2(Code::Add_rm64_imm8, RDI, self.host.bytes() as i32))?;
        self.put(Instruction::with2(Code::Add_rm64_imm8, RDX, (lanes / 8) as i32))?;
        if loads {
            self.put(Instruction::with2(Code::Add_rm64_imm32, WINDOWS, Window::step(self.host) as i32))?;
        }
        self.put(Instruction::with2(Code::Shr_rm32_imm8, R8D, lanes))?;
        self.put(Instruction::with1(Code::Dec_rm32, R9D))?;
        self.put(Instruction::with_branch(Code::Jne_rel32_64, top))?;
        self.put(Instruction::with2(Code::Mov_r32_rm32, EAX, R11D))?;
        if loads {
            self.put(Instruction::with2(Code::Mov_r64_rm64, WINDOWS, memory(RBP, -8)))?;
        }
        // Otherwise each instruction of the host that uses half a vector would wait for the other half, until somebody clears these.
        self.put(Ok(Instruction::with(Code::VEX_Vzeroupper)))?;
        self.put(Ok(Instruction::with(Code::Leaveq)))?;
        self.put(Ok(Instruction::with(Code::Retnq)))?;
        Ok(found)
    }

    /// Makes the mask of the lanes that execute the piece. Without any, the steps are left out, unless they write all lanes.
    fn begin_masked(&mut self, end: u64) -> Result<(), TooLarge> {
        use Register::*;
        if !self.graph.writes.values().any(|write| write.everywhere) {
            self.put(Instruction::with2(Code::Test_rm32_imm32, R8D, self.all()))?;
            self.put(Instruction::with_branch(Code::Je_rel32_64, end))?;
        }
        if self.host == Host::Avx512 {
            return self.put(Instruction::with2(Code::VEX_Kmovw_kr_r32, ACTIVE_MASK, R8D));
        }
        let active = self.host.active();
        self.put(Instruction::with2(Code::VEX_Vmovd_xmm_rm32, self.host.half(active), R8D))?;
        self.put(Instruction::with2(
            Code::VEX_Vpbroadcastd_ymm_xmmm32,
            self.host.vector(active),
            self.host.half(active),
        ))?;
        self.lanes_of(active)
    }

    /// The bits of all lanes of a vector.
    fn all(&self) -> u32 {
        (1 << self.host.lanes()) - 1
    }

    /// Turns a register whose lanes all hold a set of lanes into a mask.
    fn lanes_of(&mut self, at: usize) -> Result<(), TooLarge> {
        let bits = memory(Register::RCX, Pool::BITS);
        self.op(Code::VEX_Vpand_ymm_ymm_ymmm256, at, at, Last::Memory(bits))?;
        self.op(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, at, at, Last::Memory(bits))
    }

    /// An instruction with three operands.
    pub(crate) fn op(&mut self, code: Code, d: usize, a: usize, last: Last) -> Result<(), TooLarge> {
        self.put(self.host.three(code, d, a, last))
    }

    /// Whether a value counts only in the lanes that execute the piece, which are some.
    fn is_partial(&self, value: Value) -> bool {
        self.lanes == Lanes::Some && !self.everywhere[value.0 as usize]
    }

    /// Whether the other lanes become zero when a value is loaded. With AVX-512, products leave them out.
    fn is_cut(&self, value: Value, home: Home) -> bool {
        self.host == Host::Avx2 && matches!(home, Home::Row(_)) && self.is_partial(value)
    }

    /// Appends an instruction that multiplies floats, for the lanes that count. (Sums take no longer with denormals than without.)
    fn put_product(&mut self, value: Value, made: Made) -> Result<(), TooLarge> {
        if self.host == Host::Avx2 || !self.is_partial(value) {
            return self.put(made);
        }
        self.put(made.map(|mut made| {
            made.set_op_mask(ACTIVE_MASK);
            made.set_zeroing_masking(true);
            made
        }))
    }

    /// A comparison, whose result is a vector or, with AVX-512, a register for masks.
    fn compared(&mut self, op: Two, d: Register, a: usize, last: Last) -> Result<(), TooLarge> {
        let made = self.host.compared(op, d, a, last).ok_or(TooLarge)?;
        self.put(made)
    }

    /// A comparison whose result is a mask of lanes, or of pairs.
    fn compare(&mut self, op: Two, d: usize, a: usize, last: Last) -> Result<(), TooLarge> {
        if self.host == Host::Avx2 {
            return self.compared(op, self.host.vector(d), a, last);
        }
        self.compared(op, MASK, a, last)?;
        let code = if op == Two::EqualPairs { Code::EVEX_Vpmovm2q_zmm_kr } else { Code::EVEX_Vpmovm2d_zmm_kr };
        self.put(Instruction::with2(code, self.host.vector(d), MASK))
    }

    /// `d = mask ? yes : no`.
    fn blend(&mut self, d: usize, mask: usize, yes: Last, no: usize) -> Result<(), TooLarge> {
        if self.host == Host::Avx512 {
            self.put(Instruction::with2(Code::EVEX_Vpmovd2m_kr_zmm, MASK, self.host.vector(mask)))?;
            return self.blend_by(MASK, d, yes, no);
        }
        let code = Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm;
        let [d, no, mask] = [d, no, mask].map(|n| self.host.vector(n));
        let made = match yes {
            Last::Register(b) => Instruction::with4(code, d, no, self.host.vector(b), mask),
            Last::Memory(b) => Instruction::with4(code, d, no, b, mask),
        };
        self.put(made)
    }

    /// The same with a register for masks.
    fn blend_by(&mut self, mask: Register, d: usize, yes: Last, no: usize) -> Result<(), TooLarge> {
        let code = Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32;
        let (d, no) = (self.host.vector(d), self.host.vector(no));
        let made = match yes {
            Last::Register(b) => Instruction::with3(code, d, no, self.host.vector(b)),
            Last::Memory(b) => Instruction::with3(code, d, no, b),
        };
        self.put(made.map(|mut made| {
            made.set_op_mask(mask);
            made
        }))
    }

    /// Puts the lanes of a mask into EAX.
    fn bits_of(&mut self, at: usize) -> Result<(), TooLarge> {
        if self.host == Host::Avx2 {
            return self.put(Instruction::with2(Code::VEX_Vmovmskps_r32_ymm, Register::EAX, self.host.vector(at)));
        }
        self.put(Instruction::with2(Code::EVEX_Vpmovd2m_kr_zmm, MASK, self.host.vector(at)))?;
        self.put(Instruction::with2(Code::VEX_Kmovw_r32_kr, Register::EAX, MASK))
    }

    pub(crate) fn address(&mut self, home: Home) -> MemoryOperand {
        match home {
            Home::Row(offset) => memory(Register::RDI, i64::from(offset) * 4),
            Home::Constant(offset) => memory(Register::RSI, i64::from(offset) * 4),
            Home::Word(x) => memory(Register::RCX, self.pool.place(x)),
            Home::Slot(slot) => memory(Register::RSP, slot as i64 * self.host.bytes()),
            Home::Lanes(index) => memory(Register::RDX, i64::from(index) * 4),
        }
    }

    /// Executes what the registers asked for.
    pub(crate) fn moved(&mut self) -> Result<(), TooLarge> {
        for asked in std::mem::take(&mut self.registers.moves) {
            match asked {
                Move::Load(at, _, home @ Home::Lanes(_)) => {
                    let from = self.address(home);
                    self.load_lanes(at, from)?;
                }
                Move::Load(at, value, home) if self.is_cut(value, home) => {
                    let from = Last::Memory(self.address(home));
                    self.op(Code::VEX_Vpand_ymm_ymm_ymmm256, at, self.host.active(), from)?;
                }
                Move::Load(at, _, home) => {
                    let from = self.address(home);
                    self.put(Instruction::with2(self.host.load(), self.host.vector(at), from))?;
                }
                Move::Spill(at, slot) => {
                    let to = self.address(Home::Slot(slot));
                    self.put(Instruction::with2(self.host.store(), to, self.host.vector(at)))?;
                }
            }
        }
        Ok(())
    }

    /// Makes a mask of a set of lanes in memory.
    fn load_lanes(&mut self, at: usize, from: MemoryOperand) -> Result<(), TooLarge> {
        if self.host == Host::Avx512 {
            self.put(Instruction::with2(Code::VEX_Kmovw_kr_km16, MASK, from))?;
            return self.put(Instruction::with2(Code::EVEX_Vpmovm2d_zmm_kr, self.host.vector(at), MASK));
        }
        self.put(Instruction::with2(Code::VEX_Vpbroadcastb_ymm_xmmm8, self.host.vector(at), from))?;
        self.lanes_of(at)
    }

    /// The register of a value.
    fn bring(&mut self, value: Value, kept: &[Value]) -> Result<usize, TooLarge> {
        let at = self.registers.bring(value, kept)?;
        self.moved()?;
        Ok(at)
    }

    /// A value as a last operand: from memory if this is the only step that still needs it.
    fn last(&mut self, value: Value, kept: &[Value]) -> Result<Last, TooLarge> {
        Ok(match self.only_in_memory(value) {
            Some(home) => Last::Memory(self.address(home)),
            None => Last::Register(self.bring(value, kept)?),
        })
    }

    /// Where a value is that one step still needs, if it is in no register and can be an operand there.
    fn only_in_memory(&self, value: Value) -> Option<Home> {
        let home = self.registers.in_memory(value).filter(|home| !self.is_cut(value, *home));
        home.filter(|_| self.registers.find(value).is_none() && self.registers.left(value) == 1)
    }

    /// The register for the result of a step, whose operands may make room for it.
    pub(crate) fn made(&mut self, value: Value, operands: &[Value]) -> Result<usize, TooLarge> {
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
                self.put(Instruction::with3(
                    self.host.shift(op),
                    self.host.vector(d),
                    self.host.vector(x),
                    u32::from(n),
                ))
            }
            Node::Quads { table, bytes, lane } => self.quads(value, table, bytes, lane),
            Node::Loaded { window, bytes } => self.loaded(value, window, bytes),
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
        use Code::*;
        let x = self.bring(a, &[a])?;
        let d = self.made(value, &[a])?;
        let (to, from, scratch) = (self.host.vector(d), self.host.vector(x), self.host.scratch());
        let either = |avx2, avx512| self.host.either(avx2, avx512);
        match op {
            One::ToFloat => {
                let code = either(VEX_Vcvtdq2ps_ymm_ymmm256, EVEX_Vcvtdq2ps_zmm_k1z_zmmm512b32_er);
                self.put(Instruction::with2(code, to, from))
            }
            One::ToInteger => {
                let code = either(VEX_Vcvttps2dq_ymm_ymmm256, EVEX_Vcvttps2dq_zmm_k1z_zmmm512b32_sae);
                self.put(Instruction::with2(code, to, from))
            }
            One::Nearest => {
                // To nearest even, without an exception.
                let code = either(VEX_Vroundps_ymm_ymmm256_imm8, EVEX_Vrndscaleps_zmm_k1z_zmmm512b32_imm8_sae);
                self.put(Instruction::with3(code, to, from, 8u32))
            }
            One::Half => {
                let narrow = either(VEX_Vcvtps2ph_xmmm128_ymm_imm8, EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae);
                let widen = either(VEX_Vpmovzxwd_ymm_xmmm128, EVEX_Vpmovzxwd_zmm_k1z_ymmm256);
                self.put(Instruction::with3(narrow, self.host.half(scratch), from, 0u32))?;
                self.put(Instruction::with2(widen, to, self.host.half(scratch)))
            }
            One::Canonical => {
                let nan = Last::Memory(memory(Register::RCX, self.pool.place(NAN)));
                if self.host == Host::Avx512 {
                    self.compared(Two::Unordered, MASK, x, Last::Register(x))?;
                    return self.blend_by(MASK, d, nan, x);
                }
                self.compare(Two::Unordered, scratch, x, Last::Register(x))?;
                self.blend(d, scratch, nan, x)
            }
        }
    }

    fn two(&mut self, value: Value, op: Two, a: Value, b: Value) -> Result<(), TooLarge> {
        // An operand that is in memory and not needed again is best the last one.
        let (a, b) = match [a, b].map(|x| self.only_in_memory(x)) {
            [Some(_), None] if op.commutes() => (b, a),
            _ => (a, b),
        };
        let x = self.bring(a, &[a, b])?;
        let y = self.last(b, &[a, b])?;
        let d = self.made(value, &[a, b])?;
        if let Some(code) = self.host.two(op) {
            let made = self.host.three(code, d, x, y);
            return if op == Two::MulFloat { self.put_product(value, made) } else { self.put(made) };
        }
        if op == Two::Mixed {
            return self.mixed(d, x, y);
        }
        self.compare(op, d, x, y)
    }

    /// The even lanes of `x`, and the odd lanes of `y`.
    fn mixed(&mut self, d: usize, x: usize, y: Last) -> Result<(), TooLarge> {
        if self.host == Host::Avx512 {
            return self.blend_by(ODD_MASK, d, y, x);
        }
        let code = Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8;
        let (d, x) = (self.host.vector(d), self.host.vector(x));
        self.put(match y {
            Last::Register(y) => Instruction::with4(code, d, x, self.host.vector(y), 0xaau32),
            Last::Memory(y) => Instruction::with4(code, d, x, y, 0xaau32),
        })
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
            let copy = self.host.either(Code::VEX_Vmovaps_ymm_ymmm256, Code::EVEX_Vmovaps_zmm_k1z_zmmm512);
            self.put(Instruction::with2(copy, self.host.vector(d), self.host.vector(old)))?;
            self.registers.used(&all);
            d
        };
        self.put_product(value, self.host.three(self.host.fma(sum, minus_product, minus_c), d, x, y))
    }

    fn write_row(&mut self, offset: u32, value: Value, everywhere: bool) -> Result<(), TooLarge> {
        let at = self.bring(value, &[value])?;
        self.registers.rescue(self.graph, Place::Row(offset), value)?;
        self.moved()?;
        let row = self.address(Home::Row(offset));
        let from = if self.lanes == Lanes::Some && !everywhere {
            let scratch = self.host.scratch();
            self.put(Instruction::with2(self.host.load(), self.host.vector(scratch), row))?;
            match self.host {
                Host::Avx2 => self.blend(scratch, self.host.active(), Last::Register(at), scratch)?,
                Host::Avx512 => self.blend_by(ACTIVE_MASK, scratch, Last::Register(at), scratch)?,
            }
            scratch
        } else {
            // Otherwise other lanes of the row have what they had, and not this value.
            self.registers.stands_in(value, offset);
            at
        };
        self.put(Instruction::with2(self.host.store(), row, self.host.vector(from)))?;
        self.registers.used(&[value]);
        Ok(())
    }

    fn write_lanes(&mut self, index: u8, value: Value, everywhere: bool) -> Result<(), TooLarge> {
        use Register::*;
        let at = self.bring(value, &[value])?;
        self.registers.rescue(self.graph, Place::Lanes(index), value)?;
        self.moved()?;
        let set = self.address(Home::Lanes(index));
        let (load, store, part) = match self.host {
            Host::Avx2 => (Code::Movzx_r32_rm8, Code::Mov_rm8_r8, AL),
            Host::Avx512 => (Code::Movzx_r32_rm16, Code::Mov_rm16_r16, AX),
        };
        self.bits_of(at)?;
        if self.lanes == Lanes::Some && !everywhere {
            // The old bits are kept where the mask of active lanes is clear.
            self.put(Instruction::with2(load, R10D, set))?;
            self.put(Instruction::with2(Code::Xor_r32_rm32, EAX, R10D))?;
            self.put(Instruction::with2(Code::And_r32_rm32, EAX, R8D))?;
            self.put(Instruction::with2(Code::Xor_r32_rm32, EAX, R10D))?;
        }
        self.put(Instruction::with2(store, set, part))?;
        self.registers.used(&[value]);
        Ok(())
    }

    /// Adds the active lanes outside of a mask to the count.
    fn count(&mut self, mask: Value, times: u32) -> Result<(), TooLarge> {
        use Register::*;
        let at = self.bring(mask, &[mask])?;
        self.bits_of(at)?;
        self.put(Instruction::with2(Code::Xor_rm32_imm32, EAX, self.all()))?;
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
