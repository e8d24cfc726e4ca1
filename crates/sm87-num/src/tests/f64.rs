use super::*;
use crate::oracle::{draws, edges, product, rounds_to, value, zero_sum};

const F: Format = Format::F64;

fn sign(x: u64) -> bool {
    x >> 63 != 0
}

/// Checks a result that is not finite. `operands` are in the order in which NaNs are taken.
fn special(x: f64, got: u64, operands: &[u64]) -> bool {
    let nan = operands.iter().find(|&&x| f64::from_bits(x).is_nan());
    got == if x.is_nan() { nan.map_or(0xfff8 << 48, |x| x | 8 << 48) } else { x.to_bits() }
}

fn check(a: u64, b: u64, c: u64, round: Round) -> Result<(), &'static str> {
    let [x, y, z] = [a, b, c].map(f64::from_bits);
    let sum = add(a, c, round);
    let good = if x.is_finite() && z.is_finite() {
        let exact = value(F, a).plus(&value(F, c));
        rounds_to(F, &exact, round, sum, zero_sum(sign(a), sign(c), round))
    } else {
        special(x + z, sum, &[c, a])
    };
    good.then_some(()).ok_or("sum")?;
    let times = mul(a, b, round);
    let finite = x.is_finite() && y.is_finite();
    let good = match finite {
        true => rounds_to(F, &product(F, a, b, 0), round, times, sign(a) != sign(b)),
        false => special(x * y, times, &[b, a]),
    };
    good.then_some(()).ok_or("product")?;
    let fused = fma(a, b, c, round);
    let good = if finite && z.is_finite() {
        let exact = product(F, a, b, 0).plus(&value(F, c));
        rounds_to(F, &exact, round, fused, zero_sum(sign(a) != sign(b), sign(c), round))
    } else {
        special(x.mul_add(y, z), fused, &[b, c, a])
    };
    good.then_some(()).ok_or("fused")
}

#[test]
fn edges_of_everything() {
    let edges = edges(F);
    for (i, &a) in edges.iter().enumerate() {
        for (j, &b) in edges.iter().enumerate() {
            for (k, &c) in edges.iter().enumerate().filter(|(k, _)| (i + j + k) % 2 == 0) {
                let round = Round::from_bits(((i + j + k) / 2) as u32);
                assert_eq!(check(a, b, c, round), Ok(()), "{a:#x} {b:#x} {c:#x} {round:?}");
            }
        }
    }
}

#[test]
fn random() {
    for mut draw in draws(50_000) {
        let a = draw.bits(F);
        let b = draw.bits(F);
        let c = draw.bits(F);
        let round = draw.round();
        assert_eq!(check(a, b, c, round), Ok(()), "{a:#x} {b:#x} {c:#x} {round:?}");
    }
}

#[test]
fn cancelling() {
    for mut draw in draws(50_000) {
        let a = draw.bits(F);
        let b = draw.bits(F);
        let ulps = draw.below(5) as i64 - 2;
        let round = draw.round();
        let near = (-(f64::from_bits(a) * f64::from_bits(b))).to_bits();
        let c = near.wrapping_add_signed(ulps);
        assert_eq!(check(a, b, c, round), Ok(()), "{a:#x} {b:#x} {c:#x} {round:?}");
    }
}

#[test]
fn compare_codes() {
    for mut draw in draws(50_000) {
        let a = draw.bits(F);
        let b = draw.bits(F);
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let (lt, eq, gt, un) = (x < y, x == y, x > y, x.is_nan() || y.is_nan());
        let want = [
            lt,
            eq,
            lt | eq,
            gt,
            lt | gt,
            gt | eq,
            !un,
            un,
            lt | un,
            eq | un,
            lt | eq | un,
            gt | un,
            lt | gt | un,
            gt | eq | un,
        ];
        for (code, want) in (1..).zip(want) {
            assert_eq!(compare(a, b, code), want, "code {}", code);
        }
    }
}

/// The compiler's minimum selects by the first predicate and makes the second operand quiet under the second.
#[test]
fn minimum_and_maximum() {
    for mut draw in draws(50_000) {
        let a = draw.bits(F);
        let b = draw.bits(F);
        let min = draw.flag();
        let code = if min { 0 } else { 15 };
        let picked = if compare(a, b, code) { a } else { b };
        let got = f64::from_bits(if both_nan(a, b) { b | 1 << 51 } else { picked });
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        // The host's own min and max disagree about signalling NaNs.
        let want = match (x.is_nan(), y.is_nan()) {
            (true, _) => y,
            (_, true) => x,
            _ if min => x.min(y),
            _ => x.max(y),
        };
        assert!(got == want || (got.is_nan() && want.is_nan()));
        if x == 0.0 && y == 0.0 {
            assert_eq!(got.is_sign_negative(), if min { sign(a) | sign(b) } else { sign(a) & sign(b) });
        }
    }
}

#[test]
fn modifiers_act_on_bits() {
    assert_eq!(modify(1 << 63, true, false), 0);
    assert_eq!(modify(0, true, true), 1 << 63);
    assert_eq!(modify(0xfff0_0000_0000_0001, true, true), 0xfff0_0000_0000_0001, "a NaN stays as it is");
}
