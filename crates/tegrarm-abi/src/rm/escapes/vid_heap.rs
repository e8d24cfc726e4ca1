//! Argument of the VID_HEAP_CONTROL escape, the older way to allocate memory.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static ESCAPE_VID_HEAP_STRUCTS: Abi::Rm570;

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_AllocSize {
        owner: u32,
        hMemory: u32,
        type_: u32,
        flags: u32,
        attr: u32,
        format: u32,
        comprCovg: u32,
        zcullCovg: u32,
        partitionStride: u32,
        width: u32,
        height: u32,
        _pad0: [u8; 4],
        size: u64,
        alignment: u64,
        offset: u64,
        limit: u64,
        address: u64,
        rangeBegin: u64,
        rangeEnd: u64,
        attr2: u32,
        ctagOffset: u32,
        numaNode: i32,
        _pad1: [u8; 4],
    }

    /// The union in [`NVOS32_PARAMETERS`], by its longest common member.
    pub struct NVOS32_PARAMETERS_data {
        AllocSize: NVOS32_PARAMETERS_data_AllocSize,
        _pad0: [u8; 24],
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_AllocTiledPitchHeight {
        owner: u32,
        hMemory: u32,
        type_: u32,
        flags: u32,
        height: u32,
        pitch: i32,
        attr: u32,
        width: u32,
        format: u32,
        comprCovg: u32,
        zcullCovg: u32,
        partitionStride: u32,
        size: u64,
        alignment: u64,
        offset: u64,
        limit: u64,
        address: u64,
        rangeBegin: u64,
        rangeEnd: u64,
        attr2: u32,
        ctagOffset: u32,
        numaNode: i32,
        _pad0: [u8; 4],
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_Free {
        owner: u32,
        hMemory: u32,
        flags: u32,
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_ReleaseCompr {
        owner: u32,
        flags: u32,
        hMemory: u32,
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_ReacquireCompr {
        owner: u32,
        flags: u32,
        hMemory: u32,
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_Info {
        attr: u32,
        _pad0: [u8; 4],
        offset: u64,
        size: u64,
        base: u64,
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_Dump {
        flags: u32,
        _pad0: [u8; 4],
        pBuffer: u64,
        numBlocks: u32,
        _pad1: [u8; 4],
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_AllocSizeRange {
        owner: u32,
        hMemory: u32,
        type_: u32,
        flags: u32,
        attr: u32,
        format: u32,
        comprCovg: u32,
        zcullCovg: u32,
        partitionStride: u32,
        _pad0: [u8; 4],
        size: u64,
        alignment: u64,
        offset: u64,
        limit: u64,
        rangeBegin: u64,
        rangeEnd: u64,
        address: u64,
        attr2: u32,
        ctagOffset: u32,
        numaNode: i32,
        _pad1: [u8; 4],
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_AllocHintAlignment {
        alignType: u32,
        alignAttr: u32,
        alignInputFlags: u32,
        _pad0: [u8; 4],
        alignSize: u64,
        alignHeight: u32,
        alignWidth: u32,
        alignPitch: u32,
        alignPad: u32,
        alignMask: u32,
        alignOutputFlags: [u32; 4],
        alignBank: [u32; 4],
        alignKind: u32,
        alignAdjust: u32,
        alignAttr2: u32,
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_HwAlloc_comprInfo {
        compPageShift: u32,
        compressedKind: u32,
        compTagLineMin: u32,
        compPageIndexLo: u32,
        compPageIndexHi: u32,
        compTagLineMultiplier: u32,
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_HwAlloc {
        allocOwner: u32,
        allochMemory: u32,
        flags: u32,
        allocType: u32,
        allocAttr: u32,
        allocInputFlags: u32,
        allocSize: u64,
        allocHeight: u32,
        allocWidth: u32,
        allocPitch: u32,
        allocMask: u32,
        allocComprCovg: u32,
        allocZcullCovg: u32,
        bindResultFunc: u64,
        pHandle: u64,
        hResourceHandle: u32,
        retAttr: u32,
        kind: u32,
        _pad0: [u8; 4],
        osDeviceHandle: u64,
        allocAttr2: u32,
        retAttr2: u32,
        allocAddr: u64,
        comprInfo: NVOS32_PARAMETERS_data_HwAlloc_comprInfo,
        uncompressedKind: u32,
        _pad1: [u8; 4],
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_HwFree {
        hResourceHandle: u32,
        flags: u32,
    }

    /// A member of the union in [`NVOS32_PARAMETERS`].
    pub struct NVOS32_PARAMETERS_data_AllocOsDesc {
        hMemory: u32,
        type_: u32,
        flags: u32,
        attr: u32,
        attr2: u32,
        _pad0: [u8; 4],
        descriptor: u64,
        limit: u64,
        descriptorType: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_VID_HEAP_CONTROL`.
    pub struct NVOS32_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        function: u32,
        hVASpace: u32,
        ivcHeapNumber: i16,
        _pad0: [u8; 2],
        status: u32,
        total: u64,
        free: u64,
        data: NVOS32_PARAMETERS_data,
    }
}
