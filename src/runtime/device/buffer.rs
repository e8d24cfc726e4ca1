//! Buffers of a device: its own memory, memory of other drivers and processes, pages of this process, and parts of all
//! these. The copy engine works on them here too.

use crate::runtime::channel::profile::What;
use crate::runtime::commands::{Commands, Sink};
use crate::runtime::device::Device;
use crate::runtime::device::module::Module;
use crate::runtime::memory::place::Place;
use crate::runtime::memory::{Access, Cache, Memory};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{During, RmError, RmResult, fail};

/// The copy engine's length field has 32 bits. Transfers are divided into pieces of whole pages.
const PIECE: u64 = 1 << 30;

/// A part of some memory. The memory is freed with the last of its parts.
pub struct Buffer {
    device: Arc<Device>,
    memory: Arc<Memory>,
    start: u64,
    len: u64,
    /// The module of which the buffer is a variable, which must not be unloaded before.
    module: Option<Arc<Module>>,
}

/// One transfer of the copy engine.
pub(crate) enum Transfer {
    /// `bytes` from one GPU address to another.
    Copy { from: u64, to: u64, bytes: u32 },
    /// `count` elements of `size` bytes.
    Fill { to: u64, value: u32, size: u32, count: u32 },
}

impl Transfer {
    /// The transfer as a profile describes it.
    pub(crate) fn what(&self) -> What {
        match *self {
            Transfer::Copy { bytes, .. } => What::Copy { bytes: bytes.into() },
            Transfer::Fill { size, count, .. } => What::Fill { bytes: u64::from(size) * u64::from(count) },
        }
    }

    /// Writes the methods of the transfer.
    pub(crate) fn put(&self, commands: &mut Commands<impl Sink>) {
        match *self {
            Transfer::Copy { from, to, bytes } => commands.copy(from, to, bytes),
            Transfer::Fill { to, value, size, count } => commands.fill(to, value, size, count),
        };
    }
}

/// Divides `len` bytes into pieces that the copy engine can take. The result is offsets and lengths.
pub(super) fn pieces(len: u64) -> impl Iterator<Item = (u64, u32)> {
    (0..len).step_by(PIECE as usize).map(move |at| (at, (len - at).min(PIECE) as u32))
}

impl Device {
    /// Allocates a zeroed buffer.
    ///
    /// # Errors
    /// As [`Memory::new`].
    pub fn alloc(self: &Arc<Device>, size: u64, cache: Cache) -> RmResult<Arc<Buffer>> {
        self.alloc_for(size, cache, Access::FULL)
    }

    /// Allocates a zeroed buffer with restricted access.
    ///
    /// # Errors
    /// As [`Memory::new`].
    pub fn alloc_for(self: &Arc<Device>, size: u64, cache: Cache, access: Access) -> RmResult<Arc<Buffer>> {
        let memory = self.with_retry(|| Memory::with(self.session(), size, cache, access));
        let memory = memory.or_else(|refused| self.in_pieces(size, cache, access, refused));
        self.buffer(memory.during(|| format!("a buffer of {size} bytes"))?)
    }

    /// Memory in several pieces, if the kernel has refused it at once although it has that much. Otherwise the refusal.
    #[cold]
    fn in_pieces(&self, size: u64, cache: Cache, access: Access, refused: RmError) -> RmResult<Memory> {
        let enough = refused.status == NV_ERR_NO_MEMORY && self.memory().is_ok_and(|(available, _)| size <= available);
        if !enough {
            return Err(refused);
        }
        let memory = Memory::in_pieces(self.session(), size, cache, access);
        memory.map_err(|why| {
            tracing::debug!("{size} bytes in pieces: {why}");
            refused
        })
    }

    /// Makes a buffer over a dmabuf. The caller keeps the descriptor.
    ///
    /// # Errors
    /// As [`Memory::import`].
    pub fn import(self: &Arc<Device>, fd: BorrowedFd<'_>, access: Access) -> RmResult<Arc<Buffer>> {
        let memory = self.with_retry(|| Memory::import(self.session(), fd, access));
        self.buffer(memory.during(|| format!("a buffer of descriptor {}", fd.as_raw_fd()))?)
    }

    /// Makes a buffer over pages of this process.
    ///
    /// # Errors
    /// As [`Memory::borrow`].
    pub fn borrow_pages(self: &Arc<Device>, at: u64, len: u64, access: Access) -> RmResult<Arc<Buffer>> {
        let memory = self.with_retry(|| Memory::borrow(self.session(), at, len, access));
        self.buffer(memory.during(|| format!("a buffer of {len:#x} bytes at {at:#x}"))?)
    }

    /// Reserves addresses for a buffer, without memory: [`Buffer::map`] maps memory there.
    ///
    /// # Errors
    /// As [`Memory::reserve`].
    pub fn reserve(self: &Arc<Device>, size: u64) -> RmResult<Arc<Buffer>> {
        self.buffer(Memory::reserve(self.session(), size).during(|| format!("{size} bytes of addresses"))?)
    }

    fn buffer(self: &Arc<Device>, mut memory: Memory) -> RmResult<Arc<Buffer>> {
        memory.watch(self.base().host().watch(&memory));
        let len = memory.len();
        if !memory.is_reserved() {
            self.base().diagnostics().known().made(memory.va(), len);
        }
        Ok(Arc::new(Buffer { device: self.clone(), memory: Arc::new(memory), start: 0, len, module: None }))
    }

    /// Copies between buffers on the GPU. Returns the fence.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if a range lies outside its buffer, `NV_ERR_INVALID_ARGUMENT` if the ranges overlap, and
    /// the channel's fault.
    pub fn copy(&self, to: &Buffer, to_offset: u64, from: &Buffer, from_offset: u64, size: u64) -> RmResult<u64> {
        let (from, to) = ranges(to, to_offset, from, from_offset, size)?;
        self.transfer(pieces(size).map(|(at, bytes)| Transfer::Copy { from: from + at, to: to + at, bytes }))
    }
}

/// The GPU addresses of the source and the target of a copy.
///
/// # Errors
/// `NV_ERR_INVALID_BASE` if a range lies outside its buffer, and `NV_ERR_INVALID_ARGUMENT` if the ranges overlap.
pub fn ranges(to: &Buffer, to_offset: u64, from: &Buffer, from_offset: u64, size: u64) -> RmResult<(u64, u64)> {
    to.check(to_offset, size)?;
    from.check(from_offset, size)?;
    let (from, to) = (from.address() + from_offset, to.address() + to_offset);
    if from < to + size && to < from + size {
        fail!(NV_ERR_INVALID_ARGUMENT, "copying {size:#x} bytes from {from:#x} to {to:#x}: the ranges overlap");
    }
    Ok((from, to))
}

impl Buffer {
    /// Makes a buffer of a variable of a module. The module stays loaded for as long as the buffer exists.
    ///
    /// # Errors
    /// `NV_ERR_OBJECT_NOT_FOUND` if the module has no variable with this name, and `NV_ERR_INVALID_ARGUMENT` if it has no bytes.
    pub fn of_variable(module: &Arc<Module>, name: &str) -> RmResult<Arc<Buffer>> {
        let (at, len) = module.variable(name)?;
        if len == 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "the variable '{name}' has no bytes");
        }
        let (device, memory) = (module.device().clone(), module.memory().clone());
        let start = at - memory.va();
        Ok(Arc::new(Buffer { device, memory, start, len, module: Some(module.clone()) }))
    }

    /// The device that the buffer belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The GPU address.
    pub fn address(&self) -> u64 {
        self.memory.va() + self.start
    }

    /// The CPU address. It is 0 if the buffer is not mapped for the CPU.
    pub fn pointer(&self) -> usize {
        if self.memory.has_cpu() { self.memory.cpu() + self.start as usize } else { 0 }
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.len
    }

    /// Ends the use of the buffer by the caller. Pages of this process are the caller's again when this returns, also if
    /// a replay keeps the buffer: the work that the device has so far does not use them any more.
    pub fn free(self: Arc<Buffer>) {
        if self.memory.is_borrowed() {
            self.device.finish_all();
        }
    }

    /// The offset of the buffer in the memory of which it is a part.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Makes a part of the buffer, which keeps the memory alive too.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if the part lies outside, and `NV_ERR_INVALID_ARGUMENT` if it has no bytes.
    pub fn part(&self, offset: u64, len: u64) -> RmResult<Arc<Buffer>> {
        if len == 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "a part of 0 bytes");
        }
        self.check(offset, len)?;
        let (device, memory, module) = (self.device.clone(), self.memory.clone(), self.module.clone());
        Ok(Arc::new(Buffer { device, memory, start: self.start + offset, len, module }))
    }

    /// Maps `len` bytes of another buffer's memory, from its byte `from` on, at byte `offset` of this one, whose addresses are reserved.
    ///
    /// # Errors
    /// As [`Memory::map`].
    pub fn map(&self, offset: u64, other: &Buffer, from: u64, len: u64, access: Access) -> RmResult<()> {
        self.check(offset, len)?;
        other.check(from, len)?;
        let at = self.start + offset;
        let mapped = self.device.with_retry(|| self.memory.map(at, &other.memory, other.start + from, len, access));
        mapped.during(|| format!("mapping {len:#x} bytes at {:#x}", self.address() + offset))?;
        self.device.base().diagnostics().known().made(self.address() + offset, len);
        Ok(())
    }

    /// Waits for the work that the device has, and then removes all mappings from a range of reserved addresses.
    ///
    /// # Errors
    /// As [`Memory::unmap`].
    pub fn unmap(&self, offset: u64, len: u64) -> RmResult<()> {
        self.check(offset, len)?;
        self.device.finish_all();
        for (at, len) in self.memory.unmap(self.start + offset, len)? {
            let diagnostics = self.device.base().diagnostics();
            diagnostics.known().freed(self.memory.va() + at, len, true, diagnostics.calls());
        }
        Ok(())
    }

    /// Makes a new descriptor of the memory of which the buffer is a part.
    ///
    /// # Errors
    /// As [`Memory::export`].
    pub fn export(&self) -> RmResult<OwnedFd> {
        self.memory.export()
    }

    fn check(&self, offset: u64, len: u64) -> RmResult<()> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            fail!(NV_ERR_INVALID_BASE, "{offset:#x}+{len:#x} is outside a buffer of {:#x} bytes", self.len);
        }
        Ok(())
    }

    fn check_seen(&self, offset: u64, len: u64) -> RmResult<()> {
        self.check(offset, len)?;
        if !self.memory.has_cpu() {
            fail!(NV_ERR_NOT_SUPPORTED, "the CPU does not see the buffer: it was made with TEGRARM_BUFFER_NO_POINTER");
        }
        Ok(())
    }

    /// Bytes of the buffer as a replay copies them. They stay valid for as long as the place or a clone of it exists.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if they lie outside, and `NV_ERR_NOT_SUPPORTED` if the buffer is not mapped for the CPU.
    pub fn place(&self, offset: u64, len: u64) -> RmResult<Place> {
        self.check_seen(offset, len)?;
        Place::of(&self.memory, self.start + offset, len)
    }

    /// Waits for the GPU, and then copies bytes into the buffer.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if the range lies outside, `NV_ERR_NOT_SUPPORTED` if the buffer is not mapped for the CPU,
    /// and the channel's fault.
    pub fn write(&self, offset: u64, from: &[u8]) -> RmResult<()> {
        self.check_seen(offset, from.len() as u64)?;
        self.device.synchronize()?;
        self.memory.write(self.start + offset, from)
    }

    /// Waits for the GPU, and then copies bytes out of the buffer.
    ///
    /// # Errors
    /// As [`Buffer::write`].
    pub fn read(&self, offset: u64, into: &mut [u8]) -> RmResult<()> {
        self.check_seen(offset, into.len() as u64)?;
        self.device.synchronize()?;
        self.memory.read(self.start + offset, into)
    }

    /// Makes the GPU write the low `size` bytes of `value` (1, 2 or 4) repeatedly over a range. Returns the fence.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if the range lies outside, `NV_ERR_INVALID_ARGUMENT` for another size or for a range that
    /// is not a number of whole values, and the channel's fault.
    pub fn fill(&self, offset: u64, len: u64, value: u32, size: u32) -> RmResult<u64> {
        self.device.transfer(fill_pieces(self, offset, len, value, size)?)
    }
}

/// The transfers that fill a range of a buffer, in pieces that the copy engine can take.
///
/// # Errors
/// `NV_ERR_INVALID_BASE` if the range lies outside, and `NV_ERR_INVALID_ARGUMENT` for another size or for a range that
/// is not a number of whole values.
pub(crate) fn fill_pieces(
    buffer: &Buffer,
    offset: u64,
    len: u64,
    value: u32,
    size: u32,
) -> RmResult<impl Iterator<Item = Transfer> + use<>> {
    buffer.check(offset, len)?;
    if !matches!(size, 1 | 2 | 4) {
        fail!(NV_ERR_INVALID_ARGUMENT, "values of {size} bytes: 1, 2 or 4 can be");
    }
    let to = buffer.address() + offset;
    if !(to | len).is_multiple_of(size.into()) {
        fail!(NV_ERR_INVALID_ARGUMENT, "{len:#x} bytes at {to:#x} are not whole values of {size} bytes");
    }
    Ok(pieces(len).map(move |(at, bytes)| Transfer::Fill { to: to + at, value, size, count: bytes / size }))
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let (at, len, is_last) = (self.memory.va(), self.memory.len(), Arc::strong_count(&self.memory) == 1);
        if self.module.is_none() {
            let diagnostics = self.device.base().diagnostics();
            diagnostics.known().freed(at, len, is_last, diagnostics.calls());
            self.device.retire(self.memory.clone());
        }
    }
}
