//! The rule by which a call is refused, in words. An errno alone does not say which of ten rules it was.
//!
//! A handler names the rule at the place where it refuses the call. The rule is kept for the thread that answers the
//! call. It is removed when it is read, or when the thread answers the next call. `tegrarm-sim run --strace` prints it
//! after the errno. A thread that ends keeps no rule any more, and its variables may still make calls when they end: then
//! nobody can read the rule, and it is not noted.

use std::borrow::Cow;
use std::cell::Cell;
use tegrarm_kmd::Errno;

thread_local! {
    static RULE: Cell<Option<Cow<'static, str>>> = const { Cell::new(None) };
}

/// Names the rule. If the call has a rule already, that one stays, because it comes from the innermost place.
pub(crate) fn note(rule: impl Into<Cow<'static, str>>) {
    let _ = RULE.try_with(|kept| {
        let before = kept.take();
        kept.set(before.or_else(|| Some(rule.into())));
    });
}

/// Forgets the rule of the call that the thread answered last.
pub(crate) fn forget() {
    take();
}

/// The rule by which the kernel refused the call that this thread answered last. It is `None` if the handler named no
/// rule.
pub fn take() -> Option<Cow<'static, str>> {
    RULE.try_with(Cell::take).ok().flatten()
}

/// Writes the rule of a refused call to the diagnostics, if they are on.
pub(crate) fn log(request: u32, errno: Errno) {
    if !tracing::enabled!(target: "tegra_sim::rule", tracing::Level::DEBUG) {
        return;
    }
    let rule = take();
    let said = rule.as_deref().unwrap_or("the model names no rule");
    tracing::debug!(target: "tegra_sim::rule", "ioctl {request:#010x} is {errno:?}: {said}");
    let _ = RULE.try_with(|kept| kept.set(rule));
}

/// Adds the rule to an errno.
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

    /// A variable of a thread that uses the rule when it ends.
    struct AtEnd;

    impl Drop for AtEnd {
        fn drop(&mut self) {
            forget();
            note("a call of a thread that ends");
            log(0, Errno::EINVAL);
            assert_eq!(take(), None);
        }
    }

    thread_local! {
        static AT_END: AtEnd = const { AtEnd };
    }

    #[test]
    fn a_thread_that_ends_can_be_refused() {
        let ended = std::thread::spawn(|| {
            // The variable is made before the rule, so that it ends after it.
            AT_END.with(|_| ());
            note("a call before");
        });
        ended.join().expect("the thread ends without a panic");
    }
}
