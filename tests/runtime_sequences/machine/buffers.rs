//! Buffers: made, shared, divided and freed, and the CPU's copies.

use super::known::*;
use super::step::Step;
use super::{World, calls, inside, meet, pattern};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io::{Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use tegrarm_abi::rm::status::*;

const WRITE_COMBINED: u32 = 1;
const GPU_READ_ONLY: u32 = 2;
const NO_POINTER: u32 = 4;
const PAGE: u64 = 4096;
/// The most pages of the process that one buffer has.
const PAGES: u64 = 4;
/// The most descriptors that a sequence keeps.
const MOST_SHARED: usize = 4;

fn has_unknown(flags: u32) -> bool {
    flags & !(WRITE_COMBINED | GPU_READ_ONLY | NO_POINTER) != 0
}

/// Unmaps the process's own pages, when the library uses none of them any more.
pub fn unmap(memories: &[Memory]) {
    for at in memories.iter().filter_map(|memory| memory.pages) {
        // SAFETY: `import_pages` mapped that many bytes there, and nothing uses them any more.
        let unmapped = unsafe { munmap(NonNull::new(at as *mut _).expect("an address"), (PAGES * PAGE) as usize) };
        unmapped.expect("the pages are mapped");
    }
}

/// New pages of this process. They are shared ones, because a supervisor reaches no others (known difference OOP-D01).
fn map_pages() -> usize {
    let len = NonZeroUsize::new((PAGES * PAGE) as usize).expect("a length");
    // SAFETY: this is a new mapping at an address that the host chooses.
    let at = unsafe { mmap_anonymous(None, len, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED) };
    at.expect("memory").as_ptr() as usize
}

fn write_pages(at: usize, bytes: &[u8]) {
    // SAFETY: the pages are mapped and as long, and the GPU does not know them yet.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
}

fn read_pages(at: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: the pages are mapped and as long, and the GPU has stopped using them.
    unsafe { std::ptr::copy_nonoverlapping(at as *const u8, bytes.as_mut_ptr(), len) };
    bytes
}

impl World {
    /// Keeps a new buffer of all of a memory.
    fn made(&mut self, handle: usize, device: usize, memory: usize, size: u64, flags: u32) {
        let (answer, (_, address)) = calls::address(handle);
        self.must(format!("buffer_address({handle:#x})"), answer);
        self.mappings += 1;
        let (start, mapping) = (0, self.mappings);
        let (read_only, pointer) = (flags & GPU_READ_ONLY != 0, flags & NO_POINTER == 0);
        let pointer = pointer || self.memories[memory].pages.is_some();
        self.buffers.add(handle, Buffer { device, memory, start, size, address, read_only, pointer, mapping });
    }

    fn remember(&mut self, bytes: Vec<u8>, pages: Option<usize>) -> usize {
        self.memories.push(Memory { bytes, user: None, run: None, pages });
        self.memories.len() - 1
    }

    pub(super) fn alloc(&mut self, s: &Step) {
        let (chosen, size, flags) = (self.devices.choose(s.picks[0]), s.size(), s.flags());
        let wrong = Wrong::default()
            .absent(chosen)
            .when(size == 0 || has_unknown(flags), NV_ERR_INVALID_ARGUMENT)
            .when(size > 1 << 40, NV_ERR_NO_MEMORY);
        let (answer, handle) = calls::alloc(chosen.handle, size, flags);
        if self.judge(format!("buffer_alloc({:#x}, {size:#x}, {flags})", chosen.handle), &wrong, answer) {
            let memory = self.remember(vec![0; size as usize], None);
            self.made(handle, chosen.at.expect("a device"), memory, size, flags);
        }
    }

    pub(super) fn part(&mut self, s: &Step) {
        let chosen = self.buffers.choose(s.picks[0]);
        let whole = chosen.at.map(|at| self.buffers[at]);
        let (at, len) = s.range(whole.map_or(PAGE, |b| b.size), 128);
        let wrong = Wrong::default()
            .absent(chosen)
            .when(len == 0, NV_ERR_INVALID_ARGUMENT)
            .when(whole.is_some_and(|b| !inside((at, len), b.size)), NV_ERR_INVALID_BASE);
        let (answer, handle) = calls::part(chosen.handle, at, len);
        if self.judge(format!("buffer_part({:#x}, {at:#x}, {len:#x})", chosen.handle), &wrong, answer) {
            let whole = whole.expect("a buffer");
            let (start, address) = (whole.start + at, whole.address + at);
            self.buffers.add(handle, Buffer { start, address, size: len, ..whole });
        }
    }

    pub(super) fn export(&mut self, s: &Step) {
        let chosen = self.buffers.choose(s.picks[0]);
        let buffer = chosen.at.map(|at| self.buffers[at]);
        let is_pages = buffer.is_some_and(|b| self.memories[b.memory].pages.is_some());
        let wrong = Wrong::default().absent(chosen).when(is_pages, NV_ERR_NOT_SUPPORTED);
        let (answer, (fd, offset)) = calls::export(chosen.handle);
        if !self.judge(format!("buffer_export({:#x})", chosen.handle), &wrong, answer) {
            return;
        }
        let (fd, buffer) = (fd.expect("a descriptor"), buffer.expect("a buffer"));
        self.expect(offset == buffer.start, "the offset is that of the buffer in its memory");
        let mut file = std::fs::File::from(fd);
        let size = file.seek(SeekFrom::End(0)).expect("the size of a dmabuf");
        let bytes = &mut self.memories[buffer.memory].bytes;
        assert!(size >= bytes.len() as u64 && size.is_multiple_of(PAGE), "a dmabuf of {size:#x} bytes");
        bytes.resize(size as usize, 0);
        if self.shared.len() == MOST_SHARED {
            self.shared.remove(0);
        }
        self.shared.push(Shared { fd: file.into(), memory: buffer.memory });
    }

    pub(super) fn import(&mut self, s: &Step) {
        let (chosen, flags) = (self.devices.choose(s.picks[0]), s.flags());
        let shared = self.shared.get(usize::from(s.x) % self.shared.len().max(1)).filter(|_| s.w % 8 != 3);
        let (fd, memory) = shared.map_or((-1, None), |shared| (shared.fd.as_raw_fd(), Some(shared.memory)));
        let wrong =
            Wrong::default().absent(chosen).when(memory.is_none() || has_unknown(flags), NV_ERR_INVALID_ARGUMENT);
        let (answer, handle) = calls::import(chosen.handle, fd, flags);
        if self.judge(format!("buffer_import({:#x}, {fd}, {flags})", chosen.handle), &wrong, answer) {
            let memory = memory.expect("a dmabuf");
            let size = self.memories[memory].bytes.len() as u64;
            self.made(handle, chosen.at.expect("a device"), memory, size, flags);
        }
    }

    pub(super) fn import_pages(&mut self, s: &Step) {
        let (chosen, flags) = (self.devices.choose(s.picks[0]), s.flags());
        let (size, off) = (u64::from(s.x) % (PAGES * PAGE), usize::from(s.w % 16 == 7) * 8);
        let pages = map_pages();
        let bytes = pattern(self.history.len() as u64, size).into_vec();
        write_pages(pages, &bytes);
        let memory = self.remember(bytes, Some(pages));
        let wrong = Wrong::default()
            .absent(chosen)
            .when(size == 0 || has_unknown(flags), NV_ERR_INVALID_ARGUMENT)
            .when(off != 0, NV_ERR_INVALID_ADDRESS);
        let (answer, handle) = calls::import_pages(chosen.handle, pages + off, size, flags);
        let call = format!("buffer_import_pages({:#x}, {:#x}, {size:#x}, {flags})", chosen.handle, pages + off);
        if self.judge(call, &wrong, answer) {
            self.made(handle, chosen.at.expect("a device"), memory, size, flags);
        }
    }

    pub(super) fn free(&mut self, s: &Step) {
        let chosen = self.buffers.choose(s.picks[0]);
        if let Some(buffer) = chosen.at {
            // A run of a replay uses the memory of its launches until it is over.
            let memory = self.buffers[buffer].memory;
            if let Some(replay) = self.memories[memory].run {
                self.end_run(replay);
            }
        }
        let answer = calls::free(chosen.handle);
        if self.judge(format!("buffer_free({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer) {
            self.end_buffer(chosen.at.expect("a buffer"));
        }
    }

    /// Notes that a buffer has ended. With the last one, the process has its own pages again.
    pub(super) fn end_buffer(&mut self, buffer: usize) {
        self.buffers.end(buffer);
        let memory = self.buffers[buffer].memory;
        let is_last = !self.buffers.valid().any(|other| self.buffers[other].memory == memory);
        if let (true, Some(pages)) = (is_last, self.memories[memory].pages) {
            let wanted = &self.memories[memory].bytes;
            self.expect(read_pages(pages, wanted.len()) == *wanted, "the pages have what the GPU wrote");
        }
    }

    pub(super) fn address(&mut self, s: &Step) {
        let chosen = self.buffers.choose(s.picks[0]);
        let (answer, (pointer, address)) = calls::address(chosen.handle);
        if self.judge(format!("buffer_address({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer) {
            let buffer = self.buffers[chosen.at.expect("a buffer")];
            self.expect((pointer != 0) == buffer.pointer, "a pointer, unless it was not wanted");
            self.expect(address == buffer.address, "the GPU's address stays");
            if let Some(pages) = self.memories[buffer.memory].pages {
                self.expect(pointer == pages + buffer.start as usize, "the pointer is the page's own address");
            }
        }
    }

    /// What a copy by the CPU must answer.
    fn reaches(&self, chosen: Chosen, range: (u64, u64)) -> Wrong {
        let Some(buffer) = chosen.at.map(|at| self.buffers[at]) else { return Wrong::default().absent(chosen) };
        Wrong::default()
            .when(!inside(range, buffer.size), NV_ERR_INVALID_BASE)
            .when(!buffer.pointer, NV_ERR_NOT_SUPPORTED)
            .when(self.queues[self.devices[buffer.device].own].stopped, NV_ERR_RESET_REQUIRED)
    }

    /// Makes a copy of the CPU, which waits for the default queue, come after the last use of the memory.
    fn order_copy(&mut self, chosen: Chosen, wrong: &Wrong) {
        if let (true, Some(buffer)) = (wrong.is_empty(), chosen.at.map(|at| self.buffers[at])) {
            self.order(buffer.memory, self.devices[buffer.device].own);
        }
    }

    pub(super) fn copy_in(&mut self, s: &Step) {
        let chosen = self.buffers.choose(s.picks[0]);
        let size = chosen.at.map_or(PAGE, |at| self.buffers[at].size);
        let (at, len) = s.range(size, 1);
        let (wrong, from) = (self.reaches(chosen, (at, len)), pattern(self.history.len() as u64, len.min(size)));
        self.order_copy(chosen, &wrong);
        let answer = calls::copy_in(chosen.handle, at, &from, len);
        if self.judge(format!("copy_in({:#x}, {at:#x}, {len:#x})", chosen.handle), &wrong, answer) {
            let buffer = self.buffers[chosen.at.expect("a buffer")];
            self.write(buffer.memory, buffer.start + at, &from);
        }
    }

    pub(super) fn copy_out(&mut self, s: &Step) {
        let chosen = self.buffers.choose(s.picks[0]);
        let size = chosen.at.map_or(PAGE, |at| self.buffers[at].size);
        let range = s.range(size, 1);
        let (wrong, mut to) = (self.reaches(chosen, range), vec![0x77; range.1.min(size) as usize]);
        self.order_copy(chosen, &wrong);
        let answer = calls::copy_out(chosen.handle, range.0, &mut to, range.1);
        if self.judge(format!("copy_out({:#x}, {:#x}, {:#x})", chosen.handle, range.0, range.1), &wrong, answer) {
            let buffer = self.buffers[chosen.at.expect("a buffer")];
            self.check(buffer.memory, buffer.start + range.0, &to);
        }
    }

    /// Compares all bytes of a buffer that the CPU sees.
    pub(super) fn compare(&mut self, buffer: usize) {
        let (handle, b) = (self.buffers.rows[buffer].handle, self.buffers[buffer]);
        self.order(b.memory, self.devices[b.device].own);
        if b.pointer {
            let mut found = vec![0; b.size as usize];
            let answer = calls::copy_out(handle, 0, &mut found, b.size);
            self.must(format!("copy_out({handle:#x}, all)"), answer);
            self.check(b.memory, b.start, &found);
        }
    }

    /// Compares bytes with those that a memory must have.
    fn check(&self, memory: usize, at: u64, found: &[u8]) {
        let wanted = &self.memories[memory].bytes[at as usize..][..found.len()];
        if let Some(first) = (0..found.len()).find(|i| found[*i] != wanted[*i]) {
            let (found, wanted, place) = (found[first], wanted[first], at + first as u64);
            self.fail(&format!("memory {memory} has {found:#x} at {place:#x}: it must have {wanted:#x}"));
        }
    }

    pub(super) fn write(&mut self, memory: usize, at: u64, bytes: &[u8]) {
        self.memories[memory].bytes[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Whether a copy between two buffers reads what it writes, through two mappings. What it does then is open.
    pub(super) fn is_open(&self, to: &Buffer, to_at: u64, from: &Buffer, from_at: u64, len: u64) -> bool {
        to.memory == from.memory
            && to.mapping != from.mapping
            && meet(to.start.saturating_add(to_at), from.start.saturating_add(from_at), len)
    }
}
