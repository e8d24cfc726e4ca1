//! LDGSTS copies from global to shared memory (docs/hardware/sm87-memory.md#ldgsts-zfill).
#![allow(unsafe_code)]

use super::{PAIR, SIZE, global_address, misaligned, missed, out_of_range, size, uniform_offset};
use crate::exec::env::Env;
use crate::exec::lower::{Lower, Refused};
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};
use crate::isa::memory::bytes;
use tegra_mm::{Access, whole};

/// The flag of `mods` that says that the low bits of the global address give the number of bytes that become zeros, at
/// the end.
const ZFILL: u32 = 1 << 8;

fn global_to_shared(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let len = bytes(u.mods & SIZE);
    let uniform = w.get64(u.c, 0).wrapping_add(u.aux as i16 as u64);
    let on = w.pred(u.ps);
    for lane in lanes(exec) {
        let va = if u.mods & PAIR != 0 { w.get64(u.a, lane) } else { w.get(u.a, lane).into() };
        let va = va.wrapping_add(uniform);
        let at = w.get(u.b, lane).wrapping_add(u.imm);
        let reads = on >> lane & 1 == 1;
        let zeros = if u.mods & ZFILL != 0 { va as u32 & (len - 1) } else { 0 };
        let va = va - u64::from(zeros);
        if !at.is_multiple_of(len) {
            return misaligned(env, u, "LDGSTS to shared memory", at.into(), len);
        }
        if reads && !va.is_multiple_of(len.into()) {
            return misaligned(env, u, "LDGSTS", va, len);
        }
        let Some(to) = env.memory.shared.get(at, len) else {
            let size = env.memory.shared.bytes();
            return out_of_range(env, u, "LDGSTS to shared memory", at, size);
        };
        let mut data = [0u8; 16];
        if reads {
            match env.memory.tlb.get(va, len.into(), false, Access::Read) {
                Ok(p) if p.is_null() => {}
                // SAFETY: the translation covers `len` bytes, to which the address is aligned.
                Ok(p) => data = unsafe { read(p, len) },
                Err(miss) => return missed(env, u, "LDGSTS", va, miss),
            }
            data[(len - zeros) as usize..].fill(0);
        }
        // SAFETY: `len` bytes, which are at most 16, are inside the CTA's shared memory.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, len as usize) };
    }
    Flow::Next
}

/// Reads what one lane copies, as one access.
///
/// # Safety
/// `p` is readable for `len` bytes (4, 8 or 16) and aligned to them.
unsafe fn read(p: *const u8, len: u32) -> [u8; 16] {
    // SAFETY: as this function asks of its caller. The reads are volatile, because other threads and the CPU may write there.
    let x = unsafe {
        match len {
            4 => p.cast::<u32>().read_volatile().into(),
            8 => p.cast::<u64>().read_volatile().into(),
            _ => whole::load(p),
        }
    };
    x.to_le_bytes()
}

/// Lowers LDGSTS. It completes at once, so that LDGDEPBAR and DEPBAR have nothing to wait for.
pub(crate) fn ldgsts(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, _) = size(l)?;
    if size < 4 {
        return Err(Refused("LDGSTS size"));
    }
    let (a, c, pair) = global_address(l, 70, uniform_offset(l, 64));
    let b = l.reg(16, 1);
    let imm = l.word.signed(44, 20) as u32;
    let aux = l.word.signed(32, 12) as i16 as u16;
    let mods = size | pair | if l.bit(82) { ZFILL } else { 0 };
    Ok(Uop { a, b, c, imm, mods, ps: l.ps(), aux, ..l.uop(Handlers::all(global_to_shared)) })
}
