//! NVTX: the ranges that a program marks with NVIDIA's header-only library, for profiles.
//!
//! The header loads the library that `NVTX_INJECTION64_PATH` names, calls [`InitializeInjectionNvtx2`] there, and from then on the
//! functions whose addresses it has got. `tegrarm profile` sets the variable. A kernel that has no use for ranges gets none.

use super::guard::status;
use super::instance::current_kmd;
use nix::time::{ClockId, clock_gettime};
use once_cell::race::{OnceBool, OnceBox};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tegrarm_abi::rm::status::{NV_ERR_NOT_SUPPORTED, NV_OK};
use tegrarm_kmd::Insights;
use tegrarm_lock::Mutex;
use tegrarm_rm::status::{RmResult, fail};

/// `NVTX_ETID_CALLBACKS`: the table of NVTX that says where its functions are.
const CALLBACKS: u32 = 1;
/// `NVTX_CB_MODULE_CORE`: the functions without a domain.
const CORE: u32 = 1;
/// `NVTX_CB_MODULE_CORE2`: those with a domain.
const CORE2: u32 = 5;
/// A function of NVTX: its number in the module, and ours that takes its place.
type Row = (usize, *const ());

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    functions: Option<unsafe extern "C" fn(module: u32, table: *mut *const *mut *const (), size: *mut c_uint) -> c_int>,
}

/// `nvtxEventAttributes_t`.
#[repr(C)]
pub(super) struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    colour_type: i32,
    colour: u32,
    payload_type: i32,
    reserved: i32,
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// `nvtxMessageType_t`.
const ASCII: i32 = 1;
const UNICODE: i32 = 2;
const REGISTERED: i32 = 3;

/// A range that has begun.
struct Open {
    domain: usize,
    name: String,
    begun_ns: u64,
}

/// So many ranges are kept until the program uses a device. Later ones are told of and left out.
const EARLY_RANGES: usize = 1 << 16;

thread_local! {
    /// The ranges that this thread has pushed and not popped.
    static PUSHED: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}
/// The ranges that were started and have not ended, by their numbers.
static STARTED: OnceBox<Mutex<HashMap<u64, Open>>> = OnceBox::new();
static NUMBER: AtomicU64 = AtomicU64::new(1);
/// The names of domains and the registered strings. A handle is the place of a name in the list, counted from 1.
static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Ranges that have ended before the program used a device, as lines for the kernel.
static EARLY: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Whether the kernel has a use for ranges.
static WANTED: OnceBool = OnceBool::new();

/// cbindgen:ignore
///
/// NVTX calls it when the program first calls NVTX. The result is 1 if the library takes the ranges.
#[allow(non_snake_case, reason = "the name is NVTX's")]
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjectionNvtx2(tables: Option<unsafe extern "C" fn(u32) -> *const c_void>) -> c_int {
    status(|| {
        let Some(tables) = tables else { fail!(NV_ERR_NOT_SUPPORTED, "NVTX has no tables") };
        // SAFETY: NVTX passes a function that takes the number of a table.
        let callbacks = unsafe { tables(CALLBACKS) }.cast::<Callbacks>();
        attach(callbacks)
    })
    .eq(&NV_OK)
    .into()
}

/// Puts our functions into the tables of NVTX.
fn attach(callbacks: *const Callbacks) -> RmResult<()> {
    // SAFETY: NVTX answers with its table, which stays for as long as the program, or with NULL.
    let callbacks = unsafe { callbacks.as_ref() };
    let Some(functions) = callbacks.filter(|c| c.size >= size_of::<Callbacks>()).and_then(|c| c.functions) else {
        fail!(NV_ERR_NOT_SUPPORTED, "this NVTX has no table of functions")
    };
    for (module, rows) in [(CORE, core()), (CORE2, with_domains())] {
        let (mut table, mut size) = (std::ptr::null(), 0);
        // SAFETY: both results are variables of this function.
        if unsafe { functions(module, &raw mut table, &raw mut size) } == 0 || table.is_null() {
            continue; // an older NVTX does not have the module
        }
        for (number, ours) in rows.into_iter().filter(|row| row.0 < size as usize) {
            // SAFETY: the table has `size` places, each of which is NULL or the place of a function.
            let place = unsafe { table.add(number).read() };
            if !place.is_null() {
                // SAFETY: NVTX lets the injected library write the address of a function of this type here.
                unsafe { place.write(ours) };
            }
        }
    }
    Ok(())
}

fn core() -> Vec<Row> {
    vec![
        (1, mark_ex as *const ()),
        (2, mark_a as *const ()),
        (3, mark_w as *const ()),
        (4, start_ex as *const ()),
        (5, start_a as *const ()),
        (6, start_w as *const ()),
        (7, end as *const ()),
        (8, push_ex as *const ()),
        (9, push_a as *const ()),
        (10, push_w as *const ()),
        (11, pop as *const ()),
    ]
}

fn with_domains() -> Vec<Row> {
    vec![
        (1, domain_mark as *const ()),
        (2, domain_start as *const ()),
        (3, domain_end as *const ()),
        (4, domain_push as *const ()),
        (5, domain_pop as *const ()),
        (10, register_a as *const ()),
        (11, register_w as *const ()),
        (12, domain_a as *const ()),
        (13, domain_w as *const ()),
    ]
}

/// The text at a pointer that may be NULL.
fn ascii(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: NVTX passes on a string of the program, which ends with a NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The same for `wchar_t`.
fn wide(text: *const u32) -> String {
    let mut letters = String::new();
    for at in 0.. {
        // SAFETY: NVTX passes on a string of the program, which ends with a zero. The loop ends there.
        match if text.is_null() { 0 } else { unsafe { text.add(at).read() } } {
            0 => break,
            letter => letters.push(char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }
    letters
}

fn named(attributes: *const Attributes) -> String {
    // SAFETY: NVTX passes on what the program passes: attributes or NULL.
    let Some(attributes) = (unsafe { attributes.as_ref() }) else { return String::new() };
    if usize::from(attributes.size) < size_of::<Attributes>() {
        return String::new();
    }
    match attributes.message_type {
        ASCII => ascii(attributes.message.cast()),
        UNICODE => wide(attributes.message.cast()),
        REGISTERED => name_of(attributes.message as usize),
        _ => String::new(),
    }
}

/// The name of a domain, or a registered string. It is empty for a handle that is none.
fn name_of(handle: usize) -> String {
    handle.checked_sub(1).and_then(|at| NAMES.lock().get(at).cloned()).unwrap_or_default()
}

/// Keeps a name and returns its handle.
fn register(name: String) -> usize {
    let mut result = 0;
    status(|| {
        let mut names = NAMES.lock();
        let known = names.iter().position(|known| *known == name);
        result = 1 + known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        Ok(())
    });
    result
}

fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

fn begun(domain: usize, name: String) -> Open {
    Open { domain, name, begun_ns: now_ns() }
}

/// Passes a range that has ended to the kernel.
fn ended(open: &Open) {
    let ns = now_ns().saturating_sub(open.begun_ns);
    pass(open, ns);
}

fn pass(open: &Open, ns: u64) {
    let clean = |text: &str| text.replace(['\t', '\n', '\r'], " ");
    let (domain, name) = (clean(&name_of(open.domain)), clean(&open.name));
    let line = format!("range\t{:#x}\t{ns:#x}\t{}\t{domain}\t{name}\n", open.begun_ns, nix::unistd::gettid());
    let Some(kmd) = current_kmd() else {
        let mut early = EARLY.lock();
        if early.len() < EARLY_RANGES {
            early.push(line);
        } else {
            static TOLD: AtomicBool = AtomicBool::new(false);
            if !TOLD.swap(true, Ordering::Relaxed) {
                tegrarm_output::say(&format!(
                    "NVTX: only the first {EARLY_RANGES} ranges before the first use of a device are kept"
                ));
            }
        }
        return;
    };
    if WANTED.get_or_init(|| kmd.wanted().is_some_and(|wanted| wanted.ranges)) {
        let early = std::mem::take(&mut *EARLY.lock());
        kmd.tell_code(&(early.concat() + &line));
    }
}

fn start(domain: usize, name: String) -> u64 {
    let mut number = 0;
    status(|| {
        number = NUMBER.fetch_add(1, Ordering::Relaxed);
        STARTED.get_or_init(Box::default).lock().insert(number, begun(domain, name));
        Ok(())
    });
    number
}

/// `nvtxRangePush` returns the level of the new range, and `nvtxRangePop` that of the one that ends. Both are negative after an error.
fn push(domain: usize, name: String) -> c_int {
    let mut level = -1;
    status(|| {
        let _ = PUSHED.try_with(|pushed| {
            let mut pushed = pushed.borrow_mut();
            level = pushed.iter().filter(|open| open.domain == domain).count() as c_int;
            pushed.push(begun(domain, name));
        });
        Ok(())
    });
    level
}

extern "C" fn mark_ex(attributes: *const Attributes) {
    domain_mark(0, attributes);
}

extern "C" fn mark_a(text: *const c_char) {
    mark(0, || ascii(text));
}

extern "C" fn mark_w(text: *const u32) {
    mark(0, || wide(text));
}

fn mark(domain: usize, name: impl FnOnce() -> String) {
    status(|| {
        pass(&begun(domain, name()), 0);
        Ok(())
    });
}

extern "C" fn start_ex(attributes: *const Attributes) -> u64 {
    start(0, named(attributes))
}

extern "C" fn start_a(text: *const c_char) -> u64 {
    start(0, ascii(text))
}

extern "C" fn start_w(text: *const u32) -> u64 {
    start(0, wide(text))
}

extern "C" fn end(number: u64) {
    status(|| {
        let open = STARTED.get_or_init(Box::default).lock().remove(&number);
        if let Some(open) = open {
            ended(&open);
        }
        Ok(())
    });
}

extern "C" fn push_ex(attributes: *const Attributes) -> c_int {
    push(0, named(attributes))
}

extern "C" fn push_a(text: *const c_char) -> c_int {
    push(0, ascii(text))
}

extern "C" fn push_w(text: *const u32) -> c_int {
    push(0, wide(text))
}

extern "C" fn pop() -> c_int {
    domain_pop(0)
}

extern "C" fn domain_mark(domain: usize, attributes: *const Attributes) {
    mark(domain, || named(attributes));
}

extern "C" fn domain_start(domain: usize, attributes: *const Attributes) -> u64 {
    start(domain, named(attributes))
}

extern "C" fn domain_end(_domain: usize, number: u64) {
    end(number);
}

extern "C" fn domain_push(domain: usize, attributes: *const Attributes) -> c_int {
    push(domain, named(attributes))
}

extern "C" fn domain_pop(domain: usize) -> c_int {
    let mut level = -1;
    status(|| {
        let newest = PUSHED.try_with(|pushed| {
            let mut pushed = pushed.borrow_mut();
            let at = pushed.iter().rposition(|open| open.domain == domain)?;
            level = pushed[..at].iter().filter(|open| open.domain == domain).count() as c_int;
            Some(pushed.remove(at))
        });
        if let Ok(Some(open)) = newest {
            ended(&open);
        }
        Ok(())
    });
    level
}

extern "C" fn register_a(_domain: usize, text: *const c_char) -> usize {
    register(ascii(text))
}

extern "C" fn register_w(_domain: usize, text: *const u32) -> usize {
    register(wide(text))
}

extern "C" fn domain_a(text: *const c_char) -> usize {
    register(ascii(text))
}

extern "C" fn domain_w(text: *const u32) -> usize {
    register(wide(text))
}
