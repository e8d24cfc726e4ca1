//! The C functions `rm_alloc`, `rm_control`, `rm_free` and their kind, in sequences, against a model of the objects.
//!
//! The target must run without the address sanitizer (`-s none`): parameters have pointers to which the library
//! writes, and these must not lie in the sanitizer's memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ptr::null_mut;
use tegrarm::capi::objects::*;
use tegrarm_fuzz::Input;
use tegrarm_fuzz::objects::{Objects, Verbs};
use tegrarm_fuzz::program::Program;

struct Functions;

fn pointer(params: &mut [u8]) -> *mut std::ffi::c_void {
    if params.is_empty() { null_mut() } else { params.as_mut_ptr().cast() }
}

impl Verbs for Functions {
    fn alloc(&mut self, at: [u32; 3], class: u32, params: Option<&mut [u8]>, size: u32) -> (u32, u32) {
        let (mut handle, params) = (at[2], params.map_or(null_mut(), pointer));
        // SAFETY: the handle is a variable, and the parameters have at least as many bytes as any size of the class.
        (unsafe { rm_alloc(at[0], at[1], &raw mut handle, class, params, size) }, handle)
    }

    fn control(&mut self, client: u32, object: u32, cmd: u32, params: &mut [u8]) -> u32 {
        let size = params.len() as u32;
        // SAFETY: the parameters have as many bytes as the call is told.
        unsafe { rm_control(client, object, cmd, pointer(params), size) }
    }

    fn free(&mut self, client: u32, object: u32) -> u32 {
        rm_free(client, 0, object)
    }

    fn dup(&mut self, at: [u32; 3], client: u32, object: u32) -> (u32, u32) {
        let mut handle = at[2];
        // SAFETY: the handle is a variable.
        (unsafe { rm_dup_object(at[0], at[1], &raw mut handle, client, object, 0) }, handle)
    }

    fn map_dma(&mut self, o: [u32; 4], [offset, length, at]: [u64; 3], flags: u32) -> (u32, u64) {
        let mut at = at;
        // SAFETY: the address is a variable.
        (unsafe { rm_map_memory_dma(o[0], o[1], o[2], o[3], offset, length, flags, &raw mut at) }, at)
    }

    fn unmap_dma(&mut self, o: [u32; 4], at: u64) -> u32 {
        rm_unmap_memory_dma(o[0], o[1], o[2], o[3], 0, at)
    }

    fn map(&mut self, o: [u32; 3], offset: u64, length: u64) -> (u32, u64) {
        let mut at = null_mut();
        // SAFETY: the address is a variable that is NULL, so that the library chooses where to map.
        (unsafe { rm_map_memory(o[0], o[1], o[2], offset, length, &raw mut at, 0) }, at as u64)
    }

    fn unmap(&mut self, o: [u32; 3], at: u64) -> u32 {
        rm_unmap_memory(o[0], o[1], o[2], at as *mut _, 0)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let program = Program::start(input.byte());
    let mut objects = Objects::new(Functions);
    while !input.0.is_empty() && objects.has_room() {
        objects.step(&mut input);
    }
    objects.end();
    program.end();
});
