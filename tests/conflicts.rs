//! Where RM and nvgpu disagree, and how the disagreement is resolved; each test carries the number of its conflict.
#![allow(unsafe_code)] // looks at memory through the addresses that the library returns

mod common;

use common::board::releases;
use common::*;
use std::sync::Arc;
use tegra_sim::{Chip, L4t, SimConfig, SimKmd};
use tegrarm::rm::{MapRequest, MemoryRequest, Rm};
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::ctrl_c36f::*;
use tegrarm_abi::rm::extra::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{CallKind, Faulty, Kmd};
use zerocopy::{FromZeros, IntoBytes};

const PAGE: u64 = 4096;

/// Both kernels.
const RELEASES: [L4t; 2] = [L4t::R36, L4t::R35];

/// A virtual board of this process and of one test: its kernel is looked into, it hands out the first ids, it pins
/// private memory, and writes to its devfreq files are done when they return.
fn simulated(l4t: L4t) -> Arc<SimKmd> {
    let config = SimConfig { mem_total: 512 * MIB, ..SimConfig::new(Chip::AgxOrin).on(l4t) };
    Arc::new(SimKmd::new(config))
}

fn peek(addr: u64) -> u32 {
    // SAFETY: the tests pass addresses inside mappings that they hold.
    unsafe { (addr as *const u32).read_volatile() }
}

fn poke(addr: u64, value: u32) {
    // SAFETY: as `peek`, and the mapping is writable.
    unsafe { (addr as *mut u32).write_volatile(value) }
}

/// Pages of the test's own.
struct Pages {
    at: u64,
    len: usize,
}

impl Pages {
    /// At `wanted`, which must be free, or anywhere when that is 0.
    fn new(wanted: u64, len: usize, prot: i32, flags: i32, fd: i32) -> Pages {
        let flags = if wanted == 0 { flags } else { flags | libc::MAP_FIXED_NOREPLACE };
        // SAFETY: a new mapping that replaces nothing.
        let at = unsafe { libc::mmap(wanted as *mut libc::c_void, len, prot, flags, fd, 0) };
        assert_ne!(at, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Pages { at: at as u64, len }
    }

    fn anonymous(len: usize, flags: i32) -> Pages {
        Pages::new(0, len, libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_ANONYMOUS, -1)
    }

    /// What the kernel says is mapped at the first byte.
    fn file(&self) -> String {
        let start = format!("{:x}-", self.at);
        let maps = std::fs::read_to_string("/proc/self/maps").expect("proc");
        let line = maps.lines().find(|l| l.starts_with(&start)).expect("it is mapped");
        line.splitn(6, ' ').nth(5).unwrap_or("").trim().to_owned()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: our own range.
        unsafe { libc::munmap(self.at as *mut libc::c_void, self.len) };
    }
}

fn describe(rm: &Rm, s: &Session, pages: &Pages, len: u64) -> tegrarm::status::RmResult<u32> {
    let request = MemoryRequest {
        class: NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
        flags: 0x4000_1010,
        address: pages.at,
        limit: len - 1,
    };
    rm.alloc_memory(s.client, s.device, 0, &request).map(|(handle, _)| handle)
}

#[test]
fn c6_a_ring_shows_in_views_that_are_made_later_and_goes_with_its_channel() {
    let rm = manager(board(default_release()));
    let b = Bringup::open(&rm).unwrap();
    let s = b.s;
    let (ring, userd) = (PLACES[1].0 + u64::from(ENTRIES) * 8 - 4, PLACES[1].1 + 0x10);
    let early = b.area_cpu as u64;
    poke(early + ring, 0x1111);
    poke(early + userd, 0x2222);
    let late = s.map_cpu(&rm, b.area, AREA).unwrap() as u64;
    assert_ne!(late, early);
    assert_eq!((peek(late + ring), peek(late + userd)), (0x1111, 0x2222));
    // A view of one page of it.
    let request = MapRequest { memory: b.area, offset: PLACES[1].1, length: PAGE, at: None, flags: 0 };
    let page = rm.map_memory(s.client, s.device, &request).unwrap() as u64;
    assert_eq!(peek(page + 0x10), 0x2222);
    poke(page + 0x10, 0x3333);
    assert_eq!(peek(early + userd), 0x3333);
    // The area's own pages come back when the channel goes: nobody ever wrote there.
    rm.free(s.client, b.channels[1]).unwrap();
    for addr in [early + ring, early + userd, late + ring, late + userd, page + 0x10] {
        assert_eq!(peek(addr), 0, "{addr:#x}");
    }
    s.close(&rm);
}

#[test]
fn c8_the_cpu_attribute_follows_the_first_cpu_mapping_of_an_unused_buffer() {
    for l4t in releases(&RELEASES) {
        let faulty = Arc::new(Faulty::new(board(l4t)));
        let rm = Rm::new(faulty.clone(), CacheMode::WriteCombine);
        let s = Session::open(&rm).unwrap();
        let plain = |size| {
            let mut params = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
            params.size = size;
            rm.make_with(s.client, s.device, NV01_MEMORY_LOCAL_USER, &mut params).unwrap()
        };
        let cost_of_map = |memory| {
            faulty.count(CallKind::Any);
            s.map_cpu(&rm, memory, MIB).unwrap();
            faulty.calls()
        };
        assert_eq!(cost_of_map(plain(MIB)), 5, "CREATE, ALLOC with the other attribute, FREE, GET_FD, mmap");
        assert_eq!(cost_of_map(s.memory(&rm, MIB).unwrap()), 2, "GET_FD, mmap: the client named the attribute");
        let used = plain(MIB);
        s.map_gpu(&rm, used, MIB).unwrap();
        assert_eq!(cost_of_map(used), 1, "mmap: the GPU may have written to it already");
        let twice = plain(MIB);
        cost_of_map(twice);
        assert_eq!(cost_of_map(twice), 1, "mmap: it has the attribute");
        s.close(&rm);
    }
}

#[test]
fn c9_fresh_anonymous_shared_pages_are_exchanged_in_place() {
    for l4t in releases(&RELEASES) {
        let kmd = board(l4t);
        let rm = manager(kmd.clone());
        let s = Session::open(&rm).unwrap();
        let len = 2 * MIB;
        // Where tinygrad has its first staging buffer.
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        let pages = Pages::new(0x20_0600_0000, len as usize, prot, flags, -1);
        assert_eq!(pages.file(), "/dev/zero (deleted)");
        poke(pages.at, 0xabcd);
        poke(pages.at + len - 4, 0xef01);
        let used = kmd.held(|c| c.memory);
        let memory = describe(&rm, &s, &pages, len).unwrap();
        assert!(pages.file().contains("dmabuf"), "{}", pages.file());
        assert_eq!((peek(pages.at), peek(pages.at + len - 4)), (0xabcd, 0xef01), "contents stay");
        kmd.assert_held(|c| c.memory, used, len, "the buffer");
        s.map_gpu(&rm, memory, len).unwrap();
        assert_eq!(status(s.map_cpu(&rm, memory, len)), NV_ERR_NOT_SUPPORTED, "the client has its pointer");
        s.close(&rm);
        // The range is the client's, and stays when the object goes.
        poke(pages.at, 0x55);
        assert_eq!((peek(pages.at), peek(pages.at + len - 4)), (0x55, 0xef01));
    }
}

#[test]
fn c9_other_pages_are_pinned_as_they_are() {
    let kmd = simulated(default_release());
    let rm = manager(kmd.clone());
    let s = Session::open(&rm).unwrap();
    let path = std::env::temp_dir().join(format!("tegrarm-conflicts-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file.set_len(2 * PAGE).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    let both = libc::PROT_READ | libc::PROT_WRITE;
    let backed = Pages::new(0, 2 * PAGE as usize, both, libc::MAP_SHARED, fd);
    let private = Pages::anonymous(2 * PAGE as usize, libc::MAP_PRIVATE);
    // Above every GPU address: it cannot have the address its owner uses there, so there is nothing to gain.
    let high = Pages::anonymous(2 * PAGE as usize, libc::MAP_SHARED);
    for pages in [&backed, &private, &high] {
        poke(pages.at + 8, 0x77);
        let before = pages.file();
        let memory = describe(&rm, &s, pages, 2 * PAGE).unwrap();
        assert_eq!(pages.file(), before, "left in place");
        s.map_gpu(&rm, memory, 2 * PAGE).unwrap();
        rm.free(s.client, memory).unwrap();
        assert_eq!(peek(pages.at + 8), 0x77);
    }
    let read_only = Pages::new(0, PAGE as usize, libc::PROT_READ, libc::MAP_SHARED, fd);
    assert_eq!(status(describe(&rm, &s, &read_only, PAGE)), NV_ERR_INVALID_ADDRESS);
    let misaligned = Pages { at: private.at + 1, len: 0 };
    assert_eq!(status(describe(&rm, &s, &misaligned, PAGE)), NV_ERR_NOT_SUPPORTED);
    std::mem::forget(misaligned);
    s.close(&rm);
}

#[test]
fn c10_a_notifier_costs_a_page_until_somebody_needs_all_of_it() {
    let kmd = board(default_release());
    let rm = manager(kmd.clone());
    let s = Session::open(&rm).unwrap();
    let size = 48 * MIB;
    let before = kmd.held(|c| c.memory);
    let costs = |bytes, why: &str| kmd.assert_held(|c| c.memory, before, bytes, why);
    let notifier = || {
        let mut params = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
        (params.size, params.type_) = (size, NVOS32_TYPE_NOTIFIER);
        let handle = rm.make_with(s.client, s.device, NV01_MEMORY_SYSTEM, &mut params).unwrap();
        assert_eq!(params.limit, size - 1, "it says it has what was asked for");
        handle
    };
    let mapped = notifier();
    costs(PAGE, "one page");
    s.map_gpu(&rm, mapped, size).unwrap();
    costs(PAGE, "the GPU sees one page and nothing behind it");
    let cpu = s.map_cpu(&rm, mapped, size).unwrap() as u64;
    costs(size, "all of it, and the page goes: no channel writes to it");
    for offset in [0, size / 2, size - 4] {
        assert_eq!(peek(cpu + offset), 0);
        poke(cpu + offset, 0x1234);
        assert_eq!(peek(cpu + offset), 0x1234);
    }
    rm.free(s.client, mapped).unwrap();
    costs(0, "nothing left");
    let original = notifier();
    let copy = rm.dup_object(s.client, s.device, 0, s.client, original).unwrap();
    costs(PAGE, "two handles of one content");
    rm.free(s.client, original).unwrap();
    let cpu = s.map_cpu(&rm, copy, size).unwrap() as u64;
    poke(cpu + size - 4, 1);
    costs(size, "all of it");
    s.close(&rm);
    costs(0, "nothing left");
    // A whole bring-up has one.
    let b = Bringup::open(&rm).unwrap();
    let used = kmd.held(|c| c.memory).zip(before).map_or(0, |(now, before)| now - before);
    assert!(used < 48 * MIB, "{used:#x}");
    b.s.close(&rm);
}

#[test]
fn c14_thousands_of_live_buffers_hold_no_descriptors() {
    const ROLE: &str = "TEGRARM_TEST_CONFLICTS_ROLE";
    if std::env::var_os(ROLE).is_some() {
        return hold_thousands_of_buffers();
    }
    // A process of its own: it uses up what descriptors there are for the simulator.
    let mut child = std::process::Command::new(std::env::current_exe().expect("this program"));
    child.args(["c14_thousands_of_live_buffers_hold_no_descriptors", "--exact", "--nocapture"]).env(ROLE, "1");
    let output = child.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn hold_thousands_of_buffers() {
    const BUFFERS: u64 = 20_000;
    /// The usual limit.
    const LIMIT: u64 = 1024;
    let limit = libc::rlimit { rlim_cur: LIMIT, rlim_max: LIMIT };
    // SAFETY: reads the structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
    let held = || std::fs::read_dir("/proc/self/fd").expect("proc").count();
    let rm = manager(simulated(default_release()));
    let s = Session::open(&rm).unwrap();
    let mut made = Vec::new();
    for i in 0..BUFFERS {
        let memory = s.memory(&rm, PAGE).unwrap_or_else(|e| panic!("buffer {i}: {e}"));
        s.map_gpu(&rm, memory, PAGE).unwrap_or_else(|e| panic!("buffer {i}: {e}"));
        made.push(memory);
        if i == 1000 {
            assert!(held() < 700, "{} descriptors after a thousand buffers", held());
        }
    }
    assert!(held() < 700, "{} descriptors for {BUFFERS} buffers", held());
    // Every one of them is still a buffer of its own that can be mapped.
    let views: Vec<u64> = made.iter().step_by(997).map(|m| s.map_cpu(&rm, *m, PAGE).unwrap() as u64).collect();
    views.iter().for_each(|at| poke(*at, *at as u32));
    assert!(views.iter().all(|at| peek(*at) == *at as u32));
    s.close(&rm);
    assert!(held() < 100, "{} descriptors when they are freed", held());
}

#[test]
fn channel_parameters_of_three_driver_generations_are_told_apart_by_size() {
    let rm = manager(board(default_release()));
    let b = Bringup::open(&rm).unwrap();
    let s = b.s;
    let mut plain = b.channel_params(0);
    (plain.gpFifoOffset, plain.gpFifoEntries) = (b.area_va + 2 * MIB, 1024);
    plain.userdOffset[0] = 2 * MIB + 0x8_0000;
    let mut moved = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610::new_zeroed();
    (moved.hObjectError, moved.hObjectBuffer) = (plain.hObjectError, plain.hObjectBuffer);
    (moved.gpFifoOffset, moved.gpFifoEntries) = (plain.gpFifoOffset, plain.gpFifoEntries);
    moved.hContextShare = plain.hContextShare;
    (moved.hUserdMemory[0], moved.userdOffset[0]) = (plain.hUserdMemory[0], plain.userdOffset[0]);
    let cid = std::mem::offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS, cid);
    let cid_moved = std::mem::offset_of!(NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610, cid);
    assert_ne!(cid, cid_moved);
    let variants = [
        (360, plain.as_bytes()[..360].to_vec(), cid),
        (368, plain.as_bytes().to_vec(), cid),
        (376, moved.as_bytes().to_vec(), cid_moved),
    ];
    for (size, mut bytes, cid) in variants {
        assert_eq!(bytes.len(), size);
        let prepared = rm.prepare_alloc(AMPERE_CHANNEL_GPFIFO_A, true, size as u32).unwrap();
        let channel = rm.alloc(prepared, s.client, b.group, 0, &mut bytes).unwrap();
        let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
        rm.ask(s.client, channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token).unwrap();
        let written = u32::from_le_bytes(bytes[cid..cid + 4].try_into().unwrap());
        assert_eq!(written, token.workSubmitToken & 0xffff, "{size} bytes");
        assert_ne!(written, 0);
        rm.free(s.client, channel).unwrap();
    }
    for size in [352, 364, 384] {
        let refused = rm.prepare_alloc(AMPERE_CHANNEL_GPFIFO_A, true, size);
        assert_eq!(refused.err().unwrap().status, NV_ERR_INVALID_PARAM_STRUCT, "{size} bytes");
    }
    s.close(&rm);
}

#[test]
fn channels_and_subcontexts_run_out() {
    let rm = manager(simulated(default_release()));
    let b = Bringup::open(&rm).unwrap();
    let s = b.s;
    let mut made = Vec::new();
    let refused = loop {
        let mut share = NV_CTXSHARE_ALLOCATION_PARAMETERS::new_zeroed();
        (share.hVASpace, share.flags) = (s.vaspace, NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC);
        match rm.make_with(s.client, b.group, FERMI_CONTEXT_SHARE_A, &mut share) {
            Ok(handle) => made.push(handle),
            Err(e) => break e,
        }
        assert!(made.len() < 64, "there are 64 at most");
    };
    assert_eq!(refused.status, NV_ERR_INSUFFICIENT_RESOURCES, "{refused}");
    assert!(made.len() > 8);
    for handle in made.drain(..) {
        rm.free(s.client, handle).unwrap();
    }
    let area = s.memory(&rm, 4 * MIB).unwrap();
    let va = s.map_gpu(&rm, area, 4 * MIB).unwrap();
    let group = || {
        let mut params = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
        (params.engineType, params.hVASpace) = (NV2080_ENGINE_TYPE_GR0, s.vaspace);
        rm.make_with(s.client, s.device, KEPLER_CHANNEL_GROUP_A, &mut params).unwrap()
    };
    let channel = |group, at| {
        let mut params = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
        (params.gpFifoOffset, params.gpFifoEntries) = (va + at, 64);
        (params.hUserdMemory[0], params.userdOffset[0]) = (area, at + 0x1000);
        rm.make_with(s.client, group, AMPERE_CHANNEL_GPFIFO_A, &mut params)
    };
    let mut full = group();
    let refused = loop {
        if made.len() % 100 == 99 {
            full = group(); // a group has room for 128
        }
        match channel(full, made.len() as u64 * 0x2000) {
            Ok(handle) => made.push(handle),
            Err(e) => break e,
        }
        assert!(made.len() < 512, "there are 512 at most");
    };
    assert_eq!(refused.status, NV_ERR_INSUFFICIENT_RESOURCES, "{refused}");
    assert_eq!(made.len(), 510, "all but the two of the bring-up");
    rm.free(s.client, made[0]).unwrap();
    channel(full, 0).unwrap();
    s.close(&rm);
}

#[test]
fn two_clients_have_channels_of_their_own() {
    let kmd = simulated(default_release());
    let rm = manager(kmd.clone());
    let before = kmd.kernel().census();
    let (a, b) = (Bringup::open(&rm).unwrap(), Bringup::open(&rm).unwrap());
    assert_eq!((a.tokens, b.tokens), ([511, 510], [509, 508]));
    assert_eq!(a.area_va, b.area_va, "address spaces of their own");
    assert_ne!(a.area_cpu, b.area_cpu);
    poke(b.area_cpu as u64 + 2 * MIB, 0x5a);
    assert_eq!(peek(a.area_cpu as u64 + 2 * MIB), 0);
    a.s.close(&rm);
    let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
    rm.ask(b.s.client, b.channels[1], NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token).unwrap();
    assert_eq!((token.workSubmitToken, peek(b.area_cpu as u64 + 2 * MIB)), (508, 0x5a));
    b.s.close(&rm);
    assert_eq!(kmd.kernel().census(), before);
}

#[test]
fn a_duplicate_shows_the_same_bytes_and_outlives_the_original() {
    let rm = manager(board(default_release()));
    let (a, b) = (Session::open(&rm).unwrap(), Session::open(&rm).unwrap());
    let memory = a.memory(&rm, 2 * PAGE).unwrap();
    let theirs = a.map_cpu(&rm, memory, 2 * PAGE).unwrap() as u64;
    poke(theirs + PAGE, 7);
    let copy = rm.dup_object(b.client, b.device, 0x1234, a.client, memory).unwrap();
    assert_eq!(copy, 0x1234, "the wanted handle");
    assert_eq!(status(rm.dup_object(b.client, b.device, copy, a.client, memory)), NV_ERR_INSERT_DUPLICATE_NAME);
    assert_eq!(status(rm.dup_object(b.client, b.client, 0, a.client, memory)), NV_ERR_INVALID_OBJECT_PARENT);
    let ours = b.map_cpu(&rm, copy, 2 * PAGE).unwrap() as u64;
    poke(ours, 8);
    assert_eq!((peek(ours + PAGE), peek(theirs)), (7, 8));
    a.close(&rm);
    assert_eq!((peek(ours), peek(ours + PAGE)), (8, 7));
    b.map_gpu(&rm, copy, 2 * PAGE).unwrap();
    b.close(&rm);
}

#[test]
fn perf_boost_raises_the_lowest_clock_until_it_is_cleared_or_the_library_ends() {
    for l4t in RELEASES {
        let kmd = simulated(l4t);
        let read = |name: &str| {
            let paths = kmd.kernel().text_paths();
            let path = paths.iter().find(|p| p.ends_with(name)).expect("devfreq");
            kmd.read_text(path).expect("readable").trim().to_owned()
        };
        let rm = manager(kmd.clone());
        let s = Session::open(&rm).unwrap();
        let boost = |command| {
            let mut params = NV2080_CTRL_PERF_BOOST_PARAMS { flags: command, duration: u32::MAX };
            rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_PERF_BOOST, &mut params)
        };
        let (min, max) = (read("min_freq"), read("max_freq"));
        assert_ne!(min, max);
        boost(NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX).unwrap();
        boost(NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_1LEVEL).unwrap();
        assert_eq!(read("min_freq"), max);
        boost(NV2080_CTRL_PERF_BOOST_FLAGS_CMD_CLEAR).unwrap();
        assert_eq!(read("min_freq"), min);
        assert_eq!(status(boost(3)), NV_ERR_INVALID_ARGUMENT);
        boost(NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX).unwrap();
        rm.shutdown();
        assert_eq!(read("min_freq"), min);
        // At the end of the process nothing is freed, but the clock goes back.
        let s = Session::open(&rm).unwrap();
        let mut params = NV2080_CTRL_PERF_BOOST_PARAMS { flags: 2, duration: 1 };
        rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_PERF_BOOST, &mut params).unwrap();
        assert_eq!(read("min_freq"), max);
        rm.at_exit();
        assert_eq!(read("min_freq"), min);
    }
}

/// tinygrad looks the fault's type and access up in tables of upstream's constants, which start at 0.
#[test]
fn an_mmu_fault_is_reported_with_a_type_that_frontends_know() {
    let rm = manager(simulated(default_release()));
    let b = Bringup::open(&rm).unwrap();
    let c = b.s.client;
    let mut debugger = NV83DE_ALLOC_PARAMETERS::new_zeroed();
    (debugger.hAppClient, debugger.hClass3dObject) = (c, b.engines[0]);
    let debugger = rm.make_with(c, b.s.device, GT200_DEBUGGER, &mut debugger).unwrap();
    let fault = || {
        let mut p = NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS::new_zeroed();
        rm.ask(c, debugger, NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO, &mut p).unwrap();
        p
    };
    assert_eq!(fault().count, 0);
    // Four words of commands where nothing is mapped.
    let entry = 0x12_3456_7000_u64 | 4 << 42;
    let (ring, userd) = (b.area_cpu as u64 + PLACES[0].0, b.area_cpu as u64 + PLACES[0].1);
    poke(ring, entry as u32);
    poke(ring + 4, (entry >> 32) as u32);
    poke(userd + 0x8c, 1);
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    poke(b.doorbell as u64 + 0x90, b.tokens[0]);
    let mut seen = fault();
    while seen.count == 0 {
        std::thread::yield_now();
        seen = fault();
    }
    assert_eq!(seen.count, 1);
    let first = seen.mmuFaultInfoList[0];
    assert_eq!((first.faultType, first.accessType), (0, 0));
    let mut sms = NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS::new_zeroed();
    (sms.hTargetChannel, sms.numSMsToRead) = (b.channels[0], 100);
    rm.ask(c, debugger, NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, &mut sms).unwrap();
    b.s.close(&rm);
}
