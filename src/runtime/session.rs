//! An RM client with everything below it that a program needs: device, address space, channel groups.

use crate::rm::Rm;
use crate::status::RmResult;
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// The handles of one bring-up; freeing the client takes them all.
pub struct Session {
    rm: Arc<Rm>,
    client: u32,
    /// NV01_DEVICE_0.
    pub device: u32,
    /// NV20_SUBDEVICE_0.
    pub subdevice: u32,
    /// NV01_MEMORY_VIRTUAL over the address space: what buffers are mapped through.
    pub mapper: u32,
    space: u32,
}

/// A channel group with its context share: channels of one group share the engines' state, and a fault.
pub struct Group {
    session: Arc<Session>,
    /// KEPLER_CHANNEL_GROUP_A.
    pub group: u32,
    /// FERMI_CONTEXT_SHARE_A.
    pub share: u32,
}

impl Group {
    /// Makes one for an engine (`NV2080_ENGINE_TYPE_*`).
    ///
    /// # Errors
    /// What RM says; nothing stays behind.
    pub fn new(session: &Arc<Session>, engineType: u32) -> RmResult<Group> {
        let zeroed = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
        let params = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS { engineType, ..zeroed };
        let group = session.alloc(session.device, KEPLER_CHANNEL_GROUP_A, params)?;
        // From here on `Drop` undoes it: freeing the group takes what is below it along.
        let mut made = Group { session: session.clone(), group, share: 0 };
        let zeroed = NV_CTXSHARE_ALLOCATION_PARAMETERS::new_zeroed();
        let flags = NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC;
        let params = NV_CTXSHARE_ALLOCATION_PARAMETERS { hVASpace: session.space, flags, ..zeroed };
        made.share = session.alloc(group, FERMI_CONTEXT_SHARE_A, params)?;
        Ok(made)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.session.free(self.group);
    }
}

impl Session {
    /// Brings one up.
    ///
    /// # Errors
    /// What RM says; nothing stays behind.
    pub fn open(rm: &Arc<Rm>) -> RmResult<Session> {
        let client = rm.alloc(rm.prepare_alloc(NV01_ROOT_CLIENT, false, 0)?, 0, 0, 0, &mut [])?;
        let rm = rm.clone();
        let mut s = Session { rm, client, device: 0, subdevice: 0, mapper: 0, space: 0 };
        let zeroed = NV0080_ALLOC_PARAMETERS::new_zeroed();
        s.device = s.alloc(client, NV01_DEVICE_0, NV0080_ALLOC_PARAMETERS { hClientShare: client, ..zeroed })?;
        s.subdevice = s.alloc(s.device, NV20_SUBDEVICE_0, NV2080_ALLOC_PARAMETERS::new_zeroed())?;
        s.space = s.alloc(s.device, FERMI_VASPACE_A, NV_VASPACE_ALLOCATION_PARAMETERS::new_zeroed())?;
        let zeroed = NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS::new_zeroed();
        let mapper = NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS { hVASpace: s.space, ..zeroed };
        s.mapper = s.alloc(s.device, NV01_MEMORY_VIRTUAL, mapper)?;
        Ok(s)
    }

    /// The manager it belongs to.
    pub fn rm(&self) -> &Arc<Rm> {
        &self.rm
    }

    /// The client's handle.
    pub fn client(&self) -> u32 {
        self.client
    }

    /// `rm_alloc` with parameters; returns the handle.
    ///
    /// # Errors
    /// What RM says.
    pub fn alloc<T: FromBytes + IntoBytes>(&self, parent: u32, class: u32, mut params: T) -> RmResult<u32> {
        let prepared = self.rm.prepare_alloc(class, true, size_of::<T>() as u32)?;
        self.rm.alloc(prepared, self.client, parent, 0, params.as_mut_bytes())
    }

    /// `rm_alloc` without parameters; returns the handle.
    ///
    /// # Errors
    /// What RM says.
    pub fn alloc_plain(&self, parent: u32, class: u32) -> RmResult<u32> {
        self.rm.alloc(self.rm.prepare_alloc(class, false, 0)?, self.client, parent, 0, &mut [])
    }

    /// `rm_control`.
    ///
    /// # Errors
    /// What RM says.
    pub fn control<T: FromBytes + IntoBytes + Immutable>(&self, object: u32, cmd: u32, params: &mut T) -> RmResult<()> {
        let prepared = self.rm.prepare_control(self.client, object, cmd, true, size_of::<T>() as u32)?;
        self.rm.control(&prepared, params.as_mut_bytes())
    }

    /// `rm_free`. An object that is gone already is no error, and a client of the process this one was forked from
    /// is not ours to free.
    pub fn free(&self, object: u32) {
        if let Err(e) = self.rm.free(self.client, object) {
            tracing::debug!("freeing {object:#x}: {e}");
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.free(self.client);
    }
}
