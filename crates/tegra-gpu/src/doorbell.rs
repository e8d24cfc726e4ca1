//! The usermode page, which has a doorbell, a clock and a class id
//! (docs/hardware/gpu-doorbell-and-ring.md#usermode-page).

use super::mem::Words;
use std::sync::Arc;
use tegra_hw::Place;

const CFG0: usize = 0x00;
/// The offset of TIME_0 and TIME_1. Both are stored as one word, so that a reader never gets the halves of two times.
const TIME: usize = 0x80;
const DOORBELL: usize = 0x90;

/// The class id in CFG0: AMPERE_USERMODE_A (GA100 dev_ctrl).
const CLASS: u32 = 0xc561;
/// The content of the doorbell word when no token was stored. As a token it would name runlist 0x7f, which does not
/// exist.
const SILENT: u32 = 0xffff_ffff;

/// A usermode page that the GPU watches.
#[derive(Debug)]
pub(crate) struct Doorbell {
    page: Place,
}

impl Doorbell {
    /// Fills the page. Its clock shows `now`.
    pub(crate) fn new(page: Place, now: u64) -> Doorbell {
        let words = Words(&page);
        words.store_u32(CFG0, CLASS);
        words.store_u32(DOORBELL, SILENT);
        words.store_u64(TIME, now);
        Doorbell { page }
    }

    /// Whether it watches `page`.
    pub(crate) fn watches(&self, page: &Place) -> bool {
        Arc::ptr_eq(&self.page.backing, &page.backing) && self.page.offset == page.offset
    }

    /// Takes the token that was stored last, if there is one, and updates the clock of the page.
    pub(crate) fn poll(&self, now: u64) -> Option<u32> {
        let words = Words(&self.page);
        words.store_u64(TIME, now);
        if words.load_u32(DOORBELL) == SILENT {
            return None;
        }
        words.swap_u32(DOORBELL, SILENT).filter(|token| *token != SILENT)
    }
}
