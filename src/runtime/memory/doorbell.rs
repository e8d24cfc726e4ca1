//! The doorbell, with which a channel tells the GPU of its work.
//!
//! `unsafe` is here for one store to the page of the device.
#![allow(unsafe_code)]

use crate::runtime::memory::session::Session;
use std::sync::Arc;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::usermode::NVC361_NOTIFY_CHANNEL_PENDING;
use tegrarm_rm::rm::MapRequest;
use tegrarm_rm::status::{During, RmResult};

/// The doorbell page. It is unmapped when it is dropped.
pub struct Doorbell {
    session: Arc<Session>,
    usermode: u32,
    word: usize,
}

const PAGE_LEN: u64 = 0x1_0000;

impl Doorbell {
    /// Maps the page.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn map(session: &Arc<Session>) -> RmResult<Doorbell> {
        let usermode = session.alloc_plain(session.subdevice, TURING_USERMODE_A)?;
        let (client, subdevice) = (session.client(), session.subdevice);
        let request = MapRequest { memory: usermode, offset: 0, length: PAGE_LEN, at: None, flags: 0 };
        // From here on `Drop` undoes all steps, because freeing the object removes its mappings.
        let mut doorbell = Doorbell { session: session.clone(), usermode, word: 0 };
        let page = session.rm().map_memory(client, subdevice, &request).during(|| "mapping the doorbell")?;
        doorbell.word = page + NVC361_NOTIFY_CHANNEL_PENDING as usize;
        Ok(doorbell)
    }

    /// The CPU address of the doorbell's word.
    pub fn word(&self) -> usize {
        self.word
    }

    /// Tells the GPU that a channel has work. The barrier orders it after everything that was written before.
    #[inline]
    pub fn ring(&self, token: u32) {
        tegrarm_kmd::DeviceMem::barrier();
        // SAFETY: the word lies in the page that `map` mapped, which exists until `Drop`.
        unsafe { (self.word as *mut u32).write_volatile(token.to_le()) }
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        self.session.free(self.usermode);
    }
}
