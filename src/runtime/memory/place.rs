//! Places in memory that the CPU and the GPU both use, with bounds that were checked once. They are in a device's
//! memory ([`Memory`]) or in the caller's.
//!
//! `unsafe` is here because others write this memory too: the GPU, and for a signal of the caller also its threads. Every
//! access is volatile, atomic, or a copy through raw pointers, and no other Rust reference into the memory ever exists. The code below relies on two properties. A place is mapped:
//! [`Place::of`] and [`Place::doorbell`] keep the memory alive, and [`Place::foreign`] demands it of its caller. A
//! place is aligned for the words that are read and written there: the code that makes a place for words calls
//! [`Place::check`].
#![allow(unsafe_code)]

use crate::runtime::memory::Memory;
use crate::runtime::memory::doorbell::Doorbell;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// A place in memory, and the owner that keeps it mapped.
#[derive(Clone)]
pub struct Place {
    at: usize,
    _keeps: Option<Arc<dyn Any + Send + Sync>>,
}

/// The width of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    W1,
    /// Two bytes.
    W2,
    /// Four bytes.
    W4,
    /// Eight bytes.
    W8,
    /// Two times four bytes: the halves of a number that need not be aligned.
    W4W4,
}

impl Width {
    /// The width of a number of bytes.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for another number than 1, 2, 4 and 8.
    pub fn of(bytes: u32) -> RmResult<Width> {
        Ok(match bytes {
            1 => Width::W1,
            2 => Width::W2,
            4 => Width::W4,
            8 => Width::W8,
            _ => fail!(NV_ERR_INVALID_ARGUMENT, "{bytes} bytes to patch: 1, 2, 4 or 8 can be"),
        })
    }

    fn bytes(self) -> usize {
        match self {
            Width::W1 => 1,
            Width::W2 => 2,
            Width::W4 | Width::W4W4 => 4,
            Width::W8 => 8,
        }
    }
}

impl Place {
    /// The place of `len` bytes at `offset` of a device's memory.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if they lie outside, or if they are reserved addresses without memory.
    pub fn of(memory: &Arc<Memory>, offset: u64, len: u64) -> RmResult<Place> {
        memory.check(offset, len)?;
        let keeps: Arc<dyn Any + Send + Sync> = match memory.kept(offset, len)? {
            Some(mappings) => Arc::new((mappings, memory.clone())),
            None => memory.clone(),
        };
        Ok(Place { at: memory.cpu() + offset as usize, _keeps: Some(keeps) })
    }

    /// The place of the doorbell's word.
    pub fn doorbell(doorbell: &Arc<Doorbell>) -> Place {
        Place { at: doorbell.word(), _keeps: Some(doorbell.clone()) }
    }

    /// A place in memory of the caller.
    ///
    /// # Safety
    /// The memory is valid for every read and write that is made through this value and its clones.
    pub unsafe fn foreign(at: usize) -> Place {
        Place { at, _keeps: None }
    }

    /// Checks that words of this width may be accessed here.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ADDRESS` if the place is not aligned.
    pub fn check(&self, width: Width) -> RmResult<()> {
        if !self.at.is_multiple_of(width.bytes()) {
            fail!(NV_ERR_INVALID_ADDRESS, "{:#x} is no multiple of {}", self.at, width.bytes());
        }
        Ok(())
    }

    /// Reads a word, which the GPU or another thread of the program writes. What it wrote before can be read after this.
    #[inline]
    pub fn read_u32(&self) -> u32 {
        // SAFETY: the place is mapped and aligned.
        u32::from_le(unsafe { AtomicU32::from_ptr(self.at as *mut u32) }.load(Ordering::Acquire))
    }

    /// Reads a double word in the same way, with one access.
    #[inline]
    pub fn read_u64(&self) -> u64 {
        // SAFETY: the place is mapped and aligned.
        u64::from_le(unsafe { AtomicU64::from_ptr(self.at as *mut u64) }.load(Ordering::Acquire))
    }

    /// Reads the double word with this index, counted from the place, which need not be aligned. Nobody else writes it
    /// meanwhile.
    #[inline]
    pub fn value(&self, index: usize) -> u64 {
        // SAFETY: the memory is mapped for as many values as the run was given, and the index of a slot is below that
        // number. Alignment is not assumed.
        unsafe { (self.at as *const u64).add(index).read_unaligned() }
    }

    /// Writes the double word with this index, counted from the place.
    #[inline]
    pub fn put_entry(&self, index: u64, value: u64) {
        // SAFETY: the place is a ring that is mapped and aligned, and `index` is below its number of entries.
        unsafe { (self.at as *mut u64).add(index as usize).write_volatile(value.to_le()) }
    }

    /// Writes the low bytes of `value`, except for the bits of `keep`. If two halves are written, `keep` is not used.
    #[inline]
    pub fn write(&self, width: Width, keep: u64, value: u64) {
        macro_rules! store {
            ($t:ty) => {{
                let p = self.at as *mut $t;
                let mut word = value as $t;
                if keep != 0 {
                    // SAFETY: the place is mapped and aligned.
                    let old = <$t>::from_le(unsafe { p.read_volatile() });
                    word = old & keep as $t | word & !keep as $t;
                }
                // SAFETY: the place is mapped and aligned.
                unsafe { p.write_volatile(word.to_le()) }
            }};
        }
        match width {
            Width::W1 => store!(u8),
            Width::W2 => store!(u16),
            Width::W4 => store!(u32),
            Width::W8 => store!(u64),
            Width::W4W4 => {
                let p = self.at as *mut u32;
                // SAFETY: the place is mapped for both words and aligned for one.
                unsafe {
                    p.write_volatile((value as u32).to_le());
                    p.add(1).write_volatile(((value >> 32) as u32).to_le());
                }
            }
        }
    }

    /// Whether the place is this many bytes after another one.
    pub fn follows(&self, other: &Place, bytes: usize) -> bool {
        self.at.checked_sub(other.at) == Some(bytes)
    }

    /// Copies bytes from another place. The two may overlap.
    #[inline]
    pub fn copy_from(&self, from: &Place, len: usize) {
        // SAFETY: both places are mapped for `len` bytes, and the copy allows them to overlap.
        tegrarm_kmd::watched::unseen(|| unsafe { std::ptr::copy(from.at as *const u8, self.at as *mut u8, len) });
    }
}
