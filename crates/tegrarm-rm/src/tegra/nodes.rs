//! The paths of the device nodes, and the sentences that say that a node is missing.

use super::KernelError;
use std::sync::Arc;
use tegrarm_kmd::{Errno, File, Kmd, Node};

/// The path of nvmap's node.
pub(super) const NVMAP: &[&str] = &["/dev/nvmap"];
/// The path of the node that makes sync files of syncpoints.
pub(super) const HOST1X: &[&str] = &["/dev/host1x-fence"];
/// The paths of the ctrl node: the name in JetPack 6, then the name in JetPack 5. r36 has both, and old r35 images have
/// only the second.
pub(super) const CTRL: &[&str] = &["/dev/nvgpu/igpu0/ctrl", "/dev/nvhost-ctrl-gpu"];
/// The only node that exists before the GPU's first power-up. Writing "1" to it makes the other nodes appear.
const POWER: &str = "/dev/nvgpu/igpu0/power";

/// Opens the first of `paths` that exists.
pub(super) fn open(kmd: &Arc<dyn Kmd>, node: Node, paths: &[&str]) -> Result<File, KernelError> {
    match open_existing(kmd, node, paths) {
        Err(e) if e.errno == Errno::ENOENT && node == Node::Ctrl && kmd.write_text(POWER, "1").is_ok() => {
            open_existing(kmd, node, paths)
        }
        result => result,
    }
}

fn open_existing(kmd: &Arc<dyn Kmd>, node: Node, paths: &[&str]) -> Result<File, KernelError> {
    let mut failure = KernelError::new(format!("opening {}", paths[0]), Errno::ENOENT);
    for path in paths {
        match File::open(kmd, node, path) {
            Ok(file) => return Ok(file),
            Err(Errno::ENOENT) => {}
            Err(errno) => {
                failure = KernelError::new(format!("opening {path}"), errno);
                break;
            }
        }
    }
    Err(failure)
}
