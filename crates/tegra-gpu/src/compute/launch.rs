//! Runs a grid: reads the descriptor, checks it, executes the grid, releases its semaphores and goes on to its
//! dependent.

use super::super::clock::host_ns;
use super::super::context::Registers;
use super::super::context::Units;
use super::super::fault;
use super::super::mem::Accessor;
use super::super::pace;
use super::super::profile::Ended;
use super::super::render;
use super::super::slow::Origin;
use super::super::trace::Event;
use super::super::turn::{Flow, Turn};
use super::checks::{self, Setting};
use super::pcas;
use super::qmd::Qmd;
use super::schedules;
use super::sked::Scheduled;
use sm87::observe::Observer;
use sm87::{ErrorRegisters, Launch, Limits, RunStats, Site, SmFault, Stopped, Told};
use sm87_check::{Outcome, Watch};
use sm87_model::{Estimate, Model};
use std::sync::Arc;
use tegra_hw::{Awakening, Fault, Insight, SmError};
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::qmd::*;

/// The work units that one grid costs, however long it takes.
const COST: u64 = 256;

/// Runs the descriptors that PCAS actions started, until none is left, another channel has the engine, or the turn is
/// over.
pub(super) fn run_pending(units: &mut Units, turn: &Turn<'_>) -> Result<Flow, Fault> {
    let mut moved = false;
    while let Some(launch) = units.launches.next() {
        if units.left() == 0 || turn.signals.stop.requested() {
            return Ok(Flow::Again(moved));
        }
        let Some(busy) = turn.engine.enter(turn.hw, &turn.signals.stop) else {
            return Ok(Flow::Again(moved));
        };
        let result = run(units, turn, launch);
        drop(busy);
        result?;
        if turn.signals.stop.requested() {
            return Ok(Flow::Again(true));
        }
        units.launches.pop();
        units.spend(COST);
        moved = true;
    }
    Ok(Flow::Done)
}

/// Runs one descriptor to its end, with its releases. If the channel was stopped meanwhile, the grid has no effect.
fn run(units: &mut Units, turn: &Turn<'_>, Scheduled { qmd: at, copied }: Scheduled) -> Result<(), Fault> {
    let qmd = pcas::read(turn, at).map(|qmd| if copied { qmd.copied() } else { qmd })?;
    let setting = {
        let context = units.context.lock();
        if !enabled(turn, &context.compute)? {
            return Ok(());
        }
        Setting { checks_l1: context.sked.checks_l1, ..setting(&context.compute) }
    };
    if let Some((esr, names)) = checks::violations(&qmd, &setting) {
        let what = format!("{}: esr {esr:#010x} ({names}), descriptor {at:#x}", fault::SKED_EXCEPTION);
        return Err(fault::graphics(turn.hw, what));
    }
    count(units, &qmd, CWD_REFERENCE_COUNT_INCR_ENABLE, u32::wrapping_add);
    let Some(done) = execute(turn, &qmd, &setting)? else { return Ok(()) };
    turn.trace.emit(|| Event::Launch {
        channel: turn.hw.id,
        qmd: at,
        code: qmd.program(),
        name: name(turn, qmd.program()),
        grid: qmd.grid(),
        block: qmd.block(),
        warp_instructions: done.stats.warp_instructions,
        cpu_ns: done.stats.cpu_ns,
        estimate: done.estimate,
        start_ns: done.start_ns,
        end_ns: host_ns(),
    });
    turn.trace.launched(turn.hw.tsg.process);
    release(turn, &qmd)?;
    count(units, &qmd, CWD_REFERENCE_COUNT_DECR_ENABLE, u32::wrapping_sub);
    match qmd.dependent() {
        Some(dependent) => pcas::follow(units, turn, dependent.qmd, dependent.action),
        None => Ok(()),
    }
}

fn count(units: &Units, qmd: &Qmd, enable: tegrarm_abi::layout::Bits, change: fn(u32, u32) -> u32) {
    if qmd.flag(enable) {
        let id = qmd.field(CWD_REFERENCE_COUNT_ID) as usize;
        let delta = qmd.field(CWD_REFERENCE_COUNT_DELTA_MINUS_ONE) as u32 + 1;
        let counter = &mut units.context.lock().sked.counters[id];
        *counter = change(*counter, delta);
    }
}

fn setting(r: &Registers) -> Setting {
    Setting {
        shared_window: r.pair(
            NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A,
            NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A_BASE_ADDRESS_UPPER,
        ),
        local_window: r
            .pair(NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A_BASE_ADDRESS_UPPER),
        local_per_tpc: r.pair(
            NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A,
            NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A_SIZE_UPPER,
        ),
        checks_l1: true,
    }
}

/// Evaluates conditional execution: the channel's setting counts unless the override decides.
fn enabled(turn: &Turn<'_>, r: &Registers) -> Result<bool, Fault> {
    match NVC6C0_SET_RENDER_ENABLE_OVERRIDE_MODE.of(r.get(NVC6C0_SET_RENDER_ENABLE_OVERRIDE)) {
        NVC6C0_SET_RENDER_ENABLE_OVERRIDE_MODE_ALWAYS_RENDER => return Ok(true),
        NVC6C0_SET_RENDER_ENABLE_OVERRIDE_MODE_NEVER_RENDER => return Ok(false),
        _ => {}
    }
    let table = turn.table();
    let mem = Accessor::new(&table);
    for (first, upper) in [
        (NVC6C0_SET_RENDER_ENABLE_A, NVC6C0_SET_RENDER_ENABLE_A_OFFSET_UPPER),
        (NVC6C0_SET_GLOBAL_RENDER_ENABLE_A, NVC6C0_SET_GLOBAL_RENDER_ENABLE_A_OFFSET_UPPER),
    ] {
        let mode = NVC6C0_SET_RENDER_ENABLE_C_MODE.of(r.get(first + 8));
        let va = r.pair(first, upper);
        if let Err(invalid) = render::check(va, mode) {
            return Err(fault::graphics(turn.hw, format_args!("render enable {mode} at {va:#x}: invalid {invalid:?}")));
        }
        if !render::enabled(&mem, va, mode).map_err(turn.mmu(fault::FRONT_END))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The name of the kernel that begins at an address, if its program has told it.
fn name(turn: &Turn<'_>, code: u64) -> Option<Arc<str>> {
    turn.hw.tsg.gpu.names.function(turn.hw.tsg.process, code)
}

/// What a grid took.
struct Executed {
    stats: RunStats,
    /// What it would take on the board, if somebody asks for it.
    estimate: Option<Estimate>,
    start_ns: u64,
}

/// Executes the grid. The result is `None` if the channel was stopped, because
/// nobody waits for the rest of the grid then.
fn execute(turn: &Turn<'_>, qmd: &Qmd, setting: &Setting) -> Result<Option<Executed>, Fault> {
    let (start_ns, work) = (host_ns(), turn.work());
    if qmd.grid().contains(&0) {
        work.took(pace::grid_ns(None));
        return Ok(Some(Executed { stats: RunStats::default(), estimate: None, start_ns }));
    }
    let (local_low, local_high) = qmd.local_bytes();
    let (gpu, channel) = (turn.hw.tsg.gpu.clone(), turn.hw.id);
    let told = Told(Arc::new(move |what| gpu.faults.waits(channel, what)));
    let progress = turn.trace.slow.begins(Origin::of(turn.hw), qmd.program(), qmd.grid());
    let launch = Launch {
        table: turn.table(),
        code: qmd.program(),
        grid: qmd.grid(),
        first: qmd.resume(),
        block: qmd.block(),
        registers: qmd.registers(),
        shared_bytes: qmd.shared_bytes(),
        local_low,
        local_high,
        banks: qmd.banks(),
        shared_window: setting.shared_window,
        local_window: setting.local_window,
        sm_count: turn.config.sms.len() as u32,
        disabled_sms: qmd.disabled_sms(),
        sequential: qmd.flag(SEQUENTIALLY_RUN_CTAS),
        veid: turn.hw.veid,
        begun: work.begun,
        limits: Limits {
            cancel: Some(turn.signals.stop.flag()),
            budget: turn.config.budget,
            translated_after: turn.config.translated_after,
            progress,
            told: Some(told),
            ..Limits::default()
        },
    };
    let watch = turn.config.reports.as_ref().map(|reports| Watch::new(&reports.checker()));
    let begun = turn.queues().map(|queues| queues.begins(turn.hw));
    let profile = turn.config.profile.as_ref();
    let model = match profile {
        Some(profile) => Some(Model::noting(pace::machine(profile.speeds(), work.busy), &launch)),
        None => turn.config.speeds.map(|speeds| Model::new(pace::machine(speeds, work.busy), &launch)),
    };
    let outcome = turn.config.schedules.map(|_| Outcome::default());
    let observers = [
        watch.as_ref().map(|w| w as &dyn Observer),
        model.as_ref().map(|m| m as &dyn Observer),
        outcome.as_ref().map(|o| o as &dyn Observer),
    ];
    let result = sm87::run_observed(&launch, &observers.into_iter().flatten().collect::<Vec<_>>());
    let estimate = model.as_ref().and_then(Model::estimate);
    if result.is_ok() {
        work.took(pace::grid_ns(estimate));
    }
    if let (Some(reports), Some(schedules), Some(outcome), Ok(stats)) =
        (&turn.config.reports, turn.config.schedules, &outcome, &result)
    {
        schedules::compare(schedules, &reports.checker(), &launch, outcome, *stats);
    }
    turn.trace.slow.ends();
    turn.hw.tsg.gpu.faults.goes_on(turn.hw.id);
    if let (Some(profile), Some(model), Some(estimate)) = (profile, &model, estimate) {
        let (warp_instructions, cpu_ns) =
            result.as_ref().map_or((0, 0), |stats| (stats.warp_instructions, stats.cpu_ns));
        let (channel, rows) = (turn.hw, model.rows());
        profile.launched(Ended { channel, launch: &launch, rows, estimate, warp_instructions, cpu_ns, start_ns });
    }
    let failed = result.is_err() && !turn.signals.stop.requested();
    if let (Some(queues), Some(begun), Some(watch), Ok(_)) = (turn.queues(), begun, &watch, &result) {
        queues.launched(turn.hw, begun, name(turn, launch.code).as_deref(), &launch, watch);
    }
    let reports = turn.config.reports.as_ref().map(|reports| {
        reports.launched(failed);
        reports.publish(&turn.hw.tsg.gpu)
    });
    if let (Some(profile), Some(reports)) = (profile, reports) {
        reports.iter().for_each(|report| profile.reported(report, turn.hw, launch.code));
    }
    if turn.signals.stop.timed_out() {
        let kernel = name(turn, launch.code).map_or_else(String::new, |name| format!("of kernel {name} "));
        let mut what = format!("the grid {kernel}at {:#x} {}", launch.code, turn.signals.stop.sentence());
        if let Err(Stopped { fault: SmFault::Hang { text, .. }, .. }) = result {
            what = format!("{what}: {text}");
        }
        return Err(fault::switch_timeout(turn.hw, what));
    }
    if turn.signals.stop.requested() {
        return Ok(None);
    }
    result.map(|stats| Some(Executed { stats, estimate, start_ns })).map_err(|f| sm_fault(turn, f))
}

/// The record that the kernel reads out of an SM.
fn record(ErrorRegisters { global_esr, warp_esr, pc }: ErrorRegisters) -> SmError {
    SmError { global_esr, warp_esr, pc }
}

/// Details of a fault that a board's kernel would not report.
fn insight(site: &Site) -> Insight {
    let Site { block, warp, lanes, lane, thread, pc, kernel, word, access, shared } = *site;
    let text = sm87::disassemble(word as u64, (word >> 64) as u64, pc);
    let instruction = text.unwrap_or_else(|| format!("{word:#034x}"));
    Insight { block, warp, lanes, lane, thread, pc, kernel, instruction, access, shared }
}

/// Describes an SM's fault in the words of the kernel log.
fn sm_fault(turn: &Turn<'_>, stopped: Stopped) -> Fault {
    let sms = stopped.fault.record().into_iter().chain(stopped.others).map(|(sm, r)| (sm, record(r))).collect();
    let insight = stopped.fault.site().map(|site| Box::new(insight(site)));
    match stopped.fault {
        SmFault::Mmu { fault, fetch, sm, record, .. } => {
            let (gpc, _) = turn.config.place(sm);
            let client = if fetch { fault::CODE } else { fault::SM };
            let base = fault::mmu(turn.hw, client.in_gpc(gpc), fault);
            let text = format!("{}, sm {sm}, pc {:#x}", base.text, record.pc);
            Fault { sms, text, insight, ..base }
        }
        SmFault::Warp { record: registers, sm, text, .. } => {
            let what = format!("{}: {text}", fault::sm_exception(turn.config, sm, &record(registers)));
            Fault { sms, insight, ..fault::graphics(turn.hw, what) }
        }
        SmFault::Hang { pc, text } => {
            let what = format!("the grid makes no progress at pc {pc:#x}: {text}");
            fault::switch_timeout(turn.hw, what)
        }
    }
}

/// Performs release semaphores 0 to 2 in order, after everything that the grid wrote.
fn release(turn: &Turn<'_>, qmd: &Qmd) -> Result<(), Fault> {
    let table = turn.table();
    for (release, interrupts) in qmd.releases(turn.ptimer.stamp()) {
        turn.release(&table, &release).map_err(turn.mmu(fault::SKED))?;
        turn.semaphore(release.va, "released by a grid", release.payload);
        if interrupts {
            turn.awaken(Awakening::NonStall);
        }
    }
    Ok(())
}
