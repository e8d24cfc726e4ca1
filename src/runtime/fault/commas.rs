//! Numbers as people read them.

use std::fmt::{self, Display, Formatter};

/// A number with commas: `4,096`.
pub struct Commas(pub u64);

impl Display for Commas {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.char_indices() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        let all: Vec<String> = [0, 12, 999, 1000, 4096, 1_234_567].iter().map(|n| Commas(*n).to_string()).collect();
        assert_eq!(all, ["0", "12", "999", "1,000", "4,096", "1,234,567"]);
    }
}
