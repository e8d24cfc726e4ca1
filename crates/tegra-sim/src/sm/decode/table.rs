//! The rows.

use super::Row;
use crate::sm::exec::ops::{
    atomic, barrier, control, convert, double, fp32, half, int, logic, memory, special, tensor,
};

/// Forms as a bit set.
macro_rules! forms {
    ($($f:literal)*) => { 0 $(| 1 << $f)* };
}

macro_rules! rows {
    ($($base:literal [$($f:literal)*] $name:literal $($lower:ident)::+;)*) => {
        &[$(Row { base: $base, forms: forms!($($f)*), name: $name, lower: $($lower)::+ }),*]
    };
}

pub(super) const ROWS: &[Row] = rows! {
    0x002 [1 4 5 6] "MOV" logic::mov;
    0x003 [4] "P2R" logic::p2r;
    0x004 [1 4] "R2P" logic::r2p;
    0x005 [4] "CS2R" special::s2r;
    0x006 [4] "VOTE" special::vote_lower;
    0x007 [1 4 5 6] "SEL" logic::sel;
    0x008 [1 4 5 6] "FSEL" fp32::fsel;
    0x009 [1 4 5 6] "FMNMX" fp32::fmnmx;
    0x00a [1 4 5 6] "FSET" fp32::fset;
    0x00b [1 4 5 6] "FSETP" fp32::fsetp;
    0x00c [1 4 5 6] "ISETP" int::isetp;
    0x010 [1 2 3 4 5 6 7] "IADD3" int::iadd3;
    0x011 [1 2 3 4 5 6 7] "LEA" int::lea;
    0x012 [1 2 3 4 5 6 7] "LOP3" logic::lop3;
    0x013 [1 4 5 6] "IABS" int::iabs;
    0x014 [1 2 3 4 5 6 7] "VABSDIFF" int::vabsdiff;
    0x015 [1 2 3 4 5 6 7] "VABSDIFF4" int::vabsdiff4;
    0x016 [1 2 3 4 5 6 7] "PRMT" logic::prmt;
    0x017 [1 4 5 6] "IMNMX" int::imnmx;
    0x019 [1 2 3 4 5 6 7] "SHF" logic::shf;
    0x01a [1 4 5 6] "SGXT" int::sgxt;
    0x01b [1 4 5 6] "BMSK" int::bmsk;
    0x01c [4] "PLOP3" logic::plop3;
    0x020 [1 4 5 6] "FMUL" fp32::fmul;
    0x021 [1 2 3 7] "FADD" fp32::fadd;
    0x023 [1 2 3 4 5 6 7] "FFMA" fp32::ffma;
    0x024 [1 2 3 4 5 6 7] "IMAD" int::imad;
    0x025 [1 2 3 4 5 6 7] "IMAD.WIDE" int::imad_wide;
    0x026 [1 2 3 4 5 6 7] "IDP" int::idp;
    0x027 [1 2 3 4 5 6 7] "IMAD.HI" int::imad_hi;
    0x028 [1 4 5 6] "DMUL" double::dmul;
    0x029 [1 2 3 7] "DADD" double::dadd;
    0x02a [1 2 3 7] "DSETP" double::dsetp;
    0x02b [1 2 3 4 5 6 7] "DFMA" double::dfma;
    0x030 [1 2 3 7] "HADD2" half::hadd2;
    0x031 [1 2 3 4 5 6 7] "HFMA2" half::hfma2;
    0x032 [1 4 5 6] "HMUL2" half::hmul2;
    0x033 [1 2 3 7] "HSET2" half::hset2;
    0x034 [1 2 3 7] "HSETP2" half::hsetp2;
    0x035 [1 2 3 4 5 6 7] "HFMA2.MMA" half::hfma2;
    0x037 [1] "IMMA" tensor::imma_lower;
    0x03b [4] "LDSM" memory::ldsm;
    0x03c [1] "HMMA" tensor::hmma_lower;
    0x03e [1 4 5 6] "F2FP" convert::f2fp;
    0x03f [1] "DMMA" tensor::dmma_lower;
    0x040 [1 4 5 6] "HMNMX2" half::hmnmx2;
    0x043 [1] "F2IP" convert::f2ip;
    0x045 [1 4 5 6] "I2FP" convert::i2f;
    0x082 [4 6] "UMOV" logic::mov;
    0x083 [4] "UP2UR" logic::p2r;
    0x086 [4] "VOTEU" special::vote_lower;
    0x087 [1 4] "USEL" logic::sel;
    0x08c [1 4] "UISETP" int::isetp;
    0x090 [1 4] "UIADD3" int::iadd3;
    0x091 [1 4] "ULEA" int::lea;
    0x092 [1 4] "ULOP3" logic::lop3;
    0x096 [1 4] "UPRMT" logic::prmt;
    0x099 [1 4] "USHF" logic::shf;
    0x09a [1 4] "USGXT" int::sgxt;
    0x09b [1 4] "UBMSK" int::bmsk;
    0x09c [4] "UPLOP3" logic::plop3;
    0x0a4 [1 2 4] "UIMAD" int::imad;
    0x0a5 [1 2 4] "UIMAD.WIDE" int::imad_wide;

    0x0b9 [5] "ULDC" special::uldc;
    0x0bd [1] "UFLO" int::flo;
    0x0be [1] "UBREV" int::brev;
    0x0bf [1] "UPOPC" int::popc;
    0x100 [1 4 5 6] "FLO" int::flo;
    0x101 [1 4 5 6] "BREV" int::brev;
    0x102 [1 4 5 6] "FCHK" fp32::fchk;
    0x104 [1 4 5 6] "F2F" convert::f2f;
    0x105 [1 4 5 6] "F2I" convert::f2i;
    0x106 [1 4 5 6] "I2F" convert::i2f;
    0x107 [1 4 5 6] "FRND" convert::frnd;
    0x108 [1 4 5 6] "MUFU" fp32::mufu;
    0x109 [1 4 5 6] "POPC" int::popc;
    0x110 [1 4 5 6] "F2F" convert::f2f;
    0x111 [1 4 5 6] "F2I" convert::f2i;
    0x112 [1 4 5 6] "I2F" convert::i2f;
    0x113 [1 4 5 6] "FRND" convert::frnd;
    0x118 [4] "NOP" control::nop;
    0x119 [4] "S2R" special::s2r;
    0x11a [4] "DEPBAR" control::nop;
    0x11c [1] "B2R" barrier::b2r;
    0x11d [5] "BAR" barrier::bar_lower;
    0x141 [4] "BSYNC" control::bsync_lower;
    0x142 [4] "BREAK" control::break_lower;
    0x143 [1 4] "CALL" control::jump;
    0x144 [1 4] "CALL" control::jump;
    0x145 [4] "BSSY" control::bssy_lower;
    0x146 [4] "YIELD" control::yield_lower;
    0x147 [2 4] "BRA" control::bra_lower;
    0x148 [1 4] "WARPSYNC" control::warpsync_lower;
    0x149 [4] "BRX" control::jump;
    0x14d [4] "EXIT" control::exit_lower;
    0x150 [4] "RET" control::jump;
    0x155 [1 7] "BMOV" control::bmov_lower;
    0x156 [1 4] "BMOV" control::bmov_lower;
    0x15d [4] "NANOSLEEP" control::nop;
    0x180 [1 4] "LD" memory::load;
    0x181 [1 4] "LDG" memory::load;
    0x182 [5] "LDC" special::ldc;
    0x183 [4] "LDL" memory::local_lower;
    0x184 [4] "LDS" memory::shared_lower;
    0x185 [1 4] "ST" memory::store;
    0x186 [1 4] "STG" memory::store;
    0x187 [1 4] "STL" memory::local_lower;
    0x188 [1 4] "STS" memory::shared_lower;
    0x189 [1 2 4 7] "SHFL" special::shfl;
    0x18a [1 4] "ATOM" atomic::global;
    0x18b [1] "ATOM.CAS" atomic::global;
    0x18c [1] "ATOMS" atomic::shared;
    0x18d [1] "ATOMS.CAS" atomic::shared;
    0x18e [1 4] "RED" atomic::global;
    0x18f [4] "CCTL" control::nop;
    0x192 [4] "MEMBAR" control::nop;
    0x1a1 [1] "MATCH" special::match_lower;
    0x1a8 [1 4] "ATOMG" atomic::global;
    0x1a9 [1] "ATOMG.CAS" atomic::global;
    0x1ab [4] "ERRBAR" control::nop;
    0x1ae [1 7] "LDGSTS" memory::ldgsts;
    0x1af [4] "LDGDEPBAR" control::nop;
    0x1c2 [1] "R2UR" special::r2ur;
    0x1c3 [4] "S2UR" special::s2r;
    0x1c4 [1] "REDUX" special::redux;
};
