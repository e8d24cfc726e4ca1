//! Which doorbell pages the GPU watches, and for how long.

use super::Ctrl;
use crate::process::FileId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tegra_hw::{GpuPort, Place};

/// Doorbell pages of all ctrl opens. A closed open's page may still be mapped, so it stays watched as long as
/// any channel lives.
pub(crate) struct Doorbells {
    gpu: Arc<dyn GpuPort>,
    state: Mutex<Watched>,
}

/// The pages the GPU watches, and how many channels may ring on them.
#[derive(Default)]
struct Watched {
    /// Pages, and whether their ctrl open is still there.
    pages: HashMap<FileId, (Place, bool)>,
    channels: usize,
}

impl Doorbells {
    pub(crate) fn new(gpu: Arc<dyn GpuPort>) -> Doorbells {
        Doorbells { gpu, state: Mutex::default() }
    }

    pub(super) fn watch(&self, ctrl: &Ctrl) {
        self.state.lock().pages.insert(ctrl.file, (ctrl.doorbell.clone(), true));
        self.gpu.watch_doorbell(ctrl.doorbell.clone());
    }

    /// The ctrl open is closed.
    pub(crate) fn retire(&self, ctrl: &Ctrl) {
        if let Some((_, open)) = self.state.lock().pages.get_mut(&ctrl.file) {
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

    /// Forgets pages nobody can ring any more.
    fn sweep(&self) {
        let mut state = self.state.lock();
        if state.channels > 0 {
            return;
        }
        let gone: Vec<Place> = state.pages.extract_if(|_, (_, open)| !*open).map(|(_, (page, _))| page).collect();
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
