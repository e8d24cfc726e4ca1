//! A board on which something does not work, for programs that must report it: nodes that are missing or may not be
//! opened, and a GPU that cannot be powered.

use tegrarm_kmd::{Errno, Node};

/// The things that do not work. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct Broken {
    /// Nodes, files and directories that are missing, with everything below them.
    pub missing: Vec<String>,
    /// Nodes that the program may not open.
    pub denied: Vec<String>,
    /// The GPU cannot be powered: every ioctl on one of its nodes fails (docs/hardware/nvgpu-overview.md#power-reference).
    pub dead: bool,
}

impl Broken {
    /// Whether a file of the board is missing.
    pub fn lacks(&self, path: &str) -> bool {
        names(&self.missing, path)
    }

    /// Checks whether a node may be opened.
    ///
    /// # Errors
    /// `ENOENT` and `EACCES`, as a kernel gives them.
    pub fn opening(&self, path: &str) -> Result<(), Errno> {
        if self.lacks(path) {
            return Err(Errno::ENOENT);
        }
        if names(&self.denied, path) { Err(Errno::EACCES) } else { Ok(()) }
    }

    /// Checks whether an ioctl reaches its device.
    ///
    /// # Errors
    /// `ENODEV` on a node of a GPU that cannot be powered. nvmap is another device.
    pub fn ioctl(&self, node: Node) -> Result<(), Errno> {
        let gpu = !matches!(node, Node::Nvmap | Node::Dmabuf | Node::SyncFile | Node::Host1x);
        if self.dead && gpu { Err(Errno::ENODEV) } else { Ok(()) }
    }
}

/// Whether one of `places` is `path` or a directory above it.
fn names(places: &[String], path: &str) -> bool {
    places
        .iter()
        .map(|place| place.trim_end_matches('/'))
        .any(|place| path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stands_for_what_is_below_it_and_nothing_else() {
        let broken = Broken { missing: vec!["/dev/nvgpu/".into()], denied: vec!["/dev/nvmap".into()], dead: false };
        assert_eq!(broken.opening("/dev/nvgpu/igpu0/ctrl"), Err(Errno::ENOENT));
        assert_eq!(broken.opening("/dev/nvmap"), Err(Errno::EACCES));
        assert_eq!(broken.opening("/dev/nvmap2"), Ok(()));
        assert_eq!(broken.opening("/dev/nvhost-gpu"), Ok(()));
    }

    #[test]
    fn a_dead_gpu_leaves_nvmap_alone() {
        let broken = Broken { dead: true, ..Broken::default() };
        assert_eq!(broken.ioctl(Node::Ctrl), Err(Errno::ENODEV));
        assert_eq!(broken.ioctl(Node::Nvmap), Ok(()));
        assert_eq!(Broken::default().ioctl(Node::Ctrl), Ok(()));
    }
}
