//! Locks whose whole state is in the lock itself: mutexes, read-write locks and condition variables on Linux's futex.
//!
//! `parking_lot` keeps the sleeping threads of all locks in one table of the process, and each part of the table has a lock of its own. A
//! thread that holds such a part while another thread forks leaves it locked in the child for ever, and the child waits at the first lock
//! of its own that two of its threads want. The names and the ways are those of `parking_lot`, by the same crate `lock_api`: nothing is
//! poisoned, and a lock that nobody else wants costs one atomic operation.

mod condvar;
mod futex;
mod mutex;
mod process;
mod rwlock;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{RawMutex, RawThreadId};
pub use process::{ForkOnce, ProcessMutex};
pub use rwlock::RawRwLock;

/// A mutex.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// The right to use what a mutex protects.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// The right to use a part of what a mutex protects.
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;
/// A mutex that its owner may take again.
pub type ReentrantMutex<T> = lock_api::ReentrantMutex<RawMutex, RawThreadId, T>;
/// The right to use what such a mutex protects.
pub type ReentrantMutexGuard<'a, T> = lock_api::ReentrantMutexGuard<'a, RawMutex, RawThreadId, T>;
/// A lock for many readers or one writer.
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// The right to read what a read-write lock protects.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// The right to write what a read-write lock protects.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
