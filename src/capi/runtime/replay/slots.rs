//! Where replays live: a list of slots that only grows, so that finding one takes no lock.
//!
//! A call claims its replay: one attempt on the slot's own flag, which never waits. A second thread inside the same
//! replay is refused, not queued.

use super::super::super::instance::Cell;
use super::super::handles::unknown;
use crate::runtime::replay::Replay;
use crate::status::{RmResult, fail};
use once_cell::sync::OnceCell;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_abi::rm::status::*;

const CHUNK: usize = 64;
/// Tells these handles from all others.
const TAG: u64 = 1 << 62;
const INDEX_BITS: u32 = 20;

struct Slot {
    /// What its handle is while there is a replay, 0 otherwise.
    handle: AtomicU64,
    replay: Mutex<Option<Replay>>,
}

struct Chunk {
    slots: [Slot; CHUNK],
    next: OnceCell<Box<Chunk>>,
}

impl Chunk {
    const fn new() -> Chunk {
        let slots = [const { Slot { handle: AtomicU64::new(0), replay: Mutex::new(None) } }; CHUNK];
        Chunk { slots, next: OnceCell::new() }
    }

    /// This one and those after it.
    fn all(&self) -> impl Iterator<Item = &Chunk> {
        std::iter::successors(Some(self), |chunk| chunk.next.get().map(|next| &**next))
    }
}

static REPLAYS: Cell<Chunk> = Cell::new(Chunk::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// In a forked child: the replays are the parent's.
///
/// # Safety
/// No other thread exists.
pub(in super::super) unsafe fn forget() {
    // SAFETY: the caller's promise.
    unsafe { REPLAYS.replace(Chunk::new()) };
}

/// Keeps a replay; returns its handle.
pub(super) fn insert(replay: Replay) -> RmResult<u64> {
    let mut first = 0;
    let mut chunk = REPLAYS.get();
    while first + CHUNK <= 1 << INDEX_BITS {
        for (index, slot) in chunk.slots.iter().enumerate() {
            if let Some(mut place) = slot.replay.try_lock()
                && place.is_none()
            {
                let handle = TAG | NEXT.fetch_add(1, Ordering::Relaxed) << INDEX_BITS | (first + index) as u64;
                *place = Some(replay);
                slot.handle.store(handle, Ordering::Release);
                return Ok(handle);
            }
        }
        first += CHUNK;
        chunk = chunk.next.get_or_init(|| Box::new(Chunk::new()));
    }
    fail!(NV_ERR_INSUFFICIENT_RESOURCES, "more than {} replays", 1 << INDEX_BITS)
}

fn slot(handle: u64) -> Option<&'static Slot> {
    let index = handle as usize & ((1 << INDEX_BITS) - 1);
    let chunk = REPLAYS.get().all().nth(index / CHUNK)?;
    let slot = &chunk.slots[index % CHUNK];
    (handle & TAG != 0 && slot.handle.load(Ordering::Acquire) == handle).then_some(slot)
}

/// Claims a replay for one call.
///
/// # Errors
/// 0x57 when there is none of that handle, 0x63 when another thread is inside it.
#[inline]
pub(super) fn claim(handle: u64) -> RmResult<MappedMutexGuard<'static, Replay>> {
    let Some(slot) = slot(handle) else { return Err(unknown(handle, "replay")) };
    let Some(guard) = slot.replay.try_lock() else {
        fail!(NV_ERR_STATE_IN_USE, "another thread is in a call of this replay");
    };
    // It may have ended, and the slot found another, before the claim.
    if slot.handle.load(Ordering::Acquire) != handle {
        return Err(unknown(handle, "replay"));
    }
    MutexGuard::try_map(guard, Option::as_mut).map_err(|_| unknown(handle, "replay"))
}

/// Ends a replay, after the call that another thread may be in.
///
/// # Errors
/// 0x57 when there is none of that handle.
pub(super) fn remove(handle: u64) -> RmResult<Replay> {
    let Some(slot) = slot(handle) else { return Err(unknown(handle, "replay")) };
    let mut guard = slot.replay.lock();
    if slot.handle.compare_exchange(handle, 0, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return Err(unknown(handle, "replay"));
    }
    guard.take().ok_or_else(|| unknown(handle, "replay"))
}

/// Ends replays.
pub(in super::super) fn close(doomed: impl Fn(&Replay) -> bool) {
    for slot in REPLAYS.get().all().flat_map(|chunk| &chunk.slots) {
        let mut guard = slot.replay.lock();
        if guard.as_ref().is_some_and(&doomed) {
            slot.handle.store(0, Ordering::Release);
            let replay = guard.take();
            drop(guard);
            // Not under the lock: the end waits for the GPU.
            drop(replay);
        }
    }
}
