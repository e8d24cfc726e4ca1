//! The fields of templates that have a name.

use super::field::{Bits, Field, Names};
use super::piece::{Address, File, Global, Piece, Special};
use Names::List;

const fn bits(lo: u32, len: u32) -> Bits {
    Bits::new(lo, len)
}

/// Makes a modifier from the names of its values.
const fn list(lo: u32, len: u32, names: &'static str) -> Piece {
    Piece::Modifier(Field::new(bits(lo, len), List(names)))
}

/// Makes a modifier that is in two places.
const fn split(low: Bits, high: Bits, names: &'static str) -> Piece {
    Piece::Modifier(Field::split(low, high, List(names)))
}

/// Makes a modifier whose names are chosen by another field.
const fn by(lo: u32, len: u32, other: Bits, names: &'static [Names]) -> Piece {
    Piece::Modifier(Field::by(bits(lo, len), other, names))
}

const fn global(descriptor: u32, uniform: u32, pair: Option<u32>, long: bool) -> Piece {
    Piece::Address(Address::Global(Global { descriptor: Some(descriptor), uniform, pair, long }))
}

const fn special(special: Special) -> Piece {
    Piece::Special(special)
}

const NO_NAMES: Names = List("|||");
const UNSIGNED: Names = List("U8|U16|U32|U64");
const SIGNED: Names = List("S8|S16||S64");
const COMBINE: &str = "AND|OR|XOR|?";
const ATOMIC: &str = "ADD|MIN|MAX|INC|DEC|AND|OR|XOR|EXCH";
const REDUCE: &str = "ADD|MIN|MAX|INC|DEC|AND|OR|XOR";

/// All fields that have a name.
pub(super) const FIELDS: &[(&str, Piece)] = &[
    // Registers and predicates.
    ("d", Piece::Register { lo: 16, file: File::Own }),
    ("dz", Piece::Optional),
    ("ud", Piece::Register { lo: 16, file: File::Uniform }),
    ("ux", Piece::Register { lo: 24, file: File::Uniform }),
    ("ldp", Piece::Complement { lo: 64, not: 67, file: File::Vector }),
    ("up", Piece::Complement { lo: 87, not: 90, file: File::Uniform }),
    ("sr", special(Special::Register)),
    // Arithmetic.
    ("rnd", list(78, 2, "|RM|RP|RZ")),
    ("flush", split(bits(80, 1), bits(76, 1), "|FTZ|FMZ|?")),
    ("fcmp", list(76, 4, "F|LT|EQ|LE|GT|NE|GE|NUM|NAN|LTU|EQU|LEU|GTU|NEU|GEU|T")),
    ("dcmp", list(76, 4, "MIN|LT|EQ|LE|GT|NE|GE|NUM|NAN|LTU|EQU|LEU|GTU|NEU|GEU|MAX")),
    ("icmp", list(76, 3, "F|LT|EQ|LE|GT|NE|GE|T")),
    ("comb", list(74, 2, COMBINE)),
    ("hcomb", list(69, 2, COMBINE)),
    ("lut", special(Special::Lut)),
    ("leac", special(Special::LeaHigh)),
    ("mad", special(Special::Alias)),
    ("idp", split(bits(76, 1), bits(77, 1), "4A|2A.LO|?|2A.HI")),
    ("idp a", by(73, 1, bits(76, 1), &[List("U8|S8"), List("U16|S16")])),
    // Conversions.
    ("f2fp", special(Special::Pair)),
    ("f2i", by(75, 2, bits(72, 1), &[UNSIGNED, SIGNED])),
    ("i2f", by(84, 2, bits(74, 1), &[UNSIGNED, SIGNED])),
    ("i2ip", by(72, 2, bits(76, 3), &[HALVES, HALVES, HALVES, HALVES, FOURTHS, FOURTHS, EIGHTHS, EIGHTHS])),
    // Matrices.
    ("hmma", split(bits(75, 1), bits(78, 1), "1688|16816|1684|16832")),
    ("imma", split(bits(75, 1), bits(85, 2), "8816|?|8832|?|16816|16832|16864|168128")),
    ("bmma", list(75, 2, "88128|168128|168256|?")),
    ("sparse 72", special(Special::Metadata(72))),
    ("sparse 73", special(Special::Metadata(73))),
    ("imma a", split(bits(83, 1), bits(76, 1), "U8|U4|S8|S4")),
    ("imma b", split(bits(84, 1), bits(78, 1), "U8|U4|S8|S4")),
    // Lanes, barriers and control.
    ("match", special(Special::Match)),
    ("depbar", special(Special::Dependencies)),
    ("reduction", by(74, 2, bits(77, 2), &[NO_NAMES, NO_NAMES, List("POPC|AND|OR|?"), NO_NAMES])),
    ("threads", special(Special::Threads)),
    ("bar condition", special(Special::BarCondition)),
    ("trap code", special(Special::TrapCode)),
    ("named lanes", special(Special::NamedLanes)),
    ("uniform condition", special(Special::UniformCondition)),
    ("target", Piece::Target),
    ("absolute", special(Special::Absolute)),
    ("displacement", special(Special::Displacement)),
    ("behind", special(Special::Behind)),
    ("place", special(Special::Place)),
    ("barrier 16", special(Special::Barrier(16))),
    ("barrier 24", special(Special::Barrier(24))),
    // How memory is accessed.
    ("memsize", list(73, 3, "U8|S8|U16|S16||64|128|?")),
    ("constsize", list(73, 3, "U8|S8|U16|S16||64|?|?")),
    ("evict", list(84, 3, "EF||EL|LU|EU|NA|?|?")),
    (
        "load order",
        list(
            77,
            4,
            "|CONSTANT.PRIVATE|CONSTANT.CTA|CONSTANT.CTA.PRIVATE|CONSTANT|STRONG.SM|STRONG.GPU.PRIVATE|STRONG.GPU|MMIO.GPU|\
             CONSTANT.SM|STRONG.SYS|CONSTANT.SM.PRIVATE|MMIO.SYS|CONSTANT.VC|CONSTANT.VC.PRIVATE|CONSTANT.GPU",
        ),
    ),
    (
        "order",
        list(
            77,
            4,
            "|CONSTANT.PRIVATE|CONSTANT.CTA|CONSTANT.CTA.PRIVATE|STRONG.SM.PRIVATE|STRONG.SM|STRONG.GPU.PRIVATE|STRONG.GPU|\
             MMIO.GPU|CONSTANT.SM|STRONG.SYS|CONSTANT.SM.PRIVATE|MMIO.SYS|CONSTANT.VC|CONSTANT.VC.PRIVATE|CONSTANT.GPU",
        ),
    ),
    ("atomop", list(87, 4, ATOMIC)),
    ("redop", list(87, 3, REDUCE)),
    ("atomtype", list(73, 3, "|S32|64|F32.FTZ.RN|F16x2.RN|S64|F64.RN|?")),
    ("shared type", list(73, 2, "|S32|64|?")),
    ("count", list(87, 4, "?|?|?|?|?|?|?|?|?|ARRIVE|POPC.INC")),
    ("count type", by(73, 2, bits(87, 4), &COUNTED)),
    ("castype", list(73, 2, "|S32|64|?")),
    ("cctl", list(87, 4, "PF1|PF2|WB|IV|IVALL|RS|IVALLP|WBALL|?|PML2|DML2|RML2|?|?|?|?")),
    // Where memory is accessed.
    ("load", global(76, 32, Some(90), false)),
    ("generic load", global(76, 32, Some(90), true)),
    ("store", global(76, 64, Some(90), false)),
    ("generic store", global(76, 64, Some(90), true)),
    ("red", global(71, 64, Some(90), false)),
    // Other atomics have their operation in the bits in which the rest have the width of the register.
    ("atomic", global(71, 64, None, false)),
    ("counter", Piece::Address(Address::Global(Global { descriptor: None, uniform: 64, pair: None, long: false }))),
    ("cached", Piece::Address(Address::Cached)),
    ("shared", Piece::Address(Address::Window { scaled: true, uniform: 32 })),
    ("shared store", Piece::Address(Address::Window { scaled: true, uniform: 64 })),
    ("matrix", Piece::Address(Address::Window { scaled: false, uniform: 32 })),
    ("barrier", Piece::Address(Address::Window { scaled: false, uniform: 64 })),
    ("local", Piece::Address(Address::Window { scaled: false, uniform: 32 })),
    ("local store", Piece::Address(Address::Window { scaled: false, uniform: 64 })),
    ("cindexed", Piece::Address(Address::Constant)),
    ("ldgsts", Piece::Address(Address::Copy)),
    ("st", special(Special::StoreData)),
];

/// Forms of ATOMS that count lanes have one type each.
const COUNTED: [Names; 16] = {
    let mut types = [List("?"); 16];
    types[9] = List("?|?|64");
    types[10] = List("32");
    types
};

/// The part of C that I2IP uses, by the packed type.
const HALVES: Names = List("|H1|?|?");
const FOURTHS: Names = List("?|?|?|28");
const EIGHTHS: Names = List("?|?|24|?");

/// The address of a cache line.
pub(crate) const CACHE_LINE: Global = Global { descriptor: Some(71), uniform: 64, pair: None, long: true };
