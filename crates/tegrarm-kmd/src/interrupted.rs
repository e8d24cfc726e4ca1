//! System calls that signals interrupt.

use nix::errno::Errno;

/// Repeats a call until no signal interrupts it. A driver that a signal interrupts has done nothing yet (ERESTARTSYS).
/// The host repeats the call by itself only if the handler of the signal was installed with `SA_RESTART`. The program
/// decides on that, and not this library.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_is_made_again() {
        let mut calls = 0;
        let result = uninterrupted(|| {
            calls += 1;
            if calls < 3 { Err(Errno::EINTR) } else { Err::<(), _>(Errno::ENOMEM) }
        });
        assert_eq!((result, calls), (Err(Errno::ENOMEM), 3));
    }
}
