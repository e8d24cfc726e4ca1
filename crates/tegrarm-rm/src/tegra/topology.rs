//! The GPCs, TPCs and SMs that exist, as the kernel counts them.

use super::{Characteristics, KernelError, Release, call};
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::nvgpu_gpu_vsms_mapping_entry_r35;
use tegrarm_kmd::{Errno, File};
use zerocopy::FromZeros;

/// The number of SMs of a TPC, on every Tegra since Volta. No ioctl reports it.
pub const SM_PER_TPC: u32 = 2;
/// The room for SMs, which is more than any Tegra has. The kernel writes one entry for each SM and does not check the
/// size.
const MAX_SMS: usize = 256;
/// The room for GPCs, which is more than any GPU has.
const MAX_GPCS: u32 = 64;

/// The place of one SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmPlace {
    /// The logical GPC.
    pub gpc: u8,
    /// The TPC within the GPC.
    pub tpc: u8,
    /// The TPC, counted over all GPCs.
    pub global_tpc: u8,
    /// The SM within the TPC.
    pub sm: u8,
}

/// The processors of the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// The number of GPCs in the design, including those that are fused off.
    pub max_gpcs: u32,
    /// The largest number of TPCs of a GPC.
    pub max_tpcs_per_gpc: u32,
    /// The enabled TPCs of each GPC, as masks.
    pub tpc_masks: Vec<u32>,
    /// The enabled SMs, in the kernel's order.
    pub sms: Vec<SmPlace>,
}

impl Topology {
    pub(super) fn query(ctrl: &File, release: Release, c: &Characteristics) -> Result<Topology, KernelError> {
        let max_gpcs = c.max_gpc_count.max(c.num_gpc).max(1);
        at_most("NVGPU_GPU_IOCTL_GET_CHARACTERISTICS", "GPCs", max_gpcs, MAX_GPCS)?;
        let mut tpc_masks = vec![0u32; max_gpcs as usize];
        let mut args = nvgpu_gpu_get_tpc_masks_args {
            mask_buf_size: 4 * max_gpcs,
            reserved: 0,
            mask_buf_addr: tpc_masks.as_mut_ptr() as u64,
        };
        call(ctrl, NVGPU_GPU_IOCTL_GET_TPC_MASKS, &mut args)?;
        let widest = tpc_masks.iter().map(|m| 32 - m.leading_zeros()).max().unwrap_or(0);
        let max_tpcs_per_gpc = c.num_tpc_per_gpc.max(widest).max(1);
        Ok(Topology { max_gpcs, max_tpcs_per_gpc, tpc_masks, sms: sms(ctrl, release)? })
    }

    /// The number of SMs that can run work.
    pub fn sm_count(&self) -> u32 {
        self.sms.len() as u32
    }
}

/// Checks a number of the kernel's before it decides about memory. A recording may have any number.
fn at_most(call: &str, of: &str, count: u32, room: u32) -> Result<(), KernelError> {
    let says = || format!("{call}, which counts {count} {of} where at most {room} can be,");
    if count <= room { Ok(()) } else { Err(KernelError::new(says(), Errno::EOVERFLOW)) }
}

fn sms(ctrl: &File, release: Release) -> Result<Vec<SmPlace>, KernelError> {
    let mut number = nvgpu_gpu_num_vsms::new_zeroed();
    call(ctrl, NVGPU_GPU_IOCTL_NUM_VSMS, &mut number)?;
    at_most("NVGPU_GPU_IOCTL_NUM_VSMS", "SMs", number.num_vsms, MAX_SMS as u32)?;
    let count = number.num_vsms as usize;
    match release {
        Release::R36 | Release::R39 => {
            let mut entries = [nvgpu_gpu_vsms_mapping_entry::new_zeroed(); MAX_SMS];
            read_map(ctrl, entries.as_mut_ptr() as u64)?;
            let place = |e: &nvgpu_gpu_vsms_mapping_entry| SmPlace {
                gpc: e.gpc_logical_index,
                tpc: e.tpc_local_logical_index,
                global_tpc: e.tpc_global_logical_index,
                sm: e.sm_local_id,
            };
            Ok(entries[..count].iter().map(place).collect())
        }
        Release::R35 => {
            let mut entries = [nvgpu_gpu_vsms_mapping_entry_r35::new_zeroed(); MAX_SMS];
            read_map(ctrl, entries.as_mut_ptr() as u64)?;
            Ok(number_tpcs(&entries[..count]))
        }
    }
}

/// r35 reports only the GPC and the TPC. This function counts the TPCs, and the SMs of each, in the order in which they
/// are listed.
fn number_tpcs(entries: &[nvgpu_gpu_vsms_mapping_entry_r35]) -> Vec<SmPlace> {
    let mut tpcs: Vec<(u8, u8, u8)> = Vec::new();
    let mut place = |e: &nvgpu_gpu_vsms_mapping_entry_r35| {
        let known = tpcs.iter().position(|t| (t.0, t.1) == (e.gpc_index, e.tpc_index));
        let at = known.unwrap_or_else(|| {
            tpcs.push((e.gpc_index, e.tpc_index, 0));
            tpcs.len() - 1
        });
        let sm = tpcs[at].2;
        tpcs[at].2 += 1;
        SmPlace { gpc: e.gpc_index, tpc: e.tpc_index, global_tpc: at as u8, sm }
    };
    entries.iter().map(&mut place).collect()
}

fn read_map(ctrl: &File, vsms_map_buf_addr: u64) -> Result<(), KernelError> {
    call(ctrl, NVGPU_GPU_IOCTL_VSMS_MAPPING, &mut nvgpu_gpu_vsms_mapping { vsms_map_buf_addr })
}
