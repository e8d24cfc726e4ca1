//! Grids that take long on this computer: a user who waits is told how far they are.

use sm87::Progress;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use tegra_hw::{HwChannel, HwGpu};
use tegrarm_lock::Mutex;

/// The time after which a grid is told of for the first time. It is told of again whenever the time has doubled.
const PATIENCE_NS: u64 = 20_000_000_000;
/// The time after which a program that waits in vain is told which kernel runs.
const NOTED_NS: u64 = 100_000_000;

/// A grid that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowGrid {
    /// The name of its kernel, if the program has told it.
    pub name: Option<Arc<str>>,
    /// The address of the first instruction.
    pub code: u64,
    /// Its CTAs.
    pub ctas: u64,
    /// Those that were started.
    pub started: u64,
    /// The instructions issued so far, counted once per warp.
    pub warp_instructions: u64,
    /// How long it has run, in nanoseconds.
    pub busy_ns: u64,
}

impl SlowGrid {
    /// The time that is left, in nanoseconds, if the CTAs that are left take as long as those that were started. It is
    /// `None` if all of them were started, because nothing says how long they will take.
    pub fn left_ns(&self) -> Option<u64> {
        let left = self.ctas.checked_sub(self.started).filter(|left| *left > 0)?;
        let each = u128::from(self.busy_ns) / u128::from(self.started.max(1));
        Some(u64::try_from(each * u128::from(left)).unwrap_or(u64::MAX))
    }
}

/// A function that hears of such grids, on a thread of the GPU. It must not call the GPU.
pub type SlowReader = Arc<dyn Fn(&SlowGrid) + Send + Sync>;

/// The grid that runs, for those who look at it.
#[derive(Default)]
pub(crate) struct SlowGrids {
    reader: OnceLock<SlowReader>,
    running: Mutex<Option<Running>>,
}

struct Running {
    from: Origin,
    code: u64,
    grid: [u32; 3],
    /// There is none if there is no reader.
    progress: Option<Arc<Progress>>,
    /// The time after which it is told of.
    next_ns: u64,
    is_noted: bool,
}

/// Where a grid comes from.
pub(crate) struct Origin {
    pub gpu: Arc<HwGpu>,
    pub process: i32,
    pub channel: u32,
}

impl Origin {
    pub(crate) fn of(channel: &HwChannel) -> Origin {
        Origin { gpu: channel.tsg.gpu.clone(), process: channel.tsg.process, channel: channel.id }
    }
}

impl Running {
    fn name(&self) -> Option<Arc<str>> {
        self.from.gpu.names.function(self.from.process, self.code)
    }

    /// Writes down which kernel runs, for programs that wait for it in vain.
    fn note(&mut self) {
        let name = self.name().map_or_else(String::new, |name| format!("{name} "));
        let [x, y, z] = self.grid;
        let what = format!("the kernel {name}at {:#x} is running, with a grid of {x} x {y} x {z} blocks", self.code);
        self.from.gpu.faults.runs(self.from.channel, &what);
        self.is_noted = true;
    }
}

impl SlowGrids {
    /// Sets the reader. Only the first one hears.
    pub(crate) fn read(&self, reader: SlowReader) {
        let _ = self.reader.set(reader);
    }

    /// A grid begins. The result is where it notes its progress, if there is a reader.
    pub(crate) fn begins(&self, from: Origin, code: u64, grid: [u32; 3]) -> Option<Arc<Progress>> {
        let progress = self.reader.get().map(|_| Arc::<Progress>::default());
        let running = Running { from, code, grid, progress: progress.clone(), next_ns: PATIENCE_NS, is_noted: false };
        *self.running.lock() = Some(running);
        progress
    }

    /// The grid has ended.
    pub(crate) fn ends(&self) {
        *self.running.lock() = None;
    }

    /// Tells of the grid that has run for `busy_ns`, if that is long.
    pub(crate) fn look(&self, busy_ns: Option<u64>) {
        let Some(busy_ns) = busy_ns.filter(|ns| *ns >= NOTED_NS) else { return };
        let mut running = self.running.lock();
        let Some(grid) = running.as_mut() else { return };
        if !grid.is_noted {
            // The lock is held, so that the grid does not end before the note is there: who ends it drops the note.
            grid.note();
        }
        let (Some(reader), Some(progress)) = (self.reader.get(), grid.progress.clone()) else { return };
        if busy_ns < grid.next_ns {
            return;
        }
        grid.next_ns = busy_ns.saturating_mul(2);
        let slow = SlowGrid {
            name: grid.name(),
            code: grid.code,
            ctas: grid.grid.iter().map(|&n| u64::from(n)).product(),
            started: progress.started.load(Ordering::Relaxed),
            warp_instructions: progress.issued.load(Ordering::Relaxed),
            busy_ns,
        };
        drop(running);
        reader(&slow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn from(gpu: &Arc<HwGpu>) -> Origin {
        Origin { gpu: gpu.clone(), process: 7, channel: 5 }
    }

    #[test]
    fn who_waits_in_vain_can_ask_which_kernel_runs() {
        let (slow, gpu) = (SlowGrids::default(), Arc::new(HwGpu::default()));
        gpu.names.tell(7, "module\t0x100\t0x100\nfunction\t0x100\t0x80\tsum\n").expect("names");
        assert!(slow.begins(from(&gpu), 0x100, [8, 4, 2]).is_none(), "nobody reads how far it is");
        slow.look(Some(NOTED_NS - 1));
        assert_eq!(gpu.faults.text(), "");
        slow.look(Some(NOTED_NS));
        slow.look(Some(NOTED_NS + 1));
        let text = "the kernel sum at 0x100 is running, with a grid of 8 x 4 x 2 blocks";
        assert_eq!(gpu.faults.text(), format!("channel=5\tstate=waits\ttext={text}\n"));
        slow.ends();
        gpu.faults.goes_on(5);
        slow.look(Some(2 * NOTED_NS));
        assert_eq!(gpu.faults.text(), "");
        // What the threads wait for says more.
        slow.begins(from(&gpu), 0x1000, [1; 3]);
        gpu.faults.waits(5, "block 0 waits");
        slow.look(Some(NOTED_NS));
        assert_eq!(gpu.faults.text(), "channel=5\tstate=waits\ttext=block 0 waits\n");
    }

    #[test]
    fn a_long_grid_is_told_of_whenever_its_time_has_doubled() {
        let gpu = Arc::new(HwGpu::default());
        gpu.names.tell(7, "module\t0x100\t0x100\nfunction\t0x100\t0x80\tsum\n").expect("names");
        let (slow, told) = (SlowGrids::default(), Arc::new(Mutex::new(Vec::new())));
        assert!(slow.begins(from(&gpu), 0x100, [1; 3]).is_none(), "nobody looks");
        let noted = told.clone();
        slow.read(Arc::new(move |grid| noted.lock().push(grid.clone())));
        let progress = slow.begins(from(&gpu), 0x100, [8, 4, 2]).expect("somebody looks");
        progress.started.store(16, Ordering::Relaxed);
        for seconds in [0, 19, 21, 22, 41, 42, 43, 80, 90] {
            slow.look(Some(seconds * SECOND));
        }
        slow.look(None);
        slow.ends();
        slow.look(Some(1000 * SECOND));
        assert!(told.lock().iter().all(|grid| grid.name.as_deref() == Some("sum")));
        let told: Vec<(u64, Option<u64>)> = told.lock().iter().map(|g| (g.busy_ns, g.left_ns())).collect();
        assert_eq!(told, [21, 42, 90].map(|s| (s * SECOND, Some(3 * s * SECOND))));
    }

    #[test]
    fn nothing_says_how_long_the_last_blocks_take() {
        let grid = SlowGrid { name: None, code: 0, ctas: 4, started: 4, warp_instructions: 0, busy_ns: 30 * SECOND };
        assert_eq!(grid.left_ns(), None);
        let huge = SlowGrid { ctas: u64::MAX, started: 0, busy_ns: u64::MAX, ..grid };
        assert_eq!(huge.left_ns(), Some(u64::MAX));
    }
}
