//! The figures of a device: those that follow from its design, and those that it measures.
#![cfg(feature = "sim")]

use crate::common::*;
use std::sync::Arc;
use std::time::Duration;
use tegrarm::runtime::device::Device;

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
