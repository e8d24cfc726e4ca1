//! Subcontexts: the address space that each VEID of a group uses (docs/hardware/nvgpu-tsg.md#create-subcontext).

use super::{MAX_VEIDS, TsgFile};
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use crate::space::AddressSpace;
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_kmd::Errno;

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
    fn create(&mut self, sync: bool, space: &Arc<AddressSpace>) -> Result<u32, Errno> {
        let mut candidates = (if sync { 0..1 } else { 1..self.slots.len() }).chain(0..1);
        let veid = candidates.find(|veid| self.slots[*veid].is_none());
        let veid = veid.ok_or_else(|| Errno::ENOSPC.because("no VEID is free"))?;
        self.slots[veid] = Some(Some(Arc::downgrade(space)));
        Ok(veid as u32)
    }

    /// Makes VEID 0 with the channel's address space, if it does not exist. Binding a channel to VEID 0 does this.
    pub(super) fn imply_first(&mut self, space: Option<&Arc<AddressSpace>>) {
        self.slots[0].get_or_insert_with(|| space.map(Arc::downgrade));
    }

    /// Whether a channel with this address space may use `veid`.
    pub(super) fn matches(&self, veid: u32, space: Option<&Arc<AddressSpace>>) -> bool {
        let stored = self.slots[veid as usize].as_ref().and_then(Option::as_ref);
        match (stored, space) {
            (Some(stored), Some(space)) => Weak::as_ptr(stored) == Arc::as_ptr(space),
            (None, None) => true,
            _ => false,
        }
    }

    fn delete(&mut self, veid: u32) {
        self.slots[veid as usize] = None;
    }
}

pub(super) fn create(call: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_create_subcontext_args) -> Reply {
    let sync = match args.type_ {
        NVGPU_TSG_SUBCONTEXT_TYPE_SYNC => true,
        NVGPU_TSG_SUBCONTEXT_TYPE_ASYNC => false,
        _ => return Err(Errno::EINVAL.because("the type is SYNC or ASYNC").into()),
    };
    let space = call.space(args.as_fd)?;
    args.veid = file.tsg.state.lock().subcontexts.create(sync, &space)?;
    Ok(())
}

pub(super) fn delete(_: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_delete_subcontext_args) -> Reply {
    let in_use = || file.tsg.channels().iter().any(|channel| channel.veid() == args.veid);
    if args.veid >= MAX_VEIDS || in_use() {
        return Err(Errno::EINVAL.because("there is no such VEID, or a channel uses it").into());
    }
    file.tsg.state.lock().subcontexts.delete(args.veid);
    Ok(())
}
