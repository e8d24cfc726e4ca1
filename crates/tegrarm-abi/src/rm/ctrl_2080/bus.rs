//! Controls of the NV2080 interface, BUS category: questions about PCI.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_2080_BUS_STRUCTS: Abi::Rm570;

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_PCI_INFO`.
    pub struct NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS {
        pciDeviceId: u32,
        pciSubSystemId: u32,
        pciRevisionId: u32,
        pciExtDeviceId: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_INFO`.
    pub struct NV2080_CTRL_BUS_GET_INFO_PARAMS {
        busInfoListSize: u32,
        _pad0: [u8; 4],
        busInfoList: u64,
    }

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_INFO_V2`.
    pub struct NV2080_CTRL_BUS_GET_INFO_V2_PARAMS {
        busInfoListSize: u32,
        busInfoList: [u8; 416],
    }

    /// `NV2080_CTRL_BUS_PCI_BAR_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_PCI_BAR_INFO {
        flags: u32,
        barSize: u32,
        barSizeBytes: u64,
        barOffset: u64,
    }

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_PCI_BAR_INFO`.
    pub struct NV2080_CTRL_BUS_GET_PCI_BAR_INFO_PARAMS {
        pciBarCount: u32,
        _pad0: [u8; 4],
        pciBarInfo: [NV2080_CTRL_BUS_PCI_BAR_INFO; 8],
    }

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_PEX_COUNTERS`.
    pub struct NV2080_CTRL_BUS_GET_PEX_COUNTERS_PARAMS {
        pexCounterMask: u32,
        pexTotalCorrectableErrors: u32,
        pexCorrectableErrors: u16,
        pexTotalNonFatalErrors: u8,
        pexTotalFatalErrors: u8,
        pexTotalUnsupportedReqs: u8,
        _pad0: [u8; 1],
        pexCounters: [u16; 31],
    }

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_PEX_UTIL_COUNTERS`.
    pub struct NV2080_CTRL_BUS_GET_PEX_UTIL_COUNTERS_PARAMS {
        pexCounterMask: u32,
        pexCounters: [u32; 7],
    }

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_PCIE_REQ_ATOMICS_CAPS`.
    pub struct NV2080_CTRL_CMD_BUS_GET_PCIE_REQ_ATOMICS_CAPS_PARAMS {
        capType: u32,
        dbdf: u32,
        atomicsCaps: u32,
    }

    /// `NV2080_CTRL_BUS_PCIE_GPU_ATOMIC_OP_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_PCIE_GPU_ATOMIC_OP_INFO {
        bSupported: u8,
        _pad0: [u8; 3],
        attributes: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS`.
    pub struct NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS_PARAMS {
        capType: u32,
        dbdf: u32,
        atomicOp: [NV2080_CTRL_BUS_PCIE_GPU_ATOMIC_OP_INFO; 13],
    }

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_C2C_INFO`.
    pub struct NV2080_CTRL_CMD_BUS_GET_C2C_INFO_PARAMS {
        bIsLinkUp: u8,
        _pad0: [u8; 3],
        nrLinks: u32,
        maxNrLinks: u32,
        linkMask: u32,
        perLinkBwMBps: u32,
        perLinkLaneWidth: u32,
        remoteType: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_BUS_GET_PCIE_CPL_ATOMICS_CAPS`.
    pub struct NV2080_CTRL_CMD_BUS_GET_PCIE_CPL_ATOMICS_CAPS_PARAMS {
        atomicsCaps: u32,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_2080_BUS_CONSTS: Abi::Rm570;

    NV2080_CTRL_CMD_BUS_GET_PCI_INFO: u32 = 0x20801801;
    NV2080_CTRL_CMD_BUS_GET_INFO: u32 = 0x20801802;
    NV2080_CTRL_CMD_BUS_GET_INFO_V2: u32 = 0x20801823;
    NV2080_CTRL_CMD_BUS_GET_PCI_BAR_INFO: u32 = 0x20801803;
    NV2080_CTRL_CMD_BUS_GET_PEX_COUNTERS: u32 = 0x20801813;
    NV2080_CTRL_CMD_BUS_GET_PEX_UTIL_COUNTERS: u32 = 0x20801819;
    NV2080_CTRL_CMD_BUS_GET_PCIE_REQ_ATOMICS_CAPS: u32 = 0x20801829;
    NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS: u32 = 0x2080182a;
    NV2080_CTRL_CMD_BUS_GET_C2C_INFO: u32 = 0x2080182b;
    NV2080_CTRL_CMD_BUS_GET_PCIE_CPL_ATOMICS_CAPS: u32 = 0x20801830;
    NV2080_CTRL_BUS_INFO_INDEX_TYPE: u32 = 0;
    NV2080_CTRL_BUS_INFO_TYPE_AXI: u32 = 8;
    NV2080_CTRL_BUS_INFO_TYPE_FPCI: u32 = 4;
    NV2080_CTRL_BUS_INFO_TYPE_PCI: u32 = 1;
    NV2080_CTRL_BUS_INFO_TYPE_PCI_EXPRESS: u32 = 3;
}
