//! Disassembles instruction words. Each line of standard input has two 64-bit hexadecimal halves, the low one first.

use std::io::{self, BufRead};

fn main() -> io::Result<()> {
    let mut pc = 0u64;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let mut halves = line.split_whitespace().map(|h| u64::from_str_radix(h, 16));
        let (Some(Ok(lo)), Some(Ok(hi))) = (halves.next(), halves.next()) else { continue };
        println!("{}", sm87::disassemble(lo, hi, pc).unwrap_or_else(|| "?".to_owned()));
        pc += 16;
    }
    Ok(())
}
