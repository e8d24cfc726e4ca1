//! CUDA arrays: memory whose bytes only copies reach, in elements of channels. Their layout is the driver's own: here, rows of the same size,
//! one behind the other, and layers of rows.

use crate::allocations::{self, Allocation, Kind};
use crate::attributes;
use crate::capturing;
use crate::context::{CONTEXTS, Context, current};
use crate::device::profile;
use crate::handles::Handles;
use crate::machine::Buffer;
use crate::numbers::*;
use crate::result::{Answer, Error, fail};
use crate::shapes::End;
use crate::structures::Array3dDescriptor;
use std::sync::Arc;

/// All arrays.
static ARRAYS: Handles<Array> = Handles::new(14, "CUDA array", CUDA_ERROR_INVALID_HANDLE);
/// All arrays with levels.
static MIPMAPPED: Handles<Mipmapped> = Handles::new(15, "mipmapped CUDA array", CUDA_ERROR_INVALID_HANDLE);

/// Rows begin at multiples of this: CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT.
const PITCH: usize = 32;
// Flags of cuda.h that are macros: CUDA_ARRAY3D_LAYERED and so on.
const LAYERED: u32 = 0x01;
const SURFACE: u32 = 0x02;
const CUBEMAP: u32 = 0x04;
const GATHER: u32 = 0x08;
const COLOR: u32 = 0x20;
const SPARSE: u32 = 0x40;
const DEFERRED: u32 = 0x80;
/// The format of the depth of pixels, and video, which need graphics.
const OF_GRAPHICS: u32 = 0x10 | 0x100;
const FLAGS: u32 = LAYERED | SURFACE | CUBEMAP | GATHER | COLOR | SPARSE | DEFERRED | OF_GRAPHICS;

/// An array.
struct Array {
    /// The handle of its context.
    context: usize,
    /// What the program asked for.
    given: Array3dDescriptor,
    /// Bytes of an element.
    element: usize,
    /// Bytes from one row to the next.
    pitch: usize,
    /// The memory, which no address of the program leads to.
    memory: Arc<Allocation>,
    /// Whether it is a level of another array, with which it ends.
    is_level: bool,
}

/// An array with levels, each half as large as the one before.
struct Mipmapped {
    context: usize,
    /// The handles of the levels.
    levels: Vec<usize>,
}

/// Bytes of a channel of a format, and how many channels the format itself has, or 0 if the program says it.
static FORMATS: &[(u32, usize, u32)] = &[
    (CU_AD_FORMAT_UNSIGNED_INT8, 1, 0),
    (CU_AD_FORMAT_UNSIGNED_INT16, 2, 0),
    (CU_AD_FORMAT_UNSIGNED_INT32, 4, 0),
    (CU_AD_FORMAT_SIGNED_INT8, 1, 0),
    (CU_AD_FORMAT_SIGNED_INT16, 2, 0),
    (CU_AD_FORMAT_SIGNED_INT32, 4, 0),
    (CU_AD_FORMAT_HALF, 2, 0),
    (CU_AD_FORMAT_FLOAT, 4, 0),
    (CU_AD_FORMAT_UNORM_INT8X1, 1, 1),
    (CU_AD_FORMAT_UNORM_INT8X2, 1, 2),
    (CU_AD_FORMAT_UNORM_INT8X4, 1, 4),
    (CU_AD_FORMAT_UNORM_INT16X1, 2, 1),
    (CU_AD_FORMAT_UNORM_INT16X2, 2, 2),
    (CU_AD_FORMAT_UNORM_INT16X4, 2, 4),
    (CU_AD_FORMAT_SNORM_INT8X1, 1, 1),
    (CU_AD_FORMAT_SNORM_INT8X2, 1, 2),
    (CU_AD_FORMAT_SNORM_INT8X4, 1, 4),
    (CU_AD_FORMAT_SNORM_INT16X1, 2, 1),
    (CU_AD_FORMAT_SNORM_INT16X2, 2, 2),
    (CU_AD_FORMAT_SNORM_INT16X4, 2, 4),
];

/// Bytes of an element.
fn element_of(given: &Array3dDescriptor) -> Answer<usize> {
    let Some((_, bytes, own)) = FORMATS.iter().find(|(format, ..)| *format == given.format) else {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "the format {:#x} of an array: integers, floats and normalized integers can be, and no blocks and planes of video",
            given.format
        )
    };
    if !matches!(given.channels, 1 | 2 | 4) || (*own != 0 && *own != given.channels) {
        fail!(CUDA_ERROR_INVALID_VALUE, "{} channels of the format {:#x}", given.channels, given.format);
    }
    Ok(bytes * given.channels as usize)
}

/// The attributes of the device that limit width, height and depth: of all arrays of a form, and of those that surfaces write.
struct Form {
    any: &'static [&'static [u32]],
    surface: &'static [u32],
}

/// The form of an array, by its flags and by which of its sizes are not 0.
fn form_of(given: &Array3dDescriptor) -> Answer<&'static Form> {
    let [layered, cube] = [LAYERED, CUBEMAP].map(|flag| given.flags & flag != 0);
    let cubes = given.width == given.height && if layered { given.depth.is_multiple_of(6) } else { given.depth == 6 };
    let found = match (layered, cube, given.height != 0, given.depth != 0) {
        (false, false, false, false) => &ONE,
        (false, false, true, false) if given.flags & GATHER != 0 => &GATHERED,
        (false, false, true, false) => &TWO,
        (false, false, true, true) => &THREE,
        (true, false, false, true) => &LAYERS_OF_ONE,
        (true, false, true, true) => &LAYERS_OF_TWO,
        (false, true, true, true) if cubes => &CUBE,
        (true, true, true, true) if cubes => &LAYERS_OF_CUBES,
        _ => fail!(CUDA_ERROR_INVALID_VALUE, "{given:?}: the flags and the sizes of an array contradict each other"),
    };
    Ok(found)
}

static ONE: Form = Form {
    any: &[&[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH]],
    surface: &[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH],
};
static TWO: Form = Form {
    any: &[&[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT]],
    surface: &[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT],
};
static GATHERED: Form = Form {
    any: &[&[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT]],
    surface: &[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT],
};
static THREE: Form = Form {
    any: &[
        &[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH,
        ],
        &[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE,
        ],
    ],
    surface: &[
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH,
    ],
};
static LAYERS_OF_ONE: Form = Form {
    any: &[&[
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH,
        NO_LIMIT,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS,
    ]],
    surface: &[
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH,
        NO_LIMIT,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS,
    ],
};
static LAYERS_OF_TWO: Form = Form {
    any: &[&[
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS,
    ]],
    surface: &[
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS,
    ],
};
static CUBE: Form = Form {
    any: &[&[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH]],
    surface: &[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH],
};
static LAYERS_OF_CUBES: Form = Form {
    any: &[&[
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
        NO_LIMIT,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS,
    ]],
    surface: &[
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
        NO_LIMIT,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS,
    ],
};
/// In the place of an attribute: another size is limited, or this one is 0.
const NO_LIMIT: u32 = 0;

/// Fails unless there can be such an array. Returns the bytes of an element.
fn check(given: &Array3dDescriptor) -> Answer<usize> {
    if given.flags & !FLAGS != 0 {
        fail!(CUDA_ERROR_INVALID_VALUE, "the flags {:#x} of an array", given.flags);
    }
    if given.flags & (SPARSE | DEFERRED | OF_GRAPHICS) != 0 {
        fail!(
            CUDA_ERROR_NOT_SUPPORTED,
            "the flags {:#x} of an array: sparse arrays and deferred mapping, which the device's attributes deny, and graphics",
            given.flags
        );
    }
    let (element, form) = (element_of(given)?, form_of(given)?);
    let profile = profile()?;
    let sizes = [given.width, given.height, given.depth];
    let within = |limits: &[u32]| -> Answer<bool> {
        for (size, limit) in sizes.iter().zip(limits).filter(|(_, limit)| **limit != NO_LIMIT) {
            if *size > attributes::value(*limit, profile)? as usize {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let mut fits = false;
    for limits in form.any {
        fits |= within(limits)?;
    }
    if given.width == 0 || !fits || (given.flags & SURFACE != 0 && !within(form.surface)?) {
        fail!(CUDA_ERROR_INVALID_VALUE, "{given:?}: the sizes of an array, which attributes of the device limit");
    }
    Ok(element)
}

impl Array {
    /// Makes an array. The memory is that of a context.
    fn make(context: &Context, given: Array3dDescriptor, is_level: bool) -> Answer<usize> {
        let element = check(&given)?;
        let pitch = (given.width * element).next_multiple_of(PITCH);
        let bytes = pitch.checked_mul(given.height.max(1)).and_then(|layer| layer.checked_mul(given.depth.max(1)));
        let Some(bytes) = bytes else { fail!(CUDA_ERROR_OUT_OF_MEMORY, "{given:?}") };
        let buffer = Buffer::alloc(&context.device, bytes as u64, 0)?;
        let (handle, _) = ARRAYS.add_with(|handle| {
            let memory = allocations::apart(context.handle, Kind::Array(handle), buffer, bytes as u64);
            Array { context: context.handle, given, element, pitch, memory, is_level }
        })?;
        Ok(handle)
    }

    /// The rows of a layer: one, if the program says none.
    fn rows(&self) -> usize {
        self.given.height.max(1)
    }
}

/// Ends the arrays of a context.
pub fn forget(context: usize) {
    drop(MIPMAPPED.remove_all(|one| one.context == context));
    drop(ARRAYS.remove_all(|one| one.context == context));
}

/// The end of a copy that is a box in an array: its position and its size, in bytes, rows and layers.
pub fn end(handle: usize, [x, y, z]: [usize; 3], [width, rows, layers]: [usize; 3]) -> Answer<End> {
    let array = found(handle).map_err(|error| Error { code: CUDA_ERROR_INVALID_VALUE, ..error })?;
    let all = [array.given.width * array.element, array.rows(), array.given.depth.max(1)];
    let outside = |(first, size, all): (usize, usize, usize)| first.checked_add(size).is_none_or(|end| end > all);
    if [(x, width, all[0]), (y, rows, all[1]), (z, layers, all[2])].into_iter().any(outside) {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "{width} bytes, {rows} rows and {layers} layers from {x}, {y}, {z} on are outside of an array of {all:?}"
        );
    }
    if !x.is_multiple_of(array.element) || !width.is_multiple_of(array.element) {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "{width} bytes from byte {x} on of a row of an array: both are multiples of its elements of {} bytes",
            array.element
        );
    }
    let offset = (z * array.rows() + y) * array.pitch + x;
    let pointer = array.memory.pointer + offset;
    Ok(End { memory: Some((array.memory.clone(), offset as u64)), pointer, pitch: array.pitch, height: array.rows() })
}

/// The end of a copy of bytes, which is in an array of one row.
pub fn line(handle: usize, offset: usize, size: usize) -> Answer<End> {
    let array = found(handle)?;
    if array.given.height > 1 || array.given.depth > 1 {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "a copy of a row of an array of {:?}: it needs cuMemcpy2D or cuMemcpy3D",
            array.given
        );
    }
    end(handle, [offset, 0, 0], [size, 1, 1])
}

fn found(handle: usize) -> Answer<Arc<Array>> {
    let array = ARRAYS.get(handle)?;
    if CONTEXTS.find(array.context).is_none() {
        fail!(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context of the array was destroyed");
    }
    Ok(array)
}

pub mod rows {
    //! The functions of arrays.

    use super::*;
    use crate::pointers::Ptr;
    use crate::structures::ArrayDescriptor;
    use std::ffi::c_void;

    fn create(array: Ptr<usize>, given: Array3dDescriptor) -> Answer {
        capturing::forbid_unsafe()?;
        let context = current()?;
        context.alive()?;
        array.set(Array::make(&context, given, false)?, "pHandle")
    }

    pub fn cuArrayCreate_v2(array: Ptr<usize>, given: Ptr<c_void>) -> Answer {
        array.present("pHandle")?;
        let ArrayDescriptor { width, height, format, channels } = given.cast().get("pAllocateArray")?;
        create(array, Array3dDescriptor { width, height, depth: 0, format, channels, flags: 0 })
    }

    pub fn cuArray3DCreate_v2(array: Ptr<usize>, given: Ptr<c_void>) -> Answer {
        array.present("pHandle")?;
        create(array, given.cast().get("pAllocateArray")?)
    }

    pub fn cuArrayGetDescriptor_v2(descriptor: Ptr<c_void>, array: usize) -> Answer {
        let Array3dDescriptor { width, height, format, channels, .. } = found(array)?.given;
        descriptor.cast().set(ArrayDescriptor { width, height, format, channels }, "pArrayDescriptor")
    }

    pub fn cuArray3DGetDescriptor_v2(descriptor: Ptr<c_void>, array: usize) -> Answer {
        descriptor.cast().set(found(array)?.given, "pArrayDescriptor")
    }

    /// Waits for the work that may use the array. After a fault it ends nevertheless.
    pub fn cuArrayDestroy(array: usize) -> Answer {
        capturing::forbid_unsafe()?;
        let one = found(array)?;
        if one.is_level {
            fail!(CUDA_ERROR_INVALID_HANDLE, "a level of an array ends with cuMipmappedArrayDestroy");
        }
        let finished = CONTEXTS.get(one.context)?.synchronize();
        ARRAYS.remove(array)?;
        finished
    }

    /// Arrays of planes cannot be made.
    pub fn cuArrayGetPlane(plane: Ptr<usize>, array: usize, index: u32) -> Answer {
        plane.present("pPlaneArray")?;
        found(array)?;
        fail!(CUDA_ERROR_INVALID_VALUE, "the plane {index} of an array whose format has none")
    }

    /// Sparse arrays cannot be made: CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED is 0.
    pub fn cuArrayGetSparseProperties(properties: Ptr<c_void>, array: usize) -> Answer {
        properties.present("sparseProperties")?;
        found(array)?;
        fail!(CUDA_ERROR_INVALID_VALUE, "the array is not sparse")
    }

    /// Memory of the program for arrays needs CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, which is 0.
    pub fn cuArrayGetMemoryRequirements(requirements: Ptr<c_void>, array: usize, _device: i32) -> Answer {
        requirements.present("memoryRequirements")?;
        found(array)?;
        fail!(CUDA_ERROR_INVALID_VALUE, "the array was made without CUDA_ARRAY3D_DEFERRED_MAPPING")
    }

    /// There are at most as many levels as it takes to come to one element.
    pub fn cuMipmappedArrayCreate(array: Ptr<usize>, given: Ptr<c_void>, count: u32) -> Answer {
        capturing::forbid_unsafe()?;
        array.present("pHandle")?;
        let given: Array3dDescriptor = given.cast().get("pMipmappedArrayDesc")?;
        let context = current()?;
        context.alive()?;
        check(&given)?;
        if count == 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "an array of 0 levels");
        }
        let layered = given.flags & (LAYERED | CUBEMAP) != 0;
        let longest = given.width.max(given.height).max(if layered { 0 } else { given.depth });
        let mut made = Mipmapped { context: context.handle, levels: Vec::new() };
        for level in 0..count.min(longest.ilog2() + 1) {
            let half = |size: usize| if size == 0 { 0 } else { (size >> level).max(1) };
            let depth = if layered { given.depth } else { half(given.depth) };
            let smaller = Array3dDescriptor { width: half(given.width), height: half(given.height), depth, ..given };
            match Array::make(&context, smaller, true) {
                Ok(handle) => made.levels.push(handle),
                Err(error) => {
                    end_levels(&made);
                    return Err(error);
                }
            }
        }
        array.set(MIPMAPPED.add(Arc::new(made))?, "pHandle")
    }

    fn end_levels(array: &Mipmapped) {
        for level in &array.levels {
            drop(ARRAYS.remove(*level));
        }
    }

    pub fn cuMipmappedArrayGetLevel(array: Ptr<usize>, mipmapped: usize, level: u32) -> Answer {
        array.present("pLevelArray")?;
        let mipmapped = MIPMAPPED.get(mipmapped)?;
        match mipmapped.levels.get(level as usize) {
            Some(handle) => array.set(*handle, "pLevelArray"),
            None => fail!(CUDA_ERROR_INVALID_VALUE, "the level {level} of an array of {}", mipmapped.levels.len()),
        }
    }

    pub fn cuMipmappedArrayDestroy(mipmapped: usize) -> Answer {
        capturing::forbid_unsafe()?;
        let finished = CONTEXTS.get(MIPMAPPED.get(mipmapped)?.context)?.synchronize();
        end_levels(&*MIPMAPPED.remove(mipmapped)?);
        finished
    }

    pub fn cuMipmappedArrayGetSparseProperties(properties: Ptr<c_void>, mipmapped: usize) -> Answer {
        properties.present("sparseProperties")?;
        MIPMAPPED.get(mipmapped)?;
        fail!(CUDA_ERROR_INVALID_VALUE, "the array is not sparse")
    }

    pub fn cuMipmappedArrayGetMemoryRequirements(requirements: Ptr<c_void>, mipmapped: usize, _device: i32) -> Answer {
        requirements.present("memoryRequirements")?;
        MIPMAPPED.get(mipmapped)?;
        fail!(CUDA_ERROR_INVALID_VALUE, "the array was made without CUDA_ARRAY3D_DEFERRED_MAPPING")
    }
}
