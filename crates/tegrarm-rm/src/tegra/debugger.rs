//! A session of a debugger, which is one open node `dbg`.

use super::error::call;
use super::{Channel, KernelError, nodes};
use std::sync::Arc;
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_kmd::{File, Kmd, Node};
use zerocopy::{FromZeros, IntoBytes};

/// The new path and the old path of the node.
const PATHS: &[&str] = &["/dev/nvgpu/igpu0/dbg", "/dev/nvhost-dbg-gpu"];

/// A register operation of a debugger.
pub type DebugRegOp = nvgpu_dbg_gpu_reg_op;
/// A mapped range of GPU addresses.
pub type MappedRange = nvgpu_dbg_gpu_get_mappings_entry;

/// The descriptor of a session. Closing it undoes everything that the session asked for.
pub struct DebugSession {
    file: File,
}

impl DebugSession {
    /// Opens the node. The session has no channel yet.
    ///
    /// # Errors
    /// The errno of `open(2)`.
    pub fn open(kmd: &Arc<dyn Kmd>) -> Result<DebugSession, KernelError> {
        Ok(DebugSession { file: nodes::open(kmd, Node::Debugger, PATHS)? })
    }

    /// Binds a channel to the session.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn bind(&self, channel: &Channel) -> Result<(), KernelError> {
        let mut args = nvgpu_dbg_gpu_bind_channel_args::new_zeroed();
        args.channel_fd = channel.file().raw() as u32;
        call(&self.file, NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL, &mut args)
    }

    /// Keeps the clocks and the power of the GPU's parts on for as long as the session is open.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn keep_power(&self) -> Result<(), KernelError> {
        let mut args = nvgpu_dbg_gpu_powergate_args { mode: NVGPU_DBG_GPU_POWERGATE_MODE_DISABLE };
        call(&self.file, NVGPU_DBG_GPU_IOCTL_POWERGATE, &mut args)
    }

    /// Suspends the session's context or resumes it. Returns whether it was the context in the engine.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn suspend(&self, on: bool) -> Result<bool, KernelError> {
        let mut args = nvgpu_dbg_gpu_suspend_resume_contexts_args::new_zeroed();
        args.action = if on { NVGPU_DBG_GPU_SUSPEND_ALL_CONTEXTS } else { NVGPU_DBG_GPU_RESUME_ALL_CONTEXTS };
        call(&self.file, NVGPU_DBG_GPU_IOCTL_SUSPEND_RESUME_CONTEXTS, &mut args)?;
        Ok(args.is_resident_context != 0)
    }

    /// Clears the kernel's record of one SM.
    ///
    /// # Errors
    /// `EINVAL` if there is no SM with that number.
    pub fn clear_sm_error(&self, sm: u32) -> Result<(), KernelError> {
        let mut args = nvgpu_dbg_gpu_clear_single_sm_error_state_args::new_zeroed();
        args.sm_id = sm;
        call(&self.file, NVGPU_DBG_GPU_IOCTL_CLEAR_SINGLE_SM_ERROR_STATE, &mut args)
    }

    /// Sets whether a group survives fatal exceptions while a debugger is attached to the SMs.
    ///
    /// # Errors
    /// `EINVAL` for a channel without a group.
    pub fn mask_exceptions(&self, fatal: bool) -> Result<(), KernelError> {
        let mut args = nvgpu_dbg_gpu_set_sm_exception_type_mask_args::new_zeroed();
        args.exception_type_mask = match fatal {
            true => NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK_FATAL,
            false => NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK_NONE,
        };
        call(&self.file, NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK, &mut args)
    }

    /// Sets how many SMs the next exception stops: one, or all.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn stop_next(&self, all: bool) -> Result<(), KernelError> {
        let mut args = nvgpu_dbg_gpu_set_next_stop_trigger_type_args::new_zeroed();
        args.broadcast = u32::from(all);
        call(&self.file, NVGPU_DBG_GPU_IOCTL_SET_NEXT_STOP_TRIGGER_TYPE, &mut args)
    }

    /// Sets whether the end of a warp waits until its errors are known.
    ///
    /// # Errors
    /// `EINVAL` before r36, which does not know the call, and `ENOSYS` from a chip that cannot do it.
    pub fn wait_for_errors(&self, on: bool) -> Result<(), KernelError> {
        let mut args = nvgpu_sched_exit_wait_for_errbar_args::new_zeroed();
        args.enable = match on {
            true => NVGPU_DBG_GPU_SCHED_EXIT_WAIT_FOR_ERRBAR_ENABLED,
            false => NVGPU_DBG_GPU_SCHED_EXIT_WAIT_FOR_ERRBAR_DISABLED,
        };
        call(&self.file, NVGPU_DBG_GPU_IOCTL_SET_SCHED_EXIT_WAIT_FOR_ERRBAR, &mut args)
    }

    /// Reads and writes registers. All operations are done, or none.
    ///
    /// # Errors
    /// `EINVAL` if one is bad, in which case no status says which, and `ENODEV` for the context of a channel that has
    /// none.
    pub fn reg_ops(&self, ops: &mut [DebugRegOp]) -> Result<(), KernelError> {
        let mut args = nvgpu_dbg_gpu_exec_reg_ops_args::new_zeroed();
        (args.num_ops, args.ops) = (ops.len() as u32, ops.as_mut_bytes().as_mut_ptr() as u64);
        call(&self.file, NVGPU_DBG_GPU_IOCTL_REG_OPS, &mut args)
    }

    /// Lists the mapped ranges from `first` to `last`, as many as `into` has room for. Returns how many there are, and
    /// whether there may be more.
    ///
    /// # Errors
    /// `EINVAL` if `first` is above `last`.
    pub fn mappings(&self, first: u64, last: u64, into: &mut [MappedRange]) -> Result<(usize, bool), KernelError> {
        let mut args = nvgpu_dbg_gpu_get_mappings_args::new_zeroed();
        (args.va_lo, args.va_hi, args.count) = (first, last, into.len() as u32);
        args.ops_buffer = into.as_mut_bytes().as_mut_ptr() as u64;
        call(&self.file, NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS, &mut args)?;
        Ok(((args.count as usize).min(into.len()), args.has_more != 0))
    }
}
