//! Places in memory that CPU and GPU both use, looked for once: a device's memory ([`Memory`]), or the caller's.
//!
//! `unsafe` is here because others write this memory too: every access is volatile or a copy through raw pointers; no
//! Rust reference into it ever exists. Two things are relied on below. A place is mapped: [`Place::of`] and
//! [`Place::doorbell`] keep what they checked alive, and [`Place::foreign`] asks it of its caller. It is aligned for the words
//! read and written there: who makes a place for them calls [`Place::check`].
#![allow(unsafe_code)]

use super::memory::{Doorbell, Memory};
use crate::status::{RmResult, fail};
use std::any::Any;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// A place in memory, and what keeps it mapped.
#[derive(Clone)]
pub struct Place {
    at: usize,
    _keeps: Option<Arc<dyn Any + Send + Sync>>,
}

/// Bytes of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One.
    W1,
    /// Two.
    W2,
    /// Four.
    W4,
    /// Eight.
    W8,
    /// Four and the next four: the halves of a number that need not be aligned.
    W4W4,
}

impl Width {
    /// Of a number of bytes.
    ///
    /// # Errors
    /// 0x1F for another number than 1, 2, 4, 8.
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
    /// `len` bytes at `offset` of a device's memory.
    ///
    /// # Errors
    /// 0x20 when they lie outside.
    pub fn of(memory: &Arc<Memory>, offset: u64, len: u64) -> RmResult<Place> {
        memory.check(offset, len)?;
        Ok(Place { at: memory.cpu() + offset as usize, _keeps: Some(memory.clone()) })
    }

    /// The doorbell's word.
    pub fn doorbell(doorbell: &Arc<Doorbell>) -> Place {
        Place { at: doorbell.word(), _keeps: Some(doorbell.clone()) }
    }

    /// Memory of the caller's.
    ///
    /// # Safety
    /// It is valid for every read and write made through this value and its clones.
    pub unsafe fn foreign(at: usize) -> Place {
        Place { at, _keeps: None }
    }

    /// Whether words of this width may be accessed here.
    ///
    /// # Errors
    /// 0x1E when it is not aligned.
    pub fn check(&self, width: Width) -> RmResult<()> {
        if !self.at.is_multiple_of(width.bytes()) {
            fail!(NV_ERR_INVALID_ADDRESS, "{:#x} is no multiple of {}", self.at, width.bytes());
        }
        Ok(())
    }

    /// Reads a word.
    #[inline]
    pub fn read_u32(&self) -> u32 {
        // SAFETY: the place is mapped and aligned.
        u32::from_le(unsafe { (self.at as *const u32).read_volatile() })
    }

    /// Reads a double word, whole.
    #[inline]
    pub fn read_u64(&self) -> u64 {
        // SAFETY: the place is mapped and aligned.
        u64::from_le(unsafe { (self.at as *const u64).read_volatile() })
    }

    /// Reads the `index`-th double word from here on, aligned or not. Nobody else writes it meanwhile.
    #[inline]
    pub fn value(&self, index: usize) -> u64 {
        // SAFETY: mapped for as many values as the run was given, and a slot's index is below that; alignment is not
        // assumed.
        unsafe { (self.at as *const u64).add(index).read_unaligned() }
    }

    /// Writes the `index`-th double word from here on.
    #[inline]
    pub fn put_entry(&self, index: u64, value: u64) {
        // SAFETY: the place is a ring, mapped and aligned, and `index` is below its number of entries.
        unsafe { (self.at as *mut u64).add(index as usize).write_volatile(value.to_le()) }
    }

    /// Writes `value`'s low bytes, keeping the bits of `keep`; two halves keep none.
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

    /// Whether it lies this many bytes behind another place.
    pub fn follows(&self, other: &Place, bytes: usize) -> bool {
        self.at.checked_sub(other.at) == Some(bytes)
    }

    /// Copies bytes from another place; the two may overlap.
    #[inline]
    pub fn copy_from(&self, from: &Place, len: usize) {
        // SAFETY: both places are mapped for `len` bytes; overlap is allowed.
        unsafe { std::ptr::copy(from.at as *const u8, self.at as *mut u8, len) }
    }
}
