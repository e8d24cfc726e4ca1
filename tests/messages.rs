//! Tests what the library tells a program: sentences, a log callback, and the state of the device.
#![cfg(feature = "sim")]
#![allow(unsafe_code)] // calls what C calls

mod common;

use common::{last_sentence, open_c_device};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use tegrarm::capi::messages::*;
use tegrarm::capi::runtime::device::*;
use tegrarm::capi::runtime::state::*;
use tegrarm_abi::rm::status::*;

/// The level, the status and the sentence of each message.
type Told = Mutex<Vec<(u32, u32, String)>>;

unsafe extern "C-unwind" fn tell(level: u32, status: u32, message: *const c_char, user: *mut c_void) {
    // SAFETY: the library passes a string, and the pointer that `tegrarm_log` was given.
    let (message, told) = unsafe { (CStr::from_ptr(message), &*user.cast::<Told>()) };
    told.lock().unwrap().push((level, status, message.to_str().unwrap().to_owned()));
}

/// All of this is one test, because a process has only one callback.
#[test]
fn failures_are_told_once_with_their_status_apart() {
    let device = open_c_device();
    let told: Told = Mutex::default();
    let user = (&raw const told).cast_mut().cast::<c_void>();
    assert_eq!(tegrarm_log(6, Some(tell), user), NV_ERR_INVALID_ARGUMENT);
    assert_eq!(tegrarm_log(1, Some(tell), user), NV_OK);
    assert_eq!(tegrarm_wait(device, 1 << 40, 0), NV_ERR_INVALID_ARGUMENT);
    let sentence = last_sentence();
    assert!(
        sentence.contains("never given") && !sentence.contains("NV_ERR") && !sentence.contains("0x1f"),
        "{sentence}"
    );
    let found = std::mem::take(&mut *told.lock().unwrap());
    assert_eq!(found, [(1, NV_ERR_INVALID_ARGUMENT, sentence)]);

    // Messages about what the library does have a higher level. A callback with a higher level also gets the messages
    // of lower levels.
    assert_eq!(tegrarm_log(4, Some(tell), user), NV_OK);
    let other = open_c_device();
    assert_eq!(tegrarm_device_close(other), NV_OK);
    assert_eq!(tegrarm_device_close(other), NV_ERR_OBJECT_NOT_FOUND);
    let found = std::mem::take(&mut *told.lock().unwrap());
    assert!(found.iter().any(|(level, status, _)| (*level, *status) == (4, NV_OK)), "{found:?}");
    let errors: Vec<u32> = found.iter().filter(|(level, ..)| *level == 1).map(|(_, status, _)| *status).collect();
    // `open` tries to initialise the library once more, and that fails.
    assert_eq!(errors, [NV_ERR_INVALID_STATE, NV_ERR_OBJECT_NOT_FOUND], "{found:?}");
    assert!(found.iter().all(|(.., text)| !text.is_empty()), "{found:?}");

    for off in [tegrarm_log(0, Some(tell), user), tegrarm_log(5, None, null_mut())] {
        assert_eq!(off, NV_OK);
        assert_eq!(tegrarm_wait(device, 1 << 40, 0), NV_ERR_INVALID_ARGUMENT);
        assert!(told.lock().unwrap().is_empty());
    }
    state_of(device);
    assert_eq!(tegrarm_device_close(device), NV_OK);
}

/// Checks what the virtual Orin says about itself: it has clocks and memory, but no thermal zones.
fn state_of(device: *mut tegrarm::capi::runtime::opaque::tegrarm_device) {
    // SAFETY: a structure of numbers, for which all zeros are values.
    let mut state: tegrarm_device_state = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is a variable, and its size is its own.
    let ask = |state: &mut tegrarm_device_state| unsafe { tegrarm_device_state(device, state) };
    assert_eq!(ask(&mut state), NV_ERR_INVALID_PARAM_STRUCT);
    state.size = size_of::<tegrarm_device_state>();
    assert_eq!(ask(&mut state), NV_OK, "{}", last_sentence());
    assert_eq!(state.size, size_of::<tegrarm_device_state>());
    assert!(state.min_clock_hz <= state.clock_hz && state.clock_hz <= state.max_clock_hz && state.clock_hz > 0);
    assert!(state.memory_available <= state.memory_total && state.memory_total > 0);
    assert!(state.load <= 1000, "{}", state.load);
    assert_eq!((state.temperature, state.power_mode), (TEGRARM_TEMPERATURE_UNKNOWN, TEGRARM_POWER_MODE_UNKNOWN));
    // A program that was compiled with a shorter structure gets as many bytes as it has.
    state.size = 16;
    state.min_clock_hz = 7;
    assert_eq!((ask(&mut state), state.size, state.min_clock_hz), (NV_OK, 16, 7));
    assert_eq!(
        // SAFETY: the device is open; a null pointer is what the function must refuse.
        unsafe { tegrarm_device_state(device, null::<tegrarm_device_state>().cast_mut()) },
        NV_ERR_INVALID_POINTER
    );
}
