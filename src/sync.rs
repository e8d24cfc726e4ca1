//! The locks and atomics of the small pieces that `make loom` tries in every order of threads. There, loom's own take
//! their place.

pub use parking_lot::{Mutex, MutexGuard};
pub use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
