//! Formats what kernels print, as the C library would, and passes it to the program.

use super::super::guard::status;
use super::super::objects::NV_STATUS;
use super::super::shield;
use super::handles::DEVICES;
use super::opaque::tegrarm_device;
use crate::runtime::device::Device;
use crate::runtime::library::format::{Conversion, Part, Value, parts};
use crate::runtime::library::messages::Printed;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

/// A function that receives what kernels print. `text` has `size` bytes, which can have any value, and a NUL behind them. It is valid
/// during the call. `user` is the value that was passed to `tegrarm_printf`.
#[allow(non_camel_case_types)]
pub type tegrarm_printf_callback =
    Option<unsafe extern "C-unwind" fn(text: *const c_char, size: usize, user: *mut c_void)>;

/// Calls `callback` with the text that kernels of a device print with `printf`, once for each `printf`. If `callback` is NULL, the text
/// goes to the program's standard output, as it does when a device has just been opened. `user` is passed to the callback.
///
/// Kernels write into a buffer, whose size is `TEGRARM_LIMIT_PRINTF_SIZE`. Every call that waits for work of the device reads the buffer,
/// also if the wait fails. It calls the callback in its own thread. The callback is never called by two threads at once. If the buffer is
/// full, further text is lost, and the callback then gets a line that says how many calls of `printf` were lost. The callback may call
/// every function but `tegrarm_device_close`. It must not wait for another thread that waits for the device.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_printf(
    device: *mut tegrarm_device,
    callback: tegrarm_printf_callback,
    user: *mut c_void,
) -> NV_STATUS {
    status(|| {
        let device = DEVICES.get(device)?;
        let Some(callback) = callback else {
            print_to_standard_output(&device);
            return Ok(());
        };
        let user = user as usize;
        device.print_with(Arc::new(move |printed| {
            each(printed, |text| {
                let size = text.len() - 1;
                // SAFETY: the caller of `tegrarm_printf` promises that `callback` can be called with `user` and a text.
                shield::call("tegrarm_printf", || unsafe { callback(text.as_ptr().cast(), size, user as *mut c_void) });
            });
        }));
        Ok(())
    })
}

unsafe extern "C" {
    /// The standard output of the C library. The program's own `printf` uses the same buffer.
    static stdout: *mut libc::FILE;
}

/// Sends what kernels of a device print to standard output, as CUDA does.
pub(super) fn print_to_standard_output(device: &Device) {
    device.print_with(Arc::new(|printed| {
        each(printed, |text| {
            // SAFETY: the text has that many bytes; the stream is the C library's own. If it cannot be written, it is lost, as with printf(3).
            unsafe { libc::fwrite(text.as_ptr().cast(), 1, text.len() - 1, stdout) };
        });
        // SAFETY: the stream is the C library's own.
        unsafe { libc::fflush(stdout) };
    }));
}

/// Formats each message and passes it to `show`, with a NUL at its end.
fn each(printed: &Printed, mut show: impl FnMut(&[u8])) {
    for record in &printed.records {
        let mut text = Vec::new();
        for part in parts(record) {
            match part {
                Part::Text(bytes) => text.extend_from_slice(bytes),
                Part::Conversion(conversion, value) => put(&mut text, &conversion, value),
            }
        }
        text.push(0);
        show(&text);
    }
    if printed.lost > 0 {
        let lost = printed.lost;
        let line = format!(
            "[tegrarm] {lost} calls of printf were lost: the buffer was full. Make it larger (TEGRARM_LIMIT_PRINTF_SIZE, TEGRARM_PRINTF_SIZE), \
             or wait more often.\n\0"
        );
        show(line.as_bytes());
    }
}

/// The largest number of bytes of one conversion. A longer text is cut.
const WIDEST: usize = 1 << 20;

/// Formats one argument.
fn put(text: &mut Vec<u8>, conversion: &Conversion<'_>, value: Value<'_>) {
    let Conversion { flags, width, precision, narrow, letter } = *conversion;
    let length: &[u8] = match (value, narrow) {
        (Value::Double(_), _) if letter != b'p' => b"ll",
        (Value::Word(_), Some(1)) if letter != b'c' => b"hh",
        (Value::Word(_), Some(_)) if letter != b'c' => b"h",
        _ => b"",
    };
    // Width and precision are always passed, so that one form of the call is enough. A negative precision means none.
    let format = [b"%", flags, b"*.*", length, &[letter]].concat();
    let Ok(format) = CString::new(format) else { return };
    let (width, precision) = (width.unwrap_or(0), precision.unwrap_or(-1));
    let format = format.as_ptr();
    match value {
        Value::Word(word) => print_into(text, |to, room| {
            // SAFETY: the format takes an `int`, as its letter and its length say.
            unsafe { libc::snprintf(to, room, format, width, precision, word) }
        }),
        Value::Double(word) => print_into(text, |to, room| {
            // SAFETY: the format takes a `long long` or a pointer; both have eight bytes.
            unsafe { libc::snprintf(to, room, format, width, precision, word) }
        }),
        Value::Real(real) => print_into(text, |to, room| {
            // SAFETY: the format takes a `double`.
            unsafe { libc::snprintf(to, room, format, width, precision, real) }
        }),
        Value::String(string) => {
            let string = CString::new(string.unwrap_or(b"(null)")).unwrap_or_default();
            let string = string.as_ptr();
            print_into(text, |to, room| {
                // SAFETY: the format takes a string, which ends with a NUL and lives until the call has returned.
                unsafe { libc::snprintf(to, room, format, width, precision, string) }
            });
        }
    }
}

/// Appends what `print` writes. `print` returns the length of the whole text, as `snprintf` does.
fn print_into(text: &mut Vec<u8>, print: impl Fn(*mut c_char, usize) -> c_int) {
    let mut buffer = vec![0u8; 64];
    for _ in 0..2 {
        let length = usize::try_from(print(buffer.as_mut_ptr().cast(), buffer.len())).unwrap_or(0);
        if length < buffer.len() || buffer.len() > WIDEST {
            text.extend_from_slice(&buffer[..length.min(buffer.len() - 1)]);
            return;
        }
        buffer.resize(length.min(WIDEST) + 1, 0);
    }
    text.extend_from_slice(&buffer[..buffer.len() - 1]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::library::messages::Record;

    fn text(format: &str, arguments: &[u8], strings: &[u8]) -> String {
        let record = Record { format: format.into(), arguments: arguments.to_vec(), strings: strings.to_vec() };
        let mut said = Vec::new();
        each(&Printed { records: vec![record], lost: 0 }, |text| said.extend_from_slice(&text[..text.len() - 1]));
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn conversions_are_the_c_librarys() {
        assert_eq!(text("%d|%5d|%-5d|%05d", &[7u8, 0, 0, 0].repeat(4), b""), "7|    7|7    |00007");
        assert_eq!(text("%x %#o %c", &[0xffu8, 0, 0, 0, 8, 0, 0, 0, b'z', 0, 0, 0], b""), "ff 010 z");
        assert_eq!(text("%hhd %hd", &[0xffu8, 1, 0, 0, 0xff, 0xff, 1, 0], b""), "-1 -1");
        assert_eq!(text("%lld %zu", &[(-2i64).to_le_bytes(), 3u64.to_le_bytes()].concat(), b""), "-2 3");
        assert_eq!(text("%.3f %e %g %a", &1.5f64.to_le_bytes().repeat(4), b""), "1.500 1.500000e+00 1.5 0x1.8p+0");
        assert_eq!(text("%p", &0xdead_beef_u64.to_le_bytes(), b""), "0xdeadbeef");
        assert_eq!(
            text("%-4s|%.1s|%s", &[1u64.to_le_bytes(), 1u64.to_le_bytes(), [0; 8]].concat(), b"ab\0xy\0\0"),
            "ab  |x|(null)"
        );
        assert_eq!(text("100%%\n", b"", b""), "100%\n");
    }

    #[test]
    fn a_conversion_that_is_too_wide_is_cut() {
        assert_eq!(text("%300d", &[1, 0, 0, 0], b"").len(), 300);
        assert_eq!(text("%2000000d", &[1, 0, 0, 0], b"").len(), WIDEST);
    }

    #[test]
    fn what_was_lost_is_told() {
        let mut said = Vec::new();
        each(&Printed { records: Vec::new(), lost: 3 }, |text| said.extend_from_slice(text));
        let said = String::from_utf8(said).unwrap();
        assert!(
            said.contains("3 calls of printf were lost") && said.contains("larger (TEGRARM_LIMIT_PRINTF_SIZE"),
            "{said}"
        );
    }
}
