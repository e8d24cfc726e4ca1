use super::*;
use crate::Round;
use crate::oracle::draws;

/// The place of element `i` of A for `mma.sync`, with `bits`-bit elements. The formulas are those of the PTX ISA, which
/// numbers the elements of a lane through all its registers.
fn a_position(lane: usize, i: usize, per_word: usize, tall: bool) -> (usize, usize) {
    let (group, thread) = (lane >> 2, lane % 4);
    let (register, within) = (i / per_word, i % per_word);
    let row = if tall && register % 2 == 1 { group + 8 } else { group };
    let block = if tall { register / 2 } else { register };
    (row, thread * per_word + within + block * 4 * per_word)
}

#[test]
fn integer_products() {
    let shapes = [(0, 8, 8, 16), (2, 4, 8, 32), (4, 8, 16, 16), (5, 8, 16, 32), (5, 4, 16, 32), (6, 4, 16, 64)];
    for mut draw in draws(300) {
        let (code, bits, rows, depth) = draw.pick(&shapes);
        let mut how = Imma::from_bits(code, bits == 4, bits == 4).unwrap();
        (how.signed_a, how.signed_b, how.saturate) = (draw.flag(), draw.flag(), draw.flag());
        let [a, b, c] = [(); 3].map(|()| -> [Fragment; 4] { [(); 4].map(|()| [(); 32].map(|()| draw.int() as u32)) });
        let b = [b[0], b[1]];
        let per_word = 32 / bits;
        let number = |word: u32, at: usize, signed: bool| {
            let x = i64::from(word >> (at * bits)) & ((1 << bits) - 1);
            if signed && x >> (bits - 1) != 0 { x - (1 << bits) } else { x }
        };
        let mut left = vec![vec![0; depth]; rows];
        let mut right = vec![vec![0; 8]; depth];
        for lane in 0..32 {
            for i in 0..depth * rows / 32 {
                let (row, k) = a_position(lane, i, per_word, rows == 16);
                left[row][k] = number(a[i / per_word][lane], i % per_word, how.signed_a);
            }
            for i in 0..depth / 4 {
                let (column, k) = a_position(lane, i, per_word, false);
                right[k][column] = number(b[i / per_word][lane], i % per_word, how.signed_b);
            }
        }
        let d = how.run(&a, &b, &c);
        for lane in 0..32 {
            for i in 0..rows / 4 {
                let (row, column) = (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
                let sum: i64 = (0..depth).map(|k| left[row][k] * right[k][column]).sum();
                let sum = sum + i64::from(c[i][lane] as i32);
                let want = if how.saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                assert_eq!(d[i][lane], want as u32, "{how:?}");
            }
        }
        assert_eq!(how.registers(), [depth * rows * bits / 1024, depth * 8 * bits / 1024, rows / 4]);
    }
}

#[test]
fn integer_shapes_that_do_not_exist() {
    for (shape, a, b) in
        [(0, true, true), (2, false, false), (6, false, false), (5, true, false), (1, false, false), (7, true, true)]
    {
        assert_eq!(Imma::from_bits(shape, a, b), None);
    }
}

#[test]
fn double_products() {
    for mut draw in draws(100) {
        let mut matrix = |n: usize| -> Vec<f64> { (0..n).map(|_| (draw.below(2000) as f64 - 1000.0) / 64.0).collect() };
        // A (8×4) and C (8×8) are row-major and B (4×8) is column-major, so lane 4·g + t has element (g, t).
        let (a, b, c) = (matrix(32), matrix(32), matrix(64));
        let half = |x: &[f64], at: &dyn Fn(usize) -> usize, high: bool| -> Fragment {
            std::array::from_fn(|lane| (x[at(lane)].to_bits() >> if high { 32 } else { 0 }) as u32)
        };
        let pair = |x: &[f64], at: &dyn Fn(usize) -> usize| [half(x, at, false), half(x, at, true)];
        let [c0, c1] = pair(&c, &|lane| lane * 2);
        let [c2, c3] = pair(&c, &|lane| lane * 2 + 1);
        let d = dmma(&pair(&a, &|lane| lane), &pair(&b, &|lane| lane), &[c0, c1, c2, c3], Round::Rn);
        for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let want: f64 = c[row * 8 + column] + (0..4).map(|k| a[row * 4 + k] * b[column * 4 + k]).sum::<f64>();
            let (lane, register) = (row * 4 + column / 2, column % 2 * 2);
            let got = f64::from_bits(u64::from(d[register + 1][lane]) << 32 | u64::from(d[register][lane]));
            assert_eq!(got, want, "small multiples of 2^-12 are exact in any order");
        }
    }
}

#[test]
fn matrices_of_halves() {
    let rows: [[u32; 4]; 8] =
        std::array::from_fn(|r| std::array::from_fn(|w| (r * 16 + w * 2) as u32 | ((r * 16 + w * 2 + 1) as u32) << 16));
    let fragment = rows_to_fragment(&rows);
    let at = |x: &Fragment, row: usize, column: usize| x[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
    let turned = transpose(&fragment);
    for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
        assert_eq!(at(&fragment, row, column), (row * 16 + column) as u32);
        assert_eq!(at(&turned, row, column), (column * 16 + row) as u32);
    }
    assert_eq!(transpose(&turned), fragment);
}
