//! Occupancy: how many blocks an SM runs at the same time.

use crate::functions::{Function, function};
use crate::numbers::*;
use crate::result::{Answer, fail};

/// The blocks of `threads` threads that an SM runs, or 0 if it cannot run one.
fn blocks(function: &Function, threads: u32, shared: usize) -> Answer<u32> {
    let most = function.attributes.max_threads.min(1024);
    if threads == 0 || threads > most || shared > function.attributes.max_dynamic_shared as usize {
        return Ok(0);
    }
    function.kernel.blocks_per_sm([threads, 1, 1], shared as u32)
}

pub mod rows {
    //! The functions of occupancy.

    use super::*;
    use crate::pointers::{Ptr, call_block_to_shared};

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
        let units = crate::device::profile()?.compute_units;
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
