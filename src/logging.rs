//! Diagnostics, off unless `TEGRARM_LOG` asks for them.

use std::sync::Once;
use tracing_subscriber::EnvFilter;

/// Writes events to standard error when `TEGRARM_LOG` is set (`tegrarm=debug`, `warn`, …: the syntax of
/// `tracing-subscriber`'s `EnvFilter`). A program's own subscriber is left in place.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Ok(filter) = EnvFilter::try_from_env("TEGRARM_LOG") {
            let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).finish();
            // Fails when the program linked the Rust crate and set its own: that one wins.
            let _ = tracing::subscriber::set_global_default(subscriber);
        }
    });
}
