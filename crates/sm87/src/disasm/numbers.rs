//! Floating-point immediates as C's `%.20g` and `%.20e` write them.

/// Writes a float immediate. Integers below 10^9 and small numbers have the short form, and large numbers the full
/// form.
pub(super) fn float(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "+INF ".to_owned() } else { "-INF ".to_owned() };
    }
    if x == 0.0 {
        return if x.is_sign_negative() { "-0.0 ".to_owned() } else { "0".to_owned() };
    }
    if x.abs() >= 1e9 { scientific(x, 20, false) } else { general(x) }
}

/// Writes a NaN by its sign and its quiet bit.
pub(super) fn nan(negative: bool, quiet: bool) -> &'static str {
    match (negative, quiet) {
        (false, true) => "+QNAN ",
        (true, true) => "-QNAN ",
        (false, false) => "+SNAN ",
        (true, false) => "-SNAN ",
    }
}

/// Writes a number as `%.20g` does.
fn general(x: f64) -> String {
    let text = format!("{x:.19e}");
    let exponent: i32 = text.rsplit_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    if !(-4..20).contains(&exponent) {
        return scientific(x, 19, true);
    }
    let fixed = format!("{x:.*}", (19 - exponent) as usize);
    trim(&fixed).to_owned()
}

fn trim(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// Writes a number as `%.Ne` does. With `short`, trailing zeros are left out.
fn scientific(x: f64, decimals: usize, short: bool) -> String {
    let text = format!("{x:.decimals$e}");
    let (digits, exponent) = text.rsplit_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    let digits = if short { trim(digits) } else { digits };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_c() {
        for (x, text) in [
            (0.5f32, "0.5"),
            (1.0 / 3.0, "0.3333333432674407959"),
            (1e10, "1.00000000000000000000e+10"),
            (65504.0, "65504"),
            (1e-5, "9.9999997473787516356e-06"),
            (-0.25, "-0.25"),
            (536870912.0, "536870912"),
            (1.844_674_4e19, "1.84467440737095516160e+19"),
            (1e-40, "9.9999461011147595815e-41"),
        ] {
            assert_eq!(float(x.into()), text);
        }
    }
}
