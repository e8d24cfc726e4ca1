//! One program, two kernels: plays a program on both, says where they differ, and shortens a program that shows a
//! difference.

use crate::driver::Driver;
use crate::model::Model;
use crate::program::{Answer, Piece, Step};
use std::mem::offset_of;
use tegra_kernel::SimConfig;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_OPEN_TSG, nvgpu_gpu_open_tsg_args};
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvmap::NVMAP_IOC_CACHE_LIST;

/// Makes a family's programs, one step after the other, from what was answered so far.
pub trait Author {
    /// The next step, or `None` at the end of the program.
    fn next(&mut self, answers: &[Answer]) -> Option<Step>;
}

/// A program that was written before.
pub struct Written<'a>(pub &'a [Step]);

impl Author for Written<'_> {
    fn next(&mut self, answers: &[Answer]) -> Option<Step> {
        self.0.get(answers.len()).cloned()
    }
}

/// An author whose programs are made on r35.
pub struct Older(pub Box<dyn Author>);

impl Author for Older {
    fn next(&mut self, answers: &[Answer]) -> Option<Step> {
        self.0.next(answers).map(as_r35)
    }
}

/// How a program ended.
pub struct Outcome {
    pub steps: Vec<Step>,
    /// The driver's answers.
    pub answers: Vec<Answer>,
    /// The number of calls that were compared.
    pub calls: usize,
    pub difference: Option<String>,
}

/// Calls after which the drivers may hold something for ever.
const FORGETFUL: [u32; 3] = [NVGPU_AS_IOCTL_REMAP, NVGPU_IOCTL_CHANNEL_WAIT, NVMAP_IOC_CACHE_LIST];

pub struct Judge<'a> {
    pub driver: &'a Driver,
    pub config: SimConfig,
}

impl Judge<'_> {
    /// Plays a program on both kernels until they differ.
    pub fn play(&self, author: &mut dyn Author) -> Outcome {
        let (mut theirs, mut ours) = (self.driver.run(), Model::new(self.config));
        let mut outcome = Outcome { steps: vec![], answers: vec![], calls: 0, difference: None };
        while let Some(step) = author.next(&outcome.answers) {
            let number = outcome.steps.len();
            let (a, b) = (theirs.step(number, &step), ours.step(number, &step));
            outcome.calls += usize::from(matches!(step, Step::Ioctl(_) | Step::Open(_)));
            if a != b {
                outcome.difference = Some(format!("driver {}\nmodel  {}", a.to_line(), b.to_line()));
            }
            outcome.steps.push(step);
            outcome.answers.push(a);
            if outcome.difference.is_some() {
                break;
            }
        }
        theirs.finish();
        let (held, left) = (self.driver.held(), ours.finish());
        self.driver.rewind();
        const NOTHING: &str = "0 files, 0 channels, 0 groups, 0 bytes";
        // Closing an address space with remapped pages leaves their buffers behind in the driver, CACHE_LIST a handle, and WAIT for a
        // notifier the notifier's buffer (docs/judge.md).
        let forgets = outcome.steps.iter().any(|s| matches!(s, Step::Ioctl(call) if FORGETFUL.contains(&call.request)));
        if outcome.difference.is_none() && (held != 0 && !forgets || left != NOTHING) {
            outcome.difference =
                Some(format!("after everything was closed, the driver holds {held} buffers, the model {left}"));
        }
        outcome
    }

    /// Takes steps out of a program for as long as the kernels still differ.
    pub fn shorten(&self, steps: Vec<Step>) -> Outcome {
        let mut best = self.play(&mut Written(&steps));
        let mut width = best.steps.len() / 2;
        while width > 0 {
            let mut at = best.steps.len().saturating_sub(1);
            while at > 0 {
                at = at.saturating_sub(width);
                let shorter = without(&best.steps, at, width.min(best.steps.len() - at));
                let outcome = self.play(&mut Written(&shorter));
                if outcome.difference.is_some() {
                    best = outcome;
                    at = at.min(best.steps.len().saturating_sub(1));
                }
            }
            width /= 2;
        }
        best
    }
}

/// A program without some of its steps. Who refers to one of them refers to nothing.
fn without(steps: &[Step], at: usize, count: usize) -> Vec<Step> {
    let number = |step: usize| match step {
        step if step < at => step,
        step if step < at + count => usize::MAX,
        usize::MAX => usize::MAX,
        step => step - count,
    };
    let mut rest: Vec<Step> = steps[..at].iter().chain(&steps[at + count..]).cloned().collect();
    rest.iter_mut().for_each(|step| step.renumber(number));
    rest
}

/// The flag without which r35 maps nothing.
fn with_kinds(bytes: &mut [u8]) {
    for map in bytes.chunks_exact_mut(size_of::<nvgpu_as_map_buffer_ex_args>()) {
        let at = offset_of!(nvgpu_as_map_buffer_ex_args, flags);
        let flags = u32::from_le_bytes(map[at..at + 4].try_into().expect("four bytes"));
        map[at..at + 4].copy_from_slice(&(flags | NVGPU_AS_MAP_BUFFER_FLAGS_DIRECT_KIND_CTRL_R35).to_le_bytes());
    }
}

/// Cuts an argument to the size that r35 has for it.
fn cut(bytes: &mut Vec<u8>, from: usize, to: usize, pieces: &mut Vec<Piece>) {
    if bytes.len() == from {
        bytes.truncate(to);
    }
    pieces.retain(|piece| piece.at + 8 <= bytes.len());
}

/// A step of r36, as r35 has it. A step that r35 has already stays as it is. One in sixteen calls stays that of r36, and
/// r35 should refuse it.
pub fn as_r35(mut step: Step) -> Step {
    let Step::Ioctl(call) = &mut step else { return step };
    let sum = call.bytes.iter().fold(call.request, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)));
    if sum.wrapping_mul(0x9e37_79b9) >> 28 == 0 {
        return step;
    }
    match call.request {
        NVGPU_IOCTL_CHANNEL_SETUP_BIND => {
            call.request = NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35;
            let (from, to) =
                (size_of::<nvgpu_channel_setup_bind_args>(), size_of::<nvgpu_channel_setup_bind_args_r35>());
            cut(&mut call.bytes, from, to, &mut call.pieces);
        }
        NVGPU_GPU_IOCTL_OPEN_TSG => {
            call.request = NVGPU_GPU_IOCTL_OPEN_TSG_R35;
            let (from, to) = (size_of::<nvgpu_gpu_open_tsg_args>(), size_of::<nvgpu_gpu_open_tsg_args_r35>());
            cut(&mut call.bytes, from, to, &mut call.pieces);
        }
        NVGPU_AS_IOCTL_MAP_BUFFER_EX => with_kinds(&mut call.bytes),
        NVGPU_AS_IOCTL_MAP_BUFFER_BATCH => {
            let maps = offset_of!(nvgpu_as_map_buffer_batch_args, maps);
            call.pieces.iter_mut().filter(|piece| piece.at == maps).for_each(|piece| with_kinds(&mut piece.bytes));
        }
        _ => {}
    }
    step
}
