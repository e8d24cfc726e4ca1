//! Which lanes of which rows hold values that were never written.

use super::operands::{Operands, Registers};
use sm87::isa::Does;
use sm87::observe::lanes as each;
use sm87::observe::{REGISTER, Uop, pred};

/// The rows of a warp.
const ROWS: usize = REGISTER as usize + 256 + 4;
/// Every bit of every lane.
pub(crate) const ALL_BITS: [u32; 32] = [u32::MAX; 32];
/// The predicates of a warp.
const PREDICATES: usize = pred::COUNT;

/// What is known of a row or a predicate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unwritten {
    /// The lanes whose value was never written, or made of such values.
    pub lanes: u32,
    /// Those of them whose value is made of such values: it is not a copy of one.
    pub made: u32,
    /// The bits of each of these lanes that depend on what was never written. Those of other lanes mean nothing.
    pub bits: [u32; 32],
    /// Where the value of the last of them comes from: an index of the origins.
    pub origin: u32,
}

impl Unwritten {
    /// Lanes were written.
    pub(crate) fn forget(&mut self, lanes: u32) {
        (self.lanes, self.made) = (self.lanes & !lanes, self.made & !lanes);
    }

    /// Lanes have values of which these bits were never written.
    pub(crate) fn note(&mut self, lanes: u32, made: u32, bits: &[u32; 32], origin: u32) {
        if lanes == 0 {
            return;
        }
        (self.lanes, self.made, self.origin) = (self.lanes | lanes, self.made & !lanes | made & lanes, origin);
        each(lanes).for_each(|lane| self.bits[lane as usize] = bits[lane as usize]);
    }
}

/// The rows and predicates of a warp.
#[derive(Clone, Debug)]
pub(crate) struct Shadow {
    pub rows: Box<[Unwritten; ROWS]>,
    pub predicates: [Unwritten; PREDICATES],
    /// Whether there may be any such lane.
    pub any: bool,
}

impl Shadow {
    /// Of a warp that begins.
    pub(crate) fn new(registers: Registers) -> Shadow {
        let (row, predicates) = (Unwritten::default(), [Unwritten::default(); PREDICATES]);
        let mut shadow = Shadow { rows: Box::new([row; ROWS]), predicates, any: false };
        shadow.begin(registers);
        shadow
    }

    /// A warp begins: nothing has written the registers that its program may read first.
    pub(crate) fn begin(&mut self, registers: Registers) {
        if std::mem::take(&mut self.any) {
            self.rows.iter_mut().chain(&mut self.predicates).for_each(|of| of.forget(u32::MAX));
        }
        for row in registers.rows() {
            self.rows[row].note(u32::MAX, 0, &ALL_BITS, 0);
            self.any = true;
        }
    }

    /// Whether an instruction reads anything that was not written.
    pub(crate) fn reads(&self, u: &Uop, operands: &Operands) -> bool {
        self.any
            && (operands.rows().any(|row| self.rows[row].lanes != 0)
                || [u.guard()]
                    .iter()
                    .chain(&u.predicate_sources())
                    .any(|p| self.predicates[usize::from(p.index)].lanes != 0))
    }

    /// What an instruction writes is written.
    pub(crate) fn writes(&mut self, u: &Uop, operands: &Operands, exec: u32) {
        if !self.any {
            return;
        }
        for row in operands.written() {
            // A uniform register is written as a whole.
            self.rows[row].forget(if row < REGISTER as usize { u32::MAX } else { exec });
        }
        for p in u.predicate_destinations() {
            self.predicates[usize::from(p)].forget(if p >= pred::UNIFORM { u32::MAX } else { exec });
        }
        if operands.is(Does::SetsPredicates) {
            self.predicates.iter_mut().for_each(|p| p.forget(exec));
        }
    }
}
