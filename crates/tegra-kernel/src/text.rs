//! Text files of the virtual board besides its nodes: devfreq, the GPU's device and meminfo
//! (docs/hardware/nvgpu-nodes.md#sysfs).

mod device;

use super::config::Refusals;
use super::release::L4t;
use super::{Kernel, nodes};
use device::{ATTRIBUTES, Attribute, FAULTS};
use tegrarm_kmd::Errno;

/// A file of the GPU's devfreq directory.
#[derive(Clone, Copy)]
enum DevFreq {
    Current,
    Target,
    Min,
    Max,
    Available,
    Governor,
    Polling,
}

const DEVFREQ: &[(&str, DevFreq)] = &[
    ("cur_freq", DevFreq::Current),
    ("target_freq", DevFreq::Target),
    ("min_freq", DevFreq::Min),
    ("max_freq", DevFreq::Max),
    ("available_frequencies", DevFreq::Available),
    ("governor", DevFreq::Governor),
    ("polling_interval", DevFreq::Polling),
];

impl DevFreq {
    /// Whether the file can be written. Sysfs refuses to open the others for writing, for every user.
    fn writable(self) -> bool {
        matches!(self, DevFreq::Min | DevFreq::Max | DevFreq::Governor)
    }
}

/// A text file under `/sys`.
#[derive(Clone, Copy)]
enum TextFile {
    DevFreq(DevFreq),
    Device(Attribute),
}

impl Kernel {
    /// The GPU's device, as the kernel's log and the directories of sysfs name it.
    pub fn device_name(&self) -> &'static str {
        self.devfreq()
    }

    /// The GPU's directory under `/sys/class/devfreq`.
    fn devfreq(&self) -> &'static str {
        self.board.chip.devfreq[usize::from(self.board.config.l4t.is_r35())]
    }

    fn text_file(&self, path: &str) -> Result<TextFile, Errno> {
        let file = path
            .strip_prefix("/sys/class/devfreq/")
            .and_then(|rest| rest.strip_prefix(self.devfreq()))
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or(Errno::ENOENT)?;
        let found = match file.strip_prefix("device/") {
            Some(file) => ATTRIBUTES.iter().find(|(name, _)| *name == file).map(|(_, file)| TextFile::Device(*file)),
            None => DEVFREQ.iter().find(|(name, _)| *name == file).map(|(_, file)| TextFile::DevFreq(*file)),
        };
        found.ok_or(Errno::ENOENT)
    }

    /// Whether a text file under `/sys` can be written.
    pub fn text_is_writable(&self, path: &str) -> bool {
        self.text_file(path).is_ok_and(|file| match file {
            TextFile::DevFreq(file) => file.writable(),
            TextFile::Device(file) => file.writable(),
        })
    }

    /// Whether a text file under `/sys` is one of a program that knows the virtual board, which opens it for both reading and writing.
    /// It has no contents that stay: whoever reads the checker's reports takes them.
    pub fn text_is_taken(&self, path: &str) -> bool {
        self.text_file(path).is_ok_and(|file| matches!(file, TextFile::Device(Attribute::Checks | Attribute::Names)))
    }

    /// The path of the text file with the newest faults, which no board has.
    pub fn faults_path(&self) -> String {
        format!("/sys/class/devfreq/{}/device/{FAULTS}", self.devfreq())
    }

    /// Calls `watcher` after each change of that file, before a program can learn of the fault in another way.
    pub fn watch_faults(&self, watcher: impl Fn() + Send + Sync + 'static) {
        self.board.hw.faults.watch(watcher);
    }

    /// The paths of the text files under `/sys`.
    pub fn text_paths(&self) -> Vec<String> {
        let attributes = ATTRIBUTES.iter().map(|(name, _)| format!("device/{name}"));
        let names = DEVFREQ.iter().map(|(name, _)| (*name).to_owned()).chain(attributes);
        names.map(|name| format!("/sys/class/devfreq/{}/{name}", self.devfreq())).collect()
    }

    /// The paths of the device nodes.
    pub fn node_paths(&self) -> Vec<String> {
        self.nodes.paths(self.board.config.l4t).collect()
    }

    /// The content of a text file of the board. For a directory it is the list of its entries, one per line.
    ///
    /// # Errors
    /// `ENOENT` for a path that the board does not have.
    pub fn read_text(&self, path: &str) -> Result<String, Errno> {
        match path.trim_end_matches('/') {
            "/proc/meminfo" => return Ok(self.meminfo()),
            "/etc/nv_tegra_release" => return Ok(self.release_file()),
            "/sys/class/devfreq" => {
                return Ok(format!("{}\n", self.devfreq()));
            }
            "/dev/nvgpu/igpu0" => {
                let names = self
                    .nodes
                    .paths(self.board.config.l4t)
                    .filter_map(|p| p.strip_prefix("/dev/nvgpu/igpu0/").map(|n| format!("{n}\n")));
                return Ok(names.collect());
            }
            _ => {}
        }
        let (min, max) = self.board.clocks.limits();
        let hz = |value: u64| format!("{value}\n");
        let file = match self.text_file(path)? {
            TextFile::DevFreq(file) => file,
            TextFile::Device(attribute) => return Ok(attribute.read(self)),
        };
        Ok(match file {
            DevFreq::Current | DevFreq::Target => hz(self.board.clocks.current()),
            DevFreq::Min => hz(min),
            DevFreq::Max => hz(max),
            DevFreq::Available => {
                let steps: Vec<_> = self.board.chip.frequencies.iter().map(u64::to_string).collect();
                format!("{}\n", steps.join(" "))
            }
            DevFreq::Governor => "nvhost_podgov\n".to_owned(),
            DevFreq::Polling => "25\n".to_owned(),
        })
    }

    /// Writes a text file for a process. A rate between two steps is rounded up to a step and stays inside the other limit.
    ///
    /// # Errors
    /// `ENOENT` for a path that the board does not have, `EACCES` for a file that cannot be written, `EINVAL` for text
    /// that is not a number.
    pub fn write_text(&self, process: i32, path: &str, text: &str) -> Result<(), Errno> {
        if nodes::is_power(path) {
            // The GPU of this board is powered up already and never loses power.
            return if ["0", "1", "0\n", "1\n"].contains(&text) { Ok(()) } else { Err(Errno::EINVAL) };
        }
        let file = match self.text_file(path)? {
            TextFile::DevFreq(file) => file,
            TextFile::Device(attribute) => return attribute.write(self, process, text),
        };
        let hz = || text.trim().parse::<u64>().map_err(|_| Errno::EINVAL);
        match file {
            DevFreq::Min => self.board.clocks.set_min(hz()?),
            DevFreq::Max => self.board.clocks.set_max(hz()?),
            DevFreq::Governor if text.trim() == "nvhost_podgov" => {}
            DevFreq::Governor => return Err(Errno::EINVAL),
            _ => return Err(Errno::EACCES),
        }
        Ok(())
    }

    fn meminfo(&self) -> String {
        let (total, available) = self.nodes.nvmap.system_memory();
        let free = if self.board.config.refusals == Refusals::Cve202533177 { available / 8 * 5 } else { available };
        let line = |name: &str, bytes: u64| format!("{name:<16}{:>8} kB\n", bytes >> 10);
        [("MemTotal:", total), ("MemFree:", free), ("MemAvailable:", available)].map(|(n, b)| line(n, b)).concat()
    }

    /// The file in which L4T writes its release.
    fn release_file(&self) -> String {
        let fixed = self.board.config.refusals == Refusals::Cve202533177;
        let (line, revision) = match (self.board.config.l4t, fixed) {
            (L4t::R35, _) => (35, "2.1"),
            (L4t::R35_4, false) => (35, "4.1"),
            (L4t::R35_4, true) => (35, "6.3"),
            (L4t::R36, false) => (36, "4.3"),
            (L4t::R36, true) => (36, "4.7"),
            (L4t::R39, _) => (39, "2.0"),
        };
        format!("# R{line} (release), REVISION: {revision}, GCID: 0, BOARD: generic, EABI: aarch64\n")
    }
}
