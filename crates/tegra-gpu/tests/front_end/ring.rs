//! GPFIFO entries, rings, doorbells, headers.

use crate::harness::*;
use tegra_gpu::GpuConfig;
use tegra_hw::GpuPort;
use tegrarm_abi::methods::host::*;

const DATA: u64 = 0x2_0000_0000;

#[test]
fn section_3_1_sequence_seen_on_a_board() {
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
    assert!(stamp >= before && stamp <= m.gpu.time_ns() && stamp.is_multiple_of(32));
    assert_eq!((lane.gp_get(), lane.dead(), lane.notified()), (1, false, None));
}

#[test]
fn section_1_5_nothing_runs_without_a_doorbell() {
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
fn section_1_4_a_token_that_names_no_channel_does_nothing() {
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
fn section_2_1_headers_of_every_form() {
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

/// A ring wraps, and GP_GET follows.
#[test]
fn section_1_3_the_ring_wraps() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    for i in 1..=40 {
        m.run(&mut lane, &release(DATA, i));
        assert_eq!((sem.mem.read_u32(0), lane.gp_get()), (i, i % 16));
    }
}

/// A header may stand in one segment and its data in the next, and entries work with and without LEVEL and SYNC.
#[test]
fn section_1_3_a_sequence_may_be_split_over_segments() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    let words = release(DATA, 0x1234);
    for cut in 1..words.len() {
        sem.mem.write_u32(0, 0);
        let (head, tail) = words.split_at(cut);
        let va = lane.write(head);
        lane.entry(va | (head.len() as u64) << 42);
        let va = lane.write(tail);
        lane.entry(va | (tail.len() as u64) << 42 | 1 << 63);
        m.ring(&lane);
        m.drain();
        assert_eq!(sem.mem.read_u32(0), 0x1234, "cut at {cut}");
    }
    assert!(!lane.dead());
}

fn crc(bytes: &[u8]) -> u32 {
    let mut c = u32::MAX;
    for b in bytes {
        c ^= u32::from(*b);
        for _ in 0..8 {
            c = if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 };
        }
    }
    !c
}

/// A control entry: LENGTH is 0, the operand is in the low word and the opcode in the high word.
fn control(opcode: u32, operand: u32) -> u64 {
    u64::from(opcode) << 32 | u64::from(operand)
}

#[test]
fn section_1_2_control_entries_check_crcs() {
    let m = Machine::new();
    let mut lane = m.lane();
    m.map(DATA, 4096);
    let words = release(DATA, 5);
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let va = lane.write(&words);
    let segment = entry(va, words.len());
    lane.entry(control(NVC56F_GP_ENTRY1_OPCODE_NOP, 0xffff_ffff));
    lane.entry(segment);
    lane.entry(control(NVC56F_GP_ENTRY1_OPCODE_PB_CRC, crc(&bytes)));
    lane.entry(control(NVC56F_GP_ENTRY1_OPCODE_GP_CRC, crc(&segment.to_le_bytes())));
    m.ring(&lane);
    m.drain();
    assert!(!lane.dead(), "{:?}", m.gpu.faults());
    lane.entry(control(NVC56F_GP_ENTRY1_OPCODE_PB_CRC, !crc(&bytes)));
    m.ring(&lane);
    m.drain();
    assert_eq!(lane.notified(), Some(80));
}

/// A machine whose kernel is r35 or r36.
fn of_release(r35: bool) -> Machine {
    Machine::with(GpuConfig { r35, ..config() })
}

/// Each bad entry raises an interrupt. The kernel of r35 ends the channel. The kernel of r36 logs the interrupt, and
/// the entry is dropped.
#[test]
fn section_2_5_bad_entries() {
    let entries = [
        ("gpentry", control(NVC56F_GP_ENTRY1_OPCODE_ILLEGAL, 0)),
        ("gpentry", control(77, 0)),
        ("gpcrc", control(NVC56F_GP_ENTRY1_OPCODE_GP_CRC, 1)),
        ("gpentry", entry(0xff_ffff_fff0, 4)),
        ("gpentry", entry(0xff_ffff_ff00, 65)),
    ];
    for (name, bad) in entries {
        for r35 in [true, false] {
            let m = of_release(r35);
            let mut lane = m.lane();
            let sem = m.map(DATA, 4096);
            lane.entry(bad);
            m.run(&mut lane, &release(DATA, 7));
            assert_eq!(lane.notified(), r35.then_some(32), "{bad:#x}");
            assert_eq!((sem.mem.read_u32(0), lane.gp_get()), if r35 { (0, 1) } else { (7, 2) }, "{bad:#x}");
            assert!(m.gpu.faults()[0].contains(&format!("({name})")), "{:?}", m.gpu.faults());
        }
    }
}

/// A dropped entry clears the CRC of the ring, and so does a wrong CRC.
#[test]
fn section_1_2_errors_clear_the_crc_of_the_ring() {
    let m = of_release(false);
    let mut lane = m.lane();
    m.map(DATA, 4096);
    for bad in [control(NVC56F_GP_ENTRY1_OPCODE_ILLEGAL, 0), control(NVC56F_GP_ENTRY1_OPCODE_GP_CRC, 1)] {
        lane.submit(&release(DATA, 5));
        lane.entry(bad);
        lane.entry(control(NVC56F_GP_ENTRY1_OPCODE_GP_CRC, crc(&[])));
    }
    m.ring(&lane);
    m.drain();
    assert_eq!(m.gpu.faults().len(), 2, "{:?}", m.gpu.faults());
}

/// Each bad header ends the channel with a PBDMA error that names the interrupt.
#[test]
fn section_2_4_bad_headers() {
    let headers = [
        ("pbentry", header(NVC56F_DMA_SEC_OP_GRP2_USE_TERT, 0, 0x100, 1)),
        ("pbentry", header(NVC56F_DMA_SEC_OP_RESERVED6, 0, 0x100, 1)),
        ("pbentry", 0x0000_0004),
        ("pbentry", 0x0004_0000),
        ("pbentry", header(NVC56F_DMA_SEC_OP_INC_METHOD, 1, 0x3ffc, 2)),
        ("pbentry", header(NVC56F_DMA_SEC_OP_ONE_INC, 1, 0x3ffc, 2)),
    ];
    for (name, bad) in headers {
        let m = Machine::new();
        let mut lane = m.lane();
        m.run(&mut lane, &[bad, 0, 0]);
        assert_eq!(lane.notified(), Some(32), "{bad:#x}");
        assert!(m.gpu.faults()[0].contains(&format!("({name})")), "{:?}", m.gpu.faults());
    }
}

/// With r36 the channel does nothing until a doorbell comes and the pointer is valid.
#[test]
fn section_1_6_gp_put_beyond_the_ring() {
    for r35 in [true, false] {
        let m = of_release(r35);
        let mut lane = m.lane();
        let sem = m.map(DATA, 4096);
        lane.submit(&release(DATA, 7));
        lane.userd.mem.write_u32(GP_PUT, 16);
        m.ring(&lane);
        m.drain();
        assert_eq!((lane.notified(), sem.mem.read_u32(0)), (r35.then_some(32), 0));
        assert!(m.gpu.faults()[0].contains("(gpptr)"));
        lane.userd.mem.write_u32(GP_PUT, 1);
        m.drain();
        assert_eq!(sem.mem.read_u32(0), 0);
        m.ring(&lane);
        m.drain();
        assert_eq!((sem.mem.read_u32(0), lane.gp_get()), if r35 { (0, 0) } else { (7, 1) });
    }
}

/// USERD shows the position in the pushbuffer when the channel is idle, and when it waits in the middle of a segment.
#[test]
fn section_1_1_progress_in_userd() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    let pointer = |lane: &Lane, low: usize, high: usize| {
        u64::from(lane.userd.mem.read_u32(low)) | u64::from(lane.userd.mem.read_u32(high)) << 32
    };
    let seen = |lane: &Lane| [(0x40, 0x4c), (0x44, 0x60), (0x58, 0x5c)].map(|(low, high)| pointer(lane, low, high));
    // This is a subroutine: there was no segment at the top level yet, and bit 31 of TopLevelGetHi says so.
    lane.submit(&release(DATA, 1));
    m.ring(&lane);
    m.drain();
    let end = lane.pushbuffer.va + lane.at as u64;
    assert_eq!(seen(&lane), [end, end, 0]);
    let mut words = release(DATA, 2);
    words.extend(semaphore(DATA + 16, 1, 0));
    let (main, blocked) = (lane.write(&words), words.len() as u64 - 1);
    lane.entry(main | (words.len() as u64) << 42);
    m.ring(&lane);
    m.drain();
    let (valid, end) = (1 << 63, main + 4 * words.len() as u64);
    assert_eq!(seen(&lane), [end, main + 4 * blocked, valid | (main + 4 * blocked)]);
    sem.mem.write_u32(16, 1);
    m.drain();
    assert_eq!(seen(&lane), [end, end, valid | end]);
    lane.submit(&release(DATA, 3));
    m.ring(&lane);
    m.drain();
    assert_eq!(seen(&lane)[2], valid | end, "a subroutine does not show at the top level");
    assert_eq!(lane.userd.mem.read_u32(GP_PUT), lane.put, "never written by host");
}

/// Subdevice masks select whether methods are executed. Conditional segments are skipped with them.
#[test]
fn section_2_1_subdevice_masks() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    let ssdm = |opcode: u32, mask: u32| opcode << 16 | mask << 4;
    let mut words = vec![ssdm(NVC56F_DMA_SET_SUBDEVICE_MASK_OPCODE_VALUE, 0)];
    words.extend(release(DATA, 1));
    words.push(ssdm(NVC56F_DMA_STORE_SUBDEVICE_MASK_OPCODE_VALUE, 1));
    m.run(&mut lane, &words);
    assert_eq!(sem.mem.read_u32(0), 0);
    let skipped = lane.write(&[ssdm(NVC56F_DMA_USE_SUBDEVICE_MASK_OPCODE_VALUE, 0)]);
    lane.entry(entry(skipped, 1) | 1);
    m.run(&mut lane, &release(DATA, 2));
    assert_eq!(sem.mem.read_u32(0), 0);
    let mut words = vec![ssdm(NVC56F_DMA_USE_SUBDEVICE_MASK_OPCODE_VALUE, 0)];
    words.extend(release(DATA, 3));
    m.run(&mut lane, &words);
    assert_eq!(sem.mem.read_u32(0), 3);
}

/// A mask that deselects the subdevice ends a conditional segment. An unconditional segment continues, and its methods
/// are ignored.
#[test]
fn section_2_1_a_mask_ends_a_conditional_segment() {
    for conditional in [0, 1] {
        let m = Machine::new();
        let mut lane = m.lane();
        let sem = m.map(DATA, 4096);
        let ssdm = |mask: u32| NVC56F_DMA_SET_SUBDEVICE_MASK_OPCODE_VALUE << 16 | mask << 4;
        let words = [vec![ssdm(0)], release(DATA, 1), vec![ssdm(0xfff)], release(DATA + 16, 2)].concat();
        let va = lane.write(&words);
        lane.entry(entry(va, words.len()) | conditional);
        m.ring(&lane);
        m.drain();
        assert_eq!((sem.mem.read_u32(0), sem.mem.read_u32(16)), (0, if conditional == 1 { 0 } else { 2 }));
    }
}

/// A conditional segment may not begin inside a sequence, unless it is skipped. The kernel of r36 only logs the
/// interrupt.
#[test]
fn section_1_3_conditional_segment_inside_a_sequence() {
    for (r35, mask, code, released) in [(true, 0xfff, Some(32), 0), (false, 0xfff, None, 1), (true, 0, None, 0)] {
        let m = of_release(r35);
        let mut lane = m.lane();
        let sem = m.map(DATA, 4096);
        let words = [vec![NVC56F_DMA_SET_SUBDEVICE_MASK_OPCODE_VALUE << 16 | mask << 4], release(DATA, 1)].concat();
        let (head, tail) = words.split_at(3);
        let va = lane.write(head);
        lane.entry(entry(va, head.len()));
        let va = lane.write(tail);
        lane.entry(entry(va, tail.len()) | 1);
        m.ring(&lane);
        m.drain();
        assert_eq!((lane.notified(), sem.mem.read_u32(0)), (code, released));
        assert_eq!(m.gpu.faults().concat().contains("(pbseg)"), mask != 0, "{:?}", m.gpu.faults());
    }
}

/// Methods below 0x100 belong to the host on every subchannel. A software method raises its interrupt at its header.
#[test]
fn section_2_2_subchannels() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    for subchannel in 0..8 {
        let (lo, hi) = (DATA as u32, (DATA >> 32) as u32);
        m.run(&mut lane, &methods(subchannel, NVC56F_SEM_ADDR_LO, &[lo, hi, 40 + subchannel, 0, 1]));
        assert_eq!((sem.mem.read_u32(0), lane.dead()), (40 + subchannel, false));
    }
    for subchannel in 5..8 {
        for method in [0, 0x100, 0x3ffc] {
            let m = Machine::new();
            let mut lane = m.lane();
            // The data of the method never comes.
            m.run(&mut lane, &[inc(subchannel, method, 1)]);
            assert_eq!(lane.notified(), Some(32));
            assert!(m.gpu.faults()[0].contains("(device)"), "{:?}", m.gpu.faults());
        }
    }
}

/// The usermode page shows a class, a clock, and a doorbell that reads as "not rung".
#[test]
fn section_1_4_usermode_page() {
    let m = Machine::new();
    m.gpu.step();
    assert_eq!(m.doorbell.mem.read_u32(0), 0xc561);
    let shown = m.doorbell.mem.read_u64(0x80);
    m.gpu.step();
    let later = m.doorbell.mem.read_u64(0x80);
    assert!(shown.is_multiple_of(32) && later >= shown && later <= m.gpu.time_ns());
    m.gpu.unwatch_doorbell(&m.doorbell.place());
    m.doorbell.mem.write_u64(0x80, 1);
    m.gpu.step();
    assert_eq!(m.doorbell.mem.read_u64(0x80), 1);
}
