//! The instruction sets of the host.
#![allow(unsafe_code)]

/// Whether the host has AVX2, FMA, F16C and the bit-manipulation instructions that come with them.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn avx2() -> bool {
    use once_cell::race::OnceBool;
    static SEEN: OnceBool = OnceBool::new();
    SEEN.get_or_init(|| {
        std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("fma")
            && std::is_x86_feature_detected!("f16c")
            && std::is_x86_feature_detected!("popcnt")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt")
    })
}

/// Compiles functions for the instruction sets that [`avx2`] looks for. Hosts of another kind do not have them.
macro_rules! wide {
    ($($function:item)*) => {$(
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,popcnt,bmi1,bmi2,lzcnt")]
        $function
    )*};
}
pub(crate) use wide;

/// The bytes of a line of the host's caches, in most hosts.
pub(super) const LINE: usize = 64;

/// Asks the host to bring the line of memory at `p` into its caches. Nothing is read, so any address will do.
#[inline(always)]
pub(super) fn fetch(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that a program sees, and does not fault.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) p, options(readonly, nostack, preserves_flags));
    }
}
