//! A forked child does not disturb its parent's board. The program has only one test, because the test forks.
#![allow(unsafe_code)]

#[path = "kernel/support/mod.rs"]
mod support;

use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use std::os::fd::AsFd;
use support::*;

#[test]
fn rule_2_2_a_child_is_refused_and_tears_nothing_down() {
    let board = Board::new();
    let rig = board.rig();
    let memory = board.setup(&rig.channel);
    let census = board.sim.kernel().census();
    // SAFETY: the child only makes calls that take no lock and allocate nothing that a thread of the parent may hold.
    // Then it exits without running destructors.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let refused = board.kmd.open("/dev/nvmap").err() == Some(Errno::ENODEV)
                && board.kmd.ioctl(rig.channel.as_fd(), Node::Channel, 0, Arg::Value(0)) == Err(Errno::EBADF);
            board.kmd.close(rig.channel.as_fd().try_clone_to_owned().unwrap());
            drop(rig);
            drop(board);
            // SAFETY: this call ends the child at once.
            unsafe { libc::_exit(if refused { 0 } else { 1 }) }
        }
        ForkResult::Parent { child } => {
            assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
        }
    }
    assert_eq!(board.sim.kernel().census(), census);
    assert_eq!(timedout(&rig.channel), 0);
    drop(memory);
}
