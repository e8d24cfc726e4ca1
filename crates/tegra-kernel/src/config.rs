//! The configuration: which board is simulated, and with which kernel.

use crate::host;
use crate::power::{self, PowerMode};
use crate::release::L4t;
use std::fmt;

pub use tegra_hw::{Checks, Schedules};

/// A Jetson module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chip {
    /// Jetson AGX Orin 64 GB with all 16 SMs: ga10b.
    AgxOrin,
    /// The same board in the power mode of the published logs: one GPC with four TPCs.
    AgxOrinPowerGated,
    /// Jetson AGX Orin 32 GB: ga10b with 14 SMs.
    AgxOrin32,
    /// Jetson Orin NX 16 GB: ga10b with 8 SMs.
    OrinNx,
    /// The same module in the power mode MAXN_SUPER of JetPack 6.2: a higher clock.
    OrinNxSuper,
    /// Jetson Orin NX 8 GB: ga10b with 8 SMs and a lower clock.
    OrinNx8,
    /// The same module in the power mode MAXN_SUPER.
    OrinNx8Super,
    /// Jetson Orin Nano 8 GB: ga10b with 8 SMs.
    OrinNano,
    /// The same module in the power mode MAXN_SUPER ("Orin Nano Super"): a higher clock and faster memory.
    OrinNanoSuper,
    /// Jetson Orin Nano 4 GB: ga10b with 4 SMs and half of the memory's channels.
    OrinNano4,
    /// The same module in the power mode MAXN_SUPER.
    OrinNano4Super,
    /// Jetson AGX Xavier: gv11b (Volta). It has class numbers and ioctls only, because its machine code is not
    /// simulated.
    Gv11b,
}

/// Where the time that programs see on the GPU comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// It is the time of the computer that runs the simulator.
    Host,
    /// It passes as it would on the module, by a model of its speed.
    Model,
}

/// Which allocations nvmap refuses although memory is free (docs/hardware/nvmap.md#refusals).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusals {
    /// None, as on most releases.
    None,
    /// Those that the security fix of L4T 36.4.7 and 35.6.3 refuses.
    Cve202533177,
    /// Those that are large, as on boards whose memory is in pieces after hours of work.
    Fragmented,
}

/// The configuration of a virtual board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// The module.
    pub chip: Chip,
    /// Its power mode (`TEGRARM_SIM_POWER`). Without one, everything that the module has is powered and runs at its highest clock.
    pub power: Option<&'static PowerMode>,
    /// Its kernel release.
    pub l4t: L4t,
    /// The MemTotal in bytes.
    pub mem_total: u64,
    /// What nvmap refuses although memory is free (`TEGRARM_SIM_NVMAP`).
    pub refusals: Refusals,
    /// After how many instructions the engine translates a program to machine code of the host (`TEGRARM_SIM_TRANSLATE`), if that was said.
    pub translated_after: Option<u64>,
    /// True if work is executed deterministically, one step of one channel at a time (`TEGRARM_SIM_STEP=1`).
    pub step: bool,
    /// True if the kernel refuses calls that a board accepts and that are believed to freeze a board
    /// (`TEGRARM_SIM_STRICT=1`).
    pub strict: bool,
    /// What is looked for in kernels (`TEGRARM_SIM_CHECK`).
    pub checks: Checks,
    /// The other schedules of each launch, if `checks` asks for them (`TEGRARM_SIM_SCHEDULES`, `TEGRARM_SIM_SEED`).
    pub schedules: Schedules,
    /// The exit status of a process that has the board in itself and ends well although a check has found something
    /// (`TEGRARM_SIM_CHECK_EXIT`). 0 leaves it as it is.
    pub check_exit: u8,
    /// The time that programs see on the GPU (`TEGRARM_SIM_CLOCK`).
    pub clock: Clock,
    /// A parameter of the model's clock: what the host takes for a submission that finds the GPU idle, in microseconds
    /// (`TEGRARM_SIM_HOST_LAUNCH_US`).
    pub host_launch_us: u32,
    /// Another one: for how long the GPU works until its clock has risen from the lowest frequency to the highest one, in milliseconds
    /// (`TEGRARM_SIM_CLOCK_RAMP_MS`).
    pub clock_ramp_ms: u32,
    /// Whether everything that kernels do is counted, for a profile (`TEGRARM_SIM_PROFILE`).
    pub profiled: bool,
    /// Whether somebody draws what programs call by names: their queues, and the ranges that they mark (`tegrarm-sim run --trace`).
    pub traced: bool,
    /// Whether the cost of each kernel is printed when the process ends.
    pub counted: bool,
}

/// An environment variable with a value that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    variable: &'static str,
    value: String,
    allowed: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={:?} is unknown; set it to one of: {}", self.variable, self.value, self.allowed)
    }
}

impl std::error::Error for ConfigError {}

const CHIPS: &[(&str, Chip)] = &[
    ("agx-orin", Chip::AgxOrin),
    ("agx-orin-pg", Chip::AgxOrinPowerGated),
    ("agx-orin-32gb", Chip::AgxOrin32),
    ("orin-nx", Chip::OrinNx),
    ("orin-nx-super", Chip::OrinNxSuper),
    ("orin-nx-8gb", Chip::OrinNx8),
    ("orin-nx-8gb-super", Chip::OrinNx8Super),
    ("orin-nano", Chip::OrinNano),
    ("orin-nano-super", Chip::OrinNanoSuper),
    ("orin-nano-4gb", Chip::OrinNano4),
    ("orin-nano-4gb-super", Chip::OrinNano4Super),
    ("gv11b", Chip::Gv11b),
];
const RELEASES: &[(&str, L4t)] = &[("r36", L4t::R36), ("r35", L4t::R35), ("r35.4", L4t::R35_4), ("r39", L4t::R39)];
const SWITCH: &[(&str, bool)] = &[("0", false), ("1", true)];
const CLOCKS: &[(&str, Clock)] = &[("host", Clock::Host), ("model", Clock::Model)];
const REFUSALS: &[(&str, Refusals)] =
    &[("plain", Refusals::None), ("cve-2025-33177", Refusals::Cve202533177), ("fragmented", Refusals::Fragmented)];

impl Clock {
    /// The name that `--clock` and `TEGRARM_SIM_CLOCK` accept.
    pub fn name(self) -> &'static str {
        CLOCKS.iter().find(|(_, clock)| *clock == self).map_or("unknown", |(name, _)| name)
    }
}

impl Chip {
    /// The name that `--chip` and `TEGRARM_SIM_CHIP` accept.
    pub fn name(self) -> &'static str {
        CHIPS.iter().find(|(_, chip)| *chip == self).map_or("unknown", |(name, _)| name)
    }

    /// Every module.
    pub fn all() -> impl Iterator<Item = Chip> {
        CHIPS.iter().map(|(_, chip)| *chip)
    }

    /// The power modes that nvpmodel has for it. The first one limits nothing.
    pub fn power_modes(self) -> &'static [PowerMode] {
        match self {
            Chip::AgxOrin => power::AGX_ORIN,
            // It is itself a mode, and the logs do not say which.
            Chip::AgxOrinPowerGated => &[],
            Chip::AgxOrin32 => power::AGX_ORIN_32,
            Chip::OrinNx => power::ORIN_NX,
            Chip::OrinNxSuper => power::ORIN_NX_SUPER,
            Chip::OrinNx8 => power::ORIN_NX_8,
            Chip::OrinNx8Super => power::ORIN_NX_8_SUPER,
            Chip::OrinNano => power::ORIN_NANO,
            Chip::OrinNanoSuper => power::ORIN_NANO_SUPER,
            Chip::OrinNano4 => power::ORIN_NANO_4,
            Chip::OrinNano4Super => power::ORIN_NANO_4_SUPER,
            Chip::Gv11b => &[],
        }
    }
}

impl SimConfig {
    /// A module with its whole memory, on r36.
    pub fn new(chip: Chip) -> SimConfig {
        SimConfig {
            chip,
            power: None,
            l4t: L4t::R36,
            mem_total: mem_total(chip),
            refusals: Refusals::None,
            step: false,
            strict: false,
            checks: Checks::default(),
            schedules: Schedules::default(),
            check_exit: 0,
            clock: Clock::Host,
            host_launch_us: 0,
            clock_ramp_ms: 0,
            profiled: false,
            traced: false,
            counted: false,
            translated_after: None,
        }
    }

    /// The same board with an nvmap that refuses more.
    ///
    /// # Errors
    /// The fix of CVE-2025-33177 on a release that does not have it: it is in 35.6.3 and in 36.4.7.
    pub fn refusing(self, refusals: Refusals) -> Result<SimConfig, ConfigError> {
        if refusals == Refusals::Cve202533177 && !matches!(self.l4t, L4t::R35_4 | L4t::R36) {
            let value = format!("cve-2025-33177 with the release {}", self.l4t.name());
            let allowed = "plain, fragmented, or cve-2025-33177 with r36 or r35.4".to_owned();
            return Err(ConfigError { variable: "TEGRARM_SIM_NVMAP", value, allowed });
        }
        Ok(SimConfig { refusals, ..self })
    }

    /// The same module in a power mode, which has the name that nvpmodel prints.
    ///
    /// # Errors
    /// The module has no such mode.
    pub fn powered(self, mode: &str) -> Result<SimConfig, ConfigError> {
        let modes = self.chip.power_modes();
        let Some(power) = modes.iter().find(|known| known.name == mode) else {
            let value = format!("{mode} of {}", self.chip.name());
            let names: Vec<_> = modes.iter().map(|known| known.name).collect();
            let allowed = if names.is_empty() { "none, which this board has".to_owned() } else { names.join(", ") };
            return Err(ConfigError { variable: "TEGRARM_SIM_POWER", value, allowed });
        };
        Ok(SimConfig { power: Some(power), ..self })
    }

    /// The same board, on which each launch runs in so many other schedules, too. They follow from a seed. `None` leaves either as it is.
    #[must_use]
    pub fn in_schedules(self, others: Option<u32>, seed: Option<u64>) -> SimConfig {
        let (known, mut checks) = (self.schedules, self.checks);
        checks.order = others.map_or(checks.order, |others| others > 0);
        let schedules = Schedules { others: others.unwrap_or(known.others), seed: seed.unwrap_or(known.seed) };
        SimConfig { checks, schedules, ..self }
    }

    /// The same module on another release.
    #[must_use]
    pub fn on(self, l4t: L4t) -> SimConfig {
        SimConfig { l4t, ..self }
    }

    /// What `TEGRARM_SIM_CHIP`, `TEGRARM_SIM_POWER` (a power mode of it), `TEGRARM_SIM_L4T` (r36, r35, r35.4, r39), `TEGRARM_SIM_NVMAP` (plain,
    /// cve-2025-33177, fragmented), `TEGRARM_SIM_STEP`, `TEGRARM_SIM_STRICT` and `TEGRARM_SIM_STATS` (0, 1) and `TEGRARM_SIM_CLOCK`
    /// (host, model) say; the first of each when unset. `TEGRARM_SIM_PROFILE` names a file. `TEGRARM_SIM_CHECK` names checks,
    /// divided by commas, and none when unset; `TEGRARM_SIM_CHECK_EXIT` is a number from 0 to 255. `TEGRARM_SIM_SCHEDULES` and
    /// `TEGRARM_SIM_SEED` are numbers, too, `TEGRARM_SIM_HOST_LAUNCH_US` and `TEGRARM_SIM_CLOCK_RAMP_MS` are microseconds and
    /// milliseconds, and `TEGRARM_SIM_TRANSLATE` is a number unless it is `never`. The memory is the module's, but never more than this machine has.
    ///
    /// # Errors
    /// The variable that has an unknown value.
    pub fn from_env() -> Result<SimConfig, ConfigError> {
        SimConfig::from_lookup(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<SimConfig, ConfigError> {
        let config = SimConfig {
            step: choose("TEGRARM_SIM_STEP", &lookup, SWITCH)?,
            translated_after: translated_after(&lookup)?,
            strict: choose("TEGRARM_SIM_STRICT", &lookup, SWITCH)?,
            counted: choose("TEGRARM_SIM_STATS", &lookup, SWITCH)?,
            checks: checks("TEGRARM_SIM_CHECK", &lookup)?,
            check_exit: number("TEGRARM_SIM_CHECK_EXIT", &lookup, "255")?.unwrap_or(0),
            clock: choose("TEGRARM_SIM_CLOCK", &lookup, CLOCKS)?,
            host_launch_us: number("TEGRARM_SIM_HOST_LAUNCH_US", &lookup, "4294967295")?.unwrap_or(0),
            clock_ramp_ms: number("TEGRARM_SIM_CLOCK_RAMP_MS", &lookup, "4294967295")?.unwrap_or(0),
            // Whoever writes the file looks at its name again.
            profiled: lookup("TEGRARM_SIM_PROFILE").is_some_and(|path| !path.is_empty()),
            ..SimConfig::new(choose("TEGRARM_SIM_CHIP", &lookup, CHIPS)?)
        };
        let config = config.in_schedules(
            number("TEGRARM_SIM_SCHEDULES", &lookup, "4294967295")?,
            number("TEGRARM_SIM_SEED", &lookup, "18446744073709551615")?,
        );
        let config = match lookup("TEGRARM_SIM_POWER") {
            Some(mode) if !mode.is_empty() => config.powered(&mode)?,
            _ => config,
        };
        let config = config.on(choose("TEGRARM_SIM_L4T", &lookup, RELEASES)?);
        let config = config.refusing(choose("TEGRARM_SIM_NVMAP", &lookup, REFUSALS)?)?;
        Ok(SimConfig { mem_total: config.mem_total.min(host::memory().unwrap_or(u64::MAX)), ..config })
    }
}

/// The checks that a variable names.
fn checks(variable: &'static str, lookup: impl Fn(&str) -> Option<String>) -> Result<Checks, ConfigError> {
    let value = lookup(variable).unwrap_or_default();
    let allowed = || format!("{}, or several of them divided by commas", Checks::NAMES.join(", "));
    value.parse().map_err(|_| ConfigError { variable, value: value.clone(), allowed: allowed() })
}

/// After how many instructions programs are translated, if that is said.
fn translated_after(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<u64>, ConfigError> {
    let variable = "TEGRARM_SIM_TRANSLATE";
    if lookup(variable).is_some_and(|value| value == "never") {
        return Ok(Some(u64::MAX));
    }
    let found = number(variable, lookup, "18446744073709551615");
    found.map_err(|error| ConfigError { allowed: format!("never, or {}", error.allowed), ..error })
}

/// The number that a variable has, if it is set. It is `most` at most.
fn number<T: std::str::FromStr>(
    variable: &'static str,
    lookup: impl Fn(&str) -> Option<String>,
    most: &str,
) -> Result<Option<T>, ConfigError> {
    let Some(value) = lookup(variable) else { return Ok(None) };
    let number = value.parse();
    number.map(Some).map_err(|_| ConfigError { variable, value, allowed: format!("a number from 0 to {most}") })
}

fn choose<T: Copy>(
    variable: &'static str,
    lookup: impl Fn(&str) -> Option<String>,
    choices: &[(&str, T)],
) -> Result<T, ConfigError> {
    let Some(value) = lookup(variable) else { return Ok(choices[0].1) };
    let found = choices.iter().find(|(name, _)| *name == value);
    found.map(|(_, choice)| *choice).ok_or_else(|| ConfigError {
        variable,
        value,
        allowed: choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
    })
}

impl std::str::FromStr for Chip {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Chip, ConfigError> {
        choose("chip", |_| Some(name.to_owned()), CHIPS)
    }
}

impl std::str::FromStr for Refusals {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Refusals, ConfigError> {
        choose("nvmap", |_| Some(name.to_owned()), REFUSALS)
    }
}

impl std::str::FromStr for Clock {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<Clock, ConfigError> {
        choose("clock", |_| Some(name.to_owned()), CLOCKS)
    }
}

impl std::str::FromStr for L4t {
    type Err = ConfigError;

    fn from_str(name: &str) -> Result<L4t, ConfigError> {
        choose("l4t", |_| Some(name.to_owned()), RELEASES)
    }
}

/// The MemTotal of a module: the part of the DRAM that its kernel leaves. The figures are general knowledge and not
/// from a log.
fn mem_total(chip: Chip) -> u64 {
    const MIB: u64 = 1 << 20;
    match chip {
        Chip::AgxOrin | Chip::AgxOrinPowerGated => 62_840 * MIB,
        Chip::AgxOrin32 => 30_536 * MIB,
        Chip::OrinNx | Chip::OrinNxSuper => 15_656 * MIB,
        Chip::OrinNx8 | Chip::OrinNx8Super | Chip::OrinNano | Chip::OrinNanoSuper => 7_620 * MIB,
        Chip::OrinNano4 | Chip::OrinNano4Super => 3_440 * MIB,
        Chip::Gv11b => 31_920 * MIB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_means_agx_orin_on_r36() {
        let config = SimConfig::from_lookup(|_| None).unwrap();
        assert_eq!((config.chip, config.l4t, config.step), (Chip::AgxOrin, L4t::R36, false));
        assert_eq!(config.clock, Clock::Host);
    }

    #[test]
    fn every_release_is_found_by_its_name() {
        assert_eq!(RELEASES.len(), L4t::ALL.len());
        for l4t in L4t::ALL {
            assert_eq!(l4t.name().parse(), Ok(l4t));
        }
    }

    #[test]
    fn a_release_without_the_fix_cannot_refuse_like_it() {
        let asked = |l4t: &str| {
            SimConfig::from_lookup(|name| match name {
                "TEGRARM_SIM_NVMAP" => Some("cve-2025-33177".to_owned()),
                "TEGRARM_SIM_L4T" => Some(l4t.to_owned()),
                _ => None,
            })
        };
        assert_eq!(asked("r36").unwrap().refusals, Refusals::Cve202533177);
        assert_eq!(asked("r35.4").unwrap().refusals, Refusals::Cve202533177);
        let error = asked("r39").unwrap_err().to_string();
        assert!(error.contains("with the release r39") && error.contains("plain, fragmented"), "{error}");
    }

    #[test]
    fn checks_are_those_that_are_named() {
        let asked =
            |value: &str| SimConfig::from_lookup(|name| (name == "TEGRARM_SIM_CHECK").then(|| value.to_owned()));
        assert!(asked("sync,memory").unwrap().checks.memory && !asked("").unwrap().checks.any());
        let error = asked("memory,speed").unwrap_err().to_string();
        assert!(
            error.starts_with("TEGRARM_SIM_CHECK=\"memory,speed\" is unknown; set it to one of: memory, "),
            "{error}"
        );
    }

    #[test]
    fn the_parameters_of_the_model_are_numbers_and_nothing_unless_they_are_set() {
        let of = |value: &'static str| {
            SimConfig::from_lookup(|name| {
                matches!(name, "TEGRARM_SIM_HOST_LAUNCH_US" | "TEGRARM_SIM_CLOCK_RAMP_MS").then(|| value.to_owned())
            })
        };
        let config = of("25").unwrap();
        assert_eq!((config.host_launch_us, config.clock_ramp_ms), (25, 25));
        let config = SimConfig::new(Chip::AgxOrin);
        assert_eq!((config.host_launch_us, config.clock_ramp_ms), (0, 0));
        assert!(of("-1").unwrap_err().to_string().ends_with("a number from 0 to 4294967295"));
    }

    #[test]
    fn unknown_values_name_the_known_ones() {
        let error = SimConfig::from_lookup(|name| (name == "TEGRARM_SIM_CHIP").then(|| "orin".to_owned())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "TEGRARM_SIM_CHIP=\"orin\" is unknown; set it to one of: agx-orin, agx-orin-pg, agx-orin-32gb, orin-nx, \
             orin-nx-super, orin-nx-8gb, orin-nx-8gb-super, orin-nano, orin-nano-super, orin-nano-4gb, orin-nano-4gb-super, gv11b"
        );
    }

    #[test]
    fn a_power_mode_is_one_of_the_module() {
        let asked = |chip: &str, mode: &str| {
            SimConfig::from_lookup(|name| match name {
                "TEGRARM_SIM_CHIP" => Some(chip.to_owned()),
                "TEGRARM_SIM_POWER" => Some(mode.to_owned()),
                _ => None,
            })
        };
        for chip in Chip::all() {
            assert_eq!(asked(chip.name(), "").unwrap().power, None);
            for mode in chip.power_modes() {
                assert_eq!(asked(chip.name(), mode.name()).unwrap().power, Some(mode));
            }
        }
        let error = asked("orin-nano", "MAXN").unwrap_err().to_string();
        assert_eq!(error, "TEGRARM_SIM_POWER=\"MAXN of orin-nano\" is unknown; set it to one of: 15W, 7W");
        assert!(asked("gv11b", "MAXN").unwrap_err().to_string().ends_with("none, which this board has"));
    }
}
