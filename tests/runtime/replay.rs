//! Replays: recorded work that runs again and again with new values and makes no kernel call.
#![cfg(feature = "sim")]

use crate::common::{DEADLINE, vecadd};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use tegrarm::rm::Rm;
use tegrarm::runtime::channel::{Kind, Plan};
use tegrarm::runtime::device::Device;
use tegrarm::runtime::device::buffer::Buffer;
use tegrarm::runtime::device::module::KernelRef;
use tegrarm::runtime::device::queue_ref::QueueRef;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::place::{Place, Width};
use tegrarm::runtime::memory::{Cache, Memory};
use tegrarm::runtime::replay::{Copy, Replay, Source, Value};
use tegrarm::status::{RmError, RmResult};
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{CallKind, Faulty, Kmd};

const N: usize = 64;
const WHOLE: Launch = Launch { grid: Dim3::new(2, 1, 1), block: Dim3::new(32, 1, 1), dynamic_shared: 0 };

struct Bench {
    faulty: Arc<Faulty>,
    board: Arc<crate::common::Board>,
    device: Arc<Device>,
    kernel: Arc<KernelRef>,
}

/// A device with `vecadd(a, b, c, n)`, on a kernel that counts its calls.
fn bench() -> Bench {
    let board = crate::common::board(crate::common::default_release());
    let faulty = Arc::new(Faulty::new(board.clone()));
    let rm = Arc::new(Rm::new(faulty.clone() as Arc<dyn Kmd>, CacheMode::WriteCombine));
    let device = Device::open(&rm, 0).unwrap();
    let kernel = Arc::new(vecadd(&device));
    Bench { faulty, board, device, kernel }
}

impl Bench {
    fn buffer(&self, value: f32) -> Arc<Buffer> {
        let b = self.device.alloc(4 * N as u64, Cache::Cached).unwrap();
        b.write(0, &value.to_le_bytes().repeat(N)).unwrap();
        b
    }

    /// The arguments of `to = a + b` over all elements.
    fn arguments(&self, a: &Buffer, b: &Buffer, to: &Buffer) -> impl FnOnce(&mut [u8]) -> RmResult<()> + use<> {
        let addresses = [a, b, to].map(|b| b.address().to_le_bytes());
        let count = (N as u32).to_le_bytes();
        let arguments: Vec<&[u8]> = addresses.iter().map(|a| &a[..]).chain([&count[..]]).collect();
        let block = params::pack(self.kernel.kernel(), &arguments).unwrap();
        move |to: &mut [u8]| {
            to.copy_from_slice(&block);
            Ok(())
        }
    }

    /// Records `to = a + b` over all elements.
    fn add(&self, replay: &mut Replay, a: &Buffer, b: &Buffer, to: &Buffer) -> u32 {
        replay.launch(&self.kernel, &WHOLE, self.arguments(a, b, to)).unwrap()
    }

    /// Device memory as a place from which and to which the CPU copies.
    fn shared(&self) -> (Arc<Memory>, Place) {
        let memory = Arc::new(Memory::new(self.device.session(), 4096, Cache::Cached).unwrap());
        let place = Place::of(&memory, 0, 4096).unwrap();
        (memory, place)
    }
}

fn first(b: &Buffer) -> f32 {
    let mut bytes = [0; 4];
    b.read(0, &mut bytes).unwrap();
    f32::from_le_bytes(bytes)
}

#[test]
fn a_chain_runs_in_order_again_and_again_without_a_kernel_call() {
    let t = bench();
    let (a, b, c) = (t.buffer(1.0), t.buffer(0.5), t.buffer(0.0));
    let mut replay = Replay::on(&t.device);
    // Each run computes c = a + b and then copies c to a on the copy engine, so a grows by 0.5.
    t.add(&mut replay, &a, &b, &c);
    replay.copy(&a, 0, &c, 0, 4 * N as u32).unwrap();
    let (_memory, nothing) = t.shared();
    replay.submit(&nothing, 0).unwrap();
    replay.wait(DEADLINE).unwrap();
    t.faulty.count(CallKind::Any);
    for _ in 1..1500 {
        replay.submit(&nothing, 0).unwrap();
        replay.wait(DEADLINE).unwrap();
    }
    assert_eq!(t.faulty.calls(), 0, "kernel calls in the loop");
    assert_eq!(first(&a), 1.0 + 0.5 * 1500.0, "more runs than the ring has entries");
}

/// A queue gets more runs than its ring has entries, while earlier ones go on. Another queue waits for them, and gets one too.
#[test]
fn queues_get_run_after_run() {
    let t = bench();
    let (a, b, c) = (t.buffer(1.0), t.buffer(0.5), t.buffer(7.0));
    let mut replay = Replay::on(&t.device);
    replay.fill(&c, 0, 4 * N as u64, 0, 4).unwrap();
    t.add(&mut replay, &a, &b, &c);
    replay.copy(&a, 0, &c, 0, 4 * N as u32).unwrap();
    let (own, other) = (QueueRef::own(&t.device), QueueRef::open(&t.device, Plan::PLAIN).unwrap());
    let launches = t.device.rm().launches().get();
    let mut last = replay.enqueue(&own).unwrap();
    t.faulty.count(CallKind::Any);
    for _ in 1..1500 {
        let next = replay.enqueue(&own).unwrap();
        assert_eq!(next, last + 2, "one entry for the words, and one for the fence");
        last = next;
    }
    assert_eq!(t.faulty.calls(), 0, "kernel calls in the loop");
    other.after(last).unwrap();
    last = replay.enqueue(&other).unwrap();
    t.device.wait(last, DEADLINE).unwrap();
    assert_eq!(first(&a), 1.0 + 0.5 * 1501.0);
    assert_eq!(t.device.rm().launches().get() - launches, 1501);
    // The same replay can still run on its own channel.
    let (_memory, nothing) = t.shared();
    replay.submit(&nothing, 0).unwrap();
    replay.wait(DEADLINE).unwrap();
    assert_eq!(first(&a), 1.0 + 0.5 * 1502.0);
    other.end().unwrap();
}

/// A launch gets other arguments and another size when the runs before have finished. What is refused changes nothing.
#[test]
fn a_recorded_launch_is_updated() {
    let t = bench();
    let (a, b, c, d) = (t.buffer(1.0), t.buffer(2.0), t.buffer(0.0), t.buffer(0.0));
    let mut replay = Replay::on(&t.device);
    let launch = t.add(&mut replay, &a, &b, &c);
    let own = QueueRef::own(&t.device);
    let run = |replay: &mut Replay| {
        let fence = replay.enqueue(&own).unwrap();
        t.device.wait(fence, DEADLINE).unwrap();
    };
    replay.enqueue(&own).unwrap();
    let half = Launch { grid: Dim3::new(1, 1, 1), ..WHOLE };
    replay.update(launch, &t.kernel, &half, t.arguments(&a, &c, &d)).unwrap();
    run(&mut replay);
    assert_eq!((first(&c), first(&d)), (3.0, 4.0));
    let mut bytes = [0; 4];
    d.read(4 * 32, &mut bytes).unwrap();
    assert_eq!(f32::from_le_bytes(bytes), 0.0, "the second block did not run");
    let refused = |result: Result<(), RmError>| result.unwrap_err().status;
    let large = Launch { block: Dim3::new(4096, 1, 1), ..WHOLE };
    assert_eq!(refused(replay.update(launch, &t.kernel, &large, t.arguments(&b, &b, &b))), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(refused(replay.update(9, &t.kernel, &half, t.arguments(&b, &b, &b))), NV_ERR_INVALID_ARGUMENT);
    let same = Arc::new(vecadd(&t.device));
    assert_eq!(refused(replay.update(launch, &same, &half, t.arguments(&b, &b, &b))), NV_ERR_INVALID_ARGUMENT);
    d.write(0, &[0; 4]).unwrap();
    run(&mut replay);
    assert_eq!((first(&b), first(&d)), (2.0, 4.0), "the arguments are those before");
    replay.update(launch, &t.kernel, &WHOLE, t.arguments(&d, &d, &b)).unwrap();
    run(&mut replay);
    assert_eq!(first(&b), 8.0);
}

#[test]
fn a_queue_takes_no_run_in_which_the_cpu_has_a_part() {
    let t = bench();
    let (a, b, c) = (t.buffer(0.0), t.buffer(0.0), t.buffer(0.0));
    let own = QueueRef::own(&t.device);
    let refused = |replay: &mut Replay| replay.enqueue(&own).unwrap_err().status;
    let mut replay = Replay::on(&t.device);
    assert_eq!(refused(&mut replay), NV_ERR_INVALID_STATE, "nothing was recorded");
    let launch = t.add(&mut replay, &a, &b, &c);
    let other = Device::open(t.device.rm(), 0).unwrap();
    assert_eq!(replay.enqueue(&QueueRef::own(&other)).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    let copies = Plan { kind: Kind::Copy, ..Plan::PLAIN };
    let copies = QueueRef::open(&t.device, copies).unwrap();
    assert_eq!(replay.enqueue(&copies).unwrap_err().status, NV_ERR_INVALID_ARGUMENT, "a copy engine alone");
    replay.argument(launch, 1, 0).unwrap();
    assert_eq!(refused(&mut replay), NV_ERR_INVALID_STATE, "a value of each run");
    assert_eq!(refused(&mut Replay::foreign(None)), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(replay.fill(&a, 2, 4, 0, 4).unwrap_err().status, NV_ERR_INVALID_ARGUMENT, "not aligned");
    assert_eq!(replay.fill(&a, 0, 4 * N as u64 + 4, 0, 4).unwrap_err().status, NV_ERR_INVALID_BASE);
    copies.end().unwrap();
}

/// What `tegrarm top` shows: each run counts all its launches, and copies do not count.
#[test]
fn the_launches_of_every_run_are_counted() {
    let t = bench();
    let (a, b, c) = (t.buffer(1.0), t.buffer(0.5), t.buffer(0.0));
    let launches = || t.device.rm().launches().get();
    let mut replay = Replay::on(&t.device);
    t.add(&mut replay, &a, &b, &c);
    replay.copy(&a, 0, &c, 0, 4 * N as u32).unwrap();
    t.add(&mut replay, &a, &b, &c);
    let (_memory, nothing) = t.shared();
    assert_eq!(launches(), 0, "what is recorded has not run");
    for run in 1..=3 {
        replay.submit(&nothing, 0).unwrap();
        replay.wait(DEADLINE).unwrap();
        assert_eq!(launches(), 2 * run);
    }
}

#[test]
fn values_inputs_and_outputs_change_with_each_run() {
    let t = bench();
    let (a, b, c) = (t.buffer(0.0), t.buffer(0.0), t.buffer(0.0));
    let others = [t.buffer(100.0), t.buffer(200.0)];
    let ((memory, from), (results, to)) = (t.shared(), t.shared());
    let (_values, values) = t.shared();
    let mut replay = Replay::on(&t.device);
    let launch = t.add(&mut replay, &a, &b, &c);
    replay.argument(launch, 1, 0).unwrap();
    replay.input(Copy { to: a.place(0, 4).unwrap(), from, len: 4 }).unwrap();
    replay.output(Copy { to, from: c.place(0, 4).unwrap(), len: 4 }).unwrap();
    for run in 0..50u64 {
        let input = run as f32;
        memory.write(0, &input.to_le_bytes()).unwrap();
        let other = &others[(run % 2) as usize];
        values.write(Width::W8, 0, other.address());
        replay.submit(&values, 1).unwrap();
        replay.wait(DEADLINE).unwrap();
        let mut bytes = [0; 4];
        results.read(0, &mut bytes).unwrap();
        assert_eq!(f32::from_le_bytes(bytes), input + 100.0 * (1 + run % 2) as f32, "run {run}");
    }
}

#[test]
fn a_run_comes_after_the_work_given_before() {
    let t = bench();
    let (a, b, c) = (t.buffer(0.0), t.buffer(1.0), t.buffer(0.0));
    let mut replay = Replay::on(&t.device);
    t.add(&mut replay, &a, &b, &c);
    let (_memory, nothing) = t.shared();
    for run in 1..=20 {
        // The device gets the copy a = c of the last run, and the test does not wait for it.
        t.device.copy(&a, 0, &c, 0, 4 * N as u64).unwrap();
        replay.submit(&nothing, 0).unwrap();
        replay.wait(DEADLINE).unwrap();
        assert_eq!(first(&c), run as f32);
    }
}

#[test]
fn misuse_is_refused_with_a_sentence() {
    let t = bench();
    let (a, b, c) = (t.buffer(0.0), t.buffer(1.0), t.buffer(0.0));
    let (_memory, nothing) = t.shared();
    let mut empty = Replay::on(&t.device);
    assert_eq!(empty.submit(&nothing, 0).unwrap_err().status, NV_ERR_INVALID_STATE, "nothing recorded");
    let mut replay = Replay::on(&t.device);
    let launch = t.add(&mut replay, &a, &b, &c);
    assert_eq!(replay.argument(launch, 4, 0).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    assert_eq!(replay.argument(launch + 1, 0, 0).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    assert_eq!(replay.push(0, 0, 4).unwrap_err().status, NV_ERR_INVALID_ARGUMENT, "a channel of its own");
    assert_eq!(replay.copy(&a, 4, &a, 0, 8).unwrap_err().status, NV_ERR_INVALID_ARGUMENT, "overlap");
    assert_eq!(replay.copy(&a, 4096, &b, 0, 8).unwrap_err().status, NV_ERR_INVALID_BASE);
    replay.argument(launch, 1, 1).unwrap();
    let e = replay.submit(&nothing, 1).unwrap_err();
    assert!(e.status == NV_ERR_INVALID_ARGUMENT && e.text.contains("takes 2"), "{e}");
    let (_values, values) = t.shared();
    let second = t.buffer(3.0);
    let both = Place::of(&_values, 8, 8).unwrap();
    both.write(Width::W8, 0, second.address());
    replay.submit(&values, 2).unwrap();
    let e = replay.submit(&values, 2).unwrap_err();
    assert_eq!(e.status, NV_ERR_INVALID_STATE, "{e}");
    replay.wait(DEADLINE).unwrap();
    assert_eq!(first(&c), 3.0);
    assert_eq!(replay.argument(launch, 0, 0).unwrap_err().status, NV_ERR_INVALID_STATE, "has run");
    let other = bench();
    let mut elsewhere = Replay::on(&other.device);
    assert_eq!(elsewhere.copy(&a, 0, &b, 0, 4).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    let mut foreign = Replay::foreign(None);
    assert_eq!(foreign.copy(&a, 0, &b, 0, 4).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    assert_eq!(foreign.submit(&nothing, 0).unwrap_err().status, NV_ERR_INVALID_STATE, "no timeline");
    assert_eq!(foreign.push(0, 0, 4).unwrap_err().status, NV_ERR_INVALID_ARGUMENT, "no channel");
    let value = Value { source: Source::Kick, add: 0, shift: 64, mask: 0 };
    assert_eq!(foreign.patch(nothing, Width::W4, 0, value).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
}

#[test]
fn a_fault_stops_the_replay_and_not_the_device() {
    let t = bench();
    let (a, b, c) = (t.buffer(1.0), t.buffer(1.0), t.buffer(0.0));
    let (_values, values) = t.shared();
    let mut replay = Replay::on(&t.device);
    let launch = t.add(&mut replay, &a, &b, &c);
    replay.argument(launch, 0, 0).unwrap();
    values.write(Width::W8, 0, a.address());
    replay.submit(&values, 1).unwrap();
    replay.wait(DEADLINE).unwrap();
    values.write(Width::W8, 0, 0x12_3456_7000);
    replay.submit(&values, 1).unwrap();
    let e = replay.wait(None).unwrap_err();
    assert!(e.status == NV_ERR_RESET_REQUIRED && e.text.contains("MMU fault"), "{e}");
    assert_eq!(replay.submit(&values, 1).unwrap_err().status, NV_ERR_INVALID_STATE, "the run never finished");
    drop(replay);
    let mut next = Replay::on(&t.device);
    t.add(&mut next, &a, &b, &c);
    next.submit(&values, 0).unwrap();
    next.wait(DEADLINE).unwrap();
    assert_eq!(first(&c), 2.0);
}

#[test]
fn a_deadline_says_what_is_pending_and_the_wait_can_go_on() {
    let t = bench();
    let (a, b, c) = (t.buffer(1.0), t.buffer(1.0), t.buffer(0.0));
    let (_memory, nothing) = t.shared();
    // Only the test releases the timeline of this replay.
    let (signal_memory, signal) = t.shared();
    let mut foreign = Replay::foreign(None);
    let counter = |at| tegrarm::runtime::replay::Counter::Shared(Place::of(&signal_memory, at, 8).unwrap());
    foreign.timeline(signal.clone(), counter(8), 2, counter(16)).unwrap();
    let patched = Place::of(&signal_memory, 24, 8).unwrap();
    patched.write(Width::W8, 0, 0xff00_0000_0000_0000);
    let value = Value { source: Source::Timeline, add: 0x105, shift: 4, mask: 0xff };
    foreign.patch(patched.clone(), Width::W4, 0xffff_ff00, value).unwrap();
    foreign.submit(&nothing, 0).unwrap();
    let e = foreign.wait(Some(Duration::from_millis(2))).unwrap_err();
    assert!(e.status == NV_ERR_TIMEOUT && e.text.contains("wanted 2"), "{e}");
    assert_eq!(patched.read_u64(), 0xff00_0000_0000_0010);
    signal.write(Width::W8, 0, 2);
    foreign.wait(DEADLINE).unwrap();
    assert_eq!([8, 16].map(|at| signal_memory.read_u64(at)), [2, 1], "timeline and kick");
    drop((a, b, c));
}

/// Runs continue while another thread is in the middle of a launch and holds its locks.
#[test]
fn a_run_takes_no_lock_of_the_device() {
    let t = bench();
    let (a, b, c) = (t.buffer(1.0), t.buffer(2.0), t.buffer(0.0));
    let (_memory, nothing) = t.shared();
    let mut replay = Replay::on(&t.device);
    t.add(&mut replay, &a, &b, &c);
    replay.submit(&nothing, 0).unwrap();
    replay.wait(DEADLINE).unwrap();
    let launch = Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(32, 1, 1), dynamic_shared: 0 };
    let (inside, is_inside) = channel();
    let (go_on, may_go_on) = channel();
    let (device, kernel) = (&t.device, &t.kernel);
    let runs = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut ready = kernel.ready().lock();
            let (module, index) = (kernel.module(), kernel.index());
            let given = device.own().launch(device.base(), module, index, &mut ready, &launch, |_| {
                inside.send(()).unwrap();
                may_go_on.recv().unwrap();
                Err(RmError::new(NV_ERR_INVALID_ARGUMENT, "never given"))
            });
            assert!(given.is_err());
        });
        is_inside.recv().unwrap();
        let (done, finished) = channel();
        scope.spawn(move || {
            for _ in 0..20 {
                replay.submit(&nothing, 0).unwrap();
                replay.wait(DEADLINE).unwrap();
            }
            done.send(()).unwrap();
        });
        let runs = finished.recv_timeout(Duration::from_secs(60));
        go_on.send(()).unwrap();
        runs
    });
    assert!(runs.is_ok(), "the replay waited for the other thread's launch");
    assert_eq!(first(&c), 3.0);
}

#[test]
fn a_number_in_two_words_is_written_whole() {
    let t = bench();
    let (memory, signal) = t.shared();
    let place = |at, len| Place::of(&memory, at, len).unwrap();
    let mut foreign = Replay::foreign(None);
    let counter = |at| tegrarm::runtime::replay::Counter::Shared(place(at, 8));
    place(8, 8).write(Width::W8, 0, u64::from(u32::MAX) - 1);
    foreign.timeline(signal.clone(), counter(8), 1, counter(16)).unwrap();
    // The first value starts at 28, which is not a multiple of 8, and the second has its halves in the other order. The
    // last two halves, below, belong to different numbers.
    for (at, source, add, [first, second]) in
        [(28, Source::Timeline, 1, [0, 1]), (40, Source::Timeline, 1, [1, 0]), (52, Source::Kick, 1 << 32, [0, 1])]
    {
        let halves = Value::halves(source, add);
        foreign.patch(place(at, 4), Width::W4, 0, halves[first]).unwrap();
        foreign.patch(place(at + 4, 4), Width::W4, 0, halves[second]).unwrap();
    }
    foreign.patch(place(60, 4), Width::W4, 0, Value::halves(Source::Kick, 0)[0]).unwrap();
    foreign.patch(place(64, 4), Width::W4, 0, Value::halves(Source::Timeline, 1)[1]).unwrap();
    let mut run = |words: [u32; 8]| {
        foreign.submit(&signal, 0).unwrap();
        let found = [28, 32, 40, 44, 52, 56, 60, 64].map(|at| memory.read_u32(at));
        assert_eq!(found, words);
        signal.write(Width::W8, 0, u64::MAX);
        foreign.wait(DEADLINE).unwrap();
        signal.write(Width::W8, 0, 0);
    };
    run([u32::MAX, 0, 0, u32::MAX, 1, 1, 1, 0]);
    run([0, 1, 1, 0, 2, 1, 2, 1]);
}

#[test]
fn the_end_gives_everything_back() {
    let t = bench();
    let before = t.board.census().unwrap_or_default();
    let (a, b, c) = (t.buffer(1.0), t.buffer(1.0), t.buffer(0.0));
    let (memory, nothing) = t.shared();
    let mut after = Vec::new();
    for _ in 0..3 {
        let mut replay = Replay::on(&t.device);
        t.add(&mut replay, &a, &b, &c);
        replay.submit(&nothing, 0).unwrap();
        drop(replay);
        let session = t.device.session();
        after.push((t.board.census(), session.rm().object_count(session.client())));
    }
    drop((nothing, memory));
    assert!(after.iter().all(|found| *found == after[0]), "{after:?}");
    let census = after[0].0.unwrap_or_default();
    assert_eq!((census.channels, census.tsgs), (before.channels, before.tsgs), "the device's own, and no other");
}
