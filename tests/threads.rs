//! Many threads allocate, map, ask and free at once.

mod common;

use common::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::status::*;
use zerocopy::FromZeros;

const THREADS: usize = 8;
const ROUNDS: usize = 60;

/// One client shared by all: handles, addresses and the object tree are contended.
#[test]
fn one_client_serves_many_threads() {
    let kmd = board(default_release());
    let rm = manager(kmd.clone());
    let s = Session::open(&rm).unwrap();
    let warm = s.memory(&rm, 4096).unwrap();
    s.map_gpu(&rm, warm, 4096).unwrap();
    rm.free(s.client, warm).unwrap();
    let (census, objects) = (kmd.census(), rm.object_count(s.client).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let rm = &rm;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let size = 4096 * (1 + (thread + round) as u64 % 5);
                    let memory = s.memory(rm, size).unwrap();
                    let va = s.map_gpu(rm, memory, size).unwrap();
                    let cpu = s.map_cpu(rm, memory, size).unwrap();
                    let mut id = NV2080_CTRL_GPU_GET_ID_PARAMS::new_zeroed();
                    rm.ask(s.client, s.subdevice, NV2080_CTRL_CMD_GPU_GET_ID, &mut id).unwrap();
                    if round % 2 == 0 {
                        rm.unmap_memory(s.client, s.device, memory, cpu).unwrap();
                        rm.unmap_memory_dma(s.client, s.device, s.mapper, memory, va).unwrap();
                    }
                    rm.free(s.client, memory).unwrap();
                }
            });
        }
    });
    assert_eq!(kmd.census(), census);
    assert_eq!(rm.object_count(s.client).unwrap(), objects);
    s.close(&rm);
}

/// A device dies while others allocate below it: each gets an object or a status, and nothing stays.
#[test]
fn freeing_a_parent_races_with_allocating_below_it() {
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
