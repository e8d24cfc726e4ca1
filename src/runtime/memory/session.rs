//! An RM client with the objects that a program needs: a device, an address space and channel groups.

use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::status::NV_ERR_NOT_SUPPORTED;
use tegrarm_rm::rm::syncpoints::SyncpointMap;
use tegrarm_rm::rm::{Rm, Share};
use tegrarm_rm::status::{RmResult, fail};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

/// The handles of one client's objects. Freeing the client frees them all.
pub struct Session {
    rm: Arc<Rm>,
    client: u32,
    /// NV01_DEVICE_0.
    pub device: u32,
    /// NV20_SUBDEVICE_0.
    pub subdevice: u32,
    /// NV01_MEMORY_VIRTUAL over the address space, with which buffers are mapped.
    pub mapper: u32,
    /// FERMI_VASPACE_A.
    pub space: u32,
    /// Its addresses. The field is the last one, because they are free when the client is.
    share: Share,
}

/// A channel group with its context share. Channels of one group share the state of the engines, and a fault stops all
/// of them.
pub struct Group {
    session: Arc<Session>,
    /// KEPLER_CHANNEL_GROUP_A.
    pub group: u32,
    /// FERMI_CONTEXT_SHARE_A.
    pub share: u32,
    /// The channel of the group, as soon as it is made.
    pub channel: u32,
}

impl Group {
    /// Makes a group for an engine (`NV2080_ENGINE_TYPE_*`).
    ///
    /// # Errors
    /// An error that RM gives. Nothing is left of the attempt.
    pub fn new(session: &Arc<Session>, engineType: u32) -> RmResult<Group> {
        let zeroed = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
        let params = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS { engineType, ..zeroed };
        let group = session.alloc(session.device, KEPLER_CHANNEL_GROUP_A, params)?;
        // From here on `Drop` undoes all steps, because freeing the group frees what is below it.
        let mut made = Group { session: session.clone(), group, share: 0, channel: 0 };
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
    /// The type of the last copy engine, because those that share a runlist with compute come first.
    ///
    /// # Errors
    /// `NV_ERR_NOT_SUPPORTED` if there is none.
    pub fn copy_engine(&self) -> RmResult<u32> {
        let mut p = NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS::new_zeroed();
        self.control(self.subdevice, NV2080_CTRL_CMD_GPU_GET_ENGINES_V2, &mut p)?;
        let copies = NV2080_ENGINE_TYPE_COPY0..=NV2080_ENGINE_TYPE_COPY9;
        match p.engineList.iter().take(p.engineCount as usize).rfind(|engine| copies.contains(engine)) {
            Some(engine) => Ok(*engine),
            None => fail!(NV_ERR_NOT_SUPPORTED, "the GPU has no copy engine"),
        }
    }

    /// Opens a client with its objects.
    ///
    /// # Errors
    /// An error that RM gives. Nothing is left of the attempt.
    pub fn open(rm: &Arc<Rm>) -> RmResult<Session> {
        let client = rm.alloc(rm.prepare_alloc(NV01_ROOT_CLIENT, false, 0)?, 0, 0, 0, &mut [])?;
        let (rm, share) = (rm.clone(), rm.share());
        let mut s = Session { rm, client, device: 0, subdevice: 0, mapper: 0, space: 0, share };
        let zeroed = NV0080_ALLOC_PARAMETERS::new_zeroed();
        s.device = s.alloc(client, NV01_DEVICE_0, NV0080_ALLOC_PARAMETERS { hClientShare: client, ..zeroed })?;
        s.subdevice = s.alloc(s.device, NV20_SUBDEVICE_0, NV2080_ALLOC_PARAMETERS::new_zeroed())?;
        let zeroed = NV_VASPACE_ALLOCATION_PARAMETERS::new_zeroed();
        s.space =
            s.alloc(s.device, FERMI_VASPACE_A, NV_VASPACE_ALLOCATION_PARAMETERS { vaSize: s.share.end(), ..zeroed })?;
        let zeroed = NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS::new_zeroed();
        let mapper = NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS { hVASpace: s.space, ..zeroed };
        s.mapper = s.alloc(s.device, NV01_MEMORY_VIRTUAL, mapper)?;
        Ok(s)
    }

    /// The manager that the session belongs to.
    pub fn rm(&self) -> &Arc<Rm> {
        &self.rm
    }

    /// The client's handle.
    pub fn client(&self) -> u32 {
        self.client
    }

    /// Calls `rm_alloc` with parameters. Returns the handle.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn alloc<T: FromBytes + IntoBytes>(&self, parent: u32, class: u32, mut params: T) -> RmResult<u32> {
        let prepared = self.rm.prepare_alloc(class, true, size_of::<T>() as u32)?;
        self.rm.alloc(prepared, self.client, parent, 0, params.as_mut_bytes())
    }

    /// Calls `rm_alloc` without parameters. Returns the handle.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn alloc_plain(&self, parent: u32, class: u32) -> RmResult<u32> {
        self.rm.alloc(self.rm.prepare_alloc(class, false, 0)?, self.client, parent, 0, &mut [])
    }

    /// Calls `rm_control`.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn control<T: FromBytes + IntoBytes + Immutable>(&self, object: u32, cmd: u32, params: &mut T) -> RmResult<()> {
        let prepared = self.rm.prepare_control(self.client, object, cmd, true, size_of::<T>() as u32)?;
        self.rm.control(&prepared, params.as_mut_bytes())
    }

    /// The addresses at which the GPU reads all syncpoints.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn syncpoints(&self) -> RmResult<SyncpointMap> {
        self.rm.syncpoint_map(self.client, self.space)
    }

    /// Calls `rm_free`. An object that does not exist any more is no error. In a forked child, objects of the parent's
    /// client are not freed.
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
