//! Describes the kernel's interface in words and bytes, for a report about a release that is not known.

use super::nvmap::{ALLOCS, ask_alloc};
use super::release::Raw;
use super::{KernelError, nodes};
use std::fmt::Write;
use std::sync::Arc;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::nvmap::{NVMAP_IOC_CACHE_LIST, nvmap_cache_op_list};
use tegrarm_kmd::{Errno, Kmd, Node};
use zerocopy::FromZeros;

/// The number of bytes in a line.
const LINE: usize = 32;

/// Reports the characteristics as they lie in memory, the release that they are taken for, and which allocation command
/// nvmap knows. The queries change nothing.
///
/// # Errors
/// That of opening a node, or of asking for the characteristics.
pub fn report(kmd: &Arc<dyn Kmd>) -> Result<String, KernelError> {
    let ctrl = nodes::open(kmd, Node::Ctrl, nodes::CTRL)?;
    let raw = Raw::ask(&ctrl)?;
    let mut text = String::new();
    let mut line = |args: std::fmt::Arguments<'_>| writeln!(text, "{args}").expect("a string takes everything");
    line(format_args!("NVGPU_GPU_IOCTL_GET_CHARACTERISTICS: {} bytes", raw.size));
    for (at, bytes) in (0..).step_by(LINE).zip(raw.bytes().chunks(LINE)) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        line(format_args!("{at:4}: {hex}"));
    }
    match raw.understand() {
        Ok((release, _)) => line(format_args!("nvgpu is that of {release:?}")),
        Err(error) => line(format_args!("{error}")),
    }
    // These queries give the kernel masks without room for an answer. r39 may answer them.
    for (name, request) in [
        ("GET_PPC_MASKS", NVGPU_GPU_IOCTL_GET_PPC_MASKS),
        ("GET_ROP_MASKS", NVGPU_GPU_IOCTL_GET_ROP_MASKS),
        ("GET_FBP_LOCAL_TO_PHYSICAL_MAP", NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_PHYSICAL_MAP),
        ("GET_FBP_LOCAL_TO_LOGICAL_MAP", NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_LOGICAL_MAP),
    ] {
        let answer = ctrl.ioctl(request, &mut nvgpu_gpu_get_ppc_masks_args::new_zeroed());
        line(format_args!("NVGPU_GPU_IOCTL_{name} ({request:#010x}): {answer:?}"));
    }
    let nvmap = nodes::open(kmd, Node::Nvmap, nodes::NVMAP)?;
    // The list names no buffer, so the command does nothing.
    let answer = nvmap.ioctl(NVMAP_IOC_CACHE_LIST, &mut nvmap_cache_op_list::new_zeroed());
    line(format_args!("NVMAP_IOC_CACHE_LIST ({NVMAP_IOC_CACHE_LIST:#010x}): {answer:?}"));
    for (release, number) in ALLOCS {
        let answer = match ask_alloc(&nvmap, release) {
            Err(Errno::EINVAL) => "EINVAL, known".to_owned(),
            Err(Errno::ENOTTY) => "ENOTTY, not known".to_owned(),
            other => format!("{other:?}"),
        };
        line(format_args!("NVMAP_IOC_ALLOC of {release:?} ({number:#010x}) with handle 0: {answer}"));
    }
    Ok(text)
}
