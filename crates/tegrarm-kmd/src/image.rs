//! The contents of one ioctl argument without everything that differs between runs: descriptors become labels, pointers
//! become "given" or "not given", and the memory behind pointers is kept separately.

use crate::describe::{self, unsigned};
use crate::descriptors::{self, Role};
use crate::labels::Labels;
use crate::memory;
use crate::pointers::{self, Pointer, Use};
use crate::{Arg, Errno, Node};
use std::collections::BTreeMap;
use std::os::fd::RawFd;

/// Labels, by byte offset.
pub(crate) type Fds = BTreeMap<usize, String>;

/// The memory behind one pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub bytes: Vec<u8>,
    pub fds: Fds,
}

/// An argument before or after a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Image {
    /// The plain integer, if the argument is one.
    pub value: Option<u64>,
    pub bytes: Vec<u8>,
    pub fds: Fds,
    /// The buffers, by the offset of their pointers.
    pub buffers: BTreeMap<usize, Buffer>,
}

/// The moment at which an image is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before the call. The image has the data that the kernel reads.
    Before,
    /// After a call that succeeded. The image has the data that the kernel wrote.
    Done,
    /// After a call that failed, which makes no descriptors.
    Failed,
}

/// The pointers of an argument before the call, with the number of bytes behind each.
pub(crate) type Spans = BTreeMap<usize, (u64, usize)>;

impl Image {
    /// Takes the image of an argument. `spans` is the result of [`spans`] before the call.
    pub(crate) fn take(request: u32, arg: &Arg<'_>, spans: &Spans, moment: Moment, labels: &mut Labels) -> Image {
        let bytes = match arg {
            Arg::Value(v) => return Image { value: Some(*v), ..Image::default() },
            Arg::Bytes(bytes) => bytes.to_vec(),
        };
        let mut image = Image { bytes, ..Image::default() };
        let overwritten = moment == Moment::Done && pointers::overwrites_input(request);
        if !overwritten {
            image.label_descriptors(request, moment, labels);
        }
        for p in pointers::of(request) {
            let Some((addr, len)) = spans.get(&p.offset).copied() else { continue };
            let relevant = match moment {
                Moment::Before => matches!(p.usage, Use::In | Use::InOut),
                Moment::Done | Moment::Failed => p.is_written(),
            };
            // Memory that cannot be read is left out. The kernel answers EFAULT then, and this is recorded.
            let memory = if relevant { memory::read(addr, len).ok() } else { None };
            if let Some(bytes) = memory {
                image.buffers.insert(p.offset, Buffer::take(bytes, p, labels));
            }
        }
        if !overwritten {
            image.mask_pointers(request);
        }
        image
    }

    fn label_descriptors(&mut self, request: u32, moment: Moment, labels: &mut Labels) {
        let flags = self.bytes.clone();
        for d in descriptors::of(request).filter(|d| d.applies(&flags)) {
            let Some(field) = self.bytes.get_mut(d.offset..d.offset + 4) else { continue };
            let number = unsigned(field) as u32 as RawFd;
            match (d.role, moment) {
                (Role::In, _) => name_existing(&mut self.bytes, &mut self.fds, d.offset, d.kind, labels),
                (Role::Out | Role::OutOverInput, Moment::Done) => {
                    self.fds.insert(d.offset, labels.add(number, d.kind));
                    field.fill(0);
                }
                (Role::Out, _) => field.fill(0),
                (Role::OutOverInput, _) => {}
            }
        }
    }

    /// Replaces pointers by 0 (no pointer) or 1 (a pointer).
    fn mask_pointers(&mut self, request: u32) {
        for p in pointers::of(request) {
            if let Some(field) = self.bytes.get_mut(p.offset..p.offset + 8) {
                let given = u64::from(unsigned(field) != 0);
                field.copy_from_slice(&given.to_le_bytes());
            }
        }
    }

    /// The differences from another image of the same request, by name, as `what: here, there`.
    pub(crate) fn differences(&self, node: Node, request: u32, now: &Image) -> Vec<String> {
        let mut out = Vec::new();
        if self.value != now.value {
            out.push(format!("value: recorded {:?}, now {:?}", self.value, now.value));
        }
        if self.bytes.len() != now.bytes.len() {
            out.push(format!("argument: recorded {} bytes, now {}", self.bytes.len(), now.bytes.len()));
        }
        let (ours, theirs) =
            (describe::fields(node, request, &self.bytes), describe::fields(node, request, &now.bytes));
        for (a, b) in ours.iter().zip(&theirs) {
            let (x, y) = (self.fds.get(&a.offset), now.fds.get(&b.offset));
            if x != y {
                let say = |l: Option<&String>, v: &describe::Value| l.cloned().unwrap_or_else(|| v.to_string());
                out.push(format!("{}: recorded {}, now {}", a.name, say(x, &a.value), say(y, &b.value)));
            } else if a.value != b.value {
                out.push(format!("{}: recorded {}, now {}", a.name, a.value, b.value));
            }
        }
        if out.is_empty() && (&self.bytes, &self.fds) != (&now.bytes, &now.fds) {
            out.push("padding or descriptors outside of the known fields".into());
        }
        for p in pointers::of(request) {
            let (a, b) = (self.buffers.get(&p.offset), now.buffers.get(&p.offset));
            if a != b {
                out.push(format!("memory behind {}: recorded {}, now {}", p.name, describe(a), describe(b)));
            }
        }
        out
    }

    /// The buffers that are longer than the caller's room for them, as `name: recorded A bytes, room for B`.
    pub(crate) fn too_long(&self, request: u32, spans: &Spans) -> Vec<String> {
        let written = pointers::of(request).filter(|p| p.is_written());
        let sizes =
            written.filter_map(|p| Some((p, self.buffers.get(&p.offset)?.bytes.len(), spans.get(&p.offset)?.1)));
        let long = sizes.filter(|(_, recorded, room)| recorded > room);
        long.map(|(p, recorded, room)| format!("memory behind {}: recorded {recorded} bytes, room for {room}", p.name))
            .collect()
    }

    /// The descriptors that a call with the argument `now` makes when it succeeds, and of which this output has no label. The
    /// caller would take the number that it left in the field for a descriptor of its own, and close whatever has that number.
    pub(crate) fn without_label(&self, request: u32, now: &Image) -> Vec<String> {
        if pointers::overwrites_input(request) {
            return Vec::new();
        }
        let made = descriptors::of(request).filter(|d| d.role != Role::In && d.applies(&now.bytes));
        let missing = made.filter(|d| !self.fds.contains_key(&d.offset));
        missing.map(|d| format!("{}: the recording names no descriptor", d.name)).collect()
    }

    /// Writes the output of a recorded call into the caller's argument and memory. `make` supplies a descriptor for
    /// each label that the kernel made.
    pub(crate) fn apply(
        &self,
        request: u32,
        arg: &mut [u8],
        spans: &Spans,
        mut make: impl FnMut(&str) -> Result<RawFd, Errno>,
    ) -> Result<(), Errno> {
        let caller = arg.to_vec();
        let keep = |arg: &mut [u8], at: usize, len: usize| {
            if let (Some(to), Some(from)) = (arg.get_mut(at..at + len), caller.get(at..at + len)) {
                to.copy_from_slice(from);
            }
        };
        if self.bytes.len() == arg.len() {
            arg.copy_from_slice(&self.bytes);
        }
        if !pointers::overwrites_input(request) {
            pointers::of(request).for_each(|p| keep(arg, p.offset, 8));
            for d in descriptors::of(request).filter(|d| d.applies(&caller)) {
                match self.fds.get(&d.offset) {
                    Some(label) if d.role != Role::In => {
                        let fd = make(label)?;
                        if let Some(field) = arg.get_mut(d.offset..d.offset + 4) {
                            field.copy_from_slice(&fd.to_le_bytes());
                        }
                    }
                    _ => keep(arg, d.offset, 4),
                }
            }
        }
        for p in pointers::of(request).filter(|p| p.is_written()) {
            if let (Some(buffer), Some((addr, len))) = (self.buffers.get(&p.offset), spans.get(&p.offset)) {
                buffer.restore(p, *addr, *len)?;
            }
        }
        Ok(())
    }
}

impl Buffer {
    fn take(mut bytes: Vec<u8>, p: &Pointer, labels: &mut Labels) -> Buffer {
        let mut fds = Fds::new();
        if let Some((each, at)) = p.fd {
            for i in 0..bytes.len() / each {
                name_existing(&mut bytes, &mut fds, i * each + at, "dmabuf", labels);
            }
        }
        Buffer { bytes, fds }
    }

    /// Writes the recorded bytes to the caller, never more than the caller has room for.
    fn restore(&self, p: &Pointer, addr: u64, room: usize) -> Result<(), Errno> {
        let mut bytes = self.bytes.clone();
        bytes.truncate(room);
        if let Some((each, at)) = p.fd {
            let now = memory::read(addr, bytes.len())?;
            for i in (at..bytes.len()).step_by(each).filter(|i| self.fds.contains_key(i)) {
                // A file that somebody has altered can end within an element.
                if let (Some(to), Some(from)) = (bytes.get_mut(i..i + 4), now.get(i..i + 4)) {
                    to.copy_from_slice(from);
                }
            }
        }
        memory::write(addr, &bytes)
    }
}

/// Replaces an open descriptor by its label. Numbers that mean "none" to nvgpu stay as they are.
fn name_existing(bytes: &mut [u8], fds: &mut Fds, at: usize, kind: &str, labels: &mut Labels) {
    let Some(field) = bytes.get_mut(at..at + 4) else { return };
    let number = unsigned(field) as u32 as RawFd;
    if number > 0 {
        fds.insert(at, labels.of(number, kind));
        field.fill(0);
    }
}

/// Finds the memory that a call will access, before the call. `per_sm` supplies a size that the argument does not
/// contain. What is read from or written to a caller's memory lies in these spans.
///
/// The result is `None` if the call follows pointers that only the kernel understands, or if nobody knows a length.
pub(crate) fn spans(request: u32, arg: &Arg<'_>, per_sm: impl Fn() -> Option<usize>) -> Option<Spans> {
    let Arg::Bytes(bytes) = arg else { return Some(Spans::new()) };
    let mut out = Spans::new();
    for p in pointers::of(request) {
        let addr = bytes.get(p.offset..p.offset + 8).map_or(0, unsigned);
        match p.usage {
            _ if addr == 0 => {}
            Use::Address => {}
            Use::Nested => return None,
            Use::In | Use::Out | Use::InOut => {
                out.insert(p.offset, (addr, p.len(bytes, &per_sm)?));
            }
        }
    }
    Some(out)
}

fn describe(b: Option<&Buffer>) -> String {
    match b {
        None => "nothing".into(),
        Some(b) if b.fds.is_empty() => describe::hex(&b.bytes),
        Some(b) => format!("{} with {:?}", describe::hex(&b.bytes), b.fds),
    }
}
