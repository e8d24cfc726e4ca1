//! Bounds: buffers to the byte, shared memory, and local frames.

use super::limits::Limits;
use super::report::Kind;
use super::{Inspector, Part, looked};
use sm87::observe::access::{Access, Memory};
use sm87::observe::{Env, Uop, Warp};
use tegra_mm::{Extent, PageTable};

/// An address is near a buffer up to this distance.
const NEAR: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// The size of a thread's local address space.
const LOCAL: u64 = 1 << 24;

/// The bytes of a mapping that were asked for, as it was found last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    start: u64,
    len: u64,
    writable: bool,
}

/// The number of bytes of an extent that its buffer has. Pages behind the last one that was asked for are never mapped.
fn used(extent: &Extent) -> u64 {
    let asked = extent.backing.as_ref().map_or(u64::MAX, |b| b.asked() as u64);
    extent.len.min(asked.saturating_sub(extent.offset as u64))
}

/// Which of the bytes were found last for an address.
fn way(va: u64) -> usize {
    (va >> 16) as usize & 15
}

impl Inspector {
    /// Whether all that an instruction accesses is inside of shared memory, or of the buffer that was found last.
    pub(super) fn is_inside(&self, writes: bool) -> bool {
        match self.span {
            Some(span) if span.memory == Memory::Global => {
                let found = self.found[way(span.low)];
                let offset = span.low.wrapping_sub(found.start);
                offset < found.len && found.len - offset >= span.len() && (found.writable || !writes)
            }
            Some(span) => span.memory == Memory::Shared && span.end <= self.limits.arrays.into(),
            None => false,
        }
    }

    /// Looks at an access before it is made.
    pub(super) fn bounds(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, access: &Access) {
        let wrong = match access.memory {
            Memory::Global => self.outside_of_buffers(&env.launch().table, access),
            Memory::Shared => self.limits.outside_of_shared(access),
            Memory::Local => self.limits.outside_of_frames(w, env, access),
        };
        let Some((which, wrong)) = wrong.filter(|_| !self.is_wider_than_used(env, u, access)) else { return };
        self.report(env, Kind::Memory, which, u.at(), |party| {
            let (memory, what, at) = (access.memory.name(), access.what(), access.at);
            let title = format!("{memory} {what} of {} bytes at {at:#x}, {}", access.len, wrong());
            let lane = access.lane;
            (title, vec![party(Part { what: what.to_owned(), warp: w.index(), lane, at: u.at(), block: None })])
        });
    }

    /// Whether a load begins in a buffer and all that it reads behind the buffer's end is overwritten before it is read.
    /// ptxas makes one aligned load of four words of loads of three. It stays in one page, so that it cannot fail.
    fn is_wider_than_used(&mut self, env: &Env<'_>, u: &Uop, access: &Access) -> bool {
        if access.memory != Memory::Global || access.writes {
            return false;
        }
        let Some(extent) = env.launch().table.find(access.at) else { return false };
        let inside = (extent.va + used(extent)).saturating_sub(access.at);
        let program = looked(env.image()).program(env.image());
        // Every thread may make this load, and the program is the same for all of them.
        let mut is_read = |row| {
            let known = self.read_behind.entry((env.pc(u.at()), row));
            *known.or_insert_with(|| program.is_read_behind(env.image(), u.at(), row))
        };
        let mut words = program.at(u.at()).written().zip((4..).step_by(4));
        inside > 0 && !words.any(|(row, end)| end > inside && is_read(row))
    }

    /// Why an address is wrong, if it is. The sentence is only made for what is reported.
    fn outside_of_buffers<'t>(&mut self, table: &'t PageTable, access: &Access) -> Wrong<'t> {
        let (at, len) = (access.at, u64::from(access.len));
        let found = self.found[way(at)];
        let offset = at.wrapping_sub(found.start);
        if offset < found.len && found.len - offset >= len && (found.writable || !access.writes) {
            return None;
        }
        let Some(extent) = table.find(at) else { return Some((0, Box::new(move || nearest(table, at)))) };
        let found = Found { start: extent.va, len: used(extent), writable: extent.writable };
        self.found[way(at)] = found;
        let offset = at - found.start;
        if offset >= found.len || found.len - offset < len {
            return Some((1, Box::new(move || beyond(extent, at, len))));
        }
        if access.writes && !found.writable {
            let (start, bytes) = (extent.va, found.len);
            return Some((
                2,
                Box::new(move || format!("in the {bytes}-byte buffer at {start:#x}, which is read-only")),
            ));
        }
        None
    }
}

/// Tells two reasons of one place apart, and says why.
type Wrong<'t> = Option<(u8, Box<dyn Fn() -> String + 't>)>;

/// Where the end of a buffer is that an access does not respect.
fn beyond(extent: &Extent, at: u64, len: u64) -> String {
    let (start, bytes) = (extent.va, used(extent));
    match at.checked_sub(start + bytes) {
        Some(far) => format!("{far} bytes past the end of the {bytes}-byte buffer at {start:#x}"),
        None => {
            let over = at + len - (start + bytes);
            format!("of which the last {over} are past the end of the {bytes}-byte buffer at {start:#x}")
        }
    }
}

/// Where in a buffer an address is.
pub(super) fn place(table: &PageTable, at: u64) -> Option<String> {
    let extent = table.find(at)?;
    let (start, bytes) = (extent.va, used(extent));
    Some(format!("{} bytes into the {bytes}-byte buffer at {start:#x}", at - start))
}

/// The buffer that is nearest to an address where nothing is mapped.
fn nearest(table: &PageTable, at: u64) -> String {
    if at < 1 << 16 {
        return "which is a null pointer and an offset".to_owned();
    }
    let pages = || (0..NEAR).step_by(PAGE as usize);
    let before = pages().find_map(|far| table.find(at.checked_sub(far)?));
    let behind = pages().find_map(|far| table.find(at.checked_add(far)?));
    let past = before.map(|extent| (at - (extent.va + used(extent)), extent));
    let ahead = behind.map(|extent| (extent.va - at, extent));
    match (past, ahead) {
        (Some((far, extent)), ahead) if ahead.is_none_or(|(more, _)| far <= more) => {
            format!("{far} bytes past the end of the {}-byte buffer at {:#x}", used(extent), extent.va)
        }
        (_, Some((far, extent))) => {
            format!("{far} bytes before the {}-byte buffer at {:#x}", used(extent), extent.va)
        }
        _ => "where no buffer is".to_owned(),
    }
}

impl Limits {
    fn outside_of_shared<'t>(&self, access: &Access) -> Wrong<'t> {
        let (at, end, bytes) = (access.at, access.at + u64::from(access.len), self.arrays);
        if end <= bytes.into() || self.reserved.start <= at && end <= self.reserved.end {
            return None;
        }
        Some((0, Box::new(move || format!("outside of the {bytes} bytes that the shared arrays have"))))
    }

    /// The frames of a thread are between its stack pointer, R1, and the one that the kernel began with.
    fn outside_of_frames<'t>(&self, w: &Warp, env: &Env<'_>, access: &Access) -> Wrong<'t> {
        let (at, end) = (access.at, access.at + u64::from(access.len));
        let launch = env.launch();
        let (low, high) = (u64::from(launch.local_low), LOCAL - u64::from(launch.local_high));
        if !(end <= low || at >= high && end <= LOCAL) {
            let bytes = u64::from(launch.local_low) + u64::from(launch.local_high);
            return Some((0, Box::new(move || format!("outside of the {bytes} bytes of local memory of a thread"))));
        }
        let stack = self.stack.filter(|_| at >= high).map(u64::from);
        let (Some(first), pointer) = (stack, u64::from(env.register(w, 1, access.lane))) else { return None };
        if end > first {
            let over = end - first.max(at);
            let why = move || format!("of which {over} are past the end of the thread's frames at {first:#x}");
            return Some((1, Box::new(why)));
        }
        let below = at < pointer && pointer <= first;
        below.then(|| -> (u8, Box<dyn Fn() -> String>) {
            let far = pointer - at;
            let why = move || format!("{far} bytes below the frames of the thread, which begin at {pointer:#x}");
            (2, Box::new(why))
        })
    }
}
