//! Which files the supervised processes still hold.
//!
//! Nobody tells a supervisor when a descriptor is closed: closes are too frequent to trap. So before anything
//! whose outcome depends on it (a new object, a process's end) the descriptor tables of all descendants are
//! read, and files that nobody holds any more end.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use tegra_kernel::process::FileId;

/// Every process below `pid`, itself not included. Orphans count: the supervisor is their subreaper.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut found: Vec<i32> = children(pid);
    let mut next = 0;
    while next < found.len() {
        let more = children(found[next]);
        found.extend(more);
        next += 1;
    }
    found
}

/// The processes that `pid`'s threads started and that have not been waited for.
fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return vec![] };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|c| c.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Identities of all files that `pids` have open.
pub fn open_files(pids: &[i32]) -> HashSet<FileId> {
    pids.iter()
        .filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).ok())
        .flat_map(|fds| fds.flatten().filter_map(|fd| std::fs::metadata(fd.path()).ok()))
        .map(|file| FileId { dev: file.dev(), ino: file.ino() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_and_its_files_are_found() {
        let file = tegra_mm::memfd::create("held-by-a-child", 0).unwrap();
        let id = FileId::of(&file).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").stdin(file).spawn().unwrap();
        let me = std::process::id() as i32;
        let seen = descendants(me);
        let held = open_files(&[child.id() as i32]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seen.contains(&(child.id() as i32)));
        assert!(held.contains(&id));
    }
}
