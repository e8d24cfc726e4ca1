//! Faults: the unit that raised them, their notifier codes and their sentences in the log.

use super::config::GpuConfig;
use tegra_hw::{Fault, HwChannel, NotifierCode, SmError};
use tegra_mm::{Access, FaultKind, MmuFault};

/// A PBDMA interrupt (docs/hardware/gpu-pushbuffer.md#pbdma-interrupts).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupt {
    /// The register: 0 for `PBDMA_INTR_0`, 1 for `PBDMA_INTR_1`.
    register: u8,
    bit: u8,
    name: &'static str,
    /// What the driver calls it in the log. It has one name for all interrupts of the second register.
    called: &'static str,
    code: NotifierCode,
    /// True if every release of nvgpu recovers from the interrupt. r36 decides to recover from some interrupts but then
    /// overwrites this decision with the answer to "is it an acquire timeout?" (pbdma_ga10b_fusa.c).
    pub(crate) recovered: bool,
}

const fn intr(bit: u8, name: &'static str, called: &'static str) -> Interrupt {
    Interrupt { register: 0, bit, name, called, code: NotifierCode::Pbdma, recovered: true }
}

const fn hce(bit: u8, name: &'static str) -> Interrupt {
    Interrupt { register: 1, ..intr(bit, name, "hce err") }
}

const fn only_logged(intr: Interrupt) -> Interrupt {
    Interrupt { recovered: false, ..intr }
}

pub(crate) const GPPTR: Interrupt = only_logged(intr(14, "gpptr", "PBDMA intr GPPTR invalid Error"));
pub(crate) const GPENTRY: Interrupt = only_logged(intr(15, "gpentry", "PBDMA intr GPENTRY invalid Error"));
pub(crate) const GPCRC: Interrupt = only_logged(intr(16, "gpcrc", "PBDMA intr GPCRC mismatch Error"));
pub(crate) const PBENTRY: Interrupt = intr(18, "pbentry", "PBDMA intr PBENTRY invld Error");
pub(crate) const PBCRC: Interrupt =
    Interrupt { code: NotifierCode::PushbufferCrc, ..intr(19, "pbcrc", "PBDMA intr PBCRC mismatch Error") };
pub(crate) const METHOD: Interrupt = intr(21, "method", "PBDMA intr METHOD invld Error");
pub(crate) const DEVICE: Interrupt = intr(23, "device", "PBDMA intr DEVICE sw method Error");
pub(crate) const SEMAPHORE: Interrupt = only_logged(intr(25, "semaphore", "PBDMA intr SEMAPHORE invlid Error"));
pub(crate) const ACQUIRE: Interrupt =
    Interrupt { code: NotifierCode::SemaphoreTimeout, ..intr(26, "acquire", "semaphore acquire timeout!") };
pub(crate) const PBSEG: Interrupt = only_logged(intr(30, "pbseg", "PBDMA intr PBSEG badsplit Error"));
pub(crate) const HCE_RE_ILLEGAL_OP: Interrupt = hce(0, "hce_re_illegal_op");
pub(crate) const HCE_RE_ALIGNB: Interrupt = hce(1, "hce_re_alignb");
pub(crate) const HCE_PRIV: Interrupt = hce(2, "hce_priv");
pub(crate) const HCE_ILLEGAL_MTHD: Interrupt = hce(3, "hce_illegal_mthd");
pub(crate) const HCE_ILLEGAL_CLASS: Interrupt = hce(4, "hce_illegal_class");

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
    /// An interrupt of the graphics engine, and its register of exceptions (hw_gr_ga10b.h).
    Graphics(u32, u32),
    /// The interrupt of a PBDMA: its register, and its bit there.
    Pbdma(u8, u8),
    /// The group keeps the engine from another one, and so many interrupts say so.
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
    pub(crate) fn of(self, channel: &HwChannel, config: &GpuConfig) -> Option<(Fault, bool)> {
        let fault = match self {
            Failure::Mmu(client, fault) => mmu(channel, *CLIENTS.get(client)?, fault),
            Failure::Sm(sm, record) => {
                let what = sm_exception(config, sm, &record);
                Fault { sms: vec![(sm, record)], ..graphics(channel, what) }
            }
            Failure::Graphics(interrupt, exception) => {
                return Some((of_interrupt(channel, interrupt, exception)?, true));
            }
            Failure::Pbdma(register, bit) => {
                let intr = INTERRUPTS.into_iter().find(|intr| (intr.register, intr.bit) == (register, bit))?;
                return Some((pbdma(channel, intr, "interrupt"), intr.recovered));
            }
            Failure::Preemption => return None,
            Failure::Switch(times) => {
                let ms = (0..times).find_map(|_| channel.tsg.stalled(STALL_MS))?;
                Fault { text: format!("{} ms={ms}", switch_text(channel)), ..switch_timeout(channel, "") }
            }
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
    /// The GPC, if the client is in one.
    gpc: Option<u32>,
}

impl Client {
    /// The same unit of another GPC.
    pub(crate) fn in_gpc(self, gpc: u32) -> Client {
        Client { gpc: Some(gpc), ..self }
    }
}

/// How often the hardware interrupts while a context switch is stalled, in milliseconds.
pub(crate) const STALL_MS: u32 = 100;

const GRAPHICS: u32 = 64;

// The names are those of the driver's tables.
pub(crate) const HOST: Client = Client { name: "host", id: 6, engine: 32, gpc: None };
pub(crate) const COPY: Client = Client { name: "grcopy/ce2", id: 0x18, engine: 15, gpc: None };
pub(crate) const FRONT_END: Client = Client { name: "fe0/fe", id: 4, engine: GRAPHICS, gpc: None };
pub(crate) const SKED: Client = Client { name: "sked0/sked", id: 0x1d, engine: GRAPHICS, gpc: None };
pub(crate) const SM: Client = Client { name: "t1_0", id: 0, engine: GRAPHICS, gpc: Some(0) };
/// The instruction cache.
pub(crate) const CODE: Client = Client { name: "gcc", id: 0x11, engine: GRAPHICS, gpc: Some(0) };
const CLIENTS: [Client; 6] = [HOST, COPY, FRONT_END, SKED, SM, CODE];

fn plain(code: NotifierCode, text: String) -> Fault {
    Fault { code, mmu: None, sms: Vec::new(), text, insight: None }
}

/// A PBDMA interrupt. Each runlist has one PBDMA.
pub(crate) fn pbdma(channel: &HwChannel, intr: Interrupt, what: impl std::fmt::Display) -> Fault {
    let Interrupt { register, bit, name, called, code, .. } = intr;
    let (id, mask) = (channel.runlist, 1u32 << bit);
    let text = if register == 0 {
        format!("pbdma_intr_0({id})= {mask:#010x} ({name}), {called}, ch {}: {what}", channel.id)
    } else {
        format!("{called}: pbdma_intr_{register}({id}):{mask:#010x} ({name}), ch {}: {what}", channel.id)
    };
    plain(code, text)
}

/// The exceptions of the graphics engine that are no SM's: the bit, and the driver's words.
const EXCEPTIONS: [(u32, &str); 8] = [
    (0, "fe exception"),
    (1, MEMFMT),
    (2, "pd exception"),
    (3, "scc exception"),
    (4, "ds exception"),
    (7, "mme exception"),
    (8, SKED_EXCEPTION),
    (9, MME_FE1),
];
pub(crate) const MEMFMT: &str = "memfmt exception";
pub(crate) const SKED_EXCEPTION: &str = "sked exception";
pub(crate) const MME_FE1: &str = "mme_fe1 exception";

/// The interrupts of the graphics engine that stop a channel (hw_gr_ga10b.h: `gr_intr_…_pending_f`).
mod gr_intr {
    pub(super) const ILLEGAL_METHOD: u32 = 0x10;
    pub(super) const FIRMWARE_METHOD: u32 = 0x100;
    pub(super) const FECS_ERROR: u32 = 0x8_0000;
    pub(super) const CLASS_ERROR: u32 = 0x10_0000;
    pub(super) const EXCEPTION: u32 = 0x20_0000;
}

/// An interrupt of the graphics engine, and its exception.
fn of_interrupt(channel: &HwChannel, interrupt: u32, exception: u32) -> Option<Fault> {
    Some(match interrupt {
        gr_intr::ILLEGAL_METHOD => illegal_method(channel, "method"),
        gr_intr::FIRMWARE_METHOD => graphics(channel, "firmware method 0x00000000"),
        gr_intr::FECS_ERROR => firmware_method(channel, "method"),
        gr_intr::CLASS_ERROR => graphics(channel, "class error 0x00000000"),
        gr_intr::EXCEPTION => {
            let (_, name) = EXCEPTIONS.into_iter().find(|(bit, _)| exception >> bit & 1 == 1)?;
            graphics(channel, format_args!("{name}: esr 0x00000000"))
        }
        _ => return None,
    })
}

/// The exception of an SM, with the GPC and the TPC of the SM. r35 says no program counter.
pub(crate) fn sm_exception(config: &GpuConfig, sm: u32, record: &SmError) -> String {
    let SmError { global_esr, warp_esr, pc } = record;
    let (gpc, tpc) = config.place(sm);
    let mut text = String::new();
    if global_esr & !NO_LOCK_DOWN != 0 {
        text += &format!("sm machine check err. gpc_id({gpc}), tpc_id({tpc}), ");
    }
    if !config.r35 {
        text += &format!("sm err state gpc_id({gpc}), tpc_id({tpc}), sm_id({sm}), hww_warp_esr_pc {pc:#x}, ");
    }
    text + &format!("sm hww global {global_esr:#010x} warp {warp_esr:#010x}")
}

/// The bits of the global register that are no errors: traps, pauses and steps. For others the driver has a line of its own.
const NO_LOCK_DOWN: u32 = 0x70;

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
    plain(NotifierCode::FirmwareMethod, format!("firmware method error, ch {}: {what}", channel.id))
}

/// A launch that the copy engine rejects, with its report code (docs/hardware/gpu-copy-engine.md#launch-dma).
pub(crate) fn copy_engine(channel: &HwChannel, report: u32, what: impl std::fmt::Display) -> Fault {
    plain(
        NotifierCode::CopyEngine,
        format!("ce launch error interrupt with errcode:{report:#x}, ch {}: {what}", channel.id),
    )
}

/// A switch to another group that took too long.
pub(crate) fn switch_timeout(channel: &HwChannel, what: impl std::fmt::Display) -> Fault {
    plain(NotifierCode::IdleTimeout, format!("{}, ch {}: {what}", switch_text(channel), channel.id))
}

/// A context is not saved. The copy engine of its own runlist is the third engine.
fn switch_text(channel: &HwChannel) -> String {
    let engine = if channel.runlist == 0 { 0 } else { 2 };
    format!("ctxsw timeout error: active engine id ={engine}, tsg={}, info: awaiting ack", channel.tsg.id)
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
        FaultKind::VaLimit => "limit violation",
        FaultKind::ReadOnly => "write, ro violation",
    };
    let access = match fault.access {
        Access::Read => "virt read",
        Access::Write => "virt write",
        Access::Atomic => "virt atomic strong",
        Access::Prefetch => "virt prefetch",
    };
    let side = if client.gpc.is_some() { "gpc" } else { "hub" };
    // The GPU reports the page.
    let page = fault.va & !0xfff;
    let text = format!(
        "[MMU FAULT] mmu engine id: {engine}, ch id: {}, fault addr: {page:#x}, fault type: {kind}, access type: {access}, \
         client type: {side}, client id: {} ({:#x}), gpc id if client type is gpc: {}",
        channel.id,
        client.name,
        client.id,
        client.gpc.unwrap_or(0)
    );
    Fault { code: NotifierCode::MmuFault, mmu: Some(fault), sms: Vec::new(), text, insight: None }
}
