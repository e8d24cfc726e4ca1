//! The runtime on the virtual Orin: modules of three compilers run and compute the right numbers.
#![cfg(feature = "sim")]

use crate::common::cubin;
use std::sync::Arc;
use std::time::Duration;
use tegrarm::rm::Rm;
use tegrarm::runtime::device::Device;
use tegrarm::runtime::device::buffer::Buffer;
use tegrarm::runtime::device::module::{KernelRef, Module};
use tegrarm::runtime::fault::Cause;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::Cache;
use tegrarm::status;
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::status::*;

const ROUTES: [&str; 4] = ["nvrtc", "jit", "rdc", "cuda13"];

struct Board {
    kmd: Arc<crate::common::Board>,
    device: Arc<Device>,
}

fn board() -> Board {
    let kmd = crate::common::board(crate::common::default_release());
    let rm = Arc::new(Rm::new(kmd.clone(), CacheMode::WriteCombine));
    Board { device: Device::open(&rm, 0).unwrap(), kmd }
}

fn load(device: &Arc<Device>, name: &str, route: &str) -> Arc<Module> {
    device.load(&cubin(&format!("{name}.{route}.cubin"))).unwrap()
}

fn buffer<T: Copy>(device: &Arc<Device>, values: &[T], bytes: fn(T) -> Vec<u8>) -> Arc<Buffer> {
    let all: Vec<u8> = values.iter().flat_map(|&v| bytes(v)).collect();
    let b = device.alloc(all.len().max(1) as u64, Cache::Cached).unwrap();
    b.write(0, &all).unwrap();
    b
}

fn f32s(device: &Arc<Device>, values: &[f32]) -> Arc<Buffer> {
    buffer(device, values, |v| v.to_le_bytes().to_vec())
}

fn i32s(device: &Arc<Device>, values: &[i32]) -> Arc<Buffer> {
    buffer(device, values, |v| v.to_le_bytes().to_vec())
}

fn i64s(device: &Arc<Device>, values: &[i64]) -> Arc<Buffer> {
    buffer(device, values, |v| v.to_le_bytes().to_vec())
}

fn words(b: &Buffer) -> Vec<u32> {
    let mut bytes = vec![0; b.size() as usize];
    b.read(0, &mut bytes).unwrap();
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn floats(b: &Buffer) -> Vec<f32> {
    words(b).into_iter().map(f32::from_bits).collect()
}

fn ints(b: &Buffer) -> Vec<i32> {
    words(b).into_iter().map(|w| w as i32).collect()
}

fn longs(b: &Buffer) -> Vec<i64> {
    words(b).chunks_exact(2).map(|w| (u64::from(w[1]) << 32 | u64::from(w[0])) as i64).collect()
}

fn line(threads: u32) -> Launch {
    Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(threads, 1, 1), dynamic_shared: 0 }
}

/// Launches a kernel whose only arguments are buffers, and waits.
fn run(kernel: &KernelRef, launch: Launch, buffers: &[&Buffer]) {
    let addresses: Vec<[u8; 8]> = buffers.iter().map(|b| b.address().to_le_bytes()).collect();
    let arguments: Vec<&[u8]> = addresses.iter().map(|a| &a[..]).collect();
    run_with(kernel, launch, &arguments);
}

fn run_with(kernel: &KernelRef, launch: Launch, arguments: &[&[u8]]) {
    let device = kernel.module().device();
    let block = params::pack(kernel.kernel(), arguments).unwrap();
    let fence = device.launch(kernel, &launch, &block).unwrap();
    device.wait(fence, Some(Duration::from_secs(120))).unwrap();
}

#[test]
fn vector_add_over_many_blocks() {
    let Board { device, .. } = board();
    for route in ROUTES {
        let kernel = load(&device, "vecadd", route).kernel("vecadd").unwrap();
        let n = 1000;
        let a = f32s(&device, &(0..n).map(|i| i as f32).collect::<Vec<_>>());
        let b = f32s(&device, &(0..n).map(|i| 0.5 * i as f32).collect::<Vec<_>>());
        let c = f32s(&device, &vec![-1.0; n + 24]);
        let launch = Launch { grid: Dim3::new(8, 1, 1), block: Dim3::new(128, 1, 1), dynamic_shared: 0 };
        let [pa, pb, pc] = [&a, &b, &c].map(|b| b.address().to_le_bytes());
        run_with(&kernel, launch, &[&pa, &pb, &pc, &(n as u32).to_le_bytes()]);
        let want: Vec<f32> = (0..n + 24).map(|i| if i < n { 1.5 * i as f32 } else { -1.0 }).collect();
        assert_eq!(floats(&c), want, "{route}");
    }
}

#[test]
fn parameters_of_every_size() {
    let Board { device, .. } = board();
    for route in ROUTES {
        let kernel = load(&device, "vecadd", route).kernel("scale").unwrap();
        let (input, out) = (f32s(&device, &[1.0, 2.0, -3.0, 8.0]), f32s(&device, &[0.0; 4]));
        let mut scale = [0u8; 24];
        scale[..4].copy_from_slice(&3.0f32.to_le_bytes());
        scale[8..16].copy_from_slice(&0.25f64.to_le_bytes());
        scale[16] = 2;
        let [i, o] = [&input, &out].map(|b| b.address().to_le_bytes());
        run_with(&kernel, line(4), &[&[1], &i, &scale, &(-9i16).to_le_bytes(), &o]);
        // -9 >> 2 is -3.
        assert_eq!(floats(&out), [0.25, 3.25, -11.75, 21.25], "{route}");
    }
}

#[test]
fn shared_memory_static_dynamic_and_both() {
    let Board { device, .. } = board();
    for route in ROUTES {
        let module = load(&device, "shared", route);
        let values: Vec<i32> = (0..512).map(|i| i * i % 97).collect();
        let (input, sums) = (i32s(&device, &values), i32s(&device, &[0, 0]));
        let launch = Launch { grid: Dim3::new(2, 1, 1), block: Dim3::new(256, 1, 1), dynamic_shared: 0 };
        run(&module.kernel("reduce").unwrap(), launch, &[&input, &sums]);
        assert_eq!(ints(&sums), [values[..256].iter().sum::<i32>(), values[256..].iter().sum()], "{route}");

        let out = i32s(&device, &[0; 64]);
        let dynamic = Launch { dynamic_shared: 256, ..line(64) };
        run(&module.kernel("reverse").unwrap(), dynamic, &[&input, &out]);
        assert_eq!(ints(&out), values[..64].iter().rev().copied().collect::<Vec<_>>(), "{route}");
        run(&module.kernel("mixed").unwrap(), dynamic, &[&input, &out]);
        let want: Vec<i32> = (0..64).map(|t| values[63 - t] + 3 * values[t % 33]).collect();
        assert_eq!(ints(&out), want, "{route}");
    }
}

#[test]
fn constants_tables_and_globals() {
    let Board { device, .. } = board();
    for route in ROUTES {
        let module = load(&device, "constants", route);
        let input: Vec<f32> = (0..32).map(|i| i as f32 + 1.0).collect();
        let (a, out) = (f32s(&device, &input), f32s(&device, &[0.0; 32]));
        module.write_variable("offset", &7i32.to_le_bytes()).unwrap();
        let weights = [0.5, 1.5, 2.5, 3.5];
        run(&module.kernel("weigh").unwrap(), line(32), &[&a, &out]);
        let want: Vec<f32> = (0..32).map(|i| input[i] * weights[i & 3] + 7.0).collect();
        assert_eq!(floats(&out), want, "{route}");

        run(&module.kernel("generic").unwrap(), line(32), &[&a, &out]);
        let load = |i: usize| [weights[i & 3], input[31 - i], input[i]][i % 3] + 1.5;
        assert_eq!(floats(&out), (0..32).map(load).collect::<Vec<_>>(), "{route}");

        let global = i32s(&device, &[0; 35]);
        let kernel = module.kernel("globals").unwrap();
        run(&kernel, line(32), &[&global]);
        assert_eq!(ints(&global)[..3], [40, 2, 8], "{route}");
        assert_eq!(ints(&global)[3..], (0..32).map(|i| 31 - i).collect::<Vec<_>>(), "{route}");
        run(&kernel, line(32), &[&global]);
        assert_eq!(ints(&global)[0], 42, "the module's variable keeps its value, {route}");
    }
}

#[test]
fn doubles_and_large_sines() {
    let Board { device, .. } = board();
    for route in ROUTES {
        let module = load(&device, "constants", route);
        let input = [1.0f64, -2.5, 1e9];
        let a = buffer(&device, &input, |v| v.to_le_bytes().to_vec());
        let out = buffer(&device, &[0f64; 3], |v| v.to_le_bytes().to_vec());
        run(&module.kernel("halves").unwrap(), line(3), &[&a, &out]);
        let found: Vec<f64> = longs(&out).into_iter().map(|v| f64::from_bits(v as u64)).collect();
        assert_eq!(found, input.map(|x| x.mul_add(0.1, std::f64::consts::PI)), "{route}");

        // For angles beyond 105615, the reduction reads the table of 2/π through a relocated address.
        let angles = [0.5f32, 3.0, 1e5, 2e5, 1e10, 3.4e38];
        let (a, out) = (f32s(&device, &angles), f32s(&device, &[0.0; 6]));
        run(&module.kernel("sines").unwrap(), line(6), &[&a, &out]);
        for (x, y) in angles.iter().zip(floats(&out)) {
            assert!((y - f64::from(*x).sin() as f32).abs() < 2e-7, "sin({x}) = {y}, {route}");
        }
    }
}

#[test]
fn calls_recursion_pointers_and_private_arrays() {
    let Board { device, .. } = board();
    for route in ROUTES {
        let module = load(&device, "calls", route);
        let values: Vec<i32> = (0..64).map(|i| i % 11).collect();
        let (input, out) = (i32s(&device, &values), i32s(&device, &[0; 64]));
        run(&module.kernel("direct").unwrap(), line(64), &[&input, &out]);
        assert_eq!(ints(&out), values.iter().map(|x| 2 * x + (x + 1) * (x + 1)).collect::<Vec<_>>(), "{route}");
        run(&module.kernel("indirect").unwrap(), line(64), &[&input, &out]);
        let want: Vec<i32> = values.iter().map(|&x| if x & 1 == 0 { 2 * x } else { x * x }).collect();
        assert_eq!(ints(&out), want, "{route}");
        run(&module.kernel("recursive").unwrap(), line(64), &[&input, &out]);
        let fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55];
        assert_eq!(ints(&out), values.iter().map(|&x| fibonacci[x as usize]).collect::<Vec<_>>(), "{route}");
        let [i, o] = [&input, &out].map(|b| b.address().to_le_bytes());
        run_with(&module.kernel("array").unwrap(), line(64), &[&i, &o, &20i32.to_le_bytes()]);
        let sum = |t: i32| (0..20).map(|k| values[(values[k] & 63) as usize] + t).sum::<i32>();
        assert_eq!(ints(&out), (0..64).map(sum).collect::<Vec<_>>(), "{route}");
    }
}

/// The divisions that nvJitLink's code calls through relocation 58 work.
#[test]
fn sixty_four_bit_division() {
    let Board { device, .. } = board();
    for route in ROUTES {
        let module = load(&device, "divide", route);
        let a = [1i64 << 40, -(1 << 50) + 7, i64::MAX, i64::MIN, 100, -7, 0, 123_456_789_012_345];
        let b = [3i64, 1 << 33, -1, 10, 7, 2, 5, 987_654_321];
        let [x, y, q, r] = [&a, &b, &[0; 8], &[0; 8]].map(|v| i64s(&device, v));
        run(&module.kernel("divide").unwrap(), line(8), &[&x, &y, &q, &r]);
        assert_eq!(longs(&q), std::array::from_fn::<i64, 8, _>(|i| a[i] / b[i]), "{route}");
        assert_eq!(longs(&r), std::array::from_fn::<i64, 8, _>(|i| a[i] % b[i]), "{route}");
        run(&module.kernel("udivide").unwrap(), line(8), &[&x, &y, &q]);
        let unsigned = std::array::from_fn::<i64, 8, _>(|i| (a[i] as u64 / b[i] as u64) as i64);
        assert_eq!(longs(&q), unsigned, "{route}");
    }
}

#[test]
fn work_runs_in_order() {
    let Board { device, .. } = board();
    let kernel = load(&device, "vecadd", "nvrtc").kernel("vecadd").unwrap();
    let n = 64usize;
    let (a, b) = (f32s(&device, &vec![1.0; n]), f32s(&device, &vec![0.0; n]));
    let [pa, pb] = [&a, &b].map(|b| b.address().to_le_bytes());
    let count = (n as u32).to_le_bytes();
    let block = params::pack(kernel.kernel(), &[&pa, &pb, &pb, &count]).unwrap();
    // Each round adds a to b and then copies b to a on the copy engine, so the values double. There are more
    // submissions than the ring has entries.
    let mut last = 0;
    for round in 0..700 {
        if round % 30 == 0 {
            a.write(0, &1f32.to_le_bytes().repeat(n)).unwrap();
            b.write(0, &vec![0; 4 * n]).unwrap();
        }
        device.launch(&kernel, &line(64), &block).unwrap();
        last = device.copy(&a, 0, &b, 0, 4 * n as u64).unwrap();
    }
    assert_eq!(last, device.fence());
    device.synchronize().unwrap();
    // The value starts at 1 in round 690, and the sums are 1, 2, 4 and so on: 2^(10 - 1) after ten rounds.
    assert_eq!(floats(&b), vec![512.0; n]);
}

/// More launches are in flight than the ring has entries. They have two shapes, and the copy engine works in between.
/// Each launch gets its own arguments.
#[test]
fn launches_in_flight_keep_their_arguments() {
    let Board { device, .. } = board();
    let module = load(&device, "vecadd", "nvrtc");
    let kernels = ["vecadd", "vecadd"].map(|name| module.kernel(name).unwrap());
    const LAUNCHES: usize = 1500;
    let threads = |launch: usize| 32 << (launch / 90 % 2) as u32;
    let numbers: Vec<f32> = (0..LAUNCHES + 64).map(|i| i as f32).collect();
    let (a, zero) = (f32s(&device, &numbers), f32s(&device, &[0.0; 64]));
    let (out, copied) = (f32s(&device, &vec![-1.0; 64 * LAUNCHES]), f32s(&device, &vec![-1.0; LAUNCHES]));
    // A long launch that adds nothing comes first, so that the others wait for it.
    let long = Launch { grid: Dim3::new(100_000, 1, 1), ..line(256) };
    let none = params::pack(kernels[0].kernel(), &[&[0; 8], &[0; 8], &[0; 8], &[0; 4]]).unwrap();
    device.launch(&kernels[0], &long, &none).unwrap();
    for i in 0..LAUNCHES as u64 {
        let count = threads(i as usize);
        let [from, zero, to] = [a.address() + 4 * i, zero.address(), out.address() + 256 * i].map(u64::to_le_bytes);
        let kernel = &kernels[i as usize / 7 % 2];
        let block = params::pack(kernel.kernel(), &[&from, &zero, &to, &u32::to_le_bytes(count)]).unwrap();
        device.launch(kernel, &line(count), &block).unwrap();
        if i % 11 == 0 {
            device.copy(&copied, 4 * i, &out, 256 * i, 4).unwrap();
        }
    }
    device.synchronize().unwrap();
    for (i, row) in floats(&out).chunks_exact(64).enumerate() {
        let want = |k: usize| if k < threads(i) as usize { (i + k) as f32 } else { -1.0 };
        assert!(row.iter().enumerate().all(|(k, &found)| found == want(k)), "launch {i}: {row:?}");
    }
    for (i, &found) in floats(&copied).iter().enumerate() {
        assert_eq!(found, if i % 11 == 0 { i as f32 } else { -1.0 }, "copy {i}");
    }
}

#[test]
fn copies_check_their_ranges() {
    let Board { device, .. } = board();
    let (a, b) = (i32s(&device, &[1, 2, 3, 4]), i32s(&device, &[0; 4]));
    device.copy(&b, 4, &a, 8, 8).unwrap();
    assert_eq!(ints(&b), [0, 3, 4, 0]);
    assert_eq!(device.copy(&b, 0, &a, a.size(), 1).unwrap_err().status, NV_ERR_INVALID_BASE);
    assert_eq!(device.copy(&a, 4, &a, 0, 8).unwrap_err().status, NV_ERR_INVALID_ARGUMENT);
    assert_eq!(device.copy(&a, 8, &a, 0, 8).map(|_| ()), Ok(()));
    assert_eq!(a.write(u64::MAX, &[0]).unwrap_err().status, NV_ERR_INVALID_BASE);
}

#[test]
fn a_bad_pointer_is_a_fault_with_its_place() {
    let _shown = crate::common::shows(&[NV_ERR_RESET_REQUIRED]);
    let Board { device, .. } = board();
    let kernel = load(&device, "vecadd", "nvrtc").kernel("vecadd").unwrap();
    let out = f32s(&device, &[0.0; 32]);
    let bad = 0x12_3456_7000u64.to_le_bytes();
    let arguments: [&[u8]; 4] = [&bad, &bad, &out.address().to_le_bytes(), &32u32.to_le_bytes()];
    let block = params::pack(kernel.kernel(), &arguments).unwrap();
    let fence = device.launch(&kernel, &line(32), &block).unwrap();
    let e = device.wait(fence, None).unwrap_err();
    assert_eq!(crate::common::note(e.status), NV_ERR_RESET_REQUIRED, "{e}");
    let fault = device.fault().unwrap().unwrap();
    assert_eq!(fault.cause, Cause::Mmu, "{fault}");
    assert!(fault.pc.is_some(), "{fault}");
    assert!(device.launch(&kernel, &line(32), &block).is_err(), "nothing runs on a stopped channel");
    assert!(device.synchronize().is_err());
}

#[test]
fn deadlines_say_what_is_pending() {
    let Board { device, .. } = board();
    let text = device.wait(device.fence() + 1, None).unwrap_err().to_string();
    assert!(text.contains("never given"), "{text}");
    assert!(status::name(device.wait(u64::MAX, None).unwrap_err().status).contains("INVALID_ARGUMENT"));
}

#[test]
fn bad_launches_do_nothing() {
    let Board { device, .. } = board();
    let module = load(&device, "vecadd", "nvrtc");
    let kernel = module.kernel("vecadd").unwrap();
    let before = device.fence();
    let e = device.launch(&kernel, &line(32), &[0; 4]).unwrap_err();
    assert!(e.text.contains("vecadd") && e.text.contains("28"), "{e}");
    assert!(device.launch(&kernel, &line(2000), &[0; 28]).is_err());
    assert!(
        module.kernel("vecsub").err().unwrap().text.contains("vecadd, scale") || {
            module.kernel("vecsub").err().unwrap().text.contains("scale, vecadd")
        }
    );
    assert_eq!(device.load(b"nonsense").err().unwrap().status, NV_ERR_INVALID_ARGUMENT);
    assert_eq!(device.fence(), before);
}

#[test]
fn closing_gives_everything_back() {
    let kmd = crate::common::board(crate::common::default_release());
    let before = kmd.census();
    let rm = Arc::new(Rm::new(kmd.clone(), CacheMode::WriteCombine));
    for _ in 0..3 {
        let device = Device::open(&rm, 0).unwrap();
        let kernel = load(&device, "calls", "jit").kernel("recursive").unwrap();
        let (a, b) = (i32s(&device, &[5; 4]), i32s(&device, &[0; 4]));
        run(&kernel, line(4), &[&a, &b]);
        assert_eq!(ints(&b), [5; 4]);
    }
    drop(rm);
    assert_eq!(kmd.census(), before);
}

/// A grid would end in an hour. Closing the device stops it and gives everything back.
#[test]
fn closing_does_not_wait_for_ever() {
    let kmd = crate::common::board(crate::common::default_release());
    let before = kmd.census();
    let rm = Arc::new(Rm::new(kmd.clone(), CacheMode::WriteCombine));
    let device = Device::open(&rm, 0).unwrap();
    let kernel = load(&device, "vecadd", "nvrtc").kernel("vecadd").unwrap();
    let buffer = f32s(&device, &[0.0; 4]);
    let endless = Launch { grid: Dim3::new(i32::MAX as u32, 1, 1), ..line(1024) };
    let nothing = params::pack(kernel.kernel(), &[&[0; 8], &[0; 8], &[0; 8], &[0; 4]]).unwrap();
    let fence = device.launch(&kernel, &endless, &nothing).unwrap();
    device.settle(Duration::from_millis(20));
    drop((buffer, kernel));
    assert_eq!(device.wait(fence, Some(Duration::ZERO)).unwrap_err().status, NV_ERR_TIMEOUT);
    drop((device, rm));
    assert_eq!(kmd.census(), before);
}

#[test]
fn threads_share_a_device() {
    let board = board();
    let kernel = load(&board.device, "vecadd", "nvrtc").kernel("vecadd").unwrap();
    std::thread::scope(|scope| {
        for t in 0..4 {
            let (device, kernel) = (&board.device, &kernel);
            scope.spawn(move || {
                for round in 0..20 {
                    let n = 96;
                    let a = f32s(device, &vec![t as f32; n]);
                    let b = f32s(device, &vec![round as f32; n]);
                    let c = f32s(device, &vec![0.0; n]);
                    let [pa, pb, pc] = [&a, &b, &c].map(|b| b.address().to_le_bytes());
                    run_with(kernel, line(96), &[&pa, &pb, &pc, &(n as u32).to_le_bytes()]);
                    assert_eq!(floats(&c), vec![(t + round) as f32; n]);
                }
            });
        }
    });
    assert!(board.kmd.census().is_none_or(|c| c.channels > 0));
}

#[test]
fn modules_share_memory_and_give_it_back() {
    let Board { kmd, device } = board();
    let handles = || kmd.census().map(|c| c.handles);
    let sum = |module: &Arc<Module>| {
        let (a, c) = (f32s(&device, &[1.5; 32]), f32s(&device, &[0.0; 32]));
        let [pa, pc] = [&a, &c].map(|b| b.address().to_le_bytes());
        run_with(&module.kernel("vecadd").unwrap(), line(32), &[&pa, &pa, &pc, &32u32.to_le_bytes()]);
        assert_eq!(floats(&c), [3.0; 32]);
    };
    let first = load(&device, "vecadd", "nvrtc");
    let one = handles();
    let mut modules: Vec<Option<Arc<Module>>> = (0..40).map(|i| Some(load(&device, "vecadd", ROUTES[i % 4]))).collect();
    assert_eq!(handles(), one, "a block holds them all");
    for order in [[0, 2], [1, 2]] {
        // Every second module is dropped, and its space is used again.
        for i in (order[0]..40).step_by(order[1]) {
            modules[i] = None;
        }
        let again: Vec<_> = (0..20).map(|i| load(&device, "vecadd", ROUTES[i % 4])).collect();
        modules.iter().flatten().chain(&again).for_each(sum);
        assert_eq!(handles(), one);
    }
    sum(&first);
    // A variable that starts as zero is zero even where the code of another module was before.
    let global = i32s(&device, &[0; 35]);
    for _ in 0..3 {
        run(&load(&device, "constants", "nvrtc").kernel("globals").unwrap(), line(32), &[&global]);
        assert_eq!(ints(&global)[..3], [40, 2, 8]);
    }
}

/// The kernel gives the same addresses in each address space. A program with two devices took an address of one for memory of the other.
#[test]
fn devices_of_a_process_have_addresses_of_their_own() {
    let first = board();
    let rm = first.device.rm().clone();
    let devices: Vec<_> = (0..3).map(|_| Device::open(&rm, 0).unwrap()).collect();
    let mut ranges = Vec::new();
    for device in devices.iter().chain([&first.device]) {
        for size in [4, 4096, 3 << 20, 16 << 20] {
            let buffer = device.alloc(size, Cache::Cached).unwrap();
            ranges.push((buffer.address(), buffer.address() + size, buffer));
        }
        let module = load(device, "vecadd", "nvrtc");
        let [a, b, c] = [1.0, 2.0, 0.0].map(|x| f32s(device, &[x; 32]));
        let kernel = module.kernel("vecadd").unwrap();
        let [pa, pb, pc] = [&a, &b, &c].map(|b| b.address().to_le_bytes());
        let block = params::pack(kernel.kernel(), &[&pa, &pb, &pc, &32u32.to_le_bytes()]).unwrap();
        let launch = Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(32, 1, 1), dynamic_shared: 0 };
        device.wait(device.launch(&kernel, &launch, &block).unwrap(), Some(Duration::from_secs(60))).unwrap();
        assert_eq!(words(&c), [3f32.to_bits(); 32]);
    }
    ranges.sort_by_key(|range| range.0);
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "no address is in two buffers");
    let end = |device: &Arc<Device>| device.alloc(4 << 20, Cache::Cached).unwrap().address();
    let third = end(&devices[2]);
    drop((ranges, devices));
    let again: Vec<_> = (0..3).map(|_| Device::open(&rm, 0).unwrap()).collect();
    assert!(end(&again[2]).abs_diff(third) < 1 << 30, "addresses of a closed device are free");
}
