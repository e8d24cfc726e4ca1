//! The present values in the system's text files about the GPU: clocks, load, temperature and power mode.

use std::sync::Arc;
use tegrarm_kmd::Kmd;

/// The number of zones that are looked at, which is more than the thermal framework of a Tegra has.
const ZONES: usize = 32;
/// The names of the GPU's zone: that of r36 and r39, and that of r35.
const GPU_ZONES: [&str; 2] = ["gpu-thermal", "GPU-therm"];
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
    /// The number of the power mode, and its name.
    pub power_mode: Option<(u32, String)>,
}

/// Reads all values.
pub fn sensors(kmd: &Arc<dyn Kmd>) -> Sensors {
    let text = |path: String| kmd.read_text(&path).ok();
    let dir = tegrarm_kmd::devfreq::directory(&**kmd);
    let of_gpu = |file: &str| text(format!("{}/{file}", dir?));
    let hertz = |file: &str| of_gpu(file)?.trim().parse().ok();
    Sensors {
        clock: hertz("cur_freq"),
        lowest_clock: hertz("min_freq"),
        highest_clock: hertz("max_freq"),
        load: of_gpu("device/load").and_then(|load| load.trim().parse().ok()),
        temperature: (0..ZONES).find_map(|zone| {
            let file = |name: &str| text(format!("/sys/class/thermal/thermal_zone{zone}/{name}"));
            GPU_ZONES.contains(&file("type")?.trim()).then(|| file("temp"))??.trim().parse().ok()
        }),
        power_mode: text(MODE.to_owned()).and_then(|status| {
            let number = number(&status)?;
            Some((number, name(&text(MODES.to_owned()).unwrap_or_default(), number)))
        }),
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
        let kmd: Arc<dyn Kmd> = Arc::new(Files(HashMap::from(files)));
        sensors(&kmd)
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
            ("/var/lib/nvpmodel/status", "pmode:0001"),
        ]);
        assert_eq!((found.clock, found.load, found.temperature), (None, None, Some(-256_000)));
        assert_eq!(found.power_mode, Some((1, String::new())));
    }
}
