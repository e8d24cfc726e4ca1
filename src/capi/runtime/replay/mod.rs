//! Replays: made, run, ended. What they do is recorded by [`record`] and, for channels of the caller's, [`channels`].

pub mod record;

pub mod channels;

use super::super::guard::status;
use super::super::instance;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::device::TEGRARM_WAIT_FOREVER;
use super::handles::{DEVICES, QUEUES, REPLAYS};
use super::opaque::{tegrarm_device, tegrarm_queue, tegrarm_replay};
use super::pointers::{give, give_any, present};
use crate::runtime::device::queue_ref::QueueRef;
use crate::runtime::memory::place::Place;
use crate::runtime::replay::{self, Replay};
use std::time::Duration;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// The number of nanoseconds for which a wait for a replay reads in a loop before it sleeps. `tegrarm_replay_spin`
/// changes it.
pub const TEGRARM_REPLAY_SPIN_NS: u64 = 20_000;
/// A run has at most this many values.
pub const TEGRARM_REPLAY_SLOTS: u32 = 65_536;
/// A push has at most this many words.
pub const TEGRARM_REPLAY_WORDS: u32 = 2_097_151;

const _: () = assert!(TEGRARM_REPLAY_SPIN_NS as u128 == replay::SPIN.as_nanos());
const _: () = assert!(TEGRARM_REPLAY_SLOTS == replay::MOST_SLOTS && TEGRARM_REPLAY_WORDS == replay::MOST_WORDS);

/// Makes an empty replay. The functions below record what it does in each run. The first submit ends the recording.
///
/// With a device, launches, copies and fills are recorded, with `tegrarm_replay_launch`, `tegrarm_replay_copy` and
/// `tegrarm_replay_fill`. They run one after another, in a run of `tegrarm_replay_submit` on a channel of the replay, after all work
/// that the device was given before the run, or with `tegrarm_replay_enqueue` in a queue. If `device` is NULL, words for channels of the caller are recorded, with `tegrarm_replay_add_channel` and `tegrarm_replay_push`.
/// `*replay` is a new handle. End it with `tegrarm_replay_destroy`.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `replay` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is neither NULL nor an open device.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_create(
    device: *mut tegrarm_device,
    replay: *mut *mut tegrarm_replay,
) -> NV_STATUS {
    status(|| {
        present(replay, "replay")?;
        let made = match device.is_null() {
            true => Replay::foreign(instance::current_kmd()),
            false => Replay::on(&DEVICES.get(device)?),
        };
        let handle = REPLAYS.insert(made)?;
        // SAFETY: `replay` is not NULL and so valid for writes, as `tegrarm_replay_create` asks of its caller.
        unsafe { give(replay, handle, "replay") }
    })
}

/// Ends a replay. The call waits for a call of another thread, and then up to ten seconds for a run that has not
/// finished. The outputs of that run are not copied.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_destroy(replay: *mut tegrarm_replay) -> NV_STATUS {
    status(|| REPLAYS.remove(replay).map(drop))
}

/// Sets how many nanoseconds a wait for this replay spins before it sleeps. The first value is
/// `TEGRARM_REPLAY_SPIN_NS`.
///
/// A wait that ends while it spins makes no system call. If the last run took more than eight times as long, the next
/// wait does not spin. It sleeps for most of that time and then in small steps. A virtual GPU works on the processors of
/// the program, so a wait for one spins only after a call of this function.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_spin(replay: *mut tegrarm_replay, nanoseconds: NvU64) -> NV_STATUS {
    status(|| {
        REPLAYS.hold_alone(replay)?.set_spin(Duration::from_nanos(nanoseconds));
        Ok(())
    })
}

/// Starts a run: copies the inputs, writes the patch points, gives the words to the GPU, and returns at once.
///
/// `values` are the values of the run, one for each slot, and `count` is their number. They are NULL and 0 if no slot
/// was recorded. The first submit ends the recording, and opens the channel. Every later one makes no system call, allocates nothing and never
/// waits for a lock.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_POINTER`: `values` is NULL and `count` is not 0.
/// - `NV_ERR_INVALID_STATE`: the last run has not been waited for, nothing was recorded, or a replay without a device
///   has no timeline.
/// - `NV_ERR_INVALID_ARGUMENT`: `count` is not the number of slots.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped a channel of the replay.
/// - `NV_ERR_NO_MEMORY`: the first submit does not get the memory that it needs. It can be tried again.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the first submit gets no channel of the GPU. It can be tried again.
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

/// Waits until the run has finished, then copies the outputs. The call returns at once if no run was started.
///
/// It spins for as long as `tegrarm_replay_spin` says, and then sleeps. `timeout_ns` is how long to wait at most, in
/// nanoseconds. `TEGRARM_WAIT_FOREVER` sets no limit, and `TEGRARM_WAIT_POLL` looks without sleeping.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped a channel of the replay. The call returns at once, and
///   `tegrarm_last_error` names the fault.
/// - `NV_ERR_TIMEOUT`: the time is over. The run goes on and can be waited for again.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_wait(replay: *mut tegrarm_replay, timeout_ns: NvU64) -> NV_STATUS {
    status(|| REPLAYS.hold_alone(replay)?.wait(deadline(timeout_ns)))
}

/// Does what `tegrarm_replay_submit` and `tegrarm_replay_wait` do, in one call: one iteration of a control loop.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_POINTER`: `values` is NULL and `count` is not 0.
/// - `NV_ERR_INVALID_STATE`: the last run has not been waited for, nothing was recorded, or a replay without a device
///   has no timeline.
/// - `NV_ERR_INVALID_ARGUMENT`: `count` is not the number of slots.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped a channel of the replay.
/// - `NV_ERR_TIMEOUT`: the time is over. The run goes on and can be waited for with `tegrarm_replay_wait`.
/// - `NV_ERR_NO_MEMORY`: the first run does not get the memory that it needs. It can be tried again.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the first run gets no channel of the GPU. It can be tried again.
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

/// Gives a queue a run of a replay: it starts when the work that the queue has been given before has finished, and later work of the
/// queue waits for it. The call returns at once. If `fence` is not NULL, the fence of the run is written to `*fence`. NULL as `queue`
/// stands for the default queue of the replay's device.
///
/// A run can be given before the one before it has finished, to the same queue or to another one. Nobody has to wait for it with
/// `tegrarm_replay_wait`. The first run ends the recording. A replay with values, inputs or outputs is refused, because the CPU writes
/// these at the start and at the end of a run. A fault in a run stops the queue.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay, or `queue` is neither NULL nor a queue.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_STATE`: nothing was recorded, or the replay has values, inputs or outputs.
/// - `NV_ERR_INVALID_ARGUMENT`: the replay has no device, or it and the queue belong to two devices; or it has launches, and the queue
///   has a copy engine alone; or it has more than `TEGRARM_REPLAY_WORDS` words.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory for the first run, or for the local memory of the kernels.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_enqueue(
    replay: *mut tegrarm_replay,
    queue: *mut tegrarm_queue,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let named = if queue.is_null() { None } else { Some(QUEUES.get(queue)?) };
        let mut held = REPLAYS.hold_alone(replay)?;
        let queue = match (named, held.device()) {
            (Some(queue), _) => queue,
            (None, Some(device)) => QueueRef::own(device),
            (None, None) => fail!(NV_ERR_INVALID_ARGUMENT, "the replay has no device"),
        };
        let given = held.enqueue(&queue)?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_replay_enqueue` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

fn deadline(timeout_ns: NvU64) -> Option<Duration> {
    (timeout_ns != TEGRARM_WAIT_FOREVER).then(|| Duration::from_nanos(timeout_ns))
}
