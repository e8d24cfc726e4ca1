//! The rule by which a call is refused, in words. An errno alone does not say which of ten rules it was.
//!
//! A handler names the rule where it refuses. The rule is kept for the thread that answers the call until somebody takes
//! it, or until the thread answers the next call. `tegrarm-sim run --strace` prints it behind the errno.

use std::borrow::Cow;
use std::cell::Cell;
use tegrarm_kmd::Errno;

thread_local! {
    static RULE: Cell<Option<Cow<'static, str>>> = const { Cell::new(None) };
}

/// Names the rule. The first name counts: it comes from the innermost place.
pub(crate) fn note(rule: impl Into<Cow<'static, str>>) {
    RULE.with(|kept| {
        let before = kept.take();
        kept.set(before.or_else(|| Some(rule.into())));
    });
}

/// Forgets the rule of the thread's last call.
pub(crate) fn forget() {
    RULE.take();
}

/// The rule by which the call was refused that this thread answered last, if its handler named one.
pub fn take() -> Option<Cow<'static, str>> {
    RULE.take()
}

/// Writes the rule of a call that was refused to the diagnostics, if somebody reads them.
pub(crate) fn log(request: u32, errno: Errno) {
    if !tracing::enabled!(target: "tegra_sim::rule", tracing::Level::DEBUG) {
        return;
    }
    let rule = RULE.take();
    let said = rule.as_deref().unwrap_or("the model names no rule");
    tracing::debug!(target: "tegra_sim::rule", "ioctl {request:#010x} is {errno:?}: {said}");
    RULE.set(rule);
}

/// An errno with its rule.
pub(crate) trait Because {
    /// Names the rule, and returns the errno.
    fn because(self, rule: impl Into<Cow<'static, str>>) -> Self;
}

impl Because for Errno {
    fn because(self, rule: impl Into<Cow<'static, str>>) -> Errno {
        note(rule);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_rule_counts_and_is_taken_once() {
        assert_eq!(Errno::EINVAL.because("a ring has at least two entries"), Errno::EINVAL);
        note("and whoever called it says less");
        assert_eq!(take().as_deref(), Some("a ring has at least two entries"));
        assert_eq!(take(), None);
        note(format!("handle {}", 3));
        forget();
        assert_eq!(take(), None);
    }
}
