//! Control of the GPU's lowest clock, through devfreq.

use super::KernelError;
use std::sync::Arc;
use tegrarm_kmd::{Errno, Kmd, devfreq};

/// A raised lowest clock; what it was before is put back on drop.
pub struct MinFrequency {
    kmd: Arc<dyn Kmd>,
    path: String,
    before: String,
}

impl MinFrequency {
    /// Pins the lowest clock to the highest one.
    ///
    /// # Errors
    /// `ENOENT` when there is no devfreq directory, `EACCES` when the process may not write it.
    pub fn raise_to_max(kmd: &Arc<dyn Kmd>) -> Result<MinFrequency, KernelError> {
        let (dir, max) =
            devfreq::found(&**kmd).ok_or_else(|| KernelError::new("finding the GPU's devfreq", Errno::ENOENT))?;
        let path = format!("{dir}/min_freq");
        let read = |p: &str| kmd.read_text(p).map_err(|e| KernelError::new(format!("reading {p}"), e));
        let before = read(&path)?.trim().to_owned();
        kmd.write_text(&path, max.trim()).map_err(|e| KernelError::new(format!("writing {path}"), e))?;
        Ok(MinFrequency { kmd: kmd.clone(), path, before })
    }
}

impl Drop for MinFrequency {
    fn drop(&mut self) {
        if let Err(errno) = self.kmd.write_text(&self.path, &self.before) {
            tracing::warn!("{} stays raised (it was {}): {errno}", self.path, self.before);
        }
    }
}
