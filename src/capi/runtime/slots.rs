//! A table from handles to objects of one kind.
//!
//! Rows stay where they are for as long as the process lives, so no lock is needed to find one. A call then holds its
//! object with the row's own lock. A handle has the number of a row and the row's generation. Therefore no handle is
//! ever given out twice, and a handle whose object has ended is recognised. Giving out a handle and taking one back
//! cost the same, whatever the number of objects is.

use super::super::instance::Cell;
use super::row::{Guard, Row, Unheld};
use once_cell::sync::OnceCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_abi::rm::status::*;
use tegrarm_lock::{MappedMutexGuard, Mutex, MutexGuard};
use tegrarm_rm::status::{RmError, RmResult, fail};

/// The number of rows of the first chunk. Each further chunk has twice as many rows as the one before.
const FIRST: usize = 64;
/// The number of chunks. It is a power of two, so that four bits of a handle can name each chunk.
const CHUNKS: usize = 16;
const SLOTS: usize = FIRST * ((1 << CHUNKS) - 1);
/// A handle consists, from its lowest bit, of the chunk, the row in the chunk, the row's generation and the kind of
/// object.
const CHUNK_BITS: u32 = CHUNKS.ilog2();
const ROW_BITS: u32 = FIRST.ilog2() + CHUNKS as u32 - 1;
const GENERATION_SHIFT: u32 = CHUNK_BITS + ROW_BITS;
const KIND_SHIFT: u32 = 60;
const GENERATION: u64 = 1 << GENERATION_SHIFT;
const GENERATIONS: u64 = (1 << KIND_SHIFT) - GENERATION;

/// A chunk is made when the chunks before it are full.
type Chunk<T> = OnceCell<Box<[Row<T>]>>;

/// The rows that have no object.
struct Spare {
    /// For each row that had an object: the handle of the row's next object.
    freed: Vec<u64>,
    /// How many rows have ever had an object.
    used: usize,
}

struct Rows<T> {
    chunks: [Chunk<T>; CHUNKS],
    spare: Mutex<Spare>,
}

impl<T> Rows<T> {
    const fn new() -> Rows<T> {
        let spare = Mutex::new(Spare { freed: Vec::new(), used: 0 });
        Rows { chunks: [const { OnceCell::new() }; CHUNKS], spare }
    }
}

/// Holds an object for the duration of a call.
pub(super) type Held<T> = MappedMutexGuard<'static, T>;

/// All objects of one kind in this process. `H` is the type that a handle points at in C.
pub(super) struct Slots<H, T: 'static> {
    rows: Cell<Rows<T>>,
    /// The generation of a row that has had no object yet. In a forked child it is later than any generation of the
    /// parent.
    first: AtomicU64,
    /// The latest generation that any row has had.
    newest: AtomicU64,
    kind: u64,
    what: &'static str,
    _handle: PhantomData<fn() -> H>,
}

impl<H, T> Slots<H, T> {
    /// Makes a table without objects. `kind` is the number of the kind of its objects, from 1 to 15. Handles of two
    /// kinds are never the same.
    pub(super) const fn new(kind: u64, what: &'static str) -> Slots<H, T> {
        let (first, newest) = (AtomicU64::new(GENERATION), AtomicU64::new(GENERATION));
        let rows = Cell::new(Rows::new());
        Slots { rows, first, newest, kind: kind << KIND_SHIFT, what, _handle: PhantomData }
    }

    /// Forgets all objects. A forked child calls this, because the objects belong to the parent. This table never gives
    /// out the parent's handles.
    ///
    /// # Safety
    /// No other thread exists.
    pub(super) unsafe fn forget(&'static self) {
        // SAFETY: no other thread exists, as this function's caller promises.
        unsafe { self.rows.replace(Rows::new()) };
        self.first.store(self.newest.load(Ordering::Relaxed) + GENERATION, Ordering::Relaxed);
    }

    /// Keeps an object and returns its handle.
    ///
    /// # Errors
    /// INSUFFICIENT_RESOURCES if there are four million objects already.
    pub(super) fn insert(&'static self, object: T) -> RmResult<*mut H> {
        let Some(handle) = self.next() else {
            fail!(NV_ERR_INSUFFICIENT_RESOURCES, "no handle is left for another {}", self.what);
        };
        self.newest.fetch_max(handle & GENERATIONS, Ordering::Relaxed);
        let (chunk, index) = place(handle);
        let rows = self.rows.get().chunks[chunk].get_or_init(|| (0..FIRST << chunk).map(|_| Row::empty()).collect());
        rows[index].put(handle, object);
        Ok(std::ptr::without_provenance_mut(handle as usize))
    }

    /// The next handle of a row that has no object.
    fn next(&'static self) -> Option<u64> {
        let mut spare = self.rows.get().spare.lock();
        if let Some(handle) = spare.freed.pop() {
            return Some(handle);
        }
        let row = spare.used;
        if row == SLOTS {
            return None;
        }
        spare.used += 1;
        let chunk = (row / FIRST + 1).ilog2();
        let index = row - FIRST * ((1 << chunk) - 1);
        Some(self.kind | self.first.load(Ordering::Relaxed) | (index << CHUNK_BITS) as u64 | u64::from(chunk))
    }

    /// Marks the row of a handle as one that has no object any more. A row whose generations are used up never gets one
    /// again.
    fn spare(&'static self, handle: u64) {
        if handle & GENERATIONS != GENERATIONS {
            self.rows.get().spare.lock().freed.push(handle + GENERATION);
        }
    }

    /// The row that a handle names, whatever object is there now.
    #[inline]
    fn row(&'static self, handle: u64) -> Option<&'static Row<T>> {
        let (chunk, index) = place(handle);
        self.rows.get().chunks[chunk].get()?.get(index)
    }

    /// The error of a handle that stands for nothing here.
    #[cold]
    fn unknown(&self, handle: u64) -> RmError {
        let what = self.what;
        if self.is_parents(handle) {
            let text =
                format!("the {what} {handle:#x} belongs to the process this one was forked from: open the device here");
            return RmError::new(NV_ERR_INVALID_CLIENT, text);
        }
        let text = format!("{handle:#x} is no {what}: it was never made, or closed, or belongs to another process");
        RmError::new(NV_ERR_OBJECT_NOT_FOUND, text)
    }

    /// Whether the process from which this one was forked may have made the handle: it has a generation that this
    /// process never gives out.
    fn is_parents(&self, handle: u64) -> bool {
        let generation = handle & GENERATIONS;
        handle >> KIND_SHIFT == self.kind >> KIND_SHIFT
            && generation >= GENERATION
            && generation < self.first.load(Ordering::Relaxed)
    }

    /// The error for an object that another thread is using in a call.
    #[cold]
    fn busy(&self) -> RmError {
        RmError::new(NV_ERR_STATE_IN_USE, format!("another thread is in a call of this {}", self.what))
    }

    #[inline(always)]
    fn held(&self, handle: u64, row: Result<Guard<'static, T>, Unheld>) -> RmResult<Held<T>> {
        let guard = match row {
            Ok(guard) => guard,
            Err(Unheld::Gone) => return Err(self.unknown(handle)),
            Err(Unheld::Busy) => return Err(self.busy()),
        };
        // A row whose handle is 0 has no object.
        MutexGuard::try_map(guard, Option::as_mut).map_err(|_| self.unknown(handle))
    }

    /// Holds an object for one call. If another thread is in a call of the object, this waits until that call has
    /// ended.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND if no object has that handle.
    #[inline(always)]
    pub(super) fn hold_in_turn(&'static self, handle: *const H) -> RmResult<Held<T>> {
        let handle = handle.addr() as u64;
        let Some(row) = self.row(handle) else { return Err(self.unknown(handle)) };
        self.held(handle, row.hold(handle))
    }

    /// Holds an object for one call and never waits.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND if no object has that handle, and STATE_IN_USE if another thread is in a call of the object.
    #[inline(always)]
    pub(super) fn hold_alone(&'static self, handle: *const H) -> RmResult<Held<T>> {
        let handle = handle.addr() as u64;
        let Some(row) = self.row(handle) else { return Err(self.unknown(handle)) };
        self.held(handle, row.hold_now(handle))
    }

    /// A copy of an object that threads share, which is an `Arc`. The row is held only until the copy is counted.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND if no object has that handle.
    #[inline]
    pub(super) fn get(&'static self, handle: *const H) -> RmResult<T>
    where
        T: Clone,
    {
        self.hold_in_turn(handle).map(|held| T::clone(&held))
    }

    /// The handle of the first object for which `is` is true.
    pub(super) fn find(&'static self, is: impl Fn(&T) -> bool) -> Option<*mut H> {
        let mut rows = self.rows.get().chunks.iter().filter_map(|chunk| chunk.get()).flatten();
        rows.find_map(|row| row.handle_if(&is)).map(|handle| std::ptr::without_provenance_mut(handle as usize))
    }

    /// Takes an object out of the table. If another thread is in a call of the object, this waits until that call has
    /// ended. The caller drops the object at a place where it holds no lock, because the end of an object waits for the
    /// GPU.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND if no object has that handle.
    pub(super) fn remove(&'static self, handle: *const H) -> RmResult<T> {
        let handle = handle.addr() as u64;
        let Some(row) = self.row(handle) else { return Err(self.unknown(handle)) };
        self.take(row, |now, _| now == handle).ok_or_else(|| self.unknown(handle))
    }

    /// Takes objects out of the table, one after another, in the same way as [`Slots::remove`].
    pub(super) fn remove_all(&'static self, doomed: impl Fn(&T) -> bool) -> impl Iterator<Item = T> {
        let rows = self.rows.get().chunks.iter().filter_map(|chunk| chunk.get()).flatten();
        let full = rows.filter(|row| row.handle() != 0);
        full.filter_map(move |row| self.take(row, |_, object| doomed(object)))
    }

    fn take(&'static self, row: &'static Row<T>, doomed: impl Fn(u64, &T) -> bool) -> Option<T> {
        let (handle, taken) = row.take(doomed)?;
        self.spare(handle);
        Some(taken)
    }
}

/// The chunk and the row of a handle.
#[inline]
fn place(handle: u64) -> (usize, usize) {
    let handle = handle as usize;
    (handle % CHUNKS, handle >> CHUNK_BITS & ((1 << ROW_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Arc;

    /// The type that a handle of these tests points at.
    struct Opaque;

    fn refused<T>(result: RmResult<T>) -> bool {
        result.is_err_and(|e| e.status == NV_ERR_OBJECT_NOT_FOUND)
    }

    #[test]
    fn a_handle_is_found_until_its_object_ends_and_never_again() {
        static TABLE: Slots<Opaque, u32> = Slots::new(1, "number");
        let first = TABLE.insert(7).unwrap();
        assert_eq!(TABLE.get(first).unwrap(), 7);
        assert_eq!(TABLE.remove(first).unwrap(), 7);
        let second = TABLE.insert(8).unwrap();
        assert_ne!(first, second);
        assert_eq!(place(first.addr() as u64), place(second.addr() as u64), "the row is used again");
        assert!(refused(TABLE.get(first)) && refused(TABLE.remove(first)) && refused(TABLE.hold_alone(first)));
        assert_eq!(TABLE.get(second).unwrap(), 8);
    }

    #[test]
    fn numbers_that_are_no_handles_are_refused() {
        static TABLE: Slots<Opaque, u32> = Slots::new(2, "number");
        static OTHER: Slots<Opaque, u32> = Slots::new(3, "other number");
        let of_other = OTHER.insert(1).unwrap();
        TABLE.insert(2).unwrap();
        assert!(refused(TABLE.get(of_other)), "of another kind");
        for number in [0, 1, 15, 0x1000, usize::MAX, 2 << KIND_SHIFT, (2 << KIND_SHIFT) | 5] {
            assert!(refused(TABLE.get(std::ptr::without_provenance(number))), "{number:#x}");
        }
    }

    #[test]
    fn many_objects_live_in_many_chunks() {
        static TABLE: Slots<Opaque, usize> = Slots::new(4, "number");
        let handles: Vec<_> = (0..5 * FIRST).map(|n| TABLE.insert(n).unwrap()).collect();
        assert_eq!(handles.iter().collect::<HashSet<_>>().len(), handles.len());
        assert!(handles.iter().enumerate().all(|(n, &handle)| TABLE.get(handle).unwrap() == n));
        let even: Vec<_> = TABLE.remove_all(|n| n % 2 == 0).collect();
        assert_eq!(even.len(), handles.len() / 2);
        assert!(handles.iter().enumerate().all(|(n, &handle)| TABLE.get(handle).is_ok() == (n % 2 == 1)));
        let again: Vec<_> = (0..even.len()).map(|n| TABLE.insert(n).unwrap()).collect();
        assert_eq!(TABLE.rows.get().spare.lock().used, handles.len(), "no row was made while others were free");
        assert!(again.iter().all(|handle| !handles.contains(handle)));
    }

    #[test]
    fn a_row_whose_generations_are_used_up_is_left_alone() {
        static TABLE: Slots<Opaque, u32> = Slots::new(5, "number");
        TABLE.first.store(GENERATIONS, Ordering::Relaxed);
        let last = TABLE.insert(1).unwrap();
        TABLE.remove(last).unwrap();
        let next = TABLE.insert(2).unwrap();
        assert_ne!(place(last.addr() as u64), place(next.addr() as u64));
    }

    #[test]
    fn a_forked_child_never_gives_out_a_handle_of_its_parent() {
        static TABLE: Slots<Opaque, u32> = Slots::new(6, "number");
        let before: Vec<_> = (0..3).map(|n| TABLE.insert(n).unwrap()).collect();
        TABLE.remove(before[0]).unwrap();
        let reused = TABLE.insert(3).unwrap();
        // SAFETY: this test has one thread, and the table is its own.
        unsafe { TABLE.forget() };
        let after: Vec<_> = (0..4).map(|n| TABLE.insert(n).unwrap()).collect();
        assert!(after.iter().all(|handle| *handle != reused && !before.contains(handle)));
        let status = |handle: *const Opaque| TABLE.get(handle).unwrap_err().status;
        assert_eq!((status(reused), status(before[1])), (NV_ERR_INVALID_CLIENT, NV_ERR_INVALID_CLIENT));
        TABLE.remove(after[0]).unwrap();
        assert_eq!(status(after[0]), NV_ERR_OBJECT_NOT_FOUND, "its own, which it has closed");
    }

    #[test]
    fn a_call_waits_or_is_refused_while_another_is_in_the_object() {
        static TABLE: Slots<Opaque, Arc<u32>> = Slots::new(7, "number");
        let handle = TABLE.insert(Arc::new(1)).unwrap();
        let held = TABLE.hold_in_turn(handle).unwrap();
        assert_eq!(TABLE.hold_alone(handle).map(drop).unwrap_err().status, NV_ERR_STATE_IN_USE);
        drop(held);
        assert!(TABLE.hold_alone(handle).is_ok());
    }
}
