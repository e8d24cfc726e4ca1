//! Where desktop RM and the Jetson kernel want different things: one test per conflict, named as it is numbered in the
//! list the design refers to. What happens across processes (C15) is tested from C and Python.
#![allow(unsafe_code)] // files of the client's own

mod common;

use common::door::*;
use common::*;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tegra_sim::L4t;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_0000::*;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{Arg, Errno, Kmd, Node};
use zerocopy::{FromZeros, IntoBytes};

const PAGE: u64 = 4096;
/// Where the addresses that a client may use end.
const VA_END: u64 = 0xff_0000_0000;

fn desktop() -> Desktop {
    Desktop::open(default_release())
}

#[test]
fn c01_nodes_are_made_of_real_descriptors_and_never_the_machines_own() {
    let d = desktop();
    let fds = [d.node("/dev/nvidiactl"), d.node("/dev/nvidia0"), d.node("/dev/nvidia-uvm")];
    for fd in fds {
        assert!(tegrarm_kmd::fds::file_id(fd).is_ok(), "a descriptor like any other");
        d.door.close(fd).unwrap();
    }
    for other in ["/dev/nvidia1", "/dev/nvidia-modeset", "/dev/null"] {
        let refused = d.door.open(&|| Ok(d.rm.clone()), other, true).unwrap_err();
        assert_eq!(refused.errno, Errno::ENOENT, "{other}");
    }
    let absent = || Err(tegrarm::status::RmError::new(NV_ERR_CARD_NOT_PRESENT, "no board"));
    let refused = d.door.open(&absent, "/dev/nvidiactl", true).unwrap_err();
    assert_eq!((refused.errno, refused.sentence.contains("no board")), (Errno::ENODEV, true));
    // The argument is copied: what the caller does with its memory afterwards is its own business.
    let mut p = Box::new(NVOS21_PARAMETERS::new_zeroed());
    (p.hRoot, p.hObjectParent, p.hClass) = (d.client, d.device, NV20_SUBDEVICE_0);
    d.escape(d.ctl, NV_ESC_RM_ALLOC, &mut *p).unwrap();
    let handle = p.hObjectNew;
    p.as_mut_bytes().fill(0xff);
    assert_eq!(d.free(handle), NV_OK);
}

#[test]
fn c02_the_version_is_one_whose_layouts_every_release_knows() {
    let d = desktop();
    let mut p = NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS::new_zeroed();
    assert_eq!(d.control(d.client, NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, &mut p), NV_OK);
    assert_eq!(&p.driverVersionBuffer[..10], b"570.86.16\0");
    let mut q = nv_ioctl_rm_api_version_t::new_zeroed();
    q.cmd = 0x32;
    d.escape(d.ctl, NV_ESC_CHECK_VERSION_STR, &mut q).unwrap();
    assert_eq!(q.versionString, p.driverVersionBuffer[..64], "the two say the same");
}

#[test]
fn c03_the_class_list_leads_to_classes_that_work() {
    let d = desktop();
    let mut p = NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS::new_zeroed();
    assert_eq!(d.control(d.device, NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &mut p), NV_OK);
    let mut list = vec![0u32; p.numClasses as usize];
    assert!(list.len() <= 100, "older frontends bring room for 100");
    p.classList = list.as_mut_ptr() as u64;
    assert_eq!(d.control(d.device, NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &mut p), NV_OK);
    for needed in [TURING_USERMODE_A, AMPERE_CHANNEL_GPFIFO_A, AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B] {
        assert!(list.contains(&needed), "{needed:#x}");
    }
    for newer in
        [HOPPER_USERMODE_A, BLACKWELL_CHANNEL_GPFIFO_A, ADA_COMPUTE_A, BLACKWELL_COMPUTE_A, BLACKWELL_DMA_COPY_A]
    {
        assert!(!list.contains(&newer), "{newer:#x} would be preferred");
        assert_eq!(d.try_alloc(d.subdevice, 0, newer, 0).status, NV_ERR_INVALID_CLASS);
    }
}

#[test]
fn c04_what_the_client_maps_itself_is_the_memory() {
    let d = desktop();
    let memory = d.memory(2 * PAGE);
    let views = [d.map_cpu(memory, 2 * PAGE, None), d.map_cpu(memory, 2 * PAGE, None)];
    views[0].write_u32(PAGE as usize, 0xabcd);
    assert_eq!(views[1].read_u32(PAGE as usize), 0xabcd, "after its descriptor was closed");
    let usermode = d.alloc(d.subdevice, TURING_USERMODE_A);
    let pages = [d.map_cpu(usermode, 0x10000, None), d.map_cpu(usermode, 0x10000, None)];
    let inodes = pages.each_ref().map(|p| inode_at(p.mapping().addr() as u64));
    assert_ne!(inodes[0], inodes[1], "a doorbell page takes an open of its own");
    let fd = d.gpu_fd();
    assert_eq!(d.lend(usermode, 0x1000, 0x1000, fd), NV_ERR_INVALID_BASE);
    assert_eq!(d.lend(memory, PAGE, PAGE, fd), NV_ERR_NOT_SUPPORTED, "a descriptor carries no offset");
    d.door.close(fd).unwrap();
}

#[test]
fn c05_the_clients_addresses_are_honoured_up_to_the_kernels_own() {
    let mut d = desktop();
    let mut space = NV_VASPACE_ALLOCATION_PARAMETERS::new_zeroed();
    (space.flags, space.vaBase, space.vaSize) = (0x48, 0x1000, 0x1_ffff_fb00_0000);
    d.alloc_with(d.device, FERMI_VASPACE_A, &mut space);
    assert_eq!((space.vaBase, space.vaBase + space.vaSize), (2 << 20, VA_END), "clamped and written back");
    let (memory, low) = (d.memory(PAGE), d.low_va(PAGE));
    for va in [low, 0x20_0000_0000, 0xfd_0000_0000, 0xfe_3fff_f000, VA_END - PAGE] {
        assert_eq!(d.range(va, PAGE), NV_OK, "{va:#x}");
        assert_eq!(d.map_external(memory, va, PAGE, 0), NV_OK, "{va:#x}");
    }
    assert_eq!(d.range(VA_END, PAGE), NV_ERR_OUT_OF_RANGE, "the kernel's four gigabytes");
    assert_eq!(d.range(VA_END - PAGE, 2 * PAGE), NV_ERR_OUT_OF_RANGE);
    assert_eq!(d.range(0x7fff_1234_5000, PAGE), NV_ERR_OUT_OF_RANGE, "a pointer of the host's");
    assert_eq!(d.range(low + 1, PAGE), NV_ERR_INVALID_ADDRESS);
    assert_eq!(d.range(low, 0), NV_ERR_INVALID_ADDRESS);
    assert_eq!(d.range(low, PAGE), NV_ERR_UVM_ADDRESS_IN_USE);
}

#[test]
fn c06_rings_and_userd_lie_where_the_client_sees_them() {
    for l4t in [L4t::R36, L4t::R35, L4t::R35_4] {
        let mut d = Desktop::open(l4t);
        let mut c = d.channels();
        let area = inode_at(c.area_va + AREA - PAGE);
        let pieces: Vec<u64> =
            PLACES.iter().flat_map(|(ring, userd)| [*ring, *userd]).map(|at| inode_at(c.area_va + at)).collect();
        for (i, piece) in pieces.iter().enumerate() {
            assert!(*piece != area && !pieces[..i].contains(piece), "a buffer of its own");
        }
        assert_eq!(inode_at(c.area_va + PLACES[0].0 + u64::from(ENTRIES) * 8 - PAGE), pieces[0], "all 65,536 entries");
        assert_eq!(inode_at(c.area_va + PLACES[0].1 + PAGE), area, "beside the USERD page lies the area");
        let (_push, push_va, push) = d.shared(PAGE);
        let (_semaphore, semaphore_va, semaphore) = d.shared(PAGE);
        for i in 0..2 {
            let words = release(semaphore_va, 0x100 + i as u32);
            words.iter().enumerate().for_each(|(n, word)| push.write_u32(n * 4, *word));
            c.submit(i, push_va, words.len() as u32);
            await_word(&semaphore, 0, 0x100 + i as u32);
        }
        assert_eq!(d.free(c.channels[0]), NV_OK);
        assert_eq!(inode_at(c.area_va), area, "a channel's end uncovers the area");
        assert_eq!(inode_at(c.area_va + PLACES[1].0), pieces[2], "and only its own part");
    }
}

#[test]
fn c06_an_area_that_is_mapped_nowhere_is_refused() {
    let mut d = desktop();
    let mut group = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
    (group.engineType, group.hVASpace) = (NV2080_ENGINE_TYPE_GR0, d.vaspace);
    let group = d.alloc_with(d.device, KEPLER_CHANNEL_GROUP_A, &mut group);
    let (area, va, cpu) = d.shared(AREA);
    drop(cpu);
    let mut p = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
    (p.hObjectBuffer, p.gpFifoOffset, p.gpFifoEntries) = (area, va, ENTRIES);
    (p.hUserdMemory[0], p.userdOffset[0]) = (area, PLACES[0].1);
    let before = d.kmd.census();
    let refused = d.try_alloc(group, 0, AMPERE_CHANNEL_GPFIFO_A, &raw mut p as u64);
    assert_eq!(refused.status, NV_ERR_INVALID_OFFSET);
    assert_eq!(d.kmd.census(), before, "nothing stays behind");
    // Anywhere will do: the process's map tells.
    let _elsewhere = d.map_cpu(area, AREA, None);
    assert_eq!(d.try_alloc(group, 0, AMPERE_CHANNEL_GPFIFO_A, &raw mut p as u64).status, NV_OK);
}

#[test]
fn c07_mapping_twice_is_one_mapping_in_the_hardware() {
    let kmd = board(L4t::R36);
    let kernels = Arc::new(Counting::over(kmd.clone()));
    let counted = Desktop::over(kmd, Arc::new(manager(kernels.clone())));
    let (memory, va) = (counted.memory(PAGE), 0x30_0000_0000);
    assert_eq!(counted.range(va, PAGE), NV_OK);
    let before = kernels.maps.load(Ordering::Relaxed);
    assert_eq!(counted.map_dma(memory, va, PAGE), NV_OK);
    assert_eq!(kernels.maps.load(Ordering::Relaxed), before, "the device's own space: written down only");
    assert_eq!(counted.map_external(memory, va, PAGE, 0), NV_OK);
    assert_eq!(kernels.maps.load(Ordering::Relaxed), before + 1);
}

#[test]
fn c08_memory_is_there_when_its_allocation_says_so() {
    let d = desktop();
    let mut p = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
    (p.size, p.attr, p.attr2, p.flags) = (1 << 40, 0x1000_0000, 5, 0x1_c101);
    let refused = d.try_alloc(d.device, 0, NV01_MEMORY_LOCAL_USER, &raw mut p as u64);
    assert_eq!(refused.status, NV_ERR_NO_MEMORY, "the one status that frontends answer by freeing");
    (p.size, p.alignment) = (8 * MIB, 2 * MIB);
    assert_eq!(
        d.try_alloc(d.device, 0, NV01_MEMORY_LOCAL_USER, &raw mut p as u64).status,
        NV_OK,
        "contiguity is ignored"
    );
}

#[test]
fn c09_own_pages_are_exchanged_when_fresh_and_pinned_otherwise() {
    let mut d = desktop();
    let va = d.low_va(16 * PAGE);
    let anonymous = raw_mmap(Some(va), 16 * PAGE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
    anonymous.write_u32(5 * PAGE as usize, 0xfeed);
    let before = inode_at(va);
    assert_eq!(d.own_pages(va, 16 * PAGE, 0x1001), (NV_OK, 0x1001), "the client's own handle");
    assert_ne!(inode_at(va), before, "exchanged in place");
    assert_eq!(anonymous.read_u32(5 * PAGE as usize), 0xfeed, "contents and all");
    assert_eq!(d.range(va, 16 * PAGE), NV_OK);
    assert_eq!(d.map_external(0x1001, va, 16 * PAGE, 0), NV_OK);

    let mut path = std::env::temp_dir();
    path.push(format!("tegrarm-c09-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    file.set_len(4 * PAGE).unwrap();
    let at = d.low_va(4 * PAGE);
    let backed = raw_mmap(Some(at), 4 * PAGE, libc::MAP_SHARED, file.as_raw_fd());
    backed.write_u32(0, 0xbeef);
    let inode = inode_at(at);
    assert_eq!(d.own_pages(at, 4 * PAGE, 0x1002).0, NV_OK);
    assert_eq!(inode_at(at), inode, "a file stays mapped");
    std::fs::remove_file(path).unwrap();
    let high = raw_mmap(None, 4 * PAGE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
    let high_va = high.mapping().addr() as u64;
    let inode = inode_at(high_va);
    assert_eq!(d.own_pages(high_va, 4 * PAGE, 0x1003).0, NV_OK);
    assert_eq!(inode_at(high_va), inode, "pages the GPU cannot have at their address are nobody's staging buffer");
    assert_eq!(d.range(high_va, 4 * PAGE), NV_ERR_OUT_OF_RANGE);
    assert_eq!(d.own_pages(va + 8, PAGE, 0).0, NV_ERR_NOT_SUPPORTED);
    assert_eq!(d.own_pages(va, 0, 0).0, NV_ERR_INVALID_LIMIT);
    assert_eq!(d.uvm_free(va, 16 * PAGE), NV_OK, "such objects are never freed by handle");
}

#[test]
fn c10_notifiers_cost_a_page_until_somebody_looks() {
    let mut d = desktop();
    let before = d.kmd.held(|c| c.memory);
    let notifiers = [d.notifier(), d.notifier()];
    let costs = |d: &Desktop, bytes, why| d.kmd.assert_held(|c| c.memory, before, bytes, why);
    costs(&d, 2 * PAGE, "two of them");
    let va = 0x40_0000_0000;
    for (i, notifier) in notifiers.iter().enumerate() {
        let va = va + i as u64 * 48 * MIB;
        assert_eq!(d.range(va, 48 * MIB), NV_OK);
        assert_eq!(d.map_dma(*notifier, va, 48 * MIB), NV_OK);
        assert_eq!(d.map_external(*notifier, va, 48 * MIB, 0), NV_OK);
    }
    costs(&d, 2 * PAGE, "mapped, not touched");
    let ctl = d.node("/dev/nvidiactl");
    assert_eq!(d.lend(notifiers[0], 0, 48 * MIB, ctl), NV_OK);
    let view = raw_mmap(None, 48 * MIB, libc::MAP_SHARED, ctl);
    d.door.close(ctl).unwrap();
    costs(&d, 48 * MIB + PAGE, "one of them is looked at");
    // What the GPU writes at its address shows in the view: the mapping made before was filled.
    let mut c = d.channels();
    let (_push, push_va, push) = d.shared(PAGE);
    let words = release(va + 40 * MIB, 0x77);
    words.iter().enumerate().for_each(|(n, word)| push.write_u32(n * 4, *word));
    c.submit(0, push_va, words.len() as u32);
    await_word(&view, 40 << 20, 0x77);
}

#[test]
fn c11_a_debugger_answers_from_the_kernels_records() {
    let mut d = desktop();
    let c = d.channels();
    let mut p = NV83DE_ALLOC_PARAMETERS::new_zeroed();
    (p.hAppClient, p.hClass3dObject) = (d.client, c.channels[0]);
    let debugger = d.alloc_with(d.device, GT200_DEBUGGER, &mut p);
    let mut q = NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS::new_zeroed();
    (q.hTargetChannel, q.numSMsToRead) = (c.channels[0], 100);
    assert_eq!(d.control(debugger, NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, &mut q), NV_OK);
    assert_eq!(q.mmuFault.valid, 0, "nothing has happened");
}

#[test]
fn c12_no_address_of_the_clients_is_taken_for_a_window() {
    let d = desktop();
    let memory = d.memory(PAGE);
    for va in [0xfd_0000_0000, 0xfd_3fff_f000, 0xfe_0000_0000, 0xfe_3fff_f000] {
        assert_eq!(d.range(va, PAGE), NV_OK, "{va:#x}");
        assert_eq!(d.map_external(memory, va, PAGE, 0), NV_OK, "{va:#x}");
    }
}

#[test]
fn c13_submitting_makes_no_call() {
    let kmd = board(L4t::R36);
    let counting = Arc::new(Counting::over(kmd.clone()));
    let mut d = Desktop::over(kmd, Arc::new(manager(counting.clone())));
    let mut c = d.channels();
    let (_push, push_va, push) = d.shared(PAGE);
    let (_semaphore, semaphore_va, semaphore) = d.shared(PAGE);
    let before = counting.calls.load(Ordering::Relaxed);
    for value in 1..=20 {
        let words = release(semaphore_va, value);
        words.iter().enumerate().for_each(|(n, word)| push.write_u32(n * 4, *word));
        c.submit(1, push_va, words.len() as u32);
        await_word(&semaphore, 0, value);
    }
    assert_eq!(counting.calls.load(Ordering::Relaxed), before);
}

#[test]
fn c14_memory_outlives_its_handle_until_uvm_lets_go() {
    let mut d = desktop();
    let mut c = d.channels();
    let (_push, push_va, push) = d.shared(PAGE);
    let (semaphore, semaphore_va, view) = d.shared(PAGE);
    let handles = d.kmd.held(|c| c.handles as u64);
    assert_eq!(d.free(semaphore), NV_OK);
    d.kmd.assert_held(|c| c.handles as u64, handles, 0, "UVM has a reference of its own");
    let words = release(semaphore_va, 0x14);
    words.iter().enumerate().for_each(|(n, word)| push.write_u32(n * 4, *word));
    c.submit(0, push_va, words.len() as u32);
    await_word(&view, 0, 0x14);
    assert_eq!(d.uvm_free(semaphore_va + PAGE, PAGE), NV_ERR_INVALID_ADDRESS);
    assert_eq!(d.uvm_free(semaphore_va, PAGE), NV_OK);
    assert_eq!(d.kmd.held(|c| c.handles as u64), handles.map(|h| h - 1));
    assert_eq!(d.map_external(semaphore, semaphore_va, PAGE, 0), NV_ERR_INVALID_ADDRESS, "no range any more");
}

#[test]
fn c14_buffers_are_held_by_handle_not_by_descriptor() {
    let kmd = board(L4t::R36);
    let counting = Arc::new(Counting::over(kmd.clone()));
    let d = Desktop::over(kmd.clone(), Arc::new(manager(counting.clone())));
    let base = 0x50_0000_0000;
    let files = kmd.held(|c| c.files as u64);
    for i in 0..2000 {
        let (memory, va) = (d.memory(PAGE), base + i * PAGE);
        assert_eq!(d.range(va, PAGE), NV_OK);
        assert_eq!(d.map_external(memory, va, PAGE, 0), NV_OK);
    }
    let open = counting.made.load(Ordering::Relaxed) - counting.closed.load(Ordering::Relaxed);
    assert!(open <= 20, "{open} descriptors for 2000 buffers");
    let more = kmd.held(|c| c.files as u64).zip(files).map_or(0, |(now, before)| now - before);
    assert!(more <= 20, "{more} files");
    assert!(kmd.census().is_none_or(|c| c.handles >= 2000));
}

#[test]
fn c15_a_client_of_another_process_is_told_so() {
    // Handles of clients are never reused within a process, which is how a child tells its parent's from its own; the
    // rest of this conflict needs two processes: ctests/preload.c and python/tests/test_preload.py.
    let (one, two) = (desktop(), desktop());
    assert_ne!(one.client, two.client);
    let mut p = NVOS54_PARAMETERS::new_zeroed();
    (p.hClient, p.hObject) = (two.client, two.client);
    one.escape(one.ctl, NV_ESC_RM_CONTROL, &mut p).unwrap();
    assert_eq!(p.status, NV_ERR_INVALID_CLIENT);
}

/// A kernel that counts what it is asked.
struct Counting {
    inner: Arc<Board>,
    calls: AtomicUsize,
    maps: AtomicUsize,
    made: AtomicUsize,
    closed: AtomicUsize,
}

impl Counting {
    fn over(inner: Arc<Board>) -> Counting {
        let zero = AtomicUsize::default;
        Counting { inner, calls: zero(), maps: zero(), made: zero(), closed: zero() }
    }
}

impl Kmd for Counting {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn open(&self, path: &str) -> Result<std::os::fd::OwnedFd, Errno> {
        self.inner.open(path)
    }
    fn ioctl(&self, fd: std::os::fd::BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        use tegrarm_abi::nvgpu::address_space::NVGPU_AS_IOCTL_MAP_BUFFER_EX;
        use tegrarm_abi::nvmap::NVMAP_IOC_GET_FD;
        self.calls.fetch_add(1, Ordering::Relaxed);
        let counter = match request {
            NVGPU_AS_IOCTL_MAP_BUFFER_EX => Some(&self.maps),
            NVMAP_IOC_GET_FD => Some(&self.made),
            _ => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.ioctl(fd, node, request, arg)
    }
    fn own_view(&self, fd: std::os::fd::BorrowedFd<'_>) -> Option<usize> {
        self.inner.own_view(fd)
    }
    fn close(&self, fd: std::os::fd::OwnedFd) {
        self.closed.fetch_add(1, Ordering::Relaxed);
        self.inner.close(fd);
    }
    fn read_text(&self, path: &str) -> Result<String, Errno> {
        self.inner.read_text(path)
    }
    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        self.inner.write_text(path, text)
    }
}
