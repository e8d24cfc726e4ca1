//! Conflicts C8 and C9 as frontends meet them that compile whole schedules: staging that is memory of the process,
//! entries in write-combined memory, and timelines of which each engine writes what it can.

use super::*;
use tegrarm::capi::files::rm_mmap;
use tegrarm_abi::methods::copy::*;
use tegrarm_abi::methods::host::NVC56F_SEM_ADDR_LO;
use tegrarm_kmd::DeviceMem;

const STAGING: u64 = 2 * MIB;

fn methods(subchannel: u32, address: u32, args: &[u32]) -> Vec<u32> {
    let head = 1 << 29 | (args.len() as u32) << 16 | subchannel << 13 | address >> 2;
    [&[head], args].concat()
}

fn split(va: u64) -> [u32; 2] {
    [(va >> 32) as u32, va as u32]
}

/// A copy by the copy engine.
fn copy(from: u64, to: u64, len: u32) -> Vec<u32> {
    const PITCHED: u32 = 0x180;
    let launch = NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED | PITCHED;
    [
        methods(4, NVC6B5_OFFSET_IN_UPPER, &[split(from), split(to)].concat()),
        methods(4, NVC6B5_LINE_LENGTH_IN, &[len]),
        methods(4, NVC6B5_LAUNCH_DMA, &[launch]),
    ]
    .concat()
}

/// A release by the copy engine, which writes one word.
fn release_one_word(va: u64, value: u64) -> Vec<u32> {
    const FLUSH: u32 = NVC6B5_LAUNCH_DMA_FLUSH_ENABLE_TRUE << 2;
    let launch = FLUSH | NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_ONE_WORD_SEMAPHORE << 3;
    let [high, low] = split(va);
    [methods(4, NVC6B5_SET_SEMAPHORE_A, &[high, low, value as u32]), methods(4, NVC6B5_LAUNCH_DMA, &[launch])].concat()
}

/// A release by the host, which writes 64 bits.
fn release_64_bits(va: u64, value: u64) -> Vec<u32> {
    const RELEASE_64: u32 = 1 | 1 << 24;
    methods(0, NVC56F_SEM_ADDR_LO, &[va as u32, (va >> 32) as u32, value as u32, (value >> 32) as u32, RELEASE_64])
}

/// Shared memory of the process, as a client of the file door makes it.
fn process_memory(size: u64) -> DeviceMem {
    let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: this is new memory.
    let at = unsafe { rm_mmap(std::ptr::null_mut(), size as usize, prot, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED, "{}", Errno::last());
    let start = std::ptr::NonNull::new(at.cast()).expect("not NULL");
    // SAFETY: the range was just mapped, and no other code knows it.
    DeviceMem::new(unsafe { tegrarm_kmd::Mapping::from_raw(start, size as usize) })
}

/// One pushbuffer that is written and submitted again and again.
struct Work {
    d: Desktop,
    c: Channels,
    push: (u64, DeviceMem),
    semaphore: (u64, DeviceMem),
}

impl Work {
    fn new(l4t: L4t) -> Work {
        let mut d = Desktop::open(l4t);
        let c = d.channels();
        let ((_, push_va, push), (_, semaphore_va, semaphore)) = (d.shared(PAGE), d.shared(PAGE));
        Work { d, c, push: (push_va, push), semaphore: (semaphore_va, semaphore) }
    }

    /// Runs words on one of the channels and waits for the low word of the semaphore.
    fn run(&mut self, channel: usize, words: &[u32], low_word: u32) {
        words.iter().enumerate().for_each(|(n, word)| self.push.1.write_u32(n * 4, *word));
        self.c.submit(channel, self.push.0, words.len() as u32);
        await_word(&self.semaphore.1, 0, low_word);
    }
}

/// A ring lies in write-combined memory, and clients read their own entries back.
mod c08_write_combined {
    use super::*;

    #[test]
    fn entries_are_read_back_as_they_were_written() {
        for l4t in releases(&RELEASES) {
            let mut w = Work::new(l4t);
            let (semaphore, push) = (w.semaphore.0, w.push.0);
            for value in 1..=20 {
                let words = release_64_bits(semaphore, value);
                w.run(0, &words, value as u32);
                let entry = w.c.cpu.read_u64(PLACES[0].0 as usize + (value as usize - 1) * 8);
                assert_eq!(entry, push | (words.len() as u64) << 42 | 1 << 41, "entry {value}");
                let back: Vec<u32> = (0..words.len()).map(|n| w.push.1.read_u32(n * 4)).collect();
                assert_eq!(back, words, "the words of the pushbuffer");
            }
        }
    }
}

/// Staging is memory of the process, which the GPU has at the same address.
mod c09_staging {
    use super::*;

    #[test]
    fn staging_of_the_process_is_copied_in_both_directions() {
        for l4t in releases(&RELEASES) {
            let mut w = Work::new(l4t);
            let staging = process_memory(STAGING);
            let va = staging.mapping().addr() as u64;
            assert!(va + STAGING <= 1 << 39, "{va:#x}: mmap(2) would have placed it out of the GPU's reach");
            let words = STAGING as usize / 4;
            (0..words / 2).for_each(|i| staging.write_u32(i * 4, i as u32 * 7));
            assert_eq!(w.d.own_pages(va, STAGING, 0x1001), (NV_OK, 0x1001));
            assert_eq!(w.d.range(va, STAGING), NV_OK);
            assert_eq!(w.d.map_dma(0x1001, va, STAGING), NV_OK);
            assert_eq!(w.d.map_external(0x1001, va, STAGING, 0), NV_OK);
            let (memory, there) = (w.d.memory(STAGING), 0x20_0000_0000);
            assert_eq!(w.d.range(there, STAGING), NV_OK);
            assert_eq!(w.d.map_external(memory, there, STAGING, 0), NV_OK);
            let half = STAGING as u32 / 2;
            let (to, back) = (copy(va, there, half), copy(there, va + u64::from(half), half));
            let semaphore = w.semaphore.0;
            w.run(1, &[to, release_one_word(semaphore, 1)].concat(), 1);
            w.run(1, &[back, release_one_word(semaphore, 2)].concat(), 2);
            for i in (0..words / 2).step_by(97) {
                assert_eq!(staging.read_u32(half as usize + i * 4), i as u32 * 7, "word {i}");
            }
            assert_eq!(w.d.uvm_free(va, STAGING), NV_OK);
            staging.write_u32(0, 5);
            assert_eq!(staging.read_u32(0), 5, "the memory is the process's as before");
        }
    }

    /// A frontend frees the range of its own pages, and never the object. The pages end with their last range: another
    /// object takes their addresses, and nothing is left of a thousand of them.
    #[test]
    fn an_object_of_own_pages_ends_with_its_last_range() {
        let mut d = desktop();
        let (va, other) = (d.low_va(2 * PAGE), d.low_va(PAGE));
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let handles = d.kmd.held(|c| c.handles as u64);
        for i in 0..1000 {
            let pages = raw_mmap(Some(va), 2 * PAGE, flags, -1);
            let handle = 0x1001 + i;
            assert_eq!(d.own_pages(va, 2 * PAGE, handle), (NV_OK, handle));
            assert_eq!(d.range(va, 2 * PAGE), NV_OK);
            assert_eq!(d.map_dma(handle, va, 2 * PAGE), NV_OK, "object {i} at the address of the last one");
            assert_eq!(d.map_external(handle, va, 2 * PAGE, 0), NV_OK);
            if i == 0 {
                assert_eq!(d.range(other, PAGE), NV_OK);
                assert_eq!(d.map_external(handle, other, PAGE, 0), NV_OK);
                assert_eq!(d.uvm_free(other, PAGE), NV_OK);
                assert_eq!(d.range(other, PAGE), NV_OK);
                assert_eq!(d.map_external(handle, other, PAGE, 0), NV_OK, "its other range keeps it");
                assert_eq!(d.uvm_free(other, PAGE), NV_OK);
            }
            assert_eq!(d.uvm_free(va, 2 * PAGE), NV_OK);
            drop(pages);
        }
        d.kmd.assert_held(|c| c.handles as u64, handles, 0, "every one of them ended");
        let memory = d.memory(PAGE);
        assert_eq!(d.range(va, PAGE), NV_OK);
        assert_eq!(d.map_external(memory, va, PAGE, 0), NV_OK);
        assert_eq!(d.uvm_free(va, PAGE), NV_OK);
        assert_eq!(d.range(va, PAGE), NV_OK);
        assert_eq!(d.map_external(memory, va, PAGE, 0), NV_OK, "any other object stays until it is freed");
    }

    /// A release of one word changes four bytes. A timeline of 64 bits that passes 2^32 by such a release starts again
    /// from 0, on a board as well: the release that closes a schedule has to be one of the host.
    #[test]
    fn a_release_of_one_word_wraps_at_32_bits() {
        let mut w = Work::new(default_release());
        let semaphore = w.semaphore.0;
        (0..4).for_each(|i| w.semaphore.1.write_u32(i * 4, 0x5555_5555));
        w.run(0, &release_64_bits(semaphore, 0xffff_ffff), 0xffff_ffff);
        assert_eq!(w.semaphore.1.read_u64(0), 0xffff_ffff);
        w.run(1, &release_one_word(semaphore, 1 << 32), 0);
        assert_eq!(w.semaphore.1.read_u64(0), 0, "2^32 is 0 in one word, and the word above it stays");
        w.run(0, &release_64_bits(semaphore, (1 << 32) + 1), 1);
        assert_eq!(w.semaphore.1.read_u64(0), (1 << 32) + 1);
        w.run(1, &release_one_word(semaphore, (1 << 32) + 2), 2);
        assert_eq!(w.semaphore.1.read_u64(0), (1 << 32) + 2, "the word above it stays, whatever it is");
        assert_eq!([w.semaphore.1.read_u32(8), w.semaphore.1.read_u32(12)], [0x5555_5555; 2], "nothing behind it");
    }
}
