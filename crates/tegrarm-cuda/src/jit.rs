//! PTX to machine code, by NVIDIA's nvJitLink or ptxas if one is found, and the options and logs of that.
#![allow(unsafe_code)]

use crate::api::{function, load};
use crate::numbers::*;
use crate::pointers::{Ptr, at, copy_bytes};
use crate::result::{Answer, fail};
use crate::toolkits;
use once_cell::race::OnceBox;
use std::ffi::{CString, c_char, c_void};
use std::path::{Path, PathBuf};

/// The kinds of inputs that nvJitLink has.
pub mod input {
    /// Machine code, perhaps relocatable.
    pub const CUBIN: u32 = 1;
    /// PTX.
    pub const PTX: u32 = 2;
    /// Code that is optimized when it is linked.
    pub const LTO_IR: u32 = 3;
    /// A fat binary.
    pub const FATBIN: u32 = 4;
    /// An object file of the CPU with device code.
    pub const OBJECT: u32 = 5;
    /// An archive of objects.
    pub const LIBRARY: u32 = 6;
}

type Handle = *mut c_void;

type Create = unsafe extern "C" fn(*mut Handle, u32, *const *const c_char) -> u32;
type Destroy = unsafe extern "C" fn(*mut Handle) -> u32;
type Add = unsafe extern "C" fn(Handle, u32, *const c_void, usize, *const c_char) -> u32;
type Complete = unsafe extern "C" fn(Handle) -> u32;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> u32;
type Bytes = unsafe extern "C" fn(Handle, *mut c_void) -> u32;

/// nvJitLink's functions.
struct Linker {
    path: PathBuf,
    create: Create,
    destroy: Destroy,
    add: Add,
    complete: Complete,
    cubin_size: Size,
    cubin: Bytes,
    error_size: Size,
    error: Bytes,
    info_size: Size,
    info: Bytes,
}

impl Linker {
    fn load(path: &Path) -> Option<Linker> {
        let library = load(path).ok()?;
        macro_rules! symbol {
            ($name:literal, $kind:ty) => {
                // SAFETY: nvJitLink's function of this name has this type: nvJitLink.h.
                unsafe { std::mem::transmute::<*mut c_void, $kind>(function(library, $name)?) }
            };
        }
        Some(Linker {
            path: path.to_owned(),
            create: symbol!(c"nvJitLinkCreate", Create),
            destroy: symbol!(c"nvJitLinkDestroy", Destroy),
            add: symbol!(c"nvJitLinkAddData", Add),
            complete: symbol!(c"nvJitLinkComplete", Complete),
            cubin_size: symbol!(c"nvJitLinkGetLinkedCubinSize", Size),
            cubin: symbol!(c"nvJitLinkGetLinkedCubin", Bytes),
            error_size: symbol!(c"nvJitLinkGetErrorLogSize", Size),
            error: symbol!(c"nvJitLinkGetErrorLog", Bytes),
            info_size: symbol!(c"nvJitLinkGetInfoLogSize", Size),
            info: symbol!(c"nvJitLinkGetInfoLog", Bytes),
        })
    }
}

/// All versions of nvJitLink that were found, the newest first.
fn linkers() -> &'static [Linker] {
    static LINKERS: OnceBox<Vec<Linker>> = OnceBox::new();
    LINKERS.get_or_init(|| {
        let names = ["libnvJitLink.so.13", "libnvJitLink.so.12"];
        let mut found: Vec<Linker> = Vec::new();
        for name in names {
            let near = toolkits::libraries().into_iter().map(|folder| folder.join(name)).filter(|path| path.exists());
            let first = std::iter::once(PathBuf::from(name)).chain(near).find_map(|path| Linker::load(&path));
            found.extend(first);
        }
        Box::new(found)
    })
}

/// One input of a compilation.
pub struct Input {
    /// Its kind.
    pub kind: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its name, for the log.
    pub name: String,
}

/// The options of a compilation, and where its logs go.
#[derive(Default)]
pub struct Options {
    arguments: Vec<String>,
    /// The GPU that the code is for, as the names of compilers have it, if the program chose one.
    target: Option<String>,
    info: Log,
    error: Log,
    wall_time: Option<usize>,
}

/// A log of the caller: a buffer, its size, and where its used size goes.
#[derive(Default)]
struct Log {
    buffer: usize,
    size: usize,
    used: Option<usize>,
}

impl Log {
    fn write(&self, text: &str) {
        let bytes = &text.as_bytes()[..text.len().min(self.size.saturating_sub(1))];
        if self.buffer != 0 && self.size > 0 {
            copy_bytes(self.buffer, bytes.as_ptr() as usize, bytes.len());
            at::<u8>(self.buffer + bytes.len()).set_any(0);
        }
        if let Some(used) = self.used {
            at::<usize>(used).set_any(if self.buffer == 0 { 0 } else { bytes.len() });
        }
    }
}

impl Options {
    /// Reads the options that a function took.
    pub fn read(count: u32, names: Ptr<u32>, values: Ptr<usize>) -> Answer<Options> {
        let mut options = Options::default();
        let list = names.list(count as usize, "options")?.into_iter().zip(values.list(count as usize, "optionValues")?);
        for (index, (name, value)) in list.enumerate() {
            let place = values.address() + index * size_of::<usize>();
            // A number of 32 bits is in the low half of the pointer.
            let number = value as u32;
            match name {
                CU_JIT_MAX_REGISTERS => options.arguments.push(format!("-maxrregcount={number}")),
                CU_JIT_OPTIMIZATION_LEVEL if number <= 4 => options.arguments.push(format!("-O{}", number.min(3))),
                CU_JIT_GENERATE_DEBUG_INFO if number != 0 => options.arguments.push("-g".into()),
                CU_JIT_GENERATE_LINE_INFO if number != 0 => options.arguments.push("-lineinfo".into()),
                CU_JIT_LOG_VERBOSE if number != 0 => options.arguments.push("-verbose".into()),
                CU_JIT_INFO_LOG_BUFFER => options.info.buffer = value,
                CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => {
                    (options.info.size, options.info.used) = (number as usize, Some(place))
                }
                CU_JIT_ERROR_LOG_BUFFER => options.error.buffer = value,
                CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => {
                    (options.error.size, options.error.used) = (number as usize, Some(place))
                }
                CU_JIT_WALL_TIME => options.wall_time = Some(place),
                CU_JIT_TARGET => options.target = Some(target(number)?),
                CU_JIT_GLOBAL_SYMBOL_NAMES | CU_JIT_GLOBAL_SYMBOL_ADDRESSES | CU_JIT_GLOBAL_SYMBOL_COUNT
                    if value != 0 =>
                {
                    fail!(CUDA_ERROR_NOT_SUPPORTED, "the JIT option {name}: symbols of the program for device code")
                }
                // Hints, choices of the cache of compilations, and options at their default.
                CU_JIT_THREADS_PER_BLOCK..CU_JIT_NUM_OPTIONS => {}
                other => fail!(CUDA_ERROR_INVALID_VALUE, "the JIT option {other}"),
            }
        }
        Ok(options)
    }

    /// Takes the options over that were given for one input. The compilers have options for all inputs alone, and these options change how
    /// fast the code is, what a debugger sees, or for which GPU all of it is. Nothing is compiled yet, so the logs of the input are empty.
    pub fn take_over(&mut self, of_input: Options) {
        of_input.info.write("");
        of_input.error.write("");
        let name = |argument: &str| argument.trim_end_matches(|c: char| c.is_ascii_digit() || c == '=').to_owned();
        self.arguments.retain(|old| of_input.arguments.iter().all(|new| name(new) != name(old)));
        self.arguments.extend(of_input.arguments);
        self.target = of_input.target.or(self.target.take());
    }

    /// Fails if the program chose another GPU than the one that there is.
    pub fn check_target(&self, arch: u32) -> Answer {
        match &self.target {
            Some(target) if *target != arch.to_string() => {
                fail!(CUDA_ERROR_NO_BINARY_FOR_GPU, "CU_JIT_TARGET asks for sm_{target}, and the GPU is sm_{arch}")
            }
            _ => Ok(()),
        }
    }
}

/// The name that compilers have for a value of `CUjit_target`: a number, and a letter for code of one GPU or of one family.
fn target(number: u32) -> Answer<String> {
    let letter = match number >> 16 {
        0 => "",
        1 => "a",
        2 => "f",
        _ => fail!(CUDA_ERROR_INVALID_VALUE, "CU_JIT_TARGET {number:#x}"),
    };
    Ok(format!("{}{letter}", number & 0xFFFF))
}

/// Compiles and links, for the GPU that the options name, or for the one that there is.
pub fn compile(inputs: &[Input], options: &Options, arch: u32) -> Answer<Vec<u8>> {
    let begun = std::time::Instant::now();
    let arch = options.target.clone().unwrap_or_else(|| arch.to_string());
    // ptxas makes code that can be run of one PTX, and does not link.
    let alone = match inputs {
        [input] if input.kind == input::PTX => Some(&input.bytes),
        _ => None,
    };
    // It is looked for only where no linker takes the inputs.
    let ptxas = || alone.and_then(|ptx| Some((toolkits::ptxas()?, ptx)));
    if linkers().is_empty() && ptxas().is_none() {
        return not_found(options);
    }
    let mut told = String::new();
    let by_linkers =
        linkers().iter().map(|linker| (linker.path.as_path(), run(linker, inputs, &options.arguments, &arch)));
    let by_ptxas = std::iter::once_with(ptxas).flatten().map(|(path, ptx)| {
        let (cubin, said) = toolkits::assemble(path, ptx, &options.arguments, &arch);
        let (info, error) = if cubin.is_some() { (said, String::new()) } else { (String::new(), said) };
        (path, (cubin, info, error))
    });
    for (path, (result, info, error)) in by_linkers.chain(by_ptxas) {
        options.info.write(&info);
        options.error.write(&error);
        if let Some(time) = options.wall_time {
            at::<f32>(time).set_any(begun.elapsed().as_secs_f32() * 1000.0);
        }
        match result {
            Some(cubin) => return Ok(cubin),
            None => told = format!("{told}{}: {}\n", path.display(), error.trim()),
        }
    }
    if told.contains("nsupported .version") || told.contains("Unsupported PTX") {
        fail!(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX is newer than the compiler: {told}");
    }
    if told.contains("is not defined for option 'gpu-name'") {
        fail!(CUDA_ERROR_INVALID_VALUE, "CU_JIT_TARGET asks for a GPU that the compiler does not know: {told}");
    }
    fail!(CUDA_ERROR_INVALID_PTX, "{told}")
}

#[cold]
fn not_found(options: &Options) -> Answer<Vec<u8>> {
    options.error.write("no PTX compiler");
    let what = "libnvJitLink.so.13 or .12, which compiles PTX and links, was not found, nor ptxas, which compiles PTX: \
                `pip install nvidia-nvjitlink-cu12`, or a CUDA toolkit in CUDA_HOME or /usr/local/cuda. Machine code for sm_87 needs \
                no compiler";
    // Without a word a program would only see the number.
    crate::log::say(crate::log::Level::Notice, what);
    fail!(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, "{what}")
}

/// nvJitLink takes PTX from ISA version 3.1 on. Version 3.1 only adds to 2.0 up to 3.0, so that such PTX is passed on as 3.1. PTX 1 has
/// other rules of rounding, and stays what it is.
fn name_a_known_version(ptx: &mut [u8]) {
    const DIRECTIVE: &[u8] = b".version";
    let Some(directive) = ptx.windows(DIRECTIVE.len()).position(|text| text == DIRECTIVE) else { return };
    let behind = directive + DIRECTIVE.len();
    let Some(spaces) = ptx[behind..].iter().position(|byte| !byte.is_ascii_whitespace()) else { return };
    let first = behind + spaces;
    if let Some(number) = ptx.get_mut(first..first + 3)
        && matches!(number, [b'2', b'.', b'0'..=b'9'] | [b'3', b'.', b'0'])
    {
        number.copy_from_slice(b"3.1");
    }
}

/// Runs one linker. Returns the machine code, the log of information and that of errors.
fn run(linker: &Linker, inputs: &[Input], arguments: &[String], arch: &str) -> (Option<Vec<u8>>, String, String) {
    let mut own = vec![format!("-arch=sm_{arch}")];
    if inputs.iter().any(|input| input.kind == input::LTO_IR) {
        own.push("-lto".to_owned());
    }
    let texts: Vec<CString> = own.iter().chain(arguments).filter_map(|text| CString::new(text.as_str()).ok()).collect();
    let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    let mut handle: Handle = std::ptr::null_mut();
    // SAFETY: `handle` is valid for writes, and the strings for reads.
    let status = unsafe { (linker.create)(&mut handle, pointers.len() as u32, pointers.as_ptr()) };
    if status != 0 {
        return (None, String::new(), format!("nvJitLinkCreate gives {status}"));
    }
    let mut failed = None;
    for input in inputs {
        let name = CString::new(input.name.as_str()).unwrap_or_default();
        // PTX is a string, so that its NUL is there; it does not count.
        let mut bytes = input.bytes.clone();
        if input.kind == input::PTX {
            name_a_known_version(&mut bytes);
        }
        bytes.push(0);
        // SAFETY: `handle` is what nvJitLinkCreate gave, and the bytes are valid for reads.
        let status =
            unsafe { (linker.add)(handle, input.kind, bytes.as_ptr().cast(), input.bytes.len(), name.as_ptr()) };
        if status != 0 {
            failed = Some(format!("nvJitLinkAddData({}) gives {status}", input.name));
            break;
        }
    }
    if failed.is_none() {
        // SAFETY: `handle` is what nvJitLinkCreate gave.
        let status = unsafe { (linker.complete)(handle) };
        failed = (status != 0).then(|| format!("nvJitLinkComplete gives {status}"));
    }
    let cubin = failed.is_none().then(|| taken(handle, linker.cubin_size, linker.cubin)).flatten();
    let text = |size, get| {
        let bytes = taken(handle, size, get).unwrap_or_default();
        String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(&bytes)).into_owned()
    };
    let (info, error) = (text(linker.info_size, linker.info), text(linker.error_size, linker.error));
    // SAFETY: `handle` is what nvJitLinkCreate gave, and is not used any more.
    unsafe { (linker.destroy)(&mut handle) };
    let error = if error.is_empty() { failed.unwrap_or_default() } else { error };
    (cubin, info, error)
}

/// What one pair of nvJitLink's functions gives: the size, and then the bytes.
fn taken(handle: Handle, size_of: Size, get: Bytes) -> Option<Vec<u8>> {
    let mut size = 0;
    // SAFETY: `handle` is what nvJitLinkCreate gave, and `size` is valid for writes.
    if unsafe { size_of(handle, &mut size) } != 0 || size == 0 {
        return None;
    }
    let mut bytes = vec![0u8; size];
    // SAFETY: `bytes` has room for as many bytes as the function said.
    (unsafe { get(handle, bytes.as_mut_ptr().cast()) } == 0).then_some(bytes)
}
