//! Access bits of video memory, which say which pages the GPU has touched.

use super::object::Profiler;
use crate::dispatch::{Call, Reply};
use std::sync::Arc;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_kmd::Errno;

/// The number of ranges that the unit can watch.
const CHECKERS: u32 = 8;
/// The finest granularity, 64 KiB.
const MIN_SHIFT: u8 = 16;

/// Makes the driver's checks and then refuses with `ENOSYS`, because the simulator does not record which physical pages
/// are touched. A chip without the unit ignores all three calls.
pub(super) fn reserve(call: &Call<'_>, _: &Arc<Profiler>, args: &mut nvgpu_profiler_vab_reserve_args) -> Reply {
    if !call.board.chip.is_ga10b() {
        return Ok(());
    }
    if args.num_range_checkers == 0 {
        return Err(Errno::EINVAL.into());
    }
    // More ranges than the unit has are refused, but only after they were read.
    let checkers: Vec<nvgpu_profiler_vab_range_checker> =
        call.copy_in_array(args.range_checkers_ptr, args.num_range_checkers.min(CHECKERS) as usize)?;
    let too_fine = checkers.iter().any(|c| c.granularity_shift < MIN_SHIFT);
    let modes = [NVGPU_PROFILER_VAB_RANGE_CHECKER_MODE_ACCESS, NVGPU_PROFILER_VAB_RANGE_CHECKER_MODE_DIRTY];
    let unknown_mode = !modes.contains(&u32::from(args.vab_mode));
    if args.num_range_checkers > CHECKERS || too_fine || unknown_mode {
        return Err(Errno::EINVAL.into());
    }
    tracing::error!("VAB_RESERVE is not simulated: nobody notes which physical pages are touched");
    Err(Errno::ENOSYS.into())
}

pub(super) fn release(_: &Call<'_>, _: &Arc<Profiler>, _: &mut ()) -> Reply {
    Ok(())
}

/// Nothing can be reserved, so there is nothing to write.
pub(super) fn flush(call: &Call<'_>, _: &Arc<Profiler>, _: &mut nvgpu_profiler_vab_flush_state_args) -> Reply {
    if call.board.chip.is_ga10b() { Err(Errno::ENOSYS.into()) } else { Ok(()) }
}
