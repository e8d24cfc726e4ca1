//! The checker: it looks at the instructions of a launch before they are executed, and reports what is wrong with its program.
//!
//! [`Watch`] is an observer of one launch ([`sm87::run_observed`]), and [`Checker`] keeps the reports of many. No file of the engine knows it.
//!
//! ```text
//!   mod       which instructions are looked at     report   what is looked for, and what was found
//!    ├ plan     what must be known of an instruction
//!    ├ limits   how far shared and local memory reach
//!    ├ order    what happened before what                cells    who has last used each word     quick    maps
//!    ├ memory   bounds        sync   barriers            race     accesses without an order
//!    │               relation   how accesses stand to each other     stored   what memory holds where something is stored
//!    │               strict     every race, lane by lane             lanes, knowledge   what happened before what, lane by lane
//!    └ init     values that were never written: written   which bytes were      shadow   which lanes of registers hold such
//!                    operands   what instructions read      trial    what they make of it
//! ```
//!
//! [`Between`] knows what launches and copies of different queues have used, and what is between them.
//!
//! [`Outcome`] is another observer: it knows what a launch has stored, so that the launch can be repeated in other schedules.
//!
//! A launch without a checker has no inspector and no such copy, so that it executes what it always executed.
mod between;
mod cells;
mod init;
mod knowledge;
mod lanes;
mod limits;
mod memory;
mod operands;
mod order;
mod outcome;
mod plan;
mod quick;
mod race;
mod relation;
mod report;
mod shadow;
mod stored;
mod strict;
mod sync;
mod trial;
mod written;

pub use between::{Between, Bytes, Clock, PROCESSOR, Spot, Uses, Work};
pub use outcome::{Difference, Outcome, Results};
pub use report::{Checker, Checks, Kind, Party, Report};

use init::Init;
use lanes::Lanes;
use limits::Limits;
use once_cell::race::OnceBox;
use operands::Program;
use order::Order;
use plan::Plan;
use race::{Common, Races};
use report::Place;
use sm87::Launch;
use sm87::Word;
use sm87::isa;
use sm87::isa::memory::{Scope, Shape, Space};
use sm87::observe::access::{self, Access, Span};
use sm87::observe::{Chosen, CtaObserver, Env, Fetch, Flow, Image, Named, Observer, Step, Uop, Warp};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use tegrarm_lock::Mutex;

/// How many instructions behind its WARPSYNC a shuffle may be.
const NEAR: usize = 4;
/// How many instructions behind a load its compare-and-swap may be.
const BEFORE_A_SWAP: usize = 16;

/// The plans of the instructions of a program that is looked at.
#[derive(Clone, Default)]
struct Looked {
    plans: Vec<Plan>,
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
        let word = |at: u32| Word(image.word(at));
        let plan = |at: u32| match isa::lookup(word(at)).map_or(Plan::Nothing, |row| Plan::of(row, word(at))) {
            Plan::Access(_) if !checks.memory && !checks.race && !checks.init => Plan::Nothing,
            Plan::Access(shape) if checks.strict && looks_before_a_swap(image, at) => {
                Plan::Access(Shape { strong: true, scope: Some(Scope::Cta), ..shape })
            }
            Plan::Barrier(_) if !checks.sync && !checks.race => Plan::Nothing,
            Plan::Warpsync(_) if !checks.sync && !checks.strict => Plan::Nothing,
            Plan::Warpsync(_) => Plan::Warpsync(!is_of_a_shuffle(image, at)),
            Plan::Fence(_) | Plan::Exit if !checks.race => Plan::Nothing,
            Plan::Nop | Plan::Acquires | Plan::Groups | Plan::Awaits(_) if !checks.strict => Plan::Nothing,
            plan => plan,
        };
        let plans = (0..image.len()).map(plan).collect();
        let program = if checks.init { OnceLock::from(Program::of(image)) } else { OnceLock::new() };
        Looked { plans, code: Looked::code_of(image), program: Arc::new(program), whole: false }
    }

    /// A number made of the code of a program.
    fn code_of(image: &Image) -> u64 {
        let mut code = DefaultHasher::new();
        (0..image.len()).for_each(|at| (image.place(at), image.word(at)).hash(&mut code));
        code.finish()
    }

    /// The operands of the instructions of `image`, whose view this is.
    fn program(&self, image: &Image) -> &Program {
        self.program.get_or_init(|| Program::of(image))
    }

    /// The plan of an instruction.
    fn plan(&self, at: u32) -> Plan {
        self.plans.get(at as usize).copied().unwrap_or(Plan::Nothing)
    }

    /// Whether an instruction is looked at.
    fn has(&self, at: u32) -> bool {
        self.plan(at) != Plan::Nothing || self.program.get().is_some_and(|program| program.matters(at))
    }
}

/// Whether a WARPSYNC stands in front of a shuffle or a vote, with nothing but arithmetic between them. PTX promises nothing of memory then.
fn is_of_a_shuffle(image: &Image, at: u32) -> bool {
    let behind = (at + 1..image.len()).map_while(|at| Some((image.row(at)?, Word(image.word(at)))));
    let goes_on = |row: &isa::Row| {
        row.flow == isa::Flow::Next && row.effects.memory().is_none() && row.effects.does != isa::Does::MeetsLanes
    };
    behind.take(NEAR).take_while(|(row, _)| goes_on(row)).any(|(row, word)| row.effects.reads_across(word))
}

/// Whether a load of shared memory looks at what a compare-and-swap behind it changes. Compilers make such pairs of other atomics, so that
/// the load is as strong as the atomic.
fn looks_before_a_swap(image: &Image, at: u32) -> bool {
    let place = |at: u32| {
        let (row, word) = (image.row(at)?, Word(image.word(at)));
        let memory = row.effects.memory().filter(|memory| memory.space == Space::Shared)?;
        Some((Named::of(row, word)?.sources[0], word.0 >> 40 & 0xff_ffff, memory.shape(word)))
    };
    let Some((register, offset, load)) = place(at).filter(|(.., shape)| !shape.writes) else { return false };
    let is_it = |at: u32| {
        place(at).is_some_and(|(r, o, shape)| shape.swaps && (r, o, shape.len) == (register, offset, load.len))
    };
    (at + 1..image.len()).take(BEFORE_A_SWAP).any(is_it)
}

/// What is looked at in a program.
fn looked(image: &Image) -> &Looked {
    static NOTHING: OnceBox<Looked> = OnceBox::new();
    image.notes().unwrap_or_else(|| NOTHING.get_or_init(Box::default))
}

/// The checker of one launch.
#[derive(Debug)]
pub struct Watch {
    checker: Arc<Checker>,
    /// What all CTAs of the launch know.
    common: Arc<Mutex<Common>>,
}

impl Watch {
    /// A launch begins, about which the checker reports.
    pub fn new(checker: &Arc<Checker>) -> Watch {
        Watch { checker: checker.clone(), common: Arc::default() }
    }
}

impl Observer for Watch {
    fn choose(&self, image: &Image, _: &mut Fetch<'_>) -> Chosen {
        let looked = Looked::at(image, self.checker.checks());
        let which = (0..image.len()).map(|at| looked.has(at)).collect();
        Chosen { which, is_narrow: false, notes: Arc::new(looked) }
    }

    fn ctas<'a>(&'a self, launch: &Launch, image: &Image) -> Box<dyn CtaObserver + 'a> {
        Inspector::new(&self.checker, launch, image, &self.common)
    }

    fn ends(&self, _: u64) {
        self.checker.took(self.common.lock().cells.bytes());
    }
}

impl CtaObserver for Inspector {
    fn begins(&mut self, _: u32) {}

    /// Looks at an instruction, executes it, and follows what it makes of values that were never written.
    fn step(&mut self, step: &mut Step<'_, '_>) -> Flow {
        let (w, env, u) = step.parts();
        let plan = looked(env.image()).plan(u.at());
        if plan != Plan::Nothing && !self.inspect(w, env, u, step.exec(), plan) {
            return step.asks_for_another_program();
        }
        if self.shared.checks().init { self.follow(step) } else { step.execute() }
    }

    /// The program in which every instruction is looked at, if the CTA needs it now.
    fn another_program(&mut self, env: &Env<'_>) -> Option<Arc<Image>> {
        if !std::mem::take(&mut self.init.as_mut()?.wants) {
            return None;
        }
        let (image, of) = (env.image(), looked(env.image()));
        let mut common = self.common.lock();
        let is_it = |known: &&Arc<Image>| looked(known).code == of.code && known.entry() == image.entry();
        if let Some(known) = common.whole.as_ref().filter(is_it) {
            return Some(known.clone());
        }
        let whole = Arc::new(image.observed_whole(Looked { whole: true, ..of.clone() }));
        common.whole = Some(whole.clone());
        Some(whole)
    }

    fn program_changes(&mut self, before: &Image, now: &Image) {
        let moves = |at: &mut u32| *at = now.moved(before, *at);
        self.named.iter_mut().flatten().for_each(|named| moves(&mut named.at));
        self.torn.0.iter_mut().for_each(|(_, _, at)| moves(at));
        if let Some(init) = &mut self.init {
            init.instructions().for_each(moves);
            // What was never written may be in registers while the program grows.
            init.wants = looked(before).whole && !looked(now).whole;
        }
    }

    fn rests(&mut self, env: &Env<'_>, warps: &[Warp]) {
        self.at_rest(env, warps);
    }

    fn turn_ends(&mut self, env: &Env<'_>, warps: &[Warp], idles: bool) {
        self.torn(env, warps, idles);
    }

    fn is_stuck(&mut self, env: &Env<'_>, warps: &[Warp]) {
        self.stuck(env, warps);
    }
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
    /// The number of instructions of the program that these are the limits of. It grows when code is reached through a pointer.
    known: u32,
    /// Which lanes of a warp waited where for others that cannot come when the last turns ended, and the number of these turns.
    torn: (Option<(u32, u32, u32)>, u32),
    /// The CTA that was looked at last.
    ctaid: Option<[u32; 3]>,
    /// What all CTAs of the launch know.
    common: Arc<Mutex<Common>>,
    /// What the instruction accesses, and where that is.
    accesses: Vec<Access>,
    span: Option<Span>,
    found: [memory::Found; 16],
    /// Whether what a load leaves in a row may be read behind it, by the load's address.
    read_behind: HashMap<(u64, usize), bool>,
    named: [Option<sync::Named>; 16],
    races: Option<Box<Races<Order>>>,
    strict: Option<Box<Races<Lanes>>>,
    init: Option<Box<Init>>,
}

impl Inspector {
    /// Knows nothing yet.
    pub(crate) fn new(
        shared: &Arc<Checker>,
        launch: &Launch,
        image: &Image,
        common: &Arc<Mutex<Common>>,
    ) -> Box<Inspector> {
        let limits = Limits::of(launch, image);
        let (accesses, found, named) = (Vec::with_capacity(64), Default::default(), [None; 16]);
        let read_behind = HashMap::new();
        let Checks { init, race, strict, .. } = shared.checks();
        let races = (race && !strict).then(|| Races::new(launch.shared_bytes));
        let strict = strict.then(|| Races::new(launch.shared_bytes));
        let init = init.then(|| Init::new(launch, limits.arrays, looked(image).program(image).unwritten));
        let (shared, common) = (shared.clone(), common.clone());
        let (ctaid, span, torn, known) = (None, None, (None, 0), image.len());
        Box::new(Inspector {
            shared,
            limits,
            known,
            torn,
            ctaid,
            common,
            accesses,
            span,
            found,
            read_behind,
            named,
            races,
            strict,
            init,
        })
    }

    /// If the program has grown, its new code may use memory in other ways.
    fn grows(&mut self, env: &Env<'_>) {
        if env.image().len() != self.known {
            (self.known, self.limits) = (env.image().len(), Limits::of(env.launch(), env.image()));
        }
    }

    /// If the CTA is another one than before, nothing is known of it.
    fn begin(&mut self, ctaid: [u32; 3], launch: &Launch) {
        if self.ctaid.replace(ctaid) == Some(ctaid) {
            return;
        }
        self.named = [None; 16];
        self.torn = (None, 0);
        self.races.iter_mut().for_each(|races| races.begin(ctaid, launch.grid));
        self.strict.iter_mut().for_each(|races| races.begin(ctaid, launch.grid));
        self.init.iter_mut().for_each(|init| init.begin(launch));
    }

    /// Looks at an instruction. The result is false if it must not be executed yet.
    fn inspect(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, exec: u32, plan: Plan) -> bool {
        let (checks, warp) = (self.shared.checks(), w.index() as usize);
        self.begin(env.ctaid(), env.launch());
        self.grows(env);
        if let Some(races) = &mut self.races {
            races.order.goes_on(warp);
        }
        if let Some(races) = &mut self.strict {
            races.order.goes_on(warp, w.active(), strict::live(w));
        }
        match plan {
            Plan::Nothing => {}
            Plan::Access(shape) => {
                access::find(&mut self.accesses, w, env, u, &shape, exec);
                self.span = Span::of(&self.accesses);
                let common = self.common.clone();
                let mut common = common.lock();
                if !self.values(&mut common.pages, w, env, u, shape, exec) {
                    return false;
                }
                if checks.memory && !self.is_inside(shape.writes) {
                    let accesses = std::mem::take(&mut self.accesses);
                    accesses.iter().for_each(|access| self.bounds(w, env, u, access));
                    self.accesses = accesses;
                }
                self.races(&mut common, w, env, u, shape);
                self.strict_races(&mut common, w, env, u, shape);
            }
            Plan::Barrier(aligned) => self.barrier(w, env, u, exec, aligned),
            Plan::Fence(scope) => {
                self.races.iter_mut().for_each(|races| races.order.fences(warp, scope > Scope::Sm));
                if checks.strict {
                    let mut common = self.common.lock();
                    common.fence = common.fence.max(Some(scope));
                }
            }
            Plan::Exit => self.races.iter_mut().for_each(|races| races.order.exits(warp)),
            Plan::Warpsync(_) if checks.sync => self.warpsync(w, env, u, exec),
            Plan::Warpsync(_) | Plan::Acquires | Plan::Nop | Plan::Groups | Plan::Awaits(_) => {}
        }
        self.orders(w, env, u, exec, plan);
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
        let program = looked(env.image()).code;
        if !self.shared.is_new(Place { kind, program, at: [env.pc(at), env.pc(other)], which }) {
            return;
        }
        let party = |part: Part| {
            let thread = env.thread(part.warp, part.lane).unwrap_or_default();
            let (pc, word) = (env.pc(part.at), env.image().word(part.at));
            Party { what: part.what, pc, word, threads: Some((part.block.unwrap_or(env.ctaid()), thread)) }
        };
        let (title, parties) = make(&party);
        self.shared.add(Report { kind, title, parties });
    }
}
