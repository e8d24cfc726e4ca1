//! Lists how each instruction could be decoded if one rule of its row were wrong.
//!
//! Reads instruction words from standard input, in hexadecimal, one on each line. For each word that is an instruction, it prints
//! a line with the word, the index of its row and the name of the row. Then follows a line for each modifier field and each other
//! legal value of that field: the word with that value, the modifier that the field had before, and the one that it has now.

use sm87::Word;
use sm87::isa::{Isa, ROWS};
use std::io::{BufRead, Write};

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Ok(word) = u128::from_str_radix(line.trim(), 16).map(Word) else {
            writeln!(out, "not\t{line}")?;
            continue;
        };
        let Ok(opcode) = Isa::sm87().legal(word) else { continue };
        let at = ROWS.iter().position(|row| std::ptr::eq(row, opcode.row())).unwrap_or(ROWS.len());
        writeln!(out, "word\t{:032x}\t{at}\t{}", word.0, opcode.row().name)?;
        for (other, was, is) in Isa::sm87().mutants(word) {
            writeln!(out, "mutant\t{:032x}\t{was}\t{is}", other.0)?;
        }
    }
    out.flush()
}
