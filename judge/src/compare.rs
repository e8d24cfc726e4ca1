//! One program, two kernels: plays a program on both, says where they differ, and shortens a program that shows a
//! difference.

use crate::driver::Driver;
use crate::model::Model;
use crate::program::{Answer, Step};
use tegra_kernel::SimConfig;
use tegrarm_abi::nvgpu::address_space::NVGPU_AS_IOCTL_REMAP;

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

/// How a program ended.
pub struct Outcome {
    pub steps: Vec<Step>,
    /// The driver's answers.
    pub answers: Vec<Answer>,
    /// The number of calls that were compared.
    pub calls: usize,
    pub difference: Option<String>,
}

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
        // Closing an address space with remapped pages leaves their buffers behind in the driver (docs/judge.md).
        let forgets =
            outcome.steps.iter().any(|s| matches!(s, Step::Ioctl(call) if call.request == NVGPU_AS_IOCTL_REMAP));
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
