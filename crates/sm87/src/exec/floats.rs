//! FFMA and FADD without modifiers, of which programs have many one after another.
#![allow(unsafe_code)]

use super::host::wide;
use super::runs::{FIRST, Offsets, Run, SECOND};
use super::warp::Warp;
use sm87_simd::{Simd, part};

/// Makes two functions that execute a run: one for any host, and one for hosts with the instruction sets of [`super::host`].
macro_rules! run {
    ($(#[$doc:meta])* $name:ident, $wide:ident = $body:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// At `runs` are the runs of `n` such instructions. See also [`super::uop::Handler`].
        #[inline(never)]
        pub(crate) unsafe fn $name(w: &mut Warp, runs: *const Run, n: usize, exec: u32) {
            // SAFETY: the conditions are those of this function.
            unsafe { $body::<u32>(w.own(), runs, n, exec) }
        }

        wide! {
            $(#[$doc])*
            ///
            /// # Safety
            /// As for the function above; the host has AVX2.
            pub(crate) unsafe fn $wide(w: &mut Warp, runs: *const Run, n: usize, exec: u32) {
                // SAFETY: the conditions are those of this function.
                unsafe { $body::<sm87_simd::avx2::Avx2>(w.own(), runs, n, exec) }
            }
        }
    };
}

run! {
    /// Executes FFMA without modifiers for all lanes.
    multiply_add, multiply_add_wide = multiplied
}
run! {
    /// Executes FADD without modifiers, for lanes of which [`are_pairs`] is true.
    add, add_wide = added
}

/// Values that are computed together.
const TOGETHER: usize = 4;

/// Makes NaNs canonical at the end of the run. Before that a NaN may have any payload, because everything that is computed from
/// it is a NaN too.
#[inline(always)]
pub(super) unsafe fn multiplied<V: Simd>(own: *mut u32, runs: *const Run, n: usize, _: u32) {
    let mut i = 0;
    while i < 32 {
        // SAFETY: the conditions are those of `multiply_add`; rows have 32 words.
        let any = unsafe { multiplied_part::<V>(own.add(i), runs, n) };
        if any {
            // SAFETY: as above.
            (0..n).for_each(|k| unsafe { canonical_part::<V>(own.add(i + usize::from((*runs.add(k)).offsets.d))) });
        }
        i += TOGETHER * V::LANES;
    }
}

/// Executes FFMA for some lanes, which are at `own` in every row. Returns whether a result is a NaN.
///
/// Programs multiply one register by several others, so the first factor is kept as long as instructions share it.
///
/// # Safety
/// As for [`multiply_add`], and there is at least one instruction.
#[inline(always)]
unsafe fn multiplied_part<V: Simd>(own: *mut u32, runs: *const Run, n: usize) -> bool {
    let mut bad = V::splat(0);
    let (mut at, end) = (runs, runs.wrapping_add(n));
    // SAFETY: there are `n` instructions, and the warp's file has their rows of 32 words.
    unsafe {
        let mut x = four::<V>(own.add((*at).offsets.a.into()));
        loop {
            let Run { offsets: Offsets { b, c, d, .. }, shares, .. } = *at;
            let (y, z) = (four::<V>(own.add(b.into())), four::<V>(own.add(c.into())));
            let r = [x[0].fma(y[0], z[0]), x[1].fma(y[1], z[1]), x[2].fma(y[2], z[2]), x[3].fma(y[3], z[3])];
            // One comparison looks at two values.
            bad = bad.or(r[0].funord(r[1])).or(r[2].funord(r[3]));
            for (j, r) in r.iter().enumerate() {
                r.store(own.add(usize::from(d) + j * V::LANES));
            }
            at = at.add(1);
            if at == end {
                break;
            }
            if !shares {
                x = four(own.add((*at).offsets.a.into()));
            }
        }
    }
    bad.any()
}

/// # Safety
/// As many values are at `p`.
#[inline(always)]
unsafe fn four<V: Simd>(p: *const u32) -> [V; TOGETHER] {
    // SAFETY: the condition is that of this function.
    unsafe { [V::load(p), V::load(p.add(V::LANES)), V::load(p.add(2 * V::LANES)), V::load(p.add(3 * V::LANES))] }
}

/// # Safety
/// As for [`four`], writable.
#[inline(always)]
unsafe fn canonical_part<V: Simd>(p: *mut u32) {
    for j in 0..TOGETHER {
        // SAFETY: the condition is that of this function.
        unsafe { V::load(p.add(j * V::LANES)).canonical().store(p.add(j * V::LANES)) };
    }
}

/// Whether [`add`] can serve these lanes. It computes two values together, so both must be wholly active or wholly inactive.
pub(crate) fn are_pairs(exec: u32) -> bool {
    matches!(exec, 0xffff | 0xffff_0000 | u32::MAX)
}

#[inline(always)]
pub(super) unsafe fn added<V: Simd>(own: *mut u32, runs: *const Run, n: usize, exec: u32) {
    let mut i = 0;
    while i < 32 {
        if part::<V>(exec, i) != 0 {
            // SAFETY: as for `multiplied`.
            unsafe { added_pair::<V>(own.add(i), runs, n) };
        }
        i += 2 * V::LANES;
    }
}

/// Executes FADD for two values of lanes, which are at `own` in every row.
///
/// Programs add one number after another to a sum. Each addition takes the sum from the one before it, so that none waits for
/// memory. NaNs become canonical at the end, as in [`multiplied`]: a sum with a NaN is a NaN, whatever its payload is.
///
/// # Safety
/// As for [`add`].
#[inline(always)]
unsafe fn added_pair<V: Simd>(own: *mut u32, runs: *const Run, n: usize) {
    let (mut sum, mut bad, mut passed) = ([V::splat(0); 2], V::splat(0), 0);
    for k in 0..n {
        // SAFETY: there are `n` instructions, and the warp's file has their rows of 32 words.
        unsafe {
            let Run { offsets: Offsets { a, b, d, .. }, passes, .. } = *runs.add(k);
            let source = |at: u16, bit: u8| {
                let p = own.add(at.into());
                if passed & bit != 0 { sum } else { [V::load(p), V::load(p.add(V::LANES))] }
            };
            let (x, y) = (source(a, FIRST), source(b, SECOND));
            sum = [x[0].fadd(y[0]), x[1].fadd(y[1])];
            // One comparison looks at both values.
            bad = bad.or(sum[0].funord(sum[1]));
            sum[0].store(own.add(d.into()));
            sum[1].store(own.add(usize::from(d) + V::LANES));
            passed = passes;
        }
    }
    if bad.any() {
        for k in 0..n {
            // SAFETY: as above.
            unsafe {
                let p = own.add((*runs.add(k)).offsets.d.into());
                [p, p.add(V::LANES)].into_iter().for_each(|p| V::load(p).canonical().store(p));
            }
        }
    }
}
