//! Any 16-byte words are used as machine code. A grid ends, faults or uses up its budget, and it changes only its own
//! memory. The seeds are real kernels, so mutations of real kernels are tested too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use tegra_mm::{Backing, Extent, PageTable};
use sm87::{ConstantBank, Launch, Limits, disassemble, run};
use tegrarm_fuzz::{BUDGET, Input};

const CODE: u64 = 0x4_0000_0000;
const BANK: u64 = 0x5_0000_0000;
const DATA: u64 = 0x6_0000_0000;
/// The place where compilers expect the parameters.
const PARAMETERS: usize = 0x160;

fn map(table: &mut PageTable, va: u64, contents: &[u8], len: usize) -> Arc<Backing> {
    let backing = Arc::new(Backing::anonymous("fuzz", len).expect("memory"));
    assert!(backing.write(0, &contents[..contents.len().min(len)]));
    table.insert(Extent { va, len: len as u64, backing: Some(backing.clone()), writable: true, ..Extent::default() });
    backing
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let [threads, rows, ctas, shared] = input.bytes();
    let mut table = PageTable::default();
    for (word, pc) in input.0.chunks_exact(16).zip((0..).step_by(16)) {
        let word = u128::from_le_bytes(word.try_into().expect("sixteen bytes"));
        let _ = disassemble(word as u64, (word >> 64) as u64, pc);
    }
    let _code = map(&mut table, CODE, input.0, 8192);
    let mut bank = vec![0; 4096];
    for (i, at) in [DATA, DATA + 4096, DATA + 8192, 64].iter().enumerate() {
        bank[PARAMETERS + 8 * i..][..8].copy_from_slice(&at.to_le_bytes());
    }
    let _bank = map(&mut table, BANK, &bank, 4096);
    let _data = map(&mut table, DATA, &[], 16 << 10);
    let launch = Launch {
        table: Arc::new(table),
        code: CODE,
        first: [0; 3],
        grid: [1 + u32::from(ctas % 3), 1, 1],
        block: [1 + u32::from(threads % 96), 1 + u32::from(rows % 3), 1],
        registers: 255,
        shared_bytes: 256 * u32::from(shared),
        local_low: 0,
        local_high: 0x400,
        banks: std::array::from_fn(|i| (i == 0).then_some(ConstantBank { va: BANK, size: 4096 })),
        shared_window: 0xfe_0000_0000,
        local_window: 0xfd_0000_0000,
        sm_count: 16,
        disabled_sms: 0,
        sequential: false,
        veid: 1,
        begun: 0,
        // Every second input is translated at once.
        limits: Limits { budget: BUDGET, threads: 1, translated_after: if threads & 1 == 0 { u64::MAX } else { 0 }, ..Limits::default() },
    };
    let _ = run(&launch);
});
