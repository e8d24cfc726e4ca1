//! Tests fences of the runtime on the virtual Orin: waits for several fences, callbacks and descriptors.
#![cfg(feature = "sim")]

use crate::common::board::behind_nodes;
use crate::common::{Board, DEADLINE, LINE, board, default_release, open_device, vecadd};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tegrarm::rm::Rm;
use tegrarm::runtime::device::Device;
use tegrarm::runtime::device::module::KernelRef;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::place::Place;
use tegrarm::runtime::memory::{Cache, Memory};
use tegrarm::runtime::replay::Replay;
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Kmd;

/// Launches a grid of that many blocks, which add nothing.
fn launch(device: &Device, kernel: &KernelRef, blocks: u32) -> u64 {
    let nothing = params::pack(kernel.kernel(), &[&[0; 8], &[0; 8], &[0; 8], &[0; 4]]).unwrap();
    device.launch(kernel, &Launch { grid: Dim3::new(blocks, 1, 1), ..LINE }, &nothing).unwrap()
}

fn readable(fd: &impl AsFd, timeout: PollTimeout) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, timeout).unwrap() == 1
}

#[test]
fn lists_of_fences_are_waited_for() {
    let device = open_device();
    let kernel = vecadd(&device);
    let fences: Vec<u64> = (0..5).map(|_| launch(&device, &kernel, 1)).collect();
    device.wait_all(&fences, DEADLINE).unwrap();
    assert_eq!(device.wait_any(&fences, DEADLINE).unwrap(), 0);
    device.wait_all(&[], Some(Duration::ZERO)).unwrap();
    assert_eq!(device.wait_any(&[], None).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    assert_eq!(device.wait_any(&[u64::MAX], None).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    let endless = launch(&device, &kernel, i32::MAX as u32);
    let soon = Some(Duration::from_millis(5));
    assert_eq!(device.wait_all(&[fences[0], endless], soon).unwrap_err().status, NV_ERR_TIMEOUT);
    assert_eq!(device.wait_any(&[endless], soon).unwrap_err().status, NV_ERR_TIMEOUT);
    assert_eq!(device.wait_any(&[endless, fences[4]], None).unwrap(), 1);
    assert!(!device.query(endless).unwrap() && device.query(fences[4]).unwrap());
    device.settle(Duration::from_millis(5));
}

#[test]
fn callbacks_are_called_once_each_by_a_thread_of_the_device() {
    let device = open_device();
    let kernel = vecadd(&device);
    let (sender, told) = mpsc::channel();
    let me = std::thread::current().id();
    for number in 0..20 {
        let sender = sender.clone();
        let fence = launch(&device, &kernel, 200);
        let tell = move |result| sender.send((number, result, std::thread::current().id())).unwrap();
        device.notify(fence, tell).unwrap();
    }
    let mut numbers: Vec<u32> = told
        .iter()
        .take(20)
        .map(|(number, result, thread)| {
            assert_eq!((result, thread == me), (Ok(()), false));
            number
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..20).collect::<Vec<u32>>());
    assert_eq!(device.notify(u64::MAX, |_| {}).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
}

#[test]
fn callbacks_are_told_of_faults_and_of_a_closed_device() {
    for closing in [false, true] {
        let device = open_device();
        let kernel = vecadd(&device);
        let (sender, told) = mpsc::channel();
        let fence = if closing {
            launch(&device, &kernel, i32::MAX as u32)
        } else {
            let bad = 0x12_3456_7000u64.to_le_bytes();
            let block = params::pack(kernel.kernel(), &[&bad, &bad, &bad, &32u32.to_le_bytes()]).unwrap();
            device.launch(&kernel, &LINE, &block).unwrap()
        };
        device.notify(fence, move |result| sender.send(result).unwrap()).unwrap();
        let wanted = if closing {
            device.settle(Duration::from_millis(5));
            drop((kernel, device));
            NV_ERR_RESOURCE_LOST
        } else {
            NV_ERR_RESET_REQUIRED
        };
        assert_eq!(told.recv().unwrap().unwrap_err().status, wanted, "closing: {closing}");
    }
}

#[test]
fn descriptors_become_readable_when_the_work_has_finished() {
    let device = open_device();
    let kernel = vecadd(&device);
    let buffer = device.alloc(4096, Cache::Cached).unwrap();
    let fence = buffer.fill(0, 4096, 3, 1).unwrap();
    let fd = device.pollable(fence).unwrap();
    assert!(readable(&fd, PollTimeout::NONE) && device.query(fence).unwrap());
    let endless = launch(&device, &kernel, i32::MAX as u32);
    let fd = device.pollable(endless).unwrap();
    assert!(!readable(&fd, PollTimeout::ZERO));
    device.settle(Duration::from_millis(5));
    drop((buffer, kernel, device));
    assert!(readable(&fd, PollTimeout::NONE), "the device is closed");
}

/// A GPU that works on the processor of its caller, and only while that sleeps.
struct Beside {
    board: Arc<Board>,
    /// How often somebody looked whether it has worked, since it worked last.
    looks: AtomicU32,
    /// The most looks before a sleep.
    most: AtomicU32,
}

impl Kmd for Beside {
    tegrarm_kmd::forward!(board: name, is_simulated, examines_code, open, ioctl, mmap, own_view, close, read_text, write_text);

    fn progress(&self) -> Option<u64> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        Some(0)
    }

    fn rest(&self, _: u64, _: Duration) {
        self.most.fetch_max(self.looks.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        while self.board.step() {}
    }
}

/// A wait that looked again and again would keep the GPU from its work.
#[test]
fn waits_sleep_at_once_beside_a_gpu_that_works_on_their_processor() {
    // A GPU behind the nodes works by itself.
    if behind_nodes() {
        return;
    }
    let gpu = Arc::new(Beside { board: board(default_release()), looks: AtomicU32::new(0), most: AtomicU32::new(0) });
    let device = Device::open(&Arc::new(Rm::new(gpu.clone() as Arc<dyn Kmd>, CacheMode::WriteCombine)), 0).unwrap();
    let kernel = Arc::new(vecadd(&device));
    let nothing = params::pack(kernel.kernel(), &[&[0; 8], &[0; 8], &[0; 8], &[0; 4]]).unwrap();
    let mut replay = Replay::on(&device);
    let arguments = |to: &mut [u8]| {
        to.copy_from_slice(&nothing);
        Ok(())
    };
    replay.launch(&kernel, &LINE, arguments).unwrap();
    let values = Arc::new(Memory::new(device.session(), 4096, Cache::Cached).unwrap());
    let values = Place::of(&values, 0, 4096).unwrap();
    let looks = |wait: &mut dyn FnMut()| {
        gpu.looks.store(0, Ordering::Relaxed);
        gpu.most.store(0, Ordering::Relaxed);
        wait();
        gpu.most.load(Ordering::Relaxed)
    };
    let of_replay = looks(&mut || {
        replay.submit(&values, 0).unwrap();
        replay.wait(DEADLINE).unwrap();
    });
    let of_one = looks(&mut || device.wait(launch(&device, &kernel, 1), DEADLINE).unwrap());
    let of_any = looks(&mut || assert_eq!(device.wait_any(&[launch(&device, &kernel, 1)], DEADLINE).unwrap(), 0));
    for (what, looks) in [("a replay", of_replay), ("one fence", of_one), ("any fence", of_any)] {
        assert!((1..=2).contains(&looks), "the wait for {what} looked {looks} times");
    }
}
