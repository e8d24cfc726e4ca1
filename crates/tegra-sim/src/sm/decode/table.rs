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
    ($($base:literal [$($f:literal)*] $name:literal $($lower:ident)::+ $text:literal;)*) => {
        &[$(Row { base: $base, forms: forms!($($f)*), name: $name, lower: $($lower)::+, text: $text }),*]
    };
}

pub(super) const ROWS: &[Row] = rows! {
    0x001 [4] "PMTRIG" control::nop "PMTRIG{p87!} {uS}";
    0x002 [1 4 5 6] "MOV" logic::mov "MOV {d}, {uS}";
    0x003 [1 4 5 6] "P2R" logic::p2r "P2R {d}, PR, {A}{76:2|B1|B2|B3}, {uS}";
    0x004 [1 4 5 6] "R2P" logic::r2p "R2P PR, {A}{76:2|B1|B2|B3}, {uS}";
    0x005 [4] "CS2R" special::s2r "CS2R{!80.32} {d}, {sr}";
    0x006 [4] "VOTE" special::vote_lower "VOTE{72:2ALL|ANY|EQ} {dz}{P81}, {p87}";
    0x007 [1 4 5 6] "SEL" logic::sel "SEL {d}, {A}, {uS}, {p87}";
    0x008 [1 4 5 6] "FSEL" fp32::fsel "FSEL{80.FTZ} {d}, {fA}, {fS}, {p87}";
    0x009 [1 4 5 6] "FMNMX" fp32::fmnmx "FMNMX{80.FTZ}{81.NAN}{82.XORSIGN} {d}, {fA}, {fS}, {p87}";
    0x00a [1 4 5 6] "FSET" fp32::fset "FSET.BF{fcmp}{80.FTZ}{comb} {d}, {fA}, {fS}, {p87}";
    0x00b [1 4 5 6] "FSETP" fp32::fsetp "FSETP{fcmp}{80.FTZ}{comb} {P81}, {P84}, {fA}, {fS}, {p87}";
    0x00c [1 4 5 6] "ISETP" int::isetp "ISETP{icmp}{!73.U32}{comb}{72.EX} {P81}, {P84}, {A}, {xS}, {p87}{72 p68}";
    0x010 [1 2 3 4 5 6 7] "IADD3" int::iadd3 "IADD3{74.X} {d}, {P81?}{P84?}{iA}, {iB}, {iC}{74 p87}{74 p77}";
    0x011 [1 2 3 4 5 6 7] "LEA" int::lea "LEA{80.HI}{74.X}{73.SX32} {d}, {P81?}{lA}, {lS}{leac}, {75:5#}{74 p87}";
    0x012 [1 2 3 4 5 6 7] "LOP3" logic::lop3 "LOP3.LUT{80.PAND} {P81?}{d}, {A}, {uB}, {uC}, {72:8#}, {p87}";
    0x013 [1 4 5 6] "IABS" int::iabs "IABS {d}, {uS}";
    0x014 [1 2 3 4 5 6 7] "VABSDIFF" int::vabsdiff "VABSDIFF{!73.U32} {d}, {A}, {uB}, {uC}";
    0x015 [1 2 3 4 5 6 7] "VABSDIFF4" int::vabsdiff4 "VABSDIFF4{!73.U8}{75.ACC} {d}, {P81?}{A}, {uB}, {uC}";
    0x016 [1 2 3 4 5 6 7] "PRMT" logic::prmt "PRMT{72:3|F4E|B4E|RC8|ECL|ECR|RC16} {d}, {A}, {uB}, {uC}";
    0x017 [1 4 5 6] "IMNMX" int::imnmx "IMNMX{!73.U32} {d}, {A}, {xS}, {p87}";
    0x019 [1 2 3 4 5 6 7] "SHF" logic::shf "SHF{76:1L|R}{75.W}{73:2S64|U64|S32|U32}{80.HI} {d}, {A}, {uB}, {uC}";
    0x01a [1 4 5 6] "SGXT" int::sgxt "SGXT{75.W}{!73.U32} {d}, {A}, {uS}";
    0x01b [1 4 5 6] "BMSK" int::bmsk "BMSK{75.W} {d}, {A}, {uS}";
    0x01c [4] "PLOP3" logic::plop3 "PLOP3.LUT {P81}, {P84}, {p87}, {p77}, {p68}, {lut}, {16:8#}";
    0x01f [1 5 6] "PLOP3" logic::plop3_sign "PLOP3.LUT {P81}, {P84}, {A}.SIGN, {zB}.SIGN, {uC}.SIGN, {72:8#}, {16:8#}";
    0x020 [1 4 5 6] "FMUL" fp32::fmul "FMUL{flush}{84:3|D8|D4|D2||M2|M4|M8}{rnd}{77.SAT} {d}, {fA}, {fS}";
    0x021 [1 2 3 7] "FADD" fp32::fadd "FADD{80.FTZ}{rnd}{77.SAT} {d}, {fA}, {fT}";
    0x023 [1 2 3 4 5 6 7] "FFMA" fp32::ffma "FFMA{flush}{rnd}{77.SAT} {d}, {fA}, {fB}, {fC}";
    0x024 [1 2 3 4 5 6 7] "IMAD" int::imad "IMAD{mad}{!73.U32}{74.X} {d}, {A}, {xB}, {iC}{74 p87}";
    0x025 [1 2 3 4 5 6 7] "IMAD.WIDE" int::imad_wide "IMAD.WIDE{!73.U32}{74.X} {d}, {P81?}{A}, {xB}, {iC}{74 p87}";
    0x026 [1 2 3 4 5 6 7] "IDP" int::idp "IDP{idp} {d}, {A}, {uB}, {nC}";
    0x027 [1 2 3 4 5 6 7] "IMAD.HI" int::imad_hi "IMAD.HI{!73.U32}{74.X} {d}, {P81?}{A}, {xB}, {iC}{74 p87}";
    0x028 [1 4 5 6] "DMUL" double::dmul "DMUL{rnd} {d}, {dA}, {dS}";
    0x029 [1 2 3 7] "DADD" double::dadd "DADD{rnd} {d}, {dA}, {dT}";
    0x02a [1 2 3 7] "DSETP" double::dsetp "DSETP{dcmp}{comb} {P81}, {P84}, {dA}, {dT}, {p87}";
    0x02b [1 2 3 4 5 6 7] "DFMA" double::dfma "DFMA{rnd} {d}, {dA}, {dB}, {dC}";
    0x030 [1 2 3 7] "HADD2" half::hadd2 "HADD2{78.F32}{80.FTZ}{77.SAT} {d}, {hA}, {hT}";
    0x031 [1 2 3 4 5 6 7] "HFMA2" half::hfma2 "HFMA2{85.BF16_V2}{78.F32}{flush}{77.SAT}{79.RELU} {d}, {hA}, {hB}, {hC}{relu}";
    0x032 [1 4 5 6] "HMUL2" half::hmul2 "HMUL2{78.F32}{flush}{77.SAT} {d}, {hA}, {hS}";
    0x033 [1 2 3 7] "HSET2" half::hset2 "HSET2{71.BF}{fcmp}{80.FTZ}{hcomb} {d}, {hA}, {hT}, {p87}";
    0x034 [1 2 3 7] "HSETP2" half::hsetp2 "HSETP2{fcmp}{71.H_AND}{80.FTZ}{hcomb} {P81}, {P84}, {hA}, {hT}, {p87}";
    0x035 [1 2 3 4 5 6 7] "HFMA2.MMA" half::hfma2 "HFMA2.MMA{flush}{77.SAT}{79.RELU} {d}, {mA}, {mB}, {mC}{relu}";
    0x037 [1] "IMMA" tensor::imma_lower "IMMA{imma}{82.SAT} {d}, {A}.ROW, {uS}.COL, {uC}{up}";
    0x038 [1 4 5 6] "I2I" convert::i2i "I2I{76:2U8|S8|U16|S16}.S32.SAT {d}, {uS}";
    0x039 [1 4 5 6] "I2IP" convert::i2ip "I2IP{76:3U8|S8|U16|S16|U2|S2|U4|S4}.S32{74:2SAT||SATRELU|?} {d}, {A}, {uS}, {uC}{i2ip}";
    0x03a [1] "MOVM" tensor::movm "MOVM.16{78:2MT88|M832|M864|?} {d}, {A}";
    0x03b [4] "LDSM" memory::ldsm "LDSM.16{78:2M88|MT88}{72:2|2|4} {d}, {shared}";
    0x03c [1] "HMMA" tensor::hmma_lower "HMMA{hmma} {d}, {tA}, {tS}, {uC}{up}";
    0x03e [1 4 5 6] "F2FP" convert::f2fp "F2FP{77.SATFINITE}{75.RELU}{76.BF16}{!78.PACK_AB}{78.MERGE_C}{79:2|RM|RP|RZ} {d}, {f2fp}";
    0x03f [1] "DMMA" tensor::dmma_lower "DMMA.884 {d}, {A}, {uS}, {uC}";
    0x040 [1 4 5 6] "HMNMX2" half::hmnmx2 "HMNMX2{85.BF16_V2}{80.FTZ}{81.NAN}{82.XORSIGN} {d}, {hA}, {hS}, {p87}";
    0x043 [1 4 5 6] "F2IP" convert::f2ip "F2IP{76:2U8|S8|?|?}.F32{78:2|?|?|TRUNC}{74.NTZ}{75.RELU} {d}, {A}, {uS}, {uC}{72.H1}";
    0x045 [1 4 5 6] "I2FP" convert::i2f "I2FP.F32{74:1U32|S32}{rnd} {d}, {uS}";
    0x082 [4 6] "UMOV" logic::mov "UMOV {d}, {uS}";
    0x083 [4] "UP2UR" logic::p2r "UP2UR {d}, UPR, {A}{76:2|B1|B2|B3}, {uS}";
    0x086 [4] "VOTEU" special::vote_lower "VOTEU{72:2ALL|ANY|EQ} {dz}{P81}, {p87v}";
    0x087 [1 4] "USEL" logic::sel "USEL {d}, {A}, {uS}, {p87}";
    0x08c [1 4] "UISETP" int::isetp "UISETP{icmp}{!73.U32}{comb}{72.EX} {P81}, {P84}, {A}, {xS}, {p87}{72 p68}";
    0x090 [1 4] "UIADD3" int::iadd3 "UIADD3{74.X} {d}, {P81?}{P84?}{iA}, {iB}, {iC}{74 p87}{74 p77}";
    0x091 [1 4] "ULEA" int::lea "ULEA{80.HI}{74.X}{73.SX32} {d}, {P81?}{lA}, {lS}{leac}, {75:5#}{74 p87}";
    0x092 [1 4] "ULOP3" logic::lop3 "ULOP3.LUT{80.PAND} {P81?}{d}, {A}, {uB}, {uC}, {72:8#}, {p87}";
    0x096 [1 4] "UPRMT" logic::prmt "UPRMT{72:3|F4E|B4E|RC8|ECL|ECR|RC16} {d}, {A}, {uB}, {uC}";
    0x099 [1 4] "USHF" logic::shf "USHF{76:1L|R}{75.W}{73:2S64|U64|S32|U32}{80.HI} {d}, {A}, {uB}, {uC}";
    0x09a [1 4] "USGXT" int::sgxt "USGXT{75.W}{!73.U32} {d}, {A}, {uS}";
    0x09b [1 4] "UBMSK" int::bmsk "UBMSK{75.W} {d}, {A}, {uS}";
    0x09c [4] "UPLOP3" logic::plop3 "UPLOP3.LUT {P81}, {P84}, {p87}, {p77}, {p68}, {lut}, {16:8#}";
    0x0a4 [1 2 4] "UIMAD" int::imad "UIMAD{mad}{!73.U32}{74.X} {d}, {A}, {xB}, {iC}{74 p87}";
    0x0a5 [1 2 4] "UIMAD.WIDE" int::imad_wide "UIMAD.WIDE{!73.U32}{74.X} {d}, {P81?}{A}, {xB}, {iC}{74 p87}";

    0x0b9 [5] "ULDC" special::uldc "ULDC{csize} {d}, {uS}";
    0x0bd [1] "UFLO" int::flo "UFLO{!73.U32}{74.SH} {d}, {P81?}{nS}";
    0x0be [1] "UBREV" int::brev "UBREV {d}, {uS}";
    0x0bf [1] "UPOPC" int::popc "UPOPC {d}, {nS}";
    0x100 [1 4 5 6] "FLO" int::flo "FLO{!73.U32}{74.SH} {d}, {P81?}{nS}";
    0x101 [1 4 5 6] "BREV" int::brev "BREV {d}, {uS}";
    0x102 [1 4 5 6] "FCHK" fp32::fchk "FCHK {P81}, {fA}, {fS}";
    0x104 [1 4 5 6] "F2F" convert::f2f "F2F{80.FTZ}{75:3|F16|F32|F64|BF16}{84:3|F16|F32|F64|BF16}{rnd} {d}, {cS}";
    0x105 [1 4 5 6] "F2I" convert::f2i "F2I{80.FTZ}{f2i}{84:2|F16||F64}{78:2|FLOOR|CEIL|TRUNC}{77.NTZ} {d}, {cS}";
    0x106 [1 4 5 6] "I2F" convert::i2f "I2F{75:2|F16||F64}{i2f}{rnd} {d}, {bS}";
    0x107 [1 4 5 6] "FRND" convert::frnd "FRND{80.FTZ}{75:2|F16||F64}{78:2|FLOOR|CEIL|TRUNC} {d}, {cS}";
    0x108 [1 4 5 6] "MUFU" fp32::mufu "MUFU{74:4COS|SIN|EX2|LG2|RCP|RSQ|RCP64H|RSQ64H|SQRT|TANH}{73.F16} {d}, {cS}";
    0x109 [1 4 5 6] "POPC" int::popc "POPC {d}, {nS}";
    0x110 [1 4 5 6] "F2F" convert::f2f "F2F{80.FTZ}{75:3|F16|F32|F64|BF16}{84:3|F16|F32|F64|BF16}{rnd} {d}, {cS}";
    0x111 [1 4 5 6] "F2I" convert::f2i "F2I{80.FTZ}{f2i}{84:2|F16||F64}{78:2|FLOOR|CEIL|TRUNC}{77.NTZ} {d}, {cS}";
    0x112 [1 4 5 6] "I2F" convert::i2f "I2F{75:2|F16||F64}{i2f}{rnd} {d}, {bS}";
    0x113 [1 4 5 6] "FRND" convert::frnd "FRND{80.FTZ}{75:2|F16||F64}{78:2|FLOOR|CEIL|TRUNC} {d}, {cS}";
    0x118 [4] "NOP" control::nop "NOP";
    0x119 [4] "S2R" special::s2r "S2R {d}, {sr}";
    0x11a [4] "DEPBAR" control::nop "DEPBAR{depbar}";
    0x11c [1] "B2R" barrier::b2r "B2R.RESULT {d}{P81,}";
    0x11d [1 2 4 5] "BAR" barrier::bar_lower "BAR{bar}{80.DEFER_BLOCKING} {bar operands}";
    0x141 [4] "BSYNC" control::bsync_lower "BSYNC{p87!} B{16:4}";
    0x142 [4] "BREAK" control::break_lower "BREAK{p87!} B{16:4}";
    0x143 [1 4] "CALL" control::jump "CALL.ABS{86.NOINC} {absolute}";
    0x144 [1 4] "CALL" control::jump "CALL{85:1REL|ABS}{86.NOINC} {indirect}";
    0x145 [4] "BSSY" control::bssy_lower "BSSY{p87!} B{16:4}, {target}";
    0x146 [4] "YIELD" control::yield_lower "YIELD{p87!}";
    0x147 [2 4] "BRA" control::bra_lower "BRA{bra} {target}";
    0x148 [1 4 5 6] "WARPSYNC" control::warpsync_lower "WARPSYNC{exclusive}{p87!} {uS}";
    0x149 [4] "BRX" control::jump "BRX {indirect}";
    0x14d [4] "EXIT" control::exit_lower "EXIT{84.KEEPREFCOUNT}{85.PREEMPTED}{86.NO_ATEXIT}{p87!}";
    0x150 [4] "RET" control::jump "RET{85:1REL|ABS}{86.NODEC} {indirect}";
    0x155 [1 7] "BMOV" control::bmov_lower "BMOV.32{84.CLEAR} {bmov}";
    0x156 [1 4] "BMOV" control::bmov_lower "BMOV.32{84.CLEAR} {bmov}";
    0x15c [4] "BPT" control::bpt_lower "BPT{bpt}";
    0x15d [1 4 5 6] "NANOSLEEP" control::nop "NANOSLEEP{85.WARP}{86.RAND}{p87!} {uS}";
    0x180 [1 4] "LD" memory::load_generic "LD{72.E}{evict}{68:2|LTC64B|LTC128B|LTC256B}{memsize}{order} {d}, {global}{ldp}";
    0x181 [1 4] "LDG" memory::load "LDG{72.E}{evict}{68:2|LTC64B|LTC128B|LTC256B}{memsize}{order} {P81?}{d}, {global}{ldp}";
    0x182 [5] "LDC" special::ldc "LDC{csize}{78:2|IL|IS|ISL} {d}, {cindexed}";
    0x183 [4] "LDL" memory::local_lower "LDL{levict}{csize} {d}, {local}";
    0x184 [4] "LDS" memory::shared_lower "LDS{csize} {d}, {shared}";
    0x185 [1 4] "ST" memory::store_generic "ST{72.E}{evict}{memsize}{order} {global}, {st}";
    0x186 [1 4] "STG" memory::store "STG{72.E}{evict}{memsize}{order} {global}, {R32}";
    0x187 [1 4] "STL" memory::local_lower "STL{levict}{csize} {local}, {R32}";
    0x188 [1 4] "STS" memory::shared_lower "STS{csize} {shared}, {R32}";
    0x189 [1 2 4 7] "SHFL" special::shfl "SHFL{58:2IDX|UP|DOWN|BFLY} {P81}, {d}, {A}, {shfl}";
    0x18a [1 4] "ATOM" atomic::global "ATOM{72.E}{atomop}{evict}{atomtype}{order} {P81}, {d}, {global}, {R32}";
    0x18b [1] "ATOM.CAS" atomic::global "ATOM{72.E}.CAS{evict}{castype}{order} {P81}, {d}, {global}, {R32}, {uC}";
    0x18c [1] "ATOMS" atomic::shared "ATOMS{atomop}{atomtype} {d}, {shared}, {R32}";
    0x18d [1] "ATOMS.CAS" atomic::shared "ATOMS{cast}{castype} {d}, {shared}, {R32}, {uC}";
    0x18e [1 4] "RED" atomic::global "RED{72.E}{atomop}{evict}{atomtype}{order} {global}, {R32}";
    0x18f [4] "CCTL" control::nop "CCTL{72.E}{78:3|U|C|I|?|?|?|?}{cctl}";
    0x192 [4] "MEMBAR" control::nop "MEMBAR{79:2SC|ALL||?}{76:2CTA|SM|GPU|SYS}";
    0x1a1 [1] "MATCH" special::match_lower "MATCH{79:1ALL|ANY}{73.U64} {match}{d}, {A}";
    0x1a8 [1 4] "ATOMG" atomic::global "ATOMG{72.E}{atomop}{evict}{atomtype}{order} {P81}, {d}, {global}, {R32}";
    0x1a9 [1] "ATOMG.CAS" atomic::global "ATOMG{72.E}.CAS{evict}{castype}{order} {P81}, {d}, {global}, {R32}, {uC}";
    0x1aa [1 4] "QSPC" memory::query_space "QSPC{72.E}{73:2G|L|S|?} {P81}, {d}, {global}";
    0x1ab [4] "ERRBAR" control::nop "ERRBAR";
    0x1ae [1 7] "LDGSTS" memory::ldgsts "LDGSTS{70.E}{evict}{!81.BYPASS}{71:2|LTC64B|LTC128B|LTC256B}{memsize}{order}{82.ZFILL} {ldgsts}{p87?}";
    0x1af [4] "LDGDEPBAR" control::nop "LDGDEPBAR";
    0x1c2 [1] "R2UR" special::r2ur "R2UR{84.OR} {P81?}{ud}, {A}";
    0x1c3 [4] "S2UR" special::s2r "S2UR {ud}, {sr}";
    0x1c4 [1] "REDUX" special::redux "REDUX{redux}{73.S32} {ud}, {A}";
};
