//! How much memory kernels get for `malloc` and for `printf`.

use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// The smallest and the largest size of the heap and of the ring.
const HEAP: (u64, u64) = (4096, 32 << 30);
const PRINTF: (u64, u64) = (4096, 1 << 30);

/// The number of bytes of the heap of `malloc` and of the ring of `printf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The size of the heap: a multiple of the page size, or 0.
    pub heap: u64,
    /// The size of the ring: a power of two.
    pub printf: u64,
}

impl Default for Sizes {
    /// The sizes that CUDA has at first: 8 MiB and 1 MiB.
    fn default() -> Sizes {
        Sizes { heap: 8 << 20, printf: 1 << 20 }
    }
}

impl Sizes {
    /// The default sizes. `TEGRARM_HEAP_SIZE` and `TEGRARM_PRINTF_SIZE` replace them.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if a variable does not have a valid size.
    pub fn from_env() -> RmResult<Sizes> {
        let mut sizes = Sizes::default();
        if let Some(heap) = number("TEGRARM_HEAP_SIZE", std::env::var_os("TEGRARM_HEAP_SIZE"))? {
            sizes.heap = Sizes::heap(heap)?;
        }
        if let Some(printf) = number("TEGRARM_PRINTF_SIZE", std::env::var_os("TEGRARM_PRINTF_SIZE"))? {
            sizes.printf = Sizes::printf(printf)?;
        }
        Ok(sizes)
    }

    /// The size of a heap that has at least this many bytes.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if that is more than a heap can have.
    pub fn heap(bytes: u64) -> RmResult<u64> {
        match bytes {
            0 => Ok(0),
            _ => Ok(limited("heap", bytes, HEAP)?.next_multiple_of(4096)),
        }
    }

    /// The size of a ring that has at least this many bytes.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if that is more than a ring can have.
    pub fn printf(bytes: u64) -> RmResult<u64> {
        Ok(limited("printf buffer", bytes, PRINTF)?.next_power_of_two())
    }
}

fn limited(what: &str, bytes: u64, (least, most): (u64, u64)) -> RmResult<u64> {
    if bytes > most {
        fail!(NV_ERR_INVALID_ARGUMENT, "a {what} of {bytes} bytes: at most {most}");
    }
    Ok(bytes.max(least))
}

/// The number in a variable of the environment. `None` if the variable is unset or empty.
fn number(name: &str, value: Option<std::ffi::OsString>) -> RmResult<Option<u64>> {
    let Some(value) = value.filter(|v| !v.is_empty()) else { return Ok(None) };
    match value.to_str().and_then(|text| text.trim().parse().ok()) {
        Some(number) => Ok(Some(number)),
        None => fail!(NV_ERR_INVALID_ARGUMENT, "{name}={}: must be a number of bytes", value.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_and_have_ends() {
        assert_eq!((Sizes::heap(0).unwrap(), Sizes::heap(1).unwrap(), Sizes::heap(4097).unwrap()), (0, 4096, 8192));
        assert_eq!((Sizes::printf(0).unwrap(), Sizes::printf(5000).unwrap()), (4096, 8192));
        assert!(Sizes::heap(u64::MAX).unwrap_err().to_string().contains("at most"));
        assert!(Sizes::printf(u64::MAX).unwrap_err().to_string().contains("at most"));
    }

    #[test]
    fn variables_are_numbers() {
        assert_eq!(number("A", None).unwrap(), None);
        assert_eq!(number("A", Some("".into())).unwrap(), None);
        assert_eq!(number("A", Some("123".into())).unwrap(), Some(123));
        assert!(number("A", Some("8M".into())).unwrap_err().to_string().contains("A=8M"));
    }
}
