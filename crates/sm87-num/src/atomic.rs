//! What atomics and reductions compute. The caller reads and writes the memory indivisibly.

use super::f32::{self, Mode};
use super::f64;
use super::half::{self, Operand};
use super::round::Round;

/// The operation of ATOM, ATOMG, ATOMS and RED, as encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Sum.
    Add = 0,
    /// Minimum.
    Min = 1,
    /// Maximum.
    Max = 2,
    /// Increment, back to 0 from the operand.
    Inc = 3,
    /// Decrement, back to the operand from 0.
    Dec = 4,
    /// Bitwise and.
    And = 5,
    /// Bitwise or.
    Or = 6,
    /// Bitwise exclusive or.
    Xor = 7,
    /// Exchange.
    Exch = 8,
}

/// The operand type, as encoded for global atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    /// 32-bit unsigned.
    U32 = 0,
    /// 32-bit signed.
    S32 = 1,
    /// 64-bit unsigned.
    U64 = 2,
    /// Single precision, `.FTZ.RN`.
    F32 = 3,
    /// Two halves, `.RN`, denormals kept.
    F16x2 = 4,
    /// 64-bit signed.
    S64 = 5,
    /// Double precision, `.RN`.
    F64 = 6,
}

/// An operation on a type that the machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Atomic {
    op: Op,
    ty: Type,
}

impl Atomic {
    /// Reads the operation and type fields. The result is `None` if the encoding or the combination does not exist.
    /// Floating-point types can only be added, or exchanged as plain bits with an integer type. Only 32-bit unsigned
    /// counters wrap.
    #[must_use]
    pub const fn from_bits(op: u32, ty: u32) -> Option<Self> {
        let op = match op {
            0 => Op::Add,
            1 => Op::Min,
            2 => Op::Max,
            3 => Op::Inc,
            4 => Op::Dec,
            5 => Op::And,
            6 => Op::Or,
            7 => Op::Xor,
            8 => Op::Exch,
            _ => return None,
        };
        let ty = match ty {
            0 => Type::U32,
            1 => Type::S32,
            2 => Type::U64,
            3 => Type::F32,
            4 => Type::F16x2,
            5 => Type::S64,
            6 => Type::F64,
            _ => return None,
        };
        Self::new(op, ty)
    }

    /// Does the same as [`Atomic::from_bits`] with fields that were decoded already.
    #[must_use]
    pub const fn new(op: Op, ty: Type) -> Option<Self> {
        let exists = match (op, ty) {
            (Op::Add, _) | (_, Type::U32) => true,
            (Op::Inc | Op::Dec, _) | (_, Type::F32 | Type::F16x2 | Type::F64) => false,
            (_, Type::S32 | Type::U64 | Type::S64) => true,
        };
        if exists { Some(Self { op, ty }) } else { None }
    }

    /// The operation.
    #[must_use]
    pub const fn op(self) -> Op {
        self.op
    }

    /// The type.
    #[must_use]
    pub const fn ty(self) -> Type {
        self.ty
    }

    /// Size of the memory operand in bytes: 4 or 8, also its alignment.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self.ty {
            Type::U64 | Type::S64 | Type::F64 => 8,
            _ => 4,
        }
    }

    /// The value of the memory afterwards. 32-bit types use and return the low half.
    #[inline]
    #[must_use]
    pub fn apply(self, old: u64, operand: u64) -> u64 {
        match self.ty {
            Type::U64 => integer(self.op, old, operand, old < operand),
            Type::S64 => integer(self.op, old, operand, (old as i64) < operand as i64),
            Type::F64 => add_f64(old, operand),
            _ => self.apply32(old as u32, operand as u32).into(),
        }
    }

    #[inline]
    fn apply32(self, old: u32, operand: u32) -> u32 {
        let wide = |less| integer(self.op, old.into(), operand.into(), less) as u32;
        match (self.ty, self.op) {
            (Type::F32, _) => f32::add(old, operand, Mode { ftz: true, ..Mode::default() }),
            (Type::F16x2, _) => {
                let lanes = |x| Operand::default().lanes(half::Kind::F16, x, false);
                half::add2(lanes(old), lanes(operand), half::Mode::default())
            }
            (_, Op::Inc) if old >= operand => 0,
            (_, Op::Inc) => old + 1,
            (_, Op::Dec) if old == 0 || old > operand => operand,
            (_, Op::Dec) => old - 1,
            (Type::S32, _) => wide((old as i32) < operand as i32),
            _ => wide(old < operand),
        }
    }
}

/// The sum of doubles. Unlike DADD, it does not change the bits of a NaN. If both values are NaNs, the result is the
/// operand's.
#[inline]
fn add_f64(old: u64, operand: u64) -> u64 {
    let nan = [operand, old].into_iter().find(|&x| std::primitive::f64::from_bits(x).is_nan());
    nan.unwrap_or_else(|| f64::add(old, operand, Round::Rn))
}

/// The operations that are the same for every width. `less` says whether the old value is below the operand.
#[inline(always)]
const fn integer(op: Op, old: u64, operand: u64, less: bool) -> u64 {
    match op {
        Op::Add => old.wrapping_add(operand),
        Op::And => old & operand,
        Op::Or => old | operand,
        Op::Xor => old ^ operand,
        Op::Min if less => old,
        Op::Max if !less => old,
        // Inc and Dec exist for 32 bits only, and this function is never called for them.
        Op::Min | Op::Max | Op::Exch | Op::Inc | Op::Dec => operand,
    }
}

/// ATOM.CAS: the value of the memory afterwards.
#[inline(always)]
#[must_use]
pub const fn compare_and_swap(old: u64, compare: u64, swap: u64) -> u64 {
    if old == compare { swap } else { old }
}

/// The bits in the upper word of a barrier that count arrivals, up to zero. The bit above them is the phase.
const PENDING: u32 = 0x7fff_ffff;

/// ATOMS.ARRIVE: the value of a barrier after one thread has arrived (docs/hardware/sm87-memory.md#mbarrier-meaning).
/// The upper word counts up from minus the number of pending arrivals. Its carry inverts the phase bit. The count then
/// begins again with the number in the lower word.
#[inline(always)]
#[must_use]
pub const fn arrive(barrier: u64) -> u64 {
    let (expected, counted) = (barrier as u32, ((barrier >> 32) as u32).wrapping_add(1));
    // Minus the number of expected arrivals, in 30 bits.
    let again = (expected << 2).cast_signed() >> 2;
    let upper = if counted & PENDING == 0 { counted | again as u32 & PENDING } else { counted };
    (upper as u64) << 32 | expected as u64
}

#[cfg(test)]
mod tests {
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
}
