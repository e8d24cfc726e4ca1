//! Adds two vectors through CUDA's driver interface: a Rust program without any crate, which knows nothing of libtegrarm.
//!
//! ```text
//! rustc --edition 2021 -L target/release/cuda examples/rust/cuda_vecadd.rs
//! python -m tegrarm run --cuda -- ./cuda_vecadd tests/data/cubin/vecadd.nvrtc.cubin
//! ```
//!
//! The crate cudarc declares the same functions. Here they stand in the program, so that rustc alone compiles it.

use std::ffi::{c_char, c_int, c_uint, c_void, CStr, CString};
use std::{env, fmt, process, ptr};

#[link(name = "cuda")]
extern "C" {
    fn cuInit(flags: c_uint) -> c_int;
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int;
    fn cuDeviceGetName(name: *mut c_char, size: c_int, device: c_int) -> c_int;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> c_int;
    fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> c_int;
    fn cuCtxSetCurrent(context: *mut c_void) -> c_int;
    fn cuModuleLoad(module: *mut *mut c_void, path: *const c_char) -> c_int;
    fn cuModuleUnload(module: *mut c_void) -> c_int;
    fn cuModuleGetFunction(function: *mut *mut c_void, module: *mut c_void, name: *const c_char) -> c_int;
    fn cuMemAlloc_v2(address: *mut u64, size: usize) -> c_int;
    fn cuMemFree_v2(address: u64) -> c_int;
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, size: usize) -> c_int;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, size: usize) -> c_int;
    fn cuLaunchKernel(
        function: *mut c_void,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: *mut c_void,
        values: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> c_int;
    fn cuCtxSynchronize() -> c_int;
    fn cuGetErrorName(result: c_int, name: *mut *const c_char) -> c_int;
}

/// A call that failed: its name and CUDA's result.
struct Failed(&'static str, c_int);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = ptr::null();
        // SAFETY: the function writes a pointer to a string that lives as long as the program, or a null pointer.
        let known = unsafe { cuGetErrorName(self.1, &mut name) == 0 && !name.is_null() };
        // SAFETY: `name` is such a string.
        let name = if known { unsafe { CStr::from_ptr(name) }.to_string_lossy() } else { "an unknown result".into() };
        write!(f, "{}: {name} ({})", self.0, self.1)
    }
}

/// Calls a function of CUDA; a result other than CUDA_SUCCESS becomes an error with the function's name.
macro_rules! cuda {
    ($name:ident($($argument:expr),*)) => {
        // SAFETY: each call gives pointers to variables that live longer than the call, and handles that CUDA has given.
        match unsafe { $name($($argument),*) } {
            0 => Ok(()),
            result => Err(Failed(stringify!($name), result)),
        }
    };
}

/// Memory of the GPU for some numbers, which is freed with this object.
struct Vector {
    address: u64,
    count: usize,
}

impl Vector {
    fn new(count: usize) -> Result<Self, Failed> {
        let mut address = 0;
        cuda!(cuMemAlloc_v2(&mut address, count * size_of::<f32>()))?;
        Ok(Self { address, count })
    }

    fn of(numbers: &[f32]) -> Result<Self, Failed> {
        let vector = Self::new(numbers.len())?;
        cuda!(cuMemcpyHtoD_v2(vector.address, numbers.as_ptr().cast(), size_of_val(numbers)))?;
        Ok(vector)
    }

    fn read(&self) -> Result<Vec<f32>, Failed> {
        let mut numbers = vec![0.0; self.count];
        cuda!(cuMemcpyDtoH_v2(numbers.as_mut_ptr().cast(), self.address, size_of_val(&numbers[..])))?;
        Ok(numbers)
    }
}

impl Drop for Vector {
    fn drop(&mut self) {
        if let Err(failed) = cuda!(cuMemFree_v2(self.address)) {
            eprintln!("{failed}");
        }
    }
}

/// Adds vectors of `count` numbers with the kernel `vecadd` of a file. Returns the sums.
fn sums(cubin: &CStr, first: &[f32], second: &[f32]) -> Result<Vec<f32>, Failed> {
    let (mut module, mut kernel) = (ptr::null_mut(), ptr::null_mut());
    cuda!(cuModuleLoad(&mut module, cubin.as_ptr()))?;
    cuda!(cuModuleGetFunction(&mut kernel, module, c"vecadd".as_ptr()))?;
    let (a, b, sum) = (Vector::of(first)?, Vector::of(second)?, Vector::new(first.len())?);
    let count = first.len() as c_uint;
    let mut values: [*mut c_void; 4] = [
        (&raw const a.address) as _,
        (&raw const b.address) as _,
        (&raw const sum.address) as _,
        (&raw const count) as _,
    ];
    let blocks = count.div_ceil(128);
    cuda!(cuLaunchKernel(kernel, blocks, 1, 1, 128, 1, 1, 0, ptr::null_mut(), values.as_mut_ptr(), ptr::null_mut()))?;
    cuda!(cuCtxSynchronize())?;
    let numbers = sum.read()?;
    cuda!(cuModuleUnload(module))?;
    Ok(numbers)
}

fn run(cubin: &CStr) -> Result<(), Failed> {
    let (mut device, mut context, mut name) = (0, ptr::null_mut(), [0; 64]);
    cuda!(cuInit(0))?;
    cuda!(cuDeviceGet(&mut device, 0))?;
    cuda!(cuDeviceGetName(name.as_mut_ptr(), 64, device))?;
    cuda!(cuDevicePrimaryCtxRetain(&mut context, device))?;
    cuda!(cuCtxSetCurrent(context))?;
    let first: Vec<f32> = (0..1000).map(|n| n as f32).collect();
    let second: Vec<f32> = first.iter().map(|x| 2.0 * x).collect();
    let found = sums(cubin, &first, &second)?;
    cuda!(cuDevicePrimaryCtxRelease_v2(device))?;
    let right = found.iter().zip(&first).filter(|(sum, x)| **sum == 3.0 * **x).count();
    // SAFETY: CUDA has written a string with an end into `name`.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy();
    println!("{name}: {right} of {} sums are right", found.len());
    process::exit(i32::from(right != found.len()))
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, cubin] = &arguments[..] else {
        eprintln!("usage: {} CUBIN", arguments[0]);
        process::exit(2);
    };
    let cubin = CString::new(cubin.as_str()).expect("an argument of a program contains no zero byte");
    if let Err(failed) = run(&cubin) {
        eprintln!("{failed}");
        process::exit(1);
    }
}
