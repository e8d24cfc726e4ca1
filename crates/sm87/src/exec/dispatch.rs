//! The link from operations to their code. Every operation of the instruction set has code.

use super::access;
use super::lower::{Lower, Pool, Refused};
use super::ops::atomic::{self, Returns};
use super::ops::{barrier, control, convert, double, fp32, half, int, logic, memory, mufu, special, tensor};
use super::rows::Src;
use super::uop::Uop;
use crate::isa::{Op, Row};
use crate::word::Word;
use std::ops::Range;

/// Makes the micro-op of an operation.
pub(crate) fn lower(op: Op, l: &mut Lower<'_>) -> Result<Uop, Refused> {
    match op {
        // These instructions wait for others or give hints. There is nothing to wait for, because each
        // instruction completes before the next begins.
        Op::Pmtrig | Op::Nop | Op::Depbar | Op::Errbar | Op::Ldgdepbar => control::nop(l),
        Op::Membar => control::membar(l),
        Op::Cctl => control::cctl(l),
        Op::Nanosleep => control::nanosleep(l),
        Op::Bsync => barrier::bsync_lower(l),
        Op::Break => barrier::break_lower(l),
        Op::CallAbsoluteRegister => control::call_absolute_register(l),
        Op::CallAbsolute => control::call_absolute(l),
        Op::CallRegister => control::call_register(l),
        Op::Ret => control::ret(l),
        Op::Call => control::call(l),
        Op::Bssy => barrier::bssy_lower(l),
        Op::Yield => control::yield_lower(l),
        Op::BraUniform => control::bra_uniform(l),
        Op::Bra => control::bra_lower(l),
        Op::Warpsync => control::warpsync_lower(l),
        Op::Brx => control::brx(l),
        Op::Exit => control::exit_lower(l),
        Op::Lepc => control::lepc_lower(l),
        Op::BmovFromBarrier => control::bmov_from_barrier(l),
        Op::BmovBetween => control::bmov_between(l),
        Op::BmovToBarrier => control::bmov_to_barrier(l),
        Op::BmovImmediate => control::bmov_immediate(l),
        Op::Bpt => control::bpt_lower(l),
        Op::Mov => logic::mov(l),
        Op::P2r => logic::p2r(l),
        Op::R2p => logic::r2p(l),
        Op::Sel => logic::sel(l),
        Op::Lop3 => logic::lop3(l),
        Op::Prmt => logic::prmt(l),
        Op::Shf => logic::shf(l),
        Op::Plop3 => logic::plop3(l),
        Op::Plop3Sign => logic::plop3_sign(l),
        Op::Cs2r => special::cs2r(l),
        Op::Vote => special::vote_lower(l),
        Op::Uldc => special::uldc(l),
        Op::UldcIndexed => special::uldc_indexed(l),
        Op::S2r => special::s2r(l),
        Op::Ldc => special::ldc(l),
        Op::Shfl => special::shfl(l),
        Op::Match => special::match_lower(l),
        Op::R2ur => special::r2ur(l),
        Op::S2ur => special::s2ur(l),
        Op::Redux => special::redux(l),
        Op::Fsel => fp32::fsel(l),
        Op::Fmnmx => fp32::fmnmx(l),
        Op::Fset => fp32::fset(l),
        Op::Fsetp => fp32::fsetp(l),
        Op::Fmul => fp32::fmul(l),
        Op::Fadd => fp32::fadd(l),
        Op::Ffma => fp32::ffma(l),
        Op::Fchk => fp32::fchk(l),
        Op::Mufu => mufu::mufu(l),
        Op::Isetp => int::isetp(l),
        Op::Iadd3 => int::iadd3(l),
        Op::Lea => int::lea(l),
        Op::Iabs => int::iabs(l),
        Op::Vabsdiff => int::vabsdiff(l),
        Op::Vabsdiff4 => int::vabsdiff4(l),
        Op::Imnmx => int::imnmx(l),
        Op::Sgxt => int::sgxt(l),
        Op::Bmsk => int::bmsk(l),
        Op::Imad => int::imad(l),
        Op::ImadWide => int::imad_wide(l),
        Op::Idp => int::idp(l),
        Op::ImadHi => int::imad_hi(l),
        Op::Flo => int::flo(l),
        Op::Brev => int::brev(l),
        Op::Popc => int::popc(l),
        Op::Dmul => double::dmul(l),
        Op::Dadd => double::dadd(l),
        Op::Dsetp => double::dsetp(l),
        Op::Dfma => double::dfma(l),
        Op::Hadd2 => half::hadd2(l),
        Op::Hfma2 => half::hfma2(l),
        Op::Hmul2 => half::hmul2(l),
        Op::Hset2 => half::hset2(l),
        Op::Hsetp2 => half::hsetp2(l),
        Op::Hfma2Mma => half::hfma2_mma(l),
        Op::Hmnmx2 => half::hmnmx2(l),
        Op::Imma => tensor::imma_lower(l),
        Op::Movm => tensor::movm(l),
        Op::Hmma => tensor::hmma_lower(l),
        Op::Bmma => tensor::bmma_lower(l),
        Op::Dmma => tensor::dmma_lower(l),
        Op::I2i => convert::i2i(l),
        Op::I2ip => convert::i2ip(l),
        Op::F2fp => convert::f2fp(l),
        Op::F2ip => convert::f2ip(l),
        Op::I2fp | Op::I2f => convert::i2f(l),
        Op::F2f => convert::f2f(l),
        Op::F2i => convert::f2i(l),
        Op::Frnd => convert::frnd(l),
        Op::Ldsm => memory::ldsm(l),
        Op::Ld => memory::load_generic(l),
        Op::Ldg => memory::load(l),
        Op::Ldl => memory::load_local(l),
        Op::Lds => memory::load_shared(l),
        Op::St => memory::store_generic(l),
        Op::Stg => memory::store(l),
        Op::Stl => memory::store_local(l),
        Op::Sts => memory::store_shared(l),
        Op::Qspc => memory::query_space(l),
        Op::Ldgsts => memory::ldgsts(l),
        Op::B2r => barrier::b2r(l),
        Op::Bar => barrier::bar_lower(l),
        Op::Atom => atomic::generic(l, Returns::Old),
        Op::AtomCount => atomic::count_anywhere(l),
        Op::AtomCas => atomic::generic(l, Returns::Compared),
        Op::Atoms => atomic::shared(l, false),
        Op::AtomsCas => atomic::shared(l, true),
        Op::AtomsCount => atomic::count(l),
        Op::Arrives => atomic::arrives(l),
        Op::Red => atomic::global(l, Returns::Nothing),
        Op::Atomg => atomic::global(l, Returns::Old),
        Op::AtomgCas => atomic::global(l, Returns::Compared),
    }
}

/// The rows of a warp that an instruction names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The first row of each of the three sources. It is `None` where there is no source, or one that no instruction changes: an
    /// immediate, a word of a constant bank, or RZ.
    pub sources: [Option<u16>; 3],
    /// The rows that are written.
    pub written: Range<u16>,
    /// Whether its address is in a pair of registers, if it has one.
    pub is_wide: bool,
}

impl Named {
    /// Those of the instruction `word`, whose row is `row`. The result is `None` if it cannot be executed.
    pub fn of(row: &Row, word: Word) -> Option<Named> {
        let mut pool = Pool::default();
        let mut l = Lower::new(word, Some(row), (0, 0), &mut pool);
        let u = lower(row.op, &mut l).ok()?;
        let own = |s: Src| (s.is_own() && s != Src::reg(255)).then(|| (s.own() / 32) as u16);
        let written = l.written.start as u16..l.written.end as u16;
        Some(Named { sources: [u.a, u.b, u.c].map(own), written, is_wide: access::is_pair(&u) })
    }
}
