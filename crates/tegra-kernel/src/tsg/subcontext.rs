//! Subcontexts: the address space that each VEID of a group uses (docs/hardware/nvgpu-tsg.md#create-subcontext).

use crate::rule::Because;
use crate::space::AddressSpace;
use std::sync::{Arc, Weak};
use tegrarm_kmd::Errno;

/// The number of subcontexts that a group can have.
pub(crate) const MAX_VEIDS: u32 = 64;

/// The VEIDs of a group. As in nvgpu, an address space is remembered but not kept alive: the pointer is only used for
/// comparing.
#[derive(Debug)]
pub(crate) struct Subcontexts {
    /// The slots by VEID. `None` means free.
    slots: Vec<Option<Slot>>,
}

/// The address space of a VEID. It is `None` for a subcontext of a channel that had no address space.
type Slot = Option<Weak<AddressSpace>>;

impl Default for Subcontexts {
    fn default() -> Self {
        Subcontexts { slots: vec![None; MAX_VEIDS as usize] }
    }
}

impl Subcontexts {
    /// Creates a subcontext. SYNC gets VEID 0. ASYNC gets the lowest free VEID above 0, or else VEID 0 too.
    pub(crate) fn create(&mut self, sync: bool, space: &Arc<AddressSpace>) -> Result<u32, Errno> {
        let mut candidates = (if sync { 0..1 } else { 1..self.slots.len() }).chain(0..1);
        let veid = candidates.find(|veid| self.slots[*veid].is_none());
        let veid = veid.ok_or_else(|| Errno::ENOSPC.because("no VEID is free"))?;
        self.slots[veid] = Some(Some(Arc::downgrade(space)));
        Ok(veid as u32)
    }

    /// Makes VEID 0 with the channel's address space, if it does not exist. Binding a channel to VEID 0 does this. The
    /// error is `ENOSPC` if VEID 0 was made by a channel without an address space: nvgpu takes it for missing and finds
    /// its number in use.
    pub(crate) fn imply_first(&mut self, space: Option<&Arc<AddressSpace>>) -> Result<(), Errno> {
        match &self.slots[0] {
            None => self.slots[0] = Some(space.map(Arc::downgrade)),
            Some(None) => {
                let rule = "VEID 0 belongs to a channel that was bound before it had an address space";
                return Err(Errno::ENOSPC.because(rule));
            }
            Some(Some(_)) => {}
        }
        Ok(())
    }

    /// Whether a channel with this address space may use `veid`.
    pub(crate) fn matches(&self, veid: u32, space: Option<&Arc<AddressSpace>>) -> bool {
        let stored = self.slots[veid as usize].as_ref().and_then(Option::as_ref);
        match (stored, space) {
            (Some(stored), Some(space)) => Weak::as_ptr(stored) == Arc::as_ptr(space),
            (None, None) => true,
            _ => false,
        }
    }

    /// Frees a VEID.
    pub(crate) fn delete(&mut self, veid: u32) {
        self.slots[veid as usize] = None;
    }
}
