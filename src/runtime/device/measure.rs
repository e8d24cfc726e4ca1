//! Measures what a device reaches: rates of arithmetic, bandwidths and the time of a launch. It runs short kernels.
//!
//! The processor's clock measures the times. A simulated GPU computes on the host, so its figures are those of the host.

use crate::runtime::device::Device;
use crate::runtime::device::buffer::Buffer;
use crate::runtime::device::module::Module;
use crate::runtime::launch::{Dim3, Launch};
use crate::runtime::memory::Cache;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tegrarm_rm::rm::profile::{Profile, Rates};
use tegrarm_rm::status::{During, RmResult};

/// The machine code of `rates.cu`.
const IMAGE: &[u8] = include_bytes!("measure/rates.cubin");
const THREADS: u32 = 256;
/// How many operations of its kind a kernel does in each round of a thread.
const UNROLLED: u64 = 8;
/// How many bytes are copied. Two buffers of this size are larger than every cache of the GPUs that the library knows.
const BYTES: u64 = 8 << 20;
/// A measurement is repeated with more work until it takes this long. In a much shorter time, the launch would count too much.
pub const LONG: Duration = Duration::from_millis(5);
/// The largest number of rounds.
const MOST_ROUNDS: u64 = 1 << 20;
/// Every measurement is made this many times, and the shortest time counts, because other work can only make it longer.
const TRIES: usize = 3;
/// How many launches follow each other without a wait.
const LAUNCHES: u64 = 64;
/// A measurement that takes longer than this fails. A GPU that works is much faster.
const DEADLINE: Option<Duration> = Some(Duration::from_secs(60));

/// A device with the kernels that measure, and memory for them.
struct Bench<'a> {
    device: &'a Device,
    module: Arc<Module>,
    to: Arc<Buffer>,
    from: Arc<Buffer>,
    /// The number of blocks. Every SM has some.
    blocks: u32,
    long: Duration,
}

/// The shortest of several times.
fn best(mut work: impl FnMut() -> RmResult<()>) -> RmResult<Duration> {
    let mut found = Duration::MAX;
    for _ in 0..TRIES {
        let start = Instant::now();
        work()?;
        found = found.min(start.elapsed());
    }
    Ok(found)
}

/// How much is done in a second, if one round does `each`. Time that does not depend on the number of rounds is not counted.
fn per_second(long: Duration, each: u64, mut work: impl FnMut(u64) -> RmResult<()>) -> RmResult<u64> {
    let mut rounds = 2;
    let mut time = best(|| work(rounds))?;
    while time < long && rounds < MOST_ROUNDS {
        rounds *= 4;
        time = best(|| work(rounds))?;
    }
    let half = best(|| work(rounds / 2))?;
    // The rounds that are left take about half of the time. If they take much less, other work disturbed the measurement.
    let (rounds, time) = match time.checked_sub(half) {
        Some(rest) if rest > time / 4 => (rounds - rounds / 2, rest),
        _ => (rounds, time),
    };
    Ok(((each * rounds) as f64 / time.as_secs_f64()) as u64)
}

impl Bench<'_> {
    /// Runs a kernel as often as asked and waits for the last run.
    fn run(&self, name: &str, blocks: u32, times: u64, arguments: &[u8]) -> RmResult<()> {
        let kernel = self.module.kernel(name)?;
        let launch = Launch { grid: Dim3::new(blocks, 1, 1), block: Dim3::new(THREADS, 1, 1), dynamic_shared: 0 };
        let mut fence = 0;
        for _ in 0..times {
            fence = self.device.launch(&kernel, &launch, arguments)?;
        }
        self.device.wait(fence, DEADLINE).during(|| format!("measuring with the kernel '{name}'"))
    }

    /// Operations per second. Each operation of a thread counts as `operations`.
    fn rate(&self, name: &str, operations: u64) -> RmResult<u64> {
        let threads = u64::from(self.blocks * THREADS);
        per_second(self.long, operations * UNROLLED * threads, |rounds| {
            let mut arguments = self.to.address().to_le_bytes().to_vec();
            arguments.extend((rounds as u32).to_le_bytes());
            self.run(name, self.blocks, 1, &arguments)
        })
    }

    /// Bytes per second; bytes that are read and bytes that are written both count.
    fn bandwidth(&self) -> RmResult<u64> {
        per_second(self.long, 2 * BYTES, |rounds| {
            let mut arguments = [self.to.address(), self.from.address()].map(u64::to_le_bytes).concat();
            arguments.extend([(BYTES / 16) as u32, rounds as u32].map(u32::to_le_bytes).concat());
            self.run("copy", self.blocks, 1, &arguments)
        })
    }

    /// The nanoseconds of a launch if there is no wait before the next one.
    fn latency(&self) -> RmResult<u64> {
        let time = best(|| self.run("empty", 1, LAUNCHES, &[]))?;
        Ok((time.as_nanos() / u128::from(LAUNCHES)) as u64)
    }
}

impl Device {
    /// The profile of the device, with measured figures instead of those of the design. Other work of the GPU makes them worse. Each
    /// measurement takes at least as long as `long`.
    ///
    /// # Errors
    /// NO_MEMORY when there is no memory, TIMEOUT when a measurement does not end; the channel's fault.
    pub fn measure(self: &Arc<Device>, long: Duration) -> RmResult<Profile> {
        let mut profile = self.profile().clone();
        let bench = Bench {
            device: self,
            module: self.load(IMAGE).during(|| "loading the kernels that measure")?,
            to: self.alloc(BYTES, Cache::Cached)?,
            from: self.alloc(BYTES, Cache::Cached)?,
            blocks: 2 * profile.compute_units,
            long,
        };
        // A multiply-add is two operations. A register holds two halves. A warp multiplies matrices of 16 x 8 x 16 numbers, and of
        // 16 x 8 x 32 bytes.
        profile.rates = Rates {
            scalar_float32: bench.rate("float32", 2)?,
            scalar_float16: bench.rate("float16", 4)?,
            scalar_int32: bench.rate("int32", 2)?,
            matrix_float16: bench.rate("matrix_float16", 2 * 16 * 8 * 16 / 32)?,
            matrix_bfloat16: bench.rate("matrix_bfloat16", 2 * 16 * 8 * 16 / 32)?,
            matrix_int8: bench.rate("matrix_int8", 2 * 16 * 8 * 32 / 32)?,
        };
        profile.local_bandwidth = bench.bandwidth()?;
        let mut host = vec![0; BYTES as usize];
        profile.copy_in_bandwidth =
            per_second(long, BYTES, |rounds| (0..rounds).try_for_each(|_| bench.to.write(0, &host)))?;
        profile.copy_out_bandwidth =
            per_second(long, BYTES, |rounds| (0..rounds).try_for_each(|_| bench.to.read(0, &mut host)))?;
        profile.transfer_bandwidth = profile.copy_in_bandwidth.min(profile.copy_out_bandwidth);
        profile.launch_latency_ns = bench.latency()?;
        profile.measured = true;
        Ok(profile)
    }
}
