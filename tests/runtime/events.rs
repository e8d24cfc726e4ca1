//! Time stamps of the runtime on the virtual Orin: events, profiles, the relation of the GPU's clock to the
//! CPU's, and the figures that a device measures.
#![cfg(feature = "sim")]

use crate::common::{Board, DEADLINE, LINE, board, default_release, manager, open_device, vecadd};
use std::sync::Arc;
use std::time::Duration;
use tegrarm::runtime::channel::profile::{Record, What};
use tegrarm::runtime::device::Device;
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

/// The data sheet of the AGX Orin says 42.5 TFLOP/s of FP16 and 85 TOP/s of INT8 for the tensor cores of 16 SMs at 1.3 GHz, both
/// without sparsity, and 5.3 TFLOP/s of FP32.
#[test]
fn the_design_is_that_of_the_data_sheet() {
    let rm = manager(board(default_release()));
    let p = rm.device_profile(0).unwrap();
    assert!(!p.measured);
    let scale = f64::from(p.compute_units) * p.max_clock_hz as f64 / (16.0 * 1.3e9);
    let is = |rate: u64, sheet: f64| (rate as f64 / (sheet * scale) - 1.0).abs() < 0.02;
    let r = p.rates;
    assert!(is(r.scalar_float32, 5.32e12) && is(r.scalar_float16, 10.6e12) && is(r.scalar_int32, 2.66e12), "{r:?}");
    assert!(is(r.matrix_float16, 42.6e12) && is(r.matrix_bfloat16, 42.6e12) && is(r.matrix_int8, 85.2e12), "{r:?}");
    assert_eq!((p.copy_in_bandwidth, p.copy_out_bandwidth), (p.transfer_bandwidth, p.transfer_bandwidth));
    assert_eq!(p.launch_latency_ns, 0, "no data sheet has it");
}

/// What the power mode leaves of the GPU says nothing about the memory: half of an AGX Orin's SMs have all of its bandwidth.
#[test]
fn the_bandwidth_is_that_of_the_modules_data_sheet() {
    use tegra_sim::Chip;
    for (chip, sheet) in [
        (Chip::AgxOrin, 204.8),
        (Chip::AgxOrinPowerGated, 204.8),
        (Chip::AgxOrin32, 204.8),
        (Chip::OrinNx, 102.4),
        (Chip::OrinNxSuper, 102.4),
        (Chip::OrinNx8, 102.4),
        (Chip::OrinNx8Super, 102.4),
        (Chip::OrinNano, 68.0),
        (Chip::OrinNanoSuper, 102.0),
        (Chip::OrinNano4, 34.0),
        (Chip::OrinNano4Super, 51.0),
    ] {
        let sim = tegra_sim::SimKmd::new(tegra_sim::SimConfig::new(chip));
        let rm = manager(Arc::new(Board::Virtual(sim)));
        let found = rm.device_profile(0).unwrap().local_bandwidth as f64 / 1e9;
        assert!((found / sheet - 1.0).abs() < 0.005, "{chip:?}: {found} GB/s, and {sheet} in the data sheet");
    }
}

#[test]
fn every_figure_is_measured() {
    let rm = Arc::new(manager(board(default_release())));
    let device = Device::open(&rm, 0).unwrap();
    let design = device.profile().clone();
    let p = device.measure(Duration::ZERO).unwrap();
    assert!(p.measured && !design.measured);
    let r = p.rates;
    let measured = [
        (r.scalar_float32, design.rates.scalar_float32),
        (r.scalar_float16, design.rates.scalar_float16),
        (r.scalar_int32, design.rates.scalar_int32),
        (r.matrix_float16, design.rates.matrix_float16),
        (r.matrix_bfloat16, design.rates.matrix_bfloat16),
        (r.matrix_int8, design.rates.matrix_int8),
        (p.local_bandwidth, design.local_bandwidth),
        (p.copy_in_bandwidth, design.copy_in_bandwidth),
        (p.copy_out_bandwidth, design.copy_out_bandwidth),
    ];
    for (at, (found, before)) in measured.into_iter().enumerate() {
        assert!(found > 0 && found != before, "figure {at}: {found}, of the design {before}");
    }
    assert_eq!(p.transfer_bandwidth, p.copy_in_bandwidth.min(p.copy_out_bandwidth));
    assert!(p.launch_latency_ns > 0);
    // Fields that are not measured do not change.
    assert_eq!((p.memory_size, p.compute_units, p.uuid), (design.memory_size, design.compute_units, design.uuid));
    // The device still works.
    device.measure(Duration::ZERO).unwrap();
}
