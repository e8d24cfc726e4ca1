//! The present values in the system's text files about the GPU: clocks, load, temperature, power and power mode.
//!
//! The numbers of the zone and of the sensor in sysfs differ between boards. They are looked for once, so that a monitor that asks ten times a
//! second opens about ten files each time.

use once_cell::sync::OnceCell;
use tegrarm_kmd::Kmd;

/// The number of zones that are looked at, which is more than the thermal framework of a Tegra has.
const ZONES: usize = 32;
/// The names of the GPU's zone: that of r36 and r39, and that of r35.
const GPU_ZONES: [&str; 2] = ["gpu-thermal", "GPU-therm"];
/// The trip points of a zone that are looked at.
const TRIPS: usize = 16;
/// The hwmon devices that are looked at, and the rails that a sensor INA3221 measures.
const MONITORS: usize = 32;
const RAILS: usize = 3;
/// The file in which nvpmodel keeps the number of the power mode. The next one has the names of the modes.
const MODE: &str = "/var/lib/nvpmodel/status";
const MODES: &str = "/etc/nvpmodel.conf";

/// The values. If a file does not exist, its field is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sensors {
    /// The present clock in hertz.
    pub clock: Option<u64>,
    /// The lowest clock that the system allows.
    pub lowest_clock: Option<u64>,
    /// The highest clock that the system allows.
    pub highest_clock: Option<u64>,
    /// How busy the GPU is, in thousandths.
    pub load: Option<u32>,
    /// The temperature in thousandths of a degree Celsius.
    pub temperature: Option<i32>,
    /// The temperature at which the system begins to lower clocks, and the one at which it switches itself off.
    pub slowdown: Option<i32>,
    /// See `slowdown`.
    pub shutdown: Option<i32>,
    /// The name of the rail that feeds the GPU, and its power in milliwatts.
    pub power: Option<(String, u64)>,
    /// The number of the power mode, and its name.
    pub power_mode: Option<(u32, String)>,
}

/// Where the values are.
#[derive(Debug, Default)]
pub struct Places {
    zone: OnceCell<Option<Zone>>,
    rail: OnceCell<Option<Rail>>,
}

/// The GPU's zone of the thermal framework, and the numbers of two of its trip points.
#[derive(Debug)]
struct Zone {
    directory: String,
    slowdown: Option<usize>,
    shutdown: Option<usize>,
}

impl Zone {
    fn find(kmd: &dyn Kmd) -> Option<Zone> {
        let zones = (0..ZONES).map(|zone| format!("/sys/class/thermal/thermal_zone{zone}"));
        let mut gpus =
            zones.filter(|at| kmd.read_text(&format!("{at}/type")).is_ok_and(|is| GPU_ZONES.contains(&is.trim())));
        let directory = gpus.next()?;
        let kinds = (0..TRIPS).map_while(|trip| kmd.read_text(&format!("{directory}/trip_point_{trip}_type")).ok());
        let kinds: Vec<_> = kinds.collect();
        let trip = |kind: &str| kinds.iter().position(|found| found.trim() == kind);
        let (slowdown, shutdown) = (trip("passive").or_else(|| trip("hot")), trip("critical"));
        Some(Zone { directory, slowdown, shutdown })
    }

    fn read(&self, kmd: &dyn Kmd, file: &str) -> Option<i32> {
        kmd.read_text(&format!("{}/{file}", self.directory)).ok()?.trim().parse().ok()
    }

    fn trip(&self, kmd: &dyn Kmd, number: Option<usize>) -> Option<i32> {
        self.read(kmd, &format!("trip_point_{}_temp", number?))
    }
}

/// The GPU's rail: a sensor INA3221 measures its voltage and its current.
#[derive(Debug)]
struct Rail {
    name: String,
    voltage: String,
    current: String,
}

impl Rail {
    fn find(kmd: &dyn Kmd) -> Option<Rail> {
        let text = |path: String| Some(kmd.read_text(&path).ok()?.trim().to_owned());
        let monitors = (0..MONITORS).map(|number| format!("/sys/class/hwmon/hwmon{number}"));
        let sensors = monitors.filter(|at| text(format!("{at}/name")).is_some_and(|name| name == "ina3221"));
        let mut rails = sensors.flat_map(|at| (1..=RAILS).map(move |rail| (at.clone(), rail)));
        rails.find_map(|(at, rail)| {
            let name = text(format!("{at}/in{rail}_label")).filter(|name| name.contains("GPU"))?;
            Some(Rail { name, voltage: format!("{at}/in{rail}_input"), current: format!("{at}/curr{rail}_input") })
        })
    }

    /// The product of millivolts and milliamperes, in milliwatts.
    fn power(&self, kmd: &dyn Kmd) -> Option<u64> {
        let number = |path: &str| kmd.read_text(path).ok()?.trim().parse::<i64>().ok();
        let microwatts = number(&self.voltage)?.checked_mul(number(&self.current)?)?;
        // A rail that is off can read a few milliamperes below nothing.
        Some(microwatts.max(0) as u64 / 1000)
    }
}

impl Places {
    /// Reads all values.
    pub fn read(&self, kmd: &dyn Kmd) -> Sensors {
        let text = |path: String| kmd.read_text(&path).ok();
        let dir = tegrarm_kmd::devfreq::directory(kmd);
        let of_gpu = |file: &str| text(format!("{}/{file}", dir?));
        let hertz = |file: &str| of_gpu(file)?.trim().parse().ok();
        let zone = self.zone.get_or_init(|| Zone::find(kmd)).as_ref();
        let rail = self.rail.get_or_init(|| Rail::find(kmd)).as_ref();
        Sensors {
            clock: hertz("cur_freq"),
            lowest_clock: hertz("min_freq"),
            highest_clock: hertz("max_freq"),
            load: of_gpu("device/load").and_then(|load| load.trim().parse().ok()),
            temperature: zone.and_then(|zone| zone.read(kmd, "temp")),
            slowdown: zone.and_then(|zone| zone.trip(kmd, zone.slowdown)),
            shutdown: zone.and_then(|zone| zone.trip(kmd, zone.shutdown)),
            power: rail.and_then(|rail| Some((rail.name.clone(), rail.power(kmd)?))),
            power_mode: text(MODE.to_owned()).and_then(|status| {
                let number = number(&status)?;
                Some((number, name(&text(MODES.to_owned()).unwrap_or_default(), number)))
            }),
        }
    }
}

/// Finds `pmode:0002` among other words.
fn number(status: &str) -> Option<u32> {
    status.split_whitespace().find_map(|word| word.strip_prefix("pmode:")?.parse().ok())
}

/// Finds the name of a mode in `< POWER_MODEL ID=2 NAME=MODE_30W >`. It is empty if the file does not have the mode.
fn name(modes: &str, number: u32) -> String {
    let field = |line: &str, key: &str| {
        let value = line.split([' ', '\t', '<', '>']).find_map(|word| word.strip_prefix(key))?;
        Some(value.to_owned())
    };
    let lines = modes.lines().filter(|line| line.contains("POWER_MODEL"));
    let mut found = lines.filter(|line| field(line, "ID=").is_some_and(|id| id.parse() == Ok(number)));
    found.find_map(|line| field(line, "NAME=")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::os::fd::{BorrowedFd, OwnedFd};
    use tegrarm_kmd::{Arg, Errno, Node};

    /// A kernel that has only text files.
    struct Files(HashMap<&'static str, &'static str>);

    impl Kmd for Files {
        fn name(&self) -> &str {
            "files"
        }

        fn open(&self, _: &str) -> Result<OwnedFd, Errno> {
            Err(Errno::ENOENT)
        }

        fn ioctl(&self, _: BorrowedFd<'_>, _: Node, _: u32, _: Arg<'_>) -> Result<i32, Errno> {
            Err(Errno::ENOTTY)
        }

        fn own_view(&self, _: BorrowedFd<'_>) -> Option<usize> {
            None
        }

        fn read_text(&self, path: &str) -> Result<String, Errno> {
            self.0.get(path).map(|text| (*text).to_owned()).ok_or(Errno::ENOENT)
        }

        fn write_text(&self, _: &str, _: &str) -> Result<(), Errno> {
            Err(Errno::EACCES)
        }
    }

    fn of<const N: usize>(files: [(&'static str, &'static str); N]) -> Sensors {
        Places::default().read(&Files(HashMap::from(files)))
    }

    #[test]
    fn everything_a_board_says() {
        let found = of([
            ("/sys/class/devfreq/17000000.gpu/cur_freq", "306000000\n"),
            ("/sys/class/devfreq/17000000.gpu/min_freq", "306000000\n"),
            ("/sys/class/devfreq/17000000.gpu/max_freq", "1300500000\n"),
            ("/sys/class/devfreq/17000000.gpu/device/load", "517\n"),
            ("/sys/class/thermal/thermal_zone0/type", "cpu-thermal\n"),
            ("/sys/class/thermal/thermal_zone0/temp", "51000\n"),
            ("/sys/class/thermal/thermal_zone1/type", "gpu-thermal\n"),
            ("/sys/class/thermal/thermal_zone1/temp", "47531\n"),
            ("/sys/class/thermal/thermal_zone1/trip_point_0_type", "critical\n"),
            ("/sys/class/thermal/thermal_zone1/trip_point_0_temp", "104500\n"),
            ("/sys/class/thermal/thermal_zone1/trip_point_1_type", "hot\n"),
            ("/sys/class/thermal/thermal_zone1/trip_point_1_temp", "103000\n"),
            ("/sys/class/thermal/thermal_zone1/trip_point_2_type", "passive\n"),
            ("/sys/class/thermal/thermal_zone1/trip_point_2_temp", "99000\n"),
            ("/sys/class/hwmon/hwmon1/name", "pwmfan\n"),
            ("/sys/class/hwmon/hwmon4/name", "ina3221\n"),
            ("/sys/class/hwmon/hwmon4/in1_label", "VIN_SYS_5V0\n"),
            ("/sys/class/hwmon/hwmon4/in2_label", "VDD_GPU_SOC\n"),
            ("/sys/class/hwmon/hwmon4/in2_input", "19040\n"),
            ("/sys/class/hwmon/hwmon4/curr2_input", "125\n"),
            ("/var/lib/nvpmodel/status", "pmode:0002 fmode:fanNull\n"),
            ("/etc/nvpmodel.conf", "< POWER_MODEL ID=0 NAME=MAXN >\n< POWER_MODEL ID=2 NAME=MODE_30W >\n"),
        ]);
        assert_eq!(
            found,
            Sensors {
                clock: Some(306_000_000),
                lowest_clock: Some(306_000_000),
                highest_clock: Some(1_300_500_000),
                load: Some(517),
                temperature: Some(47_531),
                slowdown: Some(99_000),
                shutdown: Some(104_500),
                power: Some(("VDD_GPU_SOC".to_owned(), 2380)),
                power_mode: Some((2, "MODE_30W".to_owned())),
            }
        );
    }

    #[test]
    fn what_is_not_there_or_is_no_number_is_not_known() {
        assert_eq!(of([]), Sensors::default());
        let found = of([
            ("/sys/class/devfreq/17000000.gpu/max_freq", "1300500000"),
            ("/sys/class/devfreq/17000000.gpu/cur_freq", "fast"),
            ("/sys/class/thermal/thermal_zone3/type", "GPU-therm"),
            ("/sys/class/thermal/thermal_zone3/temp", "-256000"),
            ("/sys/class/hwmon/hwmon0/name", "ina3221"),
            ("/sys/class/hwmon/hwmon0/in1_label", "VDD_CPU_GPU_CV"),
            ("/sys/class/hwmon/hwmon0/in1_input", "5000"),
            ("/var/lib/nvpmodel/status", "pmode:0001"),
        ]);
        assert_eq!((&found.power, found.slowdown), (&None, None));
        assert_eq!((found.clock, found.load, found.temperature), (None, None, Some(-256_000)));
        assert_eq!(found.power_mode, Some((1, String::new())));
    }
}
