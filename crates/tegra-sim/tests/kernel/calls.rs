//! Every row of the kernel's tables of ioctls is called, and answered, in a test of this program.

use crate::support::noting::NOTES;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// The rows that never answer with success, each with its reason.
const REFUSED: &[(&str, &str)] = &[
    ("NVGPU_GPU_IOCTL_PREPARE_COMPRESSIBLE_READ", "no buffer is compressible"),
    ("NVGPU_GPU_IOCTL_MARK_COMPRESSIBLE_WRITE", "no buffer is compressible"),
    ("NVGPU_GPU_IOCTL_WAIT_FOR_PAUSE", "ga10b has no hook for it"),
    ("NVGPU_GPU_IOCTL_RESUME_FROM_PAUSE", "ga10b has no hook for it"),
    ("NVGPU_GPU_IOCTL_TRIGGER_SUSPEND", "ga10b has no hook for it"),
    ("NVGPU_GPU_IOCTL_ALLOC_VIDMEM", "an integrated GPU has no memory of its own"),
    ("NVGPU_GPU_IOCTL_GET_EVENT_FD", "the chips have no such events"),
    ("NVGPU_GPU_IOCTL_GET_MEMORY_STATE", "an integrated GPU has no memory of its own"),
    ("NVGPU_GPU_IOCTL_GET_VOLTAGE", "the chips have no such sensor"),
    ("NVGPU_GPU_IOCTL_GET_CURRENT", "the chips have no such sensor"),
    ("NVGPU_GPU_IOCTL_GET_POWER", "the chips have no such sensor"),
    ("NVGPU_GPU_IOCTL_GET_TEMPERATURE", "the chips have no such sensor"),
    ("NVGPU_GPU_IOCTL_SET_THERM_ALERT_LIMIT", "the chips have no such sensor"),
    ("NVGPU_IOCTL_CHANNEL_SET_BOOSTED_CTX", "ga10b has no hook for it"),
    ("NVGPU_IOCTL_CHANNEL_RESCHEDULE_RUNLIST", "ga10b has no hook for it"),
    ("NVGPU_DBG_GPU_IOCTL_PC_SAMPLING", "ga10b has no hook for it"),
    ("NVGPU_DBG_GPU_IOCTL_CYCLE_STATS", "not simulated, and it says so"),
    ("NVGPU_DBG_GPU_IOCTL_CYCLE_STATS_SNAPSHOT", "not simulated, and it says so"),
    ("NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT_SIZE", "not simulated, and it says so"),
    ("NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT", "not simulated, and it says so"),
    ("NVGPU_NVS_CTRL_FIFO_IOCTL_ENABLE_EVENT", "the driver has not written it"),
    ("NVMAP_IOC_FROM_IVC_ID", "no other operating system shares memory"),
    ("NVMAP_IOC_GET_SCIIPCID", "there is no SciIPC"),
    ("NVMAP_IOC_HANDLE_FROM_SCIIPCID", "there is no SciIPC"),
    ("NVMAP_IOC_GET_SCIIPCID_R35", "there is no SciIPC"),
    ("NVMAP_IOC_HANDLE_FROM_SCIIPCID_R35", "there is no SciIPC"),
    ("NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST", "not simulated, and it says so"),
];

/// Runs all other tests again, in a process that notes what is answered. The name of a call in a test's text would
/// prove nothing.
#[test]
fn every_ioctl_is_answered_in_a_test() {
    let notes = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("calls.{}", std::process::id()));
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--skip", "every_ioctl_is_answered_in_a_test"])
        .env(NOTES, &notes)
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
    let noted = std::fs::read_to_string(&notes).unwrap();
    std::fs::remove_file(&notes).unwrap();
    let calls: BTreeSet<(u32, bool)> = noted.lines().map(note).collect();
    let ioctls = tegra_kernel::ioctls();
    assert!(ioctls.len() > 150, "{ioctls:?}");
    let refused = |name: &str| REFUSED.iter().any(|(refused, _)| *refused == name);
    let seen = |name: &str, number| calls.contains(&(number, !refused(name)));
    let unseen: Vec<&str> = ioctls.iter().filter(|(name, number)| !seen(name, *number)).map(|row| row.0).collect();
    assert!(unseen.is_empty(), "no test sees these answered, or refused where REFUSED has them: {unseen:?}");
    let wrong: Vec<&str> =
        ioctls.iter().filter(|row| refused(row.0) && calls.contains(&(row.1, true))).map(|row| row.0).collect();
    assert!(wrong.is_empty(), "REFUSED has these, and a test sees them succeed: {wrong:?}");
    let gone: Vec<&str> =
        REFUSED.iter().map(|row| row.0).filter(|name| !ioctls.iter().any(|row| row.0 == *name)).collect();
    assert!(gone.is_empty(), "REFUSED has these, the kernel has not: {gone:?}");
}

/// Reads a line of the notes: a request, and whether it succeeded.
fn note(line: &str) -> (u32, bool) {
    let (request, succeeded) = line.split_once(' ').unwrap();
    (request.parse().unwrap(), succeeded.parse().unwrap())
}
