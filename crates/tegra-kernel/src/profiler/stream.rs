//! Streams of performance records to memory: their address space, their buffers and their positions.
//!
//! Register operations on counters are refused here, so nothing is counted and a stream stays empty. The same happens
//! on a board whose counters nobody has programmed.

use super::Profiler;
use super::object::Resource;
use crate::dispatch::{Call, Reply};
use crate::space::{AddressSpace, PAGE};
use std::sync::Arc;
use tegra_mm::Backing;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::r35::NVGPU_AS_MAP_BUFFER_FLAGS_DIRECT_KIND_CTRL_R35;
use tegrarm_kmd::Errno;
use zerocopy::FromZeros;

/// The window that the unit can address. The records come first, and the count of bytes comes after them.
const WINDOW: u64 = 4 << 30;
/// The size of the largest buffer for records. In the window, the count has this offset.
const MAX_RECORDS: u64 = 0xffe0_0000;
/// The value of the count before the unit has written it.
const NOT_YET: u32 = u32::MAX;

/// The address space of the unit that writes records. It exists while an object has reserved the stream.
#[derive(Debug)]
pub(crate) struct Perfbuf {
    space: Arc<AddressSpace>,
    /// The address of the records.
    pub window: u64,
}

impl Perfbuf {
    pub(crate) fn new(call: &Call<'_>) -> Result<Perfbuf, Errno> {
        let space = Arc::new(AddressSpace::of_perfbuf(call.kernel.chip));
        let window = space.reserve_area(WINDOW)?;
        Ok(Perfbuf { space, window })
    }

    /// Maps a part of a dmabuf at an offset of the window. The errors are those of MAP_BUFFER_EX.
    pub(crate) fn map(&self, call: &Call<'_>, fd: i32, at: u64, offset: u64, size: u64) -> Reply {
        let mut args = nvgpu_as_map_buffer_ex_args::new_zeroed();
        args.flags = NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
        if call.is_r35() {
            args.flags |= NVGPU_AS_MAP_BUFFER_FLAGS_DIRECT_KIND_CTRL_R35;
        }
        (args.dmabuf_fd, args.page_size, args.offset) = (fd as u32, PAGE as u32, self.window + at);
        (args.buffer_offset, args.mapping_size) = (offset, size);
        self.space.map(call, &args).map(drop)
    }
}

/// A stream whose buffers are mapped.
#[derive(Debug)]
pub(super) struct Stream {
    perfbuf: Perfbuf,
    /// The memory into which the unit writes how many bytes of records there are.
    count: Arc<Backing>,
}

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
