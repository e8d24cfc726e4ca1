//! Chooses the kernel that the library works on: the board's, the virtual Orin, or a recording. This is the only file
//! of the library that knows the simulator.
//!
//! `TEGRARM_BACKEND` or `tegrarm_init` names the backend. `nvgpu` is the board's kernel, and also what an absent name
//! means; `sim` is the virtual Orin; `replay:PATH` answers from a recording. The first two can be recorded:
//! `record:PATH` records `nvgpu`, and `sim,record:PATH` records the virtual Orin. `TEGRARM_RECORD=PATH` adds a
//! recording to any backend. If a backend cannot be used, the library never takes another one in its place.

#[cfg(feature = "sim")]
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{Kmd, LinuxKmd, Recorded, Replayed, Traced};
#[cfg(feature = "sim")]
use tegrarm_kmd::{Tally, tally};
use tegrarm_rm::rm::context;
use tegrarm_rm::status::{RmError, RmResult, fail};
use tegrarm_rm::tegra::CacheMode;

/// The kernel that answers the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Nvgpu,
    Sim,
    Replay(PathBuf),
}

/// A parsed `TEGRARM_BACKEND`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    source: Source,
    record: Option<PathBuf>,
}

impl Backend {
    /// Parses a backend's name.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown name. The sentence lists the names that are known.
    pub fn parse(text: &str) -> RmResult<Backend> {
        let mut backend = Backend { source: Source::Nvgpu, record: None };
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            match part.split_once(':') {
                None if part == "nvgpu" => backend.source = Source::Nvgpu,
                None if part == "sim" => backend.source = Source::Sim,
                Some(("record", path)) if !path.is_empty() => backend.record = Some(path.into()),
                Some(("replay", path)) if !path.is_empty() => backend.source = Source::Replay(path.into()),
                _ => fail!(
                    NV_ERR_INVALID_ARGUMENT,
                    "backend {part:?}: there are nvgpu, sim, record:PATH, replay:PATH, and sim,record:PATH"
                ),
            }
        }
        Ok(backend)
    }

    /// The backend that `TEGRARM_BACKEND` names.
    ///
    /// # Errors
    /// As [`Backend::parse`], and for what is no text.
    pub fn from_env() -> RmResult<Backend> {
        Backend::parse(&text_of("TEGRARM_BACKEND")?)
    }

    /// Adds the recording that `TEGRARM_RECORD` asks for, unless the backend's name has named a place for a recording
    /// already.
    #[must_use]
    pub fn recorded_by_env(mut self) -> Backend {
        let path = std::env::var_os("TEGRARM_RECORD").filter(|p| !p.is_empty());
        self.record = self.record.or(path.map(PathBuf::from));
        self
    }

    /// Opens the kernel that this backend names.
    ///
    /// # Errors
    /// OPERATING_SYSTEM when a recording cannot be opened or written, NOT_SUPPORTED when the simulator was not built
    /// in.
    pub fn open(&self) -> RmResult<Arc<dyn Kmd>> {
        let source: Arc<dyn Kmd> = match &self.source {
            Source::Nvgpu => Arc::new(LinuxKmd),
            Source::Sim => simulator()?,
            Source::Replay(path) => replay(path)?,
        };
        let source: Arc<dyn Kmd> = if tracing::enabled!(target: "tegrarm::kmd", tracing::Level::TRACE) {
            Arc::new(Traced::new(source))
        } else {
            source
        };
        match &self.record {
            None => Ok(source),
            Some(path) => record(source, path),
        }
    }
}

/// What a variable says; nothing when it is unset.
fn text_of(variable: &str) -> RmResult<String> {
    let Some(value) = std::env::var_os(variable) else { return Ok(String::new()) };
    value.into_string().map_err(|value| {
        let sentence = format!("{variable}={} is not UTF-8 text (TEGRARM_RECORD takes any path)", value.display());
        RmError::new(NV_ERR_INVALID_ARGUMENT, sentence)
    })
}

fn unusable(path: &Path, what: &str, why: impl std::fmt::Display) -> RmError {
    RmError::new(NV_ERR_OPERATING_SYSTEM, format!("{what} {}: {why}", path.display()))
}

#[cfg(feature = "sim")]
fn simulator() -> RmResult<Arc<dyn Kmd>> {
    let config = tegra_sim::SimConfig::from_env();
    let config = config.map_err(|e| RmError::new(NV_ERR_INVALID_ARGUMENT, format!("the virtual Orin: {e}")))?;
    let shown = shows_faults()?;
    let board = tegra_sim::SimKmd::new(config);
    // If these lines are logged already, they are not printed a second time.
    if shown && !tracing::enabled!(target: "tegra_sim::recovery", tracing::Level::WARN) {
        let more = "TEGRARM_LOG=warn logs all of it";
        tegra_sim::kmsg::say_log(board.kernel(), board.gpu(), more, tegrarm_output::say);
    }
    if std::io::stderr().is_terminal() {
        tegra_sim::slow_kernels::say_slow(board.gpu(), tegrarm_output::say);
    }
    // It counts what every program of this process launches, also without the library's queues.
    let executed = Tally::new(tally::Source::VirtualGpu);
    board.gpu().count_launches(Arc::new(move |_| executed.add(1)));
    Ok(Arc::new(board))
}

/// Whether the virtual Orin prints what its driver says about faults of the GPU. It does unless `TEGRARM_SIM_FAULTS` is
/// `0`, because a GPU that stopped must not go unnoticed.
#[cfg(feature = "sim")]
fn shows_faults() -> RmResult<bool> {
    match text_of("TEGRARM_SIM_FAULTS")?.as_str() {
        "" | "1" => Ok(true),
        "0" => Ok(false),
        other => fail!(NV_ERR_INVALID_ARGUMENT, "TEGRARM_SIM_FAULTS={other}: must be 0 or 1"),
    }
}

#[cfg(not(feature = "sim"))]
fn simulator() -> RmResult<Arc<dyn Kmd>> {
    fail!(NV_ERR_FEATURE_NOT_ENABLED, "this build of libtegrarm has no virtual Orin: build it with feature sim")
}

fn replay(path: &Path) -> RmResult<Arc<dyn Kmd>> {
    let replayed = Replayed::open(path).map_err(|e| unusable(path, "replaying", e))?;
    Ok(Arc::new(replayed))
}

fn record(source: Arc<dyn Kmd>, path: &Path) -> RmResult<Arc<dyn Kmd>> {
    let recorded = Recorded::create(source, path).map_err(|e| unusable(path, "recording to", e))?;
    context::watch();
    Ok(Arc::new(recorded.labelled(tegrarm_rm::rm::label)))
}

/// The CPU attribute that `TEGRARM_CPU_CACHE` names for CPU-mapped memory: `wc`, which is also the default, or `inner`.
///
/// # Errors
/// INVALID_ARGUMENT for anything else.
pub fn cpu_cache_from_env() -> RmResult<CacheMode> {
    match text_of("TEGRARM_CPU_CACHE")?.as_str() {
        "" | "wc" => Ok(CacheMode::WriteCombine),
        "inner" => Ok(CacheMode::InnerCacheable),
        other => fail!(NV_ERR_INVALID_ARGUMENT, "TEGRARM_CPU_CACHE={other}: must be wc or inner"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_understood_and_nothing_else() {
        let parse = |text: &str| Backend::parse(text).map(|b| (b.source, b.record));
        assert_eq!(parse(""), Ok((Source::Nvgpu, None)));
        assert_eq!(parse("sim"), Ok((Source::Sim, None)));
        assert_eq!(parse("record:/a:b"), Ok((Source::Nvgpu, Some("/a:b".into()))));
        assert_eq!(parse("sim, record:x"), Ok((Source::Sim, Some("x".into()))));
        assert_eq!(parse("replay:x"), Ok((Source::Replay("x".into()), None)));
        for bad in ["simulator", "replay:", "record", "nvgpu:1"] {
            assert_eq!(parse(bad).unwrap_err().status, NV_ERR_INVALID_ARGUMENT, "{bad}");
        }
    }

    #[test]
    fn a_recording_answers_as_its_kernel_did() {
        let path = std::env::temp_dir().join(format!("tegrarm-backend-{}.jsonl", std::process::id()));
        let open = |text: String| Backend::parse(&text).and_then(|b| b.open());
        let absent = "/dev/nvgpu/igpu0/no-such-node";
        let errno = open(format!("record:{}", path.display())).unwrap().open(absent).unwrap_err();
        let replay = open(format!("replay:{}", path.display())).unwrap();
        assert_eq!((replay.name(), replay.open(absent).unwrap_err()), ("replay of nvgpu", errno));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(open(format!("replay:{}", path.display())).err().unwrap().status, NV_ERR_OPERATING_SYSTEM);
        assert_eq!(open("record:/no-such-directory/x".into()).err().unwrap().status, NV_ERR_OPERATING_SYSTEM);
    }

    #[cfg(not(feature = "sim"))]
    #[test]
    fn a_build_without_the_virtual_orin_says_so() {
        let refused = Backend::parse("sim").and_then(|b| b.open()).err().unwrap();
        assert_eq!(refused.status, NV_ERR_FEATURE_NOT_ENABLED, "{refused}");
    }
}
