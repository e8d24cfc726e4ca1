//! An open ctrl node: its number, its doorbell page and what it asked for.

use crate::budget::{Resource, Share};
use crate::clocks::Session;
use crate::files::{Call, Mmap};
use crate::process::FileId;
use crate::release::PerRelease;
use crate::rule::Because;
use crate::tsg::{Groups, Instance};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegra_hw::Place;
use tegra_mm::{Backing, memfd};
use tegrarm_abi::nvgpu::ctrl::NVGPU_GPU_IOCTL_LAST;
use tegrarm_abi::nvgpu::r35::NVGPU_GPU_IOCTL_LAST_R35;
use tegrarm_abi::nvgpu::r39::NVGPU_GPU_IOCTL_LAST_R39;
use tegrarm_kmd::Errno;

/// The size of the usermode (doorbell) window in bytes.
const DOORBELL_SIZE: usize = 64 << 10;

/// The highest number of an ioctl.
pub(super) const LAST: PerRelease<u32> =
    PerRelease { r35: NVGPU_GPU_IOCTL_LAST_R35, r36: NVGPU_GPU_IOCTL_LAST, r39: NVGPU_GPU_IOCTL_LAST_R39 };

/// One open ctrl node.
#[derive(Debug)]
pub(crate) struct Ctrl {
    /// A number that no other open ctrl node has. The first one is 1. r36 reports it in the characteristics.
    pub instance: u64,
    /// The identity of its file.
    pub file: FileId,
    /// The doorbell page of this open node.
    pub doorbell: Place,
    /// The number of share tokens that were made from it so far.
    tokens: AtomicU64,
    /// What all groups share, for those that are opened through it.
    pub groups: Arc<Groups>,
    /// What it asked the clock arbiter for.
    pub session: Session,
    _share: Option<Share>,
}

impl Ctrl {
    /// Makes an open node, with the descriptor for the program. Its file is the doorbell page.
    pub(super) fn create(call: &Call<'_>, groups: &Arc<Groups>) -> Result<(OwnedFd, Arc<Ctrl>), Errno> {
        let share = call.board.take(Resource::Mappings, call.process, 1)?;
        let fd = memfd::create("nvhost-ctrl", DOORBELL_SIZE as u64)?;
        let own = memfd::stow(memfd::duplicate(&fd)?)?;
        let doorbell = Place { backing: Arc::new(Backing::from_memfd(own, DOORBELL_SIZE)?), offset: 0 };
        let instance = call.board.next_instance();
        let ctrl = Arc::new(Ctrl {
            instance,
            file: FileId::of(&fd)?,
            doorbell,
            tokens: AtomicU64::new(0),
            groups: groups.clone(),
            session: Session::new(&call.board.clocks, instance),
            _share: share,
        });
        call.board.doorbells.watch(ctrl.file, &ctrl.doorbell);
        let instance: Arc<dyn Instance> = ctrl.clone();
        groups.tokens.opened(Arc::downgrade(&instance));
        Ok((fd, ctrl))
    }

    /// Checks a mapping of the doorbell page (docs/hardware/nvgpu-ctrl.md#doorbell-page).
    pub(super) fn check_doorbell(&self, call: &Call<'_>, asked: &Mmap) -> Result<(), Errno> {
        if call.process.maps(self.file, self.doorbell.backing.as_ptr() as u64) {
            return Err(Errno::EBUSY.because("the doorbell page is mapped once for each open of the ctrl node"));
        }
        let rule = "the doorbell page has 64 KiB, and is mapped from its start";
        if asked.len > DOORBELL_SIZE || asked.offset != 0 { Err(Errno::EINVAL.because(rule)) } else { Ok(()) }
    }
}

impl Instance for Ctrl {
    fn id(&self) -> u64 {
        self.instance
    }

    fn next_token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed) + 1
    }
}
