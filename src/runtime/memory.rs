//! Memory that CPU and GPU share, and the doorbell: volatile words, and bytes copied in and out.
//!
//! `unsafe` is here because a device writes this memory: every access is volatile or a copy through raw pointers,
//! bounds-checked; no Rust reference into it ever exists.
#![allow(unsafe_code)]

use super::commands::Sink;
use super::session::Session;
use crate::rm::{DmaRequest, MapRequest, MemoryRequest};
use crate::status::{During, RmResult, fail};
use std::marker::PhantomData;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::usermode::NVC361_NOTIFY_CHANNEL_PENDING;
use zerocopy::FromZeros;

/// The GPU maps whole pages.
pub const PAGE: u64 = 4096;

/// How the CPU sees a buffer. The GPU sees what the CPU wrote either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Cached: for data the CPU reads.
    Cached,
    /// Write-combined: for what the CPU writes once and the GPU reads.
    WriteCombined,
}

impl Cache {
    /// `NVOS32_ATTR_COHERENCY`, bits 31:29 of the attributes.
    fn attributes(self) -> u32 {
        let coherency = match self {
            Cache::Cached => NVOS32_ATTR_COHERENCY_CACHED,
            Cache::WriteCombined => NVOS32_ATTR_COHERENCY_WRITE_COMBINE,
        };
        coherency << 29
    }
}

/// How a buffer is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Stores of the GPU fault.
    pub read_only: bool,
    /// The CPU sees it.
    pub cpu: bool,
}

impl Access {
    /// All of it.
    pub const FULL: Access = Access { read_only: false, cpu: true };
}

/// A buffer, mapped for the CPU and the GPU; freed when dropped.
pub struct Memory {
    session: Arc<Session>,
    handle: u32,
    va: u64,
    /// 0 when the CPU does not see it.
    cpu: usize,
    len: u64,
    /// Pages that are somebody else's when the buffer ends.
    borrowed: bool,
}

impl Memory {
    /// Allocates and maps `len` bytes, zeroed.
    ///
    /// # Errors
    /// 0x1F for no bytes at all, 0x51 when there is not that much memory; nothing stays behind.
    pub fn new(session: &Arc<Session>, len: u64, cache: Cache) -> RmResult<Memory> {
        Memory::with(session, len, cache, Access::FULL)
    }

    /// Allocates `len` bytes, zeroed, and maps them as they will be used.
    ///
    /// # Errors
    /// As [`Memory::new`].
    pub fn with(session: &Arc<Session>, len: u64, cache: Cache, access: Access) -> RmResult<Memory> {
        if len == 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "a buffer of 0 bytes");
        }
        let (client, device) = (session.client(), session.device);
        let zeroed = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        let attr = cache.attributes();
        let params = NV_MEMORY_ALLOCATION_PARAMS { owner: client, size: len, alignment: 4096, attr, ..zeroed };
        let handle = session.alloc(device, NV01_MEMORY_LOCAL_USER, params)?;
        Memory::of(session, handle, len).mapped(access)
    }

    /// A share of the buffer behind a dmabuf's descriptor, which stays the caller's.
    ///
    /// # Errors
    /// What the kernel says of a descriptor that is no dmabuf, or of one that cannot be mapped; nothing stays behind.
    pub fn import(session: &Arc<Session>, fd: BorrowedFd<'_>, access: Access) -> RmResult<Memory> {
        let (handle, len) = session.rm().import_dmabuf(session.client(), session.device, fd)?;
        Memory::of(session, handle, len).mapped(access)
    }

    /// Memory of this process: `len` bytes from `at`, a multiple of the page size.
    ///
    /// # Errors
    /// 0x1E for another address and for pages that are not there, 0x1F for no bytes at all.
    pub fn borrow(session: &Arc<Session>, at: u64, len: u64, access: Access) -> RmResult<Memory> {
        if len == 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "a buffer of 0 bytes");
        }
        if !at.is_multiple_of(PAGE) {
            fail!(NV_ERR_INVALID_ADDRESS, "{at:#x} is not a multiple of the page size {PAGE:#x}");
        }
        let flags = NVOS02_FLAGS_LOCATION_PCI << 8 | NVOS02_FLAGS_MAPPING_NO_MAP << 30;
        let class = NV01_MEMORY_SYSTEM_OS_DESCRIPTOR;
        let request = MemoryRequest { class, flags, address: at, limit: len - 1 };
        let (handle, _) = session.rm().alloc_memory(session.client(), session.device, 0, &request)?;
        let mut memory = Memory::of(session, handle, len).mapped(Access { cpu: false, ..access })?;
        (memory.cpu, memory.borrowed) = (at as usize, true);
        Ok(memory)
    }

    /// From here on `Drop` undoes it: freeing memory takes its mappings along.
    fn of(session: &Arc<Session>, handle: u32, len: u64) -> Memory {
        Memory { session: session.clone(), handle, va: 0, cpu: 0, len, borrowed: false }
    }

    fn mapped(mut self, access: Access) -> RmResult<Memory> {
        let (rm, client, device) = (self.session.rm(), self.session.client(), self.session.device);
        let (dma, memory, length) = (self.session.mapper, self.handle, self.len);
        let flags = if access.read_only { NVOS46_FLAGS_ACCESS_READ_ONLY } else { NVOS46_FLAGS_ACCESS_READ_WRITE };
        let request = DmaRequest { dma, memory, offset: 0, length, flags, dma_offset: 0 };
        self.va = rm.map_memory_dma(client, device, &request)?;
        if access.cpu {
            let request = MapRequest { memory, offset: 0, length, at: None, flags: 0 };
            self.cpu = rm.map_memory(client, device, &request)?;
        }
        Ok(self)
    }

    /// A new descriptor of the buffer, for somebody else.
    ///
    /// # Errors
    /// 0x56 for memory of this process; what the kernel says.
    pub fn export(&self) -> RmResult<OwnedFd> {
        self.session.rm().export_dmabuf(self.session.client(), self.handle)
    }

    /// Whether its pages belong to somebody else as soon as it ends.
    pub fn is_borrowed(&self) -> bool {
        self.borrowed
    }

    /// Whether the CPU sees it.
    pub fn has_cpu(&self) -> bool {
        self.cpu != 0
    }

    /// Its RM handle.
    pub fn handle(&self) -> u32 {
        self.handle
    }

    /// Its GPU address; also its CPU address unless that range of the process was taken.
    pub fn va(&self) -> u64 {
        self.va
    }

    /// Its CPU address.
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Its length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The session it belongs to.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Checks that `offset..offset + len` lies inside.
    ///
    /// # Errors
    /// 0x20 with the numbers.
    pub fn check(&self, offset: u64, len: u64) -> RmResult<()> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            fail!(NV_ERR_INVALID_BASE, "{offset:#x}+{len:#x} is outside a buffer of {:#x} bytes", self.len);
        }
        Ok(())
    }

    #[inline]
    fn at<T>(&self, offset: u64) -> *mut T {
        let size = size_of::<T>() as u64;
        assert!(offset.is_multiple_of(size) && offset + size <= self.len, "{offset:#x} in {:#x} bytes", self.len);
        (self.cpu + offset as usize) as *mut T
    }

    /// Reads a word.
    ///
    /// # Panics
    /// When it lies outside or is not aligned: a bug of the runtime.
    #[inline]
    pub fn read_u32(&self, offset: u64) -> u32 {
        // SAFETY: `at` checked bounds and alignment; the mapping lives as long as `self`.
        u32::from_le(unsafe { self.at::<u32>(offset).read_volatile() })
    }

    /// Reads a double word, whole.
    ///
    /// # Panics
    /// As [`Memory::read_u32`].
    #[inline]
    pub fn read_u64(&self, offset: u64) -> u64 {
        // SAFETY: as in `read_u32`.
        u64::from_le(unsafe { self.at::<u64>(offset).read_volatile() })
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// 0x20 when they do not fit.
    pub fn write(&self, offset: u64, from: &[u8]) -> RmResult<()> {
        self.check(offset, from.len() as u64)?;
        // SAFETY: the range was checked; `from` is ordinary memory of this process, never this mapping, because no
        // reference into the mapping exists.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), (self.cpu + offset as usize) as *mut u8, from.len());
        }
        Ok(())
    }

    /// Zeroes a range.
    ///
    /// # Errors
    /// 0x20 when it does not lie inside.
    pub fn zero(&self, offset: u64, len: u64) -> RmResult<()> {
        self.check(offset, len)?;
        // SAFETY: the range was checked, and the mapping lives as long as `self`.
        unsafe { std::ptr::write_bytes((self.cpu + offset as usize) as *mut u8, 0, len as usize) };
        Ok(())
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// 0x20 when there are not as many.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> RmResult<()> {
        self.check(offset, into.len() as u64)?;
        // SAFETY: as in `write`.
        unsafe {
            std::ptr::copy_nonoverlapping((self.cpu + offset as usize) as *const u8, into.as_mut_ptr(), into.len());
        }
        Ok(())
    }
}

/// Words written one after another into a buffer.
pub struct Writer<'a> {
    at: *mut u32,
    written: usize,
    most: usize,
    memory: PhantomData<&'a Memory>,
}

impl Memory {
    /// Writes up to `most` words from `offset` on.
    ///
    /// # Panics
    /// When they do not fit or `offset` is not aligned: a bug of the runtime.
    pub fn writer(&self, offset: u64, most: usize) -> Writer<'_> {
        assert!(offset.is_multiple_of(4) && offset + most as u64 * 4 <= self.len, "{most} words at {offset:#x}");
        Writer { at: (self.cpu + offset as usize) as *mut u32, written: 0, most, memory: PhantomData }
    }
}

impl Sink for Writer<'_> {
    #[inline]
    fn put<const N: usize>(&mut self, words: [u32; N]) {
        assert!(N <= self.most - self.written, "a submission of more words than it has room for");
        for (i, word) in words.into_iter().enumerate() {
            // SAFETY: below `most` words, which `Memory::writer` found inside the mapping; the memory is borrowed.
            unsafe { self.at.add(self.written + i).write_volatile(word.to_le()) };
        }
        self.written += N;
    }

    #[inline]
    fn len(&self) -> usize {
        self.written
    }
}

/// A range of a buffer, looked for once.
pub struct Span {
    at: usize,
    len: usize,
    _keeps: Arc<Memory>,
}

impl Span {
    /// `len` bytes at `offset`.
    ///
    /// # Errors
    /// 0x20 when they lie outside.
    pub fn of(memory: &Arc<Memory>, offset: u64, len: u64) -> RmResult<Span> {
        memory.check(offset, len)?;
        Ok(Span { at: memory.cpu + offset as usize, len: len as usize, _keeps: memory.clone() })
    }

    /// Its CPU address.
    #[inline]
    pub fn cpu(&self) -> *mut u8 {
        self.at as *mut u8
    }

    /// Its length in bytes.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies bytes in. A few of a constant number are one store.
    ///
    /// # Panics
    /// When they do not fit: a bug of the runtime.
    #[inline]
    pub fn put(&self, offset: usize, from: &[u8]) {
        assert!(offset <= self.len && from.len() <= self.len - offset, "{} bytes at {offset:#x}", from.len());
        // SAFETY: just checked, inside the range that `of` checked; `from` is ordinary memory of this process.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), (self.at + offset) as *mut u8, from.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.session.free(self.handle);
    }
}

/// The doorbell page; unmapped when dropped.
pub struct Doorbell {
    session: Arc<Session>,
    usermode: u32,
    word: usize,
}

const PAGE_LEN: u64 = 0x1_0000;

impl Doorbell {
    /// Maps the page.
    ///
    /// # Errors
    /// What RM says.
    pub fn map(session: &Arc<Session>) -> RmResult<Doorbell> {
        let usermode = session.alloc_plain(session.subdevice, TURING_USERMODE_A)?;
        let (client, subdevice) = (session.client(), session.subdevice);
        let request = MapRequest { memory: usermode, offset: 0, length: PAGE_LEN, at: None, flags: 0 };
        // From here on `Drop` undoes it: freeing the object takes its mappings along.
        let mut doorbell = Doorbell { session: session.clone(), usermode, word: 0 };
        let page = session.rm().map_memory(client, subdevice, &request).during(|| "mapping the doorbell")?;
        doorbell.word = page + NVC361_NOTIFY_CHANNEL_PENDING as usize;
        Ok(doorbell)
    }

    /// The word's CPU address.
    pub fn word(&self) -> usize {
        self.word
    }

    /// Tells the GPU that a channel has work, after everything written before.
    #[inline]
    pub fn ring(&self, token: u32) {
        tegrarm_kmd::DeviceMem::barrier();
        // SAFETY: the word lies in the page mapped by `map`, which stays until `Drop`.
        unsafe { (self.word as *mut u32).write_volatile(token.to_le()) }
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        self.session.free(self.usermode);
    }
}
