//! The code and the buffers of a device, by address. They tell what is, or was, at an address whose access failed.

use std::backtrace::Backtrace;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use tegrarm_images::cubin::{Cubin, Line};
use tegrarm_lock::Mutex;

/// The calls that a thread has made, as a debugger lists them.
pub type Calls = Arc<Backtrace>;

/// The largest distance in bytes at which an address counts as near a buffer.
const NEAR: u64 = 1 << 20;
/// How many freed buffers are remembered.
const REMEMBERED: usize = 1024;

/// The modules and buffers of a device.
#[derive(Default)]
pub struct AddressMap {
    modules: Mutex<Vec<(u64, Arc<Cubin>)>>,
    buffers: Mutex<Buffers>,
}

#[derive(Default)]
struct Buffers {
    /// The start and the length of each buffer that exists.
    live: BTreeMap<u64, u64>,
    /// The buffers that were freed.
    freed: VecDeque<Freed>,
    /// How many calls have freed a buffer so far.
    calls: u64,
}

/// A buffer that was freed.
struct Freed {
    start: u64,
    len: u64,
    /// The number of the call that freed it.
    call: u64,
    /// The calls that led there, if they are kept.
    calls: Option<Calls>,
}

/// A place in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The function.
    pub function: String,
    /// Whether it is a kernel.
    pub is_kernel: bool,
    /// The distance in bytes from the first instruction of the function.
    pub offset: u64,
    /// The line of the source, if the module was compiled with lines.
    pub line: Option<Line>,
    /// How many bytes of shared memory the arrays of the kernel use.
    pub shared: u64,
}

impl Display for Located {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = if self.is_kernel { "kernel" } else { "function" };
        write!(f, "{what} {}+{:#x}", self.function, self.offset)?;
        match &self.line {
            Some(Line { file, line }) => write!(f, " ({file}:{line})"),
            None => Ok(()),
        }
    }
}

impl AddressMap {
    /// Notes that a module was loaded at an address.
    pub fn loaded(&self, at: u64, cubin: &Arc<Cubin>) {
        self.modules.lock().push((at, cubin.clone()));
    }

    /// Notes that the module at an address is unloaded.
    pub fn unloaded(&self, at: u64) {
        self.modules.lock().retain(|(start, _)| *start != at);
    }

    /// The function and the line of an instruction.
    pub fn place(&self, pc: u64) -> Option<Located> {
        let modules = self.modules.lock();
        let inside = |(at, cubin): &&(u64, Arc<Cubin>)| pc.wrapping_sub(*at) < cubin.memory_size();
        let (at, cubin) = modules.iter().find(inside)?;
        let offset = pc - at;
        // The smallest function that contains the instruction is the right one. The section of a kernel contains the functions
        // that it calls.
        let functions = cubin.functions().iter().filter(|f| f.offset <= offset && offset - f.offset < f.size);
        let function = functions.min_by_key(|f| f.size)?;
        let kernel = cubin.kernel(&function.name);
        Some(Located {
            function: function.name.clone(),
            is_kernel: kernel.is_some(),
            offset: offset - function.offset,
            line: cubin.line(offset),
            shared: kernel.map_or(0, |k| k.shared.into()),
        })
    }

    /// Notes that a buffer was made.
    pub fn made(&self, start: u64, len: u64) {
        self.buffers.lock().live.insert(start, len);
    }

    /// Notes that a call freed a buffer. `is_last` says that no other buffer shares its memory, so that the memory is freed, too. `calls`
    /// are those that led there.
    pub fn freed(&self, start: u64, len: u64, is_last: bool, calls: Option<Calls>) {
        let mut buffers = self.buffers.lock();
        buffers.calls += 1;
        if is_last {
            let call = buffers.calls;
            buffers.live.remove(&start);
            if buffers.freed.len() == REMEMBERED {
                buffers.freed.pop_front();
            }
            buffers.freed.push_back(Freed { start, len, call, calls });
        }
    }

    /// The calls that freed the buffer at an address where no buffer is any more, if they are known.
    pub fn calls_that_freed(&self, address: u64) -> Option<Calls> {
        let buffers = self.buffers.lock();
        let within = |start: u64, len: u64| address.wrapping_sub(start) < len;
        let before = buffers.live.range(..=address).next_back();
        if before.is_some_and(|(start, len)| within(*start, *len)) {
            return None;
        }
        buffers.freed.iter().rev().find(|freed| within(freed.start, freed.len))?.calls.clone()
    }

    /// Says where an accessed address is, compared with the buffers.
    pub fn near(&self, address: u64) -> String {
        let buffers = self.buffers.lock();
        let within = |start: u64, len: u64| address.wrapping_sub(start) < len;
        let before = buffers.live.range(..=address).next_back().map(|(start, len)| (*start, *len));
        let behind = buffers.live.range(address..).next().map(|(start, len)| (*start, *len));
        if let Some((start, len)) = before.filter(|(start, len)| within(*start, *len)) {
            return format!("in the {}-byte buffer at {start:#x}", Commas(len));
        }
        if let Some(Freed { start, len, call, .. }) = buffers.freed.iter().rev().find(|f| within(f.start, f.len)) {
            let len = Commas(*len);
            return format!(
                "in the {len}-byte buffer at {start:#x}, which was freed by call #{call} of tegrarm_buffer_free"
            );
        }
        let past = before.map(|(start, len)| (address - start - len, start, len)).filter(|(far, ..)| *far < NEAR);
        let ahead = behind.map(|(start, len)| (start - address, start, len)).filter(|(far, ..)| *far <= NEAR);
        let far_ahead = ahead.map_or(u64::MAX, |(far, ..)| far);
        match (past, ahead) {
            _ if address < 1 << 16 => "which is a null pointer plus an offset".to_owned(),
            (Some((far, start, len)), _) if far <= far_ahead => {
                format!("{} bytes past the end of the {}-byte buffer at {start:#x}", Commas(far), Commas(len))
            }
            (_, Some((far, start, len))) => {
                format!("{} bytes before the {}-byte buffer at {start:#x}", Commas(far), Commas(len))
            }
            _ => "outside all buffers of the device".to_owned(),
        }
    }
}

/// A number with commas: `4,096`.
pub struct Commas(pub u64);

impl Display for Commas {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.char_indices() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_by_the_nearest_buffer() {
        let known = AddressMap::default();
        known.made(0x10_0000, 4096);
        known.made(0x20_0000, 8192);
        let near = |at| known.near(at);
        assert_eq!(near(0x10_100c), "12 bytes past the end of the 4,096-byte buffer at 0x100000");
        assert_eq!(near(0x10_1000), "0 bytes past the end of the 4,096-byte buffer at 0x100000");
        assert_eq!(near(0x10_0fff), "in the 4,096-byte buffer at 0x100000");
        assert_eq!(near(0x1f_fff0), "16 bytes before the 8,192-byte buffer at 0x200000");
        assert_eq!(near(8), "which is a null pointer plus an offset");
        assert_eq!(near(1 << 40), "outside all buffers of the device");
    }

    #[test]
    fn memory_that_was_freed_is_remembered_until_it_is_a_buffer_again() {
        let known = AddressMap::default();
        known.made(0x10_0000, 4096);
        known.made(0x40_0000, 4096);
        known.freed(0x40_0000, 4096, true, None);
        known.freed(0x10_0000, 64, false, None);
        assert_eq!(known.near(0x10_0010), "in the 4,096-byte buffer at 0x100000", "another part is left");
        known.freed(0x10_0000, 4096, true, Some(Arc::new(std::backtrace::Backtrace::force_capture())));
        let text = "in the 4,096-byte buffer at 0x100000, which was freed by call #3 of tegrarm_buffer_free";
        assert_eq!(known.near(0x10_0010), text);
        assert!(known.calls_that_freed(0x10_0010).is_some() && known.calls_that_freed(0x40_0000).is_none());
        known.made(0x10_0000, 8192);
        assert!(known.calls_that_freed(0x10_0010).is_none());
        assert_eq!(known.near(0x10_0010), "in the 8,192-byte buffer at 0x100000");
    }

    #[test]
    fn numbers_have_commas() {
        let all: Vec<String> = [0, 12, 999, 1000, 4096, 1_234_567].iter().map(|n| Commas(*n).to_string()).collect();
        assert_eq!(all, ["0", "12", "999", "1,000", "4,096", "1,234,567"]);
    }
}
