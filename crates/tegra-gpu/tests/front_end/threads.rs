//! The GPU with its own threads.

use crate::harness::*;
use std::sync::Arc;
use tegra_gpu::GpuConfig;
use tegra_hw::GpuPort;

const DATA: u64 = 0x2_0000_0000;

fn machine() -> Machine {
    Machine::with(GpuConfig { step: false, ..GpuConfig::default() })
}

fn wait(what: impl Fn() -> bool) {
    while !what() {
        std::thread::yield_now();
    }
}

#[test]
fn section_1_4_doorbells_are_seen() {
    let m = machine();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    for i in 1..200 {
        lane.submit(&release(DATA, i));
        m.ring(&lane);
        wait(|| sem.mem.read_u32(0) == i);
    }
    m.gpu.remove_channel(511);
}

/// A plain store by the CPU releases a waiting channel; no doorbell tells of it.
#[test]
fn section_3_1_a_store_releases_a_wait() {
    let m = machine();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    lane.submit(&[semaphore(DATA, 5, 0), release(DATA + 16, 6)].concat());
    m.ring(&lane);
    wait(|| lane.gp_get() == 1);
    assert_eq!(sem.mem.read_u32(16), 0);
    sem.mem.write_u32(0, 5);
    wait(|| sem.mem.read_u32(16) == 6);
}

/// A pushbuffer without end: its ring entry is followed by another, for ever. Others run, and it can be removed.
#[test]
fn an_endless_pushbuffer_starves_nobody() {
    let m = machine();
    let (one, two) = (m.tsg(0), m.tsg(1));
    let mut endless = m.channel(511, &one, 0x1_0000_0000);
    let mut other = m.channel(510, &two, 0x1_1000_0000);
    let sem = m.map(DATA, 4096);
    // USERD mapped into the GPU: each entry moves GP_PUT on past itself.
    let userd = 0x5_0000_0000;
    m.space.update(|t| t.insert(tegra_mm::Extent { va: userd, ..endless.userd.extent() }));
    for i in 0..16u32 {
        let words = release(userd + GP_PUT as u64, (i + 2) % 16);
        let va = endless.write(&words);
        endless.ring.mem.write_u64(8 * i as usize, entry(va, words.len()));
    }
    endless.userd.mem.write_u32(GP_PUT, 1);
    m.ring(&endless);
    wait(|| endless.gp_get() > 3);
    for i in 1..20 {
        other.submit(&release(DATA, i));
        m.ring(&other);
        wait(|| sem.mem.read_u32(0) == i);
    }
    assert!(!endless.dead());
    m.gpu.remove_channel(511);
    m.gpu.remove_channel(510);
}

/// Channels come and go while others run; a removed channel's memory is not touched any more.
#[test]
fn channels_come_and_go() {
    let m = machine();
    let tsg = m.tsg(0);
    let mut steady = m.channel(500, &tsg, 0x1_0000_0000);
    let sem = m.map(DATA, 4096);
    for i in 1..30u32 {
        let mut lane = m.channel(400 + i, &tsg, 0x2_0000_0000 + u64::from(i) * 0x100_0000);
        lane.submit(&semaphore(DATA + 64, u64::from(i), 0));
        steady.submit(&release(DATA, i));
        m.ring(&lane);
        m.ring(&steady);
        wait(|| sem.mem.read_u32(0) == i);
        m.gpu.remove_channel(400 + i);
        assert_eq!(Arc::strong_count(&lane.hw), 1);
    }
    assert!(!steady.dead());
}

/// Dropping a GPU with live channels ends its threads.
#[test]
fn dropping_ends_the_threads() {
    for _ in 0..5 {
        let m = machine();
        let mut lane = m.lane();
        lane.submit(&semaphore(DATA, 5, 0));
        m.ring(&lane);
        let Machine { gpu, .. } = m;
        assert_eq!(Arc::strong_count(&gpu), 1);
        drop(gpu);
        assert_eq!(Arc::strong_count(&lane.hw), 1);
    }
}
