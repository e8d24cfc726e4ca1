//! Memory, and a launch that uses it.

use super::cubin::Kernel;
use sm87::{ConstantBank, Launch, Limits};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tegra_mm::{Backing, Extent, PageTable};

/// The address of the first buffer.
const BASE: u64 = 0x10_0000_0000;
const PAGE: u64 = 4096;
/// 16 MiB of addresses that lead to shared memory. As many lead to local memory.
const SHARED_WINDOW: u64 = 0xfe_0000_0000;
const LOCAL_WINDOW: u64 = 0xfd_0000_0000;
/// The bytes at the top of each thread's stack that the ABI reserves.
const STACK_RESERVE: u32 = 0x240;
/// The shared memory that every CTA has besides its own.
const SHARED_RESERVE: u32 = 0x400;

/// GPU memory that belongs to no kernel model.
#[derive(Default)]
pub struct Machine {
    table: PageTable,
    used: u64,
}

/// A buffer in the memory.
pub struct Buffer {
    va: u64,
    size: usize,
    backing: Arc<Backing>,
}

impl Buffer {
    /// Its GPU address.
    pub fn address(&self) -> u64 {
        self.va
    }

    /// The contents of the buffer.
    pub fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.size];
        assert!(self.backing.read(0, &mut bytes), "a buffer's memory is there as long as the buffer");
        bytes
    }
}

impl Machine {
    /// Makes a buffer that contains `bytes` and has an unmapped page behind it.
    pub fn upload(&mut self, bytes: &[u8]) -> Buffer {
        let backing = Arc::new(Backing::anonymous("run_cubin", bytes.len().max(1)).expect("memory for a buffer"));
        assert!(backing.write(0, bytes), "the memory is as large as its contents");
        let (va, len) = (BASE + self.used, (bytes.len().max(1) as u64).next_multiple_of(PAGE));
        self.used += len + PAGE;
        self.table.insert(Extent { va, len, backing: Some(backing.clone()), writable: true, ..Extent::default() });
        Buffer { va, size: bytes.len(), backing }
    }

    /// Makes a launch. `parameters` is bank 0, whose header is filled in here.
    pub fn launch(
        &mut self,
        kernel: &Kernel,
        mut parameters: Vec<u8>,
        grid: [u32; 3],
        block: [u32; 3],
        dynamic_shared: u32,
    ) -> Launch {
        let mut put = |at: usize, bytes: &[u8]| parameters[at..at + bytes.len()].copy_from_slice(bytes);
        for (i, n) in block.iter().chain(&grid).enumerate() {
            put(4 * i, &n.to_le_bytes());
        }
        put(0x18, &SHARED_WINDOW.to_le_bytes());
        put(0x20, &LOCAL_WINDOW.to_le_bytes());
        put(0x28, &((1u32 << 24) - STACK_RESERVE).to_le_bytes());
        let mut banks = [None; 8];
        for (n, bytes) in kernel.banks.iter().map(|(n, bytes)| (*n, bytes)).chain([(0, &parameters)]) {
            banks[n] = Some(ConstantBank { va: self.upload(bytes).va, size: bytes.len() as u32 });
        }
        let code = self.upload(&kernel.code).va;
        Launch {
            table: Arc::new(self.table.clone()),
            code,
            grid,
            first: [0; 3],
            block,
            registers: kernel.registers,
            shared_bytes: (kernel.shared + dynamic_shared).next_multiple_of(128) + SHARED_RESERVE,
            local_low: 0,
            local_high: (kernel.stack + STACK_RESERVE).next_multiple_of(32),
            banks,
            shared_window: SHARED_WINDOW,
            local_window: LOCAL_WINDOW,
            sm_count: 16,
            disabled_sms: 0,
            sequential: false,
            veid: 0,
            begun: clock(),
            limits: Limits::default(),
        }
    }
}

/// The time in nanoseconds.
fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
