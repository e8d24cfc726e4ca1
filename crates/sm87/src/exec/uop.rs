//! Micro-ops, which are made from instructions when a program is decoded.

use super::env::Env;
use super::rows::{Dst, Pred, Src};
use super::warp::Warp;

/// What the interpreter does after a handler has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flow {
    /// The next instruction follows.
    Next,
    /// The handler changed the warp's pc, its active lanes or both.
    Jump,
    /// The target lies outside of the decoded image, and nothing was done yet. `Outcome::extend` holds the target.
    Extend,
    /// There was a fault, which is in `Outcome::fault`.
    Fault,
    /// The next instruction follows, but other warps run first, because the lanes wait for something.
    Pause,
    /// All lanes of the warp wait at a CTA barrier, and have nothing else to do.
    Wait,
    /// Nothing was done yet. The instructions so far are counted, this one included, and the handler is called again.
    Count,
    /// Continue behind the next `Outcome::together` instructions, which were executed together with this one.
    Together,
}

impl Flow {
    /// The flow behind an instruction that may have to let other warps run first.
    #[inline(always)]
    pub(crate) fn pause_if(others_first: bool) -> Flow {
        if others_first { Flow::Pause } else { Flow::Next }
    }
}

/// Executes one instruction for the lanes in the mask.
///
/// # Safety
/// The warp's arrays are those that the micro-op was lowered for. The host has the instruction set that the handler was
/// chosen for.
pub(crate) type Handler = unsafe fn(&mut Warp, &mut Env<'_>, &Uop, u32) -> Flow;

/// The handlers of one instruction: for all 32 lanes, for some lanes and for exactly one lane.
#[derive(Clone, Copy)]
pub(crate) struct Handlers {
    pub full: Handler,
    pub part: Handler,
    pub one: Handler,
}

impl Handlers {
    /// The handler for the lanes in a mask.
    #[inline(always)]
    pub(crate) fn of(&self, exec: u32) -> Handler {
        if exec == u32::MAX {
            self.full
        } else if exec & (exec - 1) == 0 {
            self.one
        } else {
            self.part
        }
    }

    /// Uses the same function for every mask.
    pub(crate) fn all(h: Handler) -> Handlers {
        Handlers { full: h, part: h, one: h }
    }
}

/// A decoded instruction. It fills one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Uop {
    pub(crate) run: Handlers,
    pub(crate) d: Dst,
    pub(crate) a: Src,
    pub(crate) b: Src,
    pub(crate) c: Src,
    /// An immediate, an offset, the index of a target or a mask. The handler defines which.
    pub(crate) imm: u32,
    /// Modifiers. The handler defines their bits.
    pub(crate) mods: u32,
    pub(crate) guard: Pred,
    /// The predicate sources.
    pub(crate) ps: Pred,
    pub(crate) pt: Pred,
    /// The predicate destinations.
    pub(crate) pd: u8,
    pub(crate) pe: u8,
    /// The index of this instruction in its image.
    pub(crate) at: u32,
    /// One more than the highest register number that is used.
    pub(crate) registers: u16,
    /// A value that the handler defines.
    pub(crate) aux: u16,
}

/// What the addresses of an access are made of, besides a number: two registers, and whether they are pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(Src, Src, u32);

/// The bit of `aux` that marks operations on the uniform datapath.
pub(crate) const UNIFORM: u16 = 1 << 15;

impl Uop {
    /// The index of the instruction in its program.
    pub fn at(&self) -> u32 {
        self.at
    }

    /// The first source.
    pub fn a(&self) -> Src {
        self.a
    }

    /// The second source.
    pub fn b(&self) -> Src {
        self.b
    }

    /// What the addresses of an access are made of.
    pub(super) fn origin(&self) -> Origin {
        Origin(self.a, self.c, self.mods)
    }

    /// The guard.
    pub fn guard(&self) -> Pred {
        self.guard
    }

    /// The predicates that it reads besides its guard.
    pub fn predicate_sources(&self) -> [Pred; 2] {
        [self.ps, self.pt]
    }

    /// The predicates that it writes, as [`pred`](super::rows::pred) counts.
    pub fn predicate_destinations(&self) -> [u8; 2] {
        [self.pd, self.pe]
    }
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
