//! Controls that clients other than tinygrad send, through the Rust core and through the C functions.

use crate::common::*;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::ctrl_others::*;
use tegrarm_abi::rm::status::*;
use zerocopy::FromZeros;

crate::over_both_doors! {
    controls_with_one_answer_belong_to_devices_and_subdevices,
    what_the_chip_has_is_asked_in_batches,
    a_channel_that_is_reset_is_dead,
}

/// RM keeps these answers for each GPU and gives them to any of its devices and subdevices.
fn controls_with_one_answer_belong_to_devices_and_subdevices(rm: &impl Calls) {
    let s = Session::open(rm).unwrap();
    let answer = |object: u32, cmd: u32, size: usize| {
        let mut params = vec![0; size];
        rm.tell(s.client, object, cmd, &mut params).unwrap_or_else(|e| panic!("{cmd:#x}: {e}"));
        params
    };
    for cmd in [
        NV2080_CTRL_CMD_GPU_GET_INFO_V2,
        NV2080_CTRL_CMD_GPU_GET_NAME_STRING,
        NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING,
        NV2080_CTRL_CMD_GPU_GET_SIMULATION_INFO,
        NV2080_CTRL_CMD_GPU_GET_INFOROM_IMAGE_VERSION,
        NV2080_CTRL_CMD_MC_GET_ARCH_INFO,
        NV2080_CTRL_CMD_BUS_GET_PCI_INFO,
        NV2080_CTRL_CMD_BUS_GET_PCI_BAR_INFO,
        NV2080_CTRL_CMD_BUS_GET_PCIE_CPL_ATOMICS_CAPS,
        NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES,
        NV0080_CTRL_CMD_FB_GET_CAPS_V2,
        NV0080_CTRL_CMD_HOST_GET_CAPS_V2,
    ] {
        let row = tegrarm::rm::controls::find(cmd).expect("a row");
        let size = row.sizes[0];
        assert_eq!(answer(s.device, cmd, size), answer(s.subdevice, cmd, size), "{}", row.name);
        let refused = rm.tell(s.client, s.vaspace, cmd, &mut vec![0; size]);
        assert_eq!(status(refused), NV_ERR_NOT_SUPPORTED, "{} of a VA space", row.name);
    }
    // An answer that depends on the moment or on the object is looked up by class.
    for (object, cmd, size) in
        [(s.device, NV2080_CTRL_CMD_TIMER_GET_TIME, 8), (s.subdevice, NV0080_CTRL_CMD_GPU_GET_CLASSLIST, 16)]
    {
        assert_eq!(status(rm.tell(s.client, object, cmd, &mut vec![0; size])), NV_ERR_NOT_SUPPORTED, "{cmd:#x}");
    }
    s.close(rm);
}

fn what_the_chip_has_is_asked_in_batches(rm: &impl Calls) {
    let s = Session::open(rm).unwrap();
    let mut p = NV2080_CTRL_GRMGR_GET_GR_FS_INFO_PARAMS::new_zeroed();
    let mut tpcs = NV2080_CTRL_GR_GET_TPC_MASK_PARAMS::new_zeroed();
    rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_GR_GET_TPC_MASK, &mut tpcs).unwrap();
    let questions = [
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_GPC_COUNT, 0),
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_CHIPLET_GPC_MAP, 0),
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_TPC_MASK, 0),
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_CHIPLET_SYSPIPE_MASK, 0),
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_TPC_MASK, 31),
        (4, 0),
    ];
    for (query, (kind, gpc)) in p.queries.iter_mut().zip(questions) {
        (query.queryType, query.queryData[0]) = (kind as u16, gpc);
    }
    p.numQueries = questions.len() as u16;
    rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_GRMGR_GET_GR_FS_INFO, &mut p).unwrap();
    let statuses: Vec<u32> = p.queries[..questions.len()].iter().map(|q| q.status).collect();
    assert_eq!(statuses, [NV_OK, NV_OK, NV_OK, NV_OK, NV_ERR_INVALID_ARGUMENT, NV_ERR_NOT_SUPPORTED]);
    assert!(p.queries[0].queryData[0] > 0, "GPCs");
    assert_eq!((p.queries[1].queryData[1], p.queries[2].queryData[1]), (0, tpcs.tpcMask));
    assert_eq!(p.queries[3].queryData[0], 1, "one graphics engine");
    p.numQueries = 97;
    let refused = rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_GRMGR_GET_GR_FS_INFO, &mut p);
    assert_eq!(status(refused), NV_ERR_INVALID_ARGUMENT);
    s.close(rm);
}

fn a_channel_that_is_reset_is_dead(rm: &impl Calls) {
    let _shown = shows(&[NV_ERR_INVALID_PARAMETER]);
    let b = Bringup::open(rm).unwrap();
    let c = b.s.client;
    let mut p = NV906F_CTRL_CMD_RESET_CHANNEL_PARAMS::new_zeroed();
    p.resetReason = NV906F_CTRL_CMD_RESET_CHANNEL_REASON_ENUM_MAX;
    assert_eq!(status(rm.ask(c, b.channels[0], NV906F_CTRL_CMD_RESET_CHANNEL, &mut p)), NV_ERR_INVALID_PARAMETER);
    let mut enable = NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS::new_zeroed();
    enable.bEnable = 1;
    rm.ask(c, b.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut enable).expect("alive");
    (p.resetReason, p.bIsRcPending) = (0, 1);
    rm.ask(c, b.channels[0], NV906F_CTRL_CMD_RESET_CHANNEL, &mut p).expect("any reason below");
    assert_eq!(p.bIsRcPending, 0);
    let refused = rm.ask(c, b.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut enable);
    assert_eq!(status(refused), NV_ERR_RC_ERROR);
    b.s.close(rm);
}
