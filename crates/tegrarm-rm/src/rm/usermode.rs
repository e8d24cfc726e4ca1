//! The doorbell page.

use super::gpu::Gpu;
use super::memory::next_cookie;
use crate::status::{During, RmResult, fail};
use crate::tegra::{DOORBELL_SIZE, Doorbell, KernelError, PAGE};
use std::os::fd::{AsFd, RawFd};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{File, Placement, fds};
use tegrarm_lock::Mutex;

/// A usermode object. Every mapping of it is a doorbell page of its own.
pub struct Usermode {
    gpu: Arc<Gpu>,
    pages: Mutex<Vec<Doorbell>>,
    lent: Mutex<Vec<Lent>>,
}

/// A node that a descriptor of the client refers to. It must stay open, because the client's mapping rings the doorbell
/// only while it is open.
struct Lent {
    cookie: u64,
    _node: File,
}

impl Usermode {
    /// Makes a usermode object that is mapped nowhere.
    pub fn new(gpu: &Arc<Gpu>) -> Usermode {
        Usermode { gpu: gpu.clone(), pages: Mutex::default(), lent: Mutex::default() }
    }

    /// Maps the doorbell page and returns the address.
    ///
    /// # Errors
    /// INVALID_BASE for a range outside of the first 64 KiB, INVALID_LIMIT for a length of 0, the errno of `mmap(2)`.
    pub fn map(&self, at: Option<usize>, offset: u64, len: u64) -> RmResult<usize> {
        check_range(offset, len)?;
        let place = at.map_or(Placement::Anywhere, Placement::Replace);
        let len = len.next_multiple_of(PAGE) as usize;
        let doorbell = self.gpu.ctrl.map_doorbell(place, len).during(|| "mapping the doorbell page")?;
        let addr = doorbell.page.addr();
        self.pages.lock().push(doorbell);
        Ok(addr)
    }

    /// Makes `onto`, a descriptor of the client, refer to a ctrl node of its own, because the kernel allows one
    /// doorbell mapping for each open node. Returns a cookie for [`Usermode::unmap`].
    ///
    /// # Errors
    /// Those of [`Usermode::map`], and the errno of replacing the descriptor.
    pub fn lend(&self, offset: u64, len: u64, onto: RawFd) -> RmResult<u64> {
        check_range(offset, len)?;
        let node = self.gpu.ctrl.open_again().during(|| "opening a doorbell page")?;
        let replaced = fds::replace(node.as_fd(), onto);
        replaced.map_err(|errno| KernelError::new(format!("replacing descriptor {onto}"), errno))?;
        let cookie = next_cookie();
        self.lent.lock().push(Lent { cookie, _node: node });
        Ok(cookie)
    }

    /// Undoes [`Usermode::map`] or [`Usermode::lend`].
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND when it is not mapped there.
    pub fn unmap(&self, addr: usize) -> RmResult<()> {
        let mut lent = self.lent.lock();
        if let Some(at) = lent.iter().position(|l| l.cookie == addr as u64) {
            let node = lent.swap_remove(at);
            drop(lent);
            drop(node);
            return Ok(());
        }
        drop(lent);
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

fn check_range(offset: u64, len: u64) -> RmResult<()> {
    if len == 0 {
        fail!(NV_ERR_INVALID_LIMIT, "a length of 0");
    }
    if offset != 0 || len > DOORBELL_SIZE {
        fail!(
            NV_ERR_INVALID_BASE,
            "the doorbell page is {DOORBELL_SIZE:#x} bytes, mapped from its start; asked for {offset:#x}+{len:#x}"
        );
    }
    Ok(())
}
