//! `TEGRARM_SIM_STEP=1`: the GPU has no thread, and the sequence of events is the same every time.

use crate::harness::*;
use std::process::Command;
use std::sync::{Arc, Mutex};
use tegra_gpu::{Event, GpuConfig};

const DATA: u64 = 0x2_0000_0000;
/// The variable that tells the child process of [`the_variable_chooses_steps`] that it is the child.
const ROLE: &str = "TEGRARM_TEST_STEPPED";

/// The events of two groups, step by step. Each group waits for the other's semaphores in turn.
fn sequence() -> Vec<String> {
    let m = Machine::with(GpuConfig { step: true, ..GpuConfig::default() });
    let seen = Arc::new(Mutex::new(vec![]));
    let log = seen.clone();
    m.gpu.observe(Arc::new(move |event: &Event| {
        // The times come from the host in both modes.
        let line = match event {
            Event::Semaphore { channel, va, what, payload } => format!("{channel} {what} {va:#x} {payload}"),
            Event::Blocked { channel, va, payload } => format!("{channel} waits {va:#x} {payload}"),
            Event::GpEntry { channel, index, .. } => format!("{channel} entry {index}"),
            other => format!("{other:?}"),
        };
        log.lock().unwrap().push(line);
    }));
    let _memory = m.map(DATA, 4096);
    let mut ping = m.channel(511, &m.tsg(0), 0x1_0000_0000);
    let mut pong = m.channel(510, &m.tsg(1), 0x1_1000_0000);
    for i in 1..6 {
        ping.submit(&[release(DATA, i), semaphore(DATA + 16, u64::from(i), 0)].concat());
        pong.submit(&[semaphore(DATA, u64::from(i), 0), release(DATA + 16, i)].concat());
    }
    m.ring(&pong);
    m.ring(&ping);
    while m.gpu.step() {}
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[test]
fn the_sequence_is_the_same_every_time() {
    let first = sequence();
    assert!(first.len() > 20, "{first:?}");
    assert!(first.contains(&"510 released 0x200000010 5".to_owned()), "{first:?}");
    for _ in 0..10 {
        assert_eq!(sequence(), first);
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// In a process of its own: the variable turns the threads off, and a doorbell alone does nothing.
#[test]
fn the_variable_chooses_steps() {
    let name = "steps::the_variable_chooses_steps";
    if std::env::var_os(ROLE).is_none() {
        let me = std::env::current_exe().unwrap();
        let run = |step: &str| {
            let child =
                Command::new(&me).args([name, "--exact"]).env(ROLE, step).env("TEGRARM_SIM_STEP", step).output();
            let child = child.unwrap();
            assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        };
        run("0");
        run("1");
        return;
    }
    let stepped = std::env::var(ROLE).unwrap() == "1";
    let before = threads();
    let m = Machine::with(GpuConfig::default());
    let memory = m.map(DATA, 4096);
    let mut lane = m.lane();
    lane.submit(&release(DATA, 1));
    m.ring(&lane);
    if stepped {
        assert_eq!((threads(), memory.mem.read_u32(0)), (before, 0));
        while m.gpu.step() {}
        assert_eq!(memory.mem.read_u32(0), 1);
    } else {
        assert!(threads() > before);
        while memory.mem.read_u32(0) != 1 {
            std::thread::yield_now();
        }
    }
}
