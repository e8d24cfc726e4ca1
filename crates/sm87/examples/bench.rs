//! Measures warp instructions per second on a matrix product and on a loop of one thread.
//!
//! With one thread, the measured time is processor time, so other load on the machine does not change it.
//!
//! `cargo run --release -p sm87 --example bench [threads]`

#[path = "../tests/sm/support.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod support;

use std::time::{Duration, Instant};
use support::{Arg, Gpu, Noise};

fn main() {
    let threads = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(1);
    let mut gpu = Gpu { threads, ..Gpu::default() };
    let (n, mut noise) = (256usize, Noise(1));
    let a: Vec<f32> = (0..n * n).map(|_| noise.float()).collect();
    let (da, db, dc) = (gpu.upload(&a), gpu.upload(&a), gpu.alloc(4 * n * n));
    let args = [Arg::Ptr(&dc), Arg::Ptr(&da), Arg::Ptr(&db), Arg::Int(n as i32)];
    let launch = gpu.launch(&kernel!("gemm"), [16, 16, 1], [16, 16, 1], &args);
    measure("gemm 256, 16 × 16 tiles", 10, &launch);
    let want = (0..n).fold(0f32, |sum, k| a[k].mul_add(a[k * n], sum));
    assert_eq!(dc.read::<f32>(1), [want]);

    let out = gpu.alloc(4 * 1024);
    let args = [Arg::Ptr(&out), Arg::Int(1000)];
    let launch = gpu.launch(&kernel!("collatz"), [2, 1, 1], [1, 1, 1], &args);
    measure("collatz, one lane", 2000, &launch);

    let (input, sums) = (gpu.upload(&vec![1i32; 1 << 20]), gpu.alloc(4096));
    let args = [Arg::Ptr(&sums), Arg::Ptr(&input), Arg::Int(1 << 20)];
    let launch = gpu.launch(&kernel!("reduce"), [64, 1, 1], [256, 1, 1], &args);
    measure("sum of 2^20", 20, &launch);
    let mut one = gpu.launch(&kernel!("reduce"), [1, 1, 1], [1, 1, 1], &args);
    one.shared_bytes = 4096;
    measure("sum by one lane", 20, &one);

    let (x, y, z) = (gpu.alloc(4 << 20), gpu.alloc(4 << 20), gpu.alloc(4 << 20));
    let args = [Arg::Ptr(&z), Arg::Address(x.va), Arg::Address(y.va), Arg::Int(1 << 20)];
    let stats = gpu.run(&kernel!("vector_add"), [4096, 1, 1], [256, 1, 1], &args);
    println!("vector add: {stats:?}");
    measure("vector add 2^20", 20, &gpu.launch(&kernel!("vector_add"), [4096, 1, 1], [256, 1, 1], &args));
    measure("vector divide 2^20", 5, &gpu.launch(&kernel!("divide"), [4096, 1, 1], [256, 1, 1], &args));
    measure("one tiny launch", 2000, &gpu.launch(&kernel!("vector_add"), [1, 1, 1], [32, 1, 1], &args));
}

/// Runs a launch `times` times and prints the cost of one run.
fn measure(name: &str, times: u32, launch: &sm87::Launch) {
    let single = launch.limits.threads == 1;
    let (start, used) = (Instant::now(), processor_time());
    let mut warp = 0;
    for _ in 0..times {
        match sm87::run(launch) {
            Ok(stats) => warp += stats.warp_instructions,
            Err(fault) => return println!("{name}: {fault:?}"),
        }
    }
    let wall = start.elapsed();
    let used = processor_time().zip(used).map(|(now, then)| now - then).filter(|_| single);
    let seconds = used.unwrap_or(wall).as_secs_f64();
    println!(
        "{name:24} {:8.1} M warp-instructions/s  {:9} instructions  {:8.3} ms",
        warp as f64 / seconds / 1e6,
        warp / u64::from(times),
        seconds * 1e3 / f64::from(times)
    );
}

/// The time that this thread has been on a processor, if the kernel reports it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}
