//! Where kernels, replays and host objects live: slots that stay where they are, so that finding one takes no lock.
//!
//! A call holds its object by the slot's own lock. No handle is ever given out twice.

use super::super::instance::Cell;
use super::handles::unknown;
use crate::status::{RmResult, fail};
use once_cell::sync::OnceCell;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_abi::rm::status::*;

/// Slots of the first chunk; each further one has twice as many as the one before.
const FIRST: usize = 64;
/// A power of two, so that four bits of a handle name any.
const CHUNKS: usize = 16;
/// Of a handle: the chunk, then the slot in it, then what makes it unique.
const CHUNK_BITS: u32 = CHUNKS.ilog2();
const SLOT_BITS: u32 = FIRST.ilog2() + CHUNKS as u32 - 1;

struct Slot<T> {
    /// What its handle is while it has an object, 0 otherwise.
    handle: AtomicU64,
    object: Mutex<Option<T>>,
}

/// Made when the chunks before it are full.
type Chunk<T> = OnceCell<Box<[Slot<T>]>>;

/// A call's hold on an object.
pub(super) type Held<T> = MappedMutexGuard<'static, T>;

/// All objects of a kind in this process.
pub(super) struct Slots<T: 'static> {
    chunks: Cell<[Chunk<T>; CHUNKS]>,
    given: AtomicU64,
    /// Tells handles of this kind from all others: a bit above those of a handle in the table.
    tag: u64,
    what: &'static str,
}

impl<T> Slots<T> {
    /// None yet, of the `kind`-th kind, from 0 to 2.
    pub(super) const fn new(kind: u32, what: &'static str) -> Slots<T> {
        let chunks = Cell::new([const { OnceCell::new() }; CHUNKS]);
        Slots { chunks, given: AtomicU64::new(1), tag: (kind as u64 + 1) << 61, what }
    }

    /// In a forked child: the objects are the parent's.
    ///
    /// # Safety
    /// No other thread exists.
    pub(super) unsafe fn forget(&'static self) {
        // SAFETY: the caller's promise.
        unsafe { self.chunks.replace([const { OnceCell::new() }; CHUNKS]) };
    }

    fn all(&'static self) -> impl Iterator<Item = &'static Slot<T>> {
        self.chunks.get().iter().filter_map(|chunk| chunk.get()).flatten()
    }

    /// Keeps an object; returns its handle.
    ///
    /// # Errors
    /// 0x1A when there are four million already.
    pub(super) fn insert(&'static self, object: T) -> RmResult<u64> {
        for (number, chunk) in self.chunks.get().iter().enumerate() {
            let len = FIRST << number;
            let empty = || (0..len).map(|_| Slot { handle: AtomicU64::new(0), object: Mutex::new(None) }).collect();
            for (index, slot) in chunk.get_or_init(empty).iter().enumerate() {
                if let Some(mut place) = slot.object.try_lock()
                    && place.is_none()
                {
                    let unique = self.given.fetch_add(1, Ordering::Relaxed) << (CHUNK_BITS + SLOT_BITS);
                    let handle = self.tag | unique | (index << CHUNK_BITS | number) as u64;
                    *place = Some(object);
                    slot.handle.store(handle, Ordering::Release);
                    return Ok(handle);
                }
            }
        }
        fail!(NV_ERR_INSUFFICIENT_RESOURCES, "no handle is left for another {}", self.what)
    }

    /// The slot that a handle names, whatever is there now.
    #[inline]
    fn slot(&'static self, handle: u64) -> Option<&'static Slot<T>> {
        let handle = handle as usize;
        let chunk = self.chunks.get()[handle % CHUNKS].get()?;
        chunk.get(handle >> CHUNK_BITS & ((1 << SLOT_BITS) - 1))
    }

    #[cold]
    fn unknown<U>(&self, handle: u64) -> RmResult<U> {
        Err(unknown(handle, self.what))
    }

    #[inline]
    fn hold(&self, slot: &Slot<T>, handle: u64, guard: MutexGuard<'static, Option<T>>) -> RmResult<Held<T>> {
        if slot.handle.load(Ordering::Relaxed) != handle {
            return self.unknown(handle);
        }
        MutexGuard::try_map(guard, Option::as_mut).or_else(|_| self.unknown(handle))
    }

    /// Holds an object for one call, after the call that another thread may be in.
    ///
    /// # Errors
    /// 0x57 when there is none of that handle.
    #[inline(always)]
    pub(super) fn hold_in_turn(&'static self, handle: u64) -> RmResult<Held<T>> {
        let Some(slot) = self.slot(handle) else { return self.unknown(handle) };
        self.hold(slot, handle, slot.object.lock())
    }

    /// Holds an object for one call, without ever waiting.
    ///
    /// # Errors
    /// 0x57 when there is none of that handle, 0x63 when another thread is in a call of it.
    #[inline(always)]
    pub(super) fn hold_alone(&'static self, handle: u64) -> RmResult<Held<T>> {
        let Some(slot) = self.slot(handle) else { return self.unknown(handle) };
        if let Some(guard) = slot.object.try_lock() {
            return self.hold(slot, handle, guard);
        }
        if slot.handle.load(Ordering::Acquire) != handle {
            return self.unknown(handle);
        }
        fail!(NV_ERR_STATE_IN_USE, "another thread is in a call of this {}", self.what)
    }

    /// Ends an object, after the call that another thread may be in.
    ///
    /// # Errors
    /// 0x57 when there is none of that handle.
    pub(super) fn remove(&'static self, handle: u64) -> RmResult<T> {
        let Some(slot) = self.slot(handle) else { return self.unknown(handle) };
        let mut guard = slot.object.lock();
        if slot.handle.compare_exchange(handle, 0, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return self.unknown(handle);
        }
        guard.take().map_or_else(|| self.unknown(handle), Ok)
    }

    /// Ends objects.
    pub(super) fn close(&'static self, doomed: impl Fn(&T) -> bool) {
        for slot in self.all() {
            let mut guard = slot.object.lock();
            if guard.as_ref().is_some_and(&doomed) {
                slot.handle.store(0, Ordering::Release);
                let object = guard.take();
                drop(guard);
                // Not under the lock: the end waits for the GPU.
                drop(object);
            }
        }
    }
}
