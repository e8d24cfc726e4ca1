//! The hosts that code is made for: their registers, and what their instructions are called.

use crate::graph::Two;
use iced_x86::{Code, IcedError, Instruction, MemoryOperand, Register};

/// The vectors of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Eight lanes: x86-64 with AVX2, FMA, F16C and POPCNT.
    Avx2,
    /// Sixteen lanes: the same with F, BW, DQ and VL of AVX-512.
    Avx512,
}

/// The last operand of an instruction: a register or a vector in memory.
#[derive(Clone, Copy)]
pub(crate) enum Last {
    Register(usize),
    Memory(MemoryOperand),
}

/// An instruction, unless its operands are some that it cannot have.
pub(crate) type Made = Result<Instruction, IcedError>;

/// The mask registers of hosts with AVX-512: one for what does not outlive an instruction, the lanes that execute the piece, and the odd
/// lanes.
pub(crate) const MASK: Register = Register::K1;
pub(crate) const ACTIVE_MASK: Register = Register::K6;
pub(crate) const ODD_MASK: Register = Register::K7;

impl Host {
    /// The host that this machine is, if code can be made for it.
    #[cfg(target_arch = "x86_64")]
    pub fn found() -> Option<Host> {
        let eight = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("popcnt");
        let sixteen = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        eight.then_some(if sixteen { Host::Avx512 } else { Host::Avx2 })
    }

    /// Code is made for x86-64 only.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn found() -> Option<Host> {
        None
    }

    /// The number of lanes of a vector.
    #[inline(always)]
    pub(crate) fn lanes(self) -> u32 {
        match self {
            Host::Avx2 => 8,
            Host::Avx512 => 16,
        }
    }

    /// The bytes of a vector.
    pub(crate) fn bytes(self) -> i64 {
        4 * i64::from(self.lanes())
    }

    /// The number of registers for values. The last two have other uses.
    pub(crate) fn registers(self) -> usize {
        match self {
            Host::Avx2 => 14,
            Host::Avx512 => 30,
        }
    }

    /// A register for what does not outlive a step.
    pub(crate) fn scratch(self) -> usize {
        self.registers()
    }

    /// The mask of the lanes that execute the piece, if some do not. Hosts with AVX-512 have it in a register for masks.
    pub(crate) fn active(self) -> usize {
        self.registers() + 1
    }

    /// The whole vector register with this number.
    pub(crate) fn vector(self, n: usize) -> Register {
        match self {
            Host::Avx2 => Register::YMM0 + n as u32,
            Host::Avx512 => Register::ZMM0 + n as u32,
        }
    }

    /// Its lower half.
    pub(crate) fn half(self, n: usize) -> Register {
        match self {
            Host::Avx2 => Register::XMM0 + n as u32,
            Host::Avx512 => Register::YMM0 + n as u32,
        }
    }

    /// An instruction with three operands.
    pub(crate) fn three(self, code: Code, d: usize, a: usize, last: Last) -> Made {
        let (d, a) = (self.vector(d), self.vector(a));
        match last {
            Last::Register(b) => Instruction::with3(code, d, a, self.vector(b)),
            Last::Memory(b) => Instruction::with3(code, d, a, b),
        }
    }

    /// One of two codes.
    pub(crate) fn either(self, avx2: Code, avx512: Code) -> Code {
        match self {
            Host::Avx2 => avx2,
            Host::Avx512 => avx512,
        }
    }

    /// The instruction for an operation on two vectors, if it is one that makes no mask.
    pub(crate) fn two(self, op: Two) -> Option<Code> {
        use Code::*;
        let (avx2, avx512) = match op {
            Two::Add => (VEX_Vpaddd_ymm_ymm_ymmm256, EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32),
            Two::Sub => (VEX_Vpsubd_ymm_ymm_ymmm256, EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32),
            Two::Mul => (VEX_Vpmulld_ymm_ymm_ymmm256, EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32),
            Two::And => (VEX_Vpand_ymm_ymm_ymmm256, EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32),
            Two::AndNot => (VEX_Vpandn_ymm_ymm_ymmm256, EVEX_Vpandnd_zmm_k1z_zmm_zmmm512b32),
            Two::Or => (VEX_Vpor_ymm_ymm_ymmm256, EVEX_Vpord_zmm_k1z_zmm_zmmm512b32),
            Two::Xor => (VEX_Vpxor_ymm_ymm_ymmm256, EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32),
            Two::Shl => (VEX_Vpsllvd_ymm_ymm_ymmm256, EVEX_Vpsllvd_zmm_k1z_zmm_zmmm512b32),
            Two::Shr => (VEX_Vpsrlvd_ymm_ymm_ymmm256, EVEX_Vpsrlvd_zmm_k1z_zmm_zmmm512b32),
            Two::Sar => (VEX_Vpsravd_ymm_ymm_ymmm256, EVEX_Vpsravd_zmm_k1z_zmm_zmmm512b32),
            Two::Least => (VEX_Vpminud_ymm_ymm_ymmm256, EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32),
            Two::Most => (VEX_Vpmaxud_ymm_ymm_ymmm256, EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32),
            Two::AddFloat => (VEX_Vaddps_ymm_ymm_ymmm256, EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er),
            Two::SubFloat => (VEX_Vsubps_ymm_ymm_ymmm256, EVEX_Vsubps_zmm_k1z_zmm_zmmm512b32_er),
            Two::MulFloat => (VEX_Vmulps_ymm_ymm_ymmm256, EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er),
            Two::HighHalves => (VEX_Vpmulhuw_ymm_ymm_ymmm256, EVEX_Vpmulhuw_zmm_k1z_zmm_zmmm512),
            Two::Product => (VEX_Vpmuludq_ymm_ymm_ymmm256, EVEX_Vpmuludq_zmm_k1z_zmm_zmmm512b64),
            Two::SignedProduct => (VEX_Vpmuldq_ymm_ymm_ymmm256, EVEX_Vpmuldq_zmm_k1z_zmm_zmmm512b64),
            Two::AddPairs => (VEX_Vpaddq_ymm_ymm_ymmm256, EVEX_Vpaddq_zmm_k1z_zmm_zmmm512b64),
            Two::SubDoubles => (VEX_Vsubpd_ymm_ymm_ymmm256, EVEX_Vsubpd_zmm_k1z_zmm_zmmm512b64_er),
            Two::Low => (VEX_Vpunpckldq_ymm_ymm_ymmm256, EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32),
            Two::High => (VEX_Vpunpckhdq_ymm_ymm_ymmm256, EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32),
            Two::LowPairs => (VEX_Vpunpcklqdq_ymm_ymm_ymmm256, EVEX_Vpunpcklqdq_zmm_k1z_zmm_zmmm512b64),
            Two::HighPairs => (VEX_Vpunpckhqdq_ymm_ymm_ymmm256, EVEX_Vpunpckhqdq_zmm_k1z_zmm_zmmm512b64),
            Two::Equal | Two::Greater | Two::EqualPairs | Two::LessFloat | Two::EqualFloat | Two::AtMostFloat => {
                return None;
            }
            Two::Unordered | Two::Mixed | Two::ShlPairs | Two::ShrPairs => return None,
        };
        Some(self.either(avx2, avx512))
    }

    /// The instruction that compares two vectors, and the number of its condition if it needs one.
    fn comparison(self, op: Two) -> Option<(Code, Option<u32>)> {
        use Code::*;
        let float = |condition| {
            Some((
                self.either(VEX_Vcmpps_ymm_ymm_ymmm256_imm8, EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae),
                Some(condition),
            ))
        };
        let integer = |avx2, avx512| Some((self.either(avx2, avx512), None));
        match op {
            Two::Equal => integer(VEX_Vpcmpeqd_ymm_ymm_ymmm256, EVEX_Vpcmpeqd_kr_k1_zmm_zmmm512b32),
            Two::Greater => integer(VEX_Vpcmpgtd_ymm_ymm_ymmm256, EVEX_Vpcmpgtd_kr_k1_zmm_zmmm512b32),
            Two::EqualPairs => integer(VEX_Vpcmpeqq_ymm_ymm_ymmm256, EVEX_Vpcmpeqq_kr_k1_zmm_zmmm512b64),
            // The conditions that signal nothing for quiet NaNs.
            Two::LessFloat => float(0x11),
            Two::EqualFloat => float(0),
            Two::AtMostFloat => float(0x12),
            Two::Unordered => float(3),
            _ => None,
        }
    }

    /// The comparison of two vectors, if the operation is one. `d` is a vector or, with AVX-512, a register for masks.
    pub(crate) fn compared(self, op: Two, d: Register, a: usize, last: Last) -> Option<Made> {
        let (code, condition) = self.comparison(op)?;
        let a = self.vector(a);
        Some(match (last, condition) {
            (Last::Register(b), Some(condition)) => Instruction::with4(code, d, a, self.vector(b), condition),
            (Last::Memory(b), Some(condition)) => Instruction::with4(code, d, a, b, condition),
            (Last::Register(b), None) => Instruction::with3(code, d, a, self.vector(b)),
            (Last::Memory(b), None) => Instruction::with3(code, d, a, b),
        })
    }

    /// The instruction that shifts by a number that is known.
    pub(crate) fn shift(self, op: Two) -> Code {
        use Code::*;
        match op {
            Two::Shl => self.either(VEX_Vpslld_ymm_ymm_imm8, EVEX_Vpslld_zmm_k1z_zmmm512b32_imm8),
            Two::Shr => self.either(VEX_Vpsrld_ymm_ymm_imm8, EVEX_Vpsrld_zmm_k1z_zmmm512b32_imm8),
            Two::ShlPairs => self.either(VEX_Vpsllq_ymm_ymm_imm8, EVEX_Vpsllq_zmm_k1z_zmmm512b64_imm8),
            Two::ShrPairs => self.either(VEX_Vpsrlq_ymm_ymm_imm8, EVEX_Vpsrlq_zmm_k1z_zmmm512b64_imm8),
            _ => self.either(VEX_Vpsrad_ymm_ymm_imm8, EVEX_Vpsrad_zmm_k1z_zmmm512b32_imm8),
        }
    }

    /// The fused instruction that adds the product of the others to its register (`sum`), or multiplies its register and adds the last.
    pub(crate) fn fma(self, sum: bool, minus_product: bool, minus_c: bool) -> Code {
        use Code::*;
        let (avx2, avx512) = match (sum, minus_product, minus_c) {
            (true, false, false) => (VEX_Vfmadd231ps_ymm_ymm_ymmm256, EVEX_Vfmadd231ps_zmm_k1z_zmm_zmmm512b32_er),
            (true, false, true) => (VEX_Vfmsub231ps_ymm_ymm_ymmm256, EVEX_Vfmsub231ps_zmm_k1z_zmm_zmmm512b32_er),
            (true, true, false) => (VEX_Vfnmadd231ps_ymm_ymm_ymmm256, EVEX_Vfnmadd231ps_zmm_k1z_zmm_zmmm512b32_er),
            (true, true, true) => (VEX_Vfnmsub231ps_ymm_ymm_ymmm256, EVEX_Vfnmsub231ps_zmm_k1z_zmm_zmmm512b32_er),
            (false, false, false) => (VEX_Vfmadd213ps_ymm_ymm_ymmm256, EVEX_Vfmadd213ps_zmm_k1z_zmm_zmmm512b32_er),
            (false, false, true) => (VEX_Vfmsub213ps_ymm_ymm_ymmm256, EVEX_Vfmsub213ps_zmm_k1z_zmm_zmmm512b32_er),
            (false, true, false) => (VEX_Vfnmadd213ps_ymm_ymm_ymmm256, EVEX_Vfnmadd213ps_zmm_k1z_zmm_zmmm512b32_er),
            (false, true, true) => (VEX_Vfnmsub213ps_ymm_ymm_ymmm256, EVEX_Vfnmsub213ps_zmm_k1z_zmm_zmmm512b32_er),
        };
        self.either(avx2, avx512)
    }

    /// The instructions that load and store a whole vector.
    pub(crate) fn load(self) -> Code {
        self.either(Code::VEX_Vmovdqu_ymm_ymmm256, Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512)
    }

    pub(crate) fn store(self) -> Code {
        self.either(Code::VEX_Vmovdqu_ymmm256_ymm, Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm)
    }
}
