//! Where the device nodes are, and how to say that they are missing.

use super::KernelError;
use std::sync::Arc;
use tegrarm_kmd::{Errno, File, Kmd, Node};

/// nvmap's node.
pub(super) const NVMAP: &[&str] = &["/dev/nvmap"];
/// The ctrl node: JetPack 6 name, JetPack 5 name. r36 has both, old r35 images only the second.
pub(super) const CTRL: &[&str] = &["/dev/nvgpu/igpu0/ctrl", "/dev/nvhost-ctrl-gpu"];
/// Only this node exists before the GPU's first power-up; writing "1" makes the others appear.
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
