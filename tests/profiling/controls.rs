//! Tests every control of debuggers and profilers: what refuses it, and what happens if a call to the kernel fails.
//!
//! The library's table says which controls there are. A row without a case here fails the test.

use crate::common::board::releases;
use crate::common::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use tegra_sim::L4t;
use tegrarm::rm::classes::Support;
use tegrarm::rm::controls::CONTROLS;
use tegrarm::rm::{Rm, Tag};
use tegrarm::status::{RmError, RmResult};
use tegrarm_abi::layout::AbiStruct;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::ctrl_b0cc::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{CallKind, Errno, Faulty};
use zerocopy::FromZeros;

/// A client with two channels, a debugger of the first, a profiler of their context, and a profiler without a context.
struct Bench {
    rm: Rm,
    b: Bringup,
    debugger: u32,
    profiler: u32,
    plain: u32,
    stream: NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS,
}

impl Bench {
    fn over(kmd: Arc<Faulty>) -> Bench {
        let rm = manager(kmd);
        let b = Bringup::open(&rm).unwrap();
        let (c, s) = (b.s.client, b.s);
        let mut debugger = NV83DE_ALLOC_PARAMETERS::new_zeroed();
        (debugger.hAppClient, debugger.hClass3dObject) = (c, b.engines[0]);
        let mut profiler = NVB2CC_ALLOC_PARAMETERS { hClientTarget: c, hContextTarget: b.group };
        let mut plain = NVB2CC_ALLOC_PARAMETERS::new_zeroed();
        let mut stream = NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS::new_zeroed();
        (stream.hMemPmaBuffer, stream.pmaBufferSize) = (s.memory(&rm, 0x1_0000).unwrap(), 0x1_0000);
        stream.hMemPmaBytesAvailable = s.memory(&rm, 4096).unwrap();
        Bench {
            debugger: rm.make_with(c, s.device, GT200_DEBUGGER, &mut debugger).unwrap(),
            profiler: rm.make_with(c, s.subdevice, MAXWELL_PROFILER_DEVICE, &mut profiler).unwrap(),
            plain: rm.make_with(c, s.subdevice, MAXWELL_PROFILER_DEVICE, &mut plain).unwrap(),
            stream,
            rm,
            b,
        }
    }

    /// A control of the debugger.
    fn debug<P: AbiStruct>(&self, cmd: u32, mut params: P) -> RmResult<()> {
        self.rm.ask(self.b.s.client, self.debugger, cmd, &mut params)
    }

    /// A control of the debugger that has one word.
    fn set(&self, cmd: u32, action: u32) -> RmResult<()> {
        self.debug(cmd, NV83DE_CTRL_DEBUG_SET_MODE_ERRBAR_DEBUG_PARAMS { action })
    }

    /// A control of the profiler.
    fn ask<P: AbiStruct>(&self, cmd: u32, mut params: P) -> RmResult<()> {
        self.rm.ask(self.b.s.client, self.profiler, cmd, &mut params)
    }

    /// A control of the profiler that has no parameters.
    fn tell(&self, cmd: u32) -> RmResult<()> {
        self.rm.tell(self.b.s.client, self.profiler, cmd, &mut [])
    }

    /// The parameters of HWPM's and SMPC's controls are one byte.
    fn reserve(&self, profiler: u32, cmd: u32, ctxsw: u8) -> RmResult<()> {
        self.rm.ask(self.b.s.client, profiler, cmd, &mut NVB0CC_CTRL_RESERVE_HWPM_LEGACY_PARAMS { ctxsw })
    }

    fn hold_hwpm(&self) {
        self.reserve(self.profiler, NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY, 0).unwrap();
    }

    fn bind_hwpm(&self) {
        self.hold_hwpm();
        self.tell(NVB0CC_CTRL_CMD_BIND_PM_RESOURCES).unwrap();
    }

    fn open_stream(&self) {
        self.ask(NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, self.stream).unwrap();
    }

    /// Asks for power features. The parameters contain the answer, which is returned here.
    fn power(&self, mask: u32) -> RmResult<()> {
        let mut p = NVB0CC_CTRL_POWER_REQUEST_FEATURES_PARAMS::new_zeroed();
        p.controlMask = mask;
        self.rm.ask(self.b.s.client, self.profiler, NVB0CC_CTRL_CMD_POWER_REQUEST_FEATURES, &mut p)?;
        match p.globalStatus {
            NV_OK => Ok(()),
            status => Err(RmError::new(status, format!("statusMask {:#x}", p.statusMask))),
        }
    }

    /// Frees the debugger's channel.
    fn lose_channel(&self) {
        self.rm.free(self.b.s.client, self.b.channels[0]).unwrap();
    }
}

fn nothing(_: &Bench) {}

/// Reads or writes `length` bytes at the front of the area.
fn memory(t: &Bench, cmd: u32, length: u32, offset: u64) -> RmResult<()> {
    let mut bytes = [0u8; 8];
    t.debug(
        cmd,
        NV83DE_CTRL_DEBUG_READ_MEMORY_PARAMS { hMemory: t.b.area, length, offset, buffer: bytes.as_mut_ptr() as u64 },
    )
}

fn mappings(t: &Bench, low: u64) -> RmResult<()> {
    let mut p = NV83DE_CTRL_DEBUG_GET_MAPPINGS_PARAMETERS::new_zeroed();
    (p.vaLo, p.vaHi) = (low, u64::MAX >> 24);
    t.debug(NV83DE_CTRL_CMD_GET_MAPPINGS, p)
}

fn debug_registers(t: &Bench, count: u32) -> RmResult<()> {
    let mut p = NV83DE_CTRL_DEBUG_EXEC_REG_OPS_PARAMS::new_zeroed();
    (p.regOpCount, p.regOps[0].regOffset) = (count, 0x22430);
    t.debug(NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS, p)
}

fn registers(t: &Bench) -> RmResult<()> {
    let mut p = NVB0CC_CTRL_EXEC_REG_OPS_PARAMS::new_zeroed();
    (p.regOpCount, p.mode) = (1, NVB0CC_REGOPS_MODE_CONTINUE_ON_ERROR);
    t.ask(NVB0CC_CTRL_CMD_EXEC_REG_OPS, p)
}

fn read_one(t: &Bench, sm: u32) -> RmResult<()> {
    let mut p = NV83DE_CTRL_DEBUG_READ_SINGLE_SM_ERROR_STATE_PARAMS::new_zeroed();
    p.smID = sm;
    t.debug(NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE, p)
}

fn read_all(t: &Bench, count: u32) -> RmResult<()> {
    let mut p = NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS::new_zeroed();
    p.numSMsToRead = count;
    t.debug(NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, p)
}

fn clear_one(t: &Bench, sm: u32) -> RmResult<()> {
    let p = NV83DE_CTRL_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE_PARAMS { hTargetChannel: 0, smID: sm };
    t.debug(NV83DE_CTRL_CMD_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE, p)
}

fn clear_all(t: &Bench, channel: u32) -> RmResult<()> {
    let p = NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS { hTargetChannel: channel, numSMsToClear: 2 };
    t.debug(NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES, p)
}

fn suspend(t: &Bench) -> RmResult<()> {
    t.debug(NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT, NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT_PARAMS::new_zeroed())
}

fn resume(t: &Bench) -> RmResult<()> {
    t.rm.tell(t.b.s.client, t.debugger, NV83DE_CTRL_CMD_DEBUG_RESUME_CONTEXT, &mut [])
}

fn fault(t: &Bench) -> RmResult<()> {
    t.debug(NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO, NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS::new_zeroed())
}

fn stream_of(t: &Bench, size: u64) -> RmResult<()> {
    let mut p = t.stream;
    p.pmaBufferSize = size;
    t.ask(NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, p)
}

fn free_stream(t: &Bench) -> RmResult<()> {
    t.ask(NVB0CC_CTRL_CMD_FREE_PMA_STREAM, NVB0CC_CTRL_FREE_PMA_STREAM_PARAMS { pmaChannelIdx: 0 })
}

fn update(t: &Bench) -> RmResult<()> {
    let mut p = NVB0CC_CTRL_PMA_STREAM_UPDATE_GET_PUT_PARAMS::new_zeroed();
    (p.bUpdateAvailableBytes, p.bWait, p.bReturnPut) = (1, 1, 1);
    t.ask(NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, p)
}

/// The masks that disable all six features, and that release them.
const DISABLE: u32 = 0x555;
const RELEASE: u32 = 0xfff;

fn let_power_go(t: &Bench, mask: u32) -> RmResult<()> {
    t.ask(NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES, NVB0CC_CTRL_POWER_RELEASE_FEATURES_PARAMS { controlMask: mask })
}

type Does = fn(&Bench) -> RmResult<()>;

/// One control: the calls that it needs before it, a call that works, and a call that is refused with a status.
struct Case {
    cmd: u32,
    before: fn(&Bench),
    works: Does,
    refused: Does,
    with: u32,
}

fn case(cmd: u32, before: fn(&Bench), works: Does, refused: Does, with: u32) -> Case {
    Case { cmd, before, works, refused, with }
}

/// The controls of streaming credits. No virtual board has them: `tests/profiling/kernels.rs` tests their failures, and
/// `tests/profiling/profiler.rs` their refusals.
const CREDITS: [u32; 3] =
    [NVB0CC_CTRL_CMD_GET_TOTAL_HS_CREDITS, NVB0CC_CTRL_CMD_SET_HS_CREDITS, NVB0CC_CTRL_CMD_GET_CHIPLET_HS_CREDIT_POOL];
/// This control only closes a descriptor, which cannot fail.
const WITHOUT_CALLS: [u32; 1] = [NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES];
/// nvgpu of r35 does not have this switch, so the library makes no call.
const SINCE_R36: [u32; 1] = [NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG];

#[rustfmt::skip]
fn debuggers() -> Vec<Case> {
    use NV83DE_CTRL_CMD_DEBUG_SET_EXCEPTION_MASK as MASK;
    use NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG as ERRBAR;
    use NV83DE_CTRL_CMD_DEBUG_SET_MODE_MMU_DEBUG as MMU;
    use NV83DE_CTRL_CMD_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE as STOP;
    use NV83DE_CTRL_CMD_DEBUG_READ_MEMORY as READ;
    use NV83DE_CTRL_CMD_DEBUG_WRITE_MEMORY as WRITE;
    vec![
        case(MMU, nothing, |t| t.set(MMU, 2), |t| t.set(MMU, 0), NV_ERR_INVALID_ARGUMENT),
        case(MASK, nothing, |t| t.set(MASK, 1), |t| t.set(MASK, 2), NV_ERR_NOT_SUPPORTED),
        case(NV83DE_CTRL_CMD_DEBUG_READ_SINGLE_SM_ERROR_STATE, nothing, |t| read_one(t, 0), |t| read_one(t, 99), NV_ERR_INVALID_ARGUMENT),
        case(NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, nothing, |t| read_all(t, 2), |t| read_all(t, 101), NV_ERR_INVALID_ARGUMENT),
        case(NV83DE_CTRL_CMD_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE, nothing, |t| clear_one(t, 0), |t| clear_one(t, 99), NV_ERR_INVALID_ARGUMENT),
        case(NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES, nothing, |t| clear_all(t, 0), |t| clear_all(t, t.b.area), NV_ERR_INVALID_CHANNEL),
        case(STOP, nothing, |t| t.set(STOP, 1), |t| t.set(STOP, 3), NV_ERR_INVALID_ARGUMENT),
        case(READ, nothing, |t| memory(t, READ, 4, 0), |t| memory(t, READ, 4, u64::MAX), NV_ERR_INVALID_BASE),
        case(WRITE, nothing, |t| memory(t, WRITE, 4, 0), |t| memory(t, WRITE, 0, 0), NV_ERR_INVALID_LIMIT),
        case(NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT, nothing, suspend, |t| { t.lose_channel(); suspend(t) }, NV_ERR_OBJECT_NOT_FOUND),
        case(NV83DE_CTRL_CMD_DEBUG_RESUME_CONTEXT, |t| suspend(t).unwrap(), resume, |t| { t.lose_channel(); resume(t) }, NV_ERR_OBJECT_NOT_FOUND),
        case(NV83DE_CTRL_CMD_GET_MAPPINGS, nothing, |t| mappings(t, 0), |t| mappings(t, u64::MAX), NV_ERR_INVALID_ARGUMENT),
        case(NV83DE_CTRL_CMD_DEBUG_EXEC_REG_OPS, nothing, |t| debug_registers(t, 1), |t| debug_registers(t, 0), NV_ERR_INVALID_ARGUMENT),
        case(ERRBAR, nothing, |t| t.set(ERRBAR, 1), |t| t.set(ERRBAR, 2), NV_ERR_INVALID_ARGUMENT),
        case(NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO, nothing, fault, |t| { t.lose_channel(); fault(t) }, NV_ERR_OBJECT_NOT_FOUND),
    ]
}

#[rustfmt::skip]
fn profilers() -> Vec<Case> {
    use NVB0CC_CTRL_CMD_BIND_PM_RESOURCES as BIND;
    use NVB0CC_CTRL_CMD_RELEASE_HWPM_LEGACY as RELEASE_HWPM;
    use NVB0CC_CTRL_CMD_RELEASE_PM_AREA_PC_SAMPLER as RELEASE_SAMPLER;
    use NVB0CC_CTRL_CMD_RELEASE_PM_AREA_SMPC as RELEASE_SMPC;
    use NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY as HWPM;
    use NVB0CC_CTRL_CMD_RESERVE_PM_AREA_PC_SAMPLER as SAMPLER;
    use NVB0CC_CTRL_CMD_RESERVE_PM_AREA_SMPC as SMPC;
    use NVB0CC_CTRL_CMD_UNBIND_PM_RESOURCES as UNBIND;
    vec![
        // Without a context, a profiler cannot be switched together with one.
        case(HWPM, nothing, |t| t.reserve(t.profiler, HWPM, 0), |t| t.reserve(t.plain, HWPM, 1), NV_ERR_INVALID_ARGUMENT),
        case(SMPC, nothing, |t| t.reserve(t.profiler, SMPC, 0), |t| t.reserve(t.plain, SMPC, 1), NV_ERR_INVALID_ARGUMENT),
        case(SAMPLER, nothing, |t| t.tell(SAMPLER), |t| t.rm.tell(t.b.s.client, t.plain, SAMPLER, &mut []), NV_ERR_INVALID_ARGUMENT),
        case(RELEASE_HWPM, Bench::hold_hwpm, |t| t.tell(RELEASE_HWPM), |t| t.tell(RELEASE_HWPM), NV_ERR_INVALID_STATE),
        case(RELEASE_SMPC, |t| t.reserve(t.profiler, SMPC, 0).unwrap(), |t| t.tell(RELEASE_SMPC), |t| t.tell(RELEASE_SMPC), NV_ERR_INVALID_STATE),
        case(RELEASE_SAMPLER, |t| t.tell(SAMPLER).unwrap(), |t| t.tell(RELEASE_SAMPLER), |t| t.tell(RELEASE_SAMPLER), NV_ERR_INVALID_STATE),
        case(BIND, Bench::hold_hwpm, |t| t.tell(BIND), |t| t.tell(BIND), NV_ERR_INVALID_STATE),
        case(UNBIND, Bench::bind_hwpm, |t| t.tell(UNBIND), |t| t.tell(UNBIND), NV_ERR_INVALID_STATE),
        case(NVB0CC_CTRL_CMD_EXEC_REG_OPS, Bench::bind_hwpm, registers, registers, NV_ERR_INVALID_STATE),
        case(NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM, nothing, |t| stream_of(t, 4096), |t| stream_of(t, 0), NV_ERR_INVALID_ARGUMENT),
        case(NVB0CC_CTRL_CMD_FREE_PMA_STREAM, Bench::open_stream, free_stream, free_stream, NV_ERR_INVALID_STATE),
        case(NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, |t| { t.open_stream(); t.bind_hwpm() }, update, update, NV_ERR_INVALID_STATE),
        case(NVB0CC_CTRL_CMD_POWER_REQUEST_FEATURES, nothing, |t| t.power(DISABLE), |t| t.power(RELEASE), NV_ERR_INVALID_ARGUMENT),
        case(NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES, |t| t.power(DISABLE).unwrap(), |t| let_power_go(t, RELEASE), |t| let_power_go(t, DISABLE), NV_ERR_INVALID_ARGUMENT),
    ]
}

fn cases() -> impl Iterator<Item = Case> {
    debuggers().into_iter().chain(profilers())
}

fn name(cmd: u32) -> &'static str {
    tegrarm::rm::controls::find(cmd).expect("a row").name
}

#[test]
fn every_row_of_a_debugger_or_a_profiler_has_a_case() {
    let rows = CONTROLS.iter().filter(|row| row.objects.have(Tag::Debugger) || row.objects.have(Tag::Profiler));
    let answered: BTreeSet<u32> =
        rows.filter(|row| !matches!(row.state, Support::Refused(_))).map(|row| row.cmd).collect();
    let here: BTreeSet<u32> = cases().map(|case| case.cmd).chain(CREDITS).collect();
    assert_eq!(answered, here);
    assert_eq!(here.len(), cases().count() + CREDITS.len(), "no control has two cases");
}

#[test]
fn every_control_is_refused_with_its_status() {
    for l4t in releases(&L4t::ALL) {
        for case in cases() {
            let t = Bench::over(Arc::new(Faulty::new(board(l4t))));
            let refused = (case.refused)(&t);
            assert_eq!(status(refused), case.with, "{l4t:?}: {}", name(case.cmd));
            t.b.s.close(&t.rm);
        }
    }
}

/// In each control, each call to the kernel fails once. The control must report the failure, change nothing, and work afterwards.
#[test]
fn every_failure_of_the_kernel_is_told_and_leaves_nothing() {
    for l4t in releases(&L4t::ALL) {
        let kernel = board(l4t);
        let kmd = Arc::new(Faulty::new(kernel.clone()));
        for case in cases() {
            let name = name(case.cmd);
            if SINCE_R36.contains(&case.cmd) && matches!(l4t, L4t::R35 | L4t::R35_4) {
                continue;
            }
            // Each control has its own client, because a debugger keeps the session that it opened.
            let t = Bench::over(kmd.clone());
            (case.before)(&t);
            let before = kernel.held(|census| census.files as u64);
            let mut failures = 0;
            for n in 1.. {
                kmd.arm(CallKind::Any, n, Errno::EIO);
                let done = (case.works)(&t);
                if !kmd.fired() {
                    done.unwrap_or_else(|e| panic!("{l4t:?}: {name}: {e}"));
                    break;
                }
                assert_eq!(status(done), NV_ERR_OPERATING_SYSTEM, "{l4t:?}: {name}, call {n}");
                failures += 1;
                if n == 1 {
                    kernel.assert_held(
                        |census| census.files as u64,
                        before,
                        0,
                        "what the first call would have opened",
                    );
                }
            }
            assert_eq!(failures > 0, !WITHOUT_CALLS.contains(&case.cmd), "{l4t:?}: {name}: {failures} calls");
            kmd.count(CallKind::Any);
            t.b.s.close(&t.rm);
        }
    }
}
