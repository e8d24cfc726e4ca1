//! Modules, their kernel, and its launches: `vecadd(a, b, to, n)`, which adds floats.

use super::calls::Sum;
use super::known::*;
use super::step::Step;
use super::{World, calls, meet};
use tegrarm_abi::rm::status::*;

const CUBIN: &[u8] = include_bytes!("../../data/cubin/vecadd.nvrtc.cubin");
/// An address at which no buffer lies.
const NOWHERE: u64 = 0x12_3456_7000;
/// The bytes of the floats of a launch.
const LINE: u64 = 4 * calls::THREADS as u64;
/// What the GPU's addition makes of numbers that have no sum.
const NAN: u32 = 0x7fff_ffff;

impl World {
    pub(super) fn load(&mut self, s: &Step) {
        let chosen = self.devices.choose(s.picks[0]);
        // At the end of the file is what the loader does not need.
        let len = if s.z % 8 == 1 { usize::from(s.x) % (CUBIN.len() / 2) } else { CUBIN.len() };
        let wrong = Wrong::default().absent(chosen).when(len < CUBIN.len(), NV_ERR_INVALID_ARGUMENT);
        let (answer, handle) = calls::load(chosen.handle, &CUBIN[..len]);
        if self.judge(format!("module_load({:#x}, {len} bytes)", chosen.handle), &wrong, answer) {
            self.modules.add(handle, Module { device: chosen.at.expect("a device") });
        }
    }

    pub(super) fn unload(&mut self, s: &Step) {
        let chosen = self.modules.choose(s.picks[0]);
        if let Some(module) = chosen.at {
            // The module of a launch stays until the run is over.
            for replay in self.replays.valid().collect::<Vec<_>>() {
                if self.replays[replay].needs.iter().any(|need| matches!(need, Need::Module(at) if *at == module)) {
                    self.end_run(replay);
                }
            }
        }
        let answer = calls::unload(chosen.handle);
        if self.judge(format!("module_unload({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer) {
            self.end_module(chosen.at.expect("a module"));
        }
    }

    pub(super) fn end_module(&mut self, module: usize) {
        self.modules.end(module);
        for kernel in self.kernels.valid().filter(|at| self.kernels[*at].module == module).collect::<Vec<_>>() {
            self.kernels.end(kernel);
        }
    }

    pub(super) fn kernel(&mut self, s: &Step) {
        let chosen = self.modules.choose(s.picks[0]);
        let (name, found) = if s.z % 8 == 1 { (c"nothing", false) } else { (c"vecadd", true) };
        let wrong = Wrong::default().absent(chosen).when(!found, NV_ERR_OBJECT_NOT_FOUND);
        let (answer, handle) = calls::kernel(chosen.handle, name);
        if self.judge(format!("module_kernel({:#x}, {name:?})", chosen.handle), &wrong, answer) {
            self.kernels.add(handle, Kernel { module: chosen.at.expect("a module") });
        }
    }

    /// Three places in buffers of a device that a step chooses for a launch, or nothing if there are none that the
    /// header allows. Each is a buffer and an offset.
    pub(super) fn some_lines(&self, device: usize, s: &Step) -> Option<[(Buffer, u64); 3]> {
        let fits = |b: &Buffer| b.device == device && b.size >= LINE && b.address.is_multiple_of(4);
        let all: Vec<Buffer> = self.buffers.valid().map(|at| self.buffers[at]).filter(fits).collect();
        let choose = |n: u16| {
            let buffer = *all.get(usize::from(n & 0xff) % all.len().max(1))?;
            Some((buffer, u64::from(n >> 8) * LINE % (buffer.size - LINE + 1) / 4 * 4))
        };
        let lines = [choose(s.x)?, choose(s.y)?, choose(s.x.rotate_left(4) ^ s.y)?];
        // Threads that read what others write have no defined order.
        let to = &lines[2];
        let races = |(b, at): &(Buffer, u64)| {
            let (here, there) = (b.start + at, to.0.start + to.1);
            b.memory == to.0.memory && here != there && meet(here, there, LINE)
        };
        (!lines[..2].iter().any(races)).then_some(lines)
    }

    pub(super) fn device_of(&self, kernel: Chosen) -> Option<usize> {
        kernel.at.map(|at| self.modules[self.kernels[at].module].device)
    }

    pub(super) fn launch(&mut self, s: &Step) {
        let kernel = self.kernels.choose(s.picks[0]);
        let device = self.device_of(kernel);
        let Some(lines) = self.some_lines(device.unwrap_or(0), s) else { return };
        let (queue, chosen) = self.some_queue(s.w.is_multiple_of(2), device, s.picks[1]);
        let (floats, count) = (u32::from(s.w >> 1) % 33, if s.z % 16 == 7 { 3 } else { 4 });
        let wrong = self.launches(kernel, chosen).when(count != 4, NV_ERR_INVALID_ARGUMENT);
        if wrong.is_empty() {
            for (buffer, _) in &lines {
                self.order(buffer.memory, chosen.at.expect("a queue"));
            }
        }
        let sum = Sum { at: lines.map(|(buffer, at)| buffer.address + at), floats, count };
        let (answer, fence) = calls::launch(queue, kernel.handle, &sum);
        let call = format!("launch({queue:x?}, {:#x}, {:x?}, {floats} floats)", kernel.handle, sum.at);
        if self.judge(call, &wrong, answer) {
            let queue = chosen.at.expect("a queue");
            let [a, b, to] = lines.map(|(buffer, at)| (buffer.memory, buffer.start + at));
            if lines[2].0.read_only && floats > 0 {
                return self.stops(queue, fence);
            }
            self.given(queue, fence, &[a.0, b.0, to.0]);
            self.add(a, b, to, floats);
        }
    }

    /// The conditions of a launch.
    fn launches(&self, kernel: Chosen, queue: Chosen) -> Wrong {
        let copies = queue.at.filter(|at| *at != usize::MAX).is_some_and(|at| self.queues[at].copies);
        self.takes(queue, self.device_of(kernel)).absent(kernel).when(copies, NV_ERR_INVALID_ARGUMENT)
    }

    /// Adds floats in the memories of the model.
    pub(super) fn add(&mut self, a: (usize, u64), b: (usize, u64), to: (usize, u64), floats: u32) {
        for i in 0..u64::from(floats) {
            let float = |(memory, at): (usize, u64)| {
                let bytes = &self.memories[memory].bytes[(at + 4 * i) as usize..][..4];
                f32::from_le_bytes(bytes.try_into().expect("four bytes"))
            };
            let sum = float(a) + float(b);
            let sum = if sum.is_nan() { NAN } else { sum.to_bits() };
            self.write(to.0, to.1 + 4 * i, &sum.to_le_bytes());
        }
    }

    /// Launches a kernel that reads where nothing is: it stops its queue.
    pub(super) fn crash(&mut self, s: &Step) {
        let kernel = self.kernels.choose(s.picks[0]);
        let (queue, chosen) = self.some_queue(s.w.is_multiple_of(2), self.device_of(kernel), s.picks[1]);
        let wrong = self.launches(kernel, chosen);
        let sum = Sum { at: [NOWHERE; 3], floats: calls::THREADS, count: 4 };
        let (answer, fence) = calls::launch(queue, kernel.handle, &sum);
        if self.judge(format!("launch({queue:x?}, {:#x}, nowhere)", kernel.handle), &wrong, answer) {
            self.stops(chosen.at.expect("a queue"), fence);
        }
    }
}
