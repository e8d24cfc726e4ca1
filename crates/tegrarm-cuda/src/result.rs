//! Errors: a number of `CUresult`, and a sentence for the log.

use crate::numbers::*;
use std::ffi::CStr;

/// Why a function fails.
#[derive(Debug)]
pub struct Error {
    /// The number that the function returns.
    pub code: u32,
    /// The sentence for the log. A function that is called in loops, such as cuEventQuery, has none.
    pub text: Option<Box<str>>,
}

/// What a function gives.
pub type Answer<T = ()> = Result<T, Error>;

impl Error {
    /// An error with a sentence.
    #[cold]
    pub fn new(code: u32, text: String) -> Error {
        Error { code, text: Some(text.into()) }
    }

    /// An error without a sentence.
    pub fn plain(code: u32) -> Error {
        Error { code, text: None }
    }
}

/// Fails with a number and a sentence.
macro_rules! fail {
    ($code:expr, $($text:tt)*) => {
        return Err($crate::result::Error::new($code, format!($($text)*)))
    };
}
pub(crate) use fail;

/// The name of a result.
pub fn name(code: u32) -> Option<&'static CStr> {
    RESULTS.iter().find(|(number, _)| *number == code).map(|(_, name)| *name)
}

/// What a result means. A result without a row here means what its name says.
pub fn meaning(code: u32) -> Option<&'static CStr> {
    let row = MEANINGS.iter().find(|(number, _)| *number == code);
    row.map(|(_, text)| *text).or_else(|| name(code))
}

static MEANINGS: &[(u32, &CStr)] = &[
    (CUDA_SUCCESS, c"no error"),
    (CUDA_ERROR_INVALID_VALUE, c"invalid argument"),
    (CUDA_ERROR_OUT_OF_MEMORY, c"out of memory"),
    (CUDA_ERROR_NOT_INITIALIZED, c"cuInit has not been called in this process"),
    (CUDA_ERROR_DEINITIALIZED, c"the driver is shutting down"),
    (CUDA_ERROR_NO_DEVICE, c"no GPU was found"),
    (CUDA_ERROR_INVALID_DEVICE, c"there is no device with this number"),
    (CUDA_ERROR_INVALID_IMAGE, c"the image is not a cubin, fat binary or PTX that can be loaded"),
    (CUDA_ERROR_INVALID_CONTEXT, c"no context is current, or the handle is not a context"),
    (CUDA_ERROR_NO_BINARY_FOR_GPU, c"the image has no machine code for this GPU and no PTX"),
    (CUDA_ERROR_INVALID_PTX, c"the PTX cannot be compiled"),
    (CUDA_ERROR_JIT_COMPILER_NOT_FOUND, c"no PTX compiler was found: install nvidia-nvjitlink-cu12 or a CUDA toolkit"),
    (CUDA_ERROR_FILE_NOT_FOUND, c"the file does not exist or cannot be read"),
    (CUDA_ERROR_INVALID_HANDLE, c"invalid handle"),
    (CUDA_ERROR_ILLEGAL_STATE, c"the object is in a state in which this is not possible"),
    (CUDA_ERROR_NOT_FOUND, c"there is nothing with this name"),
    (CUDA_ERROR_NOT_READY, c"the work has not finished yet"),
    (CUDA_ERROR_ILLEGAL_ADDRESS, c"a kernel accessed an address that is not mapped"),
    (CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, c"the launch needs more registers, threads or shared memory than there are"),
    (CUDA_ERROR_LAUNCH_TIMEOUT, c"a kernel ran for too long"),
    (CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, c"the primary context is in use"),
    (CUDA_ERROR_CONTEXT_IS_DESTROYED, c"the current context was destroyed"),
    (CUDA_ERROR_ASSERT, c"an assertion failed in a kernel"),
    (CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, c"the memory is registered already"),
    (CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, c"the memory is not registered"),
    (CUDA_ERROR_HARDWARE_STACK_ERROR, c"a kernel used more stack than it has"),
    (CUDA_ERROR_ILLEGAL_INSTRUCTION, c"a kernel executed an illegal instruction"),
    (CUDA_ERROR_MISALIGNED_ADDRESS, c"a kernel accessed an address that is not a multiple of the size"),
    (CUDA_ERROR_INVALID_ADDRESS_SPACE, c"an instruction for one kind of memory got an address of another"),
    (CUDA_ERROR_INVALID_PC, c"the program counter of a kernel left its code"),
    (CUDA_ERROR_LAUNCH_FAILED, c"a kernel failed"),
    (CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, c"the GPU has no room for all blocks at once"),
    (CUDA_ERROR_NOT_PERMITTED, c"this is not permitted"),
    (CUDA_ERROR_NOT_SUPPORTED, c"this is not supported"),
    (CUDA_ERROR_UNKNOWN, c"an error in the library"),
];
