//! Tests the sizes of structures over the generations of NVIDIA's driver, from 535 to 620. Another project is the
//! source of the sizes.
//!
//! gVisor's nvproxy passes calls of programs to NVIDIA's driver. It has the layout of every structure for every driver
//! that it supports. Its sizes therefore do not depend on the headers from which this library was made. For each
//! structure that the library answers, it must accept each of these sizes, because the size selects the layout.

use crate::common::door::*;
use crate::common::*;
use tegrarm::files::escapes::{Args, ESCAPES};
use tegrarm::rm::classes::{self, Params, Support};
use tegrarm::rm::controls;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_0000::*;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::versions::*;
use zerocopy::FromZeros;

/// The sizes of allocation parameters with 535, and what changed with 545, 570, 580 and 610.
const ALLOCATIONS: &[(u32, &[usize])] = &[
    (NV01_ROOT, &[4]),
    (NV01_ROOT_NON_PRIV, &[4]),
    (NV01_ROOT_CLIENT, &[4]),
    (NV01_CONTEXT_DMA, &[32]),
    (NV01_MEMORY_SYSTEM, &[120, 128]),
    (NV01_MEMORY_LOCAL_USER, &[120, 128]),
    (NV50_MEMORY_VIRTUAL, &[120, 128]),
    (NV01_EVENT_OS_EVENT, &[24]),
    (NV01_MEMORY_VIRTUAL, &[24]),
    (NV01_DEVICE_0, &[56]),
    (NV20_SUBDEVICE_0, &[4]),
    (GT200_DEBUGGER, &[12]),
    (MAXWELL_PROFILER_DEVICE, &[8]),
    (FERMI_CONTEXT_SHARE_A, &[12]),
    (FERMI_VASPACE_A, &[48, 56]),
    (KEPLER_CHANNEL_GROUP_A, &[20]),
    (TURING_CHANNEL_GPFIFO_A, &[360, 368, 376]),
    (AMPERE_CHANNEL_GPFIFO_A, &[360, 368, 376]),
    (AMPERE_DMA_COPY_B, &[8]),
    (AMPERE_COMPUTE_B, &[16]),
];

/// The sizes of the arguments of escapes with 535, and what changed with 550 and 580.
const ESCAPE_SIZES: &[(u32, &[usize])] = &[
    (NV_ESC_CARD_INFO, &[32 * 72]),
    (NV_ESC_CHECK_VERSION_STR, &[72]),
    (NV_ESC_SYS_PARAMS, &[8]),
    (NV_ESC_WAIT_OPEN_COMPLETE, &[8]),
    (NV_ESC_REGISTER_FD, &[4]),
    (NV_ESC_ALLOC_OS_EVENT, &[16]),
    (NV_ESC_FREE_OS_EVENT, &[16]),
    (NV_ESC_RM_ALLOC_MEMORY, &[56]),
    (NV_ESC_RM_FREE, &[16]),
    (NV_ESC_RM_CONTROL, &[32]),
    (NV_ESC_RM_ALLOC, &[32, 48]),
    (NV_ESC_RM_DUP_OBJECT, &[28]),
    (NV_ESC_RM_IDLE_CHANNELS, &[56]),
    (NV_ESC_RM_VID_HEAP_CONTROL, &[184]),
    (NV_ESC_RM_MAP_MEMORY, &[56]),
    (NV_ESC_RM_UNMAP_MEMORY, &[32]),
    (NV_ESC_RM_ALLOC_CONTEXT_DMA2, &[56]),
    (NV_ESC_RM_MAP_MEMORY_DMA, &[56, 64]),
    (NV_ESC_RM_UNMAP_MEMORY_DMA, &[40, 48]),
    (NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO, &[40]),
];

/// The sizes of the parameters of controls. nvproxy has these structures because they contain pointers, descriptors or
/// handles.
const CONTROL_SIZES: &[(u32, &[usize])] = &[
    (NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION, &[40]),
    (NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS, &[168, 176]),
    (NV0000_CTRL_CMD_GPU_GET_ID_INFO, &[40]),
    (NV0000_CTRL_CMD_GPU_ATTACH_IDS, &[132]),
    (NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID, &[268]),
    (NV0080_CTRL_CMD_FIFO_GET_CHANNELLIST, &[24]),
    (NV0080_CTRL_CMD_GR_GET_CAPS, &[16]),
    (NV0080_CTRL_CMD_FB_GET_CAPS, &[16]),
    (NV0080_CTRL_CMD_FIFO_GET_CAPS, &[16]),
    (NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, &[536]),
    (NV2080_CTRL_CMD_GR_GET_INFO, &[32]),
    (NV83DE_CTRL_CMD_DEBUG_READ_MEMORY, &[24]),
    (NV83DE_CTRL_CMD_DEBUG_WRITE_MEMORY, &[24]),
];

#[test]
fn every_generations_sizes_are_taken() {
    for (class, sizes) in ALLOCATIONS {
        let row = classes::find(*class).expect("a row");
        let (Params::Optional(taken) | Params::Required(taken)) = row.params else {
            panic!("{} has parameters", row.name)
        };
        assert!(sizes.iter().all(|size| taken.contains(size)), "{}: {taken:?} has not all of {sizes:?}", row.name);
    }
    for (escape, sizes) in ESCAPE_SIZES {
        let row = ESCAPES.iter().find(|row| row.nr == *escape).expect("a row");
        let takes = |size: usize| match row.args {
            Args::Sizes(taken) => taken.iter().any(|(other, _)| *other == size),
            Args::Items(item) => size.is_multiple_of(item),
            Args::ItemsAndRest(item) => size >= item,
            Args::Any => true,
        };
        assert!(sizes.iter().all(|size| takes(*size)), "{}: {:?} has not all of {sizes:?}", row.name, row.args);
    }
    for (control, sizes) in CONTROL_SIZES {
        let row = controls::find(*control).expect("a row");
        assert!(!matches!(row.state, Support::Refused(_)), "{}", row.name);
        assert!(sizes.iter().all(|size| row.sizes.contains(size)), "{}: {:?} of {sizes:?}", row.name, row.sizes);
    }
}

/// The parameters of memory with driver 535 have no NUMA node at their end. Nothing after them is read or written.
#[test]
fn a_client_of_535_allocates_maps_and_unmaps() {
    let rm = manager(board(default_release()));
    let s = Session::open(&rm).unwrap();
    let mut p = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
    (p.size, p.attr, p.numaNode) = (MIB, NVOS32_ATTR_COHERENCY_WRITE_COMBINE << 29, 77);
    let old = std::mem::offset_of!(NV_MEMORY_ALLOCATION_PARAMS, numaNode);
    let mut bytes = zerocopy::IntoBytes::as_bytes(&p).to_vec();
    bytes.truncate(old);
    let prepared = rm.prepare_alloc(NV01_MEMORY_LOCAL_USER, true, old as u32).unwrap();
    let memory = rm.alloc(prepared, s.client, s.device, 0, &mut bytes).unwrap();
    let va = s.map_gpu(&rm, memory, MIB).unwrap();
    assert_ne!(va, 0);
    s.close(&rm);
}

#[test]
fn the_unmapping_of_535_has_its_status_where_535_looks() {
    let mut d = Desktop::open(default_release());
    d.client = d.try_alloc(0, 0, NV01_ROOT_CLIENT, 0).hObjectNew;
    let mut p = NVOS47_PARAMETERS_V535::new_zeroed();
    (p.hClient, p.hDevice, p.hDma, p.hMemory, p.status) = (d.client, 0xbad, 0xbad, 0xbad, NV_OK);
    d.escape(d.ctl, NV_ESC_RM_UNMAP_MEMORY_DMA, &mut p).expect("understood");
    assert_eq!(p.status, NV_ERR_OBJECT_NOT_FOUND);
}
