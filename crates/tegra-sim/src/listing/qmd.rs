//! Listings of a launch descriptor, with its fields one after another.

use std::fmt::Write;
use tegrarm_abi::layout::{Bits, NamedBits};
use tegrarm_abi::methods::qmd::{QMD_BITS, QMD_CONSTS};

/// Lists every field in order. Reserved fields and elements of arrays are listed only if they are not zero.
pub(super) fn text(words: &[u32]) -> String {
    let mut out = String::new();
    for NamedBits { name, bits } in QMD_BITS {
        for i in 0..bits.count.max(1) {
            let element = bits.at(i);
            let value = element.of_words(words);
            if value == 0 && (bits.count > 1 || name.starts_with("QMD_RESERVED")) {
                continue;
            }
            let index = if bits.count > 1 { format!("({i})") } else { String::new() };
            line(&mut out, &format!("{name}{index}"), element, value, &meaning(name, value));
        }
    }
    out
}

fn line(out: &mut String, name: &str, bits: Bits, value: u64, meaning: &str) {
    let place = format!("{}:{}", bits.msb, bits.lsb);
    writeln!(out, "{place:>9}  {name:<44} {value:#x}{meaning}").expect("a string takes everything");
}

fn meaning(field: &str, value: u64) -> String {
    let named = QMD_CONSTS.iter().filter(|c| c.value == i128::from(value));
    let name = named.filter_map(|c| c.name.strip_prefix(field)?.strip_prefix('_')).next();
    name.map_or_else(String::new, |name| format!("  {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tegrarm_abi::methods::qmd::*;

    #[test]
    fn fields_and_array_elements_are_listed() {
        let mut words = [0; 64];
        CTA_RASTER_WIDTH.put_words(&mut words, 70_000);
        CONSTANT_BUFFER_VALID.at(3).put_words(&mut words, 1);
        let text = text(&words);
        let line = |name: &str| text.lines().find(|l| l.contains(name)).map(str::to_owned);
        assert!(line("CTA_RASTER_WIDTH ").is_some_and(|l| l.contains("415:384") && l.contains("0x11170")), "{text}");
        assert!(line("CONSTANT_BUFFER_VALID(3)").is_some() && line("CONSTANT_BUFFER_VALID(2)").is_none());
    }
}
