//! Tests that concern several layers.

mod fields;
mod layers;
mod rows;
mod text;

use crate::isa::{Isa, Row};
use crate::word::Word;

/// One instruction for each opcode, with the text of NVIDIA's disassembler: opcode, text, low half, high half.
const EXAMPLES: &str = include_str!("examples.tsv");

fn examples() -> impl Iterator<Item = (&'static str, Word)> {
    EXAMPLES.lines().map(|line| {
        let mut f = line.split('\t').skip(1);
        let text = f.next().unwrap();
        let mut half = || u64::from_str_radix(f.next().unwrap(), 16).unwrap();
        (text, Word::new(half(), half()))
    })
}

/// Pseudo-random numbers, which are the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

/// Instructions that have an opcode: its examples, and random ones. There are at least twelve.
fn instructions(row: &Row, opcode: u16, noise: &mut Noise) -> Vec<Word> {
    let isa = Isa::sm87();
    let mut found: Vec<Word> = examples().map(|(_, word)| word).filter(|word| word.opcode() == opcode).collect();
    for _ in 0..1 << 16 {
        if found.len() >= 12 {
            return found;
        }
        // In most instructions the bits above the operands are clear.
        let modifiers = noise.wide() & (noise.wide() | u128::from(u64::MAX));
        let word = Word(modifiers & !0xffff | 7 << 12 | u128::from(opcode));
        found.extend(isa.legal(word).is_ok().then_some(word));
    }
    panic!("{} ({opcode:#05x}): chance finds no instruction", row.name);
}
