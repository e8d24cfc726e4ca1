//! The GPU with its own threads.

use crate::harness::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tegra_gpu::{Gpu, GpuConfig};
use tegra_hw::{GpuPort, HwTsg};

const DATA: u64 = 0x2_0000_0000;

fn machine() -> Machine {
    Machine::with(GpuConfig { step: false, ..GpuConfig::default() })
}

/// Tells other threads to end when it is dropped, so also after an assertion has failed.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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

/// The sleeps have no end: without a wake this test would not end.
#[test]
fn a_thread_that_rests_wakes_when_its_work_is_done() {
    let m = machine();
    let mut lane = m.lane();
    let sem = m.map(DATA, 4096);
    for i in 1..200 {
        lane.submit(&release(DATA, i));
        m.ring(&lane);
        loop {
            let seen = m.gpu.progress().expect("a GPU with threads");
            if sem.mem.read_u32(0) == i {
                break;
            }
            m.gpu.rest(seen, Duration::from_secs(3600));
        }
    }
    m.gpu.remove_channel(511);
    assert_eq!(Machine::new().gpu.progress(), None, "a GPU without threads tells nobody");
}

/// A thread that does not know yet that a channel was removed may ring for it. Its token may overwrite the token of a channel
/// that has new work. A token that never named a channel does nothing
/// (`section_1_4_a_token_that_names_no_channel_does_nothing`).
#[test]
fn the_token_of_a_removed_channel_hides_nobodys_work() {
    let m = Machine::new();
    let mut lane = m.lane();
    let gone = m.channel(400, &m.tsg(1), 0x3_0000_0000);
    let sem = m.map(DATA, 4096);
    m.gpu.remove_channel(400);
    lane.submit(&release(DATA, 1));
    m.ring(&lane);
    m.ring(&gone);
    m.drain();
    assert_eq!(sem.mem.read_u32(0), 1);
}

/// Several threads submit work to their own channels through one doorbell page, and wait for each submit. They yield at
/// odd moments, also between any two stores of a submit. At the same time other threads use up the processor, and a
/// channel is made and removed again and again. In every order no submit is missed. If one were missed, this test would
/// not end.
#[test]
fn no_submit_is_missed_however_the_threads_are_interleaved() {
    const SUBMITTERS: u32 = 3;
    const SUBMITS: u32 = 1500;
    let m = machine();
    let tsgs = [m.tsg(0), m.tsg(1)];
    let lanes: Vec<Lane> = (0..SUBMITTERS)
        .map(|i| m.channel(500 + i, &tsgs[i as usize % 2], 0x1_0000_0000 + u64::from(i) * 0x100_0000))
        .collect();
    let sem = m.map(DATA, 4096);
    let left = std::sync::atomic::AtomicU32::new(SUBMITTERS);
    std::thread::scope(|scope| {
        let busy = || left.load(Ordering::Relaxed) > 0;
        for _ in 0..3 {
            scope.spawn(move || {
                while busy() {
                    std::hint::spin_loop();
                }
            });
        }
        for (i, mut lane) in lanes.into_iter().enumerate() {
            let (m, sem, left) = (&m, &sem, &left);
            scope.spawn(move || {
                let mut odd = Odd(i as u64 + 1);
                let at = 64 * i;
                for value in 1..=SUBMITS {
                    odd.pause();
                    let words = release(DATA + at as u64, value);
                    let va = lane.write(&words);
                    odd.pause();
                    lane.entry(entry(va, words.len()));
                    odd.pause();
                    m.ring(&lane);
                    wait(|| sem.mem.read_u32(at) == value);
                }
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mut odd = Odd(99);
        while busy() {
            let mut lane = m.channel(400, &tsgs[0], 0x3_0000_0000);
            lane.submit(&release(DATA + 1024, 1));
            m.ring(&lane);
            odd.pause();
            m.gpu.remove_channel(400);
            // A thread that does not know about the removal does this.
            m.ring(&lane);
        }
    });
    assert_eq!((0..3).map(|i| sem.mem.read_u32(64 * i)).collect::<Vec<_>>(), [SUBMITS; 3]);
}

/// Pauses of odd lengths, which are the same in every run.
struct Odd(u64);

impl Odd {
    fn pause(&mut self) {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match self.0 >> 60 {
            0..=8 => {}
            9..=13 => std::thread::yield_now(),
            14 => (0..self.0 >> 50 & 0x3ff).for_each(|_| std::hint::spin_loop()),
            // This is longer than the GPU's own thread spins, so that it yields or sleeps.
            _ => std::thread::sleep(std::time::Duration::from_micros(40 + (self.0 >> 40 & 0x3ff))),
        }
    }
}

/// A plain store by the CPU releases a waiting channel, although no doorbell announces it.
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

/// A pushbuffer that never ends, because each entry of its ring adds another one. Other channels run, and the channel
/// can be removed.
#[test]
fn an_endless_pushbuffer_starves_nobody() {
    let m = machine();
    let (one, two) = (m.tsg(0), m.tsg(1));
    let mut endless = m.channel(511, &one, 0x1_0000_0000);
    let mut other = m.channel(510, &two, 0x1_1000_0000);
    let sem = m.map(DATA, 4096);
    // USERD is mapped into the GPU, so that each entry can advance GP_PUT past itself.
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

/// Channels are made and removed while others run. The memory of a removed channel is not used any more.
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

/// Threads that ring, reset and preempt hold channels for moments, and the GPU's own threads take turns with them.
/// After a removal has returned, no thread holds anything of the channel.
#[test]
fn a_removed_channel_is_nobodys() {
    let m = machine();
    let tsg = m.tsg(0);
    let sem = m.map(DATA, 4096);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ends = Ends(&done);
        for look in [
            (|gpu, _| (1..100).for_each(|id| gpu.ring(id))) as fn(&Gpu, &HwTsg),
            |gpu, tsg| gpu.reset(tsg),
            |gpu, tsg| _ = gpu.preempt(tsg),
        ] {
            let (gpu, tsg, done) = (&*m.gpu, &*tsg, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    look(gpu, tsg);
                }
            });
        }
        for i in 1..100u32 {
            let mut lane = m.channel(i, &tsg, 0x2_0000_0000 + u64::from(i) * 0x100_0000);
            lane.submit(&release(DATA, i));
            m.ring(&lane);
            m.gpu.remove_channel(i);
            assert_eq!(Arc::strong_count(&lane.hw), 1, "channel {i}");
        }
        drop(ends);
    });
    assert!(sem.mem.read_u32(0) < 100);
}

/// Without threads, the caller that removes a channel is the last that holds it, even while the channel waits for a
/// semaphore.
#[test]
fn without_threads_a_removed_channel_is_nobodys_either() {
    let m = Machine::new();
    let _memory = m.map(DATA, 4096);
    let mut lane = m.lane();
    lane.submit(&semaphore(DATA, 5, 0));
    m.ring(&lane);
    while m.gpu.step() {}
    m.gpu.remove_channel(lane.hw.id);
    assert_eq!(Arc::strong_count(&lane.hw), 1);
    assert!(!m.gpu.step());
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
