//! What a replay does on channels of the caller's: words that another frontend made.

use super::super::super::guard::status;
use super::super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::super::handles::REPLAYS;
use super::super::opaque::tegrarm_replay;
use super::super::pointers::{give_any, present};
use crate::runtime::place::{Place, Width};
use crate::runtime::replay::{Channel, Counter, Source, Value};
use crate::status::{RmResult, fail};
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;

/// A channel of the caller's. Set `size` to `sizeof`; later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_replay_channel {
    /// `sizeof(struct tegrarm_replay_channel)` as the caller knows it.
    pub size: usize,
    /// The GPFIFO: entries of 8 bytes.
    pub ring: *mut u64,
    /// How many entries: a power of two.
    pub entries: u32,
    /// The channel's work submit token.
    pub token: u32,
    /// `GPPut` in its USERD.
    pub gp_put: *mut u32,
    /// The doorbell: the word at 0x90 of the usermode page.
    pub doorbell: *mut u32,
    /// Number of entries ever written to the ring: read and advanced by each submit, the caller's in between.
    pub put: *mut u64,
    /// Its error notifier (16 bytes), or NULL: then a stopped channel is a timeout.
    pub notifier: *const c_void,
}

/// What a patch point gets in each run: `(source + add) >> shift & mask`, modulo 2^64.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_replay_value {
    /// 0 nothing; 1 the timeline's number before the run; 2 the number of the run, from the kick counter plus 1; 3 a
    /// value of the run.
    pub source: u32,
    /// Which value of the run, for source 3.
    pub slot: u32,
    /// Added.
    pub add: u64,
    /// Bits that are kept, after the shift.
    pub mask: u64,
    /// Shift to the right, below 64.
    pub shift: u32,
    /// 0.
    pub reserved: u32,
}

/// Tells a replay without a device about a channel. `*index`, if not NULL, is what `tegrarm_replay_push` names it by.
///
/// Errors: 0x57 no such replay, 0x3D NULL, 0x3A `channel->size` too small, 0x1F a replay with a device or a number of
/// entries that is no power of two, 0x1E a pointer that is not aligned, 0x40 the replay has run, 0x63 another thread is in
/// a call of it.
///
/// # Safety
/// `channel` is NULL or points at `channel->size` bytes. Until the replay ends its pointers are valid, and between a
/// submit and the next nobody else submits to the channel with another idea of `*put`. `index` is NULL or valid for
/// writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_add_channel(
    replay: *mut tegrarm_replay,
    channel: *const tegrarm_replay_channel,
    index: *mut NvU32,
) -> NV_STATUS {
    status(|| {
        present(channel, "channel")?;
        // SAFETY: the first field is there in every version of the structure.
        let size = unsafe { (&raw const (*channel).size).read_unaligned() };
        if size < size_of::<tegrarm_replay_channel>() {
            fail!(NV_ERR_INVALID_PARAM_STRUCT, "channel->size is {size}: set it to sizeof");
        }
        // SAFETY: `size` says that all of it is there.
        let c = unsafe { channel.read_unaligned() };
        // SAFETY: `notifier` is NULL or valid until the replay ends, as `tegrarm_replay_add_channel` asks of its
        // caller.
        let status = unsafe { notifier_status(c.notifier) }?;
        // SAFETY: each of these pointers is NULL or valid until the replay ends, as `tegrarm_replay_add_channel` asks
        // of its caller.
        let known = unsafe {
            Channel {
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

/// Says when a run of a replay without a device has finished: when `*signal`, which the words release, reaches
/// `*timeline` plus `step`.
///
/// `*timeline` is read and advanced by `step`, `*kick` by 1, with each submit; both are the caller's in between.
/// Errors: 0x57 no such replay, 0x3D NULL, 0x1F a replay with a device, 0x1E a pointer that is not aligned, 0x40 the
/// replay has run, 0x63 another thread is in a call of it.
///
/// # Safety
/// Until the replay ends the pointers are valid for reads, `timeline` and `kick` for writes too.
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

/// Adds a patch point: each run writes `value` to the `size` bytes (1, 2, 4, 8) at `where`, keeping the bits of `keep`.
///
/// Patches and pushes are carried out in the order in which they were added. Errors: 0x57 no such replay, 0x3D NULL,
/// 0x1F a bad size, source or shift, 0x1E `where` is not aligned, 0x40 the replay has run, 0x63 another thread is in a call
/// of it.
///
/// # Safety
/// Until the replay ends, `where` is valid for reads and writes of `size` bytes; `value` is NULL or valid for reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_patch(
    replay: *mut tegrarm_replay,
    r#where: *mut c_void,
    size: NvU32,
    keep: NvU64,
    value: *const tegrarm_replay_value,
) -> NV_STATUS {
    status(|| {
        present(value, "value")?;
        // SAFETY: `value` is not NULL and so valid for reads, as `tegrarm_replay_patch` asks of its caller.
        let v = unsafe { value.read_unaligned() };
        let source = match v.source {
            0 => Source::Constant,
            1 => Source::Timeline,
            2 => Source::Kick,
            3 => Source::Slot(v.slot),
            other => fail!(NV_ERR_INVALID_ARGUMENT, "source {other} of a patch point: 0 to 3 are known"),
        };
        let width = Width::of(size)?;
        // SAFETY: `where` is NULL or valid until the replay ends, as `tegrarm_replay_patch` asks of its caller.
        let place = unsafe { place(r#where, width, "where") }?;
        let value = Value { source, add: v.add, shift: v.shift, mask: v.mask };
        REPLAYS.hold_alone(replay)?.patch(place, width, keep, value)
    })
}

/// Adds a run of words at GPU address `address` for a channel: each run writes a ring entry for it and rings the doorbell.
/// Errors: 0x57 no such replay, 0x1F no such channel, a replay with a device, no words, 2^21 or more, an address that is
/// not aligned or above 2^40, more pushes than the ring has entries, 0x40 the replay has run, 0x63 another thread is in a
/// call of it.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_push(
    replay: *mut tegrarm_replay,
    channel: NvU32,
    address: NvU64,
    words: NvU32,
) -> NV_STATUS {
    status(|| REPLAYS.hold_alone(replay)?.push(channel, address, words))
}
