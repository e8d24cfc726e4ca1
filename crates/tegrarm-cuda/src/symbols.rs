//! The table of the exported functions, and the look-up of a function by its name.

use crate::exports::FUNCTIONS;

/// One exported function.
pub struct Function {
    /// The name that is exported.
    pub symbol: &'static str,
    /// The name of the function without its version.
    pub name: &'static str,
    /// The version of CUDA in which this symbol came, as cuDriverGetVersion writes it.
    pub since: u32,
    /// The last version of CUDA whose header has it.
    pub last: u32,
    /// Where it is.
    pub address: *const (),
}

// SAFETY of sharing: the addresses are those of functions, which never change.
#[allow(unsafe_code)]
// SAFETY: see above.
unsafe impl Sync for Function {}

/// How cuGetProcAddress found something.
pub enum Found {
    /// The address.
    At(usize),
    /// The version is older than the function.
    TooOld,
    /// There is no such function.
    Nothing,
}

/// Finds the function with this name that a program of this version of CUDA means.
pub fn find(name: &str, version: u32, per_thread: bool) -> Found {
    let of_thread = |function: &&Function| function.symbol.ends_with("_ptsz") || function.symbol.ends_with("_ptds");
    let mut candidates =
        FUNCTIONS.iter().filter(|function| function.name == name && version <= function.last).peekable();
    if candidates.peek().is_none() {
        return Found::Nothing;
    }
    let all: Vec<&Function> = candidates.filter(|function| function.since <= version).collect();
    let plain =
        all.iter().copied().filter(|f| !of_thread(f)).max_by_key(|function| (function.since, function.symbol.len()));
    let own = all.iter().copied().filter(of_thread).max_by_key(|function| (function.since, function.symbol.len()));
    match (per_thread.then_some(own).flatten(), plain) {
        (Some(function), _) | (None, Some(function)) => Found::At(function.address as usize),
        (None, None) => Found::TooOld,
    }
}

pub mod rows {
    //! The functions that look up functions.

    use super::{Found, find};
    use crate::numbers::*;
    use crate::pointers::Ptr;
    use crate::result::{Answer, Error, fail};
    use std::ffi::{c_char, c_void};

    /// The flags of cuGetProcAddress.
    fn look(symbol: Ptr<c_char>, pfn: Ptr<usize>, version: i32, flags: usize) -> Answer<u32> {
        let name = symbol.text("symbol")?;
        pfn.present("pfn")?;
        let known = (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) as usize;
        if flags & !known != 0 || version < 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "cuGetProcAddress({name}): version {version}, flags {flags:#x}");
        }
        let per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM as usize != 0;
        let (address, status) = match find(&name, version as u32, per_thread) {
            Found::At(address) => (address, CU_GET_PROC_ADDRESS_SUCCESS),
            Found::TooOld => (0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
            Found::Nothing => (0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
        };
        pfn.set(address, "pfn")?;
        Ok(status)
    }

    pub fn cuGetProcAddress(symbol: Ptr<c_char>, pfn: Ptr<usize>, version: i32, flags: usize) -> Answer {
        match look(symbol, pfn, version, flags)? {
            CU_GET_PROC_ADDRESS_SUCCESS => Ok(()),
            _ => Err(Error::plain(CUDA_ERROR_NOT_FOUND)),
        }
    }

    pub fn cuGetProcAddress_v2(
        symbol: Ptr<c_char>,
        pfn: Ptr<usize>,
        version: i32,
        flags: usize,
        status: Ptr<u32>,
    ) -> Answer {
        // A function that is not found is no error here, also for callers who do not ask for the status: they get a null pointer.
        look(symbol, pfn, version, flags).map(|found| status.set_any(found))
    }

    pub fn cuGetExportTable(table: Ptr<usize>, id: Ptr<c_void>) -> Answer {
        table.set(0, "ppExportTable")?;
        id.present("pExportTableId")?;
        // These tables are private interfaces between parts of NVIDIA's own software, without documentation.
        fail!(
            CUDA_ERROR_NOT_FOUND,
            "the tables of cuGetExportTable are private interfaces of NVIDIA's software, which are not imitated"
        )
    }
}
