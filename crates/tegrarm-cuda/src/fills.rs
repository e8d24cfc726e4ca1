//! Fills: values of 1, 2 or 4 bytes, in one row or in several.

use crate::allocations;
use crate::context::{settle, stream_of};
use crate::numbers::*;
use crate::result::{Answer, fail};
use crate::shapes::{Fill, reach};
use crate::works::{Work, give};

/// A fill of `rows` rows of `width` values.
pub fn described(address: u64, pitch: usize, value: u32, size: usize, width: usize, rows: usize) -> Answer<Fill> {
    if !address.is_multiple_of(size as u64) || (rows > 1 && !pitch.is_multiple_of(size)) {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "values of {size} bytes at {address:#x}, rows {pitch} bytes apart: they are not aligned"
        );
    }
    let Some(row) = width.checked_mul(size) else { fail!(CUDA_ERROR_INVALID_VALUE, "{width} values of {size} bytes") };
    let bytes = reach(row, rows, 1, if rows > 1 { pitch } else { row }, rows)?;
    let to = allocations::get_range(address, bytes as u64, true)?;
    Ok(Fill { to, pitch, width, rows, value, size })
}

/// Fills in the order of a stream.
fn run(address: u64, pitch: usize, value: u32, size: usize, [width, rows]: [usize; 2], stream: usize) -> Answer {
    crate::context::current()?;
    if width == 0 || rows == 0 {
        return Ok(());
    }
    let fill = described(address, pitch, value, size, width, rows)?;
    let (context, stream) = stream_of(stream)?;
    give(&context, &stream, &Work::Fill(fill))
}

/// Fills in the order of the default stream. The CPU sees memory that it has too when this returns.
fn run_now(address: u64, pitch: usize, value: u32, size: usize, counts: [usize; 2]) -> Answer {
    run(address, pitch, value, size, counts, 0)?;
    match allocations::find(address) {
        Some((memory, _)) if memory.kind.is_host() || memory.kind.is_managed() => settle(0),
        _ => Ok(()),
    }
}

/// The functions for values of one size: a row and rows, in order of the default stream and of any.
macro_rules! fills {
    ($kind:ty, $line:ident, $line_async:ident, $rows:ident, $rows_async:ident) => {
        pub fn $line(to: u64, value: $kind, count: usize) -> Answer {
            run_now(to, 0, value.into(), size_of::<$kind>(), [count, 1])
        }

        pub fn $line_async(to: u64, value: $kind, count: usize, stream: usize) -> Answer {
            run(to, 0, value.into(), size_of::<$kind>(), [count, 1], stream)
        }

        pub fn $rows(to: u64, pitch: usize, value: $kind, width: usize, rows: usize) -> Answer {
            run_now(to, pitch, value.into(), size_of::<$kind>(), [width, rows])
        }

        pub fn $rows_async(to: u64, pitch: usize, value: $kind, width: usize, rows: usize, stream: usize) -> Answer {
            run(to, pitch, value.into(), size_of::<$kind>(), [width, rows], stream)
        }
    };
}

pub mod rows {
    //! The functions of fills.

    use super::*;

    fills!(u8, cuMemsetD8_v2, cuMemsetD8Async, cuMemsetD2D8_v2, cuMemsetD2D8Async);
    fills!(u16, cuMemsetD16_v2, cuMemsetD16Async, cuMemsetD2D16_v2, cuMemsetD2D16Async);
    fills!(u32, cuMemsetD32_v2, cuMemsetD32Async, cuMemsetD2D32_v2, cuMemsetD2D32Async);
}
