//! Copies and fills of the GPU, and copies between queues and the process.

use super::known::*;
use super::step::{Pick, Step};
use super::{Read, World, calls, inside, meet, pattern};
use tegrarm_abi::rm::status::*;

/// A copy between two buffers as a step chooses it.
pub(super) struct Chosen2 {
    pub to: Chosen,
    pub from: Chosen,
    pub to_at: u64,
    pub from_at: u64,
    pub len: u64,
}

impl World {
    /// The queue of a call: the device's own one, for which there is a function without a queue, or a chosen one.
    pub(super) fn some_queue(&self, own: bool, device: Option<usize>, pick: Pick) -> (Option<usize>, Chosen) {
        if own {
            // If there is no device either, another condition is named.
            let at = device.map(|device| self.devices[device].own);
            return (None, Chosen { handle: 0, at: at.or(Some(usize::MAX)) });
        }
        let chosen = self.queues.choose(pick);
        (Some(chosen.handle), chosen)
    }

    /// The conditions of a queue that a call uses for something of `device`.
    pub(super) fn takes(&self, queue: Chosen, device: Option<usize>) -> Wrong {
        let found = queue.at.filter(|at| *at != usize::MAX).map(|at| &self.queues[at]);
        Wrong::default()
            .absent(queue)
            .when(found.is_some_and(|q| device.is_some_and(|device| device != q.device)), NV_ERR_INVALID_ARGUMENT)
            .when(found.is_some_and(|q| q.stopped), NV_ERR_RESET_REQUIRED)
    }

    /// A copy between buffers.
    pub(super) fn some_copy(&self, s: &Step) -> Chosen2 {
        let (to, from) = (self.buffers.choose(s.picks[0]), self.buffers.choose(s.picks[1]));
        let size = |chosen: Chosen| chosen.at.map_or(4096, |at| self.buffers[at].size);
        let (to_at, len) = s.range(size(to).min(size(from)), 1);
        let room = size(from).saturating_sub(len);
        let from_at = u64::from(s.y ^ s.x.rotate_left(5)) % (room + 1);
        Chosen2 { to, from, to_at, from_at, len }
    }

    /// The conditions of a copy between buffers.
    pub(super) fn copies(&self, c: &Chosen2) -> Wrong {
        let wrong = Wrong::default().absent(c.to).absent(c.from);
        let (Some(to), Some(from)) = (c.to.at, c.from.at) else { return wrong };
        let (to, from) = (&self.buffers[to], &self.buffers[from]);
        let all_inside = inside((c.to_at, c.len), to.size) && inside((c.from_at, c.len), from.size);
        let overlap = all_inside && c.len > 0 && to.device == from.device;
        wrong
            .when(to.device != from.device, NV_ERR_INVALID_ARGUMENT)
            .when(!all_inside, NV_ERR_INVALID_BASE)
            .when(overlap && meet(to.address + c.to_at, from.address + c.from_at, c.len), NV_ERR_INVALID_ARGUMENT)
    }

    pub(super) fn copy(&mut self, s: &Step) {
        let c = self.some_copy(s);
        let device = c.to.at.map(|at| self.buffers[at].device);
        let (queue, chosen) = self.some_queue(s.w.is_multiple_of(2), device, s.picks[2]);
        let wrong = self.takes(chosen, device).and(self.copies(&c));
        let both = c.to.at.zip(c.from.at).map(|(to, from)| (self.buffers[to], self.buffers[from]));
        if let (true, Some((to, from))) = (wrong.is_empty(), &both) {
            if self.is_open(to, c.to_at, from, c.from_at, c.len) {
                return;
            }
            let at = chosen.at.expect("a queue");
            self.order(to.memory, at);
            self.order(from.memory, at);
        }
        let (answer, fence) = calls::copy(queue, (c.to.handle, c.to_at), (c.from.handle, c.from_at), c.len);
        let what = format!("copy({queue:x?}, {:#x}+{:#x}, {:#x}+{:#x}", c.to.handle, c.to_at, c.from.handle, c.from_at);
        if self.judge(format!("{what}, {:#x})", c.len), &wrong, answer) {
            let ((to, from), at) = (both.expect("two buffers"), chosen.at.expect("a queue"));
            if to.read_only && c.len > 0 {
                return self.stops(at, fence);
            }
            self.given(at, fence, &[to.memory, from.memory]);
            self.move_bytes((to.memory, to.start + c.to_at), (from.memory, from.start + c.from_at), c.len);
        }
    }

    /// Copies bytes between memories of the model.
    pub(super) fn move_bytes(&mut self, to: (usize, u64), from: (usize, u64), len: u64) {
        let bytes = self.memories[from.0].bytes[from.1 as usize..][..len as usize].to_vec();
        self.write(to.0, to.1, &bytes);
    }

    pub(super) fn fill(&mut self, s: &Step) {
        const SIZES: [u32; 8] = [1, 2, 4, 4, 2, 1, 3, 0];
        let target = self.buffers.choose(s.picks[0]);
        let buffer = target.at.map(|at| self.buffers[at]);
        let (queue, chosen) = self.some_queue(s.w.is_multiple_of(2), buffer.map(|b| b.device), s.picks[1]);
        let (value, size) = (u32::from(s.x) * 0x1_0001, SIZES[usize::from(s.w >> 4) % SIZES.len()]);
        let (at, len) = s.range(buffer.map_or(4096, |b| b.size), 4);
        let is_inside = buffer.is_none_or(|b| inside((at, len), b.size));
        let address = buffer.map_or(0, |b| b.address).wrapping_add(at);
        let whole = matches!(size, 1 | 2 | 4) && (address | len).is_multiple_of(size.into());
        let wrong = self
            .takes(chosen, buffer.map(|b| b.device))
            .absent(target)
            .when(!is_inside, NV_ERR_INVALID_BASE)
            .when(!whole, NV_ERR_INVALID_ARGUMENT);
        if let (true, Some(b)) = (wrong.is_empty(), buffer) {
            self.order(b.memory, chosen.at.expect("a queue"));
        }
        let (answer, fence) = calls::fill(queue, target.handle, (at, len), value, size);
        let call = format!("fill({queue:x?}, {:#x}, {at:#x}, {len:#x}, {value:#x}, {size})", target.handle);
        if self.judge(call, &wrong, answer) {
            let (b, queue) = (buffer.expect("a buffer"), chosen.at.expect("a queue"));
            if b.read_only && len > 0 {
                return self.stops(queue, fence);
            }
            self.given(queue, fence, &[b.memory]);
            let bytes = value.to_le_bytes()[..size as usize].repeat((len / u64::from(size)) as usize);
            self.write(b.memory, b.start + at, &bytes);
        }
    }

    /// The conditions of a copy between a buffer and the process, in the order of a queue.
    fn carries(&mut self, s: &Step) -> (Chosen, Chosen, (u64, u64), Wrong) {
        let (queue, target) = (self.queues.choose(s.picks[0]), self.buffers.choose(s.picks[1]));
        let buffer = target.at.map(|at| self.buffers[at]);
        let range = s.range(buffer.map_or(4096, |b| b.size), 1);
        let wrong = self
            .takes(queue, buffer.map(|b| b.device))
            .absent(target)
            .when(buffer.is_some_and(|b| !inside(range, b.size)), NV_ERR_INVALID_BASE)
            .when(buffer.is_some_and(|b| !b.pointer), NV_ERR_NOT_SUPPORTED);
        if let (true, Some(b)) = (wrong.is_empty(), buffer) {
            self.order(b.memory, queue.at.expect("a queue"));
        }
        (queue, target, range, wrong)
    }

    pub(super) fn queue_copy_in(&mut self, s: &Step) {
        let (queue, target, (at, len), wrong) = self.carries(s);
        let from = pattern(self.history.len() as u64, len.min(1 << 20));
        let (answer, fence) = calls::queue_copy_in(queue.handle, target.handle, at, &from, len);
        let call = format!("copy_in({:#x}, {:#x}, {at:#x}, {len:#x})", queue.handle, target.handle);
        if self.judge(call, &wrong, answer) {
            let buffer = self.buffers[target.at.expect("a buffer")];
            self.given(queue.at.expect("a queue"), fence, &[buffer.memory]);
            self.write(buffer.memory, buffer.start + at, &from);
            self.written.push(from);
        }
    }

    pub(super) fn queue_copy_out(&mut self, s: &Step) {
        let (queue, target, (at, len), wrong) = self.carries(s);
        let mut place = vec![0x33; len.min(1 << 20) as usize];
        let (answer, fence) = calls::queue_copy_out(queue.handle, target.handle, at, &mut place, len);
        let call = format!("copy_out({:#x}, {:#x}, {at:#x}, {len:#x})", queue.handle, target.handle);
        if self.judge(call, &wrong, answer) {
            let buffer = self.buffers[target.at.expect("a buffer")];
            self.given(queue.at.expect("a queue"), fence, &[buffer.memory]);
            let wanted = self.memories[buffer.memory].bytes[(buffer.start + at) as usize..][..len as usize].to_vec();
            self.reads.push(Read { device: buffer.device, place, wanted });
        }
    }

    /// Compares what the queues of a device copied to the process. The device has closed.
    pub(super) fn compare_reads(&mut self, device: usize) {
        let (over, rest) = std::mem::take(&mut self.reads).into_iter().partition(|read| read.device == device);
        self.reads = rest;
        let over: Vec<Read> = over;
        self.expect(over.iter().all(|read| read.place == read.wanted), "a queue copied what was there");
    }
}
