//! A running channel, and the memory in which its work can be seen.

use super::*;
use std::time::{Duration, Instant};
use tegrarm_kmd::DeviceMem;

pub const GP_GET: usize = 0x88;
pub const GP_PUT: usize = 0x8c;
pub const DOORBELL: usize = 0x90;

/// A channel on the runlist, the CPU's view of its memory, and a page for pushbuffers and semaphores.
pub struct Running {
    pub rig: Rig,
    pub _ring: Buffer,
    pub _userd: Buffer,
    pub ring: DeviceMem,
    pub userd: DeviceMem,
    pub page: DeviceMem,
    pub page_va: u64,
    pub token: u32,
    pub put: u32,
}

pub fn view(file: &File, len: usize) -> DeviceMem {
    DeviceMem::new(file.mmap(Placement::Anywhere, len, Prot::ReadWrite, 0).unwrap())
}

impl Running {
    pub fn new(board: &Board) -> Running {
        let rig = board.rig();
        let (ring, userd, token) = board.setup(&rig.channel);
        let page = board.buffer(4096);
        let page_va = map(&rig.space, &page).unwrap();
        Running {
            ring: view(&ring.fd, 8192),
            userd: view(&userd.fd, 4096),
            page: view(&page.fd, 4096),
            page_va,
            token,
            put: 0,
            rig,
            _ring: ring,
            _userd: userd,
        }
    }

    /// Submits one host semaphore operation and rings the doorbell.
    pub fn semaphore(&mut self, doorbell: &DeviceMem, va: u64, payload: u32, execute: u32) {
        let at = 256 + self.put as usize * 32;
        let words = [0x2005_0017, va as u32, (va >> 32) as u32, payload, 0, execute];
        for (i, word) in words.into_iter().enumerate() {
            self.page.write_u32(at + 4 * i, word);
        }
        self.ring.write_u64(self.put as usize * 8, (self.page_va + at as u64) | 6 << 42 | 1 << 41);
        self.put += 1;
        DeviceMem::barrier();
        self.userd.write_u32(GP_PUT, self.put);
        DeviceMem::barrier();
        doorbell.write_u32(DOORBELL, self.token);
    }
}

/// Waits until the GPU has done something. The time limit is longer than any healthy machine needs.
pub fn until(what: &str, met: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !met() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        std::thread::yield_now();
    }
}
