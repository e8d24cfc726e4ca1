//! Memory that the CPU and the GPU share. Words are accessed as volatile, and bytes are copied in and out.
//!
//! `unsafe` is here because a device writes this memory. Every access is volatile or a copy through raw pointers, and
//! its bounds are checked. No Rust reference into the memory ever exists.
#![allow(unsafe_code)]

pub mod doorbell;
pub mod heap;
mod pieces;
pub mod place;
mod reserved;
pub mod session;

use crate::runtime::commands::Sink;
use crate::runtime::memory::pieces::Pieces;
use crate::runtime::memory::reserved::{Kept, Reserved, Source};
use crate::runtime::memory::session::Session;
use std::marker::PhantomData;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::watched::{self, Watched};
use tegrarm_rm::rm::{DmaRequest, MapRequest, MemoryRequest};
use tegrarm_rm::status::{RmResult, fail};
use zerocopy::FromZeros;

/// The GPU maps whole pages of this size.
pub const PAGE: u64 = 4096;

/// How the CPU maps a buffer. With both kinds the GPU sees what the CPU wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// The CPU caches the buffer, which suits data that the CPU reads.
    Cached,
    /// The CPU combines its writes, which suits data that it writes once and the GPU reads.
    WriteCombined,
}

impl Cache {
    /// The bits of `NVOS32_ATTR_COHERENCY`, 31:29 of the attributes.
    fn attributes(self) -> u32 {
        let coherency = match self {
            Cache::Cached => NVOS32_ATTR_COHERENCY_CACHED,
            Cache::WriteCombined => NVOS32_ATTR_COHERENCY_WRITE_COMBINE,
        };
        coherency << 29
    }
}

/// Restrictions on the use of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether stores by the GPU are faults.
    pub read_only: bool,
    /// Whether the buffer is mapped for the CPU.
    pub cpu: bool,
}

impl Access {
    /// Access without restrictions.
    pub const FULL: Access = Access { read_only: false, cpu: true };

    /// The flags of a mapping for the GPU.
    fn flags(self) -> u32 {
        if self.read_only { NVOS46_FLAGS_ACCESS_READ_ONLY } else { NVOS46_FLAGS_ACCESS_READ_WRITE }
    }
}

/// A buffer that is mapped for the CPU and the GPU. It is freed when it is dropped.
pub struct Memory {
    session: Arc<Session>,
    handle: u32,
    va: u64,
    /// The CPU address. It is 0 if the buffer is not mapped for the CPU.
    cpu: usize,
    len: u64,
    /// Whether its pages belong to others when the buffer ends.
    borrowed: bool,
    /// What it is made of, if it is not one memory object.
    made_of: MadeOf,
    /// Looks at what the processor accesses in it, if somebody wants to know.
    watched: Option<Watched>,
}

/// What the memory of a buffer is made of.
enum MadeOf {
    /// One memory object.
    One,
    /// Several pieces, in which the kernel gave the memory.
    Pieces(Pieces),
    /// What is mapped at reserved addresses at the moment.
    Reserved(Reserved),
}

impl Memory {
    /// Allocates and maps `len` zeroed bytes.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` if `len` is 0, and `NV_ERR_NO_MEMORY` if there is not enough memory. Nothing is left
    /// of the attempt.
    pub fn new(session: &Arc<Session>, len: u64, cache: Cache) -> RmResult<Memory> {
        Memory::with(session, len, cache, Access::FULL)
    }

    /// Allocates `len` zeroed bytes and maps them with the access that is given.
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

    /// Shares the buffer of a dmabuf. The caller keeps the descriptor.
    ///
    /// # Errors
    /// The kernel's error for a descriptor that is no dmabuf, or for one that cannot be mapped. Nothing is left of the
    /// attempt.
    pub fn import(session: &Arc<Session>, fd: BorrowedFd<'_>, access: Access) -> RmResult<Memory> {
        let (handle, len) = session.rm().import_dmabuf(session.client(), session.device, fd)?;
        Memory::of(session, handle, len).mapped(access)
    }

    /// Uses memory of this process: `len` bytes from `at`, which is a multiple of the page size.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ADDRESS` for another address and for pages that do not exist, and `NV_ERR_INVALID_ARGUMENT` if
    /// `len` is 0.
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

    /// Owns the memory object. From here on `Drop` undoes all steps, because freeing memory removes its mappings.
    fn of(session: &Arc<Session>, handle: u32, len: u64) -> Memory {
        let (session, made_of) = (session.clone(), MadeOf::One);
        Memory { session, handle, va: 0, cpu: 0, len, borrowed: false, made_of, watched: None }
    }

    /// Allocates `len` zeroed bytes in several pieces that lie behind each other, for a kernel that does not give them at once.
    ///
    /// # Errors
    /// `NV_ERR_NO_MEMORY` if the kernel does not give the pieces either, or if the process has something else at their
    /// addresses. Nothing is left of the attempt.
    pub fn in_pieces(session: &Arc<Session>, len: u64, cache: Cache, access: Access) -> RmResult<Memory> {
        let pieces = Pieces::new(session, len, cache.attributes(), access.flags(), access.cpu)?;
        let mut memory = Memory::of(session, 0, len);
        (memory.va, memory.cpu, memory.made_of) = (pieces.va(), pieces.cpu(), MadeOf::Pieces(pieces));
        Ok(memory)
    }

    /// Reserves `len` bytes of GPU addresses, without memory. `len` is a multiple of the page size.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` if `len` is 0 or not such a multiple, and `NV_ERR_NO_MEMORY` if there are not so many addresses.
    pub fn reserve(session: &Arc<Session>, len: u64) -> RmResult<Memory> {
        if len == 0 || !len.is_multiple_of(PAGE) {
            fail!(
                NV_ERR_INVALID_ARGUMENT,
                "{len:#x} bytes of addresses: a multiple of the page size {PAGE:#x} can be reserved"
            );
        }
        let reserved = Reserved::new(session, len)?;
        let mut memory = Memory::of(session, 0, len);
        (memory.va, memory.cpu, memory.made_of) = (reserved.va(), reserved.va() as usize, MadeOf::Reserved(reserved));
        Ok(memory)
    }

    fn reserved(&self) -> RmResult<&Reserved> {
        match &self.made_of {
            MadeOf::Reserved(reserved) => Ok(reserved),
            _ => fail!(
                NV_ERR_NOT_SUPPORTED,
                "the buffer has memory of its own: tegrarm_buffer_reserve makes one without"
            ),
        }
    }

    /// Maps `len` bytes of the memory of another buffer, from its byte `from` on, at byte `at` of this one, whose addresses are reserved.
    /// The memory lives until it is unmapped and its buffer has ended.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if the bytes lie outside one of the two, `NV_ERR_INVALID_ARGUMENT` for 0 bytes, `NV_ERR_INVALID_OFFSET` if a
    /// number is not a multiple of the page size, `NV_ERR_STATE_IN_USE` if memory is mapped there already, `NV_ERR_NOT_SUPPORTED` if
    /// the addresses are not reserved or the other memory is not one memory object of the same device, `NV_ERR_NO_MEMORY` if the
    /// process has something else at the addresses, and an error that RM gives. Nothing is left of the attempt.
    pub fn map(&self, at: u64, other: &Memory, from: u64, len: u64, access: Access) -> RmResult<()> {
        let reserved = self.reserved()?;
        if !matches!(other.made_of, MadeOf::One) || other.borrowed || !Arc::ptr_eq(&self.session, &other.session) {
            fail!(
                NV_ERR_NOT_SUPPORTED,
                "memory of this process, of another device or in several pieces cannot be mapped at other addresses"
            );
        }
        if len == 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "a mapping of 0 bytes");
        }
        if !(at | from | len).is_multiple_of(PAGE) {
            fail!(
                NV_ERR_INVALID_OFFSET,
                "{len:#x} bytes from {from:#x} at {at:#x}: all three are multiples of the page size {PAGE:#x}"
            );
        }
        self.check(at, len)?;
        other.check(from, len)?;
        reserved.map(at, Source { memory: other.handle, offset: from, len }, access.flags())
    }

    /// Removes all mappings from `len` bytes at byte `at`. The addresses stay reserved. Returns where the mappings were.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if the bytes lie outside, `NV_ERR_OBJECT_NOT_FOUND` if nothing is mapped there,
    /// `NV_ERR_INVALID_LIMIT` if the bytes end inside a mapping, and `NV_ERR_NOT_SUPPORTED` if the addresses are not reserved ones.
    pub fn unmap(&self, at: u64, len: u64) -> RmResult<Vec<(u64, u64)>> {
        let reserved = self.reserved()?;
        self.check(at, len)?;
        reserved.unmap(at, len)
    }

    /// Has somebody look at what the processor accesses in it.
    pub fn watch(&mut self, watched: Option<Watched>) {
        self.watched = watched;
    }

    /// Whether its memory is what is mapped at reserved addresses.
    pub fn is_reserved(&self) -> bool {
        matches!(self.made_of, MadeOf::Reserved(_))
    }

    /// What keeps the memory at reserved addresses mapped, if they are that.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if a byte of the range has no memory.
    fn kept(&self, offset: u64, len: u64) -> RmResult<Option<Kept>> {
        match &self.made_of {
            MadeOf::Reserved(reserved) => reserved.keep(offset, len).map(Some),
            _ => Ok(None),
        }
    }

    /// Does some work with bytes of the buffer, which have memory meanwhile.
    fn while_mapped<T>(&self, offset: u64, len: u64, work: impl FnOnce() -> T) -> RmResult<T> {
        self.check(offset, len)?;
        let _kept = self.kept(offset, len)?;
        Ok(watched::unseen(work))
    }

    fn mapped(mut self, access: Access) -> RmResult<Memory> {
        let (rm, client, device) = (self.session.rm(), self.session.client(), self.session.device);
        let (dma, memory, length) = (self.session.mapper, self.handle, self.len);
        let request = DmaRequest { dma, memory, offset: 0, length, flags: access.flags(), dma_offset: 0 };
        self.va = rm.map_memory_dma(client, device, &request)?;
        if access.cpu {
            let request = MapRequest { memory, offset: 0, length, at: None, flags: 0 };
            self.cpu = rm.map_memory(client, device, &request)?;
        }
        Ok(self)
    }

    /// Makes a new descriptor of the buffer, for use by others.
    ///
    /// # Errors
    /// `NV_ERR_NOT_SUPPORTED` for memory of this process and for memory in pieces, and the kernel's error.
    pub fn export(&self) -> RmResult<OwnedFd> {
        match &self.made_of {
            MadeOf::One => {}
            MadeOf::Pieces(pieces) => {
                let (n, len) = (pieces.count(), self.len);
                fail!(
                    NV_ERR_NOT_SUPPORTED,
                    "the buffer of {len} bytes has no descriptor: the kernel refused so many bytes at once, and it consists of {n} pieces; allocate smaller buffers to share them"
                );
            }
            MadeOf::Reserved(_) => fail!(
                NV_ERR_NOT_SUPPORTED,
                "reserved addresses have no descriptor: export the buffer whose memory is mapped there"
            ),
        }
        self.session.rm().export_dmabuf(self.session.client(), self.handle)
    }

    /// Whether its pages belong to others as soon as the buffer ends.
    pub fn is_borrowed(&self) -> bool {
        self.borrowed
    }

    /// Whether the buffer is mapped for the CPU.
    pub fn has_cpu(&self) -> bool {
        self.cpu != 0
    }

    /// The RM handle.
    pub fn handle(&self) -> u32 {
        self.handle
    }

    /// The GPU address. It is also the CPU address, unless that range of the process was in use.
    pub fn va(&self) -> u64 {
        self.va
    }

    /// The CPU address.
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// The length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The session that the buffer belongs to.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Checks that `offset..offset + len` lies inside the buffer.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` with the numbers.
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
    /// The word lies outside or is not aligned, which is a bug of the runtime.
    #[inline]
    pub fn read_u32(&self, offset: u64) -> u32 {
        // SAFETY: `at` has checked the bounds and the alignment, and the mapping exists for as long as `self`.
        u32::from_le(unsafe { self.at::<u32>(offset).read_volatile() })
    }

    /// Reads a double word with one access.
    ///
    /// # Panics
    /// The double word lies outside or is not aligned, which is a bug of the runtime.
    #[inline]
    pub fn read_u64(&self, offset: u64) -> u64 {
        // SAFETY: `at` has checked the bounds and the alignment, and the mapping exists for as long as `self`.
        u64::from_le(unsafe { self.at::<u64>(offset).read_volatile() })
    }

    /// Copies bytes into the buffer.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if they do not fit.
    pub fn write(&self, offset: u64, from: &[u8]) -> RmResult<()> {
        // SAFETY: `while_mapped` has checked the range. `from` is ordinary memory of this process and never this mapping, because no
        // reference into the mapping exists.
        self.while_mapped(offset, from.len() as u64, || unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), (self.cpu + offset as usize) as *mut u8, from.len());
        })
    }

    /// Sets a range to zero.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if it does not lie inside the buffer.
    pub fn zero(&self, offset: u64, len: u64) -> RmResult<()> {
        // SAFETY: `while_mapped` has checked the range, and the mapping exists for as long as the work.
        self.while_mapped(offset, len, || unsafe {
            std::ptr::write_bytes((self.cpu + offset as usize) as *mut u8, 0, len as usize)
        })
    }

    /// Copies bytes out of the buffer.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if the buffer has fewer.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> RmResult<()> {
        // SAFETY: `while_mapped` has checked the range. `into` is ordinary memory of this process and never this mapping, because no
        // reference into the mapping exists.
        self.while_mapped(offset, into.len() as u64, || unsafe {
            std::ptr::copy_nonoverlapping((self.cpu + offset as usize) as *const u8, into.as_mut_ptr(), into.len());
        })
    }
}

/// Writes words one after another into a buffer.
pub struct Writer<'a> {
    at: *mut u32,
    written: usize,
    most: usize,
    memory: PhantomData<&'a Memory>,
}

impl Memory {
    /// Makes a writer of at most `most` words from `offset` on.
    ///
    /// # Panics
    /// The words do not fit, or `offset` is not aligned, which is a bug of the runtime.
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
            // SAFETY: the word is one of the `most` words that `Memory::writer` found inside the mapping, and the
            // memory is borrowed.
            unsafe { self.at.add(self.written + i).write_volatile(word.to_le()) };
        }
        self.written += N;
    }

    #[inline]
    fn len(&self) -> usize {
        self.written
    }
}

/// A range of a buffer whose bounds have been checked once.
pub struct Span {
    at: usize,
    len: usize,
    _keeps: Arc<Memory>,
}

impl Span {
    /// Makes the range of `len` bytes at `offset`.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if it lies outside.
    pub fn of(memory: &Arc<Memory>, offset: u64, len: u64) -> RmResult<Span> {
        memory.check(offset, len)?;
        Ok(Span { at: memory.cpu + offset as usize, len: len as usize, _keeps: memory.clone() })
    }

    /// The CPU address of the range.
    #[inline]
    pub fn cpu(&self) -> *mut u8 {
        self.at as *mut u8
    }

    /// The length in bytes.
    #[allow(clippy::len_without_is_empty)]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies bytes into the range. A small constant number of bytes becomes one store.
    ///
    /// # Panics
    /// The bytes do not fit, which is a bug of the runtime.
    #[inline]
    pub fn put(&self, offset: usize, from: &[u8]) {
        assert!(offset <= self.len && from.len() <= self.len - offset, "{} bytes at {offset:#x}", from.len());
        // SAFETY: the bytes were just checked to lie inside the range that `of` checked. `from` is ordinary memory of
        // this process.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), (self.at + offset) as *mut u8, from.len()) };
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // Something else may be mapped there afterwards.
        self.watched = None;
        if matches!(self.made_of, MadeOf::One) {
            self.session.free(self.handle);
        }
    }
}
