//! `tegrarm-sim`: runs unmodified programs on a virtual Orin, and tools around it.

mod answer;
mod killer;
mod manual;
mod progress;
mod strace;
mod timeline;
mod told;

use clap::{Parser, Subcommand};
use progress::Progress;
use std::error::Error;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use tegra_gpu::{Gpu, Profile, finish_checks};
use tegra_sim::listing::{self, Kind};
use tegra_sim::supervisor::{self, Answered, Broken, Exit, Launches, Observer, Options, OuterLink, RunError, Side};
use tegra_sim::{Checks, Chip, Clock, Kernel, L4t, Refusals, SimConfig, SimKmd, boot_profiled, kmsg, slow_kernels};
use tegrarm_kmd::{Errno, describe};
use tegrarm_output::settings::{self, tell_of_unknown_once};
use timeline::Timeline;
use told::{Told, create};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// A virtual Jetson Orin for programs that use /dev/nvmap and /dev/nvgpu.
#[derive(Parser)]
#[command(name = "tegrarm-sim", version, about, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Verb,
}

const EXAMPLES: &str = "Examples:
  tegrarm-sim run -- ./program               a program that uses /dev/nvgpu, on an AGX Orin with L4T r36
  tegrarm-sim run --l4t r35 --strace -- ./program
  tegrarm-sim replay board.jsonl             makes the calls of a recording again, and compares
  tegrarm-sim replay --all board.jsonl       goes on after a difference, and prints each field that differs
  tegrarm-sim decode kernels.cubin           machine code as text

Exit status: 0 when all is well, 1 when a replay differs, 2 when the command line or a file is wrong, 125 when the simulator cannot
do its work, 126 when a program cannot be executed, 127 when there is none, otherwise the program's own.";

#[derive(Subcommand)]
enum Verb {
    /// Runs a program, and everything it starts, with the board's device nodes.
    Run(Box<Run>),
    /// Makes the calls of a recording on a virtual board and reports the first one that ends differently, or all of them.
    Replay(Replay),
    /// Prints a pushbuffer, a launch descriptor or a cubin in words.
    Decode(Decode),
    /// Writes the man pages and the completions of bash, zsh and fish into a directory.
    #[command(hide = true)]
    Manual(Manual),
}

#[derive(clap::Args)]
struct Manual {
    /// Where to.
    directory: PathBuf,
}

/// The most memory that a board can have: 16 TiB, more than any address of nvmap.
const MOST_MIB: u64 = 1 << 24;

/// Which board.
#[derive(clap::Args)]
struct Board {
    /// The module: agx-orin, agx-orin-pg, agx-orin-32gb, orin-nx, orin-nx-super, orin-nx-8gb, orin-nx-8gb-super, orin-nano,
    /// orin-nano-super, orin-nano-4gb, orin-nano-4gb-super, gv11b.
    #[arg(long)]
    chip: Option<Chip>,
    /// The power mode, with the name that nvpmodel prints. Without one, nothing limits the GPU.
    #[arg(long, value_name = "MODE")]
    power: Option<String>,
    /// Jetson Linux release: r36, r35, r35.4, r39.
    #[arg(long)]
    l4t: Option<L4t>,
    /// What nvmap refuses although memory is free: plain (nothing), cve-2025-33177 (what L4T 36.4.7 refuses), fragmented.
    #[arg(long, value_name = "MODE")]
    nvmap: Option<Refusals>,
    /// Refuse what is accepted here and believed to freeze a board.
    #[arg(long)]
    strict: bool,
}

#[derive(clap::Args)]
struct Run {
    #[command(flatten)]
    board: Board,
    /// Prints a decoded line per ioctl, to standard error or to a file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    strace: Option<Option<PathBuf>>,
    /// Writes the kernel's log, as dmesg prints it: faults of the GPU, and interrupts that the driver only logs.
    #[arg(long, value_name = "FILE")]
    kmsg: Option<PathBuf>,
    /// The same as records of /dev/kmsg, for tools that read those.
    #[arg(long, value_name = "FILE")]
    kmsg_records: Option<PathBuf>,
    /// Does not print the kernel's log to standard error.
    #[arg(long, short)]
    quiet: bool,
    /// Writes a timeline of ioctls and of the GPU's work, for Perfetto or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Leaves the program the host's own /dev and traps every call that takes a path instead: slower, but new devices show.
    #[arg(long)]
    trap_paths: bool,
    /// Leaves out a node, file or directory of the board, for example /dev/nvmap. May be given several times.
    #[arg(long, value_name = "PATH")]
    without: Vec<String>,
    /// Lets the program not open a node (EACCES). May be given several times.
    #[arg(long, value_name = "PATH")]
    deny: Vec<String>,
    /// The GPU cannot be powered: every ioctl on its nodes is ENODEV.
    #[arg(long)]
    dead_gpu: bool,
    /// The board has this much memory, in MiB.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=MOST_MIB))]
    memory: Option<u64>,
    /// Looks for errors in kernels: memory, init, race or race=strict, sync, order, cpu, divided by commas. Reports go to standard error.
    #[arg(long, value_name = "CHECKS")]
    check: Option<Checks>,
    /// Runs each launch in so many other orders of blocks and warps, too, and reports results that differ, as --check order does with 4.
    #[arg(long, value_name = "NUMBER")]
    schedules: Option<u32>,
    /// The other orders follow from this number. It is 1 unless it is given.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// The time that the program sees on the GPU: host, or model, which is about what it would see on the module.
    #[arg(long, value_name = "CLOCK")]
    clock: Option<Clock>,
    /// Prints at the end what each kernel cost: launches, instructions, seconds, and the module's seconds with --clock model.
    #[arg(long)]
    stats: bool,
    /// Writes what every kernel did and when, as JSON. `tegrarm profile` makes a page of it.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Ends with this status if the program succeeded and --check found something.
    #[arg(long, value_name = "STATUS", default_value_t = 0, value_parser = clap::value_parser!(u8))]
    check_exit: u8,
    /// Reports of --check that are known: they are not printed, and do not count.
    #[arg(long, value_name = "FILE")]
    suppressions: Option<PathBuf>,
    /// Says how the program got its device nodes, and how many calls were trapped for it.
    #[arg(long, short)]
    verbose: bool,
    /// Lets signals interrupt calls that are being answered, as hosts before Linux 5.19 do. For tests.
    #[arg(long, hide = true)]
    interruptible: bool,
    /// There is at most this much of everything that programs divide among themselves. For tests.
    #[arg(long, hide = true)]
    scarce: Option<u64>,
    /// Kills the program, the supervisor or the outer process at an ioctl: `program@7`. For tests.
    #[arg(long, hide = true)]
    kill: Option<killer::Killing>,
    /// The program and its arguments.
    #[arg(required = true, last = true)]
    program: Vec<std::ffi::OsString>,
}

#[derive(clap::Args)]
struct Replay {
    #[command(flatten)]
    board: Board,
    /// Goes on after a call that ends differently, and prints every difference, field by field.
    #[arg(long)]
    all: bool,
    /// Prints the outcome as JSON.
    #[arg(long)]
    json: bool,
    /// What TEGRARM_BACKEND=record:FILE wrote.
    recording: PathBuf,
}

#[derive(clap::Args)]
struct Decode {
    /// What the file is, if that is not to be guessed: pushbuffer, qmd, cubin, code (bare instructions).
    #[arg(long = "as", value_name = "KIND")]
    kind: Option<Kind>,
    /// Prints the kind and the lines as JSON.
    #[arg(long)]
    json: bool,
    /// The bytes.
    file: PathBuf,
}

fn main() -> ExitCode {
    log();
    let verb = Cli::parse().command;
    if !matches!(verb, Verb::Run(_)) {
        tell_of_unknown_once("tegrarm-sim");
    }
    match verb {
        Verb::Run(run) => run_it(&run),
        Verb::Replay(r) => replay(&r).unwrap_or_else(|e| refused(&r.recording, &*e, r.json)),
        Verb::Manual(m) => manual::write(<Cli as clap::CommandFactory>::command(), &m.directory)
            .map_or_else(|e| failed(&m.directory.display(), &e, 2), |()| ExitCode::SUCCESS),
        Verb::Decode(d) => print(&d).unwrap_or_else(|e| refused(&d.file, &*e, d.json)),
    }
}

/// Writes the log messages that `TEGRARM_LOG` asks for. Without it, errors are written.
fn log() {
    let asked = std::env::var_os("TEGRARM_LOG").unwrap_or_default();
    // An empty text is the level of errors.
    let parsed = asked.to_string_lossy().trim_end_matches([',', ' ']).parse();
    let filter = parsed.unwrap_or_else(|e: tracing_subscriber::filter::ParseError| {
        say(format_args!("TEGRARM_LOG={} is not understood, only errors are logged: {e}", asked.display()));
        Targets::new().with_default(LevelFilter::ERROR)
    });
    let layer = tracing_subscriber::fmt::layer().with_writer(|| tegrarm_output::Stderr).with_filter(filter);
    tracing_subscriber::registry().with(layer).init();
}

/// Writes to standard error. It may be closed, full or a broken pipe, and then the text is dropped.
fn say(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "tegrarm-sim: {text}");
}

fn failed(what: &dyn Display, why: &dyn Error, code: u8) -> ExitCode {
    say(format_args!("{what}: {why}"));
    ExitCode::from(code)
}

/// A file that cannot be used. Programs that asked for JSON get the sentence where the answer would have been.
fn refused(file: &Path, why: &dyn Error, json: bool) -> ExitCode {
    if json {
        // If standard output cannot be written either, standard error still has the sentence.
        let _ = tell(&answer::error(file, why, 2));
    }
    failed(&file.display(), why, 2)
}

/// The exit statuses of this program, as `env` and `timeout` have them: this program failed, the program cannot be
/// executed, the program does not exist.
const OURS: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NO_PROGRAM: i32 = 127;

/// Runs a program with two processes of our own: see [`supervisor::divide`].
fn run_it(run: &Run) -> ExitCode {
    match supervisor::divide() {
        Ok(Side::Supervisor(outer)) => supervise(run, outer),
        Ok(Side::Outer(Exit::Code(code))) => ExitCode::from(code as u8),
        Ok(Side::Outer(Exit::Signal(signal))) => end_by(signal),
        Ok(Side::Killed(signal)) => {
            say(format_args!("{signal} ended the supervisor; its programs were ended with it"));
            ExitCode::from(OURS as u8)
        }
        Err(e) => failed(&"the host refuses a second process", &e, OURS as u8),
    }
}

/// Runs the program in the supervisor's process. The other process is told how the program ended.
fn supervise(run: &Run, outer: OuterLink) -> ExitCode {
    let outer = Arc::new(outer);
    let exit = execute(run, outer.clone()).unwrap_or_else(|e| {
        let program = run.program[0].display();
        let code = match e.downcast_ref() {
            Some(RunError::Program(why)) if why.kind() == ErrorKind::NotFound => NO_PROGRAM,
            Some(RunError::Program(_)) => NOT_EXECUTABLE,
            _ => OURS,
        };
        match code {
            OURS => say(format_args!("{e}; {program} was not run")),
            _ => say(format_args!("{program}: {e}")),
        }
        Exit::Code(code)
    });
    outer.report(exit);
    ExitCode::SUCCESS
}

impl Board {
    /// The board that the environment describes, changed by the options.
    fn config(&self) -> Result<SimConfig, Box<dyn Error>> {
        let mut config = SimConfig::from_env()?;
        if let Some(chip) = self.chip {
            let SimConfig { l4t, refusals, step, strict, checks, check_exit, schedules, .. } = config;
            let SimConfig { clock, host_launch_us, clock_ramp_ms, profiled, counted, .. } = config;
            let of_chip = SimConfig::new(chip);
            // A mode of the environment must be one of this module.
            let of_chip = config.power.map_or(Ok(of_chip), |mode| of_chip.powered(mode.name()))?;
            config = SimConfig {
                refusals,
                step,
                strict,
                checks,
                check_exit,
                schedules,
                clock,
                host_launch_us,
                clock_ramp_ms,
                profiled,
                counted,
                ..of_chip
            };
            config = config.on(l4t);
        }
        let config = SimConfig { strict: config.strict || self.strict, ..config };
        let config = self.power.as_ref().map_or(Ok(config), |mode| config.powered(mode))?;
        let config = self.l4t.map_or(config, |l4t| config.on(l4t));
        Ok(config.refusing(self.nvmap.unwrap_or(config.refusals))?)
    }
}

/// Notes the calls of programs in a profile.
struct Calls(Arc<Profile>);

impl Observer for Calls {
    fn ioctl(&self, call: &Answered<'_>) {
        self.0.called(&describe::name(call.node, call.request), call.pid, call.time_ns);
    }
}

/// Tells the user how the program got its device nodes.
struct Verbose;

impl Observer for Verbose {
    fn started(&self, files: Result<(), Errno>) {
        match files {
            Ok(()) => say(format_args!("the board's files are mounted; only opening a node is trapped")),
            Err(Errno::ECANCELED) => say(format_args!("every call that takes a path is trapped, as asked for")),
            Err(e) => say(format_args!("no mount namespace ({e}): every call that takes a path is trapped")),
        }
    }

    fn ended(&self, trapped: u64) {
        say(format_args!("trapped calls: {trapped}"));
    }
}

/// Writes the kernel's log to each place that the user asked for. The log also goes to standard error unless the user
/// turned that off, because a GPU that stopped must not go unnoticed.
fn write_logs(run: &Run, kernel: &Kernel, gpu: &Gpu) -> Result<(), Box<dyn Error>> {
    for (option, path, form) in
        [("--kmsg", &run.kmsg, kmsg::Form::Dmesg), ("--kmsg-records", &run.kmsg_records, kmsg::Form::Records)]
    {
        if let Some(path) = path {
            kmsg::write_log(kernel, gpu, form, Told::create(option, path)?);
        }
    }
    if !run.quiet {
        kmsg::say_log(kernel, gpu, "--kmsg FILE writes all of it", |line| say(format_args!("{line}")));
    }
    if !run.quiet && std::io::stderr().is_terminal() {
        slow_kernels::say_slow(gpu, |line| say(format_args!("{line}")));
    }
    Ok(())
}

fn execute(run: &Run, outer: Arc<OuterLink>) -> Result<Exit, Box<dyn Error>> {
    let mut config = run.board.config()?;
    config.mem_total = run.memory.map_or(config.mem_total, |mib| mib << 20);
    config.checks = run.check.unwrap_or(config.checks);
    config = config.in_schedules(run.schedules, run.seed);
    config.clock = run.clock.unwrap_or(config.clock);
    config.profiled = run.profile.is_some();
    config.counted |= run.stats;
    config.traced |= run.trace.is_some();
    let profile_file = run.profile.as_ref().map(|path| create("--profile", path)).transpose()?;
    let (checks, clock) = (config.checks, config.clock);
    let power = config.power.map_or(String::new(), |mode| format!(" power={}", mode.name()));
    let about = format!(
        "version={} module={}{power} l4t={} memory={}",
        env!("CARGO_PKG_VERSION"),
        config.chip.name(),
        config.l4t.name(),
        config.mem_total
    );
    let (kernel, gpu, profile) = boot_profiled(config);
    write_logs(run, &kernel, &gpu)?;
    let mut observers: Vec<Arc<dyn Observer>> = vec![];
    match &run.strace {
        None => {}
        Some(None) => observers.push(Arc::new(strace::Strace::new(Box::new(std::io::stderr())))),
        Some(Some(path)) => observers.push(Arc::new(strace::Strace::new(Told::create("--strace", path)?))),
    }
    let trace = run.trace.as_ref().map(|path| create("--trace", path)).transpose()?;
    let timeline = trace.map(|file| Timeline::create(file, &gpu, &kernel)).transpose()?;
    observers.extend(timeline.iter().map(|t| t.clone() as Arc<dyn Observer>));
    observers.extend(profile.iter().map(|profile| Arc::new(Calls(profile.clone())) as Arc<dyn Observer>));
    if run.verbose {
        observers.push(Arc::new(Verbose));
    }
    observers.extend(run.kill.map(|killing| Arc::new(killer::Killer::new(killing)) as Arc<dyn Observer>));
    let mut command = Command::new(&run.program[0]);
    command.args(&run.program[1..]);
    // The variable is for people who ask what a program runs on. A program that must know opens supervisor::CENSUS.
    command.env("TEGRARM_SIM_RUN", about);
    let told = settings::tell_of_unknown("tegrarm-sim");
    if !told.is_empty() {
        // The program need not say it again.
        command.env(settings::TOLD, told);
    }
    // The library reads the reports, because only it knows the names of kernels.
    command.env("TEGRARM_SIM_CHECK", checks.to_string());
    if let Some(file) = &run.suppressions {
        let file = std::path::absolute(file).map_err(|error| format!("--suppressions {}: {error}", file.display()))?;
        command.env("TEGRARM_SUPPRESSIONS", file);
    }
    // The Python package tells people what a search for fast kernels ranks.
    command.env("TEGRARM_SIM_CLOCK", clock.name());
    let broken = Broken { missing: run.without.clone(), denied: run.deny.clone(), dead: run.dead_gpu };
    let options = Options {
        observers,
        trap_paths: run.trap_paths,
        broken,
        launches: Launches::of(&gpu),
        interruptible: run.interruptible,
        scarce: run.scarce,
        outer: Some(outer),
    };
    let exit = supervisor::run(kernel, command, options)?;
    // The program has run. An incomplete trace does not make it a failure.
    if let Some(Err(e)) = timeline.map(|timeline| timeline.finish()) {
        say(format_args!("--trace is not complete: {e}"));
    }
    if let (Some(profile), Some(file)) = (profile, profile_file)
        && let Err(e) = profile.write(file)
    {
        say(format_args!("--profile is not complete: {e}"));
    }
    Ok(match exit {
        Exit::Code(0) if finish_checks() > 0 => Exit::Code(run.check_exit.into()),
        exit => {
            finish_checks();
            exit
        }
    })
}

fn replay(replay: &Replay) -> Result<ExitCode, Box<dyn Error>> {
    let recording = answer::recording(&replay.recording)?;
    let board = Arc::new(SimKmd::new(replay.board.config()?));
    let (text, same) = if replay.all {
        let mut progress = Progress::new();
        let outcome = tegrarm_kmd::perform_all(recording, board, |made, of| progress.show(made, of))?;
        progress.end();
        let text = if replay.json { answer::replay_all(&outcome).to_string() } else { answer::all_in_words(&outcome) };
        (text, outcome.differences.is_empty())
    } else {
        let outcome = tegrarm_kmd::perform(recording, board)?;
        let text = if replay.json { answer::replay(&outcome).to_string() } else { outcome.to_string() };
        (text, outcome.difference.is_none())
    };
    tell(&format!("{text}\n"))?;
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(decode: &Decode) -> Result<ExitCode, Box<dyn Error>> {
    let bytes = std::fs::read(&decode.file)?;
    let kind = match decode.kind {
        Some(kind) => kind,
        None => answer::guess(&bytes)?,
    };
    let text = listing::text(kind, &bytes)?;
    tell(&if decode.json { answer::decode(kind, &text) } else { text })?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a result. It is no failure if the reader has closed the pipe.
fn tell(text: &str) -> Result<(), Box<dyn Error>> {
    match std::io::stdout().write_all(text.as_bytes()).and_then(|()| std::io::stdout().flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {e}").into()),
        _ => Ok(()),
    }
}

/// Ends this process in the way in which the program ended, so that our parent sees the same.
fn end_by(signal: nix::sys::signal::Signal) -> ExitCode {
    let mut mask = nix::sys::signal::SigSet::empty();
    mask.add(signal);
    let _ = mask.thread_unblock();
    let _ = nix::sys::signal::raise(signal);
    ExitCode::from(128 + signal as u8)
}
