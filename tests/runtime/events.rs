//! Time stamps of the runtime on the virtual Orin: events, profiles, and the relation of the GPU's clock to the CPU's.
#![cfg(feature = "sim")]

use crate::common::{DEADLINE, LINE, open_device, vecadd};
use std::sync::Arc;
use std::time::Duration;
use tegrarm::runtime::channel::profile::{Record, What};
use tegrarm::runtime::device::event::Event;
use tegrarm::runtime::device::module::KernelRef;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::Cache;
use tegrarm_abi::rm::status::*;
use tegrarm_lock::Mutex;

/// Arguments with which the kernel adds nothing.
fn nothing(kernel: &KernelRef) -> Vec<u8> {
    params::pack(kernel.kernel(), &[&[0; 8], &[0; 8], &[0; 8], &[0; 4]]).unwrap()
}

/// A grid for which the virtual GPU needs some time.
fn long() -> Launch {
    Launch { grid: Dim3::new(2000, 1, 1), ..LINE }
}

#[test]
fn events_lie_where_the_work_before_them_ended() {
    let device = open_device();
    let kernel = vecadd(&device);
    let [start, end, after] = [(); 3].map(|()| Event::new(&device).unwrap());
    let nothing = nothing(&kernel);
    let first = device.time().unwrap();
    start.record(device.own()).unwrap();
    device.launch(&kernel, &long(), &nothing).unwrap();
    end.record(device.own()).unwrap();
    let fence = after.record(device.own()).unwrap();
    device.wait(fence, DEADLINE).unwrap();
    let last = device.time().unwrap();
    let [a, b, c] = [&start, &end, &after].map(|event| event.time().unwrap());
    assert!(a < b && b <= c, "{a} {b} {c}");
    // This converts a time with the relation of the clocks between the two readings.
    let cpu = |gpu: u64| gpu.wrapping_sub(first.gpu).wrapping_add(first.cpu);
    let off = first.off + last.off + 32;
    assert!(first.cpu <= cpu(a) + off && cpu(c) <= last.cpu + off, "{first:?} {last:?}: {a} {c}");
    assert!(first.gpu <= a && c <= last.gpu, "{first:?} {last:?}: {a} {c}");
    // The long grid is what lies between the first two.
    assert!(b - a > c - b, "{a} {b} {c}");
}

#[test]
fn an_event_has_no_time_before_the_gpu_came_there() {
    let _shown = crate::common::shows(&[NV_ERR_NOT_READY, NV_ERR_INVALID_STATE]);
    let device = open_device();
    let kernel = vecadd(&device);
    let event = Event::new(&device).unwrap();
    assert_eq!(crate::common::note(event.time().unwrap_err().status), NV_ERR_INVALID_STATE, "never recorded");
    let endless = Launch { grid: Dim3::new(i32::MAX as u32, 1, 1), ..LINE };
    device.launch(&kernel, &endless, &nothing(&kernel)).unwrap();
    event.record(device.own()).unwrap();
    assert_eq!(crate::common::note(event.time().unwrap_err().status), NV_ERR_NOT_READY);
    device.settle(Duration::from_millis(10));
}

#[test]
fn an_event_is_recorded_again_and_its_place_is_used_again() {
    let device = open_device();
    let event = Event::new(&device).unwrap();
    let mut last = 0;
    for _ in 0..600 {
        let other = Event::new(&device).unwrap();
        other.record(device.own()).unwrap();
        let fence = event.record(device.own()).unwrap();
        drop(other);
        device.wait(fence, DEADLINE).unwrap();
        let time = event.time().unwrap();
        assert!(time >= last, "{time} after {last}");
        last = time;
    }
}

#[test]
fn a_fault_before_an_event_is_the_events_error() {
    let device = open_device();
    let kernel = vecadd(&device);
    let bad = 0x12_3456_7000u64.to_le_bytes();
    let block = params::pack(kernel.kernel(), &[&bad, &bad, &bad, &32u32.to_le_bytes()]).unwrap();
    let event = Event::new(&device).unwrap();
    device.launch(&kernel, &LINE, &block).unwrap();
    let fence = event.record(device.own());
    if let Ok(fence) = fence {
        assert_eq!(device.wait(fence, DEADLINE).unwrap_err().status, NV_ERR_RESET_REQUIRED);
        assert_eq!(event.time().unwrap_err().status, NV_ERR_RESET_REQUIRED);
    }
}

#[test]
fn a_profile_has_everything_once_and_in_order() {
    let device = open_device();
    let kernel = vecadd(&device);
    let [a, b] = [(); 2].map(|()| device.alloc(1 << 16, Cache::Cached).unwrap());
    // There are more rounds than the ring of stamps has room for.
    const ROUNDS: usize = 1500;
    let found = Arc::new(Mutex::new(Vec::<Record>::new()));
    let into = found.clone();
    device.launch(&kernel, &LINE, &nothing(&kernel)).unwrap();
    device.start_profile(Arc::new(move |record| into.lock().push(record.clone()))).unwrap();
    let busy = device.start_profile(Arc::new(|_| {})).unwrap_err();
    assert_eq!(busy.status, NV_ERR_STATE_IN_USE, "{busy}");
    let mut fences = Vec::new();
    for _ in 0..ROUNDS {
        fences.push(device.launch(&kernel, &LINE, &nothing(&kernel)).unwrap());
        fences.push(device.copy(&a, 0, &b, 0, 4096).unwrap());
    }
    fences.push(a.fill(0, 1 << 16, 7, 1).unwrap());
    device.wait(fences[10], DEADLINE).unwrap();
    assert!(found.lock().len() > 10, "a wait reports");
    device.stop_profile().unwrap();
    assert_eq!(device.stop_profile().unwrap_err().status, NV_ERR_INVALID_STATE);
    let found = std::mem::take(&mut *found.lock());
    assert_eq!(found.iter().map(|record| record.fence).collect::<Vec<_>>(), fences);
    assert!(found.iter().all(|record| record.start <= record.end && record.start > 0), "{:?}", &found[..4]);
    assert!(found.windows(2).all(|two| two[0].end <= two[1].start), "one after another");
    assert_eq!(found[0].what, What::Kernel { name: "vecadd".to_owned() });
    assert_eq!(found[1].what, What::Copy { bytes: 4096 });
    assert_eq!(found[2 * ROUNDS].what, What::Fill { bytes: 1 << 16 });
    // Launches work as before.
    let fence = device.launch(&kernel, &LINE, &nothing(&kernel)).unwrap();
    device.wait(fence, DEADLINE).unwrap();
}

#[test]
fn what_a_profile_reports_may_use_the_device() {
    let device = open_device();
    let kernel = vecadd(&device);
    let (inner, count) = (device.clone(), Arc::new(Mutex::new(0)));
    let counted = count.clone();
    device
        .start_profile(Arc::new(move |record| {
            *counted.lock() += 1;
            inner.wait(record.fence, None).unwrap();
        }))
        .unwrap();
    let fence = device.launch(&kernel, &LINE, &nothing(&kernel)).unwrap();
    device.wait(fence, DEADLINE).unwrap();
    assert_eq!(*count.lock(), 1);
}
