//! The locks and atomics of the small pieces that `make loom` tries in every order of threads. There, loom's own take
//! their place.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use tegrarm_lock::{Condvar, Mutex};
