//! Tests what the library makes of answers that no virtual board gives: the answers of counters, and those of r39 about
//! credits.

use crate::common::board::releases;
use crate::common::*;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use tegra_sim::L4t;
use tegrarm_abi::layout::offset_of;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_b0cc::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{Arg, CallKind, Errno, Faulty, Kmd, Node};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// A board whose profiler has counters and credits.
struct Counting(Arc<Board>);

/// Changes an element of the array to which an argument of a call points. The address of the array is `at` bytes into
/// the argument.
#[allow(unsafe_code, reason = "a kernel reads and writes where the caller says")]
fn behind<T: FromBytes + IntoBytes + Clone>(args: &[u8], at: usize, index: usize, change: impl FnOnce(&mut T)) {
    let address = u64::from_le_bytes(args[at..at + 8].try_into().expect("eight bytes"));
    let place = (address as *mut T).wrapping_add(index);
    // SAFETY: the caller gave an address with room for that many elements, as it would give it to a kernel.
    let mut value = unsafe { place.read_unaligned() };
    change(&mut value);
    // SAFETY: the address is the one that was just read from.
    unsafe { place.write_unaligned(value) };
}

fn word(args: &mut [u8], at: usize) -> &mut [u8] {
    &mut args[at..at + 4]
}

impl Counting {
    fn answer(request: u32, args: &mut [u8]) -> bool {
        match request {
            NVGPU_PROFILER_IOCTL_EXEC_REG_OPS => {
                behind(args, offset_of!(nvgpu_profiler_exec_reg_ops_args, ops), 0, |op: &mut nvgpu_profiler_reg_op| {
                    // The answer is made from what came in, so that a test sees both directions.
                    (op.value, op.status) = (op.value.rotate_left(32) ^ op.and_n_mask, 0);
                });
                let flags =
                    NVGPU_PROFILER_EXEC_REG_OPS_ARG_FLAG_ALL_PASSED | NVGPU_PROFILER_EXEC_REG_OPS_ARG_FLAG_DIRECT_OPS;
                word(args, offset_of!(nvgpu_profiler_exec_reg_ops_args, flags)).copy_from_slice(&flags.to_le_bytes());
            }
            NVGPU_PROFILER_IOCTL_PMA_STREAM_UPDATE_GET_PUT => {
                let mut update =
                    nvgpu_profiler_pma_stream_update_get_put_args::read_from_bytes(args).expect("its size");
                update.bytes_available = 1000 - update.bytes_consumed;
                update.flags |= NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_OVERFLOW_TRIGGERED;
                args.copy_from_slice(update.as_bytes());
            }
            NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_POOLS_INFO => {
                let at = offset_of!(nvgpu_profiler_channel_get_pools_info_args, nvgpu_profiler_channel_pool_info_addr);
                for (index, (kind, credits)) in [(0u8, 100u16), (1, 28), (2, 4)].into_iter().enumerate() {
                    behind(args, at, index, |pool: &mut nvgpu_profiler_channel_pool_info| {
                        (pool.chiplet_type, pool.total_num_credits, pool.pool_index) = (kind, credits, index as u8);
                    });
                }
                let count = offset_of!(nvgpu_profiler_channel_get_pools_info_args, num_pool_entries);
                word(args, count).copy_from_slice(&3u32.to_le_bytes());
            }
            NVGPU_PROFILER_IOCTL_SET_PMA_STREAM_HS_CREDIT => {
                let at = offset_of!(nvgpu_profiler_channel_set_hs_credit_args, set_credit_buf_addr);
                let count = offset_of!(nvgpu_profiler_channel_set_hs_credit_args, credit_buf_count);
                let count = u32::from_le_bytes(word(args, count).try_into().expect("four bytes"));
                for index in 0..count as usize {
                    behind(args, at, index, |entry: &mut nvgpu_profiler_channel_set_credit_buf| {
                        entry.set_credit_response = match (entry.num_credits, entry.chiplet_index, entry.chiplet_type) {
                            (101.., _, _) => NVGPU_PROFILER_CHANNEL_SET_CREDIT_INVALID_CREDITS,
                            (_, 2.., 0) => NVGPU_PROFILER_CHANNEL_SET_CREDIT_INVALID_CHIPLET_INDEX,
                            _ => NVGPU_PROFILER_CHANNEL_SET_CREDIT_SUCCESS,
                        } as u8;
                    });
                }
            }
            _ => return false,
        }
        true
    }
}

impl Kmd for Counting {
    tegrarm_kmd::forward!(0: name, open, mmap, own_view, close, read_text, write_text);

    fn is_simulated(&self) -> bool {
        true
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        match arg {
            Arg::Bytes(args) if node == Node::Profiler => {
                if Counting::answer(request, args) {
                    return Ok(0);
                }
                self.0.ioctl(fd, node, request, Arg::Bytes(args))
            }
            arg => self.0.ioctl(fd, node, request, arg),
        }
    }
}

/// A client, and a profiler of no context.
fn profiler(l4t: L4t) -> (tegrarm::rm::Rm, Session, u32) {
    profiler_over(Arc::new(Counting(board(l4t))))
}

fn profiler_over(kmd: Arc<dyn Kmd>) -> (tegrarm::rm::Rm, Session, u32) {
    let rm = manager(kmd);
    let s = Session::open(&rm).unwrap();
    let mut p = NVB2CC_ALLOC_PARAMETERS::new_zeroed();
    let profiler = rm.make_with(s.client, s.subdevice, MAXWELL_PROFILER_DEVICE, &mut p).unwrap();
    (rm, s, profiler)
}

#[test]
fn halves_of_registers_keep_their_places() {
    let (rm, s, profiler) = profiler(default_release());
    let mut p = NVB0CC_CTRL_EXEC_REG_OPS_PARAMS::new_zeroed();
    (p.regOpCount, p.mode) = (1, NVB0CC_REGOPS_MODE_CONTINUE_ON_ERROR);
    let op = &mut p.regOps[0];
    (op.regValueHi, op.regValueLo, op.regAndNMaskHi, op.regAndNMaskLo, op.regStatus) = (0x11, 0x22, 0x100, 0x200, 9);
    rm.ask(s.client, profiler, NVB0CC_CTRL_CMD_EXEC_REG_OPS, &mut p).unwrap();
    let op = &p.regOps[0];
    assert_eq!((op.regValueHi, op.regValueLo, op.regStatus), (0x122, 0x211, 0));
    assert_eq!((p.bPassed, p.bDirect), (1, 1));
    s.close(&rm);
}

#[test]
fn records_are_told_and_so_is_their_loss() {
    let (rm, s, profiler) = profiler(default_release());
    let mut p = NVB0CC_CTRL_PMA_STREAM_UPDATE_GET_PUT_PARAMS::new_zeroed();
    (p.bytesConsumed, p.bUpdateAvailableBytes, p.bWait) = (400, 1, 1);
    rm.ask(s.client, profiler, NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT, &mut p).unwrap();
    assert_eq!((p.bytesAvailable, p.bOverflowStatus), (600, 1));
    s.close(&rm);
}

#[test]
fn credits_of_r39_are_those_of_rm() {
    // The nodes of a machine with another release have no r39 that could be asked.
    for l4t in releases(&[L4t::R39]) {
        let (rm, s, profiler) = profiler(l4t);
        let mut total = NVB0CC_CTRL_GET_TOTAL_HS_CREDITS_PARAMS::new_zeroed();
        rm.ask(s.client, profiler, NVB0CC_CTRL_CMD_GET_TOTAL_HS_CREDITS, &mut total).unwrap();
        assert_eq!(total.numCredits, 132);
        let mut pools = NVB0CC_CTRL_GET_CHIPLET_HS_CREDIT_POOL::new_zeroed();
        rm.ask(s.client, profiler, NVB0CC_CTRL_CMD_GET_CHIPLET_HS_CREDIT_POOL, &mut pools).unwrap();
        let found: Vec<_> = pools.poolInfos[..pools.poolInfosCount as usize]
            .iter()
            .map(|pool| (u32::from(pool.chipletType), pool.numCredits, pool.poolIndex))
            .collect();
        let wanted =
            [(NVB0CC_CHIPLET_TYPE_GPC, 100, 0), (NVB0CC_CHIPLET_TYPE_FBP, 28, 1), (NVB0CC_CHIPLET_TYPE_SYS, 4, 2)];
        assert_eq!(found, wanted);
        // The status of each request, and the index of the first entry that was refused.
        for (entries, answer) in [
            (
                vec![(NVB0CC_CHIPLET_TYPE_GPC, 0, 4), (NVB0CC_CHIPLET_TYPE_GPC, 1, 4)],
                (NVB0CC_HS_CREDITS_CMD_STATUS_OK, 0),
            ),
            (
                vec![(NVB0CC_CHIPLET_TYPE_FBP, 3, 4), (NVB0CC_CHIPLET_TYPE_GPC, 2, 4)],
                (NVB0CC_HS_CREDITS_CMD_STATUS_INVALID_CHIPLET, 1),
            ),
            (vec![(NVB0CC_CHIPLET_TYPE_SYS, 0, 101)], (NVB0CC_HS_CREDITS_CMD_STATUS_INVALID_CREDITS, 0)),
        ] {
            let mut set = NVB0CC_CTRL_SET_HS_CREDITS_PARAMS::new_zeroed();
            set.numEntries = entries.len() as u8;
            for (to, (kind, index, credits)) in set.creditInfo.iter_mut().zip(entries) {
                (to.chipletType, to.chipletIndex, to.numCredits) = (kind as u8, index, credits);
            }
            rm.ask(s.client, profiler, NVB0CC_CTRL_CMD_SET_HS_CREDITS, &mut set).unwrap();
            assert_eq!((u32::from(set.statusInfo.status), set.statusInfo.entryIndex), answer);
        }
        s.close(&rm);
    }
}

/// r36 is never asked, because the number of the ioctl would mean something else there, or nothing.
#[test]
fn credits_are_not_asked_of_a_kernel_before_r39() {
    let (rm, s, profiler) = profiler(L4t::R36);
    let mut total = NVB0CC_CTRL_GET_TOTAL_HS_CREDITS_PARAMS::new_zeroed();
    let refused = rm.ask(s.client, profiler, NVB0CC_CTRL_CMD_GET_TOTAL_HS_CREDITS, &mut total);
    assert_eq!(status(refused), NV_ERR_NOT_SUPPORTED);
    s.close(&rm);
}

/// `tests/profiling/controls.rs` has the failures of the other controls, which virtual boards answer.
#[test]
fn a_failure_about_credits_is_told_and_changes_nothing() {
    for l4t in releases(&[L4t::R39]) {
        let kmd = Arc::new(Faulty::new(Arc::new(Counting(board(l4t)))));
        let (rm, s, profiler) = profiler_over(kmd.clone());
        let mut set = NVB0CC_CTRL_SET_HS_CREDITS_PARAMS::new_zeroed();
        (set.numEntries, set.creditInfo[0].chipletType) = (1, NVB0CC_CHIPLET_TYPE_GPC as u8);
        let total = NVB0CC_CTRL_GET_TOTAL_HS_CREDITS_PARAMS::new_zeroed().as_bytes().to_vec();
        let pools = NVB0CC_CTRL_GET_CHIPLET_HS_CREDIT_POOL::new_zeroed().as_bytes().to_vec();
        for (cmd, params) in [
            (NVB0CC_CTRL_CMD_GET_TOTAL_HS_CREDITS, total),
            (NVB0CC_CTRL_CMD_GET_CHIPLET_HS_CREDIT_POOL, pools),
            (NVB0CC_CTRL_CMD_SET_HS_CREDITS, set.as_bytes().to_vec()),
        ] {
            for (errno, wanted) in [(Errno::EIO, NV_ERR_OPERATING_SYSTEM), (Errno::ENOTTY, NV_ERR_NOT_SUPPORTED)] {
                let mut bytes = params.clone();
                kmd.arm(CallKind::Any, 1, errno);
                let told = rm.tell(s.client, profiler, cmd, &mut bytes);
                assert!(kmd.fired(), "{cmd:#x} makes a call");
                assert_eq!(status(told), wanted, "{cmd:#x}");
                assert!(bytes == params, "{cmd:#x}: a control that fails writes nothing");
                rm.tell(s.client, profiler, cmd, &mut bytes).unwrap();
            }
        }
        kmd.count(CallKind::Any);
        s.close(&rm);
    }
}
