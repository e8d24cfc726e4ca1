//! `tegrarm-sim`: runs unmodified programs on a virtual Orin.

mod strace;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use tegra_sim::supervisor::{self, Exit, Observer, Unobserved};
use tegra_sim::{Chip, L4t, SimConfig, boot};

/// A virtual Jetson Orin for programs that use /dev/nvmap and /dev/nvgpu.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Runs a program, and everything it starts, with the board's device nodes.
    Run(Run),
}

#[derive(clap::Args)]
struct Run {
    /// The module: agx-orin, agx-orin-pg, orin-nx, orin-nano, gv11b.
    #[arg(long)]
    chip: Option<Chip>,
    /// Jetson Linux release: r36, r35, r35.4.
    #[arg(long)]
    l4t: Option<L4t>,
    /// Prints a decoded line per ioctl, to standard error or to a file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    strace: Option<Option<PathBuf>>,
    /// The program and its arguments.
    #[arg(required = true, last = true)]
    program: Vec<std::ffi::OsString>,
}

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("TEGRARM_LOG"))
        .with_writer(std::io::stderr)
        .init();
    let Cli { command: Verb::Run(run) } = Cli::parse();
    match execute(&run) {
        Ok(Exit::Code(code)) => ExitCode::from(code as u8),
        Ok(Exit::Signal(signal)) => end_by(signal),
        Err(e) => {
            eprintln!("tegrarm-sim: {}: {e}", run.program[0].display());
            ExitCode::from(127)
        }
    }
}

fn execute(run: &Run) -> std::io::Result<Exit> {
    let mut config = SimConfig::from_env().map_err(std::io::Error::other)?;
    if let Some(chip) = run.chip {
        config = SimConfig { step: config.step, ..SimConfig::new(chip) }.on(config.l4t);
    }
    if let Some(l4t) = run.l4t {
        config = config.on(l4t);
    }
    let observer: Arc<dyn Observer> = match &run.strace {
        None => Arc::new(Unobserved),
        Some(None) => Arc::new(strace::Strace::new(Box::new(std::io::stderr()))),
        Some(Some(path)) => Arc::new(strace::Strace::new(Box::new(std::fs::File::create(path)?))),
    };
    let mut command = Command::new(&run.program[0]);
    command.args(&run.program[1..]);
    let (kernel, _gpu) = boot(config);
    supervisor::run(kernel, command, observer)
}

/// Ends as the program did, so that whoever started us sees the same.
fn end_by(signal: nix::sys::signal::Signal) -> ExitCode {
    let mut mask = nix::sys::signal::SigSet::empty();
    mask.add(signal);
    let _ = mask.thread_unblock();
    let _ = nix::sys::signal::raise(signal);
    ExitCode::from(128 + signal as u8)
}
