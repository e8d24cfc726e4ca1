//! The sentence of a fault: the place in the program, what happened, which thread it was, and what the kernel reported.

use crate::runtime::fault::address_map::Commas;
use crate::runtime::fault::{Cause, FaultInfo};
use crate::runtime::library::stop::Triple;
use std::fmt::{self, Display, Formatter};
use tegrarm_rm::rm::profile::Insight;

impl Display for FaultInfo {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(stop) = &self.stop {
            write!(f, "{stop}; ")?;
        }
        if let Some(place) = &self.place {
            write!(f, "in {place}")?;
            if let Some(kernel) = self.kernel.as_ref().filter(|kernel| **kernel != place.function) {
                write!(f, ", called by kernel {kernel}")?;
            }
            f.write_str("; ")?;
        }
        if let Some(target) = self.pc.filter(|_| self.jumped) {
            let why = if target == 0 { ": a pointer to a function is null or was never set" } else { "" };
            write!(f, "a jump to address {target:#x}, where there is no code{why}; ")?;
        }
        if let Some(insight) = &self.insight {
            self.who(f, insight)?;
        }
        self.stopped(f)?;
        match &self.insight {
            Some(insight) => write!(f, "; the kernel's log: {}", self.log.as_deref().unwrap_or(&insight.log)),
            // The kernel of a board writes the address only to its log. No ioctl of nvgpu returns it.
            None if self.cause == Cause::Mmu => write!(f, "; the address is in the kernel's log (dmesg)"),
            None => Ok(()),
        }
    }
}

impl FaultInfo {
    /// Writes the details that the kernel of a board does not report.
    fn who(&self, f: &mut Formatter<'_>, insight: &Insight) -> fmt::Result {
        let Some(warp) = &insight.warp else { return Ok(()) };
        write!(f, "the simulated GPU knows: {}", warp.instruction)?;
        if let Some((address, bytes)) = insight.access {
            match bytes {
                0 => write!(f, " at {address:#x}")?,
                _ => {
                    let off = address % u64::from(bytes);
                    write!(f, " of {bytes} bytes at {address:#x}, misaligned by {off}")?;
                }
            }
        }
        if let Some(near) = &self.near {
            write!(f, ", {near}")?;
        }
        if let Some((allocated, used)) = self.shared {
            let (allocated, used) = (Commas(allocated), Commas(used));
            write!(
                f,
                ", where the block has {allocated} bytes of shared memory and the kernel's own arrays use {used}"
            )?;
        }
        write!(f, ", block {}, ", Triple(warp.block))?;
        match warp.is_one_lane {
            true => write!(f, "thread {}", Triple(warp.thread))?,
            false => write!(f, "threads from {} on", Triple(warp.thread))?,
        }
        write!(f, " (warp {}, lanes {:#010x}); ", warp.index, warp.lanes)
    }

    /// Writes what every kernel reports.
    fn stopped(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = match self.cause {
            Cause::Mmu => "an MMU fault",
            Cause::Sm => "an SM exception",
            Cause::Trap | Cause::Assert | Cause::Free => "a trap",
            Cause::Graphics => "an exception of the compute engine",
            Cause::Timeout => "a timeout of the scheduler",
            Cause::Pushbuffer => "an error in the pushbuffer",
            Cause::Other => "an error",
        };
        write!(f, "channel {} was stopped by {what} (nvgpu code {})", self.channel, self.code)?;
        if let Some((sm, esr)) = self.sm {
            match esr & 0xffff {
                0 => write!(f, "; SM {sm}")?,
                _ => write!(f, "; SM {sm}: {} ({esr:#x})", warp_error(esr))?,
            }
        }
        match self.pc {
            Some(pc) => write!(f, " at pc {pc:#x}"),
            None => Ok(()),
        }
    }
}

/// `hww_warp_esr` error numbers (bits 15:0).
fn warp_error(esr: u32) -> &'static str {
    match esr & 0xffff {
        0x02 => "call stack",
        0x05 => "misaligned program counter",
        0x06 => "program counter overflow",
        0x08 => "misaligned register",
        0x09 => "illegal instruction encoding",
        0x0b => "illegal instruction parameter",
        0x0d => "register out of range",
        0x0e => "address out of range of shared or local memory",
        0x0f => "misaligned address",
        0x10 => "address in the wrong space",
        0x12 => "constant bank address",
        0x17 | 0x20 => "access refused by the MMU",
        _ => "warp exception",
    }
}
