//! The cost of each kernel, which `TEGRARM_SIM_STATS=1` and `tegrarm-sim run --stats` print.
#![allow(unsafe_code)]

use super::{Event, Gpu};
use once_cell::race::OnceBox;
use sm87_model::Unit;
use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::Arc;
use tegrarm_lock::Mutex;
use tegrarm_output::Stderr;

/// The figures that are printed when the process ends, and the process that prints them: a forked child prints nothing.
static AT_EXIT: OnceBox<(u32, Arc<Stats>)> = OnceBox::new();

/// The totals of one kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    launches: u64,
    warp_instructions: u64,
    engine_ns: u64,
    /// The time on a board, if it is modelled, and the units that bound it, each with the time of the launches for which it did.
    modelled: Option<Modelled>,
}

/// The modelled time of a kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Modelled {
    ns: u64,
    by_unit: [u64; Unit::ALL.len()],
}

impl Modelled {
    fn add(&mut self, ns: u64, by_unit: &[u64; Unit::ALL.len()]) {
        self.ns += ns;
        self.by_unit.iter_mut().zip(by_unit).for_each(|(sum, more)| *sum += more);
    }

    /// The unit that bounds most of the time.
    fn bound(&self) -> Unit {
        let most = |best: Unit, unit: Unit| {
            if self.by_unit[unit as usize] > self.by_unit[best as usize] { unit } else { best }
        };
        Unit::ALL.into_iter().fold(Unit::Latency, most)
    }
}

/// A kernel: the address of its first instruction, and its name if its program has told it. Programs use addresses again.
type Kernel = (u64, Option<Arc<str>>);

/// Launches, instructions and processor time by kernel.
#[derive(Debug, Default)]
pub struct Stats {
    kernels: Mutex<HashMap<Kernel, Totals>>,
}

impl Stats {
    /// Counts what `gpu` runs from now on, and prints the figures to standard error when the process ends. Several GPUs of one
    /// process are counted together.
    pub fn watch(gpu: &Gpu) {
        if AT_EXIT.get().is_none() && AT_EXIT.set(Box::new((std::process::id(), Arc::default()))).is_ok() {
            // SAFETY: the function takes and returns nothing, and cannot unwind.
            unsafe { libc::atexit(print) };
        }
        let Some((_, stats)) = AT_EXIT.get() else { return };
        let counting = stats.clone();
        gpu.observe(Arc::new(move |event| counting.count(event)));
    }

    fn count(&self, event: &Event) {
        let Event::Launch { code, name, warp_instructions, cpu_ns, estimate, .. } = event else { return };
        let mut kernels = self.kernels.lock();
        let totals = kernels.entry((*code, name.clone())).or_default();
        totals.launches += 1;
        totals.warp_instructions += warp_instructions;
        totals.engine_ns += cpu_ns;
        if let Some(estimate) = estimate {
            let mut by_unit = [0; Unit::ALL.len()];
            by_unit[estimate.bound as usize] = estimate.ns;
            totals.modelled.get_or_insert_default().add(estimate.ns, &by_unit);
        }
    }
}

extern "C" fn print() {
    if let Some((pid, stats)) = AT_EXIT.get()
        && *pid == std::process::id()
    {
        let _ = Stderr.write(stats.to_string().as_bytes());
    }
}

impl fmt::Display for Stats {
    /// Writes one line for each kernel, the most expensive first, and then the sum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kernels: Vec<(Kernel, Totals)> =
            self.kernels.lock().iter().map(|(kernel, t)| (kernel.clone(), *t)).collect();
        kernels.sort_by_key(|(kernel, t)| (u64::MAX - t.engine_ns, kernel.clone()));
        write!(f, "{:>16} {:>10} {:>18} {:>12}", "kernel at", "launches", "warp instructions", "engine s")?;
        let is_modelled = kernels.iter().any(|(_, t)| t.modelled.is_some());
        write!(f, "{}", if is_modelled { format!(" {:>12} {:<10}", "module s", "bound by") } else { String::new() })?;
        let is_named = kernels.iter().any(|((_, name), _)| name.is_some());
        writeln!(f, "{}", if is_named { " kernel" } else { "" })?;
        let line = |f: &mut fmt::Formatter<'_>, at: &str, name: &str, t: &Totals| {
            let seconds = t.engine_ns as f64 / 1e9;
            write!(f, "{at:>16} {:>10} {:>18} {seconds:>12.6}", t.launches, t.warp_instructions)?;
            match &t.modelled {
                Some(modelled) => write!(f, " {:>12.6} {:<10}", modelled.ns as f64 / 1e9, modelled.bound().name())?,
                None if is_modelled => write!(f, " {:23}", "")?,
                None => {}
            }
            writeln!(f, "{}{name}", if name.is_empty() { "" } else { " " })
        };
        let mut sum = Totals::default();
        for ((code, name), t) in &kernels {
            line(f, &format!("{code:#x}"), name.as_deref().unwrap_or_default(), t)?;
            sum.launches += t.launches;
            sum.warp_instructions += t.warp_instructions;
            sum.engine_ns += t.engine_ns;
            if let Some(modelled) = &t.modelled {
                sum.modelled.get_or_insert_default().add(modelled.ns, &modelled.by_unit);
            }
        }
        line(f, "all", "", &sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sm87_model::Estimate;

    #[test]
    fn launches_add_up_per_kernel() {
        let stats = Stats::default();
        let launch = |code, warp_instructions, cpu_ns| Event::Launch {
            channel: 511,
            qmd: 0,
            code,
            name: (code == 0x200).then(|| "other".into()),
            grid: [1; 3],
            block: [1; 3],
            warp_instructions,
            cpu_ns,
            estimate: None,
            start_ns: 1000,
            end_ns: 9000,
        };
        for event in [launch(0x100, 5, 1000), launch(0x200, 1, 1000), launch(0x100, 5, 1000)] {
            stats.count(&event);
        }
        let text = stats.to_string();
        let words: Vec<Vec<&str>> = text.lines().skip(1).map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["0x100", "2", "10", "0.000002"]);
        assert_eq!(words[1], ["0x200", "1", "1", "0.000001", "other"]);
        assert!(text.lines().next().is_some_and(|line| line.ends_with("engine s kernel")), "{text}");
        assert_eq!(words[2], ["all", "3", "11", "0.000003"]);
    }

    #[test]
    fn modelled_time_has_columns_of_its_own() {
        let stats = Stats::default();
        for (ns, bound) in [(2000, Unit::Dram), (3000, Unit::Tensor), (2000, Unit::Dram)] {
            let estimate = Estimate { cycles: 1, ns, bound, dram_bytes: 0 };
            stats.count(&Event::Launch {
                channel: 511,
                qmd: 0,
                code: 0x100,
                name: None,
                grid: [1; 3],
                block: [1; 3],
                warp_instructions: 1,
                cpu_ns: 0,
                estimate: Some(estimate),
                start_ns: 1000,
                end_ns: 9000,
            });
        }
        let text = stats.to_string();
        assert!(text.lines().next().is_some_and(|line| line.trim_end().ends_with("module s bound by")), "{text}");
        assert!(text.lines().skip(1).all(|line| line.trim_end().ends_with(" 0.000007 DRAM")), "{text}");
    }
}
