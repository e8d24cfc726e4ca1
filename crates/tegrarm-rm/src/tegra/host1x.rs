//! The node of host1x that makes Linux sync files of syncpoints, and finds the syncpoints of sync files.

use super::error::call;
use super::{KernelError, nodes};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use tegrarm_abi::host1x::*;
use tegrarm_kmd::{Errno, File, Kmd, Node};
use zerocopy::FromZeros;

/// The number of fences that a first call asks for. Sync files rarely have more; if one has, there is a second call.
const FEW: usize = 16;

/// The node, opened.
pub struct Host1x {
    file: File,
}

impl Host1x {
    /// Opens the node.
    ///
    /// # Errors
    /// The errno of `open(2)` with the name of the node.
    pub fn open(kmd: &Arc<dyn Kmd>) -> Result<Host1x, KernelError> {
        Ok(Host1x { file: nodes::open(kmd, Node::Host1x, nodes::HOST1X)? })
    }

    /// Makes a sync file that passes when a syncpoint reaches a value.
    ///
    /// # Errors
    /// `EINVAL` if the syncpoint belongs to no channel; `EMFILE` if the process has as many descriptors as it may have.
    pub fn sync_file(&self, id: u32, threshold: u32) -> Result<OwnedFd, KernelError> {
        let mut args = host1x_create_fence { id, threshold, fence_fd: 0, reserved: 0 };
        call(&self.file, HOST1X_IOCTL_CREATE_FENCE, &mut args)?;
        let file = File::from_output(self.file.kmd(), Node::SyncFile, args.fence_fd);
        let file = file.map_err(|errno| KernelError::new("HOST1X_IOCTL_CREATE_FENCE", errno))?;
        Ok(OwnedFd::from(file))
    }

    /// The syncpoints and values for which a sync file waits. The kernel may leave out fences that have passed.
    ///
    /// # Errors
    /// `EINVAL` if the descriptor is not a sync file, or if the sync file belongs to a driver other than host1x.
    pub fn points(&self, fd: BorrowedFd<'_>) -> Result<Vec<host1x_fence_extract_fence>, KernelError> {
        let mut room = FEW;
        loop {
            let mut list = vec![host1x_fence_extract_fence::new_zeroed(); room];
            let mut args = host1x_fence_extract {
                fence_fd: fd.as_raw_fd(),
                num_fences: room as u32,
                fences_ptr: list.as_mut_ptr().addr() as u64,
                reserved: [0; 2],
            };
            call(&self.file, HOST1X_IOCTL_FENCE_EXTRACT, &mut args)?;
            let count = args.num_fences as usize;
            if count <= room {
                list.truncate(count);
                return Ok(list);
            }
            room = count;
        }
    }

    /// Whether an error means that the system has no such node.
    pub fn is_missing(e: &KernelError) -> bool {
        e.errno == Errno::ENOENT
    }
}
