//! The device library on one device: its code, and the state that it works on.

use super::messages::{Printed, Ring};
use super::stop::Stop;
use super::{Library, Sizes, heap, state};
use crate::runtime::memory::heap::{Heap, Piece};
use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_images::cubin::Cubin;
use tegrarm_lock::Mutex;
use tegrarm_rm::status::{During, RmError, RmResult, fail};

/// The functions that allocate from the heap.
const GIVERS: [&str; 2] = ["malloc", "__cuda_syscall_aligned_malloc"];

/// The code and the state of the device library. They exist as long as the device is open.
pub struct Installed {
    code: Piece,
    state: Arc<Memory>,
    work: Mutex<Work>,
}

struct Work {
    ring: Ring,
    heap: Option<Memory>,
    /// Whether a module allocates from the heap. The heap is made when the first such module is loaded.
    gives: bool,
}

impl Installed {
    /// Makes the state and the memory that the functions of a module need, and writes the code into memory of `code`.
    ///
    /// # Errors
    /// NO_MEMORY if there is not enough memory. Everything that was made is freed then.
    pub fn new(session: &Arc<Session>, code: &Arc<Heap>, sizes: Sizes, module: &Cubin) -> RmResult<Installed> {
        let cubin = Library::carried().cubin();
        let broken = |e| RmError::new(NV_ERR_GENERIC, format!("the device library: {e}"));
        let state = Memory::new(session, state::SIZE, Cache::Cached).during(|| "the state of the device library")?;
        let state = Arc::new(state);
        let ring = Ring::new(session, &state, sizes.printf)?;
        let mut work = Work { ring, heap: None, gives: false };
        work.serve(module, sizes, &state)?;
        let code = code.take(cubin.memory_size())?;
        let bytes = cubin.place(code.va()).map_err(broken)?;
        code.write(0, &bytes)?;
        code.zero_from(bytes.len() as u64)?;
        Ok(Installed { code, state, work: Mutex::new(work) })
    }

    /// The GPU address of the code.
    pub fn code(&self) -> u64 {
        self.code.va()
    }

    /// The GPU address of the state.
    pub fn state(&self) -> u64 {
        self.state.va()
    }

    /// Makes the memory that the functions of a module need, if it does not exist yet.
    ///
    /// # Errors
    /// NO_MEMORY if there is no memory for the heap.
    pub fn serve(&self, module: &Cubin, sizes: Sizes) -> RmResult<()> {
        self.work.lock().serve(module, sizes, &self.state)
    }

    /// Changes the size of the heap. Kernels must have freed everything in it, and no work may run.
    ///
    /// # Errors
    /// STATE_IN_USE if kernels still use the heap; NO_MEMORY if there is not enough memory. The heap does not change
    /// then.
    pub fn resize_heap(&self, bytes: u64) -> RmResult<()> {
        let mut work = self.work.lock();
        if !work.gives {
            return Ok(());
        }
        if work.heap.as_ref().is_some_and(|old| !heap::is_empty(old)) {
            fail!(NV_ERR_STATE_IN_USE, "a heap of {bytes} bytes: kernels have not freed all of the old one");
        }
        work.heap = heap::make(self.state.session(), &self.state, bytes)?;
        Ok(())
    }

    /// Changes the size of the ring of `printf`. No work may run, and the messages in the old ring must have been taken.
    ///
    /// # Errors
    /// NO_MEMORY if there is not enough memory. The ring does not change then.
    pub fn resize_ring(&self, bytes: u64) -> RmResult<()> {
        let mut work = self.work.lock();
        if work.ring.bytes() != bytes {
            work.ring = Ring::new(self.state.session(), &self.state, bytes)?;
        }
        Ok(())
    }

    /// Takes the messages that were printed. If `nothing_runs` is true, an incomplete message that a fault left is removed, too.
    ///
    /// # Errors
    /// None in practice, because the ring and the state have room for what is written.
    pub fn printed(&self, nothing_runs: impl FnOnce() -> bool) -> RmResult<Printed> {
        self.work.lock().ring.take(nothing_runs)
    }

    /// The reason why a thread stopped its kernel, if one did so since the last call.
    pub fn stop(&self) -> Option<Stop> {
        let _work = self.work.lock();
        Stop::take(&self.state)
    }

    /// Makes the heap anew if a fault stopped a warp that was changing it. Returns whether it did. No work may run.
    ///
    /// # Errors
    /// None in practice, because the heap and the state have room for what is written.
    pub fn repair(&self) -> RmResult<bool> {
        let work = self.work.lock();
        match &work.heap {
            Some(memory) if heap::is_locked(&self.state) => heap::begin(&self.state, memory).map(|()| true),
            _ => Ok(false),
        }
    }
}

impl Work {
    fn serve(&mut self, module: &Cubin, sizes: Sizes, state: &Memory) -> RmResult<()> {
        if !self.gives && GIVERS.iter().any(|name| module.outside().contains(*name)) {
            self.heap = heap::make(state.session(), state, sizes.heap)?;
            self.gives = true;
        }
        Ok(())
    }
}
