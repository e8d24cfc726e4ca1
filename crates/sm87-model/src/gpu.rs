//! What all CTAs of a launch share: the SMs and the memory behind them, and the estimate that follows.

use super::caches::{Cache, L2, Shared};
use super::ledger::Rows;
use super::machine::{DRAM_ALL, DRAM_READS, Estimate, Machine, Unit};
use super::memory::{self, Touch, Touching, Way};
use super::table::{self, FILL, SCHEDULERS, SLICE};
use sm87::Launch;
use sm87::isa::memory::{Scope, Shape, Space};
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// The least bytes that the L1 cache has beside shared memory.
const LEAST_L1: u32 = 28 << 10;

/// The nanoseconds of a second.
const NANOSECONDS: u128 = 1_000_000_000;

/// Parts of a byte, because an SM's share of the L2 cache is a few bytes in a cycle.
const PARTS: u64 = 1 << 10;
/// What an SM takes from the L2 cache in a cycle if no other one wants anything, in these parts.
pub(super) const WHOLE_FILL: u64 = FILL * PARTS;

/// For how many cycles the units are busy, with the instructions of each scheduler.
pub(super) type Busy = [[u64; Unit::ALL.len()]; SCHEDULERS];

/// A place for CTAs on an SM: whether one is there, when it is free again, and the bytes that its CTAs have asked the L2 cache for.
#[derive(Clone, Copy, Default)]
struct Place {
    taken: bool,
    free: u64,
    asked: u64,
}

/// An SM.
#[derive(Default)]
struct Sm {
    busy: Busy,
    /// The places for CTAs.
    places: Vec<Place>,
    /// The warps that began on it.
    warps: usize,
    l1: Option<Cache>,
}

/// The GPU during a launch.
pub(crate) struct Gpu {
    machine: Machine,
    sms: Vec<Sm>,
    pub(super) shared: Shared,
    l1_bytes: u32,
    resident: u32,
    warps: u32,
    /// The SMs that have a CTA.
    active: u64,
    /// Whether no SM has two CTAs at the same time.
    alone: bool,
}

/// How many CTAs of a launch an SM holds at once, and why not more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// The CTAs.
    pub ctas: u32,
    /// Their warps.
    pub warps: u32,
    /// The warps that an SM has room for.
    pub of: u32,
    /// What there is no more of for another CTA.
    pub limit: &'static str,
}

impl Occupancy {
    /// What a launch has of an SM.
    pub fn of(launch: &Launch) -> Occupancy {
        let warps = launch.block.iter().product::<u32>().div_ceil(32).max(1);
        let registers = (launch.registers.max(1) * 32).next_multiple_of(table::REGISTER_UNIT) * warps;
        let shared = launch.shared_bytes.next_multiple_of(table::SHARED_UNIT);
        let by_shared = table::SHARED_BYTES.checked_div(shared).unwrap_or(table::CTAS);
        let rooms = [
            (table::CTAS, "blocks"),
            (table::WARPS / warps, "warps"),
            (table::REGISTERS / registers, "registers"),
            (by_shared, "shared memory"),
        ];
        let (most, limit) = rooms.into_iter().fold(rooms[0], |least, room| if room.0 < least.0 { room } else { least });
        let (ctas, limit) = if launch.sequential { (1, "one block after another") } else { (most.max(1), limit) };
        Occupancy { ctas, warps: ctas * warps, of: table::WARPS, limit }
    }
}

/// The exponent with which times are added that overlap. It is set by the published rows of sums and offsets
/// (python/tegrarm/validate/data/published.json).
const OVERLAP: f64 = 2.5;

/// Combines times of which each is needed and which overlap. The result is more than the longest one if others are about as long, because they
/// do not overlap perfectly.
fn overlapped(times: impl IntoIterator<Item = u64>) -> f64 {
    times.into_iter().map(|time| (time as f64).powf(OVERLAP)).sum::<f64>().powf(1.0 / OVERLAP)
}

/// A quotient as a number of whole cycles.
fn cycles(amount: u64, in_a_cycle: u64) -> u64 {
    amount.div_ceil(in_a_cycle.max(1))
}

impl Gpu {
    /// A GPU with empty caches.
    pub(crate) fn new(machine: Machine, launch: &Launch) -> Gpu {
        let Occupancy { ctas: resident, warps: of_all, .. } = Occupancy::of(launch);
        let warps = of_all / resident;
        let used = launch.shared_bytes.saturating_mul(resident).min(table::SHARED_BYTES);
        let sms = (0..launch.sm_count).map(|_| Sm::default()).collect();
        let ctas = launch.grid.iter().fold(1, |all: u64, &n| all.saturating_mul(n.into()));
        let active = ctas.min(launch.sm_count.into()).max(1);
        let together = ctas.min(active * u64::from(resident));
        let l2 = L2::new(machine.l2_bytes, together);
        let shared = Shared::new(l2, machine.hz);
        Gpu {
            machine,
            sms,
            shared,
            l1_bytes: (table::L1 - used).max(LEAST_L1),
            resident,
            warps,
            active,
            alone: together <= active,
        }
    }

    /// What an SM gets of the L2 cache in a cycle if all SMs want as much, in parts of a byte.
    pub(super) fn fill(&self) -> u64 {
        (SLICE * PARTS * u64::from(self.machine.l2_slices) / self.active).min(WHOLE_FILL)
    }

    /// The scheduler of the first warp of a CTA that begins on an SM, its place, and what that has asked the L2 cache for. A CTA gets the place
    /// that is free first.
    pub(super) fn begin(&mut self, sm: u32) -> (usize, usize, u64) {
        let (warps, resident) = (self.warps as usize, self.resident as usize);
        let Some(sm) = self.sms.get_mut(sm as usize) else { return Default::default() };
        if sm.places.len() < resident {
            sm.places.push(Place::default());
        }
        let first = |&place: &usize| (sm.places[place].taken, sm.places[place].free);
        let place = (0..sm.places.len()).min_by_key(first).unwrap_or(0);
        sm.places[place].taken = true;
        sm.warps += warps;
        (sm.warps - warps, place, sm.places[place].asked)
    }

    /// Adds a CTA that took `latency` cycles by itself, and whose place has asked for so many bytes now.
    pub(super) fn end(&mut self, sm: u32, place: usize, (latency, asked): (u64, u64), busy: &Busy) {
        let Some(sm) = self.sms.get_mut(sm as usize) else { return };
        if let Some(place) = sm.places.get_mut(place) {
            *place = Place { taken: false, free: place.free + latency, asked };
        }
        for (sum, more) in sm.busy.iter_mut().flatten().zip(busy.iter().flatten()) {
            *sum += more;
        }
    }

    /// The memory behind an SM, and its L1 cache.
    #[inline(always)]
    pub(super) fn memory(&mut self, sm: u32) -> Option<(&mut Shared, &mut Cache)> {
        let bytes = self.l1_bytes.into();
        let sm = self.sms.get_mut(sm as usize)?;
        Some((&mut self.shared, sm.l1.get_or_insert_with(|| Cache::new(bytes))))
    }

    /// What the grid takes, but at least the nanoseconds that its clocks showed to it.
    pub(crate) fn estimate(&self, shown_ns: u64) -> Estimate {
        let machine = &self.machine;
        let dram = self.dram(self.shared.dram_bytes, DRAM_ALL).max(self.dram(self.shared.dram_reads, DRAM_READS));
        let l2 = self.shared.slices().div_ceil(u64::from(machine.l2_slices.max(1)));
        let behind = if dram >= l2 { (Unit::Dram, dram) } else { (Unit::L2, l2) };
        let (time, of_sm) = self.busiest();
        let shown = (u128::from(shown_ns) * u128::from(machine.hz)).div_ceil(NANOSECONDS) as u64;
        // While a CTA that is alone on its SM waits for the DRAM, nobody else works there.
        let together = if self.alone { time.max(l2) + dram } else { overlapped([time, dram, l2]).ceil() as u64 };
        let total = together.max(shown);
        let bound = if behind.1 > of_sm.1 { behind.0 } else { of_sm.0 };
        let ns = (u128::from(total) * NANOSECONDS).div_ceil(u128::from(machine.hz.max(1))) as u64;
        Estimate { cycles: total, ns, bound, dram_bytes: self.shared.dram_bytes }
    }

    /// The time of the SMs with the most work, and what limits the slowest one. It is their mean: the CTA that is executed first reads
    /// from the DRAM what the others find in the cache, and on a board all of them wait for it.
    fn busiest(&self) -> (u64, (Unit, u64)) {
        let most = self.sms.iter().map(Sm::issued).max().unwrap_or(0);
        let times: Vec<_> = self.sms.iter().filter(|sm| sm.issued() * 20 >= most * 19).map(Sm::time).collect();
        let mean = times.iter().map(|time| time.0).sum::<f64>() / times.len().max(1) as f64;
        let slowest = times.iter().fold((0.0, (Unit::Latency, 0)), |a, &b| if b.0 > a.0 { b } else { a });
        (mean.ceil() as u64, slowest.1)
    }

    /// The cycles in which the DRAM moves so many bytes, if kernels get `part` thousandths of its bandwidth.
    fn dram(&self, bytes: u64, part: u64) -> u64 {
        let rate = self.machine.part_of_dram(part).max(1);
        (u128::from(bytes) * u128::from(self.machine.hz)).div_ceil(rate.into()) as u64
    }
}

/// The units of whose lanes single-precision arithmetic takes a part: it has twice as many lanes as each of them. On a board FFMA beside IADD or IMAD
/// takes as long as one after the other (published rows of pairs of instructions).
const SHARED_LANES: [Unit; 2] = [Unit::Integer, Unit::Multiply];

/// For how many cycles a unit of an SM is busy, if so many parts of a byte come from the L2 cache in a cycle.
fn time_of(busy: &Busy, unit: Unit, fill: u64) -> u64 {
    let of = |unit: Unit| busy.iter().map(move |scheduler| scheduler[unit as usize]);
    match unit {
        // All schedulers share these.
        Unit::LoadStore => of(unit).sum(),
        Unit::L1Fill => cycles(of(unit).sum::<u64>() * PARTS, fill),
        _ if SHARED_LANES.contains(&unit) => of(unit).zip(of(Unit::Single)).map(|(a, b)| a + b).max().unwrap_or(0),
        _ => of(unit).max().unwrap_or(0),
    }
}

/// The unit of an SM that is busy for longest, and for how many cycles.
pub(super) fn busiest(busy: &Busy, fill: u64) -> (Unit, u64) {
    let units = Unit::ALL.into_iter().map(|unit| (unit, time_of(busy, unit, fill)));
    units.fold((Unit::Issue, 0), |a, b| if b.1 > a.1 { b } else { a })
}

impl Sm {
    /// The instructions that it has issued.
    fn issued(&self) -> u64 {
        self.busy.iter().map(|scheduler| scheduler[Unit::Issue as usize]).sum()
    }

    /// The time of its CTAs, and what limits it with the time of that alone. If it has one CTA at a time, the phases of that have waited for the
    /// units already.
    fn time(&self) -> (f64, (Unit, u64)) {
        let latency = self.places.iter().map(|place| place.free).max().unwrap_or(0);
        let busiest = busiest(&self.busy, WHOLE_FILL);
        // The phases of a CTA last as long as its busiest unit needs. So if both are about equal, the unit is the cause.
        let bound = if latency * 9 > busiest.1 * 10 { (Unit::Latency, latency) } else { busiest };
        if self.places.len() <= 1 {
            return (latency.max(busiest.1) as f64, bound);
        }
        (overlapped([latency, busiest.1]), bound)
    }
}

/// The GPU of a launch while no CTA uses it.
pub(super) type Lent = Arc<Mutex<Option<Box<Gpu>>>>;

/// The model of what one launch takes on a machine.
pub struct Model {
    pub(super) gpu: Lent,
    /// The CTAs that the GPU holds.
    pub(super) together: usize,
    /// What an SM gets of the L2 cache in a cycle, in parts of a byte.
    pub(super) fill: u64,
    pub(super) estimate: Mutex<Option<Estimate>>,
    /// What is noted of each instruction, if that is asked for.
    pub(super) rows: Option<Arc<Mutex<Rows>>>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("estimate", &self.estimate).finish_non_exhaustive()
    }
}

impl Model {
    /// The model of a launch that has not begun.
    pub fn new(machine: Machine, launch: &Launch) -> Model {
        let gpu = Box::new(Gpu::new(machine, launch));
        let together = launch.enabled_sms().count() * Occupancy::of(launch).ctas as usize;
        let fill = gpu.fill();
        Model { gpu: Arc::new(Mutex::new(Some(gpu))), together, fill, estimate: Mutex::default(), rows: None }
    }

    /// The same, which also notes what each instruction does.
    pub fn noting(machine: Machine, launch: &Launch) -> Model {
        Model { rows: Some(Arc::default()), ..Model::new(machine, launch) }
    }

    /// What was noted of each instruction, once the launch has ended.
    pub fn rows(&self) -> Rows {
        self.rows.as_ref().map(|rows| std::mem::take(&mut *rows.lock())).unwrap_or_default()
    }

    /// What the launch takes, once it has ended. It is never less than what its program saw on the clocks.
    pub fn estimate(&self) -> Option<Estimate> {
        *self.estimate.lock()
    }
}

/// What the SM of a CTA has behind it.
pub(super) struct Behind {
    lent: Lent,
    /// The GPU, from the first access of a turn of the CTA to the end of the turn. One thread executes the launch, so that no other CTA
    /// has a turn meanwhile.
    gpu: Option<Box<Gpu>>,
    pub sm: u32,
    /// The bytes that this place of a CTA has asked the L2 cache for.
    pub asked: u64,
}

impl Behind {
    /// Nothing was asked for yet.
    pub fn new(lent: &Lent) -> Behind {
        Behind { lent: lent.clone(), gpu: None, sm: 0, asked: 0 }
    }

    /// The GPU, of which nobody else knows until it is given back.
    #[inline(always)]
    pub fn gpu(&mut self) -> Option<&mut Gpu> {
        if self.gpu.is_none() {
            self.gpu = self.lent.lock().take();
            debug_assert!(self.gpu.is_some(), "another CTA has a turn");
        }
        self.gpu.as_deref_mut()
    }

    /// The turn of the CTA is over.
    pub fn give_back(&mut self) {
        if let Some(gpu) = self.gpu.take() {
            *self.lent.lock() = Some(gpu);
        }
    }

    /// Accesses to lines of global memory, whose result takes `near` cycles if the L1 cache has them. The lanes want `wanted` bytes.
    #[inline(always)]
    pub fn global(&mut self, touching: Touching<'_>, (shape, near): (&Shape, u16), wanted: u64) -> Touch {
        if touching.is_empty() {
            return Touch::default();
        }
        let copies = shape.space == Space::Copy;
        let way = Way { writes: shape.writes && !copies, passes_l1: shape.scope > Some(Scope::Sm), near };
        let (sm, asked) = (self.sm, self.asked);
        let Some((behind, l1)) = self.gpu().and_then(|gpu| gpu.memory(sm)) else { return Touch::default() };
        let touch = memory::global(behind, l1, touching, way, asked);
        if way.writes {
            behind.wrote(touching.sectors(), wanted);
        }
        self.asked += touch.filled;
        touch
    }

    /// The same, and the bytes that the DRAM moves for it.
    pub fn global_noted(&mut self, touching: Touching<'_>, of: (&Shape, u16), wanted: u64) -> (Touch, u64) {
        let moved = |behind: &mut Behind| behind.gpu().map_or(0, |gpu| gpu.shared.dram_bytes);
        let before = moved(self);
        let touch = self.global(touching, of, wanted);
        (touch, moved(self) - before)
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(threads: u32, registers: u32, shared_bytes: u32) -> Launch {
        Launch {
            table: Default::default(),
            code: 0,
            grid: [1; 3],
            first: [0; 3],
            block: [threads, 1, 1],
            registers,
            shared_bytes,
            local_low: 0,
            local_high: 0,
            banks: [None; 8],
            shared_window: 0,
            local_window: 0,
            sm_count: 16,
            disabled_sms: 0,
            sequential: false,
            veid: 0,
            begun: 0,
            limits: Default::default(),
        }
    }

    #[test]
    fn an_sm_is_full_when_one_of_its_rooms_is() {
        let of = |launch: &Launch| (Occupancy::of(launch).ctas, Occupancy::of(launch).limit);
        assert_eq!(of(&launch(32, 16, 0)), (16, "blocks"));
        assert_eq!(of(&launch(256, 16, 0)), (6, "warps"));
        assert_eq!(of(&launch(256, 128, 0)), (2, "registers"));
        assert_eq!(of(&launch(256, 16, 40 << 10)), (4, "shared memory"));
        assert_eq!(of(&Launch { sequential: true, ..launch(32, 16, 0) }), (1, "one block after another"));
        assert_eq!(Occupancy::of(&launch(256, 128, 0)).warps, 16);
    }

    const ORIN: Machine =
        Machine { hz: 1_300_000_000, dram_bytes_per_second: 204_800_000_000, l2_bytes: 4 << 20, l2_slices: 8 };

    #[test]
    fn ctas_that_take_turns_keep_their_places() {
        let mut gpu = Gpu::new(ORIN, &Launch { grid: [64, 1, 1], ..launch(256, 128, 0) });
        assert_eq!([gpu.begin(0), gpu.begin(0)], [(0, 0, 0), (8, 1, 0)], "two at the same time");
        gpu.end(0, 1, (50, 300), &Busy::default());
        assert_eq!(gpu.begin(0), (16, 1, 300), "the first one is still there");
        gpu.end(0, 0, (70, 200), &Busy::default());
        gpu.end(0, 1, (30, 600), &Busy::default());
        assert_eq!(gpu.begin(0), (24, 0, 200), "its place is free first");
        assert_eq!(gpu.sms[0].places.iter().map(|place| place.free).collect::<Vec<_>>(), [70, 80]);
    }

    #[test]
    fn units_share_lanes_and_times_overlap() {
        let mut busy = Busy::default();
        let mut add = |scheduler: usize, unit: Unit, cycles| busy[scheduler][unit as usize] += cycles;
        (0..SCHEDULERS).for_each(|scheduler| add(scheduler, Unit::LoadStore, 30));
        add(1, Unit::Single, 70);
        add(1, Unit::Integer, 60);
        add(2, Unit::L1Fill, 4096);
        let of = |unit| time_of(&busy, unit, WHOLE_FILL);
        let units = [Unit::LoadStore, Unit::Single, Unit::Integer, Unit::Multiply, Unit::L1Fill].map(of);
        assert_eq!(units, [120, 70, 130, 70, 64], "single precision is on the lanes of both");
        assert_eq!(busiest(&busy, WHOLE_FILL), (Unit::Integer, 130));
        assert_eq!(busiest(&busy, WHOLE_FILL / 4), (Unit::L1Fill, 256));
        assert!((overlapped([100, 100]) - 131.95).abs() < 0.01 && overlapped([100, 10]) < 100.2);
    }
}
