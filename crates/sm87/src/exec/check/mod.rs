//! The checker's view of a CTA: an [`Inspector`] looks at instructions before they are executed.
//!
//! ```text
//!   mod       which instructions are looked at: they get another handler, in a copy of the program
//!    ├ plan     what must be known of an instruction     access   the bytes that its lanes access
//!    ├ limits   how far shared and local memory reach
//!    ├ order    what happened before what                cells    who has last used each word     quick    maps
//!    ├ memory   bounds        sync   barriers            race     accesses without an order
//!    │               relation   how accesses stand to each other     stored   what memory holds where something is stored
//!    └ init     values that were never written: written   which bytes were      shadow   which lanes of registers hold such
//!                    operands   what instructions read      trial    what they make of it
//! ```
//!
//! A launch without a checker has no inspector and no such copy, so that it executes what it always executed.
#![allow(unsafe_code)]

pub(super) mod access;
mod cells;
mod init;
mod limits;
mod memory;
mod operands;
mod order;
mod plan;
mod quick;
mod race;
mod relation;
mod shadow;
mod stored;
mod sync;
mod trial;
mod written;

pub(crate) use race::World;

use super::env::Env;
use super::image::Image;
use super::model;
use super::uop::{Flow, Handlers, Uop};
use super::warp::Warp;
use crate::check::{Checker, Checks, Kind, Party, Place, Report};
use crate::isa;
use crate::launch::Launch;
use crate::word::Word;
use access::{Access, Span};
use init::Init;
use limits::Limits;
use operands::Program;
use parking_lot::Mutex;
use plan::Plan;
use race::Races;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// The plans and the own handlers of the instructions of a program that is looked at.
#[derive(Clone, Default)]
pub(crate) struct Looked {
    plans: Vec<Plan>,
    handlers: Vec<Handlers>,
    /// A number made of the program's code.
    code: u64,
    /// The operands of the instructions, once they matter: from the beginning if it does what was written.
    program: Arc<OnceLock<Program>>,
    /// Whether all instructions are looked at.
    whole: bool,
}

impl Looked {
    /// What to look at in a program.
    fn at(image: &Image, checks: Checks) -> Looked {
        let (uops, word) = (&image.uops, |at: u32| Word(image.word(at)));
        let plan = |u: &Uop| match isa::lookup(word(u.at)).map_or(Plan::Nothing, |row| Plan::of(row, word(u.at))) {
            Plan::Access(_) if !checks.memory && !checks.race && !checks.init => Plan::Nothing,
            Plan::Barrier(_) if !checks.sync && !checks.race => Plan::Nothing,
            Plan::Warpsync if !checks.sync => Plan::Nothing,
            Plan::Fence(_) | Plan::Exit if !checks.race => Plan::Nothing,
            plan => plan,
        };
        let mut code = DefaultHasher::new();
        uops.iter().for_each(|u| word(u.at).hash(&mut code));
        let (plans, handlers) = (uops.iter().map(plan).collect(), uops.iter().map(|u| u.run).collect());
        let program = if checks.init { OnceLock::from(Program::of(image)) } else { OnceLock::new() };
        Looked { plans, handlers, code: code.finish(), program: Arc::new(program), whole: false }
    }

    /// The operands of the instructions of `image`, whose view this is.
    fn program(&self, image: &Image) -> &Program {
        self.program.get_or_init(|| Program::of(image))
    }

    /// The plan of an instruction, and its own handlers.
    fn of(&self, at: u32) -> (Plan, Handlers) {
        (self.plans[at as usize], self.handlers[at as usize])
    }

    /// Whether an instruction is looked at.
    fn has(&self, at: u32) -> bool {
        self.plans.get(at as usize).is_some_and(|plan| *plan != Plan::Nothing)
            || self.program.get().is_some_and(|program| program.matters(at))
    }
}

/// A copy of a program in which the instructions that matter are looked at.
pub(crate) fn looked_at(image: &Image, checks: Checks) -> Image {
    let looked = Looked::at(image, checks);
    let has: Vec<bool> = (0..image.uops.len() as u32).map(|at| looked.has(at)).collect();
    let handlers = Handlers::all(if checks.init { look_and_follow } else { look });
    image.replaced(handlers, |at| has[at], looked)
}

/// Looks at an instruction, and then executes it.
fn look(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let (plan, handlers) = env.image.looked.of(u.at);
    env.inspect(|inspector, env| {
        inspector.inspect(w, env, u, exec, plan);
    });
    // SAFETY: these are the handlers that the micro-op was lowered with. One is chosen as the interpreter does it.
    unsafe { handlers.of(exec)(w, env, u, exec) }
}

/// Looks at an instruction, executes it, and follows what it makes of values that were never written.
fn look_and_follow(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let (plan, handlers) = env.image.looked.of(u.at);
    let Some(mut inspector) = env.inspector.take() else {
        // SAFETY: as in `look`.
        return unsafe { handlers.of(exec)(w, env, u, exec) };
    };
    let goes_on = plan == Plan::Nothing || inspector.inspect(w, env, u, exec, plan);
    let flow = if goes_on {
        inspector.follow(w, env, u, exec, handlers)
    } else {
        env.extend = env.pc(u.at);
        Flow::Extend
    };
    env.inspector = Some(inspector);
    flow
}

/// The program in which every instruction is looked at, if the CTA needs it now. It has the same places.
pub(crate) fn whole(env: &mut Env<'_>) -> Option<Arc<Image>> {
    let inspector = env.inspector.as_mut()?;
    if !std::mem::take(&mut inspector.init.as_mut()?.wants) {
        return None;
    }
    let image = &env.image;
    let mut world = inspector.world.lock();
    let known =
        world.whole.as_ref().filter(|known| known.looked.code == image.looked.code && known.entry == image.entry);
    if let Some(known) = known {
        return Some(known.clone());
    }
    let looked = Looked { whole: true, ..image.looked.clone() };
    let whole = image.replaced(Handlers::all(look_and_follow), |at| at < image.len() as usize, looked);
    let whole = Arc::new(model::metered_like(image, whole));
    world.whole = Some(whole.clone());
    Some(whole)
}

/// A lane at an instruction, and what it does there.
#[derive(Clone, Debug)]
struct Part {
    what: String,
    warp: u32,
    lane: u32,
    at: u32,
    /// The CTA, if it is another one.
    block: Option<[u32; 3]>,
}

/// What the checker knows of a CTA.
pub(crate) struct Inspector {
    shared: Arc<Checker>,
    limits: Limits,
    /// The CTA that was looked at last.
    ctaid: Option<[u32; 3]>,
    /// What all CTAs of the launch know.
    world: Arc<Mutex<World>>,
    /// What the instruction accesses, and where that is.
    accesses: Vec<Access>,
    span: Option<Span>,
    found: [memory::Found; 16],
    /// Whether what a load leaves in a row may be read behind it, by the load's address.
    read_behind: HashMap<(u64, usize), bool>,
    named: [Option<sync::Named>; 16],
    races: Option<Box<Races>>,
    init: Option<Box<Init>>,
}

impl Inspector {
    /// Knows nothing yet.
    pub(crate) fn new(
        shared: &Arc<Checker>,
        launch: &Launch,
        image: &Image,
        world: &Arc<Mutex<World>>,
    ) -> Box<Inspector> {
        let limits = Limits::of(launch, image);
        let (accesses, found, named) = (Vec::with_capacity(64), Default::default(), [None; 16]);
        let read_behind = HashMap::new();
        let races = shared.checks().race.then(|| Races::new(launch.shared_bytes));
        let init = shared.checks().init;
        let init = init.then(|| Init::new(launch, limits.arrays, image.looked.program(image).unwritten));
        let (shared, world) = (shared.clone(), world.clone());
        let (ctaid, span) = (None, None);
        Box::new(Inspector { shared, limits, ctaid, world, accesses, span, found, read_behind, named, races, init })
    }

    /// If the CTA is another one than before, nothing is known of it.
    fn begin(&mut self, ctaid: [u32; 3], launch: &Launch) {
        if self.ctaid.replace(ctaid) == Some(ctaid) {
            return;
        }
        self.named = [None; 16];
        self.races.iter_mut().for_each(|races| races.begin(ctaid, launch.grid));
        self.init.iter_mut().for_each(|init| init.begin(launch));
    }

    /// Looks at an instruction. The result is false if it must not be executed yet.
    fn inspect(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, exec: u32, plan: Plan) -> bool {
        let (checks, warp) = (self.shared.checks(), w.index as usize);
        self.begin(env.ctaid, env.launch);
        if let Some(races) = &mut self.races {
            races.order.goes_on(warp);
        }
        match plan {
            Plan::Nothing => {}
            Plan::Access(shape) => {
                access::find(&mut self.accesses, w, env, u, shape, exec);
                self.span = Span::of(&self.accesses);
                let world = self.world.clone();
                let mut world = world.lock();
                if !self.values(&mut world.pages, w, env, u, shape, exec) {
                    return false;
                }
                if checks.memory && !self.is_inside(shape.writes) {
                    let accesses = std::mem::take(&mut self.accesses);
                    accesses.iter().for_each(|access| self.bounds(w, env, u, access));
                    self.accesses = accesses;
                }
                self.races(&mut world, w, env, u, shape);
            }
            Plan::Barrier(aligned) => self.barrier(w, env, u, exec, aligned),
            Plan::Fence(whole_gpu) => self.races.iter_mut().for_each(|races| races.order.fences(warp, whole_gpu)),
            Plan::Exit => self.races.iter_mut().for_each(|races| races.order.exits(warp)),
            Plan::Warpsync => self.warpsync(w, env, u, exec),
        }
        true
    }

    /// Reports what is wrong at an instruction, if it was not reported yet.
    fn report<'p>(
        &self,
        env: &Env<'_>,
        kind: Kind,
        which: u8,
        at: u32,
        make: impl FnOnce(&dyn Fn(Part) -> Party) -> (String, Vec<Party>) + 'p,
    ) {
        self.report_pair(env, kind, which, at, at, make);
    }

    /// Reports what is wrong with two instructions.
    fn report_pair(
        &self,
        env: &Env<'_>,
        kind: Kind,
        which: u8,
        at: u32,
        other: u32,
        make: impl FnOnce(&dyn Fn(Part) -> Party) -> (String, Vec<Party>),
    ) {
        let program = env.image.looked.code;
        if !self.shared.is_new(Place { kind, program, at: [env.pc(at), env.pc(other)], which }) {
            return;
        }
        let party = |part: Part| {
            let tids = env.tids.get(part.warp as usize);
            let thread = tids.map_or([0; 3], |of| [0, 1, 2].map(|axis| of[axis].0[part.lane as usize & 31]));
            let (pc, word) = (env.pc(part.at), env.image.word(part.at));
            Party { what: part.what, pc, word, block: part.block.unwrap_or(env.ctaid), thread }
        };
        let (title, parties) = make(&party);
        self.shared.add(Report { kind, title, parties });
    }
}
