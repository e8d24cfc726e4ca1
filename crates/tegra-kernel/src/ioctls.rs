//! A list of all ioctls, for tools and tests that compare something with all of them.

use crate::dispatch::Row;
use crate::{channel, ctrl, ctrl_fifo, ctxsw, debugger, ioctl_as, ioctl_tsg, nvmap, nvsched, profiler, sched};

/// Every ioctl of every node and file, with its upstream name and its number. An ioctl that has another number on r35
/// is listed twice.
pub fn ioctls() -> Vec<(&'static str, u32)> {
    fn of<O>(rows: &'static [Row<O>]) -> impl Iterator<Item = (&'static str, u32)> {
        rows.iter().map(|row| (row.name, row.number))
    }
    let nodes = of(ctrl::TABLE.rows)
        .chain(of(ioctl_as::TABLE.rows))
        .chain(of(ioctl_tsg::TABLE.rows))
        .chain(of(channel::TABLE.rows));
    let tools = of(debugger::TABLE.rows).chain(of(profiler::TABLE.rows)).chain(of(ctxsw::TABLE.rows));
    let scheduling = of(sched::TABLE.rows).chain(of(nvsched::TABLE.rows)).chain(of(ctrl_fifo::TABLE.rows));
    let fences = of(channel::SYNC_FILE_ROWS).chain(of(channel::HOST1X_ROWS));
    nodes.chain(tools).chain(scheduling).chain(fences).chain(nvmap::ioctls()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::{Request, Table};
    use crate::release::L4t;

    /// Checks that the rows of a table agree with its limits.
    fn check<O>(table: &Table<O>) {
        for l4t in L4t::ALL {
            let known: Vec<_> = table.rows.iter().filter(|row| row.releases.contains(l4t.generation())).collect();
            for (at, row) in known.iter().enumerate() {
                let request = Request(row.number);
                assert!(known[..at].iter().all(|other| other.number != row.number), "{} twice on {l4t:?}", row.name);
                assert_eq!(request.magic(), table.magic, "{}", row.name);
                assert!(request.nr() <= table.last.of(l4t), "{} is above the last number of {l4t:?}", row.name);
                assert!(request.size() <= table.max_arg.of(l4t), "{} is too large for {l4t:?}", row.name);
            }
        }
    }

    #[test]
    fn every_row_is_one_of_its_releases_and_inside_their_limits() {
        check(&ctrl::TABLE);
        check(&ioctl_as::TABLE);
        check(&ioctl_tsg::TABLE);
        check(&channel::TABLE);
        check(&debugger::TABLE);
        check(&profiler::TABLE);
        check(&sched::TABLE);
        check(&nvsched::TABLE);
        check(&ctrl_fifo::TABLE);
        check(&ctxsw::TABLE);
    }
}
