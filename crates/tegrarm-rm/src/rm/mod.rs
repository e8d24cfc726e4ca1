//! The Resource Manager: clients, their objects, and the operations on them. It contains only safe code.
//!
//! [`Rm`] has one method per RM verb. The meaning of a class or a control is one row of [`classes::CLASSES`] or
//! [`controls::CONTROLS`]. Adding one means adding a row and a handler.

mod alloc;
mod channel;
pub mod classes;
mod client;
pub mod context;
mod control;
pub mod controls;
mod debugger;
mod dmabuf;
mod external;
mod gpu;
mod group;
mod handles;
mod index;
mod labels;
mod mapping;
mod memory;
mod object;
mod os_memory;
pub mod params;
mod power;
pub mod profile;
mod profiler;
mod refused;
mod report;
mod shares;
mod store;
pub mod syncpoints;
pub mod user;
mod usermode;
mod vaspace;

pub use alloc::PreparedAlloc;
pub use client::{CLIENT_HANDLES, OBJECT_HANDLES};
pub use controls::PreparedControl;
pub use external::{Extent, ExternalMapping, ExternalMemory, ExternalSpace, Held, OwnPages};
pub use gpu::GPU_ID;
pub use index::{Index, index};
pub use labels::label;
pub use mapping::{Borrower, DmaRequest, LentNode, MapRequest};
pub use object::{Tag, Tags};
pub use os_memory::MemoryRequest;
pub use report::{Asked, Report};
pub use shares::Share;
pub use vaspace::{LOCAL_WINDOW, SHARED_WINDOW};

use crate::status::{RmError, RmResult};
use crate::tegra::{CacheMode, MinFrequency, Places};
use client::Client;
use context::Inside;
use gpu::Gpu;
use object::Object;
use once_cell::sync::OnceCell;
use shares::Shares;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Once, Weak};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::tally::Source;
use tegrarm_kmd::{Kmd, Tally};
use tegrarm_lock::Mutex;

/// The driver version that libtegrarm reports. Every release of the frontends knows the structure layouts of this
/// version.
pub const DRIVER_VERSION: &str = "570.86.16";

/// The next client handle. All managers of the process use the same counter, so that a forked child can tell its
/// parent's clients from its own.
static NEXT_CLIENT: AtomicU32 = AtomicU32::new(CLIENT_HANDLES.start);
/// Client handles below this one belong to the process from which this process was forked.
static FOREIGN_BELOW: AtomicU32 = AtomicU32::new(CLIENT_HANDLES.start);

/// Declares that the clients that were made so far belong to the parent. A forked child must call this before anything
/// else.
pub fn disown_clients() {
    FOREIGN_BELOW.store(NEXT_CLIENT.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// A Resource Manager that works on one kernel.
pub struct Rm {
    kmd: Arc<dyn Kmd>,
    cpu_cache: CacheMode,
    /// The clients, sorted by handle. Every call reads the list, and it is written when a client is made or freed.
    clients: Mutex<Vec<(u32, Arc<Client>)>>,
    /// The GPU, which is open for as long as a client exists.
    gpu: Mutex<Weak<Gpu>>,
    boost: Mutex<Option<MinFrequency>>,
    unboosted: Once,
    report: Report,
    /// The kernels that the runtime launches. Others see it from the first queue on.
    launches: OnceCell<Tally>,
    /// Where the system's sensors of the GPU are.
    places: Places,
    /// The addresses of the runtime's devices.
    shares: Shares,
}

impl Rm {
    /// Makes a Resource Manager without clients. `cpu_cache` is the attribute of CPU-mapped memory for allocations that
    /// do not name an attribute.
    pub fn new(kmd: Arc<dyn Kmd>, cpu_cache: CacheMode) -> Rm {
        Rm {
            kmd,
            cpu_cache,
            clients: Mutex::default(),
            gpu: Mutex::default(),
            boost: Mutex::default(),
            unboosted: Once::new(),
            report: Report::default(),
            launches: OnceCell::new(),
            places: Places::default(),
            shares: Shares::default(),
        }
    }

    /// The kernel on which the manager works.
    pub fn kmd(&self) -> &Arc<dyn Kmd> {
        &self.kmd
    }

    /// The report of everything that was asked for and refused.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Counts the kernels that the queues of the runtime launch. A process that submits by itself has no such count.
    pub fn launches(&self) -> &Tally {
        self.launches.get_or_init(|| Tally::new(Source::Library))
    }

    /// Takes addresses of the GPU for one more device of the runtime.
    pub fn share(&self) -> Share {
        self.shares.take()
    }

    fn say_once_unboosted(&self, why: &crate::tegra::KernelError) {
        self.unboosted.call_once(|| tracing::warn!("the GPU's clock is not raised: {why}"));
    }

    /// The GPU's nodes. The first call that needs them opens them, and they are closed when the last client is gone.
    fn gpu(&self) -> RmResult<Arc<Gpu>> {
        let mut shared = self.gpu.lock();
        if let Some(gpu) = shared.upgrade() {
            return Ok(gpu);
        }
        let gpu = Arc::new(Gpu::open(&self.kmd)?);
        *shared = Arc::downgrade(&gpu);
        Ok(gpu)
    }

    /// The client that has a handle. `unknown` is the status for a handle that belongs to no client. It differs from
    /// call to call.
    #[inline]
    fn client(&self, handle: u32, unknown: u32) -> RmResult<Arc<Client>> {
        {
            let clients = self.clients.lock();
            if let Ok(at) = clients.binary_search_by_key(&handle, |c| c.0) {
                return Ok(clients[at].1.clone());
            }
        }
        Err(no_client(handle, unknown))
    }

    /// A client and one of its objects.
    ///
    /// # Errors
    /// INVALID_CLIENT for an unknown client, OBJECT_NOT_FOUND for an unknown object.
    #[inline(always)]
    fn client_object(&self, client: u32, object: u32) -> RmResult<(Arc<Client>, Arc<Object>)> {
        {
            let clients = self.clients.lock();
            if let Ok(at) = clients.binary_search_by_key(&client, |c| c.0) {
                let client = &clients[at].1;
                return Ok((client.clone(), client.object(object)?));
            }
        }
        Err(no_client(client, NV_ERR_INVALID_CLIENT))
    }

    /// `RM_FREE`: frees an object, its children and everything that depends on it. An unknown object is not an error.
    /// Freed memory is removed from every CPU address and GPU address at which it was mapped.
    ///
    /// # Errors
    /// INVALID_OBJECT_HANDLE for an unknown client.
    pub fn free(&self, client: u32, object: u32) -> RmResult<()> {
        let client = self.client(client, NV_ERR_INVALID_OBJECT_HANDLE)?;
        let doomed = client.take(object);
        let _inside = context::enter(Inside::Free(doomed.last().map_or(0, |o| o.class.number)));
        tracing::debug!("client {:#x}: freeing {object:#x} and {} more", client.handle, doomed.len().saturating_sub(1));
        for object in doomed {
            drop(object);
        }
        if object == client.handle {
            let mut clients = self.clients.lock();
            if let Ok(at) = clients.binary_search_by_key(&object, |c| c.0) {
                clients.remove(at);
            }
        }
        Ok(())
    }

    /// Frees every client and puts the clocks back.
    pub fn shutdown(&self) {
        let handles: Vec<u32> = self.clients.lock().iter().map(|c| c.0).collect();
        for handle in handles {
            // The error is ignored: another thread may have freed the client since the list was made, and the client
            // has to be freed anyway.
            let _ = self.free(handle, handle);
        }
        drop(self.boost.lock().take());
    }

    /// Undoes what outlives the process, which is only the change of the clock. The kernel takes back everything else.
    /// If another thread has the lock, the clock stays changed, because that thread may never run again.
    pub fn at_exit(&self) {
        if let Some(mut boost) = self.boost.try_lock() {
            drop(boost.take());
        }
    }

    /// Whether a client has this handle.
    pub fn has_client(&self, handle: u32) -> bool {
        self.clients.lock().binary_search_by_key(&handle, |c| c.0).is_ok()
    }

    /// The number of objects of a client, the client itself included.
    ///
    /// # Errors
    /// INVALID_CLIENT for an unknown client.
    pub fn object_count(&self, client: u32) -> RmResult<usize> {
        Ok(self.client(client, NV_ERR_INVALID_CLIENT)?.object_count())
    }
}

#[cold]
fn no_client(handle: u32, unknown: u32) -> RmError {
    if (CLIENT_HANDLES.start..FOREIGN_BELOW.load(Ordering::Relaxed)).contains(&handle) {
        let text = "belongs to the process this one was forked from: allocate a client of your own";
        return RmError::new(NV_ERR_INVALID_CLIENT, format!("client {handle:#x} {text}"));
    }
    RmError::new(unknown, format!("there is no client {handle:#x}"))
}

impl Drop for Rm {
    fn drop(&mut self) {
        self.shutdown();
    }
}
