//! Faults: who raised them, which notifier code they carry, how the log words them, and recovery.

use super::mem::Words;
use crate::kernel::hw::{Fault, HwChannel, HwTsg, NotifierCode, Place, SmError};
use crate::mm::{Access, FaultKind, MmuFault};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{SystemTime, UNIX_EPOCH};
use tegrarm_abi::layout::offset_of;
use tegrarm_abi::nvgpu::channel::nvgpu_notification;

/// A PBDMA interrupt (gpu-frontend §2.5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupt {
    /// 0 or 1: `PBDMA_INTR_0`, `PBDMA_INTR_1`.
    register: u8,
    bit: u8,
    name: &'static str,
    code: NotifierCode,
}

const fn intr(register: u8, bit: u8, name: &'static str) -> Interrupt {
    Interrupt { register, bit, name, code: NotifierCode::Pbdma }
}

pub(crate) const GPPTR: Interrupt = intr(0, 14, "gpptr");
pub(crate) const GPENTRY: Interrupt = intr(0, 15, "gpentry");
pub(crate) const GPCRC: Interrupt = intr(0, 16, "gpcrc");
pub(crate) const PBENTRY: Interrupt = intr(0, 18, "pbentry");
pub(crate) const PBCRC: Interrupt = Interrupt { code: NotifierCode::PushbufferCrc, ..intr(0, 19, "pbcrc") };
pub(crate) const METHOD: Interrupt = intr(0, 21, "method");
pub(crate) const DEVICE: Interrupt = intr(0, 23, "device");
pub(crate) const SEMAPHORE: Interrupt = intr(0, 25, "semaphore");
pub(crate) const ACQUIRE: Interrupt = Interrupt { code: NotifierCode::SemaphoreTimeout, ..intr(0, 26, "acquire") };
pub(crate) const PBSEG: Interrupt = intr(0, 30, "pbseg");
pub(crate) const HCE_RE_ILLEGAL_OP: Interrupt = intr(1, 0, "hce_re_illegal_op");
pub(crate) const HCE_RE_ALIGNB: Interrupt = intr(1, 1, "hce_re_alignb");
pub(crate) const HCE_PRIV: Interrupt = intr(1, 2, "hce_priv");
pub(crate) const HCE_ILLEGAL_MTHD: Interrupt = intr(1, 3, "hce_illegal_mthd");
pub(crate) const HCE_ILLEGAL_CLASS: Interrupt = intr(1, 4, "hce_illegal_class");

/// A unit that accesses memory through the MMU (gpu-frontend §9.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    name: &'static str,
    id: u32,
    /// Engine id of the fault entry; the graphics engine adds the VEID.
    engine: u32,
    gpc: bool,
}

const GRAPHICS: u32 = 64;

pub(crate) const HOST: Client = Client { name: "host", id: 6, engine: 32, gpc: false };
pub(crate) const COPY: Client = Client { name: "ce2", id: 0x18, engine: 15, gpc: false };
pub(crate) const FRONT_END: Client = Client { name: "fe", id: 4, engine: GRAPHICS, gpc: false };
pub(crate) const SKED: Client = Client { name: "sked", id: 0x1d, engine: GRAPHICS, gpc: false };
pub(crate) const SM: Client = Client { name: "t1_0", id: 0, engine: GRAPHICS, gpc: true };

fn plain(code: NotifierCode, text: String) -> Fault {
    Fault { code, mmu: None, sm: None, text }
}

/// A PBDMA interrupt.
pub(crate) fn pbdma(channel: &HwChannel, intr: Interrupt, what: impl std::fmt::Display) -> Fault {
    let Interrupt { register, bit, name, code } = intr;
    let mask = 1u32 << bit;
    let text = format!("pbdma id 0 intr_{register} 0x{mask:08x} ({name}), ch {}: {what}", channel.id);
    plain(code, text)
}

/// A graphics engine exception: class error, SKED, MEMFMT and the like.
pub(crate) fn graphics(channel: &HwChannel, what: impl std::fmt::Display) -> Fault {
    plain(NotifierCode::GrException, format!("gr exception, ch {} veid {}: {what}", channel.id, channel.veid))
}

/// A method the front end does not know, or one the kernel's handler rejects.
pub(crate) fn illegal_method(channel: &HwChannel, what: impl std::fmt::Display) -> Fault {
    plain(
        NotifierCode::IllegalMethod,
        format!("gr intr illegal method, ch {} veid {}: {what}", channel.id, channel.veid),
    )
}

/// A firmware method without a handler.
pub(crate) fn firmware_method(channel: &HwChannel, what: impl std::fmt::Display) -> Fault {
    plain(NotifierCode::FirmwareMethod, format!("fecs unimplemented firmware method, ch {}: {what}", channel.id))
}

/// A launch the copy engine rejects, with its report code (gpu-frontend §4.2).
pub(crate) fn copy_engine(channel: &HwChannel, report: u32, what: impl std::fmt::Display) -> Fault {
    plain(NotifierCode::CopyEngine, format!("ce launch error report {report:#x}, ch {}: {what}", channel.id))
}

/// A switch away from the channel's group that took too long.
pub(crate) fn switch_timeout(channel: &HwChannel, what: impl std::fmt::Display) -> Fault {
    plain(NotifierCode::IdleTimeout, format!("ctxsw timeout, tsg {} ch {}: {what}", channel.tsg.id, channel.id))
}

/// FORCE_RESET of a group.
pub(crate) fn forced_reset(tsg: &HwTsg) -> Fault {
    plain(NotifierCode::ResetChannel, format!("tsg {} reset by request", tsg.id))
}

/// An access of `client` that met no mapping, or one that forbids it.
pub(crate) fn mmu(channel: &HwChannel, client: Client, fault: MmuFault) -> Fault {
    let engine = client.engine + if client.engine == GRAPHICS { channel.veid } else { 0 };
    let kind = match fault.kind {
        FaultKind::Pde => "invalid pde",
        FaultKind::Pte => "invalid pte",
        FaultKind::VaLimit => "va limit violation",
        FaultKind::ReadOnly => "write, ro violation",
    };
    let access = match fault.access {
        Access::Read => "virt read",
        Access::Write => "virt write",
        Access::Atomic => "virt atomic strong",
        Access::Prefetch => "virt prefetch",
    };
    let side = if client.gpc { "gpc" } else { "hub" };
    let text = format!(
        "[MMU FAULT] mmu engine id: {engine}, ch id: {}, fault addr: {:#x}, fault type: {kind}, access type: {access}, \
         client type: {side}, client id: {} ({:#x})",
        channel.id, fault.va, client.name, client.id
    );
    Fault { code: NotifierCode::MmuFault, mmu: Some(fault), sm: None, text }
}

/// Puts a fault on record everywhere a program can see it. Semaphores stay as they are.
///
/// Order: SM record and first fault, then the error notifier of every channel of the group, then the mark
/// that stops them, so that whoever sees a dead channel finds its notifier written.
pub(crate) fn recover(tsg: &HwTsg, fault: &Fault) -> Vec<Arc<HwChannel>> {
    if let Some((sm, record)) = fault.sm {
        save_record(tsg, sm, record);
    }
    tsg.fault.lock().get_or_insert_with(|| fault.clone());
    let channels: Vec<_> = tsg.channels.lock().iter().filter_map(|c| c.upgrade()).collect();
    for channel in &channels {
        if let Some(place) = &*channel.notifier.lock() {
            notify(place, fault.code);
        }
    }
    for channel in &channels {
        channel.unserviceable.store(true, Ordering::Release);
    }
    channels
}

fn save_record(tsg: &HwTsg, sm: u32, record: SmError) {
    let mut records = tsg.sm_errors.lock();
    let at = sm as usize;
    if records.len() <= at {
        records.resize(at + 1, SmError::default());
    }
    records[at] = record;
}

/// Writes an error notifier, unless one is there already: the first error wins until its reader clears it.
fn notify(place: &Place, code: NotifierCode) {
    const STATUS: usize = offset_of!(nvgpu_notification, status);
    let words = Words(place);
    if words.load_u8(STATUS) == 0xff && words.load_u8(STATUS + 1) == 0xff {
        return;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64);
    let put = |offset: usize, bytes: &[u8]| {
        for (i, byte) in bytes.iter().enumerate() {
            words.store_u8(offset + i, *byte);
        }
    };
    put(offset_of!(nvgpu_notification, time_stamp_nanoseconds), &now.to_le_bytes());
    put(offset_of!(nvgpu_notification, info32), &(code as u32).to_le_bytes());
    fence(Ordering::SeqCst);
    put(STATUS, &[0xff, 0xff]);
}
