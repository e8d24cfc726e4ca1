//! A bring-up on the virtual Orin gives the values that boards showed, leaves nothing behind, and survives every
//! failure.

mod common;

use common::board::releases;
use common::*;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tegra_sim::L4t;
use tegrarm_abi::nvgpu::channel::NVGPU_IOCTL_CHANNEL_SETUP_BIND;
use tegrarm_kmd::{CallKind, Errno, Faulty, Kmd, Recorded, Replayed, Traced};

/// Descriptors and mappings belong to the process, so the tests that count them run one at a time.
static ALONE: tegrarm_lock::Mutex<()> = tegrarm_lock::Mutex::new(());

#[test]
fn tokens_veid_and_addresses_are_the_boards() {
    let _alone = ALONE.lock();
    for l4t in releases(&L4t::ALL) {
        let kmd = board(l4t);
        let rm = manager(kmd.clone());
        let b = Bringup::open(&rm).unwrap();
        assert_eq!(b.veid, 1, "{l4t:?}");
        if kmd.is_fresh() {
            assert_eq!(b.tokens, [511, 510], "{l4t:?}");
        }
        // The model of the kernel's allocator that reproduces every published vector gives this address: the
        // reservation of the windows leaves small blocks between them, and 3 MiB take a block of 4 MiB below the shared
        // window.
        assert_eq!(b.area_va, 0xfd_ffa0_0000, "{l4t:?}");
        let sizes = [4 << 10, 4 << 10, 64 << 10, MIB, 16 * MIB, 64 * MIB];
        let vas = sizes.map(|size| b.s.map_gpu(&rm, b.s.memory(&rm, size).unwrap(), size).unwrap());
        let expected = [0xfe_4000_0000, 0xfe_4000_1000, 0xfe_4001_0000, 0xfe_4010_0000, 0xfd_fe20_0000, 0xfd_f820_0000];
        assert_eq!(vas, expected, "{l4t:?}");
        assert_eq!(b.area_cpu as u64, b.area_va, "the library places CPU and GPU mappings alike");
        b.s.close(&rm);
    }
}

#[test]
fn freeing_the_client_gives_everything_back() {
    let _alone = ALONE.lock();
    let kmd = board(default_release());
    let rm = manager(kmd.clone());
    let (before, census) = (holdings(), kmd.census());
    let b = Bringup::open(&rm).unwrap();
    assert_ne!(holdings(), before, "the test sees what is held");
    assert!(census.is_none() || kmd.census() != census);
    b.s.close(&rm);
    assert_eq!(holdings(), before);
    assert_eq!(kmd.census(), census);
}

#[test]
fn freeing_piece_by_piece_gives_everything_back_too() {
    let _alone = ALONE.lock();
    let kmd = board(default_release());
    let rm = manager(kmd.clone());
    let (before, census) = (holdings(), kmd.census());
    let b = Bringup::open(&rm).unwrap();
    let c = b.s.client;
    let pieces = [b.area, b.engines[0], b.channels[1], b.channels[0], b.share, b.notifier, b.usermode, b.s.mapper];
    for handle in pieces.into_iter().chain([b.s.vaspace, b.group, b.s.subdevice, b.s.device, c]) {
        rm.free(c, handle).unwrap();
    }
    assert_eq!(holdings(), before);
    assert_eq!(kmd.census(), census);
}

/// Whatever is freed first, the library asks the kernel for nothing that the kernel refuses. For example, a subcontext
/// is freed after its channels.
#[test]
fn closing_asks_nothing_that_the_kernel_refuses() {
    let _alone = ALONE.lock();
    for l4t in releases(&L4t::ALL) {
        let (made, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(tegrarm_lock::Mutex::new(Vec::new())));
        let (count, list) = (made.clone(), refused.clone());
        let kmd = Traced::with_observer(board(l4t), move |event| {
            count.fetch_add(usize::from(event.name().contains("SUBCONTEXT")), Ordering::Relaxed);
            if event.result.is_err() {
                list.lock().push(event.to_string());
            }
        });
        let rm = manager(Arc::new(kmd));
        for order in 0..3 {
            let b = Bringup::open(&rm).unwrap();
            // The refusals of the queries that find the release come before this and are not counted.
            refused.lock().clear();
            match order {
                0 => {}
                1 => [b.share, b.channels[0], b.channels[1]].into_iter().for_each(|h| rm.free(b.s.client, h).unwrap()),
                _ => rm.free(b.s.client, b.group).unwrap(),
            }
            b.s.close(&rm);
            assert!(refused.lock().is_empty(), "{l4t:?}, order {order}: {:?}", refused.lock());
        }
        let calls = if l4t.is_r35() { 0 } else { 6 };
        assert_eq!(made.load(Ordering::Relaxed), calls, "CREATE_ and DELETE_SUBCONTEXT for each of three groups");
    }
}

#[test]
fn a_failure_at_any_call_of_bring_up_leaves_nothing_and_a_retry_works() {
    let _alone = ALONE.lock();
    for l4t in releases(&L4t::ALL) {
        let kmd = board(l4t);
        let faulty = Arc::new(Faulty::new(kmd.clone()));
        let rm = manager(faulty.clone());
        let (before, census) = (holdings(), kmd.census());
        let mut n = 0;
        loop {
            n += 1;
            faulty.arm(CallKind::Any, n, Errno::ENOMEM);
            let result = Bringup::open(&rm);
            if !faulty.fired() {
                result.unwrap().s.close(&rm);
                break;
            }
            match result {
                // The bring-up can survive some failures, for example when the preferred CPU address is taken.
                Ok(b) => b.s.close(&rm),
                Err(e) => assert_ne!(e.status, 0),
            }
            assert_eq!(holdings(), before, "call {n}");
            assert_eq!(kmd.census(), census, "call {n}");
            faulty.count(CallKind::Any);
            Bringup::open(&rm).unwrap_or_else(|e| panic!("retry after call {n}: {e}")).s.close(&rm);
        }
        assert!(n > 30, "bring-up makes more than {n} calls");
        assert_eq!(holdings(), before);
        assert_eq!(kmd.census(), census);
    }
}

#[test]
fn a_failure_at_any_call_of_an_allocation_leaves_nothing() {
    let _alone = ALONE.lock();
    let kmd = board(default_release());
    let faulty = Arc::new(Faulty::new(kmd.clone()));
    let rm = manager(faulty.clone());
    let s = Session::open(&rm).unwrap();
    // The address space exists from here on.
    let first = s.memory(&rm, 4096).unwrap();
    s.map_gpu(&rm, first, 4096).unwrap();
    rm.free(s.client, first).unwrap();
    let (before, census) = (holdings(), kmd.census());
    for n in 1.. {
        faulty.arm(CallKind::Any, n, Errno::ENOMEM);
        let allocated = s.memory(&rm, MIB);
        if let Ok(memory) = allocated {
            let mapped = s.map_gpu(&rm, memory, MIB).and_then(|_| s.map_cpu(&rm, memory, MIB));
            if let Err(e) = mapped {
                assert_eq!(e.status, tegrarm_abi::rm::status::NV_ERR_NO_MEMORY, "{e}");
            }
            let fired = faulty.fired();
            faulty.count(CallKind::Any);
            rm.free(s.client, memory).unwrap();
            if !fired {
                break;
            }
        }
        assert_eq!(holdings(), before, "call {n}");
        assert_eq!(kmd.census(), census, "call {n}");
    }
    s.close(&rm);
}

#[test]
fn memory_takes_the_system_calls_of_the_pipeline_and_no_other() {
    let _alone = ALONE.lock();
    let kmd = board(default_release());
    let faulty = Arc::new(Faulty::new(kmd));
    let rm = manager(faulty.clone());
    let s = Session::open(&rm).unwrap();
    let warm = s.memory(&rm, 4096).unwrap();
    s.map_gpu(&rm, warm, 4096).unwrap();
    faulty.count(CallKind::Any);
    let memory = s.memory(&rm, MIB).unwrap();
    assert_eq!(faulty.calls(), 2, "CREATE, ALLOC");
    s.map_gpu(&rm, memory, MIB).unwrap();
    assert_eq!(faulty.calls(), 4, "GET_FD, MAP_BUFFER_EX");
    s.map_cpu(&rm, memory, MIB).unwrap();
    assert_eq!(faulty.calls(), 5, "mmap");
    rm.free(s.client, memory).unwrap();
    // munmap and close(2) are not counted.
    assert_eq!(faulty.calls(), 7, "UNMAP_BUFFER, FREE");
    s.close(&rm);
}

#[test]
fn a_recorded_bring_up_replays_without_a_kernel() {
    let _alone = ALONE.lock();
    let (mut file, path) = nix_tempfile();
    tegrarm::rm::context::watch();
    let recorded: Arc<dyn Kmd> =
        Arc::new(Recorded::create(board(default_release()), &path).unwrap().labelled(tegrarm::rm::label));
    let rm = manager(recorded);
    let live = Bringup::open(&rm).unwrap();
    live.s.close(&rm);
    drop(rm);
    file.flush().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("rm_alloc AMPERE_CHANNEL_GPFIFO_A"), "lines say whose call they are");
    assert!(text.contains(&format!("{NVGPU_IOCTL_CHANNEL_SETUP_BIND:#x}")) || text.contains("SETUP_BIND"));

    let replayed = Arc::new(Replayed::open(&path).unwrap());
    let rm = manager(replayed.clone());
    let again = Bringup::open(&rm).unwrap_or_else(|e| panic!("{e}: {:?}", replayed.first_difference()));
    assert_eq!((again.tokens, again.veid, again.area_va), (live.tokens, live.veid, live.area_va));
    again.s.close(&rm);
    assert_eq!(replayed.first_difference(), None);
    assert_eq!(replayed.remaining(), 0);
    std::fs::remove_file(path).unwrap();
}

fn nix_tempfile() -> (std::fs::File, std::path::PathBuf) {
    let path = std::env::temp_dir().join(format!("tegrarm-bringup-{}.jsonl", std::process::id()));
    (std::fs::File::create(&path).unwrap(), path)
}
