//! Buffers: filling them, parts of them, sharing them as dmabufs, making them of this process's own pages, and giving
//! their memory back.
#![cfg(feature = "sim")]
#![allow(unsafe_code)] // looks at memory through the addresses that the library returns

mod common;

use common::{DEADLINE, vecadd};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tegrarm::rm::Rm;
use tegrarm::runtime::device::Device;
use tegrarm::runtime::device::buffer::Buffer;
use tegrarm::runtime::device::module::KernelRef;
use tegrarm::runtime::fault::Cause;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::{Access, Cache};
use tegrarm::runtime::replay::Replay;
use tegrarm::status::RmResult;
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::maps;

const PAGE: usize = 4096;
const NO_POINTER: Access = Access { read_only: false, cpu: false };
const READ_ONLY: Access = Access { read_only: true, cpu: true };

/// From here to its end, the test is the only one that uses addresses. All boards choose the same ones, so that reserved addresses of one
/// board may be those of another board's memory.
fn alone() {
    static ADDRESSES: Mutex<()> = Mutex::new(());
    // A test is a thread, or all of them are one, which has the lock until its end.
    thread_local!(static HELD: MutexGuard<'static, ()> = ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner));
    HELD.with(|_| ());
}

fn open() -> (Arc<common::Board>, Arc<Rm>, Arc<Device>) {
    alone();
    let board = common::board(common::default_release());
    let rm = Arc::new(Rm::new(board.clone(), CacheMode::WriteCombine));
    let device = Device::open(&rm, 0).unwrap();
    (board, rm, device)
}

/// Launches `c = a + b` over `n` floats, in blocks of 128. Returns the fence.
fn add(kernel: &KernelRef, [a, b, c]: [&Buffer; 3], n: u32, blocks: u32) -> RmResult<u64> {
    let [pa, pb, pc] = [a, b, c].map(|b| b.address().to_le_bytes());
    let block = params::pack(kernel.kernel(), &[&pa, &pb, &pc, &n.to_le_bytes()]).unwrap();
    let launch = Launch { grid: Dim3::new(blocks, 1, 1), block: Dim3::new(128, 1, 1), dynamic_shared: 0 };
    kernel.module().device().launch(kernel, &launch, &block)
}

fn bytes(b: &Buffer) -> Vec<u8> {
    let mut found = vec![0; b.size() as usize];
    b.read(0, &mut found).unwrap();
    found
}

fn status<T>(result: RmResult<T>) -> u32 {
    result.err().map_or(NV_OK, |e| e.status)
}

/// Whole pages of this process, which are given back when dropped.
struct Pages {
    at: *mut u8,
    len: usize,
}

impl Pages {
    fn new(len: usize, prot: i32) -> Pages {
        // Out of process, the simulator reaches shared pages only (known difference OOP-D01).
        let kind = if common::board::behind_nodes() { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        let flags = kind | libc::MAP_ANONYMOUS;
        // SAFETY: this is a new mapping at an address that the kernel chooses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Pages { at: at.cast(), len }
    }

    fn floats(&self) -> Vec<f32> {
        // SAFETY: the mapping is that long and still exists, and nothing writes it now.
        (0..self.len / 4).map(|i| unsafe { self.at.cast::<f32>().add(i).read_volatile() }).collect()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `new` mapped the range, and nothing uses it any more.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

#[test]
fn fills_write_values_of_every_size_and_nothing_else() {
    let (_, _, device) = open();
    let b = device.alloc(64, Cache::Cached).unwrap();
    b.fill(0, 64, 0xee, 1).unwrap();
    b.fill(3, 5, 0x1_23, 1).unwrap();
    b.fill(10, 6, 0x5566_7788, 2).unwrap();
    let last = b.fill(20, 12, 0x1122_3344, 4).unwrap();
    device.wait(last, DEADLINE).unwrap();
    let mut wanted = vec![0xee; 64];
    wanted[3..8].fill(0x23);
    wanted[10..16].copy_from_slice(&[0x88, 0x77].repeat(3));
    wanted[20..32].copy_from_slice(&0x1122_3344u32.to_le_bytes().repeat(3));
    assert_eq!(bytes(&b), wanted);
    // The fill runs in order with the copies and launches before and after it.
    let (sum, kernel) = (device.alloc(64, Cache::Cached).unwrap(), vecadd(&device));
    b.fill(0, 64, 1.5f32.to_bits(), 4).unwrap();
    add(&kernel, [&b, &b, &sum], 16, 1).unwrap();
    b.fill(0, 64, 0, 1).unwrap();
    assert_eq!(bytes(&sum), 3f32.to_le_bytes().repeat(16));
    assert_eq!(bytes(&b), [0; 64]);
    assert_eq!(b.fill(0, 0, 0, 1).map(|fence| fence <= device.fence()), Ok(true), "nothing to do");
    for (offset, len, size, wanted) in [
        (0, 65, 1, NV_ERR_INVALID_BASE),
        (u64::MAX, 2, 1, NV_ERR_INVALID_BASE),
        (0, 4, 3, NV_ERR_INVALID_ARGUMENT),
        (0, 4, 0, NV_ERR_INVALID_ARGUMENT),
        (1, 4, 2, NV_ERR_INVALID_ARGUMENT),
        (0, 6, 4, NV_ERR_INVALID_ARGUMENT),
    ] {
        assert_eq!(status(b.fill(offset, len, 0, size)), wanted, "{offset} {len} {size}");
    }
}

#[test]
fn memory_comes_and_goes_at_reserved_addresses() {
    let (board, _, device) = open();
    let handles = || board.held(|c| c.handles as u64);
    let before = handles();
    let (whole, first, second) =
        (device.reserve(4 * 4096), device.alloc(8192, Cache::Cached), device.alloc(4096, Cache::Cached));
    let (whole, first, second) = (whole.unwrap(), first.unwrap(), second.unwrap());
    first.write(0, &[1; 8192]).unwrap();
    second.write(0, &[2; 4096]).unwrap();
    assert_eq!(status(whole.read(0, &mut [0; 1])), NV_ERR_INVALID_BASE, "nothing is mapped");
    whole.map(0, &second, 0, 4096, Access::FULL).unwrap();
    whole.map(4096, &first, 4096, 4096, READ_ONLY).unwrap();
    drop(first);
    // Bytes of several mappings lie behind each other, for the CPU and for the GPU.
    let mut seen = [0; 8192];
    whole.read(0, &mut seen).unwrap();
    assert_eq!((seen[4095], seen[4096]), (2, 1));
    let copy = device.alloc(8192, Cache::Cached).unwrap();
    device.copy(&copy, 0, &whole, 0, 8192).unwrap();
    assert_eq!(bytes(&copy), seen);
    whole.fill(0, 8, 7, 1).unwrap();
    assert_eq!(bytes(&second)[..9], [7, 7, 7, 7, 7, 7, 7, 7, 2]);
    assert_eq!(status(whole.read(4096, &mut [0; 4097])), NV_ERR_INVALID_BASE, "the last byte has no memory");
    for (offset, from, len, wanted) in [
        (0, 0, 4096, NV_ERR_STATE_IN_USE),
        (8192, 0, 8192, NV_ERR_INVALID_BASE),
        (4 * 4096, 0, 4096, NV_ERR_INVALID_BASE),
        (8192, 0, 0, NV_ERR_INVALID_ARGUMENT),
        (8192, 0, 100, NV_ERR_INVALID_OFFSET),
        (8193, 0, 4096, NV_ERR_INVALID_OFFSET),
    ] {
        assert_eq!(status(whole.map(offset, &second, from, len, Access::FULL)), wanted, "{offset} {from} {len}");
    }
    assert_eq!(status(whole.map(8192, &whole, 0, 4096, Access::FULL)), NV_ERR_NOT_SUPPORTED);
    assert_eq!(status(second.map(0, &copy, 0, 4096, Access::FULL)), NV_ERR_NOT_SUPPORTED);
    assert_eq!((status(second.unmap(0, 4096)), status(whole.export())), (NV_ERR_NOT_SUPPORTED, NV_ERR_NOT_SUPPORTED));
    assert_eq!(status(whole.unmap(8192, 4096)), NV_ERR_OBJECT_NOT_FOUND);
    // A replay that copies keeps what it copies.
    let place = whole.place(0, 16).unwrap();
    assert_eq!(status(whole.unmap(0, 8192)), NV_ERR_STATE_IN_USE);
    drop(place);
    let long = device.reserve(8192).unwrap();
    long.map(0, &copy, 0, 8192, Access::FULL).unwrap();
    assert_eq!(
        (status(long.unmap(0, 4096)), status(long.unmap(4096, 4096))),
        (NV_ERR_INVALID_LIMIT, NV_ERR_INVALID_LIMIT)
    );
    whole.unmap(0, 8192).unwrap();
    assert_eq!(status(whole.read(0, &mut [0; 1])), NV_ERR_INVALID_BASE);
    // Freeing reserved addresses unmaps what is left.
    whole.map(8192, &second, 0, 4096, Access::FULL).unwrap();
    drop((whole, long, second, copy));
    assert_eq!(handles(), before, "the memory goes with its last mapping");
    assert_eq!(
        (status(device.reserve(0)), status(device.reserve(100))),
        (NV_ERR_INVALID_ARGUMENT, NV_ERR_INVALID_ARGUMENT)
    );
    assert_eq!(status(device.reserve(1 << 50)), NV_ERR_NO_MEMORY);
}

#[test]
fn the_gpu_faults_where_nothing_is_mapped() {
    for (mapped, access) in [(false, Access::FULL), (true, READ_ONLY)] {
        let (_, _, device) = open();
        let (whole, memory) = (device.reserve(8192).unwrap(), device.alloc(4096, Cache::Cached).unwrap());
        if mapped {
            whole.map(0, &memory, 0, 4096, access).unwrap();
        }
        let kernel = vecadd(&device);
        let fence = add(&kernel, [&memory, &memory, &whole], 32, 1).unwrap();
        assert_eq!(device.wait(fence, DEADLINE).unwrap_err().status, NV_ERR_RESET_REQUIRED);
        assert_eq!(device.fault().unwrap().unwrap().cause, Cause::Mmu);
        assert_eq!(status(whole.unmap(0, 4096)), if mapped { NV_OK } else { NV_ERR_OBJECT_NOT_FOUND });
    }
}

#[test]
fn parts_keep_the_memory_and_know_their_ends() {
    let (board, _, device) = open();
    let handles = || board.held(|c| c.handles as u64);
    let before = handles();
    let whole = device.alloc(1000, Cache::Cached).unwrap();
    whole.write(0, &(0..250u8).collect::<Vec<_>>().repeat(4)).unwrap();
    let part = whole.part(100, 200).unwrap();
    let inner = part.part(50, 150).unwrap();
    assert_eq!((inner.address(), inner.start()), (whole.address() + 150, 150));
    assert_eq!(inner.pointer(), whole.pointer() + 150);
    drop((whole, part));
    assert_eq!(bytes(&inner)[..5], [150, 151, 152, 153, 154]);
    // The byte behind the end of the part is inside the memory but not inside the part.
    assert_eq!(status(inner.write(150, &[1])), NV_ERR_INVALID_BASE);
    assert_eq!(status(inner.read(1, &mut [0; 150])), NV_ERR_INVALID_BASE);
    assert_eq!(status(inner.fill(0, 151, 0, 1)), NV_ERR_INVALID_BASE);
    for (offset, len, wanted) in [
        (0, 151, NV_ERR_INVALID_BASE),
        (150, 1, NV_ERR_INVALID_BASE),
        (u64::MAX, 1, NV_ERR_INVALID_BASE),
        (0, 0, NV_ERR_INVALID_ARGUMENT),
    ] {
        assert_eq!(status(inner.part(offset, len)), wanted, "{offset} {len}");
    }
    let (left, right) = (inner.part(0, 75).unwrap(), inner.part(75, 75).unwrap());
    device.copy(&left, 0, &right, 0, 75).unwrap();
    assert_eq!(bytes(&left), bytes(&right));
    assert_eq!(status(device.copy(&left, 0, &inner, 10, 75)), NV_ERR_INVALID_ARGUMENT, "two parts may overlap");
    drop((inner, left, right));
    assert_eq!(handles(), before, "the memory goes with its last part");
}

/// A descriptor stands for the memory itself: no byte is copied, and the memory outlives the buffer from which the
/// descriptor came.
#[test]
fn dmabufs_are_the_same_memory() {
    let (board, rm, device) = open();
    let other = Device::open(&rm, 0).unwrap();
    let made = device.alloc(2 * PAGE as u64, Cache::Cached).unwrap();
    made.write(0, b"camera").unwrap();
    let fd = made.part(16, 16).unwrap().export().unwrap();
    let [full, hidden] = [Access::FULL, NO_POINTER].map(|access| other.import(fd.as_fd(), access).unwrap());
    rm.kmd().close(fd);
    assert_eq!((full.size(), &bytes(&full)[..6]), (2 * PAGE as u64, &b"camera"[..]));
    // All other buffers of the memory show what the GPU writes through one of them.
    hidden.fill(0, 4, 0x7878_7878, 4).unwrap();
    other.synchronize().unwrap();
    assert_eq!(&bytes(&made)[..6], b"xxxxra");
    made.write(PAGE as u64, b"behind").unwrap();
    drop(made);
    assert_eq!(&bytes(&full)[PAGE..PAGE + 6], b"behind");
    // The buffer can be exported again.
    let again = full.export().unwrap();
    let third = device.import(again.as_fd(), Access::FULL).unwrap();
    rm.kmd().close(again);
    drop(full);
    assert_eq!(&bytes(&third)[..6], b"xxxxra");
    assert_eq!((hidden.pointer(), status(hidden.read(0, &mut [0]))), (0, NV_ERR_NOT_SUPPORTED));
    assert_eq!(
        (status(hidden.write(0, &[0])), status(hidden.place(0, 1).map(drop))),
        (NV_ERR_NOT_SUPPORTED, NV_ERR_NOT_SUPPORTED)
    );
    drop((hidden, third, device, other, rm));
    assert_eq!(board.census().unwrap_or_default(), tegra_sim::Census::default());
}

#[test]
fn what_is_no_dmabuf_is_refused() {
    let (board, rm, device) = open();
    let before = board.census();
    let file = tempfile("not a dmabuf");
    let (reader, _writer) = std::io::pipe().unwrap();
    let empty = tempfile("");
    for fd in [OwnedFd::from(file), reader.into(), empty.into(), std::fs::File::open("/dev/null").unwrap().into()] {
        let refused = device.import(fd.as_fd(), Access::FULL).map(drop).unwrap_err();
        assert!([NV_ERR_INVALID_ARGUMENT, NV_ERR_OPERATING_SYSTEM].contains(&refused.status), "{refused}");
        assert!(refused.text.contains("descriptor"), "{refused}");
    }
    assert_eq!(board.census(), before);
    drop((device, rm));
}

fn tempfile(text: &str) -> std::fs::File {
    let fd = nix::sys::memfd::memfd_create("test", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
    let file = std::fs::File::from(fd);
    std::io::Write::write_all(&mut &file, text.as_bytes()).unwrap();
    file
}

#[test]
fn pages_of_the_process_are_used_where_they_are() {
    let (board, rm, device) = open();
    let kernel = vecadd(&device);
    let handles = board.held(|c| c.handles as u64);
    let pages = Pages::new(2 * PAGE, libc::PROT_READ | libc::PROT_WRITE);
    let ones = device.alloc(2 * PAGE as u64, Cache::Cached).unwrap();
    ones.fill(0, 2 * PAGE as u64, 1f32.to_bits(), 4).unwrap();
    let sum = device.borrow_pages(pages.at as u64, 2 * PAGE as u64, Access::FULL).unwrap();
    assert_eq!((sum.pointer(), sum.size()), (pages.at as usize, 2 * PAGE as u64));
    add(&kernel, [&ones, &ones, &sum], 2048, 16).unwrap();
    // Dropping the buffer waits for the GPU, so the pages belong to the test again.
    drop(sum);
    assert_eq!(pages.floats(), [2.0; 2048]);
    // The size need not be a whole number of pages.
    let odd = device.borrow_pages(pages.at as u64, 100, Access::FULL).unwrap();
    assert_eq!((odd.size(), status(odd.fill(0, 101, 0, 1))), (100, NV_ERR_INVALID_BASE));
    assert_eq!(status(odd.export()), NV_ERR_NOT_SUPPORTED);
    drop((odd, ones));
    let fixed = Pages::new(PAGE, libc::PROT_READ);
    let refused = |at: u64, len: u64| status(device.borrow_pages(at, len, Access::FULL));
    assert_eq!(refused(pages.at as u64 + 16, 64), NV_ERR_INVALID_ADDRESS, "not where a page starts");
    assert_eq!(refused(pages.at as u64, 0), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(refused(fixed.at as u64, 64), NV_ERR_INVALID_ADDRESS, "cannot be written");
    assert_eq!(refused(PAGE as u64, 64), NV_ERR_INVALID_ADDRESS, "nothing is there");
    assert_eq!(refused(pages.at as u64, u64::MAX), NV_ERR_INVALID_LIMIT);
    assert_eq!(board.held(|c| c.handles as u64), handles, "every handle went back");
    drop((kernel, device, rm));
}

#[test]
fn a_store_to_what_the_gpu_only_reads_is_a_fault() {
    let (_, _, device) = open();
    let kernel = vecadd(&device);
    let ones = device.alloc_for(PAGE as u64, Cache::WriteCombined, READ_ONLY).unwrap();
    let sum = device.alloc(PAGE as u64, Cache::Cached).unwrap();
    ones.write(0, &1f32.to_le_bytes().repeat(32)).unwrap();
    let fence = add(&kernel, [&ones, &ones, &sum], 32, 1).unwrap();
    device.wait(fence, DEADLINE).unwrap();
    assert_eq!(bytes(&sum)[..4], 2f32.to_le_bytes());
    let fence = add(&kernel, [&ones, &ones, &ones], 32, 1).unwrap();
    assert_eq!(status(device.wait(fence, DEADLINE)), NV_ERR_RESET_REQUIRED);
    assert_eq!(device.fault().unwrap().unwrap().cause, Cause::Mmu);
    assert_eq!(bytes_after_fault(&ones), 1f32.to_le_bytes());
}

fn bytes_after_fault(b: &Buffer) -> [u8; 4] {
    // SAFETY: the buffer exists, and its device is stopped.
    unsafe { (b.pointer() as *const [u8; 4]).read_volatile() }
}

/// If freeing waited for the GPU, this test would take an hour.
#[test]
fn freeing_returns_while_the_gpu_works_and_memory_goes_back_when_it_has_finished() {
    let (board, rm, device) = open();
    let kernel = vecadd(&device);
    let handles = || board.held(|c| c.handles as u64);
    let before = handles();
    let [a, b, c] = std::array::from_fn(|_| device.alloc(PAGE as u64, Cache::Cached).unwrap());
    let fence = add(&kernel, [&a, &b, &c], 0, 20_000).unwrap();
    drop((a, b, c));
    device.wait(fence, DEADLINE).unwrap();
    assert_eq!(handles(), before, "a wait gives it back");

    let [a, b, c] = std::array::from_fn(|_| device.alloc(PAGE as u64, Cache::Cached).unwrap());
    let (mapped, at) = (a.pointer(), a.address());
    let endless = add(&kernel, [&a, &b, &c], 0, i32::MAX as u32).unwrap();
    drop((a, b, c));
    assert_eq!(status(device.wait(endless, Some(Duration::ZERO))), NV_ERR_TIMEOUT);
    board.assert_held(|c| c.handles as u64, before, 3, "the GPU may still use them");
    assert!(maps::own().iter().any(|m| m.address.0 <= mapped as u64 && (mapped as u64) < m.address.1));
    let fresh = device.alloc(PAGE as u64, Cache::Cached).unwrap();
    assert_ne!(fresh.address(), at, "its addresses are not given out again");
    device.settle(Duration::from_millis(20));
    drop((fresh, kernel, device, rm));
    assert_eq!(board.census().unwrap_or_default(), tegra_sim::Census::default(), "closing takes the rest");
}

/// Memory that waits for the GPU is not lost: an allocation that needs it waits for it.
#[test]
fn an_allocation_gets_memory_that_was_just_freed() {
    let (_, _, device) = open();
    let kernel = vecadd(&device);
    let (free, total) = device.memory().unwrap();
    assert!(free <= total && total > 0);
    let large = total / 3 * 2;
    for _ in 0..3 {
        let b = device.alloc(large, Cache::Cached).unwrap();
        add(&kernel, [&b, &b, &b], 0, 5000).unwrap();
        drop(b);
    }
    assert_eq!(status(device.alloc(total * 2, Cache::Cached)), NV_ERR_NO_MEMORY);
}

/// A replay keeps a buffer of its copies alive. Whoever frees it has the pages nevertheless.
#[test]
fn freed_pages_are_the_callers_although_a_replay_has_them() {
    let (_, _, device) = open();
    let (kernel, pages) = (vecadd(&device), Pages::new(PAGE, libc::PROT_READ | libc::PROT_WRITE));
    let one = device.alloc(PAGE as u64, Cache::Cached).unwrap();
    one.fill(0, PAGE as u64, 1f32.to_bits(), 4).unwrap();
    let sums = device.borrow_pages(pages.at as u64, PAGE as u64, Access::FULL).unwrap();
    let mut replay = Replay::on(&device);
    replay.copy(&one, 0, &sums, 0, 4).unwrap();
    let fence = add(&kernel, [&one, &one, &sums], 128, 3000).unwrap();
    sums.free();
    assert!(device.query(fence).unwrap(), "the pages are given back while the GPU writes them");
    assert_eq!(pages.floats()[..128], [2.0; 128]);
}

/// A board that refuses large buffers although memory is free.
fn refusing(refusals: tegra_sim::Refusals) -> (Arc<common::Board>, Arc<Device>) {
    alone();
    let config = tegra_sim::SimConfig { mem_total: 512 << 20, ..tegra_sim::SimConfig::new(tegra_sim::Chip::OrinNano) };
    let sim = tegra_sim::SimKmd::new(config.refusing(refusals).unwrap());
    let board = Arc::new(common::Board::Virtual(sim));
    let rm = Arc::new(Rm::new(board.clone(), CacheMode::WriteCombine));
    (board, Device::open(&rm, 0).unwrap())
}

#[test]
fn a_large_buffer_is_made_of_pieces_when_the_kernel_refuses_it_at_once() {
    for refusals in [tegra_sim::Refusals::Fragmented, tegra_sim::Refusals::Cve202533177] {
        let (board, device) = refusing(refusals);
        let before = board.census().unwrap();
        const SIZE: u64 = 400 << 20;
        let buffer = device.alloc(SIZE, Cache::Cached).unwrap();
        assert_eq!(buffer.size(), SIZE);
        // A copy of the engine crosses the borders of pieces, for which the buffer's addresses follow each other.
        let small = device.alloc(4 << 20, Cache::Cached).unwrap();
        let pattern: Vec<u8> = (0..4 << 20).map(|i: u32| (i / 3) as u8).collect();
        small.write(0, &pattern).unwrap();
        for at in (0..SIZE - (4 << 20)).step_by(30 << 20) {
            device.wait(device.copy(&buffer, at, &small, 0, 4 << 20).unwrap(), DEADLINE).unwrap();
            let mut found = vec![0; 4 << 20];
            buffer.read(at, &mut found).unwrap();
            assert!(found == pattern, "{refusals:?} at {at:#x}");
        }
        let refused = buffer.export().unwrap_err();
        assert_eq!(refused.status, NV_ERR_NOT_SUPPORTED);
        assert!(refused.text.contains("pieces"), "{}", refused.text);
        drop((buffer, small));
        let after = board.census().unwrap();
        assert_eq!((after.memory, after.handles), (before.memory, before.handles), "{refusals:?}");
    }
}

#[test]
fn a_buffer_that_is_refused_leaves_nothing_and_the_sentence_says_what_helps() {
    let (board, device) = refusing(tegra_sim::Refusals::Cve202533177);
    let before = board.census().unwrap();
    // Memory for others than the device, of which RM's clients are: one object, at once.
    let error = tegrarm::runtime::memory::Memory::new(device.session(), 400 << 20, Cache::Cached).err().unwrap();
    assert_eq!(error.status, NV_ERR_NO_MEMORY);
    for part in ["419430400 bytes are wanted", "L4T 36.4.7", "CVE-2025-33177", "L4T 36.5", "drop_caches"] {
        assert!(error.text.contains(part), "{part}: {}", error.text);
    }
    let error = device.alloc(600 << 20, Cache::Cached).err().unwrap();
    assert!(error.text.contains("are available: free some") && !error.text.contains("CVE"), "{}", error.text);
    assert_eq!(board.census().unwrap(), before);
}

/// The room for the machine code of a module that is gone is given back before a buffer is refused.
#[test]
fn memory_that_is_kept_for_later_is_freed_first() {
    let (board, _, device) = open();
    if !board.is_fresh() {
        return;
    }
    drop(vecadd(&device));
    let free = device.memory().unwrap().0;
    let all = device.alloc(free, Cache::Cached).unwrap();
    // The kernel of r39 gives a buffer at most the free memory less a thousandth.
    let kept = device.alloc(255 * 4096, Cache::Cached).unwrap();
    assert!(device.alloc(1 << 20, Cache::Cached).is_err());
    drop((all, kept));
}
