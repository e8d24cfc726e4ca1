//! Every function of the runtime is called with each of its ioctls failing once. It returns the right status, nothing
//! is left behind, and a device that was open before continues to work.
#![cfg(feature = "sim")]

mod common;

use common::door::raw_mmap;
use common::{Board, DEADLINE, LINE, cubin};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tegrarm::rm::Rm;
use tegrarm::rm::syncpoints::SyncPoint;
use tegrarm::runtime::channel::{Kind, Plan};
use tegrarm::runtime::device::Device;
use tegrarm::runtime::device::buffer::Buffer;
use tegrarm::runtime::device::event::Event;
use tegrarm::runtime::device::module::{KernelRef, Module};
use tegrarm::runtime::device::queue_ref::QueueRef;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::memory::place::Place;
use tegrarm::runtime::memory::{Access, Cache, Memory};
use tegrarm::runtime::replay::Replay;
use tegrarm::status::{RmResult, of_errno};
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{CallKind, DeviceMem, Errno, Faulty, Kmd};

/// A module whose recursive kernel says that it needs 2,048 bytes of stack: more than a device starts with.
fn deep() -> Vec<u8> {
    let mut image = cubin("calls.jit.cubin");
    // The attribute MIN_STACK_SIZE, eight bytes: the symbol, and "unknown".
    let at = image.windows(12).position(|w| w[..4] == [0x04, 0x12, 8, 0] && w[8..] == [0xff; 4]).unwrap();
    image[at + 8..at + 12].copy_from_slice(&2048u32.to_le_bytes());
    image
}

/// A descriptor that the kernel learns the end of.
struct Shared {
    kmd: Arc<dyn Kmd>,
    fd: Option<OwnedFd>,
}

impl Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().unwrap().as_fd()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.fd.take().into_iter().for_each(|fd| self.kmd.close(fd));
    }
}

/// A shared page of this process, because the supervisor does not reach private ones (known difference OOP-D01).
struct Pages(DeviceMem);

impl Pages {
    fn new() -> Pages {
        Pages(raw_mmap(None, 4096, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1))
    }

    fn start(&self) -> u64 {
        self.0.mapping().addr() as u64
    }
}

/// An open device with the objects on which the functions work.
struct Bench {
    device: Arc<Device>,
    buffers: [Arc<Buffer>; 2],
    event: Arc<Event>,
    /// A descriptor of the first buffer.
    shared: Shared,
    pages: Pages,
    /// A device that has no memory for code yet.
    empty: Arc<Device>,
    module: Arc<Module>,
    constants: Arc<Module>,
    add: Arc<KernelRef>,
    /// A kernel that needs more local memory than a device has at first.
    deep: Arc<KernelRef>,
}

impl Bench {
    fn open(rm: &Arc<Rm>) -> RmResult<Bench> {
        let device = Device::open(rm, 0)?;
        let buffers = [device.alloc(4096, Cache::Cached)?, device.alloc(4096, Cache::WriteCombined)?];
        let shared = Shared { kmd: rm.kmd().clone(), fd: Some(buffers[0].export()?) };
        let pages = Pages::new();
        let module = device.load(&cubin("vecadd.nvrtc.cubin"))?;
        let constants = device.load(&cubin("constants.nvrtc.cubin"))?;
        let add = Arc::new(module.kernel("vecadd")?);
        let deep = Arc::new(device.load(&deep())?.kernel("recursive")?);
        let event = Event::new(&device)?;
        let empty = Device::open(rm, 0)?;
        Ok(Bench { empty, event, device, buffers, shared, pages, module, constants, add, deep })
    }

    fn arguments(&self, kernel: &KernelRef) -> Vec<u8> {
        let [a, b] = [0, 1].map(|i| self.buffers[i].address().to_le_bytes());
        match kernel.kernel().parameters.len() {
            2 => params::pack(kernel.kernel(), &[&a, &b]).unwrap(),
            _ => params::pack(kernel.kernel(), &[&a, &a, &b, &32u32.to_le_bytes()]).unwrap(),
        }
    }

    fn launch(&self, kernel: &KernelRef) -> RmResult<()> {
        let fence = self.device.launch(kernel, &LINE, &self.arguments(kernel))?;
        self.device.wait(fence, DEADLINE)
    }

    fn sync_file(&self) -> RmResult<Shared> {
        let fd = self.device.sync_file(self.device.fence())?;
        Ok(Shared { kmd: self.device.rm().kmd().clone(), fd: Some(fd) })
    }

    fn recorded(&self) -> RmResult<Replay> {
        let mut replay = Replay::on(&self.device);
        replay.launch(&self.add, &LINE, |to| {
            to.copy_from_slice(&self.arguments(&self.add));
            Ok(())
        })?;
        Ok(replay)
    }

    fn run(&self, replay: &mut Replay) -> RmResult<()> {
        let memory = Arc::new(Memory::new(self.device.session(), 4096, Cache::Cached)?);
        replay.submit(&Place::of(&memory, 0, 8)?, 0)?;
        replay.wait(DEADLINE)
    }

    /// Checks that the device still computes, with 1 + 1.
    fn works(&self) {
        self.buffers[0].write(0, &1f32.to_le_bytes().repeat(32)).unwrap();
        self.launch(&self.add).unwrap();
        let mut sum = [0; 4];
        self.buffers[1].read(0, &mut sum).unwrap();
        assert_eq!(f32::from_le_bytes(sum), 2.0);
    }
}

/// A device that is profiled until it is dropped.
struct Profiled(Arc<Device>);

impl Drop for Profiled {
    fn drop(&mut self) {
        self.0.stop_profile().unwrap();
    }
}

/// A queue that ends when it is dropped.
struct Channel(QueueRef);

impl Drop for Channel {
    fn drop(&mut self) {
        self.0.clone().end().unwrap();
    }
}

const HIGH: Plan = Plan { level: Some(2), timeslice: Some(2000), ..Plan::PLAIN };
const COPIES: Plan = Plan { kind: Kind::Copy, ..Plan::PLAIN };

/// What a function made, whatever it is.
type Made = Box<dyn std::any::Any>;

/// A function: its name, whether it makes kernel calls, and the call itself. The thing that it makes is given back
/// later.
type Row = (&'static str, Calls, fn(&Bench) -> RmResult<Made>);

#[derive(Clone, Copy, PartialEq)]
enum Calls {
    /// The function makes kernel calls. Each of them that fails makes the function fail.
    Some,
    /// The function makes kernel calls. The last of them give back what was replaced, and they cannot make the function
    /// fail.
    ThenGivesBack,
    /// The function makes kernel calls. If memory is wanted in one of them, the function tries in another way.
    OrInPieces,
    /// Both.
    OrInPiecesThenGivesBack,
    /// The function makes no kernel call.
    None,
}

impl Calls {
    fn give_back(self) -> bool {
        matches!(self, Calls::ThenGivesBack | Calls::OrInPiecesThenGivesBack)
    }

    fn try_pieces(self) -> bool {
        matches!(self, Calls::OrInPieces | Calls::OrInPiecesThenGivesBack)
    }
}

fn made<T: 'static>(result: RmResult<T>) -> RmResult<Made> {
    result.map(|made| Box::new(made) as Made)
}

const ROWS: &[Row] = &[
    ("device_open", Calls::Some, |b| made(Device::open(b.device.rm(), 0))),
    ("device_fault", Calls::None, |b| made(b.device.fault().map(|fault| assert!(fault.is_none())))),
    ("fence and wait", Calls::None, |b| made(b.device.wait(b.device.fence(), DEADLINE))),
    ("buffer_alloc", Calls::Some, |b| made(b.device.alloc(1 << 20, Cache::Cached))),
    ("buffer_alloc, large", Calls::OrInPieces, |b| made(b.device.alloc(8 << 20, Cache::WriteCombined))),
    ("buffer_import", Calls::Some, |b| made(b.device.import(b.shared.as_fd(), Access::FULL))),
    ("buffer_import_pages", Calls::Some, |b| made(b.device.borrow_pages(b.pages.start(), 4096, Access::FULL))),
    ("buffer_export", Calls::Some, |b| made(b.buffers[0].export().map(|fd| b.device.rm().kmd().close(fd)))),
    ("buffer_part", Calls::None, |b| made(b.buffers[0].part(64, 64))),
    ("buffer_reserve", Calls::Some, |b| made(b.device.reserve(8192))),
    ("buffer_reserve and buffer_map", Calls::Some, |b| {
        let reserved = b.device.reserve(8192)?;
        reserved.map(4096, &b.buffers[0], 0, 4096, Access::FULL)?;
        made(Ok(reserved))
    }),
    ("fill", Calls::None, |b| {
        let fence = b.buffers[0].fill(0, 64, 7, 1)?;
        made(b.device.wait(fence, DEADLINE))
    }),
    ("event_create, the first", Calls::Some, |b| made(Event::new(&b.empty))),
    ("event_record and event_time", Calls::None, |b| {
        let fence = b.event.record(b.device.own())?;
        b.device.wait(fence, DEADLINE)?;
        made(b.event.time())
    }),
    ("device_time", Calls::Some, |b| made(b.device.time())),
    ("profile_start", Calls::Some, |b| {
        b.device.start_profile(Arc::new(|_| {}))?;
        made(Ok(Profiled(b.device.clone())))
    }),
    ("queue_create", Calls::Some, |b| made(QueueRef::open(&b.device, HIGH).map(Channel))),
    ("queue_create for copies", Calls::Some, |b| made(QueueRef::open(&b.device, COPIES).map(Channel))),
    ("queue_after, copy and fill", Calls::None, |b| {
        let queue = QueueRef::own(&b.device);
        queue.after(b.device.fence())?;
        queue.fill(&b.buffers[0], 0, 64, 7, 1)?;
        made(queue.copy(&b.buffers[0], 0, &b.buffers[1], 64, 64).and_then(|fence| b.device.wait(fence, DEADLINE)))
    }),
    ("copy_in with a fence", Calls::None, |b| {
        let from = b.buffers[1].place(0, 64)?;
        made(QueueRef::own(&b.device).copy_in(&b.buffers[0], 0, &from, 64))
    }),
    ("copy_in and copy_out without a fence", Calls::None, |b| {
        let (queue, other) = (QueueRef::own(&b.device), b.buffers[1].place(0, 64)?);
        queue.copy_in_and_wait(&b.buffers[0], 0, &other, 64)?;
        made(queue.copy_out_and_wait(&b.buffers[0], 0, &other, 64))
    }),
    ("wait_all, wait_any and fence_query", Calls::None, |b| {
        let fences = [b.device.fence(); 3];
        b.device.wait_all(&fences, DEADLINE)?;
        b.device.wait_any(&fences, DEADLINE)?;
        made(b.device.query(fences[0]))
    }),
    ("fence_notify and fence_fd", Calls::None, |b| {
        b.device.notify(b.device.fence(), |_| {})?;
        made(b.device.pollable(b.device.fence()))
    }),
    ("fence_syncpoint", Calls::Some, |b| made(b.device.syncpoint(b.device.fence()))),
    ("fence_sync_file", Calls::Some, |b| made(b.sync_file())),
    ("queue_after_syncpoint", Calls::Some, |b| {
        let point = SyncPoint { id: 17, threshold: 0 };
        made(QueueRef::own(&b.device).after_syncpoints(&[point]))
    }),
    ("queue_after_sync_file", Calls::Some, |b| {
        let file = b.sync_file()?;
        made(QueueRef::own(&b.device).after_sync_file(file.as_fd()))
    }),
    ("device_recover", Calls::None, |b| made(b.device.recover().map(|count| assert_eq!(count, 0)))),
    ("device_stop", Calls::None, |b| made(b.device.stop().map(|count| assert_eq!(count, 0)))),
    ("device_memory", Calls::None, |b| made(b.device.memory())),
    ("device_measure", Calls::OrInPiecesThenGivesBack, |b| made(b.device.measure(Duration::ZERO))),
    ("buffer_address", Calls::None, |b| made(Ok(b.buffers[0].address() + b.buffers[0].pointer() as u64))),
    ("copy_in", Calls::None, |b| made(b.buffers[0].write(0, &[1; 64]))),
    ("copy_out", Calls::None, |b| made(b.buffers[0].read(0, &mut [0; 64]))),
    ("copy", Calls::None, |b| {
        let fence = b.device.copy(&b.buffers[0], 0, &b.buffers[1], 64, 64)?;
        made(b.device.wait(fence, DEADLINE))
    }),
    ("module_load, the first", Calls::Some, |b| made(b.empty.load(&cubin("shared.nvrtc.cubin")))),
    ("module_load, beside others", Calls::None, |b| made(b.device.load(&cubin("shared.nvrtc.cubin")))),
    ("module_load with the device library", Calls::Some, |b| made(b.empty.load(&cubin("driver/functions.cubin")))),
    ("module_kernel", Calls::None, |b| made(b.module.kernel("scale"))),
    ("module_variable and module_write", Calls::None, |b| made(b.constants.write_variable("offset", &[1; 4]))),
    ("launch", Calls::None, |b| made(b.launch(&b.add))),
    ("launch with more local memory", Calls::ThenGivesBack, |b| made(b.launch(&b.deep))),
    ("device_set_limit", Calls::ThenGivesBack, |b| made(b.device.set_stack(2000))),
    ("replay_create", Calls::None, |b| made(Ok(Replay::on(&b.device)))),
    ("replay_launch and the first run in a queue", Calls::ThenGivesBack, |b| {
        let mut replay = b.recorded()?;
        let fence = replay.enqueue(&QueueRef::own(&b.device))?;
        b.device.wait(fence, DEADLINE)?;
        made(Ok(replay))
    }),
    ("replay_launch and the first run", Calls::ThenGivesBack, |b| {
        let mut replay = b.recorded()?;
        b.run(&mut replay)?;
        made(Ok(replay))
    }),
];

fn faulty() -> (Arc<Board>, Arc<Faulty>, Arc<Rm>) {
    let board = common::board(common::default_release());
    let faulty = Arc::new(Faulty::new(board.clone()));
    let rm = Arc::new(Rm::new(faulty.clone() as Arc<dyn Kmd>, CacheMode::WriteCombine));
    (board, faulty, rm)
}

/// The counts of things that a failed call must not leave: channels, groups, memory handles and bytes.
fn alive(board: &Board) -> Option<(usize, usize, usize, u64)> {
    board.census().map(|c| (c.channels, c.tsgs, c.handles, c.memory))
}

/// The status for an ioctl that fails with `errno`. For things of which there is a fixed number, it is RM's own status.
fn wanted(errno: Errno, sentence: &str) -> u32 {
    let counted = ["NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT", "NVGPU_GPU_IOCTL_OPEN_CHANNEL"];
    match errno {
        Errno::ENOMEM if counted.iter().any(|name| sentence.contains(name)) => NV_ERR_INSUFFICIENT_RESOURCES,
        // The caller gave the pages, so the error is about an address.
        Errno::EINVAL if sentence.contains("NVMAP_IOC_FROM_VA") => NV_ERR_INVALID_ADDRESS,
        _ => of_errno(errno),
    }
}

/// The result of a function whose call number `n` failed.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Failed,
    Succeeded,
    /// The function makes fewer than `n` calls.
    NotMade,
}

fn fail_one((name, calls, function): &Row, n: u64, errno: Errno) -> Outcome {
    let (board, faulty, rm) = faulty();
    let bench = Bench::open(&rm).unwrap();
    let before = alive(&board);
    faulty.arm(CallKind::AnyIoctl, n, errno);
    let result = function(&bench);
    let fired = faulty.fired();
    if *calls == Calls::None {
        assert_eq!(faulty.calls(), 0, "{name} makes kernel calls");
    }
    faulty.count(CallKind::Any);
    match (fired, &result) {
        (true, Err(e)) => {
            assert_eq!(e.status, wanted(errno, &e.text), "{name}, ioctl {n} failing with {errno}: {e}");
            assert!(e.text.contains("_IOC"), "{name}, ioctl {n}: the sentence does not name it: {e}");
            assert_eq!(alive(&board), before, "{name}, ioctl {n} failing with {errno} leaves something behind: {e}");
        }
        (true, Ok(_)) if calls.give_back() || calls.try_pieces() && errno == Errno::ENOMEM => {}
        (true, Ok(_)) => panic!("{name}: nobody noticed that ioctl {n} failed with {errno}"),
        (false, Err(e)) => panic!("{name} failed by itself: {e}"),
        (false, Ok(_)) => {}
    }
    let failed = result.is_err();
    drop(result);
    bench.works();
    drop((bench, rm));
    assert_eq!(board.census().unwrap_or_default(), tegra_sim::Census::default(), "{name}, ioctl {n}: at the end");
    match (fired, failed) {
        (false, _) => Outcome::NotMade,
        (true, true) => Outcome::Failed,
        (true, false) => Outcome::Succeeded,
    }
}

fn every_ioctl_of_every_function() {
    for row in ROWS {
        for errno in [Errno::ENOMEM, Errno::EINVAL] {
            let all = (1..).map(|n| fail_one(row, n, errno));
            let outcomes: Vec<Outcome> = all.take_while(|outcome| *outcome != Outcome::NotMade).collect();
            if row.1.try_pieces() && errno == Errno::ENOMEM {
                assert!(outcomes.contains(&Outcome::Succeeded), "{}: nothing else was tried", row.0);
                continue;
            }
            let failures = outcomes.iter().take_while(|outcome| **outcome == Outcome::Failed).count();
            assert_eq!(failures > 0, row.1 != Calls::None, "{}: {failures} calls", row.0);
            assert!(outcomes[failures..].iter().all(|o| *o == Outcome::Succeeded), "{}: gives back in between", row.0);
        }
    }
}

/// A device that a fault stopped recovers, or stays as it was and recovers when it is tried again.
fn every_ioctl_of_recovering() {
    for errno in [Errno::ENOMEM, Errno::EINVAL] {
        for n in 1.. {
            let (board, faulty, rm) = faulty();
            let bench = Bench::open(&rm).unwrap();
            let bad = 0x12_3456_7000u64.to_le_bytes();
            let block = params::pack(bench.add.kernel(), &[&bad, &bad, &bad, &32u32.to_le_bytes()]).unwrap();
            let fence = bench.device.launch(&bench.add, &LINE, &block).unwrap();
            assert_eq!(bench.device.wait(fence, DEADLINE).unwrap_err().status, NV_ERR_RESET_REQUIRED);
            faulty.arm(CallKind::AnyIoctl, n, errno);
            let result = bench.device.recover();
            let fired = faulty.fired();
            faulty.count(CallKind::Any);
            if let Err(e) = &result {
                assert_eq!(e.status, wanted(errno, &e.text), "ioctl {n} failing with {errno}: {e}");
                assert_eq!(bench.device.recover().unwrap(), 1, "ioctl {n}");
            }
            assert_eq!(bench.device.wait(fence, DEADLINE).unwrap_err().status, NV_ERR_RESOURCE_LOST);
            bench.works();
            drop((bench, rm));
            assert_eq!(board.census().unwrap_or_default(), tegra_sim::Census::default(), "recover, ioctl {n}");
            if !fired {
                break;
            }
        }
    }
}

/// What a function gives back, out of a bench; and what stays for the time being.
type GivesBack = (&'static str, fn(Bench) -> (Made, Option<Bench>));

const GIVING_BACK: &[GivesBack] = &[
    ("buffer_free", |b| (made(b.device.alloc(4096, Cache::Cached)).unwrap(), Some(b))),
    ("module_unload", |b| (made(b.empty.load(&cubin("shared.nvrtc.cubin"))).unwrap(), Some(b))),
    ("replay_destroy", |b| (made(b.recorded()).unwrap(), Some(b))),
    ("device_close", |b| (Box::new((b.device, b.buffers, b.event, b.module, b.constants, b.add, b.deep)), None)),
    ("device_close with work in flight", |b| {
        b.device.launch(&b.add, &LINE, &b.arguments(&b.add)).unwrap();
        (Box::new((b.device, b.buffers, b.event, b.module, b.constants, b.add, b.deep)), None)
    }),
];

/// Giving back cannot fail: whatever the kernel answers, the function returns, and the end of the device gives the rest
/// back.
fn every_ioctl_of_giving_back() {
    for (name, prepare) in GIVING_BACK {
        for n in 1.. {
            let (board, faulty, rm) = faulty();
            let (doomed, rest) = prepare(Bench::open(&rm).unwrap());
            faulty.arm(CallKind::AnyIoctl, n, Errno::EIO);
            drop(doomed);
            let fired = faulty.fired();
            faulty.count(CallKind::Any);
            rest.iter().for_each(Bench::works);
            drop((rest, rm));
            assert_eq!(board.census().unwrap_or_default(), tegra_sim::Census::default(), "{name}, ioctl {n}");
            if !fired {
                break;
            }
        }
    }
}

/// This is one test, so that no other test makes or removes mappings and descriptors meanwhile.
#[test]
fn every_ioctl_may_fail() {
    fail_one(&ROWS[0], 1, Errno::ENOMEM);
    let before = common::holdings();
    every_ioctl_of_every_function();
    every_ioctl_of_recovering();
    every_ioctl_of_giving_back();
    let after = common::holdings();
    assert_eq!((after.fds, after.maps.len()), (before.fds, before.maps.len()), "of this process");
}
