//! Diagnostics, off unless `TEGRARM_LOG` asks for them.

use std::sync::Once;
use tegrarm_kmd::output::{Stderr, say};
use tracing_subscriber::EnvFilter;

/// Writes events to standard error when `TEGRARM_LOG` is set (`tegrarm=debug`, `warn`, …: the syntax of
/// `tracing-subscriber`'s `EnvFilter`). A program's own subscriber is left in place.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(text) = std::env::var_os("TEGRARM_LOG") else { return };
        let filter = text.to_str().ok_or_else(|| "it is no text".to_owned());
        match filter.and_then(|text| EnvFilter::try_new(text).map_err(|e| e.to_string())) {
            Ok(filter) => {
                let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Stderr).finish();
                // Fails when the program linked the Rust crate and set its own: that one wins.
                let _ = tracing::subscriber::set_global_default(subscriber);
            }
            Err(why) => say(&format!("TEGRARM_LOG={} is not understood, nothing is logged: {why}", text.display())),
        }
    });
}
