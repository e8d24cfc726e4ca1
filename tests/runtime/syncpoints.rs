//! Hands work over with syncpoints and sync files, on the virtual Orin.
#![cfg(feature = "sim")]

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tegrarm::rm::Rm;
use tegrarm::rm::syncpoints::SyncPoint;
use tegrarm::runtime::channel::{Kind, Plan};
use tegrarm::runtime::device::Device;
use tegrarm::runtime::device::buffer::Buffer;
use tegrarm::runtime::device::module::KernelRef;
use tegrarm::runtime::device::queue_ref::QueueRef;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::Cache;
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{CallKind, Errno, Faulty, Kmd};

const LINE: Launch = Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(32, 1, 1), dynamic_shared: 0 };
const DEADLINE: Option<Duration> = Some(Duration::from_secs(60));
const COPIES: Plan = Plan { kind: Kind::Copy, ..Plan::PLAIN };

fn device() -> Arc<Device> {
    let rm = Arc::new(Rm::new(crate::common::board(crate::common::default_release()), CacheMode::WriteCombine));
    Device::open(&rm, 0).unwrap()
}

fn buffer(device: &Arc<Device>) -> Arc<Buffer> {
    device.alloc(4096, Cache::Cached).unwrap()
}

fn first(buffer: &Buffer) -> u8 {
    let mut byte = [0];
    buffer.read(0, &mut byte).unwrap();
    byte[0]
}

fn kernel(device: &Arc<Device>) -> KernelRef {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cubin/vecadd.nvrtc.cubin");
    device.load(&std::fs::read(file).unwrap()).unwrap().kernel("vecadd").unwrap()
}

/// Launches a kernel that stops its queue.
fn launch_badly(device: &Device, kernel: &KernelRef) -> u64 {
    let bad = 0x12_3456_7000u64.to_le_bytes();
    let block = params::pack(kernel.kernel(), &[&bad, &bad, &bad, &32u32.to_le_bytes()]).unwrap();
    device.launch(kernel, &LINE, &block).unwrap()
}

fn readable(fd: &impl AsFd, timeout: PollTimeout) -> bool {
    poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], timeout).unwrap() == 1
}

#[test]
fn a_queue_starts_when_a_syncpoint_has_come_to_a_value() {
    let device = device();
    let (plain, copies) = (QueueRef::open(&device, Plan::PLAIN).unwrap(), QueueRef::open(&device, COPIES).unwrap());
    let now = device.syncpoint(device.fence()).unwrap();
    let to = buffer(&device);
    for (queue, value) in [(&plain, 7), (&copies, 9)] {
        let next = device.syncpoint(device.fence()).unwrap();
        assert!(next.id == now.id && next.threshold > now.threshold, "{next:?} after {now:?}");
        let later = SyncPoint { threshold: next.threshold + 1, ..next };
        queue.after_syncpoints(&[now, later]).unwrap();
        let fence = queue.fill(&to, 0, 4096, value, 1).unwrap();
        assert_eq!(device.wait(fence, Some(Duration::from_millis(20))).unwrap_err().status, NV_ERR_TIMEOUT);
        assert_eq!(device.syncpoint(device.fence()).unwrap(), later);
        device.wait(fence, DEADLINE).unwrap();
        assert_eq!(u32::from(first(&to)), value);
    }
    // Each queue has its own syncpoint, also a queue of a copy engine.
    assert_ne!(device.syncpoint(copies.queue().fence()).unwrap().id, now.id);
}

#[test]
fn a_sync_file_passes_with_the_work() {
    let device = device();
    let other = QueueRef::open(&device, Plan::PLAIN).unwrap();
    let to = buffer(&device);
    let point = device.syncpoint(device.fence()).unwrap();
    let own = QueueRef::own(&device);
    // The device's own queue waits for one more increment of the other queue's syncpoint. It comes later.
    let gate = device.syncpoint(other.queue().fence()).unwrap();
    own.after_syncpoints(&[SyncPoint { threshold: gate.threshold + 1, ..gate }]).unwrap();
    let fence = own.fill(&to, 0, 4096, 5, 1).unwrap();
    let file = device.sync_file(fence).unwrap();
    assert!(!readable(&file, PollTimeout::ZERO));
    let third = QueueRef::open(&device, Plan::PLAIN).unwrap();
    third.after_sync_file(file.as_fd()).unwrap();
    let after = third.fill(&to, 0, 4096, 6, 1).unwrap();
    assert!(!device.query(after).unwrap());
    device.syncpoint(other.queue().fence()).unwrap();
    assert!(readable(&file, PollTimeout::NONE));
    device.wait(after, DEADLINE).unwrap();
    assert_eq!(first(&to), 6);
    // A value that was reached before is not waited for.
    third.after_sync_file(file.as_fd()).unwrap();
    device.wait(third.fill(&to, 0, 4096, 8, 1).unwrap(), DEADLINE).unwrap();
    assert!(device.syncpoint(fence).unwrap().threshold > point.threshold);
    device.rm().kmd().close(file);
}

#[test]
fn what_is_no_fence_is_refused() {
    let device = device();
    let own = QueueRef::own(&device);
    let refused = |result: Result<(), tegrarm::status::RmError>| result.unwrap_err().status;
    let none = SyncPoint { id: 1 << 20, threshold: 0 };
    assert_eq!(refused(own.after_syncpoints(&[none])), NV_ERR_INVALID_ARGUMENT);
    let memory = buffer(&device).export().unwrap();
    assert_eq!(refused(own.after_sync_file(memory.as_fd())), NV_ERR_INVALID_ARGUMENT);
    device.rm().kmd().close(memory);
    assert_eq!(refused(device.syncpoint(u64::MAX).map(drop)), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(refused(device.syncpoint(device.fence() + 1).map(drop)), NV_ERR_INVALID_ARGUMENT);
    let other = QueueRef::open(&device, Plan::PLAIN).unwrap();
    let ended = other.queue().fence();
    other.end().unwrap();
    assert_eq!(refused(device.syncpoint(ended).map(drop)), NV_ERR_INVALID_ARGUMENT);
    device.wait(own.fill(&buffer(&device), 0, 64, 1, 1).unwrap(), DEADLINE).unwrap();
}

#[test]
fn a_fault_lets_the_syncpoint_pass_and_recovery_brings_another() {
    let device = device();
    let kernel = kernel(&device);
    let [gate, other] = [(); 2].map(|()| QueueRef::open(&device, Plan::PLAIN).unwrap());
    let closed = device.syncpoint(gate.queue().fence()).unwrap();
    let open = SyncPoint { threshold: closed.threshold + 1, ..closed };
    QueueRef::own(&device).after_syncpoints(&[open]).unwrap();
    let lost = launch_badly(&device, &kernel);
    let file = device.sync_file(lost).unwrap();
    other.after_sync_file(file.as_fd()).unwrap();
    let to = buffer(&device);
    let waits = other.fill(&to, 0, 4096, 3, 1).unwrap();
    assert!(!readable(&file, PollTimeout::ZERO));
    device.syncpoint(gate.queue().fence()).unwrap();
    assert!(readable(&file, PollTimeout::NONE), "the kernel lets the syncpoint of a channel that it stops pass");
    device.wait(waits, DEADLINE).unwrap();
    assert_eq!(device.wait(lost, DEADLINE).unwrap_err().status, NV_ERR_RESET_REQUIRED);
    assert_eq!(device.syncpoint(lost).unwrap_err().status, NV_ERR_RESET_REQUIRED);
    assert_eq!(device.recover().unwrap(), 1);
    let after = device.sync_file(device.fence()).unwrap();
    assert!(readable(&after, PollTimeout::NONE));
    [file, after].into_iter().for_each(|fd| device.rm().kmd().close(fd));
}

#[test]
fn a_system_without_the_node_has_syncpoints_but_no_sync_files() {
    let board = crate::common::board(crate::common::default_release());
    let faulty = Arc::new(Faulty::new(board as Arc<dyn Kmd>));
    let device = Device::open(&Arc::new(Rm::new(faulty.clone() as Arc<dyn Kmd>, CacheMode::WriteCombine)), 0).unwrap();
    faulty.arm(CallKind::Open, 1, Errno::ENOENT);
    let error = device.sync_file(device.fence()).unwrap_err();
    assert_eq!(error.status, NV_ERR_NOT_SUPPORTED);
    assert!(error.text.contains("/dev/host1x-fence"), "{error}");
    device.syncpoint(device.fence()).unwrap();
}
