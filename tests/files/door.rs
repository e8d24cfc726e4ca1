//! The device nodes: descriptors, sizes, the rules about which node takes which call, errno versus status, and every
//! UVM call.
#![allow(unsafe_code)] // duplicates and closes descriptors as programs do

use crate::common::door::*;
use crate::common::*;
use std::sync::Arc;
use tegrarm::files::uvm;
use tegrarm_abi::layout::AbiStruct;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::uvm::*;
use tegrarm_abi::rm::versions::NVOS46_PARAMETERS_V580;
use tegrarm_kmd::Errno;
use zerocopy::FromZeros;

fn desktop() -> Desktop {
    Desktop::open(default_release())
}

fn dup(fd: i32) -> i32 {
    // SAFETY: any number may be duplicated.
    let copy = unsafe { libc::dup(fd) };
    assert!(copy >= 0);
    copy
}

#[test]
fn transport_failures_are_errnos_and_rms_are_statuses() {
    let _shown = shows(&[NV_ERR_INVALID_POINTER]);
    let d = desktop();
    let mut p = NVOS00_PARAMETERS::new_zeroed();
    let size = size_of::<NVOS00_PARAMETERS>();
    assert_eq!(d.ioctl(d.ctl, request(NV_ESC_RM_FREE, size + 4), &mut [0; 64]), Err(Errno::EINVAL), "wrong size");
    assert_eq!(d.ioctl(d.ctl, request(0x99, 8), &mut [0; 64]), Err(Errno::EINVAL), "no such escape");
    assert_eq!(d.escape(d.gpu, NV_ESC_RM_FREE, &mut p), Err(Errno::EINVAL), "wrong node");
    assert_eq!(d.escape(d.ctl, NV_ESC_REGISTER_FD, &mut nv_ioctl_register_fd_t { ctl_fd: d.ctl }), Err(Errno::EINVAL));
    assert_eq!(d.escape(-1, NV_ESC_RM_FREE, &mut p), Err(Errno::EBADF));
    assert_eq!(d.escape(0, NV_ESC_RM_FREE, &mut p), Err(Errno::ENOTTY), "standard input is none of ours");
    let manager = || Ok(d.rm.clone());
    for bad in [0, 8, u64::MAX - 64] {
        let refused = d.door.ioctl(&manager, d.ctl, request(NV_ESC_RM_FREE, size), bad).unwrap_err();
        assert_eq!(refused.errno, Errno::EFAULT, "{bad:#x}");
    }
    p.hRoot = 0xdead;
    d.escape(d.ctl, NV_ESC_RM_FREE, &mut p).expect("understood");
    assert_eq!(p.status, NV_ERR_INVALID_OBJECT_HANDLE);
    let mut q = NVOS54_PARAMETERS::new_zeroed();
    (q.hClient, q.hObject, q.cmd) = (d.client, d.client, 0x13e);
    (q.params, q.paramsSize) = (16, 1032);
    d.escape(d.ctl, NV_ESC_RM_CONTROL, &mut q).expect("understood");
    assert_eq!(note(q.status), NV_ERR_INVALID_POINTER, "a pointer behind the structure is RM's to refuse");
    q.flags = 2;
    d.escape(d.ctl, NV_ESC_RM_CONTROL, &mut q).expect("understood");
    assert_eq!(q.status, NV_ERR_INVALID_CLIENT, "flags of the kernel's");
}

#[test]
fn both_forms_of_allocation_and_the_wrapper_agree() {
    let d = desktop();
    let mut long = NVOS64_PARAMETERS::new_zeroed();
    (long.hRoot, long.hObjectParent, long.hObjectNew, long.hClass) = (d.client, d.device, 0x77, NV20_SUBDEVICE_0);
    let mut xfer = nv_ioctl_xfer_t {
        cmd: NV_ESC_RM_ALLOC,
        size: size_of::<NVOS64_PARAMETERS>() as u32,
        ptr: &raw mut long as u64,
    };
    d.escape(d.ctl, NV_ESC_IOCTL_XFER_CMD, &mut xfer).expect("understood");
    assert_eq!((long.status, long.hObjectNew), (NV_OK, 0x77));
    let short = d.try_alloc(d.device, 0x77, NV20_SUBDEVICE_0, 0);
    assert_eq!(short.status, NV_ERR_INSERT_DUPLICATE_NAME);
    let mut bare = NVOS05_PARAMETERS::new_zeroed();
    (bare.hRoot, bare.hObjectParent, bare.hClass) = (d.client, d.subdevice, TURING_USERMODE_A);
    d.escape(d.ctl, NV_ESC_RM_ALLOC_OBJECT, &mut bare).expect("understood");
    assert_eq!(bare.status, NV_OK);
    assert!(bare.hObjectNew >= 0xcaf0_0001);
    for (cmd, size) in [(NV_ESC_IOCTL_XFER_CMD, 16), (NV_ESC_RM_ALLOC, 33), (NV_ESC_CARD_INFO, 1 << 20)] {
        xfer = nv_ioctl_xfer_t { cmd, size, ptr: &raw mut long as u64 };
        assert_eq!(d.escape(d.ctl, NV_ESC_IOCTL_XFER_CMD, &mut xfer), Err(Errno::EINVAL), "{cmd:#x} of {size}");
    }
    xfer = nv_ioctl_xfer_t { cmd: NV_ESC_RM_ALLOC, size: 48, ptr: 16 };
    assert_eq!(d.escape(d.ctl, NV_ESC_IOCTL_XFER_CMD, &mut xfer), Err(Errno::EFAULT));
}

#[test]
fn parameters_that_cannot_be_written_back_leave_no_object() {
    let d = desktop();
    let before = d.rm.object_count(d.client).unwrap();
    // The page can be read but not written.
    let params = raw_mmap(None, 4096, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
    let addr = params.mapping().addr();
    // SAFETY: the page belongs to this test.
    assert_eq!(unsafe { libc::mprotect(addr as *mut libc::c_void, 4096, libc::PROT_READ) }, 0);
    let p = d.try_alloc(d.device, 0, NV20_SUBDEVICE_0, addr as u64);
    assert_eq!(p.status, NV_ERR_INVALID_POINTER);
    assert_eq!(d.rm.object_count(d.client).unwrap(), before);
}

#[test]
fn the_handshake_of_other_frontends_is_answered() {
    let d = desktop();
    let mut cards = [nv_ioctl_card_info_t::new_zeroed(); 64];
    let bytes = zerocopy::IntoBytes::as_mut_bytes(cards.as_mut_slice());
    bytes.fill(0xff);
    let len = bytes.len();
    d.ioctl(d.ctl, request(NV_ESC_CARD_INFO, len), bytes).expect("understood");
    assert_eq!(cards.iter().filter(|c| c.valid != 0).count(), 1, "the rest of the array is zero");
    assert_eq!((cards[0].gpu_id, cards[0].minor_number, cards[0].pci_info.vendor_id), (0x100, 0, 0x10de));

    let mut version = nv_ioctl_rm_api_version_t::new_zeroed();
    version.cmd = 0x32;
    d.escape(d.ctl, NV_ESC_CHECK_VERSION_STR, &mut version).expect("a query");
    assert_eq!((&version.versionString[..10], version.reply), (&b"570.86.16\0"[..], 1));
    (version.cmd, version.versionString[0]) = (0, b'6');
    assert_eq!(d.escape(d.ctl, NV_ESC_CHECK_VERSION_STR, &mut version), Err(Errno::EINVAL));
    assert_eq!(version.versionString[0], b'5', "filled all the same");
    d.escape(d.ctl, NV_ESC_CHECK_VERSION_STR, &mut version).expect("now they agree");

    let mut numa = nv_ioctl_numa_info_t::new_zeroed();
    d.escape(d.gpu, NV_ESC_NUMA_INFO, &mut numa).expect("understood");
    assert_eq!((numa.nid, numa.status), (-1, 0));
    let mut open = nv_ioctl_wait_open_complete_t { rc: 5, adapterStatus: 5 };
    for fd in [d.ctl, d.gpu] {
        d.escape(fd, NV_ESC_WAIT_OPEN_COMPLETE, &mut open).expect("both nodes");
        assert_eq!((open.rc, open.adapterStatus), (0, 0));
    }
    let mut ids = [0x100u32.to_le_bytes(), [0; 4]].concat();
    assert_eq!(d.ioctl(d.ctl, request(NV_ESC_ATTACH_GPUS_TO_FD, 8), &mut ids), Err(Errno::EINVAL), "no GPU 0");
    d.ioctl(d.ctl, request(NV_ESC_ATTACH_GPUS_TO_FD, 4), &mut ids[..4]).expect("ours");
    assert_eq!(d.ioctl(d.ctl, request(NV_ESC_ATTACH_GPUS_TO_FD, 4), &mut ids[..4]), Err(Errno::EINVAL), "once");
    assert_eq!(d.escape(d.gpu, NV_ESC_REGISTER_FD, &mut nv_ioctl_register_fd_t { ctl_fd: d.ctl }), Err(Errno::EINVAL));

    let mut event = nv_ioctl_alloc_os_event_t { hClient: d.client, hDevice: 0, fd: d.gpu as u32, Status: 9 };
    d.escape(d.ctl, NV_ESC_ALLOC_OS_EVENT, &mut event).expect("understood");
    assert_eq!(event.Status, NV_OK);
    (event.hClient, event.Status) = (1, 0);
    d.escape(d.ctl, NV_ESC_ALLOC_OS_EVENT, &mut event).expect("understood");
    assert_eq!(event.Status, NV_ERR_INVALID_CLIENT);
    assert_eq!(d.escape(d.ctl, NV_ESC_RM_GET_EVENT_DATA, &mut NVOS41_PARAMETERS::new_zeroed()), Err(Errno::EINVAL));
}

#[test]
fn memory_of_a_gpu_file_without_a_control_file_is_refused() {
    let d = desktop();
    let fd = d.node("/dev/nvidia0");
    let mut p = nv_ioctl_nvos02_parameters_with_fd::new_zeroed();
    (p.params.hRoot, p.params.hClass) = (d.client, NV01_MEMORY_SYSTEM);
    d.escape(fd, NV_ESC_RM_ALLOC_MEMORY, &mut p).expect("understood");
    assert_eq!(p.params.status, NV_ERR_INVALID_CLIENT);
    d.door.close(fd).unwrap();
}

#[test]
fn a_client_ends_with_the_last_descriptor_of_its_file() {
    let d = desktop();
    let fd = d.node("/dev/nvidiactl");
    let mut p = NVOS21_PARAMETERS::new_zeroed();
    p.hClass = NV01_ROOT_CLIENT;
    d.escape(fd, NV_ESC_RM_ALLOC, &mut p).expect("understood");
    let client = p.hObjectNew;
    let unseen = dup(fd);
    d.door.close(fd).unwrap();
    assert!(d.rm.object_count(client).is_ok(), "a duplicate is open");
    let mut q = NVOS00_PARAMETERS::new_zeroed();
    (q.hRoot, q.hObjectOld) = (client, 0x55);
    d.escape(unseen, NV_ESC_RM_FREE, &mut q).expect("a duplicate is the same file");
    assert_eq!(q.status, NV_OK);
    d.door.close(unseen).unwrap();
    assert_eq!(status(d.rm.object_count(client)), NV_ERR_INVALID_CLIENT);
    assert_eq!(d.door.close(unseen).unwrap_err().errno, Errno::EBADF);
    assert!(d.rm.object_count(d.client).is_ok(), "another file's client stays");
}

#[test]
fn files_closed_unseen_are_forgotten_in_time() {
    let d = desktop();
    for _ in 0..200 {
        let fd = d.node("/dev/nvidia0");
        // SAFETY: the descriptor belongs to this test.
        assert_eq!(unsafe { libc::close(fd) }, 0);
    }
    assert!(d.door.open_files() < 130, "{}", d.door.open_files());
    assert!(d.node("/dev/nvidia0") > 2);
    d.door.shutdown();
    assert_eq!(status(d.rm.object_count(d.client)), NV_ERR_INVALID_CLIENT, "shutting down frees clients");
    d.abandon();
}

#[test]
fn an_inherited_descriptor_is_recognised() {
    let d = desktop();
    let fd = d.node("/dev/nvidiactl");
    let after_exec = tegrarm::files::Door::default();
    let mut version = nv_ioctl_rm_api_version_t::new_zeroed();
    version.cmd = 0x32;
    let request = request(NV_ESC_CHECK_VERSION_STR, size_of_val(&version));
    after_exec.ioctl(&|| Ok(d.rm.clone()), fd, request, &raw mut version as u64).expect("known by its name");
    assert_eq!(after_exec.open_files(), 1);
    d.door.close(fd).unwrap();
}

#[test]
fn a_lent_descriptor_takes_one_thing_to_map_and_stays_a_node() {
    let _shown = shows(&[NV_ERR_STATE_IN_USE]);
    let mut d = desktop();
    let memory = d.memory(8192);
    let fd = d.gpu_fd();
    assert_eq!(d.door.check_mmap(fd).unwrap_err().errno, Errno::EINVAL, "nothing to map yet");
    assert_eq!(d.lend(memory, 4096, 4096, fd), NV_ERR_NOT_SUPPORTED);
    assert_eq!(d.lend(memory, 0, 0, fd), NV_ERR_INVALID_LIMIT);
    assert_eq!(d.lend(memory, 0, 8193, fd), NV_ERR_INVALID_BASE);
    assert_eq!(d.lend(memory, 0, 8192, d.ctl), NV_ERR_INVALID_ARGUMENT, "video memory maps through a GPU's node");
    assert_eq!(d.lend(memory, 0, 8192, d.uvm), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(d.lend(memory, 0, 8192, 0), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(d.lend(memory, 0, 8192, fd), NV_OK);
    assert_eq!(d.lend(memory, 0, 8192, fd), NV_ERR_STATE_IN_USE);
    d.door.check_mmap(fd).expect("something to map");
    let mut numa = nv_ioctl_numa_info_t::new_zeroed();
    d.escape(fd, NV_ESC_NUMA_INFO, &mut numa).expect("still a node");
    let (one, two) = (raw_mmap(None, 8192, libc::MAP_SHARED, fd), d.map_cpu(memory, 8192, None));
    one.write_u32(4096, 0x1234_5678);
    assert_eq!(two.read_u32(4096), 0x1234_5678);
    d.door.close(fd).unwrap();

    let system = d.notifier();
    let ctl = d.node("/dev/nvidiactl");
    assert_eq!(d.lend(system, 0, 48 * MIB, ctl), NV_OK);
    d.door.close(ctl).unwrap();
    let va = d.low_va(4096);
    assert_eq!(d.range(va, 4096), NV_OK);
}

#[test]
fn a_mapping_without_a_descriptor_is_made_here_and_undone_by_address() {
    let d = desktop();
    let memory = d.memory(4096);
    let mut p = nv_ioctl_nvos33_parameters_with_fd::new_zeroed();
    p.fd = -1;
    (p.params.hClient, p.params.hDevice, p.params.hMemory, p.params.length) = (d.client, d.device, memory, 4096);
    d.escape(d.ctl, NV_ESC_RM_MAP_MEMORY, &mut p).expect("understood");
    assert_eq!(p.params.status, NV_OK);
    assert_ne!(inode_at(p.params.pLinearAddress), 0);
    let mut q = NVOS34_PARAMETERS::new_zeroed();
    (q.hClient, q.hDevice, q.hMemory) = (d.client, d.device, memory);
    q.pLinearAddress = p.params.pLinearAddress;
    for expected in [NV_OK, NV_ERR_OBJECT_NOT_FOUND] {
        d.escape(d.ctl, NV_ESC_RM_UNMAP_MEMORY, &mut q).expect("understood");
        assert_eq!(q.status, expected);
    }
    assert_eq!(inode_at(p.params.pLinearAddress), 0);
}

#[test]
fn both_layouts_of_a_gpu_mapping_are_understood() {
    let mut d = desktop();
    let (memory, va) = (d.memory(8192), d.low_va(8192));
    assert_eq!(d.map_dma(memory, va, 8192), NV_OK);
    let mut p = NVOS46_PARAMETERS_V580::new_zeroed();
    (p.hClient, p.hDevice, p.hDma, p.hMemory) = (d.client, d.device, d.mapper, memory);
    (p.length, p.flags, p.dmaOffset) = (8192, 1 << 15, va);
    d.escape(d.ctl, NV_ESC_RM_MAP_MEMORY_DMA, &mut p).expect("understood");
    assert_eq!((p.status, p.dmaOffset), (NV_OK, va));
    p.hDma = d.vaspace;
    d.escape(d.ctl, NV_ESC_RM_MAP_MEMORY_DMA, &mut p).expect("understood");
    assert_eq!(p.status, NV_ERR_INVALID_OBJECT_HANDLE, "a VA space is no mapper");
    let mut q = NVOS47_PARAMETERS::new_zeroed();
    (q.hClient, q.hDevice, q.hDma, q.hMemory, q.dmaOffset) = (d.client, d.device, d.mapper, memory, va);
    for expected in [NV_OK, NV_OK, NV_ERR_OBJECT_NOT_FOUND] {
        d.escape(d.ctl, NV_ESC_RM_UNMAP_MEMORY_DMA, &mut q).expect("understood");
        assert_eq!(q.status, expected);
    }
}

#[test]
fn the_older_heap_calls_use_the_same_allocator() {
    let d = desktop();
    let mut p = NVOS32_PARAMETERS::new_zeroed();
    (p.hRoot, p.hObjectParent, p.function) = (d.client, d.device, NVOS32_FUNCTION_ALLOC_SIZE);
    (p.data.AllocSize.size, p.data.AllocSize.hMemory) = (5000, 0x900);
    d.escape(d.ctl, NV_ESC_RM_VID_HEAP_CONTROL, &mut p).expect("understood");
    assert_eq!((p.status, p.data.AllocSize.hMemory, p.data.AllocSize.size), (NV_OK, 0x900, 8192));
    let view = d.map_cpu(0x900, 8192, None);
    view.write_u32(0, 1);

    let mut info = NVOS32_PARAMETERS::new_zeroed();
    (info.hRoot, info.hObjectParent, info.function) = (d.client, d.device, NVOS32_FUNCTION_INFO);
    d.escape(d.ctl, NV_ESC_RM_VID_HEAP_CONTROL, &mut info).expect("understood");
    assert_eq!(info.status, NV_OK);
    assert!(info.total > 400 * MIB && info.free <= info.total);

    let mut free = NVOS32_PARAMETERS::new_zeroed();
    (free.hRoot, free.hObjectParent, free.function) = (d.client, d.device, NVOS32_FUNCTION_FREE);
    // The handle is the second word of this member of the union.
    free.data.AllocSize.hMemory = 0x900;
    d.escape(d.ctl, NV_ESC_RM_VID_HEAP_CONTROL, &mut free).expect("understood");
    assert_eq!(free.status, NV_OK);
    assert_eq!(d.lend(0x900, 0, 8192, d.gpu), NV_ERR_OBJECT_NOT_FOUND);
    free.function = NVOS32_FUNCTION_DUMP;
    d.escape(d.ctl, NV_ESC_RM_VID_HEAP_CONTROL, &mut free).expect("understood");
    assert_eq!(free.status, NV_ERR_NOT_SUPPORTED);
}

#[test]
fn duplicates_and_context_dmas_share_memory() {
    let d = desktop();
    let memory = d.memory(4096);
    let mut p = NVOS55_PARAMETERS::new_zeroed();
    (p.hClient, p.hParent, p.hClientSrc, p.hObjectSrc) = (d.client, d.device, d.client, memory);
    d.escape(d.ctl, NV_ESC_RM_DUP_OBJECT, &mut p).expect("understood");
    assert_eq!(p.status, NV_OK);
    let mut q = NVOS39_PARAMETERS::new_zeroed();
    (q.hObjectParent, q.hClass, q.hMemory, q.limit) = (d.client, NV01_CONTEXT_DMA, memory, 4095);
    d.escape(d.ctl, NV_ESC_RM_ALLOC_CONTEXT_DMA2, &mut q).expect("understood");
    assert_eq!(q.status, NV_OK);
    let views = [memory, p.hObject, q.hObjectNew].map(|handle| d.map_cpu(handle, 4096, None));
    views[0].write_u32(8, 77);
    assert!(views.iter().all(|v| v.read_u32(8) == 77));
    assert_eq!(d.free(memory), NV_OK);
    let again = d.map_cpu(p.hObject, 4096, None);
    assert_eq!(again.read_u32(8), 77, "the duplicate keeps the memory");
    p.hObjectSrc = d.subdevice;
    d.escape(d.ctl, NV_ESC_RM_DUP_OBJECT, &mut p).expect("understood");
    assert_eq!(p.status, NV_ERR_INVALID_ARGUMENT);
}

#[test]
fn uvm_calls_need_initialize_first() {
    let d = desktop();
    let fresh = d.node("/dev/nvidia-uvm");
    let mut p = UVM_FREE_PARAMS::new_zeroed();
    d.ioctl(fresh, u64::from(UVM_FREE), zerocopy::IntoBytes::as_mut_bytes(&mut p)).expect("understood");
    assert_eq!(p.rmStatus, NV_ERR_ILLEGAL_ACTION);
    let mut mm = UVM_MM_INITIALIZE_PARAMS { uvmFd: d.uvm, rmStatus: 9 };
    d.ioctl(fresh, u64::from(UVM_MM_INITIALIZE), zerocopy::IntoBytes::as_mut_bytes(&mut mm)).expect("understood");
    assert_eq!(mm.rmStatus, NV_OK);
    mm.uvmFd = fresh;
    d.ioctl(fresh, u64::from(UVM_MM_INITIALIZE), zerocopy::IntoBytes::as_mut_bytes(&mut mm)).expect("understood");
    assert_eq!(mm.rmStatus, NV_ERR_ILLEGAL_ACTION);
    let mut init = UVM_INITIALIZE_PARAMS::new_zeroed();
    assert_eq!(d.uvm(UVM_INITIALIZE, &mut init), NV_OK, "again");
    init.flags = 1;
    assert_eq!(d.uvm(UVM_INITIALIZE, &mut init), NV_ERR_INVALID_ARGUMENT, "otherwise");
    assert_eq!(d.ioctl(d.uvm, u64::from(UVM_TOOLS_FLUSH_EVENTS), &mut [0; 64]), Err(Errno::EINVAL));
    assert_eq!(d.ioctl(d.uvm, 0x1234, &mut [0; 64]), Err(Errno::EINVAL));
    let tools = d.node("/dev/nvidia-uvm-tools");
    assert_eq!(d.ioctl(tools, u64::from(UVM_INITIALIZE), &mut [0; 64]), Err(Errno::EINVAL));
    assert_eq!(d.ioctl(d.uvm, u64::from(UVM_DEINITIALIZE), &mut []), Ok(()));
    d.door.close(tools).unwrap();
    d.door.close(fresh).unwrap();
}

#[test]
fn uvm_registration_is_checked() {
    let _shown = shows(&[NV_ERR_GPU_UUID_NOT_FOUND]);
    let d = desktop();
    assert_eq!(d.register_gpu(), NV_ERR_INVALID_DEVICE, "twice");
    assert_eq!(d.register_vaspace(), NV_ERR_INVALID_DEVICE, "twice");
    let mut p = UVM_REGISTER_GPU_PARAMS::new_zeroed();
    p.rmCtrlFd = -1;
    assert_eq!(d.uvm(UVM_REGISTER_GPU, &mut p), NV_ERR_GPU_UUID_NOT_FOUND);
    let mut peers = UVM_ENABLE_PEER_ACCESS_PARAMS::new_zeroed();
    (peers.gpuUuidA, peers.gpuUuidB) = (d.uuid, d.uuid);
    assert_eq!(d.uvm(UVM_ENABLE_PEER_ACCESS, &mut peers), NV_ERR_INVALID_DEVICE, "one GPU has no peer");
    let mut space = UVM_UNREGISTER_GPU_VASPACE_PARAMS::new_zeroed();
    space.gpuUuid = d.uuid;
    assert_eq!(d.uvm(UVM_UNREGISTER_GPU_VASPACE, &mut space), NV_OK);
    assert_eq!(d.uvm(UVM_UNREGISTER_GPU_VASPACE, &mut space), NV_ERR_INVALID_DEVICE);
    assert_eq!(d.register_vaspace(), NV_OK);
    let mut gpu = UVM_UNREGISTER_GPU_PARAMS::new_zeroed();
    gpu.gpu_uuid = d.uuid;
    assert_eq!(d.uvm(UVM_UNREGISTER_GPU, &mut gpu), NV_OK);
    assert_eq!(d.register_vaspace(), NV_ERR_INVALID_DEVICE, "no GPU");
    assert_eq!(d.register_gpu(), NV_OK);
}

#[test]
fn uvm_mappings_are_checked_replaced_and_split() {
    let _shown = shows(&[NV_ERR_INVALID_ADDRESS]);
    let mut d = desktop();
    let (memory, other, va) = (d.memory(16384), d.memory(4096), d.low_va(32768));
    assert_eq!(d.map_external(memory, va, 16384, 0), NV_ERR_INVALID_ADDRESS, "no range");
    assert_eq!(d.range(va, 32768), NV_OK);
    assert_eq!(d.map_external(memory, va, 65536, 0), NV_ERR_INVALID_ADDRESS, "beyond the range");
    assert_eq!(d.map_external(memory, va, 16384, 4096), NV_ERR_INVALID_BASE, "beyond the memory");
    assert_eq!(d.map_external(memory, va, 16384, 4), NV_ERR_INVALID_ADDRESS, "off page boundaries");
    assert_eq!(d.map_external(0x9999, va, 4096, 0), NV_ERR_OBJECT_NOT_FOUND);
    assert_eq!(d.map_external(d.device, va, 4096, 0), NV_ERR_INVALID_OBJECT);
    assert_eq!(d.map_external(memory, va, 16384, 0), NV_OK);
    assert_eq!(d.map_external(other, va + 4096, 4096, 0), NV_OK, "in the middle of the first");
    assert_eq!(d.map_external(memory, va + 16384, 8192, 8192), NV_OK, "a part elsewhere");
    let mut unmap = UVM_UNMAP_EXTERNAL_PARAMS::new_zeroed();
    (unmap.base, unmap.length, unmap.gpuUuid) = (va + 8192, 4096, d.uuid);
    assert_eq!(d.uvm(UVM_UNMAP_EXTERNAL, &mut unmap), NV_OK);
    assert_eq!(d.map_external(other, va + 8192, 4096, 0), NV_OK);
    unmap.gpuUuid = nv_uuid { uuid: [1; 16] };
    assert_eq!(d.uvm(UVM_UNMAP_EXTERNAL, &mut unmap), NV_ERR_INVALID_DEVICE);
    assert_eq!(d.uvm_free(va + 4096, 4096), NV_ERR_INVALID_ADDRESS, "no range starts there");
    assert_eq!(d.uvm_free(va, 0), NV_OK, "the length does not matter");
    assert_eq!(d.uvm_free(va, 32768), NV_ERR_INVALID_ADDRESS, "gone");
    let mut p = Box::new(UVM_MAP_EXTERNAL_ALLOCATION_PARAMS::new_zeroed());
    for (count, expected) in [(0, NV_ERR_INVALID_ARGUMENT), (257, NV_ERR_INVALID_ARGUMENT), (1, NV_ERR_INVALID_DEVICE)]
    {
        p.gpuAttributesCount = count;
        assert_eq!(d.uvm(UVM_MAP_EXTERNAL_ALLOCATION, &mut *p), expected, "{count} GPUs");
    }
}

#[test]
fn uvm_policy_calls_have_nothing_to_move() {
    let d = desktop();
    let mut group = UVM_CREATE_RANGE_GROUP_PARAMS::new_zeroed();
    assert_eq!(d.uvm(UVM_CREATE_RANGE_GROUP, &mut group), NV_OK);
    let mut destroy = UVM_DESTROY_RANGE_GROUP_PARAMS::new_zeroed();
    destroy.rangeGroupId = group.rangeGroupId;
    assert_eq!(d.uvm(UVM_DESTROY_RANGE_GROUP, &mut destroy), NV_OK);
    assert_eq!(d.uvm(UVM_DESTROY_RANGE_GROUP, &mut destroy), NV_ERR_OBJECT_NOT_FOUND);
    let mut access = UVM_PAGEABLE_MEM_ACCESS_PARAMS { pageableMemAccess: 7, ..FromZeros::new_zeroed() };
    assert_eq!(d.uvm(UVM_PAGEABLE_MEM_ACCESS, &mut access), NV_OK);
    assert_eq!(access.pageableMemAccess, 0);
    let mut populate = UVM_POPULATE_PAGEABLE_PARAMS::new_zeroed();
    let pages = raw_mmap(None, 8192, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
    (populate.base, populate.length) = (pages.mapping().addr() as u64, 8192);
    assert_eq!(d.uvm(UVM_POPULATE_PAGEABLE, &mut populate), NV_OK);
    (populate.base, populate.length) = (4096, 4096);
    assert_eq!(d.uvm(UVM_POPULATE_PAGEABLE, &mut populate), NV_ERR_INVALID_ADDRESS);
    let word = 0u32;
    let mut migrate = UVM_MIGRATE_PARAMS::new_zeroed();
    (migrate.flags, migrate.semaphoreAddress) = (UVM_MIGRATE_FLAG_ASYNC, &raw const word as u64);
    migrate.semaphorePayload = 5;
    assert_eq!(d.uvm(UVM_MIGRATE, &mut migrate), NV_OK);
    // SAFETY: the compiler does not see that the call wrote the word, so it is read as volatile.
    assert_eq!(unsafe { (&raw const word).read_volatile() }, 5);
}

#[test]
fn closing_everything_gives_everything_back() {
    let kmd = board(default_release());
    let before = kmd.census();
    let mut d = Desktop::over(kmd.clone(), Arc::new(manager(kmd.clone())));
    let channels = d.channels();
    // The mapping of the memory goes as well, because a mapping keeps a dmabuf alive.
    let more = d.shared(MIB);
    assert!(before.is_none() || kmd.census() != before);
    drop((channels, more));
    drop(d);
    assert_eq!(kmd.census(), before);
}

/// Sizes in these tests are those of structures. Their layouts are checked where they are declared.
#[test]
fn uvm_rows_have_their_structures_sizes() {
    assert_eq!(uvm::find(UVM_FREE).unwrap().size, UVM_FREE_PARAMS::LAYOUT.size);
    assert_eq!(uvm::find(UVM_MAP_EXTERNAL_ALLOCATION).unwrap().size, 9264);
}
