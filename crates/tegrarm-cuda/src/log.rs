//! Sentences on standard error. `TEGRARM_LOG` says how many, as it does for libtegrarm: `off`, `error`, `warn`, `info`, `debug` or
//! `trace`. Without it, only a refused function says so, once, and machine
//! code that cannot be loaded.

use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicBool, Ordering};

/// How much is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Nothing.
    Off,
    /// What a program should see without asking: the first call of a refused function, and machine code that cannot be loaded.
    Notice,
    /// Calls that fail.
    Error,
    /// What could not be done, although the call succeeds.
    Warn,
    /// Actions.
    Debug,
    /// Every call.
    Trace,
}

/// The level that `TEGRARM_LOG` asks for.
pub fn level() -> Level {
    static LEVEL: OnceBox<Level> = OnceBox::new();
    let wanted = || {
        let Some(text) = std::env::var_os("TEGRARM_LOG") else { return Level::Notice };
        // The value may have the form of libtegrarm's filters: `tegrarm=debug`.
        match text.to_string_lossy().rsplit(['=', ',']).next() {
            Some("off") => Level::Off,
            Some("warn" | "info") => Level::Warn,
            Some("debug") => Level::Debug,
            Some("trace") => Level::Trace,
            _ => Level::Error,
        }
    };
    *LEVEL.get_or_init(|| Box::new(wanted()))
}

/// Writes a line if its level is asked for.
pub fn say(at: Level, text: &str) {
    if level() >= at {
        tegrarm_output::say_as("libcuda of libtegrarm", text);
    }
}

/// Says once for each flag what a program should know.
pub fn once(said: &AtomicBool, text: &str) {
    if !said.swap(true, Ordering::Relaxed) {
        say(Level::Notice, text);
    }
}
