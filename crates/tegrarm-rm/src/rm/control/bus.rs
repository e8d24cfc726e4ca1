//! Controls about the bus of the GPU: it is attached by AXI, inside the system on chip.

use super::row::ControlCall;
use super::{answer_inline, answer_list};
use crate::rm::params::{get, put};
use crate::status::RmResult;
use tegrarm_abi::rm::ctrl_2080::*;

/// NVIDIA's PCI vendor id, the low half of `pciDeviceId`. The high half is 0, because the GPU has no PCI device id.
const VENDOR: u32 = 0x10de;

pub fn pci_info(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let c = call.client.gpu.characteristics();
    let device = u32::from(c.pci_device_id) << 16 | VENDOR;
    let subsystem = u32::from(c.pci_subsystem_device_id) << 16 | u32::from(c.pci_subsystem_vendor_id);
    let info = NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS {
        pciDeviceId: device,
        pciSubSystemId: subsystem,
        pciRevisionId: u32::from(c.pci_revision),
        pciExtDeviceId: device >> 16,
    };
    put(params, &info);
    Ok(())
}

fn answer(index: u32) -> u32 {
    if index == NV2080_CTRL_BUS_INFO_INDEX_TYPE { NV2080_CTRL_BUS_INFO_TYPE_AXI } else { 0 }
}

pub fn info(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV2080_CTRL_BUS_GET_INFO_PARAMS = get(params);
    answer_list(p.busInfoList, p.busInfoListSize, |index| Ok(answer(index)))
}

pub fn info_v2(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    answer_inline(params, |index| Ok(answer(index)))
}
