//! Tests several queues of one device on the virtual Orin: order, dependencies, copies and recovery.
#![cfg(feature = "sim")]

use crate::common::{DEADLINE, LINE, open_device, vecadd};
use std::sync::Arc;
use std::time::Duration;
use tegrarm::runtime::channel::{Kind, Plan};
use tegrarm::runtime::device::Device;
use tegrarm::runtime::device::buffer::Buffer;
use tegrarm::runtime::device::event::Event;
use tegrarm::runtime::device::module::KernelRef;
use tegrarm::runtime::device::queue_ref::QueueRef;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::place::Place;
use tegrarm::runtime::memory::{Cache, Memory};
use tegrarm_abi::rm::status::*;

const COPIES: Plan = Plan { kind: Kind::Copy, ..Plan::PLAIN };
const N: usize = 32;

fn floats(device: &Arc<Device>, value: f32) -> Arc<Buffer> {
    let buffer = device.alloc(4 * N as u64, Cache::Cached).unwrap();
    buffer.write(0, &value.to_le_bytes().repeat(N)).unwrap();
    buffer
}

fn first(buffer: &Buffer) -> f32 {
    let mut bytes = [0; 4];
    buffer.read(0, &mut bytes).unwrap();
    f32::from_le_bytes(bytes)
}

/// Launches `to = a + b` with that many blocks, which all do the same work.
fn add(queue: &QueueRef, kernel: &mut KernelRef, [a, b, to]: [&Buffer; 3], blocks: u32) -> u64 {
    let [a, b, to] = [a, b, to].map(|buffer| buffer.address().to_le_bytes());
    let block = params::pack(kernel.kernel(), &[&a, &b, &to, &(N as u32).to_le_bytes()]).unwrap();
    let launch = Launch { grid: Dim3::new(blocks, 1, 1), ..LINE };
    let fill = |_: &params::Layout, to: &tegrarm::runtime::memory::Span| {
        to.put(0, &block);
        Ok(())
    };
    queue.launch(kernel, &launch, fill).unwrap()
}

#[test]
fn queues_wait_for_each_others_fences() {
    let device = open_device();
    let mut kernel = vecadd(&device);
    let own = QueueRef::own(&device);
    let [second, copies] = [Plan::PLAIN, COPIES].map(|plan| QueueRef::open(&device, plan).unwrap());
    assert_eq!((second.queue().number(), copies.queue().number()), (1, 2));
    let [a, b, out] = [1.0, 2.0, 0.0].map(|value| floats(&device, value));
    for round in 0..40 {
        a.write(0, &1f32.to_le_bytes().repeat(N)).unwrap();
        // One queue computes b = a + b, the copy engine copies b to out, and another queue computes a = out + out.
        let summed = add(&own, &mut kernel, [&a, &b, &b], 200);
        copies.after(summed).unwrap();
        let copied = copies.copy(&out, 0, &b, 0, 4 * N as u64).unwrap();
        second.after(copied).unwrap();
        let doubled = add(&second, &mut kernel, [&out, &out, &a], 1);
        own.after(doubled).unwrap();
        device.wait_all(&[summed, copied, doubled], DEADLINE).unwrap();
        let sum = 3.0 + round as f32;
        assert_eq!((first(&b), first(&out), first(&a)), (sum, sum, 2.0 * sum));
    }
    assert_eq!(second.clone().after(u64::MAX).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    assert_eq!(second.after(device.fence() + 1).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    assert_eq!(own.end().unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
}

#[test]
fn a_copy_queue_works_while_another_computes_and_runs_no_kernels() {
    let device = open_device();
    let mut kernel = vecadd(&device);
    let (own, copies) = (QueueRef::own(&device), QueueRef::open(&device, COPIES).unwrap());
    let [a, b, out, copy] = [1.0, 2.0, 0.0, 0.0].map(|value| floats(&device, value));
    let computing = add(&own, &mut kernel, [&a, &a, &out], i32::MAX as u32);
    let copied = copies.copy(&copy, 0, &b, 0, 4 * N as u64).unwrap();
    assert_eq!(device.wait_any(&[computing, copied], DEADLINE).unwrap(), 1);
    assert!(!device.query(computing).unwrap());
    let place = copy.place(0, 4).unwrap();
    assert_eq!(place.read_u32(), 2f32.to_bits());
    let refused = {
        let fill = |_: &params::Layout, _: &tegrarm::runtime::memory::Span| Ok(());
        copies.launch(&mut kernel, &LINE, fill).unwrap_err()
    };
    assert_eq!(refused.status, NV_ERR_INVALID_ARGUMENT, "{refused}");
    device.settle(Duration::from_millis(10));
}

#[test]
fn the_cpu_copies_in_the_order_of_the_queue() {
    let device = open_device();
    let mut kernel = vecadd(&device);
    let queue = QueueRef::open(&device, Plan::PLAIN).unwrap();
    let [a, b, out] = [1.0, 2.0, 0.0].map(|value| floats(&device, value));
    let memory = Arc::new(Memory::new(device.session(), 4096, Cache::Cached).unwrap());
    memory.write(0, &5f32.to_le_bytes().repeat(N)).unwrap();
    let [from, to] = [0, 2048].map(|at| Place::of(&memory, at, 4 * N as u64).unwrap());
    let bytes = 4 * N as u64;
    let mut last = 0;
    for _ in 0..10 {
        // The grid takes so long that the CPU cannot copy before the call returns.
        add(&queue, &mut kernel, [&b, &b, &a], 3000);
        queue.copy_in(&a, 0, &from, bytes).unwrap();
        add(&queue, &mut kernel, [&a, &b, &out], 1);
        last = queue.copy_out(&out, 0, &to, bytes).unwrap();
    }
    device.wait(last, DEADLINE).unwrap();
    assert_eq!((first(&a), first(&out), to.read_u32()), (5.0, 7.0, 7f32.to_bits()));
    // The queue has nothing to do, so the CPU copies before the call returns.
    let fence = queue.copy_in(&b, 0, &from, bytes).unwrap();
    assert!(fence == last && device.query(fence).unwrap());
    assert_eq!(first(&b), 5.0);
    assert_eq!(queue.copy_in(&b, 1, &from, bytes).unwrap_err().status, NV_ERR_INVALID_BASE);
}

#[test]
fn a_queue_ends_and_its_fences_pass() {
    let device = open_device();
    let mut kernel = vecadd(&device);
    let [a, out] = [1.0, 0.0].map(|value| floats(&device, value));
    let mut fences = Vec::new();
    for _ in 0..5 {
        let queue = QueueRef::open(&device, Plan::PLAIN).unwrap();
        fences.push(add(&queue, &mut kernel, [&a, &a, &out], 1));
        queue.end().unwrap();
    }
    device.wait_all(&fences, DEADLINE).unwrap();
    assert_eq!(first(&out), 2.0);
}

#[test]
fn a_fault_stops_one_queue_and_recovery_keeps_everything_else() {
    let _shown = crate::common::shows(&[NV_ERR_RESOURCE_LOST]);
    let device = open_device();
    let mut kernel = vecadd(&device);
    let (own, other) = (QueueRef::own(&device), QueueRef::open(&device, Plan::PLAIN).unwrap());
    let [a, b, out] = [1.0, 2.0, 0.0].map(|value| floats(&device, value));
    let event = Event::new(&device).unwrap();
    let before = event.record(device.own()).unwrap();
    device.wait(before, DEADLINE).unwrap();
    let time = event.time().unwrap();
    assert_eq!(device.recover().unwrap(), 0, "nothing has happened");

    for round in 0..3 {
        let bad = 0x12_3456_7000u64.to_le_bytes();
        let block = params::pack(kernel.kernel(), &[&bad, &bad, &bad, &32u32.to_le_bytes()]).unwrap();
        let lost = device.launch(&kernel, &LINE, &block).unwrap();
        assert_eq!(device.wait(lost, DEADLINE).unwrap_err().status, NV_ERR_RESET_REQUIRED);
        assert!(device.fault().unwrap().is_some());
        // The other queue is not stopped.
        let fence = add(&other, &mut kernel, [&a, &b, &out], 1);
        device.wait(fence, DEADLINE).unwrap();

        assert_eq!(device.recover().unwrap(), 1, "round {round}");
        assert!(device.fault().unwrap().is_none());
        let e = device.wait(lost, DEADLINE).unwrap_err();
        assert_eq!(crate::common::note(e.status), NV_ERR_RESOURCE_LOST, "{e}");
        assert_eq!(device.query(lost).unwrap_err().status, NV_ERR_RESOURCE_LOST);
        device.wait(before, DEADLINE).unwrap();
        assert_eq!(event.time().unwrap(), time);
        // Buffers, kernels, prepared launches and dependencies are as they were before the fault.
        assert_eq!((first(&a), first(&b), first(&out)), (1.0, 2.0, 3.0));
        out.write(0, &[0; 4 * N]).unwrap();
        let fence = add(&own, &mut kernel, [&a, &b, &out], 1);
        other.after(fence).unwrap();
        let fence = add(&other, &mut kernel, [&out, &b, &out], 1);
        device.wait(fence, DEADLINE).unwrap();
        assert_eq!(first(&out), 5.0);
        assert!(device.query(fence).unwrap());
    }
}

/// A kernel that runs long is stopped where it is. A queue whose work is done is not.
#[test]
fn work_that_does_not_end_is_stopped() {
    let device = open_device();
    let mut kernel = vecadd(&device);
    let (own, other) = (QueueRef::own(&device), QueueRef::open(&device, Plan::PLAIN).unwrap());
    let [a, b, out] = [1.0, 2.0, 0.0].map(|value| floats(&device, value));
    device.synchronize().unwrap();
    assert_eq!(device.stop().unwrap(), 0, "nothing runs");
    for round in 0..3 {
        let kept = add(&other, &mut kernel, [&a, &b, &out], 1);
        device.wait(kept, DEADLINE).unwrap();
        let lost = add(&own, &mut kernel, [&a, &b, &out], 200_000_000);
        assert_eq!(device.wait(lost, Some(Duration::from_millis(1))).unwrap_err().status, NV_ERR_TIMEOUT);
        assert_eq!(device.stop().unwrap(), 1, "round {round}");
        assert_eq!(device.wait(lost, DEADLINE).unwrap_err().status, NV_ERR_RESET_REQUIRED);
        assert_eq!(device.stop().unwrap(), 0, "it is stopped already");
        assert_eq!(device.recover().unwrap(), 1);
        assert_eq!(device.wait(lost, DEADLINE).unwrap_err().status, NV_ERR_RESOURCE_LOST);
        device.wait(kept, DEADLINE).unwrap();
        let fence = add(&own, &mut kernel, [&a, &b, &out], 1);
        device.wait(fence, DEADLINE).unwrap();
        assert_eq!((first(&a), first(&b), first(&out)), (1.0, 2.0, 3.0));
    }
}

/// There are more submissions than the ring has entries, before and after a recovery.
#[test]
fn a_full_queue_recovers_too() {
    let device = open_device();
    let mut kernel = vecadd(&device);
    let own = QueueRef::own(&device);
    let [a, b, out] = [1.0, 2.0, 0.0].map(|value| floats(&device, value));
    let bad = 0x12_3456_7000u64.to_le_bytes();
    let block = params::pack(kernel.kernel(), &[&bad, &bad, &bad, &32u32.to_le_bytes()]).unwrap();
    add(&own, &mut kernel, [&a, &b, &out], 5000);
    let mut lost = device.launch(&kernel, &LINE, &block).unwrap();
    for _ in 0..900 {
        match device.copy(&out, 0, &b, 0, 4) {
            Ok(fence) => lost = fence,
            Err(e) => assert_eq!(e.status, NV_ERR_RESET_REQUIRED),
        }
    }
    assert_eq!(device.wait(lost, DEADLINE).unwrap_err().status, NV_ERR_RESET_REQUIRED);
    assert_eq!(device.recover().unwrap(), 1);
    for _ in 0..2500 {
        lost = device.copy(&out, 0, &b, 0, 4).unwrap();
    }
    device.wait(lost, DEADLINE).unwrap();
    assert_eq!(first(&out), 2.0);
}

/// The device's own queue works, and another one is stopped: the stack of neither changes, nor that of a queue between.
#[test]
fn a_stack_that_one_queue_cannot_have_is_that_of_none() {
    let device = open_device();
    let mut kernel = vecadd(&device);
    let queues = [Plan::PLAIN, Plan::PLAIN].map(|plan| QueueRef::open(&device, plan).unwrap());
    let nowhere = [0x12_3456_7000u64.to_le_bytes(); 3];
    let block = params::pack(kernel.kernel(), &[&nowhere[0], &nowhere[1], &nowhere[2], &32u32.to_le_bytes()]).unwrap();
    let fill = |_: &params::Layout, to: &tegrarm::runtime::memory::Span| {
        to.put(0, &block);
        Ok(())
    };
    let lost = queues[1].launch(&mut kernel, &LINE, fill).unwrap();
    assert_eq!(device.wait(lost, DEADLINE).unwrap_err().status, NV_ERR_RESET_REQUIRED);
    let stacks = || [device.stack(), queues[0].queue().stack(), queues[1].queue().stack()];
    let before = stacks();
    assert_eq!(device.set_stack(4000).unwrap_err().status, NV_ERR_RESET_REQUIRED);
    assert_eq!(stacks(), before);
    device.recover().unwrap();
    device.set_stack(4000).unwrap();
    assert!(stacks().iter().all(|stack| *stack >= 4000), "{:?}", stacks());
}
