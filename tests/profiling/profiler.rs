//! Tests profilers through RM on every release: counters, streams, registers and power, and also what is refused, and
//! with which status.

use crate::common::board::releases;
use crate::common::*;
use std::sync::Arc;
use tegra_sim::L4t;
use tegrarm_abi::layout::AbiStruct;
use tegrarm_abi::nvgpu::debugger::NVGPU_DBG_GPU_IOCTL_POWERGATE;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_b0cc::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{CallKind, Errno, Faulty};
use zerocopy::FromZeros;

const ALL: [L4t; 4] = L4t::ALL;
/// The size in bytes of the buffer for records.
const RECORDS: u64 = 64 * 1024;

impl Bench {
    /// Makes a profiler of the device, or a profiler of the context that an object belongs to.
    fn profiler(&self, context: Option<u32>) -> tegrarm::status::RmResult<u32> {
        let mut p = NVB2CC_ALLOC_PARAMETERS::new_zeroed();
        (p.hClientTarget, p.hContextTarget) = context.map_or((0, 0), |object| (self.b.s.client, object));
        self.rm.make_with(self.b.s.client, self.b.s.subdevice, MAXWELL_PROFILER_DEVICE, &mut p)
    }

    fn ask<P: AbiStruct>(&self, profiler: u32, cmd: u32, params: &mut P) -> tegrarm::status::RmResult<()> {
        self.rm.ask(self.b.s.client, profiler, cmd, params)
    }

    /// Sends a control without parameters.
    fn tell(&self, profiler: u32, cmd: u32) -> tegrarm::status::RmResult<()> {
        self.rm.tell(self.b.s.client, profiler, cmd, &mut [])
    }

    fn reserve(&self, profiler: u32, cmd: u32, ctxsw: u8) -> tegrarm::status::RmResult<()> {
        // The parameters of HWPM and of SMPC have the same layout: one byte.
        self.ask(profiler, cmd, &mut NVB0CC_CTRL_RESERVE_HWPM_LEGACY_PARAMS { ctxsw })
    }

    fn stream(&self) -> NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS {
        let mut p = NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS::new_zeroed();
        p.hMemPmaBuffer = self.b.s.memory(&self.rm, RECORDS).unwrap();
        p.hMemPmaBytesAvailable = self.b.s.memory(&self.rm, 4096).unwrap();
        p.pmaBufferSize = RECORDS;
        p
    }

    fn free(&self, object: u32) {
        self.rm.free(self.b.s.client, object).unwrap();
    }
}

fn update(update: u8, wait: u8, put: u8) -> NVB0CC_CTRL_PMA_STREAM_UPDATE_GET_PUT_PARAMS {
    let mut p = NVB0CC_CTRL_PMA_STREAM_UPDATE_GET_PUT_PARAMS::new_zeroed();
    (p.bUpdateAvailableBytes, p.bWait, p.bReturnPut, p.bytesAvailable) = (update, wait, put, 77);
    p
}

/// The parameters for one operation, which reads 32 bits.
fn read_of(offset: u32, mode: u32) -> NVB0CC_CTRL_EXEC_REG_OPS_PARAMS {
    let mut p = NVB0CC_CTRL_EXEC_REG_OPS_PARAMS::new_zeroed();
    (p.regOpCount, p.mode, p.regOps[0].regOffset) = (1, mode, offset);
    p
}

#[test]
fn a_profiler_reserves_binds_streams_and_releases() {
    for l4t in releases(&ALL) {
        let t = Bench::on(l4t);
        let profiler = t.profiler(Some(t.b.group)).unwrap();
        let mut stream = t.stream();
        t.ask(profiler, NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, &mut stream).unwrap();
        assert_eq!((stream.pmaChannelIdx, stream.pmaBufferVA & 0xfff), (0, 0), "{l4t:?}");
        assert_ne!(stream.pmaBufferVA, 0, "{l4t:?}");
        t.reserve(profiler, NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, 0).unwrap();
        t.reserve(profiler, NVB0CC_CTRL_CMD_RESERVE_PM_AREA_SMPC, 1).unwrap();
        t.tell(profiler, NVB0CC_CTRL_CMD_RESERVE_PM_AREA_PC_SAMPLER).unwrap();
        t.tell(profiler, NVB0CC_CTRL_CMD_BIND_PM_RESOURCES).unwrap();
        let mut state = update(1, 1, 1);
        t.ask(profiler, NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, &mut state).unwrap();
        assert_eq!((state.bytesAvailable, state.bOverflowStatus), (0, 0), "{l4t:?}: nobody has programmed a counter");
        assert_eq!(state.putPtr, stream.pmaBufferVA & 0xffff_ffff, "{l4t:?}: where the first record goes");
        let mut quiet = update(0, 0, 0);
        t.ask(profiler, NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, &mut quiet).unwrap();
        assert_eq!((quiet.bytesAvailable, quiet.putPtr), (77, 0), "{l4t:?}: only what was asked for is told");
        t.tell(profiler, NVB0CC_CTRL_CMD_UNBIND_PM_RESOURCES).unwrap();
        t.tell(profiler, NVB0CC_CTRL_CMD_RELEASE_PM_AREA_PC_SAMPLER).unwrap();
        t.tell(profiler, NVB0CC_CTRL_CMD_RELEASE_PM_AREA_SMPC).unwrap();
        t.tell(profiler, NVB0CC_CTRL_CMD_RELEASE_HWPM_LEGACY).unwrap();
        let mut free = NVB0CC_CTRL_FREE_PMA_STREAM_PARAMS { pmaChannelIdx: stream.pmaChannelIdx };
        t.ask(profiler, NVB0CC_CTRL_CMD_FREE_PMA_STREAM, &mut free).unwrap();
        t.free(profiler);
        t.b.s.close(&t.rm);
    }
}

#[test]
fn what_a_profiler_does_not_have_it_cannot_use() {
    let _shown = shows(&[NV_ERR_INVALID_STATE]);
    for l4t in releases(&ALL) {
        let t = Bench::on(l4t);
        let p = t.profiler(None).unwrap();
        for cmd in [
            NVB0CC_CTRL_CMD_RELEASE_HWPM_LEGACY,
            NVB0CC_CTRL_CMD_RELEASE_PM_AREA_SMPC,
            NVB0CC_CTRL_CMD_RELEASE_PM_AREA_PC_SAMPLER,
            NVB0CC_CTRL_CMD_BIND_PM_RESOURCES,
            NVB0CC_CTRL_CMD_UNBIND_PM_RESOURCES,
        ] {
            assert_eq!(status(t.tell(p, cmd)), NV_ERR_INVALID_STATE, "{l4t:?}: {cmd:#x}");
        }
        let mut free = NVB0CC_CTRL_FREE_PMA_STREAM_PARAMS { pmaChannelIdx: 0 };
        assert_eq!(status(t.ask(p, NVB0CC_CTRL_CMD_FREE_PMA_STREAM, &mut free)), NV_ERR_INVALID_STATE);
        free.pmaChannelIdx = 1;
        assert_eq!(status(t.ask(p, NVB0CC_CTRL_CMD_FREE_PMA_STREAM, &mut free)), NV_ERR_INVALID_ARGUMENT);
        let asked = t.ask(p, NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, &mut update(1, 1, 0));
        assert_eq!(status(asked), NV_ERR_INVALID_STATE);
        // A profiler without a context has nothing that could be switched with a context.
        let sampler = t.tell(p, NVB0CC_CTRL_CMD_RESERVE_PM_AREA_PC_SAMPLER).unwrap_err();
        assert_eq!(sampler.status, NV_ERR_INVALID_ARGUMENT);
        assert!(sampler.text.contains("hClientTarget"), "{sampler}");
        for cmd in [NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, NVB0CC_CTRL_CMD_RESERVE_PM_AREA_SMPC] {
            assert_eq!(status(t.reserve(p, cmd, 1)), NV_ERR_INVALID_ARGUMENT, "{l4t:?}: {cmd:#x}");
            t.reserve(p, cmd, 0).unwrap();
            assert_eq!(status(t.reserve(p, cmd, 0)), NV_ERR_STATE_IN_USE, "{l4t:?}: {cmd:#x}, again");
        }
        // Before counters are bound, nothing writes the count.
        t.ask(p, NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, &mut t.stream()).unwrap();
        let waited = t.ask(p, NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, &mut update(1, 1, 0));
        assert_eq!(status(waited), NV_ERR_TIMEOUT);
        t.tell(p, NVB0CC_CTRL_CMD_BIND_PM_RESOURCES).unwrap();
        assert_eq!(status(t.tell(p, NVB0CC_CTRL_CMD_BIND_PM_RESOURCES)), NV_ERR_INVALID_STATE);
        t.b.s.close(&t.rm);
    }
}

#[test]
fn profilers_do_not_take_from_each_other() {
    let _shown = shows(&[NV_ERR_STATE_IN_USE]);
    for l4t in releases(&ALL) {
        let t = Bench::on(l4t);
        let (one, two) = (t.profiler(Some(t.b.channels[0])).unwrap(), t.profiler(None).unwrap());
        assert_eq!(status(t.profiler(Some(t.b.group))), NV_ERR_STATE_IN_USE, "{l4t:?}: one profiler for a context");
        t.reserve(one, NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, 0).unwrap();
        let rival = t.reserve(two, NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, 0);
        assert_eq!(status(rival), NV_ERR_STATE_IN_USE);
        t.ask(one, NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, &mut t.stream()).unwrap();
        let stream = t.ask(two, NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, &mut t.stream());
        assert_eq!(status(stream), NV_ERR_STATE_IN_USE);
        // Freeing a profiler releases everything that it held.
        t.free(one);
        t.reserve(two, NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, 0).unwrap();
        t.ask(two, NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, &mut t.stream()).unwrap();
        t.free(t.profiler(Some(t.b.engines[0])).unwrap());
        // A profiler ends when its context ends.
        let three = t.profiler(Some(t.b.group)).unwrap();
        t.free(t.b.group);
        let gone = t.tell(three, NVB0CC_CTRL_CMD_UNBIND_PM_RESOURCES);
        assert_eq!(status(gone), NV_ERR_OBJECT_NOT_FOUND);
        t.b.s.close(&t.rm);
    }
}

#[test]
fn a_profiler_wants_a_context_that_is_one() {
    let t = Bench::on(default_release());
    assert_eq!(status(t.profiler(Some(0xbad))), NV_ERR_OBJECT_NOT_FOUND);
    assert_eq!(status(t.profiler(Some(t.b.area))), NV_ERR_INVALID_OBJECT);
    let mut nobody = NVB2CC_ALLOC_PARAMETERS { hClientTarget: 0xc1df_0000, hContextTarget: t.b.group };
    let made = t.rm.make_with(t.b.s.client, t.b.s.subdevice, MAXWELL_PROFILER_DEVICE, &mut nobody);
    assert_eq!(status(made), NV_ERR_INVALID_CLIENT);
    // The second handle is ignored if the first one is 0.
    let mut ignored = NVB2CC_ALLOC_PARAMETERS { hClientTarget: 0, hContextTarget: 0xbad };
    t.rm.make_with(t.b.s.client, t.b.s.subdevice, MAXWELL_PROFILER_DEVICE, &mut ignored).unwrap();
    // In this group no channel has an engine. The group therefore has no graphics context.
    let mut group = NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS::new_zeroed();
    (group.engineType, group.hVASpace) = (NV2080_ENGINE_TYPE_GR0, t.b.s.vaspace);
    let group = t.rm.make_with(t.b.s.client, t.b.s.device, KEPLER_CHANNEL_GROUP_A, &mut group).unwrap();
    let profiler = t.profiler(Some(group)).unwrap();
    t.reserve(profiler, NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, 1).unwrap();
    let bound = t.tell(profiler, NVB0CC_CTRL_CMD_BIND_PM_RESOURCES).unwrap_err();
    assert_eq!(bound.status, NV_ERR_INVALID_STATE);
    assert!(bound.text.contains("no graphics context"), "{bound}");
    t.b.s.close(&t.rm);
}

#[test]
fn a_stream_wants_room_and_its_count_at_the_front() {
    let t = Bench::on(default_release());
    let p = t.profiler(None).unwrap();
    let good = t.stream();
    let refused = |change: &dyn Fn(&mut NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS)| {
        let mut params = good;
        change(&mut params);
        status(t.ask(p, NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, &mut params))
    };
    assert_eq!(refused(&|p| p.pmaBufferSize = 0), NV_ERR_INVALID_ARGUMENT);
    // nvgpu returns success for this size, but makes no stream.
    assert_eq!(refused(&|p| p.pmaBufferSize = NVB0CC_PMA_BUFFER_SIZE_MAX + 1), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(refused(&|p| p.pmaBufferOffset = 4096), NV_ERR_INVALID_BASE, "one page less than it says");
    assert_eq!(refused(&|p| p.pmaBytesAvailableOffset = 4096), NV_ERR_NOT_SUPPORTED);
    assert_eq!(refused(&|p| p.hMemPmaBuffer = 0xbad), NV_ERR_OBJECT_NOT_FOUND);
    assert_eq!(refused(&|p| p.hMemPmaBytesAvailable = t.b.group), NV_ERR_INVALID_OBJECT);
    let mut second_page = good;
    (second_page.pmaBufferOffset, second_page.pmaBufferSize) = (4096, RECORDS - 4096);
    t.ask(p, NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, &mut second_page).unwrap();
    assert_eq!(refused(&|_| ()), NV_ERR_INVALID_ARGUMENT, "a second stream");
    let mut other = update(1, 0, 0);
    other.pmaChannelIdx = 3;
    assert_eq!(status(t.ask(p, NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, &mut other)), NV_ERR_INVALID_ARGUMENT);
    t.b.s.close(&t.rm);
}

#[test]
fn register_operations_get_the_answers_of_the_kernels_list() {
    for l4t in releases(&ALL) {
        let t = Bench::on(l4t);
        let p = t.profiler(None).unwrap();
        let unbound =
            t.ask(p, NVB0CC_CTRL_CMD_EXEC_REG_OPS, &mut read_of(0x9400, NVB0CC_REGOPS_MODE_CONTINUE_ON_ERROR));
        assert_eq!(status(unbound), NV_ERR_INVALID_STATE);
        t.reserve(p, NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, 0).unwrap();
        t.tell(p, NVB0CC_CTRL_CMD_BIND_PM_RESOURCES).unwrap();
        let mut each = read_of(0x9400, NVB0CC_REGOPS_MODE_CONTINUE_ON_ERROR);
        (each.regOpCount, each.regOps[1].regOp) = (2, 5);
        t.ask(p, NVB0CC_CTRL_CMD_EXEC_REG_OPS, &mut each).unwrap();
        assert_eq!((each.bPassed, each.regOps[0].regStatus), (0, 4), "{l4t:?}: the timer is no counter");
        assert_eq!(each.regOps[1].regStatus, 4 | 8, "{l4t:?}: nor is a write of 8 bits an operation");
        let none = t.ask(p, NVB0CC_CTRL_CMD_EXEC_REG_OPS, &mut read_of(0x9400, NVB0CC_REGOPS_MODE_ALL_OR_NONE));
        assert_eq!(status(none), NV_ERR_INVALID_ARGUMENT, "{l4t:?}");
        for (count, mode) in [(0, 0), (NVB0CC_REGOPS_MAX_COUNT + 1, 0), (1, 2)] {
            let mut bad = read_of(0x9400, mode);
            bad.regOpCount = count;
            assert_eq!(status(t.ask(p, NVB0CC_CTRL_CMD_EXEC_REG_OPS, &mut bad)), NV_ERR_INVALID_ARGUMENT);
        }
        t.b.s.close(&t.rm);
    }
}

/// Values of the six fields of a power mask.
fn mask(fields: [u32; 6]) -> u32 {
    fields.iter().enumerate().map(|(at, value)| value << (2 * at)).sum()
}

#[test]
fn power_features_are_held_by_those_who_asked() {
    let _shown = shows(&[NV_ERR_INVALID_REQUEST]);
    for l4t in releases(&ALL) {
        let kmd = Arc::new(Faulty::new(board(l4t)));
        let t = Bench::over(kmd.clone());
        let (one, two) = (t.profiler(None).unwrap(), t.profiler(None).unwrap());
        let request = |profiler, fields| {
            let mut p = NVB0CC_CTRL_POWER_REQUEST_FEATURES_PARAMS::new_zeroed();
            p.controlMask = mask(fields);
            t.ask(profiler, NVB0CC_CTRL_CMD_POWER_REQUEST_FEATURES, &mut p).map(|()| (p.globalStatus, p.statusMask))
        };
        let release = |profiler, fields| {
            let mut p = NVB0CC_CTRL_POWER_RELEASE_FEATURES_PARAMS { controlMask: mask(fields) };
            t.ask(profiler, NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES, &mut p)
        };
        // This is tinygrad's request: all features except SLCG.
        kmd.count(CallKind::Ioctl(NVGPU_DBG_GPU_IOCTL_POWERGATE));
        assert_eq!(request(one, [1, 1, 0, 1, 1, 1]), Ok((NV_OK, mask([0, 0, 0, 0, 2, 2]))), "{l4t:?}");
        assert_eq!(request(one, [1, 0, 0, 0, 0, 0]), Ok((NV_OK, 0)), "{l4t:?}: once more is no more");
        assert_eq!(kmd.calls(), 1, "{l4t:?}: the kernel's switch");
        let own = request(one, [2, 0, 2, 0, 0, 0]).unwrap();
        assert_eq!((note(own.0), own.1), (NV_ERR_INVALID_REQUEST, mask([1, 0, 0, 0, 0, 0])), "{l4t:?}");
        let rival = request(two, [2, 0, 2, 0, 2, 0]).unwrap();
        assert_eq!(rival, (NV_ERR_STATE_IN_USE, mask([1, 0, 0, 0, 2, 0])), "{l4t:?}");
        assert_eq!(
            request(two, [0, 0, 2, 0, 0, 0]),
            Ok((NV_OK, 0)),
            "{l4t:?}: nobody holds SLCG, the refusals included"
        );
        release(one, [3, 0, 3, 3, 0, 3]).unwrap();
        assert_eq!(request(two, [2, 0, 0, 0, 0, 0]), Ok((NV_OK, 0)), "{l4t:?}: released");
        assert_eq!(request(two, [0, 2, 0, 0, 0, 0]).map(|p| p.0), Ok(NV_ERR_STATE_IN_USE), "{l4t:?}: still held");
        t.free(one);
        assert_eq!(request(two, [0, 2, 0, 0, 0, 0]), Ok((NV_OK, 0)), "{l4t:?}: its holder is gone");
        assert_eq!(status(request(two, [3, 0, 0, 0, 0, 0])), NV_ERR_INVALID_ARGUMENT);
        assert_eq!(status(release(two, [1, 0, 0, 0, 0, 0])), NV_ERR_INVALID_ARGUMENT);
        let mut wide = NVB0CC_CTRL_POWER_RELEASE_FEATURES_PARAMS { controlMask: 1 << 12 };
        assert_eq!(status(t.ask(two, NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES, &mut wide)), NV_ERR_INVALID_ARGUMENT);
        t.b.s.close(&t.rm);
    }
}

/// If the kernel refuses to switch the power, the parameters say so, and the profiler holds nothing afterwards.
#[test]
fn a_switch_that_fails_is_told_in_the_parameters() {
    let kmd = Arc::new(Faulty::new(board(default_release())));
    let t = Bench::over(kmd.clone());
    let (one, two) = (t.profiler(None).unwrap(), t.profiler(None).unwrap());
    for (kind, errno, wanted) in [
        (CallKind::Ioctl(NVGPU_DBG_GPU_IOCTL_POWERGATE), Errno::EIO, NV_ERR_OPERATING_SYSTEM),
        (CallKind::Open, Errno::EACCES, NV_ERR_INSUFFICIENT_PERMISSIONS),
    ] {
        let mut p = NVB0CC_CTRL_POWER_REQUEST_FEATURES_PARAMS::new_zeroed();
        p.controlMask = mask([1, 2, 0, 1, 0, 0]);
        kmd.arm(kind, 1, errno);
        t.ask(one, NVB0CC_CTRL_CMD_POWER_REQUEST_FEATURES, &mut p).unwrap();
        assert_eq!((p.globalStatus, p.statusMask), (wanted, mask([3, 0, 0, 3, 0, 0])));
        p.controlMask = mask([2, 0, 0, 2, 0, 0]);
        t.ask(two, NVB0CC_CTRL_CMD_POWER_REQUEST_FEATURES, &mut p).unwrap();
        assert_eq!(p.globalStatus, NV_OK, "nobody holds them off");
        let mut all = NVB0CC_CTRL_POWER_RELEASE_FEATURES_PARAMS { controlMask: mask([3; 6]) };
        t.ask(two, NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES, &mut all).unwrap();
    }
    t.b.s.close(&t.rm);
}

/// Only r39 has credits. No virtual board has them, because nobody has published what r39's driver does with them.
#[test]
fn credits_cannot_be_had_before_r39() {
    for l4t in releases(&ALL) {
        let t = Bench::on(l4t);
        let p = t.profiler(None).unwrap();
        let mut set = NVB0CC_CTRL_SET_HS_CREDITS_PARAMS::new_zeroed();
        assert_eq!(status(t.ask(p, NVB0CC_CTRL_CMD_SET_HS_CREDITS, &mut set)), NV_ERR_INVALID_ARGUMENT, "no entries");
        set.numEntries = 1;
        assert_eq!(status(t.ask(p, NVB0CC_CTRL_CMD_SET_HS_CREDITS, &mut set)), NV_ERR_INVALID_ARGUMENT, "no chiplet");
        set.creditInfo[0].chipletType = NVB0CC_CHIPLET_TYPE_GPC as u8;
        for refused in [
            t.ask(p, NVB0CC_CTRL_CMD_SET_HS_CREDITS, &mut set),
            t.ask(p, NVB0CC_CTRL_CMD_GET_TOTAL_HS_CREDITS, &mut NVB0CC_CTRL_GET_TOTAL_HS_CREDITS_PARAMS::new_zeroed()),
            t.ask(
                p,
                NVB0CC_CTRL_CMD_GET_CHIPLET_HS_CREDIT_POOL,
                &mut NVB0CC_CTRL_GET_CHIPLET_HS_CREDIT_POOL::new_zeroed(),
            ),
        ] {
            let e = refused.unwrap_err();
            assert_eq!(e.status, NV_ERR_NOT_SUPPORTED, "{l4t:?}: {e}");
            assert!(e.text.contains("leave PC sampling (PMA) off"), "{l4t:?}: {e}");
        }
        t.b.s.close(&t.rm);
    }
}

/// `tests/profiling/controls.rs` has the failures of its controls.
#[test]
fn a_profiler_that_the_kernel_does_not_make_leaves_nothing() {
    for l4t in releases(&ALL) {
        let kernel = board(l4t);
        let kmd = Arc::new(Faulty::new(kernel.clone()));
        let t = Bench::over(kmd.clone());
        let before = kernel.held(|census| census.files as u64);
        for n in 1.. {
            kmd.arm(CallKind::Any, n, Errno::EIO);
            let made = t.profiler(Some(t.b.group));
            if !kmd.fired() {
                t.free(made.unwrap());
                assert_eq!(n, 3, "{l4t:?}: opening the node and choosing the context");
                break;
            }
            assert_eq!(status(made), NV_ERR_OPERATING_SYSTEM, "{l4t:?}: call {n}");
            kernel.assert_held(|census| census.files as u64, before, 0, "a profiler that was not made");
        }
        kmd.count(CallKind::Any);
        t.b.s.close(&t.rm);
    }
}
