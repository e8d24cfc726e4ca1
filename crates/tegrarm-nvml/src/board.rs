//! What files of the system say that libtegrarm's C interface does not: the module, its memory, its fan.

use std::fs;
use std::path::PathBuf;

/// The rate of the memory's clock, by BPMP and by older kernels. Only root may read debugfs.
const EMC: [&str; 2] = ["sys/kernel/debug/bpmp/debug/clk/emc", "sys/kernel/debug/clk/emc"];
/// How much of the memory's clock is used, in kilohertz.
const ACTIVITY: &str = "sys/kernel/actmon_avg_activity/mc_all";
/// The hwmon devices that are looked at.
const MONITORS: usize = 32;
/// The value of a fan that runs at its full speed.
const FULL: u32 = 255;

/// A board. Tests use another directory.
#[derive(Debug)]
pub struct Board(PathBuf);

impl Default for Board {
    fn default() -> Board {
        Board(PathBuf::from("/"))
    }
}

impl Board {
    fn text(&self, name: &str) -> Option<String> {
        let bytes = fs::read(self.0.join(name)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_matches(['\0', '\n', ' ']).to_owned())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// The serial number of the module.
    pub fn serial(&self) -> Option<String> {
        self.text("proc/device-tree/serial-number").filter(|serial| !serial.is_empty())
    }

    /// The rate of the memory's clock in hertz.
    pub fn memory_clock(&self) -> Option<u64> {
        EMC.iter().find_map(|at| self.number(&format!("{at}/rate")).or_else(|| self.number(&format!("{at}/clk_rate"))))
    }

    /// The highest rate of the memory's clock in hertz.
    pub fn highest_memory_clock(&self) -> Option<u64> {
        EMC.iter().find_map(|at| {
            self.number(&format!("{at}/max_rate")).or_else(|| self.number(&format!("{at}/clk_max_rate")))
        })
    }

    /// How much of what the memory can do is used, in percent.
    pub fn memory_load(&self) -> Option<u32> {
        let (used, rate) = (self.number(ACTIVITY)?, self.memory_clock()? / 1000);
        (rate > 0).then(|| (used * 100 / rate).min(100) as u32)
    }

    /// The bytes of memory that the device tree has, of which the system gives out less.
    pub fn installed_memory(&self) -> Option<u64> {
        let nodes = fs::read_dir(self.0.join("proc/device-tree")).ok()?.flatten();
        let memory = nodes.filter(|node| node.file_name().to_string_lossy().starts_with("memory@"));
        let regions: Vec<u8> = memory.filter_map(|node| fs::read(node.path().join("reg")).ok()).flatten().collect();
        // Each region is an address and a size, of eight bytes each.
        let sizes = regions.chunks_exact(16).map(|region| u64::from_be_bytes(std::array::from_fn(|at| region[8 + at])));
        Some(sizes.fold(0, u64::saturating_add)).filter(|bytes| *bytes > 0)
    }

    /// The clocks that the GPU can have, in hertz.
    pub fn clocks(&self) -> Option<Vec<u64>> {
        let entries = fs::read_dir(self.0.join("sys/class/devfreq")).ok()?.flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let gpu = names.find(|name| [".gpu", ".ga10b", ".gv11b"].iter().any(|end| name.ends_with(end)))?;
        let text = self.text(&format!("sys/class/devfreq/{gpu}/available_frequencies"))?;
        Some(text.split_whitespace().filter_map(|hertz| hertz.parse().ok()).collect())
    }

    /// The speed of the fan, in percent.
    pub fn fan(&self) -> Option<u32> {
        let monitors = (0..MONITORS).map(|number| format!("sys/class/hwmon/hwmon{number}"));
        let mut fans = monitors.filter(|at| self.text(&format!("{at}/name")).is_some_and(|name| name == "pwmfan"));
        let value = self.number(&format!("{}/pwm1", fans.next()?))?;
        Some((value as u32).min(FULL) * 100 / FULL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(files: &[(&str, &[u8])]) -> (Board, PathBuf) {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("tegrarm-nvml-board-{}-{number}", std::process::id()));
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (Board(root.clone()), root)
    }

    #[test]
    fn everything_a_board_says() {
        let mut reg = Vec::new();
        for (address, size) in [(0x8000_0000_u64, 0x7e00_0000_u64), (0x1_0000_0000, 0x7_8000_0000)] {
            reg.extend(address.to_be_bytes());
            reg.extend(size.to_be_bytes());
        }
        let (board, root) = board(&[
            ("proc/device-tree/serial-number", b"1421022000000\0"),
            ("proc/device-tree/memory@80000000/reg", &reg),
            ("sys/kernel/debug/bpmp/debug/clk/emc/rate", b"3199000000\n"),
            ("sys/kernel/debug/bpmp/debug/clk/emc/max_rate", b"3199000000\n"),
            ("sys/kernel/actmon_avg_activity/mc_all", b"800000\n"),
            ("sys/class/devfreq/17000000.gpu/available_frequencies", b"306000000 1300500000\n"),
            ("sys/class/hwmon/hwmon0/name", b"ina3221\n"),
            ("sys/class/hwmon/hwmon2/name", b"pwmfan\n"),
            ("sys/class/hwmon/hwmon2/pwm1", b"128\n"),
        ]);
        assert_eq!(board.serial().as_deref(), Some("1421022000000"));
        assert_eq!(board.installed_memory(), Some(0x7_fe00_0000));
        assert_eq!((board.memory_clock(), board.highest_memory_clock()), (Some(3_199_000_000), Some(3_199_000_000)));
        assert_eq!((board.memory_load(), board.fan()), (Some(25), Some(50)));
        assert_eq!(board.clocks(), Some(vec![306_000_000, 1_300_500_000]));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_is_not_there_is_not_known() {
        let (board, root) =
            board(&[("proc/device-tree/serial-number", b"\0"), ("sys/class/hwmon/hwmon0/name", b"pwmfan")]);
        assert_eq!((board.serial(), board.installed_memory(), board.memory_clock()), (None, None, None));
        assert_eq!((board.memory_load(), board.fan(), board.clocks()), (None, None, None));
        fs::remove_dir_all(root).unwrap();
    }
}
