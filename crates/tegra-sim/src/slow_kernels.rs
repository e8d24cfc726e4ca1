//! What a user who waits for a long grid is told.

use std::sync::Arc;
use tegra_gpu::{Gpu, SlowGrid};

/// From now on, passes a sentence to `say` when a grid of `gpu` takes long: after 20 seconds, and whenever its time has
/// doubled.
pub fn say_slow(gpu: &Gpu, say: impl Fn(&str) + Send + Sync + 'static) {
    gpu.tell_of_slow_grids(Arc::new(move |grid| say(&sentence(grid))));
}

fn sentence(grid: &SlowGrid) -> String {
    let SlowGrid { code, ctas, started, warp_instructions, busy_ns, .. } = *grid;
    let kernel = grid.name.as_ref().map_or_else(|| format!("at {code:#x}"), |name| format!("{name} at {code:#x}"));
    let left = match grid.left_ns() {
        Some(ns) => format!("about {} are left", duration(ns)),
        None => "all of them have begun, and nothing says how long they take".to_owned(),
    };
    let millions = warp_instructions / 1_000_000;
    format!(
        "the kernel {kernel} is running: {started} of {ctas} blocks have begun, {millions} million warp instructions in {}; {left}",
        duration(busy_ns)
    )
}

/// A time in the unit that fits.
fn duration(ns: u64) -> String {
    match ns / 1_000_000_000 {
        s if s < 120 => format!("{s} seconds"),
        s if s < 7200 => format!("{} minutes", s / 60),
        s => format!("{} hours", s / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_how_far_it_is_and_how_long_it_takes() {
        let grid = SlowGrid {
            name: None,
            code: 0x12_3400,
            ctas: 4096,
            started: 64,
            warp_instructions: 3_200_000_000,
            busy_ns: 20_000_000_000,
        };
        assert_eq!(
            sentence(&grid),
            "the kernel at 0x123400 is running: 64 of 4096 blocks have begun, 3200 million warp instructions in 20 seconds; about \
             21 minutes are left"
        );
        let named = SlowGrid { name: Some("sum".into()), ..grid.clone() };
        assert!(sentence(&named).starts_with("the kernel sum at 0x123400 is running: 64 "));
        assert!(sentence(&SlowGrid { started: 4096, ..grid }).ends_with("nothing says how long they take"));
        assert_eq!(duration(7200 * 1_000_000_000), "2 hours");
    }
}
