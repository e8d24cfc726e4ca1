//! Many threads allocate, map, query and free at once, through both doors.
#![allow(unsafe_code)] // looks at memory through the addresses that the library returns

mod common;

use common::door::{Desktop, Nodes, stretch};
use common::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tegrarm::rm::Rm;
use tegrarm::status::RmResult;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::escapes::*;
use tegrarm_abi::rm::status::*;
use tegrarm_lock::Mutex;
use zerocopy::FromZeros;

const THREADS: usize = 16;
const PAGE: u64 = 4096;
/// If no thread finishes a round for this time, the threads are stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// Descriptors and mappings belong to the process, so a test that counts them runs alone.
static ALONE: Mutex<()> = Mutex::new(());

/// The number of rounds of each thread: `TEGRARM_TEST_ROUNDS`, or 100 if it is not set.
fn rounds() -> usize {
    std::env::var("TEGRARM_TEST_ROUNDS").map_or(100, |n| n.parse().expect("a number of rounds"))
}

/// Runs `work(thread, round)` in every thread, [`rounds`] times. A deadlock ends the process with a message.
fn hammer(work: impl Fn(usize, usize) + Sync) {
    let done = Arc::new(AtomicUsize::new(0));
    let (tell, told) = mpsc::channel::<()>();
    let seen = done.clone();
    std::thread::spawn(move || {
        let mut before = 0;
        while told.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            let now = seen.load(Ordering::Relaxed);
            if now == before {
                eprintln!("threads are stuck: none finished anything for {PATIENCE:?}, after {now} rounds in all");
                std::process::abort();
            }
            before = now;
        }
    });
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (work, done) = (&work, &done);
            scope.spawn(move || {
                for round in 0..rounds() {
                    work(thread, round);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    drop(tell);
    assert_eq!(done.load(Ordering::Relaxed), THREADS * rounds());
}

/// A thread's mark at both ends of a mapping. It must still be there when the thread checks it.
struct Mark {
    at: usize,
    len: u64,
    value: u32,
}

impl Mark {
    fn set(at: usize, len: u64, value: u32) -> Mark {
        let mark = Mark { at, len, value };
        for at in mark.ends() {
            // SAFETY: the caller mapped `len` writable bytes at `at` and keeps them mapped.
            unsafe { at.write_volatile(value) };
        }
        mark
    }

    fn ends(&self) -> [*mut u32; 2] {
        [self.at as *mut u32, (self.at + self.len as usize - 4) as *mut u32]
    }

    /// Checks the mark through this or another mapping of the same bytes.
    fn check(&self, at: usize) {
        let other = Mark { at, ..*self };
        for end in other.ends() {
            // SAFETY: the same as in `set`.
            assert_eq!(unsafe { end.read_volatile() }, self.value, "somebody else wrote here");
        }
    }
}

fn ask_about(rm: &Rm, b: &Bringup, round: usize) {
    let s = b.s;
    match round % 5 {
        0 => {
            let mut id = NV2080_CTRL_GPU_GET_ID_PARAMS::new_zeroed();
            rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_GPU_GET_ID, &mut id).unwrap();
            assert_eq!(id.gpuId, 0x100);
        }
        1 => {
            let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
            rm.ask(s.client, b.channels[1], NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token).unwrap();
            assert_eq!(token.workSubmitToken, b.tokens[1]);
        }
        2 => rm.tell(s.client, b.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut [(round / 5 % 2) as u8, 0]).unwrap(),
        3 => {
            let mut infos = [[0x14u32, 0], [0x0c, 0]];
            let mut p = NV2080_CTRL_GR_GET_INFO_PARAMS::new_zeroed();
            (p.grInfoListSize, p.grInfoList) = (2, infos.as_mut_ptr() as u64);
            rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_GR_GET_INFO, &mut p).unwrap();
            // SAFETY: the call wrote the words through the pointer, which the compiler did not see, so they are read as
            // volatile.
            assert_eq!(unsafe { (&raw const infos[1][1]).read_volatile() }, 0x807);
        }
        _ => {
            let refused = rm.tell(s.client, s.subdevice, 0x2080_7777, &mut [0; 4]);
            assert_eq!(status(refused), NV_ERR_NOT_SUPPORTED);
        }
    }
}

/// Allocates memory under a handle that the library chooses, or that the thread chooses, or that other threads try to
/// use too.
fn allocate(rm: &Rm, s: &Session, thread: usize, round: usize, size: u64) -> u32 {
    let own = match round % 3 {
        0 => return s.memory(rm, size).unwrap(),
        1 => 0x1000 + thread as u32,
        _ => 0x2000 + round as u32 % 4,
    };
    let mut p = NV_MEMORY_ALLOCATION_PARAMS::new_zeroed();
    p.size = size;
    let prepared = rm.prepare_alloc(NV01_MEMORY_LOCAL_USER, true, 0).unwrap();
    match rm.alloc(prepared, s.client, s.device, own, zerocopy::IntoBytes::as_mut_bytes(&mut p)) {
        Ok(handle) => handle,
        Err(e) => {
            assert_eq!((e.status, round % 3), (NV_ERR_INSERT_DUPLICATE_NAME, 2), "{e}");
            s.memory(rm, size).unwrap()
        }
    }
}

/// The life of a buffer: it is mapped for the CPU and the GPU, shared with another client, and checked through every
/// handle.
fn use_a_buffer(rm: &Rm, s: &Session, others: &Session, thread: usize, round: usize) {
    let size = PAGE * (1 + (thread + round) as u64 % 5);
    let memory = allocate(rm, s, thread, round, size);
    let va = s.map_gpu(rm, memory, size).unwrap();
    let cpu = s.map_cpu(rm, memory, size).unwrap();
    let mark = Mark::set(cpu, size, (thread << 20 | round & 0xf_ffff) as u32);
    let copy = rm.dup_object(others.client, others.device, 0, s.client, memory).unwrap();
    if round.is_multiple_of(2) {
        rm.unmap_memory_dma(s.client, s.device, s.mapper, memory, va).unwrap();
        mark.check(cpu);
        rm.unmap_memory(s.client, s.device, memory, cpu).unwrap();
    }
    rm.free(s.client, memory).unwrap();
    let cpu = others.map_cpu(rm, copy, size).unwrap();
    mark.check(cpu);
    rm.free(others.client, copy).unwrap();
}

/// Makes the library drop the descriptors of the buffers that were mapped last.
fn forget_descriptors(rm: &Rm, s: &Session) {
    const KEPT: usize = 16;
    let buffers = [(); KEPT].map(|()| s.memory(rm, PAGE).unwrap());
    for memory in buffers {
        s.map_cpu(rm, memory, PAGE).unwrap();
    }
    buffers.iter().for_each(|memory| rm.free(s.client, *memory).unwrap());
}

#[test]
fn sixteen_threads_share_clients_and_handles_through_the_object_door() {
    const CLIENTS: usize = 4;
    let _alone = ALONE.lock();
    let kmd = board(default_release());
    let rm = manager(kmd.clone());
    let nothing = (kmd.census(), holdings());
    let clients: Vec<Bringup> = (0..CLIENTS).map(|_| Bringup::open(&rm).unwrap()).collect();
    // These rounds fill the caches of things that are kept for the next buffer.
    (0..32).for_each(|round| use_a_buffer(&rm, &clients[0].s, &clients[1].s, 0, round));
    forget_descriptors(&rm, &clients[0].s);
    let count = || clients.iter().map(|b| rm.object_count(b.s.client).unwrap()).sum::<usize>();
    let before = (kmd.census(), holdings(), count());
    hammer(|thread, round| {
        let (mine, others) = (&clients[thread % CLIENTS], &clients[(thread + round) % CLIENTS]);
        use_a_buffer(&rm, &mine.s, &others.s, thread, round);
        ask_about(&rm, mine, round);
        if round.is_multiple_of(16) {
            // This is a client of the thread's own, which is freed with everything below it.
            let own = Session::open(&rm).unwrap();
            let memory = own.memory(&rm, PAGE).unwrap();
            let copy = rm.dup_object(own.client, own.device, 0, mine.s.client, mine.area).unwrap();
            let cpu = own.map_cpu(&rm, memory, PAGE).unwrap();
            Mark::set(cpu, PAGE, round as u32).check(cpu);
            own.map_gpu(&rm, copy, AREA).unwrap();
            own.close(&rm);
        }
        if round.is_multiple_of(8) {
            let usermode = rm.make(mine.s.client, mine.s.subdevice, TURING_USERMODE_A).unwrap();
            let event = rm.make(mine.s.client, mine.s.subdevice, NV01_EVENT).unwrap();
            rm.free(mine.s.client, usermode).unwrap();
            rm.free(mine.s.client, event).unwrap();
        }
    });
    forget_descriptors(&rm, &clients[0].s);
    assert_eq!(count(), before.2);
    assert_eq!(kmd.census(), before.0);
    assert_eq!(holdings(), before.1);
    for b in &clients {
        rm.tell(b.s.client, b.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut [1, 0]).unwrap();
        b.s.close(&rm);
    }
    assert_eq!((kmd.census(), holdings()), nothing);
}

/// The life of a buffer on the nodes: the thread maps it with its own mmap, and to the GPU through UVM.
fn use_a_buffer_on_nodes(d: &Nodes, other: &Nodes, va: u64, thread: usize, round: usize) {
    let size = PAGE * (1 + (thread + round) as u64 % 5);
    let memory = d.memory(size);
    let cpu = d.map_cpu(memory, size, None);
    let mark = Mark::set(cpu.mapping().addr(), size, (thread << 20 | round & 0xf_ffff) as u32);
    assert_eq!(d.range(va, size), NV_OK);
    assert_eq!(d.map_dma(memory, va, size), NV_OK);
    assert_eq!(d.map_external(memory, va, size, 0), NV_OK);
    assert_eq!(d.range(va, PAGE), NV_ERR_UVM_ADDRESS_IN_USE);
    let mut p = NVOS55_PARAMETERS::new_zeroed();
    (p.hClient, p.hParent, p.hClientSrc, p.hObjectSrc) = (other.client, other.device, d.client, memory);
    other.escape(other.ctl, NV_ESC_RM_DUP_OBJECT, &mut p).unwrap();
    assert_eq!(p.status, NV_OK);
    assert_eq!(d.free(memory), NV_OK);
    mark.check(cpu.mapping().addr());
    let again = other.map_cpu(p.hObject, size, None);
    mark.check(again.mapping().addr());
    assert_eq!(other.free(p.hObject), NV_OK);
    assert_eq!(d.uvm_free(va, size), NV_OK);
}

fn ask_on_nodes(d: &Nodes) {
    let mut id = NV2080_CTRL_GPU_GET_ID_PARAMS::new_zeroed();
    assert_eq!(d.control(d.subdevice, NV2080_CTRL_CMD_GPU_GET_ID, &mut id), NV_OK);
    assert_eq!(id.gpuId, 0x100);
    assert_eq!(d.control(d.device, NV2080_CTRL_CMD_GPU_GET_ID, &mut id), NV_ERR_NOT_SUPPORTED);
}

#[test]
fn sixteen_threads_share_open_files_through_the_file_door() {
    const CLIENTS: usize = 4;
    let _alone = ALONE.lock();
    let desktop = Desktop::open(default_release());
    let (kmd, rm, door) = (desktop.kmd.clone(), desktop.rm.clone(), desktop.door.clone());
    let open = || Nodes::open(kmd.clone(), rm.clone(), door.clone());
    let clients: Vec<Nodes> = (0..CLIENTS).map(|_| open()).collect();
    let stretches = [(); THREADS].map(|()| stretch());
    (0..32).for_each(|round| use_a_buffer_on_nodes(&clients[0], &clients[1], stretches[0], 0, round));
    let count = || clients.iter().map(|d| rm.object_count(d.client).unwrap()).sum::<usize>();
    let before = (kmd.census(), holdings(), count(), door.open_files());
    hammer(|thread, round| {
        let (mine, others) = (&clients[thread % CLIENTS], &clients[(thread + round) % CLIENTS]);
        use_a_buffer_on_nodes(mine, others, stretches[thread], thread, round);
        ask_on_nodes(mine);
        if round.is_multiple_of(8) {
            let own = open();
            ask_on_nodes(&own);
            own.memory(PAGE);
            own.close();
        }
    });
    assert_eq!(count(), before.2);
    assert_eq!(door.open_files(), before.3);
    assert_eq!(kmd.census(), before.0);
    assert_eq!(holdings(), before.1);
    clients.iter().for_each(Nodes::close);
}

/// A device is freed while other threads allocate below it. Each of them gets an object or a status, and nothing stays.
#[test]
fn freeing_a_parent_races_with_allocating_below_it() {
    let _alone = ALONE.lock();
    let kmd = board(default_release());
    let rm = manager(kmd.clone());
    let census = kmd.census();
    for _ in 0..20 {
        let s = Session::open(&rm).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        match s.memory(&rm, 4096).and_then(|m| s.map_gpu(&rm, m, 4096)) {
                            Ok(_) => {}
                            Err(e) => assert_eq!(e.status, NV_ERR_OBJECT_NOT_FOUND, "{e}"),
                        }
                    }
                });
            }
            scope.spawn(|| rm.free(s.client, s.device).unwrap());
        });
        s.close(&rm);
        assert_eq!(kmd.census(), census);
    }
}

/// A buffer is freed while other threads map it, query it and duplicate it. Each call succeeds or reports that the
/// buffer does not exist.
#[test]
fn freeing_a_buffer_races_with_using_it() {
    let _alone = ALONE.lock();
    let kmd = board(default_release());
    let rm = manager(kmd.clone());
    let s = Session::open(&rm).unwrap();
    let warm = s.memory(&rm, PAGE).unwrap();
    s.map_gpu(&rm, warm, PAGE).unwrap();
    rm.free(s.client, warm).unwrap();
    let (census, objects) = (kmd.census(), rm.object_count(s.client).unwrap());
    for _ in 0..100 {
        let memory = s.memory(&rm, PAGE).unwrap();
        let check = |what: RmResult<()>| assert!(what.is_ok() || status(what) == NV_ERR_OBJECT_NOT_FOUND);
        std::thread::scope(|scope| {
            scope.spawn(|| check(s.map_cpu(&rm, memory, PAGE).map(drop)));
            scope.spawn(|| check(s.map_gpu(&rm, memory, PAGE).map(drop)));
            scope.spawn(|| {
                let copy = rm.dup_object(s.client, s.device, 0, s.client, memory);
                check(copy.and_then(|copy| rm.free(s.client, copy)));
            });
            scope.spawn(|| rm.free(s.client, memory).unwrap());
        });
        assert_eq!(rm.object_count(s.client).unwrap(), objects);
        assert_eq!(kmd.census(), census);
    }
    s.close(&rm);
}
