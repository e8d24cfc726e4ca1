//! REGISTER_BUFFER, GET_BUFFER_INFO, and the graphics compression path
//! (docs/hardware/nvgpu-ctrl.md#cache-debug-suspend, docs/hardware/nvgpu-ctrl.md#register-buffer).

use super::node::Ctrl;
use crate::dispatch::{Call, Reply};
use crate::nvmap::Registration;
use crate::rule::Because;
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_kmd::Errno;

pub(super) fn register_buffer(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_register_buffer_args) -> Reply {
    let control = u32::from(args.comptags_alloc_control);
    if args.metadata_size > NVGPU_GPU_REGISTER_BUFFER_METADATA_MAX_SIZE || control > NVGPU_GPU_COMPTAGS_ALLOC_REQUIRED {
        return Err(Errno::EINVAL.into());
    }
    let dmabuf = call.dmabuf(args.dmabuf_fd)?;
    let mut registration = dmabuf.registration().lock();
    let modify = args.flags & NVGPU_GPU_REGISTER_BUFFER_FLAGS_MODIFY != 0;
    if registration.as_ref().is_some_and(|old| !modify || !old.mutable) {
        return Err(Errno::EINVAL
            .because("the buffer is registered already, and not as one that may be modified")
            .into());
    }
    let mut metadata = vec![0; args.metadata_size as usize];
    call.copy_in(args.metadata_addr, &mut metadata)?;
    let mutable = args.flags & NVGPU_GPU_REGISTER_BUFFER_FLAGS_MUTABLE != 0;
    // There are as many tags as memory, so a request is always granted.
    let comptags = control != NVGPU_GPU_COMPTAGS_ALLOC_NONE;
    *registration = Some(Registration { metadata, mutable, comptags });
    args.flags = if comptags { NVGPU_GPU_REGISTER_BUFFER_FLAGS_COMPTAGS_ALLOCATED } else { 0 };
    Ok(())
}

/// The argument is a union: it has {dmabuf_fd, metadata_size, metadata_addr} on entry, and the answer on return. The answer does
/// not write `out_reserved`, which keeps the upper half of the address.
pub(super) fn get_buffer_info(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_get_buffer_info_args) -> Reply {
    let (dmabuf_fd, room) = (args.out_flags as i32, (args.out_flags >> 32) as usize);
    let metadata_addr = u64::from(args.out_reserved) << 32 | u64::from(args.out_metadata_size);
    let dmabuf = call.dmabuf(dmabuf_fd)?;
    let registration = dmabuf.registration().lock().clone();
    args.out_flags = 0;
    args.out_metadata_size = 0;
    args.out_size = dmabuf.buffer.size;
    if let Some(Registration { metadata, mutable, comptags }) = registration {
        let mut flags = NVGPU_GPU_BUFFER_INFO_FLAGS_METADATA_REGISTERED;
        flags |= if mutable { NVGPU_GPU_BUFFER_INFO_FLAGS_MUTABLE_METADATA } else { 0 };
        flags |= if comptags { NVGPU_GPU_BUFFER_INFO_FLAGS_COMPTAGS_ALLOCATED } else { 0 };
        args.out_flags = u64::from(flags);
        let size = metadata.len().min(room);
        call.copy_out(metadata_addr, &metadata[..size])?;
        args.out_metadata_size = metadata.len() as u32;
    }
    Ok(())
}

/// Refuses the path of the decompression engine. It is for graphics surfaces, and these chips have no firmware for it
/// here.
pub(super) fn prepare_compressible_read(
    _: &Call<'_>,
    _: &Arc<Ctrl>,
    _: &mut nvgpu_gpu_prepare_compressible_read_args,
) -> Reply {
    Err(Errno::EINVAL.into())
}

/// Refuses the path of the decompression engine, as above.
pub(super) fn mark_compressible_write(
    _: &Call<'_>,
    _: &Arc<Ctrl>,
    _: &mut nvgpu_gpu_mark_compressible_write_args,
) -> Reply {
    Err(Errno::EINVAL.into())
}
