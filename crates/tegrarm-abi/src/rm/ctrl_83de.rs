//! Controls of the NV83DE interface: command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use super::ctrl_b0cc::NV2080_CTRL_GPU_REG_OP;
use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_83DE_STRUCTS: Abi::Rm570;

    /// `NV83DE_SM_ERROR_STATE_REGISTERS` of the RM user ABI (driver 570).
    pub struct NV83DE_SM_ERROR_STATE_REGISTERS {
        hwwGlobalEsr: u32,
        hwwWarpEsr: u32,
        hwwWarpEsrPc: u32,
        hwwGlobalEsrReportMask: u32,
        hwwWarpEsrReportMask: u32,
        _pad0: [u8; 4],
        hwwEsrAddr: u64,
        hwwWarpEsrPc64: u64,
        hwwCgaEsr: u32,
        hwwCgaEsrReportMask: u32,
    }

    /// `NV83DE_MMU_FAULT_INFO` of the RM user ABI (driver 570).
    pub struct NV83DE_MMU_FAULT_INFO {
        valid: u8,
        _pad0: [u8; 3],
        faultInfo: u32,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES`.
    pub struct NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS {
        hTargetChannel: u32,
        numSMsToRead: u32,
        smErrorStateArray: [NV83DE_SM_ERROR_STATE_REGISTERS; 100],
        mmuFaultInfo: u32,
        mmuFault: NV83DE_MMU_FAULT_INFO,
        startingSM: u32,
    }

    /// `NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_ENTRY` of the RM user ABI (driver 570).
    pub struct NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_ENTRY {
        faultAddress: u64,
        faultType: u32,
        accessType: u32,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO`.
    pub struct NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS {
        mmuFaultInfoList: [NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_ENTRY; 4],
        count: u32,
        _pad0: [u8; 4],
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_SET_MODE_MMU_DEBUG`.
    pub struct NV83DE_CTRL_DEBUG_SET_MODE_MMU_DEBUG_PARAMS {
        action: u32,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK`.
    pub struct NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_PARAMS {
        exceptionMask: u32,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES`.
    pub struct NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS {
        hTargetChannel: u32,
        numSMsToClear: u32,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_READ_MEMORY`.
    pub struct NV83DE_CTRL_DEBUG_READ_MEMORY_PARAMS {
        hMemory: u32,
        length: u32,
        offset: u64,
        buffer: u64,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT`.
    pub struct NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT_PARAMS {
        waitForEvent: u32,
        hResidentChannel: u32,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG`.
    pub struct NV83DE_CTRL_DEBUG_SET_MODE_ERRBAR_DEBUG_PARAMS {
        action: u32,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE`.
    pub struct NV83DE_CTRL_DEBUG_READ_SINGLE_SM_ERROR_STATE_PARAMS {
        hTargetChannel: u32,
        smID: u32,
        smErrorState: NV83DE_SM_ERROR_STATE_REGISTERS,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE`.
    pub struct NV83DE_CTRL_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE_PARAMS {
        hTargetChannel: u32,
        smID: u32,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE`.
    pub struct NV83DE_CTRL_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE_PARAMS {
        stopTriggerType: u32,
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_WRITE_MEMORY`.
    pub struct NV83DE_CTRL_DEBUG_WRITE_MEMORY_PARAMS {
        hMemory: u32,
        length: u32,
        offset: u64,
        buffer: u64,
    }

    /// `NV83DE_CTRL_DEBUG_GET_MAPPINGS_OP` of the RM user ABI (driver 570).
    pub struct NV83DE_CTRL_DEBUG_GET_MAPPINGS_OP {
        gpuVA: u64,
        size: u32,
        _pad0: [u8; 4],
    }

    /// Parameters of `NV83DE_CTRL_CMD_GET_MAPPINGS`.
    pub struct NV83DE_CTRL_DEBUG_GET_MAPPINGS_PARAMETERS {
        vaLo: u64,
        vaHi: u64,
        count: u32,
        hasMore: u32,
        opsBuffer: [NV83DE_CTRL_DEBUG_GET_MAPPINGS_OP; 64],
    }

    /// Parameters of `NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS`.
    pub struct NV83DE_CTRL_DEBUG_EXEC_REG_OPS_PARAMS {
        bNonTransactional: u8,
        _pad0: [u8; 3],
        regOpCount: u32,
        regOps: [NV2080_CTRL_GPU_REG_OP; 100],
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_83DE_CONSTS: Abi::Rm570;

    NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES: u32 = 0x83de030c;
    NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO: u32 = 0x83de0328;
    NV83DE_CTRL_CMD_DEBUG_SET_MODE_MMU_DEBUG: u32 = 0x83de0307;
    NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK: u32 = 0x83de0309;
    NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES: u32 = 0x83de0310;
    NV83DE_CTRL_CMD_DEBUG_READ_MEMORY: u32 = 0x83de0315;
    NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT: u32 = 0x83de0317;
    NV83DE_CTRL_CMD_DEBUG_RESUME_CONTEXT: u32 = 0x83de0318;
    NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG: u32 = 0x83de031f;
    NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE: u32 = 0x83de030b;
    NV83DE_CTRL_CMD_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE: u32 = 0x83de030f;
    NV83DE_CTRL_CMD_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE: u32 = 0x83de0313;
    NV83DE_CTRL_CMD_DEBUG_WRITE_MEMORY: u32 = 0x83de0316;
    NV83DE_CTRL_CMD_GET_MAPPINGS: u32 = 0x83de031c;
    NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS: u32 = 0x83de031d;
    NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG_DISABLE: u32 = 0;
    NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG_ENABLE: u32 = 1;
    NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_NONE: u32 = 0;
    NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_FATAL: u32 = 1;
    NV83DE_CTRL_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE_SINGLE_SM: u32 = 1;
    NV83DE_CTRL_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE_BROADCSAT: u32 = 2;
}
