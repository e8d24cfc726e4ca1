//! Faults: the unit that raised them, their notifier codes and their sentences in the log.

use tegra_hw::{Fault, HwChannel, NotifierCode, SmError};
use tegra_mm::{Access, FaultKind, MmuFault};

/// A PBDMA interrupt (docs/hardware/gpu-pushbuffer.md#pbdma-interrupts).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupt {
    /// The register: 0 for `PBDMA_INTR_0`, 1 for `PBDMA_INTR_1`.
    register: u8,
    bit: u8,
    name: &'static str,
    code: NotifierCode,
    /// True if every release of nvgpu recovers from the interrupt. r36 decides to recover from some interrupts but then
    /// overwrites this decision with the answer to "is it an acquire timeout?" (pbdma_ga10b_fusa.c).
    pub(crate) recovered: bool,
}

const fn intr(register: u8, bit: u8, name: &'static str) -> Interrupt {
    Interrupt { register, bit, name, code: NotifierCode::Pbdma, recovered: true }
}

const fn only_logged(intr: Interrupt) -> Interrupt {
    Interrupt { recovered: false, ..intr }
}

pub(crate) const GPPTR: Interrupt = only_logged(intr(0, 14, "gpptr"));
pub(crate) const GPENTRY: Interrupt = only_logged(intr(0, 15, "gpentry"));
pub(crate) const GPCRC: Interrupt = only_logged(intr(0, 16, "gpcrc"));
pub(crate) const PBENTRY: Interrupt = intr(0, 18, "pbentry");
pub(crate) const PBCRC: Interrupt = Interrupt { code: NotifierCode::PushbufferCrc, ..intr(0, 19, "pbcrc") };
pub(crate) const METHOD: Interrupt = intr(0, 21, "method");
pub(crate) const DEVICE: Interrupt = intr(0, 23, "device");
pub(crate) const SEMAPHORE: Interrupt = only_logged(intr(0, 25, "semaphore"));
pub(crate) const ACQUIRE: Interrupt = Interrupt { code: NotifierCode::SemaphoreTimeout, ..intr(0, 26, "acquire") };
pub(crate) const PBSEG: Interrupt = only_logged(intr(0, 30, "pbseg"));
pub(crate) const HCE_RE_ILLEGAL_OP: Interrupt = intr(1, 0, "hce_re_illegal_op");
pub(crate) const HCE_RE_ALIGNB: Interrupt = intr(1, 1, "hce_re_alignb");
pub(crate) const HCE_PRIV: Interrupt = intr(1, 2, "hce_priv");
pub(crate) const HCE_ILLEGAL_MTHD: Interrupt = intr(1, 3, "hce_illegal_mthd");
pub(crate) const HCE_ILLEGAL_CLASS: Interrupt = intr(1, 4, "hce_illegal_class");

const INTERRUPTS: [Interrupt; 15] = [
    GPPTR,
    GPENTRY,
    GPCRC,
    PBENTRY,
    PBCRC,
    METHOD,
    DEVICE,
    SEMAPHORE,
    ACQUIRE,
    PBSEG,
    HCE_RE_ILLEGAL_OP,
    HCE_RE_ALIGNB,
    HCE_PRIV,
    HCE_ILLEGAL_MTHD,
    HCE_ILLEGAL_CLASS,
];

/// What a unit reports when the work of a channel fails. Tests report it without work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The host, the copy engine, the front end, the unit SKED, an SM or the instruction cache, in this order from 0, has no
    /// translation for an address.
    Mmu(usize, MmuFault),
    /// An exception of an SM, with its index and its record.
    Sm(u32, SmError),
    /// An exception of another part of the graphics engine, or a class error.
    Graphics,
    /// A method that nobody knows.
    Method,
    /// A method of the firmware without a handler.
    FirmwareMethod,
    /// The interrupt of a PBDMA: its register, and its bit there.
    Pbdma(u8, u8),
    /// The group has kept the engine from another one for so many milliseconds.
    Switch(u32),
    /// A launch that the copy engine rejects, with its report.
    Copy(u32),
    /// The group does not leave its engine while the kernel waits for the end of a preemption. The kernel gives up, and nothing else
    /// happens.
    Preemption,
}

impl Failure {
    /// The fault that the kernel hears of, and whether it recovers in all releases. `None` if there is none: no such interrupt
    /// exists, or the time is not over.
    pub(crate) fn of(self, channel: &HwChannel) -> Option<(Fault, bool)> {
        let fault = match self {
            Failure::Mmu(client, fault) => mmu(channel, *CLIENTS.get(client)?, fault),
            Failure::Sm(sm, record) => Fault { sms: vec![(sm, record)], ..graphics(channel, "sm machine check err") },
            Failure::Graphics => graphics(channel, "exception"),
            Failure::Method => illegal_method(channel, "method"),
            Failure::FirmwareMethod => firmware_method(channel, "method"),
            Failure::Pbdma(register, bit) => {
                let intr = INTERRUPTS.into_iter().find(|intr| (intr.register, intr.bit) == (register, bit))?;
                return Some((pbdma(channel, intr, "interrupt"), intr.recovered));
            }
            Failure::Preemption => return None,
            Failure::Switch(ms) if u64::from(ms) * 1_000_000 <= channel.tsg.ctxsw_timeout_ns() => return None,
            Failure::Switch(ms) => switch_timeout(channel, format_args!("{ms} ms")),
            Failure::Copy(report) => copy_engine(channel, report, "launch"),
        };
        Some((fault, true))
    }
}

/// A unit that accesses memory through the MMU (docs/hardware/gpu-faults.md#fault-types).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    name: &'static str,
    id: u32,
    /// The engine id in the fault's entry. The graphics engine adds the VEID.
    engine: u32,
    gpc: bool,
}

const GRAPHICS: u32 = 64;

pub(crate) const HOST: Client = Client { name: "host", id: 6, engine: 32, gpc: false };
pub(crate) const COPY: Client = Client { name: "ce2", id: 0x18, engine: 15, gpc: false };
pub(crate) const FRONT_END: Client = Client { name: "fe", id: 4, engine: GRAPHICS, gpc: false };
pub(crate) const SKED: Client = Client { name: "sked", id: 0x1d, engine: GRAPHICS, gpc: false };
pub(crate) const SM: Client = Client { name: "t1_0", id: 0, engine: GRAPHICS, gpc: true };
/// The instruction cache.
pub(crate) const CODE: Client = Client { name: "gcc", id: 0x11, engine: GRAPHICS, gpc: true };
const CLIENTS: [Client; 6] = [HOST, COPY, FRONT_END, SKED, SM, CODE];

fn plain(code: NotifierCode, text: String) -> Fault {
    Fault { code, mmu: None, sms: Vec::new(), text, insight: None }
}

/// A PBDMA interrupt.
pub(crate) fn pbdma(channel: &HwChannel, intr: Interrupt, what: impl std::fmt::Display) -> Fault {
    let Interrupt { register, bit, name, code, .. } = intr;
    let mask = 1u32 << bit;
    let text = format!("pbdma id 0 intr_{register} 0x{mask:08x} ({name}), ch {}: {what}", channel.id);
    plain(code, text)
}

/// An exception of the graphics engine, for example a class error, SKED or MEMFMT.
pub(crate) fn graphics(channel: &HwChannel, what: impl std::fmt::Display) -> Fault {
    plain(NotifierCode::GrException, format!("gr exception, ch {} veid {}: {what}", channel.id, channel.veid))
}

/// A method that the front end does not know, or one that the kernel's handler rejects.
pub(crate) fn illegal_method(channel: &HwChannel, what: impl std::fmt::Display) -> Fault {
    plain(
        NotifierCode::IllegalMethod,
        format!("gr intr illegal method, ch {} veid {}: {what}", channel.id, channel.veid),
    )
}

/// A firmware method that has no handler.
pub(crate) fn firmware_method(channel: &HwChannel, what: impl std::fmt::Display) -> Fault {
    plain(NotifierCode::FirmwareMethod, format!("fecs unimplemented firmware method, ch {}: {what}", channel.id))
}

/// A launch that the copy engine rejects, with its report code (docs/hardware/gpu-copy-engine.md#launch-dma).
pub(crate) fn copy_engine(channel: &HwChannel, report: u32, what: impl std::fmt::Display) -> Fault {
    plain(NotifierCode::CopyEngine, format!("ce launch error report {report:#x}, ch {}: {what}", channel.id))
}

/// A switch to another group that took too long.
pub(crate) fn switch_timeout(channel: &HwChannel, what: impl std::fmt::Display) -> Fault {
    plain(NotifierCode::IdleTimeout, format!("ctxsw timeout, tsg {} ch {}: {what}", channel.tsg.id, channel.id))
}

/// A panic of the simulator.
pub(crate) fn machine_bug(channel: &HwChannel, panic: &(dyn std::any::Any + Send)) -> Fault {
    let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    graphics(channel, format_args!("bug of the virtual GPU, please report it: {}", said.unwrap_or("no message")))
}

/// An access of `client` to an address that has no mapping, or whose mapping forbids the access.
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
    Fault { code: NotifierCode::MmuFault, mmu: Some(fault), sms: Vec::new(), text, insight: None }
}
