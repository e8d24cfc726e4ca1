//! Prints what kernels print, and sets the sizes of the memory for that and for `malloc`.

use crate::runtime::device::Device;
use crate::runtime::library::Sizes;
use crate::runtime::library::messages::Printed;
use std::cell::Cell;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_lock::{Mutex, ReentrantMutex};
use tegrarm_rm::status::{RmResult, fail};

/// A function that prints messages.
pub type Printer = dyn Fn(&Printed) + Send + Sync;

/// The printer of a device. A device that was just made has none.
#[derive(Default)]
pub struct Printing {
    printer: Mutex<Option<Arc<Printer>>>,
    /// One thread prints at a time, so that messages keep their order. The value is true while a thread prints.
    turn: ReentrantMutex<Cell<bool>>,
}

impl Device {
    /// Sets the function that prints what kernels print.
    pub fn print_with(&self, printer: Arc<Printer>) {
        *self.printing().printer.lock() = Some(printer);
    }

    /// Prints the messages that kernels have written so far, if the device has a printer, and what the kernel reports about mistakes.
    pub(super) fn print(&self) {
        if self.base().diagnostics().prints() {
            self.print_now();
        }
    }

    #[cold]
    fn print_now(&self) {
        if self.base().diagnostics().is_checked() {
            self.print_reports();
        }
        let Some(library) = self.base().diagnostics().library() else { return };
        let Some(printer) = self.printing().printer.lock().clone() else { return };
        let turn = self.printing().turn.lock();
        // The printer may wait for the device, and then the same thread comes here a second time.
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

    /// Whether all work that the device was given has ended.
    fn nothing_runs(&self) -> bool {
        !self.base().diagnostics().has_replays() && self.is_quiet()
    }

    /// Removes what a fault left incomplete: a message that was being written, and a heap that was being changed.
    ///
    /// # Errors
    /// None in practice, because the memory of the library has room for what is written.
    pub(super) fn tidy_up(&self) -> RmResult<()> {
        self.print();
        if let Some(library) = self.base().diagnostics().library()
            && self.nothing_runs()
            && library.repair()?
        {
            tracing::warn!(
                "a fault stopped a kernel in the middle of malloc or free: the heap is made anew, and empty"
            );
        }
        Ok(())
    }

    /// How much memory kernels get for `malloc` and `printf`.
    pub fn sizes(&self) -> Sizes {
        self.base().diagnostics().sizes()
    }

    /// Changes the size of the heap of `malloc`. Waits until all earlier work has finished.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the size is too large, STATE_IN_USE if kernels use the heap or the device has replays,
    /// NO_MEMORY if there is not enough memory; the fault of a channel.
    pub fn set_heap(&self, bytes: u64) -> RmResult<()> {
        let bytes = Sizes::heap(bytes)?;
        if let Some(library) = self.base().diagnostics().library() {
            self.quieten("the heap of malloc")?;
            library.resize_heap(bytes)?;
        }
        self.base().diagnostics().set_sizes(|sizes| sizes.heap = bytes);
        Ok(())
    }

    /// Changes the size of the buffer of `printf`. Waits until all earlier work has finished and its messages were printed.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the size is too large, STATE_IN_USE if the device has replays, NO_MEMORY if there is not
    /// enough memory; the fault of a channel.
    pub fn set_printf(&self, bytes: u64) -> RmResult<()> {
        let bytes = Sizes::printf(bytes)?;
        if let Some(library) = self.base().diagnostics().library() {
            self.quieten("the buffer of printf")?;
            library.resize_ring(bytes)?;
        }
        self.base().diagnostics().set_sizes(|sizes| sizes.printf = bytes);
        Ok(())
    }

    fn quieten(&self, what: &str) -> RmResult<()> {
        if self.base().diagnostics().has_replays() {
            fail!(NV_ERR_STATE_IN_USE, "{what} cannot change while the device has replays: destroy them first");
        }
        self.synchronize()
    }
}
