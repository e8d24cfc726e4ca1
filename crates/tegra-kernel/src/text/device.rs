//! nvgpu's attributes of the GPU's device. The device is reached as `device` from its devfreq directory
//! (docs/hardware/nvgpu-nodes.md#device-attributes).

use crate::Kernel;
use crate::ctrl::time::host_ns;
use tegrarm_kmd::Errno;

/// One attribute.
#[derive(Clone, Copy)]
pub(super) enum Attribute {
    PoweredOn,
    RailgateEnable,
    RailgateDelay,
    IsRailgated,
    Load,
    GoldenImage,
    GpcMask,
    FbpMask,
    TpcMask,
    TpcGating,
    ShortestSlice,
    LongestSlice,
    Faults,
    Checks,
    Names,
}

/// The name of the file with the newest faults.
pub(super) const FAULTS: &str = "tegra_sim_faults";

pub(super) const ATTRIBUTES: &[(&str, Attribute)] = &[
    ("gpu_powered_on", Attribute::PoweredOn),
    ("railgate_enable", Attribute::RailgateEnable),
    ("railgate_delay", Attribute::RailgateDelay),
    ("is_railgated", Attribute::IsRailgated),
    ("load", Attribute::Load),
    ("golden_img_status", Attribute::GoldenImage),
    ("gpc_fs_mask", Attribute::GpcMask),
    ("fbp_fs_mask", Attribute::FbpMask),
    ("tpc_fs_mask", Attribute::TpcMask),
    ("tpc_pg_mask", Attribute::TpcGating),
    ("tsg_timeslice_min_us", Attribute::ShortestSlice),
    ("tsg_timeslice_max_us", Attribute::LongestSlice),
    // No board has this file. It has the details of the newest faults, for programs that may not read the kernel's log.
    (FAULTS, Attribute::Faults),
    // No board has it either: the checker's reports, each of which is read once.
    ("tegra_sim_checks", Attribute::Checks),
    // Nor this one: programs write the names of their code to it, and read what else is of use.
    ("tegra_sim_names", Attribute::Names),
];

impl Attribute {
    pub(super) fn writable(self) -> bool {
        use Attribute::*;
        matches!(self, RailgateEnable | RailgateDelay | TpcGating | ShortestSlice | LongestSlice | Names | Checks)
    }

    pub(super) fn read(self, kernel: &Kernel) -> String {
        let (slices, (railgating, delay)) =
            (kernel.nodes.groups.scheduling.timeslices(), *kernel.board.device.railgating.lock());
        match self {
            Attribute::PoweredOn => "on\n".to_owned(),
            Attribute::RailgateEnable => format!("{}\n", u8::from(railgating)),
            Attribute::RailgateDelay => format!("{delay}\n"),
            Attribute::IsRailgated => "no\n".to_owned(),
            Attribute::Load => format!("{}\n", kernel.board.hw.load.thousandths(host_ns())),
            Attribute::GoldenImage => format!("{}\n", u8::from(kernel.board.device.has_golden_image())),
            Attribute::GpcMask => format!("{}\n", kernel.board.chip.gpc_mask()),
            Attribute::FbpMask => format!("{:#x}\n", kernel.board.chip.fbp_mask),
            Attribute::TpcMask => {
                let gpcs = (0..).step_by(kernel.board.chip.tpc_per_gpc as usize).zip(kernel.board.chip.tpc_masks);
                format!("{:#x}\n", gpcs.fold(0, |all, (shift, tpcs)| all | tpcs << shift))
            }
            Attribute::TpcGating => format!("{}\n", kernel.board.chip.tpc_gated),
            Attribute::ShortestSlice => format!("{}\n", slices.start()),
            Attribute::LongestSlice => format!("{}\n", slices.end()),
            Attribute::Faults => kernel.board.hw.faults.text(),
            Attribute::Checks => kernel.board.hw.checks.take(),
            Attribute::Names => {
                let config = &kernel.board.config;
                let (profile, cpu) = (config.profiled, config.checks.cpu);
                let named = profile || config.traced;
                let waits = config.checks.strict || cpu;
                let more = [(profile, " lines"), (named, " ranges queues"), (waits, " waits"), (cpu, " accesses")]
                    .map(|(on, what)| if on { what } else { "" });
                format!("functions{}\n", more.concat())
            }
        }
    }

    /// Writes the attribute. Text that is not a number changes nothing. The error is then `EINVAL`, except for the
    /// delay.
    pub(super) fn write(self, kernel: &Kernel, process: i32, text: &str) -> Result<(), Errno> {
        if let Attribute::Names = self {
            return kernel.board.hw.names.tell(process, text).map_err(|_| Errno::EINVAL);
        }
        let number = text.trim_end_matches('\n').parse::<u64>().map_err(|_| Errno::EINVAL);
        match self {
            Attribute::RailgateEnable => kernel.board.device.railgating.lock().0 = number? != 0,
            Attribute::RailgateDelay => {
                let mut railgating = kernel.board.device.railgating.lock();
                if let (true, Ok(delay)) = (railgating.0, text.trim().parse::<u32>()) {
                    railgating.1 = delay;
                }
            }
            Attribute::TpcGating if number? == u64::from(kernel.board.chip.tpc_gated) => {}
            Attribute::TpcGating if kernel.board.device.has_golden_image() => return Err(Errno::EBUSY),
            Attribute::TpcGating => {
                tracing::error!("tpc_pg_mask is not simulated: choose a power mode with other TPCs");
                return Err(Errno::EINVAL);
            }
            Attribute::ShortestSlice => kernel.nodes.groups.scheduling.set_shortest_timeslice(number?)?,
            Attribute::Checks => kernel.board.hw.checks.suppress(number?),
            Attribute::LongestSlice => kernel.nodes.groups.scheduling.set_longest_timeslice(number?)?,
            _ => return Err(Errno::EACCES),
        }
        Ok(())
    }
}
