//! The doorbell pages that the GPU watches, and how long it watches them.

use crate::process::{FileId, InProcess, Process};
use std::collections::HashMap;
use std::sync::Arc;
use tegra_hw::{GpuPort, Place};
use tegrarm_lock::Mutex;

/// The doorbell pages of all open ctrl nodes. After a node is closed, its page may still be mapped, so the GPU watches
/// it for as long as any channel lives that can be rung there.
pub(crate) struct Doorbells {
    gpu: Arc<dyn GpuPort>,
    state: Mutex<Watched>,
}

/// The pages that the GPU watches, and the number of channels that may ring on them.
#[derive(Default)]
struct Watched {
    /// The pages, and whether the ctrl node of each is still open.
    pages: HashMap<FileId, (Place, bool)>,
    channels: usize,
}

impl Doorbells {
    pub(crate) fn new(gpu: Arc<dyn GpuPort>) -> Doorbells {
        Doorbells { gpu, state: Mutex::default() }
    }

    /// Has the GPU watch the page of a ctrl node, whose file has this identity.
    pub(crate) fn watch(&self, file: FileId, page: &Place) {
        self.state.lock().pages.insert(file, (page.clone(), true));
        self.gpu.watch_doorbell(page.clone());
    }

    /// Notes that a ctrl node was closed.
    pub(crate) fn retire(&self, file: FileId) {
        if let Some((_, open)) = self.state.lock().pages.get_mut(&file) {
            *open = false;
        }
        self.sweep();
    }

    pub(crate) fn channel_opened(&self) {
        self.state.lock().channels += 1;
    }

    pub(crate) fn channel_closed(&self) {
        self.state.lock().channels -= 1;
        self.sweep();
    }

    /// Forgets the pages on which no channel can be rung any more. A program of another process has closed a file only when
    /// it does not map it either (see the supervisor), so the mappings of this process are the ones to look at.
    fn sweep(&self) {
        let mut state = self.state.lock();
        let (used, here) = (state.channels > 0, InProcess::new());
        let rings = |id: &FileId, page: &Place| used && here.maps(*id, page.backing.as_ptr() as u64);
        let gone = state.pages.extract_if(|id, (page, open)| !*open && !rings(id, page));
        let gone: Vec<Place> = gone.map(|(_, (page, _))| page).collect();
        drop(state);
        gone.iter().for_each(|page| self.gpu.unwatch_doorbell(page));
    }

    pub(crate) fn unwatch_all(&self) {
        let pages: Vec<Place> = self.state.lock().pages.drain().map(|(_, (page, _))| page).collect();
        pages.iter().for_each(|page| self.gpu.unwatch_doorbell(page));
    }

    pub(crate) fn watched(&self) -> usize {
        self.state.lock().pages.len()
    }
}
