//! Controls of the NV2080 interface, GR category: the parts of the graphics and compute engine.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;
use crate::rm::ctrl_0080::NV0080_CTRL_GR_ROUTE_INFO;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_2080_GR_STRUCTS: Abi::Rm570;

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_INFO`.
    pub struct NV2080_CTRL_GR_GET_INFO_PARAMS {
        grInfoListSize: u32,
        _pad0: [u8; 4],
        grInfoList: u64,
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_TPC_MASK`.
    pub struct NV2080_CTRL_GR_GET_TPC_MASK_PARAMS {
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
        gpcId: u32,
        tpcMask: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_ZCULL_INFO`.
    pub struct NV2080_CTRL_GR_GET_ZCULL_INFO_PARAMS {
        widthAlignPixels: u32,
        heightAlignPixels: u32,
        pixelSquaresByAliquots: u32,
        aliquotTotal: u32,
        zcullRegionByteMultiplier: u32,
        zcullRegionHeaderSize: u32,
        zcullSubregionHeaderSize: u32,
        subregionCount: u32,
        subregionWidthAlignPixels: u32,
        subregionHeightAlignPixels: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_CTXSW_ZCULL_BIND`.
    pub struct NV2080_CTRL_GR_CTXSW_ZCULL_BIND_PARAMS {
        hClient: u32,
        hChannel: u32,
        vMemPtr: u64,
        zcullMode: u32,
        _pad0: [u8; 4],
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_CTX_BUFFER_SIZE`.
    pub struct NV2080_CTRL_GR_GET_CTX_BUFFER_SIZE_PARAMS {
        hChannel: u32,
        _pad0: [u8; 4],
        totalBufferSize: u64,
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_GPC_MASK`.
    pub struct NV2080_CTRL_GR_GET_GPC_MASK_PARAMS {
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
        gpcMask: u32,
        _pad0: [u8; 4],
    }

    /// `NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS_smId` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS_smId {
        gpcId: u32,
        tpcId: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_SM_TO_GPC_TPC_MAPPINGS`.
    pub struct NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS {
        smId: [NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS_smId; 240],
        smCount: u32,
        _pad0: [u8; 4],
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// `NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS_globalSmId` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS_globalSmId {
        gpcId: u16,
        localTpcId: u16,
        localSmId: u16,
        globalTpcId: u16,
        virtualGpcId: u16,
        migratableTpcId: u16,
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER`.
    pub struct NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS {
        globalSmId: [NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS_globalSmId; 512],
        numSm: u16,
        numTpc: u16,
        _pad0: [u8; 4],
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE`.
    pub struct NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS {
        flags: u32,
        hChannel: u32,
        gfxpPreemptMode: u32,
        cilpPreemptMode: u32,
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_CAPS_V2`.
    pub struct NV2080_CTRL_GR_GET_CAPS_V2_PARAMS {
        capsTbl: [u8; 23],
        _pad0: [u8; 1],
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
        bCapsPopulated: u8,
        _pad1: [u8; 7],
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_SM_ISSUE_RATE_MODIFIER`.
    pub struct NV2080_CTRL_GR_GET_SM_ISSUE_RATE_MODIFIER_PARAMS {
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
        imla0: u8,
        fmla16: u8,
        dp: u8,
        fmla32: u8,
        ffma: u8,
        imla1: u8,
        imla2: u8,
        imla3: u8,
        imla4: u8,
        _pad0: [u8; 7],
    }

    /// `NV2080_CTRL_GR_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_INFO {
        index: u32,
        data: u32,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_2080_GR_CONSTS: Abi::Rm570;

    NV2080_CTRL_CMD_GR_GET_INFO: u32 = 0x20801201;
    NV2080_CTRL_CMD_GR_GET_TPC_MASK: u32 = 0x2080122b;
    NV2080_CTRL_CMD_GR_GET_ZCULL_INFO: u32 = 0x20801206;
    NV2080_CTRL_CMD_GR_CTXSW_ZCULL_BIND: u32 = 0x20801208;
    NV2080_CTRL_CMD_GR_GET_CTX_BUFFER_SIZE: u32 = 0x20801218;
    NV2080_CTRL_CMD_GR_GET_GPC_MASK: u32 = 0x2080122a;
    NV2080_CTRL_CMD_GR_GET_SM_TO_GPC_TPC_MAPPINGS: u32 = 0x2080120f;
    NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER: u32 = 0x2080121b;
    NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE: u32 = 0x20801210;
    NV2080_CTRL_CMD_GR_GET_CAPS_V2: u32 = 0x20801227;
    NV2080_CTRL_CMD_GR_GET_SM_ISSUE_RATE_MODIFIER: u32 = 0x20801230;
    NV2080_CTRL_GR_INFO_INDEX_BUFFER_ALIGNMENT: u32 = 3;
    NV2080_CTRL_GR_INFO_INDEX_DUMMY: u32 = 0x33;
    NV2080_CTRL_GR_INFO_INDEX_FAMILY_MAX_TPC_PER_GPC: u32 = 0x2a;
    NV2080_CTRL_GR_INFO_INDEX_FB_MEMORY_REQUEST_GRANULARITY: u32 = 0x11;
    NV2080_CTRL_GR_INFO_INDEX_GEOM_GS_OBUF_ENTRIES: u32 = 0xf;
    NV2080_CTRL_GR_INFO_INDEX_GEOM_XBUF_ENTRIES: u32 = 0x10;
    NV2080_CTRL_GR_INFO_INDEX_GFX_CAPABILITIES: u32 = 0x34;
    NV2080_CTRL_GR_INFO_INDEX_GPU_CORE_COUNT: u32 = 0x1d;
    NV2080_CTRL_GR_INFO_INDEX_HOST_MEMORY_REQUEST_GRANULARITY: u32 = 0x12;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_MAX_NUM_SMC_ENGINES_PER_DIELET: u32 = 0x39;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_MIN_SUBCTX_PER_SMC_ENG: u32 = 0x37;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_FBPAS: u32 = 0x1b;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_FBPA_PER_FBP: u32 = 0x2b;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_FBPS: u32 = 0x15;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GFXC_SMC_ENGINES: u32 = 0x33;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCMMU_PER_GPC: u32 = 0x27;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS: u32 = 0x14;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS_PER_DIELET: u32 = 0x38;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GRS: u32 = 0x24;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_HSHUB_FBP_PORTS: u32 = 0x21;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_LTCS: u32 = 0x25;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_LTC_PER_FBP: u32 = 0x28;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_LTC_SLICES: u32 = 0x26;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_MIN_FBPS: u32 = 0x18;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_MXBAR_FBP_PORTS: u32 = 0x19;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_MXBAR_HUB_PORTS: u32 = 0x1f;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_PES_PER_GPC: u32 = 0x1c;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_ROP_PER_GPC: u32 = 0x29;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SLICES_PER_LTC: u32 = 0x32;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC: u32 = 0x20;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPCS_PER_PES: u32 = 0x1e;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC: u32 = 0x17;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_ZCULL_BANKS: u32 = 0x16;
    NV2080_CTRL_GR_INFO_INDEX_MAX: u32 = 0x39;
    NV2080_CTRL_GR_INFO_INDEX_MAXCLIPS: u32 = 0;
    NV2080_CTRL_GR_INFO_INDEX_MAX_LEGACY_SUBCONTEXT_COUNT: u32 = 0x2d;
    NV2080_CTRL_GR_INFO_INDEX_MAX_MIG_ENGINES: u32 = 0x35;
    NV2080_CTRL_GR_INFO_INDEX_MAX_PARTITIONABLE_GPCS: u32 = 0x36;
    NV2080_CTRL_GR_INFO_INDEX_MAX_PER_ENGINE_SUBCONTEXT_COUNT: u32 = 0x2e;
    NV2080_CTRL_GR_INFO_INDEX_MAX_SP_PER_SM: u32 = 0x13;
    NV2080_CTRL_GR_INFO_INDEX_MAX_SUBCONTEXT_COUNT: u32 = 0x2c;
    NV2080_CTRL_GR_INFO_INDEX_MAX_THREADS_PER_WARP: u32 = 0xe;
    NV2080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM: u32 = 0xd;
    NV2080_CTRL_GR_INFO_INDEX_MIN_ATTRS_BUG_261894: u32 = 1;
    NV2080_CTRL_GR_INFO_INDEX_RT_CORE_COUNT: u32 = 0x22;
    NV2080_CTRL_GR_INFO_INDEX_SHADER_PIPE_COUNT: u32 = 7;
    NV2080_CTRL_GR_INFO_INDEX_SHADER_PIPE_SUB_COUNT: u32 = 9;
    NV2080_CTRL_GR_INFO_INDEX_SM_REG_BANK_COUNT: u32 = 0xa;
    NV2080_CTRL_GR_INFO_INDEX_SM_REG_BANK_REG_COUNT: u32 = 0xb;
    NV2080_CTRL_GR_INFO_INDEX_SM_VERSION: u32 = 0xc;
    NV2080_CTRL_GR_INFO_INDEX_SWIZZLE_ALIGNMENT: u32 = 4;
    NV2080_CTRL_GR_INFO_INDEX_TENSOR_CORE_COUNT: u32 = 0x23;
    NV2080_CTRL_GR_INFO_INDEX_THREAD_STACK_SCALING_FACTOR: u32 = 8;
    NV2080_CTRL_GR_INFO_INDEX_TIMESLICE_ENABLED: u32 = 0x1a;
    NV2080_CTRL_GR_INFO_INDEX_VERTEX_CACHE_SIZE: u32 = 5;
    NV2080_CTRL_GR_INFO_INDEX_VPE_COUNT: u32 = 6;
}
