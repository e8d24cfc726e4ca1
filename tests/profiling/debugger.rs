//! Tests debuggers through RM on every release: memory, mappings, registers, error records and suspension of a channel.
//! `tests/profiling/controls.rs` has the failures of the kernel.

use crate::common::board::releases;
use crate::common::*;
use std::sync::Arc;
use tegra_sim::L4t;
use tegrarm::status::RmResult;
use tegrarm_abi::layout::AbiStruct;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Kmd;
use zerocopy::FromZeros;

/// A client with channels, and a debugger of the first channel.
struct Debugging {
    bench: Bench,
    debugger: u32,
}

impl Debugging {
    fn on(l4t: L4t) -> Debugging {
        Debugging::over(board(l4t))
    }

    fn over(kmd: Arc<dyn Kmd>) -> Debugging {
        let bench = Bench::over(kmd);
        let Bench { rm, b } = &bench;
        let mut p = NV83DE_ALLOC_PARAMETERS::new_zeroed();
        (p.hAppClient, p.hClass3dObject) = (b.s.client, b.engines[0]);
        let debugger = rm.make_with(b.s.client, b.s.device, GT200_DEBUGGER, &mut p).unwrap();
        Debugging { bench, debugger }
    }

    fn ask<P: AbiStruct>(&self, cmd: u32, params: &mut P) -> RmResult<()> {
        self.bench.rm.ask(self.bench.b.s.client, self.debugger, cmd, params)
    }

    /// Sends a control whose parameters are one word.
    fn set(&self, cmd: u32, action: u32) -> RmResult<()> {
        self.ask(cmd, &mut NV83DE_CTRL_DEBUG_SET_MODE_ERRBAR_DEBUG_PARAMS { action })
    }

    fn resume(&self) -> RmResult<()> {
        self.bench.rm.tell(self.bench.b.s.client, self.debugger, NV83DE_CTRL_CMD_DEBUG_RESUME_CONTEXT, &mut [])
    }

    /// Reads memory into `bytes`.
    fn read(&self, memory: u32, offset: u64, bytes: &mut [u8]) -> RmResult<()> {
        let mut p = NV83DE_CTRL_DEBUG_READ_MEMORY_PARAMS::new_zeroed();
        (p.hMemory, p.offset, p.length, p.buffer) = (memory, offset, bytes.len() as u32, bytes.as_mut_ptr() as u64);
        self.ask(NV83DE_CTRL_CMD_DEBUG_READ_MEMORY, &mut p)
    }

    fn write(&self, memory: u32, offset: u64, bytes: &[u8]) -> RmResult<()> {
        let mut p = NV83DE_CTRL_DEBUG_WRITE_MEMORY_PARAMS::new_zeroed();
        (p.hMemory, p.offset, p.length, p.buffer) = (memory, offset, bytes.len() as u32, bytes.as_ptr() as u64);
        self.ask(NV83DE_CTRL_CMD_DEBUG_WRITE_MEMORY, &mut p)
    }
}

#[test]
fn memory_is_read_and_written_at_any_byte() {
    let t = Debugging::on(default_release());
    // The bytes are more than what is copied at a time, and they do not begin at a boundary.
    let memory = t.bench.b.s.memory(&t.bench.rm, 3 * 64 * 1024).unwrap();
    let bytes: Vec<u8> = (0..150_001u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    t.write(memory, 4099, &bytes).unwrap();
    let mut back = vec![0; bytes.len()];
    t.read(memory, 4099, &mut back).unwrap();
    assert!(back == bytes);
    let mut before = [7; 8];
    t.read(memory, 4091, &mut before).unwrap();
    assert_eq!(before, [0; 8], "nothing else was written");
    let size = 3 * 64 * 1024;
    assert_eq!(status(t.read(memory, size - 1, &mut [0; 2])), NV_ERR_INVALID_BASE);
    assert_eq!(status(t.read(memory, u64::MAX, &mut [0; 2])), NV_ERR_INVALID_BASE);
    assert_eq!(status(t.write(memory, 0, &[])), NV_ERR_INVALID_LIMIT);
    assert_eq!(status(t.read(t.bench.b.group, 0, &mut [0])), NV_ERR_INVALID_OBJECT);
    assert_eq!(status(t.write(0xbad, 0, &[0])), NV_ERR_OBJECT_NOT_FOUND);
    let mut nowhere = NV83DE_CTRL_DEBUG_READ_MEMORY_PARAMS { hMemory: memory, length: 4, offset: 0, buffer: 16 };
    assert_eq!(status(t.ask(NV83DE_CTRL_CMD_DEBUG_READ_MEMORY, &mut nowhere)), NV_ERR_INVALID_POINTER);
    t.bench.b.s.close(&t.bench.rm);
}

#[test]
fn the_channels_mappings_are_listed() {
    for l4t in releases(&L4t::ALL) {
        let t = Debugging::on(l4t);
        let mut all = NV83DE_CTRL_DEBUG_GET_MAPPINGS_PARAMETERS::new_zeroed();
        all.vaHi = (1 << 40) - 1;
        t.ask(NV83DE_CTRL_CMD_GET_MAPPINGS, &mut all).unwrap();
        let found = &all.opsBuffer[..all.count as usize];
        assert!(
            found.iter().any(|op| op.gpuVA <= t.bench.b.area_va && op.gpuVA + u64::from(op.size) > t.bench.b.area_va),
            "{l4t:?}"
        );
        assert_eq!(all.hasMore, 0, "{l4t:?}");
        let mut none = NV83DE_CTRL_DEBUG_GET_MAPPINGS_PARAMETERS::new_zeroed();
        (none.vaLo, none.vaHi) = (2, 1);
        assert_eq!(status(t.ask(NV83DE_CTRL_CMD_GET_MAPPINGS, &mut none)), NV_ERR_INVALID_ARGUMENT);
        t.bench.b.s.close(&t.bench.rm);
    }
}

#[test]
fn registers_that_say_what_the_gpu_is_can_be_read() {
    for l4t in releases(&L4t::ALL) {
        let t = Debugging::on(l4t);
        let mut ops = NV83DE_CTRL_DEBUG_EXEC_REG_OPS_PARAMS::new_zeroed();
        ops.regOpCount = 2;
        (ops.regOps[0].regOffset, ops.regOps[1].regOffset) = (0x22430, 0x22434);
        t.ask(NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS, &mut ops).unwrap();
        assert_eq!((ops.regOps[0].regValueLo, ops.regOps[1].regValueLo), (2, 4), "{l4t:?}: GPCs, and TPCs of each");
        // If one operation of a transaction is bad, none is done. If the operations are independent, the other ones are
        // done.
        (ops.regOps[0].regOffset, ops.regOps[1].regValueLo) = (0x1234, 0);
        assert_eq!(status(t.ask(NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS, &mut ops)), NV_ERR_INVALID_ARGUMENT);
        ops.bNonTransactional = 1;
        t.ask(NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS, &mut ops).unwrap();
        assert_eq!((ops.regOps[0].regStatus, ops.regOps[1].regStatus), (4, 0), "{l4t:?}");
        assert_eq!(ops.regOps[1].regValueLo, 4, "{l4t:?}");
        for count in [0, 101] {
            ops.regOpCount = count;
            assert_eq!(status(t.ask(NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS, &mut ops)), NV_ERR_INVALID_ARGUMENT);
        }
        t.bench.b.s.close(&t.bench.rm);
    }
}

#[test]
fn a_context_is_suspended_and_resumed() {
    for l4t in releases(&L4t::ALL) {
        let t = Debugging::on(l4t);
        let mut p = NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT_PARAMS { waitForEvent: 9, hResidentChannel: 9 };
        t.ask(NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT, &mut p).unwrap();
        assert_eq!(p.waitForEvent, 0, "{l4t:?}: it is off when the call returns");
        assert!([0, t.bench.b.channels[0]].contains(&p.hResidentChannel), "{l4t:?}: {:#x}", p.hResidentChannel);
        t.resume().unwrap();
        // A channel that was freed has no context.
        t.bench.rm.free(t.bench.b.s.client, t.bench.b.channels[0]).unwrap();
        assert_eq!(status(t.resume()), NV_ERR_OBJECT_NOT_FOUND, "{l4t:?}: the debugger went with it");
        t.bench.b.s.close(&t.bench.rm);
    }
}

#[test]
fn modes_are_the_kernels() {
    for l4t in releases(&L4t::ALL) {
        let t = Debugging::on(l4t);
        for mask in [NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_NONE, NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_FATAL] {
            t.set(NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK, mask).unwrap();
        }
        assert_eq!(status(t.set(NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK, 2)), NV_ERR_NOT_SUPPORTED, "{l4t:?}: traps");
        t.set(NV83DE_CTRL_CMD_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE, 1).unwrap();
        t.set(NV83DE_CTRL_CMD_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE, 2).unwrap();
        assert_eq!(status(t.set(NV83DE_CTRL_CMD_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE, 3)), NV_ERR_INVALID_ARGUMENT);
        assert_eq!(status(t.set(NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG, 2)), NV_ERR_INVALID_ARGUMENT);
        let errbar = t.set(NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG, 1);
        match l4t {
            L4t::R36 | L4t::R39 => errbar.unwrap(),
            _ => assert_eq!(status(errbar), NV_ERR_NOT_SUPPORTED, "{l4t:?} has no such switch"),
        }
        t.bench.b.s.close(&t.bench.rm);
    }
}

#[test]
fn error_records_are_read_and_cleared_one_by_one() {
    for l4t in releases(&L4t::ALL) {
        let t = Debugging::on(l4t);
        let mut one = NV83DE_CTRL_DEBUG_READ_SINGLE_SM_ERROR_STATE_PARAMS::new_zeroed();
        one.smErrorState.hwwWarpEsr = 5;
        t.ask(NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE, &mut one).unwrap();
        assert_eq!(one.smErrorState.hwwWarpEsr, 0, "{l4t:?}");
        let mut clear =
            NV83DE_CTRL_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE_PARAMS { hTargetChannel: t.bench.b.channels[1], smID: 3 };
        t.ask(NV83DE_CTRL_CMD_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE, &mut clear).unwrap();
        (one.smID, clear.smID) = (99, 99);
        assert_eq!(status(t.ask(NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE, &mut one)), NV_ERR_INVALID_ARGUMENT);
        assert_eq!(
            status(t.ask(NV83DE_CTRL_CMD_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE, &mut clear)),
            NV_ERR_INVALID_ARGUMENT
        );
        (clear.hTargetChannel, clear.smID) = (t.bench.b.area, 0);
        assert_eq!(
            status(t.ask(NV83DE_CTRL_CMD_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE, &mut clear)),
            NV_ERR_INVALID_CHANNEL
        );
        t.bench.b.s.close(&t.bench.rm);
    }
}
