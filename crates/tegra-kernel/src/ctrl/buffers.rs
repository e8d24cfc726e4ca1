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
    let required = u32::from(args.comptags_alloc_control);
    if args.metadata_size > NVGPU_GPU_REGISTER_BUFFER_METADATA_MAX_SIZE || required > NVGPU_GPU_COMPTAGS_ALLOC_REQUIRED
    {
        return Err(Errno::EINVAL.into());
    }
    let buffer = call.dmabuf(args.dmabuf_fd)?.buffer;
    let mut metadata = vec![0; args.metadata_size as usize];
    call.copy_in(args.metadata_addr, &mut metadata)?;
    let mut registration = buffer.registration.lock();
    let modify = args.flags & NVGPU_GPU_REGISTER_BUFFER_FLAGS_MODIFY != 0;
    if registration.as_ref().is_some_and(|old| !modify || !old.mutable) {
        return Err(Errno::EINVAL
            .because("the buffer is registered already, and not as one that may be modified")
            .into());
    }
    // Small pages are never compressed, so there is no comptag to give.
    if required == NVGPU_GPU_COMPTAGS_ALLOC_REQUIRED {
        return Err(Errno::ENOMEM.because("small pages are never compressed, so there are no comptags").into());
    }
    let mutable = args.flags & NVGPU_GPU_REGISTER_BUFFER_FLAGS_MUTABLE != 0;
    *registration = Some(Registration { metadata, mutable });
    args.flags = 0;
    Ok(())
}

/// The argument is a union: it has {dmabuf_fd, metadata_size, metadata_addr} on entry, and the answer on return.
pub(super) fn get_buffer_info(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_get_buffer_info_args) -> Reply {
    let (dmabuf_fd, room) = (args.out_flags as i32, (args.out_flags >> 32) as usize);
    let metadata_addr = u64::from(args.out_reserved) << 32 | u64::from(args.out_metadata_size);
    let buffer = call.dmabuf(dmabuf_fd)?.buffer;
    let registration = buffer.registration.lock().clone();
    args.out_flags = 0;
    args.out_metadata_size = 0;
    args.out_reserved = 0;
    args.out_size = buffer.size;
    if let Some(Registration { metadata, mutable }) = registration {
        args.out_flags |= u64::from(NVGPU_GPU_BUFFER_INFO_FLAGS_METADATA_REGISTERED);
        args.out_flags |= if mutable { u64::from(NVGPU_GPU_BUFFER_INFO_FLAGS_MUTABLE_METADATA) } else { 0 };
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
