//! `RM_ALLOC_MEMORY`: memory of the process itself (class 0x71), and system memory the old way (0x3E).

use super::alloc::AllocCall;
use super::context::{self, Inside};
use super::memory::{Memory, Traits};
use super::object::Kind;
use super::{MapRequest, Rm};
use super::{classes, user};
use crate::status::{During, RmError, RmResult, fail};
use crate::tegra::{Backing, CacheMode, PAGE, USER_VA_END};
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::{NV01_MEMORY_SYSTEM, NV01_MEMORY_SYSTEM_OS_DESCRIPTOR};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::maps::{self, MMPermissions, MMapPath, MemoryMap};
use tegrarm_kmd::{Placement, Prot};

/// The arguments of `rm_alloc_memory`.
#[derive(Clone, Copy, Debug)]
pub struct MemoryRequest {
    /// The class, 0x71 or 0x3E.
    pub class: u32,
    /// `NVOS02_FLAGS`.
    pub flags: u32,
    /// The address of the pages, for class 0x71.
    pub address: u64,
    /// The size in bytes minus one.
    pub limit: u64,
}

/// Pages are copied in pieces of this size when they are exchanged.
const PIECE: usize = 1 << 20;

impl Rm {
    /// `RM_ALLOC_MEMORY`. Returns the handle and, if the class is 0x3E and a mapping was asked for, the address.
    ///
    /// # Errors
    /// INVALID_CLASS for another class, INVALID_FLAGS for wrong flags, NOT_SUPPORTED for a misaligned address,
    /// INVALID_LIMIT for a size of 0, INVALID_ADDRESS when the pages cannot be used.
    pub fn alloc_memory(
        &self,
        client: u32,
        parent: u32,
        wanted: u32,
        request: &MemoryRequest,
    ) -> RmResult<(u32, Option<usize>)> {
        let make = match request.class {
            NV01_MEMORY_SYSTEM_OS_DESCRIPTOR => own_pages,
            NV01_MEMORY_SYSTEM => system_memory,
            class => fail!(NV_ERR_INVALID_CLASS, "rm_alloc_memory makes classes 0x71 and 0x3e, not {class:#x}"),
        };
        let _inside = context::enter(Inside::AllocMemory(request.class));
        let row = classes::find(request.class).expect("both are in the table");
        let hclient = client;
        let client = self.client(client, NV_ERR_INVALID_OBJECT_HANDLE)?;
        let parent = client.object(parent)?;
        if !row.parents.allow(parent.kind.tag()) {
            fail!(NV_ERR_INVALID_OBJECT_PARENT, "{} cannot be a child of {parent}", row.name);
        }
        let handle = self.make(&client, &parent, row, wanted, &mut [], |call| make(call, request))?;
        let wanted_mapped = request.class == NV01_MEMORY_SYSTEM && request.flags >> 30 == NVOS02_FLAGS_MAPPING_DEFAULT;
        if !wanted_mapped {
            return Ok((handle, None));
        }
        let map = MapRequest { memory: handle, offset: 0, length: request.limit + 1, at: None, flags: 0 };
        let mapped = self.map_memory(hclient, parent.handle, &map);
        match mapped {
            Ok(addr) => Ok((handle, Some(addr))),
            Err(e) => {
                self.free(hclient, handle)?;
                Err(e)
            }
        }
    }
}

fn size(request: &MemoryRequest) -> RmResult<u64> {
    match request.limit.checked_add(1) {
        Some(size) if size > 0 => Ok(size),
        _ => {
            fail!(NV_ERR_INVALID_LIMIT, "limit {:#x}: the size is the limit plus one, and must not be 0", request.limit)
        }
    }
}

fn system_memory(call: &mut AllocCall, request: &MemoryRequest) -> RmResult<Kind> {
    let traits = Traits { coherency: None, gpu_cacheable: false, notifier: false, system: true, foreign: false };
    Ok(Kind::Memory(Arc::new(Memory::new(&call.client.gpu, size(request)?, traits)?)))
}

/// Makes a memory object of pages that the process has already. Anonymous pages that are mapped shared are exchanged
/// for a dmabuf at the same address: the client sees no difference, and the GPU gets coherent memory of a known kind.
/// All other pages are pinned as they are.
fn own_pages(call: &mut AllocCall, request: &MemoryRequest) -> RmResult<Kind> {
    let (location, mapping) = (request.flags >> 8 & 0xf, request.flags >> 30);
    if location != NVOS02_FLAGS_LOCATION_PCI || mapping != NVOS02_FLAGS_MAPPING_NO_MAP {
        fail!(
            NV_ERR_INVALID_FLAGS,
            "flags {:#x}: location must be PCI (0) and mapping NO_MAP (1 << 30)",
            request.flags
        );
    }
    let (va, size) = (request.address, size(request)?);
    if va == 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "no address");
    }
    if !va.is_multiple_of(PAGE) {
        fail!(NV_ERR_NOT_SUPPORTED, "address {va:#x} is not a multiple of the page size {PAGE:#x}");
    }
    let gpu = &call.client.gpu;
    let Some(pages) = size.checked_next_multiple_of(PAGE) else {
        fail!(NV_ERR_INVALID_LIMIT, "limit {:#x}: no process has as many bytes", request.limit);
    };
    // Pages above what the GPU can address cannot be used at their own address, so exchanging them would gain nothing.
    let fresh = va.saturating_add(pages) <= USER_VA_END && is_anonymous_shared(va, pages);
    let backing = if fresh { exchange(gpu, va, pages)? } else { pin(gpu, va, size)? };
    let traits = Traits { coherency: None, gpu_cacheable: false, notifier: false, system: true, foreign: true };
    Ok(Kind::Memory(Arc::new(Memory::of(gpu, backing, traits))))
}

fn pin(gpu: &super::gpu::Gpu, va: u64, size: u64) -> RmResult<Backing> {
    Backing::from_va(&gpu.nvmap, va, size, false).map_err(|e| {
        let mut error = RmError::from(e);
        if error.status == NV_ERR_INVALID_ARGUMENT {
            error.status = NV_ERR_INVALID_ADDRESS;
        }
        error.during(format!("pinning {size:#x} bytes at {va:#x}"))
    })
}

/// Puts a dmabuf with the same contents in place of `[va, va + size)`.
fn exchange(gpu: &super::gpu::Gpu, va: u64, size: u64) -> RmResult<Backing> {
    let what = || format!("exchanging {size:#x} bytes at {va:#x}");
    let backing = Backing::new(&gpu.nvmap, size, CacheMode::InnerCacheable).during(what)?;
    let copy = backing.map_cpu(Placement::Anywhere, size, 0, Prot::ReadWrite).during(what)?;
    let mut piece = vec![0u8; PIECE.min(size as usize)];
    for at in (0..size).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min((size - at) as usize)];
        user::read(va + at, piece)?;
        user::write(copy.addr() as u64 + at, piece)?;
    }
    drop(copy);
    let place = Placement::Replace(va as usize);
    // The range still belongs to the client, which unmaps it when it likes.
    backing.map_cpu(place, size, 0, Prot::ReadWrite).during(what)?.leak();
    Ok(backing)
}

/// Whether all pages of `[va, va + size)` are anonymous, mapped shared and writable.
fn is_anonymous_shared(va: u64, size: u64) -> bool {
    let zero = MMapPath::Path("/dev/zero (deleted)".into());
    let fits = |m: &MemoryMap| {
        m.perms.contains(MMPermissions::READ | MMPermissions::WRITE | MMPermissions::SHARED) && m.pathname == zero
    };
    let mut next = va;
    for map in maps::own() {
        let (start, end) = map.address;
        if start <= next && next < end {
            if !fits(&map) {
                return false;
            }
            next = end;
        }
        if next >= va.saturating_add(size) {
            return true;
        }
    }
    false
}
