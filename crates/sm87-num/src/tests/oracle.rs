//! The judge of results: exact fixed-point numbers that are wide enough for any sum of two products of doubles, and
//! correct rounding, which is defined by comparing with the neighbouring representable numbers.

use super::format::Format;
use super::round::Round;
use std::cmp::Ordering;

/// A repeatable source of operands (splitmix64). Each case of a test has its own, so that a failing case can be run
/// again.
pub struct Draw(u64);

/// `count` cases.
pub fn draws(count: u64) -> impl Iterator<Item = Draw> {
    (0..count).map(|case| Draw(case << 32))
}

impl Draw {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.word() % limit
    }

    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn round(&mut self) -> Round {
        self.pick(&Round::ALL)
    }

    /// An integer: a random pattern, a small number, or a number near a power of two.
    pub fn int(&mut self) -> u64 {
        let near = 1u64.checked_shl(self.below(65) as u32).unwrap_or(0);
        match self.below(4) {
            0 => self.word(),
            1 => self.below(8).wrapping_sub(4),
            2 => near.wrapping_add(self.below(5)).wrapping_sub(2),
            _ => self.word() >> self.below(64),
        }
    }

    /// Bits of a format. Every kind of number is likely: a random pattern, an edge value, or an exponent near that of
    /// one.
    pub fn bits(&mut self, format: Format) -> u64 {
        let width = format.fraction + format.exponent + 1;
        match self.below(8) {
            0 | 1 => self.word() >> (64 - width),
            2 => self.pick(&edges(format)),
            _ => {
                let exponent = i64::from(format.bias()) + self.below(60) as i64 - 30;
                let exponent = exponent.clamp(0, (1 << format.exponent) - 2) as u64;
                self.word() & (format.sign() | ((1 << format.fraction) - 1)) | exponent << format.fraction
            }
        }
    }

    pub fn bits32(&mut self) -> u32 {
        self.bits(Format::F32) as u32
    }
}

const WORDS: usize = 70;
/// The weight of the last bit as a power of two. It is below the product of the two smallest doubles.
const LAST: i32 = -2200;

/// An exact number, as two's complement in units of 2^`LAST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fixed([u64; WORDS]);

impl Fixed {
    pub fn new(negative: bool, significand: u128, exponent: i32) -> Self {
        let at = usize::try_from(exponent - LAST).expect("exponent in range");
        let mut words = [0; WORDS];
        for (word, half) in [significand as u64, (significand >> 64) as u64].into_iter().enumerate() {
            let placed = u128::from(half) << (at % 64);
            words[at / 64 + word] |= placed as u64;
            words[at / 64 + word + 1] |= (placed >> 64) as u64;
        }
        if negative { Self(words).negated() } else { Self(words) }
    }

    pub fn negated(&self) -> Self {
        let mut carry = true;
        Self(self.0.map(|word| {
            let (word, overflow) = (!word).overflowing_add(carry.into());
            carry = overflow;
            word
        }))
    }

    pub fn plus(&self, other: &Self) -> Self {
        let mut carry = 0;
        let mut words = [0; WORDS];
        for (out, (&x, &y)) in words.iter_mut().zip(self.0.iter().zip(&other.0)) {
            let sum = u128::from(x) + u128::from(y) + carry;
            (*out, carry) = (sum as u64, sum >> 64);
        }
        Self(words)
    }

    pub fn is_negative(&self) -> bool {
        self.0[WORDS - 1] >> 63 != 0
    }

    pub fn is_zero(&self) -> bool {
        self.0 == [0; WORDS]
    }

    fn compare(&self, other: &Self) -> Ordering {
        let signed = |x: &Self| x.0[WORDS - 1] as i64;
        signed(self).cmp(&signed(other)).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// The sign, significand and exponent of finite bits.
pub fn fields(format: Format, bits: u64) -> (bool, u128, i32) {
    let magnitude = bits & (format.sign() - 1);
    let exponent = (magnitude >> format.fraction) as i32;
    let fraction = u128::from(magnitude & ((1 << format.fraction) - 1));
    let scale = -format.bias() - format.fraction as i32;
    match exponent {
        0 => (bits & format.sign() != 0, fraction, scale + 1),
        _ => (bits & format.sign() != 0, fraction + (1 << format.fraction), scale + exponent),
    }
}

/// The exact value of finite bits. For ∞ it is the next power of two.
pub fn value(format: Format, bits: u64) -> Fixed {
    let (negative, significand, exponent) = fields(format, bits);
    Fixed::new(negative, significand, exponent)
}

/// The exact product of two numbers, times 2^`scale`.
pub fn product(format: Format, a: u64, b: u64, scale: i32) -> Fixed {
    let (a, b) = (fields(format, a), fields(format, b));
    Fixed::new(a.0 != b.0, a.1 * b.1, a.2 + b.2 + scale)
}

/// Whether `exact` rounds to `bits`. A zero result must have the sign of `exact`, or of `zero` if `exact` is zero.
pub fn rounds_to(format: Format, exact: &Fixed, round: Round, bits: u64, zero: bool) -> bool {
    let negative = bits & format.sign() != 0;
    let magnitude = (bits & (format.sign() - 1)) as i64;
    if magnitude > format.infinity() as i64 {
        return false;
    }
    if magnitude == 0 && negative != if exact.is_zero() { zero } else { exact.is_negative() } {
        return false;
    }
    let ordinal = if negative { -magnitude } else { magnitude };
    let at = |ordinal: i64| value(format, ordinal.unsigned_abs() | if ordinal < 0 { format.sign() } else { 0 });
    let infinity = format.infinity() as i64;
    let down = |_: ()| {
        (ordinal == -infinity || exact.compare(&at(ordinal)) != Ordering::Less)
            && (ordinal + 1 >= infinity || exact.compare(&at(ordinal + 1)) == Ordering::Less)
            && ordinal != infinity
    };
    let up = |_: ()| {
        (ordinal == infinity || exact.compare(&at(ordinal)) != Ordering::Greater)
            && (ordinal - 1 <= -infinity || exact.compare(&at(ordinal - 1)) == Ordering::Greater)
            && ordinal != -infinity
    };
    match round {
        Round::Rm => down(()),
        Round::Rp => up(()),
        Round::Rz if exact.is_negative() => up(()),
        Round::Rz => down(()),
        Round::Rn => {
            let twice = exact.plus(exact);
            let here = at(ordinal);
            let tie = if ordinal % 2 == 0 { Some(Ordering::Equal) } else { None };
            let below = (ordinal > -infinity).then(|| twice.compare(&here.plus(&at(ordinal - 1))));
            let above = (ordinal < infinity).then(|| twice.compare(&here.plus(&at(ordinal + 1))));
            below.is_none_or(|b| b == Ordering::Greater || Some(b) == tie)
                && above.is_none_or(|a| a == Ordering::Less || Some(a) == tie)
        }
    }
}

/// The sign of a sum that is exactly zero.
pub fn zero_sum(x: bool, y: bool, round: Round) -> bool {
    if round == Round::Rm { x | y } else { x & y }
}

/// The numbers at which something changes, with both signs.
pub fn edges(format: Format) -> Vec<u64> {
    let fraction = (1u64 << format.fraction) - 1;
    let exponent = |e: i32| ((format.bias() + e) as u64) << format.fraction;
    let positive = [
        0,
        1,
        fraction,
        fraction + 1,
        fraction + 2,
        exponent(-1) - 1,
        exponent(-1),
        exponent(0) - 1,
        exponent(0),
        exponent(0) + 1,
        exponent(0) + fraction / 3,
        exponent(1),
        exponent(1) + fraction / 2,
        exponent(format.fraction as i32),
        format.infinity() - 1,
        format.infinity(),
        format.infinity() | 1 << (format.fraction - 1),
        format.infinity() | 1,
    ];
    positive.into_iter().flat_map(|x| [x, x | format.sign()]).collect()
}

#[test]
fn judges_known_roundings() {
    let third = Fixed::new(false, 0x5555_5555_5555_5555, -64);
    let near = (1f32 / 3.0).to_bits();
    assert!(rounds_to(Format::F32, &third, Round::Rn, near.into(), false));
    assert!(rounds_to(Format::F32, &third, Round::Rp, near.into(), false));
    assert!(rounds_to(Format::F32, &third, Round::Rz, (near - 1).into(), false));
    for wrong in [near - 1, near + 1] {
        assert!(!rounds_to(Format::F32, &third, Round::Rn, wrong.into(), false));
    }
    let tie = Fixed::new(true, (1 << 24) + 1, 0);
    assert!(rounds_to(Format::F32, &tie, Round::Rn, (-16_777_216f32).to_bits().into(), false));
    assert!(!rounds_to(Format::F32, &tie, Round::Rn, (-16_777_218f32).to_bits().into(), false));
    assert!(rounds_to(Format::F16, &Fixed::new(false, 65520, 0), Round::Rn, 0x7c00, false));
    assert!(!rounds_to(Format::F16, &Fixed::new(false, 65519, 0), Round::Rn, 0x7c00, false));
    assert!(rounds_to(Format::F16, &Fixed::new(false, 1 << 40, 0), Round::Rm, 0x7bff, false));
}
