//! Memory: allocations, copies, fills, symbols.

use crate::calls::*;
use crate::images::variable;

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

/// The kinds of memory of destination and source for a `cudaMemcpyKind`.
fn kinds(kind: usize) -> Answer<(u32, u32)> {
    Ok(match kind as u32 {
        // The program may give memory of managed or pinned allocations too: the driver finds out.
        0 | 4 => (UNIFIED, UNIFIED),
        1 => (DEVICE, HOST),
        2 => (HOST, DEVICE),
        3 => (DEVICE, DEVICE),
        _ => return Err(INVALID_DIRECTION),
    })
}

fn copy(to: usize, from: usize, size: usize, kind: usize) -> Answer {
    match kinds(kind)? {
        (DEVICE, HOST) => cu!("cuMemcpyHtoD_v2", to, from, size),
        (HOST, DEVICE) => cu!("cuMemcpyDtoH_v2", to, from, size),
        (DEVICE, DEVICE) => cu!("cuMemcpyDtoD_v2", to, from, size),
        _ => cu!("cuMemcpy", to, from, size),
    }
}

fn copy_async(to: usize, from: usize, size: usize, kind: usize, stream: usize) -> Answer {
    match kinds(kind)? {
        (DEVICE, HOST) => cu!("cuMemcpyHtoDAsync_v2", to, from, size, stream),
        (HOST, DEVICE) => cu!("cuMemcpyDtoHAsync_v2", to, from, size, stream),
        (DEVICE, DEVICE) => cu!("cuMemcpyDtoDAsync_v2", to, from, size, stream),
        _ => cu!("cuMemcpyAsync", to, from, size, stream),
    }
}

/// One end of `CUDA_MEMCPY2D` and `CUDA_MEMCPY3D`.
fn addresses(kind: u32, address: usize) -> (u64, u64) {
    if kind == HOST { (address as u64, 0) } else { (0, address as u64) }
}

/// `CUDA_MEMCPY2D`, as words.
fn rows_of(
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: usize,
) -> Answer<[u64; 16]> {
    const INVALID_PITCH: u32 = 12;
    if width > to_pitch || width > from_pitch {
        return Err(INVALID_PITCH);
    }
    let (to_kind, from_kind) = kinds(kind)?;
    let ((to_host, to_device), (from_host, from_device)) = (addresses(to_kind, to), addresses(from_kind, from));
    Ok([
        0,
        0,
        from_kind.into(),
        from_host,
        from_device,
        0,
        from_pitch as u64,
        0,
        0,
        to_kind.into(),
        to_host,
        to_device,
        0,
        to_pitch as u64,
        width as u64,
        height as u64,
    ])
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Parameters {
    from_array: usize,
    from_at: [u64; 3],
    from: PitchedPtr,
    to_array: usize,
    to_at: [u64; 3],
    to: PitchedPtr,
    size: Extent,
    kind: u32,
}

/// `CUDA_MEMCPY3D`, as words.
fn layers_of(parameters: usize) -> Answer<[u64; 25]> {
    let p: Parameters = get(parameters)?;
    if p.from_array != 0 || p.to_array != 0 {
        say("a copy of a CUDA array is refused: arrays need textures, which the GPU model does not execute");
        return Err(NOT_SUPPORTED);
    }
    let (to_kind, from_kind) = kinds(p.kind as usize)?;
    let ((to_host, to_device), (from_host, from_device)) =
        (addresses(to_kind, p.to.ptr), addresses(from_kind, p.from.ptr));
    let [fx, fy, fz] = p.from_at;
    let [tx, ty, tz] = p.to_at;
    Ok([
        fx,
        fy,
        fz,
        0,
        from_kind.into(),
        from_host,
        from_device,
        0,
        0,
        p.from.pitch as u64,
        p.from.height as u64,
        tx,
        ty,
        tz,
        0,
        to_kind.into(),
        to_host,
        to_device,
        0,
        0,
        p.to.pitch as u64,
        p.to.height as u64,
        p.size.width as u64,
        p.size.height as u64,
        p.size.depth as u64,
    ])
}

/// The address of `size` bytes of a variable.
fn part(symbol: usize, size: usize, offset: usize) -> Answer<usize> {
    let (address, all) = variable(symbol)?;
    match offset.checked_add(size) {
        Some(end) if end <= all => Ok(address + offset),
        _ => Err(INVALID_VALUE),
    }
}

fn context() -> Answer<usize> {
    let mut context = 0usize;
    cu!("cuCtxGetCurrent", &raw mut context)?;
    Ok(context)
}

/// Fills layers, one after another.
fn fill_layers(to: PitchedPtr, size: Extent, mut fill: impl FnMut(usize) -> Answer) -> Answer {
    if size.width > to.pitch {
        return Err(INVALID_VALUE);
    }
    (0..size.depth).try_for_each(|layer| fill(to.ptr + layer * to.pitch * to.height))
}

pub mod rows {
    //! The functions of memory.

    use super::*;

    pub fn cudaMalloc([to, size]: [usize; 2]) -> Answer {
        if size == 0 {
            return set(to, 0usize);
        }
        cu!("cuMemAlloc_v2", to, size)
    }

    pub fn cudaFree([pointer]: [usize; 1]) -> Answer {
        if pointer == 0 { Ok(()) } else { cu!("cuMemFree_v2", pointer) }
    }

    pub fn cudaFreeHost([pointer]: [usize; 1]) -> Answer {
        if pointer == 0 { Ok(()) } else { cu!("cuMemFreeHost", pointer) }
    }

    pub fn cudaMallocPitch([to, pitch, width, height]: [usize; 4]) -> Answer {
        cu!("cuMemAllocPitch_v2", to, pitch, width, height, 4)
    }

    pub fn cudaMalloc3D(to: usize, size: Extent) -> Answer {
        let (mut pointer, mut pitch) = (0usize, 0usize);
        // Before the allocation: NULL is no place for its address.
        set(to, PitchedPtr { ptr: 0, pitch: 0, width: 0, height: 0 })?;
        let rows = size.height.checked_mul(size.depth).ok_or(INVALID_VALUE)?;
        cu!("cuMemAllocPitch_v2", &raw mut pointer, &raw mut pitch, size.width, rows, 4)?;
        set(to, PitchedPtr { ptr: pointer, pitch, width: size.width, height: size.height })
    }

    pub fn cudaMemcpy([to, from, size, kind]: [usize; 4]) -> Answer {
        copy(to, from, size, kind)
    }

    pub fn cudaMemcpyAsync([to, from, size, kind, stream]: [usize; 5]) -> Answer {
        copy_async(to, from, size, kind, stream)
    }

    pub fn cudaMemcpyPeer([to, to_device, from, from_device, size]: [usize; 5]) -> Answer {
        crate::device::only(to_device).and(crate::device::only(from_device))?;
        copy(to, from, size, 3)
    }

    pub fn cudaMemcpyPeerAsync([to, to_device, from, from_device, size, stream]: [usize; 6]) -> Answer {
        crate::device::only(to_device).and(crate::device::only(from_device))?;
        copy_async(to, from, size, 3, stream)
    }

    pub fn cudaMemcpy2D([to, to_pitch, from, from_pitch, width, height, kind]: [usize; 7]) -> Answer {
        let words = rows_of(to, to_pitch, from, from_pitch, width, height, kind)?;
        cu!("cuMemcpy2DUnaligned_v2", words.as_ptr())
    }

    pub fn cudaMemcpy2DAsync([to, to_pitch, from, from_pitch, width, height, kind, stream]: [usize; 8]) -> Answer {
        let words = rows_of(to, to_pitch, from, from_pitch, width, height, kind)?;
        cu!("cuMemcpy2DAsync_v2", words.as_ptr(), stream)
    }

    pub fn cudaMemcpy3D([parameters]: [usize; 1]) -> Answer {
        let words = layers_of(parameters)?;
        cu!("cuMemcpy3D_v2", words.as_ptr())
    }

    pub fn cudaMemcpy3DAsync([parameters, stream]: [usize; 2]) -> Answer {
        let words = layers_of(parameters)?;
        cu!("cuMemcpy3DAsync_v2", words.as_ptr(), stream)
    }

    pub fn cudaMemset([to, value, size]: [usize; 3]) -> Answer {
        cu!("cuMemsetD8_v2", to, value & 0xFF, size)
    }

    pub fn cudaMemsetAsync([to, value, size, stream]: [usize; 4]) -> Answer {
        cu!("cuMemsetD8Async", to, value & 0xFF, size, stream)
    }

    pub fn cudaMemset2D([to, pitch, value, width, height]: [usize; 5]) -> Answer {
        cu!("cuMemsetD2D8_v2", to, pitch, value & 0xFF, width, height)
    }

    pub fn cudaMemset2DAsync([to, pitch, value, width, height, stream]: [usize; 6]) -> Answer {
        cu!("cuMemsetD2D8Async", to, pitch, value & 0xFF, width, height, stream)
    }

    pub fn cudaMemset3D(to: PitchedPtr, value: usize, size: Extent) -> Answer {
        fill_layers(to, size, |at| cudaMemset2D([at, to.pitch, value, size.width, size.height]))
    }

    pub fn cudaMemset3DAsync(to: PitchedPtr, value: usize, size: Extent, stream: usize) -> Answer {
        fill_layers(to, size, |at| cudaMemset2DAsync([at, to.pitch, value, size.width, size.height, stream]))
    }

    pub fn cudaMemcpyToSymbol([symbol, from, size, offset, kind]: [usize; 5]) -> Answer {
        match kind as u32 {
            1 | 3 | 4 => copy(part(symbol, size, offset)?, from, size, kind),
            _ => Err(INVALID_DIRECTION),
        }
    }

    pub fn cudaMemcpyToSymbolAsync([symbol, from, size, offset, kind, stream]: [usize; 6]) -> Answer {
        match kind as u32 {
            1 | 3 | 4 => copy_async(part(symbol, size, offset)?, from, size, kind, stream),
            _ => Err(INVALID_DIRECTION),
        }
    }

    pub fn cudaMemcpyFromSymbol([to, symbol, size, offset, kind]: [usize; 5]) -> Answer {
        match kind as u32 {
            2..=4 => copy(to, part(symbol, size, offset)?, size, kind),
            _ => Err(INVALID_DIRECTION),
        }
    }

    pub fn cudaMemcpyFromSymbolAsync([to, symbol, size, offset, kind, stream]: [usize; 6]) -> Answer {
        match kind as u32 {
            2..=4 => copy_async(to, part(symbol, size, offset)?, size, kind, stream),
            _ => Err(INVALID_DIRECTION),
        }
    }

    pub fn cudaGetSymbolAddress([to, symbol]: [usize; 2]) -> Answer {
        set(to, variable(symbol)?.0)
    }

    pub fn cudaGetSymbolSize([to, symbol]: [usize; 2]) -> Answer {
        set(to, variable(symbol)?.1)
    }

    /// `cudaPointerAttributes`: memory that the driver does not know is ordinary memory of the program.
    pub fn cudaPointerGetAttributes([to, pointer]: [usize; 2]) -> Answer {
        let ask = |attribute: u32| -> Option<u64> {
            let mut value = 0u64;
            cu!("cuPointerGetAttribute", &raw mut value, attribute, pointer).ok().map(|()| value)
        };
        let (kind, device) = match (ask(2), ask(8)) {
            (_, Some(managed)) if managed & 1 != 0 => (3u32, 0i32),
            (Some(kind), _) => (kind as u32, 0),
            (None, _) => (0, -2),
        };
        let (on_device, on_host) =
            if kind == 0 { (0, pointer as u64) } else { (ask(3).unwrap_or(0), ask(4).unwrap_or(0)) };
        if major() == 13 {
            set(to, [0u64; 11])?;
        }
        set(to, kind)?;
        set(to + 4, device)?;
        set(to + 8, on_device)?;
        set(to + 16, on_host)
    }

    pub fn cudaMemAdvise_12([pointer, size, advice, device]: [usize; 4]) -> Answer {
        cu!("cuMemAdvise", pointer, size, advice, device)
    }

    pub fn cudaMemPrefetchAsync_12([pointer, size, device, stream]: [usize; 4]) -> Answer {
        cu!("cuMemPrefetchAsync", pointer, size, device, stream)
    }

    pub fn cudaGraphAddMemsetNode([to, graph, dependencies, count, parameters]: [usize; 5]) -> Answer {
        cu!("cuGraphAddMemsetNode", to, graph, dependencies, count, parameters, context()?)
    }

    pub fn cudaGraphExecMemsetNodeSetParams([graph, node, parameters]: [usize; 3]) -> Answer {
        cu!("cuGraphExecMemsetNodeSetParams", graph, node, parameters, context()?)
    }

    pub fn cudaGraphAddMemcpyNode([to, graph, dependencies, count, parameters]: [usize; 5]) -> Answer {
        let words = layers_of(parameters)?;
        cu!("cuGraphAddMemcpyNode", to, graph, dependencies, count, words.as_ptr(), context()?)
    }

    pub fn cudaGraphAddMemcpyNode1D([to, graph, dependencies, count, target, from, size, kind]: [usize; 8]) -> Answer {
        let end = |ptr: usize| PitchedPtr { ptr, pitch: size, width: size, height: 1 };
        let size = Extent { width: size, height: 1, depth: 1 };
        let (from_at, to_at, kind) = ([0; 3], [0; 3], kind as u32);
        let whole =
            Parameters { from_array: 0, from_at, from: end(from), to_array: 0, to_at, to: end(target), size, kind };
        let words = layers_of(&raw const whole as usize)?;
        cu!("cuGraphAddMemcpyNode", to, graph, dependencies, count, words.as_ptr(), context()?)
    }
}
