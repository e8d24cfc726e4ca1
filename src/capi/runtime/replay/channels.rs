//! What a replay does on channels of the caller's: words that another frontend made.

use super::super::super::guard::status;
use super::super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::super::handles::REPLAYS;
use super::super::opaque::tegrarm_replay;
use super::super::pointers::{extended, give_any, present};
use crate::runtime::memory::place::{Place, Width};
use crate::runtime::replay::{Counter, RingPlaces, Source, Value};
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// A channel of the caller. Set `size` to `sizeof(struct tegrarm_replay_channel)`. Later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_replay_channel {
    /// The size of the structure as the caller knows it.
    pub size: usize,
    /// The GPFIFO: an array of entries of 8 bytes.
    pub ring: *mut u64,
    /// How many entries the GPFIFO has: a power of two.
    pub entries: u32,
    /// The work submit token of the channel.
    pub token: u32,
    /// `GPPut` in the USERD of the channel (`struct AmpereAControlGPFifo` of tegrarm_abi.h).
    pub gp_put: *mut u32,
    /// The doorbell in the page of the usermode object, where a write of the token gives the GPU work.
    pub doorbell: *mut u32,
    /// How many entries were ever written to the GPFIFO. Each submit reads this number and advances it. Between two
    /// submits the caller may change it.
    pub put: *mut u64,
    /// The error notifier of the channel, 16 bytes, or NULL. Without a notifier, a channel that was stopped ends in a
    /// timeout.
    pub notifier: *const c_void,
}

/// Where the number of a patch point comes from: a value of `tegrarm_replay_value.source`.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_replay_source {
    /// The number 0, so that `add` alone is what is written.
    TEGRARM_REPLAY_SOURCE_CONSTANT = 0,
    /// The number of the timeline before the run.
    TEGRARM_REPLAY_SOURCE_TIMELINE = 1,
    /// The number of the run: the kick counter before the run, plus 1.
    TEGRARM_REPLAY_SOURCE_KICK = 2,
    /// A value of the run: the one that `slot` names.
    TEGRARM_REPLAY_SOURCE_SLOT = 3,
}

const CONSTANT: u32 = tegrarm_replay_source::TEGRARM_REPLAY_SOURCE_CONSTANT as u32;
const TIMELINE: u32 = tegrarm_replay_source::TEGRARM_REPLAY_SOURCE_TIMELINE as u32;
const KICK: u32 = tegrarm_replay_source::TEGRARM_REPLAY_SOURCE_KICK as u32;
const SLOT: u32 = tegrarm_replay_source::TEGRARM_REPLAY_SOURCE_SLOT as u32;

/// The value of a patch point in each run: `(source + add) >> shift & mask`, modulo 2^64.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_replay_value {
    /// A value of `enum tegrarm_replay_source`: where the number comes from.
    pub source: u32,
    /// Which value of the run, from 0, if `source` is `TEGRARM_REPLAY_SOURCE_SLOT`.
    pub slot: u32,
    /// What is added to the number.
    pub add: u64,
    /// Which bits are kept after the shift.
    pub mask: u64,
    /// By how many bits the sum is shifted to the right: less than 64.
    pub shift: u32,
    /// Must be 0.
    pub reserved: u32,
}

/// Tells a replay without a device about a channel of the caller. If `index` is not NULL, `*index` is the number by
/// which `tegrarm_replay_push` names the channel.
///
/// The pointers in `*channel` must stay valid until the replay ends. Between two submits, other code that submits to the
/// channel must count its entries in `*channel->put`. `channel` itself is not used after the call.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `channel`, or a pointer in it other than `notifier`, is NULL.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `channel->size` is smaller than the structure, or larger than any version of it can be.
/// - `NV_ERR_LIB_RM_VERSION_MISMATCH`: a field is set that a later version of the library added.
/// - `NV_ERR_INVALID_ADDRESS`: a pointer in `*channel` is not aligned.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
/// - `NV_ERR_INVALID_ARGUMENT`: `channel->entries` is less than 2 or no power of two, or the replay has a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_add_channel(
    replay: *mut tegrarm_replay,
    channel: *const tegrarm_replay_channel,
    index: *mut NvU32,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `channel` is NULL or valid for as many bytes as its first field says, as `tegrarm_replay_add_channel` asks of its
        // caller.
        let c = unsafe { extended(channel, "channel") }?;
        // SAFETY: `notifier` is NULL or valid until the replay ends, as `tegrarm_replay_add_channel` asks of its
        // caller.
        let status = unsafe { notifier_status(c.notifier) }?;
        // SAFETY: each of these pointers is NULL or valid until the replay ends, as `tegrarm_replay_add_channel` asks
        // of its caller.
        let known = unsafe {
            RingPlaces {
                ring: place(c.ring, Width::W8, "channel->ring")?,
                entries: c.entries,
                gp_put: place(c.gp_put, Width::W4, "channel->gp_put")?,
                doorbell: place(c.doorbell, Width::W4, "channel->doorbell")?,
                token: c.token,
                put: Counter::Shared(place(c.put, Width::W8, "channel->put")?),
                status,
            }
        };
        let number = REPLAYS.hold_alone(replay)?.channel(known)?;
        // SAFETY: `index` is NULL or valid for writes, as `tegrarm_replay_add_channel` asks of its caller.
        unsafe { give_any(index, number) };
        Ok(())
    })
}

/// # Safety
/// `p` is NULL or valid for every access of the replay.
unsafe fn place<T>(p: *const T, width: Width, name: &str) -> RmResult<Place> {
    present(p, name)?;
    // SAFETY: `p` is not NULL and so valid for every access of the replay, as this function asks of its caller.
    let place = unsafe { Place::foreign(p as usize) };
    place.check(width)?;
    Ok(place)
}

/// The last word of a notifier; its high half is the status.
///
/// # Safety
/// `p` is NULL or valid for reads of 16 bytes for as long as the replay lives.
unsafe fn notifier_status(p: *const c_void) -> RmResult<Option<Place>> {
    if p.is_null() {
        return Ok(None);
    }
    // SAFETY: the word at 12 is one of the 16 bytes that this function asks of its caller.
    unsafe { place(p.cast::<u8>().add(12), Width::W4, "channel->notifier") }.map(Some)
}

/// Says when a run of a replay without a device has finished: when the number at `signal`, which the recorded words
/// release, reaches `*timeline` plus `step`.
///
/// Each submit reads `*timeline` and adds `step` to it, and adds 1 to `*kick`. Between two submits the caller may
/// change both. The three pointers must stay valid until the replay ends.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `signal`, `timeline` or `kick` is NULL.
/// - `NV_ERR_INVALID_ADDRESS`: a pointer is not aligned to 8 bytes.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
/// - `NV_ERR_INVALID_ARGUMENT`: the replay has a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_timeline(
    replay: *mut tegrarm_replay,
    signal: *const NvU64,
    timeline: *mut NvU64,
    step: NvU64,
    kick: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        // SAFETY: each is NULL or valid until the replay ends, as `tegrarm_replay_timeline` asks of its caller.
        let (signal, timeline, kick) = unsafe {
            let signal = place(signal, Width::W8, "signal")?;
            let timeline = Counter::Shared(place(timeline, Width::W8, "timeline")?);
            (signal, timeline, Counter::Shared(place(kick, Width::W8, "kick")?))
        };
        REPLAYS.hold_alone(replay)?.timeline(signal, timeline, step, kick)
    })
}

/// Adds a patch point: each run writes `value` to the `size` bytes at `dst`. The bits that are set in `keep` stay as
/// they are. `size` is 1, 2, 4 or 8.
///
/// A run carries out the patches and pushes in the order in which they were added. `dst` must stay valid until the
/// replay ends. `value` itself is not used after the call.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `value` or `dst` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `size`, `value->source`, `value->slot`, `value->shift` or `value->reserved` has a value
///   that it cannot have.
/// - `NV_ERR_INVALID_ADDRESS`: `dst` is not aligned to `size`.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_patch(
    replay: *mut tegrarm_replay,
    dst: *mut c_void,
    size: NvU32,
    keep: NvU64,
    value: *const tegrarm_replay_value,
) -> NV_STATUS {
    status(|| {
        present(value, "value")?;
        // SAFETY: `value` is not NULL and so valid for reads, as `tegrarm_replay_patch` asks of its caller.
        let v = unsafe { value.read_unaligned() };
        let source = match v.source {
            CONSTANT => Source::Constant,
            TIMELINE => Source::Timeline,
            KICK => Source::Kick,
            SLOT => Source::Slot(v.slot),
            other => fail!(NV_ERR_INVALID_ARGUMENT, "source {other} of a patch point: {CONSTANT} to {SLOT} are known"),
        };
        if v.reserved != 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "value->reserved is {:#x}: a patch point needs 0 there", v.reserved);
        }
        let width = Width::of(size)?;
        // SAFETY: `dst` is NULL or valid until the replay ends, as `tegrarm_replay_patch` asks of its caller.
        let place = unsafe { place(dst, width, "dst") }?;
        let value = Value { source, add: v.add, shift: v.shift, mask: v.mask };
        REPLAYS.hold_alone(replay)?.patch(place, width, keep, value)
    })
}

/// Adds words for a channel of the caller: each run writes a GPFIFO entry for the `words` words at GPU address
/// `address`, and rings the doorbell.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
/// - `NV_ERR_INVALID_ARGUMENT`: the replay has no channel `channel`, or it has a device.
/// - `NV_ERR_INVALID_ARGUMENT`: `words` is 0 or more than `TEGRARM_REPLAY_WORDS`.
/// - `NV_ERR_INVALID_ARGUMENT`: `address` is not a multiple of 4, or not below 2^40.
/// - `NV_ERR_INVALID_ARGUMENT`: a run would push as many times as the GPFIFO has entries, or more often.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_push(
    replay: *mut tegrarm_replay,
    channel: NvU32,
    address: NvU64,
    words: NvU32,
) -> NV_STATUS {
    status(|| REPLAYS.hold_alone(replay)?.push(channel, address, words))
}
