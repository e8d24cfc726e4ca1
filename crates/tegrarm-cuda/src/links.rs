//! Links: several inputs become one cubin, by nvJitLink, or one PTX does, by ptxas too.

use crate::device::arch;
use crate::handles::Handles;
use crate::jit::{Input, Options, compile, input};
use crate::modules::file;
use crate::numbers::*;
use crate::result::{Answer, fail};
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// All links.
static LINKS: Handles<Link> = Handles::new(9, "link", CUDA_ERROR_INVALID_HANDLE);

struct Link {
    options: Mutex<Options>,
    inputs: Mutex<Vec<Input>>,
    /// What it gave, which the caller reads until it ends the link.
    cubin: Mutex<Option<Vec<u8>>>,
}

pub mod rows {
    //! The functions of links.

    use super::*;
    use crate::pointers::Ptr;
    use std::ffi::{c_char, c_void};

    pub fn cuLinkCreate_v2(count: u32, names: Ptr<u32>, values: Ptr<usize>, link: Ptr<usize>) -> Answer {
        link.present("stateOut")?;
        let options = Mutex::new(Options::read(count, names, values)?);
        link.set(LINKS.add(Arc::new(Link { options, inputs: Mutex::default(), cubin: Mutex::default() }))?, "stateOut")
    }

    fn add(link: usize, kind: u32, bytes: Vec<u8>, name: String, options: Options) -> Answer {
        let kind = match kind {
            CU_JIT_INPUT_CUBIN => input::CUBIN,
            CU_JIT_INPUT_PTX => input::PTX,
            CU_JIT_INPUT_FATBINARY => input::FATBIN,
            CU_JIT_INPUT_OBJECT => input::OBJECT,
            CU_JIT_INPUT_LIBRARY => input::LIBRARY,
            CU_JIT_INPUT_NVVM => input::LTO_IR,
            other => fail!(CUDA_ERROR_INVALID_VALUE, "the type {other} of an input"),
        };
        let mut bytes = bytes;
        if kind == input::PTX {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            bytes.truncate(end);
        }
        let link = LINKS.get(link)?;
        link.options.lock().take_over(options);
        link.inputs.lock().push(Input { kind, bytes, name });
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "it is cuda.h's")]
    pub fn cuLinkAddData_v2(
        link: usize,
        kind: u32,
        data: Ptr<c_void>,
        size: usize,
        name: Ptr<c_char>,
        count: u32,
        names: Ptr<u32>,
        values: Ptr<usize>,
    ) -> Answer {
        LINKS.get(link)?;
        let options = Options::read(count, names, values)?;
        let name = if name.is_null() { "an input".to_owned() } else { name.text("name")? };
        add(link, kind, data.bytes(size)?, name, options)
    }

    pub fn cuLinkAddFile_v2(
        link: usize,
        kind: u32,
        path: Ptr<c_char>,
        count: u32,
        names: Ptr<u32>,
        values: Ptr<usize>,
    ) -> Answer {
        LINKS.get(link)?;
        let options = Options::read(count, names, values)?;
        let path = path.text("path")?;
        add(link, kind, file(&path)?, path, options)
    }

    pub fn cuLinkComplete(link: usize, cubin: Ptr<usize>, size: Ptr<usize>) -> Answer {
        cubin.present("cubinOut")?;
        let link = LINKS.get(link)?;
        let made = compile(&link.inputs.lock(), &link.options.lock(), arch()?)?;
        size.set_any(made.len());
        let mut kept = link.cubin.lock();
        cubin.set(kept.insert(made).as_ptr() as usize, "cubinOut")
    }

    pub fn cuLinkDestroy(link: usize) -> Answer {
        LINKS.remove(link).map(drop)
    }
}
