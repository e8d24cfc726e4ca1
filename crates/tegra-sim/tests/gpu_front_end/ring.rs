//! GPFIFO entries, rings, doorbells, headers.

use crate::harness::*;
use tegra_sim::kernel::hw::GpuPort;
use tegrarm_abi::methods::host::*;

const DATA: u64 = 0x2_0000_0000;

#[test]
fn sequence_seen_on_a_board() {
    let m = Machine::new();
    let tsg = m.tsg(0);
    let mut lane = m.channel(511, &tsg, 0xff_ffa0_1000);
    let sem = m.map(0xff_ffa0_0000, 4096);
    lane.pushbuffer.fill(0, &[0x2005_0017, 0xffa0_0000, 0xff, 0xadbe_ef42, 0xde, 0x0310_0001]);
    lane.entry(0x0000_1aff_ffa0_1000);
    let before = m.gpu.time_ns();
    m.ring(&lane);
    m.drain();
    assert_eq!(sem.mem.read_u64(0), 0xde_adbe_ef42);
    let stamp = sem.mem.read_u64(8);
    assert!(stamp >= before && stamp <= m.gpu.time_ns() && stamp % 32 == 0);
    assert_eq!((lane.gp_get(), lane.dead(), lane.notified()), (1, false, None));
}

#[test]
fn nothing_runs_without_a_doorbell() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    lane.submit(&release(DATA, 7));
    m.drain();
    assert_eq!((sem.mem.read_u32(0), lane.gp_get()), (0, 0));
    m.ring(&lane);
    m.drain();
    assert_eq!((sem.mem.read_u32(0), lane.gp_get()), (7, 1));
}

#[test]
fn a_token_that_names_no_channel_does_nothing() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    lane.submit(&release(DATA, 7));
    for token in [510, 511 | 1 << 16, 511 | 1 << 12, 511 | 1 << 31] {
        m.doorbell.mem.write_u32(0x90, token);
        m.drain();
        assert_eq!(sem.mem.read_u32(0), 0, "token {token:#x}");
    }
}

#[test]
fn headers_of_every_form() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    let (lo, hi) = (DATA as u32, (DATA >> 32) as u32);
    let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_RELEASE);
    let mut words = vec![0, header(NVC56F_DMA_SEC_OP_INC_METHOD, 7, 0x3ffc, 0)];
    words.extend([header(NVC56F_DMA_SEC_OP_ONE_INC, 0, NVC56F_SEM_ADDR_LO, 4), lo, 99, 98, hi]);
    words.extend([header(NVC56F_DMA_SEC_OP_NON_INC_METHOD, 0, NVC56F_SEM_PAYLOAD_LO, 3), 1, 2, 3]);
    words.push(header(NVC56F_DMA_SEC_OP_IMMD_DATA_METHOD, 0, NVC56F_SEM_EXECUTE, execute));
    words.push(header(NVC56F_DMA_SEC_OP_END_PB_SEGMENT, 0, 0, 0));
    words.push(0xdead_beef);
    m.run(&mut lane, &words);
    assert_eq!(sem.words(0, 2), [3, 0]);
    assert!(!lane.dead(), "{:?}", m.gpu.faults());
}
