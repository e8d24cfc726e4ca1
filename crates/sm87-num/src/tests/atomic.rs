use super::*;
use crate::oracle::draws;

const OPS: [Op; 9] = [Op::Add, Op::Min, Op::Max, Op::Inc, Op::Dec, Op::And, Op::Or, Op::Xor, Op::Exch];
const TYPES: [Type; 7] = [Type::U32, Type::S32, Type::U64, Type::F32, Type::F16x2, Type::S64, Type::F64];

#[test]
fn encodings_and_combinations() {
    for (op_code, op) in (0..).zip(OPS) {
        for (type_code, ty) in (0..).zip(TYPES) {
            let atomic = Atomic::from_bits(op_code, type_code);
            assert_eq!(atomic, Atomic::new(op, ty));
            if let Some(atomic) = atomic {
                assert_eq!((atomic.op(), atomic.ty()), (op, ty));
            }
        }
    }
    assert_eq!(Atomic::from_bits(9, 0), None);
    assert_eq!(Atomic::from_bits(0, 7), None);
    assert_eq!(Atomic::new(Op::Min, Type::F32), None);
    assert_eq!(Atomic::new(Op::Inc, Type::U64), None);
    assert_eq!(Atomic::new(Op::Dec, Type::S32), None);
    let sizes = TYPES.map(|ty| Atomic::new(Op::Add, ty).unwrap().bytes());
    assert_eq!(sizes, [4, 4, 8, 4, 4, 8, 8]);
}

#[test]
fn integer_operations() {
    for mut draw in draws(50_000) {
        let ty = draw.pick(&[Type::U32, Type::S32, Type::U64, Type::S64]);
        let Some(atomic) = Atomic::new(draw.pick(&OPS), ty) else { continue };
        let (bits, signed) = (atomic.bytes() * 8, matches!(ty, Type::S32 | Type::S64));
        let mask = u64::MAX >> (64 - bits);
        let wide = |x: u64| {
            let x = i128::from(x & mask);
            if signed && x >> (bits - 1) != 0 { x - (1 << bits) } else { x }
        };
        let (old, operand) = (draw.int(), draw.int());
        let (x, y) = (wide(old), wide(operand));
        let want = match atomic.op() {
            Op::Add => x + y,
            Op::Min => x.min(y),
            Op::Max => x.max(y),
            Op::And => x & y,
            Op::Or => x | y,
            Op::Xor => x ^ y,
            Op::Exch => y,
            Op::Inc => {
                if x >= y {
                    0
                } else {
                    x + 1
                }
            }
            Op::Dec => {
                if x == 0 || x > y {
                    y
                } else {
                    x - 1
                }
            }
        };
        assert_eq!(atomic.apply(old, operand), want as u64 & mask, "{atomic:?} {old:#x} {operand:#x}");
    }
}

#[test]
fn floating_sums() {
    let f32s = Atomic::new(Op::Add, Type::F32).unwrap();
    let bits = |x: f32| u64::from(x.to_bits());
    assert_eq!(f32s.apply(bits(1.5), bits(2.25)), bits(3.75));
    assert_eq!(f32s.apply(5, 7), 0, "denormals are flushed");
    let f64s = Atomic::new(Op::Add, Type::F64).unwrap();
    assert_eq!(f64s.apply(0.1f64.to_bits(), 0.2f64.to_bits()), (0.1f64 + 0.2).to_bits());
    assert_eq!(f64s.apply(5, 7), 12, "denormals are kept");
    let halves = Atomic::new(Op::Add, Type::F16x2).unwrap();
    assert_eq!(halves.apply(0x3c00_0001, 0x4000_0002), 0x4200_0003);
}

#[test]
fn exchange_if_equal() {
    assert_eq!(compare_and_swap(5, 5, 9), 9);
    assert_eq!(compare_and_swap(5, 6, 9), 5);
}

/// A barrier as `mbarrier.init` leaves it, and how many threads are pending in which phase.
fn barrier(count: u32) -> u64 {
    u64::from(0x8000_0000 - count) << 32 | u64::from(0x4000_0000 - count)
}

fn pending(barrier: u64) -> (u64, u64) {
    (barrier >> 63, 0x8000_0000 - (barrier >> 32 & 0x7fff_ffff))
}

#[test]
fn arrivals_end_phases() {
    for count in [1, 2, 3, 32, 1024, (1 << 20) - 1] {
        let mut b = barrier(count);
        for phase in 0..3 {
            let steps = count.min(5);
            assert_eq!(pending(b), (phase & 1, count.into()));
            // All but the last few at once, as `arrive.noComplete` does.
            b += u64::from(count - steps) << 32;
            for left in (1..=u64::from(steps)).rev() {
                assert_eq!(pending(b), (phase & 1, left));
                b = arrive(b);
            }
        }
        assert_eq!(b as u32, 0x4000_0000 - count);
    }
}

/// A thread that arrives and drops out raises the lower word first.
#[test]
fn threads_drop_out_of_a_barrier() {
    let mut b = barrier(3);
    b = arrive(b + 1);
    assert_eq!(pending(b), (0, 2));
    b = arrive(arrive(b));
    assert_eq!(pending(b), (1, 2));
    b = arrive(b + 1);
    b = arrive(b + 1);
    assert_eq!((b >> 63, b as u32), (0, 0x4000_0000), "nobody is left");
}
