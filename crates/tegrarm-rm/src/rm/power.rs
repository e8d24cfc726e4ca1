//! The power features of the GPU that profilers of this process hold on or off.

use tegrarm_lock::{Mutex, MutexGuard};

/// The number of features that nvgpu can switch. It has one switch for all of them.
pub const SWITCHED: usize = 4;

/// The state in which a profiler needs a power feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// The feature must not save power.
    Off,
    /// The feature must save power.
    On,
}

impl Wish {
    /// The state that forbids this one.
    pub fn opposite(self) -> Wish {
        match self {
            Wish::Off => Wish::On,
            Wish::On => Wish::Off,
        }
    }
}

/// How many profilers of the process need a feature off, and how many need it on.
#[derive(Default)]
pub struct Wishes {
    off: u32,
    on: u32,
}

impl Wishes {
    /// The number of profilers that need this state.
    pub fn of(&mut self, wish: Wish) -> &mut u32 {
        match wish {
            Wish::Off => &mut self.off,
            Wish::On => &mut self.on,
        }
    }
}

/// What the profilers of the process need of each feature.
#[derive(Default)]
pub struct PowerLedger(Mutex<[Wishes; SWITCHED]>);

impl PowerLedger {
    /// The numbers of each feature, for as long as the result lives.
    pub fn lock(&self) -> MutexGuard<'_, [Wishes; SWITCHED]> {
        self.0.lock()
    }
}
