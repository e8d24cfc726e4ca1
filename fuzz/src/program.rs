//! The library as a fuzz target uses it: on a virtual Orin of the release that the input chooses, without threads, and
//! with the descriptors that it leaves behind counted.

use std::ffi::CStr;
use std::sync::Once;
use tegrarm::capi::library::{tegrarm_config, tegrarm_init, tegrarm_last_error, tegrarm_shutdown};
use tegrarm_abi::rm::status::{NV_ERR_GENERIC, NV_OK};

const RELEASES: [&str; 4] = ["r36", "r35", "r35.4", "r39"];

/// Names the release, and says that the GPU works in steps, to the library that is initialised next.
pub fn choose(release: u8) {
    static REST: Once = Once::new();
    // SAFETY: the library is not initialised, so that no other thread runs which could read the environment.
    unsafe {
        REST.call_once(|| {
            std::env::set_var("TEGRARM_SIM_FAULTS", "0");
            std::env::set_var("TEGRARM_SIM_STEP", "1");
        });
        std::env::set_var("TEGRARM_SIM_L4T", RELEASES[usize::from(release) % RELEASES.len()]);
    }
}

/// The library in use.
pub struct Program {
    descriptors: usize,
}

impl Program {
    /// Initialises the library.
    pub fn start(release: u8) -> Program {
        choose(release);
        let descriptors = descriptors();
        let config = tegrarm_config { size: size_of::<tegrarm_config>(), backend: c"sim".as_ptr() };
        // SAFETY: the configuration and its string live until the call returns.
        assert_eq!(unsafe { tegrarm_init(&raw const config) }, NV_OK, "{}", sentence());
        Program { descriptors }
    }

    /// Shuts it down. Nothing may stay open.
    pub fn end(self) {
        assert_eq!(tegrarm_shutdown(), NV_OK);
        assert_eq!(descriptors(), self.descriptors, "every descriptor is closed");
    }
}

/// Ends the target if the library met a bug in itself.
pub fn no_bug(status: u32) -> u32 {
    assert!(status != NV_ERR_GENERIC, "{}", sentence());
    status
}

/// The sentence of the last call that failed.
pub fn sentence() -> String {
    let mut text = [0u8; 1024];
    // SAFETY: the memory has that many bytes.
    unsafe { tegrarm_last_error(text.as_mut_ptr().cast(), text.len()) };
    CStr::from_bytes_until_nul(&text).expect("a NUL").to_string_lossy().into_owned()
}

/// The number of open descriptors.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("procfs").count()
}
