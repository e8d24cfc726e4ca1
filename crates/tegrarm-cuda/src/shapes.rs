//! The geometry of copies and fills: rows and layers, from one place to another.

use crate::allocations::{self, Allocation};
use crate::numbers::*;
use crate::result::{Answer, fail};
use std::sync::Arc;

/// One end of a copy.
#[derive(Clone)]
pub struct End {
    /// The memory, if it is memory that the library knows.
    pub memory: Option<(Arc<Allocation>, u64)>,
    /// The CPU's address of the first byte.
    pub pointer: usize,
    /// Bytes from one row to the next.
    pub pitch: usize,
    /// Rows from one layer to the next.
    pub height: usize,
}

/// A copy: rows of bytes, layers of rows.
#[derive(Clone)]
pub struct Shape {
    /// Where the bytes go.
    pub to: End,
    /// Where they come from.
    pub from: End,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a layer.
    pub rows: usize,
    /// Layers.
    pub layers: usize,
}

/// A fill.
#[derive(Clone)]
pub struct Fill {
    /// The memory, and the offset of the first byte there.
    pub to: (Arc<Allocation>, u64),
    /// Bytes from one row to the next.
    pub pitch: usize,
    /// Values of a row.
    pub width: usize,
    /// Rows.
    pub rows: usize,
    /// The value.
    pub value: u32,
    /// Its size: 1, 2 or 4 bytes.
    pub size: usize,
}

/// What a pointer is said to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Memory of the program.
    Host,
    /// Memory of the device.
    Device,
    /// Either: the address says it.
    Unified,
}

impl End {
    /// The end of a copy of one row.
    pub fn line(side: Side, address: u64, size: usize, writes: bool) -> Answer<End> {
        End::at(side, address, size, [size, 1], writes)
    }

    /// An end whose bytes are within `reach` bytes from the address, with its pitch and height. `writes` says that the copy goes there.
    pub fn at(side: Side, address: u64, reach: usize, [pitch, height]: [usize; 2], writes: bool) -> Answer<End> {
        if reach == 0 {
            return Ok(End { memory: None, pointer: address as usize, pitch, height });
        }
        let found = match side {
            Side::Device | Side::Unified => allocations::find(address),
            Side::Host => allocations::find_pointer(address as usize),
        };
        match found {
            Some((memory, offset)) => {
                memory.check(offset, reach as u64, writes)?;
                let pointer = memory.pointer + offset as usize;
                Ok(End { memory: Some((memory, offset)), pointer, pitch, height })
            }
            None if side == Side::Device => {
                fail!(CUDA_ERROR_INVALID_VALUE, "{address:#x} is not an address in memory of the device")
            }
            None if address == 0 => fail!(CUDA_ERROR_INVALID_VALUE, "a copy of {reach} bytes from or to NULL"),
            None => Ok(End { memory: None, pointer: address as usize, pitch, height }),
        }
    }

    /// Whether it is memory of the program that the GPU does not see.
    pub fn is_pageable(&self) -> bool {
        self.memory.is_none()
    }

    /// Whether it is memory of the CPU, pinned or not.
    pub fn is_host(&self) -> bool {
        self.memory.as_ref().is_none_or(|(memory, _)| memory.kind.is_host())
    }
}

impl Shape {
    /// A copy of `size` bytes.
    pub fn line(to: (Side, u64), from: (Side, u64), size: usize) -> Answer<Shape> {
        let (to, from) = (End::line(to.0, to.1, size, true)?, End::line(from.0, from.1, size, false)?);
        Ok(Shape { to, from, width: size, rows: 1, layers: 1 })
    }

    /// Fails if memory that was mapped when the copy was described is not any more: a graph does it later.
    pub fn check_mapped(&self) -> Answer {
        for (end, writes) in [(&self.to, true), (&self.from, false)] {
            if let Some((memory, offset)) = end.memory.as_ref().filter(|(memory, _)| memory.mappings.is_some()) {
                let reach = reach(self.width, self.rows, self.layers, end.pitch, end.height)?;
                memory.check(*offset, reach as u64, writes)?;
            }
        }
        Ok(())
    }

    /// How many bytes it copies.
    pub fn bytes(&self) -> usize {
        self.width * self.rows * self.layers
    }

    /// The pieces without gaps: how many bytes from the start each is, at both ends, and how long it is.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let (width, rows, layers) = (self.width, self.rows, self.layers);
        let (to, from) = ((self.to.pitch, self.to.height), (self.from.pitch, self.from.height));
        let dense = rows == 1 || (to.0 == width && from.0 == width);
        let (rows, width) = if dense { (1, width * rows) } else { (rows, width) };
        (0..layers).flat_map(move |z| {
            (0..rows).map(move |y| (z * to.0 * to.1 + y * to.0, z * from.0 * from.1 + y * from.0, width))
        })
    }

    /// How many pieces there are.
    pub fn count(&self) -> usize {
        let dense = self.rows == 1 || (self.to.pitch == self.width && self.from.pitch == self.width);
        self.layers * if dense { 1 } else { self.rows }
    }
}

/// How many bytes an end of a copy reaches from its first byte.
pub fn reach(width: usize, rows: usize, layers: usize, pitch: usize, height: usize) -> Answer<usize> {
    if width == 0 || rows == 0 || layers == 0 {
        return Ok(0);
    }
    let behind = (layers - 1)
        .checked_mul(height)
        .and_then(|all| all.checked_add(rows - 1))
        .and_then(|rows| rows.checked_mul(pitch));
    match behind.and_then(|behind| behind.checked_add(width)) {
        Some(reach) if (rows == 1 && layers == 1) || pitch >= width => Ok(reach),
        _ => fail!(CUDA_ERROR_INVALID_VALUE, "rows of {width} bytes, {pitch} bytes apart"),
    }
}
