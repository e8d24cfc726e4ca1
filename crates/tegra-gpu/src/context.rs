//! The engine state of a subcontext: the values that methods of the compute and copy classes stored. And the state of the units
//! that work for a channel.

use super::compute::inline::Inline;
use super::compute::sked::{Launches, Sked};
use super::copy::Transfer;
use std::collections::BTreeMap;
use std::sync::Arc;
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::copy::*;
use tegrarm_lock::Mutex;

/// An engine context, which the channels of a subcontext share.
pub(crate) type SharedContext = Arc<Mutex<GrContext>>;

/// The engine contexts of every group, by TSG id and VEID.
#[derive(Debug, Default)]
pub(crate) struct Contexts(Mutex<BTreeMap<(u32, u32), SharedContext>>);

impl Contexts {
    /// The context of a subcontext. It is made on first use.
    pub(crate) fn of(&self, tsg: u32, veid: u32) -> SharedContext {
        self.0.lock().entry((tsg, veid)).or_default().clone()
    }

    /// Forgets a group that has ended, because its id may name another group from now on.
    pub(crate) fn forget(&self, tsg: u32) {
        self.0.lock().retain(|&(of, _), _| of != tsg);
    }
}

/// The engine state of one subcontext (VEID) of a group. All channels of the subcontext share it.
#[derive(Debug)]
pub(crate) struct GrContext {
    pub(crate) compute: Registers,
    /// The registers of class A140.
    pub(crate) inline_class: Registers,
    pub(crate) copy: Registers,
    /// The inline-to-memory blocks of the compute class and of class A140.
    pub(crate) inline: [Inline; 2],
    pub(crate) sked: Sked,
}

impl Default for GrContext {
    fn default() -> GrContext {
        let mut context = GrContext {
            compute: Registers(vec![0; 0x4000 / 4]),
            inline_class: Registers(vec![0; 0x1600 / 4]),
            copy: Registers(vec![0; 0x1200 / 4]),
            inline: [Inline::of_compute(), Inline::of_a140()],
            sked: Sked::default(),
        };
        // Conditional execution is off until a program turns it on.
        context.compute.set(NVC6C0_SET_RENDER_ENABLE_C, NVC6C0_SET_RENDER_ENABLE_C_MODE_TRUE);
        context.compute.set(NVC6C0_SET_GLOBAL_RENDER_ENABLE_C, NVC6C0_SET_GLOBAL_RENDER_ENABLE_C_MODE_TRUE);
        context.copy.set(NVC6B5_SET_RENDER_ENABLE_C, NVC6B5_SET_RENDER_ENABLE_C_MODE_TRUE);
        context
    }
}

/// The stored methods of one class, by byte offset.
#[derive(Clone, Debug)]
pub(crate) struct Registers(Vec<u32>);

impl Registers {
    pub(crate) fn get(&self, offset: u32) -> u32 {
        self.0[(offset / 4) as usize]
    }

    pub(crate) fn set(&mut self, offset: u32, value: u32) {
        self.0[(offset / 4) as usize] = value;
    }

    /// A 64-bit value. Its upper part is in the `upper` bits of the register that stands before the register of its
    /// lower part.
    pub(crate) fn pair(&self, offset: u32, upper: Bits) -> u64 {
        u64::from(upper.of(self.get(offset))) << 32 | u64::from(self.get(offset + 4))
    }
}

/// What the units of a channel keep between two methods, and what they may still spend in its turn.
pub(crate) struct Units {
    /// The work units that are left in this turn. They may have spent more.
    left: i64,
    /// A copy that continues in the next turn.
    pub(crate) transfer: Option<Box<Transfer>>,
    /// Grids that a PCAS action started and that have not run yet.
    pub(crate) launches: Launches,
    pub(crate) context: SharedContext,
}

impl Units {
    pub(crate) fn new(context: SharedContext) -> Units {
        Units { left: 0, transfer: None, launches: Launches::default(), context }
    }

    /// Begins a turn of so many work units.
    pub(crate) fn begin(&mut self, units: u32) {
        self.left = units.into();
    }

    /// Takes work units from the turn. Long operations stop when no units are left.
    pub(crate) fn spend(&mut self, units: u64) {
        self.left -= units.min(i64::MAX as u64) as i64;
    }

    /// The work units that are left in this turn.
    pub(crate) fn left(&self) -> u64 {
        self.left.max(0) as u64
    }
}
