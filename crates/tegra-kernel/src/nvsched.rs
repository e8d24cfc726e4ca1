//! Scheduling domains: the node that makes them, and the node of each domain.
//!
//! What the ioctls do comes from nvgpu's `os/linux/ioctl_nvs.c` and `common/nvs`, because the rules file only names
//! these nodes. The time slice of a domain has no effect: channels take turns as they do without domains.

use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use crate::files::OpenFile;
use crate::release::PerRelease;
use std::sync::Arc;
use tegrarm_abi::nvgpu::nvsched::*;
use tegrarm_kmd::{Arg, Errno, Node};
use tegrarm_lock::Mutex;
use zerocopy::{FromZeros, IntoBytes};

pub(super) static TABLE: Table<NvschedFile> = Table {
    magic: NVGPU_NVS_IOCTL_MAGIC as u8,
    last: PerRelease::same(NVGPU_NVS_IOCTL_LAST),
    max_arg: PerRelease::same(NVGPU_NVS_IOCTL_MAX_ARG_SIZE as usize),
    copy_back: CopyBack::Errno,
    rows: rows! {
        ALL NVGPU_NVS_IOCTL_CREATE_DOMAIN => create_domain;
        ALL NVGPU_NVS_IOCTL_REMOVE_DOMAIN => remove_domain;
        ALL NVGPU_NVS_IOCTL_QUERY_DOMAINS => query_domains;
    },
};

/// The open node.
#[derive(Debug)]
pub(super) struct NvschedFile {
    pub domains: Arc<Domains>,
}

impl OpenFile for NvschedFile {
    fn node(&self) -> Option<Node> {
        Some(Node::Nvsched)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run(call, &self, request, arg)
    }
}

/// A scheduling domain. Its open nodes and its groups keep it alive.
#[derive(Debug)]
pub(super) struct Domain {
    name: String,
    id: u64,
    timeslice_ns: u64,
    preempt_grace_ns: u64,
    subscheduler: u32,
}

/// The node of a domain takes no calls. It can be named to groups.
impl OpenFile for Domain {}

/// Every domain, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Domains(Mutex<(u64, Vec<Arc<Domain>>)>);

/// The start of the name of a domain's node, behind the name of the board's directory.
const PREFIX: &str = "nvsched-";

impl Domains {
    /// The domain whose node has this name.
    pub(super) fn find(&self, node: &str) -> Option<Arc<Domain>> {
        let name = node.strip_prefix(PREFIX)?;
        self.0.lock().1.iter().find(|domain| domain.name == name).cloned()
    }

    /// The names of the domains' nodes.
    pub(super) fn nodes(&self) -> Vec<String> {
        self.0.lock().1.iter().map(|domain| format!("{PREFIX}{}", domain.name)).collect()
    }
}

/// Checks a name. It may have letters, digits, `-` and `_`, and at most 32 of them. nvgpu answers EPERM for a longer
/// name.
fn check_name(name: &[u8; 32]) -> Result<String, Errno> {
    let len = name.iter().position(|c| *c == 0);
    let name = &name[..len.unwrap_or(name.len())];
    if !name.iter().all(|c| c.is_ascii_alphanumeric() || b"-_".contains(c)) {
        return Err(Errno::EINVAL);
    }
    if len.is_none() {
        return Err(Errno::EPERM);
    }
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Checks that the node was opened for writing.
fn check_writable(call: &Call<'_>) -> Result<(), Errno> {
    if call.read_only() { Err(Errno::EPERM) } else { Ok(()) }
}

fn create_domain(call: &Call<'_>, file: &Arc<NvschedFile>, args: &mut nvgpu_nvs_ioctl_create_domain) -> Reply {
    check_writable(call)?;
    let asked = &args.domain_params;
    if args.reserved1 != 0 || asked.reserved1 != 0 || asked.reserved2 != 0 || asked.dom_id != 0 {
        return Err(Errno::EINVAL.into());
    }
    let name = check_name(&asked.name)?;
    let mut domains = file.domains.0.lock();
    if domains.1.iter().any(|domain| domain.name == name) {
        return Err(Errno::EEXIST.into());
    }
    domains.0 += 1;
    let domain = Domain {
        name,
        id: domains.0,
        timeslice_ns: asked.timeslice_ns,
        preempt_grace_ns: asked.preempt_grace_ns,
        subscheduler: asked.subscheduler,
    };
    args.domain_params.dom_id = domain.id;
    domains.1.push(Arc::new(domain));
    Ok(())
}

/// Removes a domain. The error is `ENOENT` if it does not exist, and `EBUSY` if a node or a group keeps it.
fn remove_domain(call: &Call<'_>, file: &Arc<NvschedFile>, args: &mut nvgpu_nvs_ioctl_remove_domain) -> Reply {
    check_writable(call)?;
    if args.reserved1 != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut domains = file.domains.0.lock();
    let at = domains.1.iter().position(|domain| domain.id == args.dom_id).ok_or(Errno::ENOENT)?;
    if Arc::strong_count(&domains.1[at]) > 1 {
        return Err(Errno::EBUSY.into());
    }
    domains.1.remove(at);
    Ok(())
}

/// Returns the number of domains, and writes as many of them as fit to the caller's memory.
fn query_domains(call: &Call<'_>, file: &Arc<NvschedFile>, args: &mut nvgpu_nvs_ioctl_query_domains) -> Reply {
    if args.reserved0 != 0 || args.reserved1 != 0 {
        return Err(Errno::EINVAL.into());
    }
    let domains = file.domains.0.lock().1.clone();
    let room = std::mem::replace(&mut args.nr, domains.len() as u32) as usize;
    if args.domains == 0 {
        return Ok(());
    }
    for (at, domain) in (0_u64..).zip(domains.iter().take(room)) {
        let mut entry = nvgpu_nvs_ioctl_domain::new_zeroed();
        entry.name[..domain.name.len()].copy_from_slice(domain.name.as_bytes());
        entry.timeslice_ns = domain.timeslice_ns;
        entry.preempt_grace_ns = domain.preempt_grace_ns;
        entry.subscheduler = domain.subscheduler;
        entry.dom_id = domain.id;
        call.copy_out(args.domains.wrapping_add(at * size_of_val(&entry) as u64), entry.as_bytes())?;
    }
    Ok(())
}
