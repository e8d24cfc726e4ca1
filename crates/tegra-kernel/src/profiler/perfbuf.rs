//! The memory of performance records: the address space of the unit that writes them, and the buffers in it.

use crate::dispatch::{Call, Reply};
use crate::space::{AddressSpace, PAGE};
use std::sync::Arc;
use tegra_mm::Backing;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::r35::NVGPU_AS_MAP_BUFFER_FLAGS_DIRECT_KIND_CTRL_R35;
use tegrarm_kmd::Errno;
use zerocopy::FromZeros;

/// The window that the unit can address. The records come first, and the count of bytes comes after them.
const WINDOW: u64 = 4 << 30;

/// The address space of the unit that writes records. It exists while an object has reserved the stream.
#[derive(Debug)]
pub(crate) struct Perfbuf {
    space: Arc<AddressSpace>,
    /// The address of the records.
    pub window: u64,
}

impl Perfbuf {
    pub(crate) fn new(call: &Call<'_>) -> Result<Perfbuf, Errno> {
        let space = Arc::new(AddressSpace::of_perfbuf(call.board.chip));
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
    pub perfbuf: Perfbuf,
    /// The memory into which the unit writes how many bytes of records there are.
    pub count: Arc<Backing>,
}
