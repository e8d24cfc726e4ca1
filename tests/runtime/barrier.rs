//! On AArch64, a full barrier must stand between the CPU's stores and the doorbell. This test reads the machine code.
//!
//! No other test would notice if the barrier were missing, because neither the virtual GPU nor an emulator reorders
//! stores.
#![cfg(target_arch = "aarch64")]
#![allow(unsafe_code)]

use tegrarm::runtime::memory::doorbell::Doorbell;
use tegrarm_kmd::DeviceMem;

const DSB_SY: u32 = 0xd503_3f9f;
const RET: u32 = 0xd65f_03c0;

/// The instructions of a function up to its return, each with its address.
fn code(start: usize) -> Vec<(usize, u32)> {
    let mut code = Vec::new();
    for at in (start..).step_by(4).take(256) {
        // SAFETY: a function ends with a return, and the loop does not read beyond it.
        let word = unsafe { (at as *const u32).read() };
        code.push((at, word));
        if word == RET {
            break;
        }
    }
    code
}

/// The target of a `bl` instruction.
fn call_target((at, word): (usize, u32)) -> Option<usize> {
    let offset = ((word << 6) as i32 >> 6) as isize * 4;
    (word >> 26 == 0b100101).then(|| at.wrapping_add_signed(offset))
}

#[test]
fn the_barrier_is_of_the_whole_system() {
    let code = code(DeviceMem::barrier as fn() as usize);
    assert!(code.iter().any(|&(_, word)| word == DSB_SY), "{code:x?}");
}

#[test]
fn the_doorbell_comes_after_it() {
    let barrier = DeviceMem::barrier as fn() as usize;
    let code = code(Doorbell::ring as fn(&Doorbell, u32) as usize);
    let is_barrier = |i: &(usize, u32)| i.1 == DSB_SY || call_target(*i) == Some(barrier);
    let at = code.iter().position(is_barrier).unwrap_or_else(|| panic!("no barrier in {code:x?}"));
    // The doorbell is a store of a word, or in an unoptimised build a call of the function that makes it.
    let is_store = |i: &&(usize, u32)| i.1 & 0xffc0_0000 == 0xb900_0000 || call_target(**i).is_some();
    assert!(code[at + 1..].iter().any(|i| is_store(&i)), "no store behind the barrier: {code:x?}");
}
