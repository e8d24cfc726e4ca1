//! nvgpu's profiler of the whole GPU: one open of `prof-dev`.

use super::error::{call, call_value};
use super::{Backing, KernelError, Release, Tsg, nodes};
use std::sync::Arc;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::r35::NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM_R35;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_kmd::{Errno, File, Kmd, Node};
use zerocopy::{FromZeros, IntoBytes};

/// The new name and the old one.
const PATHS: &[&str] = &["/dev/nvgpu/igpu0/prof-dev", "/dev/nvhost-prof-dev-gpu"];
/// More pools of credits than any GPU has.
const MAX_POOLS: usize = 30;

/// A register operation of a profiler.
pub type RegOp = nvgpu_profiler_reg_op;
/// A pool of credits.
pub type CreditPool = nvgpu_profiler_channel_pool_info;
/// The credits that one chiplet shall have.
pub type ChipletCredits = nvgpu_profiler_channel_set_credit_buf;

/// A performance resource: `NVGPU_PROFILER_PM_RESOURCE_ARG_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PmResource {
    /// The counters of the machine.
    Hwpm = NVGPU_PROFILER_PM_RESOURCE_ARG_HWPM_LEGACY,
    /// The counters of the SMs.
    Smpc = NVGPU_PROFILER_PM_RESOURCE_ARG_SMPC,
    /// The sampler of program counters.
    PcSampler = NVGPU_PROFILER_PM_RESOURCE_ARG_PC_SAMPLER,
}

/// Where the records of a stream go.
pub struct StreamPlan<'a> {
    /// The buffer for records.
    pub records: &'a Backing,
    /// Where in it they begin.
    pub offset: u64,
    /// How many bytes there are for them.
    pub size: u64,
    /// The buffer whose first page takes the count of available bytes.
    pub count: &'a Backing,
    /// Whether the stream is switched with the context.
    pub switched: bool,
}

/// What is asked about a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamQuery {
    /// Bytes that the program has read since it asked last.
    pub consumed: u64,
    /// Whether the unit shall write the count of available bytes.
    pub update: bool,
    /// Whether to wait until it has.
    pub wait: bool,
    /// Whether the address of the next record is wanted.
    pub put: bool,
    /// Which stream.
    pub channel: u32,
}

/// What is known about a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamState {
    /// Bytes that the program may read.
    pub available: u64,
    /// The address of the next record.
    pub put: u64,
    /// Whether records were lost.
    pub overflowed: bool,
}

/// Whether register operations all passed, and whether they reached the registers themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegOpsResult {
    /// Only told when each operation is tried.
    pub all_passed: bool,
    /// Not copies that are saved with a context.
    pub direct: bool,
}

/// A profiler's descriptor. Closing it gives back everything it holds.
pub struct Profiler {
    file: File,
    release: Release,
}

impl Profiler {
    /// Opens the node.
    ///
    /// # Errors
    /// The errno of `open(2)`; `EINVAL` from a kernel that has no such profiler.
    pub fn open(kmd: &Arc<dyn Kmd>, release: Release) -> Result<Profiler, KernelError> {
        Ok(Profiler { file: nodes::open(kmd, Node::Profiler, PATHS)?, release })
    }

    /// Chooses the group whose context is looked at, or that there is none.
    ///
    /// # Errors
    /// `EINVAL` the second time, and for a group that another profiler looks at.
    pub fn bind_context(&self, tsg: Option<&Tsg>) -> Result<(), KernelError> {
        let mut args = nvgpu_profiler_bind_context_args { tsg_fd: tsg.map_or(-1, |tsg| tsg.file().raw()), reserved: 0 };
        call(&self.file, NVGPU_PROFILER_IOCTL_BIND_CONTEXT, &mut args)
    }

    /// Takes a resource.
    ///
    /// # Errors
    /// `EINVAL` for one that wants a group when none was chosen, `EEXIST` for one of its own or while resources are bound,
    /// `EBUSY` for one that another profiler holds.
    pub fn reserve(&self, resource: PmResource, switched: bool) -> Result<(), KernelError> {
        let mut args = nvgpu_profiler_reserve_pm_resource_args::new_zeroed();
        args.resource = resource as u32;
        args.flags = if switched { NVGPU_PROFILER_RESERVE_PM_RESOURCE_ARG_FLAG_CTXSW } else { 0 };
        call(&self.file, NVGPU_PROFILER_IOCTL_RESERVE_PM_RESOURCE, &mut args)
    }

    /// Gives a resource back, unbinding what is bound.
    ///
    /// # Errors
    /// `EINVAL` for one that is not held.
    pub fn release(&self, resource: PmResource) -> Result<(), KernelError> {
        let mut args = nvgpu_profiler_release_pm_resource_args { resource: resource as u32, reserved: 0 };
        call(&self.file, NVGPU_PROFILER_IOCTL_RELEASE_PM_RESOURCE, &mut args)
    }

    /// Makes the stream of records to memory. Returns its address for the unit that writes it, and its number.
    ///
    /// # Errors
    /// `EINVAL` the second time, `EBUSY` while another profiler has it, `EEXIST` while resources are bound, `ENOMEM`.
    pub fn alloc_stream(&self, plan: &StreamPlan) -> Result<(u64, u32), KernelError> {
        let (records, count) = (plan.records.dmabuf()?, plan.count.dmabuf()?);
        let mut args = nvgpu_profiler_alloc_pma_stream_args::new_zeroed();
        (args.pma_buffer_map_size, args.pma_buffer_offset) = (plan.size, plan.offset);
        (args.pma_buffer_fd, args.pma_bytes_available_buffer_fd) = (records.raw(), count.raw());
        args.flags = if plan.switched { NVGPU_PROFILER_ALLOC_PMA_STREAM_ARG_FLAG_CTXSW } else { 0 };
        call(&self.file, NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM, &mut args)?;
        // r35 leaves the number as it was: 0, the one there is.
        Ok((args.pma_buffer_va, args.pma_channel_id))
    }

    /// Ends the stream, unbinding what is bound.
    ///
    /// # Errors
    /// `EINVAL` when there is none.
    pub fn free_stream(&self, channel: u32) -> Result<(), KernelError> {
        match self.release {
            Release::R35 => call_value(&self.file, NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM_R35, 0),
            Release::R36 | Release::R39 => {
                let mut args = nvgpu_profiler_free_pma_stream_args { pma_channel_id: channel, reserved: [0; 2] };
                call(&self.file, NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM, &mut args)
            }
        }
    }

    /// Makes the reserved resources work.
    ///
    /// # Errors
    /// `EINVAL` when no counters are reserved or they are bound already, `EFAULT` when one is to be switched with a group
    /// that has no graphics context.
    pub fn bind(&self) -> Result<(), KernelError> {
        call_value(&self.file, NVGPU_PROFILER_IOCTL_BIND_PM_RESOURCES, 0)
    }

    /// Stops them.
    ///
    /// # Errors
    /// `EINVAL` when nothing is bound.
    pub fn unbind(&self) -> Result<(), KernelError> {
        call_value(&self.file, NVGPU_PROFILER_IOCTL_UNBIND_PM_RESOURCES, 0)
    }

    /// Tells the unit what was read, and asks how far it is.
    ///
    /// # Errors
    /// `EINVAL` without a stream, `ETIMEDOUT` when the unit does not answer.
    pub fn update(&self, query: &StreamQuery) -> Result<StreamState, KernelError> {
        let flag = |on: bool, flag: u32| if on { flag } else { 0 };
        let mut args = nvgpu_profiler_pma_stream_update_get_put_args::new_zeroed();
        (args.bytes_consumed, args.pma_channel_id) = (query.consumed, query.channel);
        args.flags = flag(query.update, NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_UPDATE_AVAILABLE_BYTES)
            | flag(query.wait, NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_WAIT_FOR_UPDATE)
            | flag(query.put, NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_RETURN_PUT_PTR);
        call(&self.file, NVGPU_PROFILER_IOCTL_PMA_STREAM_UPDATE_GET_PUT, &mut args)?;
        let overflowed = args.flags & NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_OVERFLOW_TRIGGERED != 0;
        Ok(StreamState { available: args.bytes_available, put: args.put_ptr, overflowed })
    }

    /// Reads and writes registers of what is bound: all or none, or each that may be. Only the second tells in `status`
    /// which failed.
    ///
    /// # Errors
    /// `EINVAL` when nothing is bound, for no operations or more than 1024, and when one of "all or none" is bad.
    pub fn reg_ops(&self, each: bool, ops: &mut [RegOp]) -> Result<RegOpsResult, KernelError> {
        let mut args = nvgpu_profiler_exec_reg_ops_args::new_zeroed();
        args.mode = match each {
            true => NVGPU_PROFILER_EXEC_REG_OPS_ARG_MODE_CONTINUE_ON_ERROR,
            false => NVGPU_PROFILER_EXEC_REG_OPS_ARG_MODE_ALL_OR_NONE,
        };
        (args.count, args.ops) = (ops.len() as u32, ops.as_mut_bytes().as_mut_ptr() as u64);
        call(&self.file, NVGPU_PROFILER_IOCTL_EXEC_REG_OPS, &mut args)?;
        Ok(RegOpsResult {
            all_passed: args.flags & NVGPU_PROFILER_EXEC_REG_OPS_ARG_FLAG_ALL_PASSED != 0,
            direct: args.flags & NVGPU_PROFILER_EXEC_REG_OPS_ARG_FLAG_DIRECT_OPS != 0,
        })
    }

    /// The pools that the chiplets' credits come from.
    ///
    /// # Errors
    /// `ENOTTY` before r39, which is where the kernel got a call for it.
    pub fn credit_pools(&self) -> Result<Vec<CreditPool>, KernelError> {
        self.since_r39("GET_PMA_STREAM_POOLS_INFO")?;
        let mut pools = [CreditPool::new_zeroed(); MAX_POOLS];
        let mut args = nvgpu_profiler_channel_get_pools_info_args::new_zeroed();
        args.nvgpu_profiler_channel_pool_info_addr = pools.as_mut_bytes().as_mut_ptr() as u64;
        args.num_pool_entries = MAX_POOLS as u32;
        call(&self.file, NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_POOLS_INFO, &mut args)?;
        Ok(pools[..(args.num_pool_entries as usize).min(MAX_POOLS)].to_vec())
    }

    /// Sets chiplets' credits; each entry takes the answer to it.
    ///
    /// # Errors
    /// As [`Profiler::credit_pools`].
    pub fn set_credits(&self, channel: u32, credits: &mut [ChipletCredits]) -> Result<(), KernelError> {
        self.since_r39("SET_PMA_STREAM_HS_CREDIT")?;
        let mut args = nvgpu_profiler_channel_set_hs_credit_args::new_zeroed();
        (args.pma_channel_id, args.credit_buf_count) = (channel, credits.len() as u32);
        args.set_credit_buf_addr = credits.as_mut_bytes().as_mut_ptr() as u64;
        call(&self.file, NVGPU_PROFILER_IOCTL_SET_PMA_STREAM_HS_CREDIT, &mut args)
    }

    fn since_r39(&self, what: &str) -> Result<(), KernelError> {
        match self.release {
            Release::R39 => Ok(()),
            before => Err(KernelError::new(format!("{what}, which {before:?} does not have,"), Errno::ENOTTY)),
        }
    }
}
