//! Copies: of one row, of rows, of layers.

use crate::arrays;
use crate::context::{settle, stream_of};
use crate::numbers::*;
use crate::pointers::Ptr;
use crate::result::{Answer, fail};
use crate::shapes::{End, Shape, Side, reach};
use crate::structures::{CopyAttributes, Memcpy2d, Memcpy3d};
use crate::works::{Work, give};
use std::ffi::c_void;

/// Gives a copy to a stream. One of memory of the CPU has finished when this returns, if `waits`.
fn run(shape: Shape, stream: usize, waits: bool) -> Answer {
    let (context, stream) = stream_of(stream)?;
    let with_host = shape.to.is_host() || shape.from.is_host();
    give(&context, &stream, &Work::Copy(shape))?;
    if waits && with_host { context.settle(&stream) } else { Ok(()) }
}

fn line(to: (Side, u64), from: (Side, u64), size: usize, stream: usize, waits: bool) -> Answer {
    crate::context::current()?;
    run(Shape::line(to, from, size)?, stream, waits)
}

/// A row of bytes from or to an array of one row.
fn row(
    to: impl FnOnce() -> Answer<End>,
    from: impl FnOnce() -> Answer<End>,
    size: usize,
    stream: usize,
    waits: bool,
) -> Answer {
    crate::context::current()?;
    run(Shape { to: to()?, from: from()?, width: size, rows: 1, layers: 1 }, stream, waits)
}

/// One end as the structures of copies describe it: the position of the first byte, the kind, the addresses, the steps.
struct Described {
    position: [usize; 3],
    kind: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
    height: usize,
}

impl Described {
    fn end(&self, [width, rows, layers]: [usize; 3], writes: bool) -> Answer<End> {
        let (side, base) = match self.kind {
            CU_MEMORYTYPE_HOST => (Side::Host, self.host),
            CU_MEMORYTYPE_DEVICE => (Side::Device, self.device),
            CU_MEMORYTYPE_UNIFIED => (Side::Unified, self.device),
            CU_MEMORYTYPE_ARRAY => return arrays::end(self.array as usize, self.position, [width, rows, layers]),
            other => fail!(CUDA_ERROR_INVALID_VALUE, "the type {other} of memory"),
        };
        // A pitch of 0 means rows without gaps, and a height of 0 layers without gaps.
        let (pitch, height) =
            (if self.pitch == 0 { width } else { self.pitch }, if self.height == 0 { rows } else { self.height });
        let [x, y, z] = self.position;
        let first = z.checked_mul(height).and_then(|rows| rows.checked_add(y)).and_then(|rows| rows.checked_mul(pitch));
        let Some(address) =
            first.and_then(|first| first.checked_add(x)).and_then(|first| base.checked_add(first as u64))
        else {
            fail!(CUDA_ERROR_INVALID_VALUE, "the position {x}, {y}, {z} of a copy")
        };
        End::at(side, address, reach(width, rows, layers, pitch, height)?, [pitch, height], writes)
    }
}

/// The shape that `CUDA_MEMCPY3D` describes.
pub fn shape_of(copy: &Memcpy3d) -> Answer<Shape> {
    if copy.src_lod != 0 || copy.dst_lod != 0 {
        fail!(CUDA_ERROR_INVALID_VALUE, "srcLOD and dstLOD must be 0");
    }
    let size = [copy.width, copy.height, copy.depth];
    let from = Described {
        position: [copy.src_x, copy.src_y, copy.src_z],
        kind: copy.src_type,
        host: copy.src_host,
        device: copy.src_device,
        array: copy.src_array,
        pitch: copy.src_pitch,
        height: copy.src_height,
    };
    let to = Described {
        position: [copy.dst_x, copy.dst_y, copy.dst_z],
        kind: copy.dst_type,
        host: copy.dst_host,
        device: copy.dst_device,
        array: copy.dst_array,
        pitch: copy.dst_pitch,
        height: copy.dst_height,
    };
    let (to, from) = (to.end(size, true)?, from.end(size, false)?);
    Ok(Shape { to, from, width: copy.width, rows: copy.height, layers: copy.depth })
}

/// The shape that `CUDA_MEMCPY2D` describes.
fn shape_of_rows(copy: &Memcpy2d) -> Answer<Shape> {
    let size = [copy.width, copy.height, 1];
    let from = Described {
        position: [copy.src_x, copy.src_y, 0],
        kind: copy.src_type,
        host: copy.src_host,
        device: copy.src_device,
        array: copy.src_array,
        pitch: copy.src_pitch,
        height: 0,
    };
    let to = Described {
        position: [copy.dst_x, copy.dst_y, 0],
        kind: copy.dst_type,
        host: copy.dst_host,
        device: copy.dst_device,
        array: copy.dst_array,
        pitch: copy.dst_pitch,
        height: 0,
    };
    let (to, from) = (to.end(size, true)?, from.end(size, false)?);
    Ok(Shape { to, from, width: copy.width, rows: copy.height, layers: 1 })
}

fn rows_of(copy: Ptr<c_void>, stream: usize, waits: bool) -> Answer {
    crate::context::current()?;
    run(shape_of_rows(&copy.cast::<Memcpy2d>().get("pCopy")?)?, stream, waits)
}

fn layers_of(copy: Ptr<c_void>, stream: usize, waits: bool) -> Answer {
    crate::context::current()?;
    run(shape_of(&copy.cast::<Memcpy3d>().get("pCopy")?)?, stream, waits)
}

pub mod rows {
    //! The functions of copies.

    use super::*;
    use crate::context::context;
    use Side::{Device, Host, Unified};

    pub fn cuMemcpy(to: u64, from: u64, size: usize) -> Answer {
        line((Unified, to), (Unified, from), size, 0, true)
    }

    pub fn cuMemcpyAsync(to: u64, from: u64, size: usize, stream: usize) -> Answer {
        line((Unified, to), (Unified, from), size, stream, false)
    }

    pub fn cuMemcpyHtoD_v2(to: u64, from: Ptr<c_void>, size: usize) -> Answer {
        line((Device, to), (Host, from.address() as u64), size, 0, true)
    }

    pub fn cuMemcpyHtoDAsync_v2(to: u64, from: Ptr<c_void>, size: usize, stream: usize) -> Answer {
        line((Device, to), (Host, from.address() as u64), size, stream, false)
    }

    pub fn cuMemcpyDtoH_v2(to: Ptr<c_void>, from: u64, size: usize) -> Answer {
        line((Host, to.address() as u64), (Device, from), size, 0, true)
    }

    pub fn cuMemcpyDtoHAsync_v2(to: Ptr<c_void>, from: u64, size: usize, stream: usize) -> Answer {
        line((Host, to.address() as u64), (Device, from), size, stream, false)
    }

    pub fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) -> Answer {
        line((Device, to), (Device, from), size, 0, false)
    }

    pub fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, size: usize, stream: usize) -> Answer {
        line((Device, to), (Device, from), size, stream, false)
    }

    pub fn cuMemcpyAtoA_v2(to: usize, to_at: usize, from: usize, from_at: usize, size: usize) -> Answer {
        row(|| arrays::line(to, to_at, size), || arrays::line(from, from_at, size), size, 0, false)
    }

    pub fn cuMemcpyAtoD_v2(to: u64, from: usize, from_at: usize, size: usize) -> Answer {
        row(|| End::line(Device, to, size, true), || arrays::line(from, from_at, size), size, 0, false)
    }

    pub fn cuMemcpyDtoA_v2(to: usize, to_at: usize, from: u64, size: usize) -> Answer {
        row(|| arrays::line(to, to_at, size), || End::line(Device, from, size, false), size, 0, false)
    }

    pub fn cuMemcpyAtoH_v2(to: Ptr<c_void>, from: usize, from_at: usize, size: usize) -> Answer {
        to_host(to, (from, from_at), size, 0, true)
    }

    pub fn cuMemcpyAtoHAsync_v2(to: Ptr<c_void>, from: usize, from_at: usize, size: usize, stream: usize) -> Answer {
        to_host(to, (from, from_at), size, stream, false)
    }

    pub fn cuMemcpyHtoA_v2(to: usize, to_at: usize, from: Ptr<c_void>, size: usize) -> Answer {
        from_host((to, to_at), from, size, 0, true)
    }

    pub fn cuMemcpyHtoAAsync_v2(to: usize, to_at: usize, from: Ptr<c_void>, size: usize, stream: usize) -> Answer {
        from_host((to, to_at), from, size, stream, false)
    }

    fn to_host(to: Ptr<c_void>, (from, at): (usize, usize), size: usize, stream: usize, waits: bool) -> Answer {
        let to = || End::line(Host, to.address() as u64, size, true);
        row(to, || arrays::line(from, at, size), size, stream, waits)
    }

    fn from_host((to, at): (usize, usize), from: Ptr<c_void>, size: usize, stream: usize, waits: bool) -> Answer {
        let from = || End::line(Host, from.address() as u64, size, false);
        row(|| arrays::line(to, at, size), from, size, stream, waits)
    }

    pub fn cuMemcpyPeer(to: u64, to_context: usize, from: u64, from_context: usize, size: usize) -> Answer {
        cuMemcpyPeerAsync(to, to_context, from, from_context, size, 0)?;
        settle(0)
    }

    /// Both contexts are of the one GPU that there is. The work that the other context has is waited for first.
    pub fn cuMemcpyPeerAsync(
        to: u64,
        to_context: usize,
        from: u64,
        from_context: usize,
        size: usize,
        stream: usize,
    ) -> Answer {
        for handle in [to_context, from_context] {
            let other = context(handle)?;
            if other.handle != crate::context::current_handle() {
                other.synchronize()?;
            }
        }
        line((Device, to), (Device, from), size, stream, false)
    }

    pub fn cuMemcpy2D_v2(copy: Ptr<c_void>) -> Answer {
        rows_of(copy, 0, true)
    }

    pub fn cuMemcpy2DUnaligned_v2(copy: Ptr<c_void>) -> Answer {
        rows_of(copy, 0, true)
    }

    pub fn cuMemcpy2DAsync_v2(copy: Ptr<c_void>, stream: usize) -> Answer {
        rows_of(copy, stream, false)
    }

    pub fn cuMemcpy3D_v2(copy: Ptr<c_void>) -> Answer {
        layers_of(copy, 0, true)
    }

    pub fn cuMemcpy3DAsync_v2(copy: Ptr<c_void>, stream: usize) -> Answer {
        layers_of(copy, stream, false)
    }

    pub fn cuMemcpy3DPeer(copy: Ptr<c_void>) -> Answer {
        cuMemcpy3DPeerAsync(copy, 0)?;
        settle(0)
    }

    pub fn cuMemcpy3DPeerAsync(copy: Ptr<c_void>, stream: usize) -> Answer {
        let described = copy.cast::<Memcpy3d>().get("pCopy")?;
        for handle in [described.src_context, described.dst_context] {
            let other = context(handle as usize)?;
            if other.handle != crate::context::current_handle() {
                other.synchronize()?;
            }
        }
        layers_of(copy, stream, false)
    }

    /// When the sources of a batch may be read: fails unless the attributes are for all copies and have values of CUDA's. The places of
    /// memory are hints, and the addresses say them too.
    fn check_batch(attributes: &[CopyAttributes], first: &[usize], count: usize) -> Answer {
        for (index, one) in attributes.iter().enumerate() {
            let orders = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM..=CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
            if !orders.contains(&one.order) || one.flags & !CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE != 0 {
                fail!(CUDA_ERROR_INVALID_VALUE, "the access order {} with the flags {:#x}", one.order, one.flags);
            }
            let follows = if index == 0 { first[0] == 0 } else { first[index] > first[index - 1] };
            if !follows || first[index] >= count {
                fail!(
                    CUDA_ERROR_INVALID_VALUE,
                    "the attributes {index} begin with the copy {} of {count}",
                    first[index]
                );
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "it is cuda.h's")]
    pub fn cuMemcpyBatchAsync_v2(
        to: Ptr<u64>,
        from: Ptr<u64>,
        sizes: Ptr<usize>,
        count: usize,
        attributes: Ptr<c_void>,
        indices: Ptr<usize>,
        attribute_count: usize,
        stream: usize,
    ) -> Answer {
        if count == 0 || attribute_count > count || attributes.is_null() != (attribute_count == 0) {
            fail!(CUDA_ERROR_INVALID_VALUE, "{count} copies with {attribute_count} attributes");
        }
        if stream <= 1 {
            fail!(CUDA_ERROR_INVALID_VALUE, "a batch of copies cannot be given to the legacy default stream");
        }
        let attributes = attributes.cast::<CopyAttributes>().list(attribute_count, "attrs")?;
        check_batch(&attributes, &indices.list(attribute_count, "attrsIdxs")?, count)?;
        let (to, from, sizes) = (to.list(count, "dsts")?, from.list(count, "srcs")?, sizes.list(count, "sizes")?);
        for ((to, from), size) in to.into_iter().zip(from).zip(sizes) {
            line((Unified, to), (Unified, from), size, stream, false)?;
        }
        // Sources that are read during the call may change after it.
        if attributes.iter().any(|one| one.order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL) {
            settle(stream)?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "it is cuda.h's")]
    pub fn cuMemcpyBatchAsync(
        to: Ptr<u64>,
        from: Ptr<u64>,
        sizes: Ptr<usize>,
        count: usize,
        attributes: Ptr<c_void>,
        indices: Ptr<usize>,
        attribute_count: usize,
        failed: Ptr<usize>,
        stream: usize,
    ) -> Answer {
        failed.set_any(usize::MAX);
        cuMemcpyBatchAsync_v2(to, from, sizes, count, attributes, indices, attribute_count, stream)
    }
}
