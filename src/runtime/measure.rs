//! What a device reaches with short kernels: rates of arithmetic, bandwidths, and what a launch costs.
//!
//! The times are the processor's. The virtual Orin computes on the host, so its figures are those of the host.

use super::buffer::Buffer;
use super::device::Device;
use super::launch::{Dim3, Launch};
use super::memory::Cache;
use super::module::Module;
use crate::rm::profile::{Profile, Rates};
use crate::status::{During, RmResult};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `rates.cu`, compiled.
const IMAGE: &[u8] = include_bytes!("measure/rates.cubin");
const THREADS: u32 = 256;
/// Operations of a thread in each round, of the kind that its kernel does.
const UNROLLED: u64 = 8;
/// Bytes that are copied. Two buffers of this size are larger than any cache of the GPUs that the library knows.
const BYTES: u64 = 8 << 20;
/// A measurement is repeated with more work until it takes this long: times much shorter are mostly that of the launch.
pub const LONG: Duration = Duration::from_millis(5);
/// The largest number of rounds.
const MOST: u64 = 1 << 20;
/// The best of this many times counts: the others were disturbed.
const TRIES: usize = 3;
/// Launches that follow each other without a wait.
const LAUNCHES: u64 = 64;
/// No measurement takes as long on a GPU that works.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));

/// A device with the kernels, and memory for them.
struct Bench<'a> {
    device: &'a Device,
    module: Arc<Module>,
    to: Arc<Buffer>,
    from: Arc<Buffer>,
    /// Enough blocks for every SM to be busy.
    blocks: u32,
    long: Duration,
}

/// The best of several times.
fn best(mut work: impl FnMut() -> RmResult<()>) -> RmResult<Duration> {
    let mut found = Duration::MAX;
    for _ in 0..TRIES {
        let start = Instant::now();
        work()?;
        found = found.min(start.elapsed());
    }
    Ok(found)
}

/// How much of something is done in a second, where one round does `each`. What does not grow with the rounds is not counted.
fn per_second(long: Duration, each: u64, mut work: impl FnMut(u64) -> RmResult<()>) -> RmResult<u64> {
    let mut rounds = 2;
    let mut time = best(|| work(rounds))?;
    while time < long && rounds < MOST {
        rounds *= 4;
        time = best(|| work(rounds))?;
    }
    let half = best(|| work(rounds / 2))?;
    // The rest is about a half. Much less means that the computer was busy with other things.
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
        self.device.wait(fence, PATIENCE).during(|| format!("measuring with the kernel '{name}'"))
    }

    /// Operations per second. A thread does `operations` at once.
    fn rate(&self, name: &str, operations: u64) -> RmResult<u64> {
        let threads = u64::from(self.blocks * THREADS);
        per_second(self.long, operations * UNROLLED * threads, |rounds| {
            let mut arguments = self.to.address().to_le_bytes().to_vec();
            arguments.extend((rounds as u32).to_le_bytes());
            self.run(name, self.blocks, 1, &arguments)
        })
    }

    /// Bytes per second that are read and written.
    fn bandwidth(&self) -> RmResult<u64> {
        per_second(self.long, 2 * BYTES, |rounds| {
            let mut arguments = [self.to.address(), self.from.address()].map(u64::to_le_bytes).concat();
            arguments.extend([(BYTES / 16) as u32, rounds as u32].map(u32::to_le_bytes).concat());
            self.run("copy", self.blocks, 1, &arguments)
        })
    }

    /// Nanoseconds of a launch that nobody waits for before the next.
    fn latency(&self) -> RmResult<u64> {
        let time = best(|| self.run("empty", 1, LAUNCHES, &[]))?;
        Ok((time.as_nanos() / u128::from(LAUNCHES)) as u64)
    }
}

impl Device {
    /// Its profile, with measured figures in place of those of the design. Other work of the GPU makes them worse. Each
    /// measurement takes at least as long as `long`.
    ///
    /// # Errors
    /// 0x51 when there is no memory, 0x65 when a measurement does not end; the channel's fault.
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
        // A multiply-add is two operations. A register has two halves. The matrices of a warp have 16 x 8 x 16 products, and of
        // bytes 16 x 8 x 32.
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
