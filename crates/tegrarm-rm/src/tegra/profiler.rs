//! nvgpu's profiler of the whole GPU, which is one open node `prof-dev`.

use super::error::{call, call_value};
use super::{Backing, KernelError, Release, Tsg, nodes};
use std::sync::Arc;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::r35::NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM_R35;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_kmd::{Errno, File, Kmd, Node};
use zerocopy::{FromZeros, IntoBytes};

/// The new path and the old path of the node.
const PATHS: &[&str] = &["/dev/nvgpu/igpu0/prof-dev", "/dev/nvhost-prof-dev-gpu"];
/// More pools of credits than any GPU has.
const MAX_POOLS: usize = 30;

/// A register operation of a profiler.
pub type RegOp = nvgpu_profiler_reg_op;
/// A pool of credits.
pub type CreditPool = nvgpu_profiler_channel_pool_info;
/// The credits that one chiplet will have.
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

/// The memory for the records of a stream.
pub struct StreamPlan<'a> {
    /// The buffer for records.
    pub records: &'a Backing,
    /// The offset in the buffer at which they begin.
    pub offset: u64,
    /// The number of bytes for them.
    pub size: u64,
    /// The buffer whose first page gets the count of available bytes.
    pub count: &'a Backing,
    /// Whether the stream is switched with the context.
    pub switched: bool,
}

/// A question about a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamQuery {
    /// The number of bytes that the program has read since the last question.
    pub consumed: u64,
    /// Whether the unit is asked to write the count of available bytes.
    pub update: bool,
    /// Whether the call waits until the unit has written it.
    pub wait: bool,
    /// Whether the address of the next record is asked for.
    pub put: bool,
    /// The number of the stream.
    pub channel: u32,
}

/// The answer about a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamState {
    /// The number of bytes that the program may read.
    pub available: u64,
    /// The address of the next record.
    pub put: u64,
    /// Whether records were lost.
    pub overflowed: bool,
}

/// The result of register operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegOpsResult {
    /// Whether all operations passed. The kernel reports it only if each operation is tried.
    pub all_passed: bool,
    /// Whether they reached the registers themselves, and not copies that are saved with a context.
    pub direct: bool,
}

/// The descriptor of a profiler. Closing it releases everything that it holds.
pub struct Profiler {
    file: File,
    release: Release,
}

impl Profiler {
    /// Opens the node.
    ///
    /// # Errors
    /// The errno of `open(2)`, and `EINVAL` from a kernel that has no such profiler.
    pub fn open(kmd: &Arc<dyn Kmd>, release: Release) -> Result<Profiler, KernelError> {
        Ok(Profiler { file: nodes::open(kmd, Node::Profiler, PATHS)?, release })
    }

    /// Chooses the group whose context is measured, or none.
    ///
    /// # Errors
    /// `EINVAL` for the second call, and for a group that another profiler measures.
    pub fn bind_context(&self, tsg: Option<&Tsg>) -> Result<(), KernelError> {
        let mut args = nvgpu_profiler_bind_context_args { tsg_fd: tsg.map_or(-1, |tsg| tsg.file().raw()), reserved: 0 };
        call(&self.file, NVGPU_PROFILER_IOCTL_BIND_CONTEXT, &mut args)
    }

    /// Reserves a resource.
    ///
    /// # Errors
    /// `EINVAL` for a resource that needs a group if none was chosen, `EEXIST` for a resource that the profiler has or
    /// while resources are bound, and `EBUSY` for a resource that another profiler holds.
    pub fn reserve(&self, resource: PmResource, switched: bool) -> Result<(), KernelError> {
        let mut args = nvgpu_profiler_reserve_pm_resource_args::new_zeroed();
        args.resource = resource as u32;
        args.flags = if switched { NVGPU_PROFILER_RESERVE_PM_RESOURCE_ARG_FLAG_CTXSW } else { 0 };
        call(&self.file, NVGPU_PROFILER_IOCTL_RESERVE_PM_RESOURCE, &mut args)
    }

    /// Releases a resource, after unbinding everything that is bound.
    ///
    /// # Errors
    /// `EINVAL` for a resource that is not held.
    pub fn release(&self, resource: PmResource) -> Result<(), KernelError> {
        let mut args = nvgpu_profiler_release_pm_resource_args { resource: resource as u32, reserved: 0 };
        call(&self.file, NVGPU_PROFILER_IOCTL_RELEASE_PM_RESOURCE, &mut args)
    }

    /// Makes the stream of records to memory. Returns its address for the unit that writes it, and its number.
    ///
    /// # Errors
    /// `EINVAL` for the second call, `EBUSY` while another profiler has the stream, `EEXIST` while resources are bound,
    /// and `ENOMEM`.
    pub fn alloc_stream(&self, plan: &StreamPlan) -> Result<(u64, u32), KernelError> {
        let (records, count) = (plan.records.dmabuf()?, plan.count.dmabuf()?);
        let mut args = nvgpu_profiler_alloc_pma_stream_args::new_zeroed();
        (args.pma_buffer_map_size, args.pma_buffer_offset) = (plan.size, plan.offset);
        (args.pma_buffer_fd, args.pma_bytes_available_buffer_fd) = (records.raw(), count.raw());
        args.flags = if plan.switched { NVGPU_PROFILER_ALLOC_PMA_STREAM_ARG_FLAG_CTXSW } else { 0 };
        call(&self.file, NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM, &mut args)?;
        // r35 does not change the number: it stays 0, which is the only one.
        Ok((args.pma_buffer_va, args.pma_channel_id))
    }

    /// Ends the stream, after unbinding everything that is bound.
    ///
    /// # Errors
    /// `EINVAL` if there is no stream.
    pub fn free_stream(&self, channel: u32) -> Result<(), KernelError> {
        match self.release {
            Release::R35 => call_value(&self.file, NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM_R35, 0),
            Release::R36 | Release::R39 => {
                let mut args = nvgpu_profiler_free_pma_stream_args { pma_channel_id: channel, reserved: [0; 2] };
                call(&self.file, NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM, &mut args)
            }
        }
    }

    /// Makes the reserved resources count.
    ///
    /// # Errors
    /// `EINVAL` if no counters are reserved or they are bound already, and `EFAULT` if one is switched with a group
    /// that has no graphics context.
    pub fn bind(&self) -> Result<(), KernelError> {
        call_value(&self.file, NVGPU_PROFILER_IOCTL_BIND_PM_RESOURCES, 0)
    }

    /// Stops the bound resources.
    ///
    /// # Errors
    /// `EINVAL` if none is bound.
    pub fn unbind(&self) -> Result<(), KernelError> {
        call_value(&self.file, NVGPU_PROFILER_IOCTL_UNBIND_PM_RESOURCES, 0)
    }

    /// Tells the unit how much was read, and asks for its position.
    ///
    /// # Errors
    /// `EINVAL` without a stream, and `ETIMEDOUT` if the unit does not answer.
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

    /// Reads and writes registers of bound resources. Either all operations are done or none, or each is tried. Only in
    /// the second case does `status` say which failed.
    ///
    /// # Errors
    /// `EINVAL` if nothing is bound, for no operations or more than 1024, and if one of "all or none" is bad.
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

    /// The pools from which the chiplets' credits come.
    ///
    /// # Errors
    /// `ENOTTY` before r39, in which the kernel got a call for it.
    pub fn credit_pools(&self) -> Result<Vec<CreditPool>, KernelError> {
        self.since_r39("GET_PMA_STREAM_POOLS_INFO")?;
        let mut pools = [CreditPool::new_zeroed(); MAX_POOLS];
        let mut args = nvgpu_profiler_channel_get_pools_info_args::new_zeroed();
        args.nvgpu_profiler_channel_pool_info_addr = pools.as_mut_bytes().as_mut_ptr() as u64;
        args.num_pool_entries = MAX_POOLS as u32;
        call(&self.file, NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_POOLS_INFO, &mut args)?;
        Ok(pools[..(args.num_pool_entries as usize).min(MAX_POOLS)].to_vec())
    }

    /// Sets the credits of chiplets. Each entry also gets its answer.
    ///
    /// # Errors
    /// Those of [`Profiler::credit_pools`].
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
