//! Buffers that leave the library and come into it as dmabufs, for example to and from cameras, encoders, displays and
//! other processes.
//!
//! Desktop RM has escapes and allocation descriptors for this purpose, but they carry information that only its kernel
//! module has. Here both directions use a file descriptor.

use super::Rm;
use super::alloc::AllocCall;
use super::classes;
use super::context::{self, Inside};
use super::memory::{Memory, Traits};
use super::object::Kind;
use crate::status::{During, RmResult, fail};
use crate::tegra::{Backing, CacheMode};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use tegrarm_abi::rm::classes::NV01_MEMORY_SYSTEM;
use tegrarm_abi::rm::status::*;

impl Rm {
    /// Makes a new descriptor of a memory object's buffer.
    ///
    /// # Errors
    /// INVALID_CLIENT and OBJECT_NOT_FOUND for unknown handles, INVALID_OBJECT for a handle that is not memory,
    /// NOT_SUPPORTED for pages of the process itself.
    pub fn export_dmabuf(&self, client: u32, memory: u32) -> RmResult<OwnedFd> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(memory)?;
        object.memory(NV_ERR_INVALID_OBJECT)?.export().during(|| format!("exporting {object}"))
    }

    /// Makes a memory object over the buffer of a dmabuf. The descriptor stays the caller's. Returns the handle and the
    /// size.
    ///
    /// # Errors
    /// INVALID_CLIENT and OBJECT_NOT_FOUND for unknown handles, and the kernel's error for a descriptor that is not a
    /// dmabuf.
    pub fn import_dmabuf(&self, client: u32, parent: u32, fd: BorrowedFd<'_>) -> RmResult<(u32, u64)> {
        let _inside = context::enter(Inside::AllocMemory(NV01_MEMORY_SYSTEM));
        let row = classes::find(NV01_MEMORY_SYSTEM).expect("it is in the table");
        let client = self.client(client, NV_ERR_INVALID_CLIENT)?;
        let parent = client.object(parent)?;
        if !row.parents.allow(parent.kind.tag()) {
            fail!(NV_ERR_INVALID_OBJECT_PARENT, "memory cannot be a child of {parent}");
        }
        let mut size = 0;
        let make = |call: &mut AllocCall| {
            let what = || format!("importing descriptor {}", fd.as_raw_fd());
            let backing = Backing::import(&call.client.gpu.nvmap, fd).during(what)?;
            size = backing.size();
            // Others read and write the buffer, so the GPU must not keep its contents in a cache of its own.
            let coherency = Some(CacheMode::InnerCacheable);
            let traits = Traits { coherency, gpu_cacheable: false, notifier: false, system: true, foreign: false };
            Ok(Kind::Memory(Arc::new(Memory::of(&call.client.gpu, backing, traits))))
        };
        let handle = self.make(&client, &parent, row, 0, &mut [], make)?;
        Ok((handle, size))
    }
}
