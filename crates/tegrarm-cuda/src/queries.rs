//! What a program asks of functions: attributes, parameters, and how many blocks an SM runs at the same time.

use crate::context::CONTEXTS;
use crate::device::profile;
use crate::functions::Function;
use crate::libraries::function;
use crate::numbers::*;
use crate::pointers::{Ptr, call_block_to_shared};
use crate::result::{Answer, Error, fail};

/// The blocks of `threads` threads that an SM runs, or 0 if it cannot run one.
fn blocks(function: &Function, threads: u32, shared: usize) -> Answer<u32> {
    let most = function.attributes.max_threads.min(1024);
    if threads == 0 || threads > most || shared > function.attributes.max_dynamic_shared as usize {
        return Ok(0);
    }
    function.kernel.blocks_per_sm([threads, 1, 1], shared as u32)
}

pub mod rows {
    //! The functions of functions and of occupancy.

    use super::*;

    pub fn cuFuncGetAttribute(value: Ptr<i32>, attribute: u32, handle: usize) -> Answer {
        value.present("pi")?;
        value.set(function(handle)?.attribute(attribute)?, "pi")
    }

    pub fn cuFuncSetAttribute(handle: usize, attribute: u32, value: i32) -> Answer {
        function(handle)?.set_attribute(attribute, value)
    }

    pub fn cuFuncSetCacheConfig(handle: usize, config: u32) -> Answer {
        if config > CU_FUNC_CACHE_PREFER_EQUAL {
            fail!(CUDA_ERROR_INVALID_VALUE, "the cache configuration {config}");
        }
        function(handle).map(drop)
    }

    pub fn cuFuncSetSharedMemConfig(handle: usize, config: u32) -> Answer {
        if config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE {
            fail!(CUDA_ERROR_INVALID_VALUE, "the configuration {config} of shared memory");
        }
        function(handle).map(drop)
    }

    pub fn cuFuncGetModule(module: Ptr<usize>, handle: usize) -> Answer {
        module.present("hmod")?;
        module.set(function(handle)?.module, "hmod")
    }

    /// The name stays valid for as long as the function does.
    pub fn cuFuncGetName(name: Ptr<usize>, handle: usize) -> Answer {
        name.present("name")?;
        name.set(function(handle)?.name.as_ptr() as usize, "name")
    }

    pub fn cuFuncGetParamInfo(handle: usize, index: usize, offset: Ptr<usize>, size: Ptr<usize>) -> Answer {
        offset.present("paramOffset")?;
        let function = function(handle)?;
        let Some((at, bytes)) = function.layout.get(index) else {
            return Err(Error::plain(CUDA_ERROR_INVALID_VALUE));
        };
        size.set_any(*bytes as usize);
        offset.set(*at as usize, "paramOffset")
    }

    pub fn cuFuncGetParamCount(handle: usize, count: Ptr<usize>) -> Answer {
        count.present("paramCount")?;
        count.set(function(handle)?.layout.len(), "paramCount")
    }

    pub fn cuFuncIsLoaded(state: Ptr<u32>, handle: usize) -> Answer {
        state.present("state")?;
        function(handle)?;
        state.set(CU_FUNCTION_LOADING_STATE_LOADED, "state")
    }

    pub fn cuFuncLoad(handle: usize) -> Answer {
        let function = function(handle)?;
        if CONTEXTS.find(function.context).is_none() {
            return Err(Error::plain(CUDA_ERROR_CONTEXT_IS_DESTROYED));
        }
        Ok(())
    }

    pub fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Ptr<i32>,
        handle: usize,
        threads: i32,
        shared: usize,
    ) -> Answer {
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, handle, threads, shared, 0)
    }

    pub fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Ptr<i32>,
        handle: usize,
        threads: i32,
        shared: usize,
        flags: u32,
    ) -> Answer {
        count.present("numBlocks")?;
        if threads <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE {
            fail!(CUDA_ERROR_INVALID_VALUE, "blocks of {threads} threads, flags {flags:#x}");
        }
        count.set(blocks(&*function(handle)?, threads as u32, shared)? as i32, "numBlocks")
    }

    pub fn cuOccupancyMaxPotentialBlockSize(
        grid: Ptr<i32>,
        block: Ptr<i32>,
        handle: usize,
        shared_of: usize,
        shared: usize,
        limit: i32,
    ) -> Answer {
        cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, shared_of, shared, limit, 0)
    }

    /// The block size with the most threads on an SM, and among those the largest, as CUDA's own calculation has it.
    pub fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Ptr<i32>,
        block: Ptr<i32>,
        handle: usize,
        shared_of: usize,
        shared: usize,
        limit: i32,
        flags: u32,
    ) -> Answer {
        grid.present("minGridSize")?;
        block.present("blockSize")?;
        let function = function(handle)?;
        if limit < 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE {
            fail!(CUDA_ERROR_INVALID_VALUE, "a limit of {limit} threads, flags {flags:#x}");
        }
        let most = function.attributes.max_threads.min(1024);
        let most = if limit > 0 { most.min(limit as u32) } else { most };
        let sizes = std::iter::once(most).chain((1..most.div_ceil(32)).rev().map(|warps| warps * 32));
        let (mut best, mut best_blocks) = (0, 0);
        for threads in sizes {
            let own = if shared_of == 0 { shared } else { call_block_to_shared(shared_of, threads as i32) };
            let count = blocks(&function, threads, own)?;
            if count * threads > best * best_blocks {
                (best, best_blocks) = (threads, count);
            }
        }
        let units = profile()?.compute_units;
        block.set(best as i32, "blockSize")?;
        grid.set((best_blocks * units) as i32, "minGridSize")
    }

    pub fn cuOccupancyAvailableDynamicSMemPerBlock(
        size: Ptr<usize>,
        handle: usize,
        count: i32,
        threads: i32,
    ) -> Answer {
        size.present("dynamicSmemSize")?;
        let function = function(handle)?;
        if count <= 0 || threads <= 0 || blocks(&function, threads as u32, 0)? < count as u32 {
            fail!(CUDA_ERROR_INVALID_VALUE, "{count} blocks of {threads} threads do not fit on an SM");
        }
        // The largest size with which so many blocks still fit: it falls as the size grows, so that halving finds it.
        let (mut low, mut high) = (0, function.attributes.max_dynamic_shared as usize);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if blocks(&function, threads as u32, middle)? >= count as u32 { low = middle } else { high = middle - 1 }
        }
        size.set(low, "dynamicSmemSize")
    }
}
