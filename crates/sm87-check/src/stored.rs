//! What memory holds where an instruction is about to store: nobody can tell a store of the same value from no store.

use sm87::observe::access::{Access, Memory, Span};
use sm87::observe::{Env, Uop, Warp};
use std::ops::Range;
use std::sync::Arc;
use tegra_mm::Backing;

/// Where the memory of the buffer is that was stored to last.
#[derive(Debug, Default)]
pub(super) struct Place {
    addresses: Range<u64>,
    backing: Option<Arc<Backing>>,
    offset: usize,
}

impl Place {
    /// Reads what global memory holds.
    fn read(&mut self, env: &Env<'_>, at: u64, bytes: &mut [u8]) -> bool {
        if !self.addresses.contains(&at) {
            let Some(extent) = env.launch().table.find(at) else { return false };
            let (addresses, backing) = (extent.va..extent.end(), extent.backing.clone());
            *self = Place { addresses, backing, offset: extent.offset };
        }
        let offset = self.offset + (at - self.addresses.start) as usize;
        self.backing.as_ref().is_some_and(|backing| backing.read(offset, bytes))
    }
}

/// The most bytes that the lanes of an instruction store.
const MOST_BYTES: usize = 32 * 16;

/// What memory holds where the lanes of an instruction store.
#[derive(Debug)]
pub(super) struct Stored {
    bytes: [u8; MOST_BYTES],
    /// Whether all bytes of the instruction were read, if it was tried.
    pub whole: Option<bool>,
}

impl Default for Stored {
    fn default() -> Stored {
        Stored { bytes: [0; MOST_BYTES], whole: None }
    }
}

impl Stored {
    /// Whether a store leaves memory as it was.
    #[inline(always)]
    pub(super) fn is_kept(
        &mut self,
        place: &mut Place,
        (w, env, u): (&Warp, &Env<'_>, &Uop),
        span: Span,
        access: &Access,
    ) -> bool {
        self.before(place, env, span, access).is_some_and(|before| holds(w, u, access.lane, before))
    }

    /// What memory holds where a lane stores. Lanes that store side by side have their bytes read together.
    #[inline(always)]
    fn before(&mut self, place: &mut Place, env: &Env<'_>, span: Span, access: &Access) -> Option<&[u8]> {
        let len = access.len as usize;
        let mut read = |memory: Memory, at: u64, bytes: &mut [u8]| match memory {
            Memory::Shared => env.read_shared(at as u32, bytes),
            _ => place.read(env, at, bytes),
        };
        if span.dense {
            let bytes = self.bytes.get_mut(..span.len() as usize);
            let whole =
                bytes.is_some_and(|bytes| *self.whole.get_or_insert_with(|| read(span.memory, span.low, bytes)));
            if whole {
                return self.bytes.get((access.at - span.low) as usize..)?.get(..len);
            }
        }
        let bytes = self.bytes.get_mut(..len)?;
        if read(access.memory, access.at, bytes) { Some(bytes) } else { None }
    }
}

/// Whether these are the bytes that a lane stores.
#[inline(always)]
fn holds(w: &Warp, u: &Uop, lane: u32, bytes: &[u8]) -> bool {
    let word = |i: usize| w.get(u.b().plus(i as u32), lane).to_le_bytes();
    bytes.chunks(4).enumerate().all(|(i, bytes)| match <[u8; 4]>::try_from(bytes) {
        Ok(four) => four == word(i),
        Err(_) => word(i).starts_with(bytes),
    })
}
