//! What a kernel can tell beyond nvgpu's interface. The virtual Orin tells it in files that a board does not
//! have, and takes the names of GPU code in another.

use crate::{Kmd, devfreq};

/// The file with the newest faults, in the directory of the GPU's device. A board does not have it.
const FILE: &str = "device/tegra_sim_faults";
/// The file with the reports of the checker, each of which is read once.
const REPORTS: &str = "device/tegra_sim_checks";
/// The file to which a program writes the names of its GPU code. What can be read from it is what else the kernel has a use for.
const NAMES: &str = "device/tegra_sim_names";

/// Details of a fault. A detail that the fault does not have is 0, empty or `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultDetails {
    /// The line of the kernel's log.
    pub log: String,
    /// The warp, if an instruction failed.
    pub warp: Option<WarpDetails>,
    /// The address that was accessed, and the number of bytes, which is 0 if it is not known.
    pub access: Option<(u64, u32)>,
}

/// A warp at the instruction that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarpDetails {
    /// The block.
    pub block: [u32; 3],
    /// The index of the warp in it.
    pub index: u32,
    /// The lanes that executed the instruction.
    pub lanes: u32,
    /// Whether it is known which lane's access failed.
    pub is_one_lane: bool,
    /// The thread in that lane. If the lane is not known, it is the thread in the first lane that executed the instruction.
    pub thread: [u32; 3],
    /// The address of the instruction. For a jump to an address without code it is that of the jump.
    pub pc: u64,
    /// The address at which the grid began.
    pub kernel: u64,
    /// The instruction.
    pub instruction: String,
    /// How many bytes of shared memory the block has.
    pub shared: u32,
}

/// What a kernel can tell beyond nvgpu's interface. Every method answers `None` on a board.
///
/// It is made of the calls of [`Kmd`], so a recording of a kernel that tells more answers as that kernel did.
/// [`Kmd::examines_code`] says whether there can be reports.
pub trait Insights {
    /// The details of the newest fault that stopped a channel.
    fn fault_details(&self, channel: u32) -> Option<FaultDetails>;

    /// What the work of a channel waits for that does not come, as far as the kernel knows.
    fn waits_for(&self, channel: u32) -> Option<String>;

    /// The reports about mistakes of GPU code that nobody has read yet, one per line. The addresses in them are those of the GPU. Only
    /// the library knows the names of the code and of the buffers there.
    fn code_reports(&self) -> Option<String>;

    /// What the kernel has a use for of what a program knows. Each call reads it from the kernel, where it never changes.
    fn wanted(&self) -> Option<Wanted>;

    /// Tells the kernel about GPU code, in the lines that `tegra_hw::CodeNames` describes. When this returns, the kernel knows it.
    fn tell_code(&self, lines: &str);

    /// Tells the kernel that so many of the reports that it gave out were known and count no more.
    fn suppress_reports(&self, count: u64);
}

/// What a kernel has a use for of what a program knows. Each of them has the functions of GPU code, with their addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The lines of the source of GPU code.
    pub lines: bool,
    /// The ranges that a program marks.
    pub ranges: bool,
    /// The names of queues.
    pub queues: bool,
    /// What the processor gives to queues and waits for.
    pub waits: bool,
    /// What the processor accesses while it does not know whether the GPU is done with it.
    pub accesses: bool,
}

impl<K: Kmd + ?Sized> Insights for K {
    fn fault_details(&self, channel: u32) -> Option<FaultDetails> {
        let text = self.read_text(&format!("{}/{FILE}", devfreq::directory(self)?)).ok()?;
        text.lines().rev().filter(|line| field(line, "state").is_none()).find_map(|line| parse(line, channel))
    }

    fn waits_for(&self, channel: u32) -> Option<String> {
        let text = self.read_text(&format!("{}/{FILE}", devfreq::directory(self)?)).ok()?;
        let is_it = |line: &&str| field(line, "channel").and_then(|n| n.parse().ok()) == Some(channel);
        let line = text.lines().rev().find(is_it).filter(|line| field(line, "state") == Some("waits"))?;
        field(line, "text").map(str::to_owned)
    }

    fn code_reports(&self) -> Option<String> {
        let path = format!("{}/{REPORTS}", devfreq::directory(self)?);
        read(self, &path).filter(|text| !text.is_empty())
    }

    fn wanted(&self) -> Option<Wanted> {
        if !self.names_code() {
            return None;
        }
        let text = read(self, &format!("{}/{NAMES}", devfreq::directory(self)?))?;
        let has = |what: &str| text.split_whitespace().any(|word| word == what);
        let (lines, ranges, queues) = (has("lines"), has("ranges"), has("queues"));
        Some(Wanted { lines, ranges, queues, waits: has("waits"), accesses: has("accesses") })
    }

    fn tell_code(&self, lines: &str) {
        let Some(directory) = devfreq::directory(self) else { return };
        let path = format!("{directory}/{NAMES}");
        // Names are for people. A kernel that does not take them goes on with addresses.
        if self.write_text(&path, lines).is_ok() {
            // Whoever reads the file finds that everything was taken that was written before.
            let _settled = read(self, &path);
        }
    }

    fn suppress_reports(&self, count: u64) {
        let told =
            devfreq::directory(self).map(|place| self.write_text(&format!("{place}/{REPORTS}"), &format!("{count}\n")));
        if let Some(Err(error)) = told {
            tracing::warn!("the kernel counts {count} reports that are suppressed: {error}");
        }
    }
}

/// The text of a file that no board has.
fn read(kmd: &(impl Kmd + ?Sized), path: &str) -> Option<String> {
    // Below `tegrarm-sim run` the file is opened as a node is, so that the supervisor learns of it.
    match kmd.open(path) {
        Ok(file) => std::io::read_to_string(std::fs::File::from(file)).ok(),
        Err(_) => kmd.read_text(path).ok(),
    }
}

/// Whether a call in a recording, by its key, is about the names of GPU code.
pub(crate) fn is_of_names(key: &str) -> bool {
    key.ends_with(NAMES)
}

/// Whether a call in a recording, by its key, reads reports about GPU code.
pub(crate) fn is_of_reports(key: &str) -> bool {
    key.ends_with(REPORTS)
}

/// The value of a key in a line of `key=value` pairs that are separated by tabs.
fn field<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    line.split('\t').find_map(|field| field.strip_prefix(key)?.strip_prefix('='))
}

/// Reads the line of a fault.
fn parse(line: &str, channel: u32) -> Option<FaultDetails> {
    let of = |key: &str| field(line, key);
    if of("channel")?.parse() != Ok(channel) {
        return None;
    }
    let number = |key: &str| -> Option<u64> {
        let text = of(key)?;
        text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
    };
    let small = |key: &str| number(key).and_then(|n| u32::try_from(n).ok());
    let three = |key: &str| {
        let mut numbers = of(key)?.split(',').map_while(|n| n.parse().ok());
        Some([numbers.next()?, numbers.next()?, numbers.next()?])
    };
    let warp = || {
        Some(WarpDetails {
            block: three("block")?,
            index: small("warp")?,
            lanes: small("lanes")?,
            is_one_lane: of("lane").is_some(),
            thread: three("thread")?,
            // Recordings of older versions do not have these two.
            pc: number("pc").unwrap_or(0),
            kernel: number("kernel").unwrap_or(0),
            instruction: of("instruction")?.to_owned(),
            shared: small("shared")?,
        })
    };
    let access = || Some((number("address")?, small("bytes")?));
    Some(FaultDetails { log: of("text")?.to_owned(), warp: warp(), access: access() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_everything_or_less() {
        let line = "channel=3\tblock=1,2,3\tthread=4,5,6\twarp=7\tlanes=0x00000010\tshared=1024\tinstruction=LDG.E R2, [R2.64]\
                    \tlane=4\taddress=0x1234\tbytes=4\ttext=[MMU FAULT] x";
        let found = parse(line, 3).unwrap();
        let warp = found.warp.unwrap();
        assert_eq!((warp.block, warp.thread, warp.index, warp.lanes), ([1, 2, 3], [4, 5, 6], 7, 0x10));
        assert_eq!((warp.instruction.as_str(), warp.shared, warp.is_one_lane), ("LDG.E R2, [R2.64]", 1024, true));
        assert_eq!((found.access, found.log.as_str()), (Some((0x1234, 4)), "[MMU FAULT] x"));
        assert_eq!(parse(line, 2), None);
        let bare = parse("channel=3\ttext=pbdma", 3).unwrap();
        assert_eq!((bare.warp, bare.access, bare.log.as_str()), (None, None, "pbdma"));
        assert_eq!(parse("channel=3", 3), None);
    }

    #[test]
    fn a_replay_has_reports_if_the_recorded_program_read_them() {
        let header = "{\"recording\":2,\"kernel\":\"a kernel\",\"simulated\":true}\n";
        let open = |path: &str| format!("{{\"seq\":1,\"call\":\"open\",\"path\":\"{path}\",\"err\":\"ENOENT\"}}\n");
        let replayed = |path: &str| crate::Replayed::new(format!("{header}{}", open(path)).as_bytes()).unwrap();
        let directory = "/sys/class/devfreq/17000000.gpu";
        assert!(replayed(&format!("{directory}/{REPORTS}")).examines_code());
        assert!(!replayed("/dev/nvmap").examines_code());
    }
}
