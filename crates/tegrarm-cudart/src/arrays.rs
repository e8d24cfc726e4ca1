//! CUDA arrays, which the driver makes and copies: the runtime describes their elements in its own way, and has copies that count in bytes
//! and go on in the next row.

use crate::calls::*;
use crate::memory::{ARRAY, HOST, Rows, kinds, rows_of};

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Descriptor {
    size: Extent,
    format: u32,
    channels: u32,
    flags: u32,
}

/// `cudaChannelFormatDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Channels {
    /// Bits of each channel. Those that are not there have 0.
    bits: [u32; 4],
    kind: u32,
}

/// A `cudaChannelFormatKind`, the bits of a channel, how many channels the kind has, or 0 if the bits say it, and the `CUarray_format`.
static FORMATS: &[(u32, u32, usize, u32)] = &[
    (0, 8, 0, 0x08),
    (0, 16, 0, 0x09),
    (0, 32, 0, 0x0A),
    (1, 8, 0, 0x01),
    (1, 16, 0, 0x02),
    (1, 32, 0, 0x03),
    (2, 16, 0, 0x10),
    (2, 32, 0, 0x20),
    (5, 8, 1, 0xC0),
    (6, 8, 2, 0xC1),
    (7, 8, 4, 0xC2),
    (8, 16, 1, 0xC3),
    (9, 16, 2, 0xC4),
    (10, 16, 4, 0xC5),
    (11, 8, 1, 0xC6),
    (12, 8, 2, 0xC7),
    (13, 8, 4, 0xC8),
    (14, 16, 1, 0xC9),
    (15, 16, 2, 0xCA),
    (16, 16, 4, 0xCB),
];

/// What the driver has to know of the elements of an array: their format and the number of channels.
fn format_of(given: &Channels) -> Answer<(u32, u32)> {
    const INVALID_CHANNEL_DESCRIPTOR: u32 = 20;
    let count = given.bits.iter().take_while(|bits| **bits != 0).count();
    let known = FORMATS.iter().find(|(kind, bits, channels, _)| {
        *kind == given.kind && *bits == given.bits[0] && (*channels == 0 || *channels == count)
    });
    let alike = given.bits.iter().all(|bits| *bits == 0 || *bits == given.bits[0]);
    match known {
        Some((.., format))
            if alike && matches!(count, 1 | 2 | 4) && given.bits[count..].iter().all(|bits| *bits == 0) =>
        {
            Ok((*format, count as u32))
        }
        _ => Err(INVALID_CHANNEL_DESCRIPTOR),
    }
}

fn described(array: usize) -> Answer<Descriptor> {
    let size = Extent { width: 0, height: 0, depth: 0 };
    let mut all = Descriptor { size, format: 0, channels: 0, flags: 0 };
    cu!("cuArray3DGetDescriptor_v2", &raw mut all, array)?;
    Ok(all)
}

/// The elements of an array, and their size in bytes.
fn channels_of(all: &Descriptor) -> Answer<(Channels, usize)> {
    let row = FORMATS.iter().find(|(.., format)| *format == all.format);
    let Some((kind, one, ..)) = row.copied() else { return Err(INVALID_VALUE) };
    let bits = std::array::from_fn(|at| if at < all.channels as usize { one } else { 0 });
    Ok((Channels { bits, kind }, one as usize / 8 * all.channels as usize))
}

/// Bytes of an element of an array.
pub fn element(array: usize) -> Answer<usize> {
    Ok(channels_of(&described(array)?)?.1)
}

fn make(to: usize, channels: usize, size: Extent, flags: usize) -> Answer {
    let (format, count) = format_of(&get(channels)?)?;
    let all = Descriptor { size, format, channels: count, flags: flags as u32 };
    cu!("cuArray3DCreate_v2", to, &raw const all)
}

/// An end of a copy: a box in an array.
fn in_array(array: usize, x: usize, y: usize) -> Rows {
    Rows { kind: ARRAY, address: array, pitch: 0, x, y }
}

/// The kind of memory of the other end of a copy. An array is in the GPU's memory, which `kind` must not deny.
fn other_end(kind: usize, to_array: bool) -> Answer<u32> {
    let (to, from) = kinds(kind)?;
    let (array, other) = if to_array { (to, from) } else { (from, to) };
    if array == HOST || kind as u32 == 0 { Err(INVALID_DIRECTION) } else { Ok(other) }
}

/// Copies rows, in a stream if there is one.
fn copy(to: Rows, from: Rows, [width, height]: [usize; 2], stream: Option<usize>) -> Answer {
    let words = rows_of(to, from, width, height)?;
    match stream {
        Some(stream) => cu!("cuMemcpy2DAsync_v2", words.as_ptr(), stream),
        None => cu!("cuMemcpy2D_v2", words.as_ptr()),
    }
}

/// An end of a copy of bytes that goes on at the beginning of the next row, and the bytes of its rows.
#[derive(Clone, Copy)]
struct Walk {
    at: Rows,
    row: Option<usize>,
}

impl Walk {
    /// `count` bytes of an array, from a place on.
    fn array(array: usize, x: usize, y: usize, count: usize) -> Answer<Walk> {
        let all = described(array)?;
        let row = channels_of(&all)?.1 * all.size.width;
        let end = y.checked_mul(row).and_then(|before| before.checked_add(x)?.checked_add(count));
        if x >= row || end.is_none_or(|end| end > row * all.size.height.max(1)) {
            return Err(INVALID_VALUE);
        }
        Ok(Walk { at: in_array(array, x, y), row: Some(row) })
    }

    fn memory(kind: u32, address: usize) -> Walk {
        Walk { at: Rows::new(kind, address, 0), row: None }
    }

    /// The bytes up to the end of the row.
    fn rest(&self) -> usize {
        self.row.map_or(usize::MAX, |row| row - self.at.x)
    }

    /// Whether rows of this size follow each other from here on.
    fn has_rows(&self, width: usize) -> bool {
        self.row.is_none_or(|row| self.at.x == 0 && row == width)
    }

    fn go_on(&mut self, width: usize, rows: usize) {
        match self.row {
            None => self.at.address += width * rows,
            Some(row) if self.at.x + width == row => (self.at.x, self.at.y) = (0, self.at.y + rows),
            Some(_) => self.at.x += width,
        }
    }
}

/// Copies bytes: the rest of a row, whole rows at once, and the beginning of one.
fn walk(mut to: Walk, mut from: Walk, mut count: usize, stream: Option<usize>) -> Answer {
    while count > 0 {
        let width = count.min(to.rest()).min(from.rest());
        let rows = if to.has_rows(width) && from.has_rows(width) { count / width } else { 1 };
        (to.at.pitch, from.at.pitch) = (width, width);
        copy(to.at, from.at, [width, rows], stream)?;
        to.go_on(width, rows);
        from.go_on(width, rows);
        count -= width * rows;
    }
    Ok(())
}

pub mod rows {
    //! The functions of arrays.

    use super::*;

    pub fn cudaMallocArray([to, channels, width, height, flags]: [usize; 5]) -> Answer {
        make(to, channels, Extent { width, height, depth: 0 }, flags)
    }

    pub fn cudaMalloc3DArray(to: usize, channels: usize, size: Extent, flags: usize) -> Answer {
        make(to, channels, size, flags)
    }

    pub fn cudaMallocMipmappedArray(to: usize, channels: usize, size: Extent, levels: usize, flags: usize) -> Answer {
        let (format, count) = format_of(&get(channels)?)?;
        let all = Descriptor { size, format, channels: count, flags: flags as u32 };
        cu!("cuMipmappedArrayCreate", to, &raw const all, levels)
    }

    pub fn cudaFreeArray([array]: [usize; 1]) -> Answer {
        if array == 0 { Ok(()) } else { cu!("cuArrayDestroy", array) }
    }

    pub fn cudaFreeMipmappedArray([array]: [usize; 1]) -> Answer {
        if array == 0 { Ok(()) } else { cu!("cuMipmappedArrayDestroy", array) }
    }

    /// Each of the three answers may be left out.
    pub fn cudaArrayGetInfo([channels, size, flags, array]: [usize; 4]) -> Answer {
        let all = described(array)?;
        let elements = channels_of(&all)?.0;
        if channels != 0 {
            set(channels, elements)?;
        }
        if size != 0 {
            set(size, all.size)?;
        }
        if flags != 0 { set(flags, all.flags) } else { Ok(()) }
    }

    pub fn cudaGetChannelDesc([channels, array]: [usize; 2]) -> Answer {
        set(channels, channels_of(&described(array)?)?.0)
    }

    fn rows_to([array, x, y, from, pitch, width, height, kind]: [usize; 8], stream: Option<usize>) -> Answer {
        copy(in_array(array, x, y), Rows::new(other_end(kind, true)?, from, pitch), [width, height], stream)
    }

    fn rows_from([to, pitch, array, x, y, width, height, kind]: [usize; 8], stream: Option<usize>) -> Answer {
        copy(Rows::new(other_end(kind, false)?, to, pitch), in_array(array, x, y), [width, height], stream)
    }

    fn bytes_to([array, x, y, from, count, kind]: [usize; 6], stream: Option<usize>) -> Answer {
        walk(Walk::array(array, x, y, count)?, Walk::memory(other_end(kind, true)?, from), count, stream)
    }

    fn bytes_from([to, array, x, y, count, kind]: [usize; 6], stream: Option<usize>) -> Answer {
        walk(Walk::memory(other_end(kind, false)?, to), Walk::array(array, x, y, count)?, count, stream)
    }

    /// A copy, and the same in a stream.
    macro_rules! copies {
        ($copy:ident, $in_stream:ident, $does:ident, $count:literal, $more:literal) => {
            pub fn $copy(arguments: [usize; $count]) -> Answer {
                $does(arguments, None)
            }

            pub fn $in_stream(arguments: [usize; $more]) -> Answer {
                let [first @ .., stream] = arguments;
                $does(first, Some(stream))
            }
        };
    }

    copies!(cudaMemcpy2DToArray, cudaMemcpy2DToArrayAsync, rows_to, 8, 9);
    copies!(cudaMemcpy2DFromArray, cudaMemcpy2DFromArrayAsync, rows_from, 8, 9);
    copies!(cudaMemcpyToArray, cudaMemcpyToArrayAsync, bytes_to, 6, 7);
    copies!(cudaMemcpyFromArray, cudaMemcpyFromArrayAsync, bytes_from, 6, 7);

    fn between(kind: usize) -> Answer {
        match kinds(kind)? {
            (to, from) if kind as u32 != 0 && to != HOST && from != HOST => Ok(()),
            _ => Err(INVALID_DIRECTION),
        }
    }

    pub fn cudaMemcpy2DArrayToArray([to, tx, ty, from, fx, fy, width, height, kind]: [usize; 9]) -> Answer {
        between(kind)?;
        copy(in_array(to, tx, ty), in_array(from, fx, fy), [width, height], None)
    }

    pub fn cudaMemcpyArrayToArray([to, tx, ty, from, fx, fy, count, kind]: [usize; 8]) -> Answer {
        between(kind)?;
        walk(Walk::array(to, tx, ty, count)?, Walk::array(from, fx, fy, count)?, count, None)
    }
}
