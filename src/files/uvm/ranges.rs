//! The tree of address ranges of one UVM file, and the mappings in each range.

use std::collections::BTreeMap;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::rm::{Extent, ExternalMapping, OwnPages};
use tegrarm_rm::status::{RmResult, fail};
use tegrarm_rm::tegra::{PAGE, USER_VA_END, USER_VA_START};

/// The purpose of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Memory that RM allocated.
    External,
    /// A channel's own buffers. The fields are the client and the channel.
    Channel(u32, u32),
    /// Launches that the GPU itself makes.
    DynamicParallelism,
}

/// Ranges that do not overlap, sorted by address.
#[derive(Default)]
pub struct Ranges {
    tree: BTreeMap<u64, Range>,
}

/// One range.
pub struct Range {
    len: u64,
    purpose: Purpose,
    maps: BTreeMap<u64, ExternalMapping>,
}

/// Checks that a range is made of whole pages and is not empty.
///
/// # Errors
/// INVALID_ADDRESS.
pub fn check_pages(base: u64, len: u64) -> RmResult<()> {
    let whole = base.is_multiple_of(PAGE) && len.is_multiple_of(PAGE);
    if !whole || len == 0 || base.checked_add(len).is_none() {
        fail!(NV_ERR_INVALID_ADDRESS, "{base:#x}+{len:#x}: must be multiples of {PAGE:#x}, and more than 0 bytes");
    }
    Ok(())
}

/// Checks that the GPU can address the whole range.
///
/// # Errors
/// OUT_OF_RANGE.
pub fn check_reach(base: u64, len: u64) -> RmResult<()> {
    let end = base.saturating_add(len);
    if base < USER_VA_START || end > USER_VA_END {
        fail!(
            NV_ERR_OUT_OF_RANGE,
            "{base:#x}..{end:#x} is outside the GPU's addresses {USER_VA_START:#x}..{USER_VA_END:#x}; if it is memory of this \
             process, make it with rm_mmap and MAP_SHARED | MAP_ANONYMOUS, or run the program with libtegrarm_preload.so: \
             both place such memory below 2^39"
        );
    }
    Ok(())
}

impl Ranges {
    /// Reserves a range of addresses.
    ///
    /// # Errors
    /// INVALID_ADDRESS for a bad range, OUT_OF_RANGE for addresses that the GPU does not have, UVM_ADDRESS_IN_USE for
    /// addresses that are taken.
    pub fn insert(&mut self, base: u64, len: u64, purpose: Purpose) -> RmResult<()> {
        check_pages(base, len)?;
        check_reach(base, len)?;
        if let Some((start, there)) = self.tree.range(..base + len).next_back()
            && start + there.len > base
        {
            fail!(
                NV_ERR_UVM_ADDRESS_IN_USE,
                "{base:#x}+{len:#x} meets the range {start:#x}+{:#x} ({:?})",
                there.len,
                there.purpose
            );
        }
        self.tree.insert(base, Range { len, purpose, maps: BTreeMap::new() });
        Ok(())
    }

    /// Gives a range back and unmaps everything in it. The result is the client's own pages that are mapped nowhere now.
    ///
    /// # Errors
    /// INVALID_ADDRESS when no range that can be freed starts at `base`.
    pub fn free(&mut self, base: u64) -> RmResult<Vec<OwnPages>> {
        match self.tree.get(&base).map(|range| range.purpose) {
            Some(Purpose::External | Purpose::DynamicParallelism) => {
                let freed = self.tree.remove(&base).map(|range| range.maps).unwrap_or_default();
                let mut own: Vec<OwnPages> = freed.values().filter_map(|m| m.extent().own.clone()).collect();
                drop(freed);
                if !own.is_empty() {
                    let mapped: Vec<&Extent> =
                        self.tree.values().flat_map(|r| r.maps.values()).map(ExternalMapping::extent).collect();
                    own.retain(|pages| !mapped.iter().any(|extent| pages.contain(extent)));
                }
                Ok(own)
            }
            Some(purpose) => fail!(NV_ERR_INVALID_ADDRESS, "the range at {base:#x} is a {purpose:?}: unregister it"),
            None => fail!(NV_ERR_INVALID_ADDRESS, "no range starts at {base:#x}"),
        }
    }

    /// Gives a channel's range back.
    ///
    /// # Errors
    /// INVALID_CHANNEL when the channel has no range.
    pub fn remove_channel(&mut self, client: u32, channel: u32) -> RmResult<()> {
        let before = self.tree.len();
        self.tree.retain(|_, range| range.purpose != Purpose::Channel(client, channel));
        if self.tree.len() == before {
            fail!(NV_ERR_INVALID_CHANNEL, "channel {channel:#x} of client {client:#x} is not registered");
        }
        Ok(())
    }

    /// The external range that contains all of these addresses.
    ///
    /// # Errors
    /// INVALID_ADDRESS when no external range contains them.
    pub fn external(&mut self, base: u64, len: u64) -> RmResult<&mut Range> {
        check_pages(base, len)?;
        let end = base + len;
        match self.tree.range_mut(..=base).next_back() {
            Some((start, range)) if range.purpose == Purpose::External && end <= start + range.len => Ok(range),
            _ => fail!(
                NV_ERR_INVALID_ADDRESS,
                "{base:#x}+{len:#x} lies in no external range: UVM_CREATE_EXTERNAL_RANGE first"
            ),
        }
    }

    /// Unmaps everything and keeps the ranges.
    pub fn unmap_all(&mut self) {
        self.tree.values_mut().for_each(|range| range.maps.clear());
    }
}

impl Range {
    /// Maps an extent in place of what was mapped at its addresses. If that fails, the old mappings stay.
    ///
    /// # Errors
    /// The same as those of [`Extent::map`].
    pub fn map(&mut self, extent: Extent) -> RmResult<()> {
        let (start, end) = (extent.va, extent.va + extent.len);
        let cleared = self.clear(start, end);
        match extent.map() {
            Ok(mapping) => {
                self.maps.insert(start, mapping);
                self.remap(cleared.iter().flat_map(|old| rest(old, start, end)))
            }
            Err(e) => {
                self.remap(cleared.into_iter())?;
                Err(e)
            }
        }
    }

    /// Unmaps a range of addresses.
    ///
    /// # Errors
    /// Those of [`Extent::map`], because the part of a mapping that lies outside the range is mapped again.
    pub fn unmap(&mut self, start: u64, end: u64) -> RmResult<()> {
        let cleared = self.clear(start, end);
        self.remap(cleared.iter().flat_map(|old| rest(old, start, end)))
    }

    /// Unmaps every mapping that overlaps these addresses, and returns their extents.
    fn clear(&mut self, start: u64, end: u64) -> Vec<Extent> {
        let meets = |e: &Extent| e.va < end && e.va + e.len > start;
        let hit: Vec<u64> = self.maps.values().map(|m| m.extent()).filter(|e| meets(e)).map(|e| e.va).collect();
        hit.iter().filter_map(|va| self.maps.remove(va)).map(|mapping| mapping.extent().clone()).collect()
    }

    fn remap(&mut self, extents: impl Iterator<Item = Extent>) -> RmResult<()> {
        for extent in extents {
            self.maps.insert(extent.va, extent.map()?);
        }
        Ok(())
    }
}

/// The parts of an extent that lie outside `[start, end)`.
fn rest(old: &Extent, start: u64, end: u64) -> impl Iterator<Item = Extent> + use<> {
    let old_end = old.va + old.len;
    let before = (old.va < start).then(|| old.part(old.va, start - old.va));
    let after = (old_end > end).then(|| old.part(end, old_end - end));
    before.into_iter().chain(after)
}
