//! The vector form against [`Hmma::run`], which defines the results.

use super::*;
use proptest::prelude::*;
use sm87_num::mma::Fragment;

/// Whether the host has what [`run`] needs.
fn avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

/// Every form: shape, type of A and B, and whether C and D are f32.
const FORMS: [(u32, u32, bool); 8] =
    [(0, 0, true), (0, 0, false), (1, 0, true), (1, 0, false), (0, 1, true), (1, 1, true), (2, 2, true), (0, 2, true)];

struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 32) as u32 ^ (self.0 >> 20) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }
}

/// How the numbers of a tile are distributed. The exponent fields of f16 go from the first number to the second; the other
/// formats have exponents that are as far from that of 1.0. One number in so many is zero. The last field says whether any
/// bits at all may occur.
#[derive(Clone, Copy, Debug)]
struct Tile {
    low: u32,
    high: u32,
    zeros: u32,
    anything: bool,
}

fn element(noise: &mut Noise, tile: Tile, fraction: u32, bias: u32) -> u32 {
    if noise.below(tile.zeros) == 0 {
        return noise.below(2) << (if fraction == 23 { 31 } else { 15 });
    }
    let field = tile.low + noise.below(tile.high - tile.low + 1);
    let field = if bias == 15 { field } else { field + bias - 15 };
    let sign = noise.below(2) << (if fraction == 23 { 31 } else { 15 });
    sign | field << fraction | noise.next() & ((1 << fraction) - 1)
}

fn word(noise: &mut Noise, tile: Tile, input: Input) -> u32 {
    if tile.anything && noise.below(8) == 0 {
        return noise.next();
    }
    match input {
        Input::F16 => element(noise, tile, 10, 15) | element(noise, tile, 10, 15) << 16,
        Input::Bf16 => element(noise, tile, 7, 127) | element(noise, tile, 7, 127) << 16,
        Input::Tf32 => element(noise, tile, 23, 127),
    }
}

fn tiles() -> impl Strategy<Value = Tile> {
    let ranges = prop::sample::select(vec![(0, 30), (13, 16), (0, 2), (10, 20), (28, 30)]);
    (ranges, 1..32u32, any::<bool>()).prop_map(|((low, high), zeros, anything)| Tile { low, high, zeros, anything })
}

fn operands(how: Hmma, tile: Tile, seed: u64) -> ([Fragment; 4], [Fragment; 2], [Fragment; 4]) {
    let mut noise = Noise(seed);
    let mut row = |input| std::array::from_fn(|_| word(&mut noise, tile, input));
    let (a, b) = (std::array::from_fn(|_| row(how.input())), std::array::from_fn(|_| row(how.input())));
    let c = std::array::from_fn(|_| row(if how.is_f32() { Input::Tf32 } else { Input::F16 }));
    (a, b, c)
}

fn forms(neg: [bool; 2]) -> impl Iterator<Item = Hmma> {
    FORMS.into_iter().map(move |(shape, input, f32)| {
        let mut how = Hmma::from_bits(shape, input, f32).expect("it exists");
        (how.neg_a, how.neg_b) = (neg[0], neg[1]);
        how
    })
}

type Matrices<'a> = (&'a [Fragment; 4], &'a [Fragment; 2], &'a [Fragment; 4]);

/// What vectors compute, or `None` if the numbers do not suit them.
fn vectors(how: Hmma, (a, b, c): Matrices<'_>, kept: &mut Converted, places: [usize; 2]) -> Option<[Fragment; 4]> {
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn enabled(
        how: Hmma,
        (a, b, c): Matrices<'_>,
        kept: &mut Converted,
        places: [usize; 2],
    ) -> Option<[Fragment; 4]> {
        // The addend and the result are the same registers, as they are in programs.
        let used = how.registers()[2];
        let mut d = [[0; 32]; 4];
        d[..used].copy_from_slice(&c[..used]);
        let to = d.as_mut_ptr().cast::<u32>();
        // SAFETY: the caller has found AVX2; the arrays have as many registers as any form.
        unsafe { run(how, [a.as_ptr().cast(), b.as_ptr().cast(), to.cast_const()], kept, places, to) }.then_some(d)
    }
    // SAFETY: every test ends at once where AVX2 is missing.
    unsafe { enabled(how, (a, b, c), kept, places) }
}

fn check(how: Hmma, tile: Tile, seed: u64) {
    let (a, b, c) = operands(how, tile, seed);
    if let Some(found) = vectors(how, (&a, &b, &c), &mut Converted::none(), [0; 2]) {
        assert_eq!(found, how.run(&a, &b, &c), "{how:?} {tile:?} {seed}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn sixteen_rows_at_a_time_have_the_same_bits(tile in tiles(), seed: u64, neg: [bool; 2]) {
        if avx2() {
            forms(neg).for_each(|how| check(how, tile, seed));
        }
    }
}

/// Operands that are kept from one product to the next are those of the product.
#[test]
fn kept_operands_are_those_of_the_instruction() {
    if !avx2() {
        return;
    }
    let (mut kept, mut noise) = (Converted::none(), Noise(7));
    let tile = Tile { low: 10, high: 18, zeros: 16, anything: false };
    for _ in 0..3000 {
        let neg = [noise.below(2) != 0, noise.below(2) != 0];
        let form = noise.below(FORMS.len() as u32) as usize;
        let how = forms(neg).nth(form).expect("it is one of them");
        let (a, _, c) = operands(how, tile, u64::from(noise.below(3)));
        let (_, b, _) = operands(how, tile, u64::from(noise.below(3)));
        let places = [noise.below(2) as usize, noise.below(4) as usize];
        let found = vectors(how, (&a, &b, &c), &mut kept, places);
        assert_eq!(found, Some(how.run(&a, &b, &c)), "{how:?}");
    }
}

/// Ordinary numbers do not need the other path.
#[test]
fn ordinary_numbers_are_computed_by_vectors() {
    if !avx2() {
        return;
    }
    let tile = Tile { low: 10, high: 18, zeros: 16, anything: false };
    for how in forms([false; 2]) {
        for seed in 0..100 {
            let (a, b, c) = operands(how, tile, seed);
            assert!(vectors(how, (&a, &b, &c), &mut Converted::none(), [0; 2]).is_some(), "{how:?} {seed}");
        }
    }
}

/// Infinities, NaN and numbers near the ends of the range of floats are left to the definition.
#[test]
fn other_numbers_are_not() {
    if !avx2() {
        return;
    }
    let how = Hmma::from_bits(1, 0, true).expect("m16n8k16 exists");
    let one = [[0x3c00_3c00; 32]; 4];
    for (a, b, c) in
        [(0x7c00, 0x3c00, 0), (0x3c00, 0x7e01, 0), (0, 0, 1), (0x3c00, 0x3c00, 0x7f80_0000), (0, 0, 0x7f00_0000)]
    {
        let (mut x, mut y, mut z) = (one, [one[0]; 2], [[0; 32]; 4]);
        (x[1][7], y[1][9], z[2][30]) = (a, b, c);
        if a == 0 {
            (x, y) = ([[0; 32]; 4], [[0; 32]; 2]);
        }
        assert!(vectors(how, (&x, &y, &z), &mut Converted::none(), [0; 2]).is_none(), "{a:#x} {b:#x} {c:#x}");
    }
}
