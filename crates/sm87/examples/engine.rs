//! Measures the speed of kernels one after another. `benches/engines.py` builds this program twice, with the current engine
//! and with an older one.
//!
//! usage: engine THREADS ROUNDS FILE NAME...
//!
//! FILE has the kernels of the tests. Those that are named say in a comment how to launch them: `# launch 4 4 1 of 16 16 1 on f32:1024 f16:64`.
//! The program prints one line for each kernel: its name, the warp instructions of a launch, a checksum of the result, and the
//! nanoseconds of the fastest of ROUNDS launches. With one thread, the time is processor time.

#[path = "../tests/sm/support.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod support;

use std::time::{Duration, Instant};
use support::{Arg, Buffer, Gpu, Kernel, Noise};

/// How a kernel is launched.
struct Plan {
    grid: [u32; 3],
    block: [u32; 3],
    /// The element type and the number of elements of each buffer.
    buffers: Vec<(String, usize)>,
}

fn plan(text: &str) -> Option<Plan> {
    let line = text.lines().find_map(|line| line.strip_prefix("# launch "))?;
    let (grid, rest) = line.split_once(" of ")?;
    let (block, buffers) = rest.split_once(" on ")?;
    let three = |text: &str| {
        let numbers: Vec<u32> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        numbers.try_into().ok()
    };
    let buffer = |text: &str| text.split_once(':').and_then(|(kind, n)| Some((kind.to_owned(), n.parse().ok()?)));
    let buffers = buffers.split_whitespace().map(buffer).collect::<Option<_>>()?;
    Some(Plan { grid: three(grid)?, block: three(block)?, buffers })
}

/// A buffer with numbers around zero.
fn upload(gpu: &mut Gpu, kind: &str, count: usize, noise: &mut Noise) -> Buffer {
    match kind {
        "f32" => gpu.upload(&(0..count).map(|_| noise.float() / 128.0).collect::<Vec<f32>>()),
        // Halves with exponents from −4 to 3.
        "f16" => {
            let half = |x: u64| (x as u32 & 0x83ff) | (11 + (x >> 20) as u32 % 8) << 10;
            gpu.upload(&(0..count / 2).map(|_| half(noise.next()) | half(noise.next()) << 16).collect::<Vec<u32>>())
        }
        _ => gpu.upload(&(0..count).map(|i| i as i32).collect::<Vec<i32>>()),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [threads, rounds, file, names @ ..] = arguments.as_slice() else {
        return eprintln!("engine THREADS ROUNDS FILE NAME...");
    };
    let (threads, rounds) = (threads.parse().unwrap_or(1), rounds.parse().unwrap_or(1));
    let text = std::fs::read_to_string(file).unwrap_or_default();
    for name in names {
        let kernel = text.split("\nkernel ").find_map(|section| section.strip_prefix(name)?.strip_prefix('\n'));
        let Some((kernel, plan)) = kernel.and_then(|kernel| Some((kernel, plan(kernel)?))) else {
            return eprintln!("{file} does not say how to launch {name}");
        };
        measure(name, threads, rounds, &Kernel::parse(kernel), &plan);
    }
}

fn measure(name: &str, threads: usize, rounds: u32, kernel: &Kernel, plan: &Plan) {
    let mut gpu = Gpu { threads, ..Gpu::default() };
    let mut noise = Noise(1);
    let buffers: Vec<_> =
        plan.buffers.iter().map(|(kind, count)| (upload(&mut gpu, kind, *count, &mut noise), *count)).collect();
    let args: Vec<_> = buffers.iter().map(|(buffer, _)| Arg::Ptr(buffer)).collect();
    let launch = gpu.launch(kernel, plan.grid, plan.block, &args);
    let (mut best, mut instructions, mut sum) = (Duration::MAX, 0, 0u64);
    for round in 0..rounds {
        let (start, used) = (Instant::now(), processor_time());
        match sm87::run(&launch) {
            Ok(stats) => instructions = stats.warp_instructions,
            Err(fault) => return println!("{name} failed: {fault:?}"),
        }
        let wall = start.elapsed();
        let used = processor_time().zip(used).map(|(now, then)| now - then).filter(|_| threads == 1);
        best = best.min(used.unwrap_or(wall));
        if round == 0 {
            sum = checksum(&buffers[0].0, plan);
        }
    }
    println!("{name} {instructions} {sum:016x} {}", best.as_nanos());
}

/// A checksum of the first buffer, which is the kernel's result.
fn checksum(result: &Buffer, plan: &Plan) -> u64 {
    let bytes = plan.buffers[0].1 * if plan.buffers[0].0 == "f16" { 2 } else { 4 };
    let fold = |sum: u64, &word: &u32| (sum ^ u64::from(word)).wrapping_mul(0x100_0000_01b3).rotate_left(7);
    result.read::<u32>(bytes / 4).iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

/// The time that this thread has been on a processor, if the kernel reports it.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}
