//! The program of one launch, as it grows by code that is first reached through pointers.

use super::image::Image;
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// The newest program of a launch. Every CTA that reaches unknown code makes it larger for all: CTAs that reach the same code take what the
/// first of them decoded, and CTAs that begin later begin with it.
pub(crate) struct Programs(Mutex<Arc<Image>>);

impl Programs {
    /// A launch begins with a program.
    pub(crate) fn new(first: Arc<Image>) -> Programs {
        Programs(Mutex::new(first))
    }

    /// The newest program.
    pub(crate) fn newest(&self) -> Arc<Image> {
        self.0.lock().clone()
    }

    /// The program for a CTA that executes `own` and has reached `root`. If no CTA has reached it before, `extended` decodes the code
    /// there, in addition to that of the newest program. Other CTAs wait meanwhile.
    pub(crate) fn with(
        &self,
        own: &Image,
        root: i64,
        extended: impl FnOnce(&Image) -> Option<Arc<Image>>,
    ) -> Option<Arc<Image>> {
        let mut newest = self.0.lock();
        // A CTA whose program has the root already has found other code there than was there before.
        if own.has_roots(&[root]) || !newest.has_roots(&[root]) {
            *newest = extended(&newest)?;
        }
        Some(newest.clone())
    }
}
