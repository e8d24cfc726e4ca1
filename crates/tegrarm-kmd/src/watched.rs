//! Memory that tells who accesses it: pages without access, and a handler of SIGSEGV that notes an access and lets it go on.
//!
//! A page that was accessed stays open until its owner closes its memory again, so that of each page the first load and the first store are
//! noted. The engine of a virtual Orin has mappings of its own, which are never closed. The handler is installed with the first memory, and
//! signals that are about something else go to the handler that was there before.
#![allow(unsafe_code)]

use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, compiler_fence};
use tegrarm_lock::ProcessMutex;

const PAGE: usize = 4096;
/// So many accesses are kept between two calls of [`take`]. Those behind them are let go on without a note.
const ACCESSES: usize = 1 << 14;
/// So many ways to an access are told apart. The others have the number 0.
const WAYS: usize = 256;

/// What a page allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Closed,
    Readable,
    Open,
}

impl State {
    fn protection(self) -> c_int {
        match self {
            State::Closed => libc::PROT_NONE,
            State::Readable => libc::PROT_READ,
            State::Open => libc::PROT_READ | libc::PROT_WRITE,
        }
    }
}

/// Some memory that is watched.
struct Range {
    owner: u64,
    len: usize,
    /// The address that its owner knows its first byte by.
    va: u64,
    pages: Box<[State]>,
    /// Whether all pages are in this state.
    all: Option<State>,
}

impl Range {
    /// Gives all pages another state.
    fn set(&mut self, start: usize, state: State) {
        if self.all != Some(state) && protect(start, self.len, state) {
            self.pages.fill(state);
            self.all = Some(state);
        }
    }
}

/// An access that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    owner: u64,
    /// Its first byte, by the address that the owner knows it by.
    pub va: u64,
    /// Whether it was a store.
    pub wrote: bool,
    /// The number of the calls that led there, for [`calls`].
    pub calls: u64,
}

/// The calls that led to an access.
#[derive(Clone, Debug)]
pub struct Calls(Arc<Backtrace>);

impl std::fmt::Display for Calls {
    /// Writes the program's calls as a debugger lists them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        let lines: Vec<&str> = text.lines().collect();
        // A call has a line with its number and its name, and perhaps a second line with its file. Behind the handler comes the piece of code
        // to which a handler returns, and then the program. Without the handler's name, everything is written.
        let begins = |line: &&str| line.split_once(": ").is_some_and(|(n, _)| n.trim().parse::<u32>().is_ok());
        let handler = lines.iter().position(|line| line.ends_with("on_fault"));
        let behind = |at: usize| lines.iter().enumerate().skip(at + 1).filter(|(_, line)| begins(line)).nth(1);
        let first = handler.and_then(behind).map_or(0, |(at, _)| at);
        lines[first..].iter().try_for_each(|line| writeln!(f, "{}", line.trim_end()))
    }
}

struct Watching {
    ranges: BTreeMap<usize, Range>,
    accesses: Vec<Access>,
    /// The ways to accesses, by a number made of their addresses.
    ways: Vec<(u64, Calls)>,
}

static WATCHING: ProcessMutex<Watching> =
    ProcessMutex::new(Watching { ranges: BTreeMap::new(), accesses: Vec::new(), ways: Vec::new() });
/// The process that watches. A child does not: it has none of the memory.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The action that SIGSEGV had before.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

thread_local! {
    /// Whether what this thread accesses is the library's own business.
    static UNSEEN: AtomicBool = const { AtomicBool::new(false) };
}

/// Memory that is watched until this value is dropped. It is open at first.
#[derive(Debug)]
pub struct Watched {
    start: usize,
    process: u32,
}

impl Watched {
    /// Watches `len` bytes of whole pages at `start`, which are mapped for loads and stores. Their owner knows the first byte as `va`.
    pub fn new(owner: u64, start: usize, len: usize, va: u64) -> Watched {
        let len = len.next_multiple_of(PAGE);
        let pages = vec![State::Open; len / PAGE].into_boxed_slice();
        let mut watching = WATCHING.lock();
        let process = std::process::id();
        if PROCESS.swap(process, Ordering::AcqRel) != process {
            // The handler allocates nothing for them.
            *watching = Watching {
                ranges: BTreeMap::new(),
                accesses: Vec::with_capacity(ACCESSES),
                ways: Vec::with_capacity(WAYS),
            };
        }
        watching.ranges.insert(start, Range { owner, len, va, pages, all: Some(State::Open) });
        Watched { start, process }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let is_ours = PROCESS.load(Ordering::Acquire) == std::process::id() && self.process == std::process::id();
        if is_ours && let Some(mut range) = WATCHING.lock().ranges.remove(&self.start) {
            range.set(self.start, State::Open);
        }
    }
}

/// Gives all memory of an owner the same state.
fn set_all(owner: u64, state: State) {
    if PROCESS.load(Ordering::Acquire) == std::process::id() {
        let mut watching = WATCHING.lock();
        let of_owner = watching.ranges.iter_mut().filter(|(_, range)| range.owner == owner);
        of_owner.for_each(|(start, range)| range.set(*start, state));
    }
}

/// Closes the memory of an owner: the next accesses are noted.
pub fn close(owner: u64) {
    answer_accesses();
    set_all(owner, State::Closed);
}

/// Opens the memory of an owner: no access is noted, and the system may use the memory, too.
pub fn open(owner: u64) {
    set_all(owner, State::Open);
}

/// The accesses to the memory of an owner that were noted since the last call.
pub fn take(owner: u64) -> Vec<Access> {
    WATCHING.lock().accesses.extract_if(.., |access| access.owner == owner).collect()
}

/// The calls that led to accesses, by their number.
pub fn calls(number: u64) -> Option<Calls> {
    let at = usize::try_from(number.checked_sub(1)?).ok()?;
    WATCHING.lock().ways.get(at).map(|(_, calls)| calls.clone())
}

/// Does some work of the library that is not noted.
#[inline]
pub fn unseen<T>(work: impl FnOnce() -> T) -> T {
    if PROCESS.load(Ordering::Relaxed) == 0 {
        return work();
    }
    let set = |unseen| UNSEEN.with(|now| now.swap(unseen, Ordering::Relaxed));
    // The handler of a signal reads it during the work. The compiler does not know that, and would leave out both changes.
    let before = set(true);
    compiler_fence(Ordering::SeqCst);
    let result = work();
    compiler_fence(Ordering::SeqCst);
    set(before);
    result
}

fn protect(start: usize, len: usize, state: State) -> bool {
    // SAFETY: the range is mapped for as long as it is watched. Its accesses wait in the handler for this mutex, which the caller holds.
    unsafe { libc::mprotect(start as *mut c_void, len, state.protection()) == 0 }
}

/// Installs the handler, and installs it again in front of one that the program has set meanwhile.
fn answer_accesses() {
    // SAFETY: all-zero actions are valid, and `on_fault` is a handler of the kind that SA_SIGINFO asks for. The earlier action is never freed,
    // because a handler may read it at any time.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_fault as *const () as usize;
        // The alternate stack of a thread is often too small to unwind the calls on it.
        new.sa_flags = libc::SA_SIGINFO;
        if libc::sigaction(libc::SIGSEGV, null_mut(), &raw mut old) == 0 && old.sa_sigaction != new.sa_sigaction {
            BEFORE.store(Box::into_raw(Box::new(old)), Ordering::Release);
            libc::sigaction(libc::SIGSEGV, &raw const new, null_mut());
        }
    }
}

/// Notes an access to memory that is watched, and lets it go on. Any other signal goes to the earlier handler.
///
/// The signal comes from an instruction that accesses a buffer. No such instruction is in the allocator, in the unwinder or in a part of the
/// library that holds the mutex, so that the handler may use them.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives a handler that was installed with SA_SIGINFO a valid `info`.
    let (address, code, errno) = unsafe { ((*info).si_addr() as usize, (*info).si_code, *libc::__errno_location()) };
    let is_denied = code == SEGV_ACCERR && PROCESS.load(Ordering::Acquire) == std::process::id();
    let goes_on = is_denied && accessed(address, context);
    // SAFETY: the place of the thread's errno, which the interrupted code may be about to read.
    unsafe { *libc::__errno_location() = errno };
    if !goes_on {
        pass_on(signal, info, context);
    }
}

/// `si_code` of an access that the pages do not allow (asm-generic/siginfo.h).
const SEGV_ACCERR: c_int = 2;

/// Opens the page of an address for an access and notes it. The result is false if the memory is not watched.
fn accessed(address: usize, context: *mut c_void) -> bool {
    let unseen = UNSEEN.with(|now| now.load(Ordering::Relaxed));
    let mut watching = WATCHING.lock();
    let Some((start, range)) = watching.ranges.range_mut(..=address).next_back() else { return false };
    let (start, at) = (*start, address - *start);
    let Some(before) = range.pages.get(at / PAGE).copied() else { return false };
    // A page that may be read already is accessed once more for a store.
    let wrote = is_store(context).unwrap_or(before == State::Readable);
    let now = if wrote { State::Open } else { before.max(State::Readable) };
    range.all = None;
    range.pages[at / PAGE] = now;
    if !protect(start + at / PAGE * PAGE, PAGE, now) {
        // Linux refuses to divide a mapping into ever more parts.
        range.set(start, State::Open);
    }
    // Another thread may have opened the page meanwhile.
    if now > before && !unseen && watching.accesses.len() < ACCESSES {
        let (owner, va) = (watching.ranges[&start].owner, watching.ranges[&start].va + at as u64);
        let calls = watching.way(context);
        watching.accesses.push(Access { owner, va, wrote, calls });
    }
    true
}

impl Watching {
    /// The number of the calls that led to the instruction of a signal.
    fn way(&mut self, context: *mut c_void) -> u64 {
        let mut walk = Walk { hash: DefaultHasher::new(), pc: program_counter(context), is_program: false };
        // SAFETY: the function gets a pointer to what it expects, which lives until the call returns.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
        let hash = walk.hash.finish();
        if let Some(at) = self.ways.iter().position(|(known, _)| *known == hash) {
            return at as u64 + 1;
        }
        if self.ways.len() == WAYS {
            return 0;
        }
        self.ways.push((hash, Calls(Arc::new(Backtrace::force_capture()))));
        self.ways.len() as u64
    }
}

/// A walk through the calls of a thread.
struct Walk {
    hash: DefaultHasher,
    /// The instruction of the signal, at which the program's calls begin.
    pc: usize,
    is_program: bool,
}

unsafe extern "C" {
    fn _Unwind_Backtrace(step: extern "C" fn(*mut c_void, *mut c_void) -> c_int, with: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes its context, and what `way` gave it, which nobody else uses meanwhile.
    let (at, walk) = unsafe { (_Unwind_GetIP(context), &mut *walk.cast::<Walk>()) };
    walk.is_program |= at == walk.pc;
    if walk.is_program {
        at.hash(&mut walk.hash);
    }
    0
}

/// The instruction that a signal has interrupted.
fn program_counter(context: *mut c_void) -> usize {
    // SAFETY: the system gives a handler that was installed with SA_SIGINFO a valid context.
    let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    return machine.gregs[libc::REG_RIP as usize] as usize;
    #[cfg(target_arch = "aarch64")]
    return machine.pc as usize;
}

/// Whether the access of a signal was a store, if the system says so: bit 1 of the error code of a page fault.
#[cfg(target_arch = "x86_64")]
fn is_store(context: *mut c_void) -> Option<bool> {
    // SAFETY: the system gives a handler that was installed with SA_SIGINFO a valid context.
    let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    Some(machine.gregs[libc::REG_ERR as usize] & 2 != 0)
}

/// Whether the access of a signal was a store, if the system says so: the bit WnR of the syndrome, which is in a record behind the registers.
#[cfg(target_arch = "aarch64")]
fn is_store(context: *mut c_void) -> Option<bool> {
    const ESR_MAGIC: u32 = 0x4553_5201;
    const WNR: u64 = 1 << 6;
    // SAFETY: the system gives a handler that was installed with SA_SIGINFO a valid context, whose registers records of at least 8 bytes follow,
    // at a multiple of 16. The last one has the number 0.
    unsafe {
        let state = &raw const (*context.cast::<libc::ucontext_t>()).uc_mcontext.pstate;
        let mut record = ((state as usize + 8).next_multiple_of(16)) as *const u32;
        loop {
            match (record.read(), record.add(1).read()) {
                (ESR_MAGIC, _) => return Some(record.add(2).cast::<u64>().read() & WNR != 0),
                (0, _) | (_, 0) => return None,
                (_, size) => record = record.byte_add(size as usize),
            }
        }
    }
}

/// Gives a signal to the earlier handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.load(Ordering::Acquire);
    // SAFETY: the action is null or the one that the system gave, and its handler gets what its flags ask for.
    unsafe {
        let action = before.as_ref().map_or((libc::SIG_DFL, 0), |before| (before.sa_sigaction, before.sa_flags));
        match action {
            (libc::SIG_DFL | libc::SIG_IGN, _) => {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &raw const default, null_mut());
                // An access is repeated and fails again. A signal that somebody sent is not.
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
            (handler, flags) if flags & libc::SA_SIGINFO != 0 => {
                std::mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(handler)(
                    signal, info, context,
                );
            }
            (handler, _) => std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mapping, Placement, Prot};
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::os::fd::AsFd;

    fn memory(pages: usize) -> Mapping {
        let file = memfd_create("watched", MFdFlags::MFD_CLOEXEC).expect("a file");
        nix::unistd::ftruncate(&file, (pages * PAGE) as i64).expect("room");
        Mapping::new(file.as_fd(), Placement::Anywhere, pages * PAGE, Prot::ReadWrite, 0).expect("mapped")
    }

    #[inline(never)]
    fn load(map: &Mapping, at: usize) -> u8 {
        // SAFETY: the byte is in the mapping, which only this test uses.
        unsafe { map.as_ptr().add(at).read_volatile() }
    }

    #[inline(never)]
    fn store(map: &Mapping, at: usize) {
        // SAFETY: the byte is in the mapping, which only this test uses.
        unsafe { map.as_ptr().add(at).write_volatile(1) }
    }

    fn noted(owner: u64) -> Vec<(u64, bool)> {
        take(owner).into_iter().map(|access| (access.va, access.wrote)).collect()
    }

    #[test]
    fn the_first_load_and_the_first_store_of_a_closed_page_are_noted_and_go_on() {
        let (map, owner) = (memory(3), 0x7001);
        let watched = Watched::new(owner, map.addr(), map.len(), 0x10_0000);
        store(&map, 5);
        assert_eq!(noted(owner), [], "it is open at first");
        close(owner);
        assert_eq!((load(&map, 5), load(&map, 6)), (1, 0));
        store(&map, 7);
        store(&map, 2 * PAGE + 9);
        assert_eq!(load(&map, 2 * PAGE + 8), 0);
        assert_eq!(noted(owner), [(0x10_0005, false), (0x10_0007, true), (0x10_2009, true)]);
        close(owner);
        assert_eq!(unseen(|| load(&map, 7)), 1);
        open(owner);
        store(&map, PAGE);
        assert_eq!(noted(owner), []);
        close(owner);
        drop(watched);
        store(&map, 0);
        assert_eq!(noted(owner), []);
    }

    #[test]
    fn calls_are_told_apart_and_begin_with_the_access() {
        let (map, owner) = (memory(2), 0x7002);
        let _watched = Watched::new(owner, map.addr(), map.len(), 0);
        let mut all = Vec::new();
        // The compiler must not make two pieces of code of the two turns.
        for _ in 0..std::hint::black_box(2) {
            close(owner);
            load(&map, 0);
            store(&map, 1);
            all.extend(take(owner));
        }
        assert_eq!(all.len(), 4);
        assert_ne!(all[0].calls, all[1].calls, "a load and a store");
        assert_eq!((all[0].calls, all[1].calls), (all[2].calls, all[3].calls));
        let text = calls(all[1].calls).expect("known").to_string();
        let first = text.lines().next().unwrap_or_default();
        assert!(!text.contains("on_fault") && (first.contains("write_volatile") || first.contains("store")), "{text}");
        assert!(calls(0).is_none());
    }

    #[test]
    fn other_faults_end_the_process_as_before() {
        let (map, owner) = (memory(1), 0x7003);
        let _watched = Watched::new(owner, map.addr(), map.len(), 0);
        close(owner);
        // SAFETY: the child only accesses memory and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: nothing is there, which is what this is about: the child ends.
            unsafe { (16 as *mut u8).write_volatile(1) };
            // SAFETY: the child ends.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: the status is this function's.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status:#x}");
    }
}
