//! Everything about an opcode is in its row.

use super::{Noise, examples, instructions};
use crate::disasm;
use crate::isa::{Bits, Illegal, Isa, ROWS, Row, lookup};
use crate::word::Word;

fn corpus() -> Vec<Word> {
    let mut noise = Noise(1);
    let of_rows = ROWS.iter().flat_map(|row| row.opcodes().map(move |opcode| (row, opcode)));
    let found = of_rows.flat_map(|(row, opcode)| instructions(row, opcode, &mut noise));
    found.chain(examples().map(|(_, word)| word)).collect()
}

#[test]
fn without_its_row_exactly_one_opcode_is_neither_legal_nor_printable() {
    let (all, corpus) = (Isa::sm87(), corpus());
    let before: Vec<_> = corpus.iter().map(|&word| disasm::text(all, word, 0)).collect();
    assert!(before.iter().all(Option::is_some) && corpus.len() > 3000);
    for (i, removed) in ROWS.iter().enumerate() {
        let isa = Isa::new(ROWS.iter().enumerate().filter(|(k, _)| *k != i).map(|(_, row)| row));
        let mut gone = 0;
        for (&word, before) in corpus.iter().zip(&before) {
            if removed.opcodes().any(|opcode| opcode == word.opcode()) {
                assert_eq!(isa.legal(word).unwrap_err(), Illegal::Opcode, "{} {word:?}", removed.name);
                assert_eq!(disasm::text(&isa, word, 0), None, "{} {word:?}", removed.name);
                gone += 1;
            } else {
                assert!(isa.legal(word).is_ok(), "{word:?} without {}", removed.name);
                assert_eq!(disasm::text(&isa, word, 0), *before, "{word:?} without {}", removed.name);
            }
        }
        assert!(gone >= 12 * removed.opcodes().count(), "{}", removed.name);
    }
}

/// Every opcode that has no row.
#[test]
fn nothing_else_is_an_opcode() {
    for opcode in 0..1 << 12 {
        let word = Word::new(7 << 12 | opcode, 0);
        let row = ROWS.iter().find(|row| row.opcodes().any(|o| u64::from(o) == opcode));
        assert_eq!(lookup(word).map(|r| r.text), row.map(|r| r.text), "{opcode:#05x}");
        assert_eq!(disasm::text(Isa::sm87(), word, 0).is_some(), row.is_some(), "{opcode:#05x}");
    }
}

/// LDG.E R4, desc[UR6][R2.64], and the same with an opcode that no row has.
const LOAD: Word = Word::new(0x0000_0006_0204_7981, 0x000e_a220_0c1e_1900);
const NEW: Word = Word::new(0x0000_0006_0204_79fd, 0x000e_a220_0c1e_1900);

#[test]
fn a_new_row_is_decoded_printed_and_refused_as_its_template_says() {
    let isa = Isa::new([&*Box::leak(Box::new(Row { base: 0x1fd, ..*lookup(LOAD).expect("LDG") }))]);
    assert_eq!(Isa::sm87().legal(NEW).expect_err("no row has this opcode"), Illegal::Opcode);
    assert!(isa.legal(NEW).is_ok());
    let text = |isa, word| disasm::text(isa, word, 0).expect("a text");
    assert_eq!(text(&isa, NEW), text(Isa::sm87(), LOAD));
    assert!(matches!(isa.legal(Bits::new(73, 3).with(NEW, 7)), Err(Illegal::Field(_))), "no access has this size");
}
