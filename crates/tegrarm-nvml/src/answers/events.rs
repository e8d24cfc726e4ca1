//! Sets of events. The GPU has none that NVML knows, so that a wait ends when its time has passed, or when the set is freed.

use super::Device;
use crate::abi::{NVML_ERROR_INVALID_ARGUMENT, NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_TIMEOUT};
use crate::forked::Forked;
use crate::pointers::{give, present};
use crate::result::Answer;
use crate::session::device;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tegrarm_lock::{Condvar, Mutex};

type Set = *mut c_void;

/// Whether a set was freed, and who waits for it.
#[derive(Default)]
struct Waiting(Mutex<bool>, Condvar);

#[derive(Default)]
struct Sets {
    last: usize,
    there: BTreeMap<usize, Arc<Waiting>>,
}

static SETS: Forked<Sets> = Forked::new();

pub unsafe fn create(to: *mut Set) -> Answer {
    present(to)?;
    let mut sets = SETS.lock();
    sets.last += 1;
    let handle = sets.last;
    sets.there.insert(handle, Arc::default());
    drop(sets);
    // SAFETY: see `super`.
    unsafe { give(to, std::ptr::without_provenance_mut(handle)) }
}

pub unsafe fn free(set: Set) -> Answer {
    let removed = SETS.lock().there.remove(&set.addr()).ok_or(NVML_ERROR_INVALID_ARGUMENT)?;
    *removed.0.lock() = true;
    removed.1.notify_all();
    Ok(())
}

fn find(set: Set) -> Answer<Arc<Waiting>> {
    SETS.lock().there.get(&set.addr()).cloned().ok_or(NVML_ERROR_INVALID_ARGUMENT)
}

pub unsafe fn wait(set: Set, data: *mut c_void, milliseconds: u32) -> Answer {
    let waiting = find(set)?;
    present(data)?;
    let until = Instant::now() + Duration::from_millis(u64::from(milliseconds));
    let mut freed = waiting.0.lock();
    while !*freed {
        if waiting.1.wait_until(&mut freed, until).timed_out() {
            return Err(NVML_ERROR_TIMEOUT);
        }
    }
    Err(NVML_ERROR_INVALID_ARGUMENT)
}

pub unsafe fn supported(of: Device, to: *mut u64) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, 0) }
}

pub unsafe fn register(of: Device, types: u64, set: Set) -> Answer {
    device(of)?;
    find(set)?;
    if types == 0 { Ok(()) } else { Err(NVML_ERROR_NOT_SUPPORTED) }
}
