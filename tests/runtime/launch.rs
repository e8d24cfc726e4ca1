//! Launch checks, the parameter bank and the QMD, compared with positions that are written down here by hand.

use std::path::Path;
use tegrarm::runtime::launch::params::{self, Windows};
use tegrarm::runtime::launch::qmd::{self, LaunchMemory, Release};
use tegrarm::runtime::launch::{Dim3, Launch, LaunchError, Limits};
use tegrarm_images::cubin::{Cubin, Kernel};

fn kernel(file: &str, name: &str) -> Kernel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cubin").join(file);
    Cubin::parse(&std::fs::read(path).unwrap(), 87).unwrap().kernel(name).unwrap().clone()
}

const MODULE: u64 = 0xfd_1234_5000;
const MEMORY: LaunchMemory =
    LaunchMemory { module: MODULE, bank: 0xfe_8765_4100, bank_size: 0x180, local_memory: 0x400 };
const WINDOWS: Windows = Windows { shared: 0xfe_0000_0000, local: 0xfd_0000_0000, sm_count: 16 };

fn launch(grid: (u32, u32, u32), block: (u32, u32, u32), dynamic_shared: u32) -> Launch {
    Launch { grid: Dim3::new(grid.0, grid.1, grid.2), block: Dim3::new(block.0, block.1, block.2), dynamic_shared }
}

/// Bits `msb..=lsb` of the descriptor's 2048 bits.
fn bits(q: &[u32; 64], msb: usize, lsb: usize) -> u64 {
    (lsb..=msb).rev().fold(0, |v, b| v << 1 | u64::from(q[b / 32] >> (b % 32) & 1))
}

/// A file with `.nv.local.NAME`, which has its shared memory under another name.
#[test]
fn scratch_memory_starts_at_address_0_and_the_stack_ends_at_the_top() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cubin/shared.nvrtc.cubin");
    let mut file = std::fs::read(path).unwrap();
    let shared = Cubin::parse(&file, 87).unwrap();
    let k = shared.kernels().iter().find(|k| k.shared > 0).unwrap();
    let (old, new) = (format!(".nv.shared.{}\0", k.name), format!(".nv.local.{}\0", k.name));
    let at = file.windows(old.len()).position(|w| w == old.as_bytes()).unwrap();
    file[at..at + new.len()].copy_from_slice(new.as_bytes());
    let local = Cubin::parse(&file, 87).unwrap();
    let moved = local.kernel(&k.name).unwrap();
    assert_eq!((moved.scratch, moved.shared), (k.shared, 0));
    assert_eq!(local.memory_size(), shared.memory_size(), "scratch memory is no part of the module");
    let low = k.shared.next_multiple_of(16);
    assert_eq!(moved.local_memory(), (k.local_memory() + low).next_multiple_of(32));
    let memory = LaunchMemory { local_memory: moved.local_memory().next_power_of_two(), ..MEMORY };
    let q = qmd::build(moved, &launch((1, 1, 1), (32, 1, 1), 0), &memory, &Limits::ORIN, 0x87).unwrap();
    assert_eq!(bits(&q, 759, 736), u64::from(low));
    assert_eq!(bits(&q, 1623, 1600), u64::from(memory.local_memory - low));
}

#[test]
fn qmd_fields_are_where_the_hardware_reads_them() {
    let k = kernel("constants.nvrtc.cubin", "sines");
    let l = launch((70_000, 300, 2), (64, 4, 2), 0);
    let q = qmd::build(&k, &l, &MEMORY, &Limits::ORIN, 0x87).unwrap();
    let code = MODULE + k.code;
    let want = [
        (583, 580, 3),
        (579, 576, 0),
        (133, 128, 0x3f),
        (415, 384, 70_000),
        (431, 416, 300),
        (463, 448, 2),
        (607, 592, 64),
        (623, 608, 4),
        (639, 624, 2),
        (656, 648, u64::from(k.registers)),
        (561, 544, 0x400),
        (567, 562, 3),
        (574, 569, 42),
        (767, 763, 1),
        (1623, 1600, 0x400),
        (1567, 1536, code & 0xffff_ffff),
        (1584, 1568, code >> 32),
        (287, 256, code >> 8 & 0xffff_ffff),
        (1640, 1632, code >> 40),
        (1649, 1641, k.code_size >> 8),
        (1663, 1656, 0x87),
        (369, 368, 1),
        (1055, 1024, 0x8765_4100),
        (1072, 1056, 0xfe),
        (1087, 1075, 0x18),
        (823, 823, 0),
    ];
    for (msb, lsb, value) in want {
        assert_eq!(bits(&q, msb, lsb), value, "bits {msb}:{lsb}");
    }
    // Banks 0, 2, 3 and 4 are valid, and each lies where the module has it.
    assert_eq!(bits(&q, 647, 640), 0b1_1101);
    for b in &k.banks {
        let at = 1024 + 64 * usize::from(b.number);
        assert_eq!(bits(&q, at + 48, at), MODULE + b.offset);
        assert_eq!(bits(&q, at + 63, at + 51), u64::from(b.size).div_ceil(16));
    }
}

#[test]
fn a_release_is_one_64_bit_store() {
    let k = kernel("vecadd.nvrtc.cubin", "vecadd");
    let mut q = qmd::build(&k, &launch((1, 1, 1), (32, 1, 1), 0), &MEMORY, &Limits::ORIN, 0x87).unwrap();
    qmd::release(&mut q, Release { address: 0xab_0000_1008, value: 0x1_2345_6789 }).unwrap();
    let want = [(807, 768, 0xab_0000_1008), (819, 819, 1), (823, 823, 1), (829, 829, 1), (831, 830, 2)];
    for (msb, lsb, value) in want {
        assert_eq!(bits(&q, msb, lsb), value, "bits {msb}:{lsb}");
    }
    assert_eq!(bits(&q, 895, 832), 0x1_2345_6789);
    assert!(qmd::release(&mut q, Release { address: 4, value: 0 }).is_err());
    assert!(qmd::release(&mut q, Release { address: 1 << 40, value: 0 }).is_err());
}

#[test]
fn the_parameter_bank_tells_the_launch() {
    let k = kernel("constants.nvrtc.cubin", "generic");
    let arguments = params::pack(&k, &[&0x1111_2222_3333_4444u64.to_le_bytes(), &7u64.to_le_bytes()]).unwrap();
    let l = launch((9, 8, 7), (6, 5, 4), 100);
    let bank = params::bank(&k, &params::Home { module: MODULE, library: 0 }, &l, &WINDOWS, &arguments).unwrap();
    let word = |at: usize| u32::from_le_bytes(bank[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(bank[at..at + 8].try_into().unwrap());
    assert_eq!([0, 4, 8, 12, 16, 20].map(word), [6, 5, 4, 9, 8, 7]);
    assert_eq!((long(0x18), long(0x20)), (WINDOWS.shared, WINDOWS.local));
    assert_eq!((word(0x28), word(0x2c), word(0x10c), word(0x114)), (0xff_fdc0, 100, 16, 0x400));
    let constants = k.banks.iter().find(|b| b.number == 3).unwrap();
    assert_eq!(long(0x50), MODULE + constants.offset);
    assert_eq!((long(0x118), long(0x160), long(0x168)), (0, 0x1111_2222_3333_4444, 7));
    assert_eq!(bank.len(), 0x170);
}

#[test]
fn arguments_go_to_their_places() {
    let k = kernel("vecadd.nvrtc.cubin", "scale");
    let scale = [0xcc; 24];
    let all: [&[u8]; 5] = [&[1], &[2; 8], &scale, &[3, 4], &[5; 8]];
    let block = params::pack(&k, &all).unwrap();
    assert_eq!((block[0], &block[8..16], &block[16..40], &block[40..42]), (1, &[2; 8][..], &scale[..], &[3, 4][..]));
    assert_eq!(&block[48..56], &[5; 8]);
    assert_eq!(params::pack(&k, &all[..4]), Err(LaunchError::ArgumentCount { found: 4, wanted: 5 }));
    let wrong: [&[u8]; 5] = [&[1], &[2; 4], &scale, &[3, 4], &[5; 8]];
    assert_eq!(params::pack(&k, &wrong), Err(LaunchError::ArgumentSize { index: 1, found: 4, wanted: 8 }));
}

#[test]
fn limits_are_checked_and_named() {
    let k = kernel("shared.nvrtc.cubin", "reduce");
    let check = |l: Launch| l.check(&k, &Limits::ORIN, 0x400);
    assert_eq!(check(launch((0x7fff_ffff, 1, 1), (1024, 1, 1), 0)), Ok(()));
    assert!(matches!(check(launch((0, 1, 1), (1, 1, 1), 0)), Err(LaunchError::Size { what: "grid", .. })));
    assert!(matches!(check(launch((1, 0x10000, 1), (1, 1, 1), 0)), Err(LaunchError::Size { what: "grid", .. })));
    assert!(matches!(check(launch((1, 1, 1), (1, 1, 65), 0)), Err(LaunchError::Size { what: "block", .. })));
    assert!(matches!(check(launch((1, 1, 1), (32, 33, 1), 0)), Err(LaunchError::Threads { threads: 1056, .. })));
    // A block has 1 KiB of static memory and 1 KiB of reserve, so 162 of 164 KiB remain.
    assert_eq!(check(launch((1, 1, 1), (1, 1, 1), 162 << 10)), Ok(()));
    let text = check(launch((1, 1, 1), (1, 1, 1), (162 << 10) + 1)).unwrap_err().to_string();
    assert!(text.contains("165889") && text.contains("167936"), "{text}");

    let bounded = kernel("vecadd.nvrtc.cubin", "scale");
    let text = launch((1, 1, 1), (129, 1, 1), 0).check(&bounded, &Limits::ORIN, 0x400).unwrap_err().to_string();
    assert!(text.contains("129") && text.contains("128") && text.contains("bounds"), "{text}");

    let mut hungry = k.clone();
    hungry.registers = 255;
    assert!(launch((1, 1, 1), (256, 1, 1), 0).check(&hungry, &Limits::ORIN, 0x400).is_ok());
    let text = launch((1, 1, 1), (512, 1, 1), 0).check(&hungry, &Limits::ORIN, 0x400).unwrap_err().to_string();
    assert!(text.contains("255") && text.contains("131072"), "{text}");

    let deep = kernel("calls.nvrtc.cubin", "array");
    let lacking = launch((1, 1, 1), (1, 1, 1), 0).check(&deep, &Limits::ORIN, 0x240);
    assert_eq!(lacking, Err(LaunchError::LocalMemory { needed: 0x340, available: 0x240 }));

    let unaligned = LaunchMemory { module: MODULE + 64, ..MEMORY };
    assert!(qmd::build(&k, &launch((1, 1, 1), (1, 1, 1), 0), &unaligned, &Limits::ORIN, 0x87).is_err());
    let odd = LaunchMemory { local_memory: 0x408, ..MEMORY };
    assert!(qmd::build(&k, &launch((1, 1, 1), (1, 1, 1), 0), &odd, &Limits::ORIN, 0x87).is_err());
}
