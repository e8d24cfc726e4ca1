//! Recordings of two programs on virtual boards, and edits of their lines.

use crate::edits::{self, Input};
use crate::tour::{self, Place};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};
use tegrarm::rm::Rm;
use tegrarm::runtime::device::Device;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::Cache;
use tegrarm::status::RmResult;
use tegrarm::tegra::CacheMode;
use tegrarm_kmd::{Kmd, Recorded};

const RELEASES: [L4t; 4] = [L4t::R36, L4t::R35, L4t::R35_4, L4t::R39];
const CUBIN: &[u8] = include_bytes!("../../tests/data/cubin/vecadd.nvrtc.cubin");
/// How long the library's program waits for its kernel.
const DEADLINE: Duration = Duration::from_secs(5);
/// A recorded program.
pub struct Base {
    pub l4t: L4t,
    /// Whether the program is the library's, and not the tour.
    pub library: bool,
    pub places: Vec<Place>,
    lines: Vec<String>,
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A board whose GPU works in steps.
pub fn board(l4t: L4t) -> SimKmd {
    SimKmd::new(SimConfig { mem_total: 64 << 20, step: true, ..SimConfig::new(Chip::AgxOrin).on(l4t) })
}

/// The recordings that are edited, which are made once.
pub fn bases() -> &'static [Base] {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    BASES.get_or_init(|| {
        RELEASES.iter().flat_map(|l4t| [true, false].map(|library| Base::record(*l4t, library))).collect()
    })
}

impl Base {
    fn record(l4t: L4t, library: bool) -> Base {
        let (board, sink) = (Arc::new(board(l4t)), Sink::default());
        let places = tour::places(&board);
        let recorder: Arc<dyn Kmd> = Arc::new(Recorded::new(board, sink.clone()).expect("a header"));
        let mut base = Base { l4t, library, places, lines: Vec::new() };
        let found = base.run(recorder);
        assert_eq!(found, library.then_some(6.0), "the program works on the board itself");
        let text = sink.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        base.lines = String::from_utf8(text).expect("text").lines().map(str::to_owned).collect();
        base
    }

    /// Runs the program. The result is what the library's program has computed.
    pub fn run(&self, kmd: Arc<dyn Kmd>) -> Option<f32> {
        if self.library {
            return program(kmd).ok();
        }
        tour::run(kmd, &self.places);
        None
    }

    /// The recording with the edits that the input asks for.
    pub fn edited(&self, input: &mut Input<'_>) -> String {
        edits::edited(&self.lines, input)
    }
}

/// Adds two arrays on the GPU. The result is the last sum.
fn program(kmd: Arc<dyn Kmd>) -> RmResult<f32> {
    const N: u32 = 4;
    let rm = Arc::new(Rm::new(kmd, CacheMode::WriteCombine));
    let device = Device::open(&rm, 0)?;
    let kernel = device.load(CUBIN)?.kernel("vecadd")?;
    let [a, b, c] = [(); 3].map(|()| device.alloc(u64::from(N) * 4, Cache::Cached));
    let (a, b, c) = (a?, b?, c?);
    let numbers: Vec<u8> = (0..N).flat_map(|i| (i as f32).to_le_bytes()).collect();
    a.write(0, &numbers)?;
    b.write(0, &numbers)?;
    let [pa, pb, pc] = [&a, &b, &c].map(|b| b.address().to_le_bytes());
    let block = params::pack(kernel.kernel(), &[&pa, &pb, &pc, &N.to_le_bytes()]).expect("four arguments");
    let launch = Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(32, 1, 1), dynamic_shared: 0 };
    device.wait(device.launch(&kernel, &launch, &block)?, Some(DEADLINE))?;
    let mut bytes = vec![0; numbers.len()];
    c.read(0, &mut bytes)?;
    Ok(bytes.chunks_exact(4).next_back().map_or(0.0, |word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])))
}
