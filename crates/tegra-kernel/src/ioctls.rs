//! A list of all ioctls, for tools and tests that compare something with all of them.

use crate::dispatch::Row;
use crate::{channel, ctrl, ctrl_fifo, ctxsw, debugger, nvmap, nvsched, profiler, sched, space, tsg};

/// Every ioctl of every node and file, with its upstream name and its number. An ioctl that has another number on r35
/// is listed twice.
pub fn ioctls() -> Vec<(&'static str, u32)> {
    fn of<O>(rows: &'static [Row<O>]) -> impl Iterator<Item = (&'static str, u32)> {
        rows.iter().map(|row| (row.name, row.number))
    }
    let nodes =
        of(ctrl::TABLE.rows).chain(of(space::TABLE.rows)).chain(of(tsg::TABLE.rows)).chain(of(channel::TABLE.rows));
    let tools = of(debugger::TABLE.rows).chain(of(profiler::TABLE.rows)).chain(of(ctxsw::TABLE.rows));
    let scheduling = of(sched::TABLE.rows).chain(of(nvsched::TABLE.rows)).chain(of(ctrl_fifo::TABLE.rows));
    let fences = of(channel::SYNC_FILE_ROWS).chain(of(channel::HOST1X_ROWS));
    nodes.chain(tools).chain(scheduling).chain(fences).chain(nvmap::ioctls()).collect()
}
