//! Handles: numbers that stand for objects. A handle that was given back is recognised, never followed.

use super::super::instance::Cell;
use super::buffers::tegrarm_buffer;
use super::device::tegrarm_device;
use super::modules::{tegrarm_kernel, tegrarm_module};
use super::replay::tegrarm_replay;
use super::slots::{Held, Slots};
use crate::runtime::device::{Buffer, CLOSE_DEADLINE, Device};
use crate::runtime::hostobj::HostObject;
use crate::runtime::module::{KernelRef, Module};
use crate::runtime::replay::Replay;
use crate::status::{RmError, RmResult};
use parking_lot::RwLock;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// What a handle stands for.
#[derive(Clone)]
pub(super) enum Entry {
    Device(Arc<Device>),
    Buffer(Arc<Buffer>),
    Module(Arc<Module>),
}

impl Entry {
    pub(super) fn device(&self) -> &Arc<Device> {
        match self {
            Entry::Device(d) => d,
            Entry::Buffer(b) => b.device(),
            Entry::Module(m) => m.device(),
        }
    }
}

/// One row of the table. A handle is a row's number and the generation it was given out in, so that no handle is ever
/// given out twice.
#[derive(Default)]
struct Row {
    generation: u32,
    entry: Option<Entry>,
}

struct Table {
    rows: Vec<Row>,
    free: Vec<u32>,
}

impl Table {
    const EMPTY: Table = Table { rows: Vec::new(), free: Vec::new() };

    fn insert(&mut self, entry: Entry) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Row::default());
            self.rows.len() as u32 - 1
        });
        let row = &mut self.rows[index as usize];
        row.generation += 1;
        row.entry = Some(entry);
        u64::from(row.generation) << 32 | u64::from(index)
    }

    #[inline]
    fn find(&self, handle: u64) -> Option<&Entry> {
        let row = self.rows.get(handle as u32 as usize)?;
        if u64::from(row.generation) == handle >> 32 { row.entry.as_ref() } else { None }
    }

    fn devices(&self) -> Vec<Arc<Device>> {
        let entries = self.rows.iter().filter_map(|row| row.entry.as_ref());
        entries.filter_map(|e| if let Entry::Device(d) = e { Some(d.clone()) } else { None }).collect()
    }

    fn remove(&mut self, doomed: impl Fn(u64, &Entry) -> bool) -> Vec<Entry> {
        let mut gone = Vec::new();
        for (index, row) in (0..).zip(&mut self.rows) {
            let handle = u64::from(row.generation) << 32 | u64::from(index);
            if row.entry.as_ref().is_some_and(|entry| doomed(handle, entry)) {
                gone.extend(row.entry.take());
                // A row whose generations are used up is never given out again.
                if row.generation < u32::MAX {
                    self.free.push(index);
                }
            }
        }
        gone
    }
}

/// A kernel, with the handle of its module.
pub(super) struct Kernel {
    pub kernel: KernelRef,
    pub module: u64,
}

/// All kernels of this process.
pub(super) static KERNELS: Slots<Kernel> = Slots::new(0, "kernel");
/// All replays of this process.
pub(super) static REPLAYS: Slots<Replay> = Slots::new(1, "replay");
/// All host objects of this process.
pub(super) static OBJECTS: Slots<HostObject> = Slots::new(2, "object");
/// All other handles of this process.
static HANDLES: Cell<RwLock<Table>> = Cell::new(RwLock::new(Table::EMPTY));

/// In a forked child: the handles are the parent's.
///
/// # Safety
/// No other thread exists.
pub(in super::super) unsafe fn forget_handles() {
    // SAFETY: the caller's promise, every time.
    unsafe {
        HANDLES.replace(RwLock::new(Table::EMPTY));
        KERNELS.forget();
        REPLAYS.forget();
        OBJECTS.forget();
    }
}

/// Closes every handle.
pub(in super::super) fn close_all() {
    let devices = HANDLES.get().read().devices();
    devices.into_iter().for_each(|device| close_device(&device));
    REPLAYS.close(|_| true);
    OBJECTS.close(|_| true);
}

/// Closes a device and everything that belongs to it. What keeps something else alive goes before it.
pub(super) fn close_device(device: &Arc<Device>) {
    REPLAYS.close(|replay| replay.device().is_some_and(|d| Arc::ptr_eq(d, device)));
    device.settle(CLOSE_DEADLINE);
    KERNELS.close(|of| Arc::ptr_eq(of.kernel.module().device(), device));
    drop_in_order(remove(|_, entry| Arc::ptr_eq(entry.device(), device)));
}

/// Not under the lock: closing waits for the GPU.
fn drop_in_order(mut doomed: Vec<Entry>) {
    doomed.sort_by_key(|entry| matches!(entry, Entry::Device(_)));
}

pub(super) fn insert<T>(entry: Entry) -> *mut T {
    HANDLES.get().write().insert(entry) as *mut T
}

#[inline]
fn find<T, U>(handle: *const T, what: &str, of: impl Fn(&Entry) -> Option<U>) -> RmResult<U> {
    match HANDLES.get().read().find(handle as u64).and_then(of) {
        Some(found) => Ok(found),
        None => Err(unknown(handle as u64, what)),
    }
}

/// The error of a handle that stands for nothing.
#[cold]
pub(super) fn unknown(handle: u64, what: &str) -> RmError {
    let text = format!("{handle:#x} is no {what}: it was never made, or closed, or belongs to another process");
    RmError::new(NV_ERR_OBJECT_NOT_FOUND, text)
}

pub(super) fn device(handle: *const tegrarm_device) -> RmResult<Arc<Device>> {
    find(handle, "device", |e| if let Entry::Device(d) = e { Some(d.clone()) } else { None })
}

pub(super) fn buffer(handle: *const tegrarm_buffer) -> RmResult<Arc<Buffer>> {
    find(handle, "buffer", |e| if let Entry::Buffer(b) = e { Some(b.clone()) } else { None })
}

pub(super) fn module(handle: *const tegrarm_module) -> RmResult<Arc<Module>> {
    find(handle, "module", |e| if let Entry::Module(m) = e { Some(m.clone()) } else { None })
}

/// Holds a kernel for one call; another thread's call of it waits.
#[inline(always)]
pub(super) fn kernel(handle: *const tegrarm_kernel) -> RmResult<Held<Kernel>> {
    KERNELS.hold_in_turn(handle as u64)
}

/// Holds a replay for one call; another thread's call of it is refused.
#[inline(always)]
pub(super) fn replay(handle: *const tegrarm_replay) -> RmResult<Held<Replay>> {
    REPLAYS.hold_alone(handle as u64)
}

/// Takes entries out of the table, to be dropped where no lock is held.
pub(super) fn remove(doomed: impl Fn(u64, &Entry) -> bool) -> Vec<Entry> {
    HANDLES.get().write().remove(doomed)
}
