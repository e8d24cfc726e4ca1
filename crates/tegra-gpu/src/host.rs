//! Host methods: semaphores, memory operations and waits (docs/hardware/gpu-host-methods.md#host-method-table).

use super::between::Acquired;
use super::clock::host_ns;
use super::fault::{self, ACQUIRE, METHOD, SEMAPHORE};
use super::mem::{Accessor, Words};
use super::semaphore::{self, Condition, Op, Reduction, Release};
use super::trace::Event;
use super::turn::{Flow, Turn};
use std::sync::atomic::Ordering;
use tegra_hw::{Awakening, Fault};
use tegrarm_abi::layout::offset_of;
use tegrarm_abi::methods::host::*;
use tegrarm_abi::rm::usermode::AmpereAControlGPFifo as Userd;

/// A second YIELD operation that does nothing (GA100 PBDMA manual).
const YIELD_OP_NOP1: u32 = 1;
/// A MEM_OP_D operation that class C76F adds (docs/hardware/gpu-host-methods.md#mem-op).
const MMU_OPERATION: u32 = 0xb;

/// The host's registers. They keep their values from one pushbuffer to the next.
#[derive(Debug, Default)]
pub(crate) struct Host {
    address: u64,
    payload: u64,
    /// The values of MEM_OP_A, B and C.
    mem_op: [u32; 3],
    /// The time since which the current acquire fails.
    waiting_since: Option<u64>,
}

impl Host {
    fn set_low(word: &mut u64, value: u32) {
        *word = *word & !0xffff_ffff | u64::from(value);
    }

    fn set_high(word: &mut u64, value: u32) {
        *word = *word & 0xffff_ffff | u64::from(value) << 32;
    }

    /// Executes one of the first methods, which belong to the host on every subchannel.
    pub(crate) fn method(&mut self, turn: &Turn<'_>, offset: u32, data: u32) -> Result<Flow, Fault> {
        match offset {
            // The engine is idle whenever the host runs, because launches and copies end before the next method.
            // Flushes and waits therefore have nothing left to do.
            NVC56F_NOP | NVC56F_FB_FLUSH | NVC56F_WFI => {}
            NVC56F_NON_STALL_INTERRUPT => turn.awaken(Awakening::NonStall),
            NVC56F_MEM_OP_A => self.mem_op[0] = data,
            NVC56F_MEM_OP_B => self.mem_op[1] = data,
            NVC56F_MEM_OP_C => self.mem_op[2] = data,
            NVC56F_MEM_OP_D => return mem_op(turn, NVC56F_MEM_OP_D_OPERATION.of(data)),
            NVC56F_SET_REFERENCE => Words(&turn.hw.userd).store_u32(offset_of!(Userd, Reference), data),
            NVC56F_SEM_ADDR_LO => Host::set_low(&mut self.address, data & NVC56F_SEM_ADDR_LO_OFFSET.put(u32::MAX)),
            NVC56F_SEM_ADDR_HI => Host::set_high(&mut self.address, NVC56F_SEM_ADDR_HI_OFFSET.of(data)),
            NVC56F_SEM_PAYLOAD_LO => Host::set_low(&mut self.payload, data),
            NVC56F_SEM_PAYLOAD_HI => Host::set_high(&mut self.payload, data),
            NVC56F_SEM_EXECUTE => return self.semaphore(turn, data),
            NVC56F_YIELD if matches!(NVC56F_YIELD_OP.of(data), NVC56F_YIELD_OP_NOP | YIELD_OP_NOP1) => {}
            NVC56F_YIELD => return Ok(Flow::Yield),
            _ => turn
                .interrupt(METHOD, format_args!("host method {offset:#x} (data {data:#x}) is not one of class C76F"))?,
        }
        Ok(Flow::Done)
    }

    fn semaphore(&mut self, turn: &Turn<'_>, execute: u32) -> Result<Flow, Fault> {
        let condition = match NVC56F_SEM_EXECUTE_OPERATION.of(execute) {
            NVC56F_SEM_EXECUTE_OPERATION_ACQUIRE => Condition::Equal,
            NVC56F_SEM_EXECUTE_OPERATION_ACQ_STRICT_GEQ => Condition::StrictGreaterEqual,
            NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ => Condition::CircularGreaterEqual,
            NVC56F_SEM_EXECUTE_OPERATION_ACQ_AND => Condition::And,
            NVC56F_SEM_EXECUTE_OPERATION_ACQ_NOR => Condition::Nor,
            NVC56F_SEM_EXECUTE_OPERATION_RELEASE | NVC56F_SEM_EXECUTE_OPERATION_REDUCTION => {
                return self.release(turn, execute);
            }
            op => return self.illegal(turn, format_args!("operation {op} does not exist")),
        };
        self.acquire(turn, condition, wide(execute))
    }

    fn acquire(&mut self, turn: &Turn<'_>, condition: Condition, wide: bool) -> Result<Flow, Fault> {
        let (va, payload) = (self.address, self.payload);
        if wide && !va.is_multiple_of(8) {
            return self.illegal(turn, "a 64-bit acquire needs an 8-byte aligned address");
        }
        let table = turn.table();
        let value = semaphore::read(&Accessor::new(&table), va, wide).map_err(turn.mmu(fault::HOST))?;
        if condition.holds(value, payload, wide) {
            self.waiting_since = None;
            if let Some(queues) = turn.queues() {
                queues.acquires(turn.hw, &table, Acquired { va, value, condition, payload, wide });
            }
            turn.semaphore(va, "acquired", payload);
            return Ok(Flow::Done);
        }
        let now = host_ns();
        let since = *self.waiting_since.get_or_insert_with(|| {
            turn.trace.emit(|| Event::Blocked { channel: turn.hw.id, va, payload });
            now
        });
        let limit = &turn.hw.acquire_timeout_ms;
        let limit_ms = limit.load(Ordering::Acquire);
        if limit_ms != 0 && now.saturating_sub(since) > u64::from(limit_ms) * 1_000_000 {
            // The kernel switches the timeout off first and asks afterwards whether a debugger wants no timeouts.
            limit.store(0, Ordering::Release);
            if turn.hw.tsg.gpu.timeouts.are_on() {
                let what = format!("acquire of {payload:#x} at {va:#x} finds {value:#x} after {limit_ms} ms");
                turn.interrupt(ACQUIRE, what)?;
            }
        }
        Ok(Flow::Again(false))
    }

    /// Performs a RELEASE or a REDUCTION. The wait for idle before it (RELEASE_WFI) needs no code, because the engine
    /// is idle.
    fn release(&mut self, turn: &Turn<'_>, execute: u32) -> Result<Flow, Fault> {
        let (va, payload, wide) = (self.address, self.payload, wide(execute));
        let stamped = NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP.of(execute) == NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP_EN;
        let align = if stamped {
            16
        } else if wide {
            8
        } else {
            4
        };
        if !va.is_multiple_of(align) {
            return self.illegal(turn, format_args!("this release needs an address aligned to {align}"));
        }
        let reduction = match NVC56F_SEM_EXECUTE_OPERATION.of(execute) {
            NVC56F_SEM_EXECUTE_OPERATION_REDUCTION => match reduction(execute, wide) {
                Ok(reduction) => Some(reduction),
                Err(what) => return self.illegal(turn, what),
            },
            _ => None,
        };
        let release = Release { va, payload, wide, timestamp: stamped.then(|| turn.ptimer.stamp()), reduction };
        let table = turn.table();
        if let Some(queues) = turn.queues() {
            queues.releases(turn.hw, &table, &release);
        }
        let mem = Accessor::new(&table);
        if mem.increment_syncpoint(va) {
            turn.hw.tsg.gpu.interrupts.raise();
        } else {
            release.perform(&mem).map_err(turn.mmu(fault::HOST))?;
        }
        turn.semaphore(va, if reduction.is_some() { "reduced" } else { "released" }, payload);
        Ok(Flow::Done)
    }

    /// Raises the interrupt for a semaphore operation that does not exist. The channel stays at this method.
    fn illegal(&self, turn: &Turn<'_>, what: impl std::fmt::Display) -> Result<Flow, Fault> {
        let Host { address, payload, .. } = *self;
        let what = format!("semaphore {address:#x}, payload {payload:#x}: {what}");
        turn.interrupt(SEMAPHORE, what).map(|()| Flow::Halt)
    }
}

/// The reduction that a word asks for. The error says why it does not exist.
fn reduction(execute: u32, wide: bool) -> Result<Reduction, String> {
    let code = NVC56F_SEM_EXECUTE_REDUCTION.of(execute);
    let signed = NVC56F_SEM_EXECUTE_REDUCTION_FORMAT.of(execute) == NVC56F_SEM_EXECUTE_REDUCTION_FORMAT_SIGNED;
    let reduction = Op::from_host(code).map(|op| Reduction { op, signed });
    reduction.filter(|r| r.legal_for_host(wide)).ok_or_else(|| {
        let bits = if wide { 64 } else { 32 };
        let sign = if signed { "signed" } else { "unsigned" };
        format!("reduction {code} on {bits} bits {sign} does not exist")
    })
}

fn wide(execute: u32) -> bool {
    NVC56F_SEM_EXECUTE_PAYLOAD_SIZE.of(execute) == NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT
}

/// Executes MEM_OP. Memory is coherent here, so the operations that an unprivileged channel may ask for have nothing to
/// do.
fn mem_op(turn: &Turn<'_>, operation: u32) -> Result<Flow, Fault> {
    let refused = match operation {
        NVC56F_MEM_OP_D_OPERATION_MEMBAR
        | MMU_OPERATION
        | NVC56F_MEM_OP_D_OPERATION_L2_PEERMEM_INVALIDATE
        | NVC56F_MEM_OP_D_OPERATION_L2_SYSMEM_INVALIDATE
        | NVC56F_MEM_OP_D_OPERATION_L2_CLEAN_COMPTAGS
        | NVC56F_MEM_OP_D_OPERATION_L2_FLUSH_DIRTY
        | NVC56F_MEM_OP_D_OPERATION_L2_WAIT_FOR_SYS_PENDING_READS => return Ok(Flow::Done),
        NVC56F_MEM_OP_D_OPERATION_MMU_TLB_INVALIDATE
        | NVC56F_MEM_OP_D_OPERATION_MMU_TLB_INVALIDATE_TARGETED
        | NVC56F_MEM_OP_D_OPERATION_ACCESS_COUNTER_CLR => "needs a privileged channel",
        _ => "does not exist",
    };
    turn.interrupt(METHOD, format_args!("MEM_OP {operation:#x} {refused}")).map(|()| Flow::Done)
}
