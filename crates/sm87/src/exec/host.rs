//! The instruction sets of the host.

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
