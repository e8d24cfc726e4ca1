//! The doorbell page.

use super::gpu::Gpu;
use crate::status::{During, RmResult, fail};
use crate::tegra::{DOORBELL_SIZE, Doorbell, PAGE};
use parking_lot::Mutex;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Placement;

/// A usermode object: every mapping of it is a doorbell page of its own.
pub struct Usermode {
    gpu: Arc<Gpu>,
    pages: Mutex<Vec<Doorbell>>,
}

impl Usermode {
    /// One that is mapped nowhere.
    pub fn new(gpu: &Arc<Gpu>) -> Usermode {
        Usermode { gpu: gpu.clone(), pages: Mutex::default() }
    }

    /// Maps the page. Returns the address.
    ///
    /// # Errors
    /// 0x20 for anything but the first 64 KiB, 0x2E for a length of 0, the errno of `mmap(2)`.
    pub fn map(&self, at: Option<usize>, offset: u64, len: u64) -> RmResult<usize> {
        if len == 0 {
            fail!(NV_ERR_INVALID_LIMIT, "a length of 0");
        }
        if offset != 0 || len > DOORBELL_SIZE {
            fail!(
                NV_ERR_INVALID_BASE,
                "the doorbell page is {DOORBELL_SIZE:#x} bytes, mapped from its start; asked for {offset:#x}+{len:#x}"
            );
        }
        let place = at.map_or(Placement::Anywhere, Placement::Replace);
        let len = len.next_multiple_of(PAGE) as usize;
        let doorbell = self.gpu.ctrl.map_doorbell(place, len).during(|| "mapping the doorbell page")?;
        let addr = doorbell.page.addr();
        self.pages.lock().push(doorbell);
        Ok(addr)
    }

    /// Undoes [`Usermode::map`].
    ///
    /// # Errors
    /// 0x57 when it is not mapped there.
    pub fn unmap(&self, addr: usize) -> RmResult<()> {
        let mut pages = self.pages.lock();
        let Some(at) = pages.iter().position(|d| d.page.addr() == addr) else {
            fail!(NV_ERR_OBJECT_NOT_FOUND, "the doorbell page is not mapped at {addr:#x}");
        };
        let doorbell = pages.swap_remove(at);
        drop(pages);
        drop(doorbell);
        Ok(())
    }
}
