//! Pointers of the caller. An export makes them, and the rest of the library reads and writes through them without `unsafe`.
#![allow(unsafe_code)]

use crate::numbers::CUDA_ERROR_INVALID_VALUE;
use crate::result::{Answer, fail};
use std::ffi::{CStr, c_char, c_void};

/// 64 bytes that a function takes by value: the handles of CUDA's inter-process communication.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes64 {
    bytes: [u8; 64],
}

/// `CUmemLocation`: a kind of memory and a number of that kind.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Location {
    /// A value of `CUmemLocationType`.
    pub kind: u32,
    /// The number of the device or of the NUMA node.
    pub id: i32,
}

/// A pointer that the caller gave: NULL, or valid for what the function's description says is read or written there.
pub struct Ptr<T> {
    at: *mut T,
}

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Ptr<T> {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> Ptr<T> {
    /// Takes a pointer of the caller.
    ///
    /// # Safety
    /// It is NULL, or valid for what the description of the function says of it, for as long as the description says.
    pub unsafe fn new(at: *mut T) -> Ptr<T> {
        Ptr { at }
    }

    /// Whether it is NULL.
    pub fn is_null(self) -> bool {
        self.at.is_null()
    }

    /// The address.
    pub fn address(self) -> usize {
        self.at as usize
    }

    /// The same pointer to another type: to that which the description of the function names.
    pub fn cast<U>(self) -> Ptr<U> {
        Ptr { at: self.at.cast() }
    }

    /// Fails if it is NULL.
    pub fn present(self, name: &str) -> Answer {
        if self.at.is_null() {
            fail!(CUDA_ERROR_INVALID_VALUE, "{name} is NULL");
        }
        Ok(())
    }
}

impl<T: Copy> Ptr<T> {
    /// Writes a value. NULL is an error.
    pub fn set(self, value: T, name: &str) -> Answer {
        self.present(name)?;
        // SAFETY: it is not NULL and so valid for writes, as `Ptr::new` asks of its caller.
        unsafe { self.at.write_unaligned(value) };
        Ok(())
    }

    /// Writes a value unless the pointer is NULL.
    pub fn set_any(self, value: T) {
        if !self.at.is_null() {
            // SAFETY: it is not NULL and so valid for writes, as `Ptr::new` asks of its caller.
            unsafe { self.at.write_unaligned(value) };
        }
    }

    /// Writes element `index` of an array.
    pub fn set_at(self, index: usize, value: T) {
        // SAFETY: the array has this element, as `Ptr::new` asks of its caller: callers check NULL and count before.
        unsafe { self.at.add(index).write_unaligned(value) };
    }

    /// Reads the value. NULL is an error.
    pub fn get(self, name: &str) -> Answer<T> {
        self.present(name)?;
        // SAFETY: it is not NULL and so valid for reads, as `Ptr::new` asks of its caller.
        Ok(unsafe { self.at.read_unaligned() })
    }

    /// Reads an array of `count` values. NULL is an error unless `count` is 0.
    pub fn list(self, count: usize, name: &str) -> Answer<Vec<T>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        self.present(name)?;
        // SAFETY: it is not NULL and so valid for reads of `count` values, as `Ptr::new` asks of its caller.
        Ok((0..count).map(|at| unsafe { self.at.add(at).read_unaligned() }).collect())
    }
}

impl Ptr<c_char> {
    /// Reads a string. NULL and text that is not UTF-8 are errors.
    pub fn text(self, name: &str) -> Answer<String> {
        self.present(name)?;
        // SAFETY: it is not NULL and so a string that ends with a NUL, as `Ptr::new` asks of its caller.
        let text = unsafe { CStr::from_ptr(self.at) };
        match text.to_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => fail!(CUDA_ERROR_INVALID_VALUE, "{name} is not UTF-8: {text:?}"),
        }
    }

    /// Writes a string with its NUL. A string that is too long is cut off.
    pub fn set_text(self, text: &str, room: usize) {
        if room > 0 && !self.is_null() {
            let bytes = &text.as_bytes()[..text.len().min(room - 1)];
            for (at, byte) in bytes.iter().chain(&[0]).enumerate() {
                self.set_at(at, *byte as c_char);
            }
        }
    }
}

impl Ptr<c_void> {
    /// Copies `size` bytes of an image out of memory of the caller.
    pub fn bytes(self, size: usize) -> Answer<Vec<u8>> {
        self.cast::<u8>().present("the image")?;
        let mut bytes = vec![0; size];
        copy_bytes(bytes.as_mut_ptr() as usize, self.address(), size);
        Ok(bytes)
    }
}

/// A value at an address that the caller gave as a number.
pub fn at<T>(address: usize) -> Ptr<T> {
    Ptr { at: address as *mut T }
}

/// Copies bytes between two addresses of the process. The ranges may overlap.
///
/// The caller of the exported function vouches for both: they are in an allocation, which the library has checked, or in memory of the
/// program for which it names the size.
pub fn copy_bytes(to: usize, from: usize, size: usize) {
    if size > 0 {
        // SAFETY: both ranges are valid, as described above.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, size) }
    }
}

/// Copies bytes between two addresses of which one is the program's, and not known. An address that is not mapped is an error.
pub fn copy_checked(to: usize, from: usize, size: usize) -> Answer {
    /// The kernel copies less than 2 GiB at once.
    const PIECE: usize = 1 << 30;
    let mut done = 0;
    while done < size {
        let len = (size - done).min(PIECE);
        let local = libc::iovec { iov_base: (to + done) as *mut c_void, iov_len: len };
        let remote = libc::iovec { iov_base: (from + done) as *mut c_void, iov_len: len };
        // SAFETY: the kernel checks both ranges. What it writes is what the caller of the copy named.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        match std::io::Error::last_os_error().raw_os_error() {
            _ if copied > 0 => done += copied as usize,
            // A container may forbid the call. The program then vouches for its pointers, as everywhere in C.
            Some(libc::EPERM | libc::ENOSYS) => {
                copy_bytes(to + done, from + done, size - done);
                return Ok(());
            }
            _ => fail!(
                CUDA_ERROR_INVALID_VALUE,
                "copying {size} bytes from {from:#x} to {to:#x}: an address is not mapped"
            ),
        }
    }
    Ok(())
}

/// Repeats a value of 1, 2 or 4 bytes over `size` bytes from an address. The range is in an allocation, which the caller has checked.
pub fn repeat_bytes(to: usize, size: usize, value: u32, width: usize) {
    let bytes = value.to_le_bytes();
    for at in (0..size).step_by(width) {
        copy_bytes(to + at, bytes.as_ptr() as usize, width.min(size - at));
    }
}

/// Calls `CUhostFn`.
pub fn call_host_function(function: usize, user: usize) {
    type Function = unsafe extern "C" fn(*mut c_void);
    // SAFETY: the caller of cuLaunchHostFunc gave this function, and checked that it is not NULL: it takes what the caller gave with it.
    unsafe { std::mem::transmute::<usize, Function>(function)(user as *mut c_void) }
}

/// Calls `CUstreamCallback`.
pub fn call_stream_callback(function: usize, stream: usize, result: u32, user: usize) {
    type Function = unsafe extern "C" fn(usize, u32, *mut c_void);
    // SAFETY: the caller of cuStreamAddCallback gave this function, which is not NULL: it takes what the caller gave with it.
    unsafe { std::mem::transmute::<usize, Function>(function)(stream, result, user as *mut c_void) }
}

/// Calls `CUoccupancyB2DSize`.
pub fn call_block_to_shared(function: usize, block: i32) -> usize {
    type Function = unsafe extern "C" fn(i32) -> usize;
    // SAFETY: the caller of cuOccupancyMaxPotentialBlockSize gave this function, which is not NULL.
    unsafe { std::mem::transmute::<usize, Function>(function)(block) }
}
