//! Memory: allocations, copies, fills, symbols.

use crate::calls::*;
use crate::images::variable;

/// `CUmemorytype`.
pub const HOST: u32 = 1;
/// Memory of the GPU.
pub const DEVICE: u32 = 2;
/// A CUDA array.
pub const ARRAY: u32 = 3;
/// Memory of which the driver finds out the kind.
pub const UNIFIED: u32 = 4;

/// The kinds of memory of destination and source for a `cudaMemcpyKind`.
pub fn kinds(kind: usize) -> Answer<(u32, u32)> {
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

/// The words of an end of `CUDA_MEMCPY2D` and `CUDA_MEMCPY3D` that say where it is: the kind, an address of each kind, an array.
fn place(kind: u32, address: usize) -> [u64; 4] {
    let address = address as u64;
    match kind {
        HOST => [kind.into(), address, 0, 0],
        ARRAY => [kind.into(), 0, 0, address],
        _ => [kind.into(), 0, address, 0],
    }
}

/// An end of a copy of rows: memory of a kind, or a box in an array that begins at `x` bytes and `y` rows.
#[derive(Clone, Copy)]
pub struct Rows {
    pub kind: u32,
    pub address: usize,
    pub pitch: usize,
    pub x: usize,
    pub y: usize,
}

impl Rows {
    /// Rows in memory.
    pub fn new(kind: u32, address: usize, pitch: usize) -> Rows {
        Rows { kind, address, pitch, x: 0, y: 0 }
    }

    fn words(&self, width: usize) -> Answer<[u64; 7]> {
        const INVALID_PITCH: u32 = 12;
        if self.kind != ARRAY && width > self.pitch {
            return Err(INVALID_PITCH);
        }
        let [kind, host, device, array] = place(self.kind, self.address);
        Ok([self.x as u64, self.y as u64, kind, host, device, array, self.pitch as u64])
    }
}

/// `CUDA_MEMCPY2D`, as words.
pub fn rows_of(to: Rows, from: Rows, width: usize, height: usize) -> Answer<[u64; 16]> {
    let mut words = [0; 16];
    words[..7].copy_from_slice(&from.words(width)?);
    words[7..14].copy_from_slice(&to.words(width)?);
    words[14..].copy_from_slice(&[width as u64, height as u64]);
    Ok(words)
}

/// The same for memory of the program's kinds.
fn rows_in_memory([to, to_pitch, from, from_pitch, width, height, kind]: [usize; 7]) -> Answer<[u64; 16]> {
    let (to_kind, from_kind) = kinds(kind)?;
    rows_of(Rows::new(to_kind, to, to_pitch), Rows::new(from_kind, from, from_pitch), width, height)
}

/// An end of a copy of boxes: an array or memory, and a position in it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Corner {
    array: usize,
    at: [u64; 3],
    memory: PitchedPtr,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Parameters {
    from: Corner,
    to: Corner,
    size: Extent,
    kind: u32,
    /// C has nothing here. Programs that compare whole structures find the same in all that they are given.
    nothing: u32,
}

/// `cudaMemcpy3DPeerParms`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PeerParameters {
    from: Corner,
    from_device: u32,
    to: Corner,
    to_device: u32,
    size: Extent,
}

impl Corner {
    /// Bytes of an element: those of an array have a size, and the others are bytes.
    fn element(&self) -> Answer<usize> {
        match (self.array, self.memory.ptr) {
            (0, _) => Ok(1),
            (array, 0) => crate::arrays::element(array),
            _ => Err(INVALID_VALUE),
        }
    }

    fn words(&self, kind: u32, element: usize) -> Answer<[u64; 11]> {
        let [x, y, z] = self.at;
        let x = x.checked_mul(element as u64).ok_or(INVALID_VALUE)?;
        let [kind, host, device, array] = match (self.array, kind) {
            (0, _) => place(kind, self.memory.ptr),
            (_, HOST) => return Err(INVALID_DIRECTION),
            (array, _) => place(ARRAY, array),
        };
        Ok([x, y, z, 0, kind, host, device, array, 0, self.memory.pitch as u64, self.memory.height as u64])
    }

    /// What a program would have written for these words.
    fn read(words: &[u64]) -> Answer<(Corner, u32)> {
        let [x, y, z, _, kind, host, device, array, _, pitch, height] = *words else { return Err(UNKNOWN) };
        let (array, ptr) = if kind as u32 == ARRAY { (array as usize, 0) } else { (0, (host | device) as usize) };
        let [pitch, height] = if array == 0 { [pitch as usize, height as usize] } else { [0; 2] };
        let mut corner = Corner { array, at: [x, y, z], memory: PitchedPtr { ptr, pitch, width: pitch, height } };
        corner.at[0] /= corner.element()? as u64;
        Ok((corner, kind as u32))
    }
}

/// `CUDA_MEMCPY3D` for `cudaMemcpy3DParms`, as words.
pub fn layers_of(parameters: usize) -> Answer<[u64; 25]> {
    layers(&get(parameters)?)
}

/// With an array, the width counts in its elements.
fn layers(p: &Parameters) -> Answer<[u64; 25]> {
    let (from, to) = (p.from.element()?, p.to.element()?);
    if p.from.array != 0 && p.to.array != 0 && from != to {
        return Err(INVALID_VALUE);
    }
    if p.kind == 0 && (p.from.array | p.to.array) != 0 {
        return Err(INVALID_DIRECTION);
    }
    let (to_kind, from_kind) = kinds(p.kind as usize)?;
    let width = p.size.width.checked_mul(from.max(to)).ok_or(INVALID_VALUE)?;
    let mut words = [0; 25];
    words[..11].copy_from_slice(&p.from.words(from_kind, from)?);
    words[11..22].copy_from_slice(&p.to.words(to_kind, to)?);
    words[22..].copy_from_slice(&[width as u64, p.size.height as u64, p.size.depth as u64]);
    Ok(words)
}

/// `cudaMemcpy3DParms` for the words that [`layers_of`] makes.
pub fn set_layers(parameters: usize, words: &[u64; 25]) -> Answer {
    let ((from, from_kind), (to, to_kind)) = (Corner::read(&words[..11])?, Corner::read(&words[11..22])?);
    let element = from.element()?.max(to.element()?);
    let [width, height, depth] = [words[22] as usize / element, words[23] as usize, words[24] as usize];
    let kind = match (from_kind, to_kind) {
        (HOST, HOST) => 0,
        (HOST, DEVICE | ARRAY) => 1,
        (DEVICE | ARRAY, HOST) => 2,
        (DEVICE | ARRAY, DEVICE | ARRAY) => 3,
        _ => 4,
    };
    set(parameters, Parameters { from, to, size: Extent { width, height, depth }, kind, nothing: 0 })
}

/// [`layers_of`] for a copy between devices, of which there is one.
fn layers_of_peers(parameters: usize) -> Answer<[u64; 25]> {
    let PeerParameters { from, from_device, to, to_device, size } = get(parameters)?;
    crate::device::only(from_device as usize).and(crate::device::only(to_device as usize))?;
    layers(&Parameters { from, to, size, kind: 3, nothing: 0 })
}

/// [`layers_of`] for `size` bytes.
fn bytes_of(to: usize, from: usize, size: usize, kind: usize) -> Answer<[u64; 25]> {
    let end =
        |ptr: usize| Corner { array: 0, at: [0; 3], memory: PitchedPtr { ptr, pitch: size, width: size, height: 1 } };
    let whole = Extent { width: size, height: 1, depth: 1 };
    layers(&Parameters { from: end(from), to: end(to), size: whole, kind: kind as u32, nothing: 0 })
}

/// [`bytes_of`] for a copy to a variable.
fn to_symbol(symbol: usize, from: usize, size: usize, offset: usize, kind: usize) -> Answer<[u64; 25]> {
    match kind as u32 {
        1 | 3 | 4 => bytes_of(part(symbol, size, offset)?, from, size, kind),
        _ => Err(INVALID_DIRECTION),
    }
}

/// [`bytes_of`] for a copy of a variable.
fn from_symbol(to: usize, symbol: usize, size: usize, offset: usize, kind: usize) -> Answer<[u64; 25]> {
    match kind as u32 {
        2..=4 => bytes_of(to, part(symbol, size, offset)?, size, kind),
        _ => Err(INVALID_DIRECTION),
    }
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

    pub fn cudaMemcpy2D(arguments: [usize; 7]) -> Answer {
        let words = rows_in_memory(arguments)?;
        cu!("cuMemcpy2DUnaligned_v2", words.as_ptr())
    }

    pub fn cudaMemcpy2DAsync([to, to_pitch, from, from_pitch, width, height, kind, stream]: [usize; 8]) -> Answer {
        let words = rows_in_memory([to, to_pitch, from, from_pitch, width, height, kind])?;
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

    pub fn cudaMemcpy3DPeer([parameters]: [usize; 1]) -> Answer {
        let words = layers_of_peers(parameters)?;
        cu!("cuMemcpy3D_v2", words.as_ptr())
    }

    pub fn cudaMemcpy3DPeerAsync([parameters, stream]: [usize; 2]) -> Answer {
        let words = layers_of_peers(parameters)?;
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

    fn add(to: usize, graph: usize, after: usize, count: usize, words: Answer<[u64; 25]>) -> Answer {
        cu!("cuGraphAddMemcpyNode", to, graph, after, count, words?.as_ptr(), context()?)
    }

    fn change(node: usize, words: Answer<[u64; 25]>) -> Answer {
        cu!("cuGraphMemcpyNodeSetParams", node, words?.as_ptr())
    }

    fn change_exec(exec: usize, node: usize, words: Answer<[u64; 25]>) -> Answer {
        cu!("cuGraphExecMemcpyNodeSetParams", exec, node, words?.as_ptr(), context()?)
    }

    pub fn cudaGraphMemcpyNodeGetParams([node, parameters]: [usize; 2]) -> Answer {
        let mut words = [0u64; 25];
        cu!("cuGraphMemcpyNodeGetParams", node, words.as_mut_ptr())?;
        set_layers(parameters, &words)
    }

    /// The functions that add a copy to a graph, and change one in a graph and in an executable one.
    macro_rules! copies {
        ($add:ident, $set:ident, $set_exec:ident, $words:ident: $($argument:ident),+ of $count:literal, $more:literal, $most:literal) => {
            pub fn $add([to, graph, after, count, $($argument),+]: [usize; $most]) -> Answer {
                add(to, graph, after, count, $words($($argument),+))
            }

            pub fn $set([node, $($argument),+]: [usize; $count]) -> Answer {
                change(node, $words($($argument),+))
            }

            pub fn $set_exec([exec, node, $($argument),+]: [usize; $more]) -> Answer {
                change_exec(exec, node, $words($($argument),+))
            }
        };
    }

    copies!(cudaGraphAddMemcpyNode, cudaGraphMemcpyNodeSetParams, cudaGraphExecMemcpyNodeSetParams, layers_of: parameters of 2, 3, 5);
    copies!(
        cudaGraphAddMemcpyNode1D, cudaGraphMemcpyNodeSetParams1D, cudaGraphExecMemcpyNodeSetParams1D,
        bytes_of: target, from, size, kind of 5, 6, 8
    );
    copies!(
        cudaGraphAddMemcpyNodeToSymbol, cudaGraphMemcpyNodeSetParamsToSymbol, cudaGraphExecMemcpyNodeSetParamsToSymbol,
        to_symbol: symbol, from, size, offset, kind of 6, 7, 9
    );
    copies!(
        cudaGraphAddMemcpyNodeFromSymbol, cudaGraphMemcpyNodeSetParamsFromSymbol, cudaGraphExecMemcpyNodeSetParamsFromSymbol,
        from_symbol: target, symbol, size, offset, kind of 6, 7, 9
    );
}
