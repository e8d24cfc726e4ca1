//! The device library on one device: its code, and the state that it works on.

use super::messages::{Printed, Ring};
use super::stop::Stop;
use super::{Library, Sizes, heap, state};
use crate::runtime::cubin::Cubin;
use crate::runtime::heap::{Heap, Piece};
use crate::runtime::memory::{Cache, Memory};
use crate::runtime::session::Session;
use crate::status::{During, RmError, RmResult, fail};
use parking_lot::Mutex;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// The functions that give memory of the heap.
const GIVERS: [&str; 2] = ["malloc", "__cuda_syscall_aligned_malloc"];

/// The code and the state on one device, for as long as the device is open.
pub struct Installed {
    code: Piece,
    state: Arc<Memory>,
    work: Mutex<Work>,
}

struct Work {
    ring: Ring,
    heap: Option<Memory>,
    /// Whether a module wants memory of the heap: it is made when the first one does.
    gives: bool,
}

impl Installed {
    /// Makes the state, with what a module's functions need, and puts the code into `code`'s memory.
    ///
    /// # Errors
    /// 0x51 when there is not enough memory; nothing stays behind.
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

    /// GPU address of the code.
    pub fn code(&self) -> u64 {
        self.code.va()
    }

    /// GPU address of the state.
    pub fn state(&self) -> u64 {
        self.state.va()
    }

    /// Sees to it that there is what a module's functions need.
    ///
    /// # Errors
    /// 0x51 when there is no memory for the heap.
    pub fn serve(&self, module: &Cubin, sizes: Sizes) -> RmResult<()> {
        self.work.lock().serve(module, sizes, &self.state)
    }

    /// Gives the heap another size, when nothing of it is in use and nothing runs.
    ///
    /// # Errors
    /// 0x63 when kernels still use it; 0x51 when there is not that much memory. The heap stays as it was.
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

    /// Gives `printf` a ring of another size, when nothing runs. What is in the old one was taken.
    ///
    /// # Errors
    /// 0x51 when there is not that much memory. The ring stays as it was.
    pub fn resize_ring(&self, bytes: u64) -> RmResult<()> {
        let mut work = self.work.lock();
        if work.ring.bytes() != bytes {
            work.ring = Ring::new(self.state.session(), &self.state, bytes)?;
        }
        Ok(())
    }

    /// Takes what was printed. When nothing runs, what a fault cut off goes too; `nothing_runs` looks.
    ///
    /// # Errors
    /// None in practice: ring and state are as long as they were made.
    pub fn printed(&self, nothing_runs: impl FnOnce() -> bool) -> RmResult<Printed> {
        self.work.lock().ring.take(nothing_runs)
    }

    /// Why a thread gave up, if one did since the last call.
    pub fn stop(&self) -> Option<Stop> {
        let _work = self.work.lock();
        Stop::take(&self.state)
    }

    /// After a fault, when nothing runs: a heap on which a warp was working is made anew. True if it was.
    ///
    /// # Errors
    /// None in practice: heap and state are as long as they were made.
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
