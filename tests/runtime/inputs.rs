//! Wrong inputs through the C functions give a status and a sentence, and the library continues to work. The file also
//! tests a GPU that is executed in steps, and one that cannot be executed at all.
#![cfg(feature = "sim")]
#![allow(unsafe_code)] // calls what C calls

use crate::common::{cubin, last_sentence, open_c_device, vecadd};
use std::ffi::c_void;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use tegra_sim::{Chip, SimConfig, SimKmd};
use tegrarm::capi::runtime::buffers::*;
use tegrarm::capi::runtime::copies::*;
use tegrarm::capi::runtime::device::*;
use tegrarm::capi::runtime::hostobj::*;
use tegrarm::capi::runtime::modules::*;
use tegrarm::capi::runtime::pointers::TEGRARM_IMAGE_SIZE;
use tegrarm::capi::runtime::replay::record::*;
use tegrarm::capi::runtime::replay::*;
use tegrarm::rm::Rm;
use tegrarm::runtime::device::Device;
use tegrarm::runtime::launch::params;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::runtime::memory::place::Place;
use tegrarm::runtime::memory::{Cache, Memory};
use tegrarm::runtime::replay::Replay;
use tegrarm::tegra::CacheMode;
use tegrarm_abi::rm::status::*;

/// Sizes that come from mistakes: a failed `ftell`, a lost sign, a wrong unit.
const ABSURD: [u64; 6] = [u64::MAX, u64::MAX - 4095, 1 << 63, i64::MAX as u64, 1 << 46, 1 << 41];

#[test]
fn absurd_sizes_are_statuses() {
    let device = open_c_device();
    let image = cubin("constants.nvrtc.cubin");
    let mut byte = 0u8;
    let here = (&raw mut byte).cast::<c_void>();
    let (mut buffer, mut range, mut module, mut replay) = (null_mut(), null_mut(), null_mut(), null_mut());
    // SAFETY: every pointer points to a variable, and where the size is wrong, the library may access nothing.
    unsafe {
        assert_eq!(tegrarm_buffer_alloc(device, 4096, 0, &mut buffer), NV_OK);
        assert_eq!(tegrarm_buffer_reserve(device, 4096, &mut range), NV_OK);
        assert_eq!(tegrarm_module_load(device, image.as_ptr().cast(), image.len(), &mut module), NV_OK);
        assert_eq!(tegrarm_replay_create(device, &mut replay), NV_OK);
        for size in ABSURD {
            let mut other = null_mut();
            assert_eq!(tegrarm_buffer_alloc(device, size, 0, &mut other), NV_ERR_NO_MEMORY, "{size:#x}");
            let mut part = null_mut();
            assert_eq!(tegrarm_buffer_part(buffer, 0, size, &mut part), NV_ERR_INVALID_BASE, "{size:#x}");
            let reserved = tegrarm_buffer_reserve(device, size, &mut part);
            assert!([NV_ERR_NO_MEMORY, NV_ERR_INVALID_ARGUMENT].contains(&reserved), "{size:#x}: {reserved:#x}");
            for (offset, from, len) in [(size, 0, 4096), (0, size, 4096), (0, 0, size)] {
                let mapped = tegrarm_buffer_map(range, offset, buffer, from, len, 0);
                assert!([NV_ERR_INVALID_OFFSET, NV_ERR_INVALID_BASE].contains(&mapped), "{size:#x}: {mapped:#x}");
            }
            assert_eq!(tegrarm_buffer_unmap(range, size, size), NV_ERR_INVALID_BASE, "{size:#x}");
            assert_eq!(
                tegrarm_fill(null_mut(), buffer, size, size, 0, 1, null_mut()),
                NV_ERR_INVALID_BASE,
                "{size:#x}"
            );
            let page = (here as usize & !0xfff) as *mut c_void;
            let status = tegrarm_buffer_import_pages(device, page, size, 0, &mut part);
            assert!(
                [NV_ERR_NO_MEMORY, NV_ERR_INVALID_LIMIT, NV_ERR_INVALID_ADDRESS].contains(&status),
                "{size:#x}: {status:#x}"
            );
            assert_eq!(
                tegrarm_copy_in(null_mut(), buffer, 0, here, size, null_mut()),
                NV_ERR_INVALID_BASE,
                "{size:#x}"
            );
            assert_eq!(
                tegrarm_copy_in(null_mut(), buffer, size, here, 1, null_mut()),
                NV_ERR_INVALID_BASE,
                "{size:#x}"
            );
            assert_eq!(
                tegrarm_copy_out(null_mut(), buffer, 0, here, size, null_mut()),
                NV_ERR_INVALID_BASE,
                "{size:#x}"
            );
            assert_eq!(
                tegrarm_copy(null_mut(), buffer, 0, buffer, size, size, null_mut()),
                NV_ERR_INVALID_BASE,
                "{size:#x}"
            );
            assert_eq!(tegrarm_module_write(module, c"offset".as_ptr(), here, size as usize), NV_ERR_INVALID_BASE);
            for size in [size as usize, TEGRARM_IMAGE_SIZE + 1] {
                let (mut code, mut object) = (null_mut(), null_mut());
                assert_eq!(tegrarm_module_load(device, here, size, &mut code), NV_ERR_INVALID_ARGUMENT, "{size:#x}");
                assert!(last_sentence().contains("TEGRARM_IMAGE_SIZE"), "{}", last_sentence());
                let status = tegrarm_object_load(here, size, null(), null(), 0, &mut object);
                assert_eq!(status, NV_ERR_INVALID_ARGUMENT, "{size:#x}");
            }
            let (names, addresses) = ([c"x".as_ptr()], [here.cast_const()]);
            let mut object = null_mut();
            let status = tegrarm_object_load(here, 1, names.as_ptr(), addresses.as_ptr(), size as usize, &mut object);
            assert_eq!(status, NV_ERR_INVALID_ARGUMENT, "{size:#x} symbols");
            assert!(last_sentence().contains("TEGRARM_OBJECT_SYMBOLS"), "{}", last_sentence());
            assert_eq!(tegrarm_replay_input(replay, here, here, size as usize), NV_ERR_INVALID_ARGUMENT);
            assert_eq!(tegrarm_replay_output(replay, here, here, size as usize), NV_ERR_INVALID_ARGUMENT);
            assert!(tegrarm_replay_copy(replay, buffer, 0, buffer, 0, size) != NV_OK);
        }
        // The library must not allocate a copy of data that may be large.
        assert_eq!(tegrarm_buffer_free(buffer), NV_OK);
        assert_eq!(tegrarm_device_close(device), NV_OK);
    }
}

#[test]
fn pages_without_an_end_are_a_status() {
    let kmd = crate::common::board(crate::common::default_release());
    let rm = crate::common::manager(kmd);
    let session = crate::common::Session::open(&rm).unwrap();
    for limit in [u64::MAX, u64::MAX - 1, u64::MAX - 4096, 1 << 46] {
        for class in [0x71, 0x3e] {
            let request = tegrarm::rm::MemoryRequest { class, flags: 1 << 30, address: 0x1000_0000, limit };
            let status = rm.alloc_memory(session.client, session.device, 0, &request).unwrap_err().status;
            assert!([NV_ERR_INVALID_LIMIT, NV_ERR_NO_MEMORY, NV_ERR_INVALID_ADDRESS].contains(&status), "{status:#x}");
        }
    }
    session.close(&rm);
}

/// Runs a test again in a process of its own, with changes to its environment. The result is whether this process is
/// that one.
fn alone(test: &str, change: impl FnOnce(&mut Command)) -> bool {
    const ROLE: &str = "TEGRARM_TEST_ALONE";
    if std::env::var_os(ROLE).is_some_and(|role| role == test) {
        return true;
    }
    let (_, module) = module_path!().split_once("::").expect("a module of the test program");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([&format!("{module}::{test}"), "--exact", "--test-threads=1"]).env(ROLE, test);
    change(&mut child);
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// The system cannot give the process a thread, because the stack of a thread would be larger than all memory.
#[test]
fn a_gpu_without_a_thread_is_refused_when_it_is_opened() {
    let no_thread = |child: &mut Command| {
        child.env("RUST_MIN_STACK", (1u64 << 47).to_string());
    };
    if !alone("a_gpu_without_a_thread_is_refused_when_it_is_opened", no_thread) {
        return;
    }
    let kmd = Arc::new(SimKmd::new(SimConfig::new(Chip::AgxOrin)));
    let rm = Arc::new(Rm::new(kmd.clone(), CacheMode::WriteCombine));
    let refused = Device::open(&rm, 0).err().expect("it must not wait for a GPU that never runs");
    assert_eq!(refused.status, NV_ERR_OPERATING_SYSTEM, "{refused}");
    assert!(refused.text.contains("SETUP_BIND"), "{refused}");
    drop(rm);
    assert_eq!(kmd.kernel().census(), tegra_sim::Census::default(), "nothing stays behind");
}

/// With `TEGRARM_SIM_STEP=1` there is no thread, so the GPU works while the program waits. The test runs alone, because
/// it counts the process's threads.
#[test]
fn waits_run_a_gpu_that_is_executed_in_steps() {
    if !alone("waits_run_a_gpu_that_is_executed_in_steps", |_| ()) {
        return;
    }
    let config = SimConfig { step: true, ..SimConfig::new(Chip::AgxOrin) };
    let rm = Arc::new(Rm::new(Arc::new(SimKmd::new(config)), CacheMode::WriteCombine));
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let device = Device::open(&rm, 0).unwrap();
    let kernel = Arc::new(vecadd(&device));
    let one = device.alloc(4096, Cache::Cached).unwrap();
    let sum = device.alloc(4096, Cache::Cached).unwrap();
    one.write(0, &1f32.to_le_bytes().repeat(32)).unwrap();
    let [a, b] = [&one, &sum].map(|b| b.address().to_le_bytes());
    let block = params::pack(kernel.kernel(), &[&a, &a, &b, &32u32.to_le_bytes()]).unwrap();
    let line = Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(32, 1, 1), dynamic_shared: 0 };
    let running = threads();
    let fence = device.launch(&kernel, &line, &block).unwrap();
    std::thread::yield_now();
    assert!(device.own().timeline().progress() < fence, "nothing runs by itself");
    device.wait(fence, None).unwrap();
    let mut found = [0; 4];
    sum.read(0, &mut found).unwrap();
    assert_eq!((f32::from_le_bytes(found), threads()), (2.0, running));
    // There are more launches than the channel has room for, so submitting waits too.
    for _ in 0..2000 {
        device.launch(&kernel, &line, &block).unwrap();
    }
    // Asking whether the fence has passed is enough if it is done often.
    let last = device.fence();
    while device.wait(last, Some(std::time::Duration::ZERO)).is_err() {}

    let mut replay = Replay::on(&device);
    replay
        .launch(&kernel, &line, |to| {
            to.copy_from_slice(&block);
            Ok(())
        })
        .unwrap();
    let nothing = Arc::new(Memory::new(device.session(), 4096, Cache::Cached).unwrap());
    let nothing = Place::of(&nothing, 0, 8).unwrap();
    for _ in 0..3 {
        replay.submit(&nothing, 0).unwrap();
        replay.wait(None).unwrap();
    }
}
