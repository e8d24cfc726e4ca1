//! How much memory the machine has that runs the simulator: all of it, or what a container or a service may use.

use std::fs::read_to_string;
use std::path::Path;

/// The physical memory in bytes, or less if a control group of this process has a limit. Beyond the limit Linux kills processes, and the
/// simulator refuses a buffer before.
pub(crate) fn memory() -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?.trim().strip_suffix(" kB")?.parse().ok()?;
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    Some(limit(Path::new("/sys/fs/cgroup"), &groups).unwrap_or(u64::MAX).min(kib << 10))
}

/// The least limit of the groups that `/proc/self/cgroup` lists, and of all above them. `root` is where their files are. In a container,
/// the group of the process is often the root itself.
fn limit(root: &Path, groups: &str) -> Option<u64> {
    let of_group = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/').to_owned());
        // Version 2 has one hierarchy without a name, and version 1 one for each controller.
        let (top, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        let group = top.join(path);
        let above = group.ancestors().take_while(|place| place.starts_with(&top));
        above.filter_map(|place| read_to_string(place.join(file)).ok()?.trim().parse::<u64>().ok()).min()
    };
    groups.lines().filter_map(of_group).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn the_least_limit_of_all_groups_above_counts() {
        let root = std::env::temp_dir().join(format!("tegra-kernel-cgroup-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            create_dir_all(root.join(path)).unwrap();
            let file = if path.starts_with("memory") { "memory.limit_in_bytes" } else { "memory.max" };
            write(root.join(path).join(file), text).unwrap();
        };
        put("user.slice/app", "max\n");
        put("user.slice", "1073741824\n");
        put("memory/docker/1", "9223372036854771712\n");
        put("memory", "536870912\n");
        let all = "9:name=systemd:/\n5:memory:/docker/1\n0::/user.slice/app\n";
        assert_eq!(limit(&root, all), Some(512 << 20));
        assert_eq!(limit(&root, "0::/user.slice/app\n"), Some(1 << 30));
        assert_eq!(limit(&root, "0::/gone/of/another/namespace\n"), None);
        assert_eq!((limit(&root, "0::/\n"), limit(&root, "nothing\n"), limit(&root, "")), (None, None, None));
        std::fs::remove_dir_all(root).unwrap();
    }
}
