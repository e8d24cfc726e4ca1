//! Calls: of the driver's functions, which are found by their names, and what every exported function passes through.
#![allow(unsafe_code)]

use crate::FUNCTIONS;
use once_cell::race::OnceBox;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use tegrarm_lock::Mutex;

/// What a function gives: a number of `cudaError` where it fails.
pub type Answer<T = ()> = Result<T, u32>;

/// Errors of the runtime, of which most have the numbers of the driver's.
pub const INVALID_VALUE: u32 = 1;
/// cudaErrorInitializationError.
pub const INITIALIZATION: u32 = 3;
/// cudaErrorInvalidSymbol.
pub const INVALID_SYMBOL: u32 = 13;
/// cudaErrorInvalidMemcpyDirection.
pub const INVALID_DIRECTION: u32 = 21;
/// cudaErrorInvalidDeviceFunction.
pub const INVALID_FUNCTION: u32 = 98;
/// cudaErrorInvalidDevice.
pub const INVALID_DEVICE: u32 = 101;
/// cudaErrorNotSupported.
pub const NOT_SUPPORTED: u32 = 801;
/// cudaErrorUnknown.
pub const UNKNOWN: u32 = 999;
/// The runtime ends, or the thread.
pub const UNLOADING: u32 = 4;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dim3(pub [u32; 3]);

/// `cudaExtent`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Extent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// `cudaPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PitchedPtr {
    pub ptr: usize,
    pub pitch: usize,
    pub width: usize,
    pub height: usize,
}

/// The version of this library, 12 or 13.
pub fn major() -> u32 {
    unsafe extern "C" {
        static tegrarm_cudart_major: u32;
    }
    // SAFETY: each of the two libraries has this number, which never changes.
    unsafe { tegrarm_cudart_major }
}

/// Reads a value of the caller. NULL is an error.
pub fn get<T: Copy>(at: usize) -> Answer<T> {
    if at == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller of the exported function gave this pointer, which is valid for reads of its type.
    Ok(unsafe { (at as *const T).read_unaligned() })
}

/// Writes a value of the caller. NULL is an error.
pub fn set<T: Copy>(at: usize, value: T) -> Answer {
    if at == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller of the exported function gave this pointer, which is valid for writes of its type.
    unsafe { (at as *mut T).write_unaligned(value) };
    Ok(())
}

/// Copies bytes into memory of the caller.
pub fn put(at: usize, bytes: &[u8]) {
    // SAFETY: the caller of the exported function gave a structure, in which this range is.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
}

/// A string of the caller.
pub fn text(at: usize) -> Answer<CString> {
    if at == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller of the exported function gave a string that ends with a NUL.
    Ok(unsafe { CStr::from_ptr(at as *const libc::c_char) }.to_owned())
}

/// Writes a line, unless TEGRARM_LOG is off.
pub fn say(sentence: &str) {
    if std::env::var_os("TEGRARM_LOG").is_none_or(|level| level != "off") {
        tell(sentence);
    }
}

/// Writes a line, whatever TEGRARM_LOG is.
pub fn tell(sentence: &str) {
    tegrarm_output::say_as("libcudart of libtegrarm", sentence);
}

/// A function of the driver, found when it is first called.
pub struct Slot {
    name: &'static str,
    at: [AtomicUsize; 2],
}

impl Slot {
    /// The function with this name.
    pub const fn new(name: &'static str) -> Slot {
        Slot { name, at: [const { AtomicUsize::new(0) }; 2] }
    }

    fn find(&self) -> Answer<usize> {
        let own = PER_THREAD.get();
        let slot = &self.at[usize::from(own)];
        match slot.load(Ordering::Acquire) {
            0 => {}
            at => return Ok(at),
        }
        let library = driver()?;
        // A call through a symbol for the thread's own default stream goes to the driver's symbol for it, where there is one.
        let suffixes: &[&str] = if own { &["_ptsz", "_ptds", ""] } else { &[""] };
        for suffix in suffixes {
            let name = CString::new(format!("{}{suffix}", self.name)).map_err(|_| INVALID_VALUE)?;
            // SAFETY: `library` is what dlopen gave, and the name ends with a NUL.
            let at = unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) } as usize;
            if at != 0 {
                slot.store(at, Ordering::Release);
                return Ok(at);
            }
        }
        say(&format!("libcuda.so.1 has no {}", self.name));
        Err(NOT_SUPPORTED)
    }

    /// Calls the function with arguments that are numbers, pointers and handles.
    pub fn call(&self, arguments: &[usize]) -> Answer {
        macro_rules! with {
            ($($value:ident: $kind:ty),*) => {{
                // SAFETY: the driver's function takes these arguments, each in a register or a word of the stack of its own.
                let function: unsafe extern "C" fn($($kind),*) -> u32 = unsafe { std::mem::transmute(self.find()?) };
                // SAFETY: they are what the caller of the exported function gave, or made of it.
                unsafe { function($($value),*) }
            }};
        }
        let code = match *arguments {
            [] => with!(),
            [a] => with!(a: usize),
            [a, b] => with!(a: usize, b: usize),
            [a, b, c] => with!(a: usize, b: usize, c: usize),
            [a, b, c, d] => with!(a: usize, b: usize, c: usize, d: usize),
            [a, b, c, d, e] => with!(a: usize, b: usize, c: usize, d: usize, e: usize),
            [a, b, c, d, e, f] => with!(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize),
            [a, b, c, d, e, f, g] => with!(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize),
            [a, b, c, d, e, f, g, h] => {
                with!(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize)
            }
            [a, b, c, d, e, f, g, h, i] => {
                with!(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize, i: usize)
            }
            [a, b, c, d, e, f, g, h, i, j] => {
                with!(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize, i: usize, j: usize)
            }
            [a, b, c, d, e, f, g, h, i, j, k] => {
                with!(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize, i: usize, j: usize, k: usize)
            }
            _ => return Err(NOT_SUPPORTED),
        };
        if code == 0 { Ok(()) } else { Err(code) }
    }
}

/// Calls a function of the driver.
macro_rules! cu {
    ($name:literal $(, $argument:expr)* $(,)?) => {{
        static SLOT: $crate::calls::Slot = $crate::calls::Slot::new($name);
        SLOT.call(&[$($argument as usize),*])
    }};
}

/// The driver: libcuda.so.1 beside this library, or the one that the loader finds.
fn driver() -> Answer<usize> {
    static LIBRARY: OnceBox<usize> = OnceBox::new();
    let load = || {
        let path = tegrarm_client::find::own_path();
        let real = path.as_ref().and_then(|path| path.canonicalize().ok());
        let beside = [path.as_deref(), real.as_deref()].into_iter().flatten().filter_map(Path::parent);
        let mut places: Vec<PathBuf> =
            beside.flat_map(|folder| [folder.join("libcuda.so.1"), folder.join("cuda/libcuda.so.1")]).collect();
        places.retain(|place| place.exists());
        places.push("libcuda.so.1".into());
        let Ok(name) = CString::new(places[0].as_os_str().as_bytes()) else { return 0 };
        // SAFETY: `name` is a string that ends with a NUL.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) } as usize;
        if library == 0 {
            say(&format!("{} cannot be loaded: `tegrarm run --cuda` sets its folder", places[0].display()));
        }
        library
    };
    let found = *LIBRARY.get_or_init(|| Box::new(load()));
    if found == 0 { Err(INITIALIZATION) } else { Ok(found) }
}

thread_local! {
    static PER_THREAD: Cell<bool> = const { Cell::new(false) };
    static LAST: Cell<u32> = const { Cell::new(0) };
}
/// The fault of the context, which every call returns until cudaDeviceReset.
static STICKY: AtomicU32 = AtomicU32::new(0);
/// Whether the primary context is retained.
static RETAINED: Mutex<bool> = Mutex::new(false);

/// cuInit, once.
pub fn initialize() -> Answer {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.load(Ordering::Acquire) {
        cu!("cuInit", 0).map_err(|code| if code == 802 || code == 3 { INITIALIZATION } else { code })?;
        DONE.store(true, Ordering::Release);
    }
    Ok(())
}

/// Makes the primary context current, unless the thread has a context.
fn prepare() -> Answer {
    match STICKY.load(Ordering::Acquire) {
        0 => {}
        code => return Err(code),
    }
    initialize()?;
    let mut context = 0usize;
    cu!("cuCtxGetCurrent", &raw mut context)?;
    if context != 0 {
        return Ok(());
    }
    let mut retained = RETAINED.lock();
    cu!("cuDevicePrimaryCtxRetain", &raw mut context, 0)?;
    let new = !std::mem::replace(&mut *retained, true);
    if !new {
        // One reference is enough for all threads.
        cu!("cuDevicePrimaryCtxRelease_v2", 0)?;
    }
    drop(retained);
    cu!("cuCtxSetCurrent", context)?;
    if new { crate::images::give_managed_again() } else { Ok(()) }
}

/// Ends the primary context and all that is in it.
pub fn reset() -> Answer {
    initialize()?;
    let mut retained = RETAINED.lock();
    STICKY.store(0, Ordering::Release);
    LAST.set(0);
    *retained = false;
    cu!("cuCtxSetCurrent", 0)?;
    cu!("cuDevicePrimaryCtxReset_v2", 0)
}

/// Runs what answers the function with this row, with a context. A panic ends here.
pub fn run(row: usize, per_thread: bool, answer: impl FnOnce() -> Answer) -> u32 {
    PER_THREAD.set(per_thread);
    let code = bare(row, || prepare().and_then(|()| answer()));
    PER_THREAD.set(false);
    code
}

/// The same without a context.
pub fn bare(row: usize, answer: impl FnOnce() -> Answer) -> u32 {
    match catch_unwind(AssertUnwindSafe(answer)) {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => failed(code),
        Err(_) => {
            say(&format!("{} met a bug in the library", FUNCTIONS[row].symbol));
            failed(UNKNOWN)
        }
    }
}

/// Keeps an error for cudaGetLastError.
pub fn failed(code: u32) -> u32 {
    LAST.set(code);
    // What CUDA's documentation calls an inconsistent state: the process has to reset the device.
    if matches!(code, 700 | 702 | 710 | 714..=719) {
        STICKY.store(code, Ordering::Release);
    }
    code
}

/// The thread's last error. `takes` forgets it, unless it is one that stays.
pub fn last(takes: bool) -> u32 {
    let code = LAST.get();
    if takes {
        LAST.set(STICKY.load(Ordering::Acquire));
    }
    code
}

/// Whether the present call came through a symbol that ends with `_ptsz` or `_ptds`.
pub fn per_thread() -> bool {
    PER_THREAD.get()
}

/// Answers a function that is refused. The first call says why.
pub fn refuse(row: usize) -> u32 {
    static SAID: [AtomicBool; 512] = [const { AtomicBool::new(false) }; 512];
    let function = &FUNCTIONS[row];
    if !SAID[row].swap(true, Ordering::Relaxed) {
        say(&format!("{} is refused (cudaErrorNotSupported): {}", function.symbol, function.why));
    }
    failed(NOT_SUPPORTED)
}
