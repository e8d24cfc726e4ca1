//! Accesses to shared memory that another thread sees completely or not at all.
//!
//! A GPU stores the sixteen aligned bytes of one lane at once, and programs rely on it: they publish a state and a value with one
//! store. Rust has no atomic of sixteen bytes. What a host promises instead:
//!
//! * x86-64 with AVX: an aligned load or store of sixteen bytes by a vector instruction is one access. Intel says so in the Software
//!   Developer's Manual, volume 3A, "Guaranteed Atomic Operations" (processors that enumerate AVX: `MOVAPS`, `MOVDQA` and their VEX
//!   forms), AMD in the Architecture Programmer's Manual, volume 2, "Access Atomicity". A volatile access of a vector that the target
//!   has is one instruction, because LLVM promises not to split it.
//! * x86-64 without AVX: `CMPXCHG16B` is one access. It writes what it has found, so the memory has to be writable for the host. All
//!   memory of the virtual Orin is.
//! * AArch64 with LSE2: an aligned `LDP` or `STP` of two registers is one access (Arm Architecture Reference Manual, "Requirements for
//!   single-copy atomicity"). The kernel reports LSE2 as `HWCAP_USCAT`.
//! * AArch64 without LSE2: `LDXP` and a `STXP` that succeeds are one access together.
//! * Any other host: two accesses of eight bytes.
//!
//! [`copy`] moves blocks in the same way.
#![allow(unsafe_code)]

/// The bytes of a word that is accessed at once.
const WORD: usize = 16;

/// Reads sixteen bytes as one access.
///
/// # Safety
/// `p` is readable and, for the host, writable for sixteen bytes, and aligned to them. Others may write there at any time.
#[inline(always)]
pub unsafe fn load(p: *const u8) -> u128 {
    debug_assert!(p.cast::<u128>().is_aligned(), "{p:?}");
    // SAFETY: as this function asks of its caller.
    unsafe { host::load(p) }
}

/// Writes sixteen bytes as one access.
///
/// # Safety
/// `p` is writable for sixteen bytes and aligned to them. Others may read and write there at any time.
#[inline(always)]
pub unsafe fn store(p: *mut u8, x: u128) {
    debug_assert!(p.cast::<u128>().is_aligned(), "{p:?}");
    // SAFETY: as this function asks of its caller.
    unsafe { host::store(p, x) }
}

/// Copies `len` bytes that others may access meanwhile. The ranges may overlap. Words that are aligned on both sides are read and
/// written at once: words of sixteen bytes where the host needs no loop for them, otherwise of eight, and smaller ones at the ends or
/// where the two sides lie differently. At an odd distance the two sides have only bytes in common, and a byte is always whole.
///
/// # Safety
/// `from` is readable and `to` is writable for `len` bytes, and both are so for the host.
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    let widest = if host::is_direct() { WORD } else { WORD / 2 };
    let distance = (from as usize).wrapping_sub(to as usize);
    let unit = 1 << distance.trailing_zeros().min(widest.trailing_zeros());
    if unit == 1 {
        // SAFETY: as this function asks of its caller.
        return unsafe { std::ptr::copy(from, to, len) };
    }
    let head = (to as usize).wrapping_neg() % unit;
    let head = head.min(len);
    let tail = (len - head) % unit;
    let parts = [(0, head, 0), (head, len - head - tail, unit), (len - tail, tail, 0)];
    let backwards = (to as usize).wrapping_sub(from as usize) < len;
    for i in 0..parts.len() {
        let (at, len, unit) = parts[if backwards { parts.len() - 1 - i } else { i }];
        // SAFETY: the parts are those of the caller's bytes. In the middle one, both sides are aligned to its unit.
        unsafe { part(from.add(at), to.add(at), len, unit, backwards) };
    }
}

/// Copies a part whose words all have `unit` bytes, or the widest words that fit if `unit` is 0.
///
/// # Safety
/// As for [`copy`]. Both sides are aligned to the unit, and lie alike with respect to the widest words that fit.
#[inline(always)]
unsafe fn part(from: *const u8, to: *mut u8, len: usize, unit: usize, backwards: bool) {
    macro_rules! words {
        ($word:ty) => {{
            let words = len / size_of::<$word>();
            for i in 0..words {
                let i = if backwards { words - 1 - i } else { i };
                // SAFETY: the words are those of the caller's bytes, and aligned.
                unsafe { to.cast::<$word>().add(i).write_volatile(from.cast::<$word>().add(i).read_volatile()) };
            }
        }};
    }
    match unit {
        16 => {
            for at in (0..len).step_by(WORD) {
                let at = if backwards { len - WORD - at } else { at };
                // SAFETY: as above.
                unsafe { store(to.add(at), load(from.add(at))) };
            }
        }
        8 => words!(u64),
        4 => words!(u32),
        2 => words!(u16),
        1 => words!(u8),
        _ => {
            let mut done = 0;
            while done < len {
                let edge = to as usize + if backwards { len - done } else { done };
                let n = 1 << edge.trailing_zeros().min((len - done).ilog2());
                let at = if backwards { len - done - n } else { done };
                // SAFETY: `n` bytes are left, and both sides are aligned to them.
                unsafe { part(from.add(at), to.add(at), n, n, backwards) };
                done += n;
            }
        }
    }
}

/// Reads or writes two halves. Only hosts without any promise need it.
#[cfg(not(target_arch = "aarch64"))]
mod halves {
    /// # Safety
    /// As for [`super::load`].
    pub(super) unsafe fn load(p: *const u8) -> u128 {
        let p = p.cast::<u64>();
        // SAFETY: as this function asks of its caller.
        unsafe { u128::from(p.read_volatile()) | u128::from(p.add(1).read_volatile()) << 64 }
    }

    /// # Safety
    /// As for [`super::store`].
    pub(super) unsafe fn store(p: *mut u8, x: u128) {
        let p = p.cast::<u64>();
        // SAFETY: as this function asks of its caller.
        unsafe {
            p.write_volatile(x as u64);
            p.add(1).write_volatile((x >> 64) as u64);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod host {
    use super::halves;
    use std::arch::{asm, is_x86_feature_detected, x86_64::__m128i};

    /// Whether one plain instruction makes the access. Miri executes one thread at a time.
    #[inline(always)]
    pub(super) fn is_direct() -> bool {
        cfg!(miri) || is_x86_feature_detected!("avx")
    }

    #[inline(always)]
    pub(super) unsafe fn load(p: *const u8) -> u128 {
        if is_direct() {
            // SAFETY: as the caller promises; both types are sixteen plain bytes.
            unsafe { std::mem::transmute::<__m128i, u128>(p.cast::<__m128i>().read_volatile()) }
        } else {
            // SAFETY: as the caller promises.
            unsafe { load_exchanging(p) }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn store(p: *mut u8, x: u128) {
        if is_direct() {
            // SAFETY: as the caller promises; both types are sixteen plain bytes.
            unsafe { p.cast::<__m128i>().write_volatile(std::mem::transmute::<u128, __m128i>(x)) };
        } else {
            // SAFETY: as the caller promises.
            unsafe { store_exchanging(p, x) };
        }
    }

    /// # Safety
    /// As for [`super::load`].
    #[cold]
    pub(super) unsafe fn load_exchanging(p: *const u8) -> u128 {
        if is_x86_feature_detected!("cmpxchg16b") {
            // SAFETY: the processor has the instruction; the memory is as the caller promises, and keeps its value.
            unsafe { exchange(p.cast_mut(), 0, 0) }
        } else {
            // SAFETY: as the caller promises.
            unsafe { halves::load(p) }
        }
    }

    /// # Safety
    /// As for [`super::store`].
    #[cold]
    pub(super) unsafe fn store_exchanging(p: *mut u8, x: u128) {
        if !is_x86_feature_detected!("cmpxchg16b") {
            // SAFETY: as the caller promises.
            return unsafe { halves::store(p, x) };
        }
        let mut old = 0;
        loop {
            // SAFETY: the processor has the instruction; the memory is as the caller promises.
            let found = unsafe { exchange(p, old, x) };
            if found == old {
                return;
            }
            old = found;
        }
    }

    /// Writes `new` if `old` is there. Returns what was there. The compiler's own function for this calls a library that Rust programs
    /// are not linked with, unless it is inlined.
    ///
    /// # Safety
    /// `p` is writable for sixteen bytes and aligned to them, and the processor has CMPXCHG16B.
    unsafe fn exchange(p: *mut u8, old: u128, new: u128) -> u128 {
        let (low, high): (u64, u64);
        // SAFETY: as this function asks of its caller. RBX, which the compiler keeps for itself, has its value again afterwards.
        unsafe {
            asm!("xchg {b}, rbx", "lock cmpxchg16b [{p}]", "mov rbx, {b}",
                b = inout(reg) new as u64 => _, p = in(reg) p, in("rcx") (new >> 64) as u64,
                inlateout("rax") old as u64 => low, inlateout("rdx") (old >> 64) as u64 => high, options(nostack));
        }
        u128::from(low) | u128::from(high) << 64
    }
}

#[cfg(target_arch = "aarch64")]
mod host {
    use std::arch::{asm, is_aarch64_feature_detected};

    /// Whether one plain instruction makes the access.
    #[inline(always)]
    pub(super) fn is_direct() -> bool {
        is_aarch64_feature_detected!("lse2")
    }

    #[inline(always)]
    pub(super) unsafe fn load(p: *const u8) -> u128 {
        if !is_direct() {
            // SAFETY: as the caller promises.
            return unsafe { load_exclusive(p) };
        }
        let (low, high): (u64, u64);
        // SAFETY: as the caller promises.
        unsafe {
            asm!("ldp {low}, {high}, [{p}]", p = in(reg) p, low = out(reg) low, high = out(reg) high,
                options(nostack, preserves_flags, readonly));
        }
        u128::from(low) | u128::from(high) << 64
    }

    #[inline(always)]
    pub(super) unsafe fn store(p: *mut u8, x: u128) {
        if !is_direct() {
            // SAFETY: as the caller promises.
            return unsafe { store_exclusive(p, x) };
        }
        // SAFETY: as the caller promises.
        unsafe {
            asm!("stp {low}, {high}, [{p}]", p = in(reg) p, low = in(reg) x as u64, high = in(reg) (x >> 64) as u64,
                options(nostack, preserves_flags));
        }
    }

    /// Reads a pair, and writes it again: only a pair of which both halves were written without anybody between is a single access.
    ///
    /// # Safety
    /// As for [`super::load`].
    #[cold]
    pub(super) unsafe fn load_exclusive(p: *const u8) -> u128 {
        let (low, high): (u64, u64);
        // SAFETY: as the caller promises; the memory keeps its value.
        unsafe {
            asm!("2:", "ldxp {low}, {high}, [{p}]", "stxp {failed:w}, {low}, {high}, [{p}]", "cbnz {failed:w}, 2b",
                p = in(reg) p, low = out(reg) low, high = out(reg) high, failed = out(reg) _, options(nostack, preserves_flags));
        }
        u128::from(low) | u128::from(high) << 64
    }

    /// # Safety
    /// As for [`super::store`].
    #[cold]
    pub(super) unsafe fn store_exclusive(p: *mut u8, x: u128) {
        // SAFETY: as the caller promises.
        unsafe {
            asm!("2:", "ldxp {failed}, {old}, [{p}]", "stxp {failed:w}, {low}, {high}, [{p}]", "cbnz {failed:w}, 2b",
                p = in(reg) p, low = in(reg) x as u64, high = in(reg) (x >> 64) as u64, old = out(reg) _, failed = out(reg) _,
                options(nostack, preserves_flags));
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod host {
    pub(super) use super::halves::{load, store};

    /// Whether one plain instruction makes the access.
    pub(super) fn is_direct() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Sixteen bytes that two threads share.
    #[repr(align(16))]
    struct Cell(std::cell::UnsafeCell<u128>);
    // SAFETY: the tests access it only as a whole and through raw pointers.
    unsafe impl Sync for Cell {}

    type Load = unsafe fn(*const u8) -> u128;
    type Store = unsafe fn(*mut u8, u128);

    /// Stores numbers with equal halves on one thread until another one has loaded `rounds` of them.
    fn is_never_torn(load: Load, store: Store, rounds: u64) {
        let (cell, done) = (Cell(std::cell::UnsafeCell::new(0)), AtomicBool::new(false));
        let p: *mut u8 = cell.0.get().cast();
        let address = p as usize;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut n = 0u64;
                while !done.load(Ordering::Relaxed) {
                    n = n.wrapping_add(1);
                    // SAFETY: the cell lives until both threads have ended.
                    unsafe { store(address as *mut u8, u128::from(n) | u128::from(n) << 64) };
                }
            });
            let mut torn = 0u64;
            for _ in 0..rounds {
                // SAFETY: as above.
                let x = unsafe { load(p) };
                torn += u64::from(x as u64 != (x >> 64) as u64);
            }
            done.store(true, Ordering::Relaxed);
            assert_eq!(torn, 0, "of {rounds} loads");
        });
    }

    #[test]
    fn sixteen_bytes_are_never_torn() {
        is_never_torn(super::load, super::store, 2_000_000);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn sixteen_bytes_are_never_torn_without_avx() {
        if is_x86_feature_detected!("cmpxchg16b") {
            is_never_torn(host::load_exchanging, host::store_exchanging, 300_000);
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn sixteen_bytes_are_never_torn_without_lse2() {
        is_never_torn(host::load_exclusive, host::store_exclusive, 300_000);
    }

    #[test]
    fn a_copy_moves_what_a_move_moves() {
        let from: Vec<u8> = (0..=255).collect();
        for len in [0, 1, 2, 3, 7, 16, 17, 33, 64, 100] {
            for source in 0..34 {
                for target in 0..34 {
                    let (mut found, mut wanted) = (from.clone(), from.clone());
                    wanted.copy_within(source..source + len, target);
                    let p = found.as_mut_ptr();
                    // SAFETY: both ranges lie in the 256 bytes.
                    unsafe { copy(p.add(source), p.add(target), len) };
                    assert_eq!(found, wanted, "{len} bytes from {source} to {target}");
                }
            }
        }
    }

    #[test]
    fn a_copied_word_is_never_torn() {
        /// Copies one word with others around it.
        unsafe fn store(p: *mut u8, x: u128) {
            #[repr(align(16))]
            struct Aligned([u8; 16]);
            let x = Aligned(x.to_le_bytes());
            // SAFETY: both have sixteen bytes.
            unsafe { copy(x.0.as_ptr(), p, 16) };
        }
        if host::is_direct() {
            is_never_torn(super::load, store, 1_000_000);
        }
    }
}
