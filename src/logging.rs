//! Diagnostics. They are off unless `TEGRARM_LOG` or a program asks for them.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tegrarm_lock::{ForkOnce, RwLock};
use tegrarm_output::{Stderr, say};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{FilterExt, Targets, dynamic_filter_fn};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// A function that gets messages. Its arguments are the level, the status (0 if the message is not about a failed call)
/// and the sentence.
pub type Listener = dyn Fn(u8, u32, &str) + Send + Sync;

/// The highest level of which the listener wants messages. It is 0 if there is no listener.
static WANTED: AtomicU8 = AtomicU8::new(0);
static LISTENER: RwLock<Option<Arc<Listener>>> = RwLock::new(None);

/// The level of a failed call, and of a bug in the library.
pub const ERROR: u8 = 1;
/// The highest level.
pub const TRACE: u8 = 5;
const DEBUG: u8 = 4;

/// Writes events to standard error if `TEGRARM_LOG` is set. Its value, for example `tegrarm=debug` or `warn`, has the
/// syntax of `Targets` in `tracing-subscriber`.
pub fn start() {
    static STARTED: ForkOnce = ForkOnce::new();
    STARTED.call(|| {
        if let Some(filter) = written() {
            install(Some(filter));
        }
    });
}

/// Sets the subscriber of events, once. It is called when something wants events. If the program has set a subscriber,
/// that one stays.
fn install(filter: Option<Targets>) {
    static INSTALLED: ForkOnce = ForkOnce::new();
    INSTALLED.call(|| {
        let written = filter.map(|filter| {
            let layer = tracing_subscriber::fmt::layer().with_writer(writer);
            layer.with_filter(filter.and(dynamic_filter_fn(|_, _| !ENDED.get())))
        });
        let subscriber = tracing_subscriber::registry().with(written).with(Told.with_filter(Wanted));
        // This fails if the program uses the Rust crate and has set a subscriber, or if two threads meet here. The first subscriber stays.
        let _ = tracing::subscriber::set_global_default(subscriber);
    });
}

/// The end of what a thread writes. `tracing-subscriber` keeps each thread's text in a variable of the thread, which must not be used
/// when it has ended; but the program's own variables may call the library even then.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        ENDED.set(true);
    }
}

thread_local! {
    /// Whether the thread writes nothing any more.
    static ENDED: Cell<bool> = const { Cell::new(false) };
    static END: End = const { End };
}

/// Where an event is written. It is asked for when the thread's text is there already, so that `END` ends before the text.
fn writer() -> Stderr {
    let _ = END.try_with(|_| ());
    Stderr
}

/// The filter that `TEGRARM_LOG` describes.
fn written() -> Option<Targets> {
    let text = std::env::var_os("TEGRARM_LOG")?;
    let filter = text.to_str().ok_or_else(|| "it is no text".to_owned());
    match filter.and_then(|text| parsed(text).map_err(|e| e.to_string())) {
        Ok(filter) => Some(filter),
        Err(why) => {
            say(&format!("TEGRARM_LOG={} is not understood, nothing is logged: {why}", text.display()));
            None
        }
    }
}

/// Levels of targets, divided by commas. No text behind the last comma would be a level, too.
fn parsed(text: &str) -> Result<Targets, tracing_subscriber::filter::ParseError> {
    text.trim_end_matches([',', ' ']).parse()
}

/// Sets the listener, which gets all messages up to a level. `None` removes the listener.
pub fn listen(level: u8, listener: Option<Arc<Listener>>) {
    start();
    install(None);
    let level = if listener.is_some() { level } else { 0 };
    *LISTENER.write() = listener;
    WANTED.store(level, Ordering::Release);
    tracing::callsite::rebuild_interest_cache();
}

/// Tells the listener that a call failed. A wait whose time is over has a higher level than other failures, because
/// some callers wait in this way all the time.
#[cold]
pub fn failed(status: u32, sentence: &str, in_vain: bool) {
    tell(if in_vain { DEBUG } else { ERROR }, status, sentence);
}

fn tell(level: u8, status: u32, sentence: &str) {
    if level > WANTED.load(Ordering::Acquire) {
        return;
    }
    // The lock is not held during the call, because the listener may set another listener.
    let listener = LISTENER.read().clone();
    if let Some(listener) = listener {
        listener(level, status, sentence);
    }
}

fn number(level: &Level) -> u8 {
    match *level {
        Level::ERROR => ERROR,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => DEBUG,
        Level::TRACE => TRACE,
    }
}

/// The filter of the events that the listener gets.
struct Wanted;

impl<S> tracing_subscriber::layer::Filter<S> for Wanted {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        number(metadata.level()) <= WANTED.load(Ordering::Acquire)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match WANTED.load(Ordering::Acquire) {
            0 => LevelFilter::OFF,
            ERROR => LevelFilter::ERROR,
            2 => LevelFilter::WARN,
            3 => LevelFilter::INFO,
            DEBUG => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        })
    }
}

/// The layer that passes events to the listener.
struct Told;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Told {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut sentence = Sentence(String::new());
        event.record(&mut sentence);
        tell(number(event.metadata().level()), 0, &sentence.0);
    }
}

/// The message of an event, followed by its fields.
struct Sentence(String);

impl Visit for Sentence {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a string never fails.
        let _ = match field.name() {
            "message" => {
                let behind = std::mem::take(&mut self.0);
                write!(self.0, "{value:?}{behind}")
            }
            name => write!(self.0, "; {name}: {value:?}"),
        };
    }
}
