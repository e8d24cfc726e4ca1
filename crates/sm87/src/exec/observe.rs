//! Observers: somebody who looks at what a launch does, such as a checker or a model of its time.
//!
//! An observer chooses instructions of a program. They get another handler in a copy of the program, and every observer that chose an
//! instruction executes it, the last one first. Each of them calls [`Step::execute`], which goes on to the one before it, and in the
//! end to the instruction's own handler. A launch without observers executes the program as it is, and costs nothing more.
#![allow(unsafe_code)]

use super::env::Env;
use super::image::{Fetch, Image};
use super::live;
use super::rows::{Src, pred, rows_per_warp};
use super::uop::{Flow, Handlers, Uop};
use super::warp::Warp;
use crate::launch::Launch;
use std::any::Any;
use std::sync::Arc;

/// Somebody who observes one launch.
pub trait Observer: Sync {
    /// Chooses the instructions of a program that are observed. `fetch` reads its words with their scheduling bits.
    fn choose(&self, image: &Image, fetch: &mut Fetch<'_>) -> Chosen;

    /// Whoever observes one CTA after another of the launch, on one host thread.
    fn ctas<'a>(&'a self, launch: &Launch, image: &Image) -> Box<dyn CtaObserver + 'a>;

    /// The most instructions that a CTA executes before another one has its turn.
    fn longest_turn(&self) -> u64 {
        u64::MAX
    }

    /// The CTAs that are started together. If all of them wait for others, more are started, as many as a GPU might hold.
    fn together(&self) -> usize {
        usize::MAX
    }

    /// The launch has ended. If its program keeps time, `shown` is what its clocks showed then, in nanoseconds, and otherwise 0.
    fn ends(&self, shown: u64);
}

/// Somebody who observes CTAs, one after another.
pub trait CtaObserver {
    /// A CTA begins on an SM.
    fn begins(&mut self, sm: u32);

    /// An instruction that was chosen is about to be executed. The observer executes it with [`Step::execute`], or has it executed again
    /// with [`Step::asks_for_another_program`].
    fn step(&mut self, step: &mut Step<'_, '_>) -> Flow;

    /// Another copy of the program, with the same places, with which the CTA goes on after [`Step::asks_for_another_program`] or
    /// [`Self::program_changes`].
    fn another_program(&mut self, _: &Env<'_>) -> Option<Arc<Image>> {
        None
    }

    /// The CTA goes on with another program: a larger one, because it has reached code that nobody knew, or [`Self::another_program`].
    /// [`Image::moved`] says what the indices of the one before become.
    fn program_changes(&mut self, _before: &Image, _now: &Image) {}

    /// No warp can run for now.
    fn rests(&mut self, _: &Env<'_>, _: &[Warp]) {}

    /// The CTA has run for long, or all that its warps do is to wait for memory (`idles`), so that another CTA has its turn.
    fn turn_ends(&mut self, _: &Env<'_>, _: &[Warp], _idles: bool) {}

    /// No warp can run any more, although some have not ended.
    fn is_stuck(&mut self, _: &Env<'_>, _: &[Warp]) {}

    /// The CTA has ended.
    fn ends(&mut self) {}
}

/// What an observer chose in a program.
#[derive(Clone)]
pub struct Chosen {
    /// Whether each instruction is observed, by index.
    pub which: Vec<bool>,
    /// Whether the observer looks at nothing but what the instructions that it chose read. The others may then be executed as machine code, which
    /// does not write what nobody reads, and [`Step::execute`] may execute those that follow, too.
    pub is_narrow: bool,
    /// What the observer knows of the program.
    pub notes: Arc<dyn Any + Send + Sync>,
}

/// What observers chose in a program, the first observer first.
#[derive(Clone, Default)]
pub(crate) struct Observed {
    chosen: Vec<Chosen>,
    /// The handlers of the instructions themselves.
    own: Vec<Handlers>,
    /// What executes an instruction that all observers have seen: its own handler, or one that executes those that follow, too.
    pub(super) handlers: Vec<Handlers>,
    /// Of each instruction, how many observers there are up to the last one that chose it; 0 if nobody did.
    last: Vec<u8>,
}

impl Observed {
    /// What an observer noted of the program.
    fn notes<T: 'static>(&self) -> Option<&T> {
        self.chosen.iter().find_map(|chosen| chosen.notes.downcast_ref())
    }

    /// Whether some observer chose an instruction.
    pub(super) fn has(&self, at: usize) -> bool {
        self.last.get(at).is_some_and(|last| *last != 0)
    }

    /// Whether all observers look at nothing but what the instructions that they chose read.
    pub(super) fn is_narrow(&self) -> bool {
        self.chosen.iter().all(|chosen| chosen.is_narrow)
    }

    /// The last of the first `observers` that chose an instruction.
    #[inline]
    fn last(&self, at: u32, observers: usize) -> Option<usize> {
        let last = usize::from(*self.last.get(at as usize)?);
        if last <= observers { last.checked_sub(1) } else { self.earlier(at, observers) }
    }

    /// The same for an instruction that a later one chose, too.
    fn earlier(&self, at: u32, observers: usize) -> Option<usize> {
        self.chosen.get(..observers)?.iter().rposition(|chosen| chosen.has(at))
    }
}

impl Chosen {
    fn has(&self, at: u32) -> bool {
        self.which.get(at as usize).is_some_and(|&is| is)
    }
}

impl Image {
    /// A copy in which one more observer has chosen instructions.
    pub(crate) fn observed(&self, chosen: Chosen) -> Image {
        let mut observed = self.observed.clone();
        if observed.chosen.is_empty() {
            observed.own = self.uops.iter().map(|u| u.run).collect();
        }
        observed.chosen.push(chosen);
        self.with(observed)
    }

    /// A copy in which the observer with notes of this kind observes all instructions, and notes this.
    pub fn observed_whole<T: Any + Send + Sync>(&self, notes: T) -> Image {
        let mut observed = self.observed.clone();
        if let Some(of) = observed.chosen.iter_mut().find(|of| of.notes.is::<T>()) {
            of.which = vec![true; self.len() as usize];
            of.notes = Arc::new(notes);
        }
        self.with(observed)
    }

    fn with(&self, mut observed: Observed) -> Image {
        let last = |at| observed.earlier(at, observed.chosen.len()).map_or(0, |number| number as u8 + 1);
        observed.last = (0..self.len()).map(last).collect();
        let has = |at: usize| observed.last[at] != 0;
        let mut copy = self.replaced(Handlers::all(observe), has);
        observed.handlers = observed.own.clone();
        copy.observed = observed;
        // Observers look at registers whenever they want.
        copy.cleared = live::all(self.uniform, self.registers);
        copy
    }

    /// The own handlers of an observed instruction.
    pub(super) fn own(&self, at: u32) -> Handlers {
        self.observed.own[at as usize]
    }

    /// What an observer noted of the program.
    pub fn notes<T: 'static>(&self) -> Option<&T> {
        self.observed.notes()
    }
}

/// An instruction that the lanes of a warp are about to execute.
pub struct Step<'s, 'e> {
    w: &'s mut Warp,
    env: &'s mut Env<'e>,
    u: &'s Uop,
    exec: u32,
    /// The number of observers that have not seen it yet.
    left: usize,
}

impl<'s, 'e> Step<'s, 'e> {
    /// The warp, the CTA and the instruction, to look at.
    pub fn parts(&self) -> (&Warp, &Env<'e>, &Uop) {
        (self.w, self.env, self.u)
    }

    /// The instruction.
    pub fn uop(&self) -> &'s Uop {
        self.u
    }

    /// The lanes that execute it.
    pub fn exec(&self) -> u32 {
        self.exec
    }

    /// Whether the handler was asked to count first, and is called a second time for one execution.
    pub fn is_second_call(&self) -> bool {
        self.env.counts.with_current
    }

    /// The lanes of a row of the warp, or zeros if the program has no such row.
    pub fn row(&self, row: usize) -> [u32; 32] {
        if row < rows_per_warp(self.env.image.registers) { self.w.row(Src::nth(row)) } else { [0; 32] }
    }

    /// Sets the lanes of a row of the warp, if the program has such a row.
    pub fn set_row(&mut self, row: usize, lanes: &[u32; 32]) {
        if row < rows_per_warp(self.env.image.registers) {
            self.w.put_row(Src::nth(row).as_dst(), lanes);
        }
    }

    /// The predicates of the warp, as [`pred`] counts: one bit for each lane.
    pub fn predicates(&self) -> [u32; pred::COUNT] {
        self.w.preds
    }

    /// Sets the predicates of the warp.
    pub fn set_predicates(&mut self, predicates: &[u32; pred::COUNT]) {
        self.w.preds = *predicates;
    }

    /// Executes it.
    #[inline]
    pub fn execute(&mut self) -> Flow {
        if self.left == 0 {
            return itself(self.w, self.env, self.u, self.exec);
        }
        down(self.w, self.env, self.u, self.exec, self.left)
    }

    /// Executes it to see what it does. A fault that it has is forgotten.
    pub fn try_out(&mut self) -> Flow {
        let flow = self.execute();
        if flow != Flow::Next {
            self.env.outcome.fault = None;
        }
        flow
    }

    /// Does nothing yet: the instruction is executed when [`CtaObserver::another_program`] has been asked.
    pub fn asks_for_another_program(&mut self) -> Flow {
        self.env.outcome.extend = self.env.pc(self.u.at);
        Flow::Extend
    }
}

/// The handler of observed instructions.
fn observe(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let all = env.observers.len();
    down(w, env, u, exec, all)
}

/// Lets the last of the first `left` observers execute an instruction that it chose. If there is none, the instruction is executed.
#[inline(always)]
fn down(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32, left: usize) -> Flow {
    if left > 0
        && let Some(number) = env.image.observed.last(u.at, left)
        && let Some(mut observer) = env.observers[number].take()
    {
        let flow = observer.step(&mut Step { w, env, u, exec, left: number });
        env.observers[number] = Some(observer);
        return flow;
    }
    itself(w, env, u, exec)
}

/// Executes an instruction that all observers have seen.
#[inline(always)]
fn itself(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let handlers = env.image.observed.handlers[u.at as usize];
    // SAFETY: these are the handlers that the micro-op was lowered with. One is chosen as the interpreter does it, and `Step`, which has
    // private fields, only passes on what the interpreter gave to `observe`.
    unsafe { handlers.of(exec)(w, env, u, exec) }
}

impl<'a> Env<'a> {
    /// Lets all observers of the CTA look at something.
    #[inline(always)]
    pub(crate) fn observed_by(&mut self, mut look: impl FnMut(&mut dyn CtaObserver, &Env<'a>)) {
        for number in 0..self.observers.len() {
            if let Some(mut observer) = self.observers[number].take() {
                look(&mut *observer, self);
                self.observers[number] = Some(observer);
            }
        }
    }
}
