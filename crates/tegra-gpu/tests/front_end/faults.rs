//! The effects of a fault: notifiers are written, channels die, semaphores stay as they are, and other groups are not
//! harmed.

use crate::harness::*;
use tegra_mm::{Access, FaultKind};
use tegrarm_abi::methods::copy::*;
use tegrarm_abi::methods::host::*;

const DATA: u64 = 0x2_0000_0000;

/// An unmapped semaphore writes notifier 31 on every channel of the group and releases nothing after it. Another group
/// continues.
#[test]
fn section_9_2_mmu_fault_ends_the_group_only() {
    let m = Machine::new();
    let (one, two) = (m.tsg(0), m.tsg(1));
    let mut a = m.channel(511, &one, 0x1_0000_0000);
    let sibling = m.channel(510, &one, 0x1_1000_0000);
    let mut other = m.channel(509, &two, 0x1_2000_0000);
    let sem = m.map(DATA, 4096);
    let mut words = release(DATA, 1);
    words.extend(release(DATA + 0x10_0000, 2));
    words.extend(release(DATA, 3));
    m.run(&mut a, &words);
    assert_eq!(sem.mem.read_u32(0), 1);
    assert!(a.dead() && sibling.dead() && !other.dead());
    assert_eq!((a.notified(), sibling.notified(), other.notified()), (Some(31), Some(31), None));
    let fault = one.fault.lock().clone().expect("recorded");
    let mmu = fault.mmu.expect("an MMU fault");
    assert_eq!((mmu.va, mmu.access, mmu.kind), (DATA + 0x10_0000, Access::Write, FaultKind::Pte));
    assert!(m.gpu.faults()[0].contains("invalid pte") && m.gpu.faults()[0].contains("client id: host"));
    m.run(&mut other, &release(DATA, 9));
    assert_eq!(sem.mem.read_u32(0), 9);
    // The doorbell of a dead channel is dropped.
    m.run(&mut a, &release(DATA, 10));
    assert_eq!(sem.mem.read_u32(0), 9);
}

#[test]
fn section_2_5_the_first_error_wins_until_it_is_cleared() {
    let m = Machine::new();
    let mut lane = m.lane();
    lane.notifier.fill(0, &[1, 2, 13, 0xffff_0000]);
    m.run(&mut lane, &[header(NVC56F_DMA_SEC_OP_RESERVED6, 0, 0, 1)]);
    assert!(lane.dead());
    assert_eq!(lane.notifier.words(0, 4), [1, 2, 13, 0xffff_0000]);
}

/// The host and the copy engine report every kind of fault: a missing pushbuffer, a missing directory and read-only
/// memory.
#[test]
fn section_9_2_kinds_of_mmu_faults() {
    let copy = |from: u64, to: u64| {
        let mut words =
            methods(4, NVC6B5_OFFSET_IN_UPPER, &[(from >> 32) as u32, from as u32, (to >> 32) as u32, to as u32]);
        words.extend(methods(4, NVC6B5_LINE_LENGTH_IN, &[64]));
        words.extend(methods(4, NVC6B5_LAUNCH_DMA, &[0x182]));
        words
    };
    let cases = [
        (copy(DATA + 0x40_0000, DATA), DATA + 0x40_0000, Access::Read, FaultKind::Pde, "ce2"),
        (copy(DATA, DATA + 0x1000), DATA + 0x1000, Access::Write, FaultKind::ReadOnly, "ce2"),
        (copy(DATA + 0xfe0, DATA), DATA + 0x1000 + 0x1000, Access::Read, FaultKind::Pte, "ce2"),
        (semaphore(DATA + 0x1000, 0, 6 | 4 << 27), DATA + 0x1000, Access::Atomic, FaultKind::ReadOnly, "host"),
        (semaphore(DATA + 0x3000, 0, 0), DATA + 0x3000, Access::Read, FaultKind::Pte, "host"),
    ];
    for (i, (words, va, access, kind, client)) in cases.into_iter().enumerate() {
        let m = Machine::new();
        let tsg = m.tsg(0);
        let mut lane = m.channel(511, &tsg, 0x1_0000_0000);
        m.map(DATA, 4096);
        let read_only = Buffer::new(DATA + 0x1000, 4096);
        if i != 2 {
            m.space.update(|t| t.insert(tegra_mm::Extent { writable: false, ..read_only.extent() }));
        }
        let va = if i == 2 { DATA + 0x1000 } else { va };
        m.run(&mut lane, &words);
        let fault = tsg.fault.lock().clone().expect("a fault");
        let mmu = fault.mmu.expect("an MMU fault");
        assert_eq!((mmu.va, mmu.access, mmu.kind), (va, access, kind), "case {i}");
        assert!(fault.text.contains(client), "{}", fault.text);
        assert_eq!(lane.notified(), Some(31));
    }
    let m = Machine::new();
    let mut lane = m.lane();
    lane.entry(entry(0x3_0000_0000, 4));
    m.ring(&lane);
    m.drain();
    assert_eq!(lane.notified(), Some(31));
}

/// The words before an unmapped page of the pushbuffer are executed.
#[test]
fn section_9_2_a_pushbuffer_may_run_off_its_mapping() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    let code = m.map(0x4_0000_0000, 4096);
    let words = release(DATA, 6);
    code.fill(4096 - 4 * words.len(), &words);
    lane.entry(entry(0x4_0000_0000 + 4096 - 4 * words.len() as u64, words.len() + 10));
    m.ring(&lane);
    m.drain();
    assert_eq!((sem.mem.read_u32(0), lane.notified()), (6, Some(31)));
}

/// Waiting work sees memory that was mapped or unmapped meanwhile when it continues.
#[test]
fn section_9_1_mappings_are_looked_up_when_used() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    let mut words = semaphore(DATA, 1, 0);
    words.extend(release(DATA + 0x1000, 5));
    m.run(&mut lane, &words);
    let late = m.map(DATA + 0x1000, 4096);
    sem.mem.write_u32(0, 1);
    m.drain();
    assert_eq!((late.mem.read_u32(0), lane.dead()), (5, false));
}

/// Sparse mappings read as zero, and writes to them have no effect.
#[test]
fn section_9_1_sparse_memory() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    sem.mem.write_u32(0, 77);
    m.space.update(|t| {
        t.insert(tegra_mm::Extent { va: DATA + 0x1000, len: 4096, writable: true, ..tegra_mm::Extent::default() });
    });
    let mut words = release(DATA + 0x1000, 5);
    words.extend(semaphore(DATA + 0x1000, 0, 0));
    words.extend(release(DATA + 8, 1));
    let (from, to) = (DATA + 0x1000, DATA);
    words.extend(methods(4, NVC6B5_OFFSET_IN_UPPER, &[(from >> 32) as u32, from as u32, (to >> 32) as u32, to as u32]));
    words.extend(methods(4, NVC6B5_LINE_LENGTH_IN, &[4]));
    words.extend(methods(4, NVC6B5_LAUNCH_DMA, &[0x182]));
    m.run(&mut lane, &words);
    assert!(!lane.dead(), "{:?}", m.gpu.faults());
    assert_eq!((sem.mem.read_u32(0), sem.mem.read_u32(8)), (0, 1));
}

/// A group that is disabled and then enabled continues where it was.
#[test]
fn a_disabled_channel_waits() {
    use std::sync::atomic::Ordering;
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    let mut words = semaphore(DATA, 1, 0);
    words.extend(release(DATA + 16, 2));
    m.run(&mut lane, &words);
    lane.hw.enabled.store(false, Ordering::Release);
    sem.mem.write_u32(0, 1);
    m.drain();
    assert_eq!(sem.mem.read_u32(16), 0);
    lane.hw.enabled.store(true, Ordering::Release);
    m.drain();
    assert_eq!(sem.mem.read_u32(16), 2);
}

/// The host, the copy engine, reports and the usermode page use one clock, in steps of 32 ns.
#[test]
fn section_8_one_clock() {
    use tegra_hw::GpuPort;
    let m = Machine::new();
    let mut lane = m.lane();
    let memory = m.map(DATA, 4096);
    let words = [
        semaphore(DATA, 1, 1 | 1 << 25),
        methods(4, NVC6B5_SET_SEMAPHORE_A, &[2, 16, 1]),
        methods(4, NVC6B5_LAUNCH_DMA, &[0x14]),
        methods(1, 0x158, &[1, 0, 32, 2, 0]),
        semaphore(DATA + 48, 1, 1 | 1 << 25),
    ];
    let before = m.gpu.time_ns();
    m.run(&mut lane, &words.concat());
    m.gpu.step();
    let mut stamps: Vec<u64> = (0..4).map(|i| memory.mem.read_u64(16 * i + 8)).collect();
    stamps.push(m.doorbell.mem.read_u64(0x80));
    stamps.push(m.gpu.time_ns());
    assert!(stamps.is_sorted() && stamps[0] >= before && stamps.iter().all(|t| t.is_multiple_of(32)), "{stamps:?}");
}
