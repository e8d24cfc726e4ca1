//! The ioctls of streams of performance records: their buffers and their positions.
//!
//! Register operations on counters are refused here, so nothing is counted and a stream stays empty. The same happens
//! on a board whose counters nobody has programmed.

use super::object::{Profiler, Resource};
use super::perfbuf::{Perfbuf, Stream};
use crate::dispatch::{Call, Reply};
use crate::space::PAGE;
use std::sync::Arc;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_kmd::Errno;

/// The size of the largest buffer for records. In the window, the count has this offset.
const MAX_RECORDS: u64 = 0xffe0_0000;
/// The value of the count before the unit has written it.
const NOT_YET: u32 = u32::MAX;

pub(super) fn alloc(call: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_alloc_pma_stream_args) -> Reply {
    let mut state = prof.object.state.lock();
    if state.stream.is_some() {
        return Err(Errno::EINVAL.into());
    }
    prof.object.reserve_in(&mut state, Resource::PmaStream)?;
    match open(call, args) {
        Ok(Some(stream)) => {
            args.pma_buffer_va = stream.perfbuf.window;
            if !call.is_r35() {
                args.pma_channel_id = 0;
            }
            state.stream = Some(stream);
            Ok(())
        }
        other => {
            prof.object.release_in(&mut state, Resource::PmaStream)?;
            other.map(drop)
        }
    }
}

/// Maps the buffers. If the size of the map is too large, the driver makes no stream and reports success.
fn open(call: &Call<'_>, args: &nvgpu_profiler_alloc_pma_stream_args) -> Reply<Option<Stream>> {
    let perfbuf = Perfbuf::new(call)?;
    perfbuf.map(call, args.pma_bytes_available_buffer_fd, MAX_RECORDS, 0, PAGE)?;
    if args.pma_buffer_map_size > MAX_RECORDS {
        tracing::error!(
            "ALLOC_PMA_STREAM: {:#x} bytes are too many; as on a board, no stream and no error",
            args.pma_buffer_map_size
        );
        return Ok(None);
    }
    let records = call.dmabuf(args.pma_buffer_fd).map_err(|_| Errno::EINVAL)?;
    if records.buffer.size < args.pma_buffer_map_size {
        return Err(Errno::EINVAL.into());
    }
    perfbuf.map(call, args.pma_buffer_fd, 0, args.pma_buffer_offset, args.pma_buffer_map_size)?;
    let count = call.dmabuf(args.pma_bytes_available_buffer_fd).map_err(|_| Errno::EINVAL)?.kernel_view()?;
    Ok(Some(Stream { perfbuf, count }))
}

pub(super) fn free(_: &Call<'_>, prof: &Arc<Profiler>, _: &mut nvgpu_profiler_free_pma_stream_args) -> Reply {
    close(prof)
}

pub(super) fn free_r35(_: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    close(prof)
}

/// Closes the stream, after unbinding everything that is bound.
fn close(prof: &Profiler) -> Reply {
    let mut state = prof.object.state.lock();
    let stream = state.stream.take().ok_or(Errno::EINVAL)?;
    prof.object.release_in(&mut state, Resource::PmaStream)?;
    drop(state);
    drop(stream);
    Ok(())
}

/// Returns the position of the stream. Before the resources are bound, the unit does not answer, so a caller that waits
/// gets `ETIMEDOUT`. A board takes ten seconds for that.
pub(super) fn update(
    _: &Call<'_>,
    prof: &Arc<Profiler>,
    args: &mut nvgpu_profiler_pma_stream_update_get_put_args,
) -> Reply {
    let asks = |flag| args.flags & flag != 0;
    let state = prof.object.state.lock();
    let stream = state.stream.as_ref().ok_or(Errno::EINVAL)?;
    let available = if state.bound { 0 } else { NOT_YET };
    if asks(NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_UPDATE_AVAILABLE_BYTES) {
        let stored = stream.count.store_u32(0, available);
        debug_assert!(stored, "the count's page was mapped when the stream was made");
        if asks(NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_WAIT_FOR_UPDATE) {
            if available == NOT_YET {
                return Err(Errno::ETIMEDOUT.into());
            }
            args.bytes_available = u64::from(available);
        }
    }
    if asks(NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_RETURN_PUT_PTR) {
        // The register has the low half of the address of the next record.
        args.put_ptr = stream.perfbuf.window & u64::from(u32::MAX);
    }
    Ok(())
}
