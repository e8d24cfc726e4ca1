//! What the engine knows about the addresses of a chain of loads ([`crate::exec::chains`]) from the last load of the chain.
//!
//! A load keeps what it found out, together with the index of the first load of its chain. This holds for the later loads of the
//! chain that the same lanes of the same warp execute, as long as no instruction jumps. So a jump and the start of a CTA make
//! the engine forget everything.

use super::block::{Layout, Places};
use super::global::Found;
use crate::exec::uop::Uop;
use crate::exec::warp::Warp;

/// The number of chains that are known at a time.
const CHAINS: usize = 4;

/// How the lanes of a chain lie.
pub(crate) struct Chain {
    warp: u32,
    first: u32,
    /// The lanes of the load. 0 means that nothing is known.
    lanes: u32,
    /// What was added to the registers.
    offset: u64,
    found: Found,
    layout: Layout,
}

impl Chain {
    const NONE: Chain = Chain { warp: 0, first: 0, lanes: 0, offset: 0, found: Found::NONE, layout: Layout::NONE };

    /// Whether this is known of the load `u`.
    #[inline(always)]
    pub(super) fn is_of(&self, w: &Warp, u: &Uop, lanes: u32) -> bool {
        u.aux != 0 && self.lanes == lanes && self.first == u.at - u32::from(u.aux) && self.warp == w.index
    }

    /// Whether the lanes are aligned and in the same extent if `offset` is added to the registers.
    #[inline(always)]
    pub(super) fn fits(&self, offset: u64, len: u32) -> bool {
        let moved = offset.wrapping_sub(self.offset) as i64;
        moved >= self.found.back && moved <= self.found.ahead && moved & i64::from(len - 1) == 0
    }

    /// Where they are then.
    #[inline(always)]
    pub(super) fn at(&self, offset: u64) -> Places<'_> {
        let moved = offset.wrapping_sub(self.offset);
        Places::new(self.found.first.wrapping_add(moved as usize), &self.layout)
    }

    /// The place for a new layout. Nothing is known until [`Self::keep`] is called.
    #[inline(always)]
    pub(super) fn layout(&mut self) -> &mut Layout {
        self.lanes = 0;
        &mut self.layout
    }

    /// Keeps what was found out for a load to whose registers `offset` is added.
    #[inline(always)]
    pub(super) fn keep(&mut self, w: &Warp, u: &Uop, lanes: u32, offset: u64, found: Found) {
        (self.warp, self.first, self.lanes) = (w.index, u.at - u32::from(u.aux), lanes);
        (self.offset, self.found) = (offset, found);
    }
}

/// What is known of the chains that were met last.
pub(crate) struct Known {
    chains: [Chain; CHAINS],
    /// How the lanes of the last store lay, and those of the last access to shared memory.
    pub(super) stores: Layout,
    pub(super) shared: Layout,
}

impl Known {
    pub(crate) const NOTHING: Known =
        Known { chains: [const { Chain::NONE }; CHAINS], stores: Layout::NONE, shared: Layout::NONE };

    /// What may be known of the load `u`. Chains with different address registers have different places.
    #[inline(always)]
    pub(super) fn of(&mut self, u: &Uop) -> &mut Chain {
        &mut self.chains[u.a.offset() / 64 % CHAINS]
    }

    #[inline(always)]
    pub(crate) fn forget(&mut self) {
        self.chains.iter_mut().for_each(|chain| chain.lanes = 0);
    }
}
