//! The processes that use the GPU, and the memory that they have of it.
//!
//! Processes of libtegrarm show a file for this (`crates/tegrarm-kmd/src/tally.rs`). Others are known by the names of their descriptors, and
//! nvmap says in debugfs, where root can read it, how much memory they have.
//!
//! To look at the descriptors of all processes takes milliseconds. The first look does it. Later ones look at new processes and at a few of
//! the others, because a process may begin to use the GPU, or stop, at any time. The files that were found are read each time.
//!
//! Programs below `tegrarm-sim run` share a mount namespace, which other boards on the same computer do not have. Only they are looked at.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The name that the links to the file of a process of libtegrarm have, its first word, and the source that counts memory.
const TALLY: &str = "memfd:tegrarm-counters";
const MAGIC: u64 = u64::from_le_bytes(*b"tegrarm1");
const MEMORY: u64 = 3;
/// What the names of nvgpu's descriptors of channels lack.
const NO_CHANNEL: [&str; 8] = ["-tsg-", "-as-", "-nvmap-", "-dbg-", "-prof-", "-sched-", "-nvsched-", "-ctxsw-"];
/// Where nvmap says which process has how much memory.
const NVMAP: &str = "sys/kernel/debug/nvmap/iovmm/clients";
/// The variable that `tegrarm-sim run` sets for its programs.
const SIMULATED: &str = "TEGRARM_SIM_RUN";
/// How many processes a look asks again that were asked before.
const AGAIN: usize = 24;

/// A process that uses the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Its number.
    pub process: u32,
    /// The bytes of memory that it has, if that is known.
    pub bytes: Option<u64>,
}

/// What was found out about a process.
#[derive(Debug, Default)]
struct Known {
    /// The files that count its memory.
    files: Vec<PathBuf>,
    /// Whether it has a channel.
    channel: bool,
    /// The look at which its descriptors were listed.
    listed: u64,
}

/// The processes, as they were at the last look.
#[derive(Debug)]
pub struct Clients {
    root: PathBuf,
    /// The mount namespace in which processes must be, on a simulated board.
    within: Option<PathBuf>,
    known: HashMap<u32, Known>,
    looks: u64,
}

impl Default for Clients {
    fn default() -> Clients {
        let simulated = std::env::var_os(SIMULATED).is_some();
        let within = if simulated { fs::read_link("/proc/self/ns/mnt").ok() } else { None };
        Clients { root: PathBuf::from("/"), within, known: HashMap::new(), looks: 0 }
    }
}

impl Clients {
    /// Looks at the processes, and returns those that use the GPU, in the order of their numbers.
    pub fn look(&mut self) -> Vec<Client> {
        self.looks += 1;
        let processes = self.processes();
        self.known.retain(|process, _| processes.binary_search(process).is_ok());
        for process in self.due(&processes) {
            let known = self.list(process);
            self.known.insert(process, known);
        }
        let told = self.told();
        let mut found = Vec::new();
        for (&process, known) in &self.known {
            let counted: Vec<_> = known.files.iter().filter_map(|file| self.counted(process, file)).collect();
            let bytes = match counted.is_empty() {
                false => Some(counted.iter().sum()),
                true => told.get(&process).copied(),
            };
            if known.channel || bytes.is_some_and(|bytes| bytes > 0) && !known.files.is_empty() {
                found.push(Client { process, bytes });
            }
        }
        found.sort_by_key(|client| client.process);
        found
    }

    /// The numbers of all processes, sorted.
    fn processes(&self) -> Vec<u32> {
        let entries = fs::read_dir(self.root.join("proc")).into_iter().flatten().flatten();
        let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The processes whose descriptors are listed in this look.
    fn due(&self, processes: &[u32]) -> Vec<u32> {
        let mut due: Vec<u32> = processes.iter().filter(|process| !self.known.contains_key(process)).copied().collect();
        let mut others: Vec<_> = self.known.iter().collect();
        others.sort_unstable_by_key(|(process, known)| (known.listed, std::cmp::Reverse(**process)));
        due.extend(others.into_iter().take(AGAIN).map(|(process, _)| *process));
        due
    }

    /// Lists the descriptors of a process. Those of other users' processes are seen only with rights.
    fn list(&self, process: u32) -> Known {
        let mut known = Known { listed: self.looks, ..Known::default() };
        let namespace = || fs::read_link(self.root.join(format!("proc/{process}/ns/mnt"))).ok();
        if self.within.is_some() && namespace() != self.within {
            return known;
        }
        let entries = fs::read_dir(self.root.join(format!("proc/{process}/fd"))).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let Ok(target) = fs::read_link(&path) else { continue };
            let target = target.to_string_lossy();
            if target.contains(TALLY) {
                known.files.push(path);
            } else {
                known.channel |= is_channel(&target);
            }
        }
        known
    }

    /// The memory that a file counts, if it is the process's own. A forked child has its parent's file, too.
    fn counted(&self, process: u32, file: &Path) -> Option<u64> {
        let mut bytes = [0; 32];
        fs::File::open(file).ok()?.read_exact_at(&mut bytes, 0).ok()?;
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[8 * at + byte]));
        let own = word(0) == MAGIC && word(2) == MEMORY && word(1) == u64::from(self.own_number(process));
        own.then(|| word(3))
    }

    /// The number of a process as it knows it, which is another one in a container.
    fn own_number(&self, process: u32) -> u32 {
        let status = fs::read_to_string(self.root.join(format!("proc/{process}/status"))).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.and_then(|numbers| numbers.split_whitespace().last()?.parse().ok()).unwrap_or(process)
    }

    /// What nvmap says, if this process may read it: bytes by process.
    fn told(&self) -> HashMap<u32, u64> {
        let text = fs::read_to_string(self.root.join(NVMAP)).unwrap_or_default();
        let mut found = HashMap::new();
        for words in text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
            // The kind of client, the name of the process (which may have spaces), its number, and kibibytes.
            let [_, .., process, size] = words[..] else { continue };
            if let (Ok(process), Some(Ok(kib))) = (process.parse(), size.strip_suffix('K').map(str::parse::<u64>)) {
                *found.entry(process).or_insert(0) += kib << 10;
            }
        }
        found
    }
}

/// Whether a descriptor with this name is a channel: `nvgpu-…-fd12`, `nvhost-…-fd12`.
fn is_channel(name: &str) -> bool {
    let Some(at) = name.find("nvgpu-").or_else(|| name.find("nvhost-")) else { return false };
    let number = name.rsplit_once("-fd").map(|(_, number)| number.trim_end_matches(" (deleted)"));
    let is_descriptor =
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    is_descriptor && NO_CHANNEL.iter().all(|kind| !name[at..].contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A directory with processes: their numbers, and the names and contents of their descriptors.
    struct System(PathBuf);

    impl System {
        fn new(name: &str) -> System {
            System(std::env::temp_dir().join(format!("tegrarm-nvml-clients-{}-{name}", std::process::id())))
        }

        fn process(&self, number: u32, own: u32, links: &[&str]) {
            let at = self.0.join(format!("proc/{number}"));
            fs::create_dir_all(at.join("fd")).unwrap();
            fs::write(at.join("status"), format!("Name:\tx\nNSpid:\t{number}\t{own}\n")).unwrap();
            for (descriptor, link) in links.iter().enumerate() {
                let _ = fs::remove_file(at.join(format!("fd/{descriptor}")));
                symlink(link, at.join(format!("fd/{descriptor}"))).unwrap();
            }
        }

        /// The file of a process, whose link has the name that the kernel gives.
        fn tally(&self, owner: u64, source: u64, bytes: u64) -> String {
            let path = self.0.join(format!("memfd:tegrarm-counters-{owner}-{source}"));
            fs::create_dir_all(&self.0).unwrap();
            fs::write(&path, [MAGIC, owner, source, bytes].map(u64::to_ne_bytes).as_flattened()).unwrap();
            path.to_string_lossy().into_owned()
        }

        fn clients(&self) -> Clients {
            Clients { root: self.0.clone(), within: None, known: HashMap::new(), looks: 0 }
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn client(process: u32, bytes: Option<u64>) -> Client {
        Client { process, bytes }
    }

    #[test]
    fn processes_are_found_in_each_way() {
        let system = System::new("ways");
        let (memory, launches) = (system.tally(10, 3, 4096), system.tally(10, 1, 77));
        system.process(10, 10, &["/dev/null", &memory, &launches, "anon_inode:nvhost-gpu-fd7"]);
        // In a container the process has another number. It has opened nothing of the GPU but memory.
        system.process(20, 2, &[&system.tally(2, 3, 8192)]);
        // A forked child has its parent's file.
        system.process(11, 11, &[&memory]);
        system.process(30, 30, &["/dev/nvgpu-fd7", "anon_inode:nvgpu-tsg-fd7"]);
        system.process(31, 31, &["anon_inode:nvgpu-tsg-fd7", "anon_inode:[eventfd]"]);
        system.process(40, 40, &[&system.tally(40, 3, 0)]);
        let mut clients = system.clients();
        assert_eq!(clients.look(), [client(10, Some(4096)), client(20, Some(8192)), client(30, None)]);
        let debug = system.0.join(NVMAP);
        fs::create_dir_all(debug.parent().unwrap()).unwrap();
        fs::write(debug, "CLIENT   PROCESS   PID   SIZE\nuser     a b   30   12K\nuser   x   31   8K\ntotal     20K\n")
            .unwrap();
        assert_eq!(clients.look(), [client(10, Some(4096)), client(20, Some(8192)), client(30, Some(12288))]);
    }

    #[test]
    fn processes_come_and_go_and_begin_late() {
        let system = System::new("late");
        (100..200).for_each(|process| system.process(process, process, &["/dev/null"]));
        let mut clients = system.clients();
        assert_eq!(clients.look(), []);
        system.process(150, 150, &["/dev/null", &system.tally(150, 3, 1)]);
        system.process(300, 300, &[&system.tally(300, 3, 2)]);
        assert_eq!(clients.look().last(), Some(&client(300, Some(2))));
        (0..100 / AGAIN + 1).for_each(|_| drop(clients.look()));
        assert_eq!(clients.look(), [client(150, Some(1)), client(300, Some(2))]);
        fs::remove_dir_all(system.0.join("proc/150")).unwrap();
        assert_eq!(clients.look(), [client(300, Some(2))]);
    }

    #[test]
    fn a_simulated_board_has_the_processes_of_its_namespace() {
        let system = System::new("namespace");
        for process in [1, 2] {
            system.process(process, process, &["anon_inode:nvgpu-fd7"]);
            fs::create_dir_all(system.0.join(format!("proc/{process}/ns"))).unwrap();
            symlink(format!("mnt:[{process}]"), system.0.join(format!("proc/{process}/ns/mnt"))).unwrap();
        }
        assert_eq!(system.clients().look(), [client(1, None), client(2, None)]);
        let mut inside = Clients { within: Some("mnt:[2]".into()), ..system.clients() };
        assert_eq!(inside.look(), [client(2, None)]);
    }

    #[test]
    fn the_names_of_channels() {
        for name in ["anon_inode:nvhost-gpu-fd12", "anon_inode:nvgpu-channel-fd3", "/memfd:nvgpu-ga10b-fd3 (deleted)"] {
            assert!(is_channel(name), "{name}");
        }
        for name in ["anon_inode:nvgpu-tsg-fd3", "nvhost-as-fd3", "/dev/nvgpu/igpu0/ctrl", "nvgpu-x-fd", "/srv/xnvgpu"]
        {
            assert!(!is_channel(name), "{name}");
        }
    }
}
