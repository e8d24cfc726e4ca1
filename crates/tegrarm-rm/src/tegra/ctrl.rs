//! The ctrl node. It describes the GPU and makes address spaces, TSGs and channels.

use super::error::{call, call_value};
use super::release::call_as;
use super::{AddressSpace, Channel, Characteristics, KernelError, Release, Topology, Tsg};
use super::{nodes, release};
use std::ops::Range;
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::{NVGPU_GPU_IOCTL_OPEN_TSG_R35, nvgpu_gpu_open_tsg_args_r35};
use tegrarm_kmd::{File, Kmd, Mapping, Node, Placement, Prot};
use zerocopy::FromZeros;

/// One engine of the GPU: `engine_id` is `NVGPU_GPU_ENGINE_ID_*`.
pub type EngineInfo = nvgpu_gpu_get_engine_info_item;

/// The largest size of the doorbell page in bytes.
pub const DOORBELL_SIZE: u64 = 64 << 10;
/// The room for engines, which is more than any Tegra has.
const MAX_ENGINES: usize = 32;

/// The ctrl node, the release and the GPU's description.
pub struct Ctrl {
    file: File,
    release: Release,
    characteristics: Characteristics,
}

/// A mapped doorbell page. Storing a work submit token at offset 0x90 starts work.
pub struct Doorbell {
    /// The page. It is declared before the node, so that it is unmapped before the node closes.
    pub page: Mapping,
    _node: File,
}

impl Ctrl {
    /// Opens the node, which powers the GPU up, and reads the GPU's characteristics.
    ///
    /// # Errors
    /// The errno of `open(2)` with the name of the node, or the errno of the query.
    pub fn open(kmd: &Arc<dyn Kmd>) -> Result<Ctrl, KernelError> {
        let file = nodes::open(kmd, Node::Ctrl, nodes::CTRL)?;
        let (release, characteristics) = release::probe(&file)?;
        Ok(Ctrl { file, release, characteristics })
    }

    /// The release of the kernel.
    pub fn release(&self) -> Release {
        self.release
    }

    /// The GPU's characteristics.
    pub fn characteristics(&self) -> &Characteristics {
        &self.characteristics
    }

    /// The kernel on which the node was opened.
    pub fn kmd(&self) -> &Arc<dyn Kmd> {
        self.file.kmd()
    }

    /// Creates an address space over `range`, whose ends are multiples of [`address_space::VA_UNIT`](super::address_space::VA_UNIT).
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn alloc_address_space(&self, range: Range<u64>) -> Result<AddressSpace, KernelError> {
        let mut args = nvgpu_alloc_as_args::new_zeroed();
        args.flags = NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA;
        (args.va_range_start, args.va_range_end) = (range.start, range.end);
        call(&self.file, NVGPU_GPU_IOCTL_ALLOC_AS, &mut args)?;
        Ok(AddressSpace::from_file(self.made(Node::As, args.as_fd, "ALLOC_AS")?, self.release))
    }

    /// Creates a TSG.
    ///
    /// # Errors
    /// `ENOMEM` when no TSG is left.
    pub fn open_tsg(&self) -> Result<Tsg, KernelError> {
        let mut args = nvgpu_gpu_open_tsg_args::new_zeroed();
        match self.release {
            // The share token is not used and all zeros, so the layout of the argument is the same on both releases.
            Release::R36 | Release::R39 => call(&self.file, NVGPU_GPU_IOCTL_OPEN_TSG, &mut args)?,
            Release::R35 => {
                call_as::<nvgpu_gpu_open_tsg_args_r35, _>(&self.file, NVGPU_GPU_IOCTL_OPEN_TSG_R35, &mut args)?
            }
        }
        Ok(Tsg::from_file(self.made(Node::Tsg, args.tsg_fd as i32, "OPEN_TSG")?, self.release))
    }

    /// Creates a channel on a runlist. The runlist -1 is the graphics one.
    ///
    /// # Errors
    /// `ENOMEM` when no channel is left, `EINVAL` for a runlist that does not exist.
    pub fn open_channel(&self, runlist: i32) -> Result<Channel, KernelError> {
        let mut args = nvgpu_gpu_open_channel_args { channel_fd: runlist };
        call(&self.file, NVGPU_GPU_IOCTL_OPEN_CHANNEL, &mut args)?;
        Ok(Channel::from_file(self.made(Node::Channel, args.channel_fd, "OPEN_CHANNEL")?, self.release))
    }

    fn made(&self, node: Node, fd: i32, what: &str) -> Result<File, KernelError> {
        File::from_output(self.file.kmd(), node, fd).map_err(|errno| KernelError::new(what, errno))
    }

    /// Maps the doorbell page. The node is opened again for it, because the kernel allows one mapping for each open
    /// node.
    ///
    /// # Errors
    /// The errno of `open(2)` or `mmap(2)`.
    pub fn map_doorbell(&self, at: Placement, len: usize) -> Result<Doorbell, KernelError> {
        let node = self.open_again()?;
        let page = node
            .mmap(at, len, Prot::ReadWrite, 0)
            .map_err(|errno| KernelError::new("mmap of the doorbell page", errno))?;
        Ok(Doorbell { page, _node: node })
    }

    /// Opens the node again, for one more mapping of the doorbell page.
    ///
    /// # Errors
    /// The errno of `open(2)`.
    pub fn open_again(&self) -> Result<File, KernelError> {
        nodes::open(self.file.kmd(), Node::Ctrl, nodes::CTRL)
    }

    /// Works on the L2 and waits for memory: `flush` writes the L2 back, `invalidate` drops its clean lines and
    /// includes `flush`, and `fb` waits for stores that are on their way to memory.
    ///
    /// # Errors
    /// `EINVAL` when all three are false.
    pub fn flush_l2(&self, flush: bool, invalidate: bool, fb: bool) -> Result<(), KernelError> {
        let bits = u8::from(flush || invalidate) | u8::from(invalidate) << 1 | u8::from(fb) << 2;
        call(&self.file, NVGPU_GPU_IOCTL_FLUSH_L2, &mut nvgpu_gpu_l2_fb_args { _flags: bits, reserved: [0; 4] })
    }

    /// The GPU's engines.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn engines(&self) -> Result<Vec<EngineInfo>, KernelError> {
        let mut items = [EngineInfo::new_zeroed(); MAX_ENGINES];
        let mut args = nvgpu_gpu_get_engine_info_args {
            engine_info_buf_size: size_of_val(&items) as u32,
            reserved: 0,
            engine_info_buf_addr: items.as_mut_ptr() as u64,
        };
        call(&self.file, NVGPU_GPU_IOCTL_GET_ENGINE_INFO, &mut args)?;
        let count = (args.engine_info_buf_size as usize / size_of::<EngineInfo>()).min(MAX_ENGINES);
        Ok(items[..count].to_vec())
    }

    /// The GPU's clock in nanoseconds.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn gpu_time(&self) -> Result<u64, KernelError> {
        let mut args = nvgpu_gpu_get_gpu_time_args { gpu_timestamp: 0, reserved: 0 };
        call(&self.file, NVGPU_GPU_IOCTL_GET_GPU_TIME, &mut args)?;
        Ok(args.gpu_timestamp)
    }

    /// Up to 16 pairs of CPU and GPU time, sampled together.
    ///
    /// # Errors
    /// `EINVAL` for more than 16 samples.
    pub fn time_correlation(&self, count: u32) -> Result<Vec<(u64, u64)>, KernelError> {
        let mut args = nvgpu_gpu_get_cpu_time_correlation_info_args::new_zeroed();
        args.count = count;
        args.source_id = NVGPU_GPU_GET_CPU_TIME_CORRELATION_INFO_SRC_ID_TSC;
        call(&self.file, NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO, &mut args)?;
        Ok(args.samples[..count as usize].iter().map(|s| (s.cpu_timestamp, s.gpu_timestamp)).collect())
    }

    /// Clears the error registers of all SMs.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn clear_sm_errors(&self) -> Result<(), KernelError> {
        call_value(&self.file, NVGPU_GPU_IOCTL_CLEAR_SM_ERRORS, 0)
    }

    /// Turns the MMU's debug mode on or off.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn set_mmu_debug(&self, on: bool) -> Result<(), KernelError> {
        let mut args = nvgpu_gpu_mmu_debug_mode_args { state: u32::from(on), reserved: 0 };
        call(&self.file, NVGPU_GPU_IOCTL_SET_MMUDEBUG_MODE, &mut args)
    }

    /// The layout of zcull.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn zcull_info(&self) -> Result<nvgpu_gpu_zcull_get_info_args, KernelError> {
        let mut args = nvgpu_gpu_zcull_get_info_args::new_zeroed();
        call(&self.file, NVGPU_GPU_IOCTL_ZCULL_GET_INFO, &mut args)?;
        Ok(args)
    }

    /// The size of a zcull context in bytes.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn zcull_context_size(&self) -> Result<u32, KernelError> {
        let mut args = nvgpu_gpu_zcull_get_ctx_size_args { size: 0 };
        call(&self.file, NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE, &mut args)?;
        Ok(args.size)
    }

    /// The place of each SM.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn topology(&self) -> Result<Topology, KernelError> {
        Topology::query(&self.file, self.release, &self.characteristics)
    }
}
