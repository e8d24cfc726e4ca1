//! Accesses of several kinds and sizes that two grids make to the same bytes at once, each grid on a host thread of its own. PTX
//! promises nothing for accesses of different sizes, but on a GPU the aligned bytes of one lane are one access whatever else there is.

use super::runs;
use crate::kernel;
use crate::support::{Arg, Buffer, Gpu, Kernel};
use sm87::Launch;
use std::sync::Arc;
use tegra_mm::{Backing, Extent};

/// How the kernel stores and loads sixteen bytes, and the bytes of each access.
const STORES: [(&str, u32); 12] = [
    ("st.global.v4.u32", 16),
    ("st.global.v2.u64", 16),
    ("st.v4.u32", 16),
    ("st.relaxed.gpu.b128", 16),
    ("st.global.u64", 8),
    ("st.v2.u32", 8),
    ("atom.global.exch.b64", 8),
    ("atom.cas.b64", 8),
    ("st.global.u32", 4),
    ("atom.exch.b32", 4),
    ("st.global.u16", 2),
    ("st.u8", 1),
];
const LOADS: [(&str, u32); 13] = [
    ("ld.global.v4.u32", 16),
    ("ld.v4.u32", 16),
    ("ld.global.v2.u64", 16),
    ("ld.relaxed.gpu.b128", 16),
    ("cp.async of 16", 16),
    ("cp.async of 8", 8),
    ("ld.global.u64", 8),
    ("ld.v2.u32", 8),
    ("atom.global.or.b64", 8),
    ("cp.async of 4", 4),
    ("ld.global.u32", 4),
    ("atom.or.b32", 4),
    ("ld.global.u16", 2),
];
/// The number of lanes, and how many bytes lie between what they access.
const LANES: [(u32, i32); 3] = [(32, 16), (32, 48), (1, 16)];

/// Runs two grids of one block at once.
fn together(launches: &[Launch; 2]) {
    std::thread::scope(|scope| {
        let running = launches.each_ref().map(|launch| scope.spawn(|| sm87::run(launch).unwrap()));
        for thread in running {
            thread.join().unwrap();
        }
    });
}

#[test]
fn what_is_stored_and_loaded_at_once_is_whole() {
    let kernel = kernel!("mixed");
    let rounds = (runs() / 200).clamp(20, 100_000) as i32;
    for (store, &(stores, written)) in STORES.iter().enumerate() {
        for (load, &(loads, read)) in LOADS.iter().enumerate() {
            for (lanes, stride) in LANES {
                let mut gpu = Gpu { threads: 1, ..Gpu::default() };
                let (v, wrong, met) = (gpu.alloc(48 * 32), gpu.alloc(4), gpu.alloc(4096));
                let launches = [store, load].map(|way| way as i32).into_iter().enumerate().map(|(role, way)| {
                    let numbers = [role as i32, way, written.min(read) as i32, rounds, stride].map(Arg::Int);
                    let args: Vec<_> = [&v, &wrong, &met].map(Arg::Ptr).into_iter().chain(numbers).collect();
                    gpu.launch(&kernel, [1, 1, 1], [lanes, 1, 1], &args)
                });
                together(&launches.collect::<Vec<_>>().try_into().unwrap());
                assert_eq!(wrong.read::<u32>(1), [0], "{stores} and {loads}, {lanes} lanes {stride} bytes apart");
            }
        }
    }
}

/// Adds in both grids: the way, the bytes that are added to, and what they hold after so many additions.
type Sum = (&'static str, usize, fn(u32) -> u64);

/// The bits of a small number as a half, which holds it exactly.
fn half(n: u32) -> u64 {
    let exponent = n.ilog2();
    u64::from((15 + exponent) << 10 | (n << (10 - exponent) & 0x3ff))
}

const SUMS: [Sum; 10] = [
    ("red.add.u32", 4, u64::from),
    ("atom.add.u32", 4, u64::from),
    ("red.add.u64", 8, u64::from),
    ("atom.add.u64", 8, u64::from),
    ("red.add.f16x2", 4, |n| half(n) | half(n) << 16),
    ("atom.add.f16x2", 4, |n| half(n) | half(n) << 16),
    ("red.add.f16", 2, half),
    ("atom.cas.b16", 2, u64::from),
    ("red.add.f32", 4, |n| (n as f32).to_bits().into()),
    ("red.add.f64", 8, |n| f64::from(n).to_bits()),
];

/// Two pages that follow each other, with memory of their own, and nothing behind them.
fn two_pages(gpu: &mut Gpu) -> (u64, [Arc<Backing>; 2]) {
    let pages = [gpu.alloc(4096), gpu.alloc(4096)].map(|Buffer { backing, .. }| backing);
    let va = crate::support::BASE + gpu.used;
    gpu.used += 3 * 4096;
    for (page, backing) in (va..).step_by(4096).zip(&pages) {
        gpu.table.insert(Extent {
            va: page,
            len: 4096,
            backing: Some(backing.clone()),
            writable: true,
            ..Extent::default()
        });
    }
    (va, pages)
}

/// The sums of a kernel on words that lie at `at` from the beginning of the pages on.
fn summed(kernel: &Kernel, way: i32, size: usize, rounds: i32, at: usize) -> Vec<u64> {
    let mut gpu = Gpu { threads: 1, ..Gpu::default() };
    let (va, pages) = two_pages(&mut gpu);
    let met = gpu.alloc(4096);
    let launches = [0, 1].map(|role| {
        let numbers = [role, way, size as i32, rounds].map(Arg::Int);
        let args: Vec<_> = [Arg::Address(va + at as u64), Arg::Ptr(&met)].into_iter().chain(numbers).collect();
        gpu.launch(kernel, [1, 1, 1], [32, 1, 1], &args)
    });
    together(&launches);
    let mut bytes = vec![0; 2 * 4096];
    let (first, second) = bytes.split_at_mut(4096);
    assert!(pages[0].read(0, first) && pages[1].read(0, second));
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let (inside, outside) = (at..at + 32 * size, [&bytes[..at], &bytes[at + 32 * size..]].concat());
    assert!(outside.iter().all(|&byte| byte == 0), "nothing else is changed");
    bytes[inside].chunks_exact(size).map(word).collect()
}

/// The lanes of a reduction lie in two pages, or end where the memory ends. Nothing that one of the two grids adds is lost.
#[test]
fn reductions_on_both_sides_of_the_end_of_a_page_add_up() {
    let kernel = kernel!("sums");
    // A half has eleven bits.
    let rounds = (runs() / 40).clamp(20, 1000) as i32;
    for (way, &(name, size, sum)) in SUMS.iter().enumerate() {
        for at in [4096 - 16 * size, 4096 - size, 2 * 4096 - 32 * size] {
            let wanted = vec![sum(2 * rounds as u32); 32];
            assert_eq!(
                summed(&kernel, way as i32, size, rounds, at),
                wanted,
                "{name}, {at} bytes behind the beginning"
            );
        }
    }
}
