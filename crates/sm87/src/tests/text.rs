//! Known instructions have the text of NVIDIA's disassembler, and each can be executed.

use super::examples;
use crate::disassemble;
use crate::exec::can_execute;
use crate::isa::{Flow, lookup};
use crate::word::Word;

#[test]
fn text_of_every_known_opcode() {
    let mut wrong = Vec::new();
    for (text, word) in examples() {
        let (lo, hi) = word.halves();
        let got = disassemble(lo, hi, 0).unwrap_or_default();
        // Branch targets in the examples depend on the addresses at which the examples were found.
        let moves = lookup(word).is_some_and(|row| row.flow != Flow::Next);
        let same = match text.rsplit_once(" 0x") {
            Some((head, _)) if moves => got.starts_with(head),
            _ => got == text,
        };
        if !same {
            wrong.push(format!("{word:?}: {got:?}, not {text:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_known_opcode_can_be_executed() {
    for (text, word) in examples() {
        assert_eq!(can_execute(word.unscheduled()), Ok(()), "{text}");
    }
}

/// Single bits of good instructions turned over; NVIDIA's disassembler rejects each result.
#[test]
fn values_without_a_meaning() {
    for (lo, hi, bit, what) in [
        (0x0000000308007220, 0x000fc80000400000, 86, "FMUL without a scale field"),
        (0x0000000402027811, 0x000fe400078e18ff, 73, "LEA.SX32 that is not .HI"),
        (0x0000000300057304, 0x000fc80000200800, 75, "F2F to nothing"),
        (0x0000000300057304, 0x000fc80000200800, 84, "F2F of 64 bits in the narrow opcode"),
        (0x0000000000007245, 0x000fe40000201400, 78, "I2FP towards minus infinity"),
        (0x0000000000007992, 0x000fec0000002000, 78, "MEMBAR of scope 4"),
        (0x0000000402027981, 0x000ea8000c1e1900, 90, "LDG with a uniform operand and half an address"),
        (0x0000000402027981, 0x000ea8000c1e1900, 91, "LDG whose uniform operand is not announced"),
        (0x0000001100007547, 0x000fea000b800000, 32, "BRA on a uniform predicate without .U"),
        (0x0000001100007547, 0x000fea000b800000, 33, "BRA.CONV on a uniform predicate"),
        (0x0000001100007547, 0x000fea000b800000, 91, "BRA on a uniform predicate that is not announced"),
        (0x00005b00040f7a31, 0x002fc60003810004, 76, "HFMA2 that flushes both ways"),
    ] {
        let word = Word::new(lo, hi);
        assert!(crate::isa::legal(word).is_ok(), "{what}: the good one");
        let bad = Word(word.0 ^ 1 << bit);
        assert!(crate::isa::legal(bad).is_err(), "{what}");
        assert_eq!(can_execute(bad), Err("reserved modifier"), "{what}");
    }
}

/// Bit 85 makes RET absolute. It means nothing in CALL, whose opcode says whether it is absolute.
#[test]
fn bit_85_of_call_and_ret() {
    for (lo, clear, set) in [
        (0x0000014000007944, "CALL.REL.NOINC 0x150", "CALL.REL.NOINC 0x150"),
        (0x0000014002007344, "CALL.REL.NOINC R2 0x150", "CALL.REL.NOINC R2 0x150"),
        (0x0000014000007943, "CALL.ABS.NOINC 0x140", "CALL.ABS.NOINC 0x140"),
        (0x0000014002007343, "CALL.ABS.NOINC R2 0x140", "CALL.ABS.NOINC R2 0x140"),
        (0x0000014002007950, "RET.REL.NODEC R2 0x150", "RET.ABS.NODEC R2 0x140"),
    ] {
        let text = |hi| disassemble(lo, hi, 0).unwrap();
        assert_eq!((&*text(0x000fea0003c00000), &*text(0x000fea0003e00000)), (clear, set));
    }
}
