//! Tests that legality and text come from the same fields.

use super::{Noise, instructions};
use crate::disasm;
use crate::isa::{Field, Illegal, Isa, ROWS, Row};
use crate::word::Word;
use std::collections::{BTreeMap, BTreeSet};

/// Checks a word that has a value in a field. Returns whether all its fields exist.
fn check(row: &Row, field: Field, word: Word) -> bool {
    let isa = Isa::sm87();
    let (legal, text) = (isa.legal(word).map(|_| ()), disasm::text(isa, word, 0).unwrap());
    let what = || format!("{} {field:?} = {}: {word:?} {text}", row.name, field.value(word));
    match field.name(word) {
        None => {
            assert!(matches!(legal, Err(Illegal::Field(_))), "{legal:?} {}", what());
            let shown = text.contains(&format!(".INVALID{}", field.value(word)));
            assert_eq!(shown, field.is_written(), "{}", what());
        }
        Some(name) => {
            assert_ne!(legal, Err(Illegal::Field(field)), "{}", what());
            assert!(name.is_empty() || text.contains(&format!(".{name}")), "{}", what());
        }
    }
    assert!(legal.is_err() || !text.contains(".INVALID"), "{}", what());
    !matches!(legal, Err(Illegal::Field(_)))
}

/// A value of a field, together with the value of another field that decides its meaning.
type Value = (String, u32, u32);

/// Whether a word with a value in a field can have other fields that all exist.
fn can_exist(row: &Row, opcode: u16, field: Field, (chosen, value): (u32, u32), noise: &mut Noise) -> bool {
    (0..1 << 14).any(|_| {
        let word = Word(noise.wide() & !0xffff | 7 << 12 | u128::from(opcode));
        let word = field.chosen_by().map_or(word, |bits| bits.with(word, chosen));
        check(row, field, field.with(word, value))
    })
}

#[test]
fn values_exist_in_both_or_in_neither() {
    let (isa, mut noise) = (Isa::sm87(), Noise(2));
    let (mut fields, mut values) = (BTreeSet::new(), 0);
    for (row, opcode) in ROWS.iter().flat_map(|row| row.opcodes().map(move |opcode| (row, opcode))) {
        // For each value: whether it exists, and whether an instruction with it was seen.
        let mut seen: BTreeMap<Value, (Field, bool, bool)> = BTreeMap::new();
        for word in instructions(row, opcode, &mut noise) {
            for field in isa.lookup(word).unwrap().fields(word) {
                for value in 0..field.size() {
                    let changed = field.with(word, value);
                    let chosen = field.chosen_by().map_or(0, |bits| bits.of(changed));
                    let good = check(row, field, changed);
                    let entry = seen.entry((format!("{field:?}"), chosen, value)).or_insert((field, false, false));
                    *entry = (field, field.name(changed).is_some(), entry.2 || good);
                }
            }
        }
        values += seen.len();
        for ((what, chosen, value), (field, exists, good)) in seen {
            let good = good || exists && can_exist(row, opcode, field, (chosen, value), &mut noise);
            assert_eq!(exists, good, "{} {opcode:#05x} {what} = {value} (as chosen by {chosen})", row.name);
            fields.insert((opcode, what));
        }
    }
    assert!(fields.len() > 900 && values > 4000, "{} fields, {values} values", fields.len());
}

/// Each constraint refuses a word that its row would accept without it.
#[test]
fn every_constraint_refuses_something() {
    let mut noise = Noise(3);
    for row in ROWS {
        for constraint in row.constraints {
            let refused = row.opcodes().any(|opcode| {
                (0..1 << 16).any(|_| {
                    let word = Word(noise.wide() & !0xffff | 7 << 12 | u128::from(opcode));
                    Isa::sm87().legal(word).map(|_| ()) == Err(Illegal::Constraint(*constraint))
                })
            });
            assert!(refused, "{}: {}", row.name, constraint.text);
        }
    }
}
