//! The number of bytes that `VSMS_MAPPING` writes. Its argument has no length: the kernel writes one entry for each SM, and
//! the size of an entry depends on the kernel's generation.

use crate::{Arg, Kmd, Node, describe::unsigned};
use std::mem::offset_of;
use std::os::fd::BorrowedFd;
use tegrarm_abi::layout::IntoBytes;
use tegrarm_abi::nvgpu::ctrl::{
    NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, NVGPU_GPU_IOCTL_NUM_VSMS, nvgpu_gpu_characteristics,
    nvgpu_gpu_get_characteristics, nvgpu_gpu_num_vsms, nvgpu_gpu_vsms_mapping_entry,
};
use tegrarm_abi::nvgpu::r35::{nvgpu_gpu_characteristics_r35, nvgpu_gpu_vsms_mapping_entry_r35};
use tegrarm_abi::nvgpu::r39::nvgpu_gpu_characteristics_r39;

/// What answers of a kernel say about its SMs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sms {
    /// The number of SMs, from `NUM_VSMS`.
    count: Option<usize>,
    /// The size of the characteristics, from `GET_CHARACTERISTICS`, which tells the kernel's generation.
    characteristics: Option<u64>,
}

impl Sms {
    /// Asks a kernel. Neither call has a side effect.
    pub(crate) fn of(kernel: &dyn Kmd, fd: BorrowedFd<'_>, node: Node) -> Sms {
        let mut told = Sms::default();
        let mut sms = nvgpu_gpu_num_vsms { num_vsms: 0, reserved: 0 };
        let mut probe =
            nvgpu_gpu_get_characteristics { gpu_characteristics_buf_size: 0, gpu_characteristics_buf_addr: 0 };
        let mut ask = |request, bytes: &mut [u8]| {
            if kernel.ioctl(fd, node, request, Arg::Bytes(bytes)) == Ok(0) {
                told.hear(request, bytes);
            }
        };
        ask(NVGPU_GPU_IOCTL_NUM_VSMS, sms.as_mut_bytes());
        ask(NVGPU_GPU_IOCTL_GET_CHARACTERISTICS, probe.as_mut_bytes());
        told
    }

    /// Notes the answer of a call that succeeded.
    pub(crate) fn hear(&mut self, request: u32, bytes: &[u8]) {
        let word = |at: usize, width: usize| bytes.get(at..at + width).map(unsigned);
        match request {
            NVGPU_GPU_IOCTL_NUM_VSMS => {
                self.count = word(offset_of!(nvgpu_gpu_num_vsms, num_vsms), 4).map(|count| count as usize);
            }
            NVGPU_GPU_IOCTL_GET_CHARACTERISTICS => {
                let at = offset_of!(nvgpu_gpu_get_characteristics, gpu_characteristics_buf_size);
                self.characteristics = word(at, 8);
            }
            _ => {}
        }
    }

    /// The number of bytes of all entries. It is `None` if the kernel was not asked, or is of an unknown generation.
    pub(crate) fn bytes(self) -> Option<usize> {
        const R35: usize = size_of::<nvgpu_gpu_characteristics_r35>();
        const R36: usize = size_of::<nvgpu_gpu_characteristics>();
        const R39: usize = size_of::<nvgpu_gpu_characteristics_r39>();
        let each = match usize::try_from(self.characteristics?) {
            Ok(R35) => size_of::<nvgpu_gpu_vsms_mapping_entry_r35>(),
            Ok(R36 | R39) => size_of::<nvgpu_gpu_vsms_mapping_entry>(),
            _ => return None,
        };
        self.count?.checked_mul(each)
    }
}
