//! What kernels print, and how much memory they have for that and for `malloc`.

use super::device::Device;
use super::library::Sizes;
use super::library::messages::Printed;
use crate::status::{RmResult, fail};
use parking_lot::{Mutex, ReentrantMutex};
use std::cell::Cell;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// Who prints.
pub type Printer = dyn Fn(&Printed) + Send + Sync;

/// Nobody yet, or somebody.
#[derive(Default)]
pub struct Printing {
    printer: Mutex<Option<Arc<Printer>>>,
    /// Messages come in order: one thread prints at a time. True while it does.
    turn: ReentrantMutex<Cell<bool>>,
}

impl Device {
    /// From now on `printer` gets what kernels print.
    pub fn print_with(&self, printer: Arc<Printer>) {
        *self.printing().printer.lock() = Some(printer);
    }

    /// Prints what kernels have printed so far, if somebody wants it.
    pub(super) fn print(&self) {
        if self.base().clues().library().is_some() {
            self.print_now();
        }
    }

    #[cold]
    fn print_now(&self) {
        let Some(library) = self.base().clues().library() else { return };
        let Some(printer) = self.printing().printer.lock().clone() else { return };
        let turn = self.printing().turn.lock();
        // A printer that waits for the device comes back here.
        if turn.replace(true) {
            return;
        }
        match library.printed(|| self.nothing_runs()) {
            Ok(printed) if printed.is_empty() => {}
            Ok(printed) => printer(&printed),
            Err(e) => tracing::error!("what kernels printed: {e}"),
        }
        turn.set(false);
    }

    /// Whether everything that was given is over.
    fn nothing_runs(&self) -> bool {
        !self.base().clues().has_replays() && self.is_quiet()
    }

    /// After a fault: what it left in the middle goes.
    ///
    /// # Errors
    /// None in practice: the library's memory is as long as it was made.
    pub(super) fn tidy_up(&self) -> RmResult<()> {
        self.print();
        if let Some(library) = self.base().clues().library()
            && self.nothing_runs()
            && library.repair()?
        {
            tracing::warn!(
                "a fault stopped a kernel in the middle of malloc or free: the heap is made anew, and empty"
            );
        }
        Ok(())
    }

    /// How much memory kernels have for `malloc` and `printf`.
    pub fn sizes(&self) -> Sizes {
        self.base().clues().sizes()
    }

    /// Gives the heap of `malloc` another size, after everything before has finished.
    ///
    /// # Errors
    /// 0x1F for more than there can be, 0x63 when kernels use the heap or there are replays, 0x51 when there is not that much memory;
    /// a channel's fault.
    pub fn set_heap(&self, bytes: u64) -> RmResult<()> {
        let bytes = Sizes::heap(bytes)?;
        if let Some(library) = self.base().clues().library() {
            self.quieten("the heap of malloc")?;
            library.resize_heap(bytes)?;
        }
        self.base().clues().set_sizes(|sizes| sizes.heap = bytes);
        Ok(())
    }

    /// Gives `printf` a buffer of another size, after everything before has finished and was printed.
    ///
    /// # Errors
    /// 0x1F for more than there can be, 0x63 when there are replays, 0x51 when there is not that much memory; a channel's fault.
    pub fn set_printf(&self, bytes: u64) -> RmResult<()> {
        let bytes = Sizes::printf(bytes)?;
        if let Some(library) = self.base().clues().library() {
            self.quieten("the buffer of printf")?;
            library.resize_ring(bytes)?;
        }
        self.base().clues().set_sizes(|sizes| sizes.printf = bytes);
        Ok(())
    }

    fn quieten(&self, what: &str) -> RmResult<()> {
        if self.base().clues().has_replays() {
            fail!(NV_ERR_STATE_IN_USE, "{what} cannot change while the device has replays: destroy them first");
        }
        self.synchronize()
    }
}
