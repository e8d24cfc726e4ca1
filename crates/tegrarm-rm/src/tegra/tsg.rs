//! An nvgpu channel group (time-slice group) and its subcontexts.

use super::error::{call, call_value};
use super::{AddressSpace, Channel, KernelError, Release};
use std::time::Duration;
use tegrarm_abi::nvgpu::channel::nvgpu_channel_open_args;
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_kmd::{Errno, File};
use tegrarm_lock::Mutex;
use zerocopy::FromZeros;

/// The number of subcontexts of a TSG. VEID 0 is the synchronous one.
const MAX_VEID: u32 = 64;

/// How often, and after how long, a busy GPU is asked again to let a channel go.
const UNBIND_RETRIES: usize = 10;
const UNBIND_PAUSE: Duration = Duration::from_millis(2);

/// The record of an SM's last exception.
pub type SmError = nvgpu_tsg_sm_error_state_record;

/// A TSG's descriptor.
pub struct Tsg {
    file: File,
    release: Release,
    /// The VEIDs in use. r35 has no ioctls for subcontexts: the caller names any free VEID when it binds a channel.
    taken: Mutex<u64>,
}

impl Tsg {
    pub(super) fn from_file(file: File, release: Release) -> Tsg {
        Tsg { file, release, taken: Mutex::new(0) }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Creates a subcontext over `space`: the synchronous one (0) or the lowest free asynchronous one.
    /// Returns its VEID. The address space must stay open as long as the subcontext exists.
    ///
    /// # Errors
    /// `ENOSPC` when all subcontexts are in use.
    pub fn create_subcontext(&self, space: &AddressSpace, synchronous: bool) -> Result<u32, KernelError> {
        match self.release {
            Release::R36 | Release::R39 => {
                let mut args = nvgpu_tsg_create_subcontext_args::new_zeroed();
                args.type_ = if synchronous { NVGPU_TSG_SUBCONTEXT_TYPE_SYNC } else { NVGPU_TSG_SUBCONTEXT_TYPE_ASYNC };
                args.as_fd = space.file().raw();
                call(&self.file, NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, &mut args)?;
                Ok(args.veid)
            }
            Release::R35 => {
                let mut taken = self.taken.lock();
                let free = if synchronous { 0..1 } else { 1..MAX_VEID };
                let veid = free.into_iter().find(|v| *taken & (1 << v) == 0);
                let veid = veid.ok_or_else(|| KernelError::new("choosing a VEID", Errno::ENOSPC))?;
                *taken |= 1 << veid;
                Ok(veid)
            }
        }
    }

    /// Gives a subcontext back. Its channels must be closed before.
    pub fn delete_subcontext(&self, veid: u32) {
        match self.release {
            Release::R36 | Release::R39 => {
                let mut args = nvgpu_tsg_delete_subcontext_args { veid, reserved: 0 };
                if let Err(e) = call(&self.file, NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT, &mut args) {
                    tracing::warn!("VEID {veid} is lost: {e}");
                }
            }
            Release::R35 => *self.taken.lock() &= !(1 << veid),
        }
    }

    /// Puts a channel into the group, under a subcontext.
    ///
    /// # Errors
    /// `EINVAL` when the channel's address space is not that of the subcontext, or when the channel is in a group
    /// already.
    pub fn bind(&self, channel: &Channel, veid: u32) -> Result<(), KernelError> {
        let mut args =
            nvgpu_tsg_bind_channel_ex_args { channel_fd: channel.file().raw(), subcontext_id: veid, reserved: [0; 16] };
        call(&self.file, NVGPU_TSG_IOCTL_BIND_CHANNEL_EX, &mut args)
    }

    /// Takes a channel out of the group before it is closed. A channel that is closed in its group ends its subcontext
    /// if it was the last one there, and the subcontext's VEID goes to whoever asks next
    /// (docs/hardware/nvgpu-tsg.md#create-subcontext). A busy GPU is asked again for a while.
    pub fn unbind(&self, channel: &Channel) {
        if self.release == Release::R35 {
            return;
        }
        // The argument is a bare descriptor.
        let mut bare = nvgpu_channel_open_args { channel_fd: channel.file().raw() };
        let mut unbind = || call(&self.file, NVGPU_TSG_IOCTL_UNBIND_CHANNEL, &mut bare);
        let mut result = unbind();
        for _ in 0..UNBIND_RETRIES {
            if !result.as_ref().is_err_and(|e| e.errno == Errno::EAGAIN) {
                break;
            }
            std::thread::sleep(UNBIND_PAUSE);
            result = unbind();
        }
        if let Err(e) = result {
            tracing::warn!("the channel stays in its group until it is closed, and its subcontext ends with it: {e}");
        }
    }

    /// Sets the time slice in microseconds.
    ///
    /// # Errors
    /// `EINVAL` outside of the range that the system administrator allows, which is 1 to 50 ms by default.
    pub fn set_timeslice(&self, timeslice_us: u32) -> Result<(), KernelError> {
        call(&self.file, NVGPU_IOCTL_TSG_SET_TIMESLICE, &mut nvgpu_timeslice_args { timeslice_us, reserved: 0 })
    }

    /// The time slice in microseconds.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn timeslice(&self) -> Result<u32, KernelError> {
        let mut args = nvgpu_timeslice_args { timeslice_us: 0, reserved: 0 };
        call(&self.file, NVGPU_IOCTL_TSG_GET_TIMESLICE, &mut args)?;
        Ok(args.timeslice_us)
    }

    /// Sets how often the group comes in the runlist (`NVGPU_RUNLIST_INTERLEAVE_LEVEL_*`).
    ///
    /// # Errors
    /// `EINVAL` for a level above 2, `EPERM` while a manager holds the scheduling control.
    pub fn set_interleave(&self, level: u32) -> Result<(), KernelError> {
        let mut args = nvgpu_runlist_interleave_args { level, reserved: 0 };
        call(&self.file, NVGPU_IOCTL_TSG_SET_RUNLIST_INTERLEAVE, &mut args)
    }

    /// Takes the group off the hardware.
    ///
    /// # Errors
    /// `EAGAIN` or `EBUSY` when the hardware does not finish the preemption.
    pub fn preempt(&self) -> Result<(), KernelError> {
        call_value(&self.file, NVGPU_IOCTL_TSG_PREEMPT, 0)
    }

    /// Enables or disables the channels of the group on the host engine.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn set_enabled(&self, enabled: bool) -> Result<(), KernelError> {
        call_value(&self.file, if enabled { NVGPU_IOCTL_TSG_ENABLE } else { NVGPU_IOCTL_TSG_DISABLE }, 0)
    }

    /// The record of one SM. It is all zero if the SM has never raised an exception.
    ///
    /// # Errors
    /// `EINVAL` when there is no SM of that number.
    pub fn sm_error(&self, sm: u32) -> Result<SmError, KernelError> {
        let mut record = SmError::new_zeroed();
        let mut args = nvgpu_tsg_read_single_sm_error_state_args {
            sm_id: sm,
            reserved: 0,
            record_mem: &raw mut record as u64,
            record_size: size_of::<SmError>() as u64,
        };
        call(&self.file, NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE, &mut args)?;
        Ok(record)
    }
}
