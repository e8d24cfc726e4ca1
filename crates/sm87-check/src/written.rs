//! Which bytes were written: of the shared and the local memory of a CTA since it began, and of global memory since the
//! launch began. A byte of global memory counts as written from the beginning if anybody has used its page before.

use super::quick::Quick;
use sm87::Launch;
use sm87::observe::access::{Memory, Span};
use std::ops::Range;

/// What is known of a byte.
pub(crate) const NEVER: u8 = 0;
pub(crate) const WRITTEN: u8 = 1;
/// It was written with a value that was made of bytes that never were.
pub(crate) const MADE_OF_SUCH: u8 = 2;

/// Whether all of some bytes were written.
#[inline(always)]
pub(crate) fn all_written(bytes: &[u8]) -> bool {
    match <[u8; 4]>::try_from(bytes) {
        Ok(four) => four == [WRITTEN; 4],
        // Without an early end, many bytes are compared at once.
        Err(_) => bytes.iter().fold(0, |differ, byte| differ | byte ^ WRITTEN) == 0,
    }
}

const PAGE: usize = 4096;
/// The most pages that are remembered. More of them count as written.
const MOST_PAGES: usize = 32 << 10;
/// The size of a thread's local address space.
const LOCAL: u64 = 1 << 24;

/// The number of the page in which all bytes are written.
const ALL: u32 = 0;

/// Global memory as a launch finds it and writes it.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// The number of each page, by its place in the host's memory: it may be mapped more than once.
    numbers: Quick<usize, u32>,
    pages: Vec<Box<[u8; PAGE]>>,
    /// The pages that were looked for last, by their addresses in the launch.
    recent: Vec<(u64, u32)>,
    /// A part of the host's memory that was used before the launch, or was not.
    last: (Range<usize>, bool),
}

const WAYS: usize = 64;

impl Pages {
    /// The bytes of the page of an address, unless all count as written.
    pub(crate) fn at(&mut self, launch: &Launch, va: u64) -> Option<&mut [u8; PAGE]> {
        let (page, way) = (va / PAGE as u64, (va / PAGE as u64) as usize % WAYS);
        let number = match self.recent.get(way) {
            Some((known, number)) if *known == page => *number,
            _ => self.find(launch, va),
        };
        if number == ALL { None } else { self.pages.get_mut(number as usize - 1).map(|page| &mut **page) }
    }

    #[cold]
    fn find(&mut self, launch: &Launch, va: u64) -> u32 {
        let (page, number) = (va / PAGE as u64, self.search(launch, va));
        self.recent.resize(WAYS, (u64::MAX, ALL));
        self.recent[page as usize % WAYS] = (page, number);
        number
    }

    fn search(&mut self, launch: &Launch, va: u64) -> u32 {
        let Some(extent) = launch.table.find(va) else { return ALL };
        let Some(backing) = &extent.backing else { return ALL };
        let offset = (extent.offset + (va - extent.va) as usize) / PAGE * PAGE;
        let (host, base) = (backing.as_ptr() as usize + offset, backing.as_ptr() as usize);
        if let Some(number) = self.numbers.get(&host) {
            return *number;
        }
        if !self.last.0.contains(&host) {
            let (used, end) = backing.used(offset);
            self.last = (host..base + end, used);
        }
        let number = if self.last.1 || self.pages.len() == MOST_PAGES {
            ALL
        } else {
            self.pages.push(Box::new([NEVER; PAGE]));
            self.pages.len() as u32
        };
        self.numbers.insert(host, number);
        number
    }
}

/// The bytes of the lanes of an instruction together.
#[derive(Debug)]
pub(crate) enum Together<'b> {
    /// They are in one page of global memory that counts as written, so that nothing is known of its bytes.
    Written,
    Bytes(&'b mut [u8]),
    /// They are in several places.
    Apart,
}

/// Bytes that are farther apart are not looked at together.
const FAR: u64 = 1024;

/// The bytes between the ends of what the lanes of an instruction access.
pub(crate) fn together<'b>(own: &'b mut Own, pages: &'b mut Pages, launch: &Launch, span: &Span) -> Together<'b> {
    let (first, len) = (span.low % PAGE as u64, span.len());
    let bytes = match span.memory {
        Memory::Global if first + len <= PAGE as u64 => match pages.at(launch, span.low) {
            None => return Together::Written,
            Some(page) => page.get_mut(first as usize..(first + len) as usize),
        },
        Memory::Shared if len <= FAR => own.at(Memory::Shared, 0, span.low, len),
        _ => None,
    };
    bytes.map_or(Together::Apart, Together::Bytes)
}

/// The shared and local memory of a CTA.
#[derive(Debug)]
pub(crate) struct Own {
    shared: Vec<u8>,
    /// The local memory of all threads, one after another, once a thread has written any.
    local: Vec<u8>,
    low: u64,
    high: u64,
    threads: usize,
}

impl Own {
    /// Nothing is written. Shared memory behind the first `arrays` bytes is not looked at.
    pub(crate) fn new(launch: &Launch, arrays: u32) -> Own {
        let size = |bytes: u32| u64::from(bytes).min(LOCAL).next_multiple_of(16);
        let threads = launch.block.iter().product::<u32>().next_multiple_of(32) as usize;
        let (low, high) = (size(launch.local_low), size(launch.local_high));
        Own { shared: vec![NEVER; arrays as usize], local: Vec::new(), low, high, threads }
    }

    /// Another CTA begins.
    pub(crate) fn clear(&mut self) {
        self.shared.fill(NEVER);
        self.local.fill(NEVER);
    }

    /// The bytes of an access of a thread, unless they count as written.
    pub(crate) fn at(&mut self, memory: Memory, thread: usize, at: u64, len: u64) -> Option<&mut [u8]> {
        let range = |at: u64| at as usize..(at + len) as usize;
        if memory == Memory::Shared {
            return self.shared.get_mut(range(at));
        }
        let offset = if at < self.low { at } else { self.low + at.checked_sub(LOCAL - self.high)? };
        let each = self.low + self.high;
        if offset + len > each || thread >= self.threads {
            return None;
        }
        if self.local.is_empty() {
            self.local.resize(each as usize * self.threads, NEVER);
        }
        self.local.get_mut(range(offset + each * thread as u64))
    }
}
