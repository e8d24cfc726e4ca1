//! Tests settings that are wrong and output that cannot be written. The library says a sentence, and the program
//! continues or is refused. It is never ended.
#![allow(unsafe_code)]

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::ffi::{CStr, OsStr};
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};
use tegrarm::capi::library::*;
use tegrarm::capi::objects::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::status::*;

/// This variable is set in the processes that the tests start. It is the size of the largest file that they may write.
const ROLE: &str = "TEGRARM_TEST_SETTINGS_ROLE";

fn last_error() -> String {
    let mut text = [0; 1024];
    // SAFETY: the buffer belongs to this function and has the length that is passed.
    unsafe { tegrarm_last_error(text.as_mut_ptr(), text.len()) };
    // SAFETY: the library has just written a NUL at the end.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned()
}

fn alloc(client: u32, parent: u32, class: u32) -> (u32, u32) {
    let mut handle = 0;
    // SAFETY: the handle belongs to this function, and there are no parameters.
    let status = unsafe { rm_alloc(client, parent, &raw mut handle, class, std::ptr::null_mut(), 0) };
    (status, handle)
}

/// A variable of a thread, which opens a device when the thread ends.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        println!("AT END {:#x}", open());
    }
}

/// Opens a device and returns the status.
fn open() -> u32 {
    let (status, client) = alloc(0, 0, NV01_ROOT_CLIENT);
    if status == NV_OK { alloc(client, client, NV01_DEVICE_0).0 } else { status }
}

/// Opens a device in a thread, and another one when the variables of the thread end. The first that was used ends last.
fn open_at_the_end_of_a_thread() {
    thread_local! {
        static AT_END: AtEnd = const { AtEnd };
    }
    let opened = std::thread::spawn(|| {
        AT_END.with(|_| ());
        open()
    });
    assert_eq!(opened.join().expect("it ends without a panic"), NV_OK);
}

/// A program that knows nothing about these settings. It makes a client, a device and an object of an unknown class,
/// and then ends.
fn program() {
    for signal in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action calls no function of this program.
        unsafe { sigaction(signal, &default) }.expect("an action");
    }
    if let Some(most) = std::env::var(ROLE).ok().and_then(|most| most.parse().ok()) {
        setrlimit(Resource::RLIMIT_FSIZE, most, most).expect("a limit");
    }
    let (status, client) = alloc(0, 0, NV01_ROOT_CLIENT);
    let status = if status == NV_OK { alloc(client, client, NV01_DEVICE_0).0 } else { status };
    println!("STATUS {status:#x} {}", if status == NV_OK { String::new() } else { last_error() });
    if status == NV_OK {
        assert_eq!(alloc(client, client, 0xbeef).0, NV_ERR_INVALID_CLASS);
        assert_eq!(rm_free(client, client, client), NV_OK, "the library goes on");
    }
    if status == NV_OK {
        open_at_the_end_of_a_thread();
    }
    tegrarm_shutdown();
    std::process::exit(0);
}

/// Runs the program in its own process.
fn run(limit: &str, settings: &[(&str, &OsStr)], stderr: impl Into<Stdio>) -> Output {
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    child.args(["the_program", "--exact", "--nocapture"]).env(ROLE, limit).env("TEGRARM_BACKEND", "sim");
    let out = child.envs(settings.iter().copied()).stderr(stderr).output().expect("it starts");
    assert!(out.status.success(), "{settings:?}: {out:?}");
    out
}

#[test]
fn the_program() {
    if std::env::var_os(ROLE).is_some() {
        program();
    }
}

#[test]
fn a_thread_that_ends_can_call_with_and_without_a_log() {
    for settings in [&[][..], &[("TEGRARM_LOG", OsStr::new("trace"))]] {
        let out = run("", settings, Stdio::piped());
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(text.contains("AT END 0x0\n"), "{out:?}");
        let written = String::from_utf8_lossy(&out.stderr).contains("tegra_sim::ioctl");
        assert_eq!(written, !settings.is_empty(), "{out:?}");
    }
}

/// The program's status, the sentence that belongs to it, and what the program wrote to standard error.
fn outcome(out: &Output) -> (u32, String, String) {
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = text.lines().find_map(|l| l.split_once("STATUS 0x")).unwrap_or_else(|| panic!("{out:?}")).1;
    let (status, sentence) = line.split_once(' ').expect("a status");
    let status = u32::from_str_radix(status, 16).expect("a status");
    (status, sentence.to_owned(), String::from_utf8_lossy(&out.stderr).into_owned())
}

fn set(limit: &str, settings: &[(&str, &str)]) -> (u32, String, String) {
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, OsStr::new(*value))).collect();
    outcome(&run(limit, &settings, Stdio::piped()))
}

#[test]
fn standard_error_that_cannot_be_written_ends_nobody() {
    let loud = [("TEGRARM_LOG", OsStr::new("trace")), ("TEGRARM_REPORT", OsStr::new("1"))];
    let full = || OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let broken = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    let closed = || OpenOptions::new().read(true).open("/dev/null").expect("a device");
    let stats = ("TEGRARM_SIM_STATS", OsStr::new("1"));
    for out in [
        run("", &loud, full()),
        run("", &loud, broken()),
        run("", &loud, closed()),
        run("", &[loud[1], stats], full()),
        run("", &[loud[1], stats], broken()),
    ] {
        assert_eq!(outcome(&out).0, NV_OK);
    }
}

#[test]
fn settings_that_are_no_text_are_refused() {
    let no_text = OsStr::from_bytes(b"sim\xff");
    for name in ["TEGRARM_BACKEND", "TEGRARM_CPU_CACHE"] {
        let (status, sentence, _) = outcome(&run("", &[(name, no_text)], Stdio::piped()));
        assert_eq!(status, NV_ERR_INVALID_ARGUMENT, "{name}");
        assert!(sentence.contains(name) && sentence.contains("is not UTF-8 text"), "{sentence}");
    }
    let (status, _, said) = outcome(&run("", &[("TEGRARM_LOG", no_text)], Stdio::piped()));
    assert_eq!(status, NV_OK);
    assert!(said.contains("TEGRARM_LOG=") && said.contains("nothing is logged"), "{said}");
}

#[test]
fn a_misspelt_setting_is_told_once_with_the_nearest_known_one() {
    let misspelt = ("TEGRARM_SIM_CLOKC", "model");
    let (status, _, said) = set("", &[misspelt, ("TEGRARM_TEST_ANYTHING", "1")]);
    assert_eq!((status, said.matches("TEGRARM_").count()), (NV_OK, 2), "{said}");
    let sentence =
        "libtegrarm: there is no setting TEGRARM_SIM_CLOKC, so it changes nothing: is TEGRARM_SIM_CLOCK meant?\n";
    assert!(said.contains(sentence), "{said}");
    let (status, _, said) = set("", &[misspelt, ("TEGRARM_TOLD", "TEGRARM_OTHER,TEGRARM_SIM_CLOKC")]);
    assert!(status == NV_OK && !said.contains("CLOKC"), "{said}");
}

#[test]
fn settings_that_mean_nothing_are_refused_or_said() {
    for (name, value) in [
        ("TEGRARM_CPU_CACHE", "fast"),
        ("TEGRARM_SIM_CHIP", "thor"),
        ("TEGRARM_SIM_STATS", "yes"),
        ("TEGRARM_SIM_STEP", "yes"),
        ("TEGRARM_SIM_TRANSLATE", "often"),
        ("TEGRARM_SIM_CLOCK", "fast"),
        ("TEGRARM_SIM_CLOCK_RAMP_MS", "slow"),
        ("TEGRARM_SIM_HOST_LAUNCH_US", "1.5"),
        ("TEGRARM_SIM_NVMAP", "tight"),
        ("TEGRARM_BACKEND", "board"),
    ] {
        let (status, sentence, _) = set("", &[(name, value)]);
        assert_eq!(status, NV_ERR_INVALID_ARGUMENT, "{name}");
        assert!(sentence.contains(value), "{sentence}");
    }
    for (name, value, missing) in
        [("TEGRARM_LOG", "=[", "nothing is logged"), ("TEGRARM_REPORT", "yes", "nothing is reported")]
    {
        let (status, _, said) = set("", &[(name, value)]);
        assert_eq!(status, NV_OK, "{name}");
        assert!(said.contains(&format!("{name}={value}")) && said.contains(missing), "{said}");
    }
}

/// The program continues without the recording, and a sentence says where the recording ends.
#[test]
fn a_recording_that_finds_no_room_is_not_cut_without_a_word() {
    let path = std::env::temp_dir().join(format!("tegrarm-settings-{}.jsonl", std::process::id()));
    let record = path.to_str().expect("a name");
    // There is room for the doorbell's page of 64 KiB, but not for the recording, which has to begin near the limit.
    let (status, _, said) =
        set("4096", &[("TEGRARM_RECORD", record), ("TEGRARM_BACKEND", "replay:/no/such/recording")]);
    assert_ne!(status, NV_OK, "{said}");
    let (status, _, said) = set("65536", &[("TEGRARM_RECORD", "/dev/full")]);
    assert_eq!(status, NV_ERR_OPERATING_SYSTEM, "the header cannot be written: {said}");
    std::fs::write(&path, "").expect("a file");
    let append = std::fs::metadata(&path).expect("a file").len();
    assert_eq!(append, 0);
    let (status, _, said) = set("70000", &[("TEGRARM_RECORD", record)]);
    let written = std::fs::metadata(&path).expect("a file").len();
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(status, NV_OK);
    assert!(written < 70_000 || said.contains("the recording ends before call"), "{written} bytes, {said}");
}

#[test]
fn a_fifo_that_nobody_reads_is_no_place_for_a_recording() {
    let path = std::env::temp_dir().join(format!("tegrarm-settings-{}.fifo", std::process::id()));
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let name = path.to_str().expect("a name");
    for (variable, value, why) in [
        ("TEGRARM_RECORD", name.to_owned(), "nobody reads from this FIFO"),
        ("TEGRARM_BACKEND", format!("replay:{name}"), "a FIFO is not a recording"),
    ] {
        let (status, sentence, _) = set("", &[(variable, &value)]);
        assert_eq!(status, NV_ERR_OPERATING_SYSTEM);
        assert!(sentence.contains(why), "{sentence}");
    }
    std::fs::remove_file(&path).expect("removed");
}

/// The virtual Orin does not get the memory that it needs. The sentence does not advise to use the virtual Orin, because
/// it is in use already.
#[test]
fn nobody_is_told_to_use_what_is_in_use() {
    let (status, sentence, _) = set("0", &[]);
    assert_ne!(status, NV_OK);
    assert!(!sentence.contains("TEGRARM_BACKEND=sim") && sentence.contains("the simulated GPU needs"), "{sentence}");
}
