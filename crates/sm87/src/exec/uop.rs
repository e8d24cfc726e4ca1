//! What an instruction becomes when its program is decoded.

use super::env::Env;
use super::rows::{Dst, Src, pred};
use super::warp::Warp;

/// What the interpreter does after a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Flow {
    /// Go on with the next instruction.
    Next,
    /// The handler changed the warp's pc, its active lanes or both.
    Jump,
    /// The target lies outside the decoded image; nothing was done yet. `Env::extend` holds it.
    Extend,
    /// `Env::fault` says what happened.
    Fault,
    /// Go on with the next instruction, but let others run first: the lanes wait for something.
    Pause,
    /// Nothing was done yet: count the instructions so far, this one included, and call again.
    Count,
}

/// Executes one instruction for the lanes in the mask.
///
/// # Safety
/// The warp's arrays are those the micro-op was lowered for, and the host has the instruction set the handler
/// was picked for.
pub(crate) type Handler = unsafe fn(&mut Warp, &mut Env<'_>, &Uop, u32) -> Flow;

/// The handlers of one instruction: for all 32 lanes, for some, for exactly one.
#[derive(Clone, Copy)]
pub(crate) struct Handlers {
    pub full: Handler,
    pub part: Handler,
    pub one: Handler,
}

impl Handlers {
    /// The same function for every mask.
    pub(crate) fn all(h: Handler) -> Handlers {
        Handlers { full: h, part: h, one: h }
    }
}

/// A predicate operand: an index into the warp's masks and an inversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pred {
    pub index: u8,
    /// 0 or -1; sign-extends to the mask to exclusive-or with.
    pub invert: i8,
}

impl Pred {
    pub(crate) const TRUE: Pred = Pred { index: pred::PT, invert: 0 };
}

/// A decoded instruction: one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Uop {
    pub run: Handlers,
    pub d: Dst,
    pub a: Src,
    pub b: Src,
    pub c: Src,
    /// An immediate, an offset, a target index, a mask: as the handler wants it.
    pub imm: u32,
    /// Modifiers, as the handler wants them.
    pub mods: u32,
    pub guard: Pred,
    /// Predicate sources.
    pub ps: Pred,
    pub pt: Pred,
    /// Predicate destinations.
    pub pd: u8,
    pub pe: u8,
    /// Index of this instruction in its image.
    pub at: u32,
    /// Highest register number used plus one.
    pub registers: u16,
    /// Handler's choice.
    pub aux: u16,
}

const _: () = assert!(size_of::<Uop>() == 64 || size_of::<usize>() != 8);

impl std::fmt::Debug for Uop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "uop {} d{:?} a{:?} b{:?} c{:?} imm {:#x} mods {:#x}",
            self.at, self.d, self.a, self.b, self.c, self.imm, self.mods
        )
    }
}
