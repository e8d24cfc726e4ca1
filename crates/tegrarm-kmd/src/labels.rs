//! Names for file descriptors, such as `ctrl#1` and `channel#2`. Descriptor numbers differ between runs, and these
//! names do not.

use std::collections::HashMap;
use std::os::fd::RawFd;

/// The descriptors that are known so far.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    by_fd: HashMap<RawFd, String>,
    made: HashMap<String, u32>,
}

impl Labels {
    /// Names a new descriptor. If the number was known before, it was closed by a call that the recorder has not seen,
    /// and it gets a new name.
    pub(crate) fn add(&mut self, fd: RawFd, kind: &str) -> String {
        let count = self.made.entry(kind.to_owned()).or_default();
        *count += 1;
        let label = format!("{kind}#{count}");
        self.by_fd.insert(fd, label.clone());
        label
    }

    /// Registers a descriptor under a name that a recording gives it.
    pub(crate) fn assign(&mut self, fd: RawFd, label: &str) {
        self.by_fd.insert(fd, label.to_owned());
    }

    /// The name of a descriptor. A descriptor that no recorded call made is `foreign-KIND#n`, numbered in order of
    /// appearance.
    pub(crate) fn of(&mut self, fd: RawFd, kind: &str) -> String {
        match self.by_fd.get(&fd) {
            Some(label) => label.clone(),
            None => self.add(fd, &format!("foreign-{kind}")),
        }
    }

    /// Forgets a descriptor that is being closed and returns its name.
    pub(crate) fn remove(&mut self, fd: RawFd, kind: &str) -> String {
        let label = self.of(fd, kind);
        self.by_fd.remove(&fd);
        label
    }
}

/// The kind of an opened node, for its label. It is the last component of the path.
pub(crate) fn kind_of_path(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_per_kind_and_survive_reuse_of_a_number() {
        let mut labels = Labels::default();
        assert_eq!(labels.add(5, "ctrl"), "ctrl#1");
        assert_eq!(labels.add(6, "dmabuf"), "dmabuf#1");
        assert_eq!(labels.remove(6, "dmabuf"), "dmabuf#1");
        assert_eq!(labels.add(6, "dmabuf"), "dmabuf#2");
        assert_eq!(labels.of(6, "ctrl"), "dmabuf#2");
        assert_eq!(labels.of(77, "dmabuf"), "foreign-dmabuf#1");
        assert_eq!(labels.of(77, "dmabuf"), "foreign-dmabuf#1");
    }

    #[test]
    fn paths_name_their_node() {
        assert_eq!(kind_of_path("/dev/nvgpu/igpu0/ctrl"), "ctrl");
        assert_eq!(kind_of_path("/dev/nvmap"), "nvmap");
        assert_eq!(kind_of_path("/"), "file");
    }
}
