//! `RM_ALLOC`: makes the checks in RM's order and then calls the class's constructor.

use super::classes::{self, ClassRow, Params, Support};
use super::client::{CLIENT_HANDLES, Claim, Client};
use super::context::{self, Inside};
use super::object::{Kind, Object, Tag};
use super::vaspace::VaSpace;
use super::{Asked, NEXT_CLIENT, Rm};
use crate::status::{RmResult, fail};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegrarm_abi::rm::classes::NV01_ROOT;
use tegrarm_abi::rm::status::*;

/// An allocation whose class is known. The caller has to hand over the parameters next.
#[derive(Clone, Copy)]
pub struct PreparedAlloc {
    class: &'static ClassRow,
    len: usize,
}

impl PreparedAlloc {
    /// The number of bytes of parameters that are read and written back.
    pub fn params_len(&self) -> usize {
        self.len
    }
}

/// One allocation while it is made, as constructors see it.
pub struct AllocCall<'a> {
    /// The manager.
    pub rm: &'a Rm,
    /// The client.
    pub client: &'a Arc<Client>,
    /// The parent.
    pub parent: &'a Arc<Object>,
    /// The class being allocated.
    pub class: &'static ClassRow,
    /// The caller's parameters, which are read and written. The slice is empty when the caller passes none.
    pub params: &'a mut [u8],
    /// Objects with which this one is freed. Constructors add to the list.
    pub depends_on: Vec<u32>,
}

impl AllocCall<'_> {
    /// An object of the same client that the parameters name.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND for a handle that names no object of the client.
    pub fn object(&self, handle: u32) -> RmResult<Arc<Object>> {
        self.client.object(handle)
    }

    /// The VA space that the parameters name. The handle 0 means the device's own VA space.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND for an unknown handle, INVALID_OBJECT for an object that is not a VA space.
    pub fn vaspace(&mut self, handle: u32) -> RmResult<Arc<VaSpace>> {
        if handle == 0 {
            let device = self.client.ancestor(self.parent.handle, Tag::Device)?;
            return match &device.kind {
                Kind::Device(device) => Ok(device.default_space.clone()),
                _ => fail!(NV_ERR_INVALID_OBJECT_PARENT, "{device} is no device"),
            };
        }
        let space = self.object(handle)?.vaspace(NV_ERR_INVALID_OBJECT)?.clone();
        self.depends_on.push(handle);
        Ok(space)
    }
}

impl Rm {
    /// The first half of [`Rm::alloc`]: finds the class and the number of bytes of its parameters. A `size` of 0 means
    /// the class's own size. `has_params` is whether the caller passed any parameters.
    ///
    /// # Errors
    /// INVALID_CLASS for an unknown class (or the status its row gives), INVALID_ARGUMENT when parameters are required,
    /// INVALID_PARAM_STRUCT when `size` is not one of the sizes that drivers used for them.
    pub fn prepare_alloc(&self, class: u32, has_params: bool, size: u32) -> RmResult<PreparedAlloc> {
        let Some(row) = classes::find(class) else {
            self.report.refuse(Asked::Class(class), "unknown", "it is not in the class table");
            fail!(NV_ERR_INVALID_CLASS, "class {class:#x} is not in the class table");
        };
        if let Support::Refused(status) = row.state
            && status == NV_ERR_INVALID_CLASS
        {
            self.report.refuse(Asked::Class(class), row.name, row.why);
            fail!(status, "class {} ({class:#x}) is refused: {}", row.name, row.why);
        }
        let sizes = match row.params {
            Params::None => return Ok(PreparedAlloc { class: row, len: 0 }),
            Params::Optional(_) if !has_params => return Ok(PreparedAlloc { class: row, len: 0 }),
            Params::Required(_) if !has_params => {
                fail!(NV_ERR_INVALID_ARGUMENT, "class {} needs allocation parameters; there are none", row.name)
            }
            Params::Optional(sizes) | Params::Required(sizes) => sizes,
        };
        let len = if size == 0 { sizes[0] } else { size as usize };
        if !sizes.contains(&len) {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "parameters of class {} are {sizes:?} bytes, not {size}", row.name);
        }
        Ok(PreparedAlloc { class: row, len })
    }

    /// `RM_ALLOC`: makes an object under `parent`, where 0 is the client itself. If `wanted` is 0, the library chooses
    /// the handle. Returns the handle. A failed allocation leaves nothing behind.
    ///
    /// # Errors
    /// That of the first check that fails, in RM's order, or that of the class.
    pub fn alloc(
        &self,
        prepared: PreparedAlloc,
        client: u32,
        parent: u32,
        wanted: u32,
        params: &mut [u8],
    ) -> RmResult<u32> {
        let row = prepared.class;
        let _inside = context::enter(Inside::Alloc(row.number));
        if row.is_client() && client == 0 && parent == 0 {
            return self.alloc_client(row, wanted, params);
        }
        let client = self.client(client, NV_ERR_INVALID_OBJECT_HANDLE)?;
        let parent = client.object(if parent == 0 { client.handle } else { parent })?;
        if !row.parents.allow(parent.kind.tag()) {
            fail!(
                NV_ERR_INVALID_OBJECT_PARENT,
                "{} cannot be a child of {parent}, only of: {}",
                row.name,
                row.parents.words()
            );
        }
        self.make(&client, &parent, row, wanted, params, row.make)
    }

    /// The part of an allocation that every class shares: it reserves the handle, calls the constructor and enters the
    /// object into the tree.
    pub(super) fn make(
        &self,
        client: &Arc<Client>,
        parent: &Arc<Object>,
        class: &'static ClassRow,
        wanted: u32,
        params: &mut [u8],
        make: impl FnOnce(&mut AllocCall) -> RmResult<Kind>,
    ) -> RmResult<u32> {
        let claim = client.claim(parent.handle, wanted)?;
        let guard = Abandon { client, claim: &claim };
        let mut call = AllocCall { rm: self, client, parent, class, params, depends_on: Vec::new() };
        let kind = make(&mut call).map_err(|e| self.refused(class, e))?;
        let depends_on = call.depends_on;
        std::mem::forget(guard);
        let object = Object { handle: claim.handle, parent: parent.handle, class, kind };
        client.settle(&claim, object, depends_on)?;
        tracing::debug!("client {:#x}: {} {:#x} under {:#x}", client.handle, class.name, claim.handle, parent.handle);
        Ok(claim.handle)
    }

    fn refused(&self, class: &ClassRow, e: crate::status::RmError) -> crate::status::RmError {
        if let Support::Refused(_) = class.state {
            self.report.refuse(Asked::Class(class.number), class.name, class.why);
        }
        e.during(format!("allocating {} ({:#x})", class.name, class.number))
    }

    fn alloc_client(&self, class: &'static ClassRow, wanted: u32, params: &mut [u8]) -> RmResult<u32> {
        let gpu = self.gpu()?;
        let mut clients = self.clients.lock();
        let taken = |h: u32| clients.binary_search_by_key(&h, |c| c.0);
        if wanted != 0 && taken(wanted).is_ok() {
            fail!(NV_ERR_INSERT_DUPLICATE_NAME, "there is a client {wanted:#x} already");
        }
        let handle = if wanted != 0 { wanted } else { next_client_handle(|h| taken(h).is_err())? };
        let root = Object { handle, parent: handle, class, kind: Kind::Client };
        let client = Arc::new(Client::new(root, gpu));
        if let Err(at) = taken(handle) {
            clients.insert(at, (handle, client));
        }
        drop(clients);
        // Both forms of the parameters start with the handle, which is written back.
        super::params::set_word(params, 0, handle);
        tracing::debug!("client {handle:#x} on {}", self.kmd.name());
        Ok(handle)
    }
}

fn next_client_handle(free: impl Fn(u32) -> bool) -> RmResult<u32> {
    loop {
        let handle = NEXT_CLIENT.fetch_add(1, Ordering::Relaxed);
        if !CLIENT_HANDLES.contains(&handle) {
            NEXT_CLIENT.store(CLIENT_HANDLES.end, Ordering::Relaxed);
            fail!(NV_ERR_INSUFFICIENT_RESOURCES, "all {} client handles have been used", CLIENT_HANDLES.len());
        }
        if free(handle) {
            return Ok(handle);
        }
    }
}

/// Gives a reserved handle back unless the object was made.
struct Abandon<'a> {
    client: &'a Client,
    claim: &'a Claim,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        self.client.abandon(self.claim);
    }
}

/// Whether a class number is one of the three that make a client.
pub fn is_client_class(class: u32) -> bool {
    use tegrarm_abi::rm::classes::{NV01_ROOT_CLIENT, NV01_ROOT_NON_PRIV};
    matches!(class, NV01_ROOT | NV01_ROOT_NON_PRIV | NV01_ROOT_CLIENT)
}
