//! What lasts from nvmlInit to nvmlShutdown, and what the library keeps between two calls.

use crate::abi::*;
use crate::board::Board;
use crate::clients::{Client, Clients};
use crate::forked::Forked;
use crate::gpu::{Gpu, State};
use crate::result::Answer;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A monitor asks for a dozen values at once. The files are read again when the values are older than this.
const FRESH: Duration = Duration::from_millis(20);

/// How often nvmlInit was called without nvmlShutdown. A forked child goes on with its parent's number.
static INITIALIZED: AtomicU32 = AtomicU32::new(0);
static KEPT: Forked<Kept> = Forked::new();
/// The handle of a device is the address of its byte.
static HANDLES: [u8; 1] = [0];

#[derive(Default)]
struct Kept {
    gpu: Option<Arc<Gpu>>,
    board: Board,
    state: Option<(Instant, State)>,
    clients: Clients,
    found: Option<(Instant, Vec<Client>)>,
}

/// Whether nvmlInit was called more often than nvmlShutdown.
pub fn is_initialized() -> bool {
    INITIALIZED.load(Ordering::Acquire) > 0
}

/// Begins. With `gpus`, there must be a GPU.
pub fn begin(gpus: bool) -> Answer {
    if gpus {
        gpu()?;
    }
    INITIALIZED.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// Ends what one call of [`begin`] began.
pub fn end() -> Answer {
    let lowered = INITIALIZED.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| count.checked_sub(1));
    match lowered {
        Ok(1) => *KEPT.lock() = Kept::default(),
        Ok(_) => {}
        Err(_) => return Err(NVML_ERROR_UNINITIALIZED),
    }
    Ok(())
}

/// The GPU. The first call asks libtegrarm for it.
pub fn gpu() -> Answer<Arc<Gpu>> {
    let mut kept = KEPT.lock();
    if let Some(gpu) = &kept.gpu {
        return Ok(gpu.clone());
    }
    let gpu = Arc::new(Gpu::open()?);
    kept.gpu = Some(gpu.clone());
    Ok(gpu)
}

/// How many GPUs there are.
pub fn count() -> u32 {
    HANDLES.len() as u32
}

/// The handle of a GPU.
pub fn handle(index: u32) -> Answer<*mut c_void> {
    let byte = HANDLES.get(index as usize).ok_or(NVML_ERROR_INVALID_ARGUMENT)?;
    gpu()?;
    Ok((&raw const *byte).cast_mut().cast())
}

/// The index of a handle.
pub fn index(device: *mut c_void) -> Answer<u32> {
    let found = HANDLES.iter().position(|byte| std::ptr::eq(byte, device.cast()));
    found.map(|index| index as u32).ok_or(NVML_ERROR_INVALID_ARGUMENT)
}

/// The GPU of a handle.
pub fn device(device: *mut c_void) -> Answer<Arc<Gpu>> {
    index(device)?;
    gpu()
}

/// How the GPU of a handle is doing.
pub fn state(device: *mut c_void) -> Answer<State> {
    let index = index(device)?;
    gpu()?;
    let mut kept = KEPT.lock();
    if let Some((at, state)) = &kept.state
        && at.elapsed() < FRESH
    {
        return Ok(*state);
    }
    let state = State::read(index)?;
    kept.state = Some((Instant::now(), state));
    Ok(state)
}

/// Calls `look` with what the files of the board say.
pub fn board<T>(look: impl FnOnce(&Board) -> T) -> T {
    look(&KEPT.lock().board)
}

/// The processes that use the GPU. Who asks for their number and then for the list gets the same ones.
pub fn clients() -> Vec<Client> {
    let mut kept = KEPT.lock();
    if let Some((at, found)) = &kept.found
        && at.elapsed() < FRESH
    {
        return found.clone();
    }
    let found = kept.clients.look();
    kept.found = Some((Instant::now(), found.clone()));
    found
}
