//! `/dev/host1x-fence`: makes sync files of syncpoints, and finds the syncpoints of sync files
//! (docs/hardware/nvgpu-channel.md#host1x-fence).

use super::sync_file::SyncFile;
use crate::dispatch::{self, Call, Reply, Row, rows};
use crate::files::OpenFile;
use std::sync::Arc;
use tegrarm_abi::host1x::*;
use tegrarm_kmd::{Arg, Errno, Node};
use zerocopy::IntoBytes;

pub static ROWS: &[Row<Host1x>] = rows! {
    ALL HOST1X_IOCTL_CREATE_FENCE => create_fence;
    ALL HOST1X_IOCTL_FENCE_EXTRACT => extract;
};

/// The open node. It has no state.
#[derive(Debug)]
pub(crate) struct Host1x;

impl OpenFile for Host1x {
    fn node(&self) -> Option<Node> {
        Some(Node::Host1x)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        dispatch::answer(ROWS, call, &self, request, arg)
    }
}

/// Makes a sync file that passes when a syncpoint reaches a value. The syncpoint must belong to a channel.
fn create_fence(call: &Call<'_>, _: &Arc<Host1x>, args: &mut host1x_create_fence) -> Reply {
    if args.reserved != 0 {
        return Err(Errno::EINVAL.into());
    }
    let point = call.board.syncpoints.find(args.id).ok_or(Errno::EINVAL)?;
    args.fence_fd = SyncFile::install(call, &point, args.threshold)?;
    Ok(())
}

/// Writes the fences of a sync file to the caller's memory, as many as fit, and returns the number of all of them. A fence whose
/// syncpoint no longer belongs to a channel has passed, and is left out.
fn extract(call: &Call<'_>, _: &Arc<Host1x>, args: &mut host1x_fence_extract) -> Reply {
    if args.reserved != [0; 2] {
        return Err(Errno::EINVAL.into());
    }
    let points: Vec<_> = SyncFile::points(call, args.fence_fd)?
        .into_iter()
        .map(|point| host1x_fence_extract_fence { id: point.id, threshold: point.value })
        .collect();
    let fit = points.len().min(args.num_fences as usize);
    call.copy_out(args.fences_ptr, points[..fit].as_bytes())?;
    args.num_fences = points.len() as u32;
    Ok(())
}
