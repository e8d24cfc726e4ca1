//! The calls of the Resource Manager, through the Rust core or through the C functions.
//!
//! A suite that is written against [`Calls`] runs through both; see [`over_both_doors`](crate::over_both_doors).
#![allow(unsafe_code)] // the C functions take pointers

use super::*;
use std::ffi::{CString, c_void};
use std::sync::OnceLock;
use tegrarm::capi::library::{tegrarm_config, tegrarm_init, tegrarm_last_error};
use tegrarm::capi::objects::*;
use tegrarm::rm::MemoryRequest;
use tegrarm::status::RmError;
use tegrarm_abi::rm::status::NV_OK;

/// The calls that a client makes to the Resource Manager.
pub trait Calls {
    /// `rm_alloc`, with `size` bytes of parameters. 0 stands for the size of the class's parameters.
    fn alloc_as(&self, client: u32, parent: u32, handle: u32, class: u32, params: Option<&mut [u8]>) -> RmResult<u32>;
    /// `rm_control`. The call is told `has_params` and `size`, whether or not they agree with `params`.
    fn control_as(&self, to: (u32, u32), cmd: u32, told: (bool, u32), params: &mut [u8]) -> RmResult<()>;
    /// `rm_free`.
    fn free(&self, client: u32, object: u32) -> RmResult<()>;
    /// `rm_dup_object`.
    fn dup_object(&self, client: u32, parent: u32, wanted: u32, source_client: u32, source: u32) -> RmResult<u32>;
    /// `rm_alloc_memory`.
    fn alloc_memory(
        &self,
        client: u32,
        parent: u32,
        wanted: u32,
        request: &MemoryRequest,
    ) -> RmResult<(u32, Option<usize>)>;
    /// `rm_map_memory`.
    fn map_memory(&self, client: u32, device: u32, request: &MapRequest) -> RmResult<usize>;
    /// `rm_unmap_memory`.
    fn unmap_memory(&self, client: u32, device: u32, memory: u32, addr: usize) -> RmResult<()>;
    /// `rm_map_memory_dma`.
    fn map_memory_dma(&self, client: u32, device: u32, request: &DmaRequest) -> RmResult<u64>;
    /// `rm_unmap_memory_dma`.
    fn unmap_memory_dma(&self, client: u32, device: u32, dma: u32, memory: u32, dma_offset: u64) -> RmResult<()>;

    fn make(&self, client: u32, parent: u32, class: u32) -> RmResult<u32> {
        self.alloc_as(client, parent, 0, class, None)
    }

    fn make_as(&self, client: u32, parent: u32, handle: u32, class: u32) -> RmResult<u32> {
        self.alloc_as(client, parent, handle, class, None)
    }

    fn make_with<P: AbiStruct>(&self, client: u32, parent: u32, class: u32, params: &mut P) -> RmResult<u32> {
        self.alloc_as(client, parent, 0, class, Some(params.as_mut_bytes()))
    }

    fn ask<P: AbiStruct>(&self, client: u32, object: u32, cmd: u32, params: &mut P) -> RmResult<()> {
        self.tell(client, object, cmd, params.as_mut_bytes())
    }

    fn tell(&self, client: u32, object: u32, cmd: u32, params: &mut [u8]) -> RmResult<()> {
        self.control_as((client, object), cmd, (!params.is_empty(), params.len() as u32), params)
    }
}

impl Calls for Rm {
    fn alloc_as(&self, client: u32, parent: u32, handle: u32, class: u32, params: Option<&mut [u8]>) -> RmResult<u32> {
        let prepared = self.prepare_alloc(class, params.is_some(), params.as_ref().map_or(0, |p| p.len() as u32))?;
        self.alloc(prepared, client, parent, handle, params.unwrap_or(&mut []))
    }

    fn control_as(&self, to: (u32, u32), cmd: u32, told: (bool, u32), params: &mut [u8]) -> RmResult<()> {
        let prepared = self.prepare_control(to.0, to.1, cmd, told.0, told.1)?;
        self.control(&prepared, params)
    }

    fn free(&self, client: u32, object: u32) -> RmResult<()> {
        self.free(client, object)
    }

    fn dup_object(&self, client: u32, parent: u32, wanted: u32, source_client: u32, source: u32) -> RmResult<u32> {
        self.dup_object(client, parent, wanted, source_client, source)
    }

    fn alloc_memory(
        &self,
        client: u32,
        parent: u32,
        wanted: u32,
        request: &MemoryRequest,
    ) -> RmResult<(u32, Option<usize>)> {
        self.alloc_memory(client, parent, wanted, request)
    }

    fn map_memory(&self, client: u32, device: u32, request: &MapRequest) -> RmResult<usize> {
        self.map_memory(client, device, request)
    }

    fn unmap_memory(&self, client: u32, device: u32, memory: u32, addr: usize) -> RmResult<()> {
        self.unmap_memory(client, device, memory, addr)
    }

    fn map_memory_dma(&self, client: u32, device: u32, request: &DmaRequest) -> RmResult<u64> {
        self.map_memory_dma(client, device, request)
    }

    fn unmap_memory_dma(&self, client: u32, device: u32, dma: u32, memory: u32, dma_offset: u64) -> RmResult<()> {
        self.unmap_memory_dma(client, device, dma, memory, dma_offset)
    }
}

/// The C functions of this process. They are initialised once, for the kernel on which the tests run.
#[derive(Clone, Copy)]
pub struct CFunctions(());

impl CFunctions {
    pub fn get() -> CFunctions {
        static READY: OnceLock<()> = OnceLock::new();
        READY.get_or_init(|| {
            let backend = CString::new(if board::behind_nodes() { "nvgpu" } else { "sim" }).expect("no NUL");
            let config = tegrarm_config { size: size_of::<tegrarm_config>(), backend: backend.as_ptr() };
            // SAFETY: the configuration and its string live until the call returns.
            answer(unsafe { tegrarm_init(&raw const config) }).expect("the C functions can be initialised");
        });
        CFunctions(())
    }
}

/// Converts a status of the C functions to a result. An error has the sentence of this thread's last error.
fn answer(status: u32) -> RmResult<()> {
    if status == NV_OK {
        return Ok(());
    }
    let mut text = [0u8; 1024];
    // SAFETY: the buffer belongs to this function and has that length.
    let whole = unsafe { tegrarm_last_error(text.as_mut_ptr().cast(), text.len()) };
    let sentence = String::from_utf8_lossy(&text[..whole.min(text.len() - 1)]).into_owned();
    assert!(!sentence.is_empty(), "status {status:#x} has no sentence");
    Err(RmError::new(status, sentence))
}

fn pointer(params: &mut [u8]) -> *mut c_void {
    params.as_mut_ptr().cast()
}

impl Calls for CFunctions {
    fn alloc_as(
        &self,
        client: u32,
        parent: u32,
        mut handle: u32,
        class: u32,
        params: Option<&mut [u8]>,
    ) -> RmResult<u32> {
        let (params, size) = params.map_or((std::ptr::null_mut(), 0), |p| (pointer(p), p.len() as u32));
        // SAFETY: the handle belongs to this function, and the parameters are the caller's bytes, as many as the size
        // says.
        answer(unsafe { rm_alloc(client, parent, &raw mut handle, class, params, size) }).map(|()| handle)
    }

    fn control_as(&self, to: (u32, u32), cmd: u32, told: (bool, u32), params: &mut [u8]) -> RmResult<()> {
        let params = if told.0 { pointer(params) } else { std::ptr::null_mut() };
        // SAFETY: the parameters are the caller's bytes. A test that passes another size passes one that is refused
        // before anything is read.
        answer(unsafe { rm_control(to.0, to.1, cmd, params, told.1) })
    }

    fn free(&self, client: u32, object: u32) -> RmResult<()> {
        answer(rm_free(client, 0, object))
    }

    fn dup_object(&self, client: u32, parent: u32, mut wanted: u32, source_client: u32, source: u32) -> RmResult<u32> {
        // SAFETY: the handle belongs to this function.
        answer(unsafe { rm_dup_object(client, parent, &raw mut wanted, source_client, source, 0) }).map(|()| wanted)
    }

    fn alloc_memory(
        &self,
        client: u32,
        parent: u32,
        wanted: u32,
        request: &MemoryRequest,
    ) -> RmResult<(u32, Option<usize>)> {
        let (mut handle, mut limit, given) = (wanted, request.limit, request.address as *mut c_void);
        let mut address = given;
        // SAFETY: the three variables belong to this function, and the test owns the pages that the request names.
        let status = unsafe {
            rm_alloc_memory(
                client,
                parent,
                &raw mut handle,
                request.class,
                request.flags,
                &raw mut address,
                &raw mut limit,
            )
        };
        answer(status).map(|()| (handle, (address != given).then_some(address as usize)))
    }

    fn map_memory(&self, client: u32, device: u32, request: &MapRequest) -> RmResult<usize> {
        let mut address = request.at.unwrap_or(0) as *mut c_void;
        let MapRequest { memory, offset, length, flags, .. } = *request;
        // SAFETY: the address belongs to this function, and a range that it names belongs to the test.
        answer(unsafe { rm_map_memory(client, device, memory, offset, length, &raw mut address, flags) })
            .map(|()| address as usize)
    }

    fn unmap_memory(&self, client: u32, device: u32, memory: u32, addr: usize) -> RmResult<()> {
        answer(rm_unmap_memory(client, device, memory, addr as *mut c_void, 0))
    }

    fn map_memory_dma(&self, client: u32, device: u32, request: &DmaRequest) -> RmResult<u64> {
        let DmaRequest { dma, memory, offset, length, flags, mut dma_offset } = *request;
        // SAFETY: the offset belongs to this function.
        answer(unsafe { rm_map_memory_dma(client, device, dma, memory, offset, length, flags, &raw mut dma_offset) })
            .map(|()| dma_offset)
    }

    fn unmap_memory_dma(&self, client: u32, device: u32, dma: u32, memory: u32, dma_offset: u64) -> RmResult<()> {
        answer(rm_unmap_memory_dma(client, device, dma, memory, 0, dma_offset))
    }
}

/// Makes two tests of each function `fn name(rm: &impl Calls)`: `rust_core::name` and `c_functions::name`.
#[macro_export]
macro_rules! over_both_doors {
    ($($name:ident),* $(,)?) => {
        mod rust_core {
            $(#[test] fn $name() { super::$name(&super::manager(super::board(super::default_release()))) })*
        }
        mod c_functions {
            $(#[test] fn $name() { super::$name(&super::CFunctions::get()) })*
        }
    };
}
