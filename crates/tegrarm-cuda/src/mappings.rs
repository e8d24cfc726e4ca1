//! What is mapped at reserved addresses: memory of cuMemCreate, piece by piece, each with its own access.

use crate::machine::Buffer;
use crate::numbers::*;
use crate::result::{Answer, fail};
use crate::structures::AllocationProperties;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// TEGRARM_BUFFER_GPU_READ_ONLY.
const READ_ONLY: u32 = 2;

/// Memory of cuMemCreate. It lives as long as a handle or a mapping of it.
pub struct Memory {
    /// Where it is.
    pub home: Mutex<Home>,
    /// How many bytes it has.
    pub size: u64,
    /// What the program asked for.
    pub properties: AllocationProperties,
    /// A number that no other allocation has.
    pub id: u64,
    /// How the program names it.
    pub handle: Mutex<Handle>,
}

/// Where memory is. CUDA's belongs to no context.
pub enum Home {
    /// It is a buffer of a context, whose handle this is.
    In(usize, Arc<Buffer>),
    /// Its context has ended. The dma-buf keeps it.
    Apart(OwnedFd),
}

impl Memory {
    /// A descriptor of its dma-buf, whose first byte is that of the memory.
    pub fn descriptor(&self) -> Answer<OwnedFd> {
        match &*self.home.lock() {
            Home::In(_, buffer) => buffer.descriptor(),
            Home::Apart(fd) => match fd.try_clone() {
                Ok(fd) => Ok(fd),
                Err(why) => fail!(CUDA_ERROR_OUT_OF_MEMORY, "no descriptor for memory: {why}"),
            },
        }
    }

    /// Its context ends, if it is this one: it stays without a context.
    pub fn leave(&self, context: usize) -> Answer {
        let mut home = self.home.lock();
        if let Home::In(of, buffer) = &*home
            && *of == context
        {
            let fd = buffer.descriptor()?;
            *home = Home::Apart(fd);
        }
        Ok(())
    }
}

/// A handle, and how often the program has it. The handle ends with the last time, and the memory may get another one later.
#[derive(Default)]
pub struct Handle {
    /// The handle, if `users` is not 0.
    pub number: usize,
    /// How many calls of cuMemRelease it takes.
    pub users: u32,
}

/// A mapping.
#[derive(Clone)]
pub struct Mapping {
    /// What is mapped.
    pub memory: Arc<Memory>,
    /// The same memory, as the context of the addresses has it.
    pub buffer: Arc<Buffer>,
    /// How many bytes of it, from its first one on.
    pub size: u64,
    /// A value of `CUmemAccess_flags`.
    pub access: u32,
}

/// The mappings at some reserved addresses, by their first bytes.
#[derive(Default)]
pub struct Mappings {
    all: Mutex<BTreeMap<u64, Mapping>>,
}

impl Mappings {
    /// The mapping of a byte, and where it begins.
    pub fn find(&self, at: u64) -> Option<(u64, Mapping)> {
        let all = self.all.lock();
        let (start, mapping) = all.range(..=at).next_back()?;
        (at - start < mapping.size).then(|| (*start, mapping.clone()))
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.all.lock().is_empty()
    }

    /// Adds a mapping, which nobody may use yet.
    pub fn add(&self, at: u64, memory: Arc<Memory>, buffer: Arc<Buffer>, size: u64) -> Answer {
        let mut all = self.all.lock();
        if let Some((start, other)) = all.range(..at + size).next_back()
            && start + other.size > at
        {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "{:#x} bytes of memory are mapped {start:#x} bytes from the start of the reserved addresses: unmap them first",
                other.size
            );
        }
        all.insert(at, Mapping { memory, buffer, size, access: CU_MEM_ACCESS_FLAGS_PROT_NONE });
        Ok(())
    }

    /// Removes all mappings of a range that consists of whole ones.
    pub fn remove(&self, buffer: &Buffer, start: u64, at: u64, size: u64) -> Answer {
        let mut all = self.all.lock();
        for first in whole(&all, at, size)? {
            let Some(mapping) = all.get_mut(&first) else { continue };
            change(buffer, start + first, mapping, CU_MEM_ACCESS_FLAGS_PROT_NONE)?;
            all.remove(&first);
        }
        Ok(())
    }

    /// Changes the access to a range that consists of whole mappings. If one of them fails, all keep the access that they had.
    pub fn set_access(&self, buffer: &Buffer, start: u64, at: u64, size: u64, access: u32) -> Answer {
        let mut all = self.all.lock();
        let mut before = Vec::new();
        for first in whole(&all, at, size)? {
            let Some(mapping) = all.get_mut(&first) else { continue };
            before.push((first, mapping.access));
            if let Err(error) = change(buffer, start + first, mapping, access) {
                for (first, old) in before {
                    let undone = all.get_mut(&first).map(|mapping| change(buffer, start + first, mapping, old));
                    if let Some(Err(second)) = undone {
                        crate::log::say(
                            crate::log::Level::Warn,
                            &format!("memory stays without access: {}", second.text.unwrap_or_default()),
                        );
                    }
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Fails if a byte of a range may not be read, or, if `writes`, not be written.
    pub fn check(&self, at: u64, size: u64, writes: bool) -> Answer {
        let all = self.all.lock();
        let needed = if writes { CU_MEM_ACCESS_FLAGS_PROT_READWRITE } else { CU_MEM_ACCESS_FLAGS_PROT_READ };
        let mut from = at;
        while from < at + size {
            let Some((start, mapping)) = all.range(..=from).next_back().filter(|(start, m)| *start + m.size > from)
            else {
                fail!(CUDA_ERROR_INVALID_VALUE, "no memory is mapped at byte {from:#x} of the reserved addresses")
            };
            if mapping.access & needed != needed {
                fail!(
                    CUDA_ERROR_INVALID_VALUE,
                    "the memory at byte {from:#x} of the reserved addresses has the access {}, and {needed} is needed: call cuMemSetAccess",
                    mapping.access
                );
            }
            from = start + mapping.size;
        }
        Ok(())
    }
}

/// The first bytes of the mappings of a range.
fn whole(all: &BTreeMap<u64, Mapping>, at: u64, size: u64) -> Answer<Vec<u64>> {
    let (mut next, mut found) = (at, Vec::new());
    while next < at + size {
        let Some(mapping) = all.get(&next) else {
            fail!(CUDA_ERROR_INVALID_VALUE, "no mapping begins at byte {next:#x} of the reserved addresses")
        };
        found.push(next);
        next += mapping.size;
    }
    if next != at + size {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "{size:#x} bytes end inside a mapping, which ends at byte {next:#x} of the reserved addresses"
        );
    }
    Ok(found)
}

/// Changes the access to one mapping. If that fails, nobody can use it.
fn change(buffer: &Buffer, at: u64, mapping: &mut Mapping, access: u32) -> Answer {
    if mapping.access == access {
        return Ok(());
    }
    if mapping.access != CU_MEM_ACCESS_FLAGS_PROT_NONE {
        buffer.unmap(at, mapping.size)?;
        mapping.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    }
    if access != CU_MEM_ACCESS_FLAGS_PROT_NONE {
        let flags = if access == CU_MEM_ACCESS_FLAGS_PROT_READ { READ_ONLY } else { 0 };
        buffer.map(at, &mapping.buffer, mapping.size, flags)?;
        mapping.access = access;
    }
    Ok(())
}
