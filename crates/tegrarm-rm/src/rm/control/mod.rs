//! The handlers of the control table, sorted by subject.

pub mod bus;
pub mod channel;
pub mod debug_memory;
pub mod debugger;
pub mod device;
pub mod engines;
pub mod fb;
pub mod gpu;
pub mod gr;
pub mod plain;
pub mod profiler;
pub mod row;
pub mod system;

use super::user;
use crate::status::{RmResult, fail};
use tegrarm_abi::rm::status::*;

/// An `{index, data}` pair. Several controls take lists of such pairs.
pub type Pair = [u32; 2];
/// The largest number of pairs that is accepted. It is more than any control has indices.
const MAX_PAIRS: u32 = 1024;

/// Fills in a list of pairs in the client's memory.
fn answer_list(addr: u64, count: u32, answer: impl Fn(u32) -> RmResult<u32>) -> RmResult<()> {
    if count > MAX_PAIRS {
        fail!(NV_ERR_INVALID_ARGUMENT, "a list of {count} entries: at most {MAX_PAIRS}");
    }
    if count == 0 {
        return Ok(());
    }
    let mut pairs: Vec<Pair> = user::read_list(addr, count as usize)?;
    for pair in &mut pairs {
        pair[1] = answer(pair[0])?;
    }
    user::write_list(addr, &pairs)
}

/// Fills in a list of pairs that is part of the parameters: a count, then the pairs.
fn answer_inline(params: &mut [u8], answer: impl Fn(u32) -> RmResult<u32>) -> RmResult<()> {
    let count = super::params::word(params, 0) as usize;
    let room = (params.len() - 4) / size_of::<Pair>();
    if count > room {
        fail!(NV_ERR_INVALID_ARGUMENT, "a list of {count} entries: there is room for {room}");
    }
    for at in (0..count).map(|i| 4 + i * size_of::<Pair>()) {
        let data = answer(super::params::word(params, at))?;
        super::params::set_word(params, at + 4, data);
    }
    Ok(())
}
