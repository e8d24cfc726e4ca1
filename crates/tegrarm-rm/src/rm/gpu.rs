//! The GPU, which all clients share.

use super::power::PowerLedger;
use crate::status::{During, RmResult};
use crate::tegra::{Characteristics, Ctrl, EngineInfo, Host1x, Nvmap, Topology};
use once_cell::sync::OnceCell;
use std::sync::Arc;
use tegrarm_kmd::{Errno, FaultDetails, Insights, Kmd};

/// RM's number of the only GPU that a Tegra has. Its device, subdevice and board numbers are all 0 or this number.
pub const GPU_ID: u32 = 0x100;

/// The open nodes and the answers that were asked of them. It lives for as long as a client does.
pub struct Gpu {
    /// The ctrl node.
    pub ctrl: Ctrl,
    /// The nvmap client.
    pub nvmap: Arc<Nvmap>,
    /// The states in which profilers need the GPU's power features.
    pub power: PowerLedger,
    topology: OnceCell<Topology>,
    engines: OnceCell<Vec<EngineInfo>>,
    /// The node that makes sync files. It is opened at the first use.
    pub(super) sync_files: OnceCell<Host1x>,
}

impl Gpu {
    /// Opens the nodes.
    ///
    /// # Errors
    /// CARD_NOT_PRESENT when a node is missing, INSUFFICIENT_PERMISSIONS when it may not be opened; the sentence says
    /// what to do.
    pub fn open(kmd: &Arc<dyn Kmd>) -> RmResult<Gpu> {
        let ctrl = Ctrl::open(kmd).map_err(|e| explain(e, kmd.is_simulated()))?;
        let nvmap = Nvmap::open(kmd, ctrl.release()).map_err(|e| explain(e, kmd.is_simulated()))?;
        Ok(Gpu {
            ctrl,
            nvmap,
            power: PowerLedger::default(),
            topology: OnceCell::new(),
            engines: OnceCell::new(),
            sync_files: OnceCell::new(),
        })
    }

    /// The GPU's characteristics, as nvgpu reports them.
    pub fn characteristics(&self) -> &Characteristics {
        self.ctrl.characteristics()
    }

    /// The kernel below.
    pub fn kmd(&self) -> &Arc<dyn Kmd> {
        self.ctrl.kmd()
    }

    /// The GPU's processors. The kernel is asked for them once.
    ///
    /// # Errors
    /// That of the query.
    pub fn topology(&self) -> RmResult<&Topology> {
        self.topology.get_or_try_init(|| self.ctrl.topology()).during(|| "asking the GPU for its SMs")
    }

    /// The GPU's engines. The kernel is asked for them once.
    ///
    /// # Errors
    /// That of the query.
    pub fn engines(&self) -> RmResult<&[EngineInfo]> {
        let engines = self.engines.get_or_try_init(|| self.ctrl.engines());
        engines.map(Vec::as_slice).during(|| "asking the GPU for its engines")
    }

    /// The 16 bytes that identify this GPU and never change: RM's SHA-1 style identifier.
    pub fn uuid(&self) -> [u8; 16] {
        let c = self.characteristics();
        let mut uuid = [0u8; 16];
        uuid[..8].copy_from_slice(&c.per_device_identifier.to_be_bytes());
        uuid[8..12].copy_from_slice(&c.arch.to_be_bytes());
        uuid[12..16].copy_from_slice(&c.impl_.to_be_bytes());
        uuid
    }

    /// The chip's name, as the kernel spells it.
    pub fn chip(&self) -> String {
        let name = self.characteristics().chipname;
        let len = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..len]).into_owned()
    }

    /// Details of the newest fault that stopped a channel, if the kernel tells them. `None` on a board.
    pub fn insight(&self, channel: u32) -> Option<FaultDetails> {
        self.kmd().fault_details(channel)
    }

    /// One figure of `/proc/meminfo`, in bytes.
    ///
    /// # Errors
    /// OPERATING_SYSTEM when the file cannot be read or does not name it.
    pub fn meminfo(&self, key: &str) -> RmResult<u64> {
        meminfo(&**self.kmd(), [key]).map(|[bytes]| bytes)
    }
}

/// Figures of `/proc/meminfo`, in bytes.
///
/// # Errors
/// OPERATING_SYSTEM when the file cannot be read or does not name one of them.
pub(super) fn meminfo<const N: usize>(kmd: &dyn Kmd, keys: [&str; N]) -> RmResult<[u64; N]> {
    let path = "/proc/meminfo";
    let text = kmd.read_text(path).map_err(|e| crate::tegra::KernelError::new(format!("reading {path}"), e))?;
    let mut found = [0; N];
    for (bytes, key) in found.iter_mut().zip(keys) {
        let kib = text.lines().find_map(|line| {
            let value = line.strip_prefix(key)?.strip_prefix(':')?;
            value.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
        });
        let missing = || crate::tegra::KernelError::new(format!("finding {key} in {path}"), Errno::ENODATA);
        *bytes = kib.ok_or_else(missing)? * 1024;
    }
    Ok(found)
}

/// Adds what a user can do about it.
fn explain(e: crate::tegra::KernelError, simulated: bool) -> crate::status::RmError {
    let advice = match e.errno {
        _ if simulated => {
            "the simulated GPU needs memfd_create, threads and descriptors; a sandbox or a limit of this process refuses one"
        }
        Errno::ENOENT => {
            "this is no Jetson, or its GPU driver is not loaded; TEGRARM_BACKEND=sim uses a simulated GPU instead"
        }
        Errno::EACCES | Errno::EPERM => {
            "add the user to the groups video and render, or run as root; TEGRARM_BACKEND=sim uses a simulated GPU instead"
        }
        _ => "the Jetson GPU cannot be used; TEGRARM_BACKEND=sim uses a simulated GPU instead",
    };
    let mut error = crate::status::RmError::from(e);
    error.text = format!("{}; {advice}", error.text);
    error
}
