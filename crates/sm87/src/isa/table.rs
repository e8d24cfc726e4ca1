//! The rows of the instruction set.

use super::constraint::*;
use super::cost::{BMMA, Class, DMMA, HMMA, IMMA, Matrix};
use super::effects::{Across, Does, Effects, Formula};
use super::field::Bits;
use super::memory::{Access, Change, Memory, Size, Space};
use super::op::Op;
use super::row::{Datapath, End, Flow, Notes, Row};

/// Makes a set of forms as bits.
macro_rules! forms {
    ($($f:literal)*) => { 0 $(| 1 << $f)* };
}

/// Makes rows from opcode, forms, mnemonic, operation, template, constraints and effects, and from other
/// properties if they differ from the usual ones. Each row is a constant of its own: otherwise the compiler would read
/// the templates again for each evaluation of the table, which takes it eight seconds.
macro_rules! rows {
    ($($base:literal [$($f:literal)*] $name:literal $op:ident $text:literal [$($rule:ident)*] $effects:expr $(, $what:ident = $is:expr)*;)*) => {
        &[$(Row {
            constraints: &[$($rule),*],
            $($what: $is,)*
            ..const { Row::new($base, forms!($($f)*), $name, Op::$op, $text, $effects) }
        }),*]
    };
}

/// The offsets of branches and of BSSY.
const OFFSET: Bits = Bits::new(34, 48);
const OFFSET_30: Bits = Bits::new(34, 30);
/// It is set in BRA.DIV and BRA.CONV, which ask whether other lanes are there.
const CONVERGED: Bits = Bits::new(33, 1);

// The effects of arithmetic, by the lanes that do it.
const SINGLE: Effects = Effects::computes(Class::Single);
const INTEGER: Effects = Effects::computes(Class::Integer);
const PRODUCT: Effects = Effects::computes(Class::Product);
const HALF: Effects = Effects::computes(Class::Half);
const DOUBLE: Effects = Effects::computes(Class::Double).sources(2, 2, 2);
const FUNCTION: Effects = Effects::computes(Class::Function);
const BIT_COUNT: Effects = Effects::computes(Class::BitCount);
const CONVERSION: Effects = Effects::computes(Class::Conversion);
const SHUFFLE: Effects = Effects::computes(Class::Shuffle);
const REDUCTION: Effects = Effects::computes(Class::Reduction).across(Across::Always);
const SPECIAL: Effects = Effects::computes(Class::SpecialRegister);
const CONSTANT: Effects = Effects::computes(Class::Constant);

const fn matrix(of: Matrix) -> Effects {
    Effects::computes(Class::Matrix(of)).sources(4, 4, 4)
}

const WORD: Formula = Formula::Word(Bits::NONE);

// The effects of instructions that compute nothing.
const STATE: Effects = INTEGER.impure().alone().that(Does::Else);
const CONTROL: Effects = Effects::takes_a_slot();
const HINT: Effects = Effects::hint(Does::Else);
const NOTHING: Effects = Effects::hint(Does::Nothing);
const CACHE: Effects = Effects::hint(Does::KeepsCaches(Bits::new(87, 4)));
const WAIT: Does = Does::Awaits { scoreboard: Bits::new(44, 3), but: Bits::new(38, 6) };

// The effects of accesses to memory, and the fields that they have in common.
const SIZE: Size = Size::Field(Bits::new(73, 3));
const TYPE: Size = Size::Type(Bits::new(73, 3));
const SHARED_TYPE: Size = Size::Type(Bits::new(73, 2));
const ORDERED: Option<Bits> = Some(Bits::new(77, 4));
const OPERATION: Change = Change::Operation(Bits::new(87, 4));
const COUNT: Change = Change::Count(Bits::new(87, 4));

const fn load(space: Space, order: Option<Bits>) -> Effects {
    Effects::accesses(Memory { space, access: Access::Load, size: SIZE, order }, true)
}

const fn store(space: Space, order: Option<Bits>) -> Effects {
    Effects::accesses(Memory { space, access: Access::Store, size: SIZE, order }, true)
}

const fn change(space: Space, change: Change, size: Size) -> Effects {
    let order = if matches!(space, Space::Shared) { None } else { ORDERED };
    Effects::accesses(Memory { space, access: Access::Change(change), size, order }, false)
}

const MATRIX_ROWS: Effects =
    Effects::accesses(Memory { space: Space::Rows, access: Access::Load, size: Size::Bytes(16), order: None }, true);
const COPY: Effects =
    Effects::accesses(Memory { space: Space::Copy, access: Access::Copy, size: SIZE, order: None }, false);

/// All rows of the instruction set.
pub static ROWS: &[Row] = rows! {
    0x001 [4] "PMTRIG" Pmtrig "PMTRIG{p87!} {uS}" [SLOT] HINT;
    0x002 [1 4 5 6] "MOV" Mov "MOV{72:4=15} {d}, {uS}" [SLOT] INTEGER.makes(Formula::Copy);
    0x003 [1 4 5 6] "P2R" P2r "P2R {d}, PR, {A}{76:2|B1|B2|B3}, {uS}" [SLOT] INTEGER.impure();
    0x004 [1 4 5 6] "R2P" R2p "R2P PR, {A}{76:2|B1|B2|B3}, {uS}" [SLOT] INTEGER.impure().that(Does::SetsPredicates);
    0x005 [4] "CS2R" Cs2r "CS2R{!80.32} {d}, {sr}" [SLOT] SPECIAL.impure(), notes = Notes::Special;
    0x006 [4] "VOTE" Vote "VOTE{72:2ALL|ANY|EQ} {dz}{P81}, {p87}" [SLOT] INTEGER.across(Across::Always);
    0x007 [1 4 5 6] "SEL" Sel "SEL {d}, {A}, {uS}, {p87}" [SLOT] INTEGER;
    0x008 [1 4 5 6] "FSEL" Fsel "FSEL{80.FTZ} {d}, {fA}, {fS}, {p87}" [SLOT] INTEGER;
    0x009 [1 4 5 6] "FMNMX" Fmnmx "FMNMX{80.FTZ}{81.NAN}{82.XORSIGN} {d}, {fA}, {fS}, {p87}" [SLOT] INTEGER;
    0x00a [1 4 5 6] "FSET" Fset "FSET.BF{fcmp}{80.FTZ}{comb} {d}, {fA}, {fS}, {p87}" [SLOT] INTEGER.that(Does::Compares);
    0x00b [1 4 5 6] "FSETP" Fsetp "FSETP{fcmp}{80.FTZ}{comb} {P81}, {P84}, {fA}, {fS}, {p87}" [SLOT] INTEGER.that(Does::Compares);
    0x00c [1 4 5 6] "ISETP" Isetp "ISETP{icmp}{!73.U32}{comb}{72.EX} {P81}, {P84}, {A}, {xS}, {p87}{72 p68}" [SLOT] INTEGER.that(Does::Compares);
    0x010 [1 2 3 4 5 6 7] "IADD3" Iadd3 "IADD3{74.X} {d}, {P81?}{P84?}{iA}, {iB}, {iC}{74 p87}{74 p77}" [SLOT] INTEGER.makes(Formula::Sum);
    0x011 [1 2 3 4 5 6 7] "LEA" Lea "LEA{80.HI}{74.X}{73.SX32} {d}, {P81?}{lA}, {lB}{leac}, {75:5#}{74 p87}" [SLOT SX32_NEEDS_HI] INTEGER.makes(Formula::Scaled);
    0x012 [1 2 3 4 5 6 7] "LOP3" Lop3 "LOP3.LUT{80.PAND} {P81?}{d}, {A}, {uB}, {uC}, {72:8#}, {p87}" [SLOT] INTEGER.that(Does::CombinesBits).makes(WORD);
    0x013 [1 4 5 6] "IABS" Iabs "IABS {d}, {uS}" [SLOT] INTEGER.makes(WORD);
    0x014 [1 2 3 4 5 6 7] "VABSDIFF" Vabsdiff "VABSDIFF{!73.U32} {d}, {A}, {uB}, {uC}" [SLOT] INTEGER;
    0x015 [1 2 3 4 5 6 7] "VABSDIFF4" Vabsdiff4 "VABSDIFF4{!73.U8}{75.ACC} {d}, {P81?}{A}, {uB}, {uC}" [SLOT] INTEGER;
    0x016 [1 2 3 4 5 6 7] "PRMT" Prmt "PRMT{72:3|F4E|B4E|RC8|ECL|ECR|RC16} {d}, {A}, {uB}, {uC}" [SLOT] INTEGER.that(Does::Moves).makes(WORD);
    0x017 [1 4 5 6] "IMNMX" Imnmx "IMNMX{!73.U32} {d}, {A}, {xS}, {p87}" [SLOT] INTEGER;
    0x019 [1 2 3 4 5 6 7] "SHF" Shf "SHF{76:1L|R}{75.W}{73:2S64|U64|S32|U32}{80.HI} {d}, {A}, {uB}, {uC}" [SLOT] INTEGER.makes(Formula::Shifted);
    0x01a [1 4 5 6] "SGXT" Sgxt "SGXT{75.W}{!73.U32} {d}, {A}, {uS}" [SLOT] INTEGER;
    0x01b [1 4 5 6] "BMSK" Bmsk "BMSK{75.W} {d}, {A}, {uS}" [SLOT] INTEGER;
    0x01c [4] "PLOP3" Plop3 "PLOP3.LUT {P81}, {P84}, {p87}, {p77}, {p68u}, {lut}, {16:8#}" [SLOT] INTEGER;
    0x01f [1 5 6] "PLOP3" Plop3Sign "PLOP3.LUT {P81}, {P84}, {A}.SIGN, {zB}.SIGN, {uC}.SIGN, {72:8#}, {16:8#}" [SLOT] INTEGER;
    0x020 [1 4 5 6] "FMUL" Fmul "FMUL{flush}{84:3?|D8|D4|D2||M2|M4|M8}{rnd}{77.SAT} {d}, {fA}, {fS}" [SLOT] SINGLE;
    0x021 [1 2 3 7] "FADD" Fadd "FADD{80.FTZ}{rnd}{77.SAT} {d}, {fA}, {fT}" [SLOT] SINGLE;
    0x023 [1 2 3 4 5 6 7] "FFMA" Ffma "FFMA{flush}{rnd}{77.SAT} {d}, {fA}, {fB}, {fC}" [SLOT] SINGLE;
    0x024 [1 2 3 4 5 6 7] "IMAD" Imad "IMAD{mad}{!73.U32}{74.X} {d}, {A}, {xB}, {iC}{74 p87}" [SLOT] PRODUCT.makes(Formula::Product);
    0x025 [1 2 3 4 5 6 7] "IMAD.WIDE" ImadWide "IMAD.WIDE{!73.U32}{74.X} {d}, {P81?}{A}, {xB}, {iC}{74 p87}" [SLOT] PRODUCT.sources(1, 1, 2).makes(Formula::Wide);
    0x026 [1 2 3 4 5 6 7] "IDP" Idp "IDP{idp}{idp a}{74:1U8|S8} {d}, {A}, {uB}, {nC}" [SLOT] PRODUCT;
    0x027 [1 2 3 4 5 6 7] "IMAD.HI" ImadHi "IMAD.HI{!73.U32}{74.X} {d}, {P81?}{A}, {xB}, {iC}{74 p87}" [SLOT] PRODUCT;
    0x028 [1 4 5 6] "DMUL" Dmul "DMUL{rnd} {d}, {dA}, {dS}" [SLOT] DOUBLE;
    0x029 [1 2 3 7] "DADD" Dadd "DADD{rnd} {d}, {dA}, {dC}" [SLOT] DOUBLE;
    0x02a [1 2 3 7] "DSETP" Dsetp "DSETP{dcmp}{comb} {P81}, {P84}, {dA}, {dT}, {p87}" [SLOT] DOUBLE.that(Does::Compares);
    0x02b [1 2 3 4 5 6 7] "DFMA" Dfma "DFMA{rnd} {d}, {dA}, {dB}, {dC}" [SLOT] DOUBLE;
    0x030 [1 2 3 7] "HADD2" Hadd2 "HADD2{78.F32}{80.FTZ}{77.SAT} {d}, {hA}, {hT}" [SLOT] HALF;
    0x031 [1 2 3 4 5 6 7] "HFMA2" Hfma2 "HFMA2{86:1=0}{85.BF16_V2}{78.F32}{flush}{77.SAT}{79.RELU} {d}, {vA}, {vB}, {vC}{79 p87?}" [SLOT RELU_OR_SAT BRAIN_OR_SINGLE] HALF;
    0x032 [1 4 5 6] "HMUL2" Hmul2 "HMUL2{78.F32}{flush}{77.SAT} {d}, {hA}, {hS}" [SLOT] HALF;
    0x033 [1 2 3 7] "HSET2" Hset2 "HSET2{71.BF}{fcmp}{80.FTZ}{hcomb} {d}, {hA}, {hT}, {p87}" [SLOT] HALF.that(Does::Compares);
    0x034 [1 2 3 7] "HSETP2" Hsetp2 "HSETP2{fcmp}{71.H_AND}{80.FTZ}{hcomb} {P81}, {P84}, {hA}, {hT}, {p87}" [SLOT] HALF.that(Does::Compares);
    0x035 [1 2 3 4 5 6 7] "HFMA2.MMA" Hfma2Mma "HFMA2.MMA{flush}{77.SAT}{79.RELU} {d}, {mA}, {mB}, {mC}{79 p87?}" [SLOT RELU_OR_SAT] HALF.makes(Formula::Word(Bits::new(79, 1)));
    0x037 [1] "IMMA" Imma "IMMA{77:1=0}{79:1=0}{72.SP}{imma}{imma a}{imma b}{82.SAT} {d}, {A}.ROW, {uS}.COL, {uC}{up}{sparse 72}" [SLOT SPARSE_IMMA] matrix(IMMA);
    0x038 [1 4 5 6] "I2I" I2i "I2I{76:2U8|S8|U16|S16}.S32.SAT {d}, {uS}" [SLOT] CONVERSION;
    0x039 [1 4 5 6] "I2IP" I2ip "I2IP{76:3U8|S8|U16|S16|U2|S2|U4|S4}.S32{74:2SAT||SATRELU|?} {d}, {A}, {uS}, {uC}{i2ip}" [SLOT] CONVERSION;
    0x03a [1] "MOVM" Movm "MOVM.16{75:3=0}{78:2MT88|M832|M864|?} {d}, {A}" [SLOT] SHUFFLE.that(Does::Moves).alone();
    0x03b [4] "LDSM" Ldsm "LDSM.16{75:3=0}{78:2M88|MT88}{72:2|2|4} {d}, {matrix}" [] MATRIX_ROWS;
    0x03c [1] "HMMA" Hmma "HMMA{73.SP}{hmma}{76:1F16|F32}{82:2|BF16|TF32} {d}, {tA}, {tS}, {uC}{up}{sparse 73}" [SLOT SPARSE_HMMA] matrix(HMMA);
    0x03d [1] "BMMA" Bmma "BMMA{73:2=2}{80:1=1}{bmma}{77:2XOR|?|AND|?}.POPC {d}, {A}.ROW, {uS}.COL, {uC}{up}" [SLOT] matrix(BMMA).alone();
    0x03e [1 4 5 6] "F2FP" F2fp "F2FP{77.SATFINITE}{75.RELU}{76.BF16}{!78.PACK_AB}{78.MERGE_C}{79:2|?|?|RZ} {d}, {f2fp}" [SLOT] CONVERSION;
    0x03f [1] "DMMA" Dmma "DMMA.884{76:1=0}{rnd} {d}, {A}, {uS}, {uC}" [SLOT] matrix(DMMA).alone();
    0x040 [1 4 5 6] "HMNMX2" Hmnmx2 "HMNMX2{85.BF16_V2}{80.FTZ}{81.NAN}{82.XORSIGN} {d}, {vA}, {vS}, {p87}" [SLOT] HALF;
    0x043 [1 2 3 4 5 6] "F2IP" F2ip "F2IP{76:2U8|S8|?|?}.F32{78:2|?|?|TRUNC}{74.NTZ}{75.RELU} {d}, {A}, {gB}, {gC}{72.H1}" [SLOT] CONVERSION;
    0x045 [1 4 5 6] "I2FP" I2fp "I2FP.F32{74:1U32|S32}{78:2|?|?|RZ}{75:3=2}{84:2=2} {d}, {uS}" [SLOT] CONVERSION;
    0x082 [4 6] "UMOV" Mov "UMOV {d}, {uS}" [SLOT] INTEGER.makes(Formula::Copy);
    0x083 [4 6] "UP2UR" P2r "UP2UR {d}, UPR, {A}{76:2|B1|B2|B3}, {uS}" [SET] INTEGER.impure();
    0x086 [4] "VOTEU" Vote "VOTEU{72:2ALL|ANY|EQ} {dz}{P81}, {p87v}" [CLEAR] INTEGER.across(Across::Always), guard = Datapath::Vector;
    0x087 [1 4] "USEL" Sel "USEL {d}, {A}, {uS}, {p87}" [SET] INTEGER;
    0x08c [1 4] "UISETP" Isetp "UISETP{icmp}{!73.U32}{comb}{72.EX} {P81}, {P84}, {A}, {xS}, {p87}{72 p68}" [SET] INTEGER.that(Does::Compares);
    0x090 [1 4] "UIADD3" Iadd3 "UIADD3{74.X} {d}, {P81?}{P84?}{iA}, {iB}, {iC}{74 p87}{74 p77}" [SET] INTEGER.makes(Formula::Sum);
    0x091 [1 2 4] "ULEA" Lea "ULEA{80.HI}{74.X}{73.SX32} {d}, {P81?}{lA}, {lB}{leac}, {75:5#}{74 p87}" [SET SX32_NEEDS_HI] INTEGER.makes(Formula::Scaled);
    0x092 [1 4] "ULOP3" Lop3 "ULOP3.LUT{80.PAND} {P81?}{d}, {A}, {uB}, {uC}, {72:8#}, {p87}" [SET] INTEGER.that(Does::CombinesBits).makes(WORD);
    0x096 [1 4] "UPRMT" Prmt "UPRMT{72:3|?} {d}, {A}, {uB}, {uC}" [SET] INTEGER.that(Does::Moves);
    0x099 [1 2 4] "USHF" Shf "USHF{76:1L|R}{75.W}{73:2S64|U64|S32|U32}{80.HI} {d}, {A}, {uB}, {uC}" [SET] INTEGER.makes(Formula::Shifted);
    0x09a [1 4] "USGXT" Sgxt "USGXT{75.W}{!73.U32} {d}, {A}, {uS}" [SET] INTEGER;
    0x09b [1 4] "UBMSK" Bmsk "UBMSK{75.W} {d}, {A}, {uS}" [SET] INTEGER;
    0x09c [4] "UPLOP3" Plop3 "UPLOP3.LUT {P81}, {P84}, {p87}, {p77}, {p68}, {lut}, {16:8#}" [CLEAR] INTEGER;
    0x09f [1] "UPLOP3" Plop3Sign "UPLOP3.LUT {P81}, {P84}, {A}.SIGN, {zB}.SIGN, {uC}.SIGN, {72:8#}, {16:8#}" [SET] INTEGER;
    0x0a4 [1 2 4] "UIMAD" Imad "UIMAD{mad}{!73.U32}{74.X} {d}, {A}, {xB}, {iC}{74 p87}" [SET] PRODUCT.makes(Formula::Product);
    0x0a5 [1 2 4] "UIMAD.WIDE" ImadWide "UIMAD.WIDE{!73.U32}{74.X} {d}, {P81?}{A}, {xB}, {iC}{74 p87}" [SET] PRODUCT.sources(1, 1, 2).makes(Formula::Wide);
    0x0b9 [5] "ULDC" Uldc "ULDC{constsize} {d}, {uS}" [] INTEGER.impure();
    0x0bb [5] "ULDC" UldcIndexed "ULDC{constsize} {d}, {cindexed}" [SET] STATE;
    0x0bd [1 4] "UFLO" Flo "UFLO{!73.U32}{74.SH} {d}, {P81?}{nS}" [SET] BIT_COUNT;
    0x0be [1 4] "UBREV" Brev "UBREV {d}, {uS}" [SET] BIT_COUNT;
    0x0bf [1 4] "UPOPC" Popc "UPOPC {d}, {nS}" [SET] BIT_COUNT;
    0x100 [1 4 5 6] "FLO" Flo "FLO{!73.U32}{74.SH} {d}, {P81?}{nS}" [SLOT] BIT_COUNT;
    0x101 [1 4 5 6] "BREV" Brev "BREV {d}, {uS}" [SLOT] BIT_COUNT;
    0x102 [1 4 5 6] "FCHK" Fchk "FCHK {P81}, {fA}, {fS}" [SLOT] INTEGER;
    0x104 [1 4 5 6] "F2F" F2f "F2F{80.FTZ}{75:3?|F16|F32|F64|BF16}{84:3?|F16|F32|F64|BF16}{rnd} {d}, {eS}" [SLOT NARROW_F2F] CONVERSION.sources(2, 1, 1);
    0x105 [1 4 5 6] "F2I" F2i "F2I{80.FTZ}{f2i}{84:2?|F16||F64}{78:2|FLOOR|CEIL|TRUNC}{77.NTZ} {d}, {cS}" [SLOT NARROW] CONVERSION.sources(2, 1, 1);
    0x106 [1 4 5 6] "I2F" I2f "I2F{75:2?|F16||F64}{i2f}{rnd} {d}, {bS}" [SLOT NARROW] CONVERSION.sources(2, 1, 1);
    0x107 [1 4 5 6] "FRND" Frnd "FRND{80.FTZ}{75:2?|F16||F64}{78:2|FLOOR|CEIL|TRUNC} {d}, {cS}" [SLOT NARROW SAME_TYPE] CONVERSION.sources(2, 1, 1);
    0x108 [1 4 5 6] "MUFU" Mufu "MUFU{74:4COS|SIN|EX2|LG2|RCP|RSQ|RCP64H|RSQ64H|SQRT|TANH}{73.F16} {d}, {qS}" [SLOT] FUNCTION;
    0x109 [1 4 5 6] "POPC" Popc "POPC {d}, {nS}" [SLOT] BIT_COUNT;
    0x110 [1 4 5 6] "F2F" F2f "F2F{80.FTZ}{75:3?|F16|F32|F64|BF16}{84:3?|F16|F32|F64|BF16}{rnd} {d}, {eS}" [SLOT WIDE_F2F] CONVERSION.sources(2, 1, 1);
    0x111 [1 4 5 6] "F2I" F2i "F2I{80.FTZ}{f2i}{84:2?|F16||F64}{78:2|FLOOR|CEIL|TRUNC}{77.NTZ} {d}, {cS}" [SLOT WIDE] CONVERSION.sources(2, 1, 1);
    0x112 [1 4 5 6] "I2F" I2f "I2F{75:2?|F16||F64}{i2f}{rnd} {d}, {bS}" [SLOT WIDE] CONVERSION.sources(2, 1, 1);
    0x113 [1 4 5 6] "FRND" Frnd "FRND{80.FTZ}{75:2?|F16||F64}{78:2|FLOOR|CEIL|TRUNC} {d}, {cS}" [SLOT WIDE SAME_TYPE] CONVERSION.sources(2, 1, 1);
    0x118 [4] "NOP" Nop "NOP" [] NOTHING;
    0x119 [4] "S2R" S2r "S2R {d}, {sr}" [] SPECIAL.impure(), notes = Notes::Special;
    0x11a [4] "DEPBAR" Depbar "DEPBAR{depbar}" [] Effects::hint(WAIT);
    0x11c [1] "B2R" B2r "B2R.RESULT {d}{P81,}" [] SPECIAL.impure().alone();
    0x11d [1] "BAR" Bar "BAR{77:2SYNC|ARV|RED|SCAN}{reduction}{80.DEFER_BLOCKING} {R32}, {R32}{bar condition}" [SLOT] CONTROL.that(Does::Meets(80));
    0x11d [2] "BAR" Bar "BAR{77:2SYNC|ARV|RED|SCAN}{reduction}{80.DEFER_BLOCKING} {R32}{threads}{bar condition}" [SLOT] CONTROL.that(Does::Meets(80));
    0x11d [4] "BAR" Bar "BAR{77:2SYNC|ARV|RED|SCAN}{reduction}{80.DEFER_BLOCKING} {54:4#}, {R32}{bar condition}" [SLOT] CONTROL.that(Does::Meets(80));
    0x11d [5] "BAR" Bar "BAR{77:2SYNC|ARV|RED|SCAN}{reduction}{80.DEFER_BLOCKING} {54:4#}{threads}{bar condition}" [] CONTROL.that(Does::Meets(80));
    0x141 [4] "BSYNC" Bsync "BSYNC{p87!} B{16:4}" [] CONTROL.sources(0, 0, 0);
    0x142 [4] "BREAK" Break "BREAK{p87!} B{16:4}" [] CONTROL;
    0x143 [1] "CALL" CallAbsoluteRegister "CALL.ABS{86.NOINC} {R24}{displacement}" [CLEAR] CONTROL.sources(2, 1, 1), flow = Flow::Call(None), notes = Notes::Ordered;
    0x143 [4] "CALL" CallAbsolute "CALL.ABS{86.NOINC} {absolute}" [CLEAR] CONTROL, flow = Flow::Call(None);
    0x144 [1] "CALL" CallRegister "CALL.REL{86.NOINC} {R24} {behind}" [CLEAR] CONTROL.sources(2, 1, 1), flow = Flow::Call(None), notes = Notes::Ordered;
    0x144 [4] "CALL" Call "CALL.REL{86.NOINC} {target}" [CLEAR] CONTROL, flow = Flow::Call(Some(OFFSET));
    0x145 [4] "BSSY" Bssy "BSSY{p87!} B{16:4}, {target}" [] CONTROL.sources(0, 0, 0), flow = Flow::Meets(OFFSET_30);
    0x146 [4] "YIELD" Yield "YIELD{p87!}" [] CONTROL;
    0x147 [2] "BRA" BraUniform "BRA{32:2?|U|?|?}{uniform condition}{p87!} {target}" [SET] CONTROL, flow = Flow::Conditional(OFFSET);
    0x147 [4] "BRA" Bra "BRA{32:2|U|DIV|CONV}{named lanes}{p87!} {target}" [] CONTROL.sources(0, 0, 0).across(Across::If(CONVERGED)), flow = Flow::Jump(OFFSET);
    0x148 [1] "WARPSYNC" Warpsync "WARPSYNC{86.EXCLUSIVE}{p87!} {uS}" [SLOT] CONTROL.that(Does::MeetsLanes);
    0x148 [4 5 6] "WARPSYNC" Warpsync "WARPSYNC{p87!} {uS}" [SLOT] CONTROL.that(Does::MeetsLanes);
    0x149 [4] "BRX" Brx "BRX {R24}{displacement}" [] CONTROL.sources(2, 1, 1), flow = Flow::Ends(End::Indirect);
    0x14d [4] "EXIT" Exit "EXIT{84.KEEPREFCOUNT}{85.PREEMPTED}{86.NO_ATEXIT}{p87!}" [] CONTROL.sources(0, 0, 0), flow = Flow::Ends(End::Exit);
    0x14e [1] "LEPC" Lepc "LEPC {d}" [CLEAR] STATE;
    0x150 [4] "RET" Ret "RET{85:1REL|ABS}{86.NODEC} {R24} {place}" [CLEAR] CONTROL.sources(2, 1, 1), flow = Flow::Ends(End::Return);
    0x155 [1] "BMOV" BmovFromBarrier "BMOV.32{84.CLEAR} {d}, {barrier 24}" [] STATE;
    0x155 [7] "BMOV" BmovBetween "BMOV.32{84.CLEAR} {barrier 16}, {barrier 24}" [] STATE;
    0x156 [1] "BMOV" BmovToBarrier "BMOV.32{84.CLEAR} {barrier 24}, {R32}" [] STATE;
    0x156 [4] "BMOV" BmovImmediate "BMOV.32{84.CLEAR} {barrier 24}, {32:32#}" [] STATE;
    0x158 [4] "BRXU" Brx "BRXU{32:2=0}{85:2=0}{p87!} {ux}{displacement}" [SET] CONTROL.sources(2, 1, 1), flow = Flow::Ends(End::Indirect);
    0x15c [4] "BPT" Bpt "BPT{84:3DRAIN|CAL|PAUSE|TRAP|INT|5|6|7}{trap code}" [] CONTROL;
    0x15d [1 4 5 6] "NANOSLEEP" Nanosleep "NANOSLEEP{85.WARP}{86.RAND}{p87!} {uS}" [SLOT] CONTROL.that(Does::Sleeps);
    0x180 [1 4] "LD" Ld "LD{72.E}{evict}{68:2|LTC64B|LTC128B|LTC256B}{memsize}{load order} {d}, {generic load}{ldp}" [UNIFORM_NEEDS_E DESCRIPTOR_NEEDS_64] load(Space::Generic, ORDERED);
    0x181 [1 4] "LDG" Ldg "LDG{72.E}{evict}{68:2|LTC64B|LTC128B|LTC256B}{memsize}{load order} {P81?}{d}, {load}{ldp}" [FORM_4 UNIFORM_NEEDS_E DESCRIPTOR_NEEDS_64] load(Space::Global, ORDERED);
    0x182 [5] "LDC" Ldc "LDC{constsize}{78:2|IL|IS|ISL} {d}, {cindexed}" [] CONSTANT.impure();
    0x183 [4] "LDL" Ldl "LDL{evict}{memsize} {d}, {local}" [] load(Space::Local, None);
    0x184 [4] "LDS" Lds "LDS{memsize} {d}, {shared}" [] load(Space::Shared, None);
    0x185 [1 4] "ST" St "ST{72.E}{evict}{memsize}{order} {generic store}, {st}" [FORM_4 UNIFORM_NEEDS_E DESCRIPTOR_NEEDS_64] store(Space::Generic, ORDERED);
    0x186 [1 4] "STG" Stg "STG{72.E}{evict}{memsize}{order} {store}, {R32}" [FORM_4 UNIFORM_NEEDS_E DESCRIPTOR_NEEDS_64] store(Space::Global, ORDERED);
    0x187 [1 4] "STL" Stl "STL{evict}{memsize} {local store}, {R32}" [FORM_4] store(Space::Local, None);
    0x188 [1 4] "STS" Sts "STS{memsize} {shared store}, {R32}" [FORM_4] store(Space::Shared, None);
    0x189 [1] "SHFL" Shfl "SHFL{58:2IDX|UP|DOWN|BFLY} {P81}, {d}, {A}, {R32}, {R64}" [] SHUFFLE.across(Across::Always);
    0x189 [2] "SHFL" Shfl "SHFL{58:2IDX|UP|DOWN|BFLY} {P81}, {d}, {A}, {R32}, {40:13#}" [] SHUFFLE.across(Across::Always);
    0x189 [4] "SHFL" Shfl "SHFL{58:2IDX|UP|DOWN|BFLY} {P81}, {d}, {A}, {53:5#}, {R64}" [] SHUFFLE.across(Across::Always);
    0x189 [7] "SHFL" Shfl "SHFL{58:2IDX|UP|DOWN|BFLY} {P81}, {d}, {A}, {53:5#}, {40:13#}" [] SHUFFLE.across(Across::Always);
    0x18a [1 4] "ATOM" Atom "ATOM{72.E}{atomop}{evict}{atomtype}{order} {P81}, {d}, {atomic}, {R32}" [FORM_4] change(Space::Generic, OPERATION, TYPE), notes = Notes::Ordered;
    0x18a [7] "ATOM" AtomCount "ATOM{72.E}{76:1=0}{count}{evict}{count type}{order} {P81}, {d}, {counter}" [SET UNIFORM_NEEDS_E] change(Space::Generic, COUNT, SHARED_TYPE);
    0x18b [1] "ATOM.CAS" AtomCas "ATOM{72.E}.CAS{evict}{castype}{order} {P81}, {d}, {atomic}, {R32}, {uC}" [] change(Space::Generic, Change::Swap, TYPE), notes = Notes::Ordered;
    0x18c [1 4] "ATOMS" Atoms "ATOMS{atomop}{shared type} {d}, {shared store}, {R32}" [FORM_4] change(Space::Shared, OPERATION, SHARED_TYPE);
    0x18c [7] "ATOMS" AtomsCount "ATOMS{count}{count type} {d}, {shared store}" [SET] change(Space::Shared, COUNT, SHARED_TYPE);
    0x18d [1] "ATOMS.CAS" AtomsCas "ATOMS{87:1CAS|CAST}{88.SPIN}{castype} {d}, {shared}, {R32}, {uC}" [CLEAR] change(Space::Shared, Change::Swap, SHARED_TYPE);
    0x18e [1 4] "RED" Red "RED{72.E}{76:1=0}{redop}{evict}{atomtype}{order} {red}, {R32}" [UNIFORM_NEEDS_E RED_DESCRIPTOR_NEEDS_64] change(Space::Global, Change::Operation(Bits::new(87, 3)), TYPE), notes = Notes::OrderedSums;
    0x18f [4] "CCTL" Cctl "CCTL{72.E}{78:3|U|C|I|?|?|?|?}{cctl}{cached}" [] CACHE;
    0x190 [4] "CCTLL" Cctl "CCTLL{87:4PF1|PF2|WB|IV|?|RS} {local}" [CLEAR] HINT;
    0x192 [4] "MEMBAR" Membar "MEMBAR{79:2SC|ALL||?}{76:3CTA|SM|GPU|SYS|?|VC|?|?}" [] Effects::hint(Does::Orders(Bits::new(76, 3)));
    0x1a1 [1] "MATCH" Match "MATCH{79:1ALL|ANY}{73.U64} {match}{d}, {A}" [] REDUCTION.sources(2, 1, 1);
    0x1a8 [1 4] "ATOMG" Atomg "ATOMG{72.E}{76:1=0}{atomop}{evict}{atomtype}{order} {P81}, {d}, {atomic}, {R32}" [FORM_4 UNIFORM_NEEDS_E] change(Space::Global, OPERATION, TYPE), notes = Notes::Ordered;
    0x1a9 [1] "ATOMG.CAS" AtomgCas "ATOMG{72.E}.CAS{76:1=0}{evict}{castype}{order} {P81}, {d}, {atomic}, {R32}, {uC}" [] change(Space::Global, Change::Swap, TYPE), notes = Notes::Ordered;
    0x1aa [1 4] "QSPC" Qspc "QSPC{72.E}{73:2G|L|S|?} {P81}, {d}, {load}" [] STATE;
    0x1ab [4] "ERRBAR" Errbar "ERRBAR" [] HINT;
    0x1ae [1 7] "LDGSTS" Ldgsts "LDGSTS{70.E}{evict}{!81.BYPASS}{71:2|LTC64B|LTC128B|LTC256B}{memsize}{load order}{82.ZFILL} {ldgsts}{p87?}" [FORM_7] COPY;
    0x1af [4] "LDGDEPBAR" Ldgdepbar "LDGDEPBAR" [] Effects::hint(Does::Groups);
    0x1b0 [4] "ARRIVES" Arrives "ARRIVES{72:1LDGSTSBAR|?}{73:3?|?|?|?|?|64|?|?} {barrier}" [SET] change(Space::Shared, Change::Arrival, Size::Bytes(8));
    0x1c2 [1] "R2UR" R2ur "R2UR{84.OR} {P81?}{ud}, {A}" [] SPECIAL.across(Across::Always);
    0x1c3 [4] "S2UR" S2ur "S2UR {ud}, {sr}" [] SPECIAL.impure(), guard = Datapath::Uniform, notes = Notes::Special;
    0x1c4 [1] "REDUX" Redux "REDUX{78:3|OR|XOR|SUM|MIN|MAX}{73.S32} {ud}, {A}" [] REDUCTION;
};
