//! An nvgpu channel.

use super::error::call;
use super::release::call_as;
use super::{Backing, KernelError, Release};
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::r35::{NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35, nvgpu_channel_setup_bind_args_r35};
use tegrarm_kmd::File;
use zerocopy::FromZeros;

/// A channel's descriptor.
pub struct Channel {
    file: File,
    release: Release,
}

impl Channel {
    pub(super) fn from_file(file: File, release: Release) -> Channel {
        Channel { file, release }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Turns the kernel's job watchdog off. User-mode submission needs this.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn disable_watchdog(&self) -> Result<(), KernelError> {
        let mut args = nvgpu_channel_wdt_args { wdt_status: NVGPU_IOCTL_CHANNEL_DISABLE_WDT, timeout_ms: 0 };
        call(&self.file, NVGPU_IOCTL_CHANNEL_WDT, &mut args)
    }

    /// Makes the channel ready for user-mode submission and returns its work submit token. `gpfifo` holds `entries`
    /// entries of eight bytes, and `entries` is a power of two. `userd` is the page with GP_GET at 0x88 and GP_PUT at
    /// 0x8C. The kernel takes whole buffers, from offset 0, and keeps them alive.
    ///
    /// # Errors
    /// `EINVAL` before the channel is bound to an address space and a TSG, `EEXIST` the second time, `ENOMEM`
    /// when the ring cannot be mapped.
    pub fn setup_bind(&self, entries: u32, gpfifo: &Backing, userd: &Backing) -> Result<u32, KernelError> {
        let (gpfifo, userd) = (gpfifo.dmabuf()?, userd.dmabuf()?);
        let flags = NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_SUPPORT | NVGPU_CHANNEL_SETUP_BIND_FLAGS_DETERMINISTIC;
        let mut args = nvgpu_channel_setup_bind_args::new_zeroed();
        (args.num_gpfifo_entries, args.flags) = (entries, flags);
        (args.gpfifo_dmabuf_fd, args.userd_dmabuf_fd) = (gpfifo.raw(), userd.raw());
        match self.release {
            // In bytes that r36 does not use, r39 can return the number of the hardware's channel. The library does not
            // ask for it.
            Release::R36 | Release::R39 => call(&self.file, NVGPU_IOCTL_CHANNEL_SETUP_BIND, &mut args)?,
            Release::R35 => call_as::<nvgpu_channel_setup_bind_args_r35, _>(
                &self.file,
                NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35,
                &mut args,
            )?,
        }
        Ok(args.work_submit_token)
    }

    /// Attaches an engine class to the channel. The first class in a TSG allocates the graphics context.
    ///
    /// # Errors
    /// `EINVAL` for a class the chip does not have.
    pub fn alloc_object(&self, class: u32) -> Result<(), KernelError> {
        let mut args = nvgpu_alloc_obj_ctx_args { class_num: class, flags: 0, obj_id: 0 };
        call(&self.file, NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX, &mut args)
    }

    /// Asks the kernel to write errors to the first 16 bytes of a buffer. The channel keeps the buffer alive.
    ///
    /// # Errors
    /// `ENOMEM` when the kernel cannot map it.
    pub fn set_error_notifier(&self, memory: &Backing) -> Result<(), KernelError> {
        let dmabuf = memory.dmabuf()?;
        let size = size_of::<nvgpu_notification>() as u64;
        let mut args = nvgpu_set_error_notifier { offset: 0, size, mem: dmabuf.raw() as u32, padding: 0 };
        call(&self.file, NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER, &mut args)
    }

    /// The channel's own syncpoint. The kernel makes it at the first call.
    ///
    /// # Errors
    /// `ENOMEM` if all syncpoints are in use, `EINVAL` if the kernel has none.
    pub fn user_syncpoint(&self) -> Result<nvgpu_get_user_syncpoint_args, KernelError> {
        let mut args = nvgpu_get_user_syncpoint_args::new_zeroed();
        call(&self.file, NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &mut args)?;
        Ok(args)
    }

    /// Whether an error killed the channel.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn is_dead(&self) -> Result<bool, KernelError> {
        let mut args = nvgpu_get_param_args { value: 0 };
        call(&self.file, NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT, &mut args)?;
        Ok(args.value != 0)
    }

    /// Sets the compute and graphics preemption modes (`NVGPU_*_PREEMPTION_MODE_*`). A mode of 0 is left as it is.
    ///
    /// # Errors
    /// `EINVAL` before an engine class is attached, or for a mode lower than the current one.
    pub fn set_preemption_mode(&self, graphics: u32, compute: u32) -> Result<(), KernelError> {
        let mut args = nvgpu_preemption_mode_args { graphics_preempt_mode: graphics, compute_preempt_mode: compute };
        call(&self.file, NVGPU_IOCTL_CHANNEL_SET_PREEMPTION_MODE, &mut args)
    }

    /// Enables or disables the channel on the host engine.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn set_enabled(&self, enabled: bool) -> Result<(), KernelError> {
        let request = if enabled { NVGPU_IOCTL_CHANNEL_ENABLE } else { NVGPU_IOCTL_CHANNEL_DISABLE };
        super::error::call_value(&self.file, request, 0)
    }

    /// Kills the channel and the other channels of its TSG, as an error would.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn reset(&self) -> Result<(), KernelError> {
        super::error::call_value(&self.file, NVGPU_IOCTL_CHANNEL_FORCE_RESET, 0)
    }

    /// Gives the channel a zcull context buffer.
    ///
    /// # Errors
    /// `EINVAL` outside a TSG.
    pub fn bind_zcull(&self, gpu_va: u64, mode: u32) -> Result<(), KernelError> {
        call(&self.file, NVGPU_IOCTL_CHANNEL_ZCULL_BIND, &mut nvgpu_zcull_bind_args { gpu_va, mode, padding: 0 })
    }
}
