//! Arguments of the escapes that work on the node itself: cards, versions, events, exports.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use super::objects::{NVOS02_PARAMETERS, NVOS33_PARAMETERS};
use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static ESCAPE_NODES_STRUCTS: Abi::Rm570;

    /// Argument of `NV_ESC_ALLOC_OS_EVENT`.
    pub struct nv_ioctl_alloc_os_event_t {
        hClient: u32,
        hDevice: u32,
        fd: u32,
        Status: u32,
    }

    /// The place of a card on the bus. It is a part of [`nv_ioctl_card_info_t`].
    pub struct nv_pci_info_t {
        domain: u32,
        bus: u8,
        slot: u8,
        function: u8,
        _pad0: [u8; 1],
        vendor_id: u16,
        device_id: u16,
    }

    /// One entry of the array that `NV_ESC_CARD_INFO` fills.
    pub struct nv_ioctl_card_info_t {
        valid: u8,
        _pad0: [u8; 3],
        pci_info: nv_pci_info_t,
        gpu_id: u32,
        interrupt_line: u16,
        _pad1: [u8; 2],
        reg_address: u64,
        reg_size: u64,
        fb_address: u64,
        fb_size: u64,
        minor_number: u32,
        dev_name: [u8; 10],
        _pad2: [u8; 2],
    }

    /// Argument of `NV_ESC_EXPORT_TO_DMABUF_FD`.
    pub struct nv_ioctl_export_to_dma_buf_fd_t {
        fd: i32,
        hClient: u32,
        totalObjects: u32,
        numObjects: u32,
        index: u32,
        _pad0: [u8; 4],
        totalSize: u64,
        mappingType: u8,
        _pad1: [u8; 3],
        handles: [u32; 128],
        _pad2: [u8; 4],
        offsets: [u64; 128],
        sizes: [u64; 128],
        status: u32,
        _pad3: [u8; 4],
    }

    /// Argument of `NV_ESC_FREE_OS_EVENT`.
    pub struct nv_ioctl_free_os_event_t {
        hClient: u32,
        hDevice: u32,
        fd: u32,
        Status: u32,
    }

    /// Argument of `NV_ESC_NUMA_INFO`.
    pub struct nv_ioctl_numa_info_t {
        nid: i32,
        status: i32,
        memblock_size: u64,
        numa_mem_addr: u64,
        numa_mem_size: u64,
        use_auto_online: u8,
        _pad0: [u8; 7],
        offline_addresses: [u8; 520],
    }

    /// Argument of `NV_ESC_RM_ALLOC_MEMORY`.
    pub struct nv_ioctl_nvos02_parameters_with_fd {
        params: NVOS02_PARAMETERS,
        fd: i32,
        _pad0: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_MAP_MEMORY`.
    pub struct nv_ioctl_nvos33_parameters_with_fd {
        params: NVOS33_PARAMETERS,
        fd: i32,
        _pad0: [u8; 4],
    }

    /// Argument of `NV_ESC_QUERY_DEVICE_INTR`.
    pub struct nv_ioctl_query_device_intr {
        intrStatus: u32,
        status: u32,
    }

    /// Argument of `NV_ESC_REGISTER_FD`.
    pub struct nv_ioctl_register_fd_t {
        ctl_fd: i32,
    }

    /// Argument of `NV_ESC_CHECK_VERSION_STR`.
    pub struct nv_ioctl_rm_api_version_t {
        cmd: u32,
        reply: u32,
        versionString: [u8; 64],
    }

    /// Argument of `NV_ESC_SET_NUMA_STATUS`.
    pub struct nv_ioctl_set_numa_status_t {
        status: i32,
    }

    /// Argument of `NV_ESC_STATUS_CODE`.
    pub struct nv_ioctl_status_code_t {
        domain: u32,
        bus: u8,
        slot: u8,
        _pad0: [u8; 2],
        status: u32,
    }

    /// Argument of `NV_ESC_SYS_PARAMS`.
    pub struct nv_ioctl_sys_params_t {
        memblock_size: u64,
    }

    /// Argument of `NV_ESC_WAIT_OPEN_COMPLETE`.
    pub struct nv_ioctl_wait_open_complete_t {
        rc: i32,
        adapterStatus: u32,
    }

    /// Argument of `NV_ESC_IOCTL_XFER_CMD`.
    pub struct nv_ioctl_xfer_t {
        cmd: u32,
        size: u32,
        ptr: u64,
    }
}
