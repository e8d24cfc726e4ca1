//! WAIT: sleeps until a value in memory meets a condition (docs/hardware/nvgpu-channel.md#wait).

use super::state::Channel;
use crate::dispatch::{Call, Reply};
use nix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tegra_hw::Place;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_kmd::Errno;

/// The time after which a condition is checked again if no interrupt comes.
const SLICE: Duration = Duration::from_millis(20);
/// The offset of the status in a notification.
const STATUS: usize = 14;

pub(super) fn wait(call: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_wait_args) -> Reply {
    if channel.dead() {
        return Err(Errno::ETIMEDOUT.into());
    }
    match args.type_ {
        NVGPU_WAIT_TYPE_NOTIFIER => wait_notifier(call, channel, args),
        NVGPU_WAIT_TYPE_SEMAPHORE => wait_semaphore(call, channel, args),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// The reason why a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Met,
    Dead,
    Timeout,
    /// By a signal: the driver's ERESTARTSYS.
    Interrupted,
}

fn wait_notifier(call: &Call<'_>, channel: &Channel, args: &nvgpu_wait_args) -> Reply {
    const SIZE: u64 = size_of::<nvgpu_notification>() as u64;
    let place = place(call, args, SIZE)?;
    let status = || {
        let mut status = [0xff; 2];
        place.backing.read(place.offset + STATUS, &mut status) && status == [0; 2]
    };
    match sleep(call, channel, args.timeout, status) {
        End::Met => {
            // The time since Linux was started: the driver stores the nanoseconds of the second, and the second where the upper half of
            // the nanoseconds belongs. info32 and info16 say "completed" and name this channel.
            let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(|_| Errno::EINVAL)?;
            let mut record = [0; 16];
            record[..4].copy_from_slice(&(now.tv_nsec() as u32).to_le_bytes());
            record[4..8].copy_from_slice(&(now.tv_sec() as u32).to_le_bytes());
            record[8..12].copy_from_slice(&0xdead_beef_u32.to_le_bytes());
            record[12..14].copy_from_slice(&(channel.id() as u16).to_le_bytes());
            let written = place.backing.write(place.offset, &record);
            if written { Ok(()) } else { Err(Errno::EINVAL.into()) }
        }
        End::Dead => Err(Errno::ETIMEDOUT.into()),
        End::Timeout | End::Interrupted => Err(Errno::EINTR.into()),
    }
}

fn wait_semaphore(call: &Call<'_>, channel: &Channel, args: &nvgpu_wait_args) -> Reply {
    if !args.condition_notifier_offset.is_multiple_of(4) {
        return Err(Errno::EINVAL.into());
    }
    let place = place(call, args, 4)?;
    let payload = args.condition_notifier_padding1;
    let met = || place.backing.load_u32(place.offset) == Some(payload);
    match sleep(call, channel, args.timeout, met) {
        End::Met | End::Dead => Ok(()),
        End::Timeout => Err(Errno::ETIMEDOUT.into()),
        End::Interrupted => Err(Errno::EINTR.into()),
    }
}

/// The memory that an argument names.
fn place(call: &Call<'_>, args: &nvgpu_wait_args, size: u64) -> Reply<Place> {
    let buffer = call.dmabuf(args.condition_notifier_dmabuf_fd as i32).map_err(|_| Errno::EINVAL)?.buffer;
    let offset = u64::from(args.condition_notifier_offset);
    if offset + size > buffer.size {
        return Err(Errno::EINVAL.into());
    }
    let backing = buffer.pages().map_err(|_| Errno::EINVAL)?;
    Ok(Place { backing, offset: offset as usize })
}

/// Sleeps, without the channel's lock, until `met`, death, a signal or the time limit (milliseconds, 0 = none).
fn sleep(call: &Call<'_>, channel: &Channel, limit_ms: u32, met: impl Fn() -> bool) -> End {
    let deadline = (limit_ms > 0).then(|| Instant::now() + Duration::from_millis(u64::from(limit_ms)));
    let interrupts = &call.board.hw.interrupts;
    loop {
        let seen = interrupts.count();
        if met() {
            return End::Met;
        }
        if channel.dead() || channel.referencable().is_err() {
            return End::Dead;
        }
        let left = deadline.map_or(SLICE, |d| d.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return End::Timeout;
        }
        if call.process.interrupted() {
            return End::Interrupted;
        }
        interrupts.wait(seen, left.min(SLICE));
    }
}
