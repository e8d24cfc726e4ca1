//! The kernel's log of the virtual board: what the driver says about faults of the GPU. The lines have the driver's own
//! words where these are known.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tegra_gpu::{Gpu, LogLine};
use tegra_kernel::Kernel;
use tegrarm_lock::Mutex;

/// The form of a log in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The form in which `dmesg` prints it: `[    5.123456] nvgpu: 17000000.gpu [ERR] ...`.
    Dmesg,
    /// The form that `/dev/kmsg` has: `3,7,5123456,-;nvgpu: 17000000.gpu [ERR] ...`, with priority, number and
    /// microseconds.
    Records,
}

/// The priorities of syslog.
const ERROR: u32 = 3;
const WARNING: u32 = 4;

/// The line without its time: the driver's prefix, which names the device and the kind of message.
fn message(device: &str, line: &LogLine<'_>) -> String {
    let kind = if line.fatal { "ERR" } else { "WRN" };
    format!("nvgpu: {device} [{kind}] {}", line.text)
}

fn written(form: Form, device: &str, number: u32, line: &LogLine<'_>) -> String {
    let (message, us) = (message(device, line), line.time_ns / 1000);
    match form {
        Form::Dmesg => format!("[{:5}.{:06}] {message}", us / 1_000_000, us % 1_000_000),
        Form::Records => format!("{},{number},{us},-;{message}", if line.fatal { ERROR } else { WARNING }),
    }
}

/// From now on, writes each new line of the log to `out`. A line that cannot be written is lost.
pub fn write_log(kernel: &Kernel, gpu: &Gpu, form: Form, out: Box<dyn Write + Send>) {
    let (device, out) = (kernel.device_name(), Mutex::new((out, 0)));
    gpu.read_log(Arc::new(move |line| {
        let (out, number) = &mut *out.lock();
        let _ = writeln!(out, "{}", written(form, device, *number, line)).and_then(|()| out.flush());
        *number += 1;
    }));
}

/// At most this many lines of one board are printed for the user. A program that continues after its faults would
/// otherwise fill the screen.
const SAID: u32 = 20;

/// From now on, passes each line of the log to `say`, but not more than [`SAID`] lines. `more` says where the user
/// finds the other lines.
pub fn say_log(kernel: &Kernel, gpu: &Gpu, more: &'static str, say: impl Fn(&str) + Send + Sync + 'static) {
    let (device, count) = (kernel.device_name(), AtomicU32::new(0));
    gpu.read_log(Arc::new(move |line| match count.fetch_add(1, Ordering::Relaxed) {
        n if n < SAID => say(&message(device, line)),
        n if n == SAID => say(&format!("the GPU has more to report; {more}")),
        // The count stays where it is, so that it never wraps to zero.
        n => count.store(n, Ordering::Relaxed),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_those_of_their_readers() {
        let line = LogLine { time_ns: 5_123_456_789, text: "[MMU FAULT] fault addr: 0x10", fatal: true };
        let text = "nvgpu: 17000000.gpu [ERR] [MMU FAULT] fault addr: 0x10";
        assert_eq!(written(Form::Dmesg, "17000000.gpu", 7, &line), format!("[    5.123456] {text}"));
        assert_eq!(written(Form::Records, "17000000.gpu", 7, &line), format!("3,7,5123456,-;{text}"));
        let line = LogLine { fatal: false, ..line };
        assert!(written(Form::Records, "x", 8, &line).starts_with("4,8,5123456,-;nvgpu: x [WRN] "));
    }
}
