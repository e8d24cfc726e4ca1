//! Replays: made, run, ended. What they do is recorded by [`record`] and, for channels of the caller's, [`channels`].

pub mod record;

pub mod channels;

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{DEVICES, REPLAYS};
use super::opaque::{tegrarm_device, tegrarm_replay};
use super::pointers::{give, present};
use crate::runtime::place::Place;
use crate::runtime::replay::Replay;
use crate::status::RmResult;
use std::time::Duration;

/// Makes an empty replay. What it does in each run is recorded with the functions below; the first submit ends the
/// recording.
///
/// With a device, launches and copies are recorded (`tegrarm_replay_launch`, `tegrarm_replay_copy`); they run one after
/// another on a channel of the replay's own, after the work the device was given before the run. Without one (NULL),
/// words for channels of the caller's are (`tegrarm_replay_push`). `*replay` is a new handle; end it with
/// `tegrarm_replay_destroy`. Errors: 0x57 no such device, 0x3D NULL, 0x51 out of memory.
///
/// # Safety
/// `replay` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_create(
    device: *mut tegrarm_device,
    replay: *mut *mut tegrarm_replay,
) -> NV_STATUS {
    status(|| {
        present(replay, "replay")?;
        let made = if device.is_null() { Replay::foreign() } else { Replay::on(&DEVICES.get(device)?)? };
        let handle = REPLAYS.insert(made)?;
        // SAFETY: `replay` is not NULL and so valid for writes, as `tegrarm_replay_create` asks of its caller.
        unsafe { give(replay, handle, "replay") }
    })
}

/// Ends a replay. Waits up to ten seconds for a run in flight, whose outputs are not copied. Errors: 0x57 no such replay.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_destroy(replay: *mut tegrarm_replay) -> NV_STATUS {
    status(|| REPLAYS.remove(replay).map(drop))
}

/// Sets how long waits for this replay spin before they sleep, in nanoseconds; 20000 at first.
///
/// A wait that ends while it spins makes no system call. When the last run took more than eight times as long, the next
/// wait does not spin: it sleeps, through most of that time and then in small steps. Errors: 0x57 no such replay, 0x63
/// another thread is in a call of it.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_spin(replay: *mut tegrarm_replay, nanoseconds: NvU64) -> NV_STATUS {
    status(|| {
        REPLAYS.hold_alone(replay)?.set_spin(Duration::from_nanos(nanoseconds));
        Ok(())
    })
}

/// Starts a run: copies inputs, writes patch points, gives the GPU the words. Returns at once.
///
/// `values` are the run's values, one for each slot, `count` of them; NULL and 0 when no slot was recorded. From the
/// second submit on it makes no system call, allocates nothing and takes no lock. The first ends the recording.
/// Errors: 0x57 no such replay, 0x3D NULL, 0x63 another thread is in a call of it, 0x40 the last run has not been
/// waited for or nothing was recorded, 0x1F another number of values than of slots, 0x62 the channel was stopped by a
/// fault; the first submit also 0x51.
///
/// # Safety
/// `values` is valid for reads of `count` numbers; places and buffers that were recorded are still valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_submit(
    replay: *mut tegrarm_replay,
    values: *const NvU64,
    count: NvU32,
) -> NV_STATUS {
    // SAFETY: `values` is valid for reads of `count` numbers, as this function asks of its caller.
    status(|| unsafe { submit(&mut *REPLAYS.hold_alone(replay)?, values, count) })
}

/// # Safety
/// As `tegrarm_replay_submit`.
#[inline]
unsafe fn submit(replay: &mut Replay, values: *const NvU64, count: NvU32) -> RmResult<()> {
    if count > 0 {
        present(values, "values")?;
    }
    // SAFETY: read while the caller waits for this function, below `count`: `submit` compares it with the slots.
    replay.submit(&unsafe { Place::foreign(values as usize) }, count)
}

/// Waits until the run has finished, then copies outputs; returns at once when no run is in flight.
///
/// Spins as long as `tegrarm_replay_spin` says, then sleeps. `timeout_ns` is how long to wait at most, in nanoseconds;
/// `UINT64_MAX` waits for as long as it takes, 0 only looks. Errors: 0x57 no such replay, 0x63 another thread is in a call
/// of it, 0x62 a channel was stopped by a fault (at once; the sentence names it), 0x65 the time is over: the run is still
/// in flight and can be waited for again.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_wait(replay: *mut tegrarm_replay, timeout_ns: NvU64) -> NV_STATUS {
    status(|| REPLAYS.hold_alone(replay)?.wait(deadline(timeout_ns)))
}

/// `tegrarm_replay_submit` and `tegrarm_replay_wait` in one call: an iteration of a control loop. Errors as theirs.
///
/// # Safety
/// As `tegrarm_replay_submit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_run(
    replay: *mut tegrarm_replay,
    values: *const NvU64,
    count: NvU32,
    timeout_ns: NvU64,
) -> NV_STATUS {
    status(|| {
        let mut claimed = REPLAYS.hold_alone(replay)?;
        // SAFETY: `values` is valid for reads of `count` numbers, as `tegrarm_replay_submit` asks of its caller.
        unsafe { submit(&mut claimed, values, count) }?;
        claimed.wait(deadline(timeout_ns))
    })
}

fn deadline(timeout_ns: NvU64) -> Option<Duration> {
    (timeout_ns != u64::MAX).then(|| Duration::from_nanos(timeout_ns))
}
