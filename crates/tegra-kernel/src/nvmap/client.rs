//! nvmap clients and their handle ids.

use super::buffer::{Allocation, Buffer, Dmabuf};
use super::memory::Memory;
use crate::budget::{Resource, Share};
use crate::chip::ChipData;
use crate::config::SimConfig;
use crate::dispatch::{Call, Reply};
use crate::release::L4t;
use crate::rule::{self, Because};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use tegra_mm::Backing;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The first handle id that nvmap hands out (docs/hardware/nvmap.md#handle-ids).
const FIRST_ID: u32 = 0x7fff_ffff;

/// The tags that may have labels. They stay when their processes end.
const MOST_LABELS: usize = 1 << 16;

/// The reference of one id to a buffer.
#[derive(Clone, Debug)]
pub(crate) struct HandleRef {
    pub buffer: Arc<Buffer>,
    /// True if the id allows only reading.
    pub read_only: bool,
}

/// The ids of one client. A client is a process on r36 and an open node on r35.
#[derive(Debug)]
pub(crate) struct Client {
    handles: Mutex<BTreeMap<u32, (HandleRef, Option<Share>)>>,
    live: Arc<AtomicUsize>,
}

/// One open nvmap node.
#[derive(Debug)]
pub(crate) struct NvmapFile {
    pub client: Arc<Client>,
    pub device: Arc<Device>,
}

impl Client {
    pub(super) fn get(&self, id: u32) -> Option<HandleRef> {
        self.handles.lock().get(&id).map(|(handle, _)| handle.clone())
    }

    pub(super) fn remove(&self, id: u32) {
        // The buffer may end with its handle, and that must not happen under the lock.
        let gone = self.handles.lock().remove(&id);
        if gone.is_some() {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.live.fetch_sub(self.handles.get_mut().len(), Ordering::Relaxed);
    }
}

/// The nvmap driver.
#[derive(Debug)]
pub(crate) struct Device {
    l4t: L4t,
    pub(super) memory: Arc<Memory>,
    next_id: AtomicU32,
    serial: AtomicU64,
    live: Arc<AtomicUsize>,
    clients: Mutex<HashMap<i32, Weak<Client>>>,
    labels: Mutex<HashMap<u32, Vec<u8>>>,
}

impl Device {
    pub(crate) fn new(config: SimConfig, chip: &'static ChipData) -> Device {
        Device {
            l4t: config.l4t,
            memory: Arc::new(Memory::new(config.mem_total, chip.carveouts, config.refusals)),
            next_id: AtomicU32::new(FIRST_ID),
            serial: AtomicU64::new(0),
            live: Arc::default(),
            clients: Mutex::default(),
            labels: Mutex::default(),
        }
    }

    /// Opens the node for process `pid`.
    pub(crate) fn open(self: &Arc<Self>, pid: i32) -> NvmapFile {
        NvmapFile { client: self.client(pid), device: self.clone() }
    }

    /// The client of a process on r36, and a new one on r35.
    fn client(&self, pid: i32) -> Arc<Client> {
        let fresh = || Arc::new(Client { handles: Mutex::default(), live: self.live.clone() });
        if self.l4t.is_r35() {
            return fresh();
        }
        let mut clients = self.clients.lock();
        clients.retain(|_, client| client.strong_count() > 0);
        clients.get(&pid).and_then(Weak::upgrade).unwrap_or_else(|| {
            let client = fresh();
            clients.insert(pid, Arc::downgrade(&client));
            client
        })
    }

    /// Makes a buffer that has no memory yet: `asked` bytes, rounded up to `size`.
    pub(super) fn new_buffer(&self, size: u64, asked: u64, share: Option<Share>) -> Arc<Buffer> {
        Arc::new(Buffer::new(self.serial.fetch_add(1, Ordering::Relaxed), size, asked, share))
    }

    /// Makes a buffer of a caller's pages.
    pub(super) fn pinned_buffer(&self, pages: Backing, allocation: Allocation, share: Option<Share>) -> Arc<Buffer> {
        Arc::new(Buffer::pinned(self.serial.fetch_add(1, Ordering::Relaxed), pages, allocation, share))
    }

    /// Gives a client a new id for a buffer.
    pub(super) fn add_handle(&self, client: &Client, handle: HandleRef, share: Option<Share>) -> u32 {
        let mut handles = client.handles.lock();
        let id = if self.l4t.is_r35() {
            let taken = (FIRST_ID..).zip(handles.keys()).take_while(|(id, used)| id == *used).count();
            FIRST_ID + taken as u32
        } else {
            // After the ids have wrapped, an old id may still be in use. 0 is not an id.
            loop {
                let id = self.next_id.fetch_add(1, Ordering::Relaxed);
                if id != 0 && !handles.contains_key(&id) {
                    break id;
                }
            }
        };
        handles.insert(id, (handle, share));
        self.live.fetch_add(1, Ordering::Relaxed);
        id
    }

    /// Gives a tag a label, or takes its label away if it is empty. The error is `ENOMEM` for too many tags.
    pub(super) fn label_tag(&self, tag: u32, label: Vec<u8>) -> Result<(), Errno> {
        let mut labels = self.labels.lock();
        if label.is_empty() {
            labels.remove(&tag);
        } else if labels.len() < MOST_LABELS || labels.contains_key(&tag) {
            labels.insert(tag, label);
        } else {
            return Err(Errno::ENOMEM.because(format!("{MOST_LABELS} tags have labels")));
        }
        Ok(())
    }

    /// The number of ids in use.
    pub(crate) fn handles(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// The number of bytes of allocated buffers, carveouts included.
    pub(crate) fn memory_used(&self) -> u64 {
        self.memory.used()
    }

    /// The MemTotal and MemAvailable of the board in bytes.
    pub(crate) fn system_memory(&self) -> (u64, u64) {
        self.memory.system()
    }
}

impl Call<'_> {
    /// The buffer for which a handle id of the client stands. A number that is an open dmabuf descriptor of the caller
    /// is not looked up as an id (docs/hardware/nvmap.md#id-lookup).
    pub(super) fn handle(&self, file: &NvmapFile, id: u32) -> Option<HandleRef> {
        if self.dmabuf_fd(id).is_some() {
            rule::note(format!("{id} is a descriptor of a dmabuf, and not a handle"));
            return None;
        }
        let handle = file.client.get(id);
        if handle.is_none() {
            rule::note(format!("nvmap's client has no handle {id:#x}"));
        }
        handle
    }

    /// The nvmap buffer behind a number that is an open dmabuf descriptor.
    pub(super) fn dmabuf_fd(&self, number: u32) -> Option<Dmabuf> {
        // No descriptor table has as many numbers as the lowest id.
        const NO_FD: u32 = 1 << 30;
        let fd = number as RawFd;
        // In the same process a program could name the simulator's own descriptors. These do not count as the
        // program's.
        let theirs = |d: &Dmabuf| !self.process.is_self() || !d.buffer.is_kept_on(fd);
        (number < NO_FD).then(|| self.dmabuf(fd).ok()).flatten().filter(theirs)
    }

    /// Makes a new descriptor of a buffer's dmabuf in the caller's table.
    pub(super) fn install_dmabuf(&self, handle: &HandleRef) -> Result<RawFd, Errno> {
        let (fd, id) = handle.buffer.descriptor(handle.read_only)?;
        self.files.enter(id, handle.buffer.clone());
        self.process.install(fd)
    }

    /// Gives the client a new id.
    pub(super) fn add_handle(&self, file: &NvmapFile, handle: HandleRef) -> Reply<u32> {
        let share = self.board.take(Resource::Handles, self.process, 1)?;
        Ok(file.device.add_handle(&file.client, handle, share))
    }
}
